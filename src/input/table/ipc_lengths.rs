//! Checks the lengths in an Arrow IPC file before the crate arrow reads it.
//!
//! The crate allocates memory by the lengths that the file states. A damaged or hostile file can state any length, and a
//! failed allocation aborts the process. [`check_ipc_lengths`] compares the lengths of the footer, of each message and of each
//! buffer with the length of the file. A message that does not violate them may still be damaged in other ways.
//!
//! A footer can refer to one message any number of times, and each time the message would be read and become rows. So the
//! messages must fit into the file together, and so must the buffers of a message into its body. Compressed buffers have a limit
//! in addition ([`MAX_CONTENT_LEN`]), because a short file can have a long content.

use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;

use arrow::ipc::reader::read_footer_length;
use arrow::ipc::{Block, Message, MetadataVersion, RecordBatch, root_as_footer, root_as_message};

/// Length of the magic bytes and the padding at the start of a file.
const HEAD_LEN: u64 = 8;

/// Length of the footer's length and the magic bytes at the end of a file.
const TRAILER_LEN: u64 = 10;

/// A block of Zstandard has at least 4 bytes and at most 128 KiB of content; LZ4 expands less.
const MAX_EXPANSION: u64 = 32 << 10;

/// Largest content of one buffer that is compressed, in bytes.
const MAX_BUFFER_LEN: u64 = 4 << 30;

/// Largest content of the buffers of one batch that is compressed, or of all dictionaries together, in bytes; or
/// [`USUAL_EXPANSION`] times what is stored, if that is more.
const MAX_CONTENT_LEN: u64 = 1 << 30;

/// URLs compress less than this, so that the batches of a writer who chooses long batches are read.
const USUAL_EXPANSION: u64 = 32;

/// Lengths of batches that are in memory at the same time.
#[derive(Default)]
struct BatchLengths {
    /// Bytes of the buffers, uncompressed.
    content: u64,
    /// Bytes of the bodies in the file.
    stored: u64,
}

impl BatchLengths {
    /// Adds a batch.
    ///
    /// # Errors
    /// The batches take too much memory.
    fn add(&mut self, content_len: u64, stored_len: u64) -> Result<(), String> {
        self.content = self.content.saturating_add(content_len);
        self.stored = self.stored.saturating_add(stored_len);
        let max_len = self.stored.saturating_mul(USUAL_EXPANSION).max(MAX_CONTENT_LEN);
        match self.content <= max_len {
            true => Ok(()),
            false => Err(format!(
                "its compressed buffers have {} bytes of content, and at most {max_len} are read at a time; write the file again \
                 with shorter batches, or without compression",
                self.content
            )),
        }
    }
}

/// Checks the lengths in an Arrow IPC file.
///
/// # Errors
/// The file cannot be read, or a length does not fit into the file; the message names the length.
pub(crate) fn check_ipc_lengths(file: &mut (impl Read + Seek)) -> Result<(), String> {
    let file_len = file.seek(SeekFrom::End(0)).map_err(|error| error.to_string())?;
    let trailer_at = file_len.checked_sub(TRAILER_LEN).ok_or("the file is shorter than its trailer")?;
    let footer_len = read_footer_length(read_array(file, trailer_at)?).map_err(|error| error.to_string())? as u64;
    let footer_at = trailer_at.checked_sub(footer_len).filter(|at| *at >= HEAD_LEN);
    let footer_at = footer_at.ok_or_else(|| format!("the footer of {footer_len} bytes is longer than the file"))?;
    let footer = read_at(file, footer_at, footer_len)?;
    let footer = root_as_footer(&footer).map_err(|error| format!("the footer is damaged: {error}"))?;
    let blocks = footer.dictionaries().into_iter().chain(footer.recordBatches()).flatten();
    let (mut rest, mut dictionaries) = (footer_at, BatchLengths::default());
    blocks.enumerate().try_for_each(|(number, block)| {
        let checked = check_block(file, footer_at, block, &mut dictionaries).and_then(|(len, version)| {
            check_version(footer.version(), version)?;
            rest = rest.checked_sub(len).ok_or("it shares bytes with another message")?;
            Ok(())
        });
        checked.map_err(|message| format!("message {number}: {message}"))
    })
}

