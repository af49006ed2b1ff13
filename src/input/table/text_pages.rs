//! Copies URLs from the pages of a column to [`RecordBuffer`]s, without arrays in between: [`TextPages`].
//!
//! This reads what most pages with URLs are: `PLAIN` texts without nulls. It returns `None` for anything else, damage
//! included, and the caller then reads the batch again with the decoder of the crate. Both cut rows into the same buffers,
//! and only the decoder of the crate reports defects.

use std::collections::VecDeque;

use bytes::{Buf, Bytes};
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader};

use super::columns::TableProjection;
use super::parquet_pages::CheckedPages;
use super::rows::{TEXT_LEN, empty_records};
use crate::kernel::read_varint;
use crate::record::{RecordBuffer, UrlLimits};

/// The texts of one column chunk, from some row on.
pub(super) struct TextPages {
    pages: CheckedPages,
    /// The current page from the next text on.
    texts: Bytes,
    /// Texts of the current page that were not taken.
    remaining: usize,
    /// Number in the row group of the next row.
    row: u64,
}

impl TextPages {
    /// The texts of `pages`. The column is not repeated, and at most optional.
    pub(super) fn new(pages: CheckedPages) -> TextPages {
        TextPages { pages, texts: Bytes::new(), remaining: 0, row: 0 }
    }

    /// Number in the row group of the next row.
    pub(super) fn row(&self) -> u64 {
        self.row
    }

    /// Skips the rows before `row`, and does not decompress pages of which all rows are skipped.
    pub(super) fn skip_to(&mut self, row: u64) -> Option<()> {
        while self.row < row {
            let rest = row - self.row;
            if self.remaining > 0 {
                let count = self.remaining.min(usize::try_from(rest).unwrap_or(usize::MAX));
                for _ in 0..count {
                    let len = self.texts.try_get_u32_le().ok()? as usize;
                    (len <= self.texts.len()).then(|| self.texts.advance(len))?;
                }
                (self.remaining, self.row) = (self.remaining - count, self.row + count as u64);
                continue;
            }
            let page = self.pages.peek_next_page().ok()??;
            match page.num_levels {
                // Only pages of version 2 state rows; damaged ones may state two numbers.
                levels if page.num_rows.is_some() && page.num_rows != levels => return None,
                _ if page.is_dict => self.pages.skip_next_page().ok()?,
                Some(count) if count as u64 <= rest => {
                    self.pages.skip_next_page().ok()?;
                    self.row += count as u64;
                }
                _ => self.load_page()?,
            }
        }
        Some(())
    }

    /// Copies the next `count` rows, which are numbered from `number` on in their file.
    pub(super) fn batch(
        &mut self,
        count: usize,
        number: u64,
        projection: &TableProjection,
    ) -> Option<VecDeque<RecordBuffer>> {
        let (mut buffers, mut taken) = (VecDeque::new(), 0);
        while taken < count {
            let mut records = empty_records(projection, count - taken);
            while taken < count && records.text_len() < TEXT_LEN {
                if self.remaining == 0 {
                    self.load_page()?;
                    continue;
                }
                let limits = UrlLimits {
                    count: self.remaining.min(count - taken),
                    text_len: TEXT_LEN,
                    url_len: projection.max_record_len,
                };
                let (urls, len) = records.push_prefixed_urls(&self.texts, number + taken as u64, limits)?;
                self.texts.advance(len);
                (self.remaining, taken) = (self.remaining - urls, taken + urls);
            }
            buffers.push_back(records);
        }
        self.row += count as u64;
        Some(buffers)
    }

    /// Decompresses the next page.
    fn load_page(&mut self) -> Option<()> {
        let has_levels = self.pages.has_levels;
        (self.texts, self.remaining) = loop {
            match self.pages.get_next_page().ok()?? {
                // A page that needs the dictionary is not `PLAIN`.
                Page::DictionaryPage { .. } => {}
                page => break plain_texts(&page, has_levels)?,
            }
        };
        Some(())
    }
}

/// The texts of a page, each behind its length, and their number.
fn plain_texts(page: &Page, has_levels: bool) -> Option<(Bytes, usize)> {
    let (buf, count) = (page.buffer(), page.num_values() as usize);
    let (levels, texts_at) = match page {
        Page::DataPage { encoding: Encoding::PLAIN, .. } if !has_levels => return Some((buf.clone(), count)),
        Page::DataPage { encoding: Encoding::PLAIN, def_level_encoding: Encoding::RLE, .. } => {
            let (len, rest) = buf.split_first_chunk()?;
            let len = u32::from_le_bytes(*len) as usize;
            (rest.get(..len)?, size_of::<u32>() + len)
        }
        Page::DataPageV2 {
            encoding: Encoding::PLAIN,
            num_nulls: 0,
            num_rows,
            def_levels_byte_len,
            rep_levels_byte_len: 0,
            ..
        } if *num_rows as usize == count => {
            let len = *def_levels_byte_len as usize;
            (buf.get(..len)?, len)
        }
        _ => return None,
    };
    (!has_levels || is_all_ones(levels, count)).then(|| (buf.slice(texts_at..), count))
}

