//! Decompresses gzip files of many members with several threads, ahead of the reader.
//!
//! The file, which is mapped or in a store, is divided into sections of equal length. A thread searches its section for the
//! first member header and decompresses from there. Such a header may be a coincidence inside deflated data, so a section counts
//! only if the members before it end exactly where it begins: the result is the same as that of one [`GzipReader`], including
//! its defects. Everything that is not a whole member of moderate length (padding, damage, very long members) is left to a
//! [`GzipReader`] that starts there.

use std::fs::{self, File};
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::vec::Drain;

use super::block::{BlockPool, Buffer};
use super::detect::{Packing, packing};
use super::error::Defect;
use super::gzip::{GzipReader, find_member_header};
use super::mmap::{MappedFile, MappedReader};
use super::peek::PeekReader;
use super::unpacker::{MemberEnd, Unpacker};
use super::zip::is_zip;
use super::zip_reader::MemberChecksum;
use crate::ordered::{QueueLimits, ReadAhead};
use crate::remote::{ReadAheadBlocks, RemoteReader};
use flate2::{Crc, CrcReader};

/// Compressed bytes per section. The last member of a section may end after the section.
const SECTION_LEN: usize = 256 << 10;
/// Limit of decompressed bytes per section. Members that exceed it are left out.
const UNPACKED_LEN: usize = 4 << 20;
/// Bytes of memory per thread in which all threads can decompress sections of any kind.
pub(crate) const AHEAD_LEN: usize = 2 * UNPACKED_LEN;
/// Bytes by which a header is recognized.
const MEMBER_HEADER_LEN: usize = 4;
/// Header candidates that are tried per section.
const MAX_TRIES: usize = 8;

/// The threads that decompress a gzip file ahead of its reader.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AheadThreads {
    /// With 1, the reading thread decompresses.
    pub(crate) count: usize,
    /// Bytes of memory that all of them have together.
    pub(crate) memory: usize,
}

/// Whether sources of `path` may have gzip members. Returns false for a pipe, and for a file that starts with neither a gzip nor a
/// ZIP header.
pub(crate) fn may_have_members(path: &Path) -> bool {
    // Opening a pipe would wait for its writer, and take bytes from the reader that opens it later.
    if path.as_os_str() == "-" || fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()) {
        return false;
    }
    let mut head = [0; MEMBER_HEADER_LEN];
    // Directories, lists and members of archives cannot be opened and read.
    let is_other = File::open(path)
        .and_then(|mut file| file.read(&mut head))
        .is_ok_and(|count| packing(&head[..count]) != Packing::Gzip && !is_zip(&head[..count]));
    !is_other
}

/// A gzip file that several threads read.
#[derive(Clone)]
enum PackedFile {
    Mapped(Arc<MappedFile>),
    /// An object from a byte on.
    Remote(Arc<ReadAheadBlocks>, u64),
}

impl PackedFile {
    fn len(&self) -> usize {
        match self {
            PackedFile::Mapped(mapping) => mapping.len(),
            PackedFile::Remote(blocks, start) => {
                usize::try_from(blocks.len().saturating_sub(*start)).unwrap_or(usize::MAX)
            }
        }
    }

    /// Reads from byte `at` on.
    fn reader(&self, at: usize) -> Box<dyn Read + Send> {
        match self {
            PackedFile::Mapped(mapping) => Box::new(MappedReader::new(Arc::clone(mapping), at)),
            PackedFile::Remote(blocks, start) => Box::new(RemoteReader::new(Arc::clone(blocks), start + at as u64)),
        }
    }

    /// Where the first bytes in `range` are that look like the header of a member, which may reach past the range.
    fn find_header(&self, range: Range<usize>) -> Option<usize> {
        let Range { start, end } = range;
        let search_end = self.len().min(end + MEMBER_HEADER_LEN - 1);
        let offset = match self {
            PackedFile::Mapped(mapping) => find_member_header(&mapping[start..search_end])?,
            PackedFile::Remote(..) => {
                let mut bytes = Vec::new();
                let read = self.reader(start).take((search_end - start) as u64).read_to_end(&mut bytes);
                // The error is found again by the reader that continues here.
                read.ok().and_then(|_| find_member_header(&bytes))?
            }
        };
        Some(start + offset)
    }

    /// Updates a checksum with the bytes of `range`. Those of an object were read a moment ago and are still in memory.
    fn update_crc(&self, range: Range<usize>, crc: &mut Crc) -> io::Result<()> {
        if let PackedFile::Mapped(mapping) = self {
            crc.update(&mapping[range]);
            return Ok(());
        }
        let mut bytes = CrcReader::new(self.reader(range.start).take(range.len() as u64));
        io::copy(&mut bytes, &mut io::sink())?;
        crc.combine(bytes.crc());
        Ok(())
    }

