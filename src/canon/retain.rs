//! Rows in, some of them out, where they lie: [`Rows::retain`]. Rows come in stretches, of which each column moves one
//! after the other to the front.

use super::rows::{Rows, TextColumn};
use std::ops::Range;

impl Rows {
    /// Keeps the rows of `stretches`, which ascend and do not overlap, and their memory; the tally stays that of all.
    ///
    /// ```
    /// # use irikey::canon::Rows;
    /// let mut rows = Rows::new(0);
    /// for uri in ["a:1", "a:2", "a:3"] {
    ///     rows.uri.values.extend_from_slice(uri.as_bytes());
    ///     rows.uri.end();
    /// }
    /// rows.retain(&[0..1, 2..3]);
    /// assert_eq!((rows.len(), rows.uri.get(1)), (2, &b"a:3"[..]));
    /// ```
    ///
    /// # Panics
    /// When a stretch ends past the rows.
    pub fn retain(&mut self, stretches: &[Range<usize>]) {
        if stretches.iter().map(Range::len).sum::<usize>() == self.len() {
            return;
        }
        retain_faults(self, stretches);
        retain_bits(&mut self.differs, stretches);
        self.carried.retain(stretches);
        let texts = [&mut self.uri, &mut self.input].into_iter().chain(&mut self.recipe_texts);
        texts.for_each(|texts| retain_texts(texts, stretches));
        let keys = self.more_keys.iter_mut().chain([&mut self.key, &mut self.protocol]);
        keys.for_each(|keys| retain_items(keys, stretches));
        [&mut self.flags, &mut self.spoofing_flags].into_iter().for_each(|bits| retain_items(bits, stretches));
        retain_items(&mut self.offset, stretches);
    }
}

/// A column that the policy does not want is empty.
pub(super) fn retain_items<T: Copy>(items: &mut Vec<T>, stretches: &[Range<usize>]) {
    if items.is_empty() {
        return;
    }
    let mut at = 0;
    for stretch in stretches {
        items.copy_within(stretch.clone(), at);
        at += stretch.len();
    }
    items.truncate(at);
}

pub(super) fn retain_texts(texts: &mut TextColumn, stretches: &[Range<usize>]) {
    if texts.is_empty() {
        return;
    }
    let TextColumn { values, offsets } = texts;
    let (mut row, mut len) = (0, 0);
    for stretch in stretches {
        let (from, to) = (offsets[stretch.start], offsets[stretch.end]);
        values.copy_within(from as usize..to as usize, len as usize);
        // An end moves to the left as its text does: what is read has not been written yet.
        for at in stretch.clone() {
            offsets[row + 1] = offsets[at + 1] - from + len;
            row += 1;
        }
        len += to - from;
    }
    values.truncate(len as usize);
    offsets.truncate(row + 1);
}

/// A bit a row, least significant first; where words are missing they are 0.
fn retain_bits(words: &mut Vec<u64>, stretches: &[Range<usize>]) {
    if words.iter().all(|word| *word == 0) {
        return words.clear();
    }
    let all = std::mem::take(words);
    for (row, from) in stretches.iter().cloned().flatten().enumerate() {
        if row % 64 == 0 {
            words.push(0);
        }
        let bit = all.get(from / 64).map_or(0, |word| word >> (from % 64) & 1);
        words[row / 64] |= bit << (row % 64);
    }
}

fn retain_faults(rows: &mut Rows, stretches: &[Range<usize>]) {
    let (mut stretches, mut before) = (stretches.iter().peekable(), 0);
    rows.faults.retain_mut(|(row, _)| {
        let at = *row as usize;
        while let Some(stretch) = stretches.next_if(|stretch| stretch.end <= at) {
            before += stretch.len();
        }
        let kept = stretches.peek().filter(|stretch| stretch.contains(&at));
        kept.is_some_and(|stretch| {
            *row = (before + at - stretch.start) as u32;
            true
        })
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iri::{Component, Fault, FaultKind};

    fn texts(rows: impl Iterator<Item = usize>) -> TextColumn {
        let mut texts = TextColumn::new();
        for row in rows {
            texts.values.extend(std::iter::repeat_n(row as u8, row * 7 % 5));
            texts.end();
        }
        texts
    }

    /// The rows of these numbers: what each column says follows from the number.
    fn rows(numbers: &[usize]) -> Rows {
        let mut rows = Rows::new(1);
        let all = || numbers.iter().copied();
        rows.uri = texts(all());
        rows.input = texts(all().map(|row| row + 1));
        rows.key = all().map(|row| [row as u8; 16]).collect();
        rows.more_keys = vec![all().map(|row| [!row as u8; 16]).collect()];
        rows.offset = all().map(|row| row as u64).collect();
        rows.flags = all().map(|row| row as u32 * 3).collect();
        rows.carried.times = all().map(|row| (row % 3 > 0).then_some(row as i64)).collect();
        rows.carried.mimes = texts(all().map(|row| row + 2));
        rows.recipe_texts = vec![texts(all().map(|row| row + 3))];
        let fault = Fault::new(FaultKind::NoUrl, Component::Reference, 0);
        let faulty = all().enumerate().filter(|(_, number)| number % 4 == 1);
        rows.faults = faulty.map(|(row, _)| (row as u32, fault)).collect();
        rows.differs = vec![0; numbers.len().div_ceil(64)];
        let differing = all().enumerate().filter(|(_, number)| number % 3 == 0);
        differing.for_each(|(row, _)| rows.differs[row / 64] |= 1 << (row % 64));
        rows
    }

    #[test]
    fn rows_are_those_that_were_wanted() {
        for stretches in
            [vec![], vec![0..150, 150..200], vec![0..1, 5..9], vec![3..64, 64..130, 199..200], vec![150..150, 151..200]]
        {
            let mut some = rows(&(0..200).collect::<Vec<_>>());
            some.retain(&stretches);
            let want = rows(&stretches.into_iter().flatten().collect::<Vec<_>>());
            assert_eq!(format!("{some:?}"), format!("{want:?}"));
        }
        let mut same = rows(&[2, 4, 6]);
        same.differs.clear();
        same.retain(&[1..2, 2..3]);
        assert!(same.differs.is_empty() && same.len() == 2);
    }
}
