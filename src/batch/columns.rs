//! The list of output columns: name, type, nullability and meaning.
//!
//! Documentation, the batch builder, readers and tests use this list. Columns that Common Crawl's columnar index has are
//! named and typed as there. Columns of carried fields come from [`crate::record::fields`].

use super::column::{Column, ColumnId, ColumnKind};
use super::parts::UrlPart;
use crate::iri::Rung;
use crate::record::fields::CarriedField;

/// All columns, in the order in which columns are written by default.
pub const COLUMNS: &[Column] = &{
    let mut columns = [RECORD_COLUMNS[0]; RECORD_COLUMNS.len() + CarriedField::ALL.len() + URL_COLUMNS.len()];
    let mut at = 0;
    while at < columns.len() {
        let carried_at = RECORD_COLUMNS.len();
        let url_at = carried_at + CarriedField::ALL.len();
        columns[at] = if at < carried_at {
            RECORD_COLUMNS[at]
        } else if at < url_at {
            carried(CarriedField::ALL[at - carried_at])
        } else {
            URL_COLUMNS[at - url_at]
        };
        at += 1;
    }
    columns
};

/// Columns of every record.
const RECORD_COLUMNS: &[Column] = &[
    column(ColumnId::Source, "source", ColumnKind::Name, "name of the input that contains the record, as it was given"),
    column(
        ColumnId::Record,
        "record",
        ColumnKind::Count,
        "ordinal of the record in its source, from 1; records that do not become rows do not count, each reference that was split from a field does",
    ),
    column(
        ColumnId::RecordOffset,
        "record_offset",
        ColumnKind::Count,
        "byte offset of the record in its source, after decompression; in Parquet and Arrow files, number of the row, from 0",
    ),
    column(
        ColumnId::Input,
        "input",
        ColumnKind::Bytes,
        "the URL of the record, without the quotes and escapes of the format; null when it equals uri",
    )
    .nullable(),
    column(ColumnId::Uri, "uri", ColumnKind::Text, "the canonical URI, ASCII; null when the record has a fault")
        .nullable(),
    column(
        ColumnId::Key,
        "key",
        ColumnKind::Key,
        "128-bit hash of the rung's text, most significant byte first; for a fault, hash of the record's text, every bit inverted",
    ),
    column(
        ColumnId::KeyOf(Rung::Simple),
        "key_simple",
        ColumnKind::Key,
        "key of the URL before normalization: resolved and repaired if requested (RFC 3987 section 5.3.1)",
    )
    .on_request(),
    column(
        ColumnId::KeyOf(Rung::Syntax),
        "key_syntax",
        ColumnKind::Key,
        "key after syntax-based normalization (RFC 3987 section 5.3.2)",
    )
    .on_request(),
    column(
        ColumnId::KeyOf(Rung::Scheme),
        "key_scheme",
        ColumnKind::Key,
        "key after scheme-based normalization (RFC 3987 section 5.3.3)",
    )
    .on_request(),
    column(
        ColumnId::KeyProtocol,
        "key_protocol",
        ColumnKind::Key,
        "key of the representative of the URL by --equivalences, or of the URL itself if it has none (RFC 3987 section 5.3.4)",
    )
    .on_request(),
    column(ColumnId::Fault, "fault", ColumnKind::Word, "why the record has no URI; null when it has one").nullable(),
    column(
        ColumnId::FaultComponent,
        "fault_component",
        ColumnKind::Word,
        "the component that contains the fault; null when there is no fault",
    )
    .nullable()
    .on_request(),
    column(
        ColumnId::FaultAt,
        "fault_at",
        ColumnKind::SmallCount,
        "byte offset of the fault in the URL after repairs; null when there is no fault",
    )
    .nullable(),
    column(
        ColumnId::Flags,
        "flags",
        ColumnKind::Bits,
        "what was noticed or repaired, a set of bits; 0 when nothing was",
    ),
    column(
        ColumnId::Iri,
        "iri",
        ColumnKind::Text,
        "the URI as an IRI with a Unicode host (RFC 3987 section 3.2); null when the record has a fault",
    )
    .nullable()
    .on_request(),
    column(
        ColumnId::IriVisual,
        "iri_visual",
        ColumnKind::Text,
        "the IRI in visual order, left to right (section 4.1 of RFC 3987, or of the profile duerst-01); null without right-to-left characters",
    )
    .nullable()
    .on_request(),
    column(
        ColumnId::Bidi,
        "bidi",
        ColumnKind::Text,
        "violations of the rules for right-to-left components, and where (section 4.2 of RFC 3987, or of the profile duerst-01); null without any",
    )
    .nullable()
    .on_request(),
    column(
        ColumnId::SpoofingFlags,
        "spoofing_flags",
        ColumnKind::SpoofingBits,
        "features of the record that can mislead a person or a program, a set of bits (RFC 3987 sections 4.2, 6.1, 7.5 and 8)",
    )
    .on_request(),
    column(
        ColumnId::HostSkeleton,
        "host_skeleton",
        ColumnKind::Text,
        "skeleton of the host (UTS 39): hosts with equal skeletons are confusable; null without a host",
    )
    .nullable()
    .on_request(),
];

