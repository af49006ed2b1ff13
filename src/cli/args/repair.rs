//! The flags that say what is done to a field of a document before it is a reference, and the [`PreprocessOptions`] that they
//! mean (draft-weber-iri-guidelines-00 sections 4 and 7).

use clap::{Args, ValueEnum};

use crate::iri::{Backslashes, CharacterReferences, PreprocessOptions, Profile, Spaces};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum InnerSpaces {
    /// White space is taken out
    Remove,
    /// Each space becomes %20
    Encode,
    /// Spaces part references: each is a record of its own
    Split,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Markup {
    /// Numbers, and &lt; &gt; &amp; &quot; &apos;
    Xml,
    /// Numbers, and all names that HTML has
    Html,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum BackslashName {
    /// Each before the query becomes /, as browsers have it
    Slash,
    /// Each becomes %5C
    Encode,
}

/// Repairs, none by default; each is flagged where it was made.
#[derive(Debug, Args)]
pub struct RepairArgs {
    /// Take spaces, tabs and line ends off both ends of URLs. Profile weber-00 does so anyway
    #[arg(long, help_heading = "Repairs")]
    trim: bool,
    /// What becomes of white space inside URLs [default: percent-encoded and flagged; a fault with --strict]
    #[arg(long, value_name = "CHOICE", value_enum, help_heading = "Repairs")]
    inner_spaces: Option<InnerSpaces>,
    /// Replace character references, such as &amp;, once: URLs were taken out of markup as they stood there
    #[arg(long, value_name = "MARKUP", value_enum, help_heading = "Repairs")]
    character_references: Option<Markup>,
    /// What becomes of backslashes [default: percent-encoded and flagged; a fault with --strict]
    #[arg(long, value_name = "CHOICE", value_enum, help_heading = "Repairs")]
    backslashes: Option<BackslashName>,
}

impl RepairArgs {
    /// What the flags mean, and what the profile does anyway.
    pub fn preprocess(&self, profile: &Profile) -> PreprocessOptions {
        PreprocessOptions {
            character_references: match self.character_references {
                None => CharacterReferences::Kept,
                Some(Markup::Xml) => CharacterReferences::Xml,
                Some(Markup::Html) => CharacterReferences::Html,
            },
            is_trimmed: self.trim || profile.is_field_of_references,
            spaces: match self.inner_spaces {
                None => Spaces::Kept,
                Some(InnerSpaces::Remove) => Spaces::Removed,
                Some(InnerSpaces::Encode) => Spaces::Encoded,
                Some(InnerSpaces::Split) => Spaces::Split,
            },
            backslashes: match self.backslashes {
                None => Backslashes::Kept,
                Some(BackslashName::Slash) => Backslashes::Slash,
                Some(BackslashName::Encode) => Backslashes::Encoded,
            },
        }
    }
}
