//! Which columns of a table hold the URL, its base and its charsets, and whether the first record is a header. Each source
//! is judged by its own first record.
//!
//! Is the first record a header?
//! - If a column was chosen by name: yes, and the name must exist. It is compared exactly; if there is no such name, without
//!   regard to case.
//! - Otherwise: yes if one of its fields is a known name, or if neither its URL field nor its base field begins with a
//!   scheme (`ALPHA *( ALPHA / DIGIT / "+" / "-" / "." ) ":"`, RFC 3986 section 3.1). A table of relative references
//!   without base column and header needs [`CsvHeader::Absent`].
//!
//! Which column holds the URL if none was chosen? The first name of [`URL_COLUMN_NAMES`] that exists; otherwise the only
//! column besides the chosen ones; otherwise the user has to choose.

use super::fields::{CsvField, CsvFieldReader, build_reader};
use crate::iri::find_scheme;
use crate::kernel::strip_prefix_ignoring_case;
use crate::record::boundary::{Boundary, Quoting};
use crate::record::buffer::without_cr;
use bstr::ByteSlice;
use csv::ByteRecord;
use std::fmt;
use thiserror::Error;

/// Names of columns that hold URLs, in order of preference, in any case.
pub(crate) const URL_COLUMN_NAMES: [&str; 9] =
    ["url", "uri", "iri", "original_url", "target", "href", "link", "location", "relative"];

/// Delimiters that are detected, in order of preference.
const DELIMITERS: [u8; 4] = *b",;\t|";

/// Names of columns that usually hold the base of relative references.
const BASE_COLUMN_NAMES: [&str; 6] = ["base", "base_url", "page", "page_url", "source_url", "referrer"];

/// Maximum number of fields of a first record.
const MAX_COLUMNS: usize = 1 << 16;

/// A column, as the user chooses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnChoice {
    /// By its name in the header.
    Name(String),
    /// By its number, from 1.
    Number(usize),
}

impl ColumnChoice {
    /// Parses digits as a number and any other text as a name.
    ///
    /// ```
    /// use irikey::record::csv::ColumnChoice;
    /// assert_eq!(ColumnChoice::parse("2"), ColumnChoice::Number(2));
    /// assert_eq!(ColumnChoice::parse("url"), ColumnChoice::Name("url".to_string()));
    /// ```
    pub fn parse(text: &str) -> ColumnChoice {
        match text.parse() {
            Ok(number) if text.bytes().all(|byte| byte.is_ascii_digit()) => ColumnChoice::Number(number),
            _ => ColumnChoice::Name(text.to_string()),
        }
    }
}

impl fmt::Display for ColumnChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ColumnChoice::Name(name) => write!(f, "{name:?}"),
            ColumnChoice::Number(number) => write!(f, "number {number}"),
        }
    }
}

/// Whether sources begin with a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CsvHeader {
    /// Detect it by the first record.
    #[default]
    Detect,
    /// The first record is data.
    Absent,
}

/// The byte around fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CsvQuote {
    /// `"`, unless the delimiter is a tab: TSV has no quotes.
    #[default]
    ByDelimiter,
    /// Quotes are ordinary bytes.
    Absent,
    /// This byte, which is not the delimiter, `CR` or `LF`.
    Byte(u8),
}

impl CsvQuote {
    /// The quote of a table with this delimiter.
    pub(crate) fn of_table(self, delimiter: u8) -> Option<u8> {
        match self {
            CsvQuote::ByDelimiter => (delimiter != b'\t').then_some(b'"'),
            CsvQuote::Absent => None,
            CsvQuote::Byte(quote) => Some(quote),
        }
    }

    /// The quote of a table that may have quotes whatever its delimiter is: it is not known yet, or irikey wrote the table.
    pub(crate) fn of_any_table(self) -> Option<u8> {
        self.of_table(b',')
    }
}

