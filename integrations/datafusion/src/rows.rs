//! From arrays of URLs and bases to rows.

use datafusion_common::arrow::array::{Array, ArrayRef, AsArray};
use datafusion_common::arrow::datatypes::DataType;
use datafusion_common::{Result, exec_err};
use irikey::canon::{Policy, Rows, UrlCanonicalizer};

/// Returns one row per URL of `arrays`, which are URLs, and bases if there are two. A null URL gives a row with a fault.
///
/// # Errors
/// An array holds neither text nor bytes, or too many bytes.
pub(crate) fn canonicalize(function: &str, policy: &Policy, arrays: &[ArrayRef]) -> Result<Rows> {
    let columns = arrays.iter().map(|array| values(function, array)).collect::<Result<Vec<_>>>()?;
    let base = |row: usize| columns.get(1).map(|bases| bases[row]);
    let urls = columns[0].iter().enumerate().map(|(row, url)| (*url, base(row)));
    match UrlCanonicalizer::new(policy).canonicalize(urls) {
        Ok(rows) => Ok(std::mem::take(rows)),
        Err(error) => exec_err!("{function}: {error}"),
    }
}

/// Returns the bytes of each row; none if it is null.
fn values<'a>(function: &str, array: &'a ArrayRef) -> Result<Vec<&'a [u8]>> {
    fn bytes<'a, T: AsRef<[u8]> + ?Sized + 'a>(values: impl Iterator<Item = Option<&'a T>>) -> Vec<&'a [u8]> {
        values.map(|value| value.map_or(&[][..], AsRef::as_ref)).collect()
    }
    Ok(match array.data_type() {
        DataType::Utf8 => bytes(array.as_string::<i32>().iter()),
        DataType::LargeUtf8 => bytes(array.as_string::<i64>().iter()),
        DataType::Utf8View => bytes(array.as_string_view().iter()),
        DataType::Binary => bytes(array.as_binary::<i32>().iter()),
        DataType::LargeBinary => bytes(array.as_binary::<i64>().iter()),
        DataType::BinaryView => bytes(array.as_binary_view().iter()),
        DataType::Null => vec![&[]; array.len()],
        other => return exec_err!("{function}: an argument has the type {other}; expected text or bytes"),
    })
}
