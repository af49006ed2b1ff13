//! Benchmark of irikey and its peers over the lines of one file, on one thread; prints a table.
//!
//! ```text
//! file -> Input (bytes and lines) -> statements: accepted, rejected, digest of each engine
//!                                 -> interleaved rounds: A B C ... A B C ... -> table: median [min-max]
//! ```
//!
//! An engine that does not return a result for every line is an error.

mod engine;
mod engines;
mod input;
mod sink;
mod table;

use engine::{Clock, Contestant, Runner};
use input::Input;
use sink::Statement;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use table::Outcome;

const USAGE: &str = "usage: irikey-peers FILE [--rounds N] [--clock wall|cpu] [--engines NAME,NAME...] [--batch BYTES]";

struct Job {
    path: PathBuf,
    rounds: usize,
    clock: Clock,
    contestants: Vec<Contestant>,
    batch_len: usize,
}

fn main() -> ExitCode {
    match job(std::env::args().skip(1)).and_then(|job| run(&job)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("irikey-peers: {message}");
            ExitCode::from(2)
        }
    }
}

fn job(mut args: impl Iterator<Item = String>) -> Result<Job, String> {
    let mut path = None;
    let mut rounds = 7;
    let mut clock = Clock::Wall;
    let mut contestants = engines::ALL.to_vec();
    let mut batch_len = input::BATCH_LEN;
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value; {USAGE}"));
        match arg.as_str() {
            "--rounds" => rounds = count(&arg, &value()?)?,
            "--batch" => batch_len = count(&arg, &value()?)?,
            "--clock" => clock = clock_named(&value()?)?,
            "--engines" => contestants = value()?.split(',').map(named).collect::<Result<_, _>>()?,
            _ if arg.starts_with('-') || path.is_some() => return Err(format!("unexpected argument {arg}; {USAGE}")),
            _ => path = Some(PathBuf::from(&arg)),
        }
    }
    Ok(Job { path: path.ok_or(USAGE)?, rounds, clock, contestants, batch_len })
}

fn count(option: &str, text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&n| n > 0).ok_or_else(|| format!("{option} {text}: expected a number of at least 1"))
}

fn clock_named(name: &str) -> Result<Clock, String> {
    let found = [Clock::Wall, Clock::Cpu].into_iter().find(|clock| clock.name() == name);
    found.ok_or_else(|| format!("--clock: {name:?} is neither wall nor cpu"))
}

fn named(name: &str) -> Result<Contestant, String> {
    let names = || engines::ALL.map(|contestant| contestant.name).join(", ");
    let found = engines::ALL.into_iter().find(|contestant| contestant.name == name);
    found.ok_or_else(|| format!("--engines: unknown engine {name:?}; expected one of {}", names()))
}

fn run(job: &Job) -> Result<(), String> {
    let bytes = input::read(&job.path)?;
    let input = Input::new(&bytes, job.batch_len);
    let lines = input.lines.len();
    let not_utf8 = input.lines.iter().filter(|line| line.text.is_none()).count();
    println!(
        "{lines} lines, {} bytes, mean {:.1} bytes per line with its end; {not_utf8} not UTF-8; {} rounds, interleaved, {} time\n",
        bytes.len(),
        bytes.len() as f64 / lines as f64,
        job.rounds,
        job.clock.name(),
    );
    let mut runners: Vec<_> = job.contestants.iter().map(|contestant| (contestant.start)()).collect();
    let statements = state(&job.contestants, &mut runners, &input)?;
    let rounds = time(job, &mut runners, &input);
    let outcomes = job.contestants.iter().zip(statements).zip(rounds);
    let outcomes: Vec<_> =
        outcomes.map(|((&contestant, statement), rounds)| Outcome { contestant, statement, rounds }).collect();
    print!("{}", table::markdown(&input, &outcomes));
    Ok(())
}

/// Runs each engine once; returns its counts and digest, or an error if it did not return a result for every line.
fn state(
    contestants: &[Contestant],
    runners: &mut [Box<dyn Runner>],
    input: &Input<'_>,
) -> Result<Vec<Statement>, String> {
    let mut statements = Vec::new();
    for (contestant, runner) in contestants.iter().zip(runners) {
        let statement = runner.state(input);
        let (accepted, rejected) = (statement.accepted, statement.rejected);
        eprintln!("{}: accepted {accepted}, rejected {rejected}, digest {:016x}", contestant.name, statement.digest());
        if accepted + rejected != input.lines.len() {
            return Err(format!(
                "{} returned {} results for {} lines",
                contestant.name,
                accepted + rejected,
                input.lines.len()
            ));
        }
        statements.push(statement);
    }
    Ok(statements)
}

/// Measures the rounds of each engine, in the order of the contestants.
fn time(job: &Job, runners: &mut [Box<dyn Runner>], input: &Input<'_>) -> Vec<Vec<Duration>> {
    let mut times = vec![Vec::with_capacity(job.rounds); runners.len()];
    for round in 1..=job.rounds {
        for (runner, times) in runners.iter_mut().zip(&mut times) {
            times.push(runner.time(input, job.clock));
        }
        eprintln!("round {round} of {}", job.rounds);
    }
    times
}
