//! The part of the pass that writes path, query and fragment (RFC 3987 sections 3.1, 5.3.2.3 and 5.3.2.4), and then
//! normalizes the complete path.

use std::ops::Range;

use super::Pass;
use crate::iri::class::{UNRESERVED, UPPER};
use crate::iri::fault::Component;
use crate::iri::flags::{Changes, Flags};
use crate::iri::percent::{ascii_flag, escape_value, non_ascii_flag, would_complete_an_escape};
use crate::iri::resolve::{path_guard, remove_dot_segments_within};
use crate::iri::scheme::urn_nid_len;
use crate::kernel::{
    AsciiCase, BufferedText, escape, find_byte_from, low_bits_of_64, mask_of, non_ascii_len, percent_encode_buffered,
};

/// Finds out whether a query has begun. Each byte is searched once, however many positions are requested.
struct QueryFinder {
    /// The bytes before this position were searched.
    searched: usize,
    is_found: bool,
}

impl QueryFinder {
    /// Returns true if there is a `?` before byte `at` of `bytes`. The positions of calls must ascend.
    fn is_before(&mut self, bytes: &[u8], at: usize) -> bool {
        self.is_found = self.is_found || memchr::memchr(b'?', &bytes[self.searched..at]).is_some();
        self.searched = at;
        self.is_found
    }
}

impl<const SCHEME: bool> Pass<'_, SCHEME> {
    /// Writes path, query and fragment, which begin at byte `path_at`, from mark to mark; the first one is `first_mark`. Bytes
    /// from `copied` to `path_at` are written unchanged before them.
    #[inline(always)]
    pub(super) fn write_path_query_fragment(&mut self, mut copied: usize, path_at: usize, first_mark: usize) {
        let bytes = self.bytes;
        let mut query = QueryFinder { searched: path_at, is_found: false };
        let mut in_fragment = false;
        let mut at = first_mark;
        while at < bytes.len() {
            match bytes[at] {
                b'%' => at = self.write_escapes(&mut copied, at),
                b'.' => {
                    self.note_dot(self.out.len() + at - copied);
                    at += 1;
                }
                b'#' if !in_fragment => {
                    if self.drop_fragment {
                        self.changes |= Changes::FRAGMENT;
                        self.reference.append(copied..at, self.out);
                        return;
                    }
                    in_fragment = true;
                    at += 1;
                }
                b'#' | b'[' | b']' => {
                    self.flags |= Flags::STRAY_DELIM;
                    at += 1;
                }
                0x80.. => {
                    self.reference.append(copied..at, self.out);
                    let len = non_ascii_len(&bytes[at..]);
                    self.flag_non_ascii(&mut query, at..at + len, in_fragment);
                    percent_encode_buffered(self.reference.buffered(at..at + len), self.out);
                    self.changes |= Changes::PCT_ENCODED;
                    at += len;
                    copied = at;
                }
                byte => {
                    self.reference.append(copied..at, self.out);
                    self.flags |= ascii_flag(byte, Component::Path);
                    self.out.extend_from_slice(&escape(byte));
                    self.changes |= Changes::PCT_ENCODED;
                    at += 1;
                    copied = at;
                }
            }
            at = self.reference.next_attention_near(at);
        }
        self.reference.append(copied..bytes.len(), self.out);
    }

    /// Writes the escape at byte `at` or a run of escapes that begins there, if they change, and the bytes from `copied` to
    /// `at` before them. Returns the end of the escapes.
    #[inline(always)]
    fn write_escapes(&mut self, copied: &mut usize, at: usize) -> usize {
        let Some(octet) = escape_value(&self.bytes[at..]) else {
            self.flags |= Flags::STRAY_PERCENT;
            return at + 1;
        };
        if UNRESERVED.contains(octet) {
            self.reference.append(*copied..at, self.out);
            self.write_decoded(octet, &self.bytes[at..at + 3]);
            *copied = at + 3;
            return at + 3;
        }
        let (len, has_lower_case) = self.reference.undecoded_escapes(at);
        if has_lower_case {
            self.reference.append(*copied..at, self.out);
            self.reference.append_in_case(at..at + len, AsciiCase::Upper, self.out);
            self.changes |= Changes::PCT_CASE;
            *copied = at + len;
        }
        at + len
    }

    /// Writes the unreserved character of an escape.
    #[inline(always)]
    fn write_decoded(&mut self, octet: u8, escape: &[u8]) {
        let may_complete = self.flags.intersects(Flags::STRAY_PERCENT);
        if may_complete && would_complete_an_escape(octet, self.out) {
            return self.out.extend_from_slice(escape);
        }
        if octet == b'.' {
            self.note_dot(self.out.len());
        }
        self.out.push(octet);
        self.changes |= Changes::PCT_DECODED;
    }

    /// Notes a dot at byte `at` of `out` that may belong to a dot segment.
    #[inline(always)]
    fn note_dot(&mut self, at: usize) {
        self.dots = self.dots.start.min(at)..at + 1;
    }

    /// Sets the flags of a run of non-ASCII bytes.
    #[inline(always)]
    fn flag_non_ascii(&mut self, query: &mut QueryFinder, run: Range<usize>, in_fragment: bool) {
        if !is_plain_ucschar(self.reference.buffered(run.clone())) {
            self.flag_characters(query, run, in_fragment);
        }
    }

    /// Sets the flags of a run of non-ASCII bytes, character by character.
    #[inline(never)]
    fn flag_characters(&mut self, query: &mut QueryFinder, run: Range<usize>, in_fragment: bool) {
        let mut text = &self.bytes[run.clone()];
        let component = if in_fragment {
            Component::Fragment
        } else if query.is_before(self.bytes, run.start) {
            Component::Query
        } else {
            Component::Path
        };
        while !text.is_empty() {
            let (character, len) = bstr::decode_utf8(text);
            self.flags |= non_ascii_flag(character, component);
            text = &text[len..];
        }
    }

    /// Removes the dot segments of the path that was written at `path_at`, if it begins with a slash.
    pub(super) fn remove_noted_dot_segments(&mut self, path_at: usize, has_authority: bool) {
        if self.out.get(path_at) != Some(&b'/') {
            return;
        }
        // The dots after the end of the path are those of a query or fragment.
        let before_last_dot = &self.out[path_at..self.dots.end];
        let until = find_byte_from(before_last_dot, 0, |byte| matches!(byte, b'?' | b'#'));
        if self.dots.start >= path_at + until {
            return;
        }
        let gap = remove_dot_segments_within(&mut self.out[path_at..], self.dots.start - path_at..until);
        if !gap.is_empty() {
            self.out.drain(path_at + gap.start..path_at + gap.end);
            self.changes |= Changes::DOT_SEGMENTS;
        }
        let guard = path_guard(has_authority, &self.out[path_at..]);
        if !guard.is_empty() {
            self.out.splice(path_at..path_at, guard.iter().copied());
            self.changes |= Changes::PATH_GUARD;
        }
    }

    /// RFC 8141 section 3.1: converts the namespace identifier to lower case.
    pub(super) fn lower_case_urn_namespace(&mut self, path_at: usize) {
        let len = urn_nid_len(&self.out[path_at..]);
        let nid = &mut self.out[path_at..path_at + len];
        if nid.iter().any(|&byte| UPPER.contains(byte)) {
            nid.make_ascii_lowercase();
            self.changes |= Changes::URN_NID;
        }
    }
}

