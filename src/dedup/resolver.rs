//! Entries in, one verdict for each row out: [`Resolver`] settles a partition, in memory or by parting it again.

use super::candidates::{Candidates, INDEX_LEN};
use super::entry::{Entry, Texts};
use super::keep::Keep;
use super::partition::PARTITIONS;
use super::spill::Spill;
use super::verdict::{Collisions, Verdict, Verdicts};
use crate::iri::Rung;
use crate::spill::SpillError;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// How verdicts are found.
pub struct Resolver<'a, Settled> {
    keep: Keep,
    limit: usize,
    verdicts: &'a Verdicts,
    settled: Settled,
    /// Counts the rows of keys that `settled` said no to.
    pub refused: u64,
    /// Texts that have one key, where entries have canonical texts: each text has a representative of its own then.
    pub collisions: Collisions,
}

impl<'a, Settled: FnMut(u128, u64) -> bool> Resolver<'a, Settled> {
    /// Takes about `limit` bytes of memory. `settled` is told of each key and its representative's ordinal, keys
    /// ascending; if it says no, none of its rows is kept.
    pub fn new(keep: Keep, limit: usize, verdicts: &'a Verdicts, settled: Settled) -> Resolver<'a, Settled> {
        Resolver { keep, limit, verdicts, settled, refused: 0, collisions: Collisions::default() }
    }

    /// Settles the rows of a partition. One that would take too much memory is parted again.
    ///
    /// # Errors
    /// A temporary file could not be read or written.
    pub fn resolve(&mut self, spill: &Spill, place: usize) -> Result<(), SpillError> {
        let number = |count| usize::try_from(count).unwrap_or(usize::MAX);
        let (count, texts_len) = (number(spill.count(place)), number(spill.texts_len(place)));
        let len = count.saturating_mul(spill.layout().entry_len()).saturating_add(texts_len);
        if count.saturating_mul(INDEX_LEN).saturating_add(len) > self.limit {
            return match spill.part(place, self.limit / 2)? {
                Some(parts) => (0..PARTITIONS).try_for_each(|place| self.resolve(&parts, place)),
                None => self.fold(spill, place),
            };
        }
        let mut candidates = Candidates::new(spill.layout(), count, len);
        spill.visit_blocks(place, |block| {
            candidates.extend(block);
            Ok(())
        })?;
        spill.forget(place);
        candidates.sort();
        self.settle(&candidates);
        Ok(())
    }

    fn settle(&mut self, candidates: &Candidates) {
        let mut last: Option<(u128, bool, Texts<'_>, u64)> = None;
        for group in candidates.groups() {
            let Some((best, texts)) = candidates.of(group.clone()).reduce(|a, b| self.better(a, b)) else { continue };
            let is_kept = match last.filter(|(key, ..)| *key == best.key) {
                Some((key, is_kept, other, ordinal)) => {
                    self.collisions.add(key, [other.canonical, texts.canonical], [ordinal, best.ordinal]);
                    is_kept
                }
                None => (self.settled)(best.key, best.ordinal),
            };
            last = Some((best.key, is_kept, texts, best.ordinal));
            let count = group.len() as u64;
            self.refused += if is_kept { 0 } else { count };
            candidates.of(group).for_each(|(entry, _)| self.tell(&entry, &best, count, is_kept));
        }
    }

    /// Settles the rows of few keys, however many they are, reading them twice.
    fn fold(&mut self, spill: &Spill, place: usize) -> Result<(), SpillError> {
        let mut groups: BTreeMap<(u128, Vec<u8>), Best> = BTreeMap::new();
        let group = |entry: &Entry, texts: &Texts<'_>| (entry.key, texts.canonical.to_vec());
        spill.visit(place, |entry, texts| {
            let new = || Best { entry, uri: texts.uri.to_vec(), count: 0, is_kept: false };
            let best = groups.entry(group(&entry, &texts)).or_insert_with(new);
            best.count += 1;
            let (better, uri) = self.better((best.entry, Texts { uri: &best.uri, ..texts }), (entry, texts));
            if better.ordinal != best.entry.ordinal {
                (best.entry, best.uri) = (better, uri.uri.to_vec());
            }
            Ok(())
        })?;
        let mut last: Option<(u128, bool, &[u8], u64)> = None;
        for ((key, text), best) in &mut groups {
            best.is_kept = match last.filter(|(other, ..)| other == key) {
                Some((_, is_kept, other, ordinal)) => {
                    self.collisions.add(*key, [other, text], [ordinal, best.entry.ordinal]);
                    is_kept
                }
                None => (self.settled)(*key, best.entry.ordinal),
            };
            last = Some((*key, best.is_kept, text, best.entry.ordinal));
            self.refused += if best.is_kept { 0 } else { best.count };
        }
        spill.visit(place, |entry, texts| {
            if let Some(best) = groups.get(&group(&entry, &texts)) {
                self.tell(&entry, &best.entry, best.count, best.is_kept);
            }
            Ok(())
        })?;
        spill.forget(place);
        Ok(())
    }

    /// The order of [`Keep::compare`].
    fn better<'t>(&self, a: (Entry, Texts<'t>), b: (Entry, Texts<'t>)) -> (Entry, Texts<'t>) {
        let by_place = match self.keep {
            Keep::Last => b.0.ordinal.cmp(&a.0.ordinal),
            _ => a.0.ordinal.cmp(&b.0.ordinal),
        };
        let by_bytes = || if a.1.uri.is_empty() { Ordering::Equal } else { a.1.uri.cmp(b.1.uri) };
        let order = b.0.rank.cmp(&a.0.rank).then_with(by_bytes).then(by_place);
        if order.is_gt() { b } else { a }
    }

    fn tell(&self, entry: &Entry, best: &Entry, count: u64, is_kept: bool) {
        let verdict = match (is_kept, entry.ordinal == best.ordinal) {
            (false, _) => Verdict::Seen,
            (true, true) => Verdict::Kept(count),
            (true, false) => Verdict::Duplicate { of: best.ordinal, rung: lowest_rung(entry, best) },
        };
        self.verdicts.set(entry.ordinal, verdict);
    }
}

/// The representative of a key, and of how many rows.
struct Best {
    entry: Entry,
    uri: Vec<u8>,
    count: u64,
    is_kept: bool,
}

/// `None` if they have nothing in common but the key that they compete for.
fn lowest_rung(a: &Entry, b: &Entry) -> Option<Rung> {
    match (a.simple == b.simple, a.syntax == b.syntax, a.rung == b.rung) {
        (true, ..) => Some(Rung::Simple),
        (_, true, _) => Some(Rung::Syntax),
        (.., true) => Some(Rung::Scheme),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Candidate, Collision, Layout, Scattered};
    use super::*;

    fn hash(i: u64) -> u128 {
        crate::dedup::number(&crate::key::KeyAlgorithm::Xxh3.key(&i.to_le_bytes()))
    }

    /// Some keys are hashes, one is very frequent, and some lie close together.
    fn key(i: u64) -> u128 {
        match i % 5 {
            0 => 1 << 90,
            1 => u128::from(i % 40),
            _ => hash(i * i % 1013),
        }
    }

    fn scattered(count: u64) -> Scattered {
        let mut scattered = Scattered::default();
        scattered.scatter((0..count).map(|i| (key(i), i as u32)), 0);
        scattered
    }

    /// Verdicts on keys, by parting or without, from memory or from a file, and by a sort.
    #[test]
    fn verdicts_agree_with_a_sort() {
        let directory = tempfile::tempdir().unwrap();
        let scattered = scattered(5_000);
        let uris: Vec<String> = (0..5_000).map(|i| format!("http{}://{}", ["", "s"][i % 2], i * i % 11)).collect();
        let row = |ordinal: u64| {
            let i = ordinal - 100;
            let (time, status) = ((!i.is_multiple_of(7)).then_some((i * i % 9) as i64), Some((i * i % 6 * 100) as i32));
            Candidate { time, status, uri: uris[i as usize].as_bytes(), ordinal }
        };
        let ways = [(usize::MAX, false), (10_000, true), (0, true), (200_000, false)];
        for (keep, (limit, is_detailed)) in Keep::ALL.into_iter().flat_map(|keep| ways.map(|way| (keep, way))) {
            let layout = Layout { has_rank: keep.wants_time(), has_uri: keep == Keep::Best, ..Layout::default() };
            let spill = Spill::new(layout, limit, directory.path());
            let entry = |key, i| {
                let row = row(100 + u64::from(i));
                let entry = Entry { key, ordinal: row.ordinal, rank: keep.rank(&row), ..Entry::default() };
                (entry, Texts { uri: row.uri, ..Texts::default() })
            };
            spill.extend(&scattered, |_| true, entry).unwrap();
            assert_eq!(spill.written() > 0, limit < usize::MAX);
            let verdicts = Verdicts::new(100, 5_000, is_detailed);
            let mut settled = Vec::new();
            let tell = |key, ordinal| {
                settled.push((key, ordinal));
                key != 6
            };
            let mut resolver = Resolver::new(keep, limit, &verdicts, tell);
            (0..PARTITIONS).for_each(|place| resolver.resolve(&spill, place).unwrap());
            let mut groups: BTreeMap<u128, Vec<u64>> = BTreeMap::new();
            (0..5_000).for_each(|i| groups.entry(key(i)).or_default().push(100 + i));
            for group in groups.values_mut() {
                group.sort_by(|a, b| keep.compare(&row(*a), &row(*b)));
            }
            let refused = resolver.refused;
            assert_eq!(refused, (0..5_000).filter(|i| key(*i) == 6).count() as u64);
            assert_eq!(resolver.collisions, Collisions::default());
            assert!(settled.into_iter().eq(groups.iter().map(|(key, group)| (*key, group[0]))));
            for (&key, group) in &groups {
                for &ordinal in group {
                    assert_eq!(verdicts.is_kept(ordinal), key != 6 && ordinal == group[0]);
                    let want = match ordinal == group[0] {
                        _ if key == 6 => Verdict::Seen,
                        true => Verdict::Kept(group.len() as u64),
                        false => Verdict::Duplicate { of: group[0], rung: Some(Rung::Simple) },
                    };
                    assert_eq!(verdicts.get(ordinal), is_detailed.then_some(want));
                }
            }
        }
    }

    /// Texts that differ though their keys do not are found, and each keeps a row; whatever the memory.
    #[test]
    fn collisions_are_found_and_cost_no_row() {
        let directory = tempfile::tempdir().unwrap();
        let scattered = scattered(3_000);
        // Of the keys that are hashes, some are those of three texts.
        let text = |i: u64| format!("{}{}", key(i), if i % 5 == 2 { i % 3 } else { 0 });
        let texts: Vec<String> = (0..3_000).map(text).collect();
        let mut found = Vec::new();
        for limit in [usize::MAX, 20_000, 0] {
            let layout = Layout { has_canonical: true, ..Layout::default() };
            let spill = Spill::new(layout, limit, directory.path());
            let entry = |key, i| {
                let canonical = texts[i as usize].as_bytes();
                (Entry { key, ordinal: u64::from(i), ..Entry::default() }, Texts { canonical, uri: b"" })
            };
            spill.extend(&scattered, |_| true, entry).unwrap();
            let verdicts = Verdicts::new(0, 3_000, true);
            let mut keys = Vec::new();
            let settled = |key, _| {
                keys.push(key);
                true
            };
            let mut resolver = Resolver::new(Keep::First, limit, &verdicts, settled);
            (0..PARTITIONS).for_each(|place| resolver.resolve(&spill, place).unwrap());
            let collisions = std::mem::take(&mut resolver.collisions);
            assert!(keys.is_sorted_by(|a, b| a < b), "each key is told once");
            let mut first: BTreeMap<&str, u64> = BTreeMap::new();
            for (i, text) in texts.iter().enumerate() {
                let kept = *first.entry(text).or_insert(i as u64);
                assert_eq!(verdicts.is_kept(i as u64), kept == i as u64, "{text}");
            }
            assert_eq!(collisions.count, (first.len() - keys.len()) as u64);
            assert!(collisions.count > 100 && collisions.examples.len() == Collisions::EXAMPLES);
            for Collision { key, texts: both, ordinals } in &collisions.examples {
                assert!(both[0] < both[1] && both.iter().all(|text| text.starts_with(key.to_string().as_bytes())));
                assert!(ordinals.iter().zip(both).all(|(i, text)| texts[*i as usize].as_bytes() == text));
            }
            found.push(collisions);
        }
        assert!(found.iter().all(|other| *other == found[0]));
    }
}