    /// Releases the memory of `range`, which is not needed any more.
    fn release(&self, range: Range<usize>) {
        if let PackedFile::Mapped(mapping) = self {
            mapping.release(range);
        }
    }
}

/// Reads the members of a gzip file in order.
pub(super) struct ParallelGzipReader {
    file: PackedFile,
    sections: ReadAhead<GzipSection>,
    section_count: usize,
    /// The first section that was not taken or skipped.
    next_section: usize,
    /// Offset of the first member that was not taken from a section.
    at: usize,
    /// The current section, and how many of its bytes were read.
    section: GzipSection,
    section_read: usize,
    /// Decompressed bytes read so far.
    unpacked: u64,
    /// Ends of members that were not taken yet.
    ends: Vec<MemberEnd>,
    /// The reader of bytes that no section covers, and the position at which it began.
    sequential: Option<(MemberEnd, GzipReader)>,
    /// Set if the file is a member of a ZIP archive: its checksum, that of the bytes so far, and their number.
    checksum: Option<(MemberChecksum, Crc, usize)>,
    /// Why the checksum could not be computed. The bytes before are returned first.
    failed: Option<io::Error>,
}

impl ParallelGzipReader {
    /// Returns `None` if the file is too short for several threads to share, if there is too little memory, or if no thread can
    /// be started.
    pub(super) fn new(mapping: &Arc<MappedFile>, threads: AheadThreads) -> Option<ParallelGzipReader> {
        ParallelGzipReader::start(PackedFile::Mapped(Arc::clone(mapping)), threads)
    }

    /// [`ParallelGzipReader::new`] for an object from byte `start` on.
    pub(super) fn remote(
        blocks: &Arc<ReadAheadBlocks>,
        start: u64,
        threads: AheadThreads,
    ) -> Option<ParallelGzipReader> {
        ParallelGzipReader::start(PackedFile::Remote(Arc::clone(blocks), start), threads)
    }

    fn start(file: PackedFile, threads: AheadThreads) -> Option<ParallelGzipReader> {
        let AheadThreads { count: threads, memory } = threads;
        let section_count = file.len().div_ceil(SECTION_LEN);
        // One buffer is being read while the others are filled.
        let window = (threads * 3 / 2 + 1).min((memory / UNPACKED_LEN).saturating_sub(1));
        if threads < 2 || window < 2 || section_count < 2 * threads {
            return None;
        }
        let limits = QueueLimits { window, bytes: usize::MAX };
        let pool = BlockPool::new(window + 1, UNPACKED_LEN);
        let section = move |number| usize::try_from(number).ok().filter(|&number| number < section_count);
        let source = move |number| section(number).map(|number| (1, number));
        let shared = file.clone();
        let sections = ReadAhead::spawn(threads, limits, source, move |number: usize, sender| {
            let section = GzipSection::find(&shared, number, pool.take());
            let len = section.bytes.len();
            sender.push(section, len);
        });
        Some(ParallelGzipReader {
            file,
            sections: sections.ok()?,
            section_count,
            next_section: 0,
            at: 0,
            section: GzipSection::default(),
            section_read: 0,
            unpacked: 0,
            ends: Vec::new(),
            sequential: None,
            checksum: None,
            failed: None,
        })
    }

    /// Computes the checksum of the file while it is read.
    pub(super) fn with_checksum(self, checksum: MemberChecksum) -> ParallelGzipReader {
        ParallelGzipReader { checksum: Some((checksum, Crc::new(), 0)), ..self }
    }

    /// Updates the checksum with the bytes up to `end`.
    fn update_checksum(&mut self, end: usize) {
        if let Some((checksum, crc, at)) = &mut self.checksum {
            self.failed = self.file.update_crc(*at..end, crc).err().or(self.failed.take());
            checksum.set(crc.sum());
            *at = end;
        }
    }

    /// Takes the section whose members begin exactly where the members read so far end. Returns false if there is no such
    /// section.
    fn take_section(&mut self) -> bool {
        self.at = self.consumed() as usize;
        let number = self.at / SECTION_LEN;
        if number < self.next_section || number >= self.section_count {
            return false;
        }
        // Gives the buffer back to the pool.
        self.section = GzipSection::default();
        self.section_read = 0;
        self.sections.skip_to(number as u64);
        self.next_section = number + 1;
        // A section that a panic abandoned is read sequentially.
        let Some(Ok(section)) = self.sections.next() else { return false };
        if section.packed.start != self.at || section.packed.is_empty() {
            return false;
        }
        self.update_checksum(section.packed.end);
        self.file.release(section.packed.clone());
        let start = MemberEnd { unpacked: self.unpacked, packed: self.at as u64 };
        self.ends.extend(section.ends.iter().map(|end| end.after(start)));
        self.at = section.packed.end;
        (self.section, self.sequential) = (section, None);
        true
    }
}

