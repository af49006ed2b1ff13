//! Learns from the contents of captures which parts of URLs make no difference, and applies what was learned.
//!
//! ```text
//! captures of a host --HostCaptures--> URLs with equal contents --find_differences--> rules to try
//!     --Trial, again and again (UrlGroup: RuleEvidence)--> learned and refused rules with their evidence
//! rules of many hosts --GeneralRules--> rules of domains and of all hosts
//! rules --ContentRuleSet--> the form that all URLs of a resource share
//! ```
//!
//! Evidence is a digest of the content of a successful answer. Two URLs whose contents differ are different pages, unless
//! the host changes the content of a URL by itself. Results depend on the captures only, not on their order.

#[cfg(feature = "pipeline")]
mod alias;
#[cfg(feature = "pipeline")]
mod captures;
#[cfg(feature = "pipeline")]
mod differences;
#[cfg(feature = "pipeline")]
mod evidence;
#[cfg(feature = "cli")]
mod export;
#[cfg(feature = "pipeline")]
mod general;
#[cfg(feature = "pipeline")]
mod group;
#[cfg(feature = "pipeline")]
mod highlights;
#[cfg(feature = "pipeline")]
mod host;
#[cfg(feature = "pipeline")]
mod judged_rule;
#[cfg(feature = "pipeline")]
mod near;
#[cfg(feature = "pipeline")]
mod pairs;
#[cfg(feature = "pipeline")]
mod parameters;
mod path_rules;
mod path_text;
mod query_rules;
mod removal;
mod rule;
mod rule_set;
mod sought_name;
#[cfg(feature = "pipeline")]
mod trial;
mod url_editor;
mod url_parts;
#[cfg(feature = "pipeline")]
mod validation;
mod value_shape;

#[cfg(feature = "pipeline")]
pub(crate) use captures::HostCaptures;
#[cfg(feature = "cli")]
pub(crate) use export::regexes_of;
#[cfg(feature = "pipeline")]
pub(crate) use general::{EVERYWHERE, GeneralRules, LearnedHost, ScopeRule, Votes, can_be_scope, site_of};
#[cfg(feature = "pipeline")]
pub(crate) use highlights::{HostReduction, KindTotals, RuleHighlights};
#[cfg(feature = "pipeline")]
pub(crate) use judged_rule::{ContentLimits, JudgedRule, RuleRefusal};
#[cfg(feature = "pipeline")]
pub(crate) use near::DocumentEvidence;
#[cfg(feature = "cli")]
pub(crate) use pairs::{PairShare, wilson_interval};
pub(crate) use rule::{ContentRule, PathContext, ScopedRule};
pub(crate) use rule_set::{ContentRuleSet, RuleBuffers, RuleSubject};
pub(crate) use url_parts::{UrlOrigin, UrlParts};
#[cfg(feature = "pipeline")]
pub(crate) use validation::RuleScores;
