//! An element of the array of records of a JSON document: [`JsonRecord`].

use crate::iri::FaultKind;
use crate::kernel::offset_in;
use crate::record::buffer::RecordBuffer;
use crate::record::fields::FieldValues;

/// Maximum length of the text in the row of a record that cannot be read, in bytes.
const MAX_REFUSED_LEN: usize = 64 << 10;

/// An element of the array of records.
#[derive(Clone, Copy, Debug)]
pub(super) struct JsonRecord<'a> {
    /// Where it begins in the source.
    pub(super) at: u64,
    pub(super) text: &'a [u8],
    /// Where strings were cut: the offset in `text` of the byte after what is held of each.
    pub(super) cuts: &'a [usize],
    /// It is longer than allowed; `text` is its beginning.
    pub(super) is_too_long: bool,
}

impl<'a> JsonRecord<'a> {
    /// Appends the row of a record that cannot be read.
    pub(super) fn refuse(&self, rows: &mut RecordBuffer) {
        rows.begin(self.at);
        rows.refuse(if self.is_too_long { FaultKind::TooLong } else { FaultKind::NotOfFormat });
        rows.push_url(self.beginning());
        rows.push_fields(&FieldValues::default());
    }

    /// Whether no string was cut within or at the end of `part`, a part of the text.
    pub(super) fn is_whole(&self, part: &[u8]) -> bool {
        let at = offset_in(self.text, part);
        !self.cuts.iter().any(|cut| (at..=at + part.len()).contains(cut))
    }

    /// The text in the row of a record that cannot be read.
    pub(super) fn beginning(&self) -> &'a [u8] {
        &self.text[..self.text.len().min(MAX_REFUSED_LEN)]
    }
}