impl Unpacker for ParallelGzipReader {
    fn consumed(&self) -> u64 {
        match &self.sequential {
            Some((start, reader)) => start.packed + reader.consumed(),
            None => self.at as u64,
        }
    }

    fn take_ends(&mut self) -> Option<Drain<'_, MemberEnd>> {
        Some(self.ends.drain(..))
    }

    fn read(&mut self, into: &mut [u8]) -> Result<usize, Defect> {
        loop {
            let rest = &self.section.bytes[self.section_read..];
            if !rest.is_empty() {
                let count = rest.len().min(into.len());
                into[..count].copy_from_slice(&rest[..count]);
                self.section_read += count;
                self.unpacked += count as u64;
                return Ok(count);
            }
            if let Some(error) = self.failed.take() {
                return Err(Defect::Read(error));
            }
            let may_take = self.sequential.as_ref().is_none_or(|(_, reader)| reader.is_between_members());
            if may_take && self.take_section() {
                continue;
            }
            let (start, reader) = self.sequential.get_or_insert_with(|| {
                let input = PeekReader::new(self.file.reader(self.at));
                let start = MemberEnd { unpacked: self.unpacked, packed: self.at as u64 };
                (start, if self.at == 0 { GzipReader::new(input) } else { GzipReader::after_members(input) })
            });
            let count = reader.read(into);
            self.ends.extend(reader.take_ends().into_iter().flatten().map(|end| end.after(*start)));
            self.unpacked += *count.as_ref().unwrap_or(&0) as u64;
            self.update_checksum(self.consumed() as usize);
            match self.failed.take() {
                // A checksum that lacks these bytes would be reported as damage.
                Some(error) if matches!(count, Ok(0)) && !into.is_empty() => return Err(Defect::Read(error)),
                failed => self.failed = failed,
            }
            return count;
        }
    }
}

/// Whole members, decompressed.
#[derive(Default)]
struct GzipSection {
    /// Where the members are in the file; empty if none was found.
    packed: Range<usize>,
    bytes: Buffer,
    /// Ends of the members, counted from the start of the first one.
    ends: Vec<MemberEnd>,
}

impl GzipSection {
    /// Decompresses the members that begin in section `number`, as far as they can be found from the section alone.
    fn find(file: &PackedFile, number: usize, bytes: Buffer) -> GzipSection {
        let mut section = GzipSection { bytes, ..GzipSection::default() };
        let start = number * SECTION_LEN;
        let end = file.len().min(start + SECTION_LEN);
        let mut at = start;
        for _ in 0..MAX_TRIES {
            let Some(header) = file.find_header(at..end) else { break };
            section.unpack(file, header, end);
            if !section.packed.is_empty() {
                break;
            }
            at = header + 1;
        }
        section
    }

