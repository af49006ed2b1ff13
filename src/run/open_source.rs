//! A source that is being cut: [`OpenSource`] detects its charset and format from its first bytes, takes away a
//! byte-order mark and a header, and counts what was cut.

use super::body::{CutOptions, SourceBody};
use super::options::RunOptions;
use super::row_reader::ReadEnd;
use super::summary::Progress;
use crate::encoding::{ByteOrder, Charset, utf16_len};
use crate::input::detect::{ContentType, SNIFF_LEN, TableFormat, content_type};
use crate::input::{Defect, Origin, Source, StoredFile, TableColumns, TableOptions, TableReader};
use crate::iri::FaultKind;
use crate::record::archive::ArchiveParser;
use crate::record::csv::{ColumnChoice, ColumnChoiceError, CsvComments, CsvLayout, CsvOptions};
use crate::record::fields::FieldValues;
use crate::record::json_document::JsonDocumentParser;
use crate::record::json_lines::names_of_first_members;
use crate::record::{
    ArchiveRows, FormatAdvice, FormatOptions, InputFormat, RecordBuffer, SourceFormat, TextFormat, UnsupportedFormat,
    format_of_first_record, is_name_of_format,
};
use crate::remote::{is_table_name, without_query};
use std::sync::Arc;

/// The end of a record that is too long is searched within this many times the length of a record, or [`MIN_LONG_LEN`].
const LONG_RECORDS: usize = 16;
const MIN_LONG_LEN: usize = 64 << 20;

/// Bytes of blank lines that are skipped at a time.
const BLANK_LEN: usize = 64 << 10;

pub(super) const UNMARKED_UTF16: UnsupportedFormat = UnsupportedFormat {
    name: "UTF-16 text without a byte order mark",
    advice: "name its charset with --charset utf-16le or --charset utf-16be",
};
const STREAMED_TABLE: UnsupportedFormat = UnsupportedFormat {
    name: "a Parquet or Arrow file that is compressed, in an archive, or comes from a pipe or standard input",
    advice: "decompress or extract the file, and name it",
};
const EMPTY_TABLE: UnsupportedFormat = UnsupportedFormat {
    name: "an empty file with the name of a Parquet or Arrow file",
    advice: "a table without rows is not empty: fetch the file again",
};
const TABLE_AS_TEXT: UnsupportedFormat =
    UnsupportedFormat { name: "a Parquet or Arrow file", advice: "read it without --format" };

/// The source that is being cut.
pub(super) struct OpenSource {
    /// Number of the source in the list of sources.
    pub(super) number: u32,
    pub(super) name: String,
    /// The name by which the format is recognized.
    pub(super) file_name: String,
    pub(super) body: SourceBody,
    /// The name of its format, once it is known.
    pub(super) format_name: Option<&'static str>,
    /// The format of its text.
    pub(super) format: TextFormat,
    pub(super) is_utf16: bool,
    /// Bytes of the decompressed source that were cut, byte-order mark and header included.
    pub(super) offset: u64,
    /// Bytes of text, byte-order mark and header, that are in no row group.
    pub(super) skipped_len: u64,
    /// Comment lines before the header of a table, and the header.
    pub(super) header_count: u64,
    /// What to try if the format was guessed wrong.
    pub(super) advice: Option<FormatAdvice>,
    file: SourceFile,
    /// Bytes of the file that were reported as read.
    reported: u64,
}

/// Where the bytes of a source are stored.
pub(super) enum SourceFile {
    /// A regular file, or an object.
    Stored(StoredFile),
    /// A member of a ZIP archive.
    Member,
    /// Not in a regular file.
    None,
}

impl SourceFile {
    pub(super) fn of(source: &Source) -> SourceFile {
        match (&source.origin, source.len) {
            (Origin::Path(path), Some(_)) => SourceFile::Stored(StoredFile::Path(path.clone())),
            (Origin::Remote(object), _) => SourceFile::Stored(StoredFile::Remote(object.clone())),
            (Origin::Member(_), _) => SourceFile::Member,
            _ => SourceFile::None,
        }
    }
}

/// The defect of a source that begins with `head`. If the source was read as a table only because the user chose columns, the
/// defect names the format of its records instead.
fn defect_of_content(defect: Defect, csv: &CsvOptions, chosen: &InputFormat, head: &[u8]) -> Defect {
    let Defect::NoColumn(ColumnChoiceError::Missing { chosen: column, .. }) = &defect else { return defect };
    let error = match detect_records(chosen, head) {
        // Other members may be missing.
        Some(TextFormat::JsonLines(_)) => {
            ColumnChoiceError::NoMember { chosen: csv.url.clone(), members: names_of_first_members(head) }
        }
        Some(format) => ColumnChoiceError::OtherFormat { chosen: column.clone(), format: format.name() },
        None => return defect,
    };
    Defect::NoColumn(error)
}

