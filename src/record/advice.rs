//! Advice on sources whose format may have been guessed wrong: what the first record looks like, and which flags to try.
//! It is shown only if most records turn out to be faulty or to contain white space.

use std::borrow::Cow;

use super::archive::has_warc_record;
use super::csv::{URL_COLUMN_NAMES, without_quotes};
use super::decoder::SourceHead;
use super::format::{SourceFormat, TextFormat};
use crate::kernel::strip_prefix_ignoring_case;

/// What the beginning of a source suggests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FormatAdvice {
    /// What to try if most rows are faulty or contain white space.
    Format(Cow<'static, str>),
    /// What to try if any row is faulty: the first record is the header of a table.
    Header(&'static str),
    /// A column that may hold the base, if all rows are relative references.
    BaseColumn(&'static str),
    /// What to try unless the user chose a scheme: the first records are hosts with ports, which are URIs whose schemes are the
    /// hosts.
    HostsWithPorts,
    /// What to know if most rows have the fault `no-url`, or if keys are made of the URIs of the table: the source is a table of
    /// this program.
    OwnTable,
}

const BINARY: &str =
    "the input contains NUL bytes, so it is probably not a list of URLs; see the formats in irikey canon --help";
const WARC: &str = "this looks like a WARC file with other bytes before its first record; use --format warc";
const JSON: &str = "the records look like JSON; use --format jsonl, and --column if no member is called url";
const CRAWL_DB: &str = "this looks like a dump of a Nutch CrawlDb; use nutch readdb DIR -dump OUT -format csv";
const TABS: &str = "the records contain tabs, as seed lists of Nutch do; use --format tsv --no-header --column 1";
const CDX: &str = "this looks like CDX with unknown columns; put a header such as ` CDX N b a m s k r V g` before it, and use \
                   --format cdx";
const CDXJ: &str = "the records look like CDXJ without valid times; use --format cdxj";
const TABLE: &str = "the first record looks like the header of a table; use --format csv";
const TAB_TABLE: &str = "the first record looks like the header of a table; use --format tsv";
const COMMENT: &str = "lines that begin with # are read as records; remove comments: grep -v '^#' FILE";
const QUOTES: &str = "the records are in quotes; use --quote '\"'";
const SPACES_AROUND: &str = "the records begin or end with spaces; use --trim";
const SPACES: &str =
    "the records contain spaces; use --inner-spaces split if they are lists of URLs, or name the --format";

impl FormatAdvice {
    /// The advice on a source of this format that begins with `head`.
    pub(crate) fn of_source(format: &SourceFormat, head: &[u8]) -> Option<FormatAdvice> {
        let first_record = SourceHead::new(head).first_record;
        let advice = match format {
            SourceFormat::Text(TextFormat::Lines(_)) if has_warc_record(head) => WARC,
            SourceFormat::Text(TextFormat::Lines(_)) if head.contains(&0) => BINARY,
            SourceFormat::Text(TextFormat::Lines(_)) if has_hosts_with_ports(head) => {
                return Some(FormatAdvice::HostsWithPorts);
            }
            SourceFormat::Text(TextFormat::Lines(_)) => {
                let of_table = || of_header(first_record).or_else(|| of_rows(head));
                return of_structure(first_record).or_else(of_table).or_else(|| of_separators(first_record));
            }
            SourceFormat::Text(TextFormat::JsonLines(options)) if options.has_input(first_record) => {
                return Some(FormatAdvice::OwnTable);
            }
            SourceFormat::Csv(_) if first_record.starts_with(b"#") => COMMENT,
            _ => return None,
        };
        Some(advice.into())
    }

    /// The advice names `--inner-spaces`.
    pub(crate) fn is_about_spaces(&self) -> bool {
        *self == SPACES.into()
    }
}

impl From<&'static str> for FormatAdvice {
    fn from(advice: &'static str) -> FormatAdvice {
        FormatAdvice::Format(Cow::Borrowed(advice))
    }
}

/// The advice on a line that begins a known format.
fn of_structure(line: &[u8]) -> Option<FormatAdvice> {
    match line {
        [b'{', ..] => Some(JSON.into()),
        [b'#', ..] => Some(COMMENT.into()),
        [b'"', .., b'"'] => Some(QUOTES.into()),
        _ => None,
    }
}

/// The advice on a line with the names of columns, one of which usually holds URLs.
fn of_header(line: &[u8]) -> Option<FormatAdvice> {
    let is_name = |field: &[u8]| URL_COLUMN_NAMES.iter().any(|name| field.eq_ignore_ascii_case(name.as_bytes()));
    let is_delimiter = |byte: &u8| matches!(byte, b',' | b';' | b'|' | b'\t');
    let fields: Vec<_> = line.split(is_delimiter).map(without_quotes).collect();
    let is_header = fields.len() > 1 && fields.iter().any(|field| is_name(field)) && !line.contains(&b':');
    is_header.then(|| FormatAdvice::Header(if line.contains(&b'\t') { TAB_TABLE } else { TABLE }))
}

/// The advice on a source whose first lines have a URL in a field that is not the first one.
fn of_rows(head: &[u8]) -> Option<FormatAdvice> {
    let flags = [(b'\t', "tsv"), (b',', "csv"), (b';', "csv --delimiter ';'"), (b'|', "csv --delimiter '|'")];
    let has_scheme = |field: &[u8], scheme: &[u8]| strip_prefix_ignoring_case(field, scheme).is_some();
    let is_url = |field: &[u8]| (has_scheme(field, b"http:") || has_scheme(field, b"https:")) && field.contains(&b'/');
    // The first line may be a header.
    let lines = head.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).take(2);
    let columns = lines.flat_map(|line| flags.iter().map(move |(delimiter, flag)| (line, *delimiter, flag)));
    let found = columns.filter_map(|(line, delimiter, flag)| {
        let mut fields = line.split(|byte| *byte == delimiter).map(without_quotes);
        let is_first = fields.next().is_none_or(is_url);
        let column = fields.position(is_url).filter(|_| !is_first)? + 2;
        Some(format!("the records look like rows of a table; use --format {flag} --column {column}"))
    });
    found.map(|advice| FormatAdvice::Format(advice.into())).next()
}

