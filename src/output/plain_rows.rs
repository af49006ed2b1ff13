//! Files of rows that are not canonical rows: delimited text, JSON lines or Parquet of plain values. [`RowEncoder`] encodes
//! rows on any thread, and [`RowWriter`] writes them, under a temporary name, as other outputs.

use std::io::Write;
use std::sync::Arc;

use arrow::array::{
    ArrayBuilder, ArrayRef, BinaryBuilder, FixedSizeBinaryBuilder, Int16Builder, RecordBatch, StringBuilder,
    TimestampMillisecondBuilder, UInt64Builder,
};
use arrow::datatypes::{Field, Schema};

use super::error::{OutputError, WriteError};
use super::lines::{self, FieldWriter};
use super::options::{Destination, OutputFormat};
use super::packing::TextPacking;
use super::sink::{self, OutputTarget, Sink};
use super::tables::TableWriter;
use super::values::{write_hex, write_json_bytes, write_json_text, write_json_time, write_number, write_time};
use crate::batch::ColumnKind;
use crate::key::KeyBytes;

#[derive(Clone, Copy, Debug)]
pub(crate) enum PlainValue<'a> {
    /// No value: empty in CSV, null in JSON and Parquet.
    Null,
    /// Text. Bytes that are not UTF-8 are written unchanged to CSV, as `{"hex": ...}` to JSON, and with U+FFFD to columns of
    /// text in Parquet.
    Bytes(&'a [u8]),
    /// A number.
    Number(u64),
    /// A key, in hexadecimal in text.
    Key(KeyBytes),
    /// Milliseconds since 1970-01-01T00:00:00Z.
    Time(i64),
}

impl<'a> From<&'a str> for PlainValue<'a> {
    fn from(text: &'a str) -> PlainValue<'a> {
        PlainValue::Bytes(text.as_bytes())
    }
}

impl From<u64> for PlainValue<'_> {
    fn from(number: u64) -> Self {
        PlainValue::Number(number)
    }
}

impl<'a, T: Into<PlainValue<'a>>> From<Option<T>> for PlainValue<'a> {
    fn from(value: Option<T>) -> PlainValue<'a> {
        value.map_or(PlainValue::Null, T::into)
    }
}

/// A column of plain rows: its name, and how Parquet stores it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainColumn {
    pub(crate) name: &'static str,
    /// [`ColumnKind::Text`], `Bytes`, `Count`, `Key`, `Time` or `Short`.
    pub(crate) kind: ColumnKind,
}

/// Encoded plain rows: lines of text, or a batch. The fields of the other form are empty.
#[derive(Default)]
pub(crate) struct RowBlock {
    lines: Vec<u8>,
    /// The end of each row in `lines`.
    ends: Vec<usize>,
    batch: Option<RecordBatch>,
}

impl RowBlock {
    /// Bytes of memory.
    pub(crate) fn len(&self) -> usize {
        let of_batch = self.batch.as_ref().map_or(0, RecordBatch::get_array_memory_size);
        self.lines.len() + size_of_val(&self.ends[..]) + of_batch
    }
}

/// Encodes plain rows for a [`RowWriter`]. Several threads can encode rows of one output, each with an encoder of its own.
pub(crate) enum RowEncoder {
    Lines(Box<LineEncoder>),
    Table(TableEncoder),
}

/// Encodes delimited text or JSON lines.
pub(crate) struct LineEncoder {
    columns: Vec<PlainColumn>,
    format: OutputFormat,
    /// Writes the fields of delimited text.
    fields: FieldWriter,
    scratch: Vec<u8>,
    lines: Vec<u8>,
    ends: Vec<usize>,
}

/// Encodes a batch for Parquet.
pub(crate) struct TableEncoder {
    schema: Arc<Schema>,
    builders: Vec<PlainBuilder>,
    /// Bytes of text and rows in the builders.
    held_len: usize,
    held_rows: usize,
}

/// Bytes of text in a block, in a member or frame, and in a batch.
const PACKED_LEN: usize = 1 << 20;

/// Rows in a batch.
const BATCH_ROWS: usize = 8 << 10;

impl RowEncoder {
    /// An encoder for a [`RowWriter`] of the same format and columns.
    pub(crate) fn new(format: OutputFormat, columns: &[PlainColumn]) -> RowEncoder {
        match format {
            OutputFormat::Parquet => RowEncoder::Table(TableEncoder::new(columns)),
            _ => RowEncoder::Lines(Box::new(LineEncoder::new(format, columns))),
        }
    }

