//! A redirect's status and what is made of it: [`RedirectCode`], [`RedirectVerdict`], and the [`LearnLimits`] that verdicts depend on.

/// How binding a redirect is, by its status (RFC 9110 section 15.4); the strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RedirectCode {
    /// 301 and 308: the target is the URL to use from now on.
    Permanent,
    /// 302, 303 and 307: the target answered for this once.
    Temporary,
    /// No record tells the status.
    Unknown,
}

impl RedirectCode {
    /// What a status says; `None` if it is that of no redirect.
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

    /// Its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            RedirectCode::Permanent => "permanent",
            RedirectCode::Temporary => "temporary",
            RedirectCode::Unknown => "unknown",
        }
    }
}

/// What became of a redirect; each has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RedirectVerdict {
    /// It joins the two URLs.
    Accepted,
    /// Both are the same URL on the `scheme` rung.
    SelfRedirect,
    /// It is part of a circle, or leads into one.
    Loop,
    /// Its target takes in more different URLs than [`LearnLimits::max_sources`].
    Sink,
    /// Its status is no permanent one.
    Weak,
    /// Its URL redirected to several targets.
    Ambiguous,
    /// It leads out of the registered domain, and [`LearnLimits::same_site`] was asked for.
    OtherSite,
    /// Its record's status is that of no redirect.
    OtherStatus,
    /// Its URL or its target has a fault.
    Unparsable,
}

impl RedirectVerdict {
    /// All of them.
    pub const ALL: [RedirectVerdict; 9] = [
        RedirectVerdict::Accepted,
        RedirectVerdict::SelfRedirect,
        RedirectVerdict::Loop,
        RedirectVerdict::Sink,
        RedirectVerdict::Weak,
        RedirectVerdict::Ambiguous,
        RedirectVerdict::OtherSite,
        RedirectVerdict::OtherStatus,
        RedirectVerdict::Unparsable,
    ];

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            RedirectVerdict::Accepted => "accepted",
            RedirectVerdict::SelfRedirect => "self",
            RedirectVerdict::Loop => "loop",
            RedirectVerdict::Sink => "sink",
            RedirectVerdict::Weak => "weak",
            RedirectVerdict::Ambiguous => "ambiguous",
            RedirectVerdict::OtherSite => "other-site",
            RedirectVerdict::OtherStatus => "other-status",
            RedirectVerdict::Unparsable => "unparsable",
        }
    }
}

/// What is believed.
#[derive(Clone, Debug, PartialEq)]
pub struct LearnLimits {
    /// Believe temporary redirects, and those whose status is unknown, where no permanent one contradicts.
    pub weak: bool,
    /// A target that more different URLs redirect to is a sink: a home page, a login, a notice. The target's own spellings
    /// ([`super::Spelling::change_to`]) are not counted, and are joined with it all the same.
    pub max_sources: u64,
    /// Believe redirects within one registered domain only.
    pub same_site: bool,
    /// Different URLs that must have shown a pattern.
    pub min_support: u64,
    /// Share of the URLs that a pattern speaks of that must have shown it.
    pub min_confidence: f64,
}

impl Default for LearnLimits {
    fn default() -> LearnLimits {
        LearnLimits { weak: false, max_sources: 8, same_site: false, min_support: 3, min_confidence: 0.95 }
    }
}

impl LearnLimits {
    /// Name and value of each, for a file's metadata.
    pub fn describe(&self) -> Vec<(&'static str, String)> {
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
