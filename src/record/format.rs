//! The formats of inputs: the registry of text formats, and what one source holds.
//!
//! ```text
//! InputFormat (what the user chose) + first bytes of a source --of_source--> SourceFormat
//! SourceFormat::Text(TextFormat) --Decoder--> Records
//! ```
//!
//! To add a text format, write a file with a type that implements [`TextDecoder`] and add one line to the table
//! `text_formats!`.

use std::sync::Arc;

use super::access_log::AccessLog;
use super::archive::{has_warc_record, is_arc, is_archive};
use super::boundary::Quoting;
use super::cdx::Cdx;
use super::cdxj::Cdxj;
use super::crawl_log::CrawlLog;
use super::csv::{Csv, CsvOptions};
use super::decoder::{FormatOptions, SourceHead, TextDecoder};
use super::fields::FieldSet;
use super::journal::Journal;
use super::json::JsonMembers;
use super::json_document::JsonLayout;
use super::json_lines::{JsonLines, JsonOptions};
use super::lines::Lines;
use super::records::Records;
use super::unsupported::UnsupportedFormat;
use crate::kernel::{Bitmaps, strip_prefix_ignoring_case};

/// Defines [`TextFormat`] and [`Decoder`] from the table of formats. Sources are compared with the formats in this order.
macro_rules! text_formats {
    ($($format:ident, $field:ident, $name:literal: $meaning:literal;)*) => {
        /// A text format with the settings of one source. Cheap to clone.
        #[derive(Clone, Debug, PartialEq)]
        pub enum TextFormat {
            $(#[doc = $meaning] $format(Arc<<$format as TextDecoder>::Settings>),)*
        }

        impl TextFormat {
            /// Name and meaning of every text format.
            const NAMES: &[(&str, &str)] = &[$(($name, $meaning),)*];

            /// The name of the format, as [`InputFormat::named`] takes it.
            pub(crate) fn name(&self) -> &'static str {
                match self {
                    $(TextFormat::$format(_) => $name,)*
                }
            }

            /// The format called `name`, with the settings that the user chose.
            fn named(name: &str, options: &FormatOptions) -> Option<TextFormat> {
                match name {
                    $($name => Some(TextFormat::$format(Arc::new($format::chosen_settings(options)))),)*
                    _ => None,
                }
            }

            /// The format with the settings of a source that begins with `head`.
            fn of_source(&self, head: &SourceHead<'_>) -> TextFormat {
                match self {
                    $(TextFormat::$format(chosen) => {
                        TextFormat::$format(Arc::new($format::settings_of(chosen, head)))
                    })*
                }
            }

            /// The format of a source that begins with `head`, if it is unmistakable.
            ///
            /// ```
            /// use irikey::record::{SourceHead, TextFormat};
            /// let line = b"org,example)/ 20140127171200 {\"url\": \"http://example.org/\"}\n";
            /// assert!(matches!(TextFormat::detect(&SourceHead::new(line)), Some(TextFormat::Cdxj(_))));
            /// let line = b"http://example.org/ 20140127171200 {\n";
            /// assert_eq!(TextFormat::detect(&SourceHead::new(line)), None);
            /// ```
            pub fn detect(head: &SourceHead<'_>) -> Option<TextFormat> {
                $(if let Some(settings) = $format::detect(head) {
                    return Some(TextFormat::$format(Arc::new(settings)));
                })*
                None
            }

            /// How records are quoted, if a line end may be part of a record.
            pub(crate) fn quoting(&self) -> Option<Quoting> {
                match self {
                    $(TextFormat::$format(settings) => $format::quoting(settings),)*
                }
            }
        }

        /// A decoder of every text format.
        #[derive(Debug)]
        pub(crate) struct Decoder {
            format: TextFormat,
            $($field: $format,)*
        }

        impl Decoder {
            /// A decoder of these fields.
            pub(crate) fn new(carry: FieldSet) -> Decoder {
                let mut decoder = Decoder { format: TextFormat::default(), $($field: $format::default(),)* };
                $(decoder.$field.set_carry(carry);)*
                decoder
            }

            /// Sets the format of the chunks that follow.
            pub(crate) fn set_format(&mut self, format: &TextFormat) {
                if self.format == *format {
                    return;
                }
                match format {
                    $(TextFormat::$format(settings) => self.$field.set_settings(settings),)*
                }
                self.format = format.clone();
            }

            /// Decodes a chunk; see [`TextDecoder::decode`].
            pub(crate) fn decode<'a>(&'a mut self, chunk: &'a [u8], offset: u64, bitmaps: &mut Bitmaps) -> Records<'a> {
                match self.format {
                    $(TextFormat::$format(_) => self.$field.decode(chunk, offset, bitmaps),)*
                }
            }
        }
    };
}

