//! Builds Arrow string arrays with fast checks of offsets and of texts that are ASCII.
//!
//! `StringArray::try_new` validates all bytes as UTF-8 and then checks that no offset divides a character. In ASCII text
//! no offset can divide a character, so one search for bytes from 0x80 on replaces both checks and is several times as
//! fast.

use arrow::array::StringArray;
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::error::ArrowError;

/// Returns the array of the texts that `offsets` delimit in `values`, with the nulls of `nulls`.
///
/// # Errors
/// Those of `StringArray::try_new`: an offset past the end or inside a character, bytes that are not UTF-8, or a null
/// buffer of another length.
pub(crate) fn text_array(
    offsets: OffsetBuffer<i32>,
    values: Buffer,
    nulls: Option<NullBuffer>,
) -> Result<StringArray, ArrowError> {
    let is_within = offsets.last() as usize <= values.len();
    let has_null_per_text = nulls.as_ref().is_none_or(|nulls| nulls.len() == offsets.len() - 1);
    if !(is_within && has_null_per_text && values.is_ascii()) {
        return StringArray::try_new(offsets, values, nulls);
    }
    // SAFETY: an `OffsetBuffer` holds at least one offset, and its offsets ascend from 0 or more. The condition above
    // establishes that the last offset is within the values, that there are as many nulls as texts, and that the values
    // are ASCII, every part of which is UTF-8.
    Ok(unsafe { StringArray::new_unchecked(offsets, values, nulls) })
}

/// Returns offsets as a buffer. `OffsetBuffer::new` compares them one by one; this compares several per instruction.
///
/// # Panics
/// If there are none, the first is negative, or they do not ascend.
pub(crate) fn offset_buffer(offsets: Vec<i32>) -> OffsetBuffer<i32> {
    let is_ascending = offsets.windows(2).fold(true, |is_ascending, ends| is_ascending & (ends[0] <= ends[1]));
    assert!(offsets.first().is_some_and(|first| *first >= 0) && is_ascending, "offsets ascend from 0 or more");
    // SAFETY: the assertion establishes the condition of `new_unchecked`.
    unsafe { OffsetBuffer::new_unchecked(ScalarBuffer::from(offsets)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_refused_as_by_the_constructor_of_arrow() {
        let long: Vec<i32> = (0..100).collect();
        let exchanged = |at: usize| {
            let mut offsets = long.clone();
            offsets.swap(at, at + 1);
            offsets
        };
        let lists = [vec![], vec![-1], vec![0], vec![3], vec![-1, 0], vec![0, 0], vec![1, 0], vec![0, 5, 4]];
        for offsets in lists.into_iter().chain((0..99).map(exchanged)).chain([long.clone()]) {
            let expected = std::panic::catch_unwind(|| OffsetBuffer::new(ScalarBuffer::from(offsets.clone())));
            let actual = std::panic::catch_unwind(|| offset_buffer(offsets.clone()));
            assert_eq!(actual.ok(), expected.ok(), "{offsets:?}");
        }
    }

    #[test]
    fn equals_the_checked_constructor_of_arrow() {
        let texts: [&[u8]; 5] = [b"", b"http://a/", "http://é/".as_bytes(), b"\xC3", b"a\x7F\x80"];
        for text in texts {
            for end in 0..=text.len() + 1 {
                for rows in [None, Some(0), Some(1), Some(2)] {
                    let parts = || {
                        let nulls = rows.map(NullBuffer::new_null);
                        (OffsetBuffer::from_lengths([end]), Buffer::from(text), nulls)
                    };
                    let ((offsets, values, nulls), (o, v, n)) = (parts(), parts());
                    let (actual, expected) = (text_array(offsets, values, nulls), StringArray::try_new(o, v, n));
                    assert_eq!(actual.ok(), expected.ok(), "{text:?} {end} {rows:?}");
                }
            }
        }
    }
}
