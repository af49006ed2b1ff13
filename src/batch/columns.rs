//! The one list of columns: name, type, nullability, meaning. Documentation, builder, readers and tests all use it. Names,
//! types and meanings are those of Common Crawl's columnar index where it has the column.

use super::UrlPart;
use super::schema::{Column, ColumnId, ColumnKind};
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

/// ColumnSet of every record.
const RECORD_COLUMNS: &[Column] = &[
    column(ColumnId::Source, "source", ColumnKind::Name, "the input that the record came from, as it was named"),
    column(
        ColumnId::Record,
        "record",
        ColumnKind::Count,
        "ordinal of the record in its source, from 1; a reference split from its field is a record",
    ),
    column(
        ColumnId::RecordOffset,
        "record_offset",
        ColumnKind::Count,
        "byte at which the record begins in its source, after decompression",
    ),
    column(ColumnId::Input, "input", ColumnKind::Bytes, "the record's URL, byte for byte; null when it equals uri")
        .or_null(),
    column(ColumnId::Uri, "uri", ColumnKind::Text, "the canonical URI, ASCII; null when the record has a fault")
        .or_null(),
    column(
        ColumnId::Key,
        "key",
        ColumnKind::Key,
        "128-bit hash of the rung's text, most significant byte first; of the URL itself when the record has a fault",
    ),
    column(
        ColumnId::KeyOf(Rung::Simple),
        "key_simple",
        ColumnKind::Key,
        "key of the URL as it is (RFC 3987 section 5.3.1)",
    )
    .on_request(),
    column(
        ColumnId::KeyOf(Rung::Syntax),
        "key_syntax",
        ColumnKind::Key,
        "key after syntax-based normalisation (RFC 3987 section 5.3.2)",
    )
    .on_request(),
    column(
        ColumnId::KeyOf(Rung::Scheme),
        "key_scheme",
        ColumnKind::Key,
        "key after scheme-based normalisation (RFC 3987 section 5.3.3)",
    )
    .on_request(),
    column(
        ColumnId::KeyProtocol,
        "key_protocol",
        ColumnKind::Key,
        "key of the URL that stands for this one by the equivalences given, its own if none does (RFC 3987 section 5.3.4)",
    )
    .on_request(),
    column(ColumnId::Fault, "fault", ColumnKind::Word, "what is wrong with the record; null when nothing is").or_null(),
    column(
        ColumnId::FaultComponent,
        "fault_component",
        ColumnKind::Word,
        "the component that the fault stands in; null when there is no fault",
    )
    .or_null()
    .on_request(),
    column(
        ColumnId::FaultAt,
        "fault_at",
        ColumnKind::SmallCount,
        "byte of the URL, as it was repaired, at which the fault stands, from 0; null when there is no fault",
    )
    .or_null(),
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
    .or_null()
    .on_request(),
    column(
        ColumnId::IriVisual,
        "iri_visual",
        ColumnKind::Text,
        "the IRI in visual order, left to right (RFC 3987 section 4.1); null without right-to-left characters",
    )
    .or_null()
    .on_request(),
    column(
        ColumnId::Bidi,
        "bidi",
        ColumnKind::Text,
        "what right-to-left components of the IRI violate, and where (RFC 3987 section 4.2); null when nothing is",
    )
    .or_null()
    .on_request(),
    column(
        ColumnId::SpoofingFlags,
        "spoofing_flags",
        ColumnKind::SpoofingBits,
        "what may mislead a person or a program in the record, a set of bits (RFC 3987 sections 4.2, 6.1, 7.5 and 8)",
    )
    .on_request(),
    column(
        ColumnId::HostSkeleton,
        "host_skeleton",
        ColumnKind::Text,
        "what the host looks like (UTS 39 skeleton): hosts with equal ones are confusable; null without a host",
    )
    .or_null()
    .on_request(),
];

