//! `extract`: writes a row for every reference in documents, as an input for `canon`. One document is held in memory at a time,
//! and rows are written as references are found.

mod rows;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::PathBuf;

use clap::Args;

use crate::cli::args::{Choices, ReplaceArgs, SourceArgs, StoreArgs, is_device_or_pipe, parse_charset, parse_size};
use crate::cli::error::CommandError;
use crate::cli::file_roles::FileRoles;
use crate::cli::files::abandoned;
use crate::cli::report::replaced_to_text;
use crate::cli::terminal::{count_of, print_error, print_to_stderr, thousands};
use crate::encoding::Charset;
use crate::extract::{DefectKind, DocumentContext, HeaderField, LinkScope, Markup, extract_each, for_each_header_link};
use crate::input::{BodyDefect, Source, Sources};
use crate::iri::Base;
use crate::output::{Destination, OutputError, OutputFormat};
use crate::process::exit;
use crate::record::archive::ArchivedDocument;
use crate::run::{ArchiveDocuments, CapturedDocument, SkipReason, SourceDocuments, open_documents};
use rows::{COLUMN_NAMES, LinkOrigin, LinkRows, describe_columns, parse_columns};

const EXAMPLES: &str = "\
Examples:
  The canonical URIs of the links of a page, relative ones resolved:
      irikey extract page.html --base https://example.org/page.html |
          irikey canon --format csv --base-column base

  All documents of a directory to one table:
      irikey extract pages/ -o links.csv

  The links of every page of an archive, with their canonical URIs and keys:
      irikey extract crawl.warc.gz --columns page,link_type,link_rel,url,uri,key -o links.parquet";

/// Maximum number of messages about documents; an archive may have millions.
const MAX_MESSAGES: u64 = 100;

/// `None`: to be recognized by name and content. Under a name of its own, because a flag of type `Option` has no default.
type MarkupChoice = Option<Markup>;

const MARKUPS: Choices<MarkupChoice> = Choices(&[
    ("auto", None, "Recognize by the name of the file, then by its first bytes"),
    ("html", Some(Markup::Html), "HTML, parsed as in the HTML Standard"),
    ("xml", Some(Markup::Xml), "XML, including XHTML, SVG, feeds and sitemaps"),
    ("robots", Some(Markup::Robots), "robots.txt, whose Sitemap lines are references"),
    ("json-feed", Some(Markup::JsonFeed), "JSON Feed 1.0 and 1.1"),
    ("urls", Some(Markup::Urls), "One reference per line, such as a sitemap in text"),
]);

const FORMATS: Choices<OutputFormat> = Choices(&[
    ("csv", OutputFormat::Csv, "Comma-separated values with a header"),
    ("tsv", OutputFormat::Tsv, "Tab-separated values with a header"),
    ("jsonl", OutputFormat::JsonLines, "One JSON object per line"),
    ("parquet", OutputFormat::Parquet, "Apache Parquet"),
]);

/// Write a row for every reference in HTML and XML documents, sitemaps, feeds and robots.txt
///
/// An input is a document, or a WARC, ARC or WACZ file. In these archives, each capture with status 2xx and the media type of
/// such a document is read, and the header fields Link, Refresh and Location of all captures; what is skipped is counted.
///
/// canon can read the rows. By default, the columns are url, base, charset, element, attribute, record_offset, source, fault
/// and fault_at. If a URL cannot be read, url and base are empty, and canon --base-column base reports a fault, too. --columns
/// chooses other columns, such as uri and key; the end of this help lists them.
///
/// The charset of a document is that of its byte order mark; otherwise that of --charset; otherwise that of its HTTP header, in
/// an archive or from an HTTP server; otherwise the one that it declares; otherwise that of --default-charset.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = long_help())]
pub(crate) struct ExtractArgs {
    #[command(flatten)]
    files: SourceArgs,
    /// Markup of the documents
    #[arg(short, long, value_name = "MARKUP", value_parser = MARKUPS, default_value = "auto", help_heading = "Input")]
    format: MarkupChoice,
    /// Address of the documents, an absolute IRI: the base of their references and of their base elements. Without it, a file
    /// on an HTTP server has its own address
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
    /// Output file, written under a temporary name and renamed when it is complete; - is standard output [default: -]
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
    /// Format of the rows [default: by the suffix of -o; csv on standard output, devices and pipes]
    #[arg(long, value_name = "FORMAT", value_parser = FORMATS, help_heading = "Output")]
    output_format: Option<OutputFormat>,
    /// Columns in order, separated by commas; or columns to add to the default ones, each with a + before it, such as
    /// +page,+link_rel. --help lists them
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = COLUMN_NAMES, hide_possible_values = true,
          help_heading = "Output")]
    columns: Vec<String>,
    #[command(flatten)]
    replace: ReplaceArgs,
    /// Exit with code 3 if a URL cannot be read; the output is complete nevertheless
    #[arg(long, help_heading = "Reporting")]
    fail_on_fault: bool,
    /// Print no summary, only errors
    #[arg(short, long, help_heading = "Reporting")]
    quiet: bool,
    #[command(flatten)]
    store: StoreArgs,
}

