//! CDX: columns between single spaces, named by letters in a header line. Without a header, the columns are those of the
//! common layout (9, 10 or 11 columns, or the 7 of the Wayback CDX server) that the first record fits. All fields are slices of
//! the chunk.
//!
//! URLs and redirects are written unescaped, so a space in one of them adds a column. Such a line is read from both ends.
//! The surplus words are given to the redirect, or to the URL if the other columns (time, media type, status, digest,
//! numbers) are valid only then. A line with fewer columns than the header promises is read in one of the common layouts, and so
//! is a line with more columns if it fits one of them and only its redirect would contain spaces: it is from a file with
//! another header. A line that fits no layout is a record with a fault, and the line is its URL. Header lines are counted, and
//! so is the key to resume at the end of a response; header lines and blank lines are not records. A later header line of
//! other columns than those of the source is a record with a fault, unless they are common: the lines after it may have
//! been read wrongly.

use super::buffer::{RecordColumns, lines, without_cr};
use super::decoder::{SourceHead, TextDecoder};
use super::fields::{FieldSet, FieldValues};
use super::records::Records;
use super::time;
use crate::iri::{CLASSIFIER, FaultKind};
use crate::kernel::{Bitmaps, ByteSet, Span, parse_bytes};

/// Bytes of digests, in all notations.
const DIGEST: ByteSet =
    ByteSet::range(b'a', b'z').or(ByteSet::range(b'A', b'Z')).or(ByteSet::range(b'0', b'9')).or(ByteSet::of(b":+/=_-"));

/// The common layouts: the letters of their columns.
const COMMON: [&[u8]; 4] = [b"NbamskrVg", b"NbamskrMVg", b"NbamskrMSVg", b"NbamskS"];

/// Where the common layouts have the column `M`, if they have it.
const META_TAGS_AT: usize = 7;

/// A line with more columns is refused without trying all ways to read it.
const MAX_COLUMNS: usize = 128;

/// The contents of the columns of a file, by the letters of its header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CdxColumns(Vec<u8>);

impl Default for CdxColumns {
    fn default() -> CdxColumns {
        CdxColumns(b"NbamskrMSVg".to_vec())
    }
}

impl CdxColumns {
    /// The columns that a header line names: ` CDX N b a m s k r M S V g`. `None` if the line is not a header, or names no
    /// URL.
    ///
    /// ```
    /// use irikey::record::cdx::CdxColumns;
    /// assert_eq!(CdxColumns::from_header(b" CDX N b a m s k r M S V g\n"), Some(CdxColumns::default()));
    /// assert_eq!(CdxColumns::from_header(b"com,example)/ 20140103030321"), None);
    /// ```
    pub fn from_header(line: &[u8]) -> Option<CdxColumns> {
        let letters = line.trim_ascii_start().strip_prefix(b"CDX ")?.trim_ascii_end().split(|&byte| byte == b' ');
        let columns: Vec<u8> = letters.filter_map(|letter| letter.first().copied()).collect();
        columns.contains(&b'a').then_some(CdxColumns(columns))
    }

    /// The common layout that the first record of a source fits; of several, the one with the most columns. `None` if the first
    /// line is not unmistakably a record.
    fn of_first_record(head: &SourceHead<'_>) -> Option<CdxColumns> {
        let (line, mut tokens) = (head.first_record, Vec::new());
        push_tokens(line, 0, &mut tokens);
        let tokens = without_original(line, &tokens).unwrap_or(&tokens);
        time::from_digits(tokens.get(1)?.of(line))?;
        let fitting = COMMON.into_iter().filter(|columns| fit(line, tokens, columns).is_some());
        let columns = fitting.max_by_key(|columns| columns.len())?;
        // A record that goes on after these bytes may have more columns.
        Some(if head.is_cut { CdxColumns::default() } else { CdxColumns(columns.to_vec()) })
    }
}

