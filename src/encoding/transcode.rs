//! Whole documents: decodes bytes in a charset to text with a list of the malformed sequences, and maps offsets in the
//! text back to offsets in the bytes (RFC 3987 section 3.1, step 1, for documents that contain IRIs).
//!
//! Malformed sequences become U+FFFD, so that a parser can continue behind them. A caller that takes a part of the text
//! must check the list for positions in that part.

use encoding_rs::{Decoder, DecoderResult};

use super::charset::Charset;

/// Number of bytes that are decoded at a time.
const PIECE_LEN: usize = 8 << 10;

/// No charset decodes one byte to more bytes of UTF-8.
const MAX_GROWTH: usize = 4;

/// A document as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Transcoded {
    /// The decoded text, not normalized.
    pub(crate) text: String,
    /// Malformed sequences, in ascending order.
    pub(crate) malformed: Vec<Malformed>,
}

/// A malformed sequence, which is decoded as U+FFFD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed {
    /// Byte offset of the U+FFFD in the text.
    pub(crate) text_at: usize,
    /// Byte offset of the sequence in the document.
    pub(crate) at: usize,
}

/// Decodes a document piece by piece and counts the bytes read and written.
struct PieceDecoder<'a> {
    decoder: Decoder,
    bytes: &'a [u8],
    read: usize,
    written: usize,
}

/// How the decoding of a piece ended.
enum PieceEnd {
    Text,
    Malformed { at: usize },
    EndOfDocument,
}

impl PieceDecoder<'_> {
    fn new(charset: Charset, bytes: &[u8]) -> PieceDecoder<'_> {
        PieceDecoder { decoder: charset.decoder(), bytes, read: 0, written: 0 }
    }

    /// Decodes at most `count` bytes into `out` and returns the number of bytes written.
    fn decode(&mut self, count: usize, out: &mut [u8]) -> (usize, PieceEnd) {
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
}

impl Charset {
    /// Decodes a whole document. A byte order mark is decoded as a character.
    pub(crate) fn transcode_document(self, bytes: &[u8]) -> Transcoded {
        let mut decoder = PieceDecoder::new(self, bytes);
        let mut document = Transcoded { text: String::with_capacity(bytes.len()), malformed: Vec::new() };
        let mut out = vec![0; PIECE_LEN * MAX_GROWTH];
        loop {
            let (written, end) = decoder.decode(PIECE_LEN, &mut out);
            // The decoder writes whole characters of UTF-8.
            document.text.push_str(std::str::from_utf8(&out[..written]).unwrap_or_default());
            match end {
                PieceEnd::Text => {}
                PieceEnd::Malformed { at } => {
                    document.malformed.push(Malformed { text_at: document.text.len(), at });
                    document.text.push(char::REPLACEMENT_CHARACTER);
                }
                PieceEnd::EndOfDocument => return document,
            }
        }
    }

    /// Returns the offsets in `bytes` of the characters at offsets `places` of their text. `places` must ascend.
    pub(crate) fn document_offsets(self, bytes: &[u8], places: &[usize]) -> Vec<usize> {
        let mut decoder = PieceDecoder::new(self, bytes);
        let mut out = [0; PIECE_LEN];
        let mut is_at_end = false;
        let mut offsets = Vec::with_capacity(places.len());
        for place in places {
            while decoder.written < *place && !is_at_end {
                // So few bytes that decoding cannot pass the place; the last ones are decoded one at a time.
                let count = ((place - decoder.written) / MAX_GROWTH).clamp(1, PIECE_LEN / MAX_GROWTH);
                is_at_end = matches!(decoder.decode(count, &mut out).1, PieceEnd::EndOfDocument);
            }
            offsets.push(decoder.read);
        }
        offsets
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::encoding::UnmappableMode;

    #[test]
    fn documents_are_decoded_and_offsets_mapped_back() {
        let decoded = Charset::named("shift_jis").unwrap().transcode_document(b"\x83\x86<\x82");
        assert_eq!((decoded.text.as_str(), decoded.malformed[0].at), ("\u{30E6}<\u{FFFD}", 3));
        let charset = Charset::named("utf-16le").unwrap();
        assert_eq!(charset.document_offsets(b"\xE9\0a\0b\0", &[0, 2, 3, 4]), [0, 2, 4, 6]);
    }

    #[test]
    fn offsets_in_long_documents_are_exact() {
        for label in ["gb18030", "euc-jp", "utf-16be", "windows-1251", "big5"] {
            let charset = Charset::named(label).unwrap();
            let one = match label {
                "utf-16be" => vec![0x4e, 0x2d],
                "windows-1251" => vec![0xe9],
                _ => charset.encode("中", UnmappableMode::Fail).unwrap().runs.remove(0).0,
            };
            let bytes = one.repeat(20_000);
            let decoded = charset.transcode_document(&bytes);
            assert!(decoded.malformed.is_empty(), "{label}");
            let width = decoded.text.chars().next().unwrap().len_utf8();
            let place = 15_000 * width;
            let at = charset.document_offsets(&bytes, &[0, place, place + width])[1];
            assert_eq!(charset.transcode_document(&bytes[..at]).text, decoded.text[..place], "{label}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_become_text_and_a_list_of_malformed_sequences(
            label in "utf-8|utf-16le|utf-16be|iso-2022-jp|gb18030|big5|euc-kr|shift_jis|windows-1258|koi8-r",
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
        ) {
            let charset = Charset::named(&label).unwrap();
            let decoded = charset.transcode_document(&bytes);
            prop_assert!(decoded.malformed.iter().all(|bad| bad.at < bytes.len() && decoded.text[bad.text_at..].starts_with(char::REPLACEMENT_CHARACTER)));
            let places: Vec<usize> = decoded.text.char_indices().map(|(at, _)| at).collect();
            let offsets = charset.document_offsets(&bytes, &places);
            prop_assert!(offsets.is_sorted() && offsets.iter().all(|at| *at <= bytes.len()));
            if label == "utf-16le" && decoded.malformed.is_empty() {
                let expected: Vec<usize> = decoded.text.chars().scan(0, |at, c| {
                    let here = *at;
                    *at += c.len_utf16() * 2;
                    Some(here)
                }).collect();
                prop_assert_eq!(offsets, expected);
            }
        }
    }
}
