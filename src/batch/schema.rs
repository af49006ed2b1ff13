//! The one list of columns: name, type, nullability, meaning. Documentation, builder, readers and tests all use it.
//!
//! In: names of wanted columns. Out: [`Columns`], which is also an Arrow schema. Unknown names are refused.

use std::collections::HashMap;
use std::fmt;

use arrow::datatypes::{DataType, Field, Schema, TimeUnit};

use super::UrlPart;
use crate::canon::Carry;
use crate::iri::Rung;

/// Length of a key in bytes.
pub const KEY_LEN: i32 = 16;

/// What a column holds; the builder makes one array for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ColumnId {
    /// Name of the source.
    Source,
    /// Ordinal in the source.
    Record,
    /// Byte offset in the source.
    Offset,
    /// The record's URL where it differs from the URI.
    Input,
    /// Canonical URI.
    Uri,
    /// Key of the policy's rung.
    Key,
    /// Key of another rung, asked for.
    KeyOf(Rung),
    /// Key of the representative, by equivalences.
    KeyProtocol,
    /// Kind of the fault.
    Fault,
    /// Component of the fault.
    FaultComponent,
    /// Byte offset of the fault.
    FaultAt,
    /// Flags.
    Flags,
    /// The IRI of the URI.
    Iri,
    /// The IRI as it is displayed.
    IriVisual,
    /// What is wrong with the IRI's directions.
    Bidi,
    /// What misleads.
    Looks,
    /// What the host looks like.
    HostSkeleton,
    /// When it was fetched.
    FetchTime,
    /// Status of the fetch.
    FetchStatus,
    /// Where the response redirects to.
    FetchRedirect,
    /// Whose response redirected here.
    FetchRedirectedFrom,
    /// Digest of the content.
    ContentDigest,
    /// Charset of the content.
    ContentCharset,
    /// A part of the URI.
    Part(UrlPart),
    /// The text of a recipe's key.
    RecipeText(&'static str),
    /// The hash of a recipe's key.
    RecipeKey(&'static str),
}

/// How a column is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ColumnKind {
    /// A name that repeats, of any number of them.
    Name,
    /// A word of a short fixed list.
    Word,
    /// Text in UTF-8.
    Text,
    /// The same, of few different ones or with the same one many times in a row.
    Repeating,
    /// Bytes in no particular encoding.
    Bytes,
    /// 128 bits.
    Key,
    /// A 64-bit count.
    Count,
    /// A 32-bit count.
    SmallCount,
    /// A set of [`crate::iri::Flags`].
    Bits,
    /// A set of [`crate::iri::SpoofFlags`].
    LookBits,
    /// A point in time, UTC.
    Time,
    /// A 16-bit number with a sign.
    Short,
    /// A 32-bit number with a sign.
    Integer,
}

impl ColumnKind {
    /// The Arrow type.
    pub fn data_type(self) -> DataType {
        let dictionary = |keys| DataType::Dictionary(Box::new(keys), Box::new(DataType::Utf8));
        match self {
            ColumnKind::Name => dictionary(DataType::Int32),
            ColumnKind::Word => dictionary(DataType::Int8),
            ColumnKind::Text | ColumnKind::Repeating => DataType::Utf8,
            ColumnKind::Bytes => DataType::Binary,
            ColumnKind::Key => DataType::FixedSizeBinary(KEY_LEN),
            ColumnKind::Count => DataType::UInt64,
            ColumnKind::SmallCount | ColumnKind::Bits | ColumnKind::LookBits => DataType::UInt32,
            ColumnKind::Time => DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())),
            ColumnKind::Short => DataType::Int16,
            ColumnKind::Integer => DataType::Int32,
        }
    }
}

/// One column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// What it holds.
    pub id: ColumnId,
    /// Its name in every format.
    pub name: &'static str,
    /// How it is stored.
    pub kind: ColumnKind,
    /// Some rows may have none.
    pub nullable: bool,
    /// Written unless other columns are chosen.
    pub is_default: bool,
    /// One sentence for a person.
    pub meaning: &'static str,
}

const fn column(id: ColumnId, name: &'static str, kind: ColumnKind, meaning: &'static str) -> Column {
    Column { id, name, kind, nullable: false, is_default: true, meaning }
}

impl Column {
    const fn or_null(self) -> Column {
        Column { nullable: true, ..self }
    }

    const fn on_request(self) -> Column {
        Column { is_default: false, ..self }
    }

    fn field(&self) -> Field {
        Field::new(self.name, self.kind.data_type(), self.nullable)
    }
}

/// Every column there is, in the order in which chosen ones are written by default.
pub const COLUMNS: &[Column] = &[
    column(ColumnId::Source, "source", ColumnKind::Name, "the input that the record came from, as it was named"),
    column(
        ColumnId::Record,
        "record",
        ColumnKind::Count,
        "ordinal of the record in its source, from 1; a reference split from its field is a record",
    ),
    column(
        ColumnId::Offset,
        "offset",
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
        ColumnId::Looks,
        "looks",
        ColumnKind::LookBits,
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
    carried(ColumnId::FetchTime, "fetch_time", ColumnKind::Time, "when the URL was fetched, as the record says"),
    carried(
        ColumnId::FetchStatus,
        "fetch_status",
        ColumnKind::Short,
        "status of the fetch: HTTP's, or a crawler's own, which may be negative",
    ),
    carried(
        ColumnId::FetchRedirect,
        "fetch_redirect",
        ColumnKind::Text,
        "the URI that the response redirects to, resolved against uri and normalised like it",
    ),
    carried(
        ColumnId::FetchRedirectedFrom,
        "fetch_redirected_from",
        ColumnKind::Text,
        "the URI whose response redirected to this record's (crawl.log: the via of a path that ends in R)",
    ),
    carried(
        ColumnId::ContentDigest,
        "content_digest",
        ColumnKind::Text,
        "digest of the content, as the record has it; sha1: before it is left out, as indexes do",
    ),
    carried(
        ColumnId::ContentCharset,
        "content_charset",
        ColumnKind::Repeating,
        "label of the content's charset, as the record says",
    ),
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

/// A column that a format may have beside the URL; null where it has none.
const fn carried(id: ColumnId, name: &'static str, kind: ColumnKind, meaning: &'static str) -> Column {
    column(id, name, kind, meaning).or_null().on_request()
}

/// A name that no column bears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownColumn(pub String);

impl fmt::Display for UnknownColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = COLUMNS.iter().map(|column| column.name).collect();
        write!(f, "no column is called {:?}; there are {}", self.0, names.join(", "))
    }
}

