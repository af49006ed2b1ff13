//! Which records the rows of a batch come from.

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

/// Where the rows of a batch come from.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchRuns<'a> {
    /// The runs of all rows.
    pub(super) runs: &'a [SourceRun],
    /// The numbers of the rows that were not removed, which ascend; `None` if no row was removed.
    pub(super) kept: Option<&'a [u32]>,
}

impl BatchRuns<'_> {
    /// Returns the number of rows that were not removed.
    pub(super) fn row_count(self) -> usize {
        self.kept.map_or_else(|| self.runs.iter().map(|run| run.rows as usize).sum(), <[u32]>::len)
    }

    /// Computes one value per row from its run and its index in the run.
    pub(super) fn per_row<T>(self, value: impl Fn(&SourceRun, u64) -> T) -> Vec<T> {
        let mut values = Vec::with_capacity(self.row_count());
        let (mut kept, mut first) = (self.kept, 0);
        for run in self.runs {
            match &mut kept {
                None => values.extend((0..u64::from(run.rows)).map(|i| value(run, i))),
                Some(kept) => {
                    let end = first + u64::from(run.rows);
                    let (of_run, others) = kept.split_at(kept.partition_point(|row| u64::from(*row) < end));
                    values.extend(of_run.iter().map(|row| value(run, u64::from(*row) - first)));
                    (*kept, first) = (others, end);
                }
            }
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_the_rows_that_were_kept() {
        let run = |source, first_record, rows| SourceRun { source, first_record, rows };
        let runs = [run(0, 3, 2), run(1, 1, 0), run(2, 1, 5), run(3, 1, 1), run(2, 6, 1)];
        let values =
            |kept: Option<&[u32]>| BatchRuns { runs: &runs, kept }.per_row(|run, i| (run.source, run.first_record + i));
        let all = [(0, 3), (0, 4), (2, 1), (2, 2), (2, 3), (2, 4), (2, 5), (3, 1), (2, 6)];
        assert_eq!(values(None), all);
        for kept in [vec![], vec![1, 2, 6, 8], (0..9).collect()] {
            assert_eq!(values(Some(&kept)), kept.iter().map(|row| all[*row as usize]).collect::<Vec<_>>());
        }
    }
}
