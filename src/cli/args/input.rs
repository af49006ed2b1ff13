//! The flags that say which records are read, and the library options that they stand for.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use serde_json::{Value, json};

use super::values::{Named, parse_number_from, parse_size_up_to};
use super::work::WorkArgs;
use crate::cli::error::CommandError;
use crate::cli::terminal::print_error;
use crate::input::{AHEAD_LEN, Sources, list_name, list_prefixed, may_have_members};
use crate::record::access_log::LogFormat;
use crate::record::archive::RecordTypes;
use crate::record::csv::{ColumnChoice, CsvHeader, CsvOptions, CsvQuote};
use crate::record::{AUTO, FormatOptions, InputFormat};
use crate::remote::{MAX_READ_AHEAD, RemoteUrl, StoreOption, set_options, set_read_ahead};
use crate::run::{Budget, MAX_RECORD_LEN, RunOptions, Summary, WorkerNeed};

/// The inputs of every command that reads files.
#[derive(Debug, Args)]
pub(crate) struct SourceArgs {
    /// Files to read, in this order. A directory stands for all files below it, except names that begin with . or _; a ZIP
    /// or WACZ archive for its members ('x.wacz!pages/*' chooses some); @FILE for the inputs that FILE lists, one per line.
    /// s3://BUCKET/KEY, gs://, az:// and https:// name objects in stores and files on servers. - is standard input, which
    /// is also read if there is no INPUT. Gzip, zstd, LZ4, bzip2 and xz are recognized by content
    #[arg(value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,

    /// Put PREFIX before each name in a list (@FILE), such as the directory or the address to which the names are relative
    #[arg(long, value_name = "PREFIX", help_heading = "Input")]
    prefix: Option<OsString>,
}

/// Flags of every command that reads records.
#[derive(Debug, Args)]
pub(crate) struct InputArgs {
    #[command(flatten)]
    pub(crate) files: SourceArgs,
    /// Format of the inputs. Parquet and Arrow files are recognized by content and need no format
    #[arg(short, long, value_name = "FORMAT", value_parser = format_names(), default_value = AUTO, help_heading = "Input")]
    format: String,
    /// Column that holds the URL: its name in the header, or its number from 1. Only for tables and JSON lines
    /// [default: the first of url, uri, iri, original_url, target, href, link, location and relative in the header, or
    /// the only column that no other flag names]
    #[arg(long, value_name = "NAME|NUMBER", help_heading = "Input")]
    column: Option<String>,
    /// Column that holds the base of each URL, an absolute IRI; --base applies if it is empty. Only for tables and
    /// JSON lines
    #[arg(long, value_name = "NAME|NUMBER", help_heading = "Input")]
    pub(crate) base_column: Option<String>,
    /// Column that holds the charset of each record, a label of the Encoding Standard; --charset applies if it is empty. An
    /// unknown label is a fault. Only for CSV and TSV
    #[arg(long, value_name = "NAME|NUMBER", help_heading = "Input")]
    pub(super) charset_column: Option<String>,
    /// Column that holds the charset of the document in which each URL was found; --query-charset applies if it is empty.
    /// Only for CSV and TSV
    #[arg(long, value_name = "NAME|NUMBER", help_heading = "Input")]
    pub(super) query_charset_column: Option<String>,
    /// Byte between fields, or \t [default: a tab for tsv; for csv the byte that a first line such as sep=; states, otherwise
    /// a comma, or a semicolon, tab or | if it separates the names in the header]. Only for CSV and TSV
    #[arg(long, value_name = "BYTE", value_parser = parse_table_byte, help_heading = "Input")]
    delimiter: Option<u8>,
    /// Byte around fields that contain delimiters or line ends, or none [default: " for csv, none for tsv or with tabs as
    /// delimiters]. Only for CSV and TSV
    #[arg(long, value_name = "BYTE|none", value_parser = parse_quote, help_heading = "Input")]
    quote: Option<CsvQuote>,
    /// Read the first record as data, not as a header; columns are then chosen by number. Only for CSV and TSV
    #[arg(long, help_heading = "Input")]
    no_header: bool,
    /// Format of access logs: common, combined, vhost_combined, or a format string of Apache's mod_log_config with %r or
    /// %U [default: combined]. Only with --format access-log
    #[arg(long, value_name = "FORMAT", value_parser = parse_log_format, help_heading = "Input")]
    log_format: Option<String>,
    /// Types of the WARC records that become rows, separated by commas, such as response,request; or all. The others are
    /// only counted [default: response,revisit,resource,conversion; for cdxj and zipnum response,revisit,resource,metadata,
    /// except records of the media type application/warc-fields]. ARC files have the types warcinfo and response
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = RECORD_TYPES, hide_possible_values = true,
          help_heading = "Input")]
    pub(crate) record_types: Vec<String>,
    /// Longest record in bytes. A longer one has a fault, and only its beginning is kept; in Parquet and Arrow files it ends
    /// its input with an error. At most 512M
    #[arg(long, value_name = "BYTES", value_parser = parse_size_up_to::<MAX_RECORD_LEN>, default_value = "128M",
          help_heading = "Input")]
    max_record: usize,
    /// Stop after N records of the input, in order, counted before --inner-spaces split divides them. Reads with one thread
    #[arg(long, value_name = "N", value_parser = parse_number_from::<u64, 0>, allow_negative_numbers = true,
          help_heading = "Input")]
    pub(crate) limit: Option<u64>,
    /// Read files instead of mapping them into memory
    #[arg(long, help_heading = "Input")]
    no_mmap: bool,
    #[command(flatten)]
    store: StoreArgs,
}

