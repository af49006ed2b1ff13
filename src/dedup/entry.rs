//! What is written down of a row whose verdict has to wait: an [`Entry`] and its [`Texts`], and as which bytes: [`Layout`].

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
    /// First 64 bits of the row's key of the policy's rung, likewise.
    pub rung: u64,
}

/// Texts of an entry; empty where they are not kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Texts<'a> {
    /// What the key is the hash of, to compare where keys meet.
    pub canonical: &'a [u8],
    /// Decides between rows of one key and rank: the least is best.
    pub uri: &'a [u8],
}

/// Which fields of entries are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// `rank`.
    pub has_rank: bool,
    /// `simple`, `syntax` and `rung`.
    pub has_rungs: bool,
    /// [`Texts::canonical`].
    pub has_canonical: bool,
    /// [`Texts::uri`].
    pub has_uri: bool,
}

impl Layout {
    /// Bytes of an entry, less its texts.
    pub const fn entry_len(self) -> usize {
        24 + if self.has_rank { 16 } else { 0 } + if self.has_rungs { 24 } else { 0 }
    }

    /// Entries have texts, and so no common length.
    pub const fn has_texts(self) -> bool {
        self.has_canonical || self.has_uri
    }

    /// Bytes that an entry's texts take, each with its length before it.
    pub fn texts_len(self, texts: &Texts<'_>) -> usize {
        let len = |has: bool, text: &[u8]| if has { 4 + text.len() } else { 0 };
        len(self.has_canonical, texts.canonical) + len(self.has_uri, texts.uri)
    }

    /// Appends an entry.
    pub fn write(self, entry: &Entry, texts: &Texts<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(&entry.key.to_le_bytes());
        out.extend_from_slice(&entry.ordinal.to_le_bytes());
        if self.has_rank {
            out.extend_from_slice(&entry.rank.to_le_bytes());
        }
        if self.has_rungs {
            [entry.simple, entry.syntax, entry.rung].iter().for_each(|bits| out.extend_from_slice(&bits.to_le_bytes()));
        }
        for (has, text) in [(self.has_canonical, texts.canonical), (self.has_uri, texts.uri)] {
            if has {
                // Texts of one part of rows are less than 2 GiB.
                out.extend_from_slice(&(text.len() as u32).to_le_bytes());
                out.extend_from_slice(text);
            }
        }
    }

    /// The entries of `bytes` with their texts; what is left over at the end of them is none.
    pub fn read(self, bytes: &[u8]) -> impl Iterator<Item = (Entry, Texts<'_>)> {
        let mut rest = bytes;
        std::iter::from_fn(move || {
            (rest.len() >= self.entry_len()).then(|| {
                let (entry, texts, len) = self.read_one(rest);
                rest = &rest[len..];
                (entry, texts)
            })
        })
    }

    /// The entry that `bytes` begin with, its texts, and its length.
    #[inline]
    pub fn read_one(self, bytes: &[u8]) -> (Entry, Texts<'_>, usize) {
        let mut fields = Fields(bytes);
        let (key, ordinal) = (fields.u128(), fields.u64());
        let rank = if self.has_rank { fields.u128() } else { 0 };
        let mut bits = || if self.has_rungs { fields.u64() } else { 0 };
        let (simple, syntax, rung) = (bits(), bits(), bits());
        let mut text = |has: bool| if has { fields.text() } else { &[] };
        let texts = Texts { canonical: text(self.has_canonical), uri: text(self.has_uri) };
        (Entry { key, ordinal, rank, simple, syntax, rung }, texts, bytes.len() - fields.0.len())
    }
}

struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
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

    fn text(&mut self) -> &'a [u8] {
        let len = u32::from_le_bytes(self.take()) as usize;
        let (text, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back() {
        let entry = Entry { key: 1 << 100, ordinal: 7, rank: 3 << 90, simple: 5, syntax: 6, rung: 7 };
        let texts = Texts { canonical: b"http://a/", uri: b"" };
        for bits in 0..16 {
            let [has_rank, has_rungs, has_canonical, has_uri] = [1, 2, 4, 8].map(|bit| bits & bit != 0);
            let layout = Layout { has_rank, has_rungs, has_canonical, has_uri };
            let mut bytes = Vec::new();
            layout.write(&entry, &texts, &mut bytes);
            layout.write(&Entry::default(), &Texts::default(), &mut bytes);
            let texts_len = layout.texts_len(&texts) + layout.texts_len(&Texts::default());
            assert_eq!(bytes.len(), 2 * layout.entry_len() + texts_len);
            let rank = if has_rank { entry.rank } else { 0 };
            let (simple, syntax, rung) = if has_rungs { (5, 6, 7) } else { (0, 0, 0) };
            let want = Entry { rank, simple, syntax, rung, ..entry };
            let canonical = if has_canonical { texts.canonical } else { b"" };
            let read: Vec<_> = layout.read(&bytes).collect();
            assert_eq!(read, [(want, Texts { canonical, uri: b"" }), Default::default()]);
        }
    }
}
