//! Jobs with runs over single inputs, several side by side, so that one thread decompresses each: how they share threads
//! ([`ThreadShares`]), and their summary ([`OrderedSummaries`]). [`canon_unordered`] makes such runs for jobs whose result does
//! not depend on the order of rows.

use super::as_finished::as_finished;
use super::canonicalize::{RowGroup, canon};
use super::error::RunError;
use super::options::{RunOptions, RunRequest};
use super::summary::Summary;
use crate::input::{Source, Sources};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::error::Error;
use std::iter;
use std::sync::atomic::{AtomicBool, Ordering};

/// Adds up the summaries of inputs in the order of these, in whichever order they are finished.
#[derive(Default)]
pub(crate) struct OrderedSummaries {
    pub(crate) total: Summary,
    added: usize,
    /// Summaries by the index of the input, which wait for those of earlier inputs.
    waiting: BTreeMap<usize, Summary>,
}

impl OrderedSummaries {
    /// Adds the summary of the input with this index.
    pub(crate) fn add(&mut self, index: usize, summary: Summary) {
        self.waiting.insert(index, summary);
        while let Some(next) = self.waiting.remove(&self.added) {
            self.total.add(next);
            self.added += 1;
        }
    }
}

/// The run over one of several inputs.
#[derive(Debug)]
pub(crate) struct InputRun<T> {
    /// The place of the input among all inputs, from 0.
    pub(crate) index: usize,
    pub(crate) input: T,
    /// Threads of the run.
    pub(crate) threads: usize,
}

/// Runs over inputs, and how they share threads.
#[derive(Debug)]
pub(crate) struct ThreadShares<T> {
    /// Threads of all runs that are made at once.
    pub(crate) threads: usize,
    /// The runs in the order in which they begin.
    pub(crate) runs: Vec<InputRun<T>>,
}

/// An input is long if it has more than this part of the bytes that a thread gets on average.
const LONG_PART: u128 = 8;

impl<T> ThreadShares<T> {
    /// Shares `threads` among runs over inputs, which come with their lengths. At most `max_runs` are made at once. Longer
    /// inputs get more threads, and long ones begin first, so that no thread waits for one of them at the end. The others begin
    /// in their order.
    pub(crate) fn new(inputs: Vec<(u64, T)>, threads: usize, max_runs: usize) -> ThreadShares<T> {
        let (lens, inputs): (Vec<u64>, Vec<T>) = inputs.into_iter().unzip();
        let run_count = lens.len().min(max_runs).min(threads).max(1);
        let least = if run_count < lens.len() { (threads / run_count).max(1) } else { 1 };
        let threads = if run_count < lens.len() { least * run_count } else { threads.max(1) };
        let total = lens.iter().map(|&len| u128::from(len)).sum::<u128>().max(1);
        let share = |len: u64| (u128::from(len) * threads as u128 / total) as usize;
        let mut shares: Vec<usize> = lens.iter().map(|&len| share(len).max(least)).collect();
        for _ in shares.iter().sum()..threads {
            // The length per thread, if the input got one more.
            let per_thread = |i: usize| lens[i] / (shares[i] as u64 + 1);
            let longest = (0..lens.len()).max_by_key(|&i| (per_thread(i), Reverse(shares[i])));
            longest.into_iter().for_each(|i| shares[i] += 1);
        }
        let runs = inputs.into_iter().zip(shares).enumerate();
        let mut runs: Vec<_> = runs.map(|(index, (input, threads))| InputRun { index, input, threads }).collect();
        let long_len = |len: u64| if u128::from(len) * threads as u128 * LONG_PART > total { len } else { 0 };
        runs.sort_by_key(|run| Reverse(long_len(lens[run.index])));
        ThreadShares { threads, runs }
    }
}

/// Bytes of short inputs that have a run together, because beginning a run takes as long as reading 200 KiB of text.
const MIN_RUN_LEN: u64 = 4 << 20;

/// Shorter inputs are not opened to find out whether threads can divide them.
const MIN_DIVISIBLE_LEN: u64 = 1 << 20;

/// If there are more inputs, none is opened to find out whether threads can divide it: opening all of them takes long on a slow
/// disk, and the time in which threads wait for the last ones is a small part of the whole.
const MAX_DIVISIBLE_COUNT: usize = 256;

/// Inputs that have a run together, which follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct InputGroup {
    /// Bytes; `None` if the length of the input is not known.
    len: Option<u64>,
    count: usize,
    /// Several threads can read each of the inputs at once.
    is_divisible: bool,
}

impl InputGroup {
    /// The group of one of `count` sources.
    fn of(source: &Source, count: usize) -> InputGroup {
        let is_long = source.len.is_some_and(|len| len >= MIN_DIVISIBLE_LEN);
        let is_divisible = is_long && count <= MAX_DIVISIBLE_COUNT && source.is_divisible();
        InputGroup { len: source.len, count: 1, is_divisible }
    }

