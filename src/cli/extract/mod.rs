//! `extract`: writes a row for every reference in documents, as an input for `canon`.

mod columns;
mod markup;
mod report;

use std::path::PathBuf;

use clap::Args;

use crate::cli::args::{
    Choices, ReportingArgs, SourceArgs, StoreArgs, ThreadArgs, describe_fault_of_base, format_choice,
    is_written_in_place, output_path, parse_charset, parse_number_from, parse_size, refuse_directory, refuse_terminal,
    unknown_suffix,
};
use crate::cli::error::CommandError;
use crate::cli::files::print_abandoned;
use crate::cli::progress::watch;
use crate::cli::report::{NO_OUTPUT, after_closed_pipe, replaced_to_text};
use crate::cli::terminal::{print_error, print_to_stderr};
use crate::encoding::Charset;
use crate::extract::DocumentContext;
use crate::iri::Base;
use crate::output::{Destination, OutputError, OutputFormat, RowWriter};
use crate::process::exit;
use crate::run::{ExtractOptions, FoundLinks, MAX_MESSAGES, RowLayout, extract_links};
use columns::{COLUMN_NAMES, describe_columns, parse_columns};
use markup::{MARKUPS, MarkupChoice};
use report::ExtractReport;

const EXAMPLES: &str = "\
Examples:
  The canonical URIs of the links of a page, relative ones resolved:
      irikey extract page.html --base https://example.org/page.html |
          irikey canon --format csv --base-column base

  All documents of a directory to one table:
      irikey extract pages/ -o links.csv

  The links of every page of an archive, with their canonical URIs and keys:
      irikey extract crawl.warc.gz --columns page,link_type,link_rel,url,uri,key -o links.parquet";

const FAIL_ON_FAULT_HELP: &str = "\
Exit with code 3 if a URL cannot be read or, with the columns uri or key, has no URI; the output is complete nevertheless";

const UNUSED_BASE: &str = "--base had no effect, because all inputs are archives, whose captures have addresses of their own; \
                           remove it, or check the inputs";

const FORMATS: Choices<OutputFormat> = Choices(&[
    format_choice(OutputFormat::Csv, "Comma-separated values with a header"),
    format_choice(OutputFormat::Tsv, "Tab-separated values with a header"),
    format_choice(OutputFormat::JsonLines, "One JSON object per line"),
    format_choice(OutputFormat::Parquet, "Apache Parquet"),
]);

/// Write a row for every reference in HTML and XML documents, sitemaps, feeds and robots.txt
///
/// An input is a document, or a WARC, ARC or WACZ file. In these archives, each capture with status 2xx and the media type of
/// such a document is read, and the header fields Link and Refresh of all captures and Location of redirects; what is skipped
/// is counted.
///
/// canon can read the rows. By default, the columns are url, base, charset, element, attribute, record_offset, source, fault
/// and fault_at. If a URL cannot be read, url and base are empty (null in JSON lines and Parquet), and canon --base-column base
/// reports a fault, too. --columns chooses other columns, such as uri and key; they are listed at the end.
///
/// The charset of a document is that of its byte order mark; otherwise that of --charset; otherwise that of its HTTP header, in
/// an archive or from an HTTP server; otherwise the one that it declares; otherwise that of --default-charset.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = long_help(),
          mut_arg("fail_on_fault", |flag| flag.help(FAIL_ON_FAULT_HELP)))]
pub(crate) struct ExtractArgs {
    #[command(flatten)]
    files: SourceArgs,
    /// Markup of the documents
    #[arg(short, long, value_name = "MARKUP", value_parser = MARKUPS, default_value = "auto", help_heading = "Input")]
    format: MarkupChoice,
    /// Address of the documents, an absolute IRI: the base of their references and of their base elements. Without it, a file
    /// on an HTTP server has its own address, after redirects. Captures in archives always have their own addresses
    #[arg(long, value_name = "URI", value_parser = parse_base, help_heading = "Input")]
    base: Option<String>,
    /// Charset of the documents instead of the one that their HTTP header declares, a label of the Encoding Standard
    #[arg(long, value_name = "LABEL", value_parser = parse_charset, help_heading = "Input")]
    charset: Option<Charset>,
    /// Charset of documents without any declared charset
    #[arg(long, value_name = "LABEL", value_parser = parse_charset, default_value = "utf-8", help_heading = "Input")]
    default_charset: Charset,
    /// Longest document in bytes; a longer one is an error and gives no rows
    #[arg(long, value_name = "BYTES", value_parser = parse_size, default_value = "256M", help_heading = "Input")]
    max_document: usize,
    /// Stop after N rows, in the order of the input. Reads with one thread
    #[arg(long, value_name = "N", value_parser = parse_number_from::<u64, 0>, allow_negative_numbers = true,
          help_heading = "Input")]
    limit: Option<u64>,
    /// Output file, written under a temporary name and renamed when it is complete; - is standard output [default: -]
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
    /// Format of the rows [default: by the suffix of -o; csv on standard output, devices and pipes]
    #[arg(long, value_name = "FORMAT", value_parser = FORMATS, help_heading = "Output")]
    output_format: Option<OutputFormat>,
    /// Columns in order, separated by commas; or columns to add to the default ones, each with a + before it, such as
    /// +page,+link_rel. They are listed at the end
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = COLUMN_NAMES, hide_possible_values = true,
          help_heading = "Output")]
    columns: Vec<String>,
    #[command(flatten)]
    threads: ThreadArgs,
    #[command(flatten)]
    reporting: ReportingArgs,
    #[command(flatten)]
    store: StoreArgs,
}

