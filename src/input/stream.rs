//! Opens a source: as a mapped file, or as a stream of decompressed bytes.

use super::decoders::{Bzip2Reader, DecoderAdapter};
use super::detect::{FRAME_HEAD_LEN, Packing, SNIFF_LEN, frame_head, is_skippable_frame, packing, packing_of_frames};
use super::error::Defect;
use super::gzip::GzipReader;
use super::gzip_ahead::{AheadThreads, ParallelGzipReader};
use super::mmap::{MappedFile, MappedReader};
use super::peek::PeekReader;
use super::source::{Origin, Source};
use super::unpacker::{MemberEnd, Unpacker};
use super::zip::{MemberMethod, ZipMember};
use super::zip_reader::{InflateReader, MemberChecksum, MemberFile, StoredReader};
use super::zstd_frames::ZstdReader;
use crate::encoding::Utf16Decoder;
use crate::process::enlarge_pipe;
use crate::record::compression_of_name;
use crate::remote::{RemoteError, RemoteObject, RemoteReader};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

/// Shorter files are read: two system calls and one copy cost less than a mapping and its page faults.
const MIN_MAPPED_LEN: u64 = if cfg!(feature = "fuzzing") { 1 } else { 64 << 10 };

/// Bytes for which [`Stream::read_to_len`] makes room at first.
const READ_LEN: usize = 64 << 10;

/// Bytes of UTF-16 that are decoded at a time.
const UTF16_STEP_LEN: usize = 64 << 10;

/// How sources are opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenOptions {
    /// Map regular files that are not compressed, and long gzip files, instead of reading them.
    pub(crate) mmap: bool,
    /// Threads that decompress gzip files of many members.
    pub(crate) ahead: AheadThreads,
}

impl OpenOptions {
    /// The thread that reads also decompresses.
    pub(crate) fn sequential(mmap: bool) -> OpenOptions {
        OpenOptions { mmap, ahead: AheadThreads { count: 1, memory: 0 } }
    }
}

/// A source that is ready to be read.
pub(crate) enum Opened {
    /// The whole file in memory.
    Mapped(Arc<MappedFile>),
    /// Decompressed bytes in order.
    Stream(Stream),
}

impl Opened {
    /// The bytes in order, also those of a file in memory.
    pub(crate) fn into_stream(self) -> Stream {
        match self {
            Opened::Mapped(mapping) => Stream::mapped(mapping, 0),
            Opened::Stream(stream) => stream,
        }
    }
}

/// Decompressed bytes of a source in order, optionally transcoded from UTF-16 to UTF-8.
pub(crate) struct Stream {
    bytes: CheckedBytes,
    utf16: Option<Utf16Text>,
    /// The source has no bytes.
    is_empty: bool,
}

/// The bytes of a source after decompression, and the checksum of the stored member of a ZIP archive that they come from.
struct CheckedBytes {
    unpacker: Box<dyn Unpacker>,
    is_compressed: bool,
    checksum: Option<MemberChecksum>,
}

impl Stream {
    fn new(mut input: PeekReader) -> Result<Stream, Defect> {
        let head = input.head(SNIFF_LEN)?;
        let is_empty = head.is_empty();
        let packing = match is_skippable_frame(head) {
            // The frames are in memory afterwards, to be read again.
            true => packing_of_frames(|at| frame_head(input.peek_up_to(at + FRAME_HEAD_LEN), at)),
            false => packing(head),
        };
        let unpacker: Box<dyn Unpacker> = match packing {
            Packing::Plain => return Ok(Stream { is_empty, ..Stream::of(Box::new(input), false) }),
            Packing::Gzip => Box::new(GzipReader::new(input)),
            Packing::Zstd => Box::new(ZstdReader::new(input)?),
            Packing::Lz4 => Box::new(DecoderAdapter::lz4(input)),
            Packing::Bzip2 => Box::new(Bzip2Reader::new(input)),
            Packing::Xz => Box::new(DecoderAdapter::xz(input)),
        };
        Ok(Stream::of(unpacker, true))
    }

