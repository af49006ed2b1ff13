//! Splits fields that hold several references (draft-weber-iri-guidelines-00 section 4.2): [`Records`] in, records with one
//! reference each out, in the same text without copies.
//!
//! Every reference counts as a record of its own, with its own ordinal. In lines its offset is where the reference begins,
//! in other formats it is the offset of the original record. A field without references remains one record with an
//! empty URL. A field with more than [`MAX_REFERENCES`] remains one record with a fault: all rows of a record are in memory at
//! once, and a row takes much more memory than a reference of one character.

use super::buffer::RecordColumns;
use super::records::{RecordOffsets, Records};
use crate::iri::{FaultKind, PreprocessOptions, references_in};
use crate::kernel::Span;

/// Maximum number of references of a field: their rows take about 100 MB.
const MAX_REFERENCES: usize = 1 << 20;

/// Splits fields.
#[derive(Debug, Default)]
pub(crate) struct Splitter {
    /// For each reference, the index of its record.
    origins: Vec<u32>,
    siblings: Vec<u32>,
    /// Records that are fields with too many references.
    too_long: Vec<u32>,
    references: RecordColumns,
}

impl Splitter {
    /// Returns one record per reference in `records`, and for each the index of its original record. `choices` define
    /// which character references are spaces.
    pub(crate) fn split<'a>(
        &'a mut self,
        records: &Records<'a>,
        choices: &PreprocessOptions,
    ) -> (Records<'a>, &'a [u32]) {
        self.find_references(records, choices);
        self.references.gather(&self.origins, records);
        self.references.refuse_each(&self.too_long, FaultKind::TooLong);
        let references = self.references.records(records.text);
        let offsets = match records.offsets {
            RecordOffsets::Each(_) => references.offsets,
            first => first,
        };
        // The headers are only counted, so their places are not updated.
        let Records { charset, is_text, headers, .. } = *records;
        (Records { offsets, siblings: &self.siblings, charset, is_text, headers, ..references }, &self.origins)
    }

    fn find_references(&mut self, records: &Records<'_>, choices: &PreprocessOptions) {
        let urls = &mut self.references.urls;
        urls.clear();
        self.origins.clear();
        self.siblings.clear();
        self.too_long.clear();
        let mut faulty = records.faults.iter().map(|(row, _)| *row).peekable();
        for (origin, url) in (0..).zip(records.urls) {
            let first = urls.len();
            if faulty.next_if_eq(&origin).is_some() {
                urls.push(*url);
            } else {
                let ranges = references_in(url.of(records.text), choices).take(MAX_REFERENCES + 1);
                urls.extend(ranges.map(|range| Span::new(url.at as usize + range.start, range.len())));
            }
            match urls.len() - first {
                0 => urls.push(Span { at: url.at, len: 0 }),
                1 => {}
                count if count > MAX_REFERENCES => {
                    urls.truncate(first);
                    urls.push(*url);
                    self.too_long.push(first as u32);
                }
                _ => self.siblings.extend(first as u32..urls.len() as u32),
            }
            self.origins.resize(urls.len(), origin);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iri::{CharacterReferences, Fault, FaultKind};

    #[test]
    fn every_column_is_split_like_its_record() {
        let text = b"/a&#32;/b http://x/ h1 h2";
        let span = |at, len| Span { at, len };
        let fault = Fault::of_reference(FaultKind::MissingColumn);
        let records = Records {
            text,
            urls: &[span(0, 9), span(0, 9), span(10, 9)],
            bases: &[span(20, 2), span(20, 2), span(23, 2)],
            offsets: RecordOffsets::Each(&[5, 7, 9]),
            faults: &[(0, fault)],
            charsets: &[None, Some(span(20, 2)), None],
            ..Records::default()
        };
        let choices =
            PreprocessOptions { character_references: CharacterReferences::Xml, ..PreprocessOptions::default() };
        let mut splitter = Splitter::default();
        let (split, origins) = splitter.split(&records, &choices);
        assert_eq!(origins, [0, 1, 1, 2]);
        // The text of a record that the decoder refused is kept as it is.
        assert_eq!(split.urls, [span(0, 9), span(0, 2), span(7, 2), span(10, 9)]);
        assert_eq!(split.bases, [span(20, 2), span(20, 2), span(20, 2), span(23, 2)]);
        assert_eq!(split.charsets, [None, Some(span(20, 2)), Some(span(20, 2)), None]);
        assert!(matches!(split.offsets, RecordOffsets::Each([5, 7, 7, 9])));
        assert_eq!((split.faults, split.siblings, split.query_charsets), (&[(0, fault)][..], &[1, 2][..], &[][..]));
    }

    #[test]
    fn a_field_with_too_many_references_is_refused() {
        let text = "a ".repeat(MAX_REFERENCES + 1);
        let span = |count| Span { at: 0, len: 2 * count as u32 };
        let fault = |record, kind| (record, Fault::of_reference(kind));
        let records = Records {
            text: text.as_bytes(),
            urls: &[span(MAX_REFERENCES + 1), span(1), span(MAX_REFERENCES), span(2), span(MAX_REFERENCES + 1)],
            faults: &[fault(1, FaultKind::NoUrl), fault(3, FaultKind::NotOfFormat)],
            ..Records::default()
        };
        let mut splitter = Splitter::default();
        for _ in 0..2 {
            let (split, origins) = splitter.split(&records, &PreprocessOptions::default());
            let last = MAX_REFERENCES + 2;
            assert_eq!((split.urls.len(), &origins[..2], &origins[last..]), (last + 2, &[0, 1][..], &[3, 4][..]));
            assert_eq!(
                [split.urls[0], split.urls[2], split.urls[last + 1]],
                [records.urls[0], Span { at: 0, len: 1 }, records.urls[4]]
            );
            let too_long = [0, last as u32 + 1].map(|record| fault(record, FaultKind::TooLong));
            let others = [fault(1, FaultKind::NoUrl), fault(last as u32, FaultKind::NotOfFormat)];
            assert_eq!(split.faults, [too_long[0], others[0], others[1], too_long[1]]);
            assert_eq!(split.siblings.len(), MAX_REFERENCES);
        }
    }
}
