//! Rounds on the clock in, the table of results out. Nothing is left out of the denominator: ns/line is over all
//! lines of the job, refused ones included.

use crate::engine::Contestant;
use crate::input::Input;
use crate::sink::Statement;
use std::time::Duration;

/// One engine's line of the table.
pub struct Outcome {
    /// Who.
    pub contestant: Contestant,
    /// What it did.
    pub statement: Statement,
    /// One entry a round, in the order of the rounds; at least one.
    pub rounds: Vec<Duration>,
}

impl Outcome {
    /// Nanoseconds a round, in the order of the rounds.
    fn ns(&self) -> impl Iterator<Item = f64> {
        self.rounds.iter().map(|round| round.as_nanos() as f64)
    }

    /// How many times as fast as `other`: the median over the rounds of the quotient within each round, because what
    /// disturbs a machine disturbs neighbours alike.
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

/// The middle one, or the mean of the two in the middle.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let n = values.len();
    (values[(n - 1) / 2] + values[n / 2]) / 2.0
}

/// The whole table, in Markdown.
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
