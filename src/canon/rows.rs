//! The results of a run of records, column by column and free of Arrow: what [`super::Canonicalizer`] appends to
//! and the batch room turns into arrays without copying.

use super::{CarriedColumns, RecipeTally};
use crate::iri::{Changes, Fault, FaultKind, Flags, SpoofingFlags};
use crate::key::KeyBytes;

/// TextColumn end to end: `values[ends[i - 1]..ends[i]]` is text `i`, `ends[0]` being preceded by 0. Offsets are `i32`
/// because Arrow's are.
#[derive(Debug, Default, Clone)]
pub struct TextColumn {
    /// All bytes.
    pub values: Vec<u8>,
    /// One more entry than texts: starts with 0.
    pub offsets: Vec<i32>,
}

impl TextColumn {
    /// No texts.
    pub fn new() -> TextColumn {
        TextColumn { values: Vec::new(), offsets: vec![0] }
    }

    /// How many texts there are.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// There is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Text `i`.
    pub fn get(&self, i: usize) -> &[u8] {
        &self.values[self.offsets[i] as usize..self.offsets[i + 1] as usize]
    }

    /// Ends the text whose bytes were appended to `values` since the last call.
    #[inline(always)]
    pub fn end(&mut self) {
        self.offsets.push(self.values.len() as i32);
    }

    pub(super) fn clear(&mut self) {
        self.values.clear();
        self.offsets.truncate(1);
    }
}

/// Rows in columns. Every record appends one entry to `uri`, `input`, `key`, `flags` and `offset`.
#[derive(Debug, Default, Clone)]
pub struct Rows {
    /// Canonical URI; empty where the row has a fault (a canonical URI is never empty).
    pub uri: TextColumn,
    /// The record's bytes where they differ from `uri`; empty where they do not. Which is which: `differs`.
    pub input: TextColumn,
    /// One bit a row, least significant first: the input differs from the URI.
    pub differs: Vec<u64>,
    /// Hash of the policy's rung.
    pub key: Vec<KeyBytes>,
    /// Hashes of further rungs, in the order of the policy.
    pub more_keys: Vec<Vec<KeyBytes>>,
    /// Keys of representatives, as long as the rows, if the policy has equivalences.
    pub protocol: Vec<KeyBytes>,
    /// [`Flags`] of each row.
    pub flags: Vec<u32>,
    /// [`SpoofingFlags`] of each row, if the policy asks for them.
    pub spoofing_flags: Vec<u32>,
    /// Offset of each record in its decompressed source, bytes.
    pub offset: Vec<u64>,
    /// Faults, ascending by row.
    pub faults: Vec<(u32, Fault)>,
    /// What the policy wants carried over from the records.
    pub carried: CarriedColumns,
    /// TextColumn of recipes' keys, in the order of the policy, as long as the rows; empty where a recipe gives none.
    pub recipe_texts: Vec<TextColumn>,
    /// What happened, summed.
    pub tally: Tally,
}

impl Rows {
    /// No rows, with room for the columns of `more_keys` further keys.
    pub fn new(more_keys: usize) -> Rows {
        Rows {
            uri: TextColumn::new(),
            input: TextColumn::new(),
            more_keys: vec![Vec::new(); more_keys],
            ..Rows::default()
        }
    }

    /// Makes room for so many more rows, which come of texts of so many bytes.
    pub fn reserve(&mut self, rows: usize, text_len: usize) {
        // TextColumn seldom grow by more than this; where they do, so does the memory.
        self.uri.values.reserve(text_len + text_len / 8);
        self.uri.offsets.reserve(rows);
        self.input.offsets.reserve(rows);
        self.offset.reserve(rows);
        self.flags.reserve(rows);
        self.key.reserve(rows);
        self.more_keys.iter_mut().for_each(|keys| keys.reserve(rows));
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.uri.len()
    }

    /// There is none.
    pub fn is_empty(&self) -> bool {
        self.uri.is_empty()
    }

    /// Drops the rows and keeps the memory.
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
        self.carried.clear();
        self.recipe_texts.iter_mut().for_each(TextColumn::clear);
        self.tally = Tally::default();
    }

    /// Row `i`'s input differs from its URI.
    pub fn differs(&self, i: usize) -> bool {
        self.differs.get(i / 64).is_some_and(|word| word >> (i % 64) & 1 == 1)
    }
}

/// Counts over rows. Addable, so that workers count alone and the run sums up.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Tally {
    /// Rows made.
    pub rows: u64,
    /// Rows whose URI equals the record, byte for byte.
    pub unchanged: u64,
    /// Rows whose URI differs from the record.
    pub changed: u64,
    /// Rows with a fault; `unchanged + changed + faulty == rows`.
    pub faulty: u64,
    /// Rows by fault kind, indexed by the kind's discriminant.
    pub faults: [u64; FaultKind::ALL.len()],
    /// Rows by flag, indexed by bit.
    pub flags: [u64; Flags::ALL.len()],
    /// Rows by what misleads in them, indexed by bit; all 0 unless the policy asks for it.
    pub spoofing_flags: [u64; SpoofingFlags::ALL.len()],
    /// Rows by step that changed them, indexed by bit.
    pub changes: [u64; Changes::ALL.len()],
    /// What recipes did, in the order of the policy; empty until one did something.
    pub recipes: Vec<RecipeTally>,
    /// Rows that are not the representative of their class.
    pub by_class: u64,
    /// Rows that are in no class, and that patterns of their hosts speak of.
    pub by_pattern: u64,
    /// Redirects that records name, here or to here, if the policy wants them carried.
    pub redirects: u64,
    /// Those among them that are no reference, or relative to no URL.
    pub unreadable_redirects: u64,
}

impl Tally {
    /// Adds what another worker counted.
    pub fn add(&mut self, other: &Tally) {
        self.rows += other.rows;
        self.unchanged += other.unchanged;
        self.changed += other.changed;
        self.faulty += other.faulty;
        self.by_class += other.by_class;
        self.by_pattern += other.by_pattern;
        self.redirects += other.redirects;
        self.unreadable_redirects += other.unreadable_redirects;
        let sums = [
            (&mut self.faults[..], &other.faults[..]),
            (&mut self.flags[..], &other.flags[..]),
            (&mut self.spoofing_flags[..], &other.spoofing_flags[..]),
            (&mut self.changes[..], &other.changes[..]),
        ];
        for (mine, theirs) in sums {
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine += theirs);
        }
        self.recipes.resize(self.recipes.len().max(other.recipes.len()), RecipeTally::default());
        self.recipes.iter_mut().zip(&other.recipes).for_each(|(mine, theirs)| mine.add(theirs));
    }

    /// The sums agree with each other: nothing was lost or counted twice.
    pub fn is_balanced(&self) -> bool {
        self.unchanged + self.changed + self.faulty == self.rows && self.faults.iter().sum::<u64>() == self.faulty
    }
}