/// Columns that are computed from the URI.
const URL_COLUMNS: &[Column] = &[
    recipe_text("surt-wayback", "url_surtkey", "SURT key as webarchive-commons computes it (recipe surt-wayback)"),
    recipe_text("surt-ia", "url_surtkey_ia", "SURT key as Python's surt computes it, which pywb uses (recipe surt-ia)"),
    part(UrlPart::Protocol, "url_protocol", "scheme of the URI"),
    part(UrlPart::HostName, "url_host_name", "host name or address, without a final dot"),
    part(UrlPart::LastPart(0), "url_host_tld", "last label of the host; null when the host is an address"),
    part(UrlPart::LastPart(1), "url_host_2nd_last_part", "second-last label of the host"),
    part(UrlPart::LastPart(2), "url_host_3rd_last_part", "third-last label of the host"),
    part(UrlPart::LastPart(3), "url_host_4th_last_part", "fourth-last label of the host"),
    part(UrlPart::LastPart(4), "url_host_5th_last_part", "fifth-last label of the host"),
    part(
        UrlPart::RegistrySuffix,
        "url_host_registry_suffix",
        "public suffix of the host by the ICANN section of the Public Suffix List",
    ),
    part(UrlPart::RegisteredDomain, "url_host_registered_domain", "url_host_registry_suffix and the label before it"),
    part(
        UrlPart::PrivateSuffix,
        "url_host_private_suffix",
        "public suffix of the host by both sections of the Public Suffix List",
    ),
    part(UrlPart::PrivateDomain, "url_host_private_domain", "url_host_private_suffix and the label before it"),
    part(
        UrlPart::NameReversed,
        "url_host_name_reversed",
        "labels of the host in reverse order, com.example.www; null when the host is an address",
    ),
    part(
        UrlPart::Port,
        "url_port",
        "port of the URI; null if the URI has none, as with a default port on the rung scheme",
    ),
    part(UrlPart::Path, "url_path", "path of the URI"),
    part(UrlPart::Query, "url_query", "query of the URI, without ?"),
    part(UrlPart::Fragment, "fragment", "fragment of the URI, without #"),
    recipe_key("surt-wayback", "key_surt_wayback", "key of recipe surt-wayback"),
    recipe_key("surt-ia", "key_surt_ia", "key of recipe surt-ia"),
    recipe_key("crawler-commons", "key_crawler_commons", "key of recipe crawler-commons"),
    recipe_key("nutch", "key_nutch", "key of recipe nutch"),
    recipe_key("w3lib", "key_w3lib", "key of recipe w3lib"),
    recipe_key("urlcanon-aggressive", "key_urlcanon_aggressive", "key of recipe urlcanon-aggressive"),
    recipe_key("heritrix", "key_heritrix", "key of recipe heritrix"),
    recipe_key(OWN_RULES, "key_rules", "key of the recipe that --rules defines"),
    recipe_text(OWN_RULES, "url_rules", "text of the recipe that --rules defines"),
];

/// The name in columns of the recipe that the user defines (`--rules`).
pub(crate) const OWN_RULES: &str = "rules";

/// A part of the URI; null without the part or without a URI.
const fn part(part: UrlPart, name: &'static str, meaning: &'static str) -> Column {
    let kind = match part {
        UrlPart::Path | UrlPart::Query | UrlPart::Fragment => ColumnKind::Text,
        UrlPart::Port => ColumnKind::Integer,
        _ => ColumnKind::Repeating,
    };
    column(ColumnId::Part(part), name, kind, meaning).nullable().on_request()
}

/// Null if the recipe gives no key.
const fn recipe_text(recipe: &'static str, name: &'static str, meaning: &'static str) -> Column {
    column(ColumnId::RecipeText(recipe), name, ColumnKind::Text, meaning).nullable().on_request()
}

/// Null if the recipe gives no key.
const fn recipe_key(recipe: &'static str, name: &'static str, meaning: &'static str) -> Column {
    column(ColumnId::RecipeKey(recipe), name, ColumnKind::Key, meaning).nullable().on_request()
}

/// A field that a format may state besides the URL; null where it does not.
const fn carried(field: CarriedField) -> Column {
    column(ColumnId::Carried(field), field.column(), super::carried::kind(field), field.meaning())
        .nullable()
        .on_request()
}

/// A column that is written by default and is never null.
const fn column(id: ColumnId, name: &'static str, kind: ColumnKind, meaning: &'static str) -> Column {
    Column { id, name, kind, nullable: false, is_default: true, meaning }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_unique_and_documented() {
        for (i, column) in COLUMNS.iter().enumerate() {
            assert!(!column.meaning.is_empty());
            assert!(COLUMNS[..i].iter().all(|other| other.name != column.name && other.id != column.id));
        }
    }

    #[test]
    fn every_named_recipe_has_a_key_column() {
        for name in crate::key::Recipe::names().filter(|name| *name != "plain") {
            let column = COLUMNS.iter().find(|column| column.id == ColumnId::RecipeKey(name));
            assert_eq!(column.map(|column| column.name.replace('_', "-")), Some(format!("key-{name}")));
        }
    }
}
