//! Learns from the contents of captures which parts of URLs make no difference.
//!
//! ```text
//! captures of a host --HostCaptures--> URLs with equal contents --find_differences--> rules to try
//!     --Trial, again and again (UrlGroup: RuleEvidence)--> learned and refused rules with their evidence
//! rules of many hosts --GeneralRules--> rules of domains and of all hosts
//! ```
//!
//! Evidence is a digest of the content of a successful response. Two URLs whose contents differ are different pages, unless
//! the host changes the content of a URL by itself. Two URLs that had one content are one page, unless they changed apart from
//! it (`agreement`). Results depend on the captures only, not on their order.

mod agreement;
mod alias;
mod captures;
mod differences;
mod evidence;
mod general;
mod group;
mod highlights;
mod host;
mod judged_rule;
mod near;
mod pairs;
mod parameters;
mod trial;
mod validation;

pub(crate) use captures::{HostCaptures, Period, UrlContent};
pub(crate) use general::{EVERYWHERE, GeneralRules, LearnedHost, OpenSite, ScopeRule, Votes, can_be_scope, site_of};
pub(crate) use highlights::{HostReduction, KindTotals, RuleHighlights};
pub(crate) use judged_rule::{ContentLimits, JudgedRule, RuleRefusal};
pub(crate) use near::DocumentEvidence;
#[cfg(feature = "cli")]
pub(crate) use pairs::{PairShare, wilson_interval};
pub(crate) use validation::RuleScores;
