//! Gzip files of many members, unpacked by several threads ahead of who reads them. In: a mapping. Out: what [`Gunzip`]
//! gives for the same bytes, its defects included.
//!
//! The file is divided into stretches. Where the first member of a stretch begins is guessed by its header, and the guess
//! counts only if the members before it end just there: what is given out does not depend on it. Whatever is no whole
//! member that a stretch has room for (padding, damage, bombs) is left to a [`Gunzip`] that begins with it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, spawn};

use super::error::Defect;
use super::inflate::{Gunzip, MemberEnd, may_begin_member};
use super::mmap::MappedFile;
use super::open::MappedReader;
use super::read::Feed;

/// Packed bytes of a stretch; its members may end behind it.
const STRETCH: usize = 256 << 10;
/// Unpacked bytes of a stretch: members that would pass them are left out.
const LONGEST: usize = 4 << 20;
/// Unpacked bytes that there is room for at first.
const ROOM: usize = 1 << 20;
/// Places of a stretch that are tried, before it is given up: no honest file has so many false headers.
const TRIES: usize = 8;

/// The members of a mapped gzip file, one after the other.
pub struct Members {
    mapping: Arc<MappedFile>,
    ahead: Arc<Ahead>,
    threads: Vec<JoinHandle<()>>,
    /// Where the member after all that was taken from stretches begins.
    at: usize,
    /// What is being given out, and how much of it was.
    stretch: Stretch,
    given: usize,
    /// Unpacked bytes given out so far.
    total: u64,
    /// Ends of members that nobody has asked for yet.
    ends: Vec<MemberEnd>,
    /// Takes over where no stretch goes on; and where it began.
    gunzip: Option<(MemberEnd, Gunzip)>,
}

/// What threads and reader share.
struct Ahead {
    state: Mutex<State>,
    changed: Condvar,
    count: usize,
    /// How many stretches threads may be ahead.
    window: usize,
}

#[derive(Default)]
struct State {
    /// The first stretch that the reader may still want.
    wanted: usize,
    /// The first that no thread has taken.
    next: usize,
    done: BTreeMap<usize, Stretch>,
    free: Vec<Vec<u8>>,
    is_over: bool,
}

/// Whole members, unpacked.
#[derive(Default)]
struct Stretch {
    packed: Range<usize>,
    bytes: Vec<u8>,
    /// How many of the bytes count.
    len: usize,
    /// Where members end, counted from its beginning.
    ends: Vec<MemberEnd>,
}

impl Members {
    /// The members of `mapping`, if there may be enough of them for `threads` to share.
    pub fn new(mapping: &Arc<MappedFile>, threads: usize) -> Option<Members> {
        let count = mapping.len().div_ceil(STRETCH);
        if threads < 2 || count < 2 * threads {
            return None;
        }
        let ahead =
            Arc::new(Ahead { state: Mutex::default(), changed: Condvar::new(), count, window: threads * 3 / 2 + 1 });
        let work = || {
            let (mapping, ahead) = (Arc::clone(mapping), Arc::clone(&ahead));
            spawn(move || {
                while let Some(turn) = ahead.turn() {
                    turn.unpack(&mapping)
                }
            })
        };
        let threads = std::iter::repeat_with(work).take(threads).collect();
        let mapping = Arc::clone(mapping);
        let stretch = Stretch::default();
        Some(Members { mapping, ahead, threads, at: 0, stretch, given: 0, total: 0, ends: Vec::new(), gunzip: None })
    }

    /// Packed bytes taken so far.
    pub fn taken(&self) -> u64 {
        match &self.gunzip {
            Some((from, gunzip)) => from.packed + gunzip.feed().taken(),
            None => self.at as u64,
        }
    }