fn long_help() -> String {
    format!("{}\n\nColumns (--columns):\n{}", super::help::long_examples(EXAMPLES), describe_columns())
}

/// The state of a run: its output and what was counted.
struct Extraction<'a> {
    args: &'a ExtractArgs,
    context: DocumentContext,
    rows: LinkRows,
    /// Documents by the name of their markup.
    documents: BTreeMap<&'static str, u64>,
    /// Documents that could not be read to their end.
    unread: u64,
    defects: BTreeMap<DefectKind, u64>,
    /// Captures that were not read, and records that are not captures.
    skipped: BTreeMap<SkipReason, u64>,
    other_records: u64,
    /// Messages about documents so far.
    messages: u64,
}

pub(crate) fn run(args: &ExtractArgs) -> Result<u8, CommandError> {
    args.store.apply()?;
    args.files.check_terminal()?;
    let columns = parse_columns(&args.columns)?;
    let (destination, format) = args.destination()?;
    let sources = args.files.sources()?;
    let files = FileRoles::new(&args.files.inputs, args.replace.no_clobber, None).destination(&destination, format);
    let replaced = files.check(&sources)?;
    let rows = LinkRows::create(&destination, format, &columns)?;
    let mut extraction = Extraction::new(args, rows);
    let mut sources = sources.0.into_iter();
    while let Some(source) = sources.next() {
        Sources::begin_ahead(sources.as_mut_slice().iter_mut());
        extraction.add_source(source)?;
    }
    if extraction.rows.links == 0 && extraction.unread > 0 {
        abandoned(&destination);
        return Ok(exit::INPUT);
    }
    let status = extraction.finish()?;
    if !args.quiet {
        print_to_stderr(&replaced_to_text(&replaced));
    }
    Ok(status)
}

impl ExtractArgs {
    fn destination(&self) -> Result<(Destination, OutputFormat), CommandError> {
        let Some(path) = self.output.as_ref().filter(|path| path.as_os_str() != "-") else {
            return Ok((Destination::Stdout, self.output_format.unwrap_or(OutputFormat::Csv)));
        };
        let by_suffix =
            || OutputFormat::of_path(path).filter(|format| FORMATS.0.iter().any(|(_, choice, _)| choice == format));
        let by_path = || by_suffix().or_else(|| is_device_or_pipe(path).then_some(OutputFormat::Csv));
        let format = self.output_format.or_else(by_path).ok_or_else(|| {
            let path = path.display();
            CommandError::Usage(format!(
                "{path}: rows are written as CSV, TSV, JSON lines or Parquet; use --output-format"
            ))
        })?;
        Ok((self.replace.file(path), format))
    }
}

