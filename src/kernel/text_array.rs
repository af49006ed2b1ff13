//! Arrow's array of texts without a second look at texts that are ASCII. In: offsets and bytes. Out: the array.
//!
//! `StringArray::try_new` reads all bytes for UTF-8, then asks of every offset whether it divides a character. In ASCII
//! none can: one look for bytes from 0x80 on, which is several times as fast, answers both.

use arrow::array::StringArray;
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer};
use arrow::error::ArrowError;

/// The array whose texts lie between `offsets` in `values`; a text is null where `nulls` says so.
///
/// ```
/// use arrow::buffer::{Buffer, OffsetBuffer};
/// use irikey::kernel::text_array;
/// let array = |text: &[u8]| text_array(OffsetBuffer::from_lengths([1, 2]), Buffer::from(text), None);
/// assert_eq!(array(b"a/b").unwrap().value(1), "/b");
/// assert!(array("é!".as_bytes()).is_err());
/// ```
///
/// # Errors
/// Those of `StringArray::try_new`: an offset past the end or inside a character, bytes that are not UTF-8, nulls of
/// another length.
pub fn text_array(
    offsets: OffsetBuffer<i32>,
    values: Buffer,
    nulls: Option<NullBuffer>,
) -> Result<StringArray, ArrowError> {
    let is_within = offsets.last() as usize <= values.len();
    let is_even = nulls.as_ref().is_none_or(|nulls| nulls.len() == offsets.len() - 1);
    if !(is_within && is_even && values.is_ascii()) {
        return StringArray::try_new(offsets, values, nulls);
    }
    // SAFETY: an `OffsetBuffer` has an offset at least, and they ascend from 0 or more; the last is within the values and
    // the nulls are as many as the texts, both looked at above. Every part of ASCII is UTF-8.
    Ok(unsafe { StringArray::new_unchecked(offsets, values, nulls) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_arrows_own_check() {
        let texts: [&[u8]; 5] = [b"", b"http://a/", "http://é/".as_bytes(), b"\xC3", b"a\x7F\x80"];
        for text in texts {
            for end in 0..=text.len() + 1 {
                for rows in [None, Some(0), Some(1), Some(2)] {
                    let parts = || {
                        let nulls = rows.map(NullBuffer::new_null);
                        (OffsetBuffer::from_lengths([end]), Buffer::from(text), nulls)
                    };
                    let ((offsets, values, nulls), (o, v, n)) = (parts(), parts());
                    let (found, want) = (text_array(offsets, values, nulls), StringArray::try_new(o, v, n));
                    assert_eq!(found.ok(), want.ok(), "{text:?} {end} {rows:?}");
                }
            }
        }
    }
}