text_formats! {
    Lines, lines, "lines": "One URL per line";
    Csv, csv, "csv": "Comma-separated values";
    Cdxj, cdxj, "cdxj": "CDXJ: key, time and JSON, as Common Crawl and pywb write it";
    CrawlLog, crawl_log, "crawl-log": "Heritrix's crawl.log";
    Journal, journal, "frontier-journal": "Heritrix's frontier journal (recover log)";
    JsonLines, json_lines, "jsonl":
        "One JSON object per line; --column names the member with the URL, or points to it: /page/url (RFC 6901)";
    AccessLog, access_log, "access-log":
        "Access log of a web server, in the format of --log-format; its targets need --base, unless the format has the host";
    Cdx, cdx, "cdx":
        "CDX: columns separated by spaces, named by the letters of the header line; without a header, the usual 11, 10, 9 \
         or 7 columns; also the JSON arrays of Wayback CDX servers";
}

/// The name of [`InputFormat::Auto`].
pub(crate) const AUTO: &str = "auto";

/// Name and meaning of the formats that are not text formats.
const OTHER_NAMES: &[(&str, &str)] = &[
    (
        AUTO,
        "Recognize each input by its first records: WARC, ARC, HAR, CDX, CDXJ, responses of CDX servers, JSON lines, Heritrix's \
         crawl.log or frontier journal, or an access log in the common, combined or vhost_combined format. A WARC file is a \
         WAT file if its name, or the name in its first record, ends in .wat or contains .wat. as those of Common Crawl. \
         Otherwise by its name: .csv and .tsv (including .csv.gz and the like) are tables. Everything else is lines, or csv with --column or \
         another flag of tables",
    ),
    ("tsv", "Tab-separated values"),
    ("warc", "WARC and ARC, one row per record; --record-types chooses the types"),
    ("wat", "WAT, one row per link, resolved against its page"),
    ("har", "HAR (HTTP Archive), one row per entry"),
];

impl Default for TextFormat {
    fn default() -> TextFormat {
        TextFormat::Lines(Arc::default())
    }
}

/// Which rows an archive gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArchiveRows {
    /// One row per record of WARC or ARC.
    Records,
    /// One row per link in the records of WAT.
    Links,
}

impl ArchiveRows {
    /// The rows of the source called `name` that begins with `head`, if it is an archive.
    pub(crate) fn of_source(name: &str, head: &[u8]) -> Option<ArchiveRows> {
        is_archive(head).then(|| ArchiveRows::of_archive(name, head))
    }

    fn of_archive(name: &str, head: &[u8]) -> ArchiveRows {
        if is_wat_name(name) || is_wat(head) { ArchiveRows::Links } else { ArchiveRows::Records }
    }

    /// The name of the format of an archive that begins with `head`.
    pub(crate) fn name(self, head: &[u8]) -> &'static str {
        match self {
            ArchiveRows::Links => "wat",
            ArchiveRows::Records if is_arc(head) => "arc",
            ArchiveRows::Records => "warc",
        }
    }
}

/// The format that the user chose for all inputs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum InputFormat {
    /// Each source has a format of its own: that of its first records, otherwise that of its name, otherwise lines.
    Auto(FormatOptions),
    /// A text format.
    Text(TextFormat),
    /// A table of text, whose columns its first record determines.
    Csv(CsvOptions),
    /// An archive.
    Archive(ArchiveRows),
    /// HAR, one row per entry.
    Har,
}

impl Default for InputFormat {
    fn default() -> InputFormat {
        InputFormat::Text(TextFormat::default())
    }
}

