//! Format strings of Apache's mod_log_config, as far as [`super::access_log`] uses them.

use thiserror::Error;

/// What a directive means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Directive {
    Request,
    Method,
    Path,
    Query,
    Host,
    Port,
    Status,
    Time,
    Other,
}

/// A parsed format string: literal text, then directives, each with the literal text after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFormat {
    pub(super) prefix: Vec<u8>,
    pub(super) items: Vec<(Directive, Vec<u8>)>,
}

/// A format string without `%r` and `%U`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the log format has no URL; it needs %r or %U")]
pub struct LogFormatError;

/// The common log format of NCSA.
const COMMON: &str = "%h %l %u %t \"%r\" %>s %b";
/// The common log format followed by anything, which includes the combined log format.
const COMMON_PREFIX: &str = "%h %l %u %t \"%r\" %>s";
/// The same after the host and the port of the server.
const WITH_HOST: &str = "%v:%p %h %l %u %t \"%r\" %>s";

impl Default for LogFormat {
    /// The common log format followed by anything, which includes the combined log format.
    fn default() -> LogFormat {
        LogFormat::parse_items(COMMON_PREFIX)
    }
}

impl LogFormat {
    /// The format `vhost_combined`.
    pub(super) fn with_host() -> LogFormat {
        LogFormat::parse_items(WITH_HOST)
    }

    /// A format by its name (`common`, `combined`, `vhost_combined`) or by its format string, which may contain the escapes of
    /// Apache's configuration: `\"`, `\\`, `\t`, `\n` and `\r`.
    ///
    /// # Errors
    /// The format has no URL.
    pub fn parse(text: &str) -> Result<LogFormat, LogFormatError> {
        let format = LogFormat::parse_items(match text {
            "common" => COMMON,
            "combined" => COMMON_PREFIX,
            "vhost_combined" => WITH_HOST,
            _ => text,
        });
        let mut directives = format.items.iter().map(|(directive, _)| directive);
        let has_url = directives.any(|directive| matches!(directive, Directive::Request | Directive::Path));
        if has_url { Ok(format) } else { Err(LogFormatError) }
    }

    /// The literal text at which the value of an item ends: that after the item, or, if another directive follows directly, that
    /// after the next ones. So the value of `%U` in `%U%q` includes the query, and that of `%q` is empty. Empty if none follows.
    pub(super) fn end_of(&self, item: usize) -> &[u8] {
        let mut literals = self.items[item..].iter().map(|(_, literal)| &literal[..]);
        literals.find(|literal| !literal.is_empty()).unwrap_or_default()
    }

    fn parse_items(text: &str) -> LogFormat {
        let mut format = LogFormat { prefix: Vec::new(), items: Vec::new() };
        let mut rest = text.as_bytes();
        while let Some((&byte, tail)) = rest.split_first() {
            if byte == b'%' && tail.first() != Some(&b'%') {
                let (directive, len) = directive(tail);
                format.items.push((directive, Vec::new()));
                rest = &tail[len..];
                continue;
            }
            let escaped = if byte == b'\\' { tail.first().and_then(|letter| unescape(*letter)) } else { None };
            rest = if byte == b'%' || escaped.is_some() { &tail[1..] } else { tail };
            format.items.last_mut().map_or(&mut format.prefix, |(_, literal)| literal).push(escaped.unwrap_or(byte));
        }
        format
    }
}

/// The byte that a backslash and this letter stand for. Before any other letter, the backslash is literal text.
fn unescape(letter: u8) -> Option<u8> {
    match letter {
        b'"' | b'\\' => Some(letter),
        b't' => Some(b'\t'),
        b'n' => Some(b'\n'),
        b'r' => Some(b'\r'),
        _ => None,
    }
}

/// The directive after a `%`, and its length: modifiers, `{name}`, a letter.
fn directive(text: &[u8]) -> (Directive, usize) {
    let modifiers = text.iter().take_while(|byte| b"<>!,0123456789".contains(byte)).count();
    let mut at = modifiers;
    let mut name = &b""[..];
    if text.get(at) == Some(&b'{') {
        let len = memchr::memchr(b'}', &text[at..]).unwrap_or(text.len() - at - 1);
        name = &text[at + 1..at + len.max(1)];
        at += len + 1;
    }
    let letter = text.get(at).copied().unwrap_or(b' ');
    let directive = match letter {
        b'r' => Directive::Request,
        b'm' => Directive::Method,
        b'U' => Directive::Path,
        b'q' => Directive::Query,
        b'v' | b'V' => Directive::Host,
        b'i' if name.eq_ignore_ascii_case(b"host") => Directive::Host,
        // The port of the client is `%{remote}p`.
        b'p' if [&b""[..], b"canonical", b"local"].contains(&name) => Directive::Port,
        b's' => Directive::Status,
        b't' if name.is_empty() => Directive::Time,
        _ => Directive::Other,
    };
    (directive, (at + 1).min(text.len()))
}
