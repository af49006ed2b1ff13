//! The flags of `canon`, declared once, and the [`Job`] that they mean. Refuses combinations that make no sense,
//! before anything is opened.

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::size::parse_size;
use crate::batch::{ColumnId, Columns};
use crate::canon::{Policy, Rung};
use crate::encoding::Charset;
use crate::iri::{Base, Intake};
use crate::key::KeyAlgorithm;
use crate::output::{Compression, Destination, Format};

/// Texts grow to three times their length when every byte is percent-encoded, and a column of one row group must
/// stay below 2 GiB.
const MOST_TEXT: usize = 512 << 20;

const EXAMPLES: &str = "\
Examples:
  One canonical URI a line, in the order of the input:
      irikey canon urls.txt

  A compressed crawl list to Parquet, with keys of all three rungs:
      irikey canon urls.txt.gz -o urls.parquet --key simple,syntax,scheme

  From a pipe, keys of what would be retrieved (fragments do not count):
      zcat urls.gz | irikey canon --drop-fragment -o urls.parquet

  Links of pages, resolved against the page that each stood on:
      irikey canon links.csv --column href --base-column page -o links.parquet

  How many distinct URIs? The summary on stderr says it; keep the numbers for a script:
      irikey canon @lists.txt -o all.parquet --report all.json";

/// What an input holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum InputFormat {
    /// By the file's name: .csv and .tsv (also before .gz or .zst) are tables, everything else is lines
    Auto,
    /// One URL a line
    Lines,
    /// Comma-separated values
    Csv,
    /// Tab-separated values
    Tsv,
}

