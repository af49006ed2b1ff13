//! Collects what records state about redirects, responses and contents, and learns from it: [`observe`].
//!
//! ```text
//! records   --CaptureSort-----+                                    +--> RedirectObserver: classes, patterns of hosts
//!                             +--> sorted runs of CaptureRecords --HostReader
//! documents --read_documents--+                                    +--> learn_content: rules about content
//! parts of other captures --OpenParts----------------------------------> rules about content
//! ```
//!
//! `rule_collector` collects rules in a temporary file. `held_out` chooses the captures on which rules are tried instead of
//! being learned from them.
//!
//! Memory for data: half is for sorted captures and redirects until they are merged, and then for what is held for each URL
//! of a redirect; the other half is for the sorters of what is learned from redirects.

mod capture_record;
mod capture_sort;
mod content_rules;
mod document_evidence;
mod held_out;
mod host_reader;
mod learned_parts;
mod parts_error;
mod rule_collector;

pub(crate) use self::capture_sort::ObserveError;
use self::capture_sort::{CaptureSort, SortedCaptures};
pub(crate) use self::content_rules::LearnedContent;
use self::content_rules::{ContentJob, learn_content, observe_forms};
use self::document_evidence::read_documents;
pub(crate) use self::document_evidence::{DocumentCounts, DocumentOptions};
use self::held_out::HoldOut;
pub(crate) use self::held_out::Validation;
pub(crate) use self::host_reader::DiskSorters;
use self::host_reader::{HostReader, UrlLimit};
use self::learned_parts::OpenParts;
pub(crate) use self::parts_error::PartsError;
pub(crate) use self::rule_collector::ContentCounts;
use super::{Phase, RunError, RunRequest, Summary, canon, memory};
use crate::canon::{Policy, Rung};
use crate::learn::content::ContentLimits;
use crate::learn::{LearnLimits, LearnedRedirects, NUMBERED_URL_LEN, RedirectObserver, SorterFactory};
use crate::record::fields::FieldSet;
use crate::sort::BytesRuns;
use std::path::PathBuf;

/// How observations are held.
#[derive(Clone, Debug)]
pub(crate) struct ObserveOptions {
    /// Bytes of memory for observations, and for learning from them.
    pub(crate) memory: usize,
    pub(crate) directory: PathBuf,
    pub(crate) redirects: LearnLimits,
    /// What rules about content need; `None` if none are learned from these captures.
    pub(crate) content: Option<ContentLimits>,
    /// Files with what was learned of parts of other captures, if `content` is `None`: rules about content are those of all
    /// parts.
    pub(crate) parts: Vec<PathBuf>,
}

pub(crate) struct ObserveResult {
    pub(crate) summary: Summary,
    /// What was learned from redirects and responses.
    pub(crate) redirects: LearnedRedirects<DiskSorters>,
    /// Names of the sources, sorted by bytes; a [`RecordPlace::source`](crate::learn::RecordPlace) is an index of this list.
    pub(crate) sources: Vec<String>,
    /// Rules about content.
    pub(crate) content: Option<LearnedContent>,
    /// What was found in documents.
    pub(crate) documents: DocumentCounts,
}

/// Maximum number of URLs that can be numbered; patterns may add as many.
const MAX_URLS: usize = 1 << 31;

/// Collects the redirects and responses that the records of a run state, on the rung `scheme` of its policy, and learns from them
/// and from the contents of their captures, and of their documents if these are given.
///
/// # Errors
/// As [`canon`]; the URLs of redirects exceed the limit; temporary files cannot be used; parts cannot be merged. What is wrong
/// with the files of parts as such is found before any record is read.
pub(crate) fn observe(
    request: RunRequest<'_>,
    options: &ObserveOptions,
    documents: Option<DocumentOptions>,
) -> Result<ObserveResult, RunError<ObserveError>> {
    let policy = observe_policy(request.policy, options.content);
    let request = RunRequest { policy: &policy, ..request };
    let (threads, progress) = (request.options.threads, request.progress);
    let parts = OpenParts::open(&options.parts, &policy).map_err(RunError::output)?;
    let (sources, ranks) = ranked(&request.sources.names());
    let memory = options.memory / 2;
    let sort = CaptureSort::new(&ranks, options.content.map(|limits| limits.held_out));
    let mut captures = BytesRuns::new(memory, &options.directory);
    let (mut summary, found) = sort_captures(request, &sort, &mut captures)?;
    progress.begin(Phase::Learn);
    let mut counts = DocumentCounts::default();
    if let Some(documents) = documents {
        let errors;
        (counts, errors) = read_documents(documents, &policy, threads, |run| Ok(captures.add(run)?))?;
        summary.add_errors(errors);
    }
    let sorters = DiskSorters { sorter_memory: options.memory / 32, directory: options.directory.clone() };
    let mut observer = RedirectObserver::new(&sorters, &options.redirects, policy.algorithm);
    observer.add_unused(found.other_status, found.unparsable);
    let limit = UrlLimit { urls: (memory / NUMBERED_URL_LEN).min(MAX_URLS), bytes: memory };
    let hold_out = sort.days.as_ref().zip(options.content).map(|(days, limits)| HoldOut::new(limits.held_out, days));
    let hosts = HostReader::new(captures, hold_out, &mut observer, found.redirects > 0, limit);
    let mut hosts = hosts.map_err(RunError::output)?;
    let mut forms = sorters.sorter();
    let content = match &options.content {
        Some(limits) => {
            let job = ContentJob { threads, directory: &options.directory, limits, algorithm: policy.algorithm };
            Some(learn_content(hosts, job, &mut forms)?)
        }
        None => hosts.observe_rest().map(|()| None).map_err(RunError::Output)?,
    };
    observe_forms(forms, &mut observer).map_err(RunError::output)?;
    let redirects = observer.finish(&sorters).map_err(RunError::output)?;
    memory::sample();
    let content = parts.merge(&options.directory).map_err(RunError::output)?.or(content);
    Ok(ObserveResult { summary, redirects, sources, content, documents: counts })
}

/// The names in the order of their bytes, and the rank of each name in it.
fn ranked(names: &[String]) -> (Vec<String>, Vec<u32>) {
    let mut sorted = names.to_vec();
    sorted.sort_unstable();
    let rank = |name: &String| sorted.binary_search(name).expect("it is one of the names") as u32;
    let ranks = names.iter().map(rank).collect();
    (sorted, ranks)
}

/// Sorts what the records of a run state into `captures`. Returns the numbers of redirects without their records.
fn sort_captures(
    request: RunRequest<'_>,
    sort: &CaptureSort<'_>,
    captures: &mut BytesRuns,
) -> Result<(Summary, SortedCaptures), RunError<ObserveError>> {
    let mut found = SortedCaptures::default();
    let append = |group: SortedCaptures| {
        found.redirects += group.redirects;
        found.other_status += group.other_status;
        found.unparsable += group.unparsable;
        Ok(captures.add(group.run)?)
    };
    let summary = canon(request, |group| Ok(Some(sort.sort(&group))), append)?;
    Ok((summary, found))
}

/// The policy with what is carried of each record.
fn observe_policy(policy: &Policy, content: Option<ContentLimits>) -> Policy {
    let redirects = FieldSet { status: true, redirect: true, redirected_from: true, ..FieldSet::default() };
    let carry = match content {
        Some(_) => FieldSet {
            time: true,
            digest: true,
            payload_digest: true,
            mime: true,
            truncated: true,
            capture_length: true,
            ..redirects
        },
        None => redirects,
    };
    Policy { rung: Rung::Scheme, keep_input: false, carry, ..policy.clone() }
}
