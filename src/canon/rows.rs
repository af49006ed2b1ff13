//! The results of canonicalization in columns, which the module `batch` turns into Arrow arrays without copying.

use super::carry::CarriedColumns;
use super::tally::{Tally, count_bits};
use super::text_column::{TextColumn, retain_items};
use crate::iri::{Fault, Flags, spoofing_flags};
use crate::kernel::Span;
use crate::key::KeyBytes;
use crate::record::{RecordOffsets, Records};

/// Maximum length of the texts of one column of rows, in bytes: offsets of Arrow have 32 bits.
pub(crate) const MAX_TEXT_LEN: usize = 2000 << 20;

/// Maximum number of examples of each kind of fault.
pub(crate) const MAX_FAULT_EXAMPLES: usize = 3;

/// Maximum length of an example, in bytes.
const MAX_EXAMPLE_LEN: usize = 200;

/// Rows in columns. Every record appends one entry to `uri`, `input`, `key`, `flags` and `offset`. The default has no rows;
/// [`Canonicalizer::append`](super::Canonicalizer::append) adds the columns that its policy asks for.
///
/// ```
/// use irikey::canon::{Policy, UrlCanonicalizer};
/// use irikey::iri::Flags;
/// let mut urls = UrlCanonicalizer::new(&Policy::default());
/// let base = Some(&b"http://h/"[..]);
/// let rows = urls.canonicalize(["/a b", "http://[/", "http://h/a%20b"].map(|url| (url.as_bytes(), base)))?;
/// assert_eq!((rows.len(), rows.uri.get(0), rows.uri.get(1)), (3, &b"http://h/a%20b"[..], &b""[..]));
/// assert_eq!(rows.key[0], rows.key[2]);
/// assert_eq!(rows.flags(0), Flags::EXCLUDED);
/// assert_eq!((rows.fault(0), rows.fault(1).is_some(), rows.tally.changed, rows.tally.faulty), (None, true, 1, 1));
/// # Ok::<(), irikey::canon::TextTooLong>(())
/// ```
#[derive(Debug, Default, Clone)]
pub struct Rows {
    /// The canonical URI; empty if the row has a fault (a canonical URI is never empty).
    pub uri: TextColumn,
    /// The record's bytes if they differ from `uri` and the policy keeps them, otherwise empty.
    pub input: TextColumn,
    /// One bit per row, least significant first: the record differs from the URI.
    pub differs: Vec<u64>,
    /// The key of the policy's rung. That of a row with a fault is
    /// [`KeyAlgorithm::fault_key`](crate::key::KeyAlgorithm::fault_key) of the record's text, and so are its `more_keys`.
    pub key: Vec<KeyBytes>,
    /// The keys of further rungs, in the order of the policy.
    pub more_keys: Vec<Vec<KeyBytes>>,
    /// The keys of the rung `protocol`, one per row if the policy has equivalences.
    pub protocol: Vec<KeyBytes>,
    /// The [`Flags`] of each row.
    pub flags: Vec<u32>,
    /// The [`SpoofingFlags`](crate::iri::SpoofingFlags) of each row, if the policy asks for them.
    pub spoofing_flags: Vec<u32>,
    /// The offset of each record in its decompressed source, in bytes.
    pub offset: Vec<u64>,
    /// Row number and fault of each faulty row, in ascending order.
    pub faults: Vec<(u32, Fault)>,
    /// Row number and text of the first rows with each kind of fault, cut after [`MAX_EXAMPLE_LEN`] bytes.
    pub(crate) fault_examples: Vec<(u32, Box<[u8]>)>,
    /// The carried fields.
    pub carried: CarriedColumns,
    /// The texts of recipes' keys, one column per recipe of the policy with one text per row; empty if a recipe makes no
    /// key.
    pub recipe_texts: Vec<TextColumn>,
    /// What the keys would be without one of the rules that changed a row: one item per recipe, if the policy asks for them.
    pub(crate) rule_variants: Vec<RuleVariants>,
    /// The counts.
    pub tally: Tally,
    /// A column of texts would exceed 2000 MiB: the rows must not be used. Some may be empty, and offsets may be wrong.
    pub is_overfull: bool,
}

/// The texts of a recipe's keys without one of the rules that changed a row without a fault.
#[derive(Debug, Default, Clone)]
pub(crate) struct RuleVariants {
    /// The row and the rule of each text, by its index in [`RULES`](crate::key::RULES). Rows ascend.
    pub(crate) places: Vec<(u32, u8)>,
    /// One text per place; empty if there is no key without the rule.
    pub(crate) texts: TextColumn,
}

impl RuleVariants {
    fn clear(&mut self) {
        self.places.clear();
        self.texts.clear();
    }
}