/// Number of records that are hosts with ports if a source is a list of them.
const HOSTS: usize = 3;

/// Whether the first lines are [`HOSTS`] hosts with ports, such as `example.org:8080/path`.
fn has_hosts_with_ports(head: &[u8]) -> bool {
    let is_host = |line: &[u8]| {
        let Some((host, rest)) = memchr::memchr(b':', line).map(|at| (&line[..at], &line[at + 1..])) else {
            return false;
        };
        let port = rest.split(|byte| *byte == b'/').next().unwrap_or_default().trim_ascii_end();
        (host.contains(&b'.') || host.eq_ignore_ascii_case(b"localhost"))
            && (1..=5).contains(&port.len())
            && port.iter().all(u8::is_ascii_digit)
    };
    head.split(|byte| *byte == b'\n').take(HOSTS).filter(|line| is_host(line)).count() == HOSTS
}

/// The advice on a line with tabs or spaces.
fn of_separators(line: &[u8]) -> Option<FormatAdvice> {
    let has_time = || {
        let time = line.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
        time.len() == 14 && time.iter().all(u8::is_ascii_digit)
    };
    let advice = match memchr::memchr(b'\t', line).map(|tab| &line[tab + 1..]) {
        Some(rest) if rest.starts_with(b"Version: ") => CRAWL_DB,
        Some(_) => TABS,
        None if has_time() => CDX,
        None if memchr::memmem::find(line, b" {\"").is_some() => CDXJ,
        None if line.trim_ascii().contains(&b' ') => SPACES,
        None if line.contains(&b' ') => SPACES_AROUND,
        None => return None,
    };
    Some(advice.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_records_suggest_a_format() {
        let cases = [
            ("http://a/\tnutch.score=10", Some(TABS)),
            ("\"http://a/\"", Some(QUOTES)),
            ("http://a/ ", Some(SPACES_AROUND)),
            (" http://a/ http://b/", Some(SPACES)),
            ("http://a/\tVersion: 7\nStatus: 1 (db_unfetched)", Some(CRAWL_DB)),
            ("com,a)/ 20140127171200 http://a/ text/html 200 ABC - 1", Some(CDX)),
            ("com,a)/ 2014-01-27 {\"url\": \"http://a/\"}", Some(CDXJ)),
            ("# seeds", Some(COMMENT)),
            ("{\"page\": 1}", Some(JSON)),
            ("http://a/ http://b/", Some(SPACES)),
            ("http://a/b,c", None),
            ("junk\0\nWARC/1.0\r\nWARC-Type: response\r\n", Some(WARC)),
            ("\u{7f}ELF\0\t\0", Some(BINARY)),
        ];
        for (text, advice) in cases {
            let format = SourceFormat::Text(TextFormat::default());
            assert_eq!(FormatAdvice::of_source(&format, text.as_bytes()), advice.map(FormatAdvice::from), "{text}");
        }
    }

    #[test]
    fn tables_are_recognized_by_a_header_or_by_urls_in_a_later_field() {
        let advice = |text: &str| FormatAdvice::of_source(&SourceFormat::Text(TextFormat::default()), text.as_bytes());
        for header in ["id,url,title", "id;URL", "a|\"link\"\r\n", "url,id\nhttp://a/,1"] {
            assert_eq!(advice(header), Some(FormatAdvice::Header(TABLE)), "{header}");
        }
        assert_eq!(advice("id\turl\n1\thttp://a/"), Some(FormatAdvice::Header(TAB_TABLE)));
        let hosts = "example.org:80/p\nlocalhost:8080\r\nA.b:1\n";
        assert_eq!(advice(hosts), Some(FormatAdvice::HostsWithPorts));
        for others in ["example.org:80/p\nlocalhost:8080\n", "a.b:1\na.b:123456\na.b:1\n", "a.b:1\na:1\na.b:1\n"] {
            assert_eq!(advice(others), None, "{others}");
        }
        let rows = [
            ("id,address\n1,http://a/\n", "csv --column 2"),
            ("1,x,\"https://a/\"", "csv --column 3"),
            ("id\tadr\r\n1\tHTTP://a/\r\n", "tsv --column 2"),
            ("1;http://a/,b", "csv --delimiter ';' --column 2"),
            ("\n1|http://a/", "csv --delimiter '|' --column 2"),
        ];
        for (text, flags) in rows {
            let expected = format!("the records look like rows of a table; use --format {flags}");
            assert_eq!(advice(text), Some(FormatAdvice::Format(expected.into())), "{text}");
        }
        for text in
            ["http://a/,http://b/", "http://a/?u=x,http://b/", "a,b\nc,d", "url", "url,http://a/", "http://h/;url,x"]
        {
            assert!(!matches!(advice(text), Some(FormatAdvice::Header(_))), "{text}");
        }
        assert_eq!((advice("http://a/?u=x,http://b/"), advice("a,b\nc,d\ne,http://a/")), (None, None));
    }
}
