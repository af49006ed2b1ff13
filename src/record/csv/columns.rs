//! Which columns hold the URL, its base and charsets, and whether the first record is a header. In: the first record of a source
//! and what was asked for. Out: [`Columns`]. Each source is judged by its own first record.
//!
//! Is the first record a header?
//! - A column asked for by name: yes, and the name must be there (case decides, unless only another case is there).
//! - Otherwise: yes if one of its fields is a known name, or if neither its URL field nor its base field begins with a
//!   scheme (`ALPHA *( ALPHA / DIGIT / "+" / "-" / "." ) ":"`, RFC 3986 section 3.1). Columns of relative references
//!   without a base column, and without a header, want [`Header::No`].
//!
//! Which column, if none was asked for? The first known name that is there, in the order of [`KNOWN`]; else the only
//! column besides those asked for; else it has to be asked for.

use bstr::ByteSlice;
use csv::ByteRecord;
use std::fmt;
use thiserror::Error;

/// Names of columns that are taken for the URL, in this order, whatever their case.
pub const KNOWN: [&str; 9] = ["url", "uri", "iri", "original_url", "target", "href", "link", "location", "relative"];

/// A column, as a person names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Column {
    /// By its name in the header.
    Name(String),
    /// By its number, counted from 1.
    Number(usize),
}

impl Column {
    /// Digits are a number, all else is a name.
    ///
    /// ```
    /// use irikey::record::csv::Column;
    /// assert_eq!(Column::parse("2"), Column::Number(2));
    /// assert_eq!(Column::parse("url"), Column::Name("url".to_string()));
    /// ```
    pub fn parse(text: &str) -> Column {
        match text.parse() {
            Ok(number) if text.bytes().all(|byte| byte.is_ascii_digit()) => Column::Number(number),
            _ => Column::Name(text.to_string()),
        }
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Column::Name(name) => write!(f, "{name:?}"),
            Column::Number(number) => write!(f, "number {number}"),
        }
    }
}

/// Whether sources begin with a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Header {
    /// Judge by the first record; see the head of this file.
    #[default]
    Sniff,
    /// The first record is data.
    No,
}

/// What is asked of CSV sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvOptions {
    /// Between fields: `,` or, in TSV, a tab. Neither a quote nor `CR` nor `LF`.
    pub delimiter: u8,
    /// The URL's column.
    pub url: Option<Column>,
    /// The base's column.
    pub base: Option<Column>,
    /// The column with the label of the charset that the record is written in.
    pub charset: Option<Column>,
    /// The column with the label of the charset of the document that the URL stood in.
    pub query_charset: Option<Column>,
    /// Whether there is a header.
    pub header: Header,
}

impl Default for CsvOptions {
    fn default() -> CsvOptions {
        CsvOptions { delimiter: b',', url: None, base: None, charset: None, query_charset: None, header: Header::Sniff }
    }
}

/// Columns of a source, counted from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// The URL's.
    pub url: usize,
    /// The base's, if there is one.
    pub base: Option<usize>,
    /// The charset's, likewise.
    pub charset: Option<usize>,
    /// The document's charset's, likewise.
    pub query_charset: Option<usize>,
}

/// Columns cannot be settled.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ColumnsError {
    /// It is not there.
    #[error("there is no column {wanted}; the columns are {columns}")]
    Missing {
        /// As asked for.
        wanted: Column,
        /// What there is.
        columns: String,
    },
    /// None was asked for, and none suggests itself.
    #[error("which column holds the URL? Choose one with --column NAME or NUMBER; the columns are {0}")]
    Unclear(String),
    /// A name, but no header to find it in.
    #[error("column {0} is asked for by name, but --no-header says that there are no names; give its number")]
    NameWithoutHeader(Column),
    /// The delimiter cannot be told from quotes and ends of records.
    #[error("the delimiter must be one byte other than '\"', CR and LF")]
    Delimiter,
}

/// What the first record of a source told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct First {
    /// Where the fields are.
    pub columns: Columns,
    /// Bytes of the header, up to the next record; 0 without one.
    pub header_len: usize,
}

impl CsvOptions {
    /// Judges `bytes`, the beginning of a source up to the end of a record. `None` if there are only blank lines.
    ///
    /// # Errors
    /// The columns asked for are not there, or none was and none suggests itself.
    pub fn first(&self, bytes: &[u8]) -> Result<Option<First>, ColumnsError> {
        if matches!(self.delimiter, b'"' | b'\r' | b'\n') {
            return Err(ColumnsError::Delimiter);
        }
        let prefix = super::guard(bytes);
        let mut reader = self.reader(prefix, bytes);
        let mut record = ByteRecord::new();
        // As in `Csv::decode`: there is no error to be had from memory.
        if !reader.read_byte_record(&mut record).unwrap_or(false) {
            return Ok(None);
        }
        let record_end = (reader.position().byte() as usize).saturating_sub(prefix.len());
        let (columns, is_header) = self.judge(&record)?;
        Ok(Some(First { columns, header_len: if is_header { record_end } else { 0 } }))
    }

