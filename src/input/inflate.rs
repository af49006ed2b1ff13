//! Packed bytes in, unpacked bytes out: gzip of any number of members (RFC 1952) and zstd of any number of frames
//! (RFC 8878). Whatever can be unpacked before a defect is given out before the defect is reported; this is why gzip
//! members are walked here and not by a reader that drops its last buffer on an error.

use super::detect::{Packing, packing};
use super::error::Defect;
use super::read::Feed;
use flate2::{Crc, Decompress, FlushDecompress, Status};
use zstd::stream::raw::{Decoder, Operation};

/// Bit of a gzip member's FLG byte, RFC 1952 section 2.3.1.
const FHCRC: u8 = 1 << 1;
const FEXTRA: u8 = 1 << 2;
const FNAME: u8 = 1 << 3;
const FCOMMENT: u8 = 1 << 4;
const RESERVED: u8 = 0b1110_0000;

/// Where the first bytes stand that a member may begin with.
pub fn may_begin_member(bytes: &[u8]) -> Option<usize> {
    const HEAD: [u8; 3] = [0x1f, 0x8b, 8];
    let flags = |at: usize| bytes.get(at + HEAD.len());
    memchr::memmem::find_iter(bytes, &HEAD).find(|&at| flags(at).is_some_and(|flags| flags & RESERVED == 0))
}

/// Where in a gzip file we are.
#[derive(Clone, Copy, PartialEq)]
enum State {
    /// Before a member; the first one must be there.
    Header { is_first: bool },
    /// Within the deflated data.
    Body,
    /// Past the last member.
    End,
}

/// Where a gzip member ends, counted from where its reader began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberEnd {
    /// Bytes unpacked up to there.
    pub unpacked: u64,
    /// Packed bytes up to there.
    pub packed: u64,
}

impl MemberEnd {
    /// The same, where the reader began at another member's end.
    pub fn behind(self, other: MemberEnd) -> MemberEnd {
        MemberEnd { unpacked: other.unpacked + self.unpacked, packed: other.packed + self.packed }
    }
}

/// The members of a gzip file, one after the other.
pub struct Gunzip {
    feed: Feed,
    inflate: Decompress,
    crc: Crc,
    state: State,
    /// Bytes unpacked so far.
    given: u64,
    /// Ends of members that nobody has asked for yet.
    ends: Vec<MemberEnd>,
    /// Found after bytes that had to be given out first.
    defect: Option<Defect>,
}

impl Gunzip {
    pub fn new(feed: Feed) -> Gunzip {
        let state = State::Header { is_first: true };
        Gunzip {
            feed,
            inflate: Decompress::new(false),
            crc: Crc::new(),
            state,
            given: 0,
            ends: Vec::new(),
            defect: None,
        }
    }

    /// What follows the members that others have unpacked.
    pub fn after_members(feed: Feed) -> Gunzip {
        Gunzip { state: State::Header { is_first: false }, ..Gunzip::new(feed) }
    }

    pub fn feed(&self) -> &Feed {
        &self.feed
    }

