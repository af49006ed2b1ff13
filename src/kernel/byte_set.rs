//! Sets of byte values, built and combined at compile time, and the pair of nibble tables that a vector unit looks
//! sixteen or thirty-two bytes up in at once.

/// A set of byte values.
///
/// ```
/// use irikey::kernel::ByteSet;
/// const DIGIT: ByteSet = ByteSet::range(b'0', b'9');
/// assert!(DIGIT.or(ByteSet::of(b"+-")).contains(b'+') && !DIGIT.contains(b'a'));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteSet([bool; 256]);

impl ByteSet {
    /// The bytes listed.
    pub const fn of(bytes: &[u8]) -> ByteSet {
        let mut set = [false; 256];
        let mut i = 0;
        while i < bytes.len() {
            set[bytes[i] as usize] = true;
            i += 1;
        }
        ByteSet(set)
    }

    /// All bytes from `first` to `last`, both included.
    pub const fn range(first: u8, last: u8) -> ByteSet {
        let mut set = [false; 256];
        let mut byte = first as usize;
        while byte <= last as usize {
            set[byte] = true;
            byte += 1;
        }
        ByteSet(set)
    }

    /// The bytes in either set.
    pub const fn or(self, other: ByteSet) -> ByteSet {
        let mut set = self.0;
        let mut byte = 0;
        while byte < 256 {
            set[byte] |= other.0[byte];
            byte += 1;
        }
        ByteSet(set)
    }

    /// The bytes not in this set.
    pub const fn not(self) -> ByteSet {
        let mut set = self.0;
        let mut byte = 0;
        while byte < 256 {
            set[byte] = !set[byte];
            byte += 1;
        }
        ByteSet(set)
    }

    /// `byte` is in the set.
    #[inline(always)]
    pub const fn contains(&self, byte: u8) -> bool {
        self.0[byte as usize]
    }

    /// The set as runs of bytes, the one that holds 255 and 0 being one.
    ///
    /// # Panics
    /// At compile time, for a set of more than [`Runs::MOST`] runs, and for those of none or all bytes.
    pub const fn runs(&self) -> Runs {
        let mut runs = Runs { first: [0; Runs::MOST], further: [0; Runs::MOST], count: 0 };
        let mut first = 0;
        while first < 256 {
            let before = if first == 0 { 255 } else { first - 1 };
            if self.0[first] && !self.0[before] {
                let mut further = 0;
                while self.0[(first + further + 1) % 256] {
                    further += 1;
                }
                assert!(runs.count < Runs::MOST, "too many runs");
                runs.first[runs.count] = first as u8;
                runs.further[runs.count] = further as u8;
                runs.count += 1;
            }
            first += 1;
        }
        assert!(runs.count > 0, "no byte or all of them");
        runs
    }

    /// The set as two tables of sixteen: `byte` is in it exactly if `low[byte & 15] & high[byte >> 4] != 0`.
    ///
    /// # Panics
    /// At compile time, for a set whose sixteen rows (bytes of equal high nibble) have more than eight different
    /// non-empty shapes: each shape takes one bit.
    pub const fn nibbles(&self) -> NibbleTables {
        let mut tables = NibbleTables { low: [0; 16], high: [0; 16] };
        let mut shapes = [0u16; 8];
        let mut shape_count = 0;
        let mut row = 0;
        while row < 16 {
            let shape = self.row(row);
            let mut bit = 0;
            while bit < shape_count && shapes[bit] != shape {
                bit += 1;
            }
            if shape != 0 {
                assert!(bit < 8, "more than eight different rows");
                if bit == shape_count {
                    shapes[bit] = shape;
                    shape_count += 1;
                }
                tables.high[row] = 1 << bit;
            }
            row += 1;
        }
        let mut bit = 0;
        while bit < shape_count {
            let mut column = 0;
            while column < 16 {
                tables.low[column] |= ((shapes[bit] >> column & 1) as u8) << bit;
                column += 1;
            }
            bit += 1;
        }
        tables
    }

    /// The members with high nibble `row`, one bit a low nibble.
    const fn row(&self, row: usize) -> u16 {
        let mut shape = 0;
        let mut column = 0;
        while column < 16 {
            shape |= (self.0[row * 16 + column] as u16) << column;
            column += 1;
        }
        shape
    }
}

/// See [`ByteSet::nibbles`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NibbleTables {
    /// By low nibble: the shapes that hold it.
    pub low: [u8; 16],
    /// By high nibble: the shape of that row.
    pub high: [u8; 16],
}

/// A byte set as what lies between bounds: see [`ByteSet::runs`].
#[derive(Clone, Copy, Debug)]
pub struct Runs {
    first: [u8; Runs::MOST],
    /// How many bytes of the run follow its first.
    further: [u8; Runs::MOST],
    count: usize,
}

impl Runs {
    /// As many runs as a set may have.
    const MOST: usize = 12;

    /// First byte of each run, and how many follow it.
    pub fn iter(&self) -> impl Iterator<Item = (u8, u8)> {
        self.first.into_iter().zip(self.further).take(self.count)
    }
}