impl InputFormat {
    /// Name and meaning of every format that [`InputFormat::named`] knows.
    pub(crate) fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
        let (auto, others) = OTHER_NAMES.split_at(1);
        [auto, TextFormat::NAMES, others].into_iter().flatten().copied()
    }

    /// The format reads the columns that the user chose.
    pub fn has_columns(&self) -> bool {
        matches!(self, InputFormat::Auto(_) | InputFormat::Csv(_) | InputFormat::Text(TextFormat::JsonLines(_)))
    }

    /// The format reads tables of text.
    pub(crate) fn has_text_tables(&self) -> bool {
        matches!(self, InputFormat::Auto(_) | InputFormat::Csv(_))
    }

    /// The format reads records that have types.
    pub(crate) fn has_record_types(&self) -> bool {
        matches!(self, InputFormat::Auto(_) | InputFormat::Archive(ArchiveRows::Records))
    }

    /// Records of the format can have a time.
    pub(crate) fn has_times(&self) -> bool {
        !matches!(self, InputFormat::Csv(_) | InputFormat::Text(TextFormat::Lines(_)))
    }

    /// The format reads access logs.
    pub(crate) fn is_access_log(&self) -> bool {
        matches!(self, InputFormat::Text(TextFormat::AccessLog(_)))
    }

    /// The format called `name` in `--format`, or `None` if there is no such format.
    ///
    /// ```
    /// use irikey::record::{FormatOptions, InputFormat};
    /// assert!(InputFormat::named("cdxj", &FormatOptions::default()).is_some());
    /// assert!(InputFormat::named("docx", &FormatOptions::default()).is_none());
    /// ```
    pub fn named(name: &str, options: &FormatOptions) -> Option<InputFormat> {
        match name {
            AUTO => Some(InputFormat::Auto(options.clone())),
            "csv" => Some(InputFormat::Csv(options.csv.clone())),
            "tsv" => Some(InputFormat::Csv(options.csv.with_default_delimiter(Some(b'\t')))),
            "warc" => Some(InputFormat::Archive(ArchiveRows::Records)),
            "wat" => Some(InputFormat::Archive(ArchiveRows::Links)),
            "har" => Some(InputFormat::Har),
            _ => TextFormat::named(name, options).map(InputFormat::Text),
        }
    }

    /// The format of the source called `name` that begins with `head`; `head` may end within a line.
    pub(crate) fn of_source(&self, name: &str, head: &[u8]) -> SourceFormat {
        match self {
            InputFormat::Auto(options) => detect(options, name, head),
            InputFormat::Text(format) => match (format, UnsupportedFormat::of_json(head)) {
                (TextFormat::Cdx(_), _) if JsonLayout::detect(head) == Some(JsonLayout::CdxRows) => {
                    SourceFormat::Json(JsonLayout::CdxRows)
                }
                (TextFormat::JsonLines(_), Some(format)) => SourceFormat::Unsupported(format),
                _ => SourceFormat::Text(format.of_source(&SourceHead::new(head))),
            },
            InputFormat::Csv(options) => csv_format(options, head),
            InputFormat::Archive(rows) => SourceFormat::Archive(*rows),
            InputFormat::Har => SourceFormat::Json(JsonLayout::Har),
        }
    }
}

/// The format of one source.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SourceFormat {
    /// Text that a [`Decoder`] reads.
    Text(TextFormat),
    /// A table of text, whose columns its first record determines.
    Csv(CsvOptions),
    /// An archive.
    Archive(ArchiveRows),
    /// One JSON document.
    Json(JsonLayout),
    /// A format that is not read.
    Unsupported(UnsupportedFormat),
}

impl SourceFormat {
    /// The name of the format of a source that begins with `head`: a name of [`InputFormat::names`], or `arc`, which the format
    /// `warc` includes. `None` if the source is not read.
    pub(crate) fn name(&self, head: &[u8]) -> Option<&'static str> {
        match self {
            SourceFormat::Text(format) => Some(format.name()),
            SourceFormat::Csv(CsvOptions { delimiter: Some(b'\t'), .. }) => Some("tsv"),
            SourceFormat::Csv(_) => Some("csv"),
            SourceFormat::Archive(rows) => Some(rows.name(head)),
            SourceFormat::Json(JsonLayout::CdxRows) => Some("cdx"),
            SourceFormat::Json(JsonLayout::Har) => Some("har"),
            SourceFormat::Unsupported(_) => None,
        }
    }
}

