//! The fused pass: what `ladder.rs` does in named steps, done in one walk over a reference whose chunk has bitmaps.
//!
//! A reference without a mark where one would need attention is canonical by proof ([`is_canonical`]): it is copied.
//! Every other one is walked from mark to mark; what lies between two marks is copied as it is.

use std::ops::Range;

use super::check::{check_authority_lenient, check_path_noscheme, check_port};
use super::class::{UNRESERVED, UPPER};
use super::dots::remove_dot_segments;
use super::host::{HostCache, ipv6_text};
use super::ladder::{port_number, urn_nid_len};
use super::parts::{Authority, find_scheme};
use super::percent::{ascii_flag, escape_value, map_component, non_ascii_flag, would_complete_an_escape};
use super::resolve::path_guard;
use super::scheme::Scheme;
use super::{Changes, Component, Fault, FaultKind, Flags};
use crate::kernel::{Bitmaps, append, append_range, non_ascii_len, percent_encode};
use crate::record::Span;

/// One reference of a text that bitmaps describe.
#[derive(Clone, Copy, Debug)]
pub struct Marked<'a> {
    /// The text that it stands in: a chunk, or itself alone.
    pub text: &'a [u8],
    /// Marks of the text, made with [`super::CLASSIFIER`].
    pub bitmaps: &'a Bitmaps,
    /// Where it stands in the text.
    pub span: Span,
    /// The text is known to be UTF-8.
    pub is_utf8: bool,
}

impl<'a> Marked<'a> {
    /// The reference's bytes.
    #[inline(always)]
    pub fn line(&self) -> &'a [u8] {
        self.span.of(self.text)
    }

    /// Where the reference begins in the text.
    #[inline(always)]
    fn at(&self) -> usize {
        self.span.at as usize
    }

    #[inline(always)]
    fn next_attention(&self, from: usize) -> usize {
        self.bitmaps.next_attention(self.at() + from) - self.at()
    }

    #[inline(always)]
    fn next_stop(&self, from: usize) -> usize {
        self.bitmaps.next_stop(self.at() + from) - self.at()
    }

    /// Appends bytes `range` of the reference to `out`.
    #[inline(always)]
    fn append(&self, range: Range<usize>, out: &mut Vec<u8>) {
        append_range(out, self.text, self.at() + range.start, range.len());
    }
}

/// `reference` is an `http` or `https` URI that every rung leaves as it is: scheme in lower case; a host of lower-case
/// letters, digits, `.` and `-` without `--`, which the path's `/` follows; after it no dot segment, nothing that a URI
/// has no room for, and no escapes but canonical ones. Never true of one that some rung changes; false of some that
/// none does. With `keep_fragment` there may be a fragment; without it there is none.
#[inline(always)]
pub fn is_canonical(reference: &Marked<'_>, keep_fragment: bool) -> bool {
    let line = reference.line();
    let Some(&head) = line.first_chunk::<8>() else { return false };
    let head = u64::from_le_bytes(head);
    let is_http = head & 0x00FF_FFFF_FFFF_FFFF == u64::from_le_bytes(*b"http://\0");
    let is_https = head == u64::from_le_bytes(*b"https://");
    // What is left is no branch until all is known: where lines differ, branches are what costs.
    let host_at = 7 + usize::from(is_https);
    let host_end = reference.next_stop(host_at);
    if !(is_http | is_https) || line.get(host_end) != Some(&b'/') {
        return false;
    }
    // No byte that a host keeps as it is needs attention.
    let (from, to) = (reference.at() + host_at, reference.at() + line.len());
    !reference.bitmaps.has_attention(from, to) || are_marks_canonical(reference, host_end, keep_fragment)
}

/// The scheme of a line that begins with `http://` or `https://` in any case, its length, and that it is in lower case.
#[inline(always)]
pub fn web_scheme(line: &[u8]) -> Option<(Scheme, usize, bool)> {
    let head = u64::from_le_bytes(*line.first_chunk::<8>()?);
    // Bit 5 is set in letters only: of all bytes none but a letter's two cases become that letter.
    let (as_http, as_https) = (head | 0x2020_2020, head | 0x20_2020_2020);
    if as_http & 0x00FF_FFFF_FFFF_FFFF == u64::from_le_bytes(*b"http://\0") {
        Some((Scheme::Http, 4, head == as_http))
    } else if as_https == u64::from_le_bytes(*b"https://") {
        Some((Scheme::Https, 5, head == as_https))
    } else {
        None
    }
}

