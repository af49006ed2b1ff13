//! The structs of a Parquet file in the compact protocol of Thrift, which are checked before the crate parquet reads them:
//! [`load_metadata`], [`page_lengths`].
//!
//! The crate builds a schema by recursion, allocates about a kilobyte for each of its elements, skips the elements of an
//! unknown list one by one (two billion booleans, for example), and does not check the types of known fields. A hostile file of
//! less than a hundred bytes would keep it busy for minutes, and one of a few kilobytes would overflow the stack, which ends the
//! process.

use std::sync::Arc;

use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::basic::ColumnOrder;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::FOOTER_SIZE;
use parquet::file::metadata::{
    ColumnChunkMetaData, FooterTail, KeyValue, PageEncodingStats, ParquetMetaDataReader, RowGroupMetaData,
    SortingColumn,
};
use parquet::file::reader::ChunkReader;

use crate::batch::max_footer_memory;
use crate::kernel::{MAX_VARINT_LEN, read_varint};

/// Maximum number of elements of a schema, which are columns and groups.
const MAX_ELEMENTS: u64 = 1 << 17;

/// Maximum nesting depth of the groups of a schema. A list of structs makes three levels.
const MAX_NESTING: usize = 128;

/// Maximum nesting depth of structs and lists of Thrift. The format needs 8.
const MAX_DEPTH: usize = 32;

/// Reads the metadata of a Parquet file.
///
/// # Errors
/// The file cannot be read; the footer is damaged, encrypted or too long; the schema has too many elements or is nested too
/// deeply.
pub(crate) fn load_metadata(file: &impl ChunkReader) -> ParquetResult<ArrowReaderMetadata> {
    let general = |message: String| Err(ParquetError::General(message));
    let Some(tail_at) = file.len().checked_sub(FOOTER_SIZE as u64) else {
        return general(format!("a file of {} bytes is too short for a footer", file.len()));
    };
    let tail = FooterTail::try_from(&*file.get_bytes(tail_at, FOOTER_SIZE)?)?;
    let footer_len = tail.metadata_length();
    if tail.is_encrypted_footer() {
        return general("the footer is encrypted, which is not supported".to_string());
    }
    let lists_limit = max_footer_memory(file.len());
    // Lists take more memory than their length.
    if footer_len as u64 > lists_limit {
        return general(format!("the footer has {footer_len} bytes; at most {lists_limit} can be read"));
    }
    let Some(footer_at) = tail_at.checked_sub(footer_len as u64) else {
        return general(format!("the footer of {footer_len} bytes is longer than the file"));
    };
    let footer = file.get_bytes(footer_at, footer_len)?;
    let mut reader = CompactReader { bytes: &footer, lists_limit, lists_len: 0 };
    if let Err(error) = reader.file_metadata() {
        let at = footer_at + (footer_len - reader.bytes.len()) as u64;
        let advice = "fetch the file again, or convert it with another program";
        return general(format!("the footer is damaged or not supported near byte {at}: {error}; {advice}"));
    }
    let metadata = ParquetMetaDataReader::decode_metadata(&footer)?;
    ArrowReaderMetadata::try_new(Arc::new(metadata), ArrowReaderOptions::new())
}

/// The lengths that the struct `PageHeader` states, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageLengths {
    pub(super) content: u64,
    pub(super) compressed: u64,
}

/// Checks the struct `PageHeader` that `bytes` begin with.
///
/// # Errors
/// [`CompactError::TooShort`] if the header goes on after the bytes; otherwise it is damaged.
pub(super) fn page_lengths(bytes: &[u8]) -> Result<PageLengths, CompactError> {
    CompactReader { bytes, lists_limit: 0, lists_len: 0 }.page_header()
}

/// Why bytes are not a struct of the format.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CompactError {
    #[error("it ends early")]
    TooShort,
    #[error("a field has another type than in the format")]
    FieldType,
    #[error("a field has a type that the format does not use, such as a map")]
    UnknownType,
    #[error("a list has booleans, which the format does not use")]
    Booleans,
    #[error("a number is negative or too large")]
    Number,
    #[error("the lengths of a page are missing")]
    Lengths,
    #[error("structs and lists are nested too deeply")]
    Depth,
    #[error("the schema has {0} elements; at most {MAX_ELEMENTS} can be read")]
    Elements(u64),
    #[error("its row groups and columns take more than {} MiB of memory", .0 >> 20)]
    Lists(u64),
    #[error("the schema has more than {MAX_NESTING} groups within each other")]
    Nesting,
}

