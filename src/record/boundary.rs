//! Finds the ends of records in text that may still grow, so that row groups and chunks hold whole records.
//!
//! A record ends after an `LF`; in CSV, after one outside quotes. The rules of the csv crate apply: a quote opens only as
//! the first byte of a field, `""` between quotes is a quote, and the text after a closing quote up to the delimiter is
//! ordinary text. (In that crate a `CR` also ends a record. [`Boundary`] finds only `LF`, which ends a record either way.)
//!
//! One quote too many would make one record of all lines up to the next quote. Therefore a field of several lines has to be
//! closed before a delimiter or a line end, and a record with such a field is at most [`MAX_QUOTED_LINES`] lines and
//! [`MAX_QUOTED_LEN`] bytes long. Otherwise its first line is a *broken* record, and the second line begins the next one.
//! Whether a record is broken depends on its own bytes and on those after it up to the limits. A text that ends after the
//! first line of a broken record has an open quote at its end, so that the record is broken in every chunk.

use std::ops::Range;

use memchr::{memchr, memchr_iter, memchr2, memrchr};

const LF: u8 = b'\n';

/// Bytes after the target that are searched for quotes at a time, so that a long source is not searched as a whole.
const QUOTE_WINDOW: usize = 64 << 10;

/// Maximum number of lines of a record of CSV.
const MAX_QUOTED_LINES: usize = 500;

/// Maximum length of a record of several lines up to its last quote, in bytes.
const MAX_QUOTED_LEN: usize = 4 << 20;

/// How a CSV dialect quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quoting {
    /// Usually `"`.
    pub quote: u8,
    /// The byte between fields.
    pub delimiter: u8,
}

/// A record is longer than allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong {
    /// Where it begins.
    pub(crate) at: usize,
}

/// Finds the end of a record. After it returned an end, a new `Boundary` is needed for the bytes that follow.
#[derive(Clone, Debug)]
pub(crate) struct Boundary {
    quoting: Option<Quoting>,
    longest: usize,
    /// Bytes before this position were searched.
    seen: usize,
    /// `seen` is between quotes.
    is_quoted: bool,
    last_end: usize,
    /// The end of the first line of the record that contains `seen`, if this line ends between quotes.
    first_line_end: Option<usize>,
    /// Line ends between quotes in that record.
    line_count: usize,
    /// The last quoted field contains a line end.
    has_line_end: bool,
    /// What was read of the last broken record.
    broken: Option<BrokenText>,
}

/// What was read of a broken record. Its second line begins the next record. If a line end is between quotes in the old record
/// and in the new one, so are all later ones up to `end`; they are not searched again.
#[derive(Clone, Debug)]
struct BrokenText {
    first_line_end: usize,
    end: usize,
    /// Line ends between quotes before `end`, that of the first line included.
    line_count: usize,
    /// See [`Boundary`]; at `end`.
    has_line_end: bool,
}

/// What ends the search for a closing quote.
enum QuoteEnd {
    /// The end of the text.
    Text,
    /// A closing quote.
    Closed,
    /// The record is broken.
    Broken,
}

impl Boundary {
    /// For lines, or for CSV with this quoting, of at most `longest` bytes per record, `LF` included.
    pub(crate) fn new(quoting: Option<Quoting>, longest: usize) -> Boundary {
        Boundary {
            quoting,
            longest,
            seen: 0,
            is_quoted: false,
            last_end: 0,
            first_line_end: None,
            line_count: 0,
            has_line_end: false,
            broken: None,
        }
    }

    /// The first broken record in `data`, a text of whole records of CSV; it begins with a record. A further call finds the
    /// next one.
    pub(crate) fn find_broken(&mut self, data: &[u8]) -> Option<Range<usize>> {
        let quoting = self.quoting?;
        while let Some(at) = memchr(quoting.quote, &data[self.seen..]).map(|i| self.seen + i) {
            let line = memrchr(LF, &data[self.seen..at]).map_or(self.last_end, |i| self.seen + i + 1);
            self.last_end = line;
            self.pass_quote(data, at, quoting);
            if !self.is_quoted {
                continue;
            }
            let end = match self.leave_quotes(data, quoting) {
                QuoteEnd::Closed => continue,
                // The last byte is a closing quote.
                QuoteEnd::Text if self.seen < data.len() => return None,
                QuoteEnd::Text | QuoteEnd::Broken => self.first_line_end.unwrap_or(data.len()),
            };
            self.end_record(end);
            return Some(line..end);
        }
        None
    }

