//! Formats that are recognized but not read, so that their bytes do not become rows, each with advice for the user.

use super::decoder::SourceHead;
use super::json::{JsonMembers, is_json_feed};
use super::time;
use crate::iri::find_scheme;
use crate::kernel::strip_prefix_ignoring_case;

/// A format that is recognized and not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnsupportedFormat {
    /// What the source is.
    pub name: &'static str,
    /// What the user can do.
    pub advice: &'static str,
}

const fn format(name: &'static str, advice: &'static str) -> UnsupportedFormat {
    UnsupportedFormat { name, advice }
}

const COMPRESSED_TWICE: &str = "decompress it once, and pipe the rest to irikey";

/// A Parquet file whose footer or first page is encrypted.
pub(crate) const ENCRYPTED_PARQUET: UnsupportedFormat =
    format("an encrypted Parquet file", "decrypt it with the program that wrote it");

/// Magic numbers of binary formats. No line of text begins with one of them.
const BINARY: [(&[u8], UnsupportedFormat); 21] = [
    (b"\x1f\x8b\x08", format("gzip within gzip or another compression", COMPRESSED_TWICE)),
    (b"\x28\xb5\x2f\xfd", format("zstd within zstd or another compression", COMPRESSED_TWICE)),
    (b"\xfd7zXZ\0", format("xz within another compression", COMPRESSED_TWICE)),
    (b"\x04\x22\x4d\x18", format("lz4 within another compression", COMPRESSED_TWICE)),
    (b"\x02\x21\x4c\x18", format("lz4 data of the legacy format (lz4 -l)", "pipe it: lz4 -dc FILE | irikey ...")),
    (
        b"PK\x03\x04",
        format(
            "a ZIP archive from a pipe, within another file, or from a server that does not send ranges",
            "write it to a file of its own, and name that file",
        ),
    ),
    (b"PK\x05\x06", format("an empty ZIP archive", "name another file")),
    (b"7z\xbc\xaf\x27\x1c", format("a 7-Zip archive", "extract it (7z x FILE), and name its files")),
    (b"Rar!\x1a\x07", format("a RAR archive", "extract it (unrar x FILE), and name its files")),
    (b"\x1f\x9d", format("data of compress (.Z)", "pipe it: gzip -dc FILE | irikey ...")),
    (b"LZIP", format("lzip data", "pipe it: lzip -dc FILE | irikey ...")),
    (b"\x89LZO\0\r\n\x1a\n", format("lzop data", "pipe it: lzop -dc FILE | irikey ...")),
    (b"FEA1", format("a Feather file of version 1", "write it as Parquet or as Feather version 2 (pyarrow.feather)")),
    (b"ORC\x08", format("an ORC file", "write it as Parquet")),
    (b"ORC\x0a", format("an ORC file", "write it as Parquet")),
    (b"Obj\x01", format("an Avro file", "write it as Parquet or JSON lines")),
    (
        b"SEQ\x06",
        format("a Hadoop sequence file", "write it as text; for a CrawlDb: nutch readdb DIR -dump OUT -format csv"),
    ),
    (b"%PDF-", format("a PDF document", "extract its links with another tool")),
    (b"\x89PNG\r\n", format("a PNG image", "name another file")),
    (b"SQLite format 3\0", format("an SQLite database", "write a table: sqlite3 -csv -header FILE 'SELECT ...'")),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", format("a document of an old Office format", "save it as CSV")),
];

const TAR: UnsupportedFormat = format("a tar archive", "extract it (tar -xf FILE), and name its files");
const LZMA: UnsupportedFormat =
    format("LZMA data without a container", "pipe it: xz --format=lzma -dc FILE | irikey ...");
const ZLIB: UnsupportedFormat = format(
    "zlib data (RFC 1950), which is not gzip",
    "pipe it: zlib-flate -uncompress < FILE | irikey ..., or pigz -dc < FILE | irikey ...",
);
const OLD_ARROW: UnsupportedFormat = format(
    "an Arrow IPC stream from before Arrow 0.15, whose messages have no continuation marker",
    "write it again with a newer Arrow (pyarrow.ipc.open_stream reads it), or as Parquet",
);
const ZIPNUM_INDEX: UnsupportedFormat =
    format("the index of a zipnum cluster, which contains no URLs", "read the .gz files of the cluster instead");