fn detect(options: &FormatOptions, name: &str, bytes: &[u8]) -> SourceFormat {
    if let Some(rows) = ArchiveRows::of_source(name, bytes) {
        return SourceFormat::Archive(rows);
    }
    let head = SourceHead::new(bytes);
    let json_options = || JsonOptions::of_columns(&options.csv);
    let detect_record = |head: &SourceHead<'_>| match options.is_table {
        true => JsonLines::detect_with(head, json_options()).map(|options| TextFormat::JsonLines(Arc::new(options))),
        false => TextFormat::detect(head),
    };
    if let Some(format) = detect_record(&head) {
        return SourceFormat::Text(format);
    }
    if let Some(layout) = JsonLayout::detect(bytes).filter(|_| !options.is_table) {
        return SourceFormat::Json(layout);
    }
    let suffix = FormatSuffix::of(name);
    if let Some(FormatSuffix::Table(delimiter)) = suffix {
        let tab = Some(delimiter).filter(|delimiter| *delimiter == b'\t');
        return csv_format(&options.csv.with_default_delimiter(tab), bytes);
    }
    if let Some(format) = UnsupportedFormat::of_text(bytes).filter(|_| !options.is_table) {
        return SourceFormat::Unsupported(format);
    }
    let is_named_json = suffix == Some(FormatSuffix::JsonLines) && !options.is_table;
    let is_json =
        JsonLines::is_long_object(&head, bytes.len()) || is_named_json && begins_with_whole_object(head.first_record);
    if is_json {
        return SourceFormat::Text(TextFormat::JsonLines(Arc::new(json_options())));
    }
    match detect_after_first(bytes, detect_record) {
        Some(format) => SourceFormat::Text(format),
        None if options.is_table => csv_format(&options.csv, bytes),
        // Other bytes are before the first record.
        None if has_warc_record(bytes) => SourceFormat::Archive(ArchiveRows::of_archive(name, bytes)),
        None => SourceFormat::Text(TextFormat::default()),
    }
}

/// Maximum number of records after the first one by which the format of a source is detected.
const MAX_LATER_RECORDS: usize = 8;

/// Minimum number of these records, unless the source is JSON.
const MIN_LATER_RECORDS: usize = 3;

/// Detects the format by the records after the first one, because `detect` knows no format of the first one. If the first record
/// is an object, one later record in a JSON format is enough. Otherwise all later records must be in the same format.
fn detect_after_first(bytes: &[u8], detect: impl Fn(&SourceHead<'_>) -> Option<TextFormat>) -> Option<TextFormat> {
    let lines = bytes.split_inclusive(|&byte| byte == b'\n').map(SourceHead::new);
    let mut records = lines.filter(|line| !line.first_record.is_empty());
    let first = records.next()?;
    let later = records.take(MAX_LATER_RECORDS).map(|record| (record.is_cut, detect(&record)));
    // `bytes` may end within a line.
    let later: Vec<_> =
        later.filter(|(is_cut, format)| !is_cut || format.is_some()).map(|(_, format)| format).collect();
    if begins_with_whole_object(first.first_record) {
        return later.into_iter().flatten().find(|format| matches!(format, TextFormat::JsonLines(_)));
    }
    let format = later.first()?.as_ref()?;
    let is_same = |other: &Option<TextFormat>| other.as_ref().is_some_and(|other| other.name() == format.name());
    (later.len() >= MIN_LATER_RECORDS && later.iter().all(is_same)).then(|| format.clone())
}

/// The format that the first record shows by itself, whatever columns the user chose. An object is a record of JSON lines
/// also without a member that usually holds a URL.
pub(crate) fn format_of_first_record(bytes: &[u8]) -> Option<TextFormat> {
    let head = SourceHead::new(bytes);
    let json_lines = || JsonMembers::is_object(head.first_record).then(|| TextFormat::JsonLines(Arc::default()));
    TextFormat::detect(&head).or_else(json_lines)
}

/// Whether a line begins with a JSON object that is not broken. Anything may follow the object.
fn begins_with_whole_object(line: &[u8]) -> bool {
    line.starts_with(b"{") && JsonMembers::are_whole(line)
}

/// Whether a name indicates the format of a source.
pub(crate) fn is_name_of_format(name: &str) -> bool {
    FormatSuffix::of(name).is_some() || is_wat_name(name)
}

/// What the name of a source indicates about its format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FormatSuffix {
    /// `.csv` or `.tsv`: a table with this delimiter.
    Table(u8),
    JsonLines,
}

