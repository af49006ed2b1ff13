//! Profiles: the choices by which other specifications of IRIs differ from RFC 3987, declared one by one. In: a profile
//! and a reference. Out: verdict, URI, IRI, by the one engine of this room; and the table of differences for people.
//!
//! A profile's grammar is RFC 3987's with another alphabet: what the profile refuses beyond it is looked for first, what
//! it allows beyond it is read as an unreserved character. `whatwg` has an engine of its own in `whatwg`; here stand
//! only its choices.
//!
//! ```text
//! choices   what specifications differ in        declared   who chose what, and the table of it
//! ```

mod choices;
mod declared;

use std::borrow::Cow;

use unicode_normalization::{UnicodeNormalization, is_nfc};

pub use choices::{
    AcceptedInput, DecodedEscapes, ExcludedAscii, HostRepertoire, NormalForm, ReferenceParser, Repertoire,
};
pub use declared::Profile;
use declared::RFC3987;

use super::check::{check_bidi_controls, check_iri, check_iri_reference, component_at};
use super::class::{self, EXCLUDED};
use super::map::{self, QueryCharset, encode_query, is_decoded, to_iri_by, to_uri_unchecked, uses_query_charset};
use super::parts::{Parts, find_scheme};
use super::{Changes, Component, Fault, FaultKind, Flags, HostMapping, ParseMode};

/// What IRI->URI is told beside the profile.
#[derive(Clone, Copy, Debug, Default)]
pub struct MappingOptions {
    /// Whether the reference is checked first; the profile's own way if `None`.
    pub intake: Option<ParseMode>,
    /// The form of hosts; the profile's own if `None`.
    pub host: Option<HostMapping>,
    /// The document's charset, for queries.
    pub query: Option<QueryCharset>,
}

impl Profile {
    /// Is it an IRI of this profile's grammar?
    ///
    /// # Errors
    /// As [`check_iri`], and what the profile's alphabet leaves out.
    ///
    /// ```
    /// use irikey::iri::Profile;
    /// assert!(Profile::from_name("rfc3987").unwrap().check_iri("http://h/a b").is_err());
    /// assert!(Profile::from_name("duerst-01").unwrap().check_iri("http://h/a b").is_ok());
    /// ```
    pub fn check_iri(&self, text: &str) -> Result<Parts, Fault> {
        self.check_alphabet(text)?;
        check_iri(&self.in_rfc_alphabet(text))
    }

    /// Is it an IRI reference of this profile's grammar?
    ///
    /// # Errors
    /// As [`Profile::check_iri`], less the one that there is no scheme.
    pub fn check_iri_reference(&self, text: &str) -> Result<Parts, Fault> {
        self.check_alphabet(text)?;
        check_iri_reference(&self.in_rfc_alphabet(text))
    }

    /// The first character that RFC 3987 allows where it stands and this profile does not.
    fn check_alphabet(&self, text: &str) -> Result<(), Fault> {
        if text.is_ascii() || (self.repertoire, self.host_repertoire) == (RFC3987.repertoire, RFC3987.host_repertoire) {
            return Ok(());
        }
        let parts = Parts::split(text.as_bytes());
        let component = |at| component_at(&parts, at);
        let refused = text.char_indices().find(|&(at, c)| !c.is_ascii() && !self.is_allowed(c, component(at)));
        match refused {
            None => Ok(()),
            Some((at, _)) => Err(Fault::new(FaultKind::Character, component(at), at)),
        }
    }

    /// A character beyond ASCII may stand in `component`.
    fn is_allowed(&self, c: char, component: Component) -> bool {
        let in_repertoire = match self.repertoire {
            Repertoire::UcscharAndPrivate => {
                class::is_ucschar(c) || (component == Component::Query && class::is_iprivate(c))
            }
            Repertoire::Ucschar => class::is_ucschar(c),
            Repertoire::UcscharLessSpaces => class::is_ucschar(c) && !is_space_look_alike(c),
        };
        in_repertoire && !(component == Component::Host && self.host_repertoire == HostRepertoire::Ascii)
    }

