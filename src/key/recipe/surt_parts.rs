//! Splits a common URL for the shortcut of the SURT recipes.

use std::ops::Range;

use super::escapes::is_kept_in_surt;
use super::host::www_len;
use crate::iri::escape_value;
use crate::kernel::{Appender, BufferedText, UrlMasks, low_bits, parse_bytes};

/// A URL and the masks of its first bytes.
#[derive(Clone, Copy)]
pub(super) struct MaskedUrl<'a> {
    pub(super) text: &'a [u8],
    /// Begins with the text. Copies of a fixed length may read after it.
    pub(super) buffer: &'a [u8],
    pub(super) masks: &'a UrlMasks,
}

/// What became of a text whose escapes were reduced.
#[derive(Clone, Copy, Default)]
pub(super) struct Reduced {
    /// The text differs from the original, by more than its conversion to lower case.
    pub(super) is_changed: bool,
    /// Before its conversion to lower case, the text had an upper-case letter.
    pub(super) has_upper: bool,
}

impl<'a> MaskedUrl<'a> {
    /// Returns a URL whose masks are `masks`.
    #[inline(always)]
    pub(super) fn new(url: BufferedText<'a>, masks: &'a UrlMasks) -> MaskedUrl<'a> {
        MaskedUrl { text: url.text(), buffer: url.buffer(), masks }
    }

    /// Returns whether there is an upper-case letter in `range`.
    #[inline(always)]
    pub(super) fn has_upper(&self, range: &Range<usize>) -> bool {
        self.masks.all(|class| class.upper) & low_bits(range.end) & !low_bits(range.start) != 0
    }

    /// Appends what [`reduce`](super::escapes::reduce) makes of the bytes in `range`, in lower case. Returns `None`, after a
    /// part was appended, if decoding once is not enough because a `%` remains; if a line separator outside ASCII may be to be
    /// removed; or if an escape of DEL or of a byte in `excluded` is decoded.
    pub(super) fn write_reduced(
        &self,
        range: Range<usize>,
        excluded: &[u8],
        appender: &mut Appender<'_>,
    ) -> Option<Reduced> {
        let (text, in_range) = (&self.text[..range.end], low_bits(range.end) & !low_bits(range.start));
        let mut escapes = self.masks.all(|class| class.escapes) & in_range;
        let mut upper = self.masks.all(|class| class.upper) & in_range;
        let (mut at, mut reduced) = (range.start, Reduced::default());
        while escapes != 0 {
            let next = escapes.trailing_zeros() as usize;
            escapes &= escapes - 1;
            appender.append_in_lower_case::<32>(self.buffer, at..next);
            at = next + 1;
            let mut byte = text[next];
            if byte == b'%' {
                byte = escape_value(&text[next..])?;
                let digits = &text[at..at + 2];
                at += 2;
                upper &= !(6 << next);
                if is_kept_in_surt(byte) {
                    if byte == 0x7F || excluded.contains(&byte) {
                        return None;
                    }
                    appender.push(byte.to_ascii_lowercase());
                    reduced.is_changed = true;
                    reduced.has_upper |= byte.is_ascii_uppercase();
                    continue;
                }
                if byte == b'%' {
                    return None;
                }
                reduced.is_changed |= digits.iter().any(u8::is_ascii_lowercase);
            } else {
                reduced.is_changed = true;
                if matches!((byte, text.get(at)), (0xC2, Some(0x85)) | (0xE2, Some(0x80))) {
                    return None;
                }
            }
            appender.push_escape_in_lower_case(byte);
            reduced.has_upper |= byte & 15 > 9 || byte >> 4 > 9;
        }
        appender.append_in_lower_case::<128>(self.buffer, at..range.end);
        reduced.has_upper |= upper != 0;
        Some(reduced)
    }
}

/// The authority of a common URL: a scheme `http` or `https`, a host of names that ends within 64 bytes, and possibly a port.
pub(super) struct CommonAuthority {
    pub(super) host: Range<usize>,
    /// The dots of the host.
    pub(super) dots: u64,
    pub(super) port: CommonPort,
    /// Upper-case letters of the scheme and of the host.
    pub(super) has_upper: [bool; 2],
}

/// What follows a common host.
pub(super) struct CommonPort {
    /// The number, without the `:`; empty if there is none.
    pub(super) digits: Range<usize>,
    pub(super) is_default: bool,
    /// The end of the authority, where the path begins.
    pub(super) end: usize,
}

/// The path and the query of a common URL whose bytes all have masks.
pub(super) struct CommonTail {
    pub(super) path: Range<usize>,
    /// The query without its `?`.
    pub(super) query: Option<Range<usize>>,
    /// The end of path and query.
    pub(super) end: usize,
    /// Path and query contain `%` or bytes outside ASCII.
    pub(super) has_escapes: bool,
}

