//! The engines, one file each.

mod ada;
mod copy_xxh3;
mod fluent_uri;
mod iri_string;
mod irikey;
mod memcpy;
mod oxiri;
mod url;

use crate::engine::Contestant;

/// All engines, in the order in which a round runs them.
pub const ALL: [Contestant; 8] = [
    Contestant::of::<irikey::Irikey>(),
    Contestant::of::<ada::Ada>(),
    Contestant::of::<fluent_uri::FluentUri>(),
    Contestant::of::<url::Url>(),
    Contestant::of::<iri_string::IriString>(),
    Contestant::of::<oxiri::Oxiri>(),
    Contestant::of::<memcpy::Memcpy>(),
    Contestant::of::<copy_xxh3::CopyXxh3>(),
];
