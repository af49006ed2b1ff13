//! Splits fields that hold several references (draft-weber-iri-guidelines-00 section 4.2): [`Records`] in, records with one
//! reference each out, in the same text without copies.
//!
//! Every reference counts as a record of its own, with its own ordinal. In lines its offset is where the reference begins,
//! in other formats it is the offset of the original record. A field without references remains one record with an
//! empty URL.

use super::fields::{FieldBuffers, gather};
use super::records::{RecordOffsets, Records};
use crate::iri::{Fault, Flags, PreprocessOptions, split_field};
use crate::kernel::Span;

/// Splits fields.
#[derive(Debug, Default)]
pub(crate) struct Splitter {
    origins: Vec<u32>,
    urls: Vec<Span>,
    bases: Vec<Span>,
    charsets: Vec<Option<Span>>,
    query_charsets: Vec<Option<Span>>,
    offsets: Vec<u64>,
    faults: Vec<(u32, Fault)>,
    siblings: Vec<u32>,
    fields: FieldBuffers,
    flags: Vec<(u32, Flags)>,
}

impl Splitter {
    /// Returns one record per reference in `records`, and for each the index of its original record. `choices` say which
    /// character references are spaces.
    pub(crate) fn split<'a>(
        &'a mut self,
        records: &Records<'a>,
        choices: &PreprocessOptions,
    ) -> (Records<'a>, &'a [u32]) {
        self.find_references(records, choices);
        let origins = &self.origins;
        gather(origins, records.bases, &mut self.bases);
        gather(origins, records.charsets, &mut self.charsets);
        gather(origins, records.query_charsets, &mut self.query_charsets);
        self.fields.gather(origins, &records.fields);
        self.flags.clear();
        for (row, flags) in records.flags {
            let first = origins.partition_point(|origin| origin < row);
            let rows = (first as u32..).zip(&origins[first..]).take_while(|(_, origin)| *origin == row);
            self.flags.extend(rows.map(|(row, _)| (row, *flags)));
        }
        self.faults.clear();
        let faults = records.faults.iter().filter_map(|(row, fault)| {
            // A record with a fault is not split.
            Some((origins.binary_search(row).ok()? as u32, *fault))
        });
        self.faults.extend(faults);
        let offsets = match records.offsets {
            RecordOffsets::From(offset) => RecordOffsets::From(offset),
            RecordOffsets::Each(each) => {
                gather(origins, each, &mut self.offsets);
                RecordOffsets::Each(&self.offsets)
            }
        };
        let records = Records {
            urls: &self.urls,
            bases: &self.bases,
            offsets,
            faults: &self.faults,
            charsets: &self.charsets,
            query_charsets: &self.query_charsets,
            siblings: &self.siblings,
            fields: self.fields.views(),
            flags: &self.flags,
            // The headers are only counted, so their places are not updated.
            ..*records
        };
        (records, origins)
    }

    fn find_references(&mut self, records: &Records<'_>, choices: &PreprocessOptions) {
        self.origins.clear();
        self.urls.clear();
        self.siblings.clear();
        let mut faulty = records.faults.iter().map(|(row, _)| *row).peekable();
        for (origin, url) in (0..).zip(records.urls) {
            let first = self.urls.len();
            if faulty.next_if_eq(&origin).is_some() {
                self.urls.push(*url);
            } else {
                let ranges = split_field(url.of(records.text), choices);
                self.urls.extend(
                    ranges.iter().map(|range| Span { at: url.at + range.start as u32, len: range.len() as u32 }),
                );
            }
            match self.urls.len() - first {
                0 => self.urls.push(Span { at: url.at, len: 0 }),
                1 => {}
                _ => self.siblings.extend(first as u32..self.urls.len() as u32),
            }
            self.origins.resize(self.urls.len(), origin);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iri::{CharacterReferences, Component, FaultKind};

    #[test]
    fn every_column_is_split_like_its_record() {
        let text = b"/a&#32;/b http://x/ h1 h2";
        let span = |at, len| Span { at, len };
        let fault = Fault::new(FaultKind::MissingColumn, Component::Reference, 0);
        let records = Records {
            text,
            urls: &[span(0, 0), span(0, 9), span(10, 9)],
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
        assert_eq!(split.urls, [span(0, 0), span(0, 2), span(7, 2), span(10, 9)]);
        assert_eq!(split.bases, [span(20, 2), span(20, 2), span(20, 2), span(23, 2)]);
        assert_eq!(split.charsets, [None, Some(span(20, 2)), Some(span(20, 2)), None]);
        assert!(matches!(split.offsets, RecordOffsets::Each([5, 7, 7, 9])));
        assert_eq!((split.faults, split.siblings, split.query_charsets), (&[(0, fault)][..], &[1, 2][..], &[][..]));
    }
}
