//! Types of columns, and ordered sets of columns. [`super::columns`] lists all columns.

use std::collections::HashMap;
use std::fmt;

use arrow::datatypes::{DataType, Field, Schema, TimeUnit};

use super::UrlPart;
use super::columns::COLUMNS;
use crate::iri::Rung;
use crate::record::fields::{CarriedField, FieldSet};

/// Length of a key column in bytes.
pub const KEY_LEN: i32 = 16;

/// Identifies a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ColumnId {
    /// Name of the source.
    Source,
    /// Ordinal of the record in its source.
    Record,
    /// Byte offset of the record in its source.
    RecordOffset,
    /// The record's URL, if it differs from the URI.
    Input,
    /// Canonical URI.
    Uri,
    /// Key of the policy's rung.
    Key,
    /// Key of another rung.
    KeyOf(Rung),
    /// Key of the representative by equivalences.
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
    /// The IRI in visual order.
    IriVisual,
    /// Violations of the rules for right-to-left text.
    Bidi,
    /// Flags of misleading features.
    SpoofingFlags,
    /// Skeleton of the host.
    HostSkeleton,
    /// A field that the record states besides its URL.
    Carried(CarriedField),
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
    /// A name that repeats in many rows; any number of distinct names.
    Name,
    /// A word of a short, fixed list.
    Word,
    /// UTF-8 text.
    Text,
    /// UTF-8 text with few distinct values, or with long runs of equal values.
    Repeating,
    /// Bytes of unknown encoding.
    Bytes,
    /// A 128-bit key.
    Key,
    /// A 64-bit count.
    Count,
    /// A 32-bit count.
    SmallCount,
    /// A set of [`crate::iri::Flags`].
    Bits,
    /// A set of [`crate::iri::SpoofingFlags`].
    SpoofingBits,
    /// A time in UTC.
    Time,
    /// A signed 16-bit number.
    Short,
    /// A signed 32-bit number.
    Integer,
}

impl ColumnKind {
    /// Returns the Arrow type.
    pub fn data_type(self) -> DataType {
        let dictionary = |keys| DataType::Dictionary(Box::new(keys), Box::new(DataType::Utf8));
        match self {
            ColumnKind::Name => dictionary(DataType::Int32),
            ColumnKind::Word => dictionary(DataType::Int8),
            ColumnKind::Text | ColumnKind::Repeating => DataType::Utf8,
            ColumnKind::Bytes => DataType::Binary,
            ColumnKind::Key => DataType::FixedSizeBinary(KEY_LEN),
            ColumnKind::Count => DataType::UInt64,
            ColumnKind::SmallCount | ColumnKind::Bits | ColumnKind::SpoofingBits => DataType::UInt32,
            ColumnKind::Time => DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())),
            ColumnKind::Short => DataType::Int16,
            ColumnKind::Integer => DataType::Int32,
        }
    }
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Identity of the column.
    pub id: ColumnId,
    /// Name in every format.
    pub name: &'static str,
    /// How the column is stored.
    pub kind: ColumnKind,
    /// The column can contain nulls.
    pub nullable: bool,
    /// The column is written by default.
    pub is_default: bool,
    /// Documentation, one sentence.
    pub meaning: &'static str,
}

impl Column {
    pub(super) const fn nullable(self) -> Column {
        Column { nullable: true, ..self }
    }

    pub(super) const fn on_request(self) -> Column {
        Column { is_default: false, ..self }
    }

    fn field(&self) -> Field {
        Field::new(self.name, self.kind.data_type(), self.nullable)
    }
}

/// A name that is not the name of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownColumn(pub String);

/// Columns that were renamed: name in earlier versions, name today.
const RENAMED: [(&str, &str); 2] = [("looks", "spoofing_flags"), ("offset", "record_offset")];

impl fmt::Display for UnknownColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((old, new)) = RENAMED.iter().find(|(old, _)| *old == self.0) {
            return write!(f, "column `{old}` was renamed; use `{new}`");
        }
        let names: Vec<_> = COLUMNS.iter().map(|column| column.name).collect();
        write!(f, "unknown column `{}`; expected one of {}", self.0, names.join(", "))
    }
}

impl std::error::Error for UnknownColumn {}

/// The columns of an output in order, each at most once.
///
/// ```
/// use irikey::batch::ColumnSet;
/// let columns = ColumnSet::named(["key", "uri"]).unwrap();
/// assert_eq!(columns.names().collect::<Vec<_>>(), ["key", "uri"]);
/// assert!(ColumnSet::named(["kye"]).is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSet(Vec<Column>);

