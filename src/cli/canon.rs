//! `canon`: writes the canonical URI and the key of every record.

use std::time::Instant;

use clap::Args;

use super::args::{
    ColumnArgs, FileLayout, InputArgs, KEYS, LayoutArgs, OutputArgs, PolicyArgs, ReportingArgs, SortArgs, WorkArgs,
};
use super::error::CommandError;
use super::file_roles::FileRoles;
use super::files::{OutputFiles, WrittenFiles};
use super::job::Job;
use super::progress::watch;
use super::report::{Report, after_closed_pipe};
use super::resume;
use crate::batch::ColumnId;
use crate::output::{Destination, OutputFormat};
use crate::record::archive::RecordTypes;
use crate::run::{self, RunRequest, Summary, WorkerNeed, columns_to_sort};

const EXAMPLES: &str = "\
Examples:
  One canonical URI per line, in the order of the input:
      irikey canon urls.txt

  A compressed URL list to Parquet, with keys of all three rungs:
      irikey canon urls.txt.gz -o urls.parquet --key simple,syntax,scheme

  From a pipe, with keys of what would be retrieved (fragments do not count):
      zcat urls.txt.gz | irikey canon --drop-fragment -o urls.parquet

  The first 1000 records only, on the terminal:
      irikey canon urls.txt.gz --limit 1000 --output-format csv

  Links, resolved against the pages on which they were found:
      irikey canon links.csv --column href --base-column page -o links.parquet

  Hosts that look like other hosts, and what else may mislead readers:
      irikey canon urls.txt --skeleton --columns +spoofing_flags -o urls.parquet

  Attribute values of old pages, in the charset and markup of their pages:
      irikey canon links.csv --charset-column charset --character-references html --trim \\
          --column href -o links.parquet

  Sorted like the index of an archive, in files of ten million rows, with little memory:
      irikey canon cdx-*.gz -o index/ --sort url_surtkey,fetch_time --part-rows 10000000 --memory 2G";

/// What only this command can write, added to the help of the flag that it shares with others.
const OUTPUT_HELP: &str = "\
Output file, written under a temporary name and renamed when it is complete; - is standard output [default: -]. A directory \
if it ends with /, or with --part-rows, --partition, --hive or --resume";

/// Write the canonical URI and the key of every URL of the inputs
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = super::help::long_examples(EXAMPLES),
          mut_arg("output", |output| output.help(OUTPUT_HELP)))]
pub(crate) struct CanonArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    policy: PolicyArgs,
    /// Key columns to add, separated by commas: of the rungs simple, syntax, scheme, and protocol (with --equivalences);
    /// of the recipes surt-wayback, surt-ia, crawler-commons, nutch, w3lib, urlcanon-aggressive, heritrix, and rules
    /// (with --rules). Not with text output
    #[arg(long, value_name = "LIST", value_parser = KEYS, hide_possible_values = true, value_delimiter = ',',
          help_heading = "Canonical form")]
    key: Vec<ColumnId>,
    #[command(flatten)]
    columns: ColumnArgs,
    #[command(flatten)]
    output: OutputArgs,
    /// In cdxj and zipnum, write the paths of archives as given, not only their file names
    #[arg(long, help_heading = "Output")]
    archive_paths: bool,
    #[command(flatten)]
    sort: SortArgs,
    #[command(flatten)]
    work: WorkArgs,
    #[command(flatten)]
    reporting: ReportingArgs,
}

