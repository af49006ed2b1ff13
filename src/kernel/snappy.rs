//! Decompresses the Snappy format: [`unpack_snappy`].
//!
//! A compressed text is its length, and then elements: *literals*, whose bytes follow in the element, and *copies* of bytes
//! that were decompressed before. URLs make elements of five bytes on average, and a processor cannot predict whether a literal
//! or a copy comes next. The fast loop therefore has no branch on the kind of an element: it finds the next element and the
//! source of the bytes with conditional moves, and copies 32 bytes whatever the length is. It leaves what is rare to
//! [`unpack_element`], which is also its definition: long literals, offsets of four bytes, and the ends of both texts.

use std::hint::select_unpredictable;

/// Longest encoding of the length of the content, which is less than 4 GiB.
const MAX_HEADER_LEN: usize = 5;

/// The fast loop reads at most this many bytes from the tag of an element on: the tag after the longest literal is the last.
const READ_LEN: usize = 66;

/// The fast loop writes at most this many bytes from the end of the content on.
const WRITE_LEN: usize = 64;

/// The offset of literals in [`OFFSETS`]: it makes a literal look like a copy that is neither too far nor overlapping, if at
/// least this many bytes were decompressed before.
const LITERAL_OFFSET: usize = 64;

/// Length of the element of each tag. Elements that the fast loop does not decompress have the length 64 and the offset 0.
static LENGTHS: [u8; 256] = lengths();

/// What each tag states of the offset of its element.
static OFFSETS: [u16; 256] = offsets();

/// Selects the bytes of the offset that follow the tags of each kind.
static OFFSET_MASKS: [u16; 4] = [0, 0xFF, 0xFFFF, 0];

const fn lengths() -> [u8; 256] {
    let (mut lengths, mut tag) = ([64; 256], 0);
    while tag < 256 {
        let upper = (tag >> 2) as u8;
        match tag & 3 {
            0 if upper < 60 => lengths[tag] = upper + 1,
            1 => lengths[tag] = 4 + (upper & 7),
            2 => lengths[tag] = upper + 1,
            _ => {}
        }
        tag += 1;
    }
    lengths
}

const fn offsets() -> [u16; 256] {
    let (mut offsets, mut tag) = ([0; 256], 0);
    while tag < 256 {
        match tag & 3 {
            0 if tag >> 2 < 60 => offsets[tag] = LITERAL_OFFSET as u16,
            1 => offsets[tag] = ((tag >> 5) << 8) as u16,
            _ => {}
        }
        tag += 1;
    }
    offsets
}

/// Decompresses `packed`, and returns whether it is sound and its content has exactly the length of `into`. Otherwise the bytes
/// of `into` are not specified.
pub(crate) fn unpack_snappy(packed: &[u8], into: &mut [u8]) -> bool {
    unpack(packed, into, true).is_some()
}

fn unpack(packed: &[u8], into: &mut [u8], is_fast: bool) -> Option<()> {
    let header_len = packed.iter().take(MAX_HEADER_LEN).position(|byte| *byte < 0x80)? + 1;
    let (header, elements) = packed.split_at(header_len);
    let stated_len = header.iter().rev().fold(0, |len, byte| len << 7 | u64::from(byte & 0x7F));
    if stated_len != into.len() as u64 {
        return None;
    }
    let (mut at, mut len) = (0, 0);
    while at < elements.len() {
        if is_fast {
            (at, len) = unpack_short_elements(elements, at, into, len);
        }
        (at, len) = unpack_element(elements, at, into, len)?;
    }
    (len == into.len()).then_some(())
}