impl Default for ColumnSet {
    fn default() -> ColumnSet {
        ColumnSet(COLUMNS.iter().filter(|column| column.is_default).copied().collect())
    }
}

impl ColumnSet {
    /// Returns the columns with these names in this order; repeated names count once.
    ///
    /// # Errors
    /// A name is not the name of a column.
    pub fn named<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<ColumnSet, UnknownColumn> {
        let mut columns = ColumnSet(Vec::new());
        for name in names {
            let found = COLUMNS.iter().find(|column| column.name == name);
            columns.push(*found.ok_or_else(|| UnknownColumn(name.to_string()))?);
        }
        Ok(columns)
    }

    /// Returns the default columns, followed by the columns with these names.
    ///
    /// # Errors
    /// As [`ColumnSet::named`].
    pub(crate) fn default_and<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<ColumnSet, UnknownColumn> {
        let mut columns = ColumnSet::default();
        ColumnSet::named(names)?.0.into_iter().for_each(|column| columns.push(column));
        Ok(columns)
    }

    /// Adds the columns of `keys` after the last key column, or at the end; columns that exist stay where they are.
    pub fn add_keys(&mut self, keys: &[ColumnId]) {
        for id in keys {
            if !self.contains(*id) {
                let last_key = self.0.iter().rposition(|column| column.kind == ColumnKind::Key);
                let place = last_key.map_or(self.0.len(), |at| at + 1);
                self.0.splice(place..place, COLUMNS.iter().filter(|column| column.id == *id).copied());
            }
        }
    }

    /// Adds a column at the end, unless the set contains it.
    pub(crate) fn add(&mut self, id: ColumnId) {
        COLUMNS.iter().filter(|column| column.id == id).for_each(|column| self.push(*column));
    }

    /// Adds the columns with these names at the end, unless the set contains them. Ignores unknown names.
    pub(crate) fn add_named<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) {
        for name in names {
            COLUMNS.iter().filter(|column| column.name == name).for_each(|column| self.push(*column));
        }
    }

    fn push(&mut self, column: Column) {
        if !self.contains(column.id) {
            self.0.push(column);
        }
    }

    /// Returns the columns in order.
    pub fn iter(&self) -> impl Iterator<Item = &Column> {
        self.0.iter()
    }

    /// Returns the names of the columns in order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|column| column.name)
    }

    /// Returns whether the set contains the column.
    pub fn contains(&self, id: ColumnId) -> bool {
        self.0.iter().any(|column| column.id == id)
    }

    /// Returns the rungs of the additional key columns, in order: the value for [`crate::canon::Policy::more_keys`].
    pub fn key_rungs(&self) -> Vec<Rung> {
        let rung = |column: &Column| match column.id {
            ColumnId::KeyOf(rung) => Some(rung),
            _ => None,
        };
        self.0.iter().filter_map(rung).collect()
    }

    /// Returns the names of the recipes that columns need, as columns name them, each once.
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

    /// Returns the fields that the columns need: the value for [`crate::canon::Policy::carry`].
    pub(crate) fn carry(&self) -> FieldSet {
        let mut carry = FieldSet::default();
        for field in CarriedField::ALL.iter().filter(|field| self.contains(ColumnId::Carried(**field))) {
            carry.insert(*field);
        }
        carry
    }

    /// Returns the Arrow schema with `metadata`.
    pub fn schema(&self, metadata: &[(String, String)]) -> Schema {
        let fields: Vec<Field> = self.0.iter().map(Column::field).collect();
        Schema::new_with_metadata(fields, metadata.iter().cloned().collect::<HashMap<_, _>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_keys_follow_the_key() {
        let mut columns = ColumnSet::default();
        columns.add_keys(&[Rung::Syntax, Rung::Simple, Rung::Syntax].map(ColumnId::KeyOf));
        let names: Vec<_> = columns.names().collect();
        let key = names.iter().position(|name| *name == "key").unwrap();
        assert_eq!(names[key..key + 4], ["key", "key_syntax", "key_simple", "fault"]);
        assert_eq!(columns.key_rungs(), [Rung::Syntax, Rung::Simple]);
    }

    #[test]
    fn errors_name_the_new_names_of_renamed_columns() {
        let error = |name| ColumnSet::named([name]).unwrap_err().to_string();
        assert_eq!(error("looks"), "column `looks` was renamed; use `spoofing_flags`");
        assert_eq!(error("offset"), "column `offset` was renamed; use `record_offset`");
        assert!(error("kye").starts_with("unknown column `kye`; expected one of source, record, record_offset, "));
    }
}