impl CanonArgs {
    fn job(&self) -> Result<Job<'_>, CommandError> {
        let row_group_len = self.output.row_group_size;
        let mut options = self.input.run_options(&self.work, row_group_len)?;
        let (destination, output, layout) = self.output.options(&self.key, LayoutArgs::Sort(&self.sort))?;
        if output.format.is_index() {
            options.archive_paths = self.archive_paths;
            if self.input.record_types.is_empty() {
                options.record_types = RecordTypes::Replayable;
            }
        } else if self.archive_paths {
            return Err(CommandError::usage(
                "--archive-paths is for cdxj and zipnum; remove it, or choose one of these formats",
            ));
        }
        options.count_distinct = self.reporting.has_summary() && !layout.resume;
        let destination = self.reporting.replace.apply(destination);
        if layout.resume && self.input.limit.is_some() {
            return Err(CommandError::usage("--limit would apply to each input of --resume; remove one of the flags"));
        }
        let columns = columns_to_sort(&output.columns, &layout.arrangement.by, layout.partition.as_ref());
        let policy = self.columns.complete(self.policy.policy(&self.input)?, &columns)?;
        self.work.check_tmp()?;
        let need = match layout.is_sorted() {
            true => WorkerNeed::rows(row_group_len).with_pending_rows("sorted rows"),
            false if output.joins_slices() => WorkerNeed::slices(row_group_len),
            false => WorkerNeed::rows(row_group_len),
        };
        let need = need.with_columns(&columns);
        let memory = self.input.reserve_memory(&self.work, &mut options, need)?;
        let max_runs = need.runs_within(memory);
        let sort = match layout.is_sorted() {
            true => Some(layout.sort_options(memory, self.work.directory()?)),
            false => None,
        };
        let (input, reporting) = (&self.input, &self.reporting);
        let files = self.files(&destination, output.format, &layout);
        Ok(Job { input, options, max_runs, policy, destination, output, layout, sort, files, reporting })
    }

    /// The files that the job reads and writes.
    fn files(&self, destination: &Destination, format: OutputFormat, layout: &FileLayout) -> FileRoles {
        let files = self.reporting.files(&self.input.files.inputs);
        let files = files.input("--partition", layout.split_points_file.as_deref());
        self.columns.add_to(layout.add_to(files, destination, format))
    }
}

pub(crate) fn run(args: &CanonArgs) -> Result<u8, CommandError> {
    let job = args.job()?;
    let report = if job.layout.resume { resume::perform(&job) } else { perform(&job) };
    let report = report.map_err(|error| after_closed_pipe(error, job.reporting))?;
    args.input.print_unused_flag(&report.summary, args.reporting.quiet);
    report.conclude(job.reporting)
}