const JSON_ARRAY: UnsupportedFormat =
    format("a JSON array", "write one object per line: jq -c '.[]' FILE | irikey ... --format jsonl");
const PRETTY_JSON: UnsupportedFormat =
    format("JSON with line ends within objects", "write one object per line: jq -c . FILE | irikey ... --format jsonl");
const CR_LINES: UnsupportedFormat =
    format("text whose lines end with CR", "convert it: tr '\\r' '\\n' < FILE | irikey ...");
const JSON_FEED: UnsupportedFormat = format("a JSON Feed", "use irikey extract");
const MARKUP: UnsupportedFormat =
    format("an HTML or XML document", "use irikey extract; for a list of URLs that begins like this, --format lines");

impl UnsupportedFormat {
    /// The binary format of a source that begins with `head`, of which 512 bytes are enough.
    pub(crate) fn of_binary(head: &[u8]) -> Option<UnsupportedFormat> {
        let by_magic = BINARY.iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, format)| *format);
        by_magic
            .or_else(|| is_tar(head).then_some(TAR))
            .or_else(|| is_lzma(head).then_some(LZMA))
            .or_else(|| is_zlib(head).then_some(ZLIB))
            .or_else(|| is_old_arrow_stream(head).then_some(OLD_ARROW))
    }

    /// The text format of a source that begins with `head`, which is not of a format that is read.
    pub(super) fn of_text(head: &[u8]) -> Option<UnsupportedFormat> {
        if is_zipnum_index(SourceHead::new(head).first_record) {
            Some(ZIPNUM_INDEX)
        } else if is_markup(head) {
            Some(MARKUP)
        } else if is_json_feed(head) {
            Some(JSON_FEED)
        } else if has_cr_lines(head) {
            Some(CR_LINES)
        } else {
            UnsupportedFormat::of_json(head)
        }
    }

    /// The kind of JSON in a source that begins with `head`, unless it has one object per line.
    pub(super) fn of_json(head: &[u8]) -> Option<UnsupportedFormat> {
        let (bracket, rest) = head.trim_ascii_start().split_first()?;
        let inner = rest.trim_ascii_start();
        match (bracket, inner.first()?) {
            (b'[', b'{' | b'[' | b'"' | b']') => Some(JSON_ARRAY),
            (b'{', b'"') => {
                let is_broken = !JsonMembers::are_whole(SourceHead::new(head).first_record);
                (is_broken && has_line_end_within(head)).then_some(PRETTY_JSON)
            }
            _ => None,
        }
    }
}

/// Whether the first line of a text with an object ends within the object: the next line has the content of what the line opens,
/// or the member after a comma. A line after a record that is cut short begins with another object.
fn has_line_end_within(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    let Some(end) = memchr::memchr(b'\n', text) else { return false };
    let around = (text[..end].trim_ascii_end().last(), text[end..].trim_ascii_start().first());
    matches!(around, (Some(b'{' | b'['), Some(_)) | (Some(b','), Some(b'"')))
}

/// Whether a source begins with the header of a tar archive: the sum of its 512 bytes is stated in octal in bytes 148 to
/// 155, which count as spaces.
fn is_tar(head: &[u8]) -> bool {
    let Some(header) = head.get(..512) else { return false };
    let stated =
        header[148..156].iter().skip_while(|byte| **byte == b' ').map_while(|byte| char::from(*byte).to_digit(8));
    let is_sum = |at: &usize| (148..156).contains(at);
    let sum: u32 = header.iter().enumerate().map(|(at, byte)| if is_sum(&at) { 32 } else { u32::from(*byte) }).sum();
    header[0] != 0 && stated.fold(0, |sum, digit| sum * 8 + digit) == sum
}

/// Whether a source begins with the header of LZMA alone: properties, the size of the dictionary (a power of two), and the
/// length of the content, which may be unknown.
fn is_lzma(head: &[u8]) -> bool {
    let [b'\x5d', 0, 0, dictionary @ .., _, _, _, _, _, _, _, _] = head.get(..13).unwrap_or_default() else {
        return false;
    };
    let has_length = head[5..13] == [0xff; 8] || head[10..13] == [0; 3];
    u16::from_le_bytes([dictionary[0], dictionary[1]]).is_power_of_two() && has_length
}

