//! Record batches as bytes: Arrow IPC streams of one batch each.

use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use arrow::error::ArrowError;
use arrow::ipc::CompressionType;
use arrow::ipc::reader::StreamDecoder;
use arrow::ipc::writer::{IpcWriteOptions, StreamWriter};

/// Appends a batch to `out`, its buffers compressed with `codec`.
pub(crate) fn encode_batch(
    batch: &RecordBatch,
    codec: Option<CompressionType>,
    out: &mut Vec<u8>,
) -> Result<(), ArrowError> {
    let options = IpcWriteOptions::default().try_with_compression(codec)?;
    let mut writer = StreamWriter::try_new_with_options(out, batch.schema_ref(), options)?;
    writer.write(batch)?;
    writer.finish()
}

/// Decodes a batch. Columns that are not compressed share the memory of `bytes`.
pub(crate) fn decode_batch(mut bytes: Buffer) -> Result<RecordBatch, ArrowError> {
    let mut decoder = StreamDecoder::new();
    while !bytes.is_empty() {
        if let Some(batch) = decoder.decode(&mut bytes)? {
            return Ok(batch);
        }
    }
    let no_schema = || ArrowError::IpcError("the stream has no schema".to_string());
    Ok(RecordBatch::new_empty(decoder.schema().ok_or_else(no_schema)?))
}
