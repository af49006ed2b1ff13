//! How much memory the footer of a Parquet file may take when it is read. A reader refuses more, because a hostile file of
//! few bytes could take all memory; a writer writes no more, so that its files can be read.

use parquet::file::metadata::{ColumnChunkMetaData, PageEncodingStats, RowGroupMetaData};

/// Memory that the footer of any file may take, in bytes.
const MIN_LIMIT: u64 = if cfg!(test) { 4 << 20 } else { 512 << 20 };

/// Maximum number of kinds of pages of a column chunk: a dictionary, data with it, and data without it.
const MAX_PAGE_KINDS: usize = 3;

/// Returns the maximum memory of the lists of a footer, in bytes: the sixteenth part of the length of the file, and at least 512
/// MiB. A column chunk takes up to 20 times its length in the footer, and there are two copies of all while a file is opened.
pub(crate) fn max_footer_memory(file_len: u64) -> u64 {
    MIN_LIMIT.max(file_len / 16)
}

/// Returns the memory of a row group with this number of columns, in bytes.
pub(crate) fn row_group_memory(column_count: usize) -> u64 {
    // A histogram has a number for null and one for values.
    let column =
        size_of::<ColumnChunkMetaData>() + MAX_PAGE_KINDS * size_of::<PageEncodingStats>() + 2 * size_of::<i64>();
    (size_of::<RowGroupMetaData>() + column_count * column) as u64
}