    /// The end of the last whole record; 0 without one.
    pub(crate) fn last_end(&self) -> usize {
        self.last_end
    }

    /// The first end of a record at or after `target`, which is at least 1. `None` if `data` has none: the caller calls
    /// again with the same bytes and more after them.
    ///
    /// # Errors
    /// A record before the target, or the one that contains it, is too long.
    #[inline]
    pub(crate) fn find(&mut self, data: &[u8], target: usize) -> Result<Option<usize>, TooLong> {
        let end = match self.quoting {
            None => self.unquoted(data, data.len(), target)?,
            Some(quoting) => self.find_csv(data, target, quoting)?,
        };
        if end.is_none() && data.len() - self.last_end > self.longest {
            return Err(TooLong { at: self.last_end });
        }
        Ok(end)
    }

    fn find_csv(&mut self, data: &[u8], target: usize, quoting: Quoting) -> Result<Option<usize>, TooLong> {
        while self.seen < data.len() {
            if self.is_quoted {
                match self.leave_quotes(data, quoting) {
                    QuoteEnd::Text => return Ok(None),
                    QuoteEnd::Closed => continue,
                    QuoteEnd::Broken => {}
                }
                // The first line is not too long: `leave_quotes` stops before it finds the end of a line that is too long.
                let end = self.first_line_end.unwrap_or(self.seen);
                self.end_record(end);
                if end >= target {
                    return Ok(Some(end));
                }
            }
            let window = data.len().min(target.max(self.seen.saturating_add(QUOTE_WINDOW)));
            let quote = memchr(quoting.quote, &data[self.seen..window]).map(|i| self.seen + i);
            if let Some(end) = self.unquoted(data, quote.unwrap_or(window), target)? {
                return Ok(Some(end));
            }
            if let Some(at) = quote {
                self.pass_quote(data, at, quoting);
            }
        }
        Ok(None)
    }

    /// Moves past the quote at `at`, which is outside quotes and opens some if a field begins there.
    fn pass_quote(&mut self, data: &[u8], at: usize, quoting: Quoting) {
        self.is_quoted = at == 0 || matches!(data[at - 1], b'\n' | b'\r') || data[at - 1] == quoting.delimiter;
        self.seen = at + 1;
        self.has_line_end = false;
        if self.first_line_end.is_some_and(|end| end <= self.last_end) {
            (self.first_line_end, self.line_count) = (None, 0);
        }
    }

    /// Ends a broken record.
    fn end_record(&mut self, end: usize) {
        let &mut Boundary { seen, line_count, has_line_end, .. } = self;
        self.broken = Some(BrokenText { first_line_end: end, end: seen, line_count, has_line_end });
        (self.is_quoted, self.seen, self.last_end) = (false, end, end);
    }

    /// Skips the rest of a broken record, after a line end between quotes.
    fn skip_broken(&mut self, data: &[u8]) {
        let Some(broken) = self.broken.take().filter(|broken| self.seen < broken.end) else { return };
        let passed = memchr_iter(LF, &data[broken.first_line_end..self.seen]).count();
        self.line_count += broken.line_count - 1 - passed;
        (self.seen, self.has_line_end) = (broken.end, broken.has_line_end);
    }

    /// Moves past the closing quote, if it has been read and is not the first half of `""`. A record that is too long is
    /// handled as if its end had not been read.
    fn leave_quotes(&mut self, data: &[u8], quoting: Quoting) -> QuoteEnd {
        while let Some(i) = memchr2(quoting.quote, LF, &data[self.seen..]) {
            let at = self.seen + i;
            if self.is_past_limit(at) {
                return QuoteEnd::Broken;
            }
            if at - self.last_end >= self.longest {
                return QuoteEnd::Text;
            }
            if data[at] == LF {
                self.first_line_end.get_or_insert(at + 1);
                self.line_count += 1;
                self.has_line_end = true;
                self.seen = at + 1;
                self.skip_broken(data);
                if self.line_count == MAX_QUOTED_LINES {
                    return QuoteEnd::Broken;
                }
                continue;
            }
            self.seen = match data.get(at + 1) {
                None => {
                    self.seen = at;
                    return QuoteEnd::Text;
                }
                Some(&next) if next == quoting.quote => at + 2,
                Some(&next) => {
                    let is_field_end = matches!(next, b'\n' | b'\r') || next == quoting.delimiter;
                    if self.has_line_end && !is_field_end {
                        return QuoteEnd::Broken;
                    }
                    (self.seen, self.is_quoted) = (at + 1, false);
                    return QuoteEnd::Closed;
                }
            };
        }
        self.seen = data.len();
        if self.is_past_limit(data.len()) { QuoteEnd::Broken } else { QuoteEnd::Text }
    }