/// What the user chooses for tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CsvOptions {
    /// The byte between fields, not a quote, `CR` or `LF`. If it is not chosen, it is a comma, or what separates the
    /// fields of the header.
    pub delimiter: Option<u8>,
    /// The byte around fields.
    pub quote: CsvQuote,
    /// The column of the URL.
    pub url: Option<ColumnChoice>,
    /// The column of the base.
    pub base: Option<ColumnChoice>,
    /// The column of the label of the charset in which the record is written.
    pub charset: Option<ColumnChoice>,
    /// The column of the label of the charset of the document that contained the URL.
    pub query_charset: Option<ColumnChoice>,
    /// Whether there is a header.
    pub header: CsvHeader,
}

/// The columns of a source, counted from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CsvColumns {
    /// The column of the URL.
    pub url: usize,
    /// The column with the texts of records whose URL is empty, as in tables of this program: `input` beside `uri`.
    pub input: Option<usize>,
    /// The column of the base, if there is one.
    pub base: Option<usize>,
    /// The column of the charset, if there is one.
    pub charset: Option<usize>,
    /// The column of the charset of the document, if there is one.
    pub query_charset: Option<usize>,
}

/// Why the columns of a source cannot be determined.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ColumnChoiceError {
    /// A chosen column does not exist.
    #[error("there is no column {chosen}; the columns are {columns}")]
    Missing {
        /// The chosen column.
        chosen: ColumnChoice,
        /// The columns of the source.
        columns: String,
    },
    /// The records are JSON lines, and the first ones have no text in the member that was chosen for the URL. Without one, they
    /// have none in a member of a known name.
    #[error(
        "the records are JSON lines, and none of the first ones has a text in {}; the members of the first one are {members}; \
         choose one with --column, or add --format jsonl if later records have it",
        name_of_member(chosen.as_ref())
    )]
    NoMember {
        /// The chosen member.
        chosen: Option<ColumnChoice>,
        /// The members of the first record.
        members: String,
    },
    /// A member of JSON lines was chosen by a number.
    #[error("column {0}: JSON lines have members, not columns; choose one by its name")]
    NumberOfMember(ColumnChoice),
    /// A chosen column does not exist, because the source is not a table.
    #[error(
        "there is no column {chosen}, because the records look like {format}; leave out the flags that choose columns"
    )]
    OtherFormat {
        /// The chosen column.
        chosen: ColumnChoice,
        /// The name of the format of the source.
        format: &'static str,
    },
    /// A column of charsets was chosen, but the records of the source have none.
    #[error(
        "column {chosen} is chosen for charsets, which records of the format {format} do not have; leave out --charset-column and \
         --query-charset-column, or name the charset of all records with --charset or --query-charset"
    )]
    NoCharsets {
        /// The chosen column.
        chosen: ColumnChoice,
        /// The name of the format of the source.
        format: &'static str,
    },
    /// No column was chosen, and several may hold the URL.
    #[error("cannot tell which column holds the URL; choose one with --column NAME or NUMBER; the columns are {0}")]
    Unclear(String),
    /// A column was chosen by name, but there is no header.
    #[error("column {0} is chosen by name, but with --no-header columns have no names; choose it by number")]
    NameWithoutHeader(ColumnChoice),
    /// The first record has more fields than any table.
    #[error("the first record has more than {MAX_COLUMNS} fields; check that this is a table")]
    TooMany,
    /// Delimiter and quote are equal, or one of them is a line end.
    #[error("delimiter and quote must be two different bytes other than CR and LF")]
    Delimiter,
}

fn name_of_member(chosen: Option<&ColumnChoice>) -> String {
    chosen.map_or("a member that usually holds a URL".to_string(), |chosen| format!("a member {chosen}"))
}

/// What the first record of a source determines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvFirstRecord {
    /// Where the fields are.
    pub columns: CsvColumns,
    /// Bytes of the header up to the next record; 0 without a header.
    pub header_len: usize,
    /// A column of the header that usually holds the base, if none was chosen.
    pub base_name: Option<&'static str>,
}

