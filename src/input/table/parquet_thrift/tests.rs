//! Footers and page headers are made by the crate parquet, and byte by byte where it would not make them.

use super::*;
use crate::kernel::push_varint;
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Fields, Schema, TimeUnit};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::WriterProperties;

/// A schema element: a group if it has children, otherwise a column of texts.
fn element(children: u64) -> Vec<u8> {
    let mut bytes = match children {
        0 => vec![0x15, 12, 0x25, 0, 0x18, 1, b'x'],
        _ => vec![0x35, 2, 0x18, 1, b'x', 0x15],
    };
    if children > 0 {
        push_varint(children * 2, &mut bytes);
    }
    bytes.push(0);
    bytes
}

/// A file without rows, with these schema elements, and `more` fields at the end of its metadata.
fn file(elements: &[Vec<u8>], more: &[u8]) -> Bytes {
    let mut footer = vec![0x15, 2, 0x19, 0xFC];
    push_varint(elements.len() as u64, &mut footer);
    footer.extend(elements.concat());
    footer.extend([0x16, 0, 0x19, 0x0C]);
    footer.extend(more);
    footer.push(0);
    let len = (footer.len() as u32).to_le_bytes();
    [b"PAR1", &*footer, &len, b"PAR1"].concat().into()
}

/// A schema of `depth` groups within each other.
fn nested(depth: usize) -> Vec<Vec<u8>> {
    let groups = vec![element(1); depth];
    [groups, vec![element(0)]].concat()
}

fn refusal(file: &Bytes) -> String {
    load_metadata(file).unwrap_err().to_string()
}

#[test]
fn footers_of_the_parquet_crate_are_read() {
    let struct_of = |fields: Vec<Field>| DataType::Struct(Fields::from(fields));
    let list = |item: DataType| DataType::List(Arc::new(Field::new_list_field(item, true)));
    let types = [
        DataType::Int8,
        DataType::UInt64,
        DataType::Float64,
        DataType::Boolean,
        DataType::Utf8,
        DataType::FixedSizeBinary(16),
        DataType::Date32,
        DataType::Time64(TimeUnit::Nanosecond),
        DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())),
        DataType::Decimal128(20, 3),
        list(struct_of(vec![Field::new("x", list(DataType::Int32), true)])),
    ];
    let fields: Vec<_> = types.iter().map(|kind| Field::new(kind.to_string(), kind.clone(), true)).collect();
    let schema = Arc::new(Schema::new(fields).with_metadata([("a".to_string(), "b".to_string())]));
    let sorting = SortingColumn { column_idx: 0, descending: true, nulls_first: false };
    let properties = WriterProperties::builder().set_sorting_columns(Some(vec![sorting])).build();
    let mut writer = ArrowWriter::try_new(Vec::new(), schema.clone(), Some(properties)).unwrap();
    let columns = schema.fields().iter().map(|field| arrow::array::new_null_array(field.data_type(), 3)).collect();
    writer.write(&RecordBatch::try_new(schema, columns).unwrap()).unwrap();
    let file = Bytes::from(writer.into_inner().unwrap());
    let (read, expected) = (load_metadata(&file).unwrap(), ArrowReaderMetadata::load(&file, Default::default()));
    assert_eq!(read.schema(), expected.as_ref().unwrap().schema());
    assert_eq!(read.metadata(), expected.unwrap().metadata());
}

#[test]
fn schemas_of_any_depth_and_width_are_read_or_refused() {
    for depth in [1, 2, MAX_NESTING - 1] {
        assert_eq!(load_metadata(&file(&nested(depth), &[])).unwrap().parquet_schema().num_columns(), 1);
    }
    for depth in [MAX_NESTING, 100_000] {
        assert!(refusal(&file(&nested(depth), &[])).contains("more than 128 groups within each other"), "{depth}");
    }
    // Groups next to each other are not within each other.
    let flat = [vec![element(1000)], vec![[element(1), element(0)]; 1000].concat()].concat();
    assert_eq!(load_metadata(&file(&flat, &[])).unwrap().parquet_schema().num_columns(), 1000);
    let wide = [vec![element(MAX_ELEMENTS)], vec![element(0); MAX_ELEMENTS as usize]].concat();
    assert!(refusal(&file(&wide, &[])).contains("the schema has 131073 elements"));
}

