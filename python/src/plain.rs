//! Reads columns of text or bytes directly from the structures of the Arrow C data interface. Importing a batch of 100 rows with
//! all of its types and columns costs as much as normalizing some of its URLs; a column with offsets needs none of that.

use std::ptr::NonNull;
use std::sync::Arc;

use arrow::array::{GenericBinaryArray, OffsetSizeTrait};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::ffi::{FFI_ArrowArray, FFI_ArrowSchema};

use crate::column::{Bytes, Column};

/// Returns the only column `name` of a batch, checked; `None` for everything that needs a complete import: other types, rows
/// that are null as a whole, buffers that are missing or not aligned, offsets that contradict each other, unknown names.
///
/// # Safety
/// The schema describes the array, and both are valid by the C data interface of Arrow.
#[expect(unsafe_code, reason = "the caller guarantees that the structures of C are valid")]
pub unsafe fn plain_column(batch: &Arc<FFI_ArrowArray>, schema: &FFI_ArrowSchema, name: &str) -> Option<Column> {
    let has_nulls = batch.null_count_opt() != Some(0);
    if schema.format() != "+s" || batch.offset() != 0 || has_nulls {
        return None;
    }
    let mut places = schema.children().enumerate().filter(|(_, field)| field.name() == Some(name));
    let ((place, field), None) = (places.next()?, places.next()) else { return None };
    if place >= batch.num_children() || batch.child(place).len() < batch.len() {
        return None;
    }
    // SAFETY: the field describes this child of the batch, which has enough rows. The format states the width of the offsets.
    let bytes = unsafe {
        match field.format() {
            "u" | "z" => rows(batch, batch.child(place)).map(Bytes::Binary),
            "U" | "Z" => rows(batch, batch.child(place)).map(Bytes::Large),
            _ => None,
        }
    };
    Some(Column::new(bytes?, matches!(field.format(), "u" | "U")))
}

/// Returns the rows of a column of the batch.
///
/// # Safety
/// The column is a valid array of text or bytes with offsets of the type `O`, and has at least as many rows as the batch.
#[expect(unsafe_code, reason = "the caller guarantees that the structures of C are valid")]
unsafe fn rows<O: OffsetSizeTrait>(
    batch: &Arc<FFI_ArrowArray>,
    column: &FFI_ArrowArray,
) -> Option<GenericBinaryArray<O>> {
    if column.num_buffers() != 3 {
        return None;
    }
    // SAFETY: by the caller, buffer `place` has this length if it exists. The batch owns it.
    let buffer = |place, len| unsafe {
        let bytes = NonNull::new(column.buffer(place).cast_mut())?;
        Some(Buffer::from_custom_allocation(bytes, len, batch.clone()))
    };
    let (begin, count) = (column.offset(), batch.len());
    // Arrays without rows may lack the only offset.
    if count == 0 {
        return None;
    }
    let end = begin.checked_add(count)?;
    let offsets = buffer(1, end.checked_add(1)?.checked_mul(size_of::<O>())?)?;
    if !offsets.as_ptr().cast::<O>().is_aligned() {
        return None;
    }
    let offsets = ScalarBuffer::<O>::new(offsets, begin, count + 1);
    if offsets[0] < O::default() || !is_ascending(&offsets) {
        return None;
    }
    let values = buffer(2, offsets[count].as_usize())?;
    let nulls = match column.null_count_opt() {
        Some(0) => None,
        // The number of nulls is counted, because a wrong one would make the counters wrong.
        _ => buffer(0, end.div_ceil(8)).map(|bits| NullBuffer::new(BooleanBuffer::new(bits, begin, count))),
    };
    // SAFETY: the offsets ascend from 0 or more.
    let offsets = unsafe { OffsetBuffer::new_unchecked(offsets) };
    GenericBinaryArray::try_new(offsets, values, nulls).ok()
}

/// Returns whether no offset is less than the one before it. Looks at all of them, which takes one vector instruction for
/// several offsets.
fn is_ascending<O: OffsetSizeTrait>(offsets: &[O]) -> bool {
    offsets.windows(2).fold(true, |is_ascending, ends| is_ascending & (ends[0] <= ends[1]))
}
