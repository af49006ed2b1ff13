//! `extract`: HTML and XML documents in, a row for every IRI in them out, for `canon` to read. One document is in memory
//! at a time. In: flags. Out: rows, what was wrong on stderr, an exit status.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::say;
use super::size::parse_size;
use crate::encoding::Charset;
use crate::extract::{DefectKind, Document, DocumentContext, Link, Markup, extract};
use crate::input::{self, OpenOptions, Opened, Source, Stream};
use crate::iri::Base;
use crate::output::{Destination, OutputError, OutputFormat, PlainValue, RowWriter};
use crate::process::exit;

const EXAMPLES: &str = "\
Examples:
  The canonical URIs of a page's links, relative ones resolved:
      irikey extract page.html --base https://example.org/page.html |
          irikey canon --format csv --base-column base

  All documents of a folder to one table:
      irikey extract pages/ -o links.csv";

/// The columns of the rows.
const COLUMNS: [&str; 9] = ["url", "base", "charset", "element", "attribute", "offset", "source", "fault", "fault_at"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum MarkupName {
    /// By the file's name, then by its first bytes
    Auto,
    /// HTML, by the HTML Standard
    Html,
    /// XML; XHTML, SVG, feeds and sitemaps are XML
    Xml,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RowFormat {
    /// Comma-separated values with a header
    Csv,
    /// Tab-separated values with a header
    Tsv,
    /// One JSON object a line
    Jsonl,
}

/// Write a row for every IRI in HTML and XML documents, with its base, for canon to read
///
/// Rows have the columns url (in UTF-8), base (absolute, or empty), charset (of the document), element, attribute, offset
/// (byte of the document at which the attribute's value begins), source, and, where a URL cannot be read, fault and
/// fault_at (byte of the document); url and base are empty then, which `canon` takes for a fault too. A document is in the charset of its byte order mark, else that of --charset, else the
/// one that it declares, else that of --default-charset.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{}", super::exit_help()))]
pub struct ExtractArgs {
    /// Documents to read, each a file; a directory stands for its files, @FILE for the names in it, a line each, and - for
    /// standard input, which is also read when there is no INPUT. Gzip, zstd, LZ4, bzip2 and xz are recognised
    /// by content
    #[arg(value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// How the documents are marked up
    #[arg(long, value_enum, default_value_t = MarkupName::Auto)]
    format: MarkupName,
    /// Where the documents were found: an absolute IRI, the base of their references and of their own bases
    #[arg(long, value_name = "URI", value_parser = parse_base)]
    base: Option<String>,
    /// Charset of the documents as their transport named it, by a label of the Encoding Standard
    #[arg(long, value_name = "LABEL", value_parser = parse_charset)]
    charset: Option<Charset>,
    /// Charset of documents that nobody names one for
    #[arg(long, value_name = "LABEL", value_parser = parse_charset, default_value = "utf-8")]
    default_charset: Charset,
    /// Longest document, in bytes; a longer one is an error and gives no rows
    #[arg(long, value_name = "BYTES", value_parser = parse_size, default_value = "256M")]
    max_document: usize,
    /// Output file, written under a temporary name and renamed when whole; - is standard output [default: -]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Format of the rows [default: by the suffix of -o, csv on standard output]
    #[arg(long, value_name = "FORMAT", value_enum)]
    output_format: Option<RowFormat>,
    /// Exit with status 3 when a URL could not be read; the output is written all the same
    #[arg(long)]
    fail_on_fault: bool,
    /// No closing line; errors are still told
    #[arg(short, long)]
    quiet: bool,
}

/// What the run came to.
#[derive(Default)]
struct Count {
    documents: u64,
    links: u64,
    faulty: u64,
    unread: u64,
    defects: BTreeMap<DefectKind, u64>,
}

pub(super) fn run(args: &ExtractArgs) -> u8 {
    let (destination, format) = match destination(args) {
        Ok(found) => found,
        Err(message) => return fail(&message, exit::USAGE),
    };
    let sources = match input::list(&args.inputs) {
        Ok(sources) => sources,
        Err(error) => return fail(&error.to_string(), exit::INPUT),
    };
    let mut count = Count::default();
    match write_all(args, sources.0, &destination, format, &mut count) {
        Ok(()) | Err(OutputError::ClosedPipe) => {}
        Err(error) => return fail(&error.to_string(), exit::OUTPUT),
    }
    if !args.quiet {
        say(&count.to_string());
    }
    match count {
        Count { unread, .. } if unread > 0 => exit::INPUT,
        Count { faulty, .. } if faulty > 0 && args.fail_on_fault => exit::FAULTS,
        _ => exit::SUCCESS,
    }
}

fn fail(message: &str, status: u8) -> u8 {
    say(message);
    status
}

fn destination(args: &ExtractArgs) -> Result<(Destination, OutputFormat), String> {
    let named = args.output_format.map(|format| match format {
        RowFormat::Csv => OutputFormat::Csv,
        RowFormat::Tsv => OutputFormat::Tsv,
        RowFormat::Jsonl => OutputFormat::JsonLines,
    });
    let Some(path) = args.output.as_ref().filter(|path| path.as_os_str() != "-") else {
        return Ok((Destination::Stdout, named.unwrap_or(OutputFormat::Csv)));
    };
    let is_text =
        |format: &OutputFormat| matches!(format, OutputFormat::Csv | OutputFormat::Tsv | OutputFormat::JsonLines);
    let format = named.or_else(|| OutputFormat::of_path(path).filter(is_text));
    let format =
        format.ok_or_else(|| format!("{}: rows are CSV, TSV or JSON lines; use --output-format", path.display()))?;
    Ok((Destination::File(path.clone()), format))
}

fn write_all(
    args: &ExtractArgs,
    sources: Vec<Source>,
    destination: &Destination,
    format: OutputFormat,
    count: &mut Count,
) -> Result<(), OutputError> {
    let mut writer = RowWriter::create(destination, format, &COLUMNS)?;
    for source in sources {
        let name = source.name.clone();
        match read(source, args.max_document) {
            Ok(bytes) => write_document(&name, &bytes, args, &mut writer, count)?,
            Err(message) => {
                say(&format!("{name}: {message}"));
                count.unread += 1;
            }
        }
    }
    writer.finish()?;
    Ok(())
}

/// A document's bytes.
enum Bytes {
    Mapped(std::sync::Arc<input::mmap::MappedFile>),
    Read(Vec<u8>),
}

impl std::ops::Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Mapped(mapping) => mapping,
            Bytes::Read(bytes) => bytes,
        }
    }
}