impl CommonAuthority {
    /// Returns the authority of `url`, or `None` if there might be a rule that changes it other than by the case of letters,
    /// by `www.` and by the port.
    #[inline(always)]
    pub(super) fn read(url: &MaskedUrl<'_>) -> Option<CommonAuthority> {
        let (text, masks) = (url.text, url.masks);
        let host_at = host_at(text.first_chunk()?)?;
        let scheme = (1_u64 << host_at) - 1;
        // Bytes past the end are not names.
        let host_end = (masks.low.not_names & !scheme).trailing_zeros();
        let until_host_end = 1_u64.checked_shl(host_end)? - 1;
        let (host_end, dots) = (host_end as usize, masks.low.dots & until_host_end);
        let has_empty_label = dots & (dots << 1 | 1 << host_at) != 0;
        // An IPv4 address ends in a digit.
        let ends_in_name = matches!(text[host_end - 1], b'a'..=b'z' | b'A'..=b'Z' | b'-' | b'_');
        if has_empty_label || !ends_in_name {
            return None;
        }
        let upper = masks.low.upper & until_host_end;
        let has_upper = [upper & scheme != 0, upper & !scheme != 0];
        let port = match text.get(host_end) {
            None | Some(b'/' | b'?' | b'#') => CommonPort { digits: 0..0, is_default: false, end: host_end },
            Some(b':') => CommonPort::read(text, host_end + 1, if host_at == HTTPS.len() { 443 } else { 80 })?,
            _ => return None,
        };
        Some(CommonAuthority { host: host_at..host_end, dots, port, has_upper })
    }

    /// Returns the position of the name after up to `most` prefixes like `www.` and `www2.`.
    #[inline(always)]
    pub(super) fn name_at(&self, text: &[u8], most: usize) -> usize {
        let host = &text[self.host.clone()];
        let Some(start) = host.first_chunk::<4>() else { return self.host.start };
        // Half of all hosts begin with `www.`, so a branch could not be predicted.
        let is_www = start.map(|byte| byte | 0x20) == *b"www.";
        let at = self.host.start + 4 * usize::from(is_www);
        let has_more = text.get(at..at + 3).is_some_and(|next| next.eq_ignore_ascii_case(b"www"));
        if has_more { self.host.start + www_prefixes_len(host, most) } else { at }
    }
}

/// Returns the length of up to `most` prefixes of `host` like `www.` and `www2.`, in any case.
#[cold]
fn www_prefixes_len(host: &[u8], most: usize) -> usize {
    let host = host.to_ascii_lowercase();
    let mut len = 0;
    for _ in 0..most {
        let Some(prefix_len) = www_len(&host[len..]) else { break };
        len += prefix_len;
    }
    len
}

impl CommonPort {
    /// Reads the port at `at` of `text`. Returns `None` if it is empty, has leading zeros or is not a port.
    #[cold]
    fn read(text: &[u8], at: usize, default: u16) -> Option<CommonPort> {
        let count = text[at..].iter().take(6).take_while(|byte| byte.is_ascii_digit()).count();
        let end = at + count;
        let number: u16 = parse_bytes(&text[at..end])?;
        let is_ended = matches!(text.get(end), None | Some(b'/' | b'?' | b'#'));
        (text[at] != b'0' && is_ended).then_some(CommonPort { digits: at..end, is_default: number == default, end })
    }
}

impl CommonTail {
    /// Returns the path and the query of a URL whose bytes all have masks, from the end of its authority on, or `None` if a rule
    /// other than those of escapes, case, final slash and query might change them.
    #[inline(always)]
    pub(super) fn read(url: &MaskedUrl<'_>, path_at: usize) -> Option<CommonTail> {
        let (len, masks) = (url.text.len(), url.masks);
        let first_or = |mask: u128, limit: usize| (mask.trailing_zeros() as usize).min(limit);
        let end = first_or(masks.all(|class| class.hashes), len);
        let query_mark = first_or(masks.all(|class| class.questions), end);
        let slashes = masks.all(|class| class.slashes);
        // The `//` of the scheme ends before byte 8.
        let pairs = slashes & masks.all(|class| class.slashes | class.dots) >> 1 & !0x7F;
        // No byte before the path is in these masks, so that the first one decides.
        if first_or(masks.all(|class| class.specials), end) < end || first_or(pairs, query_mark) < query_mark {
            return None;
        }
        let has_escapes = first_or(masks.all(|class| class.escapes), end) < end;
        let query = (query_mark < end).then(|| query_mark + 1..end);
        Some(CommonTail { path: path_at..query_mark, query, end, has_escapes })
    }
}

const HTTP: &[u8; 7] = b"http://";
const HTTPS: &[u8; 8] = b"https://";

/// Returns the length of the scheme and the slashes with which a URL of http or https begins.
#[inline(always)]
fn host_at(start: &[u8; 8]) -> Option<usize> {
    const fn word(start: [u8; 8]) -> u64 {
        u64::from_le_bytes(start)
    }
    /// The bit that makes a letter lower case, for the letters of `http` and of `https`.
    const CASE: [u64; 2] = [word(*b"    \0\0\0\0"), word(*b"     \0\0\0")];
    let start = word(*start);
    let is_http = (start | CASE[0]) << 8 == word(*b"\0http://");
    let is_https = start | CASE[1] == word(*HTTPS);
    // Computed, not branched on: both schemes are common.
    (is_http | is_https).then_some(HTTP.len() + usize::from(is_https))
}
