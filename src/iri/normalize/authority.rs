//! The pass over scheme and authority: case, userinfo, host, port (RFC 3987 sections 5.3.2.1 and 5.3.3).

use super::Pass;
use crate::iri::check::{check_authority_lenient, check_path_noscheme, check_port};
use crate::iri::class::UPPER;
use crate::iri::host::ipv6_text;
use crate::iri::ladder::port_number;
use crate::iri::parts::{Authority, find_scheme};
use crate::iri::percent::map_component;
use crate::iri::scheme::Scheme;
use crate::iri::{Changes, Component, Fault, FaultKind, Flags};
use crate::kernel::{AsciiCase, append};

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
                other if crate::iri::class::REG_NAME.contains(other) => 0,
                _ => ENCODED,
            };
            byte += 1;
        }
        of
    };
}

impl<const SCHEME: bool> Pass<'_, SCHEME> {
    /// Writes the scheme and its `:`; returns the offset after it.
    pub(super) fn scheme(&mut self) -> Result<(Scheme, usize), Fault> {
        let Some(len) = find_scheme(self.line) else { return Err(no_scheme(self.line)) };
        self.append_lower_case(&self.line[..len]);
        self.out.push(b':');
        Ok((Scheme::from_name(&self.line[..len]), len + 1))
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
    #[inline(always)]
    pub(super) fn authority(&mut self, scheme: Scheme, at: usize) -> Result<usize, Fault> {
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
                self.reference.append_in_case(at..host_end, AsciiCase::Lower, self.out);
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
}

/// Why `line` has no scheme.
fn no_scheme(line: &[u8]) -> Fault {
    if line.is_empty() {
        return Fault::new(FaultKind::Empty, Component::Reference, 0);
    }
    check_path_noscheme(line).err().unwrap_or(Fault::new(FaultKind::Relative, Component::Reference, 0))
}