/// Whether to show something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// When stderr is a terminal
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RungName {
    /// Scheme and host case, percent-encoding, mapping to a URI, dot segments (RFC 3987 section 5.3.2)
    Syntax,
    /// Also default ports, empty paths, hosts and per-scheme rules (section 5.3.3)
    Scheme,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum KeyRung {
    Simple,
    Syntax,
    Scheme,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum KeyHash {
    /// XXH3, 128 bits, seed 0
    Xxh3,
    /// The first 128 bits of BLAKE3, for inputs that an adversary may choose
    Blake3,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FormatName {
    /// Apache Parquet
    Parquet,
    /// Arrow IPC file
    Arrow,
    /// Arrow IPC stream
    ArrowStream,
    /// Comma-separated values with a header; keys in hexadecimal, nulls empty
    Csv,
    /// One JSON object a line; keys in hexadecimal, flags by name
    Jsonl,
    /// One canonical URI a line, an empty line where the record has a fault: line n is record n
    Text,
}

/// Flags of `canon`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{}", super::exit::help()))]
pub struct CanonArgs {
    /// Files to read, in this order; a directory stands for its files, @FILE for the names in it, a line each, and
    /// - for standard input, which is also read when there is no INPUT. Gzip and zstd are recognised by content
    #[arg(value_name = "INPUT")]
    inputs: Vec<PathBuf>,

    /// What the inputs hold
    #[arg(long, value_enum, default_value_t = InputFormat::Auto, help_heading = "Input")]
    format: InputFormat,
    /// Column that holds the URL: its name in the header, or its number from 1. Not with --format lines
    /// [default: the header's url, uri, iri, original_url, target, href, link, location or relative, or the only
    /// column besides the base]
    #[arg(long, value_name = "NAME|NUMBER", help_heading = "Input")]
    column: Option<String>,
    /// Column that holds the base of each URL, absolute; an empty one falls back to --base. Not with --format lines
    #[arg(long, value_name = "NAME|NUMBER", help_heading = "Input")]
    base_column: Option<String>,
    /// Byte between fields, or \t [default: a comma for csv, a tab for tsv]. Not with --format lines
    #[arg(long, value_name = "BYTE", value_parser = parse_delimiter, help_heading = "Input")]
    delimiter: Option<u8>,
    /// The first record is data, not a header: columns are then chosen by number. Not with --format lines
    #[arg(long, help_heading = "Input")]
    no_header: bool,
    /// Longest record, in bytes; a longer one ends its input with an error that names it. At most 512M
    #[arg(long, value_name = "BYTES", value_parser = parse_size, default_value = "128M", help_heading = "Input")]
    max_record: usize,
    /// Read files instead of mapping them into memory
    #[arg(long, help_heading = "Input")]
    no_mmap: bool,

    /// Base that relative references are resolved against when their record brings none; an absolute IRI
    #[arg(long, value_name = "URI", help_heading = "Canonical form")]
    base: Option<String>,
    /// Charset of the inputs, by a label of the Encoding Standard: records become UTF-8 in NFC (RFC 3987 section 3.1);
    /// one that is no text in it is a fault. Not a UTF-16 one: convert such files first
    #[arg(long, value_name = "LABEL", value_parser = parse_charset, help_heading = "Canonical form")]
    charset: Option<Charset>,
    /// Charset of the documents that the URLs stood in: queries of http and https URLs are percent-encoded in it, as
    /// browsers do, and not in UTF-8
    #[arg(long, value_name = "LABEL", value_parser = parse_charset, help_heading = "Canonical form")]
    query_charset: Option<Charset>,
    /// Resolve exactly as RFC 3986 section 5.2 says, leaving dot segments of the base itself. Needs --base or
    /// --base-column
    #[arg(long, help_heading = "Canonical form")]
    literal_base: bool,
    /// Refuse whatever the grammar of RFC 3987 refuses, instead of percent-encoding and flagging it
    #[arg(long, help_heading = "Canonical form")]
    strict: bool,
    /// Rung of RFC 3987 section 5.3 that the columns uri and key stand on
    #[arg(long, value_enum, default_value_t = RungName::Scheme, help_heading = "Canonical form")]
    rung: RungName,
    /// Further key columns, key_simple, key_syntax or key_scheme; a list with commas. Not with text output
    #[arg(long, value_name = "LIST", value_enum, value_delimiter = ',', help_heading = "Canonical form")]
    key: Vec<KeyRung>,
    /// Hash that keys are made with
    #[arg(long, value_enum, default_value_t = KeyHash::Xxh3, help_heading = "Canonical form")]
    key_hash: KeyHash,
    /// Leave fragments out of URIs and keys: what is retrieved is the same (RFC 3987 section 5.1)
    #[arg(long, help_heading = "Canonical form")]
    drop_fragment: bool,
    /// Scheme put before references without one that look like host/path, and flagged; for example https
    #[arg(long, value_name = "SCHEME", value_parser = parse_scheme, help_heading = "Canonical form")]
    assume_scheme: Option<String>,

    /// Output file, written under a temporary name and renamed when whole; - is standard output [default: -]
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
    /// Format of the output [default: by the suffix of -o: parquet, pq, arrow, feather, arrows, csv, jsonl, ndjson,
    /// txt; text on standard output]
    #[arg(long, value_name = "FORMAT", value_enum, help_heading = "Output")]
    output_format: Option<FormatName>,
    /// Columns and their order, a list with commas; or, each with a + before it, columns besides the default ones, such
    /// as +iri,+looks. `irikey schema` names them all. Not with text output
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "Output")]
    columns: Vec<String>,
    /// Codec of Parquet's text columns: zstd[:LEVEL], lz4, snappy or none [default: zstd:1]. Only with Parquet
    #[arg(long, value_name = "CODEC", help_heading = "Output")]
    compression: Option<Compression>,
    /// Input text that makes one row group or record batch, in bytes. At most 512M
    #[arg(long, value_name = "BYTES", value_parser = parse_size, default_value = "8M", help_heading = "Output")]
    row_group_size: usize,

    /// Worker threads [default: as many as there are cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), help_heading = "Work")]
    threads: Option<u16>,
    /// Input that a worker takes at a time, in bytes. At most 512M. The output does not depend on it
    #[arg(long, value_name = "BYTES", value_parser = parse_size, default_value = "1M", help_heading = "Work")]
    chunk_size: usize,

    /// Write the closing numbers, the policy and all errors to FILE as JSON
    #[arg(long, value_name = "FILE", help_heading = "Reporting")]
    report: Option<PathBuf>,
    /// Exit with status 3 when a record has a fault; the output is written all the same
    #[arg(long, help_heading = "Reporting")]
    fail_on_fault: bool,
    /// No closing summary and no progress; errors are still told
    #[arg(short, long, conflicts_with = "progress", help_heading = "Reporting")]
    quiet: bool,
    /// Show a progress bar on stderr
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = When::Auto, help_heading = "Reporting")]
    progress: When,
}

