//! Writes the headers of pages: the struct `PageHeader` of Parquet's format in Thrift's compact protocol.
//!
//! The `parquet` crate writes a header only together with the body of its page, which it takes as one buffer and copies.

use parquet::basic::Encoding;

use super::delta::zigzag;
use crate::kernel::push_varint;

/// Upper bound of the length of a page header.
pub(super) const HEADER_LEN: usize = 64;

/// What the header of a page states about its body.
pub(super) struct PageHeader {
    pub(super) kind: PageKind,
    pub(super) value_count: usize,
    pub(super) encoding: Encoding,
    /// Length of the body in bytes, and before compression.
    pub(super) len: usize,
    pub(super) uncompressed_len: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PageKind {
    /// Version 1, with levels in the encoding `RLE`.
    Data,
    /// Values that are not sorted.
    Dictionary,
}

const TYPE_FALSE: u8 = 2;
const TYPE_I32: u8 = 5;
const TYPE_STRUCT: u8 = 12;
const STOP: u8 = 0;

impl PageHeader {
    /// Appends the header to `out`.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let (page_type, header_field) = match self.kind {
            PageKind::Data => (0, 5),
            PageKind::Dictionary => (2, 7),
        };
        push_i32(out, page_type);
        push_i32(out, self.uncompressed_len as i32);
        push_i32(out, self.len as i32);
        push_field(out, header_field - 3, TYPE_STRUCT);
        push_i32(out, self.value_count as i32);
        push_i32(out, self.encoding as i32);
        match self.kind {
            PageKind::Data => [Encoding::RLE; 2].iter().for_each(|levels| push_i32(out, *levels as i32)),
            PageKind::Dictionary => push_field(out, 1, TYPE_FALSE),
        }
        out.extend([STOP, STOP]);
    }
}

/// Appends the start of a field whose number is `step` more than that of the field before it.
fn push_field(out: &mut Vec<u8>, step: u8, type_of_field: u8) {
    out.push(step << 4 | type_of_field);
}

/// Appends the next field, which is a number.
fn push_i32(out: &mut Vec<u8>, value: i32) {
    push_field(out, 1, TYPE_I32);
    push_varint(zigzag(value.into()), out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::column::page::{CompressedPage, Page, PageWriter};
    use parquet::file::writer::{SerializedPageWriter, TrackedWrite};

    /// Returns a header as the `parquet` crate writes it, before a body of zeros.
    fn expected(header: &PageHeader) -> Vec<u8> {
        let &PageHeader { kind, value_count, encoding, len, uncompressed_len } = header;
        let (buf, num_values) = (vec![0; len].into(), value_count as u32);
        let page = match kind {
            PageKind::Dictionary => Page::DictionaryPage { buf, num_values, encoding, is_sorted: false },
            PageKind::Data => Page::DataPage {
                buf,
                num_values,
                encoding,
                def_level_encoding: Encoding::RLE,
                rep_level_encoding: Encoding::RLE,
                statistics: None,
            },
        };
        let mut file = TrackedWrite::new(Vec::new());
        SerializedPageWriter::new(&mut file).write_page(CompressedPage::new(page, uncompressed_len)).unwrap();
        let mut bytes = file.into_inner().unwrap();
        bytes.truncate(bytes.len() - len);
        bytes
    }

    #[test]
    fn headers_are_those_of_the_parquet_crate() {
        let encodings = [
            Encoding::PLAIN,
            Encoding::DELTA_LENGTH_BYTE_ARRAY,
            Encoding::DELTA_BINARY_PACKED,
            Encoding::RLE_DICTIONARY,
        ];
        for (number, encoding) in encodings.into_iter().enumerate() {
            for len in [0, 1, 63, 64, 8191, 8192, 1 << 20] {
                for kind in [PageKind::Data, PageKind::Dictionary] {
                    let (value_count, uncompressed_len) = (len / 3, len * 5 + number);
                    let header = PageHeader { kind, value_count, encoding, len, uncompressed_len };
                    let mut written = vec![7];
                    header.write(&mut written);
                    assert_eq!(written[1..], expected(&header));
                }
            }
        }
    }
}
