//! Decisions on rows that share a key: [`PartitionResolver`] turns the entries of a partition into [`Decisions`].
//!
//! A partition is resolved in memory if its entries fit; otherwise it is split by further bits of its keys. Entries that
//! cannot be split, because they have very few different keys, are read twice. If entries have canonical texts, texts
//! that differ although their keys are equal are reported as [`Collisions`], and each text keeps a row of its own.

use super::decisions::{Decision, Decisions};
use super::entries::{EntrySpill, EntryTexts, PendingEntry, SortedEntries};
use super::keep::{KeepPolicy, RankedRow};
use super::key_set::PARTITIONS;
use super::spilled_table::{EntryValue, SpilledTable, for_each_table};
use crate::iri::Rung;
use crate::spill::SpillError;
use std::collections::BTreeMap;

/// Two different texts with the same key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Collision {
    /// The key.
    pub(crate) key: u128,
    /// The texts, or their first bytes.
    pub(crate) texts: [Vec<u8>; 2],
    /// Ordinals of rows with these texts.
    pub(crate) ordinals: [u64; 2],
}

/// The collisions of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collisions {
    /// Number of texts that have the key of a smaller text.
    pub count: u64,
    /// The first collisions, in the order of their keys.
    pub(crate) examples: Vec<Collision>,
}

impl Collisions {
    /// Maximum number of examples.
    pub(crate) const MAX_EXAMPLES: usize = 8;
    /// Maximum length of a text of an example, in bytes.
    const MAX_TEXT_LEN: usize = 2 << 10;

    /// Adds the collisions of another partition.
    pub(crate) fn merge(&mut self, other: Collisions) {
        self.count += other.count;
        self.examples.extend(other.examples);
        self.examples.sort_unstable();
        self.examples.truncate(Collisions::MAX_EXAMPLES);
    }

    fn add(&mut self, key: u128, texts: [&[u8]; 2], ordinals: [u64; 2]) {
        self.count += 1;
        if self.examples.len() < Collisions::MAX_EXAMPLES {
            let texts = texts.map(|text| text[..text.len().min(Collisions::MAX_TEXT_LEN)].to_vec());
            self.examples.push(Collision { key, texts, ordinals });
        }
    }
}

/// The row of a key that is kept if only the order of the input counts: the last one, or the first.
#[derive(Clone, Copy, Default)]
struct KeptOrdinal<const IS_LAST: bool>(u64);

impl<const IS_LAST: bool> EntryValue for KeptOrdinal<IS_LAST> {
    fn of(entry: &PendingEntry) -> Self {
        KeptOrdinal(entry.ordinal)
    }

    fn merge(self, other: Self) -> Self {
        KeptOrdinal(if IS_LAST { self.0.max(other.0) } else { self.0.min(other.0) })
    }
}

/// Resolves the rows of a partition as [`PartitionResolver`] does, with about `limit` bytes of memory, but without sorting
/// them. Returns their number.
///
/// Returns `None` and does nothing if the decision needs more than key and ordinal: `--keep` other than first or last, reasons,
/// or stored texts.
pub(crate) fn resolve_by_order(
    spill: &EntrySpill,
    partition: usize,
    (keep, limit): (KeepPolicy, usize),
    decisions: &Decisions,
) -> Result<Option<u64>, SpillError> {
    if decisions.has_reasons() || !spill.has_ordinals_only() {
        return Ok(None);
    }
    match keep {
        KeepPolicy::First => keep_one::<false>(spill, partition, limit, decisions).map(Some),
        KeepPolicy::Last => keep_one::<true>(spill, partition, limit, decisions).map(Some),
        KeepPolicy::Newest | KeepPolicy::Oldest | KeepPolicy::Best => Ok(None),
    }
}

fn keep_one<const IS_LAST: bool>(
    spill: &EntrySpill,
    partition: usize,
    limit: usize,
    decisions: &Decisions,
) -> Result<u64, SpillError> {
    let mut row_count = 0;
    for_each_table(spill, partition, limit, &mut |spilled: SpilledTable<'_, KeptOrdinal<IS_LAST>>| {
        row_count += spilled.entry_count;
        let mut kept = spilled.table.iter().map(|(_, KeptOrdinal(ordinal))| ordinal);
        kept.try_for_each(|ordinal| decisions.set(ordinal, Decision::Kept(1)))
    })?;
    Ok(row_count)
}