impl Rows {
    /// Reserves memory for `rows` more rows whose texts have `text_len` bytes.
    pub fn reserve(&mut self, rows: usize, text_len: usize) {
        // Normalization rarely makes texts longer than this.
        self.uri.values.reserve(text_len + text_len / 8);
        self.uri.offsets.reserve(rows);
        self.input.offsets.reserve(rows);
        self.offset.reserve(rows);
        self.flags.reserve(rows);
        self.key.reserve(rows);
        self.more_keys.iter_mut().for_each(|keys| keys.reserve(rows));
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.uri.len()
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.uri.is_empty()
    }

    /// Removes all rows and keeps the memory.
    pub fn clear(&mut self) {
        self.uri.clear();
        self.input.clear();
        self.differs.clear();
        self.key.clear();
        self.more_keys.iter_mut().for_each(Vec::clear);
        self.protocol.clear();
        self.flags.clear();
        self.spoofing_flags.clear();
        self.offset.clear();
        self.faults.clear();
        self.fault_examples.clear();
        self.carried.clear();
        self.recipe_texts.iter_mut().for_each(TextColumn::clear);
        self.rule_variants.iter_mut().for_each(RuleVariants::clear);
        self.tally = Tally::default();
        self.is_overfull = false;
    }

    /// Adds a fault of the next row, whose record is `text`.
    pub(super) fn push_fault(&mut self, text: &[u8], fault: Fault) {
        let (row, kind) = (self.len() as u32, fault.kind as usize);
        self.faults.push((row, fault));
        if self.tally.faults[kind] < MAX_FAULT_EXAMPLES as u64 {
            self.fault_examples.push((row, text[..text.len().min(MAX_EXAMPLE_LEN)].into()));
        }
        self.tally.faulty += 1;
        self.tally.faults[kind] += 1;
    }

    /// Adds the empty row of a record whose texts do not fit into the columns.
    #[cold]
    pub(super) fn push_left_out(&mut self) {
        self.is_overfull = true;
        self.uri.end();
        self.input.end();
        self.tally.unchanged += 1;
    }

    /// Adds the flags that the decoder gave to `records`, whose rows begin at `first`, and one for each record whose field
    /// contains several references.
    pub(super) fn add_record_flags(&mut self, records: &Records<'_>, first: usize) {
        let siblings = records.siblings.iter().map(|row| (*row, Flags::SPLIT));
        for (row, flags) in records.flags.iter().copied().chain(siblings) {
            self.flags[first + row as usize] |= flags.0;
            count_bits(flags.0, &mut self.tally.flags);
        }
    }

    pub(super) fn push_offsets(&mut self, records: &Records<'_>) {
        let urls = records.urls.iter();
        match records.offsets {
            RecordOffsets::From(base) => self.offset.extend(urls.map(|&Span { at, .. }| base + u64::from(at))),
            RecordOffsets::Each(each) => self.offset.extend_from_slice(each),
        }
    }

    /// Adds the spoofing flags of the next row. `text` is the record, decoded and repaired.
    pub(super) fn push_spoofing_flags(&mut self, text: &[u8]) {
        let flags = spoofing_flags(text, self.uri.get(self.spoofing_flags.len()));
        self.spoofing_flags.push(flags.0);
        count_bits(flags.0, &mut self.tally.spoofing_flags);
    }

    /// Returns the length of the longer one of the columns `uri` and `input`, in bytes.
    #[inline(always)]
    pub(super) fn text_len(&self) -> usize {
        self.uri.values.len().max(self.input.values.len())
    }

    /// Returns the name and the length of the longest column of texts, in bytes.
    pub(crate) fn longest_texts(&self) -> (&'static str, usize) {
        let variants = self.rule_variants.iter().map(|variants| &variants.texts);
        let recipes = self.recipe_texts.iter().chain(variants).map(|texts| ("recipe", texts.values.len()));
        let uri = ("uri", self.uri.values.len());
        let others = [("input", self.input.values.len())].into_iter().chain(recipes).chain(self.carried.text_lens());
        others.fold(uri, |longest, other| if other.1 > longest.1 { other } else { longest })
    }

    /// Checks that every column of texts can be addressed.
    ///
    /// # Errors
    /// The rows are overfull; the error is the length of the longest column of texts, in bytes.
    pub(crate) fn check_text_len(&self) -> Result<(), usize> {
        if self.is_overfull { Err(self.longest_texts().1) } else { Ok(()) }
    }

    /// Returns the fault of row `i`, if it has one.
    pub fn fault(&self, i: usize) -> Option<Fault> {
        let at = self.faults.binary_search_by_key(&i, |(row, _)| *row as usize).ok()?;
        Some(self.faults[at].1)
    }

    /// Returns the flags of row `i`.
    ///
    /// # Panics
    /// If there is no row `i`.
    pub fn flags(&self, i: usize) -> Flags {
        Flags(self.flags[i])
    }