    fn of(unpacker: Box<dyn Unpacker>, is_compressed: bool) -> Stream {
        Stream { bytes: CheckedBytes { unpacker, is_compressed, checksum: None }, utf16: None, is_empty: false }
    }

    fn parallel(reader: ParallelGzipReader) -> Stream {
        Stream::of(Box::new(reader), true)
    }

    /// Compares the checksum of a stored member of a ZIP archive at the end.
    fn with_checksum(mut self, checksum: MemberChecksum) -> Stream {
        self.bytes.checksum = Some(checksum);
        self
    }

    /// The bytes of a mapping from `start` on, as they are.
    pub(crate) fn mapped(mapping: Arc<MappedFile>, start: usize) -> Stream {
        let reader = PeekReader::at(start as u64, Box::new(MappedReader::new(mapping, start)));
        Stream::of(Box::new(reader), false)
    }

    /// Transcodes the bytes that follow from UTF-16. `decoder` has decoded the bytes before.
    pub(crate) fn decode_utf16(&mut self, decoder: Utf16Decoder) {
        self.utf16 = Some(Utf16Text::new(decoder));
    }

    /// Reads into the start of `into`. Returns the number of bytes; 0 is the end.
    ///
    /// # Errors
    /// The defect that ends the source early. All bytes before it were returned.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> Result<usize, Defect> {
        match &mut self.utf16 {
            None => self.bytes.read(into),
            Some(utf16) => utf16.read(&mut self.bytes, into),
        }
    }

    /// Appends bytes to `bytes` until it has `len`, or the stream ends. Memory grows with what is read.
    ///
    /// # Errors
    /// The defect that ends the stream. All bytes before it were appended.
    pub(crate) fn read_to_len(&mut self, bytes: &mut Vec<u8>, len: usize) -> Result<(), Defect> {
        let (mut read_len, mut count) = (bytes.len(), Ok(1));
        while read_len < len && !matches!(count, Ok(0) | Err(_)) {
            if read_len == bytes.len() {
                bytes.resize((read_len * 2).max(READ_LEN).min(len), 0);
            }
            count = self.read(&mut bytes[read_len..]);
            read_len += count.as_ref().unwrap_or(&0);
        }
        bytes.truncate(read_len);
        count.map(|_| ())
    }

    /// Bytes of the file consumed so far; compressed bytes if the file is compressed.
    pub(crate) fn taken(&self) -> u64 {
        self.bytes.unpacker.consumed()
    }

    /// Appends the ends that [`Unpacker::take_ends`] returns to `ends`.
    pub(crate) fn take_ends(&mut self, ends: &mut VecDeque<MemberEnd>) {
        ends.extend(self.bytes.unpacker.take_ends().into_iter().flatten());
    }

    /// Whether the file is compressed.
    pub(crate) fn is_compressed(&self) -> bool {
        self.bytes.is_compressed
    }
}

impl CheckedBytes {
    /// Reads into the start of `into`. Compares the checksum at the end.
    fn read(&mut self, into: &mut [u8]) -> Result<usize, Defect> {
        let count = self.unpacker.read(into)?;
        if let (0, false, Some(checksum)) = (count, into.is_empty(), &self.checksum) {
            checksum.check()?;
        }
        Ok(count)
    }
}

/// Transcodes UTF-16 to UTF-8, in which lines end with the byte LF.
struct Utf16Text {
    decoder: Utf16Decoder,
    bytes: Vec<u8>,
    /// Decoded text; `text[start..]` was not returned yet.
    text: Vec<u8>,
    start: usize,
    is_ended: bool,
}

impl Utf16Text {
    fn new(decoder: Utf16Decoder) -> Utf16Text {
        Utf16Text { decoder, bytes: vec![0; UTF16_STEP_LEN], text: Vec::new(), start: 0, is_ended: false }
    }