/// Decompresses the element at byte `at` of `elements` after the first `len` bytes of `into`. Returns where the next element
/// begins and the new length; `None` if the element is malformed, or longer than `into`.
fn unpack_element(elements: &[u8], at: usize, into: &mut [u8], len: usize) -> Option<(usize, usize)> {
    let (tag, rest) = elements.get(at..)?.split_first()?;
    let upper = usize::from(tag >> 2);
    let (number_len, kind) = match tag & 3 {
        0 => (upper.saturating_sub(59), 0),
        1 => (1, 1),
        2 => (2, 2),
        _ => (4, 3),
    };
    let (number, rest) = rest.split_at_checked(number_len)?;
    let number = number.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte));
    let (element_len, offset) = match kind {
        0 if number_len > 0 => (number.checked_add(1)?, 0),
        0 => (upper + 1, 0),
        1 => (4 + (upper & 7), upper >> 3 << 8 | number),
        _ => (upper + 1, number),
    };
    let end = len.checked_add(element_len).filter(|end| *end <= into.len())?;
    let next = at + 1 + number_len;
    if kind == 0 {
        into[len..end].copy_from_slice(rest.get(..element_len)?);
        return Some((next + element_len, end));
    }
    let from = len.checked_sub(offset).filter(|_| offset > 0)?;
    // A copy that overlaps itself repeats its bytes: each step doubles what can be copied.
    let mut filled = len;
    while filled < end {
        let step = (filled - from).min(end - filled);
        into.copy_within(from..from + step, filled);
        filled += step;
    }
    Some((next, end))
}

/// Decompresses elements from byte `at` of `elements` on after the first `len` bytes of `into`, until an element is not one
/// that this loop can decompress, or an end is near. Returns where that element begins and the new length.
fn unpack_short_elements(elements: &[u8], at: usize, into: &mut [u8], len: usize) -> (usize, usize) {
    let (Some(last_at), Some(last_len)) = (elements.len().checked_sub(READ_LEN), into.len().checked_sub(WRITE_LEN))
    else {
        return (at, len);
    };
    if at > last_at || len < LITERAL_OFFSET || len > last_len {
        return (at, len);
    }
    let (packed, out, mut len) = (elements.as_ptr(), into.as_mut_ptr(), len);
    // SAFETY: in every round, the tag is at most at byte `last_at`, so that the `READ_LEN` bytes from it on are readable:
    // the tag, a number of two bytes, a literal of up to 64 bytes, and the tag after the literal. `len` is at most
    // `last_len`, so that `WRITE_LEN` bytes of `into` after `len` are writable. The source of a copy begins at least one
    // and at most `len` bytes before byte `len`, so that 64 bytes from it on are readable too. `elements` cannot overlap `into`.
    unsafe {
        let last = packed.add(last_at);
        let (mut tag, mut after_tag) = (usize::from(*packed.add(at)), packed.add(at + 1));
        loop {
            let (kind, upper) = (tag & 3, tag >> 2);
            // Both tags that can be the next one are loaded, before it is known which one is. Without `volatile` the
            // compiler would first choose the address, and wait longer.
            let tag_after_literal = usize::from(after_tag.add(upper + 1).read_volatile());
            let tag_after_copy = usize::from(after_tag.add(kind).read_volatile());
            let number = u16::from_le(after_tag.cast::<u16>().read_unaligned());
            let element_len = usize::from(LENGTHS[tag]);
            let offset = usize::from(OFFSETS[tag]) + usize::from(number & OFFSET_MASKS[kind]);
            let after_copy = after_tag.wrapping_add(kind + 1);
            if offset > len || offset == 0 {
                break;
            }
            let target = out.add(len);
            let copied = target.sub(offset).cast_const();
            if offset < element_len {
                repeat(copied, offset, target, element_len);
                (tag, after_tag) = (tag_after_copy, after_copy);
            } else {
                let is_literal = kind == 0;
                let from = select_unpredictable(is_literal, after_tag, copied);
                // A copy may reach into its target, but not with the first `element_len` bytes.
                std::ptr::copy(from, target, 32);
                if element_len > 32 {
                    std::ptr::copy(from.add(32), target.add(32), 32);
                }
                after_tag = select_unpredictable(is_literal, after_tag.wrapping_add(upper + 2), after_copy);
                tag = select_unpredictable(is_literal, tag_after_literal, tag_after_copy);
            }
            len += element_len;
            if after_tag > last || len > last_len {
                break;
            }
        }
        (after_tag.offset_from(packed) as usize - 1, len)
    }
}

