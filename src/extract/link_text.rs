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
            let mut collapsed = Vec::new();
            append_collapsed(&mut collapsed, text);
            let text = text_of(&collapsed);
            self.held[self.tag_first..].iter_mut().for_each(|link| link.text.clone_from(&text));
        }
    }

    /// Ends the current tag, the links of which get the text that follows.
    pub(super) fn begin(&mut self) {
        self.tag_first = self.held.len();
        self.open = Some(self.held.len()).filter(|_| self.is_wanted);
        self.text.clear();
    }

    /// Appends to the text of the open element, if there is one.
    pub(super) fn append(&mut self, text: &[u8]) {
        if self.open.is_some() {
            append_collapsed(&mut self.text, text);
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
            let text = text_of(&self.text);
            self.held[..count].iter_mut().for_each(|link| link.text.clone_from(&text));
        }
        self.tag_first = 0;
        std::mem::take(&mut self.held)
    }
}

/// Appends a text to the text of a link, up to the limit. White space before it vanishes, and within it becomes single spaces.
fn append_collapsed(out: &mut Vec<u8>, text: &[u8]) {
    for byte in text {
        if out.len() == MAX_HELD_TEXT_LEN {
            return;
        }
        match byte.is_ascii_whitespace() {
            false => out.push(*byte),
            true if out.last().is_some_and(|last| *last != b' ') => out.push(b' '),
            true => {}
        }
    }
}

/// The text of a link, from what [`append_collapsed`] made of it.
fn text_of(collapsed: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(collapsed.strip_suffix(b" ").unwrap_or(collapsed)).into_owned();
    text.truncate(text.floor_char_boundary(MAX_TEXT_LEN));
    text
}