/// Returns true only if `run` is UTF-8, every character is a `ucschar` of two or three bytes, and none is forbidden by
/// section 4.1. Also returns false for all characters of U+0080-00BF, U+2000-2FFF, and U+E000 and above.
#[inline(always)]
fn is_plain_ucschar(run: BufferedText<'_>) -> bool {
    let len = run.text().len();
    run.buffer().first_chunk().is_some_and(|block| is_plain_block(block, len)) || is_plain_text(run.text())
}

/// Returns true only if the first `len` bytes of a block are plain, see [`is_plain_ucschar`], and all characters are of two
/// bytes, or all of U+3000-CFFF. Such runs are checked without a loop, whose end the processor would not predict.
#[inline(always)]
fn is_plain_block(block: &[u8; 32], len: usize) -> bool {
    const EVERY_SECOND: u64 = 0x5555_5555;
    const EVERY_THIRD: u64 = 0x4924_9249;
    let run = low_bits_of_64(len);
    let tails = mask_of(block, |byte| byte & 0xC0 == 0x80) & run;
    let of_two = mask_of(block, |byte| (0xC3..=0xDF).contains(&byte)) & run;
    let of_three = mask_of(block, |byte| (0xE3..=0xEC).contains(&byte)) & run;
    let is_two = of_two == EVERY_SECOND & run && tails == !EVERY_SECOND & run && len.is_multiple_of(2);
    let is_three = of_three == EVERY_THIRD & run && tails == !EVERY_THIRD & run && len.is_multiple_of(3);
    len <= block.len() && (is_two || is_three)
}

/// Does what [`is_plain_ucschar`] does, character by character.
#[inline(never)]
fn is_plain_text(mut run: &[u8]) -> bool {
    let is_tail = |byte: u8| byte & 0xC0 == 0x80;
    loop {
        run = match *run {
            [] => return true,
            [0xC3..=0xDF, a, ref rest @ ..] if is_tail(a) => rest,
            [0xE0, 0xA0..=0xBF, b, ref rest @ ..] if is_tail(b) => rest,
            [0xED, 0x80..=0x9F, b, ref rest @ ..] if is_tail(b) => rest,
            [0xE1 | 0xE3..=0xEC, a, b, ref rest @ ..] if is_tail(a) && is_tail(b) => rest,
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the block with the loop, for a run that follows other characters and precedes other bytes.
    fn check_in_buffers(run: &[u8]) {
        for before in ["", "ö", "中", "й中", "ййййй", "中中中中", "йййййййййййййй", "中中中中中中中中中中"]
        {
            for after in [b'a', 0x80, 0xC3, 0xE3] {
                let text = [before.as_bytes(), run].concat();
                let buffer = [&text[..], &[after; 40]].concat();
                let in_buffer = is_plain_ucschar(BufferedText::within(&buffer, 0, text.len()));
                assert_eq!(in_buffer, is_plain_text(&text), "{text:02X?} {after}");
            }
        }
    }

    #[test]
    fn plain_runs_are_utf8_of_characters_without_flags() {
        // The bytes at the borders of the classes of UTF-8.
        let tails = [0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF];
        let mut plain_count = 0;
        for first in 0x80..=0xFF {
            for second in tails {
                for run in
                    [&[first, second][..], &[first, second, 0x80], &[first, second, 0x7F], &[first, second, 0xC0]]
                {
                    check_in_buffers(run);
                    if !is_plain_text(run) {
                        continue;
                    }
                    plain_count += 1;
                    let text = std::str::from_utf8(run).unwrap_or_else(|_| panic!("{run:02X?} is not UTF-8"));
                    let flags = text.chars().map(|c| non_ascii_flag(Some(c), Component::Path));
                    assert!(flags.clone().all(|flag| flag.is_empty()), "{run:02X?}");
                }
            }
        }
        assert!(plain_count > 100, "{plain_count}");
    }
}
