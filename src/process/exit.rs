//! Exit codes of the `irikey` command. `irikey help` and the documentation list them from [`ALL`].

/// Success.
pub(crate) const SUCCESS: u8 = 0;
/// A comparison or a check gave a negative answer.
pub(crate) const DIFFERENT: u8 = 1;
/// Usage error: the flags are wrong or contradict each other. Or the job was refused.
pub(crate) const USAGE: u8 = 2;
/// Records have faults, and `--fail-on-fault` was given.
pub(crate) const FAULTS: u8 = 3;
/// Inputs cannot be opened, and nothing was done. Or an input could not be read completely: rows of everything that was
/// readable are written, but no file is created or replaced if there are none.
pub(crate) const INPUT: u8 = 4;
/// The output could not be written, or the system had no memory left.
pub(crate) const OUTPUT: u8 = 5;
/// Internal error: counts that do not add up, or a panic.
pub(crate) const INTERNAL: u8 = 6;
/// `dedup --verify` found two different texts with the same key.
pub(crate) const COLLISION: u8 = 7;
/// Another job has locked the output directory or the seen store.
pub(crate) const BUSY: u8 = 8;

/// Every code with its meaning.
pub(crate) const ALL: [(u8, &str); 9] = [
    (SUCCESS, "success, even if the reader of standard output closes it early"),
    (DIFFERENT, "compare: not equivalent on any rung; conform: a case failed; check-sorted: out of order"),
    (USAGE, "usage error, or the job was refused; no file was replaced"),
    (FAULTS, "records have faults and --fail-on-fault was given; the output is complete"),
    (
        INPUT,
        "inputs do not exist or cannot be opened, and nothing was done; or an input could not be read completely, and the rows \
         that could be read are written (no file if there are none)",
    ),
    (OUTPUT, "the output could not be written, or the system had no memory left; no partial file is left behind"),
    (INTERNAL, "internal error: counts that do not add up, or a panic"),
    (COLLISION, "dedup --verify: different texts have the same key; the output is complete and has a row for each"),
    (BUSY, "another job is writing the output directory or the seen store; nothing was done, so try again later"),
];
