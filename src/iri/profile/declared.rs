//! The profiles: each specification's choices, those of one told by how they differ from another's; and the table of
//! their differences for people.

use super::choices::*;
use crate::encoding::UnmappableMode;
use crate::iri::{Backslashes, HostMapping};

/// A declared set of choices.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// The name in `--profile`.
    pub name: &'static str,
    /// The specification.
    pub document: &'static str,
    /// Characters beyond ASCII.
    pub repertoire: Repertoire,
    /// ASCII characters that no URI has.
    pub excluded: ExcludedAscii,
    /// Hosts beyond ASCII.
    pub host_repertoire: HostRepertoire,
    /// What IRI->URI takes.
    pub totality: AcceptedInput,
    /// Normalisation on the way to a URI.
    pub normal_form: NormalForm,
    /// What URI->IRI decodes.
    pub decoded: DecodedEscapes,
    /// How references are taken apart.
    pub parser: ReferenceParser,
    /// Hosts in URIs, unless told.
    pub host_mapping: HostMapping,
    /// Backslashes, unless told.
    pub backslashes: Backslashes,
    /// What becomes of characters of queries that the document's charset lacks.
    pub unmappable: UnmappableMode,
    /// A field is trimmed and may hold several references.
    pub is_field_of_references: bool,
}

pub(super) const RFC3987: Profile = Profile {
    name: "rfc3987",
    document: "RFC 3987",
    repertoire: Repertoire::UcscharAndPrivate,
    excluded: ExcludedAscii::Refused,
    host_repertoire: HostRepertoire::Any,
    totality: AcceptedInput::Checked,
    normal_form: NormalForm::Kept,
    decoded: DecodedEscapes::Unreserved,
    parser: ReferenceParser::Grammar,
    host_mapping: HostMapping::Percent,
    backslashes: Backslashes::Kept,
    unmappable: UnmappableMode::Fail,
    is_field_of_references: false,
};

const DUERST_01: Profile = Profile {
    name: "duerst-01",
    document: "draft-duerst-iri-01",
    repertoire: Repertoire::Ucschar,
    excluded: ExcludedAscii::Allowed,
    totality: AcceptedInput::Total,
    decoded: DecodedEscapes::BeyondAscii,
    ..RFC3987
};

const DUERST_00: Profile = Profile {
    name: "duerst-00",
    document: "draft-duerst-iri-00",
    repertoire: Repertoire::UcscharLessSpaces,
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
    totality: AcceptedInput::TotalWithBrackets,
    parser: ReferenceParser::Total,
    is_field_of_references: true,
    ..RFC3987
};

const WHATWG: Profile = Profile {
    name: "whatwg",
    document: "WHATWG URL Standard",
    totality: AcceptedInput::Parsed,
    parser: ReferenceParser::Whatwg,
    host_mapping: HostMapping::Ascii,
    backslashes: Backslashes::Slash,
    unmappable: UnmappableMode::CharacterReference,
    ..RFC3987
};

/// RFC 3987's own.
impl Default for &Profile {
    fn default() -> Self {
        &RFC3987
    }
}

impl Profile {
    /// All profiles, the default one first.
    pub const ALL: [&'static Profile; 6] = [&RFC3987, &DUERST_00, &DUERST_01, &MASINTER_07, &WEBER_00, &WHATWG];

    /// The profile of that name.
    pub fn from_name(name: &str) -> Option<&'static Profile> {
        Profile::ALL.into_iter().find(|profile| profile.name == name)
    }

    /// The differences of all profiles, as a table in Markdown made of the constants above.
    pub fn table() -> String {
        type Row = (&'static str, fn(&Profile) -> &'static str);
        const ROWS: [Row; 12] = [
            ("specification", |it| it.document),
            ("characters beyond ASCII", |it| it.repertoire.words()),
            ("... in hosts", |it| it.host_repertoire.words()),
            ("space `<>\"{}\\|\\\\^` and backtick", |it| it.excluded.words()),
            ("taken apart by", |it| it.parser.words()),
            ("IRI->URI takes", |it| it.totality.words()),
            ("IRI->URI normalises", |it| it.normal_form.words()),
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
            ("characters of a query that the document's charset lacks", |it| match it.unmappable {
                UnmappableMode::Fail => "a fault",
                UnmappableMode::Utf8 => "the query in UTF-8",
                UnmappableMode::CharacterReference => "`%26%23...%3B`",
            }),
            ("a field holds", |it| if it.is_field_of_references { "references, trimmed" } else { "one reference" }),
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
    fn the_table_has_a_column_for_each_profile() {
        let table = Profile::table();
        assert_eq!(table.lines().count(), 14);
        for line in table.lines() {
            assert_eq!(line.replace("\\|", "").matches('|').count(), Profile::ALL.len() + 2, "{line}");
        }
    }
}
