//! Offset-value coding (Conner 1977): a number per row that mostly decides a comparison without the bytes of the rows:
//! [`OffsetCode`].

use std::cmp::Ordering;

use super::prefix::first_bytes;
use crate::kernel::common_prefix_len;

/// Where and how a row differs from a row before it. Of two rows after the same row, the one with the lesser code comes first.
/// Rows with equal codes have the same words up to and including the one that differs from the row before. If codes differ, the
/// code of the later row is also its code after the earlier row.
///
/// The words of a row are its partition, and then the bytes of its key, four at a time; the last word is padded with zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OffsetCode(u64);

/// The words of a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowWords<'a> {
    pub(super) partition: u32,
    /// The bytes by which rows of a partition compare. No key is a proper prefix of another, so keys whose words are equal up to
    /// the end of one are equal.
    pub(super) key: &'a [u8],
}

/// The length of a word in bytes.
const WORD_LEN: usize = 4;

impl OffsetCode {
    /// All words are equal.
    pub(super) const EQUAL: OffsetCode = OffsetCode(0);
    /// There is no row: it comes after all rows.
    pub(super) const NO_ROW: OffsetCode = OffsetCode(u64::MAX);

    /// The code of a row whose word at `at` is the first that differs.
    fn new(at: usize, word: u32) -> OffsetCode {
        // A row that differs at a later word is less.
        OffsetCode(u64::from(u32::MAX - 1 - at as u32) << u32::BITS | u64::from(word))
    }

    /// The code of a row without a row before it.
    pub(super) fn of_first(partition: u32) -> OffsetCode {
        OffsetCode::new(0, partition)
    }

    /// The number of words that rows with this code share with each other.
    pub(super) fn shared_words(self) -> usize {
        (u32::MAX - (self.0 >> u32::BITS) as u32) as usize
    }
}

impl RowWords<'_> {
    /// Compares two rows whose first `shared` words are equal. Also returns the code of the later row after the earlier one.
    pub(super) fn compare(self, other: RowWords<'_>, shared: usize) -> (Ordering, OffsetCode) {
        if shared == 0 && self.partition != other.partition {
            let later = self.partition.max(other.partition);
            return (self.partition.cmp(&other.partition), OffsetCode::new(0, later));
        }
        let at = shared.saturating_sub(1) * WORD_LEN;
        let rest = |key: &[u8]| key.get(at..).map_or(0, <[u8]>::len);
        if rest(self.key) == 0 && rest(other.key) == 0 {
            return (Ordering::Equal, OffsetCode::EQUAL);
        }
        let same = at + common_prefix_len(&self.key[at..], &other.key[at..]);
        let ordering = self.key.get(same).cmp(&other.key.get(same));
        let word_at = same - same % WORD_LEN;
        let word = |later: RowWords<'_>| (first_bytes(&later.key[word_at..]) >> u32::BITS) as u32;
        let code = |later| OffsetCode::new(1 + same / WORD_LEN, word(later));
        match ordering {
            Ordering::Equal => (ordering, OffsetCode::EQUAL),
            Ordering::Less => (ordering, code(other)),
            Ordering::Greater => (ordering, code(self)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows whose keys end in a byte that ends no other key, in order.
    fn rows() -> Vec<(u32, Vec<u8>)> {
        let keys = (0..4_u32.pow(5)).filter_map(|number| {
            let letters: Vec<u8> = (0..5).map(|at| b"\0ab\xff"[(number >> (2 * at)) as usize % 4]).collect();
            let end = letters.iter().position(|byte| *byte == 0xff)?;
            Some(letters[..=end].to_vec())
        });
        let keys: Vec<Vec<u8>> = keys.flat_map(|key| [key.clone(), [b"abcdefg".to_vec(), key].concat()]).collect();
        let mut rows: Vec<_> =
            [0, 1, u32::MAX].iter().flat_map(|at| keys.iter().map(|key| (*at, key.clone()))).collect();
        rows.sort_unstable();
        rows
    }

    #[test]
    fn codes_after_the_same_row_compare_as_rows_do() {
        let rows = rows();
        let words = |at: usize| RowWords { partition: rows[at].0, key: &rows[at].1 };
        for i in 0..20_000_usize {
            let mut three = [1, 2, 3].map(|factor| (i * factor * 7919 + factor * 31) % rows.len());
            three.sort_unstable();
            let [before, one, other] = three;
            let code = |row: usize| words(before).compare(words(row), 0).1;
            let (ordering, between) = words(one).compare(words(other), 0);
            assert_eq!(ordering, rows[one].cmp(&rows[other]));
            let context = format!("{:?}", three.map(|at| &rows[at]));
            match code(one).cmp(&code(other)) {
                Ordering::Equal if code(one) == OffsetCode::EQUAL => {
                    assert_eq!(between, OffsetCode::EQUAL, "{context}")
                }
                Ordering::Equal => {
                    let compared = words(one).compare(words(other), code(one).shared_words());
                    assert_eq!(compared, (ordering, between), "{context}");
                }
                code_ordering => assert_eq!((code_ordering, code(other)), (ordering, between), "{context}"),
            }
            assert!(code(other) < OffsetCode::NO_ROW && code(other) <= OffsetCode::of_first(rows[other].0));
        }
    }
}
