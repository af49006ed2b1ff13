//! The profiles: which choice each specification makes, written as differences from another specification, and the
//! table of these differences for the documentation.

use std::fmt;

use crate::encoding::UnmappableMode;
use crate::iri::bidi::BidiRules;
use crate::iri::map::HostMapping;
use crate::iri::preprocess::Backslashes;

/// Defines an enumeration of choices. Each choice has its words in the table of differences.
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $($variant:ident $words:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $name {
            $(#[doc = $words] $variant),*
        }

        impl $name {
            /// The choice in words.
            const fn words(self) -> &'static str {
                match self {
                    $($name::$variant => $words),*
                }
            }
        }
    };
}

choice! {
    /// Non-ASCII characters that are allowed.
    Repertoire {
        UcscharAndPrivate "`ucschar`; `iprivate` in queries",
        Ucschar "`ucschar`, no private use anywhere",
        UcscharLessSpaces "`ucschar` without look-alikes of the space, no private use anywhere",
    }
}

choice! {
    /// Space, `<`, `>`, `"`, `{`, `}`, `|`, `\`, `^` and backtick.
    ExcludedAscii { Rejected "rejected", Allowed "allowed, encoded on the way to a URI" }
}

choice! {
    /// Non-ASCII characters in hosts.
    HostRepertoire { Any "allowed", Ascii "rejected" }
}

choice! {
    /// The input that IRI->URI accepts, unless the caller chooses a mode.
    AcceptedInput {
        Checked "an IRI reference; the result is a URI reference or a fault",
        Total "anything; `%`, `#`, `[` and `]` stay",
        TotalWithBrackets "anything; brackets outside hosts, `@` in hosts and a second `#` are encoded, a stray `%` stays",
        Parsed "what the parser accepts",
    }
}

choice! {
    /// Unicode normalization of Unicode input on the way to a URI.
    NormalForm { Kept "none", Nfc "NFC" }
}

choice! {
    /// The escapes that URI->IRI decodes.
    DecodedEscapes {
        Unreserved "`unreserved` and non-ASCII characters",
        NonAscii "non-ASCII characters only",
    }
}

choice! {
    /// The algorithm that splits references into components.
    ReferenceParser {
        Grammar "the ABNF, or a fault",
        Total "a split that never fails",
        Whatwg "the URL Standard's state machine",
    }
}

/// A specification of IRIs, as a set of choices: RFC 3987, one of its drafts, or the URL Standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The name in `--profile`.
    pub name: &'static str,
    /// The specification.
    pub document: &'static str,
    /// Non-ASCII characters that are allowed.
    pub(crate) repertoire: Repertoire,
    /// ASCII characters that no URI contains.
    pub(crate) excluded: ExcludedAscii,
    /// Non-ASCII characters in hosts.
    pub(crate) host_repertoire: HostRepertoire,
    /// The input that IRI->URI accepts.
    pub(crate) accepted_input: AcceptedInput,
    /// Unicode normalization on the way to a URI.
    pub(crate) normal_form: NormalForm,
    /// The escapes that URI->IRI decodes.
    pub(crate) decoded: DecodedEscapes,
    /// The algorithm that splits references.
    pub(crate) parser: ReferenceParser,
    /// The form of hosts in URIs, unless the caller chooses one.
    pub(crate) host_mapping: HostMapping,
    /// What happens to backslashes, unless the caller chooses.
    pub(crate) backslashes: Backslashes,
    /// What happens to characters of queries that the document's charset cannot encode.
    pub(crate) unmappable: UnmappableMode,
    /// A field is trimmed and may contain several references.
    pub is_field_of_references: bool,
    /// The rules for right-to-left IRIs; `None` if irikey has none for this specification, and uses those of RFC 3987.
    pub bidi_rules: Option<BidiRules>,
}

pub(super) const RFC3987: Profile = Profile {
    name: "rfc3987",
    document: "RFC 3987",
    repertoire: Repertoire::UcscharAndPrivate,
    excluded: ExcludedAscii::Rejected,
    host_repertoire: HostRepertoire::Any,
    accepted_input: AcceptedInput::Checked,
    normal_form: NormalForm::Kept,
    decoded: DecodedEscapes::Unreserved,
    parser: ReferenceParser::Grammar,
    host_mapping: HostMapping::Percent,
    backslashes: Backslashes::Kept,
    unmappable: UnmappableMode::Fail,
    is_field_of_references: false,
    bidi_rules: Some(BidiRules::Rfc3987),
};

const DUERST_01: Profile = Profile {
    name: "duerst-01",
    document: "draft-duerst-iri-01",
    repertoire: Repertoire::Ucschar,
    excluded: ExcludedAscii::Allowed,
    accepted_input: AcceptedInput::Total,
    decoded: DecodedEscapes::NonAscii,
    bidi_rules: Some(BidiRules::Duerst01),
    ..RFC3987
};

