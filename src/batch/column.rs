//! What a column is: its identity, its type, its name and its meaning. [`super::columns`] lists all columns.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use arrow::datatypes::{DataType, Field, TimeUnit};

use super::parts::UrlPart;
use crate::iri::Rung;
use crate::record::fields::CarriedField;

/// Length of a key column in bytes.
pub(crate) const KEY_LEN: i32 = 16;

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
    /// The value of a directory `NAME=VALUE` in the path of the source.
    PathValue(&'static str),
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
    /// A signed 64-bit number.
    Long,
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
            ColumnKind::Long => DataType::Int64,
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
    /// The column of the values of directories `name=VALUE` in the paths of sources.
    pub(super) fn of_path_values(name: &str) -> Column {
        let name = kept_name(name);
        let meaning = "value of the directory of this name in the path of the source, NAME=VALUE; null without one";
        let id = ColumnId::PathValue(name);
        Column { id, name, kind: ColumnKind::Name, nullable: true, is_default: false, meaning }
    }

    pub(super) const fn nullable(self) -> Column {
        Column { nullable: true, ..self }
    }

    pub(super) const fn on_request(self) -> Column {
        Column { is_default: false, ..self }
    }

    pub(super) fn field(&self) -> Field {
        Field::new(self.name, self.kind.data_type(), self.nullable)
    }
}

/// Returns the name, which is kept until the process ends, because columns are copied freely. Each distinct name is kept once,
/// so that a process that names the same columns again and again takes no more memory.
fn kept_name(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(kept) = names.get(name) {
        return kept;
    }
    let kept: &'static str = Box::leak(name.into());
    names.insert(kept);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_path_values_are_kept_once() {
        let name = |text: &str| Column::of_path_values(text).name;
        assert_eq!(name("crawl").as_ptr(), name("crawl").as_ptr());
        assert_ne!(name("crawl").as_ptr(), name("segment").as_ptr());
        assert_eq!((name("crawl"), name("segment")), ("crawl", "segment"));
    }
}