    /// Reads text into `into`. Returns the number of bytes; 0 is the end. An end inside a character is a defect, which is
    /// returned after all text before it.
    fn read(&mut self, source: &mut CheckedBytes, into: &mut [u8]) -> Result<usize, Defect> {
        while self.start == self.text.len() && !self.is_ended {
            self.text.clear();
            self.start = 0;
            match source.read(&mut self.bytes)? {
                0 => self.is_ended = true,
                count => self.decoder.decode(&self.bytes[..count], &mut self.text),
            }
        }
        if self.start == self.text.len() && !self.decoder.is_whole() {
            return Err(Defect::Utf16Truncated);
        }
        let count = into.len().min(self.text.len() - self.start);
        into[..count].copy_from_slice(&self.text[self.start..self.start + count]);
        self.start += count;
        Ok(count)
    }
}

/// Opens a mapped file if that is better than reading it.
fn open_mapping(mapping: MappedFile, options: OpenOptions) -> Option<Opened> {
    let mapping = Arc::new(mapping);
    match packing(&mapping) {
        Packing::Plain => Some(Opened::Mapped(mapping)),
        Packing::Gzip => Some(Opened::Stream(Stream::parallel(ParallelGzipReader::new(&mapping, options.ahead)?))),
        _ => None,
    }
}

/// Opens a member of a ZIP archive.
fn open_member(member: &ZipMember, options: OpenOptions) -> Result<Stream, Defect> {
    if member.method == MemberMethod::Deflated {
        return Stream::new(PeekReader::new(Box::new(InflateReader::new(member)?)));
    }
    let (checksum, file) = (MemberChecksum::new(member), MemberFile::open(member)?);
    if let Some(reader) = open_shared_member(member, &file, options) {
        return Ok(Stream::parallel(reader.with_checksum(checksum.clone())).with_checksum(checksum));
    }
    let reader = StoredReader::new(member, &file, checksum.clone())?;
    Ok(Stream::new(PeekReader::new(Box::new(reader)))?.with_checksum(checksum))
}

/// Opens a stored member of several gzip members to be decompressed by several threads.
fn open_shared_member(member: &ZipMember, file: &MemberFile, options: OpenOptions) -> Option<ParallelGzipReader> {
    if options.ahead.count < 2 || member.len < MIN_MAPPED_LEN {
        return None;
    }
    match file {
        MemberFile::Path(path) if options.mmap => {
            let mapping = MappedFile::of_range(&File::open(path).ok()?, member.range.clone(), path)?;
            let mapping = Some(Arc::new(mapping)).filter(|mapping| packing(mapping) == Packing::Gzip)?;
            ParallelGzipReader::new(&mapping, options.ahead)
        }
        MemberFile::Path(_) => None,
        MemberFile::Remote(blocks) => {
            let start = member.range.start;
            let mut head = PeekReader::new(Box::new(RemoteReader::new(Arc::clone(blocks), start)));
            // An error is found again by the reader that is opened instead.
            let is_gzip = head.peek(SNIFF_LEN).is_ok_and(|head| packing(head) == Packing::Gzip);
            if is_gzip { ParallelGzipReader::remote(blocks, start, options.ahead) } else { None }
        }
    }
}

/// Opens an object. A long gzip file is decompressed by several threads.
fn open_remote(object: &RemoteObject, options: OpenOptions) -> Result<Stream, Defect> {
    let opened = object.open().map_err(|error| Defect::Open(error.into()))?;
    let blocks = opened.blocks().cloned();
    let mut reader = PeekReader::new(opened.into_reader());
    // Servers send pages about errors and log-ins with the status of success.
    let head = reader.head(SNIFF_LEN)?;
    let is_page = head.trim_ascii_start().starts_with(b"<") && packing(head) == Packing::Plain;
    if is_page && object.named_compression().is_some() {
        return Err(Defect::Open(RemoteError::page().into()));
    }
    if let (Some(blocks), Packing::Gzip) = (&blocks, packing(head))
        && let Some(reader) = ParallelGzipReader::remote(blocks, 0, options.ahead)
    {
        return Ok(Stream::parallel(reader));
    }
    Stream::new(reader)
}

