//! Rules about content: which parts of URLs make no difference to the content of a page. This module applies them;
//! `learning` learns them from captures.
//!
//! ```text
//! captures --learning--> rules of hosts, domains and all hosts --ContentRuleSet--> the form that all URLs of a page share
//! ```

#[cfg(feature = "cli")]
mod export;
#[cfg(feature = "pipeline")]
mod learning;
mod path_rules;
mod path_text;
mod query_rules;
mod removal;
mod rule;
mod rule_set;
mod sought_name;
mod url_editor;
mod url_parts;
mod value_shape;

#[cfg(feature = "cli")]
pub(crate) use export::{RegexRule, regexes_of};
#[cfg(feature = "pipeline")]
pub(crate) use learning::{
    ContentLimits, DocumentEvidence, EVERYWHERE, GeneralRules, HostCaptures, HostReduction, JudgedRule, KindTotals,
    LearnedHost, OpenSite, Period, RuleHighlights, RuleRefusal, RuleScores, ScopeRule, UrlContent, Votes, can_be_scope,
    site_of,
};
#[cfg(feature = "cli")]
pub(crate) use learning::{PairShare, wilson_interval};
pub(crate) use rule::{ContentRule, PathContext, ScopedRule};
pub(crate) use rule_set::{ContentRuleSet, RuleBuffers, RuleSubject};
pub(crate) use url_parts::{UrlOrigin, UrlParts, origin_start, scheme_name};
