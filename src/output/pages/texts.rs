//! Encodes columns of text in Parquet's `DELTA_LENGTH_BYTE_ARRAY` encoding: packed lengths, then the bytes of all texts.
//!
//! Texts without interleaved lengths compress to 6 % less, and all bytes of a page are copied at once. The general encoder
//! encodes columns with nulls whose slots contain bytes.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::DataType;
use parquet::basic::Encoding;
use parquet::errors::ParquetError;
use parquet::schema::types::ColumnDescPtr;
use rayon::prelude::*;

use super::buffers::PageBuffers;
use super::chunk::{EncodedPages, PageBody, Pages};
use super::codec::{Codecs, PageCodec};
use super::delta;
use super::header::HEADER_LEN;
use super::rle::push_levels;

const ENCODING: Encoding = Encoding::DELTA_LENGTH_BYTE_ARRAY;

/// Bytes of text after which a page ends.
const PAGE_LEN: usize = 1 << 20;
/// Rows after which a page ends.
const PAGE_ROWS: usize = 1 << 16;

/// The buffers of an Arrow array of texts.
pub(in crate::output) struct TextBuffers<'a> {
    offsets: &'a [i32],
    values: &'a [u8],
    nulls: Option<&'a NullBuffer>,
}

impl<'a> TextBuffers<'a> {
    /// Returns the buffers of an array of strings or binary values; `None` for any other array.
    pub(in crate::output) fn of(array: &'a ArrayRef) -> Option<TextBuffers<'a>> {
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
        let (offsets, values) = match array.data_type() {
            DataType::Utf8 => (array.as_string::<i32>().value_offsets(), array.as_string::<i32>().value_data()),
            DataType::Binary => (array.as_binary::<i32>().value_offsets(), array.as_binary::<i32>().value_data()),
            _ => return None,
        };
        let texts = TextBuffers { offsets, values, nulls };
        let nulls_are_empty = nulls.is_none_or(|nulls| {
            let nulls = nulls.inner();
            (0..nulls.len()).all(|row| nulls.value(row) || texts.len(row) == 0)
        });
        nulls_are_empty.then_some(texts)
    }

    fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    fn len(&self, row: usize) -> i32 {
        self.offsets[row + 1] - self.offsets[row]
    }

    fn pages(&self) -> Vec<Range<usize>> {
        let (mut pages, mut first) = (Vec::new(), 0);
        while first < self.rows() {
            let end = self.page_end(first);
            pages.push(first..end);
            first = end;
        }
        pages
    }

    fn page_end(&self, first: usize) -> usize {
        let limit = self.offsets[first].saturating_add(PAGE_LEN as i32);
        let most = self.rows().min(first + PAGE_ROWS);
        first + 1 + self.offsets[first + 1..most].partition_point(|end| *end < limit)
    }
}

pub(in crate::output) fn texts(
    column: &ColumnDescPtr,
    texts: &TextBuffers<'_>,
    codecs: &Codecs,
    pool: &PageBuffers,
) -> Result<EncodedPages, ParquetError> {
    let text_column = TextEncoder { texts, is_nullable: column.max_def_level() > 0, codecs };
    let mut chunk = Pages::new(pool.take(codecs.expected_len(texts.values.len()) + HEADER_LEN));
    text_column.write(&texts.pages(), &mut chunk)?;
    Ok(chunk.end((codecs.name(), ENCODING)))
}

/// A column that is being encoded.
struct TextEncoder<'a> {
    texts: &'a TextBuffers<'a>,
    is_nullable: bool,
    codecs: &'a Codecs,
}