/// A file that is read from its start to its end. It may grow meanwhile, but not shrink.
struct OpenedFile {
    file: File,
    /// Length of a regular file when it was opened.
    len: u64,
    /// Bytes read.
    at: u64,
}

impl Read for OpenedFile {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(into)?;
        self.at += count as u64;
        if count == 0 && !into.is_empty() && self.at < self.len && self.is_shrunk(into)? {
            return Err(io::Error::other(Defect::Shrunk(self.len, self.at)));
        }
        Ok(count)
    }
}

impl OpenedFile {
    /// Returns whether the file was truncated: its length is at most the position, or it has grown again since the read. The
    /// length that `/sys` reports exceeds its content and is no truncation.
    fn is_shrunk(&mut self, into: &mut [u8]) -> io::Result<bool> {
        Ok(self.file.metadata()?.len() <= self.at || self.file.read(into)? > 0)
    }
}

/// Opens the file, object or reader from which the bytes of a source come.
fn open(origin: Origin, options: OpenOptions) -> Result<Opened, Defect> {
    let reader = match origin {
        Origin::Stdin => {
            let stdin = io::stdin();
            enlarge_pipe(&stdin);
            PeekReader::new(Box::new(stdin))
        }
        Origin::Unreadable(defect) => return Err(defect),
        Origin::Member(member) => return Ok(Opened::Stream(open_member(&member, options)?)),
        Origin::Remote(object) => return Ok(Opened::Stream(open_remote(&object, options)?)),
        Origin::Reader(reader) => PeekReader::new(reader),
        Origin::Path(path) => {
            let file = File::open(&path).map_err(Defect::Open)?;
            let metadata = file.metadata().map_err(Defect::Open)?;
            if options.mmap && metadata.is_file() && metadata.len() >= MIN_MAPPED_LEN {
                // Some file systems cannot map files, and the number of mappings is limited: such files are read.
                if let Some(opened) = MappedFile::new(&file, &path).and_then(|mapping| open_mapping(mapping, options)) {
                    return Ok(opened);
                }
            }
            let len = if metadata.is_file() {
                metadata.len()
            } else {
                enlarge_pipe(&file);
                0
            };
            PeekReader::new(Box::new(OpenedFile { file, len, at: 0 }))
        }
    };
    Ok(Opened::Stream(Stream::new(reader)?))
}

