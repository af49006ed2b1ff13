//! Gzip files of any number of members (RFC 1952).
//!
//! [`GzipReader`] returns all bytes before a defect and then the defect. This is why members are parsed here: the readers
//! of flate2 drop their last buffer on an error.
//!
//! A member of moderate length is decompressed at once, if its length is known because it is whole in the buffer. Longer members
//! and those with a defect are streamed. Which of the two happens depends only on the bytes of the member and those that follow.

use super::deflate::{InflatedLen, WholeInflater, crc32};
use super::detect::{Packing, packing};
use super::error::Defect;
use super::peek::PeekReader;
use super::unpacker::{MemberEnd, Unpacker};
use flate2::{Crc, Decompress, FlushDecompress, Status};
use std::ops::Range;
use std::vec::Drain;

// Bits of the FLG byte of a member, RFC 1952 section 2.3.1.
const FHCRC: u8 = 1 << 1;
const FEXTRA: u8 = 1 << 2;
const FNAME: u8 = 1 << 3;
const FCOMMENT: u8 = 1 << 4;
const RESERVED: u8 = 0b1110_0000;

/// Checksum and length after the deflated data of a member.
const TRAILER_LEN: usize = 8;
/// A member is decompressed at once if it is within this many bytes, and if it decompresses to at most [`MAX_WHOLE_LEN`] bytes.
const MAX_PACKED_LEN: usize = 256 << 10;
const MAX_WHOLE_LEN: usize = 1 << 20;

/// Returns the offset of the first bytes that look like the header of a member.
pub(super) fn find_member_header(bytes: &[u8]) -> Option<usize> {
    const HEAD: [u8; 3] = [0x1f, 0x8b, 8];
    let flags = |at: usize| bytes.get(at + HEAD.len());
    memchr::memmem::find_iter(bytes, &HEAD).find(|&at| flags(at).is_some_and(|flags| flags & RESERVED == 0))
}

/// Where the reader is in the file.
#[derive(Clone, Copy, PartialEq)]
enum GzipState {
    /// Before a member. The first member is required.
    Header { is_first: bool },
    /// Before the deflated data.
    Start,
    /// Inside the deflated data.
    Body,
    /// After a member that was decompressed at once, and of which not all bytes were returned.
    Whole,
    /// After the last member, or after a defect.
    End,
}

pub(super) struct GzipReader {
    input: PeekReader,
    inflate: Decompress,
    crc: Crc,
    state: GzipState,
    inflater: Option<WholeInflater>,
    /// A member that was decompressed at once. The bytes in `rest` were not returned yet.
    whole: Vec<u8>,
    rest: Range<usize>,
    /// Bytes decompressed so far.
    unpacked: u64,
    /// Ends of members that were not taken yet.
    ends: Vec<MemberEnd>,
    /// A defect that follows bytes which are returned first.
    defect: Option<Defect>,
}

impl GzipReader {
    pub(super) fn new(input: PeekReader) -> GzipReader {
        GzipReader {
            input,
            inflate: Decompress::new(false),
            crc: Crc::new(),
            state: GzipState::Header { is_first: true },
            inflater: None,
            whole: Vec::new(),
            rest: 0..0,
            unpacked: 0,
            ends: Vec::new(),
            defect: None,
        }
    }

    /// A reader that continues after members which were decompressed elsewhere. Its input may be empty.
    pub(super) fn after_members(input: PeekReader) -> GzipReader {
        GzipReader { state: GzipState::Header { is_first: false }, ..GzipReader::new(input) }
    }

    /// Whether all members so far were returned completely, and the next member was not inspected yet.
    pub(super) fn is_between_members(&self) -> bool {
        self.state == GzipState::Header { is_first: false } && self.defect.is_none()
    }

    /// Decompresses a member at once, or prepares to stream it.
    fn begin_body(&mut self) {
        self.state = match self.inflate_whole() {
            Some(InflatedLen { unpacked: 0, .. }) => GzipState::Header { is_first: false },
            Some(_) => GzipState::Whole,
            None => {
                self.inflate.reset(false);
                self.crc.reset();
                GzipState::Body
            }
        };
    }