    /// The columns by the source's first record, and whether it is a header.
    fn judge(&self, record: &ByteRecord) -> Result<(Columns, bool), ColumnsError> {
        let find = |column: &Option<Column>| column.as_ref().map(|column| self.find(column, record)).transpose();
        let (base, charset, query_charset) = (find(&self.base)?, find(&self.charset)?, find(&self.query_charset)?);
        let url = match &self.url {
            Some(column) => self.find(column, record)?,
            None => self.guess(record, [base, charset, query_charset])?,
        };
        let columns = Columns { url, base, charset, query_charset };
        if self.header == Header::No {
            return Ok((columns, false));
        }
        let asked = [&self.url, &self.base, &self.charset, &self.query_charset];
        let is_named = asked.into_iter().any(|column| matches!(column, Some(Column::Name(_))));
        let is_known = record.iter().any(|field| KNOWN.iter().any(|name| is_name(field, name)));
        let is_data = [Some(url), base].into_iter().flatten().any(|i| record.get(i).is_some_and(has_scheme));
        Ok((columns, is_named || is_known || !is_data))
    }

    fn find(&self, column: &Column, record: &ByteRecord) -> Result<usize, ColumnsError> {
        let found = match column {
            Column::Number(number) => number.checked_sub(1).filter(|&i| i < record.len()),
            Column::Name(_) if self.header == Header::No => {
                return Err(ColumnsError::NameWithoutHeader(column.clone()));
            }
            Column::Name(name) => {
                let exact = record.iter().position(|field| field == name.as_bytes());
                exact.or_else(|| record.iter().position(|field| is_name(field, name)))
            }
        };
        found.ok_or_else(|| ColumnsError::Missing { wanted: column.clone(), columns: describe(record) })
    }

    fn guess(&self, record: &ByteRecord, others: [Option<usize>; 3]) -> Result<usize, ColumnsError> {
        let known = |name: &&str| record.iter().position(|field| is_name(field, name));
        if let Some(i) = KNOWN.iter().find_map(known).filter(|_| self.header != Header::No) {
            return Ok(i);
        }
        let mut rest = (0..record.len()).filter(|&i| !others.contains(&Some(i)));
        match (rest.next(), rest.next()) {
            (Some(only), None) => Ok(only),
            _ => Err(ColumnsError::Unclear(describe(record))),
        }
    }
}

fn is_name(field: &[u8], name: &str) -> bool {
    field.trim_ascii().eq_ignore_ascii_case(name.as_bytes())
}

/// The field begins with a scheme and its colon.
fn has_scheme(field: &[u8]) -> bool {
    let field = field.trim_ascii_start();
    let Some(colon) = field.iter().position(|&byte| byte == b':') else { return false };
    let is_tail = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    field[0].is_ascii_alphabetic() && field[..colon].iter().all(is_tail)
}

/// The fields of a first record for a person: numbers and the beginnings of what stands there.
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
        let column = |text: &str| (!text.is_empty()).then(|| Column::parse(text));
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
            let got = options(url, base).first(&line.as_bytes()[..line.len() - 4]);
            match (got, want) {
                (Ok(Some(first)), Some((url, base, is_header))) => {
                    assert_eq!(first.columns, Columns { url, base, ..Columns::default() }, "{record}");
                    assert_eq!(first.header_len > 0, is_header, "{record}");
                }
                (Err(error), None) => assert!(!error.to_string().is_empty()),
                (got, want) => panic!("{url} {base} {record}: {got:?}, not {want:?}"),
            }
        }
    }

    #[test]
    fn without_a_header() {
        let no = |url, base| CsvOptions { header: Header::No, ..options(url, base) };
        let first = no("", "").first(b"relative\n").unwrap().unwrap();
        assert_eq!(first, First { columns: Columns::default(), header_len: 0 });
        assert!(matches!(no("url", "").first(b"url\n"), Err(ColumnsError::NameWithoutHeader(_))));
        assert!(matches!(no("", "").first(b"url,x\n"), Err(ColumnsError::Unclear(_))));
        assert_eq!(no("", "").first(b"\r\n\n"), Ok(None));
    }

    #[test]
    fn errors_list_the_columns() {
        let error = options("adress", "").first(b"when,url\n").unwrap_err().to_string();
        assert_eq!(error, "there is no column \"adress\"; the columns are 1 \"when\", 2 \"url\"");
    }
}