/// Decoder of CDX.
///
/// ```
/// use irikey::{kernel::Bitmaps, record::{TextDecoder, cdx::Cdx}};
/// let line = b"org,a)/b 20140103030321 http://a.org/b text/html 302 AAAA /c d - 1043 333 x.warc.gz\n";
/// let (mut cdx, mut bitmaps) = (Cdx::default(), Bitmaps::default());
/// let records = cdx.decode(line, 0, &mut bitmaps);
/// assert_eq!(records.urls[0].of(line), b"http://a.org/b");
/// assert_eq!(records.fields.redirects[0].unwrap().of(line), b"/c d");
/// assert_eq!(records.fields.statuses, [Some(302)]);
/// ```
#[derive(Debug, Default)]
pub struct Cdx {
    columns: CdxColumns,
    rows: RecordColumns,
    tokens: Vec<Span>,
}

impl TextDecoder for Cdx {
    type Settings = CdxColumns;

    fn settings_of(chosen: &CdxColumns, head: &SourceHead<'_>) -> CdxColumns {
        let is_chosen = *chosen != CdxColumns::default();
        let detected = if is_chosen { CdxColumns::from_header(head.first_line) } else { Cdx::detect(head) };
        detected.unwrap_or_else(|| chosen.clone())
    }

    /// A header, or a record in one of the common layouts.
    fn detect(head: &SourceHead<'_>) -> Option<CdxColumns> {
        CdxColumns::from_header(head.first_line).or_else(|| CdxColumns::of_first_record(head))
    }

    fn set_settings(&mut self, columns: &CdxColumns) {
        self.columns.clone_from(columns);
    }

    fn set_carry(&mut self, carry: FieldSet) {
        self.rows.set_carry(carry);
    }

    fn decode<'a>(&'a mut self, chunk: &'a [u8], offset: u64, bitmaps: &mut Bitmaps) -> Records<'a> {
        bitmaps.classify(chunk, &CLASSIFIER);
        self.rows.clear();
        for (at, line) in lines(chunk) {
            self.decode_line(chunk, Span::new(at, without_cr(line).len()), offset);
        }
        self.rows.records(chunk)
    }
}

impl Cdx {
    fn decode_line(&mut self, chunk: &[u8], span: Span, offset: u64) {
        let line = span.of(chunk);
        if line.trim_ascii().is_empty() {
            return;
        }
        let is_header = line.starts_with(b" CDX ") || line.starts_with(b"CDX ");
        if (is_header && self.has_columns_of(line)) || is_resume_key(line) {
            return self.rows.count_header();
        }
        self.tokens.clear();
        push_tokens(line, span.at as usize, &mut self.tokens);
        self.rows.begin(offset + u64::from(span.at));
        let fit = match is_header {
            true => None,
            false => fit_any(chunk, &self.tokens, &self.columns.0),
        };
        let (url, field) = fit.unwrap_or_else(|| {
            self.rows.refuse(FaultKind::NotOfFormat);
            (span, FieldValues::default())
        });
        self.rows.push(url, &field);
    }

    /// Whether lines after the header `line` are read with these columns.
    fn has_columns_of(&self, line: &[u8]) -> bool {
        let columns = CdxColumns::from_header(line);
        columns.is_some_and(|columns| columns == self.columns || COMMON.contains(&&*columns.0))
    }
}

/// Whether the line is the key to resume with which a response of a Wayback CDX server ends, percent-encoded:
/// `org%2Cexample%29%2F+20140103030321%21`.
fn is_resume_key(line: &[u8]) -> bool {
    let line = line.strip_suffix(b"%21").unwrap_or(line);
    let Some((key, time)) = line.split_last_chunk::<14>() else { return false };
    let has_key = || memchr::memmem::find(key, b"%29%2F").is_some() && !key.contains(&b' ');
    key.ends_with(b"+") && time::from_digits(time).is_some() && has_key()
}

