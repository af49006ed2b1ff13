//! What every text format implements: [`TextDecoder`]. [`super::format`] lists the formats.

use std::fmt::Debug;

use super::boundary::Quoting;
use super::buffer::without_cr;
use super::csv::CsvOptions;
use super::fields::FieldSet;
use super::log_format::LogFormat;
use super::records::Records;
use crate::kernel::Bitmaps;

/// The choices of the user for the formats of all inputs. Each format reads those that concern it.
#[derive(Clone, Debug, Default)]
pub struct FormatOptions {
    /// Columns of tables.
    pub csv: CsvOptions,
    /// Columns were chosen, so a source is read as a table or as JSON lines, whatever its name is.
    pub is_table: bool,
    /// Format of access logs.
    pub log_format: LogFormat,
}

/// The format of a source is detected within this many bytes.
pub(crate) const MAX_SOURCE_HEAD_LEN: usize = 64 << 10;

/// The format of a source is detected from this many bytes, or from more if its first record does not end within them.
const MIN_SOURCE_HEAD_LEN: usize = 4 << 10;

/// Number of bytes from which the format of a source is detected that begins with `text`. Call it again with that many bytes.
pub(crate) fn source_head_len(text: &[u8]) -> usize {
    let mut len = MIN_SOURCE_HEAD_LEN;
    while len < MAX_SOURCE_HEAD_LEN && text.len() >= len && SourceHead::new(&text[..len]).is_cut {
        len *= 2;
    }
    len
}

/// The first bytes of a source, for detection.
#[derive(Clone, Copy, Debug)]
pub struct SourceHead<'a> {
    /// The first line that is not blank, without `LF`.
    pub first_line: &'a [u8],
    /// The first line that is neither blank nor a comment (`!` or `@`), without its line end.
    pub first_record: &'a [u8],
    /// The first record may go on after these bytes.
    pub is_cut: bool,
}

impl<'a> SourceHead<'a> {
    /// Finds the lines in `head`, which may end within a line.
    pub fn new(head: &'a [u8]) -> SourceHead<'a> {
        let mut lines = head.split(|&byte| byte == b'\n');
        let first_record = lines.find(|line| !line.trim_ascii().is_empty() && !matches!(line[0], b'!' | b'@'));
        SourceHead {
            first_line: head
                .split(|&byte| byte == b'\n')
                .find(|line| !line.trim_ascii().is_empty())
                .unwrap_or_default(),
            first_record: first_record.map(without_cr).unwrap_or_default(),
            is_cut: lines.next().is_none(),
        }
    }
}

/// A decoder of one text format: chunks of whole records in, [`Records`] out. It keeps its memory from chunk to chunk.
pub trait TextDecoder: Debug + Default {
    /// What the decoder has to know of a source, such as its columns.
    type Settings: Clone + Debug + Default + PartialEq;

    /// The settings that the user chose.
    fn chosen_settings(_options: &FormatOptions) -> Self::Settings {
        Self::Settings::default()
    }

    /// The settings of a source of this format, of which the user chose `chosen`.
    fn settings_of(chosen: &Self::Settings, _head: &SourceHead<'_>) -> Self::Settings {
        chosen.clone()
    }

    /// The settings of a source that is unmistakably of this format.
    fn detect(_head: &SourceHead<'_>) -> Option<Self::Settings> {
        None
    }

    /// How records are quoted, if a line end may be part of a record.
    fn quoting(_settings: &Self::Settings) -> Option<Quoting> {
        None
    }

    /// Sets the source of the chunks that follow.
    fn set_settings(&mut self, _settings: &Self::Settings) {}

    /// Sets the fields to decode. Before the first call these are all fields.
    fn set_carry(&mut self, _carry: FieldSet) {}

    /// Decodes `chunk`, which contains whole records and begins at byte `offset` of its source. `bitmaps` describe the text of
    /// the records afterwards.
    ///
    /// # Panics
    /// If the chunk is longer than [`Span::MAX_TEXT_LEN`](crate::kernel::Span::MAX_TEXT_LEN).
    fn decode<'a>(&'a mut self, chunk: &'a [u8], offset: u64, bitmaps: &mut Bitmaps) -> Records<'a>;
}
