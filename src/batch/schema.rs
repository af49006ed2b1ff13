//! The one list of columns: name, type, nullability, meaning. Documentation, builder, readers and tests all use it.
//!
//! In: names of wanted columns. Out: [`Columns`], which is also an Arrow schema. Unknown names are refused.

use std::collections::HashMap;
use std::fmt;

use arrow::datatypes::{DataType, Field, Schema};

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
}

impl ColumnKind {
    /// The Arrow type.
    pub fn data_type(self) -> DataType {
        let dictionary = |keys| DataType::Dictionary(Box::new(keys), Box::new(DataType::Utf8));
        match self {
            ColumnKind::Name => dictionary(DataType::Int32),
            ColumnKind::Word => dictionary(DataType::Int8),
            ColumnKind::Text => DataType::Utf8,
            ColumnKind::Bytes => DataType::Binary,
            ColumnKind::Key => DataType::FixedSizeBinary(KEY_LEN),
            ColumnKind::Count => DataType::UInt64,
            ColumnKind::SmallCount | ColumnKind::Bits | ColumnKind::LookBits => DataType::UInt32,
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
];

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

    /// Adds the key columns of `rungs` after the last key column, or at the end; those already there stay where
    /// they are.
    pub fn add_keys(&mut self, rungs: &[Rung]) {
        for rung in rungs {
            let id = ColumnId::KeyOf(*rung);
            if !self.contains(id) {
                let last_key = self.0.iter().rposition(|column| column.kind == ColumnKind::Key);
                let place = last_key.map_or(self.0.len(), |at| at + 1);
                self.0.splice(place..place, COLUMNS.iter().filter(|column| column.id == id).copied());
            }
        }
    }

    /// Adds a column at the end, unless it is there.
    pub fn add(&mut self, id: ColumnId) {
        COLUMNS.iter().filter(|column| column.id == id).for_each(|column| self.push(*column));
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
    fn keys_asked_for_stand_beside_the_key() {
        let mut columns = Columns::default();
        columns.add_keys(&[Rung::Syntax, Rung::Simple, Rung::Syntax]);
        let names: Vec<_> = columns.names().collect();
        let key = names.iter().position(|name| *name == "key").unwrap();
        assert_eq!(names[key..key + 4], ["key", "key_syntax", "key_simple", "fault"]);
        assert_eq!(columns.key_rungs(), [Rung::Syntax, Rung::Simple]);
    }
}
