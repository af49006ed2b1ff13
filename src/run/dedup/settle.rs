//! The end of a dedup: [`Job::settle`]. In: rows that wait, with their entries, partition by partition. Out: verdicts; by
//! them rows to be written, evidence and new keys, in order.

use super::super::{RunError, in_order::in_order, memory};
use super::counts::Counts;
use super::job::Job;
use super::upkeep::Upkeep;
use super::writing::Writing;
use super::{DedupError, DedupOptions, Given};
use crate::dedup::evidence::Places;
use crate::dedup::seen::{RunWriter, SeenError, Store};
use crate::dedup::{Collisions, Known, PARTITION_BITS, PARTITIONS, Resolver, Spill, Table, Verdicts};
use crate::output::OutputError;
use crate::spill::RowSpool;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

impl Job<'_> {
    /// Settles the rows that wait, gathers new keys, and appends the rows to be kept.
    pub fn settle(
        self,
        spool: &RowSpool,
        places: &Places,
        rows: u64,
        threads: usize,
        append: impl FnMut(Given) -> Result<(), OutputError> + Send,
    ) -> Result<Settled, RunError<DedupError>> {
        let Job { wanted, encoder, evidence, seen, known, spill, counts, joining, upkeep, .. } = self;
        let verdicts = Verdicts::new(0, if spool.is_empty() { 0 } else { rows }, wanted.has_evidence);
        // Their memory is for what follows, unless their keys are to be gathered.
        let tables: Vec<_> = known.filter(|_| wanted.gather_new).into_iter().flat_map(Known::into_tables).collect();
        let share = if tables.is_empty() { 2 } else { 16 };
        let settling = Settling {
            wanted,
            store: wanted.seen.as_deref().filter(|_| seen.is_none()),
            verdicts: &verdicts,
            limit: wanted.memory / threads / share,
            tables,
            collisions: Mutex::default(),
        };
        let new_keys = settling.partitions(&spill, &counts, threads, !spool.is_empty())?;
        let collisions = settling.collisions.into_inner().unwrap_or_else(PoisonError::into_inner);
        drop((spill, seen, settling.tables));
        let before = joining.into_inner().unwrap_or_else(PoisonError::into_inner);
        let evidence = evidence.as_ref();
        let writing = Writing { encoder, evidence, spool, places, verdicts: &verdicts, counts: &counts };
        writing.write(before, threads, append)?;
        Ok(Settled { counts, new_keys, collisions, upkeep })
    }
}

/// What settling came to.
pub struct Settled {
    pub counts: Counts,
    pub new_keys: Option<RunWriter>,
    pub collisions: Collisions,
    pub upkeep: Upkeep,
}

/// What partitions are settled with.
struct Settling<'a> {
    wanted: &'a DedupOptions,
    /// Keys of earlier runs, if rows have not met them yet.
    store: Option<&'a Store>,
    verdicts: &'a Verdicts,
    limit: usize,
    /// Keys of rows that did not have to wait, by partition, if they are to be gathered.
    tables: Vec<Table<()>>,
    collisions: Mutex<Collisions>,
}

impl Settling<'_> {
    /// Settles the waiting rows of all partitions, if there are any; gives the new keys, if they are to be gathered.
    fn partitions(
        &self,
        spill: &Spill,
        counts: &Counts,
        threads: usize,
        has_waiting: bool,
    ) -> Result<Option<RunWriter>, RunError<DedupError>> {
        let failed = |error: SeenError| RunError::Output(error.into());
        let gathers = self.wanted.seen.as_ref().filter(|_| self.wanted.gather_new);
        let mut writer = gathers.map(|store| store.writer()).transpose().map_err(failed)?;
        if has_waiting || writer.is_some() {
            let take = |keys: Vec<u128>| Ok(writer.as_mut().map_or(Ok(()), |writer| writer.extend(keys))?);
            in_order(threads, PARTITIONS, |place| self.partition(spill, place, counts), take)?;
        }
        Ok(writer)
    }

    /// Settles the waiting rows of a partition; gives the new keys, in order, if they are to be gathered.
    fn partition(&self, spill: &Spill, place: usize, counts: &Counts) -> Result<Vec<u128>, DedupError> {
        let from = (place as u128) << (u128::BITS - PARTITION_BITS);
        let mut seen = self.store.map(|store| store.cursor(from)).transpose()?;
        let (mut keys, mut failed) = (Vec::new(), None);
        let settled = |key, _| {
            let is_seen = seen.as_mut().is_some_and(|seen| {
                seen.has(key).unwrap_or_else(|error| {
                    failed = Some(error);
                    true
                })
            });
            if self.wanted.gather_new && !is_seen {
                keys.push(key);
            }
            !is_seen
        };
        let (keep, limit, verdicts) = (self.wanted.keep, self.limit, self.verdicts);
        let mut resolver = Resolver::new(keep, limit, verdicts, settled);
        resolver.resolve(spill, place)?;
        memory::sample();
        let Resolver { refused, collisions, .. } = resolver;
        counts.seen.fetch_add(refused, Ordering::Relaxed);
        // Counted among the duplicates when their rows come up.
        counts.refused.fetch_add(refused, Ordering::Relaxed);
        self.collisions.lock().unwrap_or_else(PoisonError::into_inner).merge(collisions);
        if let Some(error) = failed {
            return Err(error.into());
        }
        if let Some(table) = self.tables.get(place).filter(|table| !table.is_empty()) {
            keys.extend(table.iter().map(|(key, ())| key));
            keys.sort_unstable();
        }
        Ok(keys)
    }
}