/// What `canon` has to do: flags, checked against each other and with their defaults filled in.
#[derive(Clone, Debug)]
pub struct Job {
    /// Inputs as they were named; `-` is standard input. Never empty.
    pub inputs: Vec<PathBuf>,
    /// What they hold.
    pub input_format: InputFormat,
    /// Column of the URL, a name or a number from 1.
    pub column: Option<String>,
    /// Column of the base, likewise.
    pub base_column: Option<String>,
    /// Byte between fields, where it is not the format's.
    pub delimiter: Option<u8>,
    /// Tables begin with a header; found out by looking unless it is denied.
    pub may_have_header: bool,
    /// Longest record, bytes.
    pub max_record_len: usize,
    /// Files are mapped.
    pub mmap: bool,
    /// Worker threads.
    pub threads: usize,
    /// Bytes of input that a worker takes at a time.
    pub chunk_len: usize,
    /// Bytes of input that make a row group.
    pub row_group_len: usize,
    /// What rows depend on.
    pub policy: Policy,
    /// Where the output goes.
    pub destination: Destination,
    /// Its format.
    pub format: Format,
    /// Codec of Parquet's text columns.
    pub compression: Compression,
    /// Its columns.
    pub columns: Columns,
    /// Where the report goes.
    pub report: Option<PathBuf>,
    /// Faults make the exit status 3.
    pub fail_on_fault: bool,
    /// Errors only.
    pub quiet: bool,
    /// Whether to show progress.
    pub progress: When,
}

impl CanonArgs {
    /// The job that the flags mean.
    ///
    /// # Errors
    /// Flags that contradict each other, as a sentence that says what to do.
    pub fn job(&self) -> Result<Job, String> {
        self.check_input()?;
        self.check_sizes()?;
        let (destination, format) = self.destination()?;
        self.check_output(&destination, format)?;
        let columns = self.columns(format)?;
        let policy = self.policy(&columns);
        let inputs = if self.inputs.is_empty() { vec![PathBuf::from("-")] } else { self.inputs.clone() };
        Ok(Job {
            inputs,
            input_format: self.format,
            column: self.column.clone(),
            base_column: self.base_column.clone(),
            delimiter: self.delimiter,
            may_have_header: !self.no_header,
            max_record_len: self.max_record,
            mmap: !self.no_mmap,
            threads: self.threads.map_or_else(cores, usize::from),
            chunk_len: self.chunk_size,
            row_group_len: self.row_group_size,
            policy,
            destination,
            format,
            compression: self.compression.unwrap_or_default(),
            columns,
            report: self.report.clone(),
            fail_on_fault: self.fail_on_fault,
            quiet: self.quiet,
            progress: if self.quiet { When::Never } else { self.progress },
        })
    }

    fn check_input(&self) -> Result<(), String> {
        let table = [
            ("--column", self.column.is_some()),
            ("--base-column", self.base_column.is_some()),
            ("--delimiter", self.delimiter.is_some()),
            ("--no-header", self.no_header),
        ];
        if let Some((flag, _)) = table.iter().find(|(_, given)| *given)
            && self.format == InputFormat::Lines
        {
            return Err(format!("{flag} is for tables, and --format lines has none; use --format csv or tsv"));
        }
        for (flag, column) in [("--column", &self.column), ("--base-column", &self.base_column)] {
            let is_number = |name: &String| name.bytes().all(|byte| byte.is_ascii_digit());
            if self.no_header && column.as_ref().is_some_and(|name| !is_number(name)) {
                return Err(format!("{flag} needs a number, because --no-header leaves columns without names"));
            }
        }
        if self.literal_base && self.base.is_none() && self.base_column.is_none() {
            return Err("--literal-base says how to resolve against a base; give --base or --base-column".to_string());
        }
        if let Some(charset) = self.charset.filter(|charset| charset.name().starts_with("UTF-16")) {
            return Err(format!(
                "--charset: lines of {} cannot be told apart; convert with iconv -t UTF-8",
                charset.name()
            ));
        }
        if let Some(fault) = self.base.as_deref().and_then(|base| Base::new(base.as_bytes()).err()) {
            return Err(format!("--base: {fault}"));
        }
        if self.inputs.is_empty() && std::io::stdin().is_terminal() {
            return Err("no input: name a file, or pipe lines into standard input (- reads the terminal)".to_string());
        }
        Ok(())
    }