    /// As [`Gunzip::take_ends`].
    pub fn take_ends(&mut self) -> std::vec::Drain<'_, MemberEnd> {
        self.ends.drain(..)
    }

    /// Unpacks into `into`; 0 is the end.
    pub fn read(&mut self, into: &mut [u8]) -> Result<usize, Defect> {
        loop {
            let left = &self.stretch.bytes[self.given..self.stretch.len];
            if !left.is_empty() {
                let count = left.len().min(into.len());
                into[..count].copy_from_slice(&left[..count]);
                self.given += count;
                self.total += count as u64;
                return Ok(count);
            }
            if self.gunzip.as_ref().is_none_or(|(_, gunzip)| gunzip.is_between()) && self.take_stretch() {
                continue;
            }
            let (from, gunzip) = self.gunzip.get_or_insert_with(|| {
                let feed = Feed::new(Box::new(MappedReader { mapping: Arc::clone(&self.mapping), start: self.at }));
                let from = MemberEnd { unpacked: self.total, packed: self.at as u64 };
                (from, if self.at == 0 { Gunzip::new(feed) } else { Gunzip::after_members(feed) })
            });
            let count = gunzip.read(into);
            self.ends.extend(gunzip.take_ends().map(|end| end.behind(*from)));
            self.total += *count.as_ref().unwrap_or(&0) as u64;
            return count;
        }
    }

    /// Takes the stretch whose members begin where those taken so far end, if there is one.
    fn take_stretch(&mut self) -> bool {
        self.at = self.taken() as usize;
        let number = self.at / STRETCH;
        let mut state = self.ahead.lock();
        if number < state.wanted || number >= self.ahead.count {
            return false;
        }
        state.free.push(std::mem::take(&mut self.stretch).bytes);
        self.given = 0;
        state.wanted = number;
        self.ahead.changed.notify_all();
        let stretch = loop {
            match state.done.remove(&number) {
                Some(stretch) => break stretch,
                None => state = self.ahead.wait(state),
            }
        };
        state.wanted = number + 1;
        state.done = state.done.split_off(&(number + 1));
        self.ahead.changed.notify_all();
        drop(state);
        if stretch.packed.start != self.at || stretch.packed.is_empty() {
            return false;
        }
        self.mapping.release(stretch.packed.clone());
        let from = MemberEnd { unpacked: self.total, packed: self.at as u64 };
        self.ends.extend(stretch.ends.iter().map(|end| end.behind(from)));
        self.at = stretch.packed.end;
        (self.stretch, self.gunzip) = (stretch, None);
        true
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        self.ahead.lock().is_over = true;
        self.ahead.changed.notify_all();
        for thread in self.threads.drain(..) {
            // A thread that panicked has left an empty stretch, which the reader made up for.
            let _ = thread.join();
        }
    }
}

impl Ahead {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// The next stretch to unpack, once it is near enough; none when all are taken.
    fn turn(&self) -> Option<Turn<'_>> {
        let mut state = self.lock();
        loop {
            state.next = state.next.max(state.wanted);
            if state.is_over || state.next >= self.count {
                return None;
            }
            if state.next < state.wanted + self.window {
                let number = state.next;
                state.next += 1;
                let bytes = state.free.pop().unwrap_or_default();
                return Some(Turn { ahead: self, number, stretch: Stretch { bytes, ..Stretch::default() } });
            }
            state = self.wait(state);
        }
    }
}

/// A thread's turn; its stretch is handed on at its end, also if that is a panic's.
struct Turn<'a> {
    ahead: &'a Ahead,
    number: usize,
    stretch: Stretch,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.ahead.lock();
        if self.number >= state.wanted {
            state.done.insert(self.number, std::mem::take(&mut self.stretch));
        }
        self.ahead.changed.notify_all();
    }
}

impl Turn<'_> {
    fn unpack(mut self, mapping: &Arc<MappedFile>) {
        let from = self.number * STRETCH;
        let until = mapping.len().min(from + STRETCH);
        let mut at = from;
        for _ in 0..TRIES {
            let Some(start) = may_begin_member(&mapping[at..]).map(|further| at + further) else { return };
            if start >= until {
                return;
            }
            self.stretch.unpack(mapping, start, until);
            if !self.stretch.packed.is_empty() {
                return;
            }
            at = start + 1;
        }
    }
}