fn read(source: Source, most: usize) -> Result<Bytes, String> {
    let too_long = || format!("longer than {most} bytes; use a larger --max-document");
    match source.open(OpenOptions { mmap: true, threads: 1 }).map_err(|defect| defect.to_string())? {
        Opened::Mapped(mapping) if mapping.len() > most => Err(too_long()),
        Opened::Mapped(mapping) => Ok(Bytes::Mapped(mapping)),
        Opened::Stream(stream) => match read_stream(stream, most)? {
            bytes if bytes.len() > most => Err(too_long()),
            bytes => Ok(Bytes::Read(bytes)),
        },
    }
}

/// All bytes of a stream, or one more than `most`.
fn read_stream(mut stream: Stream, most: usize) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut len = 0;
    while len <= most {
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

fn write_document(
    name: &str,
    bytes: &[u8],
    args: &ExtractArgs,
    writer: &mut RowWriter,
    count: &mut Count,
) -> Result<(), OutputError> {
    let context = DocumentContext {
        markup: match args.format {
            MarkupName::Auto => markup_by_name(name),
            MarkupName::Html => Some(Markup::Html),
            MarkupName::Xml => Some(Markup::Xml),
        },
        charset: args.charset,
        default_charset: args.default_charset,
        base: args.base.as_ref().map(|base| base.clone().into_bytes()),
    };
    let document = extract(bytes, &context);
    count.documents += 1;
    for defect in &document.defects {
        say(&format!("{name}: {defect}"));
        *count.defects.entry(defect.kind).or_default() += defect.count;
        count.unread += u64::from(defect.kind.ends_document());
    }
    for link in &document.links {
        count.links += 1;
        count.faulty += u64::from(link.defect.is_some());
        append(name, &document, link, writer)?;
    }
    Ok(())
}

fn append(name: &str, document: &Document, link: &Link, writer: &mut RowWriter) -> Result<(), OutputError> {
    let base = &document.bases[link.base];
    // A row without a URL brings no base either: `canon` would take the base for it.
    let is_fine = link.defect.is_none();
    let (fault, fault_at) = match link.defect {
        None => (PlainValue::Null, PlainValue::Null),
        Some((kind, at)) => (PlainValue::from(kind.name()), PlainValue::Number(at)),
    };
    writer.append(&[
        if is_fine { PlainValue::Bytes(&link.url) } else { PlainValue::Null },
        if is_fine && !base.is_empty() { PlainValue::Bytes(base) } else { PlainValue::Null },
        document.charset.name().into(),
        link.element.as_str().into(),
        link.attribute.into(),
        PlainValue::Number(link.offset),
        name.into(),
        fault,
        fault_at,
    ])
}

/// What a file's name says of its markup, a final `.gz` or `.zst` aside.
fn markup_by_name(name: &str) -> Option<Markup> {
    let name = name.to_ascii_lowercase();
    let name = name.strip_suffix(".gz").or(name.strip_suffix(".zst")).unwrap_or(&name);
    match name.rsplit_once('.')?.1 {
        "html" | "htm" => Some(Markup::Html),
        "xml" | "xhtml" | "svg" | "rss" | "atom" | "rdf" | "xsd" | "xsl" | "xslt" | "opml" => Some(Markup::Xml),
        _ => None,
    }
}

fn parse_charset(label: &str) -> Result<Charset, String> {
    Charset::named(label)
        .ok_or_else(|| "no charset has this label; for example windows-1251, Shift_JIS, GB18030".to_string())
}

fn parse_base(base: &str) -> Result<String, String> {
    Base::new(base.as_bytes()).map(|_| base.to_string()).map_err(|fault| fault.to_string())
}

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Count { documents, links, faulty, .. } = self;
        write!(f, "{links} IRIs in {documents} documents, {faulty} of them faulty")?;
        for (kind, count) in &self.defects {
            write!(f, "; {count} {}", kind.name())?;
        }
        Ok(())
    }
}
