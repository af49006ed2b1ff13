//! Profiles: the choices in which other specifications of IRIs differ from RFC 3987.
//!
//! Every profile except `whatwg` uses the engine of this module with other parameters. Its grammar is that of RFC 3987
//! with another alphabet: characters that only RFC 3987 allows are rejected first, and characters that only the profile
//! allows are then read as unreserved characters. The profile `whatwg` has its own parser; only its choices are here.
//!
//! ```text
//! declared   the choices, the profiles, and the table of their differences
//! mod        checking and mapping by a profile: check_iri, to_uri, to_iri, and prepare for the ladder
//! ```

mod declared;

use std::borrow::Cow;

pub use declared::Profile;
pub(crate) use declared::ReferenceParser;
use declared::{AcceptedInput, DecodedEscapes, ExcludedAscii, HostRepertoire, NormalForm, RFC3987, Repertoire};

use super::check::{self, ParseMode, check_utf8};
use super::class::{self, EXCLUDED};
use super::fault::{Component, Fault, FaultKind};
use super::flags::{Changes, Flags};
use super::map::{
    self, HostMapping, QueryCharset, encode_query, is_decoded, to_iri_by, to_uri_unchecked, uses_query_charset,
};
use super::parts::Parts;
use crate::encoding::nfc_of;
use crate::kernel::{escape, offset_in};

/// Options of [`Profile::to_uri`].
#[derive(Clone, Copy, Debug, Default)]
pub struct MappingOptions {
    /// Whether the reference is checked first; the profile's own mode if `None`.
    pub mode: Option<ParseMode>,
    /// The form of hosts; the profile's own if `None`.
    pub host: Option<HostMapping>,
    /// The document's charset, for the queries of `http` and `https` references. The query of a reference without a scheme
    /// becomes UTF-8, because the scheme of its base is not known: resolve it first.
    pub query: Option<QueryCharset>,
}

impl Profile {
    /// Checks that `text` is an IRI by this profile's grammar.
    ///
    /// # Errors
    /// As [`super::check_iri`]; in addition, characters that are not in the profile's alphabet.
    ///
    /// ```
    /// use irikey::iri::Profile;
    /// assert!(Profile::named("rfc3987").unwrap().check_iri("http://h/a b").is_err());
    /// assert!(Profile::named("duerst-01").unwrap().check_iri("http://h/a b").is_ok());
    /// ```
    pub fn check_iri(&self, text: &str) -> Result<Parts, Fault> {
        self.check_alphabet(text)?;
        check::check_iri(&self.in_rfc_alphabet(text))
    }

    /// Checks that `text` is an IRI reference by this profile's grammar.
    ///
    /// # Errors
    /// As [`Profile::check_iri`], except that the scheme may be missing.
    pub fn check_iri_reference(&self, text: &str) -> Result<Parts, Fault> {
        self.check_alphabet(text)?;
        check::check_iri_reference(&self.in_rfc_alphabet(text))
    }

    /// Rejects the first character that RFC 3987 allows in its component and this profile does not.
    fn check_alphabet(&self, text: &str) -> Result<(), Fault> {
        match self.find_rejected(text.as_bytes()) {
            None => Ok(()),
            Some((at, component)) => Err(Fault::new(FaultKind::Character, component, at)),
        }
    }

    /// Finds the first character that RFC 3987 allows in its component and this profile does not. Returns its offset and its
    /// component. Bytes that are not UTF-8 are skipped.
    fn find_rejected(&self, reference: &[u8]) -> Option<(usize, Component)> {
        if reference.is_ascii() || self.has_rfc_alphabet() {
            return None;
        }
        let (parts, mut chunk_at) = (Parts::split(reference), 0);
        reference.utf8_chunks().find_map(|chunk| {
            let characters = chunk.valid().char_indices().filter(|(_, c)| !c.is_ascii());
            let mut placed = characters.map(|(at, c)| (chunk_at + at, c, parts.component_at(chunk_at + at)));
            let rejected = placed.find(|(_, c, component)| !self.is_allowed(*c, *component));
            chunk_at += chunk.valid().len() + chunk.invalid().len();
            rejected.map(|(at, _, component)| (at, component))
        })
    }

    /// Whether the profile allows the non-ASCII characters of RFC 3987.
    fn has_rfc_alphabet(&self) -> bool {
        (self.repertoire, self.host_repertoire) == (RFC3987.repertoire, RFC3987.host_repertoire)
    }