impl TextEncoder<'_> {
    /// Writes pages, given as ranges of rows. An idle worker, as at the end of a run, encodes half of the remaining pages in
    /// parallel.
    fn write(&self, pages: &[Range<usize>], chunk: &mut Pages) -> Result<(), ParquetError> {
        // Outside of a worker, rayon would use its global pool.
        let is_worker = rayon::current_thread_index().is_some();
        if pages.len() < 2 || !is_worker {
            return self.codecs.with(|codec| {
                pages.iter().try_for_each(|rows| {
                    chunk.data(self.body(rows, codec)?, rows.len(), ENCODING);
                    Ok(())
                })
            });
        }
        let (first, second) = pages.split_at(pages.len() / 2);
        let copy = |body: PageBody<'_>| (body.parts.concat(), body.uncompressed_len);
        let encode = |rows: &Range<usize>| self.codecs.with(|codec| self.body(rows, codec).map(copy));
        let (written, encoded) = rayon::join_context(
            |_| self.write(first, chunk),
            |context| context.migrated().then(|| second.par_iter().map(encode).collect::<Result<Vec<_>, _>>()),
        );
        written?;
        let Some(encoded) = encoded else { return self.write(second, chunk) };
        for ((bytes, uncompressed_len), rows) in encoded?.into_iter().zip(second) {
            chunk.data(PageBody { parts: [&bytes, &[]], uncompressed_len }, rows.len(), ENCODING);
        }
        Ok(())
    }

    /// Encodes the body of a page.
    fn body<'c>(&'c self, rows: &Range<usize>, codec: &'c mut PageCodec) -> Result<PageBody<'c>, ParquetError> {
        let texts = self.texts;
        write_lengths(texts, rows.clone(), self.is_nullable, codec);
        codec.body(&texts.values[texts.offsets[rows.start] as usize..texts.offsets[rows.end] as usize])
    }
}

/// Writes the levels and lengths of rows to `codec.page`.
fn write_lengths(texts: &TextBuffers<'_>, rows: Range<usize>, is_nullable: bool, codec: &mut PageCodec) {
    let PageCodec { page, lengths, .. } = codec;
    page.clear();
    if is_nullable {
        push_levels(texts.nulls, rows.clone(), page);
    }
    lengths.clear();
    match texts.nulls {
        None => lengths.extend(texts.offsets[rows.start..=rows.end].windows(2).map(|ends| ends[1] - ends[0])),
        Some(nulls) => {
            let present = nulls.inner().slice(rows.start, rows.len());
            lengths.extend(present.set_indices().map(|row| texts.len(rows.start + row)));
        }
    }
    delta::pack(lengths, i64::from, page);
}

#[cfg(test)]
mod tests {
    use super::super::chunk::PageChunk;
    use super::*;
    use crate::output::Compression;
    use arrow::array::StringArray;
    use parquet::schema::parser::parse_message_type;
    use parquet::schema::types::SchemaDescriptor;
    use std::sync::Arc;

    /// Definition levels of two values: the length of the levels, the number of levels in the run, and their value.
    #[test]
    fn only_columns_that_may_have_nulls_have_levels() {
        let array: ArrayRef = Arc::new(StringArray::from_iter_values(["a", "bc"]));
        let chunk = |repetition: &str| {
            let schema = parse_message_type(&format!("message m {{ {repetition} binary uri (UTF8); }}")).unwrap();
            let column = SchemaDescriptor::new(Arc::new(schema)).column(0);
            let (values, codecs) = (TextBuffers::of(&array).unwrap(), Codecs::new(Compression::None).unwrap());
            texts(&column, &values, &codecs, &PageBuffers::default()).unwrap().bytes
        };
        let mut body = Vec::new();
        delta::pack(&[1, 2], i64::from, &mut body);
        body.extend(b"abc");
        let (required, optional) = (chunk("required"), chunk("optional"));
        assert!(required.ends_with(&body) && optional.ends_with(&[&[2, 0, 0, 0, 4, 1], &body[..]].concat()));
        assert_eq!(required.len() + 6, optional.len());
    }

    #[test]
    fn pages_do_not_depend_on_the_number_of_threads() {
        let array: ArrayRef = Arc::new(StringArray::from_iter_values((0..40_000).map(|i| {
            let spread = i * 7919 % 40_000;
            format!("http://host{}.example/{spread}/{}", spread % 100, "x".repeat(i % 600))
        })));
        let schema = parse_message_type("message m { required binary uri (UTF8); }").unwrap();
        let column = SchemaDescriptor::new(Arc::new(schema)).column(0);
        let values = TextBuffers::of(&array).unwrap();
        assert!(values.pages().len() > 9);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
        for compression in [Compression::None, Compression::Lz4, Compression::Zstd(1), Compression::Zstd(3)] {
            let codecs = Codecs::new(compression).unwrap();
            let chunk = || {
                let pages = texts(&column, &values, &codecs, &PageBuffers::default()).unwrap();
                PageChunk::join(&column, vec![pages], None).unwrap()
            };
            let alone = chunk();
            let shared_once = (0..100).any(|_| {
                let shared = pool.install(chunk);
                assert!(alone.pages == shared.pages && alone.close.metadata == shared.close.metadata);
                assert_eq!(alone.close.offset_index, shared.close.offset_index);
                codecs.idle_count() > 1
            });
            assert!(shared_once, "one thread encoded all pages every time");
        }
    }
}