impl Source {
    /// Opens the source.
    ///
    /// # Errors
    /// [`Defect::Open`]; [`Defect::Read`] of the first read; [`Defect::Truncated`] if the source is empty, but its name is that
    /// of a compressed file, which would have a header.
    pub(crate) fn open(self, options: OpenOptions) -> Result<Opened, Defect> {
        let compression = match &self.origin {
            Origin::Remote(object) => object.named_compression(),
            _ => compression_of_name(&self.name),
        };
        match (open(self.origin, options)?, compression) {
            (Opened::Stream(Stream { is_empty: true, .. }), Some(compression)) => Err(Defect::Truncated(compression)),
            (opened, _) => Ok(opened),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails after its bytes.
    struct FailingReader(&'static [u8]);

    impl Read for FailingReader {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() { Err(io::ErrorKind::Other.into()) } else { self.0.read(into) }
        }
    }

    #[test]
    fn all_bytes_before_an_error_are_read() {
        let open = |bytes| Source::reader("x.gz", FailingReader(bytes)).open(OpenOptions::sequential(true));
        assert!(matches!(open(b""), Err(Defect::Read(_))));
        let Ok(Opened::Stream(mut stream)) = open(b"http://h/\nhttp://h/a\n") else {
            panic!("the source is not opened")
        };
        let mut bytes = Vec::new();
        assert!(matches!(stream.read_to_len(&mut bytes, 100), Err(Defect::Read(_))));
        assert_eq!(bytes, b"http://h/\nhttp://h/a\n");
    }

    /// The kernel reports that files of `/proc` are empty, and that those of `/sys` have 4096 bytes.
    #[cfg(target_os = "linux")]
    #[test]
    fn files_of_the_kernel_are_read_as_what_they_hold() {
        for path in ["/proc/self/status", "/sys/kernel/mm/transparent_hugepage/enabled"] {
            let Ok(expected) = std::fs::read(path) else { continue };
            let source = Source::path(path.into()).unwrap();
            let Opened::Stream(mut stream) = source.open(OpenOptions::sequential(true)).unwrap() else {
                panic!("{path} is mapped")
            };
            let (mut text, mut into) = (Vec::new(), vec![0; 1 << 16]);
            loop {
                let count = stream.read(&mut into).unwrap();
                if count == 0 {
                    break;
                }
                text.extend_from_slice(&into[..count]);
            }
            assert_eq!(text[..10], expected[..10], "{path}");
        }
    }

    /// Both formats have the same skippable frames, which may be longer than what is read at a time.
    #[test]
    fn frames_after_long_skippable_ones_show_the_packing() {
        let skippable = |len: usize| [&b"\x50\x2a\x4d\x18"[..], &(len as u32).to_le_bytes(), &vec![b'x'; len]].concat();
        let text = b"http://example.org/\n".repeat(1000);
        let mut lz4 = lz4_flex::frame::FrameEncoder::new(Vec::new());
        std::io::Write::write_all(&mut lz4, &text).unwrap();
        let frames = [lz4.finish().unwrap(), zstd::encode_all(&text[..], 1).unwrap()];
        for (len, count) in [(1, 1), (600 << 10, 1), (5 << 20, 2), (3, 200_000)] {
            for (i, frame) in frames.iter().enumerate() {
                let packed = [skippable(len).repeat(count), frame.clone()].concat();
                let source = Source::reader("x", std::io::Cursor::new(packed.clone()));
                let Opened::Stream(mut stream) = source.open(OpenOptions::sequential(false)).unwrap() else {
                    panic!("a reader is mapped")
                };
                let mut unpacked = Vec::new();
                stream.read_to_len(&mut unpacked, usize::MAX).unwrap();
                assert!(unpacked == text && stream.taken() == packed.len() as u64, "{count} of {len} before {i}");
            }
        }
    }

    /// A file of which a part was read has its defect at the place where it ends now.
    #[test]
    fn a_file_that_shrinks_while_it_is_read_is_a_defect() {
        const LEN: usize = 3 << 20;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        for (new_len, is_defect) in [(2 << 20, true), (LEN, false), (LEN + 1, false)] {
            std::fs::write(&path, vec![b'x'; LEN]).unwrap();
            let source = Source::path(path.clone()).unwrap();
            let Opened::Stream(mut stream) = source.open(OpenOptions::sequential(false)).unwrap() else {
                panic!("the file is not read")
            };
            let mut into = vec![0; 1 << 20];
            let mut total = stream.read(&mut into).unwrap();
            File::options().write(true).open(&path).unwrap().set_len(new_len as u64).unwrap();
            let end = loop {
                match stream.read(&mut into) {
                    Ok(0) => break None,
                    Ok(count) => total += count,
                    Err(defect) => break Some(defect),
                }
            };
            assert_eq!(total, new_len);
            let is_shrunk = matches!(end, Some(Defect::Shrunk(len, at)) if (len, at) == (LEN as u64, new_len as u64));
            assert_eq!((end.is_some(), is_shrunk), (is_defect, is_defect));
        }
    }
}