/// A type of the format. Integers have 16, 32 or 64 bits.
#[derive(Clone, Copy)]
enum ValueType {
    Boolean,
    Byte,
    Integer,
    Double,
    Binary,
    /// Elements of a type, each of which takes this many bytes of memory besides its texts.
    List(&'static ValueType, usize),
    Struct(Fields),
}

/// The fields of a struct with their numbers. A struct may have other fields, which are skipped.
type Fields = &'static [(u64, ValueType)];

use ValueType::{Binary, Boolean, Byte, Double, Integer, List, Struct};

/// `FileMetaData` without its field 2, the schema.
const FILE_METADATA: Fields = &[
    (1, Integer),
    (3, Integer),
    (4, List(&Struct(ROW_GROUP), size_of::<RowGroupMetaData>())),
    (5, List(&Struct(KEY_VALUE), size_of::<KeyValue>())),
    (6, Binary),
    (7, List(&Struct(COLUMN_ORDER), size_of::<ColumnOrder>())),
    (9, Binary),
];
/// `SchemaElement` without its field 5, the number of children.
const SCHEMA_ELEMENT: Fields = &[
    (1, Integer),
    (2, Integer),
    (3, Integer),
    (4, Binary),
    (6, Integer),
    (7, Integer),
    (8, Integer),
    (9, Integer),
    (10, Struct(LOGICAL_TYPE)),
];
const LOGICAL_TYPE: Fields = &[
    (5, Struct(&[(1, Integer), (2, Integer)])),
    (7, Struct(&[(1, Boolean), (2, Struct(&[]))])),
    (8, Struct(&[(1, Boolean), (2, Struct(&[]))])),
    (10, Struct(&[(1, Byte), (2, Boolean)])),
    (16, Struct(&[(1, Byte)])),
    (17, Struct(&[(1, Binary)])),
    (18, Struct(&[(1, Binary), (2, Integer)])),
];
const COLUMN_ORDER: Fields = &[(1, Struct(&[])), (2, Struct(&[]))];
const KEY_VALUE: Fields = &[(1, Binary), (2, Binary)];
const ROW_GROUP: Fields = &[
    (1, List(&Struct(COLUMN_CHUNK), size_of::<ColumnChunkMetaData>())),
    (2, Integer),
    (3, Integer),
    (4, List(&Struct(&[(1, Integer), (2, Boolean), (3, Boolean)]), size_of::<SortingColumn>())),
    (5, Integer),
    (6, Integer),
    (7, Integer),
];
const COLUMN_CHUNK: Fields = &[
    (1, Binary),
    (2, Integer),
    (3, Struct(COLUMN_METADATA)),
    (4, Integer),
    (5, Integer),
    (6, Integer),
    (7, Integer),
    (9, Binary),
];
const COLUMN_METADATA: Fields = &[
    (1, Integer),
    (2, List(&Integer, 0)),
    (3, List(&Binary, 0)),
    (4, Integer),
    (5, Integer),
    (6, Integer),
    (7, Integer),
    (8, List(&Struct(KEY_VALUE), 0)),
    (9, Integer),
    (10, Integer),
    (11, Integer),
    (12, Struct(STATISTICS)),
    (13, List(&Struct(&[(1, Integer), (2, Integer), (3, Integer)]), size_of::<PageEncodingStats>())),
    (14, Integer),
    (15, Integer),
    (16, Struct(&[(1, Integer), (2, List(&Integer, size_of::<i64>())), (3, List(&Integer, size_of::<i64>()))])),
    (17, Struct(&[(1, Struct(BOUNDING_BOX)), (2, List(&Integer, size_of::<i32>()))])),
];
const STATISTICS: Fields = &[
    (1, Binary),
    (2, Binary),
    (3, Integer),
    (4, Integer),
    (5, Binary),
    (6, Binary),
    (7, Boolean),
    (8, Boolean),
    (9, Integer),
];
const BOUNDING_BOX: Fields =
    &[(1, Double), (2, Double), (3, Double), (4, Double), (5, Double), (6, Double), (7, Double), (8, Double)];
/// `PageHeader` without its fields 2 and 3, the lengths.
const PAGE_HEADER: Fields = &[
    (1, Integer),
    (4, Integer),
    (5, Struct(&[(1, Integer), (2, Integer), (3, Integer), (4, Integer), (5, Struct(STATISTICS))])),
    (6, Struct(&[])),
    (7, Struct(&[(1, Integer), (2, Integer), (3, Boolean)])),
    (8, Struct(DATA_PAGE_HEADER_V2)),
];
const DATA_PAGE_HEADER_V2: Fields = &[
    (1, Integer),
    (2, Integer),
    (3, Integer),
    (4, Integer),
    (5, Integer),
    (6, Integer),
    (7, Boolean),
    (8, Struct(STATISTICS)),
];

/// A type of the protocol by its code, which precedes each value.
#[derive(Clone, Copy, PartialEq, Eq)]
struct TypeCode(u8);

impl TypeCode {
    const LIST: TypeCode = TypeCode(9);
    const STRUCT: TypeCode = TypeCode(12);

