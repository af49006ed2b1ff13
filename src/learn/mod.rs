//! What fetching showed of which URLs are one (RFC 3987 section 5.3.4): observed redirects in, equivalences out, and the
//! key of the rung `protocol` by them. Nothing is read here, and nothing assumed: what no redirect confirmed stays apart.
//!
//! ```text
//! rows --RowGroupObservations, a span's--> Observations --guards--> verdict on every redirect --union-find--> classes --+
//!                                  |                                                                       +--> Learned
//!                                  +--answers, redirects of every host---------------------> patterns ---+
//!
//! Learned --(written, read again)--> Equivalences: key of a URL --class, else patterns--> its representative's key
//! ```
//!
//! A class is what redirects join, and its representative is where they end. A pattern is what one host does to all its
//! URLs (`http` to `https`, `www.` put before or taken off, a slash at the path's end), with how often it was seen and how
//! often it was not. Nothing depends on the order in which redirects were seen.

mod classes;
mod equivalences;
mod guards;
mod learned;
mod memory;
mod nodes;
mod observed;
mod patterns;
mod redirect;
mod rule;
mod spelling;

pub use equivalences::{Equivalences, EquivalencesConflict, KeyOrigin};
pub use learned::{ClassMember, LearnCounts, Learned, MemberReason};
pub use observed::{Observations, RecordPlace, RowGroupObservations};
pub use patterns::{Pattern, RefusedRules};
pub use redirect::{LearnLimits, RedirectCode, RedirectVerdict};
pub use rule::{OriginRule, RewriteRule, Www};
pub use spelling::{PathEnding, SlashChange, Spelling, SpellingChange};
