//! What is written down of a row whose verdict has to wait: [`Entry`], and as which bytes: [`Layout`].

/// A row among the candidates of its key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The key that rows compete for.
    pub key: u128,
    /// Ordinal of the row in the run, from 0.
    pub ordinal: u64,
    /// What a policy goes by; the greatest is best. 0 where only the order of the input counts.
    pub rank: u128,
    /// First 64 bits of the row's `simple` key, where it is asked why rows are duplicates.
    pub simple: u64,
    /// First 64 bits of the row's `syntax` key, likewise.
    pub syntax: u64,
}

/// Which fields of entries are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// `rank`.
    pub has_rank: bool,
    /// `simple` and `syntax`.
    pub has_rungs: bool,
}

impl Layout {
    /// Bytes of an entry.
    pub const fn entry_len(self) -> usize {
        24 + if self.has_rank { 16 } else { 0 } + if self.has_rungs { 16 } else { 0 }
    }

    /// Appends an entry.
    pub fn write(self, entry: &Entry, out: &mut Vec<u8>) {
        out.extend_from_slice(&entry.key.to_le_bytes());
        out.extend_from_slice(&entry.ordinal.to_le_bytes());
        if self.has_rank {
            out.extend_from_slice(&entry.rank.to_le_bytes());
        }
        if self.has_rungs {
            out.extend_from_slice(&entry.simple.to_le_bytes());
            out.extend_from_slice(&entry.syntax.to_le_bytes());
        }
    }

    /// The entries of `bytes`; what is left over at the end of them is none.
    pub fn read(self, bytes: &[u8]) -> impl Iterator<Item = Entry> {
        bytes.chunks_exact(self.entry_len()).map(move |bytes| {
            let mut fields = Fields(bytes);
            let (key, ordinal) = (fields.u128(), fields.u64());
            let rank = if self.has_rank { fields.u128() } else { 0 };
            let (simple, syntax) = if self.has_rungs { (fields.u64(), fields.u64()) } else { (0, 0) };
            Entry { key, ordinal, rank, simple, syntax }
        })
    }
}

struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let Some((field, rest)) = self.0.split_first_chunk::<N>() else { return [0; N] };
        self.0 = rest;
        *field
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    fn u128(&mut self) -> u128 {
        u128::from_le_bytes(self.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back() {
        let entry = Entry { key: 1 << 100, ordinal: 7, rank: 3 << 90, simple: 5, syntax: 6 };
        for (has_rank, has_rungs) in [(false, false), (true, false), (false, true), (true, true)] {
            let layout = Layout { has_rank, has_rungs };
            let mut bytes = Vec::new();
            layout.write(&entry, &mut bytes);
            layout.write(&Entry::default(), &mut bytes);
            assert_eq!(bytes.len(), 2 * layout.entry_len());
            let rank = if has_rank { entry.rank } else { 0 };
            let (simple, syntax) = if has_rungs { (5, 6) } else { (0, 0) };
            let want = Entry { rank, simple, syntax, ..entry };
            assert!(layout.read(&bytes).eq([want, Entry::default()]));
        }
    }
}
