//! Learns from observed redirects and contents which URLs identify one resource (RFC 3987 section 5.3.4), and computes keys
//! of the rung `protocol` from what was learned.
//!
//! ```text
//! redirects and responses --Observations, or sorted by a job--> RedirectObserver: a RedirectVerdict per redirect
//!     --finish--> classes of URLs whose redirects end at one URL, and patterns of hosts --> Learned
//! contents of captures --content--> rules about content
//!
//! Learned, rules --(file)--> Equivalences: key of a URL --class, otherwise rules and patterns--> key of its representative
//! ```
//!
//! A class contains URLs that accepted redirects connect; its representative is the URL where they end. A pattern
//! ([`RewritePattern`]) is what one host does to all of its URLs (`http` to `https`, `www.` added or removed, a slash at the end
//! of the path), with the number of URLs that confirm and contradict it. A rule about content states which part of the URLs of a
//! host makes no difference. URLs that none of these connects stay apart. Results do not depend on the order of the
//! observations.
//!
//! - `redirect`, `spelling`, `rewrite_pattern`: redirects, the parts of URLs that sites spell in several ways, and rules about
//!   them
//! - `observations`, `observer`, `resolution`: what follows from redirects (`learned`), with the votes of `patterns`, the
//!   loops of `graph`, the contents that `contradictions` compares, and the rows of `redirect_rows` in a `sorter`
//! - `equivalences`, `protocol_keys`: what was learned, and the key of one URL by it; `trace` shows the steps to this key
//! - `key_resolver`: the keys of many URLs, with `host_places` and `targets` (those whose hosts have rules), `host_rules`,
//!   `host_table` and `text_map` (the rules of a host), and `changed_urls`
//!
//! The module reads and writes no files.

mod changed_urls;
pub(crate) mod content;
mod contradictions;
mod equivalences;
mod graph;
mod host_places;
mod host_rules;
mod host_table;
mod key_resolver;
mod learned;
mod observations;
mod observer;
mod patterns;
mod protocol_keys;
mod redirect;
mod redirect_rows;
mod resolution;
mod rewrite_pattern;
mod sorter;
mod spelling;
mod targets;
mod text_map;
#[cfg(feature = "cli")]
mod trace;

pub use equivalences::{Equivalences, EquivalencesBuilder, EquivalencesConflict};
pub(crate) use host_places::UrlColumn;
pub use host_rules::KeyOrigin;
pub(crate) use key_resolver::{KeyResolver, OriginCounts};
#[cfg(feature = "pipeline")]
pub(crate) use learned::LearnedRedirects;
pub use learned::{ClassMember, LearnCounts, Learned, MemberReason};
pub use observations::Observations;
#[cfg(feature = "pipeline")]
pub(crate) use observer::{NUMBERED_URL_LEN, RedirectObserver};
pub use patterns::{Pattern, RefusedPatterns};
#[cfg(feature = "pipeline")]
pub(crate) use redirect::TargetSource;
pub use redirect::{LearnLimits, RecordPlace, RedirectCode, RedirectVerdict};
pub use rewrite_pattern::{OriginPattern, RewritePattern, WwwChange};
#[cfg(feature = "pipeline")]
pub(crate) use sorter::{FieldReader, ReadRecords, RecordFields, SortRecords, SorterFactory};
#[cfg(feature = "pipeline")]
pub(crate) use spelling::Spelling;
#[cfg(feature = "cli")]
pub(crate) use trace::TraceStep;
