//! The flags that say what is read: inputs, their format, its columns.

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::sizes::at_most_text;
use crate::cli::size::parse_size;
use crate::record::access_log::LogFormat;

/// What an input holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum InputFormat {
    /// Each input by its first records: WARC, ARC, CDX, CDXJ, JSON lines, crawl.log or an access log in the common
    /// or combined format; else by its name: .csv and .tsv (also before .gz and the
    /// like) are tables; everything else is lines
    Auto,
    /// One URL a line
    Lines,
    /// Comma-separated values
    Csv,
    /// Tab-separated values
    Tsv,
    /// CDX: columns between spaces, by the letters of the header line; 11, 10 or 9 of the usual ones without it
    Cdx,
    /// CDXJ: key, time and JSON, as Common Crawl and pywb write it
    Cdxj,
    /// Heritrix's crawl.log
    CrawlLog,
    /// Heritrix's frontier journal, the recover log
    FrontierJournal,
    /// WARC and ARC, one row a record of any type
    Warc,
    /// WAT, one row a link, resolved against its page
    Wat,
    /// A JSON object a line; --column names the member with the URL, or points to it: /page/url (RFC 6901)
    Jsonl,
    /// An access log of a web server, by --log-format; its targets need --base, unless the format has the host
    AccessLog,
}

/// Flags of every command that reads records.
#[derive(Debug, Args)]
pub struct InputArgs {
    /// Files to read, in this order; a directory stands for its files, @FILE for the names in it, a line each, and -
    /// for standard input, which is also read when there is no INPUT. Gzip, zstd, LZ4, bzip2 and xz are recognised by
    /// content
    #[arg(value_name = "INPUT")]
    inputs: Vec<PathBuf>,

    /// What the inputs hold
    #[arg(long, value_enum, default_value_t = InputFormat::Auto, help_heading = "Input")]
    format: InputFormat,
    /// Column that holds the URL: its name in the header, or its number from 1. Only for tables
    /// [default: the header's url, uri, iri, original_url, target, href, link, location or relative, or the only
    /// column besides those asked for]
    #[arg(long, value_name = "NAME|NUMBER", help_heading = "Input")]
    column: Option<String>,
    /// Column that holds the base of each URL, absolute; an empty one falls back to --base. Only for tables
    #[arg(long, value_name = "NAME|NUMBER", help_heading = "Input")]
    base_column: Option<String>,
    /// Column that holds the charset that each record is written in, by a label of the Encoding Standard; an empty one
    /// falls back to --charset, an unknown one is a fault. Only for tables
    #[arg(long, value_name = "NAME|NUMBER", help_heading = "Input")]
    charset_column: Option<String>,
    /// Column that holds the charset of the document that each URL stood in, as --query-charset has it for all; an empty
    /// one falls back to that. Only for tables
    #[arg(long, value_name = "NAME|NUMBER", help_heading = "Input")]
    query_charset_column: Option<String>,
    /// Byte between fields, or \t [default: a comma for csv, a tab for tsv]. Only for tables
    #[arg(long, value_name = "BYTE", value_parser = parse_delimiter, help_heading = "Input")]
    delimiter: Option<u8>,
    /// The first record is data, not a header: columns are then chosen by number. Only for tables
    #[arg(long, help_heading = "Input")]
    no_header: bool,
    /// Format of access logs: common, combined, vhost_combined, or a string of Apache's mod_log_config with %r or %U
    /// [default: combined]. Only with --format access-log
    #[arg(long, value_name = "FORMAT", value_parser = LogFormat::parse, help_heading = "Input")]
    log_format: Option<LogFormat>,
    /// Types of the WARC records that become rows, a list with commas, such as response,revisit; the others are counted
    /// [default: all]. ARC has warcinfo and response
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "Input")]
    record_types: Vec<String>,
    /// Longest record, in bytes; a longer one ends its input with an error that names it. At most 512M
    #[arg(long, value_name = "BYTES", value_parser = parse_size, default_value = "128M", help_heading = "Input")]
    max_record: usize,
    /// Read files instead of mapping them into memory
    #[arg(long, help_heading = "Input")]
    no_mmap: bool,
}

