//! The flags that say what the canonical form is, and the [`Policy`] that they mean.

use clap::{Args, ValueEnum};

use super::input::InputArgs;
use super::repair::RepairArgs;
use crate::canon::{Policy, Rung};
use crate::encoding::Charset;
use crate::iri::{Base, ParseMode, Profile};
use crate::key::KeyAlgorithm;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RungName {
    /// Scheme and host case, percent-encoding, mapping to a URI, dot segments (RFC 3987 section 5.3.2)
    Syntax,
    /// Also default ports, empty paths, hosts and per-scheme rules (section 5.3.3)
    Scheme,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum KeyHash {
    /// XXH3, 128 bits, seed 0
    Xxh3,
    /// The first 128 bits of BLAKE3, for inputs that an adversary may choose
    Blake3,
}

/// Flags of every command that makes canonical URIs.
#[derive(Debug, Args)]
pub struct FormArgs {
    /// Base that relative references are resolved against when their record brings none; an absolute IRI
    #[arg(long, value_name = "URI", help_heading = "Canonical form")]
    base: Option<String>,
    /// Specification whose syntax and repairs apply: rfc3987, duerst-00, duerst-01, masinter-07, weber-00 or whatwg.
    /// Rungs are RFC 3987's; but with whatwg the syntax and the scheme rung are both the href
    #[arg(long, value_name = "NAME", value_parser = parse_profile, default_value = "rfc3987", help_heading = "Canonical form")]
    profile: &'static Profile,
    /// Charset of the inputs, by a label of the Encoding Standard: records become UTF-8, and in NFC unless it is a
    /// Unicode one (RFC 3987 section 3.1); one that is no text in it is a fault. UTF-16 is also known by its byte order
    /// mark
    #[arg(long, value_name = "LABEL", value_parser = parse_charset, help_heading = "Canonical form")]
    charset: Option<Charset>,
    /// Charset of the documents that the URLs stood in: queries of http and https URLs are percent-encoded in it, as
    /// browsers do, and not in UTF-8
    #[arg(long, value_name = "LABEL", value_parser = parse_charset, help_heading = "Canonical form")]
    query_charset: Option<Charset>,
    /// Resolve exactly as RFC 3986 section 5.2 says, leaving dot segments of the base itself. Needs --base or
    /// --base-column
    #[arg(long, help_heading = "Canonical form")]
    literal_base: bool,
    /// Refuse whatever the grammar of RFC 3987 refuses, instead of percent-encoding and flagging it
    #[arg(long, help_heading = "Canonical form")]
    strict: bool,
    /// Rung of RFC 3987 section 5.3 that the columns uri and key stand on
    #[arg(long, value_enum, default_value_t = RungName::Scheme, help_heading = "Canonical form")]
    rung: RungName,
    /// Hash that keys are made with
    #[arg(long, value_enum, default_value_t = KeyHash::Xxh3, help_heading = "Canonical form")]
    key_hash: KeyHash,
    /// Leave fragments out of URIs and keys: what is retrieved is the same (RFC 3987 section 5.1)
    #[arg(long, help_heading = "Canonical form")]
    drop_fragment: bool,
    /// Scheme put before references without one that look like host/path, and flagged; for example https
    #[arg(long, value_name = "SCHEME", value_parser = parse_scheme, help_heading = "Canonical form")]
    assume_scheme: Option<String>,
    #[command(flatten)]
    repairs: RepairArgs,
}

impl FormArgs {
    /// What rows depend on, but for what the output's columns want of it.
    ///
    /// # Errors
    /// Flags that contradict each other, as a sentence that says what to do; `input` tells what records bring.
    pub fn policy(&self, input: &InputArgs) -> Result<Policy, String> {
        self.check(input.has_bases())?;
        Ok(Policy {
            profile: self.profile,
            intake: if self.strict { ParseMode::Strict } else { ParseMode::Lenient },
            rung: match self.rung {
                RungName::Syntax => Rung::Syntax,
                RungName::Scheme => Rung::Scheme,
            },
            algorithm: match self.key_hash {
                KeyHash::Xxh3 => KeyAlgorithm::Xxh3,
                KeyHash::Blake3 => KeyAlgorithm::Blake3,
            },
            base: self.base.as_ref().map(|base| base.clone().into_bytes()),
            literal_base: self.literal_base,
            drop_fragment: self.drop_fragment,
            assume_scheme: self.assume_scheme.clone(),
            preprocess: self.repairs.preprocess(self.profile),
            charset: self.charset,
            query_charset: self.query_charset,
            has_record_charsets: input.has_charsets(),
            has_record_query_charsets: input.has_query_charsets(),
            ..Policy::default()
        })
    }

    fn check(&self, has_bases: bool) -> Result<(), String> {
        if self.literal_base && self.base.is_none() && !has_bases {
            return Err("--literal-base says how to resolve against a base; give --base or --base-column".to_string());
        }
        let not_of_whatwg = [("--strict", self.strict), ("--literal-base", self.literal_base)];
        if let Some((flag, _)) = not_of_whatwg.iter().find(|(_, given)| *given && self.profile.is_whatwg()) {
            return Err(format!("{flag} is not for --profile whatwg: the URL Standard has one way to read a URL"));
        }
        match self.base.as_deref().map(|base| Base::new(base.as_bytes())) {
            Some(Err(fault)) => Err(format!("--base: {fault}")),
            _ => Ok(()),
        }
    }
}

/// The profile of that name.
pub fn parse_profile(name: &str) -> Result<&'static Profile, String> {
    let names = || Profile::ALL.map(|profile| profile.name).join(", ");
    Profile::from_name(name).ok_or_else(|| format!("the profiles are {}", names()))
}

fn parse_charset(label: &str) -> Result<Charset, String> {
    Charset::named(label)
        .ok_or_else(|| "no charset has this label; for example windows-1251, Shift_JIS, GB18030".to_string())
}

/// `scheme = ALPHA *( ALPHA / DIGIT / "+" / "-" / "." )`, RFC 3986 section 3.1; in lower case, as it is written.
fn parse_scheme(text: &str) -> Result<String, String> {
    let is_tail = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    match text.bytes().next() {
        Some(first) if first.is_ascii_alphabetic() && text.bytes().all(is_tail) => Ok(text.to_ascii_lowercase()),
        _ => Err("a scheme is a letter, then letters, digits, '+', '-' or '.'; for example https".to_string()),
    }
}