    /// Appends a row.
    pub(crate) fn append(&mut self, values: &[PlainValue]) {
        match self {
            RowEncoder::Lines(lines) => lines.append(values),
            RowEncoder::Table(table) => table.append(values),
        }
    }

    /// Returns whether the rows should be taken now, to limit the memory that they need.
    pub(crate) fn is_full(&self) -> bool {
        match self {
            RowEncoder::Lines(lines) => lines.lines.len() >= PACKED_LEN,
            RowEncoder::Table(table) => table.held_rows >= BATCH_ROWS || table.held_len >= PACKED_LEN,
        }
    }

    /// Takes the rows that were appended.
    ///
    /// # Errors
    /// The values do not make a batch.
    pub(crate) fn take(&mut self) -> Result<RowBlock, OutputError> {
        match self {
            RowEncoder::Lines(encoder) => {
                let (lines, ends) = (std::mem::take(&mut encoder.lines), std::mem::take(&mut encoder.ends));
                Ok(RowBlock { lines, ends, batch: None })
            }
            RowEncoder::Table(table) => Ok(RowBlock { batch: table.take()?, ..RowBlock::default() }),
        }
    }
}

/// Writes plain rows. Removes the file if it is dropped before [`RowWriter::finish`].
pub(crate) enum RowWriter {
    Lines(Box<LineOutput>),
    Table(Box<TableWriter>),
}

/// Delimited text or JSON lines.
pub(crate) struct LineOutput {
    sink: Sink,
    target: OutputTarget,
    packing: TextPacking,
    /// Lines of a member or frame that is not complete.
    lines: Vec<u8>,
}

impl RowWriter {
    /// Opens an output of these columns. `format` is [`OutputFormat::JsonLines`], [`OutputFormat::Parquet`] or delimited
    /// text.
    pub(crate) fn create(
        destination: &Destination,
        format: OutputFormat,
        columns: &[PlainColumn],
    ) -> Result<RowWriter, OutputError> {
        if format == OutputFormat::Parquet {
            let metadata = [("irikey.version".to_string(), env!("CARGO_PKG_VERSION").to_string())];
            let writer = TableWriter::create(destination, schema_of(columns), &metadata)?;
            return Ok(RowWriter::Table(Box::new(writer)));
        }
        let (sink, target) = sink::create(destination)?;
        let packing = TextPacking::of(destination.path(), format.is_packable());
        let lines = lines::header(format, columns.iter().map(|column| column.name));
        let mut output = LineOutput { sink, target, packing, lines };
        output.write_lines()?;
        Ok(RowWriter::Lines(Box::new(output)))
    }

    /// Writes encoded rows.
    pub(crate) fn append(&mut self, rows: &RowBlock) -> Result<(), OutputError> {
        match self {
            RowWriter::Lines(output) => output.append(rows),
            RowWriter::Table(writer) => rows.batch.iter().try_for_each(|batch| writer.append(batch)),
        }
    }

    /// Makes the output durable and gives it its final name.
    ///
    /// # Errors
    /// Writing or renaming failed; no partial file has the final name.
    pub(crate) fn finish(self) -> Result<(), OutputError> {
        match self {
            RowWriter::Lines(output) => output.finish(),
            RowWriter::Table(writer) => writer.finish(),
        }
    }
}

fn schema_of(columns: &[PlainColumn]) -> Arc<Schema> {
    let field = |column: &PlainColumn| Field::new(column.name, column.kind.data_type(), true);
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}

