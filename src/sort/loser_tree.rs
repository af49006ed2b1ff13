//! A tournament tree over the runs of a merge: [`LoserTree`].

/// Finds the run with the least record. After that record is replaced by the next one of its run, only the runs that lost
/// directly against it play again.
#[derive(Debug)]
pub(super) struct LoserTree {
    /// The children of node `i` are `2 * i` and `2 * i + 1`; those from the number of runs on are the runs. A node has the run
    /// that lost there, and node 0 the winner.
    nodes: Vec<usize>,
}

impl LoserTree {
    /// Plays all matches of `count` runs. `wins(a, b)` returns whether the record of run `a` comes before that of run `b`.
    pub(super) fn new(count: usize, mut wins: impl FnMut(usize, usize) -> bool) -> LoserTree {
        let mut nodes = vec![0; count];
        let mut winners: Vec<usize> = vec![0; count];
        winners.extend(0..count);
        for node in (1..count).rev() {
            let (a, b) = (winners[2 * node], winners[2 * node + 1]);
            (winners[node], nodes[node]) = if wins(a, b) { (a, b) } else { (b, a) };
        }
        if let Some(first) = nodes.first_mut() {
            *first = winners[1];
        }
        LoserTree { nodes }
    }

    /// The run with the least record; `None` if there are no runs.
    pub(super) fn winner(&self) -> Option<usize> {
        self.nodes.first().copied()
    }

    /// Plays the matches of the winner again, which has another record now. All runs that it plays against have lost to its
    /// record before.
    pub(super) fn replay(&mut self, mut wins: impl FnMut(usize, usize) -> bool) {
        let Some(mut winner) = self.winner() else { return };
        let mut node = (winner + self.nodes.len()) / 2;
        while node > 0 {
            let other = self.nodes[node];
            if !wins(winner, other) {
                (winner, self.nodes[node]) = (other, winner);
            }
            node /= 2;
        }
        self.nodes[0] = winner;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Merges runs of numbers.
    fn merged(mut runs: Vec<Vec<u32>>) -> Vec<u32> {
        runs.iter_mut().for_each(|run| run.reverse());
        let wins = |runs: &[Vec<u32>], a: usize, b: usize| match (runs[a].last(), runs[b].last()) {
            (Some(one), Some(other)) => one <= other,
            (one, _) => one.is_some(),
        };
        let mut tree = LoserTree::new(runs.len(), |a, b| wins(&runs, a, b));
        let mut merged = Vec::new();
        while let Some(number) = tree.winner().and_then(|run| runs[run].pop()) {
            merged.push(number);
            tree.replay(|a, b| wins(&runs, a, b));
        }
        merged
    }

    #[test]
    fn runs_of_any_number_and_length_are_merged() {
        for count in 0..20 {
            let run = |run: u32| (0..run * 7 % 5).map(|i| i * 3 + run * run % 11).collect();
            let runs: Vec<Vec<u32>> = (0..count).map(run).collect();
            let mut expected = runs.concat();
            expected.sort_unstable();
            assert_eq!(merged(runs), expected, "{count}");
        }
    }
}
