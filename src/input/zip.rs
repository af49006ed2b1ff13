//! Members of ZIP archives (APPNOTE.TXT 6.3.10): [`list_members`] reads the directory of an archive and checks it.
//!
//! ```text
//! archive --directory--> entries --MemberSelection--> ListedMember: name, place --zip_reader--> bytes
//! ```
//!
//! An archive of web captures (WACZ) gives its WARC and ARC files; its indexes and lists of pages describe the same
//! captures again. Other archives give all files, like a directory. A name or pattern after `!` selects any members.

use super::error::Defect;
use super::stored_file::StoredFile;
use super::table::PositionedFile;
use crate::process::part_names::is_hidden_name;
use parking_lot::Mutex;
use parquet::file::reader::Length;
use rawzip::{CompressionMethod, Error, ErrorKind, RECOMMENDED_BUFFER_SIZE, ReaderAt, ZipArchive};
use rawzip::{ZipArchiveEntryWayfinder, ZipFileHeaderRecord, ZipLocalFileHeader, ZipLocator};
use std::io::{self, Read};
use std::ops::Range;

/// Bytes of an object that are requested at a time.
const PIECE_LEN: u64 = 64 << 10;

/// Maximum number of members of an archive.
const MAX_MEMBERS: usize = 1 << 20;

/// The member that names the files of a package.
const PACKAGE: &[u8] = b"datapackage.json";

/// The directory of the captures of a WACZ package, and the suffixes of their files.
const CAPTURES: &[u8] = b"archive/";
const CAPTURE_SUFFIXES: [&[u8]; 5] = [b".warc", b".warc.gz", b".warc.zst", b".arc", b".arc.gz"];

/// The member that documents of Office programs have.
const OFFICE: &[u8] = b"[Content_Types].xml";

/// Which members of an archive are read.
#[derive(Clone, Copy, Debug)]
pub(super) enum MemberSelection<'a> {
    /// The captures of a package, or all files.
    Default,
    /// Those whose names match this pattern, in which `*` matches any bytes.
    Pattern(&'a [u8]),
}

/// How a member is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MemberMethod {
    /// As it is.
    Stored,
    /// Deflated (RFC 1951).
    Deflated,
}

/// Where a member is.
#[derive(Clone, Debug)]
pub(crate) struct ZipMember {
    /// The archive.
    pub(crate) file: StoredFile,
    /// The bytes of the member in the archive, as stored.
    pub(crate) range: Range<u64>,
    pub(super) method: MemberMethod,
    /// Checksum and length of the content.
    pub(super) crc: u32,
    pub(super) len: u64,
}

/// A member that is to be read, in the order of the directory.
pub(super) struct ListedMember {
    /// Its name as stored.
    pub(super) name: Vec<u8>,
    /// Where it is, or why it cannot be read.
    pub(super) member: Result<ZipMember, Defect>,
}

/// An entry of the directory.
struct DirectoryEntry {
    name: Vec<u8>,
    method: CompressionMethod,
    is_encrypted: bool,
    crc: u32,
    header_at: u64,
    place: ZipArchiveEntryWayfinder,
}

/// The bytes of an archive on disk or in a store, at any position: its directory and headers are read.
struct ZipBytes {
    file: PositionedFile,
    /// The bytes of an object that were requested last, and their position. Headers are close to each other.
    piece: Option<Mutex<(u64, Vec<u8>)>>,
}

impl ZipBytes {
    fn open(file: &StoredFile) -> io::Result<ZipBytes> {
        let piece = matches!(file, StoredFile::Remote(_)).then(Mutex::default);
        Ok(ZipBytes { file: PositionedFile::open(file)?, piece })
    }

    fn len(&self) -> u64 {
        self.file.len()
    }
}

