//! The table of results. Times per line are over all lines of the input, including rejected ones.

use crate::engine::Contestant;
use crate::input::Input;
use crate::sink::Statement;
use std::time::Duration;

/// One row of the table.
pub struct Outcome {
    /// The engine.
    pub contestant: Contestant,
    /// Its counts and digest.
    pub statement: Statement,
    /// The time of each round, in order; at least one.
    pub rounds: Vec<Duration>,
}

impl Outcome {
    /// Nanoseconds of each round, in order.
    fn ns(&self) -> impl Iterator<Item = f64> {
        self.rounds.iter().map(|round| round.as_nanos() as f64)
    }

    /// How many times as fast as `other`: the median of the ratios within each round, because what disturbs the machine
    /// disturbs neighbors alike.
    fn times_as_fast_as(&self, other: &Outcome) -> f64 {
        median(other.ns().zip(self.ns()).map(|(theirs, ours)| theirs / ours))
    }

    fn row(&self, input: &Input<'_>, ada: Option<&Outcome>) -> String {
        let lines = input.lines.len() as f64;
        let fastest = self.ns().fold(f64::INFINITY, f64::min);
        let slowest = self.ns().fold(0.0, f64::max);
        let ratio = ada.map_or("-".to_string(), |ada| format!("{:.2}", self.times_as_fast_as(ada)));
        format!(
            "| {} | {} | {} | {} | {} | {:016x} | {:.1} [{:.1}–{:.1}] | {:.0} | {} |",
            self.contestant.name,
            self.contestant.version(),
            self.contestant.job,
            self.statement.accepted,
            self.statement.rejected,
            self.statement.digest(),
            median(self.ns()) / lines,
            fastest / lines,
            slowest / lines,
            input.bytes.len() as f64 * 1e3 / median(self.ns()),
            ratio,
        )
    }
}

/// The median; of an even number of values, the mean of the two in the middle.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let n = values.len();
    (values[(n - 1) / 2] + values[n / 2]) / 2.0
}

/// Returns the table as Markdown.
pub fn markdown(input: &Input<'_>, outcomes: &[Outcome]) -> String {
    let ada = outcomes.iter().find(|outcome| outcome.contestant.name == "ada");
    let mut text = String::from(
        "| engine | version | job | accepted | rejected | digest | ns/line median [min–max] | MB/s | speed ÷ ada |\n\
         |---|---|---|---:|---:|---|---:|---:|---:|\n",
    );
    for outcome in outcomes {
        text.push_str(&outcome.row(input, ada));
        text.push('\n');
    }
    text
}