impl Stretch {
    /// Unpacks the members that begin at `start` or later and before `until`, as far as they are whole and there is room.
    fn unpack(&mut self, mapping: &Arc<MappedFile>, start: usize, until: usize) {
        let mut gunzip = Gunzip::new(Feed::new(Box::new(MappedReader { mapping: Arc::clone(mapping), start })));
        let mut filled = 0;
        (self.packed, self.len) = (start..start, 0);
        self.ends.clear();
        while self.packed.end < until {
            if filled == self.bytes.len() {
                if filled >= LONGEST {
                    break;
                }
                self.bytes.resize((filled * 2).max(ROOM), 0);
            }
            match gunzip.read(&mut self.bytes[filled..]) {
                Ok(count @ 1..) => filled += count,
                Ok(0) | Err(_) => break,
            }
            if gunzip.is_between() {
                self.packed.end = start + gunzip.feed().taken() as usize;
                self.len = filled;
                self.ends.extend(gunzip.take_ends());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::fs::File;
    use std::io::Write;

    fn gzip(bytes: &[u8], level: Compression) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), level);
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// `len` bytes that compress to about half.
    fn text(len: usize, seed: u32) -> Vec<u8> {
        let lines =
            (seed..).flat_map(|i| format!("http://example.org/{:x}\n", i.wrapping_mul(0x9e37_79b9)).into_bytes());
        lines.take(len).collect()
    }

    fn drain(mut read: impl FnMut(&mut [u8]) -> Result<usize, Defect>) -> (Vec<u8>, Option<String>) {
        let mut all = Vec::new();
        let mut into = [0; 50_000];
        loop {
            match read(&mut into) {
                Ok(0) => return (all, None),
                Ok(count) => all.extend_from_slice(&into[..count]),
                Err(defect) => return (all, Some(defect.to_string())),
            }
        }
    }

    /// Both readers give the same bytes, the same defect, and stand at the same byte of the file afterwards.
    fn check(packed: &[u8]) -> (Vec<u8>, Option<String>) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(packed).unwrap();
        let mapping = Arc::new(MappedFile::new(&File::open(file.path()).unwrap(), file.path()).unwrap());
        let mut gunzip = Gunzip::new(Feed::new(Box::new(std::io::Cursor::new(packed.to_vec()))));
        let expected = drain(|into| gunzip.read(into));
        for threads in [2, 3] {
            let mut members = Members::new(&mapping, threads).expect("long enough");
            let got = drain(|into| members.read(into));
            assert!(got == expected, "{threads} threads: {:?}, expected {:?}", got.1, expected.1);
            assert_eq!(members.taken(), gunzip.feed().taken(), "{threads} threads");
        }
        expected
    }

    /// More packed bytes than two threads' stretches, in members of these unpacked lengths, over and over.
    fn members(lens: &[usize]) -> Vec<u8> {
        let mut packed = Vec::new();
        for (i, len) in lens.iter().cycle().enumerate() {
            if packed.len() > 7 * STRETCH {
                break;
            }
            packed.extend(gzip(&text(*len, i as u32 * 1000), Compression::fast()));
        }
        packed
    }

    #[test]
    fn members_of_any_length() {
        for lens in [&[3000][..], &[1, 100_000, 0, 20], &[STRETCH * 5, 10], &[9_000_000]] {
            assert_eq!(check(&members(lens)).1, None, "{lens:?}");
        }
    }

    #[test]
    fn one_that_unpacks_to_more_than_there_is_room_for() {
        let bomb = gzip(&vec![b'a'; 3 * LONGEST], Compression::fast());
        let few = members(&[50_000]);
        assert_eq!(check(&[&few[..], &bomb, &few].concat()).1, None);
    }

    #[test]
    fn what_looks_like_a_member_within_another_is_none() {
        // Not deflated, a member within a member stands there as it is; those of a stretch's first one are tried.
        let inner = members(&[1000]);
        let outer: Vec<u8> = inner.chunks(300_000).flat_map(|part| gzip(part, Compression::none())).collect();
        assert!(check(&outer).0 == inner);
        let heads = [0x1f, 0x8b, 8, 0].repeat(STRETCH);
        assert!(check(&gzip(&heads, Compression::none()).repeat(2)).0 == heads.repeat(2));
    }

    #[test]
    fn padding_damage_and_truncation() {
        let whole = members(&[20_000]);
        let half = whole.len() / 2;
        assert_eq!(check(&[&whole[..], &[0; 3 * STRETCH]].concat()).1, None);
        assert!(check(&[&whole[..], b"garbage"].concat()).1.is_some());
        assert!(check(&whole[..whole.len() - 5000]).1.is_some());
        for at in [half, half + 77, 12 + STRETCH] {
            let mut bad = whole.clone();
            bad[at] ^= 0x10;
            check(&bad);
        }
    }

    #[test]
    fn who_stops_reading_stops_the_threads() {
        let packed = members(&[20_000]);
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&packed).unwrap();
        let mapping = Arc::new(MappedFile::new(&File::open(file.path()).unwrap(), file.path()).unwrap());
        let mut members = Members::new(&mapping, 2).unwrap();
        assert!(members.read(&mut [0; 10]).unwrap() > 0);
        drop(members);
        assert_eq!(Arc::strong_count(&mapping), 1);
    }
}
