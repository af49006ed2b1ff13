//! CDX: lines of columns between single spaces, named by letters in a header line. In: a chunk of whole lines. Out: the
//! records and what they carry, all of it spans of the chunk.
//!
//! URLs and redirects are written as they came, so a space in one makes a column more. Such a line is read from both
//! ends: what must look like a time, a type, a status, a digest or a number does, and what is left over belongs to the
//! redirect, else to the URL. A line with fewer columns than the header promised is read as one of the shapes that were
//! ever common (9, 10 or 11). What fits nothing is a record with a fault, the line being its URL. Header lines are counted; they and blank
//! lines are no records.

use super::collected::{Collected, lines};
use super::fields::{FieldSet, FieldValues};
use super::{Records, Span, time};
use crate::iri::{CLASSIFIER, FaultKind};
use crate::kernel::{Bitmaps, ByteSet};
use std::str::FromStr;

/// Bytes of digests, in any of their notations.
const DIGEST: ByteSet =
    ByteSet::range(b'a', b'z').or(ByteSet::range(b'A', b'Z')).or(ByteSet::range(b'0', b'9')).or(ByteSet::of(b":+/=_-"));

/// A line with more columns than this is not tried in every way.
const MOST_FIELDS: usize = 128;

/// What the columns of a file hold, by the letters of its header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CdxColumns(Vec<u8>);

impl Default for CdxColumns {
    fn default() -> CdxColumns {
        CdxColumns(b"NbamskrMSVg".to_vec())
    }
}

impl CdxColumns {
    /// The columns that a header line names: ` CDX N b a m s k r M S V g`. `None` if it is no header, or names no URL.
    ///
    /// ```
    /// use irikey::record::cdx::CdxColumns;
    /// assert_eq!(CdxColumns::of_header(b" CDX N b a m s k r M S V g\n"), Some(CdxColumns::default()));
    /// assert_eq!(CdxColumns::of_header(b"com,example)/ 20140103030321"), None);
    /// ```
    pub fn of_header(line: &[u8]) -> Option<CdxColumns> {
        let letters = header_letters(line)?;
        let columns: Vec<u8> = letters.filter(|letter| !letter.is_empty()).map(|letter| letter[0]).collect();
        columns.contains(&b'a').then_some(CdxColumns(columns))
    }
}

fn header_letters(line: &[u8]) -> Option<impl Iterator<Item = &[u8]>> {
    Some(line.trim_ascii_start().strip_prefix(b"CDX ")?.trim_ascii_end().split(|&byte| byte == b' '))
}

/// Decoder of CDX; keeps the memory of its spans.
#[derive(Debug, Default)]
pub struct Cdx {
    columns: CdxColumns,
    found: Collected,
    tokens: Vec<Span>,
}

impl Cdx {
    /// The chunks that follow have these fields.
    pub fn set_carry(&mut self, carry: FieldSet) {
        self.found.set_carry(carry);
    }

    /// The chunks that follow have these columns.
    pub fn set_columns(&mut self, columns: &CdxColumns) {
        self.columns.clone_from(columns);
    }

    /// Every record of `chunk`, which begins at byte `offset` of the source; `bitmaps` describe `chunk` afterwards.
    ///
    /// ```
    /// use irikey::{kernel::Bitmaps, record::cdx::Cdx};
    /// let line = b"org,a)/b 20140103030321 http://a.org/b text/html 302 AAAA /c d - 1043 333 x.warc.gz\n";
    /// let (mut cdx, mut bitmaps) = (Cdx::default(), Bitmaps::default());
    /// let records = cdx.decode(line, 0, &mut bitmaps);
    /// assert_eq!(records.urls[0].of(line), b"http://a.org/b");
    /// assert_eq!(records.fields.redirects[0].unwrap().of(line), b"/c d");
    /// assert_eq!(records.fields.statuses, [Some(302)]);
    /// ```
    pub fn decode<'a>(&'a mut self, chunk: &'a [u8], offset: u64, bitmaps: &mut Bitmaps) -> Records<'a> {
        bitmaps.classify(chunk, &CLASSIFIER);
        self.found.clear();
        lines(chunk).for_each(|(at, line)| self.line(chunk, at, line, offset));
        self.found.records(chunk)
    }

