//! `extract`: writes a row for every IRI in documents, as an input for `canon`. One document is held in memory at a time, and
//! rows are written as references are found.

mod rows;

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;

use crate::cli::args::output::{ReplaceArgs, is_device_or_pipe};
use crate::cli::args::policy::parse_charset;
use crate::cli::args::store::StoreArgs;
use crate::cli::args::values::{Choices, parse_size};
use crate::cli::error::CommandError;
use crate::cli::file_roles::FileRoles;
use crate::cli::files::abandoned;
use crate::cli::report::replaced_to_text;
use crate::cli::terminal::{count_of, print_error, print_to_stderr};
use crate::encoding::Charset;
use crate::extract::{DefectKind, DocumentContext, Markup, extract_each};
use crate::input::{self, OpenOptions, Opened, Source, Stream};
use crate::iri::Base;
use crate::output::{Destination, OutputError, OutputFormat};
use crate::process::exit;
use rows::{LinkOrigin, LinkRows, describe_columns, parse_columns};

const EXAMPLES: &str = "\
Examples:
  The canonical URIs of the links of a page, relative ones resolved:
      irikey extract page.html --base https://example.org/page.html |
          irikey canon --format csv --base-column base

  All documents of a directory to one table:
      irikey extract pages/ -o links.csv";

/// `None`: to be recognized by name and content. Under a name of its own, because a flag of type `Option` has no default.
type MarkupChoice = Option<Markup>;

const MARKUPS: Choices<MarkupChoice> = Choices(&[
    ("auto", None, "Recognize by the name of the file, then by its first bytes"),
    ("html", Some(Markup::Html), "HTML, parsed as in the HTML Standard"),
    ("xml", Some(Markup::Xml), "XML, including XHTML, SVG, feeds and sitemaps"),
    ("robots", Some(Markup::Robots), "robots.txt, of which the Sitemap lines are references"),
    ("urls", Some(Markup::Urls), "One reference per line, such as a sitemap in text"),
]);

const FORMATS: Choices<OutputFormat> = Choices(&[
    ("csv", OutputFormat::Csv, "Comma-separated values with a header"),
    ("tsv", OutputFormat::Tsv, "Tab-separated values with a header"),
    ("jsonl", OutputFormat::JsonLines, "One JSON object per line"),
    ("parquet", OutputFormat::Parquet, "Apache Parquet"),
]);

/// Write a row for every IRI in HTML and XML documents, sitemaps, feeds and robots.txt
///
/// By default the rows are an input for canon: the columns are url (in UTF-8), base (absolute, or empty), charset (of the
/// document), element, attribute, record_offset (of the value in the document, in bytes), source, and fault and fault_at
/// (byte of the document) for a URL that cannot be read. Its url and base are empty, which is a fault for canon as well.
/// --columns selects others, among them uri and key, the canonical URI and its key. The charset of a document is that of its
/// byte order mark; otherwise that of --charset; otherwise the one that it declares; otherwise --default-charset.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = long_help())]
pub(crate) struct ExtractArgs {
    /// Documents to read. A directory stands for the files in it and below it (without names that begin with . or _),
    /// @FILE for the names in FILE (one per line, # begins a comment; or ended by NUL), and - for standard input, which is
    /// also read without any INPUT. Gzip, zstd, LZ4, bzip2 and xz are recognized by content
    #[arg(value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Markup of the documents
    #[arg(short, long, value_name = "MARKUP", value_parser = MARKUPS, default_value = "auto")]
    format: MarkupChoice,
    /// Address of the documents, an absolute IRI: the base of their references and of their base elements
    #[arg(long, value_name = "URI", value_parser = parse_base)]
    base: Option<String>,
    /// Charset of the documents as declared by their transport, a label of the Encoding Standard
    #[arg(long, value_name = "LABEL", value_parser = parse_charset)]
    charset: Option<Charset>,
    /// Charset of documents without any declared charset
    #[arg(long, value_name = "LABEL", value_parser = parse_charset, default_value = "utf-8")]
    default_charset: Charset,
    /// Longest document in bytes; a longer one is an error and gives no rows
    #[arg(long, value_name = "BYTES", value_parser = parse_size, default_value = "256M")]
    max_document: usize,
    /// Output file, written under a temporary name and renamed when it is complete; - is standard output [default: -]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Format of the rows [default: by the suffix of -o; csv on standard output, devices and pipes]
    #[arg(long, value_name = "FORMAT", value_parser = FORMATS)]
    output_format: Option<OutputFormat>,
    /// Columns in order, separated by commas; or columns to add to the default ones, each with a + before it, such as
    /// +page,+link_rel. --help lists them
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    columns: Vec<String>,
    #[command(flatten)]
    replace: ReplaceArgs,
    /// Exit with status 3 if a URL cannot be read; the output is written all the same
    #[arg(long)]
    fail_on_fault: bool,
    /// Print no summary, only errors
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    store: StoreArgs,
}