/// Every mark from byte `at` on is the `#` of the fragment, if that is kept, or an escape that stays as it is.
fn are_marks_canonical(reference: &Marked<'_>, from: usize, keep_fragment: bool) -> bool {
    let line = reference.line();
    let mut may_begin_fragment = keep_fragment;
    let mut at = reference.next_attention(from);
    while at < line.len() {
        match line[at] {
            b'%' if is_canonical_escape(&line[at..]) => at += 3,
            b'#' if may_begin_fragment => {
                may_begin_fragment = false;
                at += 1;
            }
            _ => return false,
        }
        at = reference.next_attention(at);
    }
    true
}

/// `text` begins with an escape of an octet that is not unreserved, with upper-case digits.
#[inline(always)]
fn is_canonical_escape(text: &[u8]) -> bool {
    escape_value(text).is_some_and(|octet| !UNRESERVED.contains(octet) && text[1] < b'a' && text[2] < b'a')
}

/// What the pass keeps from one reference to the next; its answers do not depend on it.
#[derive(Debug, Default)]
pub struct Normalizer {
    hosts: HostCache,
}

impl Normalizer {
    /// Appends the URI of an absolute IRI to `out`: the text of the scheme rung if `SCHEME`, else of the syntax rung,
    /// by lenient intake; strict intake is the caller's check beforehand. `drop_fragment` leaves the fragment out.
    ///
    /// # Errors
    /// What lenient intake refuses; `out` may then have grown.
    pub fn normalize<const SCHEME: bool>(
        &mut self,
        reference: Marked<'_>,
        drop_fragment: bool,
        out: &mut Vec<u8>,
    ) -> Result<(Flags, Changes), Fault> {
        let pass = Pass::<SCHEME> {
            reference,
            line: reference.line(),
            out,
            hosts: &mut self.hosts,
            drop_fragment,
            flags: Flags::NONE,
            changes: Changes::NONE,
            may_have_dots: false,
        };
        pass.run()
    }
}

/// What may stand in an authority besides plain host bytes, as bits.
mod seen {
    pub const UPPER: u8 = 1;
    /// `-` after `-`: a label may begin with `xn--`.
    pub const HYPHENS: u8 = 2;
    /// Escapes and what must become one.
    pub const ENCODED: u8 = 4;
    /// `@`, `[`, `]`: more than a host and a port.
    pub const DELIM: u8 = 8;
    /// `:`.
    pub const COLON: u8 = 16;
    /// `/`, `?`, `#`: the authority is over.
    pub const END: u8 = 32;

    /// By byte: which of the above it is; 0 for bytes that a host keeps as they are.
    pub const OF: [u8; 256] = {
        let mut of = [0; 256];
        let mut byte = 0;
        while byte < 256 {
            of[byte] = match byte as u8 {
                b'A'..=b'Z' => UPPER,
                b'-' => HYPHENS,
                b'@' | b'[' | b']' => DELIM,
                b':' => COLON,
                b'/' | b'?' | b'#' => END,
                other if super::super::class::REG_NAME.contains(other) => 0,
                _ => ENCODED,
            };
            byte += 1;
        }
        of
    };
}

/// `run`, which is UTF-8 beyond ASCII, has a lead byte of characters that are not all `ucschar`, or that section 4.1
/// bans: below U+00C0, U+2000-2FFF, U+E000 and above. Without branches, so that it is done many bytes at a time.
fn needs_look(run: &[u8]) -> bool {
    run.iter().fold(false, |needs, &byte| needs | (byte == 0xC2) | (byte == 0xE2) | (byte >= 0xEE))
}

struct Pass<'a, const SCHEME: bool> {
    reference: Marked<'a>,
    line: &'a [u8],
    out: &'a mut Vec<u8>,
    hosts: &'a mut HostCache,
    drop_fragment: bool,
    flags: Flags,
    changes: Changes,
    may_have_dots: bool,
}