/// What is read: [`InputArgs`], checked against each other.
#[derive(Clone, Debug)]
pub struct Inputs {
    /// Inputs as they were named; `-` is standard input. Never empty.
    pub paths: Vec<PathBuf>,
    /// What they hold.
    pub format: InputFormat,
    /// Column of the URL, a name or a number from 1.
    pub column: Option<String>,
    /// Column of the base, likewise.
    pub base_column: Option<String>,
    /// Column of the records' charsets, likewise.
    pub charset_column: Option<String>,
    /// Column of the documents' charsets, likewise.
    pub query_charset_column: Option<String>,
    /// Byte between fields, where it is not the format's.
    pub delimiter: Option<u8>,
    /// Tables begin with a header; found out by looking unless it is denied.
    pub may_have_header: bool,
    /// Format of access logs.
    pub log_format: LogFormat,
    /// Types of archives' records that become rows; all if there are none.
    pub record_types: Vec<String>,
    /// Longest record, bytes.
    pub max_record_len: usize,
    /// Files are mapped.
    pub mmap: bool,
}

impl InputArgs {
    /// What the flags mean.
    ///
    /// # Errors
    /// Flags that contradict each other, as a sentence that says what to do.
    pub fn inputs(&self) -> Result<Inputs, String> {
        self.check_table()?;
        at_most_text("--max-record", self.max_record)?;
        if self.inputs.is_empty() && std::io::stdin().is_terminal() {
            return Err("no input: name a file, or pipe lines into standard input (- reads the terminal)".to_string());
        }
        Ok(Inputs {
            paths: if self.inputs.is_empty() { vec![PathBuf::from("-")] } else { self.inputs.clone() },
            format: self.format,
            column: self.column.clone(),
            base_column: self.base_column.clone(),
            charset_column: self.charset_column.clone(),
            query_charset_column: self.query_charset_column.clone(),
            delimiter: self.delimiter,
            may_have_header: !self.no_header,
            log_format: self.log_format.clone().unwrap_or_default(),
            record_types: self.record_types.clone(),
            max_record_len: self.max_record,
            mmap: !self.no_mmap,
        })
    }

    /// Records bring their own bases.
    pub fn has_bases(&self) -> bool {
        self.base_column.is_some()
    }

    /// Records name their own charsets.
    pub fn has_charsets(&self) -> bool {
        self.charset_column.is_some()
    }

    /// Records name the charsets of their documents.
    pub fn has_query_charsets(&self) -> bool {
        self.query_charset_column.is_some()
    }

    /// The flags that choose columns.
    fn columns(&self) -> [(&'static str, &Option<String>); 4] {
        [
            ("--column", &self.column),
            ("--base-column", &self.base_column),
            ("--charset-column", &self.charset_column),
            ("--query-charset-column", &self.query_charset_column),
        ]
    }

    /// Columns can be chosen: of tables, and of JSON lines.
    fn may_be_table(&self) -> bool {
        matches!(self.format, InputFormat::Auto | InputFormat::Csv | InputFormat::Tsv | InputFormat::Jsonl)
    }

    /// Flags of tables, where there may be one.
    fn check_table(&self) -> Result<(), String> {
        let columns = self.columns();
        let others = [("--delimiter", self.delimiter.is_some()), ("--no-header", self.no_header)];
        let table = columns.iter().map(|(flag, column)| (*flag, column.is_some())).chain(others);
        if self.log_format.is_some() && self.format != InputFormat::AccessLog {
            return Err("--log-format is for access logs; use --format access-log".to_string());
        }
        if let Some((flag, _)) = table.into_iter().find(|(_, given)| *given)
            && !self.may_be_table()
        {
            return Err(format!("{flag} is for tables; use --format csv or tsv"));
        }
        let is_number = |name: &String| name.bytes().all(|byte| byte.is_ascii_digit());
        for (flag, column) in columns {
            if self.no_header && column.as_ref().is_some_and(|name| !is_number(name)) {
                return Err(format!("{flag} needs a number, because --no-header leaves columns without names"));
            }
        }
        Ok(())
    }
}

fn parse_delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [b'\n' | b'\r' | b'"'] => Err("line ends and quotes have their own meaning in tables".to_string()),
        [byte] => Ok(*byte),
        _ => Err("a delimiter is one byte, or \\t".to_string()),
    }
}