fn long_help() -> String {
    format!("{}\n\nColumns (--columns):\n{}", super::help::long_examples(EXAMPLES), describe_columns())
}

/// The state of a run: its output and what was counted.
struct Extraction<'a> {
    args: &'a ExtractArgs,
    destination: Destination,
    writer: RowWriter,
    report: ExtractReport,
}

pub(crate) fn run(args: &ExtractArgs) -> Result<u8, CommandError> {
    args.store.apply()?;
    let columns = parse_columns(&args.columns)?;
    let (destination, format) = args.destination()?;
    let sources = args.files.sources()?;
    let files = args.reporting.files(&args.files.inputs).destination(&destination, format);
    let replaced = files.check(&sources)?;
    let layout = RowLayout::new(format, &columns);
    let writer = RowWriter::create(&destination, format, &layout.plain)?;
    let mut extraction = Extraction { args, destination, writer, report: ExtractReport::default() };
    let options = args.options(layout);
    let (result, _) = watch(&args.reporting, sources.total_len(), |progress| {
        extract_links(sources, options, progress, |found| extraction.append(found))
    });
    // They would break the line that shows the progress.
    extraction.report.print_messages();
    extraction.report.replaced = files.replaced_after(replaced, extraction.report.is_nothing_read());
    let finished = result.map_err(CommandError::from).and_then(|()| extraction.finish());
    finished.map_err(|error| after_closed_pipe(error, &args.reporting))
}

impl ExtractArgs {
    fn destination(&self) -> Result<(Destination, OutputFormat), CommandError> {
        let Some(path) = output_path(self.output.as_ref()) else {
            let format = self.output_format.unwrap_or(OutputFormat::Csv);
            refuse_terminal(&Destination::Stdout, format)?;
            return Ok((Destination::Stdout, format));
        };
        refuse_directory(path, "links.csv", "")?;
        let formats: Vec<OutputFormat> = FORMATS.0.iter().map(|(_, format, _)| *format).collect();
        let by_suffix = || OutputFormat::of_path(path).filter(|format| formats.contains(format));
        let of_device = || is_written_in_place(path).then_some(OutputFormat::Csv);
        let format = self.output_format.or_else(by_suffix).or_else(of_device);
        let format = format.ok_or_else(|| unknown_suffix(path, &formats, ""))?;
        Ok((self.reporting.replace.file(path), format))
    }

    fn options(&self, layout: RowLayout) -> ExtractOptions {
        let context = DocumentContext {
            markup: self.format,
            charset: self.charset,
            default_charset: self.default_charset,
            base: self.base.as_ref().map(|base| base.clone().into_bytes()),
            text: layout.needs_text(),
        };
        let (max_len, limit, threads) = (self.max_document, self.limit, self.threads.count());
        ExtractOptions { context, max_len, limit, threads, layout }
    }
}

impl Extraction<'_> {
    /// Writes rows and counts.
    fn append(&mut self, found: FoundLinks) -> Result<(), OutputError> {
        let FoundLinks { links, counts, messages, more_messages, .. } = found;
        self.writer.append(&links.rows)?;
        self.report.references += links.links;
        self.report.faulty += links.faulty;
        self.report.counts.add(counts);
        let (room, count) = (MAX_MESSAGES - self.report.messages.len(), messages.len());
        self.report.messages.extend(messages.into_iter().take(room));
        self.report.more_messages += more_messages + count.saturating_sub(room) as u64;
        Ok(())
    }

    /// Completes the output, prints the summary, writes the report and returns the exit code.
    fn finish(self) -> Result<u8, CommandError> {
        let Extraction { args, destination, writer, report } = self;
        let state = if report.is_nothing_read() {
            print_abandoned(&destination);
            NO_OUTPUT
        } else {
            match writer.finish() {
                Ok(()) | Err(OutputError::ClosedPipe) => {}
                Err(error) => return Err(error.into()),
            }
            "the output is complete"
        };
        if !args.reporting.quiet {
            if !report.is_nothing_read() {
                print_error(&report.summary());
            }
            print_to_stderr(&replaced_to_text(&report.replaced));
            if args.base.is_some() && report.counts.has_archives && !report.counts.has_documents {
                print_error(UNUSED_BASE);
            }
        }
        report.write(&args.reporting, state)?;
        match () {
            () if report.counts.unread > 0 => Ok(exit::INPUT),
            () if report.faulty > 0 && args.reporting.fail_on_fault => Ok(exit::FAULTS),
            () => Ok(exit::SUCCESS),
        }
    }
}

fn parse_base(base: &str) -> Result<String, String> {
    Base::new(base.as_bytes()).map(|_| base.to_string()).map_err(describe_fault_of_base)
}
