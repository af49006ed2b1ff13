//! Names that are sought in URLs: [`SoughtName`].

/// The name of a parameter or of a segment, which is compared with many URLs.
#[derive(Clone, Debug)]
pub(super) struct SoughtName {
    /// The first bytes of the name, and a mask of them.
    first: [u64; 2],
    name: Vec<u8>,
}

impl SoughtName {
    /// Returns the form in which `name` is compared.
    pub(super) fn new(name: Vec<u8>) -> SoughtName {
        let mask = !0_u64 >> (64 - 8 * name.len().clamp(1, 8));
        SoughtName { first: [word_at(&name, 0) & mask, mask], name }
    }

    /// Returns the number of bytes of the name.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.name.len()
    }

    /// Returns the name.
    pub(super) fn text(&self) -> &[u8] {
        &self.name
    }

    /// Returns whether a text that begins with `word` may begin with the name: the first bytes do.
    #[inline(always)]
    pub(super) fn may_begin(&self, word: u64) -> bool {
        let [first, mask] = self.first;
        (word ^ first) & mask == 0
    }

    /// Returns whether the name is the part of `text` with `len` bytes from `at` on.
    #[inline(always)]
    pub(super) fn is_at(&self, text: &[u8], at: usize, len: usize) -> bool {
        len == self.name.len() && self.may_begin(word_at(text, at)) && (len <= 8 || text[at..].starts_with(&self.name))
    }
}

/// Returns the bytes from `at` on as a number, the first one lowest, with zeros behind the text.
#[inline(always)]
pub(super) fn word_at(text: &[u8], at: usize) -> u64 {
    let rest = &text[at..];
    rest.first_chunk().map_or_else(|| short_word(rest), |bytes| u64::from_le_bytes(*bytes))
}

fn short_word(text: &[u8]) -> u64 {
    text.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_at_their_places_only() {
        let names = ["", "a", "b", "ab", "abcdefg", "abcdefgh", "abcdefgi", "abcdefghi", "abcdefghj"];
        for (i, name) in names.iter().enumerate() {
            let sought = SoughtName::new(name.as_bytes().to_vec());
            for (j, other) in names.iter().enumerate() {
                for after in ["", "/", "=1&a-longer-text"] {
                    let text = format!("/{other}{after}");
                    let text = text.as_bytes();
                    let may_begin = sought.may_begin(word_at(text, 1));
                    // An empty name does not count.
                    let first = &name.as_bytes()[..name.len().min(8)];
                    assert!(i == 0 || may_begin == text[1..].starts_with(first), "{name} {other}{after}");
                    assert!(i == 0 || sought.is_at(text, 1, other.len()) == (i == j), "{name} {other}{after}");
                }
            }
        }
    }
}
