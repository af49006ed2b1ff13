//! Prefixes of records, and what follows them.

/// Two prefixes of records. No record has both, and the last byte of the long one is not an attention byte: a kernel
/// searches that byte, too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prefixes {
    pub(crate) short: [u8; SHORT_LEN],
    pub(crate) long: [u8; SHORT_LEN + 1],
}

/// Length of the short prefix in bytes.
pub(super) const SHORT_LEN: usize = 7;

/// The first marked bytes of a record after its prefix, as offsets in the record. They are 0 if the record has neither prefix
/// or less than 8 bytes, and the length of the record if no byte is marked.
///
/// The layout is that of a `u64`, so that a kernel can store eight at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct PrefixMarks {
    pub(crate) stop: u32,
    pub(crate) attention: u32,
}
