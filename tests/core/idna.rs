//! IDNA by the published conformance test of UTS 46, `data/idna/idna-test-v2.txt.gz` (`scripts/idna-cases` makes it).
//!
//! The rows are those of Unicode 16, the version that the crate idna ships, and its data are newer. So rows that are only
//! invalid because Unicode 16 did not assign a character may be valid now. Their number is asserted, as is that of every
//! other difference.

use std::io::Read;

use flate2::read::GzDecoder;
use irikey::iri::{ParseMode, Rung, domain_to_ascii, domain_to_unicode, normalize_to_rung};

/// A row: the source, and what ToUnicode and ToASCII (non-transitional) give, with their status codes.
struct Row {
    source: String,
    unicode: String,
    unicode_status: Vec<String>,
    ascii: String,
    ascii_status: Vec<String>,
}

const ROWS: usize = 6389;

/// Rows whose source is not Unicode text.
const WITH_LONE_SURROGATES: usize = 2;

/// UTS 46 section 4.1, criterion 7: a character is not valid, here because Unicode 16 did not assign it.
const NOT_VALID: &str = "V7";

/// `UseSTD3ASCIIRules`, which neither RFC 3987 nor resolvers use.
const STD3: &str = "U1";

/// Hosts of URIs are mapped without checks of hyphens (V2, V3) and of empty and long labels (A4_1, A4_2, X4_2).
const NOT_OF_HOSTS: [&str; 6] = [STD3, "V2", "V3", "A4_1", "A4_2", "X4_2"];

/// The text of a field, in which characters may be escaped as `\uXXXX` or `\x{XXXX}`; `None` if it has a lone surrogate.
fn text(field: &str) -> Option<String> {
    if field == "\"\"" {
        return Some(String::new());
    }
    let mut pieces = field.split('\\');
    let mut text = pieces.next().unwrap_or_default().to_string();
    for piece in pieces {
        let (digits, rest) = match piece.strip_prefix("x{") {
            Some(piece) => piece.split_once('}').expect("a closed escape"),
            None => piece.strip_prefix('u').expect("an escape").split_at(4),
        };
        text.push(char::from_u32(u32::from_str_radix(digits, 16).expect("hexadecimal digits"))?);
        text.push_str(rest);
    }
    Some(text)
}

/// The rows, without those of lone surrogates. An empty field repeats an earlier one.
fn rows() -> Vec<Row> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/data/idna/idna-test-v2.txt.gz");
    let mut table = String::new();
    GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_string(&mut table).unwrap();
    let lines: Vec<&str> = table.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(lines.len(), ROWS);
    lines.into_iter().filter_map(row).collect()
}

fn row(line: &str) -> Option<Row> {
    let fields: Vec<&str> = line.split(';').collect();
    let [source, unicode, unicode_status, ascii, ascii_status] = fields[..] else { panic!("{line}") };
    let status = |field: &str| match field.trim_matches(['[', ']']) {
        "" => Vec::new(),
        codes => codes.split(", ").map(str::to_string).collect(),
    };
    let or = |field: &str, repeated: &str| if field.is_empty() { Some(repeated.to_string()) } else { text(field) };
    let source = text(source)?;
    let unicode = or(unicode, &source)?;
    let unicode_status = status(unicode_status);
    Some(Row {
        ascii: or(ascii, &unicode)?,
        ascii_status: if ascii_status.is_empty() { unicode_status.clone() } else { status(ascii_status) },
        source,
        unicode,
        unicode_status,
    })
}

/// The codes of `status` that are errors, without those that an operation does not check.
fn errors<'a>(status: &'a [String], unchecked: &[&str]) -> Vec<&'a str> {
    status.iter().map(String::as_str).filter(|code| !unchecked.contains(code)).collect()
}

/// Counts the rows whose result is not the expected one. Only characters that were assigned since may be the reason.
fn count_assigned_since<'a>(results: impl Iterator<Item = (&'a Row, Vec<&'a str>, &'a str, Option<String>)>) -> usize {
    let mut assigned_since = 0;
    for (row, errors, expected, result) in results {
        if result.as_deref() == Some(expected).filter(|_| errors.is_empty()) {
            continue;
        }
        assert!(
            errors == [NOT_VALID] && result.as_deref() == Some(expected),
            "{:?}: {errors:?}, {result:?}",
            row.source
        );
        assigned_since += 1;
    }
    assigned_since
}

#[test]
fn to_ascii_and_to_unicode_equal_the_published_rows() {
    let rows = rows();
    assert_eq!(rows.len(), ROWS - WITH_LONE_SURROGATES);
    let ascii = rows.iter().map(|row| {
        (row, errors(&row.ascii_status, &[STD3]), row.ascii.as_str(), domain_to_ascii(row.source.as_bytes()))
    });
    assert_eq!(count_assigned_since(ascii), 5);
    let unicode = rows.iter().map(|row| {
        // ToUnicode does not check lengths.
        let errors = errors(&row.unicode_status, &[STD3, "A4_1", "A4_2", "X4_2"]);
        (row, errors, row.unicode.as_str(), domain_to_unicode(row.source.as_bytes()))
    });
    assert_eq!(count_assigned_since(unicode), 7);
}

/// The host of `source` on a rung of the ladder. Characters that a host cannot have are escaped.
fn host(source: &str, rung: Rung) -> String {
    let escaped: String = source
        .bytes()
        .map(|byte| match byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(&byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        })
        .collect();
    let (uri, _) = normalize_to_rung(format!("http://{escaped}/").as_bytes(), rung, ParseMode::Lenient).unwrap();
    let uri = String::from_utf8(uri).unwrap();
    uri.strip_prefix("http://").and_then(|rest| rest.strip_suffix('/')).unwrap().to_string()
}

/// A host of a URI is mapped by ToASCII if the published row has no error that hosts are checked for. Otherwise it keeps
/// the form of the rung below, so that no two names are merged by a mapping that UTS 46 does not allow.
#[test]
fn hosts_of_uris_equal_the_published_rows() {
    let (mut mapped, mut kept, mut assigned_since, mut with_delimiters) = (0, 0, 0, 0);
    for row in rows() {
        let errors = errors(&row.ascii_status, &NOT_OF_HOSTS);
        let host_of = |rung| host(&row.source, rung);
        let (below, result) = (host_of(Rung::Syntax), host_of(Rung::Scheme));
        let is_unreserved = |c: char| c.is_ascii_alphanumeric() || "-._~".contains(c);
        match errors[..] {
            [] if row.ascii.is_empty() || !row.ascii.chars().all(is_unreserved) => {
                // Without STD3 rules ToASCII gives characters that could be taken for delimiters of the URI.
                with_delimiters += 1;
                assert_eq!(result, below, "{:?}", row.source);
            }
            [] => {
                mapped += 1;
                assert_eq!(result, row.ascii, "{:?}", row.source);
            }
            [NOT_VALID] if result != below => {
                assigned_since += 1;
                assert_eq!(result, row.ascii, "{:?}", row.source);
            }
            _ => {
                kept += 1;
                assert_eq!(result, below, "{:?}", row.source);
            }
        }
    }
    assert_eq!((mapped, kept, assigned_since, with_delimiters), (782, 5551, 3, 51));
}