    /// Whether the record has several lines and too many bytes before `at`.
    fn is_past_limit(&self, at: usize) -> bool {
        let is_long = MAX_QUOTED_LEN < self.longest && at - self.last_end > MAX_QUOTED_LEN;
        is_long && self.first_line_end.is_some()
    }

    /// Searches `data[seen..to]`, which is outside quotes.
    #[inline]
    fn unquoted(&mut self, data: &[u8], to: usize, target: usize) -> Result<Option<usize>, TooLong> {
        let middle = (target - 1).clamp(self.seen, to);
        self.pass(data, self.seen, middle)?;
        match memchr(LF, &data[middle..to]) {
            Some(i) => {
                let end = middle + i + 1;
                if end - self.last_end > self.longest {
                    return Err(TooLong { at: self.last_end });
                }
                self.last_end = end;
                self.seen = end;
                Ok(Some(end))
            }
            None => {
                self.seen = to;
                Ok(None)
            }
        }
    }

    /// Moves past the ends of records in `data[from..to]`. It searches backward from the farthest allowed end of a record,
    /// and so visits only a few of the ends.
    fn pass(&mut self, data: &[u8], mut from: usize, to: usize) -> Result<(), TooLong> {
        loop {
            let reach = self.last_end.saturating_add(self.longest).min(to).max(from);
            if let Some(i) = memrchr(LF, &data[from..reach]) {
                from += i + 1;
                self.last_end = from;
            } else if reach < to {
                return Err(TooLong { at: self.last_end });
            }
            if reach == to {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: Quoting = Quoting { quote: b'"', delimiter: b',' };

    /// The definition, byte by byte, with the states of the csv crate: ends of records after an LF, and the broken records.
    /// If `is_whole`, the text is a whole source.
    fn records(data: &[u8], is_whole: bool) -> (Vec<usize>, Vec<Range<usize>>) {
        #[derive(Clone, Copy, PartialEq)]
        enum CsvState {
            FieldStart,
            Unquoted,
            Quoted,
            QuoteInQuoted,
        }
        let (mut start, mut ends, mut broken) = (0, Vec::new(), Vec::new());
        while start < data.len() {
            let (mut state, mut end, mut first_line_end) = (CsvState::FieldStart, None, None);
            let (mut is_broken, mut has_line_end) = (false, false);
            for (i, &byte) in data.iter().enumerate().skip(start) {
                if byte == b'\n' && state == CsvState::Quoted {
                    first_line_end = first_line_end.or(Some(i + 1));
                    has_line_end = true;
                }
                has_line_end &= state != CsvState::FieldStart;
                is_broken = state == CsvState::QuoteInQuoted && byte == b'x' && has_line_end;
                state = match (state, byte) {
                    (CsvState::Quoted, b'"') => CsvState::QuoteInQuoted,
                    (CsvState::Quoted, _) => CsvState::Quoted,
                    (CsvState::QuoteInQuoted | CsvState::FieldStart, b'"') => CsvState::Quoted,
                    (_, b'\n') => {
                        end = Some(i + 1);
                        break;
                    }
                    (_, b'\r' | b',') => CsvState::FieldStart,
                    _ => CsvState::Unquoted,
                };
                if is_broken {
                    break;
                }
            }
            if is_broken || (state == CsvState::Quoted && is_whole) {
                let end = first_line_end.unwrap_or(data.len());
                broken.push(start..end);
                ends.extend(first_line_end);
                start = end;
            } else {
                ends.extend(end);
                start = end.unwrap_or(data.len());
            }
        }
        (ends, broken)
    }

    fn ends(data: &[u8]) -> Vec<usize> {
        records(data, false).0
    }

    #[test]
    fn broken_records_equal_the_definition_in_every_chunk() {
        for len in 1..=8 {
            for number in 0..5usize.pow(len as u32) {
                let data = text(number, len);
                let (ends, want) = records(&data, true);
                let broken = |chunk: &[u8]| {
                    let mut boundary = Boundary::new(Some(CSV), usize::MAX);
                    std::iter::from_fn(|| boundary.find_broken(chunk)).collect::<Vec<_>>()
                };
                assert_eq!(broken(&data), want, "{data:?}");
                for end in ends {
                    let mut parts = broken(&data[..end]);
                    parts.extend(broken(&data[end..]).into_iter().map(|range| range.start + end..range.end + end));
                    assert_eq!(parts, want, "{data:?} {end}");
                }
            }
        }
    }

    #[test]
    fn a_record_of_too_many_lines_or_bytes_is_broken() {
        let closed = |inner: &str| format!("a,\"{inner}\",b\nc\n");
        let lines = |count: usize| closed(&"x\n".repeat(count - 1));
        let bytes = |count: usize| closed(&format!("\n{}", "x".repeat(count - 5)));
        for (text, first_line) in [
            (lines(MAX_QUOTED_LINES), None),
            (lines(MAX_QUOTED_LINES + 1), Some(5)),
            (bytes(MAX_QUOTED_LEN + 1), None),
            (bytes(MAX_QUOTED_LEN + 2), Some(4)),
        ] {
            let end = first_line.unwrap_or(text.len() - 2);
            // The limits are those of a record, wherever it begins.
            for before in ["", "p\n"] {
                let (text, at) = (format!("{before}{text}"), before.len());
                let data = text.as_bytes();
                let found = Boundary::new(Some(CSV), usize::MAX).find_broken(data);
                assert_eq!(found, first_line.map(|end| at..at + end));
                for cut in [data.len() - 2, data.len()] {
                    let mut boundary = Boundary::new(Some(CSV), usize::MAX);
                    assert_eq!(boundary.find(&data[..cut], at + 1), Ok(Some(at + end)));
                }
            }
        }
    }

    /// Records that follow broken ones are those that a search finds which begins with them.
    #[test]
    fn records_after_broken_ones_do_not_depend_on_them() {
        let lines = ["a\",\"b\n", "a,b\n", "\"a\n", "a\"\n", "\"a\",b\n", "\n", "a,\"\"b\n", "\"a\"b\n"];
        let mut state = 1_u64;
        let mut random = |count: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % count
        };
        for round in 0..30 {
            // Many lines that open quotes and few others make records of too many lines.
            let line = |number: usize| if number < lines.len() { lines[number] } else { lines[round % 3 % 2 * 2] };
            let text: String = (0..1_200).map(|_| line(random(1 << (round % 10)))).collect();
            let data = text.as_bytes();
            let new = || Boundary::new(Some(CSV), usize::MAX);
            let (mut start, mut broken) = (0, Vec::new());
            while let Some(len) = new().find(&data[start..], 1).unwrap() {
                let end = start + len;
                assert_eq!(new().find(data, end), Ok(Some(end)), "{round}");
                let is_broken = new().find_broken(&data[start..]).is_some_and(|range| range.start == 0);
                broken.extend(is_broken.then_some(start..end));
                start = end;
            }
            let mut boundary = new();
            let found: Vec<_> =
                std::iter::from_fn(|| boundary.find_broken(data)).filter(|range| range.end <= start).collect();
            assert_eq!(found, broken, "{round}");
        }
    }

    /// The lines of a record after broken ones count as if it were the first one.
    #[test]
    fn a_record_after_broken_ones_may_have_as_many_lines() {
        let line = "a\",\"b\n";
        for broken_count in [1, 2] {
            let text = line.repeat(MAX_QUOTED_LINES - 1 + broken_count) + "a\",c\n";
            let find = |target| Boundary::new(Some(CSV), usize::MAX).find(text.as_bytes(), target);
            let ends: Vec<usize> = (1..=broken_count).map(|number| number * line.len()).collect();
            assert!(ends.iter().all(|end| find(*end) == Ok(Some(*end))));
            assert_eq!(find(ends[broken_count - 1] + 1), Ok(Some(text.len())));
        }
    }

    /// A record of several lines that is not closed is broken at the limit, unless it is too long there.
    #[test]
    fn a_broken_record_is_not_too_long() {
        let text = format!("a,\"\n{}", "x".repeat(MAX_QUOTED_LEN));
        for (longest, found) in [(MAX_QUOTED_LEN, Err(TooLong { at: 0 })), (MAX_QUOTED_LEN + 1, Ok(Some(4)))] {
            assert_eq!(Boundary::new(Some(CSV), longest).find(text.as_bytes(), 1), found);
        }
    }

    /// All texts of `len` of the bytes that matter, numbered.
    fn text(mut number: usize, len: usize) -> Vec<u8> {
        let mut text = Vec::new();
        for _ in 0..len {
            text.push(b"\",\n\rx"[number % 5]);
            number /= 5;
        }
        text
    }

    #[test]
    fn equals_the_definition_on_all_short_texts_however_they_arrive() {
        for len in 1..=6 {
            for number in 0..5usize.pow(len as u32) {
                let data = text(number, len);
                let ends = ends(&data);
                for target in 1..=len {
                    let want = ends.iter().copied().find(|&end| end >= target);
                    let mut whole = Boundary::new(Some(CSV), usize::MAX);
                    assert_eq!(whole.find(&data, target), Ok(want), "{data:?} {target}");
                    let mut grown = Boundary::new(Some(CSV), usize::MAX);
                    let got = (1..=len).find_map(|end| grown.find(&data[..end], target).unwrap());
                    assert_eq!(got, want, "grown {data:?} {target}");
                    let last = ends.iter().copied().rfind(|&end| want.is_none_or(|want| end <= want));
                    assert_eq!(grown.last_end(), last.unwrap_or(0), "last {data:?} {target}");
                }
            }
        }
    }

    #[test]
    fn the_longest_record_is_the_longest_allowed() {
        for quoting in [None, Some(CSV)] {
            for len in 1..=6 {
                for number in 0..5usize.pow(len as u32) {
                    let data = text(number, len);
                    let ends = match quoting {
                        None => memchr::memchr_iter(LF, &data).map(|i| i + 1).collect(),
                        Some(_) => ends(&data),
                    };
                    for (longest, target) in [(1, 1), (2, 4), (3, 2), (3, 6)] {
                        let mut starts = vec![0];
                        starts.extend(ends.iter().copied().take_while(|&end| end < target));
                        let want = ends.iter().copied().find(|&end| end >= target);
                        let mut stops = starts[1..].to_vec();
                        stops.push(want.unwrap_or(len));
                        let bad = starts.iter().zip(stops).find(|(start, stop)| stop - **start > longest);
                        let want = bad.map_or(Ok(want), |(&at, _)| Err(TooLong { at }));
                        let got = Boundary::new(quoting, longest).find(&data, target);
                        let mut grown = Boundary::new(quoting, longest);
                        let found = (1..=len).map(|end| grown.find(&data[..end], target));
                        let first = found.into_iter().find(|found| *found != Ok(None)).unwrap_or(Ok(None));
                        assert_eq!(got, first, "grown {quoting:?} {data:?} {longest} {target}");
                        // A broken record may also be too long.
                        if quoting.is_none() || records(&data, false).1.is_empty() {
                            assert_eq!(got, want, "{quoting:?} {data:?} {longest} {target}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn ends_of_lines_and_of_csv_records() {
        assert_eq!(Boundary::new(None, usize::MAX).find(b"one\ntwo\nthree", 1), Ok(Some(4)));
        assert_eq!(Boundary::new(Some(CSV), usize::MAX).find(b"\"on\ne\",1\ntwo", 1), Ok(Some(9)));
    }

    #[test]
    fn a_distant_target() {
        let mut data = b"http://example.org/\n".repeat(100_000);
        data.extend(b"\"a\nb\"\nc");
        for quoting in [None, Some(CSV)] {
            let end = Boundary::new(quoting, 20).find(&data, 1_500_001);
            assert_eq!(end, Ok(Some(1_500_020)));
        }
        assert_eq!(Boundary::new(Some(CSV), 20).find(&data, 2_000_001), Ok(Some(2_000_006)));
    }
}