/// Everything until the output has its final name.
fn perform(job: &Job) -> Result<Report, CommandError> {
    let started = Instant::now();
    let sources = job.input.sources()?;
    let replaced = job.files.check(&sources)?;
    let names = sources.names();
    let (encoder, mut files) = OutputFiles::create(job, &names, false)?;
    let mut temporary_bytes = None;
    let (summary, timeline) = watch(job.reporting, sources.total_len(), |progress| -> Result<Summary, CommandError> {
        let request = RunRequest::new(sources, &job.options, &job.policy, progress);
        let Some(sort) = &job.sort else {
            let append = |encoded| files.append(encoded);
            return Ok(run::canon_encoded(request, &encoder, job.layout.part_rows, append)?);
        };
        let sorted = run::sort(request, sort, &encoder, |sorted| files.append_sorted(sorted))?;
        temporary_bytes = Some(sorted.spilled);
        Ok(sorted.summary)
    });
    let summary = summary?;
    let replaced = job.files.replaced_after(replaced, summary.is_nothing_read());
    let WrittenFiles { whole, files } = match summary.is_nothing_read() {
        true => files.abandon(&job.destination)?,
        false => files.finish(job, summary.rows)?,
    };
    let report = job.report(names, summary, whole, started.elapsed());
    Ok(Report { files, replaced, timeline, temporary_bytes, ..report })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::canon::{Policy, Rung};
    use crate::output::OutputOptions;

    #[derive(Debug, Parser)]
    struct TestCli {
        #[command(flatten)]
        canon: CanonArgs,
    }

    /// What a job of these flags reads, how rows are made, and what is written.
    fn job(flags: &str) -> Result<(Policy, Destination, OutputOptions), String> {
        let words = ["canon", "in.txt"].into_iter().chain(flags.split_whitespace());
        let args = TestCli::try_parse_from(words).map_err(|error| error.to_string())?.canon;
        let Job { policy, destination, output, .. } = args.job().map_err(|error| error.to_string())?;
        Ok((policy, destination, output))
    }

    #[test]
    fn the_format_follows_from_the_flag_or_the_suffix() {
        let format = |flags| job(flags).unwrap().2.format;
        assert_eq!(format(""), OutputFormat::Text);
        assert_eq!(format("--columns uri,key"), OutputFormat::Csv);
        assert_eq!(format("-o /dev/null --key simple"), OutputFormat::Csv);
        assert_eq!(format("-o x.parquet"), OutputFormat::Parquet);
        assert_eq!((format("-o x.txt.zst"), format("-o dir/ --sort uri")), (OutputFormat::Text, OutputFormat::Parquet));
        assert_eq!(format("-o x.csv --output-format jsonl"), OutputFormat::JsonLines);
        assert_eq!(job("-o - --output-format csv").unwrap().1, Destination::Stdout);
        assert!(job("-o x.xls").unwrap_err().contains("--output-format"));
    }

    #[test]
    fn columns_and_keys_agree_with_the_policy() {
        let job = |flags| {
            let (policy, _, output) = job(flags).unwrap();
            (policy, output.columns.names().collect::<Vec<_>>())
        };
        let (policy, _) = job("-o x.parquet --key simple,scheme");
        assert_eq!(policy.more_keys, [Rung::Simple, Rung::Scheme]);
        assert!(policy.keep_input && !policy.spoofing_flags);
        let (policy, columns) = job("-o x.parquet --columns key_syntax,uri --key simple,syntax");
        assert_eq!(columns, ["key_syntax", "key_simple", "uri"]);
        assert_eq!(policy.more_keys, [Rung::Syntax, Rung::Simple]);
        assert!(!policy.keep_input && !job("").0.keep_input);
        let (policy, columns) = job("-o x.parquet --columns +spoofing_flags,+iri");
        assert_eq!(columns[8..], ["flags", "spoofing_flags", "iri"]);
        assert!(policy.spoofing_flags);
        assert_eq!(job("-o x.parquet --columns uri --skeleton").1, ["uri", "host_skeleton"]);
    }

    #[test]
    fn contradictions_are_usage_errors() {
        let rejected = [
            ("--format lines --column url", "--format csv"),
            ("--format cdx --no-header", "--format csv"),
            ("--format jsonl --no-header", "--format csv"),
            ("--format jsonl --delimiter ;", "--format csv"),
            ("--format lines --record-types response", "--format warc"),
            ("--format wat --record-types all", "--format warc"),
            ("--format tsv --delimiter ,", "contradicts --format tsv"),
            ("--no-header --column url", "needs a number"),
            ("--literal-base", "--base"),
            ("-o x.csv --compression lz4", "Parquet"),
            ("-o d --sort uri,nope --part-rows 9", "nope"),
            ("--part-rows 9", "-o"),
            ("-o d --partition surt:4 --sort uri", "url_surtkey"),
            ("-o d --partition surt:4 --sort -url_surtkey", "remove the - before url_surtkey"),
            ("-o d --partition klingon:4", "host:N"),
            ("-o d --hive crawl", "NAME=VALUE"),
            ("-o d --hive a=1,b=1,a=2", "--hive names `a` twice"),
            ("-o x.parquet --hive a=b", "name a directory such as x,"),
            ("-o d/x.csv.gz --resume", "or write d/x.csv.gz/"),
            ("-o x.csv --columns +iri,+key,+iri", "names `iri` twice"),
            ("-o x.csv --columns ,", "a name is empty"),
            ("-o x.csv --columns +iri,+", "a name is empty"),
            ("-o x.cdxj --sort uri", "remove --sort"),
            ("--output-format zipnum", "beside its data"),
            ("--output-format zipnum -o -", "beside its data"),
            ("-o x.cdxj --columns uri", "fixed columns"),
            ("-o x.csv --bloom-filter", "Parquet"),
            ("-o x.parquet --bloom-filter --columns uri", "add key to --columns"),
            ("--archive-paths", "for cdxj and zipnum"),
            ("--record-types respons", "expected one of"),
            ("--memory 10", "need 17M, and the rows of one thread 64M; set --memory to 81M or more"),
            ("-o x.txt --key simple", "text output"),
            ("--output-format text --columns key", "text output"),
            ("-o x.txt.gz --skeleton", "text output"),
            ("--profile klingon", "expected one of rfc3987"),
            ("--profile whatwg --strict", "parses every URL in one way"),
            ("--no-header --charset-column cs", "needs a number"),
            ("-o x.csv --columns kye", "kye"),
            ("-o x.csv --columns +iri,uri", "before every name"),
            ("--charset klingon", "unknown charset"),
            ("--chunk-size 129M", "128M"),
            ("--row-group-size 512M", "at most 128M"),
            ("--row-group-size 1023", "at least 1K"),
            ("--max-record 1G", "at most 512M"),
            ("--chunk-size 0", "at least 1"),
            ("--threads 0", "--threads"),
            ("--compression zstd:99", "1 to 22"),
            ("--assume-scheme 1x", "a scheme is"),
            ("--delimiter ab", "one byte"),
            ("--quiet --progress always", "--quiet"),
        ];
        for (flags, advice) in rejected {
            let message = job(flags).unwrap_err();
            assert!(message.contains(advice), "{flags}: {message}");
        }
    }
}
