//! The summary of `extract`, and its report (`--report`).

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::markup::name_of_markup;
use crate::cli::args::{ReportFormat, ReportingArgs};
use crate::cli::error::CommandError;
use crate::cli::report::{Table, counts, page_of_tables, replaced_to_json, write_report};
use crate::cli::terminal::{count_of, print_error, thousands, visible};
use crate::extract::{DefectKind, Markup};
use crate::run::{ExtractCounts, SkipReason, memory};

/// What was found in the documents of all inputs.
#[derive(Default)]
pub(super) struct ExtractReport {
    pub(super) references: u64,
    pub(super) faulty: u64,
    pub(super) counts: ExtractCounts,
    /// The first messages about documents and inputs.
    pub(super) messages: Vec<String>,
    /// Number of further messages.
    pub(super) more_messages: u64,
    /// Files that were replaced.
    pub(super) replaced: Vec<PathBuf>,
}

impl ExtractReport {
    /// Errors of the inputs left no row.
    pub(super) fn is_nothing_read(&self) -> bool {
        self.references == 0 && self.counts.unread > 0
    }

    /// Prints the messages.
    pub(super) fn print_messages(&self) {
        self.messages.iter().for_each(|message| print_error(message));
        if self.more_messages > 0 {
            print_error(&format!("{} more, which are not shown", count_of(self.more_messages, "message")));
        }
    }

    /// The summary in one line.
    pub(super) fn summary(&self) -> String {
        let ExtractCounts { documents, defects, skipped, other_records, .. } = &self.counts;
        let defects = defects.iter().map(|(kind, count)| format!("; {}", defect_to_text(*kind, *count)));
        let defects: String = defects.collect();
        let reasons = named(skipped, name_of_reason).into_iter();
        let reasons: Vec<_> = reasons.map(|(name, count)| format!("{} {name}", thousands(count))).collect();
        let captures = match skipped.values().sum::<u64>() {
            0 => String::new(),
            count => format!("; {} skipped ({})", count_of(count, "capture"), reasons.join(", ")),
        };
        let others = match other_records {
            0 => String::new(),
            count => format!("; {} of other types", count_of(*count, "record")),
        };
        let (references, documents) = (count_of(self.references, "reference"), documents_to_text(documents));
        format!("{references} ({} faulty) in {documents}{defects}{captures}{others}", thousands(self.faulty))
    }

    /// Writes the report, if one is requested. A message about an error ends with `state`, that of the output.
    pub(super) fn write(&self, reporting: &ReportingArgs, state: &str) -> Result<(), CommandError> {
        let Some(path) = &reporting.report else { return Ok(()) };
        write_report(reporting, path, &self.render(ReportFormat::of_path(path)), state)
    }

    fn render(&self, format: ReportFormat) -> String {
        match format {
            ReportFormat::Page => self.to_page(),
            ReportFormat::Text => {
                let messages = self.messages.iter().map(|message| format!("{}\n", visible(message)));
                format!("{}\n{}", self.summary(), messages.collect::<String>())
            }
            ReportFormat::Json => format!("{:#}\n", self.to_json()),
        }
    }

    fn to_json(&self) -> Value {
        let ExtractCounts { documents, unread, defects, skipped, other_records, .. } = &self.counts;
        let memory = memory::peaks();
        json!({
            "irikey": env!("CARGO_PKG_VERSION"),
            "references": self.references,
            "faulty": self.faulty,
            "documents": counts(named(documents, name_of_markup)),
            "unread": unread,
            "defects": counts(named(defects, DefectKind::name)),
            "skipped": counts(named(skipped, SkipReason::name)),
            "other_records": other_records,
            "messages": self.messages,
            "more_messages": self.more_messages,
            "replaced": replaced_to_json(&self.replaced),
            "peak_memory_bytes": memory.peak_resident,
            "peak_anonymous_bytes": memory.peak_anonymous,
        })
    }

    fn to_page(&self) -> String {
        let ExtractCounts { documents, unread, defects, skipped, other_records, .. } = &self.counts;
        let totals = [
            ("references", self.references),
            ("faulty references", self.faulty),
            ("documents", documents.values().sum()),
            ("inputs and documents that could not be read, or not to their end", *unread),
            ("captures that were skipped", skipped.values().sum()),
            ("records of other types", *other_records),
        ];
        let table = |caption, heading, counts: Vec<(&str, u64)>| {
            let rows = counts.into_iter().map(|(name, count)| vec![name.to_string(), thousands(count)]);
            Table::new(caption, heading, rows)
        };
        let messages = self.messages.iter().map(|message| vec![message.clone()]);
        let tables = [
            table("References and documents", &["count of", "#number"], totals.to_vec()),
            table("Documents", &["markup", "#documents"], named(documents, name_of_markup)),
            table("Skipped captures", &["reason", "#captures"], named(skipped, SkipReason::name)),
            table("Defects of documents", &["defect", "#number"], named(defects, DefectKind::name)),
            Table::new("Messages", &["message"], messages),
        ];
        page_of_tables("extract", &tables, None)
    }
}

/// Counts with the names of what was counted.
fn named<T: Copy>(counts: &BTreeMap<T, u64>, name: impl Fn(T) -> &'static str) -> Vec<(&'static str, u64)> {
    counts.iter().map(|(counted, count)| (name(*counted), *count)).collect()
}

/// Why captures were skipped, in the summary.
fn name_of_reason(reason: SkipReason) -> &'static str {
    match reason {
        SkipReason::Status => "other status",
        SkipReason::MediaType => "other media type",
        reason => reason.name(),
    }
}

/// The number of defects of a kind.
fn defect_to_text(kind: DefectKind, count: u64) -> String {
    let noun = match kind {
        DefectKind::Undecodable => "undecodable value",
        DefectKind::CharacterReference => "wrong character reference",
        DefectKind::UnknownCharset => "unknown charset",
        DefectKind::LongBase => "unusable base",
        DefectKind::ContradictingCharset => "contradicting charset",
        DefectKind::Truncated => "truncated document",
        DefectKind::IllFormed => "ill-formed document",
    };
    count_of(count, noun)
}

/// The number of documents, and as which markup they were read.
fn documents_to_text(documents: &BTreeMap<Markup, u64>) -> String {
    let all = count_of(documents.values().sum(), "document");
    let mut several = named(documents, name_of_markup);
    several.sort_unstable();
    match &several[..] {
        [] => all,
        [(name, _)] => format!("{all} ({name})"),
        _ => {
            let several = several.iter().map(|(name, count)| format!("{} {name}", thousands(*count)));
            format!("{all} ({})", several.collect::<Vec<_>>().join(", "))
        }
    }
}