/// Flags of every command that reads or writes remote objects.
#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    /// Set an option of the stores that s3://, gs://, az:// and https:// inputs are in, such as endpoint=URL,
    /// region=NAME, path_style=true, anonymous=true, connect_timeout=5s, read_timeout=30s or retry_timeout=180s. Repeat the
    /// flag for more
    // A text, because the parser of flags would repeat a wrong option with its value, which may be a secret.
    #[arg(long = "store-option", value_name = "KEY=VALUE", help_heading = "Input")]
    options: Vec<String>,
}

impl StoreArgs {
    /// Sets the options of this process.
    pub(crate) fn apply(&self) -> Result<(), CommandError> {
        let parse = |text: &String| text.parse::<StoreOption>();
        let options: Result<Vec<_>, String> = self.options.iter().map(parse).collect();
        set_options(&options.map_err(|error| CommandError::Usage(format!("--store-option: {error}")))?);
        Ok(())
    }
}

impl SourceArgs {
    /// Refuses to wait for a terminal that was not named.
    fn check_terminal(&self) -> Result<(), CommandError> {
        match self.inputs.is_empty() && std::io::stdin().is_terminal() {
            true => Err(CommandError::usage(
                "no input: name a file, or pipe records into standard input (- reads from the terminal)",
            )),
            false => Ok(()),
        }
    }

    /// An input is in a store, or a list, which may name objects in stores.
    fn may_be_remote(&self) -> bool {
        let is_remote = |input: &PathBuf| RemoteUrl::of_path(input).is_some();
        self.inputs.iter().any(|input| list_name(input.as_os_str()).is_some() || is_remote(input))
    }

    /// The sources that the inputs stand for; without inputs, standard input, unless it is a terminal.
    pub(crate) fn sources(&self) -> Result<Sources, CommandError> {
        self.check_terminal()?;
        if self.prefix.is_some() && self.inputs.iter().all(|input| list_name(input.as_os_str()).is_none()) {
            return Err(CommandError::usage(
                "--prefix is for lists of inputs; name one with @FILE, or remove --prefix",
            ));
        }
        Ok(list_prefixed(&self.inputs, self.prefix.as_deref().unwrap_or_default())?)
    }
}

impl InputArgs {
    /// The options of a run over these inputs.
    ///
    /// # Errors
    /// Flags that contradict each other.
    pub(crate) fn run_options(&self, work: &WorkArgs, row_group_len: usize) -> Result<RunOptions, CommandError> {
        self.store.apply()?;
        let format = self.format()?;
        self.check_format_flags(&format)?;
        Ok(RunOptions {
            threads: work.threads.count(),
            ahead_len: AHEAD_LEN,
            row_group_len,
            chunk_len: work.chunk_size,
            max_record_len: self.max_record,
            mmap: !self.no_mmap,
            format,
            record_types: match &self.record_types[..] {
                [] => RecordTypes::Captures,
                names => RecordTypes::of_list(names),
            },
            archive_paths: true,
            count_distinct: false,
            record_limit: self.limit,
        })
    }

