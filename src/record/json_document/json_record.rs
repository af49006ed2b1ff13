//! An element of the array of records of a JSON document: [`JsonRecord`].

use crate::iri::FaultKind;
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

    /// The text in the row of a record that cannot be read.
    pub(super) fn beginning(&self) -> &'a [u8] {
        &self.text[..self.text.len().min(MAX_REFUSED_LEN)]
    }
}
