//! Rounds on the clock in, the table of results out. Nothing is left out of the denominator: ns/line is over all
//! lines of the job, refused ones included.

use crate::engine::Contestant;
use crate::input::Input;
use crate::sink::Statement;
use std::time::Duration;

/// One engine's line of the table.
pub struct Result {
    contestant: Contestant,
    statement: Statement,
    /// One entry a round, ascending.
    rounds: Vec<Duration>,
}

impl Result {
    /// Sorts the rounds; there is at least one.
    pub fn new(contestant: Contestant, statement: Statement, mut rounds: Vec<Duration>) -> Result {
        rounds.sort();
        Result { contestant, statement, rounds }
    }

    fn median_ns(&self) -> f64 {
        let n = self.rounds.len();
        (self.rounds[(n - 1) / 2].as_nanos() + self.rounds[n / 2].as_nanos()) as f64 / 2.0
    }

    fn row(&self, input: &Input<'_>, ada_ns: Option<f64>) -> String {
        let lines = input.lines.len() as f64;
        let median = self.median_ns();
        let [fastest, slowest] = [0, self.rounds.len() - 1].map(|i| self.rounds[i].as_nanos() as f64 / lines);
        let ratio = ada_ns.map_or("-".to_string(), |ada| format!("{:.2}", ada / median));
        format!(
            "| {} | {} | {} | {} | {} | {:016x} | {:.1} [{:.1}–{:.1}] | {:.0} | {} |",
            self.contestant.name,
            self.contestant.version(),
            self.contestant.job,
            self.statement.accepted,
            self.statement.rejected,
            self.statement.digest(),
            median / lines,
            fastest,
            slowest,
            input.bytes.len() as f64 * 1e3 / median,
            ratio,
        )
    }
}

/// The whole table, in Markdown.
pub fn markdown(input: &Input<'_>, results: &[Result]) -> String {
    let ada_ns = results.iter().find(|result| result.contestant.name == "ada").map(Result::median_ns);
    let mut text = String::from(
        "| engine | version | job | accepted | rejected | digest | ns/line median [min–max] | MB/s | speed ÷ ada |\n\
         |---|---|---|---:|---:|---|---:|---:|---:|\n",
    );
    for result in results {
        text.push_str(&result.row(input, ada_ns));
        text.push('\n');
    }
    text
}