/// Whether a name indicates the format of a source.
pub(super) fn indicates_format(name: &str) -> bool {
    is_name_of_format(name) || is_table_name(name)
}

/// The format that records have by themselves, if the user chose none. If the user chose a column, they are
/// read as a table nevertheless.
fn detect_records(chosen: &InputFormat, head: &[u8]) -> Option<TextFormat> {
    let is_auto = matches!(chosen, InputFormat::Auto(_));
    if is_auto { format_of_first_record(head) } else { None }
}

/// Refuses a number as a column of JSON lines: they have members with names, and were read as a table only because of the number.
fn check_column_numbers(csv: &CsvOptions, chosen: &InputFormat, head: &[u8]) -> Result<(), Defect> {
    let mut columns = [&csv.url, &csv.base].into_iter().flatten();
    let Some(number) = columns.find(|column| matches!(column, ColumnChoice::Number(_))) else { return Ok(()) };
    match detect_records(chosen, head) {
        Some(TextFormat::JsonLines(_)) => Err(Defect::NoColumn(ColumnChoiceError::NumberOfMember(number.clone()))),
        _ => Ok(()),
    }
}

impl OpenSource {
    pub(super) fn new(number: u32, name: String, file: SourceFile, body: SourceBody) -> OpenSource {
        OpenSource {
            number,
            file_name: name.clone(),
            name,
            body,
            format_name: None,
            format: TextFormat::default(),
            is_utf16: false,
            offset: 0,
            skipped_len: 0,
            header_count: 0,
            advice: None,
            file,
            reported: 0,
        }
    }

    /// Detects charset and format, and skips byte-order mark and header.
    pub(super) fn begin(&mut self, options: &CutOptions<'_>) -> Result<(), Defect> {
        match self.begin_charset(options)? {
            Some(table) => self.begin_table(table, options),
            None => self.begin_format(options),
        }
    }

    /// Detects the charset, and skips a byte-order mark. Returns the format if it is a binary table, which has no charset.
    fn begin_charset(&mut self, options: &CutOptions<'_>) -> Result<Option<TableFormat>, Defect> {
        // A defect within these bytes is reported later, after the records before it.
        self.body.fill(SNIFF_LEN);
        if self.body.text().is_empty() && self.body.is_ended() && is_table_name(&self.file_name) {
            return Err(Defect::Unsupported(EMPTY_TABLE));
        }
        if let Some(charset) = options.charset.filter(|charset| !charset.allows_bom_of(self.body.text())) {
            return Err(Defect::ForeignMark(charset.name()));
        }
        let chosen_order = options.charset.and_then(Charset::utf16_byte_order);
        match (content_type(self.body.text()), chosen_order) {
            (ContentType::Utf16(order), _) => self.transcode(order, 2, options),
            (ContentType::Records(0) | ContentType::UnmarkedUtf16(_), Some(order)) => {
                self.transcode(order, 0, options);
            }
            (ContentType::UnmarkedUtf16(_), None) => return Err(Defect::Unsupported(UNMARKED_UTF16)),
            (ContentType::Records(mark_len), _) => self.skip(mark_len),
            (ContentType::Encoding(name), _) => return Err(Defect::Encoding(name)),
            (ContentType::Table(table), _) => return Ok(Some(table)),
            (ContentType::Unsupported(format), _) => return Err(Defect::Unsupported(format)),
        }
        Ok(None)
    }

    /// Detects the format of text, and skips the header of a table.
    fn begin_format(&mut self, options: &CutOptions<'_>) -> Result<(), Defect> {
        let head = self.body.head();
        let format = options.run.format.of_source(&self.file_name, &head);
        self.format_name = format.name(&head);
        if !matches!(format, SourceFormat::Csv(_)) {
            check_charset_columns(self.format_name, options)?;
        }
        self.advice = FormatAdvice::of_source(&format, &head);
        match format {
            SourceFormat::Text(format) => self.format = format,
            SourceFormat::Csv(csv) => {
                check_column_numbers(&csv, &options.run.format, &head)?;
                self.begin_csv(&csv, options)
                    .map_err(|defect| defect_of_content(defect, &csv, &options.run.format, &head))?;
            }
            SourceFormat::Archive(rows) => self.begin_archive(rows, options),
            SourceFormat::Json(layout) => {
                let mut parser = JsonDocumentParser::new(layout, self.offset, options.run.max_record_len);
                parser.set_utf16(self.is_utf16);
                self.body.parse_json(parser);
            }
            SourceFormat::Unsupported(format) => return Err(Defect::Unsupported(format)),
        }
        Ok(())
    }