    /// `text` as RFC 3987's grammar is to see it: what only the profile allows becomes an unreserved character, which no
    /// scheme, port or IP-literal can take for one of its own.
    fn in_rfc_alphabet<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let is_more = |c: char| c.is_ascii() && EXCLUDED.contains(c as u8);
        if self.excluded == ExcludedAscii::Refused || !text.contains(is_more) {
            return text.into();
        }
        let parts = Parts::split(text.as_bytes());
        let is_literal = parts.host(text.as_bytes()).is_some_and(|host| host.starts_with(b"["));
        if is_literal { text.into() } else { text.replace(is_more, "~").into() }
    }

    /// IRI -> URI by this profile.
    ///
    /// # Errors
    /// What strict intake refuses, what keeps the result of a checked mapping from being a URI reference, and characters
    /// that the document's charset lacks.
    ///
    /// ```
    /// use irikey::iri::{MappingOptions, Profile};
    /// let mapping = MappingOptions::default();
    /// let profile = |name| Profile::from_name(name).unwrap();
    /// assert_eq!(profile("masinter-07").to_uri("/A\u{30A}".as_bytes(), &mapping).unwrap(), "/%C3%85");
    /// assert_eq!(profile("rfc3987").to_uri("/A\u{30A}".as_bytes(), &mapping).unwrap(), "/A%CC%8A");
    /// assert_eq!(profile("weber-00").to_uri(b"http://h/[ %", &mapping).unwrap(), "http://h/%5B%20%");
    /// ```
    pub fn to_uri(&self, reference: &[u8], mapping: &MappingOptions) -> Result<String, Fault> {
        let is_checked = self.totality == AcceptedInput::Checked;
        let intake = mapping.intake.unwrap_or(if is_checked { ParseMode::Strict } else { ParseMode::Lenient });
        let host = mapping.host.unwrap_or(self.host_mapping);
        if intake == ParseMode::Strict {
            self.check_iri_reference(text_of(reference)?)?;
        }
        let reference = self.normal_form(reference);
        let reference = match mapping.query {
            Some(query) if find_scheme(&reference).is_some_and(|len| uses_query_charset(&reference[..len])) => {
                Cow::from(encode_query(text_of(&reference)?, query)?.0.into_owned().into_bytes())
            }
            _ => reference,
        };
        match self.totality {
            AcceptedInput::Checked => map::to_uri(&reference, ParseMode::Lenient, host),
            AcceptedInput::TotalWithBrackets => Ok(to_uri_unchecked(&encode_stray_delimiters(&reference), host)),
            AcceptedInput::Total | AcceptedInput::Parsed => Ok(to_uri_unchecked(&reference, host)),
        }
    }

    /// What this profile does to a reference before the ladder of RFC 3987 does the rest: normalisation, and delimiters
    /// out of place that its parser encodes. The flags also tell of characters that the profile leaves out, which the
    /// ladder encodes.
    ///
    /// ```
    /// use irikey::iri::{Changes, Flags, Profile};
    /// let prepare = |name, text| Profile::from_name(name).unwrap().prepare(text);
    /// let (text, flags, changes) = prepare("weber-00", b"http://a@b@c/[");
    /// assert_eq!(&text[..], b"http://a@b%40c/%5B");
    /// assert_eq!((flags, changes), (Flags::STRAY_DELIM, Changes::PCT_ENCODED));
    /// assert_eq!(prepare("rfc3987", b"http://h/[").0, &b"http://h/["[..]);
    /// ```
    pub fn prepare<'a>(&self, reference: &'a [u8]) -> (Cow<'a, [u8]>, Flags, Changes) {
        let (mut flags, mut changes) = (Flags::NONE, Changes::NONE);
        if std::str::from_utf8(reference).is_ok_and(|text| self.check_alphabet(text).is_err()) {
            flags |= Flags::NOT_UCSCHAR;
        }
        let mut text = self.normal_form(reference);
        if text != reference {
            changes |= Changes::NFC;
        }
        if self.totality == AcceptedInput::TotalWithBrackets {
            let encoded = encode_stray_delimiters(&text);
            if encoded != *text {
                flags |= Flags::STRAY_DELIM;
                changes |= Changes::PCT_ENCODED;
                text = encoded.into();
            }
        }
        (text, flags, changes)
    }

    /// What strict intake takes of an absolute IRI of this profile; section 4.1's ban is every profile's.
    ///
    /// # Errors
    /// As [`ParseMode::check`], by the profile's grammar.
    pub fn check_strict(&self, text: &[u8]) -> Result<Parts, Fault> {
        if text.is_empty() {
            return Err(Fault::new(FaultKind::Empty, Component::Reference, 0));
        }
        let text = text_of(text)?;
        let parts = self.check_iri(text)?;
        check_bidi_controls(text)?;
        Ok(parts)
    }

    /// References are read by the URL Standard and not by the ladder.
    pub fn is_whatwg(&self) -> bool {
        self.parser == ReferenceParser::Whatwg
    }

    /// The ladder takes references as they are.
    pub fn is_rfc3987(&self) -> bool {
        self.name == RFC3987.name
    }

    fn normal_form<'a>(&self, reference: &'a [u8]) -> Cow<'a, [u8]> {
        match std::str::from_utf8(reference) {
            Ok(text) if self.normal_form == NormalForm::Nfc && !is_nfc(text) => {
                text.nfc().collect::<String>().into_bytes().into()
            }
            _ => reference.into(),
        }
    }

    /// URI -> IRI by this profile.
    ///
    /// ```
    /// use irikey::iri::{HostMapping, Profile};
    /// let iri = |name| Profile::from_name(name).unwrap().to_iri("/%7E%C3%BC%FC", HostMapping::Percent);
    /// assert_eq!(iri("duerst-01"), "/%7Eü%FC");
    /// assert_eq!(iri("rfc3987"), "/~ü%FC");
    /// ```
    pub fn to_iri(&self, reference: &str, host: HostMapping) -> String {
        to_iri_by(reference, host, |c, component| {
            let is_wanted = !c.is_ascii() || self.decoded == DecodedEscapes::Unreserved;
            is_wanted && is_decoded(c, component) && (c.is_ascii() || self.is_allowed(c, component))
        })
    }
}

