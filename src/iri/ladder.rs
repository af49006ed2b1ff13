//! The comparison ladder.

/// A step of the comparison ladder, RFC 3987 section 5.3. Equal on a rung implies equal on every higher one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rung {
    /// Section 5.3.1: the characters as they are.
    Simple,
    /// Section 5.3.2: case, percent-encoding, mapping to a URI, dot segments.
    Syntax,
    /// Section 5.3.3: ports, empty paths, hosts, per-scheme rules.
    #[default]
    Scheme,
}

impl Rung {
    /// All rungs, lowest first.
    pub const ALL: [Rung; 3] = [Rung::Simple, Rung::Syntax, Rung::Scheme];

    /// The name in `--rung`, `--key` and column names.
    pub const fn name(self) -> &'static str {
        match self {
            Rung::Simple => "simple",
            Rung::Syntax => "syntax",
            Rung::Scheme => "scheme",
        }
    }

    /// The rung of that name.
    pub fn named(name: &str) -> Option<Rung> {
        Rung::ALL.into_iter().find(|rung| rung.name() == name)
    }
}

/// What becomes of text that the grammar of RFC 3987 section 2.2 refuses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Intake {
    /// Characters that may not stand in an IRI are percent-encoded or kept, and flagged; only what cannot be
    /// taken apart is a fault. For crawl data.
    #[default]
    Lenient,
    /// Whatever the grammar or section 4.1 refuses is a fault.
    Strict,
}

impl Intake {
    /// The name in `--intake` and in files' metadata.
    pub const fn name(self) -> &'static str {
        match self {
            Intake::Lenient => "lenient",
            Intake::Strict => "strict",
        }
    }
}
