//! Finds repeated strings in the texts of pages of URLs, as literals and sequences in the form of zstd ([RFC 8878], section
//! 3.1.1.3).
//!
//! A string that repeats in URLs nearly always begins with a word: after a delimiter, or after a part that differs. So
//! only the words of a page are looked up in hash tables, where zstd and LZ4 look up nearly every byte, and a match is
//! extended over a few bytes before its word. One table has the last word with the same 8 bytes, which often begins a long
//! match, the other one, where there is none, that with fewer equal bytes. Lookup, comparison and choice of the words of a
//! group are loops without branches that a processor could predict wrongly.
//!
//! ```text
//! texts --mark_words--> bitmap of words --Group--> words, earlier words, chosen ones --SequenceWriter--> Sequences
//! ```
//!
//! [RFC 8878]: https://www.rfc-editor.org/rfc/rfc8878

use std::hint::select_unpredictable;

use zstd::zstd_safe::zstd_sys::ZSTD_Sequence;

use crate::kernel::{Appender, COPY_LEN, SimdTask, chunks_at, common_prefix_len, mask_of, run_with_simd};

/// The length of the longest texts of a page, as a binary logarithm.
pub(super) const MAX_LEN_LOG: u32 = 21;
const MAX_LEN: usize = 1 << MAX_LEN_LOG;
/// The greatest length of a block ([RFC 8878], section 3.1.1.2.4).
///
/// [RFC 8878]: https://www.rfc-editor.org/rfc/rfc8878
const MAX_BLOCK_LEN: usize = 1 << 17;
/// Shorter pages are not worth the tables.
const MIN_LEN: usize = 1 << 12;
/// The head of a page is part of its first block.
const MAX_HEAD_LEN: usize = MAX_BLOCK_LEN / 2;
/// Bytes per word above which a page does not consist of words, like one of digests, so that this search finds too little.
const MAX_WORD_LEN: usize = 24;
/// Matches cover nearly all of some pages, like one of names of archives. After this many bytes of such a page, the
/// search ends: zstd does not look up every byte of a long match, and is faster.
const TRIAL_LEN: usize = 1 << 14;
/// Bytes per literal above which the search ends after [`TRIAL_LEN`] bytes.
const MAX_LITERAL_DISTANCE: usize = 10;
/// Slots of a hash table, as a binary logarithm. Larger tables find more, but leave less room in the cache.
const TABLE_LOG: u32 = 15;
/// Bytes by which words are looked up in the table of long matches.
const LONG_MATCH: usize = 8;
/// The last bytes of a page are literals. LZ4 requires at least 5, and that the last match, which has at least 5 bytes, begins
/// at least 12 bytes before the end.
const LAST_LITERALS: usize = 7;

/// Literals before a match that are copied without a branch on their number.
const FEW_LITERALS: usize = 32;

/// Bytes after the literals that zstd may read.
pub(super) const PADDING: usize = 8;

/// The matches of a page.
#[derive(Default)]
pub(super) struct Sequences {
    /// The bytes outside of matches. The vector has room for [`PADDING`] more.
    pub(super) literals: Vec<u8>,
    /// For each match, how many literals precede it, its length, and its distance from the earlier string. A sequence
    /// without match ends each block of at most [`MAX_BLOCK_LEN`] bytes. All lengths add up to that of the page.
    pub(super) sequences: Vec<ZSTD_Sequence>,
}

/// The matches that a format allows, or that are worth their code in it.
#[derive(Clone, Copy)]
pub(super) struct MatchLimits {
    /// The least length of a match, 5 to 8 bytes.
    pub(super) min_len: u8,
    /// The greatest distance between a match and the earlier string.
    pub(super) max_distance: u32,
}

/// Finds the matches of one page after the other.
pub(super) struct MatchFinder {
    tables: Box<Tables>,
    /// One bit per byte of the page: whether a word is looked up there.
    words: Vec<u64>,
    limits: MatchLimits,
    found: Sequences,
}

impl MatchFinder {
    pub(super) fn new(limits: MatchLimits) -> MatchFinder {
        MatchFinder { tables: Box::default(), words: Vec::new(), limits, found: Sequences::default() }
    }

