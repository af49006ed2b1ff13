//! From arrays of URLs and bases to rows.

use datafusion_common::arrow::array::{Array, ArrayRef, AsArray};
use datafusion_common::arrow::datatypes::DataType;
use datafusion_common::{Result, exec_err};
use irikey::canon::{Canonicalizer, Policy, Rows};
use irikey::iri::CLASSIFIER;
use irikey::kernel::Bitmaps;
use irikey::record::RecordBuffer;

/// Most bytes of the arguments of one call: positions in them have 32 bits, and percent-encoding triples a text.
const MAX_TEXT_LEN: usize = 600 << 20;

/// Text that is processed at a time, in bytes, so that it stays in the cache of a core.
const CHUNK_LEN: usize = 256 << 10;

/// Returns one row per URL of `arrays`, which are URLs, and bases if there are two. A null URL gives a row with a fault.
///
/// # Errors
/// An array holds neither text nor bytes, or too many bytes.
pub(crate) fn canonicalize(function: &str, policy: &Policy, arrays: &[ArrayRef]) -> Result<Rows> {
    let columns = arrays.iter().map(|array| values(function, array)).collect::<Result<Vec<_>>>()?;
    let text_len: usize = columns.iter().flatten().map(|value| value.len()).sum();
    if text_len > MAX_TEXT_LEN {
        return exec_err!(
            "{function}: a batch has {text_len} bytes of URLs; at most {MAX_TEXT_LEN} are expected; use smaller batches"
        );
    }
    let (mut canonicalizer, mut bitmaps) = (Canonicalizer::new(policy), Bitmaps::default());
    let (mut rows, mut buffer, mut len) = (Rows::default(), RecordBuffer::default(), 0);
    let mut flush = |buffer: &mut RecordBuffer| {
        let records = buffer.records();
        bitmaps.classify(records.text, &CLASSIFIER);
        canonicalizer.append(&records, &bitmaps, &mut rows);
        buffer.clear();
    };
    for (row, url) in columns[0].iter().enumerate() {
        buffer.push_url(url);
        if let Some(bases) = columns.get(1) {
            buffer.push_base(bases[row]);
        }
        len += url.len();
        if len >= CHUNK_LEN {
            flush(&mut buffer);
            len = 0;
        }
    }
    flush(&mut buffer);
    if rows.is_overfull {
        return exec_err!("{function}: the URIs of a batch have more than 2000 MiB; use smaller batches");
    }
    Ok(rows)
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
