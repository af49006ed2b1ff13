//! Writes the matches of a page as an [LZ4 block].
//!
//! [LZ4 block]: https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md

use lz4_flex::block::get_maximum_output_size;

use super::matches::{MatchLimits, Sequences, append_literals};
use crate::kernel::{Appender, COPY_LEN};

/// A distance has two bytes. A match of four bytes, the shortest that a block can contain, saves at most one byte.
pub(super) const LIMITS: MatchLimits = MatchLimits { min_len: 5, max_distance: u16::MAX as u32 };
/// A match is longer by this than its token states.
const SHORTEST_MATCH: usize = 4;
/// Each half of a token holds a smaller length; a greater one continues in the bytes after the token.
const TOKEN_LIMIT: usize = 15;

/// Replaces `block` by an LZ4 block that contains the `page_len` bytes that `found` describes.
///
/// # Panics
/// If the distance of a match is greater than that of [`LIMITS`].
pub(super) fn write_block(found: &Sequences, page_len: usize, block: &mut Vec<u8>) {
    block.clear();
    let out = Appender::new(block, get_maximum_output_size(page_len) + COPY_LEN);
    let mut writer = BlockWriter { literals: &found.literals, written: 0, out };
    let mut literals_end = 0;
    for sequence in &found.sequences {
        literals_end += sequence.litLength as usize;
        // Without a match, a block of zstd ends: its literals precede the next match.
        if sequence.offset != 0 {
            let distance = u16::try_from(sequence.offset).expect("the search keeps to the greatest distance");
            writer.write(literals_end, sequence.matchLength as usize, distance);
        }
    }
    writer.finish();
}

struct BlockWriter<'a> {
    literals: &'a [u8],
    /// How many literals the block has.
    written: usize,
    out: Appender<'a>,
}

impl BlockWriter<'_> {
    /// Writes the literals up to `literals_end`, and a match.
    #[inline(always)]
    fn write(&mut self, literals_end: usize, match_len: usize, distance: u16) {
        let length = match_len - SHORTEST_MATCH;
        self.write_literals(literals_end, length);
        self.append(distance.to_le_bytes(), length);
    }

    /// Writes a token with the length of a match, and the literals up to `end`.
    #[inline(always)]
    fn write_literals(&mut self, end: usize, match_length: usize) {
        let (start, count) = (self.written, end - self.written);
        self.append([(count.min(TOKEN_LIMIT) << 4 | match_length.min(TOKEN_LIMIT)) as u8], count);
        append_literals(&mut self.out, self.literals, start, count);
        self.written = end;
    }

    /// Writes `bytes`, at most 2, and what a token cannot hold of `length`.
    #[inline(always)]
    fn append<const N: usize>(&mut self, bytes: [u8; N], length: usize) {
        let mut rest = length.wrapping_sub(TOKEN_LIMIT);
        if length < TOKEN_LIMIT + 255 {
            // Without a branch: many lengths are near the limit.
            self.out.append(bytes, N);
            self.out.append([rest as u8], usize::from(length >= TOKEN_LIMIT));
            return;
        }
        self.out.append(bytes, N);
        while rest >= 255 {
            self.out.push(255);
            rest -= 255;
        }
        self.out.push(rest as u8);
    }

    /// Writes the literals after the last match.
    fn finish(mut self) {
        self.write_literals(self.literals.len(), 0);
        self.out.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::pages::matches::tests::pages;
    use crate::output::pages::matches::{MatchFinder, sequence};
    use proptest::prelude::*;

    const MAX_DISTANCE: usize = LIMITS.max_distance as usize;

    /// Returns whether the search suits `page`. Its block is decompressed to the page, and keeps to the rules for the end of a
    /// block.
    fn check(page: &[u8]) -> bool {
        let mut finder = MatchFinder::new(LIMITS);
        let Some(found) = finder.find(b"", page) else { return false };
        let mut block = vec![0; 7];
        write_block(found, page.len(), &mut block);
        assert!(lz4_flex::block::decompress(&block, page.len()).expect("a block") == page);
        let last = found.sequences.iter().rposition(|sequence| sequence.offset != 0);
        let Some(last) = last else { return true };
        let after_last: u32 = found.sequences[last + 1..].iter().map(|sequence| sequence.litLength).sum();
        assert!(after_last >= 5 && after_last + found.sequences[last].matchLength >= 12);
        true
    }

    #[test]
    fn lengths_continue_after_the_token() {
        let lens = [4, 5, 14, 15, 16, 18, 19, 20, 32, 33, 128, 129, 269, 270, 273, 274, 275, 524, 525, 526, 5000];
        let (mut page, mut found) = (Vec::new(), Sequences::default());
        for (i, count) in lens.into_iter().enumerate() {
            for len in lens {
                let literals = (0..count).map(|at| (at * 7 + i) as u8);
                found.literals.extend(literals.clone());
                page.extend(literals);
                let offset = (page.len() / 2).clamp(1, MAX_DISTANCE);
                (0..len).for_each(|_| page.push(page[page.len() - offset]));
                found.sequences.push(sequence(count, len, offset));
                // The end of a block of zstd.
                found.literals.push(b'.');
                page.push(b'.');
                found.sequences.push(sequence(1, 0, 0));
            }
        }
        let mut block = vec![0; 7];
        write_block(&found, page.len(), &mut block);
        assert!(lz4_flex::block::decompress(&block, page.len()).expect("a block") == page);
    }

    /// Other decoders refuse a block whose last match reaches its end.
    #[test]
    fn a_repetition_up_to_the_end_of_a_page_ends_with_literals() {
        let urls: String = (0..400).map(|i| format!("http://host{}.example/{}/", i % 70, i * 7919 % 65537)).collect();
        for len in 500..600 {
            assert!(check(&[urls.as_bytes(), &urls.as_bytes()[..len]].concat()));
        }
    }

    #[test]
    fn matches_are_not_farther_away_than_a_block_can_say() {
        for distance in [MAX_DISTANCE - 1, MAX_DISTANCE, MAX_DISTANCE + 1] {
            let mut page = b"://repeated.example/once/and/twice/in/this/page/".to_vec();
            let text = page.clone();
            page.extend(
                (0..)
                    .flat_map(|i: u32| format!("{:05x}/", i.wrapping_mul(2_654_435_761) >> 12).into_bytes())
                    .take(distance - text.len()),
            );
            page.extend_from_slice(&text);
            page.extend(b"0123456789-0123456789-0123456789-0123456789");
            let mut finder = MatchFinder::new(LIMITS);
            let found = finder.find(b"", &page).expect("suited");
            let is_found = found.sequences.iter().any(|sequence| sequence.offset as usize == distance);
            assert_eq!(is_found, distance <= MAX_DISTANCE);
            assert!(check(&page));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn blocks_are_unpacked_to_the_page(page in pages()) {
            prop_assume!(check(&page));
        }
    }
}