    /// Joins both groups if their inputs are few bytes together, or if threads can divide each of the inputs: then no thread is
    /// idle at the end. Otherwise returns `None`.
    fn join(self, other: InputGroup) -> Option<InputGroup> {
        let (len, count) = (self.len?.checked_add(other.len?)?, self.count + other.count);
        let is_divisible = self.is_divisible && other.is_divisible;
        (is_divisible || len <= MIN_RUN_LEN).then_some(InputGroup { len: Some(len), count, is_divisible })
    }
}

/// Joins inputs that follow each other, where possible. The result depends on the inputs only.
fn join(inputs: impl Iterator<Item = InputGroup>) -> Vec<InputGroup> {
    let mut groups: Vec<InputGroup> = Vec::new();
    for input in inputs {
        match groups.last_mut().and_then(|group| Some((group.join(input)?, group))) {
            Some((joined, group)) => *group = joined,
            None => groups.push(input),
        }
    }
    groups
}

/// Divides sources into those that have a run together, which come with their lengths.
fn divide(sources: Sources) -> Vec<(u64, Sources)> {
    let groups = join(sources.0.iter().map(|source| InputGroup::of(source, sources.0.len())));
    let mut sources = sources.0.into_iter();
    let mut next = |group: InputGroup| Sources(sources.by_ref().take(group.count).collect());
    groups.into_iter().map(|group| (group.len.unwrap_or(0), next(group))).collect()
}

