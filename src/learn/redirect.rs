//! Redirects: their status, what is decided about them, and the limits that decisions depend on.

use super::spelling::Spelling;
use xxhash_rust::xxh3::xxh3_64;

/// How binding a redirect is, by its status (RFC 9110 section 15.4); the strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RedirectCode {
    /// 301 and 308: the target is the URL to use from now on.
    Permanent,
    /// 302, 303 and 307: the target is valid for this request only.
    Temporary,
    /// No record states the status.
    Unknown,
}

impl RedirectCode {
    /// Returns the code of a status, or `None` if it is not the status of a redirect.
    ///
    /// ```
    /// use irikey::learn::RedirectCode;
    /// assert_eq!(RedirectCode::of(308), Some(RedirectCode::Permanent));
    /// assert_eq!(RedirectCode::of(304), None);
    /// ```
    pub fn of(status: i32) -> Option<RedirectCode> {
        match status {
            301 | 308 => Some(RedirectCode::Permanent),
            302 | 303 | 307 => Some(RedirectCode::Temporary),
            _ => None,
        }
    }

    /// Returns the code that a record states, [`RedirectCode::Unknown`] without a status, or `None` if its status is not that
    /// of a redirect.
    pub(crate) fn of_record(status: Option<i32>) -> Option<RedirectCode> {
        status.map_or(Some(RedirectCode::Unknown), RedirectCode::of)
    }

    /// Returns the code with this number: its place among all codes.
    pub(crate) const fn numbered(number: u8) -> RedirectCode {
        match number {
            0 => RedirectCode::Permanent,
            1 => RedirectCode::Temporary,
            _ => RedirectCode::Unknown,
        }
    }

    /// Returns the name in files.
    #[cfg(feature = "batch")]
    pub(crate) const fn name(self) -> &'static str {
        match self {
            RedirectCode::Permanent => "permanent",
            RedirectCode::Temporary => "temporary",
            RedirectCode::Unknown => "unknown",
        }
    }
}

/// Defines the verdicts and their names in reports.
macro_rules! verdicts {
    ($($(#[$doc:meta])* $verdict:ident $name:literal;)*) => {
        /// The decision about a redirect; each has exactly one.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum RedirectVerdict {
            $($(#[$doc])* $verdict,)*
        }

        impl RedirectVerdict {
            /// All verdicts.
            pub const ALL: [RedirectVerdict; 10] = [$(RedirectVerdict::$verdict),*];

            /// Returns the name in reports.
            pub const fn name(self) -> &'static str {
                match self { $(RedirectVerdict::$verdict => $name,)* }
            }
        }
    };
}
verdicts! {
    /// It joins the two URLs.
    Accepted "accepted";
    /// Both URLs are equal on the rung `scheme`.
    SelfRedirect "self";
    /// It is part of a loop, or leads into one.
    Loop "loop";
    /// More URLs than [`LearnLimits::max_sources`] redirect to its target.
    Sink "sink";
    /// Rules about content make its URL of captured URLs, none of whose contents is one of the URL where the redirects end.
    Contradicted "contradicted";
    /// Its status is not a permanent one.
    Weak "weak";
    /// Its URL redirected to several targets.
    Ambiguous "ambiguous";
    /// It leaves the registered domain, and [`LearnLimits::same_site`] is set.
    OtherSite "other-site";
    /// The status of its record is not that of a redirect.
    OtherStatus "other-status";
    /// Its URL or its target has a fault.
    Unparsable "unparsable";
}

/// What is accepted as evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct LearnLimits {
    /// Accept temporary redirects, and those of unknown status, unless a permanent one contradicts.
    pub weak: bool,
    /// A target that more distinct URLs redirect to is a sink: a home page, a login, a notice. Other spellings of the
    /// target (scheme, `www.`, final slash) do not count, and are joined with it in any case.
    pub max_sources: u64,
    /// Accept only redirects within one registered domain.
    pub same_site: bool,
    /// Minimum number of distinct URLs that confirm a pattern.
    pub min_support: u64,
    /// Minimum share of the URLs that a pattern applies to that confirm it.
    pub min_confidence: f64,
}

impl Default for LearnLimits {
    fn default() -> LearnLimits {
        LearnLimits { weak: false, max_sources: 8, same_site: false, min_support: 3, min_confidence: 0.95 }
    }
}

impl LearnLimits {
    /// Returns the name and value of each limit, for the metadata of a file.
    #[cfg(feature = "batch")]
    pub(crate) fn describe(&self) -> Vec<(&'static str, String)> {
        let yes_no = |flag: bool| if flag { "yes" } else { "no" }.to_string();
        vec![
            ("weak", yes_no(self.weak)),
            ("max_sources", self.max_sources.to_string()),
            ("same_site", yes_no(self.same_site)),
            ("min_support", self.min_support.to_string()),
            ("min_confidence", self.min_confidence.to_string()),
        ]
    }
}

/// A record: its source and its ordinal there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordPlace {
    /// Rank of the source's name among the names of all sources.
    pub source: u32,
    /// Ordinal of the record in its source, from 1.
    pub record: u64,
}

/// All observations of one redirect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RedirectEvidence {
    pub(super) records: u64,
    /// The strongest code.
    pub(super) code: RedirectCode,
    pub(super) first: RecordPlace,
}

/// A URL that redirects to another one, as that one sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TargetSource {
    /// The redirect counts for the limit of sinks: the target is not another spelling of the source.
    pub(crate) is_counted: bool,
    /// Hash of the URL that redirects.
    pub(crate) source: u64,
}

impl TargetSource {
    /// Returns what the target of a redirect sees.
    pub(crate) fn new(from: &[u8], to: &[u8]) -> TargetSource {
        let is_spelling = || Spelling::of(from)?.change_to(&Spelling::of(to)?);
        TargetSource { is_counted: from != to && is_spelling().is_none(), source: xxh3_64(from) }
    }
}