impl FormatSuffix {
    /// The suffix of a name, also before that of a compression.
    fn of(name: &str) -> Option<FormatSuffix> {
        let name = name.to_ascii_lowercase();
        let name = without_compression_suffix(&name).unwrap_or(&name);
        let suffixes = [
            (".csv", FormatSuffix::Table(b',')),
            (".tsv", FormatSuffix::Table(b'\t')),
            (".jsonl", FormatSuffix::JsonLines),
            (".ndjson", FormatSuffix::JsonLines),
        ];
        suffixes.into_iter().find(|(suffix, _)| name.ends_with(suffix)).map(|(_, format)| format)
    }
}

/// How names of compressed files end, and the compression that this states.
const COMPRESSION_SUFFIXES: [(&str, &str); 5] =
    [(".gz", "gzip"), (".zst", "zstd"), (".bz2", "bzip2"), (".xz", "xz"), (".lz4", "lz4")];

/// The name of a file without the suffix of a compression, which is in lower case; `None` if the name has no such suffix.
pub(crate) fn without_compression_suffix(name: &str) -> Option<&str> {
    COMPRESSION_SUFFIXES.iter().find_map(|(suffix, _)| name.strip_suffix(suffix))
}

/// The compression that the suffix of a name states, in any case.
pub(crate) fn compression_of_name(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    COMPRESSION_SUFFIXES.iter().find(|(suffix, _)| name.ends_with(suffix)).map(|(_, compression)| *compression)
}

/// The table with its delimiter.
fn csv_format(options: &CsvOptions, head: &[u8]) -> SourceFormat {
    SourceFormat::Csv(CsvOptions { delimiter: Some(options.delimiter_of(head)), ..options.clone() })
}

/// Names of WAT files end in `.wat`, or contain `.wat.` as those of Common Crawl; their bytes are those of a WARC file.
fn is_wat_name(name: &str) -> bool {
    name.rsplit('/').next().is_some_and(|name| name.contains(".wat.") || name.ends_with(".wat"))
}

