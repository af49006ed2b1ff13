//! The part of the pass that writes scheme, userinfo, host and port (RFC 3987 sections 5.3.2.1 and 5.3.3).

use super::Pass;
use crate::iri::check::{check_authority_lenient, check_port, missing_scheme};
use crate::iri::class::{REG_NAME, UPPER, USERINFO};
use crate::iri::fault::{Component, Fault};
use crate::iri::flags::{Changes, Flags};
use crate::iri::host::ip::{ipv6_text, is_normal_ipv6_literal};
use crate::iri::parts::{Authority, find_scheme};
use crate::iri::percent::map_component;
use crate::iri::scheme::Scheme;
use crate::kernel::{AsciiCase, append, find_byte, mask_of, non_ascii_len};

/// The kinds of bytes in an authority, as bits, except the bytes that a host keeps unchanged.
mod kind {
    /// Upper-case letters.
    pub(super) const UPPER: u8 = 1;
    /// `-`; marked only after another `-`, where a label may begin with `xn--`.
    pub(super) const HYPHENS: u8 = 2;
    /// `%`, and bytes that must become escapes.
    pub(super) const ENCODED: u8 = 4;
    /// `@`, `[`, `]`: the authority is more than a host and a port.
    pub(super) const DELIM: u8 = 8;
    /// `:`.
    pub(super) const COLON: u8 = 16;
    /// `/`, `?`, `#`: the end of the authority.
    pub(super) const END: u8 = 32;
}

/// The kind of each byte value; 0 for bytes that a host keeps unchanged.
const KIND_OF: [u8; 256] = {
    let mut kinds = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        kinds[byte] = match byte as u8 {
            b'A'..=b'Z' => kind::UPPER,
            b'-' => kind::HYPHENS,
            b'@' | b'[' | b']' => kind::DELIM,
            b':' => kind::COLON,
            b'/' | b'?' | b'#' => kind::END,
            other if REG_NAME.contains(other) => 0,
            _ => kind::ENCODED,
        };
        byte += 1;
    }
    kinds
};

/// An authority that is a host, with a port if `host_end < end`. `kinds` are the kinds of its bytes.
struct HostAndPort {
    at: usize,
    host_end: usize,
    end: usize,
    kinds: u8,
}