/// Copies `len` bytes to `target` from `from`, which is `offset` bytes before it: repeats these `offset` bytes.
///
/// # Safety
/// `offset` is not 0, `from` is readable for `offset` bytes and `target`, right after them, writable for `len`.
#[cold]
unsafe fn repeat(from: *const u8, offset: usize, target: *mut u8, len: usize) {
    let mut filled = 0;
    while filled < len {
        // Each step doubles what can be copied.
        let step = (offset + filled).min(len - filled);
        // SAFETY: the source ends where the target begins, and the target ends within the bytes of the caller.
        unsafe { std::ptr::copy_nonoverlapping(from, target.add(filled), step) };
        filled += step;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A compressed text that is built element by element, and its content.
    #[derive(Default)]
    struct Packed {
        elements: Vec<u8>,
        content: Vec<u8>,
    }

    impl Packed {
        fn push_literal(&mut self, literal: &[u8]) {
            match literal.len() - 1 {
                upper @ 0..60 => self.elements.push((upper << 2) as u8),
                upper @ 60..256 => self.elements.extend([60 << 2, upper as u8]),
                upper => {
                    self.elements.push(61 << 2);
                    self.elements.extend((upper as u16).to_le_bytes());
                }
            }
            self.elements.extend(literal);
            self.content.extend(literal);
        }

        /// Pushes a copy of the kind that is requested, or one that can express it.
        fn push_copy(&mut self, offset: usize, len: usize, kind: usize) {
            if kind == 1 && offset < 2048 && (4..12).contains(&len) {
                self.elements.extend([(1 | (len - 4) << 2 | offset >> 8 << 5) as u8, offset as u8]);
            } else if kind < 3 && offset < 1 << 16 {
                self.elements.push((2 | (len - 1) << 2) as u8);
                self.elements.extend((offset as u16).to_le_bytes());
            } else {
                self.elements.push((3 | (len - 1) << 2) as u8);
                self.elements.extend((offset as u32).to_le_bytes());
            }
            let from = self.content.len() - offset;
            (0..len).for_each(|i| self.content.push(self.content[from + i]));
        }

        fn finish(&self) -> Vec<u8> {
            let (mut packed, mut len) = (Vec::new(), self.content.len());
            while len >= 0x80 {
                packed.push(len as u8 | 0x80);
                len >>= 7;
            }
            packed.push(len as u8);
            [packed, self.elements.clone()].concat()
        }
    }

    /// Pseudorandom numbers (xorshift).
    struct Random(u64);

    impl Random {
        fn below(&mut self, end: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 11) as usize % end
        }

        /// A text of `count` elements of all kinds.
        fn packed(&mut self, count: usize) -> Packed {
            let mut packed = Packed::default();
            for _ in 0..count {
                let longest = [4, 20, 64, 400][self.below(4)];
                let len = 1 + self.below(longest);
                if packed.content.is_empty() || self.below(2) == 0 {
                    let literal: Vec<u8> = (0..len).map(|_| self.below(256) as u8).collect();
                    packed.push_literal(&literal);
                } else {
                    let farthest = packed.content.len().min([3, 40, 3000, usize::MAX][self.below(4)]);
                    packed.push_copy(1 + self.below(farthest), len.min(64), 1 + self.below(3));
                }
            }
            packed
        }
    }

    /// What both variants make of `packed`.
    fn unpack_both(packed: &[u8], len: usize) -> Option<Vec<u8>> {
        let [fast, scalar] = [true, false].map(|is_fast| {
            let mut into = vec![0xAA; len];
            unpack(packed, &mut into, is_fast).map(|()| into)
        });
        assert_eq!(fast, scalar);
        fast
    }

    #[test]
    fn elements_of_all_kinds_and_lengths_are_unpacked() {
        let mut random = Random(1);
        for count in (0..150).chain([3000]) {
            for _ in 0..4 {
                let packed = random.packed(count);
                assert_eq!(unpack_both(&packed.finish(), packed.content.len()).as_ref(), Some(&packed.content));
            }
        }
    }

    #[test]
    fn texts_that_another_encoder_packed_are_unpacked() {
        let mut random = Random(2);
        let words = ["http://", "https://www.", "example", ".org/", "index", "/a", "?q=", "1", "%C3%A9", ".html\n"];
        for count in [0, 1, 2, 3, 10, 100, 10_000, 100_000] {
            let text: String = (0..count).map(|_| words[random.below(words.len())]).collect();
            let packed = snap::raw::Encoder::new().compress_vec(text.as_bytes()).unwrap();
            assert_eq!(unpack_both(&packed, text.len()), Some(text.into_bytes()));
        }
        let zeros = snap::raw::Encoder::new().compress_vec(&[0; 100_000]).unwrap();
        assert_eq!(unpack_both(&zeros, 100_000), Some(vec![0; 100_000]));
    }

    #[test]
    fn both_variants_and_another_decoder_refuse_the_same_damage() {
        let mut random = Random(3);
        let (mut sound, mut damaged) = (0, 0);
        for _ in 0..4000 {
            let packed = random.packed(60);
            let mut bytes = packed.finish();
            match random.below(3) {
                0 => bytes.truncate(random.below(bytes.len() + 1)),
                1 => {
                    let at = random.below(bytes.len());
                    bytes[at] = random.below(256) as u8;
                }
                _ => {
                    let at = random.below(bytes.len());
                    bytes.insert(at, random.below(256) as u8);
                }
            }
            let found = unpack_both(&bytes, packed.content.len());
            let mut into = vec![0xAA; packed.content.len()];
            let expected = snap::raw::Decoder::new().decompress(&bytes, &mut into);
            assert_eq!(found, expected.is_ok_and(|len| len == into.len()).then_some(into));
            if found.is_some() { sound += 1 } else { damaged += 1 }
        }
        assert!(sound > 400 && damaged > 400, "{sound} sound, {damaged} damaged");
    }

    #[test]
    fn the_length_is_exactly_the_stated_one() {
        let mut packed = Packed::default();
        packed.push_literal(&[7; 100]);
        packed.push_copy(30, 60, 2);
        let bytes = packed.finish();
        assert!(unpack_both(&bytes, 160).is_some());
        assert!(unpack_both(&bytes, 159).is_none() && unpack_both(&bytes, 161).is_none());
        for damaged in [&[][..], &[0x80], &[0x80; 5], &[0x80, 0x80, 0x80, 0x80, 0x80, 0], &[1], &[0, 0, 7]] {
            assert_eq!(unpack_both(damaged, 0), None, "{damaged:?}");
        }
        assert_eq!(unpack_both(&[0], 0), Some(Vec::new()));
        // A copy without a byte before it, and one with offset 0.
        assert_eq!(unpack_both(&[4, 4 << 2 | 2, 1, 0], 4), None);
        let mut packed = Packed::default();
        packed.push_literal(&[7; 50]);
        packed.push_literal(&[8; 50]);
        packed.push_literal(&[9; 200]);
        for offset in [0, 101] {
            let mut bytes = packed.finish();
            bytes.splice(2 + 51 * 2..2 + 51 * 2, [3 << 2 | 2, offset, 0]);
            let header = [(304 & 0x7F) as u8 | 0x80, (304 >> 7) as u8];
            bytes[..2].copy_from_slice(&header);
            assert_eq!(unpack_both(&bytes, 304), None, "{offset}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn nothing_beyond_both_texts_is_accessed() {
        use crate::kernel::guarded::GuardedText;

        let mut random = Random(4);
        for count in (1..60).chain([1, 2, 3].repeat(30)) {
            let packed = random.packed(count);
            let (mut bytes, len) = (packed.finish(), packed.content.len());
            if bytes.len() > 4096 || len > 4096 {
                continue;
            }
            let mut into = GuardedText::before_guard(&vec![0; len]);
            assert!(unpack_snappy(&GuardedText::before_guard(&bytes), &mut into));
            assert_eq!(*into, *packed.content);
            into = GuardedText::after_guard(&vec![0; len]);
            assert!(unpack_snappy(&GuardedText::after_guard(&bytes), &mut into));
            for _ in 0..20 {
                let at = random.below(bytes.len());
                bytes[at] = random.below(256) as u8;
                for place in [GuardedText::before_guard, GuardedText::after_guard] {
                    unpack_snappy(&place(&bytes), &mut place(&vec![0; len]));
                }
            }
        }
    }
}
