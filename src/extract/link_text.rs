//! Texts of links: [`HeldLinks`] holds the links of an `a` element, and those within it, until its text is known.

use super::document::Link;

/// Longest text of a link, in bytes. The rest is not read.
const MAX_TEXT_LEN: usize = 1 << 10;

/// Bytes of a text that are held, so that a character which begins within the limit is whole.
const MAX_HELD_TEXT_LEN: usize = MAX_TEXT_LEN + 8;

/// Maximum number of links that are held until an `a` element ends.
const MAX_HELD: usize = 1 << 10;

/// Links whose text is not known yet.
#[derive(Debug, Default)]
pub(super) struct HeldLinks {
    is_wanted: bool,
    /// Links in order; empty between tags, unless an element is open.
    held: Vec<Link>,
    /// The first link of the current tag.
    tag_first: usize,
    /// Number of links at the beginning that get the text of the open element.
    open: Option<usize>,
    text: Vec<u8>,
}

impl HeldLinks {
    pub(super) fn new(is_wanted: bool) -> HeldLinks {
        HeldLinks { is_wanted, ..HeldLinks::default() }
    }

    /// Whether no more links can be held.
    pub(super) fn is_full(&self) -> bool {
        self.held.len() >= MAX_HELD
    }

    /// Accepts a link of the current tag. Returns it at once if the text of links is not requested.
    pub(super) fn push(&mut self, link: Link) -> Option<Link> {
        if !self.is_wanted {
            return Some(link);
        }
        self.held.push(link);
        None
    }

    /// Sets the text of the links of the current tag.
    pub(super) fn set(&mut self, text: &[u8]) {
        if self.is_wanted {
            let text = collapsed(text);
            self.held[self.tag_first..].iter_mut().for_each(|link| link.text.clone_from(&text));
        }
    }

    /// Ends the current tag, the links of which get the text that follows.
    pub(super) fn begin(&mut self) {
        self.tag_first = self.held.len();
        self.open = Some(self.held.len()).filter(|_| self.is_wanted);
        self.text.clear();
    }

    /// Appends to the text of the open element, if there is one. White space becomes single spaces.
    pub(super) fn append(&mut self, text: &[u8]) {
        if self.open.is_none() {
            return;
        }
        for byte in text {
            let byte = if byte.is_ascii_whitespace() { b' ' } else { *byte };
            if self.text.len() == MAX_HELD_TEXT_LEN {
                return;
            }
            if byte != b' ' || self.text.last() != Some(&b' ') {
                self.text.push(byte);
            }
        }
    }

    /// Ends the current tag. Returns the links that are complete.
    pub(super) fn end_tag(&mut self) -> Vec<Link> {
        self.tag_first = self.held.len();
        if self.open.is_none() || self.is_full() { self.end() } else { Vec::new() }
    }

    /// Ends the open element. Returns all links.
    pub(super) fn end(&mut self) -> Vec<Link> {
        if let Some(count) = self.open.take() {
            let text = collapsed(&self.text);
            self.held[..count].iter_mut().for_each(|link| link.text.clone_from(&text));
        }
        self.tag_first = 0;
        std::mem::take(&mut self.held)
    }
}

/// A text with single spaces between words, without its rest if it is too long.
fn collapsed(text: &[u8]) -> String {
    let mut out = String::new();
    for word in text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
        let space = if out.is_empty() { "" } else { " " };
        out.push_str(space);
        // A character that begins within the limit is whole.
        out.push_str(&String::from_utf8_lossy(&word[..word.len().min(MAX_TEXT_LEN + 4)]));
        if out.len() > MAX_TEXT_LEN {
            out.truncate(out.floor_char_boundary(MAX_TEXT_LEN));
            break;
        }
    }
    out
}