impl<const SCHEME: bool> Pass<'_, SCHEME> {
    /// Writes the scheme and its `:`, and returns the offset after them.
    pub(super) fn write_scheme(&mut self) -> Result<(Scheme, usize), Fault> {
        let Some(len) = find_scheme(self.bytes) else { return Err(missing_scheme(self.bytes)) };
        self.append_lower_case(&self.bytes[..len]);
        self.out.push(b':');
        Ok((Scheme::from_name(&self.bytes[..len]), len + 1))
    }

    fn append_lower_case(&mut self, text: &[u8]) {
        let at = self.out.len();
        append(self.out, text);
        if text.iter().any(|&byte| UPPER.contains(byte)) {
            self.out[at..].make_ascii_lowercase();
            self.changes |= Changes::CASE;
        }
    }

    /// Writes the authority that begins at `at`, and returns its end.
    #[inline(always)]
    pub(super) fn write_authority(&mut self, scheme: Scheme, at: usize) -> Result<usize, Fault> {
        if scheme != Scheme::File {
            if let Some(authority) = self.common_authority(at) {
                return self.write_host_and_port(scheme, authority);
            }
            if self.bytes.get(at) == Some(&b'[')
                && let Some(authority) = self.normal_ipv6(at)
            {
                return self.write_host_and_port(scheme, authority);
            }
        }
        let (mut end, mut kinds) = (at, 0);
        let (mut colon, mut colon_count) = (at, 0);
        loop {
            end = self.reference.next_stop(end).min(self.bytes.len());
            // A table instead of a `match`: a branch on the next byte cannot be predicted.
            let kind = self.bytes.get(end).map_or(kind::END, |&byte| KIND_OF[byte as usize]);
            if kind == kind::END {
                break;
            }
            kinds |= kind;
            (colon, colon_count) = if kind == kind::COLON { (end, colon_count + 1) } else { (colon, colon_count) };
            end += 1;
            if kind == kind::ENCODED {
                end += non_ascii_len(&self.bytes[end..]);
            }
        }
        if kinds & kind::DELIM == 0 && colon_count <= 1 && scheme != Scheme::File {
            let host_end = if colon_count == 1 { colon } else { end };
            return self.write_host_and_port(scheme, HostAndPort { at, host_end, end, kinds });
        }
        let authority = Authority::split(self.bytes, at..end);
        check_authority_lenient(self.bytes, authority)?;
        let (host_at, host_end) = (authority.host_at as usize, authority.host_end as usize);
        if host_at > at {
            self.write_userinfo(&self.bytes[at..host_at - 1]);
            self.out.push(b'@');
        }
        let host_out = self.out.len();
        self.write_host(scheme, &self.bytes[host_at..host_end], kinds);
        let has_port = end > host_end && self.write_port(scheme, &self.bytes[host_end + 1..end]);
        if SCHEME && scheme == Scheme::File && host_at == at && !has_port && self.out[host_out..] == *b"localhost" {
            self.out.truncate(host_out);
            self.changes |= Changes::FILE_HOST;
        }
        Ok(end)
    }

    /// The authority that begins at `at` if it is a host of at most 63 bytes without escapes, `--`, or non-ASCII characters,
    /// with or without a port. There is no branch on a single byte.
    #[inline(always)]
    fn common_authority(&self, at: usize) -> Option<HostAndPort> {
        let (text, stops) = self.reference.window(at)?;
        let ends = mask_of(text, |byte| (byte == b'/') | (byte == b'?') | (byte == b'#'));
        let upper = mask_of(text, |byte| byte.wrapping_sub(b'A') < 26);
        let colons = mask_of(text, |byte| byte == b':');
        let rest = self.bytes.len() - at;
        let len = rest.min(ends.trailing_zeros() as usize);
        if len == 64 {
            return None;
        }
        let host_and_port = (1 << len) - 1;
        let colon = colons & host_and_port;
        let is_common = (stops & host_and_port & !(upper | colons) == 0) & (colon & colon.wrapping_sub(1) == 0);
        is_common.then(|| HostAndPort {
            at,
            host_end: at + len.min(colon.trailing_zeros() as usize),
            end: at + len,
            kinds: if upper & host_and_port == 0 { 0 } else { kind::UPPER },
        })
    }

    /// The authority that begins at `at` if it is an IPv6 address that RFC 5952 does not change, with or without a port.
    #[inline(never)]
    fn normal_ipv6(&self, at: usize) -> Option<HostAndPort> {
        let rest = &self.bytes[at..];
        let rest = &rest[..rest.len().min(64)];
        let end = find_byte(rest, |byte| (byte == b'/') | (byte == b'?') | (byte == b'#')).unwrap_or(rest.len());
        let host_end = find_byte(rest, |byte| byte == b']')? + 1;
        let port = rest.get(host_end..end).filter(|_| end < 64)?;
        let is_port = matches!(port, [] | [b':', ..]) && port.iter().skip(1).all(u8::is_ascii_digit);
        (is_port && is_normal_ipv6_literal(&rest[..host_end])).then_some(HostAndPort {
            at,
            host_end: at + host_end,
            end: at + end,
            kinds: 0,
        })
    }

    /// Writes a host and its port, and returns the end of the authority.
    #[inline(always)]
    fn write_host_and_port(&mut self, scheme: Scheme, authority: HostAndPort) -> Result<usize, Fault> {
        let HostAndPort { at, host_end, end, kinds } = authority;
        if host_end < end {
            check_port(self.bytes, host_end + 1, end)?;
        }
        match kinds & !kind::COLON {
            0 => self.reference.append(at..host_end, self.out),
            kind::UPPER => {
                self.reference.append_in_case(at..host_end, AsciiCase::Lower, self.out);
                self.changes |= Changes::CASE;
            }
            _ => self.write_host(scheme, &self.bytes[at..host_end], kinds),
        }
        if host_end < end {
            self.write_port(scheme, &self.bytes[host_end + 1..end]);
        }
        Ok(end)
    }

    /// Writes a host; `kinds` may include kinds of bytes outside the host.
    fn write_host(&mut self, scheme: Scheme, host: &[u8], kinds: u8) {
        if host.starts_with(b"[") {
            return self.write_ip_literal(host);
        }
        if kinds & (kind::ENCODED | kind::HYPHENS) == 0 {
            return self.append_lower_case(host);
        }
        let is_network = SCHEME && scheme.is_network();
        let form = self.hosts.form(host, is_network);
        append(self.out, &form.text);
        self.flags |= form.flags;
        self.changes |= form.changes;
    }

    fn write_ip_literal(&mut self, host: &[u8]) {
        if is_normal_ipv6_literal(host) {
            return append(self.out, host);
        }
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

    /// Writes `:` and the port unless normalization removes it; returns true if the port was written.
    fn write_port(&mut self, scheme: Scheme, digits: &[u8]) -> bool {
        let kept = if SCHEME { self.kept_port(scheme, digits) } else { Some(digits) };
        if kept != Some(digits) {
            self.changes |= Changes::PORT;
        }
        let Some(kept) = kept else { return false };
        self.out.push(b':');
        self.out.extend_from_slice(kept);
        true
    }

    /// Section 5.3.3: the digits of the port without leading zeros, if the scheme has a default port. `None` if the
    /// port is empty or the default.
    fn kept_port<'b>(&mut self, scheme: Scheme, digits: &'b [u8]) -> Option<&'b [u8]> {
        let last = digits.len().checked_sub(1)?;
        let Some(default) = scheme.default_port() else { return Some(digits) };
        let add = |number: u16, digit: &u8| number.checked_mul(10)?.checked_add(u16::from(digit - b'0'));
        let Some(number) = digits.iter().try_fold(0, add) else {
            self.flags |= Flags::PORT_RANGE;
            return Some(digits);
        };
        let zero_count = digits[..last].iter().take_while(|&&digit| digit == b'0').count();
        (number != default).then_some(&digits[zero_count..])
    }

    /// Writes the userinfo, for which the bitmaps have no marks.
    fn write_userinfo(&mut self, text: &[u8]) {
        if text.iter().all(|byte| USERINFO.contains(*byte)) {
            return append(self.out, text);
        }
        let (written, flags, changes) = map_component(text, Component::Userinfo);
        append(self.out, &written);
        self.flags |= flags;
        self.changes |= changes;
    }
}