/// Checks the lengths in a file of the streaming format, in which each message follows its length. Returns the length of the
/// messages at its beginning that do not violate them, and what comes after these: an error of [`check_ipc_lengths`], the end
/// of the file within a message, or bytes after the mark of the end.
pub(crate) fn check_stream_lengths(file: &mut (impl Read + Seek)) -> (u64, Result<(), String>) {
    let file_len = match file.seek(SeekFrom::End(0)) {
        Ok(len) => len,
        Err(error) => return (0, Err(error.to_string())),
    };
    let (mut at, mut dictionaries) = (0, BatchLengths::default());
    loop {
        match check_next_message(file, at, file_len, &mut dictionaries) {
            Ok(Some(len)) => at += len,
            Ok(None) => return (at, Ok(())),
            Err(message) => return (at, Err(message)),
        }
    }
}

/// Checks the message of a stream at byte `at`, and returns its length with its prefix; `None` at the end of the stream.
fn check_next_message(
    file: &mut (impl Read + Seek),
    at: u64,
    file_len: u64,
    dictionaries: &mut BatchLengths,
) -> Result<Option<u64>, String> {
    let message_len = |body_len: u64, metadata_len: u64| {
        let len = body_len.checked_add(metadata_len + 8).filter(|len| *len <= file_len - at);
        let past = || {
            format!(
                "the message at byte {at} reaches past the end of the file, which was cut short or is damaged; fetch it again"
            )
        };
        len.ok_or_else(past)
    };
    if at == file_len {
        return Ok(None);
    }
    message_len(0, 0)?;
    let [0xFF, 0xFF, 0xFF, 0xFF, metadata_len @ ..]: [u8; 8] = read_array(file, at)? else {
        return Err(format!("no message begins at byte {at}"));
    };
    let metadata_len = u64::from(u32::from_le_bytes(metadata_len));
    if metadata_len == 0 {
        return match file_len - at - 8 {
            0 => Ok(None),
            rest => Err(format!("{rest} bytes follow the end of the stream; write each stream to a file of its own")),
        };
    }
    message_len(0, metadata_len)?;
    let metadata = read_at(file, at + 8, metadata_len)?;
    let damaged = |message: &str| format!("the message at byte {at}: {message}");
    let message = root_as_message(&metadata).map_err(|error| damaged(&error.to_string()))?;
    let body_len = u64::try_from(message.bodyLength()).map_err(|_| damaged("the length of its body is negative"))?;
    let len = message_len(body_len, metadata_len)?;
    let body_at = at + 8 + metadata_len;
    check_body(file, body_at..body_at + body_len, &message, dictionaries).map_err(|message| damaged(&message))?;
    Ok(Some(len))
}

/// Checks that a message has the version of the footer, because the crate reads no file with two versions. pyarrow writes such
/// files if its option `metadata_version` is V4.
fn check_version(footer: MetadataVersion, message: MetadataVersion) -> Result<(), String> {
    // A footer that states no version has the first one.
    if footer == MetadataVersion::V1 || message == footer {
        return Ok(());
    }
    Err(format!(
        "its metadata has version {message:?}, and the footer {footer:?}; write the file again with one version, such as V5, or as \
         Parquet"
    ))
}