    fn check_sizes(&self) -> Result<(), String> {
        let sizes = [
            ("--max-record", self.max_record),
            ("--row-group-size", self.row_group_size),
            ("--chunk-size", self.chunk_size),
        ];
        match sizes.iter().find(|(_, size)| *size > MOST_TEXT) {
            Some((flag, _)) => Err(format!("{flag} is at most 512M, so that texts stay below 2 GiB a column")),
            None => Ok(()),
        }
    }

    fn destination(&self) -> Result<(Destination, Format), String> {
        let named = self.output_format.map(FormatName::format);
        match &self.output {
            Some(path) if path.as_os_str() != "-" => {
                let format = named.or_else(|| Format::of_path(path)).ok_or_else(|| {
                    let suffixes: Vec<_> = Format::ALL.iter().flat_map(|format| format.suffixes()).copied().collect();
                    let path = path.display();
                    format!("{path}: no format has this suffix ({}); use --output-format", suffixes.join(", "))
                })?;
                Ok((Destination::File(path.clone()), format))
            }
            _ => Ok((Destination::Stdout, named.unwrap_or(Format::Text))),
        }
    }

    fn check_output(&self, destination: &Destination, format: Format) -> Result<(), String> {
        if self.compression.is_some() && format != Format::Parquet {
            return Err(format!("--compression is for Parquet, and the output is {}", format.name()));
        }
        if format == Format::Text && !(self.columns.is_empty() && self.key.is_empty()) {
            let flag = if self.key.is_empty() { "--columns" } else { "--key" };
            return Err(format!(
                "text output is one URI a line, without columns; leave {flag} out, or use -o FILE or --output-format"
            ));
        }
        if format.is_binary() && *destination == Destination::Stdout && std::io::stdout().is_terminal() {
            return Err(format!("{} is not for a terminal; use -o FILE, or pipe it", format.name()));
        }
        Ok(())
    }

    fn columns(&self, format: Format) -> Result<Columns, String> {
        if format == Format::Text {
            return Columns::named(["uri"]).map_err(|unknown| unknown.to_string());
        }
        let names = self.columns.iter().map(|name| name.trim());
        let added: Option<Vec<_>> = names.clone().map(|name| name.strip_prefix('+')).collect();
        let mut columns = match added {
            Some(added) => Columns::default_and(added),
            None => Columns::named(names),
        }
        .map_err(|unknown| format!("--columns: {unknown}; put + before all names or none"))?;
        columns.add_keys(&self.key.iter().map(|key| key.rung()).collect::<Vec<_>>());
        Ok(columns)
    }

    fn policy(&self, columns: &Columns) -> Policy {
        Policy {
            intake: if self.strict { Intake::Strict } else { Intake::Lenient },
            rung: match self.rung {
                RungName::Syntax => Rung::Syntax,
                RungName::Scheme => Rung::Scheme,
            },
            more_keys: columns.key_rungs(),
            algorithm: match self.key_hash {
                KeyHash::Xxh3 => KeyAlgorithm::Xxh3,
                KeyHash::Blake3 => KeyAlgorithm::Blake3,
            },
            base: self.base.as_ref().map(|base| base.clone().into_bytes()),
            literal_base: self.literal_base,
            drop_fragment: self.drop_fragment,
            assume_scheme: self.assume_scheme.clone(),
            charset: self.charset,
            query_charset: self.query_charset,
            keep_input: columns.contains(ColumnId::Input) || columns.contains(ColumnId::Looks),
        }
    }
}

impl KeyRung {
    fn rung(self) -> Rung {
        match self {
            KeyRung::Simple => Rung::Simple,
            KeyRung::Syntax => Rung::Syntax,
            KeyRung::Scheme => Rung::Scheme,
        }
    }
}

