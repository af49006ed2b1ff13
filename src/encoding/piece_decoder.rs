//! Decodes a document piece by piece, and finds its malformed sequences: [`PieceDecoder`].

use encoding_rs::{Decoder, DecoderResult};

/// Number of bytes that are decoded at a time.
pub(super) const PIECE_LEN: usize = 8 << 10;

/// No charset decodes one byte to more bytes of UTF-8.
pub(super) const MAX_GROWTH: usize = 4;

/// Decodes a document piece by piece and counts the bytes read and written.
pub(super) struct PieceDecoder<'a> {
    decoder: Decoder,
    bytes: &'a [u8],
    /// Number of bytes read.
    pub(super) read: usize,
    /// Number of bytes of the text, with a U+FFFD per malformed sequence.
    pub(super) written: usize,
}

/// How the decoding of a piece ended.
pub(super) enum PieceEnd {
    /// The piece is decoded, or the output is full.
    Text,
    /// After a malformed sequence, which begins at this byte of the document.
    Malformed {
        at: usize,
    },
    EndOfDocument,
}

impl PieceDecoder<'_> {
    pub(super) fn new(decoder: Decoder, bytes: &[u8]) -> PieceDecoder<'_> {
        PieceDecoder { decoder, bytes, read: 0, written: 0 }
    }

    /// Decodes at most `count` bytes into `out` and returns the number of bytes written.
    pub(super) fn decode(&mut self, count: usize, out: &mut [u8]) -> (usize, PieceEnd) {
        let end = self.bytes.len().min(self.read + count);
        let is_last = end == self.bytes.len();
        let (result, read, written) =
            self.decoder.decode_to_utf8_without_replacement(&self.bytes[self.read..end], out, is_last);
        self.read += read;
        self.written += written;
        match result {
            DecoderResult::Malformed(len, after) => {
                let at = self.read.saturating_sub(usize::from(len) + usize::from(after));
                self.written += char::REPLACEMENT_CHARACTER.len_utf8();
                (written, PieceEnd::Malformed { at })
            }
            DecoderResult::InputEmpty if is_last => (written, PieceEnd::EndOfDocument),
            DecoderResult::InputEmpty | DecoderResult::OutputFull => (written, PieceEnd::Text),
        }
    }

    /// Returns the offset of the first malformed sequence that was not decoded yet, or the length of the document without one.
    pub(super) fn find_malformed(mut self) -> usize {
        let mut out = [0; 1024];
        loop {
            match self.decode(PIECE_LEN, &mut out).1 {
                PieceEnd::Text => {}
                PieceEnd::Malformed { at } => return at,
                PieceEnd::EndOfDocument => return self.bytes.len(),
            }
        }
    }
}
