//! A redirect's status and what is made of it: [`Code`], [`Verdict`], and the [`Limits`] that verdicts depend on.

/// How binding a redirect is, by its status (RFC 9110 section 15.4); the strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code {
    /// 301 and 308: the target is the URL to use from now on.
    Permanent,
    /// 302, 303 and 307: the target answered for this once.
    Temporary,
    /// No record tells the status.
    Unknown,
}

impl Code {
    /// What a status says; `None` if it is that of no redirect.
    ///
    /// ```
    /// use irikey::learn::Code;
    /// assert_eq!(Code::of(308), Some(Code::Permanent));
    /// assert_eq!(Code::of(304), None);
    /// ```
    pub fn of(status: i32) -> Option<Code> {
        match status {
            301 | 308 => Some(Code::Permanent),
            302 | 303 | 307 => Some(Code::Temporary),
            _ => None,
        }
    }

    /// Its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Code::Permanent => "permanent",
            Code::Temporary => "temporary",
            Code::Unknown => "unknown",
        }
    }
}

/// What became of a redirect; each has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// It joins the two URLs.
    Accepted,
    /// Both are the same URL on the `scheme` rung.
    SelfRedirect,
    /// It is part of a circle, or leads into one.
    Loop,
    /// Its target takes in more different URLs than [`Limits::max_sources`].
    Sink,
    /// Its status is no permanent one.
    Weak,
    /// Its URL redirected to several targets.
    Ambiguous,
    /// It leads out of the registered domain, and [`Limits::same_site`] was asked for.
    OtherSite,
    /// Its record's status is that of no redirect.
    OtherStatus,
    /// Its URL or its target has a fault.
    Unparsable,
}

impl Verdict {
    /// All of them.
    pub const ALL: [Verdict; 9] = [
        Verdict::Accepted,
        Verdict::SelfRedirect,
        Verdict::Loop,
        Verdict::Sink,
        Verdict::Weak,
        Verdict::Ambiguous,
        Verdict::OtherSite,
        Verdict::OtherStatus,
        Verdict::Unparsable,
    ];

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Accepted => "accepted",
            Verdict::SelfRedirect => "self",
            Verdict::Loop => "loop",
            Verdict::Sink => "sink",
            Verdict::Weak => "weak",
            Verdict::Ambiguous => "ambiguous",
            Verdict::OtherSite => "other-site",
            Verdict::OtherStatus => "other-status",
            Verdict::Unparsable => "unparsable",
        }
    }
}

/// What is believed.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
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

impl Default for Limits {
    fn default() -> Limits {
        Limits { weak: false, max_sources: 8, same_site: false, min_support: 3, min_confidence: 0.95 }
    }
}

impl Limits {
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
