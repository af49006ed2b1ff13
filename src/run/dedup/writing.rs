//! Rows that waited, written by their verdicts: [`Writing`]. In: rows in the spool, verdicts, rows that did not fill a row
//! group before. Out: row groups and evidence, in order.

use super::super::{RunError, in_order::in_order, memory};
use super::counts::{Counts, SURE};
use super::evidence::Evidence;
use super::job::filter;
use super::joining::{Fill, Joining, join};
use super::{DedupError, Given};
use crate::dedup::Verdicts;
use crate::dedup::evidence::{self, Places};
use crate::output::{Encoder, OutputError};
use crate::spill::{PendingRows, RowSpool, SpillError};
use arrow::array::RecordBatch;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// What rows are written with.
pub struct Writing<'a> {
    pub encoder: &'a Encoder,
    pub evidence: Option<&'a Evidence>,
    pub spool: &'a RowSpool,
    pub places: &'a Places,
    pub verdicts: &'a Verdicts,
    pub counts: &'a Counts,
}

impl Writing<'_> {
    /// Appends what is kept, `before` first, and the evidence.
    pub fn write(
        &self,
        before: Joining,
        threads: usize,
        mut append: impl FnMut(Given) -> Result<(), OutputError> + Send,
    ) -> Result<(), RunError<DedupError>> {
        let groups = self.groups(before.fill, !before.batches.is_empty());
        let before = Mutex::new(before.batches);
        let group = |i: usize| {
            let mut before = before.lock().unwrap_or_else(PoisonError::into_inner);
            let first = if i == 0 { std::mem::take(&mut *before) } else { Vec::new() };
            drop(before);
            self.group(groups[i].clone(), first)
        };
        let append = |given: Vec<Given>| Ok(given.into_iter().try_for_each(&mut append)?);
        in_order(threads, groups.len(), group, append)
    }

    /// Which entries of the spool make a row group together; the first one goes on with what was there before.
    fn groups(&self, mut fill: Fill, has_before: bool) -> Vec<Range<usize>> {
        let (mut groups, mut first) = (Vec::new(), 0);
        for (i, extent) in self.spool.extents().enumerate() {
            let kept = extent.surely_kept + self.verdicts.kept_count(extent.first_row, extent.rows);
            if fill.add(kept, extent.rows) {
                groups.push(first..i + 1);
                first = i + 1;
            }
        }
        if first < self.spool.len() || (groups.is_empty() && has_before) {
            groups.push(first..self.spool.len());
        }
        groups
    }

    /// A row group, `rows` first in it, and the evidence on its spans.
    fn group(&self, spans: Range<usize>, mut rows: Vec<RecordBatch>) -> Result<Vec<Given>, DedupError> {
        let mut given = Vec::new();
        for i in spans {
            let waiting = self.spool.read(i)?;
            let kept: Vec<bool> = waiting.ordinals.iter().map(|&at| is_kept(at, self.verdicts)).collect();
            self.counts.add_settled(&waiting.ordinals, &kept);
            let kept = filter(&waiting.batch, kept.into_iter())?;
            rows.push(match self.evidence {
                Some(evidence) => evidence.project(&kept, self.encoder)?,
                None => kept,
            });
            given.extend(
                self.evidence.map(|evidence| self.evidence(evidence, &waiting)).transpose()?.into_iter().flatten(),
            );
            memory::sample();
        }
        let rows = join(self.encoder.schema(), rows).map_err(SpillError::from)?;
        given.push(Given::Kept(self.encoder.encode_batch(&rows)?));
        memory::sample();
        Ok(given)
    }

    fn evidence(
        &self,
        evidence: &Evidence,
        PendingRows { batch, ordinals }: &PendingRows,
    ) -> Result<[Given; 2], DedupError> {
        let competing: Vec<_> = ordinals.iter().map(|&at| (at & SURE == 0).then_some(at)).collect();
        let duplicates = evidence::duplicates(batch, &competing, self.verdicts, self.places, evidence.key_name);
        let groups = evidence::groups(batch, &competing, self.verdicts).map_err(SpillError::from)?;
        Ok([Given::Duplicates(duplicates.map_err(SpillError::from)?), Given::Groups(groups)])
    }
}

fn is_kept(ordinal: u64, verdicts: &Verdicts) -> bool {
    ordinal & SURE != 0 || verdicts.is_kept(ordinal)
}