impl CsvOptions {
    /// Reads the first record in `bytes`, the beginning of a source up to the end of a record or of the source. `None` if all
    /// lines are blank. A first record whose quote is not closed is its first line, as it is for [`Csv`](super::Csv).
    ///
    /// # Errors
    /// A chosen column does not exist, or none was chosen and several may hold the URL.
    pub fn read_first(&self, bytes: &[u8]) -> Result<Option<CsvFirstRecord>, ColumnChoiceError> {
        let delimiter = self.delimiter.unwrap_or(b',');
        let quote = self.quote.of_table(delimiter);
        if quote == Some(delimiter) || [Some(delimiter), quote].iter().any(|byte| matches!(byte, Some(b'\r' | b'\n'))) {
            return Err(ColumnChoiceError::Delimiter);
        }
        let quoting = quote.map(|quote| Quoting { quote, delimiter });
        let broken = Boundary::new(quoting, usize::MAX).find_broken(bytes);
        let bytes = broken.map_or(bytes, |line| &bytes[..line.end]);
        let (mut reader, mut buffer) = (build_reader(delimiter, quote), Vec::new());
        let mut reader = CsvFieldReader::new(&mut reader, bytes, &mut buffer);
        let mut record = ByteRecord::new();
        loop {
            let Some(CsvField { value, ends_record }) = reader.next() else { return Ok(None) };
            if record.len() == MAX_COLUMNS {
                return Err(ColumnChoiceError::TooMany);
            }
            record.push_field(value);
            if ends_record {
                break;
            }
        }
        let record_end = reader.position();
        let (columns, is_header) = self.judge(&record)?;
        let has = |name: &&str| record.iter().any(|field| is_name(field, name));
        let base_name = BASE_COLUMN_NAMES.into_iter().find(has).filter(|_| is_header && self.base.is_none());
        Ok(Some(CsvFirstRecord { columns, header_len: if is_header { record_end } else { 0 }, base_name }))
    }

    /// The options with this delimiter, unless the user chose one.
    pub(crate) fn with_default_delimiter(&self, delimiter: Option<u8>) -> CsvOptions {
        CsvOptions { delimiter: self.delimiter.or(delimiter), ..self.clone() }
    }

    /// The delimiter: the chosen one, otherwise the one that the first line states, otherwise the first of [`DELIMITERS`] that
    /// separates a known or chosen name from the rest of the header, otherwise a comma. `head` is the beginning of the source.
    pub(crate) fn delimiter_of(&self, head: &[u8]) -> u8 {
        let comments = self.comments(head).unwrap_or_default();
        let mut lines = head[comments.len..].split(|byte| *byte == b'\n');
        let header = lines.find(|line| !line.trim_ascii().is_empty()).unwrap_or_default();
        let detected = || DELIMITERS.into_iter().find(|delimiter| self.separates_name(header, *delimiter));
        let chosen = self.delimiter.or_else(|| stated_delimiter(head));
        chosen.or_else(|| detected().filter(|_| self.header == CsvHeader::Detect)).unwrap_or(b',')
    }

    /// Whether a line has the name of a column of URLs or of a chosen column, between delimiters of any kind.
    pub(super) fn names_column(&self, line: &[u8]) -> bool {
        DELIMITERS.into_iter().chain(self.delimiter).any(|delimiter| self.separates_name(line, delimiter))
    }

    /// The names of chosen columns; others are chosen by their numbers.
    fn chosen_names(&self) -> impl Iterator<Item = &str> {
        let columns = [&self.url, &self.base, &self.charset, &self.query_charset];
        columns.into_iter().filter_map(|column| match column {
            Some(ColumnChoice::Name(name)) => Some(&name[..]),
            _ => None,
        })
    }

