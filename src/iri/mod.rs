//! The RFC.

mod fault;
mod flags;
mod ladder;

pub use fault::{Component, Fault, FaultKind};
pub use flags::{Changes, Flags};
pub use ladder::{Intake, Rung};

/// Version of Unicode that hosts are mapped by (UTS 46 tables of the idna crate's ICU4X data).
pub const UNICODE_VERSION: &str = "16.0";