/// Examples and columns.
fn long_help() -> String {
    format!("{}\n\nColumns (--columns):\n{}", super::help::long_examples(EXAMPLES), describe_columns())
}

/// The state of a run: its output and what was counted.
struct Extraction<'a> {
    args: &'a ExtractArgs,
    context: DocumentContext,
    rows: LinkRows,
    documents: u64,
    /// Documents that could not be read to their end.
    unread: u64,
    defects: BTreeMap<DefectKind, u64>,
}

pub(crate) fn run(args: &ExtractArgs) -> Result<u8, CommandError> {
    args.store.apply()?;
    let columns = parse_columns(&args.columns)?;
    let (destination, format) = args.destination()?;
    let sources = input::list(&args.inputs)?;
    let files = FileRoles::new(args.replace.no_clobber).arguments(&args.inputs).destination(&destination, format);
    let replaced = files.check(&sources)?;
    let rows = LinkRows::create(&destination, format, &columns)?;
    let mut extraction = Extraction::new(args, rows);
    for source in sources.0 {
        extraction.add_source(source)?;
    }
    if extraction.documents == 0 && extraction.unread > 0 {
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
        Extraction { args, context, rows, documents: 0, unread: 0, defects: BTreeMap::new() }
    }

    fn add_source(&mut self, source: Source) -> Result<(), OutputError> {
        let name = source.name.clone();
        match read_document(source, self.args.max_document) {
            Ok(bytes) => {
                let markup = self.args.format.or_else(|| markup_of_name(&name));
                let context = DocumentContext { markup, ..self.context.clone() };
                let origin = LinkOrigin { source: &name, ..LinkOrigin::default() };
                self.add_document(&bytes, &context, &origin)
            }
            Err(message) => {
                print_error(&format!("{name}: {message}"));
                self.unread += 1;
                Ok(())
            }
        }
    }

    /// Writes the rows of a document as its references are found.
    fn add_document(
        &mut self,
        bytes: &[u8],
        context: &DocumentContext,
        origin: &LinkOrigin<'_>,
    ) -> Result<(), OutputError> {
        let page = context.base.as_deref().unwrap_or_default();
        let origin = LinkOrigin { page, ..*origin };
        let mut written = Ok(());
        let document = extract_each(bytes, context, &mut |link, scope| {
            written = self.rows.append(&origin, &link, &scope);
            written.is_ok()
        });
        written?;
        self.documents += 1;
        for defect in &document.defects {
            print_error(&format!("{}: {defect}", origin.source));
            *self.defects.entry(defect.kind).or_default() += defect.count;
            self.unread += u64::from(defect.kind.ends_document());
        }
        Ok(())
    }

    /// Completes the output, prints the summary and returns the exit status.
    fn finish(self) -> Result<u8, CommandError> {
        let Extraction { args, rows, documents, unread, defects, .. } = self;
        let (links, faulty) = (rows.links, rows.faulty);
        match rows.finish() {
            Ok(()) | Err(OutputError::ClosedPipe) => {}
            Err(error) => return Err(error.into()),
        }
        if !args.quiet {
            let defects: String = defects.iter().map(|(kind, count)| format!("; {count} {}", kind.name())).collect();
            let (links, documents) = (count_of(links, "IRI"), count_of(documents, "document"));
            print_error(&format!("{links} in {documents}, {faulty} of them faulty{defects}"));
        }
        match () {
            () if unread > 0 => Ok(exit::INPUT),
            () if faulty > 0 && args.fail_on_fault => Ok(exit::FAULTS),
            () => Ok(exit::SUCCESS),
        }
    }
}

/// Reads a document of at most `limit` bytes. The error is a message.
fn read_document(source: Source, limit: usize) -> Result<Vec<u8>, String> {
    // The document is parsed in place, so it is not mapped: another process may change a mapped file.
    let opened = source.open(OpenOptions { mmap: false, threads: 1 }).map_err(|defect| defect.to_string())?;
    let bytes = match opened {
        Opened::Mapped(mapping) => mapping.to_vec(),
        Opened::Stream(stream) => read_stream(stream, limit)?,
    };
    match bytes.len() {
        len if len > limit => Err(format!("the document is longer than {limit} bytes; allow more with --max-document")),
        _ => Ok(bytes),
    }
}

/// All bytes of a stream, but not many more than `limit`.
fn read_stream(mut stream: Stream, limit: usize) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut len = 0;
    while len <= limit {
        if bytes.len() == len {
            bytes.resize((len * 2).max(64 << 10), 0);
        }
        match stream.read(&mut bytes[len..]).map_err(|defect| defect.to_string())? {
            0 => break,
            count => len += count,
        }
    }
    bytes.truncate(len);
    Ok(bytes)
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