    fn begin_archive(&mut self, rows: ArchiveRows, options: &CutOptions<'_>) {
        let parser = match rows {
            ArchiveRows::Links => ArchiveParser::of_links(),
            ArchiveRows::Records => {
                let mut parser = ArchiveParser::of_types(options.run.record_types.clone(), options.carry);
                // Positions of captures are known in a file that begins with the first record.
                if self.offset == 0
                    && let Some(base_name) = self.base_name()
                {
                    let name = if options.run.archive_paths { &self.name } else { base_name };
                    parser.set_file(name, self.body.is_compressed());
                }
                parser
            }
        };
        self.body.parse_archive(parser);
    }

    /// The last part of the name of the file, without the query of an address, or of the member.
    fn base_name(&self) -> Option<&str> {
        match self.file {
            SourceFile::Stored(_) => without_query(&self.name).rsplit('/').find(|part| !part.is_empty()),
            SourceFile::Member => self.name.rsplit(['/', '!']).next(),
            SourceFile::None => None,
        }
    }

    /// Opens a table in a binary format.
    fn begin_table(&mut self, format: TableFormat, options: &CutOptions<'_>) -> Result<(), Defect> {
        check_charset_columns(Some(format.name()), options)?;
        let file = match &self.file {
            SourceFile::Stored(file) if !self.body.is_compressed() => file,
            _ => return Err(Defect::Unsupported(STREAMED_TABLE)),
        };
        let columns = match &options.run.format {
            InputFormat::Auto(format) => TableColumns { url: format.csv.url.clone(), base: format.csv.base.clone() },
            _ => return Err(Defect::Unsupported(TABLE_AS_TEXT)),
        };
        let RunOptions { threads, max_record_len, row_group_len: held_len, .. } = *options.run;
        let options = TableOptions { columns, carry: options.carry, threads, max_record_len, held_len };
        let table = match format {
            TableFormat::Parquet => TableReader::parquet(file, &options)?,
            TableFormat::Arrow | TableFormat::ArrowStream => {
                TableReader::arrow(file, format == TableFormat::ArrowStream, &options)?
            }
        };
        self.advice = table.has_input().then_some(FormatAdvice::OwnTable);
        self.body = SourceBody::Rows(Box::new(table));
        self.format_name = Some(format.name());
        Ok(())
    }

    /// Determines the columns of a table by its first record, and skips what is before it and the header.
    fn begin_csv(&mut self, csv: &CsvOptions, options: &CutOptions<'_>) -> Result<(), Defect> {
        let delimiter = csv.delimiter.unwrap_or(b',');
        let format = |quote, columns| TextFormat::Csv(Arc::new(CsvLayout { delimiter, quote, columns }));
        self.format = format(csv.quote.of_table(delimiter), Default::default());
        self.skip_comments(csv, options)?;
        let blank_len = self.skip_blank_lines(options);
        let cut = self.body.cut(blank_len + 1, self.format.quoting(), options);
        if matches!(cut.end, ReadEnd::LongRecord) {
            return Err(Defect::RecordTooLong(options.run.max_record_len));
        }
        let first = csv.read_first(&self.body.text()[..cut.len]).map_err(Defect::NoColumn);
        self.body.return_end(cut.end);
        if let Some(first) = first? {
            let is_own = first.columns.input.is_some();
            let quote = if is_own { csv.quote.of_any_table() } else { csv.quote.of_table(delimiter) };
            self.format = format(quote, first.columns);
            self.header_count += u64::from(first.header_len > 0);
            let of_columns = || first.columns.input.map(|_| FormatAdvice::OwnTable);
            let of_base = || first.base_name.map(FormatAdvice::BaseColumn);
            self.advice = self.advice.take().or_else(of_columns).or_else(of_base);
            self.skip(first.header_len);
        }
        Ok(())
    }

    /// Skips the comments before the header of a table. Their length has a limit, so that only few bytes are read ahead.
    fn skip_comments(&mut self, csv: &CsvOptions, options: &CutOptions<'_>) -> Result<(), Defect> {
        let mut target = 1;
        loop {
            let cut = self.body.cut(target, self.format.quoting(), options);
            let comments = csv.comments(&self.body.text()[..cut.len]);
            let (has_more, is_long) = (matches!(cut.end, ReadEnd::More), matches!(cut.end, ReadEnd::LongRecord));
            self.body.return_end(cut.end);
            match comments {
                Some(CsvComments { len, count }) => {
                    self.header_count = count;
                    self.skip(len);
                    return Ok(());
                }
                // Only comments so far. The target doubles, so that the search stays linear.
                None if has_more => target = cut.len * 2,
                // The record that is too long may be the header.
                None if is_long => return Err(Defect::RecordTooLong(options.run.max_record_len)),
                // The source ends without a header, so that these lines are records.
                None => return Ok(()),
            }
        }
    }