    fn separates_name(&self, line: &[u8], delimiter: u8) -> bool {
        let quote = self.quote.of_any_table();
        let has_name = |field: &[u8]| {
            let field = without_quote(field, quote);
            is_url_name(field) || self.chosen_names().any(|name| is_name(field, name))
        };
        line.split(|byte| *byte == delimiter).any(has_name)
    }

    /// The columns, and whether the first record is a header.
    fn judge(&self, record: &ByteRecord) -> Result<(CsvColumns, bool), ColumnChoiceError> {
        let find = |column: &Option<ColumnChoice>| column.as_ref().map(|column| self.find(column, record)).transpose();
        let (base, charset, query_charset) = (find(&self.base)?, find(&self.charset)?, find(&self.query_charset)?);
        let url = match &self.url {
            Some(column) => self.find(column, record)?,
            None => self.guess(record, [base, charset, query_charset])?,
        };
        let columns = CsvColumns { url, input: None, base, charset, query_charset };
        if self.header == CsvHeader::Absent {
            return Ok((columns, false));
        }
        let is_named = self.chosen_names().next().is_some();
        let is_known = record.iter().any(is_url_name);
        let has_scheme = |field: &[u8]| find_scheme(field.trim_ascii_start()).is_some();
        let is_data = [Some(url), base].into_iter().flatten().any(|i| record.get(i).is_some_and(has_scheme));
        let is_header = is_named || is_known || !is_data;
        let input = input_column(record, url).filter(|_| is_header);
        Ok((CsvColumns { input, ..columns }, is_header))
    }

    fn find(&self, column: &ColumnChoice, record: &ByteRecord) -> Result<usize, ColumnChoiceError> {
        let found = match column {
            ColumnChoice::Number(number) => number.checked_sub(1).filter(|&i| i < record.len()),
            ColumnChoice::Name(_) if self.header == CsvHeader::Absent => {
                return Err(ColumnChoiceError::NameWithoutHeader(column.clone()));
            }
            ColumnChoice::Name(name) => {
                let exact = record.iter().position(|field| field == name.as_bytes());
                exact.or_else(|| record.iter().position(|field| is_name(field, name)))
            }
        };
        found.ok_or_else(|| ColumnChoiceError::Missing { chosen: column.clone(), columns: describe(record) })
    }

    fn guess(&self, record: &ByteRecord, others: [Option<usize>; 3]) -> Result<usize, ColumnChoiceError> {
        let known = |name: &&str| record.iter().position(|field| is_name(field, name));
        if let Some(i) = URL_COLUMN_NAMES.iter().find_map(known).filter(|_| self.header != CsvHeader::Absent) {
            return Ok(i);
        }
        let mut rest = (0..record.len()).filter(|&i| !others.contains(&Some(i)));
        match (rest.next(), rest.next()) {
            (Some(only), None) => Ok(only),
            _ => Err(ColumnChoiceError::Unclear(describe(record))),
        }
    }
}

/// The column `input` of a header whose column of URLs is `uri`, if there is one.
fn input_column(header: &ByteRecord, url: usize) -> Option<usize> {
    let mut named = header.iter().enumerate().filter(|(_, field)| *field == b"input").map(|(i, _)| i);
    let (input, None) = (named.next()?, named.next()) else { return None };
    (header.get(url) == Some(b"uri")).then_some(input)
}

/// The delimiter that the first line of `bytes` states: `sep=;`. Excel reads and writes such a line.
pub(super) fn stated_delimiter(bytes: &[u8]) -> Option<u8> {
    let line = without_cr(&bytes[..memchr::memchr(b'\n', bytes)?]);
    match *strip_prefix_ignoring_case(without_quotes(line), b"sep=")? {
        [delimiter] if delimiter != b'"' && !delimiter.is_ascii_alphanumeric() => Some(delimiter),
        _ => None,
    }
}

/// Returns a field of a line that was split at delimiters, without white space and `"` around it.
pub(crate) fn without_quotes(field: &[u8]) -> &[u8] {
    without_quote(field, Some(b'"'))
}