    fn line(&mut self, chunk: &[u8], at: usize, line: &[u8], offset: u64) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            return;
        }
        if line.starts_with(b" CDX ") || line.starts_with(b"CDX ") {
            return self.found.header();
        }
        self.tokens.clear();
        push_tokens(line, at, &mut self.tokens);
        self.found.begin(offset + at as u64);
        let fit = fit(chunk, &self.tokens, &self.columns.0).or_else(|| fit_common(chunk, &self.tokens));
        let (url, field) = fit.unwrap_or_else(|| {
            self.found.refuse(FaultKind::NotOfFormat);
            (Span { at: at as u32, len: line.len() as u32 }, FieldValues::default())
        });
        self.found.push(url, field);
    }
}

/// Splits `line`, which stands at `at`, at every space.
fn push_tokens(line: &[u8], at: usize, tokens: &mut Vec<Span>) {
    let mut from = 0;
    for space in memchr::memchr_iter(b' ', line).chain([line.len()]) {
        tokens.push(Span { at: (at + from) as u32, len: (space - from) as u32 });
        from = space + 1;
    }
}

/// `line` is unmistakably a record of one of the common shapes.
pub(super) fn is_record(line: &[u8]) -> bool {
    let mut tokens = Vec::new();
    push_tokens(line, 0, &mut tokens);
    let has_time = tokens.get(1).is_some_and(|time| time::from_digits(time.of(line)).is_some());
    has_time && (fit_common(line, &tokens).is_some() || fit(line, &tokens, &CdxColumns::default().0).is_some())
}

/// A line of another number of columns than its header has, in the shapes of that number.
fn fit_common(chunk: &[u8], tokens: &[Span]) -> Option<(Span, FieldValues)> {
    const COMMON: [&[u8]; 3] = [b"NbamskrVg", b"NbamskrMVg", b"NbamskrMSVg"];
    let shape = COMMON.iter().find(|shape| shape.len() == tokens.len())?;
    fit(chunk, tokens, shape)
}

/// Gives every token to a column, in order: one to each, more to those that may hold spaces, redirects first.
fn fit(chunk: &[u8], tokens: &[Span], columns: &[u8]) -> Option<(Span, FieldValues)> {
    let extra = tokens.len().checked_sub(columns.len())?;
    if tokens.len() > MOST_FIELDS {
        return None;
    }
    let url_at = columns.iter().position(|&letter| letter == b'a')?;
    let redirect_at = columns.iter().position(|&letter| letter == b'r');
    let url_extras = if redirect_at.is_some() { 0..=extra } else { extra..=extra };
    for url_extra in url_extras {
        let lens = |column: usize| match column {
            _ if column == url_at => 1 + url_extra,
            _ if Some(column) == redirect_at => 1 + extra - url_extra,
            _ => 1,
        };
        if let Some(found) = read(chunk, tokens, columns, lens) {
            return Some(found);
        }
    }
    None
}

/// Reads a line whose columns take `lens` tokens each; `None` if one does not look like what it must be.
fn read(chunk: &[u8], tokens: &[Span], columns: &[u8], lens: impl Fn(usize) -> usize) -> Option<(Span, FieldValues)> {
    let mut url = None;
    let mut field = FieldValues::default();
    let mut next = 0;
    // Where no column is too many none can have shifted, and types of no shape were seen in the wild.
    let is_exact = tokens.len() == columns.len();
    for (column, letter) in columns.iter().enumerate() {
        let len = lens(column);
        let (first, last) = (tokens.get(next)?, tokens.get(next + len - 1)?);
        next += len;
        let span = Span { at: first.at, len: last.at + last.len - first.at };
        let text = span.of(chunk);
        let may_be_odd = is_exact && *letter == b'm';
        if !may_be_odd && !looks_right(*letter, text) {
            return None;
        }
        let said = (text != b"-").then_some(span);
        match letter {
            b'a' => url = url.or(Some(span)),
            b'b' => field.time = time::from_digits(text),
            b's' => field.status = number(text),
            b'k' => field.digest = said,
            b'r' => field.redirect = said,
            b'm' => field.mime = said.filter(|_| !matches!(text, b"unk" | b"no-type")),
            b'g' => field.filename = said,
            b'V' => field.capture_offset = number(text),
            b'S' => field.capture_length = number(text),
            _ => {}
        }
    }
    Some((url?, field))
}