impl LineOutput {
    /// Writes lines. Members and frames end with the row that makes them long enough, however the rows are divided into blocks.
    fn append(&mut self, rows: &RowBlock) -> Result<(), OutputError> {
        if self.packing == TextPacking::None {
            let written = self.sink.write_all(&rows.lines);
            return written.map_err(|error| self.target.error(WriteError::from(error)));
        }
        let mut at = 0;
        for &end in &rows.ends {
            self.lines.extend_from_slice(&rows.lines[at..end]);
            at = end;
            if self.lines.len() >= PACKED_LEN {
                self.write_lines()?;
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<(), OutputError> {
        if !self.lines.is_empty() {
            self.write_lines()?;
        }
        self.target.commit(self.sink)
    }

    /// Writes the lines that were collected, as a member or frame if the output is compressed.
    fn write_lines(&mut self) -> Result<(), OutputError> {
        let written = match self.packing {
            TextPacking::None => self.sink.write_all(&self.lines),
            packing => packing.pack(std::mem::take(&mut self.lines)).and_then(|packed| self.sink.write_all(&packed)),
        };
        self.lines.clear();
        written.map_err(|error| self.target.error(WriteError::from(error)))
    }
}

impl LineEncoder {
    fn new(format: OutputFormat, columns: &[PlainColumn]) -> LineEncoder {
        let fields = FieldWriter::new(format.delimiter().unwrap_or(b','));
        let (scratch, lines, ends) = (Vec::new(), Vec::new(), Vec::new());
        LineEncoder { columns: columns.to_vec(), format, fields, scratch, lines, ends }
    }

    fn append(&mut self, values: &[PlainValue]) {
        match self.format {
            OutputFormat::JsonLines => self.write_json(values),
            _ => self.write_csv(values),
        }
        self.ends.push(self.lines.len());
    }

    fn write_csv(&mut self, values: &[PlainValue]) {
        let LineEncoder { fields, scratch, lines, .. } = self;
        for (i, value) in values.iter().enumerate() {
            scratch.clear();
            let field = match value {
                PlainValue::Bytes(bytes) => bytes,
                value => {
                    value.write_text(scratch);
                    &scratch[..]
                }
            };
            fields.write(i, field, lines);
        }
        fields.end(lines);
    }

    fn write_json(&mut self, values: &[PlainValue]) {
        for (i, (column, value)) in self.columns.iter().zip(values).enumerate() {
            self.lines.push(if i == 0 { b'{' } else { b',' });
            write_json_text(column.name, &mut self.lines);
            self.lines.push(b':');
            match value {
                PlainValue::Null => self.lines.extend_from_slice(b"null"),
                PlainValue::Bytes(bytes) => write_json_bytes(bytes, &mut self.lines),
                PlainValue::Number(number) => write_number(*number, &mut self.lines),
                PlainValue::Time(time) => write_json_time(*time, &mut self.lines),
                PlainValue::Key(_) => {
                    self.lines.push(b'"');
                    value.write_text(&mut self.lines);
                    self.lines.push(b'"');
                }
            }
        }
        self.lines.extend_from_slice(b"}\n");
    }
}

impl PlainValue<'_> {
    /// Appends the value as text; nothing for null.
    fn write_text(&self, out: &mut Vec<u8>) {
        match self {
            PlainValue::Null => {}
            PlainValue::Bytes(bytes) => out.extend_from_slice(bytes),
            PlainValue::Number(number) => write_number(*number, out),
            PlainValue::Key(key) => write_hex(key, out),
            PlainValue::Time(time) => write_time(*time, out),
        }
    }
}

impl TableEncoder {
    fn new(columns: &[PlainColumn]) -> TableEncoder {
        let builders = columns.iter().map(|column| PlainBuilder::new(column.kind)).collect();
        TableEncoder { schema: schema_of(columns), builders, held_len: 0, held_rows: 0 }
    }

    fn append(&mut self, values: &[PlainValue]) {
        for (builder, value) in self.builders.iter_mut().zip(values) {
            self.held_len += if let PlainValue::Bytes(bytes) = value { bytes.len() } else { 0 };
            builder.append(*value);
        }
        self.held_rows += 1;
    }

    fn take(&mut self) -> Result<Option<RecordBatch>, OutputError> {
        if std::mem::take(&mut self.held_rows) == 0 {
            return Ok(None);
        }
        self.held_len = 0;
        let arrays = self.builders.iter_mut().map(PlainBuilder::finish).collect();
        Ok(Some(RecordBatch::try_new(Arc::clone(&self.schema), arrays).map_err(WriteError::from)?))
    }
}

/// Builds the array of a column.
enum PlainBuilder {
    Text(StringBuilder),
    Bytes(BinaryBuilder),
    Count(UInt64Builder),
    Key(FixedSizeBinaryBuilder),
    Time(TimestampMillisecondBuilder),
    Short(Int16Builder),
}

impl PlainBuilder {
    fn new(kind: ColumnKind) -> PlainBuilder {
        match kind {
            ColumnKind::Bytes => PlainBuilder::Bytes(BinaryBuilder::new()),
            ColumnKind::Count => PlainBuilder::Count(UInt64Builder::new()),
            ColumnKind::Key => PlainBuilder::Key(FixedSizeBinaryBuilder::new(size_of::<KeyBytes>() as i32)),
            ColumnKind::Time => PlainBuilder::Time(TimestampMillisecondBuilder::new().with_timezone("UTC")),
            ColumnKind::Short => PlainBuilder::Short(Int16Builder::new()),
            _ => PlainBuilder::Text(StringBuilder::new()),
        }
    }

    /// Appends a value; null if it is not of the kind of the column.
    fn append(&mut self, value: PlainValue) {
        let bytes = if let PlainValue::Bytes(bytes) = value { Some(bytes) } else { None };
        let number = if let PlainValue::Number(number) = value { Some(number) } else { None };
        match self {
            PlainBuilder::Text(array) => array.append_option(bytes.map(String::from_utf8_lossy)),
            PlainBuilder::Bytes(array) => array.append_option(bytes),
            PlainBuilder::Count(array) => array.append_option(number),
            PlainBuilder::Short(array) => array.append_option(number.and_then(|number| i16::try_from(number).ok())),
            PlainBuilder::Time(array) => {
                array.append_option(if let PlainValue::Time(time) = value { Some(time) } else { None });
            }
            PlainBuilder::Key(array) => match value {
                // Keys have the length of the column.
                PlainValue::Key(key) => _ = array.append_value(key),
                _ => array.append_null(),
            },
        }
    }

    fn finish(&mut self) -> ArrayRef {
        let array: &mut dyn ArrayBuilder = match self {
            PlainBuilder::Text(array) => array,
            PlainBuilder::Bytes(array) => array,
            PlainBuilder::Count(array) => array,
            PlainBuilder::Key(array) => array,
            PlainBuilder::Time(array) => array,
            PlainBuilder::Short(array) => array,
        };
        array.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::AsArray;
    use arrow::datatypes::{Int16Type, TimestampMillisecondType, UInt64Type};
    use std::fs::File;

    const COLUMNS: [PlainColumn; 6] = [
        PlainColumn { name: "text", kind: ColumnKind::Text },
        PlainColumn { name: "bytes", kind: ColumnKind::Bytes },
        PlainColumn { name: "count", kind: ColumnKind::Count },
        PlainColumn { name: "key", kind: ColumnKind::Key },
        PlainColumn { name: "time", kind: ColumnKind::Time },
        PlainColumn { name: "short", kind: ColumnKind::Short },
    ];

    const KEY: KeyBytes = [0x0F; 16];

    /// A row of each kind of value, and one without values.
    fn write(path: &std::path::Path, format: OutputFormat) {
        let destination = Destination::File(path.to_path_buf());
        let mut writer = RowWriter::create(&destination, format, &COLUMNS).unwrap();
        let mut encoder = RowEncoder::new(format, &COLUMNS);
        let values = [
            PlainValue::Bytes(b"a\xFF"),
            PlainValue::Bytes(b"a\xFF"),
            PlainValue::Number(u64::MAX),
            PlainValue::Key(KEY),
            PlainValue::Time(1_700_000_000_123),
            PlainValue::Number(404),
        ];
        encoder.append(&values);
        encoder.append(&[PlainValue::Null; 6]);
        writer.append(&encoder.take().unwrap()).unwrap();
        writer.append(&encoder.take().unwrap()).unwrap();
        writer.finish().unwrap();
    }

    #[test]
    fn values_of_all_kinds_are_written_as_text() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        write(&path, OutputFormat::JsonLines);
        let lines = concat!(
            r#"{"text":{"hex":"61ff"},"bytes":{"hex":"61ff"},"count":18446744073709551615,"#,
            r#""key":"0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f","time":"2023-11-14T22:13:20.123Z","short":404}"#,
            "\n",
            r#"{"text":null,"bytes":null,"count":null,"key":null,"time":null,"short":null}"#,
            "\n"
        );
        assert_eq!(std::fs::read_to_string(&path).unwrap(), lines);
        write(&path, OutputFormat::Csv);
        let row = b"a\xFF,a\xFF,18446744073709551615,0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f,2023-11-14T22:13:20.123Z,404\n";
        let lines = [&b"text,bytes,count,key,time,short\n"[..], row, b",,,,,\n"].concat();
        assert_eq!(std::fs::read(&path).unwrap(), lines);
    }

    #[test]
    fn fields_are_quoted_if_necessary() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        let write = |columns: usize, fields: &[&[u8]]| {
            let destination = Destination::File(path.clone());
            let mut writer = RowWriter::create(&destination, OutputFormat::Csv, &COLUMNS[..columns]).unwrap();
            let mut encoder = RowEncoder::new(OutputFormat::Csv, &COLUMNS[..columns]);
            for row in fields.chunks(columns) {
                encoder.append(&row.iter().map(|field| PlainValue::Bytes(field)).collect::<Vec<_>>());
                writer.append(&encoder.take().unwrap()).unwrap();
            }
            writer.finish().unwrap();
            std::fs::read_to_string(&path).unwrap()
        };
        assert_eq!(
            write(2, &[b"a,b", b"c", b"", b"\"\"", b"a\nb", b""]),
            "text,bytes\n\"a,b\",c\n,\"\"\"\"\"\"\n\"a\nb\",\n"
        );
        assert_eq!(write(1, &[b"", b"a", b"\"", b""]), "text\n\"\"\na\n\"\"\"\"\n\"\"\n");
    }

    #[test]
    fn values_of_all_kinds_are_written_to_parquet() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.parquet");
        write(&path, OutputFormat::Parquet);
        let file = File::open(&path).unwrap();
        let mut batches = parquet::arrow::arrow_reader::ParquetRecordBatchReader::try_new(file, 10).unwrap();
        let batch = batches.next().unwrap().unwrap();
        assert_eq!((batch.num_rows(), batches.count()), (2, 0));
        let column = |name: &str| batch.column_by_name(name).unwrap();
        assert_eq!(column("text").as_string::<i32>().value(0), "a\u{FFFD}");
        assert_eq!(column("bytes").as_binary::<i32>().value(0), b"a\xFF");
        assert_eq!(column("count").as_primitive::<UInt64Type>().value(0), u64::MAX);
        assert_eq!(column("key").as_fixed_size_binary().value(0), KEY);
        assert_eq!(column("time").as_primitive::<TimestampMillisecondType>().value(0), 1_700_000_000_123);
        assert_eq!(column("short").as_primitive::<Int16Type>().value(0), 404);
        assert!(
            COLUMNS.iter().all(|column_of| column(column_of.name).is_null(1) && column(column_of.name).is_valid(0))
        );
    }

