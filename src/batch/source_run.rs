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

impl SourceRun {
    /// Returns the runs of `kept`, the numbers of rows, which ascend.
    pub(crate) fn retain(runs: &[SourceRun], kept: &[u32]) -> Vec<SourceRun> {
        let (mut retained, mut rest, mut first) = (Vec::with_capacity(runs.len()), kept, 0);
        for run in runs {
            let end = first + run.rows;
            let (of_run, others) = rest.split_at(rest.partition_point(|row| *row < end));
            retained.extend(of_run.chunk_by(|a, b| a + 1 == *b).map(|rows| SourceRun {
                first_record: run.first_record + u64::from(rows[0] - first),
                rows: rows.len() as u32,
                ..*run
            }));
            (rest, first) = (others, end);
        }
        retained
    }
}

#[cfg(test)]
mod tests {
    use super::SourceRun;

    #[test]
    fn rows_in_ranges_stay() {
        let run = |first_record, rows| SourceRun { source: 0, first_record, rows };
        assert_eq!(SourceRun::retain(&[run(1, 5), run(1, 5)], &[1, 4, 5, 6]), [run(2, 1), run(5, 1), run(1, 2)]);
    }
}
