//! What an engine is, and how one stands in the table of contestants.

use crate::input::Input;
use crate::sink::{Sink, Statement, Timed};
use cpu_time::ThreadTime;
use std::time::{Duration, Instant};

/// What a round is measured with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// The time that passes. For a machine of one's own.
    Wall,
    /// The time that the thread is given. Steadier where others use the machine too; system time is in it.
    Cpu,
}

impl Clock {
    /// Name in `--clock` and in results.
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

/// One way of doing one job over all lines.
pub trait Engine {
    /// Name in the table.
    const NAME: &'static str;
    /// Package whose version is shown; empty for the floors.
    const PACKAGE: &'static str;
    /// What is done to a line.
    const JOB: &'static str;
    /// Answers every line of `input`, in order.
    fn run<S: Sink>(input: &Input<'_>, sink: &mut S);
}

/// An engine, its type forgotten.
#[derive(Clone, Copy)]
pub struct Contestant {
    /// [`Engine::NAME`].
    pub name: &'static str,
    /// [`Engine::PACKAGE`].
    pub package: &'static str,
    /// [`Engine::JOB`].
    pub job: &'static str,
    /// Counts and digest; also warms caches and allocator.
    pub state: fn(&Input<'_>) -> Statement,
    /// One round on the clock.
    pub time: fn(&Input<'_>, Clock) -> Duration,
}

impl Contestant {
    /// The contestant for `E`.
    pub const fn of<E: Engine>() -> Contestant {
        Contestant { name: E::NAME, package: E::PACKAGE, job: E::JOB, state: state::<E>, time: time::<E> }
    }

    /// The version of the engine's package, as this package's lock file has it.
    pub fn version(&self) -> &'static str {
        let entry = format!("name = \"{}\"\nversion = \"", self.package);
        let lock = include_str!("../Cargo.lock");
        let rest = lock.split_once(entry.as_str()).map_or("", |(_, rest)| rest);
        rest.split_once('"').map_or("-", |(version, _)| version)
    }
}

fn state<E: Engine>(input: &Input<'_>) -> Statement {
    let mut statement = Statement::new();
    E::run(input, &mut statement);
    statement
}

fn time<E: Engine>(input: &Input<'_>, clock: Clock) -> Duration {
    let mut sink = Timed::default();
    let took = clock.measure(|| E::run(input, &mut sink));
    std::hint::black_box(sink.bytes);
    took
}
