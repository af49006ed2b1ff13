//! The files that `dedup` writes: the rows that are kept, and the tables that explain duplicates.

use std::path::PathBuf;

use arrow::datatypes::SchemaRef;

use super::args::DedupArgs;
use crate::cli::error::CommandError;
use crate::cli::job::Job;
use crate::dedup::evidence;
use crate::output::{self, Encoder, FinishedOutput, Output, OutputError, TableWriter};
use crate::run::{DedupOutput, DedupSummary};

/// The destinations of a dedup's rows.
pub(super) struct DedupOutputs {
    kept: Output,
    duplicates: Option<TableWriter>,
    groups: Option<TableWriter>,
}

impl DedupOutputs {
    /// Opens the outputs of a job over sources of these names.
    pub(super) fn create(
        args: &DedupArgs,
        job: &Job,
        names: &[String],
    ) -> Result<(Encoder, DedupOutputs), CommandError> {
        let (encoder, kept) = output::create(&job.destination, job.output_options(names))?;
        let metadata = output::metadata(&job.policy, names.len());
        let table = |path: &Option<PathBuf>, schema: SchemaRef| {
            let destination = path.as_ref().map(|path| args.reporting.replace.file(path));
            destination.map(|destination| TableWriter::create(&destination, schema, &metadata)).transpose()
        };
        let duplicates = table(&args.duplicates, evidence::duplicates_schema())?;
        let groups = table(&args.groups, evidence::groups_schema())?;
        Ok((encoder, DedupOutputs { kept, duplicates, groups }))
    }

    pub(super) fn append(&mut self, given: DedupOutput) -> Result<(), OutputError> {
        match given {
            DedupOutput::Kept(part) => self.kept.append(part),
            DedupOutput::Duplicates(rows) => self.duplicates.as_mut().map_or(Ok(()), |table| table.append(&rows)),
            DedupOutput::Groups(rows) => self.groups.as_mut().map_or(Ok(()), |table| table.append(&rows)),
        }
    }

    /// Completes all outputs, if the counts add up. The main output is the last one: when it has its name, the others have
    /// theirs.
    pub(super) fn finish(self, deduped: &DedupSummary) -> Result<FinishedOutput, CommandError> {
        let left_out = deduped.totals.duplicates + deduped.totals.seen;
        let message = match &self.duplicates {
            _ if self.kept.rows() != deduped.totals.written => {
                format!("{} of {} rows were written", self.kept.rows(), deduped.totals.written)
            }
            Some(table) if table.rows() != left_out => {
                format!("{} of {left_out} duplicates were written", table.rows())
            }
            _ => {
                self.duplicates.into_iter().chain(self.groups).try_for_each(TableWriter::finish)?;
                return Ok(self.kept.finish()?);
            }
        };
        self.kept.abort()?;
        Err(CommandError::Internal(message))
    }
}