    /// Returns true if `component` may contain the non-ASCII character `c`.
    fn is_allowed(&self, c: char, component: Component) -> bool {
        let in_repertoire = match self.repertoire {
            Repertoire::UcscharAndPrivate => class::is_iri_char(c, component == Component::Query),
            Repertoire::Ucschar => class::is_ucschar(c),
            Repertoire::UcscharLessSpaces => class::is_ucschar(c) && !is_space_look_alike(c),
        };
        in_repertoire && !(component == Component::Host && self.host_repertoire == HostRepertoire::Ascii)
    }

    /// Rewrites `text` for the grammar of RFC 3987: characters that only this profile allows become `~`, an unreserved
    /// character that neither a scheme nor a port can contain. In an IP literal they stay and are a fault.
    fn in_rfc_alphabet<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let is_extra = |c: char| c.is_ascii() && EXCLUDED.contains(c as u8);
        if self.excluded == ExcludedAscii::Rejected || !text.contains(is_extra) {
            return text.into();
        }
        let bytes = text.as_bytes();
        let literal = Parts::split(bytes).host(bytes).filter(|host| host.starts_with(b"[")).unwrap_or(&bytes[..0]);
        let at = offset_in(bytes, literal);
        let literal = at..at + literal.len();
        let [before, after] = [&text[..literal.start], &text[literal.end..]].map(|part| part.replace(is_extra, "~"));
        [&before, &text[literal], &after].concat().into()
    }

    /// Maps an IRI reference to a URI reference by this profile.
    ///
    /// # Errors
    /// Faults of strict mode; if the profile checks its input, the reason why the result is not a URI reference;
    /// characters of the query that the document's charset cannot encode.
    ///
    /// ```
    /// use irikey::iri::{MappingOptions, Profile};
    /// let options = MappingOptions::default();
    /// let profile = |name| Profile::named(name).unwrap();
    /// assert_eq!(profile("masinter-07").to_uri("/A\u{30A}".as_bytes(), &options).unwrap(), "/%C3%85");
    /// assert_eq!(profile("rfc3987").to_uri("/A\u{30A}".as_bytes(), &options).unwrap(), "/A%CC%8A");
    /// assert_eq!(profile("weber-00").to_uri(b"http://h/[ %", &options).unwrap(), "http://h/%5B%20%");
    /// ```
    pub fn to_uri(&self, reference: &[u8], options: &MappingOptions) -> Result<String, Fault> {
        let is_checked = self.accepted_input == AcceptedInput::Checked;
        let mode = options.mode.unwrap_or(if is_checked { ParseMode::Strict } else { ParseMode::Lenient });
        let host = options.host.unwrap_or(self.host_mapping);
        if mode == ParseMode::Strict {
            self.check_iri_reference(check_utf8(reference)?)?;
        }
        let reference = self.normal_form(reference);
        let reference = match options.query {
            Some(query) if uses_query_charset(&reference) => {
                encode_query(&reference, query)?.map_or(reference, |encoded| encoded.reference.into())
            }
            _ => reference,
        };
        match self.accepted_input {
            AcceptedInput::Checked => map::to_uri(&reference, ParseMode::Lenient, host),
            AcceptedInput::TotalWithBrackets => Ok(to_uri_unchecked(&encode_stray_delimiters(&reference), host)),
            AcceptedInput::Total | AcceptedInput::Parsed => Ok(to_uri_unchecked(&reference, host)),
        }
    }

    /// Prepares a reference for the ladder of RFC 3987 by the rules of this profile: Unicode normalization, and
    /// encoding of delimiters that the profile's parser does not accept. The flags include [`Flags::NOT_UCSCHAR`] for
    /// characters that the profile excludes; the ladder encodes them.
    ///
    /// ```
    /// use irikey::iri::{Changes, Flags, Profile};
    /// let prepare = |name, text| Profile::named(name).unwrap().prepare(text);
    /// let (text, flags, changes) = prepare("weber-00", b"http://a@b@c/[");
    /// assert_eq!(&text[..], b"http://a@b%40c/%5B");
    /// assert_eq!((flags, changes), (Flags::STRAY_DELIM, Changes::PCT_ENCODED));
    /// assert_eq!(prepare("rfc3987", b"http://h/[").0, &b"http://h/["[..]);
    /// ```
    pub fn prepare<'a>(&self, reference: &'a [u8]) -> (Cow<'a, [u8]>, Flags, Changes) {
        let (mut flags, mut changes) = (Flags::NONE, Changes::NONE);
        if self.find_rejected(reference).is_some() {
            flags |= Flags::NOT_UCSCHAR;
        }
        let mut text = self.normal_form(reference);
        if text != reference {
            changes |= Changes::NFC;
        }
        if self.accepted_input == AcceptedInput::TotalWithBrackets {
            let encoded = encode_stray_delimiters(&text);
            if encoded != *text {
                flags |= Flags::STRAY_DELIM;
                changes |= Changes::PCT_ENCODED;
                text = encoded.into();
            }
        }
        (text, flags, changes)
    }

    /// Checks an absolute IRI as [`ParseMode::Strict`] does, by the profile's grammar. Section 4.1 applies in every
    /// profile.
    ///
    /// # Errors
    /// As [`ParseMode::check`].
    pub fn check_strict(&self, text: &[u8]) -> Result<Parts, Fault> {
        check::check_strict(text, |text| self.check_iri(text))
    }

    /// Returns true if references are parsed by the URL Standard and not by the ladder.
    pub(crate) fn is_whatwg(&self) -> bool {
        self.parser == ReferenceParser::Whatwg
    }

    /// Returns true if references need no preparation for the ladder.
    pub(crate) fn is_rfc3987(&self) -> bool {
        self.name == RFC3987.name
    }

    /// Returns the reference in the Unicode normalization form of this profile. Bytes that are not UTF-8 stay.
    fn normal_form<'a>(&self, reference: &'a [u8]) -> Cow<'a, [u8]> {
        match std::str::from_utf8(reference).ok().filter(|_| self.normal_form == NormalForm::Nfc).and_then(nfc_of) {
            Some(text) => text.into_bytes().into(),
            None => reference.into(),
        }
    }

    /// Maps a URI reference to an IRI reference by this profile.
    ///
    /// ```
    /// use irikey::iri::{HostMapping, Profile};
    /// let iri = |name| Profile::named(name).unwrap().to_iri("/%7E%C3%BC%FC", HostMapping::Percent);
    /// assert_eq!(iri("duerst-01"), "/%7Eü%FC");
    /// assert_eq!(iri("rfc3987"), "/~ü%FC");
    /// ```
    pub fn to_iri(&self, reference: &str, host: HostMapping) -> String {
        to_iri_by(reference, host, |c, component| {
            let is_in_scope = !c.is_ascii() || self.decoded == DecodedEscapes::Unreserved;
            is_in_scope && is_decoded(c, component) && (c.is_ascii() || self.is_allowed(c, component))
        })
    }
}

