//! Heads of archives' records: the fields of WARC (ISO 28500), the columns of ARC. In: a head, whole. Out: what counts of
//! it.

use super::super::capture::Capture;
use super::super::http::for_each_field;
use super::super::time;

/// What of a WARC record's head counts.
#[derive(Default)]
pub(super) struct WarcFields {
    pub(super) kind: Vec<u8>,
    pub(super) target: Vec<u8>,
    pub(super) date: Vec<u8>,
    pub(super) digest: Vec<u8>,
    /// Media type, with parameters.
    pub(super) content_type: Vec<u8>,
    pub(super) length: Option<u64>,
}

impl WarcFields {
    pub(super) fn read(head: &[u8]) -> WarcFields {
        let mut fields = WarcFields::default();
        let after_version = memchr::memchr(b'\n', head).map_or(head.len(), |at| at + 1);
        for_each_field(&head[after_version..], |name, value| {
            let slot = match name.len() {
                9 if name.eq_ignore_ascii_case(b"warc-type") => &mut fields.kind,
                9 if name.eq_ignore_ascii_case(b"warc-date") => &mut fields.date,
                12 if name.eq_ignore_ascii_case(b"content-type") => &mut fields.content_type,
                15 if name.eq_ignore_ascii_case(b"warc-target-uri") => &mut fields.target,
                19 if name.eq_ignore_ascii_case(b"warc-payload-digest") => &mut fields.digest,
                14 if name.eq_ignore_ascii_case(b"content-length") => {
                    fields.length = std::str::from_utf8(&value).ok().and_then(|digits| digits.parse().ok());
                    return;
                }
                _ => return,
            };
            *slot = value;
        });
        fields.kind.make_ascii_lowercase();
        fields
    }
}

/// `WARC/` and a version.
pub(super) fn is_version(line: &[u8]) -> bool {
    line.strip_prefix(b"WARC/").is_some_and(|version| version.first().is_some_and(u8::is_ascii_digit))
}

/// A URI between one `<` and one `>`, as wget wrote it by the letter of the standard's first edition.
pub(super) fn without_brackets(uri: &[u8]) -> (&[u8], bool) {
    match uri.strip_prefix(b"<").and_then(|rest| rest.strip_suffix(b">")) {
        Some(inner) => (inner.trim_ascii(), true),
        None => (uri, false),
    }
}

pub(super) fn has_blank_line(text: &[u8]) -> bool {
    memchr::memmem::find(text, b"\n\r\n").is_some() || memchr::memmem::find(text, b"\n\n").is_some()
}

/// `charset-detected` of a metadata record's fields, as Common Crawl writes it.
pub(super) fn detected_charset(content: &[u8]) -> Vec<u8> {
    let mut found = Vec::new();
    for_each_field(content, |name, value| {
        if name.eq_ignore_ascii_case(b"charset-detected") {
            found = value;
        }
    });
    found
}

/// The head of an ARC record, `URL IP date type length`, or with five columns more before the length, and how long its
/// content is. Spaces in the URL shift nothing.
pub(super) fn arc_record(line: &[u8]) -> Option<(Capture, u64)> {
    let line = line.trim_ascii_end();
    let mut words = line.rsplitn(11, |&byte| byte == b' ');
    let length = std::str::from_utf8(words.next()?).ok()?.parse().ok()?;
    let rest: Vec<&[u8]> = words.collect();
    let date_at = [1, 6].into_iter().find(|&at| rest.get(at).is_some_and(|word| is_arc_date(word)))?;
    // After the date's word from behind come the address and the URL.
    let behind: usize = rest.get(..date_at + 2)?.iter().map(|word| word.len() + 1).sum();
    let url = line.get(..line.len().checked_sub(behind + length_len(line) + 1)?)?;
    let has_more = date_at == 6;
    let said = |at: usize| rest.get(at).filter(|word| has_more && **word != b"-").map(|word| word.to_vec());
    let status = said(4).and_then(|word| std::str::from_utf8(&word).ok().and_then(|digits| digits.parse().ok()));
    let capture = Capture {
        time: time::from_digits(rest[date_at]),
        url: url.to_vec(),
        mime: Some(rest[date_at - 1]).filter(|word| !matches!(*word, b"-" | b"no-type")).unwrap_or_default().to_vec(),
        status,
        redirect: said(2).unwrap_or_default(),
        ..Capture::default()
    };
    (find_colon(url)).then_some((capture, length))
}

/// Length of the last word.
fn length_len(line: &[u8]) -> usize {
    line.len() - memchr::memrchr(b' ', line).map_or(0, |at| at + 1)
}

fn is_arc_date(word: &[u8]) -> bool {
    matches!(word.len(), 8 | 14) && word.iter().all(u8::is_ascii_digit)
}

fn find_colon(url: &[u8]) -> bool {
    memchr::memchr(b':', url).is_some_and(|at| at > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_that_lacks_a_word_is_none() {
        let head = |line: &str| arc_record(line.as_bytes()).map(|(capture, len)| (capture.url, len));
        assert_eq!(head("http://a/ 192.0.2.1 20140216050221 a/b 7"), Some((b"http://a/".to_vec(), 7)));
        for line in ["20140216050221 a/b 7", "1 20140216050221 a/b 7", "a/b 7", "7", ""] {
            assert_eq!(head(line), None, "{line}");
        }
    }
}