    /// Reserves memory to read ahead in stores, to decompress ahead, and for the workers, of which `options` then has fewer if
    /// necessary. Returns the rest, in bytes.
    ///
    /// # Errors
    /// `--memory` does not suffice for one worker.
    pub(crate) fn reserve_memory(
        &self,
        work: &WorkArgs,
        options: &mut RunOptions,
        need: WorkerNeed,
    ) -> Result<usize, CommandError> {
        let mut budget = Budget::new(work.memory);
        if self.files.may_be_remote() {
            set_read_ahead(budget.reserve_eighth(MAX_READ_AHEAD));
        }
        // Without a limit, looking into each input would cost more than the memory is worth.
        if work.memory.is_none() || self.files.inputs.iter().any(|input| may_have_members(input)) {
            options.ahead_len = budget.reserve_eighth(options.threads.saturating_mul(AHEAD_LEN)) / options.threads;
        }
        options.threads = budget.reserve_workers(options.threads, need)?;
        Ok(budget.remaining())
    }

    /// The sources that the inputs stand for.
    pub(crate) fn sources(&self) -> Result<Sources, CommandError> {
        self.files.sources()
    }

    fn format(&self) -> Result<InputFormat, CommandError> {
        let column = |name: &Option<String>| name.as_deref().map(ColumnChoice::parse);
        let csv = CsvOptions {
            delimiter: self.delimiter,
            quote: self.quote.unwrap_or_default(),
            url: column(&self.column),
            base: column(&self.base_column),
            charset: column(&self.charset_column),
            query_charset: column(&self.query_charset_column),
            header: if self.no_header { CsvHeader::Absent } else { CsvHeader::Detect },
        };
        let has_columns = self.columns().iter().any(|(_, column)| column.is_some()) || self.no_header;
        let is_table = has_columns || self.delimiter.is_some() || self.quote.is_some();
        // The parser of the flag has accepted the text.
        let log_format = self.log_format.as_deref().and_then(|text| LogFormat::parse(text).ok()).unwrap_or_default();
        let options = FormatOptions { csv, is_table, log_format };
        if FORMATS_WITHOUT_NAMES.contains(&&*self.format) {
            return Err(CommandError::Usage(format!(
                "--format {}: these files are recognized by content; leave out --format",
                self.format
            )));
        }
        // The parser of the flag knows the names of formats.
        let unknown = || CommandError::Internal(format!("unknown format `{}`", self.format));
        InputFormat::named(&self.format, &options).ok_or_else(unknown)
    }

    /// Everything that decides which rows an input gives, for the manifest of a job that can be resumed. The names are
    /// those of the flags.
    pub(crate) fn to_json(&self) -> Value {
        let columns = self.columns().map(|(flag, column)| (flag[2..].to_string(), json!(column)));
        let mut json = json!({
            "format": self.format,
            "delimiter": self.delimiter,
            "quote": self.quote.map(|quote| format!("{quote:?}")),
            "no-header": self.no_header,
            "log-format": self.log_format,
            "record-types": self.record_types,
            "max-record": self.max_record,
        });
        if let Some(object) = json.as_object_mut() {
            object.extend(columns);
        }
        json
    }

    /// Prints which flag had no effect, if records were read but no input has a format that the flag is for. The formats of the
    /// inputs are known only at the end of a job.
    pub(crate) fn print_unused_flag(&self, summary: &Summary, is_quiet: bool) {
        if is_quiet || summary.records == 0 {
            return;
        }
        let types = ("--record-types", !self.record_types.is_empty());
        let mut flags = [types].into_iter().chain(self.table_flags()).filter(|(_, is_given)| *is_given);
        let is_unused = |flag: &str| !summary.has_format(formats_of_flag(flag).1);
        if let Some((flag, _)) = flags.find(|(flag, _)| is_unused(flag)) {
            let (kinds, _) = formats_of_flag(flag);
            print_error(&format!("{flag} had no effect, because no input is {kinds}; remove it, or check the inputs"));
        }
    }