/// Resolves the rows of partitions.
pub(crate) struct PartitionResolver<'a, Accept> {
    keep: KeepPolicy,
    limit: usize,
    decisions: &'a Decisions,
    accept: Accept,
    /// Number of rows that were resolved.
    pub(crate) resolved: u64,
    /// Number of rows of keys that `accept` refused.
    pub(crate) refused: u64,
    pub(crate) collisions: Collisions,
}

/// Rows with the same key and canonical text.
#[derive(Clone, Copy)]
struct EntryGroup<'t> {
    key: u128,
    canonical: &'t [u8],
    /// Ordinal of the row to keep.
    best: u64,
    count: u64,
    is_kept: bool,
}

/// The key and the canonical text that the rows of a group have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct EntryGroupKey(u128, Vec<u8>);

impl EntryGroupKey {
    /// Replaces the key and the text by those of an entry, in the same memory.
    fn set(&mut self, entry: &PendingEntry, texts: &EntryTexts<'_>) {
        self.0 = entry.key;
        self.1.clear();
        self.1.extend_from_slice(texts.canonical);
    }
}

/// The best entry of a group that is found while entries are read.
struct BestEntry {
    entry: PendingEntry,
    uri: Vec<u8>,
    count: u64,
    is_kept: bool,
}

impl<'a, E: From<SpillError>, Accept: FnMut(u128) -> Result<bool, E>> PartitionResolver<'a, Accept> {
    /// A resolver with about `limit` bytes of memory. It calls `accept` with each key, in ascending order; if that returns
    /// false, no row of the key is kept. The first error of `accept` ends the resolution.
    pub(crate) fn new(keep: KeepPolicy, limit: usize, decisions: &'a Decisions, accept: Accept) -> Self {
        PartitionResolver { keep, limit, decisions, accept, resolved: 0, refused: 0, collisions: Collisions::default() }
    }

    /// Resolves the rows of a partition, and removes its entries.
    pub(crate) fn resolve(&mut self, spill: &EntrySpill, partition: usize) -> Result<(), E> {
        if spill.sorted_len(partition) <= self.limit {
            return self.resolve_sorted(&spill.sorted(partition)?);
        }
        match spill.split(partition, self.limit / 2)? {
            Some(parts) => (0..PARTITIONS).try_for_each(|partition| self.resolve(&parts, partition)),
            None => self.resolve_in_two_passes(spill, partition),
        }
    }

    fn resolve_sorted(&mut self, entries: &SortedEntries) -> Result<(), E> {
        let mut previous = None;
        for range in entries.groups() {
            let Some((best, texts)) = entries.range(range.clone()).reduce(|a, b| self.better(a, b)) else { continue };
            let count = range.len() as u64;
            let group =
                EntryGroup { key: best.key, canonical: texts.canonical, best: best.ordinal, count, is_kept: false };
            let is_kept = self.decide_group(group, &mut previous)?;
            entries.range(range).try_for_each(|(entry, _)| self.set(&entry, &best, count, is_kept))?;
        }
        Ok(())
    }

    /// Resolves the rows of few keys, however many rows there are, and reads them twice.
    fn resolve_in_two_passes(&mut self, spill: &EntrySpill, partition: usize) -> Result<(), E> {
        let mut groups = self.find_best(spill, partition)?;
        let mut previous = None;
        for (EntryGroupKey(key, canonical), BestEntry { entry, count, is_kept, .. }) in &mut groups {
            let group = EntryGroup { key: *key, canonical, best: entry.ordinal, count: *count, is_kept: false };
            *is_kept = self.decide_group(group, &mut previous)?;
        }
        let mut wanted = EntryGroupKey::default();
        spill.visit(partition, |entry, texts| {
            wanted.set(&entry, &texts);
            let best = groups.get(&wanted);
            best.map_or(Ok(()), |best| self.set(&entry, &best.entry, best.count, best.is_kept))
        })?;
        spill.clear(partition);
        Ok(())
    }

    /// Finds the best entry of each group of a partition.
    fn find_best(
        &self,
        spill: &EntrySpill,
        partition: usize,
    ) -> Result<BTreeMap<EntryGroupKey, BestEntry>, SpillError> {
        let (mut groups, mut wanted) = (BTreeMap::<EntryGroupKey, BestEntry>::new(), EntryGroupKey::default());
        spill.visit(partition, |entry, texts| {
            wanted.set(&entry, &texts);
            let Some(best) = groups.get_mut(&wanted) else {
                let best = BestEntry { entry, uri: texts.uri.to_vec(), count: 1, is_kept: false };
                groups.insert(wanted.clone(), best);
                return Ok(());
            };
            best.count += 1;
            let (better, better_texts) =
                self.better((best.entry, EntryTexts { uri: &best.uri, ..texts }), (entry, texts));
            if better.ordinal != best.entry.ordinal {
                (best.entry, best.uri) = (better, better_texts.uri.to_vec());
            }
            Ok(())
        })?;
        Ok(groups)
    }

