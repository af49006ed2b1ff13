//! Which records the rows of a batch come from.

use std::ops::Range;

/// Consecutive rows of one source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceRun {
    /// Index of the source in the list of sources.
    pub source: u32,
    /// Ordinal of the first row in its source, from 1.
    pub first_record: u64,
    /// Number of rows.
    pub rows: u32,
}

impl SourceRun {
    /// Returns the runs of the rows in `ranges`, which ascend and do not overlap.
    pub(crate) fn retain(runs: &[SourceRun], ranges: &[Range<usize>]) -> Vec<SourceRun> {
        let mut kept = Vec::with_capacity(runs.len() + ranges.len());
        let (mut ranges, mut first) = (ranges.iter().cloned(), 0);
        let mut next = ranges.next();
        for run in runs {
            let end = first + run.rows as usize;
            while let Some(range) = next.as_mut().filter(|range| range.start < end) {
                let part = range.start..range.end.min(end);
                let first_record = run.first_record + (part.start - first) as u64;
                kept.push(SourceRun { first_record, rows: part.len() as u32, ..*run });
                range.start = part.end;
                if range.start == range.end {
                    next = ranges.next();
                }
            }
            first = end;
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::SourceRun;

    #[test]
    fn rows_in_ranges_stay() {
        let run = |first_record, rows| SourceRun { source: 0, first_record, rows };
        assert_eq!(SourceRun::retain(&[run(1, 5), run(1, 5)], &[1..2, 4..7]), [run(2, 1), run(5, 1), run(1, 2)]);
    }
}