/// Whether a source begins with the header of zlib, with a window of 32 KiB and without a preset dictionary, and with a block of
/// one of the three kinds. The headers can be text, so the bytes after them must not be UTF-8, and one of them a control.
fn is_zlib(head: &[u8]) -> bool {
    let [b'x', 0x01 | 0x5e | 0x9c | 0xda, block, ..] = head else { return false };
    let is_binary = std::str::from_utf8(&head[2..]).is_err_and(|error| error.error_len().is_some());
    is_binary && head[2..].iter().any(|byte| *byte < b'\t') && block & 0b110 != 0b110
}

/// Whether a source begins with the length of a message of Arrow IPC, which no continuation marker precedes, and with a message
/// whose header is a schema. A message is a table of FlatBuffers: before its values is the distance to a list of the places
/// of its fields, of which the first are the version of the metadata, the type of the header, and the header.
fn is_old_arrow_stream(head: &[u8]) -> bool {
    let is_schema = || {
        let (len, message) = head.split_first_chunk::<4>()?;
        // The length of the prefix and the message is a multiple of 8, and the message is a short one.
        let is_len = len[3] == 0 && u32::from_le_bytes(*len) % 8 == 4;
        let u32_at = |at: usize| Some(u32::from_le_bytes(*message.get(at..)?.first_chunk()?) as usize);
        let u16_at = |at: usize| Some(u16::from_le_bytes(*message.get(at..)?.first_chunk()?) as usize);
        let table = u32_at(0)?;
        let places = table.checked_sub(u32_at(table)?)?;
        let [places_len, table_len, version, header_type, header] = [0, 2, 4, 6, 8].map(|at| u16_at(places + at));
        let has_fields = places_len? >= 10 && places_len? % 2 == 0 && table_len? >= 8;
        let is_version = version? == 0 || u16_at(table + version?)? <= 4;
        let is_schema = header_type? > 0 && *message.get(table + header_type?)? == 1;
        Some(is_len && has_fields && is_version && is_schema && header? > 0)
    };
    is_schema().unwrap_or(false)
}

/// Whether a source begins like a document in HTML or XML.
fn is_markup(head: &[u8]) -> bool {
    const BEGINNINGS: [&[u8]; 5] = [b"<!doctype html", b"<html", b"<?xml", b"<urlset", b"<rss"];
    let text = head.trim_ascii_start();
    BEGINNINGS.iter().any(|beginning| strip_prefix_ignoring_case(text, beginning).is_some())
}

/// Whether `line` is one of the index of a zipnum cluster: a key with a time, a file, offset and length and, in the newer
/// dialect, a number, between tabs. The line has the first key of a block of captures, from which no URL can be restored.
fn is_zipnum_index(line: &[u8]) -> bool {
    let fields: Vec<&[u8]> = line.split(|&byte| byte == b'\t').collect();
    let is_number = |field: &&[u8]| !field.is_empty() && field.iter().all(u8::is_ascii_digit);
    let has_time =
        |key: &[u8]| memchr::memrchr(b' ', key).is_some_and(|space| time::from_digits(&key[space + 1..]).is_some());
    matches!(fields.len(), 4 | 5) && has_time(fields[0]) && fields[2..].iter().all(is_number)
}