fn text_of(reference: &[u8]) -> Result<&str, Fault> {
    let at = |error: std::str::Utf8Error| Fault::new(FaultKind::NotUtf8, Component::Reference, error.valid_up_to());
    std::str::from_utf8(reference).map_err(at)
}

/// Spaces of Unicode other than U+0020 (`Zs`, and the line and paragraph separators), draft-duerst-iri-00 section 3.1 d.
fn is_space_look_alike(c: char) -> bool {
    !c.is_ascii() && c.is_whitespace()
}

/// draft-weber-iri-guidelines-00 section 5: in every component characters that may not stand there are encoded. Of
/// those that [`to_uri_unchecked`] keeps, these are brackets outside the host, `@` in it and `#` in the fragment.
fn encode_stray_delimiters(reference: &[u8]) -> Vec<u8> {
    let parts = Parts::split(reference);
    let mut out = Vec::with_capacity(reference.len());
    for (at, &byte) in reference.iter().enumerate() {
        let is_stray = match byte {
            b'[' | b']' => component_at(&parts, at) != Component::Host,
            b'@' => component_at(&parts, at) == Component::Host,
            b'#' => parts.fragment_at.is_some_and(|start| at >= start as usize),
            _ => false,
        };
        if is_stray { crate::kernel::percent_encode(&[byte], &mut out) } else { out.push(byte) }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::encoding::{Charset, UnmappableMode};

    #[test]
    fn the_default_profile_is_the_engine_itself() {
        let profile = Profile::ALL[0];
        for text in ["http://é/?\u{E000}", "a b", "//[::1", "é:x", "http://h/\u{A0}", "/%zz", "http://h:8x"] {
            assert_eq!(profile.check_iri_reference(text), check_iri_reference(text), "{text}");
            let uri = profile.to_uri(text.as_bytes(), &MappingOptions::default());
            assert_eq!(uri, map::to_uri(text.as_bytes(), ParseMode::Strict, HostMapping::Percent), "{text}");
        }
    }

    #[test]
    fn faults_stand_where_they_are() {
        let cases = [
            ("duerst-00", "http://h/é\u{A0}", Component::Path, 11),
            ("duerst-01", "http://h/?\u{E000}", Component::Query, 10),
            ("duerst-01", "ht tp://h/", Component::Scheme, 2),
            ("duerst-01", "http://h/a b%", Component::Path, 12),
            ("masinter-07", "http://u@é/", Component::Host, 9),
        ];
        for (name, text, component, at) in cases {
            let fault = Profile::from_name(name).unwrap().check_iri_reference(text).unwrap_err();
            assert_eq!((fault.component, fault.at), (component, at), "{name} {text}");
        }
    }

    #[test]
    fn queries_in_the_documents_charset_are_for_http() {
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
            let mapping = MappingOptions { intake: Some(ParseMode::Lenient), ..MappingOptions::default() };
            if let Ok(once) = profile.to_uri(text.as_bytes(), &mapping) {
                prop_assert!(once.is_ascii());
                prop_assert_eq!(profile.to_uri(once.as_bytes(), &mapping), Ok(once));
            }
        }
    }
}