/// Checks the message that `block` refers to. Messages are before `end` in the file. Returns the length of the message, and
/// the version of its metadata.
fn check_block(
    file: &mut (impl Read + Seek),
    end: u64,
    block: &Block,
    dictionaries: &mut BatchLengths,
) -> Result<(u64, MetadataVersion), String> {
    let field = |value: i64| u64::try_from(value).map_err(|_| format!("a length or position is {value}"));
    let (at, body_len) = (field(block.offset())?, field(block.bodyLength())?);
    let metadata_len = field(block.metaDataLength().into())?;
    let body_at = at.checked_add(metadata_len);
    let is_inside = body_at.and_then(|at| at.checked_add(body_len)).is_some_and(|block_end| block_end <= end);
    let Some(body_at) = body_at.filter(|_| is_inside) else {
        return Err(format!("{metadata_len} and {body_len} bytes at byte {at} reach past the messages"));
    };
    let metadata = read_at(file, at, metadata_len)?;
    // Since version 0.15 of the format, 4 bytes 0xFF precede the length of the message.
    let prefix_len = if metadata.starts_with(&[0xFF; 4]) { 8 } else { 4 };
    let message = metadata.get(prefix_len..).ok_or("the message is shorter than its prefix")?;
    let message = root_as_message(message).map_err(|error| format!("the message is damaged: {error}"))?;
    check_body(file, body_at..body_at + body_len, &message, dictionaries)?;
    Ok((metadata_len + body_len, message.version()))
}

/// Checks the body of a message. `dictionaries` are those before it, which remain in memory.
fn check_body(
    file: &mut (impl Read + Seek),
    body: Range<u64>,
    message: &Message<'_>,
    dictionaries: &mut BatchLengths,
) -> Result<(), String> {
    let stored_len = body.end - body.start;
    if let Some(batch) = message.header_as_record_batch() {
        BatchLengths::default().add(check_batch(file, body, &batch)?, stored_len)?;
    } else if let Some(batch) = message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data()) {
        dictionaries.add(check_batch(file, body, &batch)?, stored_len)?;
    }
    Ok(())
}

/// Checks buffers and numbers of rows. Returns the bytes of the buffers, uncompressed.
fn check_batch(file: &mut (impl Read + Seek), body: Range<u64>, batch: &RecordBatch<'_>) -> Result<u64, String> {
    let body_len = body.end - body.start;
    let (mut content_len, mut rest) = (0u64, body_len);
    for buffer in batch.buffers().into_iter().flatten() {
        let (offset, len) = (u64::try_from(buffer.offset()), u64::try_from(buffer.length()));
        let place = offset.ok().zip(len.ok());
        let place = place.filter(|(offset, len)| offset.checked_add(*len).is_some_and(|end| end <= body_len));
        let Some((offset, len)) = place else {
            return Err(format!(
                "a buffer of {} bytes at byte {} reaches past the body of {body_len} bytes",
                buffer.length(),
                buffer.offset()
            ));
        };
        // Otherwise a short body could have content of any length.
        rest = rest.checked_sub(len).ok_or("a buffer shares bytes with another one")?;
        let is_compressed = batch.compression().is_some() && len >= 8;
        let len = if is_compressed { uncompressed_len(file, body.start + offset, len)? } else { len };
        content_len = content_len.saturating_add(len);
    }
    // Every row of a column has at least one bit, except in columns of nulls.
    let max_rows = content_len.saturating_mul(8);
    let nodes = batch.nodes().into_iter().flatten().map(|node| node.length());
    match nodes.chain([batch.length()]).find(|rows| u64::try_from(*rows).map_or(true, |rows| rows > max_rows)) {
        Some(rows) => Err(format!("{rows} rows do not fit into {content_len} bytes")),
        None => Ok(content_len),
    }
}

/// Reads the uncompressed length of a buffer, which precedes its compressed bytes.
fn uncompressed_len(file: &mut (impl Read + Seek), at: u64, len: u64) -> Result<u64, String> {
    match i64::from_le_bytes(read_array(file, at)?) {
        // The buffer is not compressed.
        -1 => Ok(len - 8),
        content_len => {
            let max_len = len.saturating_mul(MAX_EXPANSION).min(MAX_BUFFER_LEN);
            let content_len = u64::try_from(content_len).ok().filter(|content_len| *content_len <= max_len);
            content_len.ok_or_else(|| format!("a compressed buffer of {len} bytes cannot have this content length"))
        }
    }
}