const DUERST_00: Profile = Profile {
    name: "duerst-00",
    document: "draft-duerst-iri-00",
    repertoire: Repertoire::UcscharLessSpaces,
    bidi_rules: None,
    ..DUERST_01
};

const MASINTER_07: Profile = Profile {
    name: "masinter-07",
    document: "draft-masinter-url-i18n-07",
    host_repertoire: HostRepertoire::Ascii,
    normal_form: NormalForm::Nfc,
    ..DUERST_00
};

const WEBER_00: Profile = Profile {
    name: "weber-00",
    document: "draft-weber-iri-guidelines-00",
    accepted_input: AcceptedInput::TotalWithBrackets,
    parser: ReferenceParser::Total,
    is_field_of_references: true,
    ..RFC3987
};

#[cfg(feature = "whatwg")]
const WHATWG: Profile = Profile {
    name: "whatwg",
    document: "WHATWG URL Standard",
    accepted_input: AcceptedInput::Parsed,
    parser: ReferenceParser::Whatwg,
    host_mapping: HostMapping::Ascii,
    backslashes: Backslashes::Slash,
    unmappable: UnmappableMode::CharacterReference,
    bidi_rules: None,
    ..RFC3987
};

/// The profile of RFC 3987.
impl Default for &Profile {
    fn default() -> Self {
        &RFC3987
    }
}

/// Writes the name.
impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Profile {
    /// All profiles, the default one first. `whatwg` exists only with the feature `whatwg`.
    #[cfg(feature = "whatwg")]
    pub const ALL: [&'static Profile; 6] = [&RFC3987, &DUERST_00, &DUERST_01, &MASINTER_07, &WEBER_00, &WHATWG];
    /// All profiles, the default one first. `whatwg` exists only with the feature `whatwg`.
    #[cfg(not(feature = "whatwg"))]
    pub const ALL: [&'static Profile; 5] = [&RFC3987, &DUERST_00, &DUERST_01, &MASINTER_07, &WEBER_00];

    /// The profile with that name; `None` if there is none.
    pub fn named(name: &str) -> Option<&'static Profile> {
        Profile::ALL.into_iter().find(|profile| profile.name == name)
    }

    /// The differences between all profiles as a Markdown table, generated from the constants above.
    pub fn table() -> String {
        type Row = (&'static str, fn(&Profile) -> &'static str);
        const ROWS: [Row; 13] = [
            ("specification", |it| it.document),
            ("non-ASCII characters", |it| it.repertoire.words()),
            ("... in hosts", |it| it.host_repertoire.words()),
            ("space `<>\"{}\\|\\\\^` and backtick", |it| it.excluded.words()),
            ("parser", |it| it.parser.words()),
            ("IRI->URI accepts", |it| it.accepted_input.words()),
            ("IRI->URI normalizes", |it| it.normal_form.words()),
            ("IRI->URI writes hosts", |it| match it.host_mapping {
                HostMapping::Percent => "as escapes",
                HostMapping::Ascii => "by ToASCII",
                HostMapping::Unicode => "by ToUnicode",
            }),
            ("URI->IRI decodes", |it| it.decoded.words()),
            ("backslashes", |it| match it.backslashes {
                Backslashes::Kept => "as other excluded characters",
                Backslashes::Slash => "`/` in special schemes",
                Backslashes::Encoded => "`%5C`",
            }),
            ("characters of a query that the document's charset cannot encode", |it| match it.unmappable {
                UnmappableMode::Fail => "the query in UTF-8; with `--strict` and IRI->URI a fault",
                UnmappableMode::Utf8 => "the query in UTF-8",
                UnmappableMode::CharacterReference => "`%26%23...%3B`",
            }),
            ("rules for right-to-left IRIs", |it| match it.bidi_rules.unwrap_or_default() {
                BidiRules::Rfc3987 => "RFC 3987, section 4",
                BidiRules::Duerst01 => "the draft, sections 4.1 and 4.2",
            }),
            ("a field contains", |it| if it.is_field_of_references { "references, trimmed" } else { "one reference" }),
        ];
        let line = |first: &str, cells: &mut dyn Iterator<Item = &str>| {
            cells.fold(format!("| {first} |"), |line, cell| line + " " + cell + " |") + "\n"
        };
        let mut table = line("", &mut Profile::ALL.iter().map(|profile| profile.name));
        table += &line("---", &mut Profile::ALL.iter().map(|_| "---"));
        for (title, words) in ROWS {
            table += &line(title, &mut Profile::ALL.iter().map(|profile| words(profile)));
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_of_browsers_exists_with_its_parser() {
        assert_eq!(Profile::named("whatwg").is_some(), cfg!(feature = "whatwg"));
    }

    #[test]
    fn the_table_has_a_column_for_each_profile() {
        let table = Profile::table();
        assert_eq!(table.lines().count(), 15);
        for line in table.lines() {
            assert_eq!(line.replace("\\|", "").matches('|').count(), Profile::ALL.len() + 2, "{line}");
        }
    }
}