    /// Decompresses the next member into `whole`, and consumes it. Returns `None` if it has to be streamed.
    fn inflate_whole(&mut self) -> Option<InflatedLen> {
        let packed = self.input.peek_up_to(MAX_PACKED_LEN);
        let whole_len = unpacked_len(packed)?;
        if self.inflater.is_none() {
            self.inflater = WholeInflater::new();
        }
        if self.whole.len() < whole_len {
            self.whole.resize(whole_len, 0);
        }
        let len = self.inflater.as_mut()?.inflate(packed, &mut self.whole[..whole_len])?;
        let (sum, stated_len) = trailer(packed[len.packed..].first_chunk()?);
        if stated_len != len.unpacked as u32 || sum != crc32(&self.whole[..len.unpacked]) {
            return None;
        }
        self.input.consume(len.packed + TRAILER_LEN);
        self.rest = 0..len.unpacked;
        self.unpacked += len.unpacked as u64;
        self.ends.push(MemberEnd { unpacked: self.unpacked, packed: self.input.consumed() });
        Some(len)
    }

    fn read_whole(&mut self, into: &mut [u8]) -> usize {
        let count = into.len().min(self.rest.len());
        into[..count].copy_from_slice(&self.whole[self.rest.start..][..count]);
        self.rest.start += count;
        if self.rest.is_empty() {
            self.state = GzipState::Header { is_first: false };
        }
        count
    }

    /// Reads what follows a member: the header of the next one, or zeros up to the end (tapes and object stores pad with
    /// zeros), or the end.
    fn read_between_members(&mut self, is_first: bool) -> Result<(), Defect> {
        let head = self.input.peek(10)?;
        if packing(head) == Packing::Gzip {
            return self.read_header();
        }
        if is_first || *head == [0x1f] {
            return Err(self.truncated());
        }
        loop {
            let rest = self.input.peek(1)?;
            match rest.iter().position(|&byte| byte != 0) {
                Some(at) => {
                    self.input.consume(at);
                    return Err(Defect::GzipGarbage);
                }
                None if rest.is_empty() => break,
                None => self.input.consume_buffer(),
            }
        }
        self.state = GzipState::End;
        Ok(())
    }

    /// Reads the header of a member, RFC 1952 section 2.3.
    fn read_header(&mut self) -> Result<(), Defect> {
        let [_, _, method, flags, ..] = self.read_array::<10>()?;
        if method != 8 || flags & RESERVED != 0 {
            return Err(damaged("a member's header names an unknown method or flag"));
        }
        if flags & FEXTRA != 0 {
            let len = u16::from_le_bytes(self.read_array()?);
            for _ in 0..len {
                self.read_array::<1>()?;
            }
        }
        for flag in [FNAME, FCOMMENT] {
            while flags & flag != 0 && self.read_array::<1>()? != [0] {}
        }
        if flags & FHCRC != 0 {
            self.read_array::<2>()?;
        }
        self.state = GzipState::Start;
        Ok(())
    }

    /// Reads the next `N` bytes of a header or trailer.
    fn read_array<const N: usize>(&mut self) -> Result<[u8; N], Defect> {
        let Some(&bytes) = self.input.peek(N)?.first_chunk::<N>() else { return Err(self.truncated()) };
        self.input.consume(N);
        Ok(bytes)
    }

    /// The defect of a file that ends within a header or trailer. Consumes the rest, so that the defect is at its end.
    fn truncated(&mut self) -> Defect {
        self.input.consume_buffer();
        Defect::Truncated("gzip")
    }

