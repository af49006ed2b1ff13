//! A [`Source`] in, a mapping or a stream of unpacked bytes out. The only place where inputs are opened.

use super::detect::{Packing, SNIFF_LEN, packing};
use super::error::Defect;
use super::inflate::{Gunzip, MemberEnd, Unzstd};
use super::list::{Origin, Source};
use super::members::Members;
use super::mmap::MappedFile;
use super::read::Feed;
use super::unpack::Unpack;
use super::utf16::Utf16;
use crate::encoding::Utf16Decoder;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

/// Shorter files are read: two system calls and one copy cost less than a mapping and its page faults.
const MAPPED_LEN: u64 = 64 << 10;

/// How sources are opened.
#[derive(Clone, Copy, Debug)]
pub struct OpenOptions {
    /// Map regular files that are not packed, or gzip that is long; else they are read.
    pub mmap: bool,
    /// Threads that may unpack gzip of many members at once; with one, whoever reads unpacks.
    pub threads: usize,
}

/// A source that is ready to give its bytes.
pub enum Opened {
    /// The whole file, as memory.
    Mapped(Arc<MappedFile>),
    /// Bytes in order.
    Stream(Stream),
}

/// Unpacked bytes of a source, in order; in UTF-8, once it is said that they are UTF-16.
pub struct Stream {
    packed: Kind,
    utf16: Option<Utf16>,
}

enum Kind {
    Plain(Feed),
    Gzip(Box<Gunzip>),
    Members(Box<Members>),
    Zstd(Box<Unzstd>),
    Other(Unpack),
}

impl Stream {
    fn new(mut feed: Feed) -> Result<Stream, Defect> {
        let packed = match packing(feed.look(SNIFF_LEN)?) {
            Packing::Plain => Kind::Plain(feed),
            Packing::Gzip => Kind::Gzip(Box::new(Gunzip::new(feed))),
            Packing::Zstd => Kind::Zstd(Box::new(Unzstd::new(feed)?)),
            Packing::Lz4 => Kind::Other(Unpack::lz4(feed)),
            Packing::Bzip2 => Kind::Other(Unpack::bzip2(feed)),
            Packing::Xz => Kind::Other(Unpack::xz(feed)),
        };
        Ok(Stream { packed, utf16: None })
    }

    /// The bytes of a mapping from `start` on.
    pub fn mapped(mapping: Arc<MappedFile>, start: usize) -> Stream {
        Stream { packed: Kind::Plain(Feed::new(Box::new(MappedReader { mapping, start }))), utf16: None }
    }

    /// What follows is UTF-16, and `decoder` has seen what came before.
    pub(crate) fn decode_utf16(&mut self, decoder: Utf16Decoder) {
        self.utf16 = Some(Utf16::new(decoder));
    }

    /// Fills the beginning of `into` and says how much of it; 0 is the end.
    ///
    /// # Errors
    /// What ends the source early. All bytes before it were given out.
    pub fn read(&mut self, into: &mut [u8]) -> Result<usize, Defect> {
        match &mut self.utf16 {
            None => self.packed.read(into),
            Some(utf16) => utf16.read(|bytes| self.packed.read(bytes), into),
        }
    }

    /// Bytes taken from the file so far, packed if it is.
    pub fn taken(&self) -> u64 {
        match &self.packed {
            Kind::Plain(feed) => feed.taken(),
            Kind::Gzip(gunzip) => gunzip.feed().taken(),
            Kind::Members(members) => members.taken(),
            Kind::Zstd(unzstd) => unzstd.feed().taken(),
            Kind::Other(unpack) => unpack.taken(),
        }
    }

    /// Appends to `ends` where gzip members end, those passed since the last call, in order; see [`Gunzip::take_ends`].
    pub fn take_ends(&mut self, ends: &mut VecDeque<MemberEnd>) {
        match &mut self.packed {
            Kind::Gzip(gunzip) => ends.extend(gunzip.take_ends()),
            Kind::Members(members) => ends.extend(members.take_ends()),
            Kind::Plain(_) | Kind::Zstd(_) | Kind::Other(_) => (),
        }
    }

    /// The file is compressed.
    pub fn is_packed(&self) -> bool {
        !matches!(self.packed, Kind::Plain(_))
    }
}

impl Kind {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, Defect> {
        match self {
            Kind::Plain(feed) => feed.read(into),
            Kind::Gzip(gunzip) => gunzip.read(into),
            Kind::Members(members) => members.read(into),
            Kind::Zstd(unzstd) => unzstd.read(into),
            Kind::Other(unpack) => unpack.read(into),
        }
    }
}

/// Memory, read like a file.
pub(super) struct MappedReader {
    pub(super) mapping: Arc<MappedFile>,
    pub(super) start: usize,
}

impl Read for MappedReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = (&self.mapping[self.start..]).read(into)?;
        self.start += count;
        Ok(count)
    }
}

/// What a mapping serves better than reads do.
fn of_mapping(mapping: MappedFile, options: OpenOptions) -> Option<Opened> {
    let mapping = Arc::new(mapping);
    match packing(&mapping) {
        Packing::Plain => Some(Opened::Mapped(mapping)),
        Packing::Gzip => {
            let members = Members::new(&mapping, options.threads)?;
            Some(Opened::Stream(Stream { packed: Kind::Members(Box::new(members)), utf16: None }))
        }
        _ => None,
    }
}

/// Opens a source.
///
/// # Errors
/// [`Defect::Open`], or the first read's [`Defect::Read`].
pub fn open(origin: Origin, options: OpenOptions) -> Result<Opened, Defect> {
    let feed = match origin {
        Origin::Stdin => Feed::new(Box::new(io::stdin())),
        Origin::Reader(reader) => Feed::new(reader),
        Origin::Path(path) => {
            let file = File::open(&path).map_err(Defect::Open)?;
            let metadata = file.metadata().map_err(Defect::Open)?;
            if options.mmap && metadata.is_file() && metadata.len() >= MAPPED_LEN {
                // Not every file system maps, and mappings are limited: what cannot be mapped is read.
                if let Some(opened) = MappedFile::new(&file, &path).and_then(|mapping| of_mapping(mapping, options)) {
                    return Ok(opened);
                }
            }
            Feed::new(Box::new(file))
        }
    };
    Ok(Opened::Stream(Stream::new(feed)?))
}

impl Source {
    /// Opens the source; see [`open`].
    ///
    /// # Errors
    /// As [`open`].
    pub fn open(self, options: OpenOptions) -> Result<Opened, Defect> {
        open(self.origin, options)
    }
}