/// Whether the header of the first record names a WAT file.
fn is_wat(head: &[u8]) -> bool {
    let lines = head.trim_ascii_start().split(|byte| *byte == b'\n');
    let mut fields = lines.take_while(|line| !line.trim_ascii().is_empty());
    fields.any(|field| {
        strip_prefix_ignoring_case(field, b"WARC-Filename:")
            .is_some_and(|file| is_wat_name(&String::from_utf8_lossy(file.trim_ascii())))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::decoder::MAX_SOURCE_HEAD_LEN;

    fn format_of(name: &str, text: &str) -> SourceFormat {
        InputFormat::Auto(FormatOptions::default()).of_source(name, text.as_bytes())
    }

    /// The first record is longer than what is read to detect its format.
    #[test]
    fn long_objects_are_json_lines() {
        let is_json = |format| matches!(format, SourceFormat::Text(TextFormat::JsonLines(_)));
        let cut = |mut text: String| text.drain(..MAX_SOURCE_HEAD_LEN).collect::<String>();
        let long = |before: &str| format!("{before}{}", "x".repeat(MAX_SOURCE_HEAD_LEN));
        for (start, expected) in [
            ("{\"html\" : \"", true),
            ("\n {\"url\": \"http://a/\", \"html\": \"", true),
            ("{\"html\"", false),
            ("{html: \"", false),
            ("http://a/?{\"a\":", false),
            ("{\"log\": {\"version\": \"", false),
            ("{\"version\": \"https://jsonfeed.org/version/1.1\", \"title\": \"", false),
        ] {
            assert_eq!(is_json(format_of("x", &cut(long(start)))), expected, "{start}");
        }
        assert!(!is_json(format_of("x.csv", &cut(long("{\"html\": \"")))));
        // What ends within an object is damaged.
        assert!(!is_json(format_of("x", "{\"html\": \"")));
    }

    #[test]
    fn every_format_of_the_command_line_has_a_name() {
        let mut names: Vec<_> = InputFormat::names().map(|(name, _)| name).collect();
        for name in &names {
            assert!(InputFormat::named(name, &FormatOptions::default()).is_some(), "{name}");
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 13);
    }

    #[test]
    fn formats_are_detected_by_content_and_otherwise_by_name() {
        let warc = "WARC/1.0\r\nWARC-Type: warcinfo\r\n";
        let arc = "http://a/ 192.0.2.1 20020101000000 text/html 5\n";
        for (head, name) in [(warc, "warc"), (arc, "arc")] {
            for junk in ["", "\r\n", "junk\n\0\n"] {
                assert_eq!(ArchiveRows::Records.name(format!("{junk}{head}").as_bytes()), name, "{junk:?}");
            }
        }
        assert_eq!(ArchiveRows::Records.name(b"junk"), "warc");
        assert_eq!(format_of("a.warc", warc), SourceFormat::Archive(ArchiveRows::Records));
        assert_eq!(format_of("b/CC-MAIN.warc.wat.gz", warc), SourceFormat::Archive(ArchiveRows::Links));
        let named = "WARC/1.0\r\nWARC-Type: warcinfo\r\nWARC-Filename: CC-MAIN-00000.warc.wat.gz\r\n\r\n";
        assert_eq!(format_of("-", named), SourceFormat::Archive(ArchiveRows::Links));
        assert_eq!(format_of("b.wat/x.wat", warc), SourceFormat::Archive(ArchiveRows::Links));
        assert_eq!(format_of("b.wat/x", warc), SourceFormat::Archive(ArchiveRows::Records));
        assert!(matches!(format_of("x", " CDX N b a m s k r M S V g\n"), SourceFormat::Text(TextFormat::Cdx(_))));
        assert!(matches!(format_of("x", "{\"url\": \"http://a/\"}\n"), SourceFormat::Text(TextFormat::JsonLines(_))));
        assert!(matches!(
            format_of("x.tsv.gz", "a\tb\n"),
            SourceFormat::Csv(CsvOptions { delimiter: Some(b'\t'), .. })
        ));
        let headers =
            [("id;url", b';'), ("a|\"URL\"", b'|'), ("id;x,url;y", b','), ("a;b", b','), ("sep=;\r\na;b", b';')];
        for (header, delimiter) in headers {
            let table = SourceFormat::Csv(CsvOptions { delimiter: Some(delimiter), ..CsvOptions::default() });
            assert_eq!(format_of("x.csv", header), table);
        }
        assert_eq!(format_of("x.txt", "http://a/\n"), SourceFormat::Text(TextFormat::default()));
        let index = "com,a)/ 20140127171200\tcdx-00000.gz\t0\t275\t1\n";
        assert!(matches!(format_of("cluster.idx", index), SourceFormat::Unsupported(_)));
        assert_eq!(format_of("x", "{\"log\": {\"version\": \"1.2\""), SourceFormat::Json(JsonLayout::Har));
        assert!(matches!(
            format_of("x", "{\"log\": {\"version\": 1}, \"url\": \"http://a/\"}\n"),
            SourceFormat::Text(TextFormat::JsonLines(_))
        ));
        let options = FormatOptions::default();
        let jsonl = InputFormat::named("jsonl", &options).unwrap();
        assert!(matches!(jsonl.of_source("x", b"[{\"url\": 1}]"), SourceFormat::Unsupported(_)));
    }

    #[test]
    fn an_odd_first_record_does_not_hide_the_format() {
        let name = |name: &str, text: &str| {
            let SourceFormat::Text(format) = format_of(name, text) else { panic!("{text}") };
            format.name()
        };
        // An object without a URL.
        let (none, some) = ("{\"uri\": null}\n", "{\"uri\": \"http://a/\"}");
        assert_eq!(name("x", &format!("{none}{some}")), "jsonl");
        assert_eq!(name("x", &format!("{none}{none}\n{some}\n")), "jsonl");
        assert_eq!(
            (name("x", none), name("x.ndjson.gz", none), name("x.jsonl", "http://a/")),
            ("lines", "jsonl", "lines")
        );
        let capture = "org,a)/ 20140103030321 http://a.org/ text/html 200 B2LT 1043\n";
        let index = "org,a)/ 20140103030321 {\"url\": \"http://a.org/\"}\n";
        for (line, format) in [(capture, "cdx"), (index, "cdxj"), (&format!("{some}\n"), "jsonl")] {
            assert_eq!(name("x", &format!("# comment\n{line}{line}\n{line}{}", &line[..9])), format);
            assert_eq!(name("x", &format!("# comment\n{line}{line}")), "lines");
            assert_eq!(name("x", &format!("http://a/\n{line}{line}{line}http://b/\n")), "lines");
        }
        let header = SourceHead::new(b"\n CDX N b a\n");
        assert_eq!((header.first_line, header.is_cut), (&b" CDX N b a"[..], false));
        let columns = FormatOptions { is_table: true, ..FormatOptions::default() };
        let format = InputFormat::Auto(columns).of_source("x", format!("{none}{some}\n").as_bytes());
        assert!(matches!(format, SourceFormat::Text(TextFormat::JsonLines(_))));
    }

    #[test]
    fn names_say_formats() {
        assert_eq!(FormatSuffix::of("crawl/seeds.TSV.gz"), Some(FormatSuffix::Table(b'\t')));
        assert_eq!(FormatSuffix::of("-"), None);
        for name in ["a/x.jsonl.zst", "x.csv", "a/x.wat.gz", "x.warc.wat"] {
            assert!(is_name_of_format(name), "{name}");
        }
        for name in ["x.csv?y", "x.wat/a", "x.wat?y", "xwat", "x.html"] {
            assert!(!is_name_of_format(name), "{name}");
        }
    }

    #[test]
    fn chosen_columns_make_a_table() {
        let csv = CsvOptions { delimiter: Some(b';'), ..CsvOptions::default() };
        let options = FormatOptions { csv, is_table: true, ..FormatOptions::default() };
        let format = InputFormat::Auto(options).of_source("x.csv", b"a;http://b/\n");
        assert!(matches!(format, SourceFormat::Csv(CsvOptions { delimiter: Some(b';'), .. })));
    }

    /// A table does not begin like an archive, and one of several inputs may be an archive.
    #[test]
    fn archives_are_recognized_beside_tables() {
        let options = FormatOptions { is_table: true, ..FormatOptions::default() };
        for head in ["WARC/1.0\r\nWARC-Type: response\r\n", "\r\nWARC/1.1\r\nWARC-Type: warcinfo\r\n"] {
            let format = InputFormat::Auto(options.clone()).of_source("x", head.as_bytes());
            assert_eq!(format, SourceFormat::Archive(ArchiveRows::Records));
        }
    }

    #[test]
    fn other_bytes_may_precede_the_first_record_of_an_archive() {
        let head = "WARC/1.0\r\nContent-Length: 3\r\nWARC-Type: warcinfo\r\n";
        for junk in ["junk\n", "http://a/\nhttp://b/\n", "\0\x01\n", " WARC/1.0\r\nWARC-Type: warcinfo\r\n\r\n"] {
            assert_eq!(
                format_of("x", &format!("{junk}{head}")),
                SourceFormat::Archive(ArchiveRows::Records),
                "{junk:?}"
            );
        }
        assert_eq!(format_of("x.wat.gz", &format!("junk\n{head}")), SourceFormat::Archive(ArchiveRows::Links));
        for lines in
            ["http://a/\nWARC/1.0\nhttp://b/\n", "a\nWARC-Type: x\nWARC/1.0\n", "a\nWARC/1.0 x\nWARC-Type: x\n"]
        {
            assert!(matches!(format_of("x", lines), SourceFormat::Text(TextFormat::Lines(_))), "{lines:?}");
        }
        let page = format_of("x", &format!("<!DOCTYPE html>\n<pre>\n{head}"));
        assert!(matches!(page, SourceFormat::Unsupported(_)), "{page:?}");
        assert!(matches!(format_of("x.csv", &format!("a,b\n{head}")), SourceFormat::Csv(_)));
    }

    #[test]
    fn a_blank_line_may_precede_the_header_of_a_wat_file() {
        let head = "\r\nWARC/1.0\r\nWARC-Type: warcinfo\r\nWARC-Filename: x.warc.wat.gz\r\n\r\n";
        assert_eq!(format_of("x", head), SourceFormat::Archive(ArchiveRows::Links));
    }
}
