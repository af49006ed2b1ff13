//! Exit statuses: named here, documented by `--help` from here.

/// Everything was done.
pub const SUCCESS: u8 = 0;
/// `compare`: the two are not equivalent on any rung. `conform`: a case fails. `check-sorted`: out of order.
pub const DIFFERENT: u8 = 1;
/// The command line makes no sense.
pub const USAGE: u8 = 2;
/// Records have faults, and `--fail-on-fault` was given.
pub const FAULTS: u8 = 3;
/// Some input could not be read wholly; what could be read was written.
pub const INPUT: u8 = 4;
/// The output could not be written.
pub const OUTPUT: u8 = 5;
/// A mistake of the program: counts that do not balance, or a panic.
pub const INTERNAL: u8 = 6;
/// `dedup --verify`: two texts have one key.
pub const COLLISION: u8 = 7;

/// Every status with its meaning.
pub const ALL: [(u8, &str); 8] = [
    (SUCCESS, "success; also when the reader of standard output closes it early"),
    (DIFFERENT, "compare: not equivalent on any rung; conform: a case fails; check-sorted: out of order"),
    (USAGE, "usage error"),
    (FAULTS, "records have faults and --fail-on-fault was given; the output is whole"),
    (INPUT, "some input could not be read wholly; what could be read was written"),
    (OUTPUT, "the output could not be written; nothing bears its name that did not before"),
    (INTERNAL, "a mistake of irikey itself: counts that do not balance, or a panic"),
    (COLLISION, "dedup --verify: different texts have one key; the output is whole, with a row of each"),
];

/// The statuses as the end of a help text.
pub fn help() -> String {
    let lines: Vec<_> = ALL.iter().map(|(status, meaning)| format!("  {status}  {meaning}")).collect();
    format!("Exit status:\n{}", lines.join("\n"))
}