#[test]
fn fields_that_the_format_does_not_have_are_skipped() {
    let text: &[u8] = &[0xF8, 3, b'a', b'b', b'c'];
    let list = [0x19, 0x25, 1, 2];
    let uuid = [vec![0x1D], vec![7; 16]].concat();
    let group: &[u8] = &[0x1C, 0x11, 0x13, 9, 0x17, 1, 2, 3, 4, 5, 6, 7, 8, 0];
    let more = [text, &list, &uuid, group].concat();
    assert_eq!(load_metadata(&file(&nested(2), &more)).unwrap().metadata().num_row_groups(), 0);
}

#[test]
fn footers_that_the_parquet_crate_would_read_in_another_way_are_refused() {
    let two_billion = [0xFF, 0xFF, 0xFF, 0xFF, 0x07];
    let negative_id = [0x05, 0x0B, 0];
    let large_id = [0x05, 0xFE, 0xFF, 0x0F, 0];
    let deep = [&[0xFC][..], &[0x1C; 40], &[0; 41]].concat();
    let cases: [(&[u8], &str); 8] = [
        (&[&[0xF9, 0xF1][..], &two_billion].concat(), "a list has booleans"),
        (&[0xFB, 1, 0x11, 1, 1], "a map"),
        // Key-value metadata as a boolean, and as a list of numbers.
        (&[0x11], "another type"),          // KEY_VALUE list as a boolean
        (&[0x19, 0x15, 2], "another type"), // key-values that are numbers
        (&negative_id, "negative or too large"),
        (&large_id, "negative or too large"),
        (&[&[0xF6][..], &[0xFF; 11]].concat(), "negative or too large"),
        (&deep, "nested too deeply"),
    ];
    for (more, reason) in cases {
        let message = refusal(&file(&nested(1), more));
        assert!(message.contains(reason), "{more:?}: {message}");
    }
    // The number of children as a text, and as a number of more than 32 bits.
    let (text, large) = (&[0x58, 1, b'x', 0][..], &[0x56, 0x80, 0x80, 0x80, 0x80, 0x80, 1, 0][..]);
    for (children, reason) in [(text, "another type"), (large, "negative or too large")] {
        let message = refusal(&file(&[children.to_vec()], &[]));
        assert!(message.contains(reason), "{children:?}: {message}");
    }
    // The schema as a list of numbers.
    let mut numbers = file(&nested(1), &[]).to_vec();
    assert_eq!(numbers[6..8], [0x19, 0xFC]);
    numbers[7] = 0xF5;
    assert!(refusal(&numbers.into()).contains("near byte 9: a field has another type"));
}

#[test]
fn the_place_of_a_defect_is_that_in_the_file() {
    // The file begins with 4 bytes, and the field has three.
    let (whole, damaged) = (file(&nested(1), &[]), file(&nested(1), &[0x05, 0x0B, 0]));
    let end = whole.len() - 8 - 1;
    assert!(refusal(&damaged).contains(&format!("near byte {}: ", end + 2)), "{end} {}", refusal(&damaged));
}

#[test]
fn structs_may_be_nested_to_the_greatest_depth() {
    let unknown = |depth: usize| [&[0xFC][..], &vec![0x1C; depth], &vec![0; depth + 1]].concat();
    assert!(load_metadata(&file(&nested(1), &unknown(MAX_DEPTH))).is_ok());
    assert!(refusal(&file(&nested(1), &unknown(MAX_DEPTH + 1))).contains("nested too deeply"));
}

