//! batch

/// Rows of one source that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceRun {
    /// Number of the source in the list of sources.
    pub source: u32,
    /// Ordinal of the first of them within the source, counted from 1.
    pub first_record: u64,
    /// How many.
    pub rows: u32,
}