/// Columns that are made of the URI.
const URL_COLUMNS: &[Column] = &[
    recipe_text("surt-wayback", "url_surtkey", "SURT key as webarchive-commons makes it (recipe surt-wayback)"),
    part(UrlPart::Protocol, "url_protocol", "scheme of the URI"),
    part(UrlPart::HostName, "url_host_name", "host, addresses included, without a final dot"),
    part(UrlPart::LastPart(0), "url_host_tld", "last label of the host; null where the host is an address"),
    part(UrlPart::LastPart(1), "url_host_2nd_last_part", "second last label of the host"),
    part(UrlPart::LastPart(2), "url_host_3rd_last_part", "third last label of the host"),
    part(UrlPart::LastPart(3), "url_host_4th_last_part", "fourth last label of the host"),
    part(UrlPart::LastPart(4), "url_host_5th_last_part", "fifth last label of the host"),
    part(
        UrlPart::RegistrySuffix,
        "url_host_registry_suffix",
        "suffix of the host by the ICANN section of the Public Suffix List",
    ),
    part(UrlPart::RegisteredDomain, "url_host_registered_domain", "that suffix and the label before it"),
    part(
        UrlPart::PrivateSuffix,
        "url_host_private_suffix",
        "suffix of the host by both sections of the Public Suffix List",
    ),
    part(UrlPart::PrivateDomain, "url_host_private_domain", "that suffix and the label before it"),
    part(
        UrlPart::NameReversed,
        "url_host_name_reversed",
        "labels of the host in reverse order, com.example.www; null where the host is an address",
    ),
    part(UrlPart::Port, "url_port", "port, if the URI has one: a default port is no part of it"),
    part(UrlPart::Path, "url_path", "path of the URI"),
    part(UrlPart::Query, "url_query", "query of the URI, without ?"),
    part(UrlPart::Fragment, "fragment", "fragment of the URI, without #"),
    recipe_key("surt-wayback", "key_surt_wayback", "hash of the key of recipe surt-wayback"),
    recipe_key("surt-ia", "key_surt_ia", "hash of the key of recipe surt-ia"),
    recipe_key("crawler-commons", "key_crawler_commons", "hash of the key of recipe crawler-commons"),
    recipe_key("nutch", "key_nutch", "hash of the key of recipe nutch"),
    recipe_key("w3lib", "key_w3lib", "hash of the key of recipe w3lib"),
    recipe_key("urlcanon-aggressive", "key_urlcanon_aggressive", "hash of the key of recipe urlcanon-aggressive"),
    recipe_key("heritrix", "key_heritrix", "hash of the key of recipe heritrix"),
    recipe_key(OWN_RULES, "key_rules", "hash of the key that the rules of --rules make"),
    recipe_text(OWN_RULES, "url_rules", "text of the key that the rules of --rules make"),
];

/// What columns call the recipe that is put together by its user.
pub const OWN_RULES: &str = "rules";

/// A part of the URI, named as in Common Crawl's columnar index; null where there is none, or no URI.
const fn part(part: UrlPart, name: &'static str, meaning: &'static str) -> Column {
    let kind = match part {
        UrlPart::Path | UrlPart::Query | UrlPart::Fragment => ColumnKind::Text,
        UrlPart::Port => ColumnKind::Integer,
        _ => ColumnKind::Repeating,
    };
    column(ColumnId::Part(part), name, kind, meaning).or_null().on_request()
}

/// Null where the recipe gives no key.
const fn recipe_text(recipe: &'static str, name: &'static str, meaning: &'static str) -> Column {
    column(ColumnId::RecipeText(recipe), name, ColumnKind::Text, meaning).or_null().on_request()
}

/// Null where the recipe gives no key.
const fn recipe_key(recipe: &'static str, name: &'static str, meaning: &'static str) -> Column {
    column(ColumnId::RecipeKey(recipe), name, ColumnKind::Key, meaning).or_null().on_request()
}

/// A field that a format may state besides the URL; null where it does not.
const fn carried(field: CarriedField) -> Column {
    column(ColumnId::Carried(field), field.column(), super::carried::kind(field), field.meaning())
        .or_null()
        .on_request()
}

/// One that is written by default and never null.
const fn column(id: ColumnId, name: &'static str, kind: ColumnKind, meaning: &'static str) -> Column {
    Column { id, name, kind, nullable: false, is_default: true, meaning }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_and_meaning_is_there_once() {
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
