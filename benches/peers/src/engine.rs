//! The trait of an engine, and the type-erased entry in the table of contestants.

use crate::input::Input;
use crate::sink::{Sink, Statement, Timed};
use cpu_time::ThreadTime;
use std::time::{Duration, Instant};

/// The clock that measures a round.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// Elapsed time, for machines without other load.
    Wall,
    /// CPU time of the thread, including system time; steadier on machines with other load.
    Cpu,
}

impl Clock {
    /// The name in `--clock` and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Clock::Wall => "wall",
            Clock::Cpu => "cpu",
        }
    }

    fn measure(self, work: impl FnOnce()) -> Duration {
        match self {
            Clock::Wall => {
                let began = Instant::now();
                work();
                began.elapsed()
            }
            Clock::Cpu => {
                let began = ThreadTime::now();
                work();
                began.elapsed()
            }
        }
    }
}

/// One implementation of one job over all lines. An engine keeps its memory from round to round, as a worker keeps it from
/// chunk to chunk.
pub trait Engine: Default + 'static {
    /// The name in the table.
    const NAME: &'static str;
    /// The package whose version is shown; empty for the lower bounds.
    const PACKAGE: &'static str;
    /// What the engine does with a line.
    const JOB: &'static str;
    /// Passes one result per line of `input` to `sink`, in order.
    fn run<S: Sink>(&mut self, input: &Input<'_>, sink: &mut S);
}

/// An engine without its type.
#[derive(Clone, Copy)]
pub struct Contestant {
    /// [`Engine::NAME`].
    pub name: &'static str,
    /// [`Engine::PACKAGE`].
    pub package: &'static str,
    /// [`Engine::JOB`].
    pub job: &'static str,
    /// Returns a new engine.
    pub start: fn() -> Box<dyn Runner>,
}

/// A running engine without its type.
pub trait Runner {
    /// Returns counts and digest; also warms caches and the allocator.
    fn state(&mut self, input: &Input<'_>) -> Statement;
    /// Measures one round.
    fn time(&mut self, input: &Input<'_>, clock: Clock) -> Duration;
}

impl<E: Engine> Runner for E {
    fn state(&mut self, input: &Input<'_>) -> Statement {
        let mut statement = Statement::new();
        self.run(input, &mut statement);
        statement
    }

    fn time(&mut self, input: &Input<'_>, clock: Clock) -> Duration {
        let mut sink = Timed::default();
        let took = clock.measure(|| self.run(input, &mut sink));
        std::hint::black_box(sink.bytes);
        took
    }
}

impl Contestant {
    /// The contestant for `E`.
    pub const fn of<E: Engine>() -> Contestant {
        Contestant { name: E::NAME, package: E::PACKAGE, job: E::JOB, start: || Box::new(E::default()) }
    }

    /// The version of the engine's package in the lock file of this package.
    pub fn version(&self) -> &'static str {
        let entry = format!("name = \"{}\"\nversion = \"", self.package);
        let lock = include_str!("../Cargo.lock");
        let rest = lock.split_once(entry.as_str()).map_or("", |(_, rest)| rest);
        rest.split_once('"').map_or("-", |(version, _)| version)
    }
}