    /// Neither the format nor the column of the URL was chosen by a flag.
    pub(crate) fn is_auto(&self) -> bool {
        self.format == AUTO && self.column.is_none()
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

    /// The flags that describe tables, and whether they are given.
    fn table_flags(&self) -> impl Iterator<Item = (&'static str, bool)> {
        let others = [
            ("--delimiter", self.delimiter.is_some()),
            ("--quote", self.quote.is_some()),
            ("--no-header", self.no_header),
        ];
        self.columns().map(|(flag, column)| (flag, column.is_some())).into_iter().chain(others)
    }

    /// Flags of some formats are given only if an input can have such a format.
    fn check_format_flags(&self, format: &InputFormat) -> Result<(), CommandError> {
        if self.log_format.is_some() && !format.is_access_log() {
            return Err(CommandError::usage("--log-format is for access logs; use --format access-log"));
        }
        if !self.record_types.is_empty() && !format.has_record_types() {
            return Err(CommandError::usage(
                "--record-types is for WARC and ARC; use --format warc or leave out --format",
            ));
        }
        self.check_table_flags(format)
    }

    fn check_table_flags(&self, format: &InputFormat) -> Result<(), CommandError> {
        let is_read = |flag: &str| match flag {
            "--column" | "--base-column" => format.has_columns(),
            _ => format.has_text_tables(),
        };
        if let Some((flag, _)) = self.table_flags().find(|(flag, is_given)| *is_given && !is_read(flag)) {
            return Err(CommandError::usage(format!("{flag} is for tables; use --format csv or tsv")));
        }
        if self.format == "tsv" && self.delimiter.is_some_and(|delimiter| delimiter != b'\t') {
            return Err(CommandError::usage("--delimiter contradicts --format tsv; use --format csv"));
        }
        let is_name = |name: &String| !name.bytes().all(|byte| byte.is_ascii_digit());
        match self.columns().iter().find(|(_, column)| self.no_header && column.as_ref().is_some_and(is_name)) {
            Some((flag, _)) => {
                let message = format!("{flag} needs a number, because --no-header leaves columns without names");
                Err(CommandError::Usage(message))
            }
            None => Ok(()),
        }
    }
}

/// The formats that a flag of some formats is for: in words, and their names.
fn formats_of_flag(flag: &str) -> (&'static str, &'static [&'static str]) {
    match flag {
        "--record-types" => ("WARC or ARC", &["warc", "arc"]),
        "--column" | "--base-column" => ("a table or JSON lines", &["csv", "tsv", "jsonl", "parquet", "arrow"]),
        _ => ("CSV or TSV", &["csv", "tsv"]),
    }
}

/// Names that people try for files that are recognized by content, whatever `--format` says.
const FORMATS_WITHOUT_NAMES: [&str; 5] = ["parquet", "arrow", "zip", "wacz", "gzip"];

fn format_names() -> PossibleValuesParser {
    let hidden = FORMATS_WITHOUT_NAMES.map(|name| PossibleValue::new(name).hide(true));
    InputFormat::names().map(|(name, meaning)| PossibleValue::new(name).help(meaning)).chain(hidden).into()
}

fn parse_table_byte(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [b'\n' | b'\r'] => Err("line ends separate records, not fields".to_string()),
        [byte] => Ok(*byte),
        _ => Err("expected one byte, or \\t".to_string()),
    }
}

fn parse_quote(text: &str) -> Result<CsvQuote, String> {
    match text {
        "none" => Ok(CsvQuote::Absent),
        _ => parse_table_byte(text).map(CsvQuote::Byte).map_err(|_| "expected one byte, or none".to_string()),
    }
}

/// Names of types of WARC 1.1, section 6, or `all`.
const RECORD_TYPES: Named<String> = Named {
    parse: |text| match RecordTypes::is_name(text) {
        true => Ok(text.to_string()),
        false => Err(format!("expected one of {}", RecordTypes::NAMES.join(", "))),
    },
    names: || RecordTypes::NAMES.to_vec(),
};

/// Checks the format; [`InputArgs::format`] parses it again, because manifests hold its text.
fn parse_log_format(text: &str) -> Result<String, String> {
    LogFormat::parse(text).map(|_| text.to_string()).map_err(|error| error.to_string())
}