    /// Inflates. Returns 0 if the input buffer must be refilled, or if the member has ended.
    fn read_body(&mut self, into: &mut [u8]) -> Result<usize, Defect> {
        let packed = self.input.peek(1)?;
        let (is_ended, before_in, before_out) = (packed.is_empty(), self.inflate.total_in(), self.inflate.total_out());
        let result = self.inflate.decompress(packed, into, FlushDecompress::None);
        self.input.consume((self.inflate.total_in() - before_in) as usize);
        let count = (self.inflate.total_out() - before_out) as usize;
        self.crc.update(&into[..count]);
        self.unpacked += count as u64;
        let defect = match result {
            Ok(Status::StreamEnd) => self.read_trailer().err(),
            Ok(_) if is_ended && count == 0 => Some(Defect::Truncated("gzip")),
            Ok(_) => None,
            Err(_) => Some(damaged("the deflated data is invalid")),
        };
        match defect {
            Some(defect) if count == 0 => {
                self.state = GzipState::End;
                Err(defect)
            }
            defect => {
                self.defect = defect;
                Ok(count)
            }
        }
    }

    /// Checks the checksum and the length (modulo 2^32) of a member.
    fn read_trailer(&mut self) -> Result<(), Defect> {
        self.state = GzipState::Header { is_first: false };
        let (sum, len) = trailer(&self.read_array::<TRAILER_LEN>()?);
        if sum != self.crc.sum() {
            return Err(damaged("the checksum of a member differs"));
        }
        if len != self.inflate.total_out() as u32 {
            return Err(damaged("the length of a member differs"));
        }
        self.ends.push(MemberEnd { unpacked: self.unpacked, packed: self.input.consumed() });
        Ok(())
    }
}

fn damaged(what: &str) -> Defect {
    Defect::Damaged("gzip", what.into())
}

impl Unpacker for GzipReader {
    fn consumed(&self) -> u64 {
        self.input.consumed()
    }

    fn take_ends(&mut self) -> Option<Drain<'_, MemberEnd>> {
        Some(self.ends.drain(..))
    }

    fn read(&mut self, into: &mut [u8]) -> Result<usize, Defect> {
        if let Some(defect) = self.defect.take() {
            self.state = GzipState::End;
            return Err(defect);
        }
        while !into.is_empty() {
            match self.state {
                GzipState::End => break,
                GzipState::Header { is_first } => self.read_between_members(is_first)?,
                GzipState::Start => self.begin_body(),
                GzipState::Whole => return Ok(self.read_whole(into)),
                GzipState::Body => match self.read_body(into)? {
                    0 => (),
                    count => return Ok(count),
                },
            }
        }
        Ok(0)
    }
}

/// The checksum and the length (modulo 2^32) of a member.
fn trailer(bytes: &[u8; TRAILER_LEN]) -> (u32, u32) {
    let (words, _) = bytes.as_chunks::<4>();
    (u32::from_le_bytes(words[0]), u32::from_le_bytes(words[1]))
}