/// Splits `line`, which begins at `at`, at every space, until there are more tokens than a record may have.
fn push_tokens(line: &[u8], at: usize, tokens: &mut Vec<Span>) {
    let mut from = 0;
    for space in memchr::memchr_iter(b' ', line).chain([line.len()]).take(MAX_COLUMNS + 1) {
        tokens.push(Span::new(at + from, space - from));
        from = space + 1;
    }
}

/// Reads a line with the columns of its header, or in the common layout of its number of columns.
fn fit_any(chunk: &[u8], tokens: &[Span], columns: &[u8]) -> Option<(Span, FieldValues)> {
    if let Some(own) = without_original(chunk, tokens).filter(|_| tokens.len() != columns.len()) {
        return fit_common(chunk, own);
    }
    // Files with different headers may follow each other. Then a redirect would seem to end with the columns that the header
    // lacks.
    let is_from_other_file = tokens.len() > columns.len()
        && columns.contains(&b'r')
        && tokens.get(META_TAGS_AT).is_some_and(|tags| are_meta_tags(tags.of(chunk)))
        && fit_with(chunk, tokens, columns, 0).is_some();
    let (own, common) = (|| fit(chunk, tokens, columns), || fit_common(chunk, tokens));
    if is_from_other_file { common().or_else(own) } else { own().or_else(common) }
}

/// Whether `text` is what crawlers write for the meta tags of a page about robots.
fn are_meta_tags(text: &[u8]) -> bool {
    text == b"-" || (text.len() <= 4 && text.iter().all(|byte| b"AFIX".contains(byte)))
}

/// The columns of a line before those that a CDX server adds for revisits (`resolveRevisits`): length, offset and file of the
/// capture with the content, or three `-`.
fn without_original<'t>(chunk: &[u8], tokens: &'t [Span]) -> Option<&'t [Span]> {
    let (own, [len, offset, file]) = tokens.split_last_chunk()?;
    let is_number = |span: &Span| span.of(chunk).iter().all(u8::is_ascii_digit);
    let is_none = |span: &Span| span.of(chunk) == b"-";
    // The length and, if there is one, the offset of the capture itself.
    let place = match own.len() {
        7 => &own[6..],
        11 => &own[8..10],
        _ => return None,
    };
    let is_original = (is_number(len) && is_number(offset)) || [len, offset, file].into_iter().all(is_none);
    (is_original && place.iter().all(is_number)).then_some(own)
}

/// Reads a line whose number of columns differs from its header, in the common layout of that number.
fn fit_common(chunk: &[u8], tokens: &[Span]) -> Option<(Span, FieldValues)> {
    let columns = COMMON.iter().find(|columns| columns.len() == tokens.len())?;
    fit(chunk, tokens, columns)
}

/// Assigns the tokens to columns in order: one to each, and the surplus to redirect and URL, which can contain spaces.
/// Prefers the redirect.
fn fit(chunk: &[u8], tokens: &[Span], columns: &[u8]) -> Option<(Span, FieldValues)> {
    let extra = tokens.len().checked_sub(columns.len())?;
    if tokens.len() > MAX_COLUMNS {
        return None;
    }
    let url_extras = if columns.contains(&b'r') { 0..=extra } else { extra..=extra };
    url_extras.into_iter().find_map(|url_extra| fit_with(chunk, tokens, columns, url_extra))
}

/// Assigns the tokens to columns like [`fit`], with `url_extra` of the surplus to the URL and the others to the redirect.
fn fit_with(chunk: &[u8], tokens: &[Span], columns: &[u8], url_extra: usize) -> Option<(Span, FieldValues)> {
    let redirect_extra = (tokens.len() - columns.len()) - url_extra;
    let at = |letter: u8| columns.iter().position(|&other| other == letter);
    let (url_at, redirect_at) = (at(b'a')?, at(b'r'));
    read_columns(chunk, tokens, columns, |column| match column {
        _ if column == url_at => 1 + url_extra,
        _ if Some(column) == redirect_at => 1 + redirect_extra,
        _ => 1,
    })
}

