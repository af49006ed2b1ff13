//! Heritrix's `crawl.log`: twelve columns between runs of spaces, and JSON as an optional thirteenth.
//!
//! Columns: time of the line, status (negative ones are the crawler's own), size, URL, discovery path, via, media type,
//! thread, fetch time with `+` and its duration, digest, source tag, annotations. If the discovery path ends in `R`, the
//! via redirected to the URL. A line that does not begin with time, status, size and URL is a record with a fault, and
//! the line is its URL; missing columns at the end are null. Blank lines are not records.

use super::buffer::{RecordColumns, filled_lines};
use super::decoder::{SourceHead, TextDecoder};
use super::fields::{FieldSet, FieldValues};
use super::records::Records;
use super::time;
use crate::iri::{CLASSIFIER, FaultKind};
use crate::kernel::{Bitmaps, Span, parse_bytes};

/// Number of columns that are decoded.
const COLUMN_COUNT: usize = 10;

/// Decoder of crawl logs.
///
/// ```
/// use irikey::{kernel::Bitmaps, record::{TextDecoder, crawl_log::CrawlLog}};
/// let line = b"2011-06-23T17:12:08.802Z   200  1299 http://a.org/ LR http://b.org/ text/plain #014 - - - -";
/// let (mut log, mut bitmaps) = (CrawlLog::default(), Bitmaps::default());
/// let records = log.decode(line, 0, &mut bitmaps);
/// assert_eq!(records.urls[0].of(line), b"http://a.org/");
/// assert_eq!(records.fields.redirected_from[0].unwrap().of(line), b"http://b.org/");
/// ```
#[derive(Debug, Default)]
pub struct CrawlLog {
    rows: RecordColumns,
}

impl TextDecoder for CrawlLog {
    type Settings = ();

    fn detect(head: &SourceHead<'_>) -> Option<()> {
        let line = head.first_record;
        let mut bitmaps = Bitmaps::default();
        bitmaps.classify(line, &CLASSIFIER);
        record_time(line, &split_columns(line, Span::new(0, line.len()), &bitmaps)).map(drop)
    }

    fn set_carry(&mut self, carry: FieldSet) {
        self.rows.set_carry(carry);
    }

    fn decode<'a>(&'a mut self, chunk: &'a [u8], offset: u64, bitmaps: &mut Bitmaps) -> Records<'a> {
        bitmaps.classify(chunk, &CLASSIFIER);
        self.rows.clear();
        for (at, line) in filled_lines(chunk) {
            self.rows.begin(offset + at as u64);
            let line = Span::new(at, line.len());
            self.decode_line(chunk, line, &split_columns(chunk, line, bitmaps));
        }
        self.rows.records(chunk)
    }
}

impl CrawlLog {
    fn decode_line(&mut self, chunk: &[u8], line: Span, columns: &[Option<Span>; COLUMN_COUNT]) {
        let text = |column: usize| columns[column].map_or(&b""[..], |span| span.of(chunk));
        let present = |column: usize| columns[column].filter(|span| span.of(chunk) != b"-");
        let (Some(line_time), Some(url)) = (record_time(chunk, columns), columns[3]) else {
            self.rows.refuse(FaultKind::NotOfFormat);
            return self.rows.push(line, &FieldValues::default());
        };
        let fetch_time = || text(8).split(|&byte| byte == b'+').next().and_then(time::from_digits);
        let field = FieldValues {
            status: parse_bytes(text(1)),
            time: if self.rows.carry().time { fetch_time().or(Some(line_time)) } else { None },
            redirected_from: present(5).filter(|_| text(4).ends_with(b"R")),
            digest: present(9),
            mime: present(6).filter(|_| !matches!(text(6), b"unknown" | b"no-type")),
            ..FieldValues::default()
        };
        self.rows.push(url, &field);
    }
}

/// The time in the first column, if a status, a size and a URL follow it.
fn record_time(chunk: &[u8], columns: &[Option<Span>; COLUMN_COUNT]) -> Option<i64> {
    let text = |column: usize| columns[column].map_or(&b""[..], |span| span.of(chunk));
    let is_number = |text: &[u8]| text == b"-" || parse_bytes::<i64>(text).is_some();
    let is_whole = columns[3].is_some() && is_number(text(1)) && is_number(text(2));
    time::from_iso(text(0)).or_else(|| time::from_digits(text(0))).filter(|_| is_whole)
}

/// The first columns of `line`. `bitmaps` mark all white space, among other bytes.
fn split_columns(chunk: &[u8], line: Span, bitmaps: &Bitmaps) -> [Option<Span>; COLUMN_COUNT] {
    let (mut at, line_end) = (line.at as usize, (line.at + line.len) as usize);
    let line = &chunk[..line_end];
    let mut columns = [None; COLUMN_COUNT];
    for column in &mut columns {
        at += line[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let mut end = at;
        while end < line_end && !line[end].is_ascii_whitespace() {
            end = bitmaps.next_attention_near(end + 1).min(line_end);
        }
        *column = (end > at).then_some(Span::new(at, end - at));
        at = end;
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_and_missing_columns() {
        let text = b"2011-06-23T17:12:08.802Z   200       1299 http://a.org/r LREP http://a.org/i text/plain #014 20110623171208574+225 sha1:YIUO - - {\"a\":1}\r\n\
            2011-06-23T17:12:09.591Z    -2          - http://b.org/p LR http://b.org/q unknown #025 - - - -\n\n\
            2011-06-23T17:12:09.591Z  -404\n\
            2011-06-23T17:12:09.591Z   301   0 http://c.org/";
        let (mut log, mut bitmaps) = (CrawlLog::default(), Bitmaps::default());
        let records = log.decode(text, 0, &mut bitmaps);
        let show = |span| records.show(span);
        let urls = ["http://a.org/r", "http://b.org/p", "2011-06-23T17:12:09.591Z  -404", "http://c.org/"];
        assert_eq!(records.shown_urls(), urls);
        assert_eq!(records.fields.statuses, [Some(200), Some(-2), None, Some(301)]);
        assert_eq!(records.fields.times[..2], [Some(1_308_849_128_574), Some(1_308_849_129_591)]);
        assert_eq!(records.fields.redirected_from[0], None);
        assert_eq!(records.fields.redirected_from[1].map(show).as_deref(), Some("http://b.org/q"));
        assert_eq!(records.fields.digests[0].map(show).as_deref(), Some("sha1:YIUO"));
        assert_eq!(records.faults.iter().map(|fault| fault.0).collect::<Vec<_>>(), [2]);
        assert!(records.urls.windows(2).all(|pair| pair[0].at + pair[0].len <= pair[1].at));
    }
}