impl<const SCHEME: bool> Pass<'_, SCHEME> {
    fn run(mut self) -> Result<(Flags, Changes), Fault> {
        let (scheme, mut at) = self.scheme()?;
        let mut has_authority = self.line[at..].starts_with(b"//");
        if has_authority {
            self.out.extend_from_slice(b"//");
            at = self.authority(scheme, at + 2)?;
        } else if SCHEME && scheme == Scheme::File && self.line.get(at) == Some(&b'/') {
            self.out.extend_from_slice(b"//");
            self.changes |= Changes::FILE_HOST;
            has_authority = true;
        }
        let path_at = self.out.len();
        if SCHEME && has_authority && scheme.is_network() && matches!(self.line.get(at), None | Some(b'?' | b'#')) {
            self.out.push(b'/');
            self.changes |= Changes::EMPTY_PATH;
        }
        self.tail(at);
        if self.may_have_dots {
            self.dot_segments(path_at, has_authority);
        }
        if SCHEME && scheme == Scheme::Urn && !has_authority {
            self.urn_namespace(path_at);
        }
        Ok((self.flags, self.changes))
    }

    /// Writes the scheme and its `:`; returns the offset after it.
    fn scheme(&mut self) -> Result<(Scheme, usize), Fault> {
        if let Some((scheme, len, is_lower_case)) = web_scheme(self.line) {
            self.out.extend_from_slice(if scheme == Scheme::Http { b"http:" } else { b"https:" });
            self.changes |= if is_lower_case { Changes::NONE } else { Changes::CASE };
            return Ok((scheme, len + 1));
        }
        let Some(len) = find_scheme(self.line) else { return Err(no_scheme(self.line)) };
        self.append_lower_case(&self.line[..len]);
        self.out.push(b':');
        Ok((Scheme::named(&self.line[..len]), len + 1))
    }

    fn append_lower_case(&mut self, text: &[u8]) {
        let at = self.out.len();
        append(self.out, text);
        if text.iter().any(|&byte| UPPER.contains(byte)) {
            self.out[at..].make_ascii_lowercase();
            self.changes |= Changes::CASE;
        }
    }

    /// Writes the authority that begins at `at`; returns its end.
    fn authority(&mut self, scheme: Scheme, at: usize) -> Result<usize, Fault> {
        let (mut end, mut seen) = (at, 0);
        let (mut colon, mut colon_count) = (at, 0);
        loop {
            end = self.reference.next_stop(end).min(self.line.len());
            // A table and no `match`: which byte comes next is what branches cannot foresee.
            let kind = self.line.get(end).map_or(seen::END, |&byte| seen::OF[byte as usize]);
            if kind == seen::END {
                break;
            }
            seen |= kind;
            (colon, colon_count) = if kind == seen::COLON { (end, colon_count + 1) } else { (colon, colon_count) };
            end += 1;
        }
        if seen & seen::DELIM == 0 && colon_count <= 1 && scheme != Scheme::File {
            return self.host_and_port(scheme, at, if colon_count == 1 { colon } else { end }, end, seen);
        }
        let authority = Authority::split(self.line, at..end);
        check_authority_lenient(self.line, authority)?;
        let (host_at, host_end) = (authority.host_at as usize, authority.host_end as usize);
        if host_at > at {
            self.encoded_part(&self.line[at..host_at - 1], Component::Userinfo);
            self.out.push(b'@');
        }
        let host_out = self.out.len();
        self.host(scheme, &self.line[host_at..host_end], seen);
        let has_port = end > host_end && self.port(scheme, &self.line[host_end + 1..end]);
        if SCHEME && scheme == Scheme::File && host_at == at && !has_port && self.out[host_out..] == *b"localhost" {
            self.out.truncate(host_out);
            self.changes |= Changes::FILE_HOST;
        }
        Ok(end)
    }

    /// Writes a host that is all of the authority, or all before the only `:`; returns the authority's end.
    #[inline(always)]
    fn host_and_port(
        &mut self,
        scheme: Scheme,
        at: usize,
        host_end: usize,
        end: usize,
        seen: u8,
    ) -> Result<usize, Fault> {
        if host_end < end {
            check_port(self.line, host_end + 1, end)?;
        }
        match seen & !seen::COLON {
            0 => self.reference.append(at..host_end, self.out),
            seen::UPPER => {
                let out_at = self.out.len();
                self.reference.append(at..host_end, self.out);
                self.out[out_at..].make_ascii_lowercase();
                self.changes |= Changes::CASE;
            }
            _ => self.host(scheme, &self.line[at..host_end], seen),
        }
        if host_end < end {
            self.port(scheme, &self.line[host_end + 1..end]);
        }
        Ok(end)
    }

    /// Writes a host; `seen` may speak of more than the host.
    fn host(&mut self, scheme: Scheme, host: &[u8], seen: u8) {
        if host.starts_with(b"[") {
            return self.ip_literal(host);
        }
        if seen & (seen::ENCODED | seen::HYPHENS) == 0 {
            return self.append_lower_case(host);
        }
        let is_network = SCHEME && scheme.is_network();
        let form = self.hosts.form(host, is_network);
        append(self.out, &form.text);
        self.flags |= form.flags;
        self.changes |= form.changes;
    }

    fn ip_literal(&mut self, host: &[u8]) {
        let at = self.out.len();
        self.append_lower_case(host);
        if SCHEME
            && let Some(text) = ipv6_text(host)
            && self.out[at..] != *text.as_bytes()
        {
            self.out.truncate(at);
            self.out.extend_from_slice(text.as_bytes());
            self.changes |= Changes::IP_LITERAL;
        }
    }

    /// Writes the port that `:` introduced, and whether there is one.
    fn port(&mut self, scheme: Scheme, digits: &[u8]) -> bool {
        let mut number = [0; 5];
        let kept = if SCHEME { self.kept_port(scheme, digits, &mut number) } else { Some(digits) };
        if kept != Some(digits) {
            self.changes |= Changes::PORT;
        }
        let Some(kept) = kept else { return false };
        self.out.push(b':');
        self.out.extend_from_slice(kept);
        true
    }

    /// Section 5.3.3: the port's digits, or none if it is empty or the scheme's default.
    fn kept_port<'b>(&mut self, scheme: Scheme, digits: &'b [u8], number: &'b mut [u8; 5]) -> Option<&'b [u8]> {
        if digits.is_empty() {
            return None;
        }
        let Some(default) = scheme.default_port() else { return Some(digits) };
        let Some(value) = port_number(digits) else {
            self.flags |= Flags::PORT_RANGE;
            return Some(digits);
        };
        if value == default {
            return None;
        }
        let mut rest = value;
        let mut at = number.len();
        while rest > 0 || at == number.len() {
            at -= 1;
            number[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        Some(&number[at..])
    }

    /// Writes a component that the bitmaps' marks are not laid out for.
    fn encoded_part(&mut self, text: &[u8], component: Component) {
        let (written, flags, changes) = map_component(text, component);
        append(self.out, &written);
        self.flags |= flags;
        self.changes |= changes;
    }

    /// Writes path, query and fragment, which begin at `at`, from mark to mark.
    fn tail(&mut self, mut at: usize) {
        let line = self.line;
        let tail_at = at;
        let mut copied = at;
        let mut in_fragment = false;
        loop {
            at = self.reference.next_attention(at);
            if at >= line.len() {
                break;
            }
            let byte = line[at];
            match byte {
                b'%' => {
                    let (len, has_lower_case) = kept_escapes(&line[at..]);
                    if has_lower_case {
                        self.reference.append(copied..at, self.out);
                        self.upper_case_escapes(&line[at..at + len]);
                        copied = at + len;
                    }
                    at += len;
                    if len == 0 {
                        if let Some(octet) = escape_value(&line[at..]) {
                            self.reference.append(copied..at, self.out);
                            self.decode(octet, &line[at..at + 3]);
                            at += 3;
                            copied = at;
                        } else {
                            self.flags |= Flags::STRAY_PERCENT;
                            at += 1;
                        }
                    }
                }
                b'.' => {
                    self.may_have_dots = true;
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
                _ => {
                    self.reference.append(copied..at, self.out);
                    let len = if byte < 0x80 { 1 } else { non_ascii_len(&line[at..]) };
                    if byte < 0x80 {
                        self.flags |= ascii_flag(byte, Component::Path);
                    } else {
                        self.look_at_non_ascii(tail_at, at..at + len, in_fragment);
                    }
                    percent_encode(&line[at..at + len], self.out);
                    self.changes |= Changes::PCT_ENCODED;
                    at += len;
                    copied = at;
                }
            }
        }
        self.reference.append(copied..line.len(), self.out);
    }

    /// Writes a run of escapes that stay escapes.
    fn upper_case_escapes(&mut self, escapes: &[u8]) {
        let at = self.out.len();
        append(self.out, escapes);
        self.out[at..].make_ascii_uppercase();
        self.changes |= Changes::PCT_CASE;
    }

    /// Writes an unreserved character that was escaped.
    fn decode(&mut self, octet: u8, escape: &[u8]) {
        if would_complete_an_escape(octet, self.out) {
            return self.out.extend_from_slice(escape);
        }
        self.out.push(octet);
        self.may_have_dots |= octet == b'.';
        self.changes |= Changes::PCT_DECODED;
    }

    /// Flags of a run of bytes beyond ASCII.
    fn look_at_non_ascii(&mut self, tail_at: usize, run: Range<usize>, in_fragment: bool) {
        let mut text = &self.line[run.clone()];
        if self.reference.is_utf8 && !needs_look(text) {
            return;
        }
        let component = if in_fragment {
            Component::Fragment
        } else if memchr::memchr(b'?', &self.line[tail_at..run.start]).is_some() {
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

    /// Removes dot segments from the path that was written at `path_at`, if it begins with a slash.
    fn dot_segments(&mut self, path_at: usize, has_authority: bool) {
        if self.out.get(path_at) != Some(&b'/') {
            return;
        }
        let end = path_end(self.out, path_at);
        let len = remove_dot_segments(&mut self.out[path_at..end]);
        if path_at + len < end {
            self.out.drain(path_at + len..end);
            self.changes |= Changes::DOT_SEGMENTS;
        }
        let guard = path_guard(has_authority, &self.out[path_at..path_at + len]);
        if !guard.is_empty() {
            self.out.splice(path_at..path_at, guard.iter().copied());
            self.changes |= Changes::PATH_GUARD;
        }
    }

    /// RFC 8141 section 3.1.
    fn urn_namespace(&mut self, path_at: usize) {
        let end = path_end(self.out, path_at);
        let len = urn_nid_len(&self.out[path_at..end]);
        let nid = &mut self.out[path_at..path_at + len];
        if nid.iter().any(|&byte| UPPER.contains(byte)) {
            nid.make_ascii_lowercase();
            self.changes |= Changes::URN_NID;
        }
    }
}

/// Length of the run of escapes that `text` begins with and that stay escapes, and whether some digit in it is in lower
/// case.
#[inline(always)]
fn kept_escapes(text: &[u8]) -> (usize, bool) {
    let (mut len, mut has_lower_case) = (0, false);
    while let Some(octet) = escape_value(&text[len..])
        && !UNRESERVED.contains(octet)
    {
        has_lower_case |= text[len + 1] >= b'a' || text[len + 2] >= b'a';
        len += 3;
    }
    (len, has_lower_case)
}

/// End of a path that was written at `path_at`: escapes never become `?` or `#`, nor do these become escapes.
fn path_end(out: &[u8], path_at: usize) -> usize {
    memchr::memchr2(b'?', b'#', &out[path_at..]).map_or(out.len(), |at| path_at + at)
}

/// Why `line` has no scheme.
fn no_scheme(line: &[u8]) -> Fault {
    if line.is_empty() {
        return Fault::new(FaultKind::Empty, Component::Reference, 0);
    }
    check_path_noscheme(line).err().unwrap_or(Fault::new(FaultKind::Relative, Component::Reference, 0))
}