impl std::error::Error for UnknownColumn {}

/// The columns of an output, in its order; never the same one twice.
///
/// ```
/// use irikey::batch::Columns;
/// let columns = Columns::named(["key", "uri"]).unwrap();
/// assert_eq!(columns.names().collect::<Vec<_>>(), ["key", "uri"]);
/// assert!(Columns::named(["kye"]).is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns(Vec<Column>);

impl Default for Columns {
    fn default() -> Columns {
        Columns(COLUMNS.iter().filter(|column| column.is_default).copied().collect())
    }
}

impl Columns {
    /// The columns of these names, in this order; a name said twice counts once.
    ///
    /// # Errors
    /// The first name that no column bears.
    pub fn named<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Columns, UnknownColumn> {
        let mut columns = Columns(Vec::new());
        for name in names {
            let found = COLUMNS.iter().find(|column| column.name == name);
            columns.push(*found.ok_or_else(|| UnknownColumn(name.to_string()))?);
        }
        Ok(columns)
    }

    /// The default columns and those of these names after them.
    ///
    /// # Errors
    /// As [`Columns::named`].
    pub fn default_and<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Columns, UnknownColumn> {
        let mut columns = Columns::default();
        Columns::named(names)?.0.into_iter().for_each(|column| columns.push(column));
        Ok(columns)
    }

    /// Adds the columns of `keys` after the last key column, or at the end; those already there stay where they are.
    pub fn add_keys(&mut self, keys: &[ColumnId]) {
        for id in keys {
            if !self.contains(*id) {
                let last_key = self.0.iter().rposition(|column| column.kind == ColumnKind::Key);
                let place = last_key.map_or(self.0.len(), |at| at + 1);
                self.0.splice(place..place, COLUMNS.iter().filter(|column| column.id == *id).copied());
            }
        }
    }

    /// Adds a column at the end, unless it is there.
    pub fn add(&mut self, id: ColumnId) {
        COLUMNS.iter().filter(|column| column.id == id).for_each(|column| self.push(*column));
    }

    /// Adds the columns of these names at the end, unless they are there; names that no column bears are passed over.
    pub fn add_named<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) {
        for name in names {
            COLUMNS.iter().filter(|column| column.name == name).for_each(|column| self.push(*column));
        }
    }

    fn push(&mut self, column: Column) {
        if !self.contains(column.id) {
            self.0.push(column);
        }
    }

    /// The columns in order.
    pub fn iter(&self) -> impl Iterator<Item = &Column> {
        self.0.iter()
    }

    /// Their names in order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|column| column.name)
    }

    /// It is among them.
    pub fn contains(&self, id: ColumnId) -> bool {
        self.0.iter().any(|column| column.id == id)
    }

    /// Rungs of the further key columns, in order: what [`crate::canon::Policy::more_keys`] must hold.
    pub fn key_rungs(&self) -> Vec<Rung> {
        let rung = |column: &Column| match column.id {
            ColumnId::KeyOf(rung) => Some(rung),
            _ => None,
        };
        self.0.iter().filter_map(rung).collect()
    }

    /// Recipes whose keys are wanted, by what columns call them; each once.
    pub fn recipes(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        for column in &self.0 {
            if let ColumnId::RecipeText(name) | ColumnId::RecipeKey(name) = column.id
                && !names.contains(&name)
            {
                names.push(name);
            }
        }
        names
    }

    /// What has to be carried from records: what [`crate::canon::Policy::carry`] must hold.
    pub fn carry(&self) -> Carry {
        Carry {
            time: self.contains(ColumnId::FetchTime),
            status: self.contains(ColumnId::FetchStatus),
            redirect: self.contains(ColumnId::FetchRedirect),
            redirected_from: self.contains(ColumnId::FetchRedirectedFrom),
            digest: self.contains(ColumnId::ContentDigest),
            charset: self.contains(ColumnId::ContentCharset),
        }
    }

    /// The Arrow schema, with `metadata`.
    pub fn schema(&self, metadata: &[(String, String)]) -> Schema {
        let fields: Vec<Field> = self.0.iter().map(Column::field).collect();
        Schema::new_with_metadata(fields, metadata.iter().cloned().collect::<HashMap<_, _>>())
    }
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

    #[test]
    fn keys_asked_for_stand_beside_the_key() {
        let mut columns = Columns::default();
        columns.add_keys(&[Rung::Syntax, Rung::Simple, Rung::Syntax].map(ColumnId::KeyOf));
        let names: Vec<_> = columns.names().collect();
        let key = names.iter().position(|name| *name == "key").unwrap();
        assert_eq!(names[key..key + 4], ["key", "key_syntax", "key_simple", "fault"]);
        assert_eq!(columns.key_rungs(), [Rung::Syntax, Rung::Simple]);
    }
}
