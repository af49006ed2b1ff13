//! The keys of several runs as one ascending sequence: [`Cursor`].

use super::error::SeenError;
use super::run_file::Run;

/// Keys read from a run at a time.
const TOGETHER: u64 = 4 << 10;

/// Goes over the keys of runs in ascending order; a key of two runs comes twice.
#[derive(Debug)]
pub struct Cursor<'a> {
    runs: Vec<Place<'a>>,
}

#[derive(Debug)]
struct Place<'a> {
    run: &'a Run,
    keys: Vec<u128>,
    at: usize,
    /// Number of the key after `keys`.
    next: u64,
}

impl<'a> Cursor<'a> {
    /// From the first key that is not below `from`.
    pub(super) fn new(runs: &'a [Run], from: u128) -> Result<Cursor<'a>, SeenError> {
        let place = |run: &'a Run| Ok(Place { run, keys: Vec::new(), at: 0, next: run.find(from)? });
        let mut cursor = Cursor { runs: runs.iter().map(place).collect::<Result<_, _>>()? };
        cursor.runs.iter_mut().try_for_each(Place::fill)?;
        cursor.runs.retain(|place| place.head().is_some());
        Ok(cursor)
    }

    /// The next key without taking it.
    pub fn peek(&self) -> Option<u128> {
        self.runs.iter().filter_map(Place::head).min()
    }

    /// Takes the next key.
    ///
    /// # Errors
    /// A run could not be read.
    pub fn take_next(&mut self) -> Result<Option<u128>, SeenError> {
        let heads = self.runs.iter().enumerate().filter_map(|(i, place)| Some((place.head()?, i)));
        let Some((key, least)) = heads.min() else { return Ok(None) };
        self.runs[least].at += 1;
        self.runs[least].fill()?;
        if self.runs[least].head().is_none() {
            self.runs.remove(least);
        }
        Ok(Some(key))
    }

    /// Takes keys up to `key`; says whether it is among them.
    ///
    /// # Errors
    /// As [`Cursor::take_next`].
    pub fn has(&mut self, key: u128) -> Result<bool, SeenError> {
        while let Some(head) = self.peek().filter(|head| *head <= key) {
            if head == key {
                return Ok(true);
            }
            self.take_next()?;
        }
        Ok(false)
    }
}

impl Place<'_> {
    fn head(&self) -> Option<u128> {
        self.keys.get(self.at).copied()
    }

    fn fill(&mut self) -> Result<(), SeenError> {
        if self.at == self.keys.len() {
            self.keys = self.run.keys(self.next, TOGETHER)?;
            self.next += self.keys.len() as u64;
            self.at = 0;
        }
        Ok(())
    }
}