fn number<N: FromStr>(text: &[u8]) -> Option<N> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// A column's text could be one: enough to tell a shifted line.
fn looks_right(letter: u8, text: &[u8]) -> bool {
    let is_number = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    match letter {
        _ if text == b"-" => true,
        b'b' => is_number(text),
        b's' => is_number(text.strip_prefix(b"-").unwrap_or(text)) && text.len() <= 5,
        b'S' | b'V' | b'v' => is_number(text),
        b'm' => memchr::memchr(b'/', text).is_some() || text == b"unk" || text == b"no-type" || text == b"warc",
        b'k' => text.len() >= 3 && text.iter().all(|&byte| DIGEST.contains(byte)),
        b'a' => !text.is_empty(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Row = (String, Option<i32>, Option<i64>, Option<String>, Option<String>);

    fn decode(header: Option<&str>, text: &str) -> (Vec<Row>, Vec<u32>) {
        let (mut cdx, mut bitmaps) = (Cdx::default(), Bitmaps::default());
        if let Some(header) = header {
            cdx.set_columns(&CdxColumns::of_header(header.as_bytes()).unwrap());
        }
        let records = cdx.decode(text.as_bytes(), 0, &mut bitmaps);
        let show = |span: Span| String::from_utf8_lossy(span.of(records.text)).into_owned();
        let row = |i: usize| {
            let field = (records.fields.redirects[i].map(show), records.fields.digests[i].map(show));
            (show(records.urls[i]), records.fields.statuses[i], records.fields.times[i], field.0, field.1)
        };
        ((0..records.urls.len()).map(row).collect(), records.faults.iter().map(|fault| fault.0).collect())
    }

    fn row(url: &str, status: i32, redirect: Option<&str>) -> Row {
        (url.into(), Some(status), Some(1_388_718_201_000), redirect.map(Into::into), Some("B2LT".into()))
    }

    #[test]
    fn columns_by_the_header() {
        let eleven = " CDX N b a m s k r M S V g\n";
        let line = "org,a)/ 20140103030321 http://a.org/ text/html 200 B2LT - - 1043 333 e.warc.gz\r\n";
        assert_eq!(decode(Some(eleven), &format!("{eleven}{line}\n")), (vec![row("http://a.org/", 200, None)], vec![]));
        let wget = " CDX a b a m s k r M V g u";
        let line = "http://a.org/ 20140103030321 http://a.org/ text/html 302 B2LT /x - 333 e.warc.gz <urn:uuid:1>";
        assert_eq!(decode(Some(wget), line), (vec![row("http://a.org/", 302, Some("/x"))], vec![]));
        let nine = "org,a)/ 20140103030321 http://a.org/ text/html 200 B2LT - 333 e.warc.gz";
        assert_eq!(decode(Some(" CDX N b a m s k r V g"), nine), (vec![row("http://a.org/", 200, None)], vec![]));
        assert_eq!(decode(Some(eleven), nine), (vec![row("http://a.org/", 200, None)], vec![]));
    }

    #[test]
    fn a_space_shifts_nothing() {
        let line = |url: &str, redirect: &str| {
            format!("org,a)/ 20140103030321 {url} text/html 302 B2LT {redirect} - 1043 333 e.warc.gz\n")
        };
        for (url, redirect) in [
            ("http://a.org/", "/b c"),
            ("http://a.org/b c", "/d"),
            ("http://a.org/b  c", "/d e f"),
            ("http://a.org/x text/html 404 y", "/d"),
        ] {
            let (rows, faults) = decode(None, &line(url, redirect));
            assert_eq!((rows, faults), (vec![row(url, 302, Some(redirect))], vec![]));
        }
    }

    #[test]
    fn what_fits_nothing_has_a_fault() {
        let (rows, faults) =
            decode(None, "garbage\norg,a)/ 20140103030321 http://a.org/ text/html\n\n CDX N b a\na b c");
        assert_eq!((rows.len(), faults), (3, vec![0, 1, 2]));
    }
}