/// [`canon`] with a run for each input, or for several that are short or that threads can divide, side by side. `use_rows` gets
/// the row groups of all inputs in any order, and nothing is appended. The summary is that of one run, except that advice
/// depends on the rows of a run.
///
/// # Errors
/// As [`canon`]. Of several errors, that of the run which begins first counts.
pub(super) fn canon_unordered<E: Error + Send>(
    request: RunRequest<'_>,
    use_rows: impl Fn(RowGroup<'_>) -> Result<(), E> + Sync,
) -> Result<Summary, RunError<E>> {
    let options = request.options.clamped();
    if request.sources.0.len() < 2 || options.record_limit.is_some() {
        let request = RunRequest { options: &options, appends_nothing: true, ..request };
        return canon(request, |group| use_rows(group).map(Some), |()| Ok(()));
    }
    let RunRequest { sources, policy, progress, .. } = request;
    progress.set_total(sources.total_len());
    let ThreadShares { threads, runs } = ThreadShares::new(divide(sources), options.threads, usize::MAX);
    let (count, mut rest) = (runs.len(), runs.into_iter());
    let next = move || {
        let run: InputRun<Sources> = rest.next()?;
        Sources::begin_ahead(rest.as_mut_slice().iter_mut().flat_map(|run| &mut run.input.0));
        Some((run.threads, run))
    };
    let work = |InputRun { index, input, threads }: InputRun<Sources>, is_stopped: &AtomicBool| {
        let options = RunOptions { threads, ..options.clone() };
        let request = RunRequest { appends_nothing: true, ..RunRequest::new(input, &options, policy, progress) };
        let use_rows = |group: RowGroup<'_>| match is_stopped.load(Ordering::Relaxed) {
            true => Ok(None),
            false => use_rows(group).map(Some),
        };
        match canon(request, use_rows, |()| Ok(())) {
            // The counts of a run that gave up do not balance.
            Ok(_) | Err(RunError::Unbalanced { .. }) if is_stopped.load(Ordering::Relaxed) => Ok(None),
            summary => summary.map(|summary| Some((index, summary))),
        }
    };
    let mut summaries = OrderedSummaries::default();
    as_finished(threads, iter::from_fn(next).take(count), work, |(index, summary)| {
        summaries.add(index, summary);
        Ok(())
    })?;
    Ok(summaries.total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::{Defect, InputError};

    fn of_lens(lens: &[u64], threads: usize, max_runs: usize) -> ThreadShares<()> {
        ThreadShares::new(lens.iter().map(|&len| (len, ())).collect(), threads, max_runs)
    }

    /// The threads of each input, if all of them can run at once.
    fn shares(lens: &[u64], threads: usize) -> Vec<usize> {
        let mut runs = of_lens(lens, threads, usize::MAX).runs;
        runs.sort_unstable_by_key(|run| run.index);
        runs.into_iter().map(|run| run.threads).collect()
    }

    #[test]
    fn threads_are_shared_by_the_length_of_inputs() {
        assert_eq!(shares(&[5, 5, 5], 8), [2, 3, 3]);
        assert_eq!(shares(&[1000, 1, 0], 16), [15, 1, 1]);
        assert_eq!(shares(&[0, 0], 4), [2, 2]);
        assert_eq!(shares(&[u64::MAX, u64::MAX], 2), [1, 1]);
        assert_eq!(shares(&[u64::MAX; 3], 1), [1; 3]);
        // More inputs than threads: the long one still has its share.
        assert_eq!(shares(&[7; 5], 4), [1; 5]);
        assert_eq!(shares(&[1, 2, 60, 1, 1, 1, 1, 1], 8), [1, 1, 7, 1, 1, 1, 1, 1]);
        assert_eq!(shares(&[], 4), [0; 0]);
    }

    #[test]
    fn runs_at_once_are_limited() {
        let shares = |lens: &[u64], threads, max_runs| {
            let ThreadShares { threads, runs } = of_lens(lens, threads, max_runs);
            (threads, runs.into_iter().map(|run| run.threads).collect::<Vec<_>>())
        };
        assert_eq!(shares(&[9, 9, 9], 8, 2), (8, vec![4; 3]));
        assert_eq!(shares(&[9, 9, 9, 9], 8, 3), (6, vec![2; 4]));
        assert_eq!(shares(&[9; 4], 2, 3), (2, vec![1; 4]));
    }

    #[test]
    fn long_inputs_begin_first() {
        let order = |lens: &[u64], threads| {
            let shares = of_lens(lens, threads, usize::MAX);
            shares.runs.into_iter().map(|run| run.index).collect::<Vec<_>>()
        };
        assert_eq!(order(&[1, 2, 900, 3, 1000, 0], 2), [4, 2, 0, 1, 3, 5]);
        assert_eq!(order(&[5, 6, 5, 6], 16), [1, 3, 0, 2]);
        let lens: Vec<u64> = (1000..1100).collect();
        assert!(order(&lens, 2).into_iter().eq(0..100));
    }

    #[test]
    fn short_inputs_have_a_run_together() {
        let groups = |lens: &[Option<u64>]| {
            let inputs = lens.iter().map(|&len| InputGroup { len, count: 1, is_divisible: false });
            join(inputs).into_iter().map(|group| group.count).collect::<Vec<_>>()
        };
        let (half, whole) = (Some(MIN_RUN_LEN / 2), Some(MIN_RUN_LEN));
        assert_eq!(groups(&[half, half, half, Some(1), whole, Some(0), Some(1), half]), [2, 2, 2, 2]);
        assert_eq!(groups(&[Some(0), None, Some(0), Some(u64::MAX), None]), [1; 5]);
        assert_eq!(groups(&[Some(1); 1000]), [1000]);
        assert_eq!(groups(&[]), [0; 0]);
    }

    /// Files of text have a run together, so that threads share them; compressed files, archives and JSON have runs of their own.
    #[test]
    fn inputs_that_threads_can_divide_have_a_run_together() {
        let directory = tempfile::tempdir().unwrap();
        let file = |i: usize, head: &[u8], len: u64| {
            let path = directory.path().join(i.to_string());
            std::fs::write(&path, head).unwrap();
            std::fs::File::options().write(true).open(&path).unwrap().set_len(len).unwrap();
            Source::path(path).unwrap()
        };
        let heads = |files: &[(&[u8], u64)]| {
            let sources = files.iter().enumerate().map(|(i, &(head, len))| file(i, head, len));
            let groups = join(sources.map(|source| InputGroup::of(&source, files.len())));
            groups.into_iter().map(|group| (group.count, group.is_divisible)).collect::<Vec<_>>()
        };
        const LINES: &[u8] = b"http://a.example/\nhttp://b.example/\n";
        let text = (LINES, MIN_RUN_LEN);
        let others: [&[u8]; 5] =
            [b"\x1f\x8b\x08", b"WARC/1.0\r\nWARC-Type: response\r\n", b" {\"log\":", b"PAR1\x15", b"\xff\xfea\0"];
        for other in others {
            let files = [text, text, (other, MIN_RUN_LEN), (other, MIN_RUN_LEN), text, text, text];
            assert_eq!(heads(&files), [(2, true), (1, false), (1, false), (3, true)], "{other:?}");
        }
        // A short file is not opened, and a long one would have to wait for it.
        let short = (LINES, MIN_DIVISIBLE_LEN - 1);
        assert_eq!(heads(&[text, short, short, text]), [(1, true), (2, false), (1, true)]);
        assert!(!InputGroup::of(&Source::reader("pipe", LINES), 1).is_divisible);
        let one = file(0, LINES, MIN_RUN_LEN);
        let of_many =
            [MAX_DIVISIBLE_COUNT, MAX_DIVISIBLE_COUNT + 1].map(|count| InputGroup::of(&one, count).is_divisible);
        assert_eq!(of_many, [true, false]);
    }

    #[test]
    fn summaries_are_added_in_the_order_of_the_inputs() {
        let mut summaries = OrderedSummaries::default();
        for (index, added) in [(2, 0), (1, 0), (0, 3), (3, 4)] {
            let input_errors = vec![InputError::new(0, index.to_string(), Defect::Special)];
            let source_records = vec![index as u64];
            summaries.add(index, Summary { rows: 1, source_records, input_errors, ..Summary::default() });
            assert_eq!(summaries.total.rows, added);
        }
        let Summary { source_records, input_errors, .. } = summaries.total;
        assert_eq!(source_records, [0, 1, 2, 3]);
        assert!(input_errors.iter().all(|error| error.name == error.source_number.to_string()), "{input_errors:?}");
    }
}
