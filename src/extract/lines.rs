//! Documents whose lines hold references: `robots.txt` and lists of URLs.
//!
//! `robots.txt` is read as crawlers do (RFC 9309): lines end in LF, CR or both; names are in any case; white space around
//! names and values, and comments, are ignored; a space may replace the colon. The whole file is read.

use super::links::{LinkAttribute, LinkSink};
use crate::kernel::{strip_prefix_ignoring_case, trimmed_ascii_range};
use std::ops::Range;

/// Gives the values of the `Sitemap` lines of `robots.txt` to `sink`.
pub(super) fn read_robots(text: &[u8], sink: &mut LinkSink<'_>) {
    for_each_line(text, |line| {
        let line = line.start..memchr::memchr(b'#', &text[line.clone()]).map_or(line.end, |len| line.start + len);
        let Some(value) = sitemap_value(text, line) else { return true };
        push(text, value, "sitemap", sink)
    });
}

/// Gives the lines of a list to `sink`.
pub(super) fn read_urls(text: &[u8], sink: &mut LinkSink<'_>) {
    for_each_line(text, |line| {
        let value = trimmed_ascii_range(text, line);
        value.is_empty() || push(text, value, "", sink)
    });
}

/// Calls `handle` with each line, until it returns false.
fn for_each_line(text: &[u8], mut handle: impl FnMut(Range<usize>) -> bool) {
    let mut at = 0;
    while at < text.len() {
        let end = memchr::memchr2(b'\n', b'\r', &text[at..]).map_or(text.len(), |len| at + len);
        if !handle(at..end) {
            return;
        }
        at = end + 1;
    }
}

/// The value of a `Sitemap` line.
fn sitemap_value(text: &[u8], line: Range<usize>) -> Option<Range<usize>> {
    const NAME: &[u8] = b"sitemap";
    let line = trimmed_ascii_range(text, line);
    strip_prefix_ignoring_case(&text[line.clone()], NAME)?;
    let after_name = trimmed_ascii_range(text, line.start + NAME.len()..line.end);
    let value = match text[after_name.clone()].first()? {
        b':' => trimmed_ascii_range(text, after_name.start + 1..after_name.end),
        _ if after_name.start > line.start + NAME.len() => after_name,
        _ => return None,
    };
    (!value.is_empty()).then_some(value)
}

fn push(text: &[u8], span: Range<usize>, rel: &str, sink: &mut LinkSink<'_>) -> bool {
    sink.push(&LinkAttribute::content("", rel, &text[span.clone()], span))
}
