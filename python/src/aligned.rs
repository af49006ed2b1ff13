//! Arrays of other libraries whose offsets are not aligned. Arrow aligns buffers when it imports an array, but before that it
//! reads the offsets of text and the lengths of the buffers of views, which is undefined if they are not aligned.
//!
//! ```text
//! array of the producer --aligned--> array of ours: the same buffers, but copies of those that arrow reads at once
//! ```

#![expect(unsafe_code, reason = "the interface passes structures of C")]

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use arrow::ffi::{FFI_ArrowArray, FFI_ArrowSchema};

/// The structure `ArrowArray` of the C data interface: [`FFI_ArrowArray`], whose fields are private.
#[repr(C)]
struct RawArray {
    len: i64,
    null_count: i64,
    offset: i64,
    buffer_count: i64,
    child_count: i64,
    buffers: *mut *const c_void,
    children: *mut *mut FFI_ArrowArray,
    dictionary: *mut FFI_ArrowArray,
    release: Option<unsafe extern "C" fn(*mut FFI_ArrowArray)>,
    parts: *mut c_void,
}

const _: () = assert!(size_of::<RawArray>() == size_of::<FFI_ArrowArray>());

/// What an array of ours owns: its private data.
struct Parts {
    buffers: Vec<*const c_void>,
    children: Vec<*mut FFI_ArrowArray>,
    dictionary: *mut FFI_ArrowArray,
    /// The aligned copy of a buffer, as one of `buffers`.
    _copy: Vec<u64>,
    /// The array of the producer, to which the other buffers belong.
    _producer: Arc<FFI_ArrowArray>,
}

impl Drop for Parts {
    fn drop(&mut self) {
        for array in self.children.iter().chain([&self.dictionary]).filter(|array| !array.is_null()) {
            // SAFETY: `copy` made these from boxes, and nothing else frees them.
            drop(unsafe { Box::from_raw(*array) });
        }
    }
}

/// Releases an array that [`copy`] made.
unsafe extern "C" fn release(array: *mut FFI_ArrowArray) {
    // SAFETY: the consumer passes an array with this function, which `copy` made, once. Both structures have the same fields.
    unsafe {
        let array = array.cast::<RawArray>();
        drop(Box::from_raw((*array).parts.cast::<Parts>()));
        (*array).release = None;
    }
}

/// Returns an array with the same contents whose import reads only aligned memory.
///
/// # Safety
/// The schema describes the array, and both are valid by the C data interface of Arrow, except that buffers need not be
/// aligned.
pub unsafe fn aligned(array: FFI_ArrowArray, schema: &FFI_ArrowSchema) -> FFI_ArrowArray {
    if is_aligned(&array, schema) {
        return array;
    }
    let producer = Arc::new(array);
    // SAFETY: by the caller.
    unsafe { copy(&producer, schema, &producer) }
}

/// The parts of an array that are arrays, with their schemas.
fn nested<'a>(
    array: &'a FFI_ArrowArray,
    schema: &'a FFI_ArrowSchema,
) -> impl Iterator<Item = (&'a FFI_ArrowArray, &'a FFI_ArrowSchema)> {
    let children = (0..array.num_children()).map(|place| array.child(place)).zip(schema.children());
    children.chain(array.dictionary().zip(schema.dictionary()))
}

fn is_aligned(array: &FFI_ArrowArray, schema: &FFI_ArrowSchema) -> bool {
    let is_own_aligned = buffer_read_at_import(array, schema).is_none_or(|BufferRead { place, width, .. }| {
        let at = array.buffer(place);
        at.is_null() || at.addr().is_multiple_of(width)
    });
    is_own_aligned && nested(array, schema).all(|(array, schema)| is_aligned(array, schema))
}

/// The buffer that arrow reads when it imports an array.
struct BufferRead {
    place: usize,
    /// Bytes per number.
    width: usize,
    /// Length in bytes.
    len: usize,
}

fn buffer_read_at_import(array: &FFI_ArrowArray, schema: &FFI_ArrowSchema) -> Option<BufferRead> {
    let rows = array.len().checked_add(array.offset())?;
    let offsets = |width: usize| {
        let len = rows.checked_add(1)?.checked_mul(width)?;
        // An array without rows may lack the only offset.
        (rows > 0 && array.num_buffers() > 1).then_some(BufferRead { place: 1, width, len })
    };
    match schema.format() {
        "u" | "z" => offsets(size_of::<i32>()),
        "U" | "Z" => offsets(size_of::<i64>()),
        // The last buffer has the lengths of those after the validity and the views.
        "vu" | "vz" => {
            let (count, width) = (array.num_buffers().checked_sub(3)?, size_of::<i64>());
            (count > 0).then_some(BufferRead { place: count + 2, width, len: count * width })
        }
        _ => None,
    }
}

/// Returns an array of ours with the buffers of `array`, which `producer` owns, and an aligned copy of that which is read when
/// it is imported.
///
/// # Safety
/// As for [`aligned`].
unsafe fn copy(array: &FFI_ArrowArray, schema: &FFI_ArrowSchema, producer: &Arc<FFI_ArrowArray>) -> FFI_ArrowArray {
    let mut buffers: Vec<*const c_void> = (0..array.num_buffers()).map(|place| array.buffer(place).cast()).collect();
    let mut aligned: Vec<u64> = Vec::new();
    if let Some(BufferRead { place, len, .. }) = buffer_read_at_import(array, schema)
        && !buffers[place].is_null()
    {
        aligned.resize(len.div_ceil(size_of::<u64>()), 0);
        // SAFETY: by the caller, the buffer has this length; the copy has at least as much, and is new.
        unsafe { ptr::copy_nonoverlapping(buffers[place].cast::<u8>(), aligned.as_mut_ptr().cast(), len) };
        buffers[place] = aligned.as_ptr().cast();
    }
    // SAFETY: by the caller, the schemas of parts describe these.
    let boxed = |(array, schema)| Box::into_raw(Box::new(unsafe { copy(array, schema, producer) }));
    let has_dictionary = array.dictionary().is_some() && schema.dictionary().is_some();
    let mut children: Vec<*mut FFI_ArrowArray> = nested(array, schema).map(boxed).collect();
    let dictionary = if has_dictionary { children.pop() } else { None }.unwrap_or_default();
    let count = |len: usize| i64::try_from(len).unwrap_or(i64::MAX);
    let null_count = array.null_count_opt().map_or(-1, count);
    let (len, offset, producer) = (count(array.len()), count(array.offset()), producer.clone());
    let mut parts = Box::new(Parts { buffers, children, dictionary, _copy: aligned, _producer: producer });
    let raw = RawArray {
        len,
        null_count,
        offset,
        buffer_count: count(parts.buffers.len()),
        child_count: count(parts.children.len()),
        buffers: parts.buffers.as_mut_ptr(),
        children: parts.children.as_mut_ptr(),
        dictionary,
        release: Some(release),
        parts: Box::into_raw(parts).cast(),
    };
    // SAFETY: both structures have the fields of the interface in its order, so that these bits are a valid array.
    unsafe { ptr::read((&raw const raw).cast::<FFI_ArrowArray>()) }
}