    fn is_boolean(self) -> bool {
        matches!(self.0, 1 | 2)
    }

    fn is_integer(self) -> bool {
        matches!(self.0, 4..=6)
    }
}

type CompactResult<T> = Result<T, CompactError>;

/// Reads values of the compact protocol.
struct CompactReader<'a> {
    bytes: &'a [u8],
    /// Maximum memory of the lists, in bytes.
    lists_limit: u64,
    /// Memory of the lists so far.
    lists_len: u64,
}

impl CompactReader<'_> {
    /// Checks the struct `FileMetaData`.
    fn file_metadata(&mut self) -> CompactResult<()> {
        let mut id = 0;
        while let Some(code) = self.field(&mut id)? {
            match id {
                2 if code == TypeCode::LIST => self.schema()?,
                2 => return Err(CompactError::FieldType),
                _ => self.field_value(code, id, FILE_METADATA, 0)?,
            }
        }
        Ok(())
    }

    /// Checks a list of `SchemaElement`. A group precedes its children.
    fn schema(&mut self) -> CompactResult<()> {
        let (count, element) = self.list()?;
        if element != TypeCode::STRUCT {
            return Err(CompactError::FieldType);
        }
        if count > MAX_ELEMENTS {
            return Err(CompactError::Elements(count));
        }
        // For each group that is not complete yet, the number of children that must still follow.
        let mut lacking: Vec<u64> = Vec::new();
        for _ in 0..count {
            let children = self.schema_element()?;
            while lacking.pop_if(|count| *count == 0).is_some() {}
            if let Some(count) = lacking.last_mut() {
                *count -= 1;
            }
            lacking.push(children);
            if lacking.len() > MAX_NESTING {
                return Err(CompactError::Nesting);
            }
        }
        Ok(())
    }

    /// Checks the struct `SchemaElement`. Returns its number of children.
    fn schema_element(&mut self) -> CompactResult<u64> {
        let (mut id, mut children) = (0, 0);
        while let Some(code) = self.field(&mut id)? {
            match id {
                5 if code.is_integer() => children = self.count()?,
                5 => return Err(CompactError::FieldType),
                _ => self.field_value(code, id, SCHEMA_ELEMENT, 0)?,
            }
        }
        Ok(children)
    }

    /// Checks the struct `PageHeader`.
    fn page_header(&mut self) -> CompactResult<PageLengths> {
        let (mut id, mut content, mut compressed) = (0, None, None);
        while let Some(code) = self.field(&mut id)? {
            match id {
                2 if code.is_integer() => content = Some(self.count()?),
                3 if code.is_integer() => compressed = Some(self.count()?),
                2 | 3 => return Err(CompactError::FieldType),
                _ => self.field_value(code, id, PAGE_HEADER, 0)?,
            }
        }
        let lengths = content.zip(compressed).map(|(content, compressed)| PageLengths { content, compressed });
        lengths.ok_or(CompactError::Lengths)
    }

    /// Checks a struct within `depth` others.
    fn known_struct(&mut self, fields: Fields, depth: usize) -> CompactResult<()> {
        let mut id = 0;
        while let Some(code) = self.field(&mut id)? {
            self.field_value(code, id, fields, depth)?;
        }
        Ok(())
    }

    /// Checks the value of field `id` of a struct that has these fields.
    fn field_value(&mut self, code: TypeCode, id: u64, fields: Fields, depth: usize) -> CompactResult<()> {
        let known = fields.iter().find(|(known, _)| *known == id).map(|(_, value)| *value);
        self.value(code, known, depth)
    }

    /// Checks a value within `depth` structs and lists, whose type is `known` or, if the format has no such field, any.
    fn value(&mut self, code: TypeCode, known: Option<ValueType>, depth: usize) -> CompactResult<()> {
        if depth > MAX_DEPTH {
            return Err(CompactError::Depth);
        }
        match (code.0, known) {
            // The code of a boolean field is its value.
            (1 | 2, None | Some(Boolean)) => Ok(()),
            (3, None | Some(Byte)) => self.skip(1),
            (4..=6, None | Some(Integer)) => self.number().map(|_| ()),
            (7, None | Some(Double)) => self.skip(8),
            (8, None | Some(Binary)) => self.number().and_then(|len| self.skip(len)),
            (9, Some(List(element, len))) => self.elements(Some((*element, len)), depth + 1),
            (9 | 10, None) => self.elements(None, depth + 1),
            (12, Some(Struct(fields))) => self.known_struct(fields, depth + 1),
            (12, None) => self.known_struct(&[], depth + 1),
            // A UUID.
            (13, None) => self.skip(16),
            (_, None) => Err(CompactError::UnknownType),
            (_, Some(_)) => Err(CompactError::FieldType),
        }
    }

    /// Checks the elements of a list, which have the type `known` and take this many bytes of memory.
    fn elements(&mut self, known: Option<(ValueType, usize)>, depth: usize) -> CompactResult<()> {
        let (count, code) = self.list()?;
        let len = count.checked_mul(known.map_or(0, |(_, len)| len as u64));
        let all = len.and_then(|len| self.lists_len.checked_add(len)).filter(|all| *all <= self.lists_limit);
        self.lists_len = all.ok_or(CompactError::Lists(self.lists_limit))?;
        (0..count).try_for_each(|_| self.value(code, known.map(|(known, _)| known), depth))
    }

    fn byte(&mut self) -> CompactResult<u8> {
        self.bytes.split_off_first().copied().ok_or(CompactError::TooShort)
    }

    fn skip(&mut self, count: u64) -> CompactResult<()> {
        let skipped = usize::try_from(count).ok().and_then(|count| self.bytes.split_off(..count));
        skipped.map(|_| ()).ok_or(CompactError::TooShort)
    }

    /// Reads a number of variable length, as it is encoded.
    fn number(&mut self) -> CompactResult<u64> {
        let is_cut = self.bytes.len() < MAX_VARINT_LEN;
        let error = if is_cut { CompactError::TooShort } else { CompactError::Number };
        let (number, rest) = read_varint(self.bytes).ok_or(error)?;
        self.bytes = rest;
        Ok(number)
    }

    /// Reads an integer that is not negative and has 32 bits, because the crate parquet keeps no more.
    fn count(&mut self) -> CompactResult<u64> {
        // The sign is in the lowest bit.
        let number = self.number()?;
        let is_count = number & 1 == 0 && number <= u64::from(u32::MAX);
        is_count.then_some(number >> 1).ok_or(CompactError::Number)
    }

    /// Reads the header of a field. `id` is the number of the field before it, and becomes its own. `None` is the end of the
    /// struct.
    fn field(&mut self, id: &mut u64) -> CompactResult<Option<TypeCode>> {
        let head = self.byte()?;
        if head & 0xF == 0 {
            return Ok(None);
        }
        *id = if head >> 4 == 0 { self.count()? } else { *id + u64::from(head >> 4) };
        // The crate parquet keeps 16 bits.
        i16::try_from(*id).map_err(|_| CompactError::Number)?;
        Ok(Some(TypeCode(head & 0xF)))
    }

    /// Reads the number of elements of a list, and their type. Each element has at least one byte.
    fn list(&mut self) -> CompactResult<(u64, TypeCode)> {
        let head = self.byte()?;
        let (count, element) = (u64::from(head >> 4), TypeCode(head & 0xF));
        let count = if count == 15 { self.number()? } else { count };
        // Some implementations write booleans of lists as bytes, others do not write them at all.
        if element.is_boolean() { Err(CompactError::Booleans) } else { Ok((count, element)) }
    }
}

#[cfg(test)]
mod tests;
