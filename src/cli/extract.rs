//! `extract`: writes a row for every IRI in HTML and XML documents, as an input for `canon`. One document is held in memory
//! at a time.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;

use super::args::output::{ReplaceArgs, is_device_or_pipe};
use super::args::policy::parse_charset;
use super::args::values::{Choices, parse_size};
use super::error::CommandError;
use super::file_roles::FileRoles;
use super::files::abandoned;
use super::report::replaced_to_text;
use super::terminal::{count_of, print_error, print_to_stderr};
use crate::encoding::Charset;
use crate::extract::{DefectKind, Document, DocumentContext, Link, Markup, extract};
use crate::input::{self, OpenOptions, Opened, Source, Stream};
use crate::iri::Base;
use crate::output::{Destination, OutputError, OutputFormat, PlainValue, RowWriter};
use crate::process::exit;

const EXAMPLES: &str = "\
Examples:
  The canonical URIs of the links of a page, relative ones resolved:
      irikey extract page.html --base https://example.org/page.html |
          irikey canon --format csv --base-column base

  All documents of a directory to one table:
      irikey extract pages/ -o links.csv";

/// The columns of the rows.
const COLUMNS: [&str; 9] =
    ["url", "base", "charset", "element", "attribute", "record_offset", "source", "fault", "fault_at"];

/// `None`: to be recognized by name and content. Under a name of its own, because a flag of type `Option` has no default.
type MarkupChoice = Option<Markup>;

const MARKUPS: Choices<MarkupChoice> = Choices(&[
    ("auto", None, "Recognize by the name of the file, then by its first bytes"),
    ("html", Some(Markup::Html), "HTML, parsed as in the HTML Standard"),
    ("xml", Some(Markup::Xml), "XML, including XHTML, SVG, feeds and sitemaps"),
]);

const FORMATS: Choices<OutputFormat> = Choices(&[
    ("csv", OutputFormat::Csv, "Comma-separated values with a header"),
    ("tsv", OutputFormat::Tsv, "Tab-separated values with a header"),
    ("jsonl", OutputFormat::JsonLines, "One JSON object per line"),
]);

/// Write a row for every IRI in HTML and XML documents, as an input for canon
///
/// The columns are url (in UTF-8), base (absolute, or empty), charset (of the document), element, attribute, offset (of the
/// attribute's value in the document, in bytes), source, and fault and fault_at (byte of the document) for a URL that
/// cannot be read. Its url and base are empty, which is a fault for canon as well. The charset of a document is that of its
/// byte order mark; otherwise that of --charset; otherwise the one that it declares; otherwise --default-charset.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = super::help::long_examples(EXAMPLES))]
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
    #[command(flatten)]
    replace: ReplaceArgs,
    /// Exit with status 3 if a URL cannot be read; the output is written all the same
    #[arg(long)]
    fail_on_fault: bool,
    /// Print no summary, only errors
    #[arg(short, long)]
    quiet: bool,
}

/// The state of a run: its output and what was counted.
struct Extraction<'a> {
    args: &'a ExtractArgs,
    context: DocumentContext,
    writer: RowWriter,
    documents: u64,
    links: u64,
    faulty: u64,
    /// Documents that could not be read to their end.
    unread: u64,
    defects: BTreeMap<DefectKind, u64>,
}

pub(crate) fn run(args: &ExtractArgs) -> Result<u8, CommandError> {
    let (destination, format) = args.destination()?;
    let sources = input::list(&args.inputs)?;
    let files = FileRoles::new(args.replace.no_clobber).arguments(&args.inputs).destination(&destination, format);
    let replaced = files.check(&sources)?;
    let mut extraction = Extraction::create(args, &destination, format)?;
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
            CommandError::Usage(format!("{path}: rows are written as CSV, TSV or JSON lines; use --output-format"))
        })?;
        Ok((self.replace.file(path), format))
    }
}

impl<'a> Extraction<'a> {
    fn create(
        args: &'a ExtractArgs,
        destination: &Destination,
        format: OutputFormat,
    ) -> Result<Extraction<'a>, CommandError> {
        let context = DocumentContext {
            markup: args.format,
            charset: args.charset,
            default_charset: args.default_charset,
            base: args.base.as_ref().map(|base| base.clone().into_bytes()),
        };
        let writer = RowWriter::create(destination, format, &COLUMNS)?;
        let defects = BTreeMap::new();
        Ok(Extraction { args, context, writer, documents: 0, links: 0, faulty: 0, unread: 0, defects })
    }

    fn add_source(&mut self, source: Source) -> Result<(), OutputError> {
        let name = source.name.clone();
        match read_document(source, self.args.max_document) {
            Ok(bytes) => self.add_document(&name, &bytes),
            Err(message) => {
                print_error(&format!("{name}: {message}"));
                self.unread += 1;
                Ok(())
            }
        }
    }

    fn add_document(&mut self, name: &str, bytes: &[u8]) -> Result<(), OutputError> {
        let markup = self.args.format.or_else(|| markup_of_name(name));
        let document = extract(bytes, &DocumentContext { markup, ..self.context.clone() });
        self.documents += 1;
        for defect in &document.defects {
            print_error(&format!("{name}: {defect}"));
            *self.defects.entry(defect.kind).or_default() += defect.count;
            self.unread += u64::from(defect.kind.ends_document());
        }
        document.links.iter().try_for_each(|link| self.add_link(name, &document, link))
    }

    fn add_link(&mut self, name: &str, document: &Document, link: &Link) -> Result<(), OutputError> {
        self.links += 1;
        self.faulty += u64::from(link.defect.is_some());
        let base = &document.bases[link.base];
        let (fault, fault_at) = match link.defect {
            None => (PlainValue::Null, PlainValue::Null),
            Some((kind, at)) => (PlainValue::from(kind.name()), PlainValue::Number(at)),
        };
        // A row without a URL has no base either, because canon would resolve the empty reference to the base.
        let is_readable = link.defect.is_none();
        self.writer.append(&[
            if is_readable { PlainValue::Bytes(&link.url) } else { PlainValue::Null },
            if is_readable && !base.is_empty() { PlainValue::Bytes(base) } else { PlainValue::Null },
            document.charset.name().into(),
            link.element.as_str().into(),
            link.attribute.into(),
            PlainValue::Number(link.offset),
            name.into(),
            fault,
            fault_at,
        ])
    }

    /// Completes the output, prints the summary and returns the exit status.
    fn finish(self) -> Result<u8, CommandError> {
        let Extraction { args, writer, documents, links, faulty, unread, defects, .. } = self;
        match writer.finish() {
            Ok(_) | Err(OutputError::ClosedPipe) => {}
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

/// The markup that the suffix of a file name stands for, apart from a final `.gz` or `.zst`.
fn markup_of_name(name: &str) -> Option<Markup> {
    let name = name.to_ascii_lowercase();
    let name = name.strip_suffix(".gz").or(name.strip_suffix(".zst")).unwrap_or(&name);
    match name.rsplit_once('.')?.1 {
        "html" | "htm" => Some(Markup::Html),
        "xml" | "xhtml" | "svg" | "rss" | "atom" | "rdf" | "xsd" | "xsl" | "xslt" | "opml" => Some(Markup::Xml),
        _ => None,
    }
}

fn parse_base(base: &str) -> Result<String, String> {
    Base::new(base.as_bytes()).map(|_| base.to_string()).map_err(|fault| fault.to_string())
}