    /// Decides whether a row of a group is kept. A group with the key of the `previous` one has another text: a collision.
    fn decide_group<'t>(&mut self, group: EntryGroup<'t>, previous: &mut Option<EntryGroup<'t>>) -> Result<bool, E> {
        let is_kept = match previous.filter(|previous| previous.key == group.key) {
            Some(previous) => {
                let (texts, ordinals) = ([previous.canonical, group.canonical], [previous.best, group.best]);
                self.collisions.add(group.key, texts, ordinals);
                previous.is_kept
            }
            None => (self.accept)(group.key)?,
        };
        self.resolved += group.count;
        self.refused += if is_kept { 0 } else { group.count };
        *previous = Some(EntryGroup { is_kept, ..group });
        Ok(is_kept)
    }

    /// The entry that [`KeepPolicy::compare`] puts first.
    fn better<'t>(
        &self,
        a: (PendingEntry, EntryTexts<'t>),
        b: (PendingEntry, EntryTexts<'t>),
    ) -> (PendingEntry, EntryTexts<'t>) {
        let ranked = |(entry, texts): &(PendingEntry, EntryTexts<'t>)| RankedRow {
            rank: entry.rank,
            uri: texts.uri,
            ordinal: entry.ordinal,
        };
        if self.keep.compare_ranked(&ranked(&a), &ranked(&b)).is_gt() { b } else { a }
    }

    fn set(&self, entry: &PendingEntry, best: &PendingEntry, count: u64, is_kept: bool) -> Result<(), SpillError> {
        let decision = match (is_kept, entry.ordinal == best.ordinal) {
            (false, _) => Decision::Seen,
            (true, true) => Decision::Kept(count),
            (true, false) => Decision::Duplicate { of: best.ordinal, rung: lowest_equal_rung(entry, best) },
        };
        self.decisions.set(entry.ordinal, decision)
    }
}