    /// Ends of members passed since the last call, in order. Some may be behind bytes that are still to be given out, but
    /// none is told later than the bytes before it.
    pub fn take_ends(&mut self) -> std::vec::Drain<'_, MemberEnd> {
        self.ends.drain(..)
    }

    /// All members so far were given out whole, and the next one was not looked at.
    pub fn is_between(&self) -> bool {
        self.state == State::Header { is_first: false } && self.defect.is_none()
    }

    /// Unpacks into `into`; 0 is the end.
    pub fn read(&mut self, into: &mut [u8]) -> Result<usize, Defect> {
        if let Some(defect) = self.defect.take() {
            self.state = State::End;
            return Err(defect);
        }
        while !into.is_empty() {
            match self.state {
                State::End => break,
                State::Header { is_first } => self.member(is_first)?,
                State::Body => match self.body(into)? {
                    0 => (),
                    count => return Ok(count),
                },
            }
        }
        Ok(0)
    }

    /// What stands between members: a header, zeros to the end (tapes and object stores pad with them), or nothing.
    fn member(&mut self, is_first: bool) -> Result<(), Defect> {
        let head = self.feed.look(10)?;
        if packing(head) == Packing::Gzip {
            return self.header();
        }
        if is_first || *head == [0x1f] {
            return Err(self.cut_short());
        }
        loop {
            let rest = self.feed.look(1)?;
            match rest.iter().position(|&byte| byte != 0) {
                Some(at) => {
                    self.feed.take(at);
                    return Err(Defect::GzipGarbage);
                }
                None if rest.is_empty() => break,
                None => {
                    let count = rest.len();
                    self.feed.take(count);
                }
            }
        }
        self.state = State::End;
        Ok(())
    }

    /// A member's header, RFC 1952 section 2.3.
    fn header(&mut self) -> Result<(), Defect> {
        let [_, _, method, flags, ..] = self.exactly::<10>()?;
        if method != 8 || flags & RESERVED != 0 {
            return Err(Defect::Gzip("a member's header names an unknown method or flag"));
        }
        if flags & FEXTRA != 0 {
            let len = u16::from_le_bytes(self.exactly()?);
            for _ in 0..len {
                self.exactly::<1>()?;
            }
        }
        for flag in [FNAME, FCOMMENT] {
            while flags & flag != 0 && self.exactly::<1>()? != [0] {}
        }
        if flags & FHCRC != 0 {
            self.exactly::<2>()?;
        }
        self.inflate.reset(false);
        self.crc.reset();
        self.state = State::Body;
        Ok(())
    }

    /// The next bytes of a header or trailer.
    fn exactly<const N: usize>(&mut self) -> Result<[u8; N], Defect> {
        let Some(&bytes) = self.feed.look(N)?.first_chunk::<N>() else { return Err(self.cut_short()) };
        self.feed.take(N);
        Ok(bytes)
    }

    /// The file ends within a header or trailer. What there is of it counts as taken: the defect is where it ends.
    fn cut_short(&mut self) -> Defect {
        let count = self.feed.look(0).map_or(0, <[u8]>::len);
        self.feed.take(count);
        Defect::GzipTruncated
    }

    /// Inflates; 0 bytes when more must be fed or the member has ended.
    fn body(&mut self, into: &mut [u8]) -> Result<usize, Defect> {
        let packed = self.feed.look(1)?;
        let (is_ended, before_in, before_out) = (packed.is_empty(), self.inflate.total_in(), self.inflate.total_out());
        let result = self.inflate.decompress(packed, into, FlushDecompress::None);
        self.feed.take((self.inflate.total_in() - before_in) as usize);
        let count = (self.inflate.total_out() - before_out) as usize;
        self.crc.update(&into[..count]);
        self.given += count as u64;
        let defect = match result {
            Ok(Status::StreamEnd) => self.trailer().err(),
            Ok(_) if is_ended && count == 0 => Some(Defect::GzipTruncated),
            Ok(_) => None,
            Err(_) => Some(Defect::Gzip("the deflated data is invalid")),
        };
        match defect {
            Some(defect) if count == 0 => {
                self.state = State::End;
                Err(defect)
            }
            defect => {
                self.defect = defect;
                Ok(count)
            }
        }
    }

    /// A member's checksum and length (modulo 2^32).
    fn trailer(&mut self) -> Result<(), Defect> {
        self.state = State::Header { is_first: false };
        let sum = u32::from_le_bytes(self.exactly()?);
        let len = u32::from_le_bytes(self.exactly()?);
        if sum != self.crc.sum() {
            return Err(Defect::Gzip("the checksum of a member differs"));
        }
        if len != self.inflate.total_out() as u32 {
            return Err(Defect::Gzip("the length of a member differs"));
        }
        self.ends.push(MemberEnd { unpacked: self.given, packed: self.feed.taken() });
        Ok(())
    }
}

/// The frames of a zstd file, one after the other.
pub struct Unzstd {
    feed: Feed,
    decoder: Decoder<'static>,
    /// Between frames, where the file may end.
    is_between: bool,
}

impl Unzstd {
    pub fn new(feed: Feed) -> Result<Unzstd, Defect> {
        let decoder = Decoder::new().map_err(|error| Defect::Zstd(error.to_string()))?;
        Ok(Unzstd { feed, decoder, is_between: true })
    }

    pub fn feed(&self) -> &Feed {
        &self.feed
    }