    /// Returns the matches of a page, which consists of `head` and `texts`. The bytes of `head`, which does not contain text, are
    /// literals. Returns `None` if the codec's own search suits the page better.
    pub(super) fn find(&mut self, head: &[u8], texts: &[u8]) -> Option<&Sequences> {
        let mut is_suited = (MIN_LEN..=MAX_LEN).contains(&texts.len()) && head.len() <= texts.len().min(MAX_HEAD_LEN);
        if is_suited {
            run_with_simd(Search { head, texts, finder: self, is_suited: &mut is_suited });
        }
        is_suited.then_some(&self.found)
    }
}

/// The search in one page.
struct Search<'a> {
    head: &'a [u8],
    texts: &'a [u8],
    finder: &'a mut MatchFinder,
    /// Whether the search suits the page, and its matches are complete.
    is_suited: &'a mut bool,
}

impl SimdTask for Search<'_> {
    #[inline(always)]
    fn run(self) {
        let Search { head, texts, finder: MatchFinder { tables, words, limits, found }, is_suited } = self;
        let count = mark_words(texts, words);
        *is_suited = count * MAX_WORD_LEN >= texts.len();
        if !*is_suited {
            return;
        }
        tables.clear();
        let (mut writer, mut group) = (SequenceWriter::new(head, texts, limits.min_len, found), Group::default());
        let (mut next, mut is_trial) = (0, true);
        while next < words.len() {
            next = group.fill(words, next, texts.len());
            group.look_up(texts, tables, *limits);
            group.compare(texts, *limits);
            group.choose(writer.written);
            for i in &group.chosen[..group.chosen_count] {
                let i = usize::from(*i);
                writer.write(group.at[i] as usize, group.earlier[i] as usize, usize::from(group.equal[i]));
            }
            if is_trial && writer.written >= TRIAL_LEN {
                is_trial = false;
                *is_suited = (writer.literals.len() - head.len()) * MAX_LITERAL_DISTANCE >= writer.written;
                if !*is_suited {
                    return;
                }
            }
        }
        writer.finish();
    }
}

/// Sets the bits of `words` where a word begins, and the first of each 64 bits if no word begins there. A word is a run of
/// letters and digits, or a character outside of ASCII. Returns the number of words.
#[inline(always)]
fn mark_words(texts: &[u8], words: &mut Vec<u64>) -> usize {
    words.clear();
    let (mut count, mut before) = (0, 0);
    for block in texts.chunks(64) {
        let inside = mask_of(block, is_word_byte);
        let starts = inside & !(inside << 1 | before);
        before = inside >> 63;
        count += starts.count_ones() as usize;
        words.push(if starts == 0 { 1 } else { starts });
    }
    count
}

#[inline(always)]
fn is_word_byte(byte: u8) -> bool {
    ((byte | 0x20).wrapping_sub(b'a') < 26) | (byte.wrapping_sub(b'0') < 10) | (byte >= 0xC0)
}

/// For each hash, the position of the last word that has it; 0 if there is none.
struct Tables {
    /// By the hash of as many bytes as the shortest match has.
    short: [u32; 1 << TABLE_LOG],
    /// By the hash of [`LONG_MATCH`] bytes. The bits above the position are a tag, bits of the hash that do not select the slot.
    /// So another word is noticed without a look at the page.
    long: [u32; 1 << TABLE_LOG],
}

impl Default for Tables {
    fn default() -> Tables {
        Tables { short: [0; _], long: [0; _] }
    }
}

impl Tables {
    fn clear(&mut self) {
        self.short.fill(0);
        self.long.fill(0);
    }