/// Whether `levels` are `count` times 1, in the encoding RLE with one bit per level.
fn is_all_ones(mut levels: &[u8], count: usize) -> bool {
    let mut known = 0;
    while known < count {
        let Some((header, rest)) = read_varint(levels) else { return false };
        // A run of one level, or groups of eight levels.
        let (run_count, is_ones, len) = match header & 1 {
            0 => (header >> 1, rest.first() == Some(&1), 1),
            _ => {
                let Some(len) = usize::try_from(header >> 1).ok().filter(|len| *len <= rest.len()) else {
                    return false;
                };
                let levels = len.saturating_mul(8).min(count - known);
                let last = 0xFF >> (7 - (levels + 7) % 8);
                let is_ones = levels == 0
                    || rest[..levels.div_ceil(8) - 1].iter().all(|byte| *byte == 0xFF)
                        && rest[levels.div_ceil(8) - 1] & last == last;
                (levels as u64, is_ones, len)
            }
        };
        if !is_ones || run_count == 0 {
            return false;
        }
        known = known.saturating_add(usize::try_from(run_count).unwrap_or(usize::MAX));
        levels = &rest[len..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::push_varint;

    /// Writes `levels`, which are 0 or 1, in the encoding RLE with one bit per level. Each run has a random length and is
    /// written in a random one of the two ways, as far as it can be; the last group of eight levels is filled with ones.
    fn encode(levels: &[bool], mut random: impl FnMut(usize) -> usize) -> Vec<u8> {
        let (mut bytes, mut at) = (Vec::new(), 0);
        while at < levels.len() {
            let rest = &levels[at..];
            let same = rest.iter().take_while(|level| **level == rest[0]).count();
            let groups = 1 + random(rest.len().div_ceil(8));
            if random(2) == 0 {
                let count = 1 + random(same);
                push_varint((count as u64) << 1, &mut bytes);
                bytes.push(rest[0].into());
                at += count;
            } else {
                push_varint((groups as u64) << 1 | 1, &mut bytes);
                let bit = |i: usize| u8::from(rest.get(i).copied().unwrap_or(true)) << (i % 8);
                bytes.extend((0..groups).map(|group| (group * 8..group * 8 + 8).map(bit).sum::<u8>()));
                at += groups * 8;
            }
        }
        bytes
    }

    #[test]
    fn levels_are_all_ones_if_each_of_them_is() {
        let mut state = 1u64;
        let mut random = |end: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % end
        };
        for count in (1..70).chain([127, 128, 1000, 3000]) {
            for _ in 0..20 {
                let mut levels = vec![true; count];
                let encoded = encode(&levels, &mut random);
                assert!(is_all_ones(&encoded, count), "{count} {encoded:?}");
                // There are not more levels than those that are written, and the unused bits of a group.
                assert!(!is_all_ones(&encoded, count + 8), "{count} {encoded:?}");
                assert!(!is_all_ones(&encoded[..random(encoded.len())], count), "{count} {encoded:?}");
                levels[random(count)] = false;
                let encoded = encode(&levels, &mut random);
                assert!(!is_all_ones(&encoded, count), "{count} {encoded:?}");
            }
        }
    }

    #[test]
    fn bits_behind_the_last_level_have_no_meaning() {
        for (count, bits) in [(1, 0x01), (3, 0x07), (7, 0x7F), (8, 0xFF)] {
            assert!(is_all_ones(&[3, bits], count) && is_all_ones(&[5, 0xFF, bits], count + 8), "{count}");
            assert!(!is_all_ones(&[3, bits >> 1], count) && !is_all_ones(&[5, 0xFF, bits >> 1], count + 8), "{count}");
        }
        assert!(is_all_ones(&[5, 1, 0], 1) && is_all_ones(&[2, 1, 3, 0], 1) && is_all_ones(&[], 0));
    }

    #[test]
    fn damaged_levels_are_not_all_ones() {
        // Runs of no levels; a level that is neither 0 nor 1; runs that end early; a header without an end.
        for levels in
            [&[][..], &[0, 1], &[1], &[0, 1, 16, 1], &[1, 16, 1], &[16, 2], &[16], &[3], &[5, 0xFF], &[0xFF; 12]]
        {
            assert!(!is_all_ones(levels, 8), "{levels:?}");
        }
        // The longest run of groups, and of one level.
        assert!(!is_all_ones(&[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01], 8));
        let longest = [0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01, 1];
        assert!(is_all_ones(&[&[4, 1][..], &longest, &longest].concat(), usize::MAX));
    }
}