    /// Skips blank lines before the first record of a table while the next [`BLANK_LEN`] bytes are blank, so that any number of
    /// them takes no memory. Returns the length of the blank lines that remain. They belong to the text of the first records.
    fn skip_blank_lines(&mut self, options: &CutOptions<'_>) -> usize {
        loop {
            self.body.fill(BLANK_LEN);
            let text = self.body.text();
            let text = &text[..text.len().min(BLANK_LEN)];
            let blank_len = text.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
            if blank_len < BLANK_LEN {
                return blank_len;
            }
            self.offset += self.source_len(text);
            self.skipped_len += BLANK_LEN as u64;
            self.body.split_off(BLANK_LEN, &options.pool).release();
        }
    }

    /// Takes the next line, which is longer than a record may be: the record has a fault, and its URL is the beginning of
    /// the line.
    ///
    /// # Errors
    /// No end of the line is found.
    pub(super) fn take_long_record(&mut self, options: &CutOptions<'_>) -> Result<RecordBuffer, Defect> {
        let max_len = options.run.max_record_len;
        let mut rows = RecordBuffer::new(options.carry);
        rows.begin(self.offset);
        rows.refuse(FaultKind::TooLong);
        let text = self.body.text();
        rows.push_url(text[..max_len.min(text.len())].split(|&byte| byte == b'\n').next().unwrap_or_default());
        rows.push_fields(&FieldValues::default());
        let most = max_len.saturating_mul(LONG_RECORDS).max(MIN_LONG_LEN);
        let mut rest = most;
        loop {
            let text = self.body.text();
            let line_end = memchr::memchr(b'\n', &text[..rest.min(text.len())]).map(|at| at + 1);
            let len = line_end.unwrap_or(rest.min(text.len()));
            self.offset += self.source_len(&text[..len]);
            self.body.split_off(len, &options.pool).release();
            rest -= len;
            self.body.fill(MIN_LONG_LEN / 256);
            match line_end {
                None if rest == 0 => return Err(Defect::RecordTooLong(most)),
                None if !self.body.text().is_empty() => {}
                _ => return Ok(rows),
            }
        }
    }

    fn skip(&mut self, len: usize) {
        self.offset += self.source_len(&self.body.text()[..len]);
        self.skipped_len += len as u64;
        self.body.skip(len);
    }

    /// Decodes the text as UTF-16 after `mark_len` bytes.
    fn transcode(&mut self, order: ByteOrder, mark_len: usize, options: &CutOptions<'_>) {
        self.is_utf16 = true;
        self.offset += mark_len as u64;
        self.body.transcode(order, mark_len, &options.pool);
    }

    /// Bytes of the source from which `text` was decoded.
    pub(super) fn source_len(&self, text: &[u8]) -> u64 {
        if self.is_utf16 { utf16_len(text) as u64 } else { text.len() as u64 }
    }

    /// Reports the bytes that were read since the last call. The row groups of a Parquet file may be in any order.
    pub(super) fn report(&mut self, progress: &Progress) {
        let position = self.body.file_position().unwrap_or(self.offset).max(self.reported);
        progress.add_read(position - self.reported);
        self.reported = position;
    }
}

/// Refuses columns of charsets for a source of a format that has none.
fn check_charset_columns(format: Option<&'static str>, options: &CutOptions<'_>) -> Result<(), Defect> {
    let InputFormat::Auto(FormatOptions { csv, .. }) = &options.run.format else { return Ok(()) };
    match (csv.charset.as_ref().or(csv.query_charset.as_ref()), format) {
        (Some(chosen), Some(format)) => {
            Err(Defect::NoColumn(ColumnChoiceError::NoCharsets { chosen: chosen.clone(), format }))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::row_reader::{RowReader, RowsRead};
    use super::*;
    use crate::record::archive::BatchLimits;
    use crate::record::fields::FieldSet;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Is at a position that the test sets.
    struct PositionReader(Arc<AtomicU64>);

    impl RowReader for PositionReader {
        fn read_rows(&mut self, _: FieldSet, _: BatchLimits) -> RowsRead {
            unreachable!("the test reads no rows")
        }

        fn file_position(&self) -> u64 {
            self.0.load(Ordering::Relaxed)
        }

        fn is_compressed(&self) -> bool {
            false
        }
    }

    #[test]
    fn positions_that_go_back_are_not_reported() {
        let (position, progress) = (Arc::new(AtomicU64::new(0)), Progress::new());
        let body = SourceBody::Rows(Box::new(PositionReader(Arc::clone(&position))));
        let mut source = OpenSource::new(0, "x".into(), SourceFile::None, body);
        for (at, reported) in [(50, 50), (4, 50), (30, 50), (80, 80)] {
            position.store(at, Ordering::Relaxed);
            source.report(&progress);
            assert_eq!(progress.read(), reported);
        }
    }
}