    #[test]
    fn compressed_rows_are_members_of_a_mebibyte() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.csv.gz");
        // Two lines are a mebibyte. The header is a member.
        let text = vec![b'x'; PACKED_LEN / 2 - 1];
        for ((rows, members), block_rows) in
            [(0, 1), (1, 2), (2, 2), (3, 3), (5, 4)].into_iter().flat_map(|case| [1, 3, 5].map(|rows| (case, rows)))
        {
            let destination = Destination::File(path.clone());
            let mut writer = RowWriter::create(&destination, OutputFormat::Csv, &COLUMNS[..1]).unwrap();
            let mut encoder = RowEncoder::new(OutputFormat::Csv, &COLUMNS[..1]);
            for row in 1..=rows {
                encoder.append(&[PlainValue::Bytes(&text)]);
                if row % block_rows == 0 {
                    writer.append(&encoder.take().unwrap()).unwrap();
                }
            }
            writer.append(&encoder.take().unwrap()).unwrap();
            writer.finish().unwrap();
            let packed = std::fs::read(&path).unwrap();
            assert_eq!(memchr::memmem::find_iter(&packed, b"\x1f\x8b\x08\0").count(), members, "{rows}");
        }
    }

    #[test]
    fn encoders_are_full_after_a_batch() {
        let mut encoder = RowEncoder::new(OutputFormat::Parquet, &COLUMNS[..1]);
        let mut is_full_after = |rows: usize, len: usize| {
            let text = vec![b'x'; len];
            (0..rows).for_each(|_| encoder.append(&[PlainValue::Bytes(&text)]));
            let (is_full, rows) = (encoder.is_full(), encoder.take().unwrap().batch.map(|batch| batch.num_rows()));
            (is_full, rows)
        };
        assert_eq!(is_full_after(BATCH_ROWS - 1, 2), (false, Some(BATCH_ROWS - 1)));
        assert_eq!(is_full_after(BATCH_ROWS, 2), (true, Some(BATCH_ROWS)));
        assert_eq!(is_full_after(2, PACKED_LEN / 2), (true, Some(2)));
        assert_eq!(is_full_after(0, 0), (false, None));
    }
}
