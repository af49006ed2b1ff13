//! Finds where one JSON value ends, in bytes that arrive in parts: [`ValueScanner`].

/// Finds the end of one JSON value that arrives in parts, and keeps the value with long strings cut.
#[derive(Debug, Default)]
pub(super) struct ValueScanner {
    depth: u32,
    state: ValueState,
    /// Bytes of the current string.
    string_len: usize,
    pub(super) text: Vec<u8>,
    /// The value is longer than allowed; `text` is its beginning.
    pub(super) is_too_long: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ValueState {
    #[default]
    Begin,
    Plain,
    String,
    Escape,
    /// A number or a word outside brackets.
    Bare,
}

/// Limits of what is held.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldLimits {
    pub(super) string_len: usize,
    pub(super) value_len: usize,
}

impl ValueScanner {
    pub(super) fn clear(&mut self) {
        let text = std::mem::take(&mut self.text);
        *self = ValueScanner { text, ..ValueScanner::default() };
        self.text.clear();
    }

    /// Takes bytes of the value; returns how many, and whether the value has ended.
    pub(super) fn push(&mut self, bytes: &[u8], limits: HeldLimits) -> (usize, bool) {
        let mut at = 0;
        while at < bytes.len() {
            let (len, is_end) = self.step(&bytes[at..], limits);
            at += len;
            if is_end {
                return (at, true);
            }
        }
        (at, false)
    }

    /// Takes at least one byte, unless the value has ended.
    fn step(&mut self, bytes: &[u8], limits: HeldLimits) -> (usize, bool) {
        match self.state {
            ValueState::String => {
                let len = memchr::memchr2(b'"', b'\\', bytes);
                self.hold_string(&bytes[..len.unwrap_or(bytes.len())], limits);
                let Some(len) = len else { return (bytes.len(), false) };
                if bytes[len] == b'\\' {
                    self.state = ValueState::Escape;
                    return (len + 1, false);
                }
                self.hold(b"\"", limits);
                self.state = ValueState::Plain;
                (len + 1, self.depth == 0)
            }
            ValueState::Escape => {
                self.hold_string(&[b'\\', bytes[0]], limits);
                self.state = ValueState::String;
                (1, false)
            }
            ValueState::Bare if matches!(bytes[0], b',' | b']' | b'}' | b' ' | b'\t' | b'\r' | b'\n') => (0, true),
            ValueState::Begin | ValueState::Plain | ValueState::Bare => self.step_outside_strings(bytes, limits),
        }
    }

    fn step_outside_strings(&mut self, bytes: &[u8], limits: HeldLimits) -> (usize, bool) {
        let is_outer = self.depth == 0;
        let is_mark = |byte: &u8| matches!(byte, b'"' | b'{' | b'[' | b'}' | b']');
        let plain = if is_outer { 0 } else { bytes.iter().position(is_mark).unwrap_or(bytes.len()) };
        if plain > 0 {
            self.hold(&bytes[..plain], limits);
            return (plain, false);
        }
        self.hold(&bytes[..1], limits);
        match bytes[0] {
            b'"' if self.state != ValueState::Bare => (self.state, self.string_len) = (ValueState::String, 0),
            b'{' | b'[' if self.state != ValueState::Bare => {
                (self.depth, self.state) = (self.depth.saturating_add(1), ValueState::Plain);
            }
            b'}' | b']' if !is_outer => self.depth -= 1,
            _ => self.state = ValueState::Bare,
        }
        (1, !is_outer && self.depth == 0)
    }

    /// Holds bytes of a string, up to its limit. An escape is held whole or not at all, like all that follows it.
    fn hold_string(&mut self, bytes: &[u8], limits: HeldLimits) {
        let room = limits.string_len.saturating_sub(self.string_len);
        self.string_len += bytes.len();
        match bytes {
            [b'\\', _] if room < 2 => {}
            _ => self.hold(&bytes[..bytes.len().min(room)], limits),
        }
    }

    fn hold(&mut self, bytes: &[u8], limits: HeldLimits) {
        let room = limits.value_len - self.text.len().min(limits.value_len);
        self.is_too_long |= bytes.len() > room;
        self.text.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}
