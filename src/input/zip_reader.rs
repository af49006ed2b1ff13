//! Reads members of ZIP archives: [`StoredReader`] and [`InflateReader`].
//!
//! A stored member is a range of its archive and is read like a file, also by several threads; the checksum is compared at
//! the end. A deflated member is a gzip member without header and trailer, and both are known, so that [`GzipReader`] reads
//! it and compares checksum and length.

use super::error::Defect;
use super::gzip::GzipReader;
use super::peek::PeekReader;
use super::stored_file::StoredFile;
use super::unpacker::Unpacker;
use super::zip::ZipMember;
use crate::remote::{ReadAheadBlocks, RemoteReader};
use flate2::Crc;
use std::fs::File;
use std::io::{self, Chain, Cursor, Read, Seek, SeekFrom, Take};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Header of a gzip member without optional fields, RFC 1952 section 2.3.
const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// The checksum that the content of a stored member must have, and what was read.
#[derive(Clone, Debug)]
pub(super) struct MemberChecksum {
    expected: u32,
    found: Arc<AtomicU32>,
}

impl MemberChecksum {
    pub(super) fn new(member: &ZipMember) -> MemberChecksum {
        MemberChecksum { expected: member.crc, found: Arc::default() }
    }

    /// Sets the checksum of what was read.
    pub(super) fn set(&self, found: u32) {
        self.found.store(found, Ordering::Relaxed);
    }

    /// Compares the checksums, after all bytes were read.
    pub(super) fn check(&self) -> Result<(), Defect> {
        match self.found.load(Ordering::Relaxed) == self.expected {
            true => Ok(()),
            false => Err(Defect::zip_damage("the checksum of the member differs")),
        }
    }
}

type StoredBytes = Take<Box<dyn Read + Send>>;

/// The archive of a member.
pub(super) enum MemberFile {
    Path(PathBuf),
    /// The object up to the end of the member, which several threads can read.
    Remote(Arc<ReadAheadBlocks>),
}

impl MemberFile {
    pub(super) fn open(member: &ZipMember) -> Result<MemberFile, Defect> {
        Ok(match &member.file {
            StoredFile::Path(path) => MemberFile::Path(path.clone()),
            StoredFile::Remote(object) => {
                let blocks = object.blocks_until(member.range.end);
                MemberFile::Remote(blocks.map_err(|error| Defect::Open(error.into()))?)
            }
        })
    }

    /// The bytes of the member as stored.
    fn stored_bytes(&self, member: &ZipMember) -> Result<StoredBytes, Defect> {
        let Range { start, end } = member.range;
        let bytes: Box<dyn Read + Send> = match self {
            MemberFile::Path(path) => {
                let mut file = File::open(path).map_err(Defect::Open)?;
                file.seek(SeekFrom::Start(start)).map_err(Defect::Read)?;
                Box::new(file)
            }
            MemberFile::Remote(blocks) => Box::new(RemoteReader::new(Arc::clone(blocks), start)),
        };
        Ok(bytes.take(end - start))
    }
}

/// Reads a stored member and computes its checksum.
pub(super) struct StoredReader {
    bytes: StoredBytes,
    crc: Crc,
    checksum: MemberChecksum,
}

impl StoredReader {
    pub(super) fn new(member: &ZipMember, file: &MemberFile, checksum: MemberChecksum) -> Result<StoredReader, Defect> {
        Ok(StoredReader { bytes: file.stored_bytes(member)?, crc: Crc::new(), checksum })
    }
}

impl Read for StoredReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.bytes.read(into)?;
        self.crc.update(&into[..count]);
        if count == 0 && !into.is_empty() {
            self.checksum.set(self.crc.sum());
        }
        Ok(count)
    }
}

pub(super) struct InflateReader {
    reader: GzipReader,
    /// Bytes of the content that remain, as the directory states.
    rest: u64,
}

type GzipBytes = Chain<Chain<Cursor<[u8; 10]>, StoredBytes>, Cursor<Vec<u8>>>;

impl InflateReader {
    pub(super) fn new(member: &ZipMember) -> Result<InflateReader, Defect> {
        let trailer = [member.crc.to_le_bytes(), (member.len as u32).to_le_bytes()].concat();
        let stored = MemberFile::open(member)?.stored_bytes(member)?;
        let bytes: GzipBytes = Cursor::new(GZIP_HEADER).chain(stored).chain(Cursor::new(trailer));
        Ok(InflateReader { reader: GzipReader::new(PeekReader::new(Box::new(bytes))), rest: member.len })
    }

    fn read_within(&mut self, into: &mut [u8]) -> Result<usize, Defect> {
        // After the last byte, one more shows that the member is longer.
        let limit = into.len().min(usize::try_from(self.rest).unwrap_or(usize::MAX).max(1));
        let count = self.reader.read(&mut into[..limit]).map_err(|defect| match defect {
            Defect::Read(error) => Defect::Read(error),
            Defect::Damaged(_, reason) => Defect::zip_damage(&reason),
            _ => Defect::zip_damage("the deflated data of the member is invalid"),
        })?;
        match self.rest.checked_sub(count as u64) {
            None => return Err(Defect::zip_damage("the member is longer than the directory states")),
            Some(rest) => self.rest = rest,
        }
        if count == 0 && !into.is_empty() && self.rest > 0 {
            return Err(Defect::zip_damage("the member is shorter than the directory states"));
        }
        Ok(count)
    }
}

impl Read for InflateReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.read_within(into).map_err(io::Error::other)
    }
}