/// Whether no line ends with LF, and two lines that end with CR begin with a scheme.
fn has_cr_lines(head: &[u8]) -> bool {
    let has_lf = memchr::memchr(b'\n', head).is_some();
    !has_lf && head.split(|byte| *byte == b'\r').filter(|line| find_scheme(line).is_some()).nth(1).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_formats_are_recognized() {
        let cases: [(&str, Option<UnsupportedFormat>); 22] = [
            ("http://a/\rhttp://b/\r", Some(CR_LINES)),
            ("http://a/\rb", None),
            ("http://a/\rhttp://b/\r\n", None),
            ("[\n {\"url\": 1}", Some(JSON_ARRAY)),
            ("[[\"urlkey\"]]", Some(JSON_ARRAY)),
            ("[a](http://b/)", None),
            ("{\n  \"url\": \"http://a/\"\n}\n", Some(PRETTY_JSON)),
            ("{\"a\":1,\n \"url\":\"http://a/\"}\n{\"a\":2,", Some(PRETTY_JSON)),
            ("{\"a\": {\r\n  \"b\": 1}, \"url\": \"http://a/\"}", Some(PRETTY_JSON)),
            ("{\"rows\": [\n  {\"url\": \"http://a/\"},", Some(PRETTY_JSON)),
            ("{\"url\": [\n", None),
            // The first record is cut short.
            ("{\"a\":1,\n{\"url\":\"http://a/\"}\n", None),
            ("{\"url\": \"http://a/\"}\n", None),
            ("{ \"url\": \"http://a", None),
            ("{", None),
            ("", None),
            ("\n <!DOCTYPE HTML>", Some(MARKUP)),
            ("<http://a/>", None),
            ("com,a)/ 20140127171200\tcdx-00000.gz\t0\t275\t1\n", Some(ZIPNUM_INDEX)),
            ("com,b)/x 20140127171201\tpart-a-00000\t275\t9", Some(ZIPNUM_INDEX)),
            ("com,c)/\tx\t1\t2", None),
            ("com,c)/ 20140127171201\tx\t1", None),
        ];
        for (text, expected) in cases {
            assert_eq!(UnsupportedFormat::of_text(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn binary_formats_are_recognized() {
        let mut tar = vec![0; 512];
        tar[..5].copy_from_slice(b"a.txt");
        let sum: u32 = tar.iter().map(|byte| u32::from(*byte)).sum::<u32>() + 8 * 32;
        tar[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        assert_eq!(UnsupportedFormat::of_binary(&tar), Some(TAR));
        tar[200] = 1;
        assert_eq!(UnsupportedFormat::of_binary(&tar), None);
        let lzma = b"\x5d\0\0\x80\0\xff\xff\xff\xff\xff\xff\xff\xff\0";
        assert_eq!(UnsupportedFormat::of_binary(lzma), Some(LZMA));
        assert_eq!(UnsupportedFormat::of_binary(b"\x5d\0\0\x80\0http://a"), None);
        // The output of zlib for http://example.org/, as a stored block and with levels 5, 6 and 9.
        let deflated = b"\xcb\x28\x29\x29\xb0\xd2\xd7\x4f\xad\x48\xcc\x2d\xc8\x49\xd5\xcb\x2f\x4a\xd7\x07\0";
        let stored = b"\x01\x13\x00\xec\xffhttp://example.org/";
        for (level, block) in [(0x01, &stored[..]), (0x5e, deflated), (0x9c, deflated), (0xda, deflated)] {
            let packed = [b"x", &[level][..], block].concat();
            assert_eq!(UnsupportedFormat::of_binary(&packed), Some(ZLIB), "{level}");
            assert_eq!(UnsupportedFormat::of_binary(&packed[..3]), None, "{level}");
        }
        for text in [&b"x^2+y^2"[..], "x^\u{e9}".as_bytes(), b"x\x01y", b"x^caf\xe9 \n"] {
            assert_eq!(UnsupportedFormat::of_binary(text), None, "{text:?}");
        }
        let legacy = UnsupportedFormat::of_binary(b"\x02\x21\x4c\x18\x10\0\0\0");
        assert!(legacy.is_some_and(|format| format.name.contains("legacy")));
        // Length of the message, FlatBuffers table of the message.
        let stream = b"\xa4\0\0\0\x10\0\0\0\0\0\x0a\0\x0c\0\x06\0\x05\0\x08\0\x0a\0\0\0\0\x01\x03\0\x0c\0\0\0";
        assert_eq!(UnsupportedFormat::of_binary(stream), Some(OLD_ARROW));
        for (at, byte) in [(0, 0xa0), (3, 1), (4, 0xff), (10, 8), (10, 0xff), (16, 0), (20, 9), (25, 3), (27, 1)] {
            let mut other = *stream;
            other[at] = byte;
            assert_eq!(UnsupportedFormat::of_binary(&other), None, "{at}");
        }
        for len in 0..28 {
            assert_eq!(UnsupportedFormat::of_binary(&stream[..len]), None, "{len}");
        }
        for head in [&b""[..], b"\x1f", b"\x28\xb5\x2f", b"http://a/", b"FEA", b"]\0\0"] {
            assert_eq!(UnsupportedFormat::of_binary(head), None);
        }
        assert!(UnsupportedFormat::of_binary(b"\x1f\x9d\x90http").is_some_and(|format| format.advice.contains("gzip")));
    }
}