impl ReaderAt for ZipBytes {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        let Some(piece) = &self.piece else { return self.file.reader(at).read(into) };
        let mut piece = piece.lock();
        let has_byte = at.checked_sub(piece.0).is_some_and(|offset| offset < piece.1.len() as u64);
        if !has_byte {
            piece.1.clear();
            piece.0 = at;
            let len = PIECE_LEN.max(into.len() as u64).min(self.file.len().saturating_sub(at));
            self.file.reader(at).take(len).read_to_end(&mut piece.1)?;
        }
        let rest = &piece.1[(at - piece.0) as usize..];
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

/// Whether `file` begins with the signature of a ZIP archive. Returns false for a file that cannot be read.
pub(super) fn is_zip(mut file: impl Read) -> bool {
    let mut head = [0; 4];
    file.read_exact(&mut head).is_ok() && matches!(&head, b"PK\x03\x04" | b"PK\x05\x06")
}

/// Lists the members of the archive in `file` that are selected.
pub(super) fn list_members(file: &StoredFile, selection: MemberSelection<'_>) -> Result<Vec<ListedMember>, Defect> {
    let bytes = ZipBytes::open(file).map_err(Defect::Open)?;
    let (mut buffer, len) = (vec![0; RECOMMENDED_BUFFER_SIZE], bytes.len());
    let archive = ZipLocator::new().locate_in_reader(bytes, &mut buffer, len).map_err(|(_, error)| damaged(error))?;
    let mut entries = read_directory(&archive, &mut buffer)?;
    let is_package =
        entries.iter().any(|entry| entry.name == PACKAGE) && entries.iter().any(|entry| is_capture(&entry.name));
    if entries.iter().any(|entry| entry.name == OFFICE) && matches!(selection, MemberSelection::Default) {
        return Err(Defect::Zip("this is a document of an Office program; save it as CSV".to_string()));
    }
    entries.retain(|entry| match selection {
        _ if entry.name.ends_with(b"/") => false,
        MemberSelection::Pattern(pattern) => entry.name == pattern || matches(pattern, &entry.name),
        MemberSelection::Default if is_package => is_capture(&entry.name),
        MemberSelection::Default => !is_hidden(&entry.name),
    });
    let end = archive.directory_offset();
    let locate = |entry: DirectoryEntry, buffer: &mut [u8]| {
        let member = locate(&archive, &entry, file, buffer);
        (entry.header_at, ListedMember { name: entry.name, member })
    };
    let mut members: Vec<_> = entries.into_iter().map(|entry| locate(entry, &mut buffer)).collect();
    refuse_overlaps(&mut members, end);
    Ok(members.into_iter().map(|(_, member)| member).collect())
}

fn is_capture(name: &[u8]) -> bool {
    name.starts_with(CAPTURES) && CAPTURE_SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
}

/// Whether a part of the name begins with `.` or `_`, like those that are skipped in directories.
fn is_hidden(name: &[u8]) -> bool {
    name.split(|&byte| byte == b'/').any(is_hidden_name)
}

/// Whether `name` matches a pattern in which `*` matches any bytes. Takes time in proportion to the product of the
/// lengths at most.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut in_pattern, mut retry) = (0, 0, None);
    while at < name.len() {
        if pattern.get(in_pattern) == Some(&b'*') {
            retry = Some((at, in_pattern));
            in_pattern += 1;
        } else if pattern.get(in_pattern) == Some(&name[at]) {
            (at, in_pattern) = (at + 1, in_pattern + 1);
        } else if let Some((from, star)) = &mut retry {
            *from += 1;
            (at, in_pattern) = (*from, *star + 1);
        } else {
            return false;
        }
    }
    pattern[in_pattern..].iter().all(|&byte| byte == b'*')
}

fn read_directory(archive: &ZipArchive<ZipBytes>, buffer: &mut [u8]) -> Result<Vec<DirectoryEntry>, Defect> {
    let mut entries = Vec::new();
    let mut records = archive.entries(buffer);
    while let Some(record) = records.next_entry().map_err(damaged)? {
        if entries.len() == MAX_MEMBERS {
            return Err(Defect::Zip(format!(
                "it has more than {MAX_MEMBERS} members; extract it, and name the directory"
            )));
        }
        entries.push(DirectoryEntry::new(&record));
    }
    match archive.entries_hint() {
        count if count == entries.len() as u64 => Ok(entries),
        count => Err(Defect::zip_damage(&format!("its directory has {} members, but states {count}", entries.len()))),
    }
}

impl DirectoryEntry {
    fn new(record: &ZipFileHeaderRecord<'_>) -> DirectoryEntry {
        DirectoryEntry {
            name: record.file_path().as_bytes().to_vec(),
            method: record.compression_method(),
            is_encrypted: record.flags().is_encrypted(),
            crc: record.crc32(),
            header_at: record.local_header_offset(),
            place: record.wayfinder(),
        }
    }
}

