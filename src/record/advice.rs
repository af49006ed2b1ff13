//! Advice on sources whose format may have been guessed wrong: what the first record looks like, and which flags to try.
//! It is shown only if most records turn out to be faulty or to contain white space.

use super::csv::URL_COLUMN_NAMES;
use super::decoder::SourceHead;
use super::format::{SourceFormat, TextFormat};

/// What the beginning of a source suggests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FormatAdvice {
    /// What to try if most rows are faulty or contain white space.
    Format(&'static str),
    /// A column that may hold the base, if all rows are relative references.
    BaseColumn(&'static str),
}

const BINARY: &str =
    "the input contains NUL bytes, so it is probably not a list of URLs; see the formats in irikey canon --help";
const JSON: &str = "the records look like JSON; use --format jsonl, and --column if no member is called url";
const CRAWL_DB: &str = "this looks like a dump of a Nutch CrawlDb; use nutch readdb DIR -dump OUT -format csv";
const TABS: &str = "the records contain tabs, as seed lists of Nutch do; use --format tsv --no-header --column 1";
const CDX: &str = "this looks like CDX with unknown columns; put a header such as ` CDX N b a m s k r V g` before it, and use \
                   --format cdx";
const CDXJ: &str = "the records look like CDXJ without valid times; use --format cdxj";
const TABLE: &str = "the first record looks like the header of a table; use --format csv";
const COMMENT: &str = "lines that begin with # are read as records; remove comments: grep -v '^#' FILE";
const SPACES: &str =
    "the records contain spaces; use --inner-spaces split if they are lists of URLs, or name the --format";

impl FormatAdvice {
    /// The advice on a source of this format that begins with `head`.
    pub(crate) fn of_source(format: &SourceFormat, head: &[u8]) -> Option<FormatAdvice> {
        let first_record = SourceHead::new(head).first_record;
        let advice = match format {
            SourceFormat::Text(TextFormat::Lines(_)) if head.contains(&0) => Some(BINARY),
            SourceFormat::Text(TextFormat::Lines(_)) => of_line(first_record),
            SourceFormat::Csv(_) if first_record.starts_with(b"#") => Some(COMMENT),
            _ => None,
        };
        advice.map(FormatAdvice::Format)
    }
}

fn of_line(line: &[u8]) -> Option<&'static str> {
    let has_time = || {
        let time = line.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
        time.len() == 14 && time.iter().all(u8::is_ascii_digit)
    };
    let is_name = |field: &[u8]| URL_COLUMN_NAMES.iter().any(|name| field.eq_ignore_ascii_case(name.as_bytes()));
    let mut fields = line.split(|byte| matches!(byte, b',' | b';' | b'|' | b'\t'));
    match memchr::memchr(b'\t', line).map(|tab| &line[tab + 1..]) {
        _ if line.starts_with(b"{") => Some(JSON),
        _ if line.starts_with(b"#") => Some(COMMENT),
        _ if fields.clone().nth(1).is_some() && fields.any(is_name) => Some(TABLE),
        Some(rest) if rest.starts_with(b"Version: ") => Some(CRAWL_DB),
        Some(_) => Some(TABS),
        None if has_time() => Some(CDX),
        None if memchr::memmem::find(line, b" {\"").is_some() => Some(CDXJ),
        None => line.contains(&b' ').then_some(SPACES),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_records_suggest_a_format() {
        let cases = [
            ("http://a/\tnutch.score=10", Some(TABS)),
            ("http://a/\tVersion: 7\nStatus: 1 (db_unfetched)", Some(CRAWL_DB)),
            ("com,a)/ 20140127171200 http://a/ text/html 200 ABC - 1", Some(CDX)),
            ("com,a)/ 2014-01-27 {\"url\": \"http://a/\"}", Some(CDXJ)),
            ("id,url,title", Some(TABLE)),
            ("# seeds", Some(COMMENT)),
            ("{\"page\": 1}", Some(JSON)),
            ("http://a/ http://b/", Some(SPACES)),
            ("http://a/b,c", None),
            ("\u{7f}ELF\0\t\0", Some(BINARY)),
        ];
        for (text, advice) in cases {
            let format = SourceFormat::Text(TextFormat::default());
            assert_eq!(FormatAdvice::of_source(&format, text.as_bytes()), advice.map(FormatAdvice::Format), "{text}");
        }
    }
}
