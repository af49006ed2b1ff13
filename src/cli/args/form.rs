//! The flags that say what the canonical form is, and the [`Policy`] that they mean.

use clap::{Args, ValueEnum};

use crate::canon::{Policy, Rung};
use crate::encoding::Charset;
use crate::iri::{Base, Intake};
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
    /// Charset of the inputs, by a label of the Encoding Standard: records become UTF-8 in NFC (RFC 3987 section 3.1);
    /// one that is no text in it is a fault. Not a UTF-16 one: convert such files first
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
}

impl FormArgs {
    /// What rows depend on, but for what the output's columns want of it.
    ///
    /// # Errors
    /// Flags that contradict each other, as a sentence that says what to do; `has_bases` tells that records bring
    /// their own.
    pub fn policy(&self, has_bases: bool) -> Result<Policy, String> {
        self.check(has_bases)?;
        Ok(Policy {
            intake: if self.strict { Intake::Strict } else { Intake::Lenient },
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
            charset: self.charset,
            query_charset: self.query_charset,
            ..Policy::default()
        })
    }

    fn check(&self, has_bases: bool) -> Result<(), String> {
        if self.literal_base && self.base.is_none() && !has_bases {
            return Err("--literal-base says how to resolve against a base; give --base or --base-column".to_string());
        }
        if let Some(charset) = self.charset.filter(|charset| charset.name().starts_with("UTF-16")) {
            return Err(format!(
                "--charset: lines of {} cannot be told apart; convert with iconv -t UTF-8",
                charset.name()
            ));
        }
        match self.base.as_deref().map(|base| Base::new(base.as_bytes())) {
            Some(Err(fault)) => Err(format!("--base: {fault}")),
            _ => Ok(()),
        }
    }
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