impl<'a> Extraction<'a> {
    fn new(args: &'a ExtractArgs, rows: LinkRows) -> Extraction<'a> {
        let context = DocumentContext {
            markup: args.format,
            charset: args.charset,
            default_charset: args.default_charset,
            base: args.base.as_ref().map(|base| base.clone().into_bytes()),
            text: rows.needs_text(),
        };
        Extraction {
            args,
            context,
            rows,
            documents: BTreeMap::new(),
            unread: 0,
            defects: BTreeMap::new(),
            skipped: BTreeMap::new(),
            other_records: 0,
            messages: 0,
        }
    }

    fn add_source(&mut self, mut source: Source) -> Result<(), OutputError> {
        let name = source.name.clone();
        let max_len = self.args.max_document;
        let markup = self.args.format.or_else(|| markup_of_name(&name));
        let base = self.context.base.clone().or_else(|| source.address().map(|address| address.as_bytes().to_vec()));
        let charset = self.args.charset.map_or_else(|| source.declared_charset(), |charset| Ok(Some(charset)));
        let charset = match charset {
            Ok(charset) => charset,
            Err(defect) => {
                self.add_unread(&name, &defect);
                return Ok(());
            }
        };
        match open_documents(source, markup, charset, max_len) {
            Ok(SourceDocuments::One(bytes)) => {
                let context = DocumentContext { markup, charset, base, ..self.context.clone() };
                let page = context.base.as_deref().unwrap_or_default();
                let origin = LinkOrigin { source: &name, page, ..LinkOrigin::default() };
                self.add_document(&bytes, &context, &origin, &name)
            }
            Ok(SourceDocuments::TooLong) => {
                self.add_unread(&name, &BodyDefect::TooLong(max_len));
                Ok(())
            }
            Ok(SourceDocuments::Archive(documents)) => self.add_archive(&name, *documents),
            Err(defect) => {
                self.add_unread(&name, &defect);
                Ok(())
            }
        }
    }

    /// Reports something that cannot be read, or not to its end.
    fn add_unread(&mut self, name: &str, reason: &dyn Display) {
        self.unread += 1;
        self.report(&format!("{name}: {reason}"));
    }

    /// Prints a message, if there were not too many of them already.
    fn report(&mut self, message: &str) {
        self.messages += 1;
        match self.messages.cmp(&MAX_MESSAGES) {
            Ordering::Less => print_error(message),
            Ordering::Equal => print_error(&format!("{message}; further messages are only counted")),
            Ordering::Greater => {}
        }
    }

    fn add_archive(&mut self, name: &str, mut documents: ArchiveDocuments) -> Result<(), OutputError> {
        while let Some(document) = documents.next() {
            self.add_capture(name, &document)?;
        }
        let summary = documents.finish();
        self.other_records += summary.other_records;
        if let Some(defect) = summary.defect {
            self.add_unread(name, &defect);
        }
        Ok(())
    }

    fn add_capture(&mut self, source: &str, document: &ArchivedDocument) -> Result<(), OutputError> {
        let capture = CapturedDocument::new(document);
        let page = document.url.as_slice();
        let origin = LinkOrigin { source, page, time: document.time, status: capture.status() };
        for (field, value) in capture.header_fields() {
            self.add_header_links(field, value, &origin)?;
        }
        let body = match capture.body(self.args.max_document) {
            Ok(body) => body,
            Err(reason) => {
                *self.skipped.entry(reason).or_default() += 1;
                return Ok(());
            }
        };
        let place = format!("{source}: record at byte {} ({})", document.offset, String::from_utf8_lossy(page));
        if let Some(defect) = &body.defect {
            self.add_unread(&place, defect);
            if body.bytes.is_empty() {
                return Ok(());
            }
        }
        let context = DocumentContext {
            markup: self.args.format.or(body.markup),
            charset: self.args.charset.or(body.charset),
            base: Some(page.to_vec()),
            ..self.context.clone()
        };
        self.add_document(&body.bytes, &context, &origin, &place)
    }

    /// Writes the rows of the links in a header field.
    fn add_header_links(
        &mut self,
        field: HeaderField,
        value: &[u8],
        origin: &LinkOrigin<'_>,
    ) -> Result<(), OutputError> {
        let bases = [origin.page.to_vec()];
        let scope = LinkScope { bases: &bases, charset: Charset::UTF_8 };
        let mut written = Ok(());
        for_each_header_link(field, value, &mut |link, anchor| {
            // A link with an anchor is one from there.
            let anchor = anchor.and_then(|anchor| Base::new(origin.page).and_then(|base| base.target(&anchor)).ok());
            let origin = LinkOrigin { page: anchor.as_deref().unwrap_or(origin.page), ..*origin };
            written = self.rows.append(&origin, &link, &scope);
            written.is_ok()
        });
        written
    }

    /// Writes the rows of a document as its references are found. `place` names it in messages.
    fn add_document(
        &mut self,
        bytes: &[u8],
        context: &DocumentContext,
        origin: &LinkOrigin<'_>,
        place: &str,
    ) -> Result<(), OutputError> {
        let mut written = Ok(());
        let document = extract_each(bytes, context, &mut |link, scope| {
            written = self.rows.append(origin, &link, &scope);
            written.is_ok()
        });
        written?;
        *self.documents.entry(name_of_markup(document.markup)).or_default() += 1;
        for defect in &document.defects {
            self.report(&format!("{place}: {defect}"));
            *self.defects.entry(defect.kind).or_default() += defect.count;
            self.unread += u64::from(defect.kind.ends_document());
        }
        Ok(())
    }

    /// The captures and records that were not read, for the summary.
    fn skipped_to_text(&self) -> String {
        let reasons: Vec<_> = self.skipped.iter().map(|(reason, count)| format!("{count} {}", reason.name())).collect();
        let captures = match self.skipped.values().sum::<u64>() {
            0 => String::new(),
            count => format!("; skipped {} ({})", count_of(count, "capture"), reasons.join(", ")),
        };
        match self.other_records {
            0 => captures,
            count => format!("{captures}; {} of other types", count_of(count, "record")),
        }
    }

    /// Completes the output, prints the summary and returns the exit code.
    fn finish(self) -> Result<u8, CommandError> {
        let skipped = self.skipped_to_text();
        let Extraction { args, rows, documents, unread, defects, .. } = self;
        let (links, faulty) = (rows.links, rows.faulty);
        match rows.finish() {
            Ok(()) | Err(OutputError::ClosedPipe) => {}
            Err(error) => return Err(error.into()),
        }
        if !args.quiet {
            let defects: String = defects.iter().map(|(kind, count)| format!("; {count} {}", kind.name())).collect();
            let (links, documents) = (count_of(links, "reference"), documents_to_text(&documents));
            print_error(&format!("{links} in {documents}, {faulty} of them faulty{defects}{skipped}"));
        }
        match () {
            () if unread > 0 => Ok(exit::INPUT),
            () if faulty > 0 && args.fail_on_fault => Ok(exit::FAULTS),
            () => Ok(exit::SUCCESS),
        }
    }
}

/// The number of documents, and as which markup they were read.
fn documents_to_text(documents: &BTreeMap<&'static str, u64>) -> String {
    let all = count_of(documents.values().sum(), "document");
    let several = documents.iter().map(|(name, count)| format!("{} {name}", thousands(*count)));
    match documents.first_key_value() {
        None => all,
        Some((name, _)) if documents.len() == 1 => format!("{all} ({name})"),
        Some(_) => format!("{all} ({})", several.collect::<Vec<_>>().join(", ")),
    }
}

/// The name of a markup in `--format`.
fn name_of_markup(markup: Markup) -> &'static str {
    MARKUPS.0.iter().find(|(_, choice, _)| *choice == Some(markup)).map_or("unknown", |(name, ..)| name)
}

/// The markup that a file name stands for, apart from a final `.gz` or `.zst`.
fn markup_of_name(name: &str) -> Option<Markup> {
    let name = name.to_ascii_lowercase();
    let name = name.strip_suffix(".gz").or(name.strip_suffix(".zst")).unwrap_or(&name);
    if name.rsplit(['/', '\\']).next() == Some("robots.txt") {
        return Some(Markup::Robots);
    }
    match name.rsplit_once('.')?.1 {
        "html" | "htm" => Some(Markup::Html),
        "xml" | "xhtml" | "svg" | "rss" | "atom" | "rdf" | "xsd" | "xsl" | "xslt" | "opml" => Some(Markup::Xml),
        _ => None,
    }
}

fn parse_base(base: &str) -> Result<String, String> {
    Base::new(base.as_bytes()).map(|_| base.to_string()).map_err(|fault| fault.to_string())
}