/// Reads `len` bytes at byte `at`. The caller has compared `len` with the length of the file.
fn read_at(file: &mut (impl Read + Seek), at: u64, len: u64) -> Result<Vec<u8>, String> {
    let mut bytes = vec![0; len as usize];
    fill(&mut bytes, file, at).map(|()| bytes)
}

/// Reads `N` bytes at byte `at`.
fn read_array<const N: usize>(file: &mut (impl Read + Seek), at: u64) -> Result<[u8; N], String> {
    let mut bytes = [0; N];
    fill(&mut bytes, file, at).map(|()| bytes)
}

fn fill(bytes: &mut [u8], file: &mut (impl Read + Seek), at: u64) -> Result<(), String> {
    let read = file.seek(SeekFrom::Start(at)).and_then(|_| file.read_exact(bytes));
    read.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;
    use std::sync::Arc;

    use arrow::array::{DictionaryArray, Int64Array, RecordBatch, StringArray};
    use arrow::datatypes::Int8Type;
    use arrow::ipc::CompressionType;
    use arrow::ipc::writer::{FileWriter, IpcWriteOptions};

    use super::*;

    fn bytes_of_file() -> Vec<u8> {
        let urls = StringArray::from_iter_values((0..500).map(|i| format!("http://example.org/{i}")));
        let digests: DictionaryArray<Int8Type> = (0..500).map(|i| Some(["A", "B"][i % 2])).collect();
        let columns: [(&str, arrow::array::ArrayRef); 3] = [
            ("url", Arc::new(urls)),
            ("digest", Arc::new(digests)),
            ("number", Arc::new(Int64Array::from_iter_values(0..500))),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::ZSTD)).unwrap();
        let mut writer = FileWriter::try_new_with_options(Vec::new(), &batch.schema(), options).unwrap();
        writer.write(&batch).unwrap();
        writer.write(&batch.slice(3, 90)).unwrap();
        writer.into_inner().unwrap()
    }

    fn check(bytes: &[u8]) -> Result<(), String> {
        check_ipc_lengths(&mut Cursor::new(bytes))
    }

    /// All messages about `bytes` with another length or position in any place.
    fn messages(bytes: &[u8], check: impl Fn(&[u8]) -> Result<(), String>) -> String {
        let mut messages = String::new();
        for at in (0..bytes.len() - 8).step_by(4) {
            for value in [i64::MAX / 2, -7, 1 << 40] {
                let mut bytes = bytes.to_vec();
                bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
                messages.extend(check(&bytes).err());
            }
        }
        messages
    }

    #[test]
    fn lengths_of_a_stream_are_checked() {
        let urls: arrow::array::ArrayRef =
            Arc::new(StringArray::from_iter_values((0..90).map(|i| format!("http://h/{i}"))));
        let batch = RecordBatch::try_from_iter([("url", urls)]).unwrap();
        let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::ZSTD)).unwrap();
        let mut writer =
            arrow::ipc::writer::StreamWriter::try_new_with_options(Vec::new(), &batch.schema(), options).unwrap();
        writer.write(&batch).unwrap();
        let whole = writer.into_inner().unwrap();
        let check = |bytes: &[u8]| check_stream_lengths(&mut Cursor::new(bytes)).1;
        let sound_len = |bytes: &[u8]| check_stream_lengths(&mut Cursor::new(bytes)).0 as usize;
        assert_eq!((check(&whole), sound_len(&whole)), (Ok(()), whole.len() - 8));
        // The last 8 bytes mark the end.
        let (ends, cuts): (Vec<usize>, Vec<usize>) =
            (0..whole.len() - 8).partition(|len| check(&whole[..*len]).is_ok());
        assert!(ends.len() == 2 && ends[0] == 0, "{ends:?}");
        for len in cuts {
            let end = ends[usize::from(len > ends[1])];
            let expected = format!("the message at byte {end} reaches past the end of the file");
            let found = check(&whole[..len]).unwrap_err();
            assert!(found.starts_with(&expected) && sound_len(&whole[..len]) == end, "{len} {found}");
        }
        let more = [&whole[..], b"garbage"].concat();
        assert_eq!(sound_len(&more), whole.len() - 8);
        assert!(check(&more).unwrap_err().starts_with("7 bytes follow the end of the stream"));
        let messages = messages(&whole, check);
        for part in ["past the end of the file", "no message begins", "past the body", "is negative", "content length"]
        {
            assert!(messages.contains(part), "{part}");
        }
    }

    #[test]
    fn lengths_of_a_whole_file_are_accepted() {
        assert_eq!(check(&bytes_of_file()), Ok(()));
    }

    /// Until version 0.15 of the format, nothing preceded the length of a message. A batch may have no rows, and no bytes.
    #[test]
    fn files_of_old_versions_and_empty_batches_are_accepted() {
        let numbers: arrow::array::ArrayRef = Arc::new(Int64Array::from_iter_values(0..500));
        let batch = RecordBatch::try_from_iter([("number", numbers)]).unwrap();
        let old = IpcWriteOptions::try_new(8, true, MetadataVersion::V4).unwrap();
        for (options, rows) in [(old.clone(), 500), (old, 0), (IpcWriteOptions::default(), 0)] {
            let mut writer = FileWriter::try_new_with_options(Vec::new(), &batch.schema(), options).unwrap();
            writer.write(&batch.slice(0, rows)).unwrap();
            assert_eq!(check(&writer.into_inner().unwrap()), Ok(()), "{rows}");
        }
    }

    /// Otherwise the crate that reads Arrow files refuses them with a message about its types.
    #[test]
    fn messages_of_another_version_than_the_footer_are_errors() {
        let numbers: arrow::array::ArrayRef = Arc::new(Int64Array::from_iter_values(0..5));
        let batch = RecordBatch::try_from_iter([("number", numbers)]).unwrap();
        let options = IpcWriteOptions::try_new(8, false, MetadataVersion::V4).unwrap();
        let mut writer = FileWriter::try_new_with_options(Vec::new(), &batch.schema(), options).unwrap();
        writer.write(&batch).unwrap();
        let mut bytes = writer.into_inner().unwrap();
        let number = |bytes: &[u8], at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().unwrap()) as usize;
        let trailer_at = bytes.len() - TRAILER_LEN as usize;
        let footer_at = trailer_at - number(&bytes, trailer_at);
        // The version is the first field of the footer; its place is in the third number of the table of fields.
        let table = footer_at + number(&bytes, footer_at);
        let fields = table - number(&bytes, table);
        let version_at = table + (number(&bytes, fields + 4) & 0xFFFF);
        assert_eq!(bytes[version_at..version_at + 2], MetadataVersion::V4.0.to_le_bytes());
        bytes[version_at..version_at + 2].copy_from_slice(&MetadataVersion::V5.0.to_le_bytes());
        let message = check(&bytes).unwrap_err();
        assert!(
            message.contains("message 0: its metadata has version V4") && message.contains("footer V5"),
            "{message}"
        );
    }

    /// Otherwise a file of a few megabytes could take hours: a reference has 24 bytes, and its message any length.
    #[test]
    fn messages_that_share_bytes_are_errors() {
        let mut bytes = bytes_of_file();
        let trailer_at = bytes.len() - TRAILER_LEN as usize;
        let footer_len = u32::from_le_bytes(*bytes[trailer_at..].first_chunk().unwrap()) as usize;
        let footer = bytes[trailer_at - footer_len..trailer_at].to_vec();
        let blocks = root_as_footer(&footer).unwrap().recordBatches().unwrap();
        let [long, short] = [blocks.get(0).0, blocks.get(1).0];
        let at = memchr::memmem::rfind(&bytes, &short).unwrap();
        bytes[at..at + short.len()].copy_from_slice(&long);
        assert_eq!(check(&bytes), Err("message 2: it shares bytes with another message".to_string()));
    }

    /// The first batch of a file, its body, and the places of its buffers in the body.
    fn first_batch(bytes: &[u8]) -> (Block, Range<usize>, Vec<(i64, i64)>) {
        let trailer_at = bytes.len() - TRAILER_LEN as usize;
        let footer_len = u32::from_le_bytes(*bytes[trailer_at..].first_chunk().unwrap()) as usize;
        let footer = root_as_footer(&bytes[trailer_at - footer_len..trailer_at]).unwrap();
        let block = *footer.recordBatches().unwrap().get(0);
        let at = block.offset() as usize;
        let body_at = at + block.metaDataLength() as usize;
        let message = root_as_message(&bytes[at + 8..body_at]).unwrap();
        let buffers = message.header_as_record_batch().unwrap().buffers().unwrap();
        let places = buffers.iter().map(|buffer| (buffer.offset(), buffer.length())).collect();
        (block, body_at..body_at + block.bodyLength() as usize, places)
    }

    #[test]
    fn buffers_that_share_bytes_are_errors() {
        let mut bytes = bytes_of_file();
        let (block, _, places) = first_batch(&bytes);
        let metadata = block.offset() as usize..(block.offset() + i64::from(block.metaDataLength())) as usize;
        let encoded = |(offset, len): (i64, i64)| [offset.to_le_bytes(), len.to_le_bytes()].concat();
        let mut long: Vec<_> = places.iter().copied().filter(|(_, len)| *len > 8).collect();
        long.sort_by_key(|(_, len)| *len);
        let (longest, other) = (long[long.len() - 1], long[long.len() - 2]);
        let at = metadata.start + memchr::memmem::find(&bytes[metadata], &encoded(other)).unwrap();
        bytes[at..at + 16].copy_from_slice(&encoded(longest));
        assert!(check(&bytes).unwrap_err().ends_with("a buffer shares bytes with another one"));
    }

    /// Otherwise a file of 100 KB would take 3 GB of memory, whatever `--memory` is.
    #[test]
    fn the_content_of_a_compressed_batch_is_limited() {
        let numbers = |salt: u64| -> arrow::array::ArrayRef {
            let number = |i: u64| (i + salt).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(31).wrapping_mul(i | 1);
            Arc::new(Int64Array::from_iter_values((0..9000).map(|i| number(i) as i64)))
        };
        let batch = RecordBatch::try_from_iter([("a", numbers(1)), ("b", numbers(7))]).unwrap();
        let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::ZSTD)).unwrap();
        let mut writer = FileWriter::try_new_with_options(Vec::new(), &batch.schema(), options).unwrap();
        writer.write(&batch).unwrap();
        let mut bytes = writer.into_inner().unwrap();
        let (_, body, places) = first_batch(&bytes);
        let long = places.into_iter().filter(|(_, len)| *len > 40_000);
        let places: Vec<_> = long.map(|(offset, _)| body.start + offset as usize).collect();
        assert_eq!(places.len(), 2);
        let mut with_lens = |lens: [i64; 2]| {
            places.iter().zip(lens).for_each(|(at, len)| bytes[*at..at + 8].copy_from_slice(&len.to_le_bytes()));
            check(&bytes)
        };
        assert_eq!(with_lens([1 << 29, (1 << 29) - 1000]), Ok(()));
        let message = with_lens([1 << 29, (1 << 29) + 1]).unwrap_err();
        assert!(message.contains("1073741825 bytes of content, and at most 1073741824"), "{message}");
        // Long batches may be longer, and dictionaries count together.
        let mut lengths = BatchLengths::default();
        assert_eq!(lengths.add(32 << 30, 1 << 30), Ok(()));
        assert!(lengths.add(1, 0).is_err());
    }

    #[test]
    fn lengths_beyond_the_file_are_errors() {
        let whole = bytes_of_file();
        let messages = messages(&whole, check);
        for part in ["past the messages", "past the body", "a length or position", "content length", "rows do not fit"]
        {
            assert!(messages.contains(part), "{part}");
        }
        for len in 0..whole.len() {
            assert!(check(&whole[..len]).is_err());
        }
    }
}