#[test]
fn footers_whose_lists_take_too_much_memory_are_refused() {
    // Type, encodings, path, codec, number of values, lengths and place of a column.
    let column = [&[0x15, 12, 0x19, 0x15, 0, 0x19, 0x18, 1, b'x'][..], &[0x15, 0], &[0x16, 0].repeat(3), &[0x26, 8, 0]];
    let chunk = [&[0x26, 0, 0x1C][..], &column.concat(), &[0]].concat();
    let group = [&[0x19, 0x1C][..], &chunk, &[0x16, 0, 0x16, 0, 0]].concat();
    let groups = |count: u64| {
        let mut bytes = vec![0x09, 8, 0xFC];
        push_varint(count, &mut bytes);
        bytes.extend(group.repeat(count as usize));
        file(&nested(1), &bytes)
    };
    let limit = max_footer_memory(0);
    let most = limit / (size_of::<RowGroupMetaData>() + size_of::<ColumnChunkMetaData>()) as u64;
    let largest = groups(most);
    let metadata = load_metadata(&largest).unwrap().metadata().clone();
    assert_eq!(metadata.num_row_groups() as u64, most);
    // The memory that the crate itself reports.
    assert!((metadata.memory_size() as u64) < limit * 9 / 8, "{}", metadata.memory_size());
    assert!(most > 1000 && metadata.memory_size() > largest.len() * 10);
    assert!(refusal(&groups(most + 1)).contains("its row groups and columns take more than 4 MiB of memory"));
    // Key-value metadata that the list states, but does not have.
    assert!(refusal(&file(&nested(1), &[0x19, 0xFC, 0xFF, 0xFF, 0x7F])).contains("take more than 4 MiB"));
}

#[test]
fn footers_that_are_cut_or_too_long_are_refused() {
    let whole = file(&nested(1), &[]);
    assert!(refusal(&whole.slice(..6)).contains("a file of 6 bytes is too short for a footer"));
    let tail = |len: u32| Bytes::from([b"PAR1", &len.to_le_bytes()[..], b"PAR1"].concat());
    assert!(refusal(&tail(5)).contains("the footer of 5 bytes is longer than the file"));
    assert!(refusal(&tail(u32::MAX)).contains("the footer has 4294967295 bytes"));
    assert!(refusal(&tail(0)).contains("damaged or not supported near byte 4: it ends early"));
    let encrypted = Bytes::from([&whole[..whole.len() - 4], b"PARE"].concat());
    assert!(refusal(&encrypted).contains("the footer is encrypted"));
}

#[test]
fn headers_end_where_their_struct_ends() {
    let header = [0x15, 0, 0x15, 8, 0x15, 6, 0x2C, 0x15, 2, 0x15, 0, 0x15, 6, 0x15, 6, 0, 0];
    let page = [&header[..], b"page"].concat();
    let mut reader = CompactReader { bytes: &page, lists_limit: 0, lists_len: 0 };
    assert_eq!((reader.page_header(), reader.bytes), (Ok(PageLengths { content: 4, compressed: 3 }), &b"page"[..]));
    for len in 0..header.len() {
        assert_eq!(page_lengths(&header[..len]), Err(CompactError::TooShort));
    }
    for wrong in [&[0x11][..], &[0x15, 0, 0x11], &[0x15, 0, 0x15, 2, 0x18]] {
        assert_eq!(page_lengths(wrong), Err(CompactError::FieldType));
    }
    assert_eq!(page_lengths(&[0x15, 0, 0x25, 2, 0x15, 2, 0]), Err(CompactError::Lengths));
    // The crate parquet takes the last of several lengths.
    let twice = [&header[..6], &[0x05, 4, 16, 0]].concat();
    assert_eq!(page_lengths(&twice), Ok(PageLengths { content: 8, compressed: 3 }));
    // Of this length, the crate would keep 1.
    let long = [&[0x15, 0, 0x15][..], &[0x82, 0x80, 0x80, 0x80, 0x20], &[0x15, 2, 0]].concat();
    assert_eq!(page_lengths(&long), Err(CompactError::Number));
    // A number has at most 10 bytes, so more bytes would not complete this one.
    let endless = [&[0x15][..], &[0xFF; 10]].concat();
    assert_eq!(page_lengths(&endless), Err(CompactError::Number));
    assert_eq!(page_lengths(&endless[..10]), Err(CompactError::TooShort));
    let two_billion_booleans = [0xF9, 0xF1, 0xFF, 0xFF, 0xFF, 0xFF, 0x07];
    let unknown_list = [&header[..header.len() - 1], &two_billion_booleans, &[0]].concat();
    assert_eq!(page_lengths(&unknown_list), Err(CompactError::Booleans));
}