    /// Unpacks into `into`; 0 is the end.
    pub fn read(&mut self, into: &mut [u8]) -> Result<usize, Defect> {
        while !into.is_empty() {
            let packed = self.feed.look(1)?;
            let is_ended = packed.is_empty();
            if is_ended && self.is_between {
                break;
            }
            let status = self.decoder.run_on_buffers(packed, into);
            let status = status.map_err(|error| Defect::Zstd(error.to_string()))?;
            self.feed.take(status.bytes_read);
            if status.bytes_read > 0 || status.bytes_written > 0 {
                self.is_between = status.remaining == 0;
            }
            if status.bytes_written > 0 {
                return Ok(status.bytes_written);
            }
            if is_ended && !self.is_between {
                return Err(Defect::ZstdTruncated);
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::{Cursor, Write};

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn drain(mut read: impl FnMut(&mut [u8]) -> Result<usize, Defect>) -> (Vec<u8>, Option<Defect>) {
        let mut all = Vec::new();
        let mut into = [0; 100];
        loop {
            match read(&mut into) {
                Ok(0) => return (all, None),
                Ok(count) => all.extend_from_slice(&into[..count]),
                Err(defect) => return (all, Some(defect)),
            }
        }
    }

    fn gunzip(bytes: Vec<u8>) -> (Vec<u8>, Option<Defect>) {
        let mut gunzip = Gunzip::new(Feed::new(Box::new(Cursor::new(bytes))));
        drain(|into| gunzip.read(into))
    }

    fn unzstd(bytes: Vec<u8>) -> (Vec<u8>, Option<Defect>) {
        let mut unzstd = Unzstd::new(Feed::new(Box::new(Cursor::new(bytes)))).unwrap();
        drain(|into| unzstd.read(into))
    }

    fn text() -> Vec<u8> {
        (0..120u32).flat_map(|i| format!("http://example.org/{}\n", i.wrapping_mul(0x9e37_79b9)).into_bytes()).collect()
    }

    #[test]
    fn members_and_padding() {
        let mut packed = [gzip(&text()), gzip(b""), gzip(b"more")].concat();
        let want = [text(), b"more".to_vec()].concat();
        for padding in [0, 1, 300_000] {
            packed.resize(packed.len() + padding, 0);
            let (got, defect) = gunzip(packed.clone());
            assert!(defect.is_none() && got == want, "{padding}");
        }
        packed.push(7);
        assert!(matches!(gunzip(packed), (got, Some(Defect::GzipGarbage)) if got == want));
    }

    #[test]
    fn header_fields_are_skipped() {
        let plain = gzip(b"x");
        let mut packed = plain[..10].to_vec();
        packed[3] = FEXTRA | FNAME | FCOMMENT | FHCRC;
        packed.extend(b"\x03\x00abcname\0comment\0\x12\x34");
        packed.extend(&plain[10..]);
        assert!(matches!(gunzip(packed), (got, None) if got == b"x"));
    }

    #[test]
    fn every_truncation_gives_a_prefix_and_a_defect() {
        let packed = [gzip(&text()), gzip(&text())].concat();
        for len in 2..packed.len() {
            let (got, defect) = gunzip(packed[..len].to_vec());
            assert!([text(), text()].concat().starts_with(&got), "{len}");
            assert_eq!(defect.is_none(), len == packed.len() / 2, "{len}");
        }
    }

    #[test]
    fn flipped_bits_end_in_a_defect() {
        let packed = gzip(&text());
        for at in (10..packed.len()).step_by(7) {
            let mut bad = packed.clone();
            bad[at] ^= 0x10;
            assert!(gunzip(bad).1.is_some(), "{at}");
        }
    }

    #[test]
    fn frames() {
        let frame = zstd::encode_all(&text()[..], 1).unwrap();
        let skippable = b"\x50\x2a\x4d\x18\x03\0\0\0abc".to_vec();
        let packed = [skippable.clone(), frame.clone(), frame.clone(), skippable].concat();
        let (got, defect) = unzstd(packed);
        assert!(defect.is_none() && got == [text(), text()].concat());
        for len in 1..frame.len() {
            let (got, defect) = unzstd([&frame[..], &frame[..len]].concat());
            assert!(got.starts_with(&text()) && defect.is_some(), "{len}");
        }
        let (got, defect) = unzstd([&frame[..], b"garbage!"].concat());
        assert!(got == text() && matches!(defect, Some(Defect::Zstd(_))));
    }
}