/// Reads a line whose columns have `lens` tokens each; `None` if a column does not look like its content.
fn read_columns(
    chunk: &[u8],
    tokens: &[Span],
    columns: &[u8],
    lens: impl Fn(usize) -> usize,
) -> Option<(Span, FieldValues)> {
    let mut url = None;
    let mut field = FieldValues::default();
    let mut next = 0;
    // Without surplus tokens no column can be shifted, and crawls contain media types of any form.
    let is_exact = tokens.len() == columns.len();
    for (column, letter) in columns.iter().enumerate() {
        let len = lens(column);
        let (first, last) = (tokens.get(next)?, tokens.get(next + len - 1)?);
        next += len;
        let span = Span { at: first.at, len: last.at + last.len - first.at };
        let text = span.of(chunk);
        let may_be_anything = is_exact && *letter == b'm';
        if !may_be_anything && !is_plausible(*letter, text) {
            return None;
        }
        match letter {
            b'a' => url = url.or(Some(span)),
            letter => set_field(&mut field, *letter, text, span),
        }
    }
    Some((url?, field))
}

/// Sets the field of a column, whose content is `text`.
pub(super) fn set_field(field: &mut FieldValues, letter: u8, text: &[u8], span: Span) {
    let present = (text != b"-").then_some(span);
    match letter {
        b'b' => field.time = time::from_digits(text),
        b's' => field.status = parse_bytes(text),
        b'k' => field.digest = present,
        b'r' => field.redirect = present,
        b'm' => field.mime = present.filter(|_| !matches!(text, b"unk" | b"no-type")),
        b'g' => field.filename = present,
        b'V' => field.capture_offset = parse_bytes(text),
        b'S' => field.capture_length = parse_bytes(text),
        _ => {}
    }
}