/// Unicode spaces other than U+0020 (`Zs`, and the line and paragraph separators), draft-duerst-iri-00 section 3.1 d.
fn is_space_look_alike(c: char) -> bool {
    !c.is_ascii() && c.is_whitespace()
}

/// Encodes delimiters that their component cannot contain, as draft-weber-iri-guidelines-00 section 5 requires:
/// brackets outside the host, `@` in the host and `#` in the fragment. [`to_uri_unchecked`] encodes all other such
/// characters.
fn encode_stray_delimiters(reference: &[u8]) -> Vec<u8> {
    let parts = Parts::split(reference);
    let mut out = Vec::with_capacity(reference.len());
    for (at, &byte) in reference.iter().enumerate() {
        let is_stray = match byte {
            b'[' | b']' => parts.component_at(at) != Component::Host,
            b'@' => parts.component_at(at) == Component::Host,
            b'#' => parts.fragment_at.is_some_and(|start| at >= start as usize),
            _ => false,
        };
        if is_stray { out.extend_from_slice(&escape(byte)) } else { out.push(byte) }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::check::check_iri_reference;
    use super::*;
    use crate::encoding::{Charset, UnmappableMode};

    #[test]
    fn the_default_profile_equals_rfc_3987() {
        let profile = Profile::ALL[0];
        for text in ["http://é/?\u{E000}", "a b", "//[::1", "é:x", "http://h/\u{A0}", "/%zz", "http://h:8x"] {
            assert_eq!(profile.check_iri_reference(text), check_iri_reference(text), "{text}");
            let uri = profile.to_uri(text.as_bytes(), &MappingOptions::default());
            assert_eq!(uri, map::to_uri(text.as_bytes(), ParseMode::Strict, HostMapping::Percent), "{text}");
        }
    }

    #[test]
    fn faults_have_the_component_and_offset_in_the_input() {
        let cases = [
            ("duerst-00", "http://h/é\u{A0}", Component::Path, 11),
            ("duerst-01", "http://h/?\u{E000}", Component::Query, 10),
            ("duerst-01", "ht tp://h/", Component::Scheme, 2),
            ("duerst-01", "http://h/a b%", Component::Path, 12),
            ("masinter-07", "http://u@é/", Component::Host, 9),
        ];
        for (name, text, component, at) in cases {
            let fault = Profile::named(name).unwrap().check_iri_reference(text).unwrap_err();
            assert_eq!((fault.component, fault.at), (component, at), "{name} {text}");
        }
    }

    /// The host does not matter for the other components.
    #[test]
    fn excluded_characters_are_allowed_outside_ip_literals() {
        let profile = Profile::named("duerst-01").unwrap();
        for host in ["h", "[::1]", "[v1.a]"] {
            for text in [format!("http://{host}/a b"), format!("//u<r@{host}?{{q}}#`")] {
                assert_eq!(profile.check_iri_reference(&text).err(), None, "{text}");
            }
        }
        for text in ["http://[::1 ]/a", "http://[v1.a b]/ ", "http://[::1]:8 0/", "http://[::1] /", "http://[::1/ "] {
            let fault = profile.check_iri_reference(text).unwrap_err();
            assert!([Component::Host, Component::Port].contains(&fault.component), "{text}: {fault:?}");
        }
    }

    #[test]
    fn characters_beside_bytes_that_are_not_utf8_are_flagged() {
        let flags = |name: &str, text: &[u8]| Profile::named(name).unwrap().prepare(text).1;
        let private = "\u{E000}".as_bytes();
        let reference = |rest: &[u8]| [b"http://h/\xE9/?".as_slice(), private, rest].concat();
        for (name, expected) in [("duerst-01", Flags::NOT_UCSCHAR), ("weber-00", Flags::NONE)] {
            for rest in [&b""[..], b"#\xE9"] {
                assert_eq!(flags(name, &reference(rest)), expected, "{name}");
            }
        }
        assert_eq!(flags("masinter-07", "http://\u{e9}/".as_bytes()), Flags::NOT_UCSCHAR);
        assert_eq!(flags("masinter-07", b"http://\xC3\xA9/\xE9"), Flags::NOT_UCSCHAR);
        assert_eq!(flags("masinter-07", b"http://h/\xC3\xA9\xE9"), Flags::NONE);
    }

    #[test]
    fn only_http_queries_use_the_documents_charset() {
        let query = |label| QueryCharset { charset: Charset::named(label).unwrap(), unmappable: UnmappableMode::Fail };
        let map = |text: &str, label| {
            Profile::ALL[0]
                .to_uri(text.as_bytes(), &MappingOptions { query: Some(query(label)), ..MappingOptions::default() })
        };
        assert_eq!(map("HTTPS://h/é?é#é", "latin1").as_deref(), Ok("HTTPS://h/%C3%A9?%E9#%C3%A9"));
        assert_eq!(map("ftp://h/?é", "latin1").as_deref(), Ok("ftp://h/?%C3%A9"));
        assert_eq!(map("http://h/?é", "utf-16").as_deref(), Ok("http://h/?%C3%A9"));
        assert_eq!(map("http://h/?アソ", "shift_jis").as_deref(), Ok("http://h/?%83A%83%5C"));
        assert_eq!(
            map("http://h/?q=я", "latin1").unwrap_err(),
            Fault::new(FaultKind::Unencodable, Component::Query, 12)
        );
    }

    proptest! {
        #[test]
        fn mapping_is_idempotent_and_ascii(
            profile in 0usize..5,
            text in "(http|ftp|x)?:?(//)?(é|A\u{30A}|[a-z\\[\\]#?@:/%{ ]|\\PC){0,20}",
        ) {
            let profile = Profile::ALL[profile];
            let options = MappingOptions { mode: Some(ParseMode::Lenient), ..MappingOptions::default() };
            if let Ok(once) = profile.to_uri(text.as_bytes(), &options) {
                prop_assert!(once.is_ascii());
                prop_assert_eq!(profile.to_uri(once.as_bytes(), &options), Ok(once));
            }
        }
    }

    /// draft-weber-iri-guidelines-00 section 5.
    #[test]
    fn delimiters_that_a_component_cannot_contain_are_encoded() {
        for (reference, expected) in [
            ("http://a@b@c:8/", "http://a@b%40c:8/"),
            ("http://[::1]:8/", "http://[::1]:8/"),
            ("http://a[@h/[b]?[c]#[d]", "http://a%5B@h/%5Bb%5D?%5Bc%5D#%5Bd%5D"),
            ("http://h/a@b?c@d#e@f", "http://h/a@b?c@d#e@f"),
            ("a#b#c##", "a#b%23c%23%23"),
            ("", ""),
        ] {
            assert_eq!(String::from_utf8(encode_stray_delimiters(reference.as_bytes())).unwrap(), expected);
        }
    }
}