    /// Puts the word at `at`, which begins with `bytes`, in the tables. Returns the position of the last word that probably has
    /// the same bytes, as many as possible.
    #[inline(always)]
    fn replace(&mut self, bytes: [u8; LONG_MATCH], at: u32, limits: MatchLimits) -> u32 {
        let bytes = u64::from_le_bytes(bytes);
        let first_bytes = bytes << (64 - 8 * u32::from(limits.min_len));
        let slot = &mut self.short[slot_of(first_bytes.wrapping_mul(0x9E37_79B1_85EB_CA87))];
        let short = std::mem::replace(slot, at);
        let hash = bytes.wrapping_mul(0xC2B2_AE3D_27D4_EB4F);
        let tag = (hash << TABLE_LOG >> 32) as u32 & !MAX_POSITION;
        let long = std::mem::replace(&mut self.long[slot_of(hash)], at | tag) ^ tag;
        let is_same = (long <= MAX_POSITION) & (at.wrapping_sub(long) <= limits.max_distance);
        select_unpredictable(is_same, long, short)
    }
}

const MAX_POSITION: u32 = MAX_LEN as u32 - 1;

#[inline(always)]
fn slot_of(hash: u64) -> usize {
    (hash >> (64 - TABLE_LOG)) as usize
}

/// Words after which a group is full. The words of 64 bytes are added together, at most 32, in steps of 8.
const GROUP_LEN: usize = 192;
const MAX_GROUP_LEN: usize = GROUP_LEN + 64;
/// Bytes of two strings that are compared at once.
const COMPARED: usize = 32;

/// Consecutive words, and for each an earlier one.
struct Group {
    len: usize,
    /// The positions of the words.
    at: [u32; MAX_GROUP_LEN],
    /// The positions of earlier words that probably have the same bytes, or 0.
    earlier: [u32; MAX_GROUP_LEN],
    /// How many of the first [`COMPARED`] bytes of the two are equal.
    equal: [u8; MAX_GROUP_LEN],
    /// The position of the word if this is a match, otherwise 0.
    match_at: [u32; MAX_GROUP_LEN],
    /// Indices of matches that do not overlap.
    chosen: [u8; MAX_GROUP_LEN],
    chosen_count: usize,
}

impl Default for Group {
    fn default() -> Group {
        let (positions, bytes) = ([0; _], [0; _]);
        let (at, earlier, match_at) = (positions, positions, positions);
        Group { len: 0, at, earlier, equal: bytes, match_at, chosen: bytes, chosen_count: 0 }
    }
}

impl Group {
    /// Takes words from the bitmap, from item `next` on. Leaves out those less than [`COMPARED`] bytes before the end of the
    /// page. Returns the item after the last.
    #[inline(always)]
    fn fill(&mut self, words: &[u64], mut next: usize, texts_len: usize) -> usize {
        /// Positions that are written at once; those of missing words are overwritten.
        const STEP: usize = 8;
        self.len = 0;
        while next < words.len() && self.len < GROUP_LEN {
            let (mut rest, mut end) = (words[next], self.len);
            self.len += rest.count_ones() as usize;
            while end < self.len {
                for at in &mut self.at[end..end + STEP] {
                    *at = (next * 64) as u32 + rest.trailing_zeros();
                    rest &= rest.wrapping_sub(1);
                }
                end += STEP;
            }
            next += 1;
        }
        while self.len > 0 && self.at[self.len - 1] as usize + COMPARED > texts_len {
            self.len -= 1;
        }
        next
    }

    /// Looks up the words, and puts them in the tables.
    #[inline(always)]
    fn look_up(&mut self, texts: &[u8], tables: &mut Tables, limits: MatchLimits) {
        let at = &self.at[..self.len];
        for ((at, bytes), earlier) in at.iter().zip(chunks_at(texts, at)).zip(&mut self.earlier) {
            *earlier = tables.replace(*bytes, *at, limits);
        }
    }

    /// Compares the words with the earlier ones.
    #[inline(always)]
    fn compare(&mut self, texts: &[u8], limits: MatchLimits) {
        let (at, earlier) = (&self.at[..self.len], &self.earlier[..self.len]);
        for ((a, b), equal) in chunks_at(texts, at).zip(chunks_at(texts, earlier)).zip(&mut self.equal) {
            *equal = equal_len(a, b);
        }
        let pairs = at.iter().zip(earlier).zip(&self.equal);
        for (((at, earlier), equal), match_at) in pairs.zip(&mut self.match_at) {
            // The first word of a page finds itself, at a distance of 0.
            let is_near = at.wrapping_sub(*earlier).wrapping_sub(1) < limits.max_distance;
            let is_match = (*equal >= limits.min_len) & is_near;
            *match_at = select_unpredictable(is_match, *at, 0);
        }
    }

