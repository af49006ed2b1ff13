//! Sets of byte values, built at compile time, and the form that kernels read: a pair of nibble tables in which vector
//! instructions look up 16 to 64 bytes at once.

/// A set of byte values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ByteSet([bool; 256]);

impl ByteSet {
    /// Returns the set of the listed bytes.
    pub(crate) const fn of(bytes: &[u8]) -> ByteSet {
        let mut set = [false; 256];
        let mut i = 0;
        while i < bytes.len() {
            set[bytes[i] as usize] = true;
            i += 1;
        }
        ByteSet(set)
    }

    /// Returns the set of all bytes from `first` to `last`, both included.
    pub(crate) const fn range(first: u8, last: u8) -> ByteSet {
        let mut set = [false; 256];
        let mut byte = first as usize;
        while byte <= last as usize {
            set[byte] = true;
            byte += 1;
        }
        ByteSet(set)
    }

    /// Returns the bytes that are in either set.
    pub(crate) const fn or(self, other: ByteSet) -> ByteSet {
        let mut set = self.0;
        let mut byte = 0;
        while byte < 256 {
            set[byte] |= other.0[byte];
            byte += 1;
        }
        ByteSet(set)
    }

    /// Returns the bytes that are not in this set.
    pub(crate) const fn not(self) -> ByteSet {
        let mut set = self.0;
        let mut byte = 0;
        while byte < 256 {
            set[byte] = !set[byte];
            byte += 1;
        }
        ByteSet(set)
    }

    /// Returns whether `byte` is in the set.
    #[inline(always)]
    pub(crate) const fn contains(&self, byte: u8) -> bool {
        self.0[byte as usize]
    }

    /// Returns the set as two tables: a byte is in the set if `low[byte & 15] & high[byte >> 4] != 0`.
    ///
    /// The sixteen bytes with one high nibble are a row. Rows with the same low nibbles share a bit of the tables.
    ///
    /// # Panics
    /// At compile time, if the set has more than eight different non-empty rows.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    pub(super) const fn nibbles(&self) -> NibbleTables {
        let mut tables = NibbleTables { low: [0; 16], high: [0; 16] };
        let mut distinct = [0u16; 8];
        let mut distinct_count = 0;
        let mut row = 0;
        while row < 16 {
            let members = self.row(row);
            let mut bit = 0;
            while bit < distinct_count && distinct[bit] != members {
                bit += 1;
            }
            if members != 0 {
                assert!(bit < 8, "more than eight different rows");
                if bit == distinct_count {
                    distinct[bit] = members;
                    distinct_count += 1;
                }
                tables.high[row] = 1 << bit;
            }
            row += 1;
        }
        let mut bit = 0;
        while bit < distinct_count {
            let mut column = 0;
            while column < 16 {
                tables.low[column] |= ((distinct[bit] >> column & 1) as u8) << bit;
                column += 1;
            }
            bit += 1;
        }
        tables
    }

    /// Returns the low nibbles of the members with high nibble `row`, one bit each.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    const fn row(&self, row: usize) -> u16 {
        let mut members = 0;
        let mut column = 0;
        while column < 16 {
            members |= (self.0[row * 16 + column] as u16) << column;
            column += 1;
        }
        members
    }
}

/// A byte set as two tables, see [`ByteSet::nibbles`].
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[derive(Clone, Copy, Debug)]
pub(super) struct NibbleTables {
    /// Indexed by low nibble: the bits of the rows that contain it.
    pub(super) low: [u8; 16],
    /// Indexed by high nibble: the bit of its row.
    pub(super) high: [u8; 16],
}