/// Returns the lowest rung on which both rows are equal; `None` if only their recipe or protocol keys are.
fn lowest_equal_rung(a: &PendingEntry, b: &PendingEntry) -> Option<Rung> {
    match (a.simple == b.simple, a.syntax == b.syntax, a.rung == b.rung) {
        (true, ..) => Some(Rung::Simple),
        (_, true, _) => Some(Rung::Syntax),
        (.., true) => Some(Rung::Scheme),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::entries::EntryLayout;
    use super::super::keep::Candidate;
    use super::super::key_set::{PartitionedKeys, key_number};
    use super::*;
    use std::path::Path;

    fn hash(i: u64) -> u128 {
        key_number(&crate::key::KeyAlgorithm::Xxh3.key(&i.to_le_bytes()))
    }

    /// Some keys are hashes, one is very frequent, and some are close together.
    fn key(i: u64) -> u128 {
        match i % 5 {
            0 => 1 << 90,
            1 => u128::from(i % 40),
            _ => hash(i * i % 1013),
        }
    }

    fn partitioned(count: u64) -> PartitionedKeys {
        let mut keys = PartitionedKeys::default();
        keys.fill((0..count).map(|i| (key(i), i as u32)));
        keys
    }

    fn decisions(count: u64, reasons_in: Option<&Path>) -> Decisions {
        let decisions = Decisions::new(count);
        match reasons_in {
            Some(directory) => decisions.with_reasons(10_000, directory),
            None => decisions,
        }
    }

    /// Decisions equal those of a sort, in memory, from a file, and with partitions that are split.
    #[test]
    fn decisions_agree_with_a_sort() {
        let directory = tempfile::tempdir().unwrap();
        let keys = partitioned(5_000);
        let uris: Vec<String> = (0..5_000).map(|i| format!("http{}://{}", ["", "s"][i % 2], i * i % 11)).collect();
        let row = |i: u64| {
            let (time, status) = ((!i.is_multiple_of(7)).then_some((i * i % 9) as i64), Some((i * i % 6 * 100) as i32));
            Candidate { time, status, uri: uris[i as usize].as_bytes(), ordinal: i }
        };
        let ways = [(usize::MAX, false), (10_000, true), (0, true), (200_000, false)];
        for (keep, (limit, has_reasons)) in KeepPolicy::ALL.into_iter().flat_map(|keep| ways.map(|way| (keep, way))) {
            let has_uri = keep == KeepPolicy::Best;
            let layout =
                EntryLayout { has_ordinal: true, has_rank: keep.compares_time(), has_uri, ..EntryLayout::default() };
            let spill = EntrySpill::new(layout, limit, directory.path());
            let entry = |key, i| {
                let row = row(u64::from(i));
                let rank = keep.rank(&row);
                let entry = PendingEntry { key, ordinal: row.ordinal, rank, ..PendingEntry::default() };
                (entry, EntryTexts { uri: row.uri, ..EntryTexts::default() })
            };
            spill.extend(&keys, |_| true, entry).unwrap();
            assert_eq!(spill.written_len() > 0, limit < usize::MAX);
            let decisions = decisions(5_000, has_reasons.then_some(directory.path()));
            let mut accepted = Vec::new();
            let accept = |key| {
                accepted.push(key);
                Ok::<_, SpillError>(key != 6)
            };
            let mut resolver = PartitionResolver::new(keep, limit, &decisions, accept);
            (0..PARTITIONS).for_each(|partition| resolver.resolve(&spill, partition).unwrap());
            let mut groups: BTreeMap<u128, Vec<u64>> = BTreeMap::new();
            (0..5_000).for_each(|i| groups.entry(key(i)).or_default().push(i));
            for group in groups.values_mut() {
                group.sort_by(|a, b| keep.compare(&row(*a), &row(*b)));
            }
            let refused = (0..5_000).filter(|i| key(*i) == 6).count() as u64;
            assert_eq!((resolver.resolved, resolver.refused), (5_000, refused));
            assert_eq!(resolver.collisions, Collisions::default());
            assert!(accepted.iter().eq(groups.keys()));
            decisions.sort_reasons().unwrap();
            let reasons = decisions.reasons(0..5_000).unwrap();
            for (&key, group) in &groups {
                for &ordinal in group {
                    assert_eq!(decisions.is_kept(ordinal), key != 6 && ordinal == group[0]);
                    let expected = match ordinal == group[0] {
                        _ if key == 6 => Decision::Seen,
                        true => Decision::Kept(group.len() as u64),
                        false => Decision::Duplicate { of: group[0], rung: Some(Rung::Simple) },
                    };
                    assert!(!has_reasons || reasons.get(ordinal) == expected, "{ordinal}");
                }
            }
        }
    }

    /// Without ranks and texts, the first or last row of each key is kept, in memory, from a file, and with partitions that are
    /// split.
    #[test]
    fn order_alone_decides_without_sorting() {
        let directory = tempfile::tempdir().unwrap();
        let keys = partitioned(5_000);
        let layout = EntryLayout { has_ordinal: true, ..EntryLayout::default() };
        let entry = |key, i| {
            let entry = PendingEntry { key, ordinal: u64::from(i), ..PendingEntry::default() };
            (entry, EntryTexts::default())
        };
        let ways = [usize::MAX, 200_000, 10_000, 0];
        for (keep, limit) in KeepPolicy::ALL.into_iter().flat_map(|keep| ways.map(|way| (keep, way))) {
            let spill = EntrySpill::new(layout, limit, directory.path());
            spill.extend(&keys, |_| true, entry).unwrap();
            let decisions = decisions(5_000, None);
            let resolve = |partition| resolve_by_order(&spill, partition, (keep, limit), &decisions).unwrap();
            let resolved: Option<u64> = (0..PARTITIONS).map(resolve).sum();
            let are_resolved = matches!(keep, KeepPolicy::First | KeepPolicy::Last);
            assert_eq!(resolved, are_resolved.then_some(5_000));
            let mut kept: BTreeMap<u128, u64> = BTreeMap::new();
            for i in 0..5_000 {
                let first = *kept.entry(key(i)).or_insert(i);
                kept.insert(key(i), if keep == KeepPolicy::Last { i } else { first });
            }
            let is_kept = |i| are_resolved && kept[&key(i)] == i;
            assert!((0..5_000).all(|i| decisions.is_kept(i) == is_kept(i)), "{keep:?} {limit}");
            assert_eq!(decisions.all_kept_count(), if are_resolved { kept.len() as u64 } else { 0 });
        }
        let with_rank = EntrySpill::new(EntryLayout { has_rank: true, ..layout }, 0, directory.path());
        let plain = EntrySpill::new(layout, 0, directory.path());
        let (with_reasons, without) = (decisions(1, Some(directory.path())), decisions(1, None));
        for (spill, decisions) in [(&with_rank, &without), (&plain, &with_reasons)] {
            assert_eq!(resolve_by_order(spill, 0, (KeepPolicy::First, 0), decisions).unwrap(), None);
        }
    }

    /// No further key is looked up after an error, with any memory limit.
    #[test]
    fn the_first_error_ends_the_resolution() {
        let directory = tempfile::tempdir().unwrap();
        let keys = partitioned(5_000);
        for limit in [usize::MAX, 10_000, 0] {
            let layout = EntryLayout { has_ordinal: true, ..EntryLayout::default() };
            let spill = EntrySpill::new(layout, limit, directory.path());
            let entry = |key, i| {
                let entry = PendingEntry { key, ordinal: u64::from(i), ..PendingEntry::default() };
                (entry, EntryTexts::default())
            };
            spill.extend(&keys, |_| true, entry).unwrap();
            let (decisions, mut calls) = (decisions(5_000, None), 0);
            let accept = |_| {
                calls += 1;
                if calls < 3 { Ok(true) } else { Err(spill_error()) }
            };
            let mut resolver = PartitionResolver::new(KeepPolicy::First, limit, &decisions, accept);
            let resolved = (0..PARTITIONS).try_for_each(|partition| resolver.resolve(&spill, partition));
            assert_eq!((resolved.is_err(), calls), (true, 3), "{limit}");
        }
    }

    fn spill_error() -> SpillError {
        SpillError::Read(std::path::PathBuf::new(), std::io::ErrorKind::Other.into())
    }

    /// The examples are those with the lowest keys.
    #[test]
    fn examples_of_collisions_do_not_depend_on_the_order_of_partitions() {
        let of = |keys: std::ops::Range<u128>| {
            let mut collisions = Collisions::default();
            keys.for_each(|key| collisions.add(key, [b"a", b"b"], [0, 1]));
            collisions
        };
        let partitions = [of(7..16), of(1..3), of(3..4)];
        for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
            let mut all = Collisions::default();
            order.into_iter().for_each(|partition: usize| all.merge(partitions[partition].clone()));
            assert_eq!(all.count, 12);
            assert!(all.examples.iter().map(|example| example.key).eq([1, 2, 3, 7, 8, 9, 10, 11]), "{order:?}");
        }
    }

    /// Different texts with one key are found and each keeps a row, with any memory limit.
    #[test]
    fn collisions_are_found_and_lose_no_row() {
        let directory = tempfile::tempdir().unwrap();
        let keys = partitioned(3_000);
        // Some of the keys that are hashes have three texts.
        let text = |i: u64| format!("{}{}", key(i), if i % 5 == 2 { i % 3 } else { 0 });
        let texts: Vec<String> = (0..3_000).map(text).collect();
        let mut results = Vec::new();
        for limit in [usize::MAX, 20_000, 0] {
            let layout = EntryLayout { has_ordinal: true, has_canonical: true, ..EntryLayout::default() };
            let spill = EntrySpill::new(layout, limit, directory.path());
            let entry = |key, i| {
                let canonical = texts[i as usize].as_bytes();
                let entry = PendingEntry { key, ordinal: u64::from(i), ..PendingEntry::default() };
                (entry, EntryTexts { canonical, uri: b"" })
            };
            spill.extend(&keys, |_| true, entry).unwrap();
            let decisions = decisions(3_000, Some(directory.path()));
            let mut accepted = Vec::new();
            let accept = |key| {
                accepted.push(key);
                Ok::<_, SpillError>(true)
            };
            let mut resolver = PartitionResolver::new(KeepPolicy::First, limit, &decisions, accept);
            (0..PARTITIONS).for_each(|partition| resolver.resolve(&spill, partition).unwrap());
            let collisions = std::mem::take(&mut resolver.collisions);
            assert!(accepted.is_sorted_by(|a, b| a < b), "each key is accepted once");
            let mut first: BTreeMap<&str, u64> = BTreeMap::new();
            for (i, text) in texts.iter().enumerate() {
                let kept = *first.entry(text).or_insert(i as u64);
                assert_eq!(decisions.is_kept(i as u64), kept == i as u64, "{text}");
            }
            assert_eq!(collisions.count, (first.len() - accepted.len()) as u64);
            assert!(collisions.count > 100 && collisions.examples.len() == Collisions::MAX_EXAMPLES);
            for Collision { key, texts: both, ordinals } in &collisions.examples {
                assert!(both[0] < both[1] && both.iter().all(|text| text.starts_with(key.to_string().as_bytes())));
                assert!(ordinals.iter().zip(both).all(|(i, text)| texts[*i as usize].as_bytes() == text));
            }
            results.push(collisions);
        }
        assert!(results.iter().all(|other| *other == results[0]));
    }
}
