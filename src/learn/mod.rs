//! Learns from observed redirects which URLs identify one resource (RFC 3987 section 5.3.4), and computes keys of the
//! rung `protocol` from what was learned.
//!
//! ```text
//! rows --RowGroupObservations--> Observations --judge--> RedirectVerdict per redirect --UnionFind--> classes --+
//!                                      |                                                                    +--> Learned
//!                                      +--answers and redirects of every host-------> patterns ------------+
//!
//! Learned --(file)--> Equivalences: key of a URL --class, otherwise patterns--> key of its representative
//! ```
//!
//! A class contains URLs that accepted redirects connect; its representative is the URL where they end. A pattern is a
//! rewrite rule that one host applies to all of its URLs (`http` to `https`, `www.` added or removed, a slash at the end
//! of the path), with the number of URLs that confirm and contradict it. URLs that no redirect and no pattern connects
//! stay apart. Results do not depend on the order of the observations.
//!
//! The module reads and writes no files.

pub(crate) mod content;
mod equivalences;
mod graph;
mod learned;
mod observations;
mod patterns;
mod redirect;
mod rewrite;
mod spelling;
mod text_map;
#[cfg(feature = "cli")]
mod trace;

pub(crate) use equivalences::KeyBuffers;
pub use equivalences::{Equivalences, EquivalencesConflict, KeyOrigin};
pub use learned::{ClassMember, LearnCounts, Learned, MemberReason};
pub use observations::{Observations, RowGroupObservations};
pub use patterns::{Pattern, RefusedRules};
pub use redirect::{LearnLimits, RecordPlace, RedirectCode, RedirectVerdict};
pub use rewrite::{OriginRule, RewriteRule, WwwChange};
#[cfg(feature = "pipeline")]
pub(crate) use spelling::Spelling;
#[cfg(feature = "cli")]
pub(crate) use trace::TraceStep;