/// [`without_quotes`] for tables with this quote, if they have one.
fn without_quote(field: &[u8], quote: Option<u8>) -> &[u8] {
    let field = field.trim_ascii();
    let quote = quote.as_slice();
    field.strip_prefix(quote).and_then(|field| field.strip_suffix(quote)).unwrap_or(field)
}

fn is_url_name(field: &[u8]) -> bool {
    URL_COLUMN_NAMES.iter().any(|name| is_name(field, name))
}

fn is_name(field: &[u8], name: &str) -> bool {
    field.trim_ascii().eq_ignore_ascii_case(name.as_bytes())
}

/// The fields of a first record for an error message: numbers and the beginnings of the fields.
fn describe(record: &ByteRecord) -> String {
    let name = |(i, field): (usize, &[u8])| {
        let short = field[..field.len().min(40)].as_bstr();
        format!("{} {short:?}{}", i + 1, if field.len() > 40 { "..." } else { "" })
    };
    let mut names: Vec<String> = record.iter().enumerate().take(40).map(name).collect();
    if record.len() > 40 {
        names.push(format!("... {}", record.len()));
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(url: &str, base: &str) -> CsvOptions {
        let column = |text: &str| (!text.is_empty()).then(|| ColumnChoice::parse(text));
        CsvOptions { url: column(url), base: column(base), ..CsvOptions::default() }
    }

    #[test]
    fn columns_and_headers() {
        // (url, base, first record, (url column, base column, is header))
        let cases = [
            ("", "", "http://a/", Some((0, None, false))),
            ("", "", "anything", Some((0, None, true))),
            ("", "", "time,URL,status", Some((1, None, true))),
            ("", "", "href,url", Some((1, None, true))),
            ("", "base", "base,relative", Some((1, Some(0), true))),
            ("", "1", "http://a/,../b", Some((1, Some(0), false))),
            ("", "1", "page,ref", Some((1, Some(0), true))),
            ("2", "", "1,http://a/", Some((1, None, false))),
            ("2", "", "1,../b", Some((1, None, true))),
            ("2", "1", "http://a/,../b", Some((1, Some(0), false))),
            ("Seen", "", "seen,at", Some((0, None, true))),
            ("seen", "", "Seen,seen", Some((1, None, true))),
            ("x", "", "url,y", None),
            ("3", "", "url,y", None),
            ("0", "", "url,y", None),
            ("", "", "x,y", None),
            ("", "", "http://a/,http://b/", None),
        ];
        for (url, base, record, want) in cases {
            let line = format!("\n{record}\r\nnext");
            let got = options(url, base).read_first(&line.as_bytes()[..line.len() - 4]);
            match (got, want) {
                (Ok(Some(first)), Some((url, base, is_header))) => {
                    assert_eq!(first.columns, CsvColumns { url, base, ..CsvColumns::default() }, "{record}");
                    assert_eq!(first.header_len > 0, is_header, "{record}");
                }
                (Err(error), None) => assert!(!error.to_string().is_empty()),
                (got, want) => panic!("{url} {base} {record}: {got:?}, not {want:?}"),
            }
        }
    }

    #[test]
    fn input_is_read_beside_uri() {
        let input_of = |url: &str, header: CsvHeader, record: &str| {
            let options = CsvOptions { header, ..options(url, "") };
            options.read_first(format!("{record}\n").as_bytes()).unwrap().unwrap().columns.input
        };
        for url in ["", "uri", "3"] {
            assert_eq!(input_of(url, CsvHeader::Detect, "record,input,uri,key"), Some(1), "{url}");
        }
        for record in ["input,x,input,uri", "input,x,url,uri", "Input,x,uri", "input,x,URI", "http://a/,input,uri"] {
            let url = if record.contains("http") { "1" } else { "" };
            assert_eq!(input_of(url, CsvHeader::Detect, record), None, "{record}");
        }
        assert_eq!(input_of("2", CsvHeader::Absent, "input,uri"), None);
    }

    #[test]
    fn without_a_header() {
        let no = |url, base| CsvOptions { header: CsvHeader::Absent, ..options(url, base) };
        let first = no("", "").read_first(b"relative\n").unwrap().unwrap();
        assert_eq!(first, CsvFirstRecord { columns: CsvColumns::default(), header_len: 0, base_name: None });
        assert!(matches!(no("url", "").read_first(b"url\n"), Err(ColumnChoiceError::NameWithoutHeader(_))));
        assert!(matches!(no("", "").read_first(b"url,x\n"), Err(ColumnChoiceError::Unclear(_))));
        assert_eq!(no("", "").read_first(b"\r\n\n"), Ok(None));
    }

    #[test]
    fn a_first_record_with_an_unclosed_quote_is_its_first_line() {
        // (first line, whether it is a header)
        let cases = [
            ("url,\"note\n", true),
            ("\n\r\nurl,\"note\r\n", true),
            ("\"url\n", true),
            ("url,\"a\"\"\n", true),
            ("\"http://x/\n", false),
        ];
        for (line, is_header) in cases {
            for rest in ["", "http://a/,1\nhttp://b/,2\n", "http://a/,\"x\"\n", "http://a/,\"x\",\"y\n", "\"\"x\n"] {
                let first = options("", "").read_first(format!("{line}{rest}").as_bytes()).unwrap().unwrap();
                assert_eq!(first.columns, CsvColumns::default(), "{line:?} {rest:?}");
                assert_eq!(first.header_len, if is_header { line.len() } else { 0 }, "{line:?} {rest:?}");
            }
        }
        let closed = "url,\"a\nb\"\n";
        for rest in ["", "http://a/,\"x\nhttp://b/\n"] {
            let first = options("", "").read_first(format!("{closed}{rest}").as_bytes()).unwrap().unwrap();
            assert_eq!(first.header_len, closed.len(), "{rest:?}");
        }
        let error = options("url", "").read_first(b"\"id,url\n1,http://a/\n").unwrap_err().to_string();
        assert_eq!(error, "there is no column \"url\"; the columns are 1 \"id,url\\n\"");
    }

    #[test]
    fn the_delimiter_is_detected_between_chosen_quotes() {
        let delimiter = |quote: CsvQuote, header: &str| {
            let options = CsvOptions { quote, ..CsvOptions::default() };
            char::from(options.delimiter_of(format!("{header}\nx\n").as_bytes()))
        };
        let single = CsvQuote::Byte(b'\'');
        let cases = [
            (CsvQuote::ByDelimiter, "\"id\";\"url\"", ';'),
            (CsvQuote::ByDelimiter, "'id';'url'", ','),
            (single, "'id';'url'", ';'),
            (single, "'id'|'url'\r", '|'),
            (single, "id;url", ';'),
            (single, "\"id\";\"url\"", ','),
            (CsvQuote::Absent, "id\turl", '\t'),
            (CsvQuote::Absent, "\"id\";\"url\"", ','),
        ];
        for (quote, header, expected) in cases {
            assert_eq!(delimiter(quote, header), expected, "{quote:?} {header:?}");
        }
    }

    #[test]
    fn a_first_record_has_a_limit() {
        let fields = |count: usize| format!("url{}\n", ",".repeat(count - 1));
        let first = |count| CsvOptions::default().read_first(fields(count).as_bytes());
        assert!(first(MAX_COLUMNS).is_ok());
        assert_eq!(first(MAX_COLUMNS + 1), Err(ColumnChoiceError::TooMany));
    }

    #[test]
    fn errors_list_the_columns() {
        let error = options("adress", "").read_first(b"when,url\n").unwrap_err().to_string();
        assert_eq!(error, "there is no column \"adress\"; the columns are 1 \"when\", 2 \"url\"");
    }
}