/// The length that a member has by its trailer, which is before the header of the next member or the end of the file.
/// `packed` begins with the deflated data. `None` if there is no such header, or if the member is too long.
fn unpacked_len(packed: &[u8]) -> Option<usize> {
    let end = match find_member_header(packed.get(TRAILER_LEN..)?) {
        Some(at) => TRAILER_LEN + at,
        None if packed.len() < MAX_PACKED_LEN => packed.len(),
        None => return None,
    };
    let (_, len) = trailer(packed[..end].last_chunk()?);
    Some(len as usize).filter(|len| *len <= MAX_WHOLE_LEN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::test_data::{self, lines, peek_reader, read_all};
    use flate2::Compression;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        test_data::gzip(bytes, Compression::fast())
    }

    fn gunzip(bytes: Vec<u8>) -> (Vec<u8>, Option<Defect>) {
        read_all(100, &mut GzipReader::new(peek_reader(&bytes)))
    }

    fn text() -> Vec<u8> {
        lines(120)
    }

    #[test]
    fn members_and_padding_are_read() {
        let mut packed = [gzip(&text()), gzip(b""), gzip(b"more")].concat();
        let want = [text(), b"more".to_vec()].concat();
        for padding in [0, 1, 300_000] {
            packed.resize(packed.len() + padding, 0);
            let (got, defect) = gunzip(packed.clone());
            assert!(defect.is_none() && got == want, "{padding}");
        }
        let end = packed.len() as u64;
        packed.extend([7; 20]);
        let mut reader = GzipReader::new(peek_reader(&packed));
        let (got, defect) = read_all(100, &mut reader);
        assert!(matches!(defect, Some(Defect::GzipGarbage)) && got == want);
        assert_eq!(reader.consumed(), end);
    }

    #[test]
    fn optional_header_fields_are_skipped() {
        let plain = gzip(b"x");
        let mut packed = plain[..10].to_vec();
        packed[3] = FEXTRA | FNAME | FCOMMENT | FHCRC;
        packed.extend(b"\x03\x00\0\0cname\0comment\0\x12\x34");
        packed.extend(&plain[10..]);
        assert!(matches!(gunzip(packed), (got, None) if got == b"x"));
    }

    #[test]
    fn headers_that_are_unknown_or_cut_short_are_defects() {
        let member = gzip(b"x");
        for (at, value) in [(2, 7), (3, 0x20), (3, 0x80)] {
            let mut second = member.clone();
            second[at] = value;
            let (got, defect) = gunzip([member.clone(), second].concat());
            assert!(
                got == b"x" && matches!(&defect, Some(Defect::Damaged("gzip", text)) if text.contains("header")),
                "{defect:?}"
            );
        }
        for len in 1..10 {
            let (got, defect) = gunzip([&member, &member[..len]].concat());
            assert!(got == b"x" && matches!(defect, Some(Defect::Truncated("gzip"))), "{len} {defect:?}");
        }
    }

    /// Members that are decompressed at once, and members that are too long for that, compressed or decompressed.
    #[test]
    fn members_around_the_limits_are_unpacked() {
        let noise: Vec<u8> = (0..MAX_PACKED_LEN as u32 + 9)
            .map(|i| (i.wrapping_mul(0x9e37_79b9) >> 13) as u8 ^ (i >> 7) as u8)
            .collect();
        let mut members: Vec<Vec<u8>> =
            [0, 1, MAX_WHOLE_LEN, MAX_WHOLE_LEN + 1, 7, MAX_WHOLE_LEN - 1].map(|len| vec![b'a'; len]).into();
        members.extend([&noise[..MAX_PACKED_LEN - 100], &noise, &noise[..3]].map(<[u8]>::to_vec));
        for last in 1..=members.len() {
            let pack = |member: &Vec<u8>| {
                let level = if member.len() == noise.len() { Compression::none() } else { Compression::fast() };
                test_data::gzip(member, level)
            };
            let packed: Vec<u8> = members[..last].iter().flat_map(pack).collect();
            let mut reader = GzipReader::new(peek_reader(&packed));
            let (got, defect) = read_all(300_000, &mut reader);
            assert!(defect.is_none() && got == members[..last].concat(), "{last}");
            let ends: Vec<_> = reader.take_ends().unwrap().collect();
            let whole = MemberEnd { unpacked: got.len() as u64, packed: packed.len() as u64 };
            assert_eq!((ends.len(), ends.last()), (last, Some(&whole)));
        }
    }

    #[test]
    fn every_truncation_returns_a_prefix_and_a_defect() {
        let packed = [gzip(&text()), gzip(&text())].concat();
        for len in 2..packed.len() {
            let (got, defect) = gunzip(packed[..len].to_vec());
            assert!([text(), text()].concat().starts_with(&got), "{len}");
            assert_eq!(defect.is_none(), len == packed.len() / 2, "{len}");
        }
    }

    #[test]
    fn a_flipped_bit_is_a_defect() {
        let packed = gzip(&text());
        for at in (10..packed.len()).step_by(7) {
            let mut bad = packed.clone();
            bad[at] ^= 0x10;
            assert!(gunzip(bad).1.is_some(), "{at}");
        }
    }
}