    /// Returns whether the record of row `i` differs from its URI.
    pub fn differs(&self, i: usize) -> bool {
        self.differs.get(i / 64).is_some_and(|word| word >> (i % 64) & 1 == 1)
    }

    /// Keeps `kept`, the numbers of rows, which must ascend. The memory and the tally stay. If a row is removed, so are all
    /// examples of faults and variants of rules: no job that keeps some rows asks for them.
    ///
    /// # Panics
    /// If there is no row with one of these numbers.
    pub(crate) fn retain(&mut self, kept: &[u32]) {
        if kept.len() == self.len() {
            return;
        }
        self.rule_variants.iter_mut().for_each(RuleVariants::clear);
        self.fault_examples.clear();
        retain_faults(&mut self.faults, kept);
        retain_bits(&mut self.differs, kept);
        self.carried.retain(kept);
        let texts = [&mut self.uri, &mut self.input].into_iter().chain(&mut self.recipe_texts);
        texts.for_each(|texts| texts.retain(kept));
        let keys = self.more_keys.iter_mut().chain([&mut self.key, &mut self.protocol]);
        keys.for_each(|keys| retain_items(keys, kept));
        [&mut self.flags, &mut self.spoofing_flags].into_iter().for_each(|bits| retain_items(bits, kept));
        retain_items(&mut self.offset, kept);
    }
}

/// Keeps the bits of rows in a bitmap. Missing words are 0.
fn retain_bits(words: &mut Vec<u64>, kept: &[u32]) {
    if words.iter().all(|word| *word == 0) {
        return words.clear();
    }
    let bit = |row: u32| words.get(row as usize / 64).map_or(0, |word| word >> (row % 64) & 1);
    let word = |rows: &[u32]| rows.iter().rev().fold(0, |word, row| word << 1 | bit(*row));
    *words = kept.chunks(64).map(word).collect();
}

fn retain_faults(faults: &mut Vec<(u32, Fault)>, kept: &[u32]) {
    faults.retain_mut(|(row, _)| {
        let at = kept.binary_search(row);
        *row = at.unwrap_or_default() as u32;
        at.is_ok()
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iri::{Fault, FaultKind};

    fn texts(rows: impl Iterator<Item = usize>) -> TextColumn {
        let mut texts = TextColumn::new();
        for row in rows {
            texts.values.extend(std::iter::repeat_n(row as u8, row * 7 % 5));
            texts.end();
        }
        texts
    }

    /// Returns rows whose columns follow from these numbers.
    fn rows(numbers: &[usize]) -> Rows {
        let mut rows = Rows::default();
        let all = || numbers.iter().copied();
        rows.uri = texts(all());
        rows.input = texts(all().map(|row| row + 1));
        rows.key = all().map(|row| [row as u8; 16]).collect();
        rows.more_keys = vec![all().map(|row| [!row as u8; 16]).collect()];
        rows.offset = all().map(|row| row as u64).collect();
        rows.flags = all().map(|row| row as u32 * 3).collect();
        rows.carried.times = all().map(|row| (row % 3 > 0).then_some(row as i64)).collect();
        rows.carried.mimes = texts(all().map(|row| row + 2));
        rows.recipe_texts = vec![texts(all().map(|row| row + 3))];
        let fault = Fault::of_reference(FaultKind::NoUrl);
        let faulty = all().enumerate().filter(|(_, number)| number % 4 == 1);
        rows.faults = faulty.map(|(row, _)| (row as u32, fault)).collect();
        rows.differs = vec![0; numbers.len().div_ceil(64)];
        let differing = all().enumerate().filter(|(_, number)| number % 3 == 0);
        differing.for_each(|(row, _)| rows.differs[row / 64] |= 1 << (row % 64));
        rows
    }

    #[test]
    fn retained_rows_keep_all_their_columns() {
        for kept in
            [0..0, 0..200, 3..130, 151..200].map(|range| range.collect()).into_iter().chain([vec![0, 5, 6, 199]])
        {
            let mut retained = rows(&(0..200).collect::<Vec<_>>());
            retained.retain(&kept);
            let numbers: Vec<_> = kept.iter().map(|row| *row as usize).collect();
            assert_eq!(format!("{retained:?}"), format!("{:?}", rows(&numbers)));
            assert!((0..numbers.len()).all(|row| retained.fault(row).is_some() == (numbers[row] % 4 == 1)));
        }
        let mut same = rows(&[2, 4, 6]);
        same.differs.clear();
        same.fault_examples.push((2, b"6".as_slice().into()));
        same.retain(&[0, 1, 2]);
        assert_eq!(same.fault_examples.len(), 1);
        same.retain(&[1, 2]);
        assert!(same.differs.is_empty() && same.fault_examples.is_empty() && same.len() == 2);
    }
}