    /// Chooses every match that begins at or after `from` and after the equal bytes of the match before it.
    #[inline(always)]
    fn choose(&mut self, from: usize) {
        // No match begins at 0. The types and bounds spare checks: a group has fewer than 256 words.
        let (mut count, mut end) = (0_u8, from.max(1) as u32);
        for i in 0..self.len.min(MAX_GROUP_LEN) {
            let (at, equal) = (self.match_at[i], u32::from(self.equal[i]));
            self.chosen[usize::from(count)] = i as u8;
            let is_chosen = at >= end;
            count = count.wrapping_add(u8::from(is_chosen));
            end = select_unpredictable(is_chosen, at + equal, end);
        }
        self.chosen_count = usize::from(count);
    }
}

/// Returns how many bytes of the two are equal before the first difference.
#[inline(always)]
fn equal_len(a: &[u8; COMPARED], b: &[u8; COMPARED]) -> u8 {
    let mut difference = [0; COMPARED];
    for (difference, (a, b)) in difference.iter_mut().zip(a.iter().zip(b)) {
        *difference = a ^ b;
    }
    mask_of(&difference, |byte| byte == 0).trailing_ones() as u8
}

/// Writes literals and sequences.
struct SequenceWriter<'a> {
    /// The length of what precedes the texts of the page.
    head_len: usize,
    texts: &'a [u8],
    /// The least length of a match.
    min_len: usize,
    literals: Appender<'a>,
    sequences: Appender<'a, ZSTD_Sequence>,
    /// The end of the last match or block.
    written: usize,
    block_len: usize,
    /// The end of the block that is being written.
    block_end: usize,
}

impl<'a> SequenceWriter<'a> {
    #[inline(always)]
    fn new(head: &[u8], texts: &'a [u8], min_len: u8, found: &'a mut Sequences) -> SequenceWriter<'a> {
        found.literals.clear();
        found.literals.extend_from_slice(head);
        found.sequences.clear();
        let literals = Appender::new(&mut found.literals, texts.len() + COPY_LEN);
        let (head_len, len) = (head.len(), head.len() + texts.len());
        let block_count = len.div_ceil(MAX_BLOCK_LEN);
        let min_len = usize::from(min_len);
        let sequences = Appender::new(&mut found.sequences, texts.len() / min_len + block_count);
        // Blocks of about the same length: zstd fails if a block is too short to become shorter.
        let block_len = len.div_ceil(block_count);
        let block_end = block_len - head_len;
        SequenceWriter { head_len, texts, min_len, literals, sequences, written: 0, block_len, block_end }
    }

    /// Writes the match of the strings at `at` and `earlier`, whose first `equal` bytes are equal, less those that the last
    /// match covers. Does nothing if the match is too short. The calls are in ascending order of `at`.
    #[inline(always)]
    fn write(&mut self, at: usize, earlier: usize, equal: usize) {
        if !self.write_short(at, earlier, equal) {
            self.write_any(at, earlier, equal);
        }
    }

    /// Writes the match if the last one does not cover any of it, and the strings differ within the compared bytes and the block,
    /// as for nearly all matches. Otherwise, returns false.
    #[inline(always)]
    fn write_short(&mut self, at: usize, earlier: usize, equal: usize) -> bool {
        let is_short = at >= self.written && equal < COMPARED && at + equal <= self.end();
        if is_short {
            let before = self.equal_before(at, earlier);
            self.push(at - before, before + equal, at - earlier);
        }
        is_short
    }

    /// Writes the match like [`SequenceWriter::write`], whatever its position and length are.
    #[inline(always)]
    fn write_any(&mut self, at: usize, earlier: usize, equal: usize) {
        let covered = self.written.saturating_sub(at);
        if covered + self.min_len > equal {
            return;
        }
        let (at, earlier) = (at + covered, earlier + covered);
        while at >= self.block_end {
            self.end_block();
        }
        let end = self.end();
        let before = self.equal_before(at, earlier);
        let after = if equal < COMPARED {
            (equal - covered).min(end - at)
        } else {
            common_prefix_len(&self.texts[at..end], &self.texts[earlier..])
        };
        let len = before + after;
        if len < self.min_len {
            return;
        }
        self.push(at - before, len, at - earlier);
    }

    /// Appends the literals up to `at` and the match there, whose earlier string is `offset` bytes before it.
    #[inline(always)]
    fn push(&mut self, at: usize, len: usize, offset: usize) {
        let literals = at - self.written;
        append_literals(&mut self.literals, self.texts, self.written, literals);
        self.sequences.push(sequence(literals, len, offset));
        self.written = at + len;
    }

    /// Returns where a match in this block has to end.
    #[inline(always)]
    fn end(&self) -> usize {
        self.block_end.min(self.texts.len() - LAST_LITERALS)
    }

    /// Returns how many bytes, at most 8, before `at` and before `earlier` are equal and not yet written.
    #[inline(always)]
    fn equal_before(&self, at: usize, earlier: usize) -> usize {
        let bytes = |end| self.texts[..end].last_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        let (Some(a), Some(b)) = (bytes(at), bytes(earlier)) else { return 0 };
        ((a ^ b).leading_zeros() as usize / 8).min(at - self.written)
    }

    /// Writes the rest of the block as literals.
    fn end_block(&mut self) {
        self.push(self.block_end, 0, 0);
        self.block_end = self.texts.len().min(self.block_end + self.block_len);
    }

    /// Ends the remaining blocks.
    fn finish(mut self) {
        while self.block_end < self.texts.len() {
            self.end_block();
        }
        self.end_block();
        self.literals.finish();
        let sequences = self.sequences.finish();
        // The first block begins with the head.
        sequences[0].litLength += self.head_len as u32;
    }
}

