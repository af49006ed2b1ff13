//! Finds where one JSON value ends, in bytes that arrive in parts: [`ValueScanner`].

/// Finds the end of one JSON value that arrives in parts, and keeps the value with long strings cut.
#[derive(Debug, Default)]
pub(super) struct ValueScanner {
    depth: u32,
    state: ValueState,
    /// Bytes of the current string, and how many of them are held.
    string_len: usize,
    max_string_len: usize,
    pub(super) text: Vec<u8>,
    /// Where strings were cut: the offset in `text` of the byte after what is held of each.
    pub(super) cuts: Vec<usize>,
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
    /// Keys of strings to which `string_len` does not apply, in the objects that are members of the value.
    pub(super) whole_keys: &'static [&'static [u8]],
}

impl HeldLimits {
    /// Nothing is held.
    pub(super) const NOTHING: HeldLimits = HeldLimits { string_len: 0, value_len: 0, whole_keys: &[] };
}

/// Maximum capacity that is kept from value to value, in bytes.
const MAX_KEPT_LEN: usize = 16 << 20;

impl ValueScanner {
    pub(super) fn clear(&mut self) {
        let (mut text, mut cuts) = (std::mem::take(&mut self.text), std::mem::take(&mut self.cuts));
        text.clear();
        cuts.clear();
        // The memory of a long value is not kept.
        text.shrink_to(MAX_KEPT_LEN);
        *self = ValueScanner { text, cuts, ..ValueScanner::default() };
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
                self.hold_string(&bytes[..len.unwrap_or(bytes.len())], limits.value_len);
                let Some(len) = len else { return (bytes.len(), false) };
                if bytes[len] == b'\\' {
                    self.state = ValueState::Escape;
                    return (len + 1, false);
                }
                self.hold(b"\"", limits.value_len);
                self.state = ValueState::Plain;
                (len + 1, self.depth == 0)
            }
            ValueState::Escape => {
                self.hold_string(&[b'\\', bytes[0]], limits.value_len);
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
            self.hold(&bytes[..plain], limits.value_len);
            return (plain, false);
        }
        if bytes[0] == b'"' && self.state != ValueState::Bare {
            self.begin_string(limits);
            return (1, false);
        }
        self.hold(&bytes[..1], limits.value_len);
        match bytes[0] {
            b'{' | b'[' if self.state != ValueState::Bare => {
                (self.depth, self.state) = (self.depth.saturating_add(1), ValueState::Plain);
            }
            b'}' | b']' if !is_outer => self.depth -= 1,
            _ => self.state = ValueState::Bare,
        }
        (1, !is_outer && self.depth == 0)
    }

    fn begin_string(&mut self, limits: HeldLimits) {
        let is_whole = self.depth == 2 && is_after_key(&self.text, limits.whole_keys);
        self.max_string_len = if is_whole { usize::MAX } else { limits.string_len };
        (self.state, self.string_len) = (ValueState::String, 0);
        self.hold(b"\"", limits.value_len);
    }

    /// Holds bytes of a string, up to its limit. An escape is held whole or not at all, like all that follows it.
    fn hold_string(&mut self, bytes: &[u8], value_len: usize) {
        let room = self.max_string_len.saturating_sub(self.string_len);
        self.string_len += bytes.len();
        let held_len = match bytes {
            [b'\\', _] if room < 2 => 0,
            _ => bytes.len().min(room),
        };
        self.hold(&bytes[..held_len], value_len);
        // Nothing is read of a value that is too long, so that its strings need not be listed.
        if held_len < bytes.len() && !self.is_too_long && self.cuts.last() != Some(&self.text.len()) {
            self.cuts.push(self.text.len());
        }
    }

    fn hold(&mut self, bytes: &[u8], value_len: usize) {
        let room = value_len - self.text.len().min(value_len);
        self.is_too_long |= bytes.len() > room;
        self.text.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

/// Whether `text` ends with one of the keys and a colon, as before the value of a member.
fn is_after_key(text: &[u8], keys: &[&[u8]]) -> bool {
    let key = text.trim_ascii_end().strip_suffix(b":").and_then(|text| text.trim_ascii_end().strip_suffix(b"\""));
    let is_key =
        |wanted: &&[u8]| key.and_then(|key| key.strip_suffix(*wanted)).is_some_and(|text| text.ends_with(b"\""));
    keys.iter().any(is_key)
}