impl FormatName {
    fn format(self) -> Format {
        match self {
            FormatName::Parquet => Format::Parquet,
            FormatName::Arrow => Format::Arrow,
            FormatName::ArrowStream => Format::ArrowStream,
            FormatName::Csv => Format::Csv,
            FormatName::Jsonl => Format::JsonLines,
            FormatName::Text => Format::Text,
        }
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn parse_delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [b'\n' | b'\r' | b'"'] => Err("line ends and quotes have their own meaning in tables".to_string()),
        [byte] => Ok(*byte),
        _ => Err("a delimiter is one byte, or \\t".to_string()),
    }
}

/// `scheme = ALPHA *( ALPHA / DIGIT / "+" / "-" / "." )`, RFC 3986 section 3.1; in lower case, as it is written.
fn parse_charset(label: &str) -> Result<Charset, String> {
    Charset::named(label)
        .ok_or_else(|| "no charset has this label; for example windows-1251, Shift_JIS, GB18030".to_string())
}

fn parse_scheme(text: &str) -> Result<String, String> {
    let is_tail = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    match text.bytes().next() {
        Some(first) if first.is_ascii_alphabetic() && text.bytes().all(is_tail) => Ok(text.to_ascii_lowercase()),
        _ => Err("a scheme is a letter, then letters, digits, '+', '-' or '.'; for example https".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    fn job(flags: &str) -> Result<Job, String> {
        let words = ["irikey", "canon", "in.txt"].into_iter().chain(flags.split_whitespace());
        match Cli::try_parse_from(words).map_err(|error| error.to_string())?.command {
            Command::Canon(args) => args.job(),
            _ => unreachable!("the words say canon"),
        }
    }

    #[test]
    fn the_suffix_tells_the_format_unless_a_flag_does() {
        assert_eq!(job("").unwrap().format, Format::Text);
        assert_eq!(job("-o x.parquet").unwrap().format, Format::Parquet);
        assert_eq!(job("-o x.csv --output-format jsonl").unwrap().format, Format::JsonLines);
        assert_eq!(job("-o - --output-format csv").unwrap().destination, Destination::Stdout);
        assert!(job("-o x.xls").unwrap_err().contains("--output-format"));
    }

    #[test]
    fn columns_and_keys_agree_with_the_policy() {
        let job = |flags| job(flags).unwrap();
        let keys = job("-o x.parquet --key simple,scheme");
        assert_eq!(keys.policy.more_keys, [Rung::Simple, Rung::Scheme]);
        assert!(keys.policy.keep_input);
        let chosen = job("-o x.parquet --columns key_syntax,uri --key simple,syntax");
        assert_eq!(chosen.columns.names().collect::<Vec<_>>(), ["key_syntax", "key_simple", "uri"]);
        assert_eq!(chosen.policy.more_keys, [Rung::Syntax, Rung::Simple]);
        let added = job("-o x.parquet --columns +looks,+iri");
        assert_eq!(added.columns.names().skip(8).collect::<Vec<_>>(), ["flags", "looks", "iri"]);
        assert!(!chosen.policy.keep_input && !job("").policy.keep_input);
    }

    #[test]
    fn contradictions_are_usage_errors() {
        let refused = [
            ("--format lines --column url", "--format csv"),
            ("--no-header --column url", "needs a number"),
            ("--literal-base", "--base"),
            ("-o x.csv --compression lz4", "Parquet"),
            ("--key simple", "text output"),
            ("--columns key", "text output"),
            ("-o x.csv --columns kye", "kye"),
            ("-o x.csv --columns +iri,uri", "put + before all names or none"),
            ("--charset utf-16", "iconv"),
            ("--charset klingon", "no charset has this label"),
            ("--chunk-size 1G", "512M"),
            ("--chunk-size 0", "at least 1"),
            ("--threads 0", "--threads"),
            ("--compression zstd:99", "1 to 22"),
            ("--assume-scheme 1x", "a scheme is"),
            ("--delimiter ab", "one byte"),
            ("--quiet --progress always", "--quiet"),
        ];
        for (flags, advice) in refused {
            let message = job(flags).unwrap_err();
            assert!(message.contains(advice), "{flags}: {message}");
        }
    }
}