/// Appends `count` bytes of `text` from `at` on. Up to [`FEW_LITERALS`] are copied without a branch on their number.
#[inline(always)]
pub(super) fn append_literals(out: &mut Appender<'_>, text: &[u8], at: usize, count: usize) {
    match text[at..].first_chunk::<FEW_LITERALS>() {
        Some(literals) if count <= FEW_LITERALS => out.append(*literals, count),
        _ => out.append_range(text, at, count),
    }
}

/// Returns a sequence; with length and offset 0, the end of a block.
#[inline(always)]
pub(super) fn sequence(literals: usize, len: usize, offset: usize) -> ZSTD_Sequence {
    ZSTD_Sequence { offset: offset as u32, litLength: literals as u32, matchLength: len as u32, rep: 0 }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::output::pages::zstd_context::LIMITS;
    use proptest::prelude::*;

    /// Returns the page that `found` describes, and checks what zstd requires of sequences.
    fn rebuild(found: &Sequences) -> Vec<u8> {
        let (mut page, mut literals, mut block_len) = (Vec::new(), &found.literals[..], 0);
        for sequence in &found.sequences {
            let (count, len, offset) =
                (sequence.litLength as usize, sequence.matchLength as usize, sequence.offset as usize);
            page.extend_from_slice(&literals[..count]);
            literals = &literals[count..];
            block_len += count + len;
            assert!(block_len <= MAX_BLOCK_LEN);
            if offset == 0 {
                assert_eq!(len, 0, "the end of a block");
                block_len = 0;
            } else {
                assert!(len >= usize::from(LIMITS.min_len) && offset <= page.len());
            }
            (0..len).for_each(|_| page.push(page[page.len() - offset]));
        }
        assert!(literals.is_empty());
        assert_eq!(found.sequences.last().map(|last| last.offset), Some(0), "the last block ends");
        page
    }

    fn fields(found: &Sequences) -> Vec<[u32; 3]> {
        found.sequences.iter().map(|s| [s.litLength, s.matchLength, s.offset]).collect()
    }

    /// Returns how many bytes of `page` matches cover; `None` if the search does not suit it. The sequences describe the page,
    /// and are the same without vector instructions.
    fn check(page: &[u8]) -> Option<usize> {
        check_with_head(b"", page)
    }

    /// [`check`] of a page with a head.
    fn check_with_head(head: &[u8], page: &[u8]) -> Option<usize> {
        let (mut finder, mut portable, mut is_suited) = (MatchFinder::new(LIMITS), MatchFinder::new(LIMITS), false);
        let found = finder.find(head, page)?;
        assert!(rebuild(found) == [head, page].concat());
        Search { head, texts: page, finder: &mut portable, is_suited: &mut is_suited }.run();
        let portable = &portable.found;
        assert!(is_suited && fields(portable) == fields(found) && portable.literals == found.literals);
        Some(head.len() + page.len() - found.literals.len())
    }

    fn urls(len: usize) -> Vec<u8> {
        let mut page = Vec::new();
        for i in 0_u64.. {
            let noise = i.wrapping_mul(6364136223846793005).rotate_right(20);
            page.extend(
                format!("https://www.host{}.example/{:x}/{}?id={i}", i % 50, noise % 5000, noise >> 40).bytes(),
            );
            if page.len() >= len {
                page.truncate(len);
                break;
            }
        }
        page
    }

    #[test]
    fn urls_are_suited_at_the_lengths_that_the_search_allows() {
        let lens = [MIN_LEN, MAX_BLOCK_LEN - 1, MAX_BLOCK_LEN, MAX_BLOCK_LEN + 1, 2 * MAX_BLOCK_LEN + 1, MAX_LEN];
        for len in (MIN_LEN..MIN_LEN + 200).chain(lens) {
            let covered = check(&urls(len)).expect("suited");
            assert!(covered > len / 3, "{covered} of {len}");
        }
        for len in [0, 1, 31, MIN_LEN - 1, MAX_LEN + 1] {
            assert_eq!(check(&urls(len)), None);
        }
    }

    #[test]
    fn the_head_of_a_page_is_literals_of_its_first_block() {
        for (head_len, len) in
            [(1, MIN_LEN), (MIN_LEN, MIN_LEN), (MAX_HEAD_LEN, MAX_BLOCK_LEN), (5000, 3 * MAX_BLOCK_LEN)]
        {
            let (head, texts) = (urls(head_len), urls(len));
            let covered = check_with_head(&head, &texts).expect("suited");
            if len < MAX_BLOCK_LEN {
                assert_eq!(check(&texts), Some(covered));
            }
            assert!(covered > len / 3, "{covered} of {len}");
        }
        let texts = urls(MAX_LEN);
        for (head_len, len) in [(MAX_HEAD_LEN + 1, MAX_LEN), (MIN_LEN + 1, MIN_LEN)] {
            assert_eq!(check_with_head(&texts[..head_len], &texts[..len]), None);
        }
    }

    /// Otherwise the bytes of a page would depend on what the same thread has compressed before.
    #[test]
    fn matches_do_not_depend_on_earlier_pages() {
        // A name that is a word of the earlier page where it is within a word of the later page.
        let name = "collectedbyworker/index-of-captures";
        let page = |first: &str, last: &str| [first.as_bytes(), &urls(MIN_LEN), last.as_bytes(), &[b'.'; 64]].concat();
        let (earlier, later) = (page(&format!("/{name}/"), ""), page(&format!("x{name}/"), &format!("/{name}/")));
        let (mut finder, mut other) = (MatchFinder::new(LIMITS), MatchFinder::new(LIMITS));
        assert!(finder.find(b"", &earlier).is_some());
        let (found, alone) = (finder.find(b"", &later).expect("suited"), other.find(b"", &later).expect("suited"));
        assert_eq!(fields(found), fields(alone));
        assert!(found.literals == alone.literals && rebuild(found) == later);
    }

    /// zstd reads bytes after the literals. They are most of a page with no match, or with a short one.
    #[test]
    fn literals_are_followed_by_padding() {
        let number = |i: u64| format!("{:09x}/", i.wrapping_mul(6364136223846793005) >> 28).into_bytes();
        let unique: Vec<u8> = (1..).flat_map(number).take(2 * MIN_LEN).collect();
        let mut repeated = unique.clone();
        repeated.copy_within(10..20, 5000);
        for (page, covered) in [(unique, 0), (repeated, 11)] {
            assert_eq!(check(&page), Some(covered));
            let mut finder = MatchFinder::new(LIMITS);
            let found = finder.find(b"", &page).expect("suited");
            assert!(found.literals.capacity() >= found.literals.len() + PADDING);
        }
    }

    #[test]
    fn blocks_after_the_last_match_are_literals() {
        // Bytes that differ, and of which no word consists.
        let mut state = 1_u64;
        let noise = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 58) as u8 | 0x80
        });
        let page = [urls(MAX_BLOCK_LEN), noise.take(2 * MAX_BLOCK_LEN).collect()].concat();
        let covered = check(&page).expect("suited");
        assert!((1..MAX_BLOCK_LEN).contains(&covered), "{covered}");
    }

    #[test]
    fn pages_without_words_or_with_few_literals_are_not_suited() {
        let digests: Vec<u8> = urls(1 << 16).into_iter().filter(u8::is_ascii_alphanumeric).collect();
        assert_eq!(check(&digests), None);
        let archives: String =
            (0..5000).map(|i| format!("crawl/2026-11/segment-{:03}/warc/part.warc.gz,", i % 7)).collect();
        assert_eq!(check(archives.as_bytes()), None);
        assert!(check(&archives.as_bytes()[..TRIAL_LEN - 1000]).is_some(), "the page ends before the trial");
    }

    #[test]
    fn bytes_after_the_end_of_a_match_within_a_word_are_matched() {
        // The match of the long name ends within the number. The match of the number, with an older name, covers the rest.
        let name = |i: u64| {
            let (number, noise) = (i * 7919 % 500, i.wrapping_mul(6364136223846793005));
            format!("{noise:016x}/warc/crawl-2026-collectedbyworker-{number:05}.warc.gz/index-of-captures;")
        };
        let page: String = (0..4000).map(name).collect();
        let covered = check(page.as_bytes()).expect("suited");
        assert!(covered > page.len() * 7 / 10, "{covered} of {}", page.len());
    }

    #[test]
    fn a_word_begins_after_other_bytes() {
        let page = "ab-c1 \u{e9}\u{65e5}\u{672c}Z9..x".as_bytes();
        let mut words = Vec::new();
        let count = mark_words(page, &mut words);
        let expected = |i: &usize| is_word_byte(page[*i]) && (*i == 0 || !is_word_byte(page[i - 1]));
        let positions: Vec<usize> = (0..page.len()).filter(expected).collect();
        assert_eq!((count, words.len()), (positions.len(), 1));
        assert_eq!(words[0], positions.iter().fold(0, |mask, at| mask | 1 << at));
        assert_eq!(positions, [0, 3, 6, 8, 11, 14, 18]);
        assert_eq!(mark_words(&[b'x'; 200], &mut words), 1);
        assert_eq!(words, [1, 1, 1, 1], "every 64 bytes, a position is looked up");
    }

    /// Pages of URLs, so that the search suits most of them, and then of few different strings, so that nearly all of them
    /// have matches that overlap, touch or end with a block.
    pub(in crate::output::pages) fn pages() -> impl Strategy<Value = Vec<u8>> {
        let part = prop_oneof![40 => "[/.%=-][a-c]{0,9}", 1 => "[0-9]{1,70}", 1 => "[a-z]{200,600}", 1 => "é|日本"];
        let parts = prop::collection::vec(part, 4..40);
        let order = prop::collection::vec(any::<prop::sample::Index>(), 1000..4000);
        (parts, order, 1_usize..10).prop_map(|(parts, order, repeats)| {
            let strings: String = order.iter().map(|index| index.get(&parts).as_str()).collect();
            let mut page = [urls(TRIAL_LEN), strings.repeat(repeats).into_bytes()].concat();
            page.truncate(MAX_LEN);
            page
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn sequences_describe_the_page(page in pages()) {
            prop_assume!(check(&page).is_some());
        }
    }
}