/// Finds the bytes of a member, whose own header has to agree with the directory.
fn locate(
    archive: &ZipArchive<ZipBytes>,
    entry: &DirectoryEntry,
    file: &StoredFile,
    buffer: &mut [u8],
) -> Result<ZipMember, Defect> {
    if entry.is_encrypted {
        return Err(Defect::Zip(
            "the member is encrypted; extract it with its password, and name the file".to_string(),
        ));
    }
    let method = member_method(entry.method)?;
    let found = archive.get_entry(entry.place).map_err(damaged)?;
    let header = found.local_header(buffer).map_err(damaged)?;
    if let Some(differing) = find_difference(&header, entry) {
        let message = format!("the {differing} of the member differ between its header and the directory");
        return Err(Defect::zip_damage(&message));
    }
    let (start, end) = found.compressed_data_range();
    let len = entry.place.uncompressed_size_hint();
    Ok(ZipMember { file: file.clone(), range: start..end, method, crc: entry.crc, len })
}

/// Returns what differs between the header of a member and its entry in the directory.
fn find_difference(header: &ZipLocalFileHeader<'_>, entry: &DirectoryEntry) -> Option<&'static str> {
    let (packed_len, len) = (entry.place.compressed_size_hint(), entry.place.uncompressed_size_hint());
    // The lengths and the checksum may follow the member instead.
    let is_later = header.flags().has_data_descriptor();
    if header.file_path().as_bytes() != entry.name {
        Some("names")
    } else if header.compression_method() != entry.method || header.flags().is_encrypted() {
        Some("methods")
    } else if !is_later && (header.compressed_size_hint(), header.uncompressed_size_hint()) != (packed_len, len) {
        Some("lengths")
    } else if !is_later && header.crc32() != entry.crc {
        Some("checksums")
    } else if entry.method == CompressionMethod::STORE && packed_len != len {
        Some("lengths before and after decompression")
    } else {
        None
    }
}

fn member_method(method: CompressionMethod) -> Result<MemberMethod, Defect> {
    match method {
        CompressionMethod::STORE => Ok(MemberMethod::Stored),
        CompressionMethod::DEFLATE => Ok(MemberMethod::Deflated),
        method => {
            let method = method.name().map_or_else(|| method.as_u16().to_string(), str::to_string);
            Err(Defect::Zip(format!("the member is compressed by the method {method}; extract it, and name the file")))
        }
    }
}

/// Refuses members that share bytes with an earlier member or with the directory, which begins at byte `end`: a small archive
/// could contain the same bytes any number of times.
fn refuse_overlaps(members: &mut [(u64, ListedMember)], end: u64) {
    let mut order: Vec<usize> = (0..members.len()).collect();
    order.sort_by_key(|&i| members[i].0);
    let mut taken_to = 0;
    for i in order {
        let (header_at, ListedMember { member, .. }) = &mut members[i];
        let Ok(place) = member else { continue };
        if *header_at < taken_to || place.range.end > end {
            *member = Err(Defect::zip_damage("the member shares bytes with another one or with the directory"));
        } else {
            taken_to = place.range.end;
        }
    }
}

fn damaged(error: Error) -> Defect {
    match error.into_kind() {
        ErrorKind::IO(error) if error.kind() != io::ErrorKind::UnexpectedEof => Defect::Read(error),
        ErrorKind::MissingEndOfCentralDirectory => {
            Defect::zip_damage("its directory, which is at the end, is missing: the file was cut short")
        }
        ErrorKind::IO(_) | ErrorKind::Eof => Defect::zip_damage("its directory points past the end of the file"),
        kind => Defect::zip_damage(&kind.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_bytes() {
        for (pattern, name, expected) in [
            ("pages/*.jsonl", "pages/pages.jsonl", true),
            ("*", "a/b", true),
            ("**a*", "ba", true),
            ("*.warc*", "archive/a.warc.gz", true),
            ("a*b*c", "aXbYbc", true),
            ("a*b*c", "aXcYb", false),
            ("pages", "pages/pages.jsonl", false),
            ("", "", true),
            ("", "a", false),
            ("*a", "b", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
        let (pattern, name) = (b"*a".repeat(1000), [b"a".repeat(10_000), b"b".to_vec()].concat());
        assert!(!matches(&pattern, &name));
    }
}
