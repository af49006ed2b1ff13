//! Finds the ends of records in text that may still grow, so that row groups and chunks hold whole records.
//!
//! A record ends after an `LF`; in CSV, after one outside quotes. The rules of the csv crate apply: a quote opens only as
//! the first byte of a field, `""` between quotes is a quote, and the text after a closing quote up to the delimiter is
//! ordinary text. (In that crate a `CR` also ends a record. [`Boundary`] finds only `LF`, which ends a record either way.)

use memchr::{memchr, memrchr};

const LF: u8 = b'\n';

/// Bytes after the target that are searched for quotes at a time, so that a long source is not searched as a whole.
const QUOTE_WINDOW: usize = 64 << 10;

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
}

impl Boundary {
    /// For lines, or for CSV with this quoting, of at most `longest` bytes per record, `LF` included.
    pub(crate) fn new(quoting: Option<Quoting>, longest: usize) -> Boundary {
        Boundary { quoting, longest, seen: 0, is_quoted: false, last_end: 0 }
    }

    /// The end of the last whole record; 0 if there is none.
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
                if !self.leave_quotes(data, quoting.quote) {
                    return Ok(None);
                }
                continue;
            }
            let window = data.len().min(target.max(self.seen.saturating_add(QUOTE_WINDOW)));
            let quote = memchr(quoting.quote, &data[self.seen..window]).map(|i| self.seen + i);
            if let Some(end) = self.unquoted(data, quote.unwrap_or(window), target)? {
                return Ok(Some(end));
            }
            if let Some(at) = quote {
                self.is_quoted = at == 0 || matches!(data[at - 1], b'\n' | b'\r') || data[at - 1] == quoting.delimiter;
                self.seen = at + 1;
            }
        }
        Ok(None)
    }

    /// Moves past the closing quote; false if it has not been read yet, or may be the first half of `""`.
    fn leave_quotes(&mut self, data: &[u8], quote: u8) -> bool {
        while let Some(i) = memchr(quote, &data[self.seen..]) {
            let at = self.seen + i;
            match data.get(at + 1) {
                None => {
                    self.seen = at;
                    return false;
                }
                Some(&next) if next == quote => self.seen = at + 2,
                Some(_) => {
                    self.seen = at + 1;
                    self.is_quoted = false;
                    return true;
                }
            }
        }
        self.seen = data.len();
        false
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

    /// The definition, byte by byte, with the states of the csv crate: ends of records after an LF.
    fn ends(data: &[u8]) -> Vec<usize> {
        #[derive(PartialEq)]
        enum CsvState {
            FieldStart,
            FieldValues,
            Quoted,
            QuoteInQuoted,
        }
        let (mut state, mut ends) = (CsvState::FieldStart, Vec::new());
        for (i, &byte) in data.iter().enumerate() {
            state = match (state, byte) {
                (CsvState::Quoted, b'"') => CsvState::QuoteInQuoted,
                (CsvState::Quoted, _) => CsvState::Quoted,
                (CsvState::QuoteInQuoted | CsvState::FieldStart, b'"') => CsvState::Quoted,
                (_, b'\n') => {
                    ends.push(i + 1);
                    CsvState::FieldStart
                }
                (_, b'\r' | b',') => CsvState::FieldStart,
                _ => CsvState::FieldValues,
            };
        }
        ends
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
                        assert_eq!(got, want, "{quoting:?} {data:?} {longest} {target}");
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