    /// Decompresses the members that begin from `start` up to `end`, as long as they are whole and short enough.
    fn unpack(&mut self, file: &PackedFile, start: usize, end: usize) {
        let mut reader = GzipReader::new(PeekReader::new(file.reader(start)));
        self.packed = start..start;
        self.bytes.truncate(0);
        self.ends.clear();
        let mut whole_len = 0;
        while self.packed.end < end {
            let free = self.bytes.unfilled(UNPACKED_LEN);
            if free.is_empty() {
                break;
            }
            match reader.read(free) {
                Ok(count @ 1..) => self.bytes.filled(count),
                Ok(0) | Err(_) => break,
            }
            if reader.is_between_members() {
                self.packed.end = start + reader.consumed() as usize;
                whole_len = self.bytes.len();
                self.ends.extend(reader.take_ends().into_iter().flatten());
            }
        }
        self.bytes.truncate(whole_len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::test_data::{gzip, peek_reader, read_all};
    use flate2::Compression;
    use std::fs::File;
    use std::io::Write;

    /// Maps a file with these bytes.
    fn mapped(packed: &[u8]) -> Arc<MappedFile> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(packed).unwrap();
        Arc::new(MappedFile::new(&File::open(file.path()).unwrap(), file.path()).unwrap())
    }

    /// `len` bytes that compress to about half.
    fn text(len: usize, seed: u32) -> Vec<u8> {
        let lines =
            (seed..).flat_map(|i| format!("http://example.org/{:x}\n", i.wrapping_mul(0x9e37_79b9)).into_bytes());
        lines.take(len).collect()
    }

    fn ahead(count: usize) -> AheadThreads {
        AheadThreads { count, memory: count * AHEAD_LEN }
    }

    fn ends(reader: &mut impl Unpacker) -> Vec<MemberEnd> {
        reader.take_ends().unwrap().collect()
    }

    /// Checks that both readers return the same bytes, ends of members and defect, and stop at the same byte of the file.
    fn check(packed: &[u8]) -> (Vec<u8>, Option<String>) {
        let mapping = mapped(packed);
        let mut reader = GzipReader::new(peek_reader(packed));
        let text = |(bytes, defect): (_, Option<Defect>)| (bytes, defect.map(|defect| defect.to_string()));
        let expected = text(read_all(50_000, &mut reader));
        let expected_ends = ends(&mut reader);
        for threads in [2, 3] {
            let mut parallel = ParallelGzipReader::new(&mapping, ahead(threads)).expect("long enough");
            let actual = text(read_all(50_000, &mut parallel));
            assert!(actual == expected, "{threads} threads: {:?}, expected {:?}", actual.1, expected.1);
            assert_eq!(parallel.consumed(), reader.consumed(), "{threads} threads");
            assert!(ends(&mut parallel) == expected_ends, "{threads} threads");
        }
        expected
    }

    /// A file long enough for three threads, of members with these decompressed lengths, repeated.
    fn members(lens: &[usize]) -> Vec<u8> {
        let mut packed = Vec::new();
        for (i, len) in lens.iter().cycle().enumerate() {
            if packed.len() > 7 * SECTION_LEN {
                break;
            }
            packed.extend(gzip(&text(*len, i as u32 * 1000), Compression::fast()));
        }
        packed
    }

    #[test]
    fn members_of_any_length_are_read() {
        for lens in [&[3000][..], &[1, 100_000, 0, 20], &[SECTION_LEN * 5, 10], &[9_000_000]] {
            assert_eq!(check(&members(lens)).1, None, "{lens:?}");
        }
    }

    #[test]
    fn short_members_are_unpacked_by_the_threads() {
        let packed = members(&[3000]);
        let len = check(&packed).0.len() as u64;
        let mut parallel = ParallelGzipReader::new(&mapped(&packed), ahead(2)).unwrap();
        let mut into = vec![0; 50_000];
        while parallel.unpacked < len {
            assert!(parallel.read(&mut into).unwrap() > 0 && parallel.sequential.is_none());
        }
    }

    #[test]
    fn a_member_that_is_too_long_for_a_section_is_read() {
        let bomb = gzip(&vec![b'a'; 3 * UNPACKED_LEN], Compression::fast());
        let few = members(&[50_000]);
        assert_eq!(check(&[&few[..], &bomb, &few].concat()).1, None);
    }

    #[test]
    fn headers_inside_a_member_are_not_members() {
        // Stored without compression, the inner members are visible in the outer ones.
        let inner = members(&[1000]);
        let outer: Vec<u8> = inner.chunks(300_000).flat_map(|part| gzip(part, Compression::none())).collect();
        assert!(check(&outer).0 == inner);
        let heads = [0x1f, 0x8b, 8, 0].repeat(SECTION_LEN);
        assert!(check(&gzip(&heads, Compression::none()).repeat(2)).0 == heads.repeat(2));
    }

    #[test]
    fn a_reader_needs_memory_for_three_sections() {
        let mapping = mapped(&members(&[20_000]));
        let reader = |memory| ParallelGzipReader::new(&mapping, AheadThreads { count: 2, memory });
        assert!(reader(3 * UNPACKED_LEN).is_some() && reader(3 * UNPACKED_LEN - 1).is_none());
    }

    #[test]
    fn padding_damage_and_truncation_are_reported_alike() {
        let whole = members(&[20_000]);
        let half = whole.len() / 2;
        assert_eq!(check(&[&whole[..], &[0; 3 * SECTION_LEN]].concat()).1, None);
        assert!(check(&[&whole[..], b"garbage"].concat()).1.is_some());
        assert!(check(&whole[..whole.len() - 5000]).1.is_some());
        for at in [half, half + 77, 12 + SECTION_LEN] {
            let mut bad = whole.clone();
            bad[at] ^= 0x10;
            check(&bad);
        }
    }

    /// Pages that a search reads count as memory of the process.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_header_is_searched_within_its_section() {
        const LEN: u64 = 512 << 20;
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(LEN).unwrap();
        let packed = PackedFile::Mapped(Arc::new(MappedFile::new(file.as_file(), file.path()).unwrap()));
        let resident_len = || {
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
            line.trim_end_matches("kB").trim().parse::<u64>().unwrap() << 10
        };
        let before = resident_len();
        assert_eq!(packed.find_header(0..SECTION_LEN), None);
        assert!(resident_len() < before + LEN / 2);
    }

    #[test]
    fn dropping_the_reader_stops_the_threads() {
        let mapping = mapped(&members(&[20_000]));
        let mut members = ParallelGzipReader::new(&mapping, ahead(2)).unwrap();
        assert!(members.read(&mut [0; 10]).unwrap() > 0);
        drop(members);
        assert_eq!(Arc::strong_count(&mapping), 1);
    }
}