/// Whether `text` can be the content of a column; enough to recognize a shifted line.
fn is_plausible(letter: u8, text: &[u8]) -> bool {
    let is_number = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    match letter {
        _ if text == b"-" => true,
        b'b' => is_number(text),
        b's' => is_number(text.strip_prefix(b"-").unwrap_or(text)) && text.len() <= 5,
        b'S' | b'V' | b'v' => is_number(text),
        b'm' => memchr::memchr(b'/', text).is_some() || text == b"unk" || text == b"no-type" || text == b"warc",
        // A status is not a digest.
        b'k' => text.len() >= 4 && text.iter().all(|&byte| DIGEST.contains(byte)),
        b'a' => !text.is_empty(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Row = (String, Option<i32>, Option<i64>, Option<String>, Option<String>);

    fn decode(header: Option<&str>, text: &str) -> (Vec<Row>, Vec<u32>) {
        let columns = header.map(|header| CdxColumns::from_header(header.as_bytes()).unwrap());
        decode_with(&columns.unwrap_or_default(), text)
    }

    fn decode_with(columns: &CdxColumns, text: &str) -> (Vec<Row>, Vec<u32>) {
        let (mut cdx, mut bitmaps) = (Cdx::default(), Bitmaps::default());
        cdx.set_settings(columns);
        let records = cdx.decode(text.as_bytes(), 0, &mut bitmaps);
        let show = |span| records.show(span);
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
        let seven = "org,a)/ 20140103030321 http://a.org/ text/html 200 B2LT 1043";
        assert_eq!(decode(None, seven), (vec![row("http://a.org/", 200, None)], vec![]));
        assert!(Cdx::detect(&SourceHead::new(seven.as_bytes())).is_some());
    }

    #[test]
    fn without_a_header_the_first_record_shows_the_columns() {
        let tails = [" - 333 e.warc.gz", " - - 333 e.warc.gz", " - - 1043 333 e.warc.gz", " 1043"];
        for (tail, letters) in tails.into_iter().zip(COMMON) {
            let line = |url: &str, mime: &str, status: &str, tail: &str| {
                format!("org,a)/ 20140103030321 {url} {mime} {status} B2LT{tail}\n")
            };
            let redirect = letters.contains(&b'r').then_some("/s t");
            let to = tail.replacen(" -", " /s t", 1);
            let plain = line("http://a.org/", "text/html", "200", tail);
            let spaces = line("http://a.org/x y", "text/html", "200", tail);
            let rest =
                [&spaces, &line("http://a.org/r", "text/html", "302", &to), &line("http://a.org/x y", "-", "-", tail)];
            let rest = rest.map(String::as_str).concat();
            let expected = [row("http://a.org/x y", 200, None), row("http://a.org/r", 302, redirect)];
            for first in [plain, spaces] {
                let text = format!("\n{first}{rest}");
                let head = SourceHead::new(text.as_bytes());
                let columns = Cdx::settings_of(&CdxColumns::default(), &head);
                assert_eq!((&columns.0[..], Cdx::detect(&head)), (letters, Some(columns.clone())), "{first}");
                let chosen = CdxColumns::from_header(b"CDX N b a").unwrap();
                assert_eq!(Cdx::settings_of(&chosen, &head), chosen);
                let (rows, faults) = decode_with(&columns, &text);
                assert_eq!(
                    (&rows[1..3], &rows[3].0[..], faults),
                    (&expected[..], "http://a.org/x y", vec![]),
                    "{first}"
                );
                // Lines of other files may follow.
                for other in tails {
                    let line = line("http://a.org/", "text/html", "200", other);
                    assert_eq!(decode_with(&columns, &line), (vec![row("http://a.org/", 200, None)], vec![]), "{line}");
                }
            }
        }
        let cut = SourceHead::new(b"org,a)/ 20140103030321 http://a.org/ text/html 200 B2LT - - 104");
        assert_eq!(Cdx::detect(&cut), Some(CdxColumns::default()));
        assert_eq!(Cdx::detect(&SourceHead::new(b"org,a)/ 2014010 http://a.org/ text/html 200 B2LT 1043\n")), None);
    }

    /// Responses of servers to `resolveRevisits=true` end with the place of the original of a revisit.
    #[test]
    fn the_place_of_an_original_is_not_part_of_a_redirect() {
        let row = |redirect: Option<&str>| {
            let digest = Some("B2LT".to_string());
            ("http://a.org/".to_string(), Some(200), Some(1_388_718_201_000), redirect.map(str::to_string), digest)
        };
        let seven = "org,a)/ 20140103030321 http://a.org/ text/html 200 B2LT 1043";
        let eleven = "org,a)/ 20140103030321 http://a.org/ text/html 200 B2LT - - 1043 333 e.warc.gz";
        for original in ["- - -", "553 99 o.warc.gz"] {
            for header in [None, Some(" CDX N b a m s k r M S V g")] {
                for line in [seven, eleven] {
                    assert_eq!(decode(header, &format!("{line} {original}\n")), (vec![row(None)], vec![]), "{line}");
                }
            }
        }
        let spaces = "org,a)/ 20140103030321 http://a.org/ text/html 200 B2LT /x y z w - 1043 333 e.warc.gz";
        assert_eq!(decode(None, &format!("{spaces}\n")), (vec![row(Some("/x y z w"))], vec![]));
        let place = |line: &str| {
            let (mut cdx, mut bitmaps) = (Cdx::default(), Bitmaps::default());
            let records = cdx.decode(line.as_bytes(), 0, &mut bitmaps);
            (records.fields.capture_offsets[0], records.fields.capture_lengths[0])
        };
        assert_eq!(place(&format!("{eleven} 553 99 o.warc.gz\n")), (Some(333), Some(1043)));
    }

    #[test]
    fn spaces_in_urls_do_not_shift_columns() {
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
    fn files_with_other_headers_may_follow() {
        let columns = [" CDX N b a m s k r V g", " CDX N b a m s k r M V g", " CDX N b a m s k S"];
        let line = |redirect: &str, tags: &str| {
            format!("org,a)/ 20140103030321 http://a.org/ text/html 302 B2LT {redirect} {tags} 1043 333 e.warc.gz\n")
        };
        for header in columns {
            let text = line("/b", "-") + &line("-", "AFI");
            let sound = vec![row("http://a.org/", 302, Some("/b")), row("http://a.org/", 302, None)];
            assert_eq!(decode(Some(header), &text), (sound, vec![]), "{header}");
        }
        let ten = "org,a)/ 20140103030321 http://a.org/ text/html 302 B2LT /b - 333 e.warc.gz\n";
        assert_eq!(decode(Some(columns[0]), ten), (vec![row("http://a.org/", 302, Some("/b"))], vec![]));
        // Spaces in a redirect or a URL make no columns of another layout.
        for redirect in ["/b c", "/b c 7", "/b - c", "/b c d e"] {
            let nine = format!("org,a)/ 20140103030321 http://a.org/ text/html 302 B2LT {redirect} 333 e.warc.gz\n");
            assert_eq!(decode(Some(columns[0]), &nine), (vec![row("http://a.org/", 302, Some(redirect))], vec![]));
        }
        let nine = "org,a)/ 20140103030321 http://a.org/b c/d - 302 B2LT - 333 e.warc.gz\n";
        assert_eq!(decode(Some(columns[0]), nine), (vec![row("http://a.org/b c/d", 302, None)], vec![]));
    }

    #[test]
    fn a_key_to_resume_is_no_record() {
        let line = "org,a)/ 20140103030321 http://a.org/ text/html 200 B2LT 1043\n";
        for key in ["org%2Ca%29%2Fb+20140103030321%21", "org%2Ca%29%2F+20140103030321"] {
            assert_eq!(decode(None, &format!("{line}\n{key}\n")), (vec![row("http://a.org/", 200, None)], vec![]));
        }
        for other in ["org%2Ca%29%2F+2014", "org,a)/+20140103030321", "x", ""] {
            assert!(!is_resume_key(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn lines_of_many_columns_take_no_memory() {
        let (mut cdx, mut bitmaps) = (Cdx::default(), Bitmaps::default());
        let text = "a ".repeat(100_000);
        assert_eq!(cdx.decode(text.as_bytes(), 0, &mut bitmaps).faults.len(), 1);
        assert!(cdx.tokens.capacity() <= 4 * MAX_COLUMNS);
    }

    #[test]
    fn a_line_that_fits_no_layout_has_a_fault() {
        let (rows, faults) = decode(None, "garbage\norg,a)/ 20140103030321 http://a.org/ text/html\n\n \t\r\na b c");
        assert_eq!((rows.len(), faults), (3, vec![0, 1, 2]));
    }

    #[test]
    fn a_later_header_of_other_columns_has_a_fault() {
        let eleven = "org,a)/ 20140103030321 http://a.org/ text/html 200 B2LT - - 1043 333 e.warc.gz\n";
        let sound = row("http://a.org/", 200, None);
        for common in ["N b a m s k r M S V g", "N b a m s k r V g", "N b a m s k S"] {
            let text = format!("{eleven} CDX {common}\n{eleven}");
            assert_eq!(decode(None, &text), (vec![sound.clone(), sound.clone()], vec![]));
        }
        // The second header names no column for URLs.
        for other in [" CDX b a N m s k r M S V g", " CDX N b m s k r M S V g"] {
            let (rows, faults) = decode(None, &format!("{eleven}{other}\n{eleven}"));
            assert_eq!((rows.len(), rows[1].0.as_str(), faults), (3, other, vec![1]));
        }
        // Any line fits a header that names the URL only.
        let (rows, faults) = decode(Some("CDX a"), "http://a.org/\nCDX N a\n");
        assert_eq!((rows.len(), faults), (2, vec![1]));
        let wget = "CDX a b a m s k r M V g u";
        let line = "http://a.org/ 20140103030321 http://a.org/ text/html 200 B2LT - - 333 e.warc.gz <urn:uuid:1>\n";
        assert_eq!(decode(Some(wget), &format!("{wget}\n{line}{wget}\n{line}")), (vec![sound.clone(), sound], vec![]));
    }
}
