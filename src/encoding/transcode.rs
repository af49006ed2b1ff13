//! Whole documents: decodes bytes in a charset to text, counts the malformed sequences, and maps positions in the text
//! back to positions in the bytes (RFC 3987 section 3.1, step 1, for documents that contain IRIs).
//!
//! Malformed sequences become U+FFFD, so that a parser can continue after them. They are only counted, because a document
//! may consist of them. A caller that takes a part of the text asks [`DocumentCursor`] whether it contains one.

use super::charset::Charset;
use super::piece_decoder::{MAX_GROWTH, PIECE_LEN, PieceDecoder, PieceEnd};

/// A document as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Transcoded {
    /// The decoded text, not normalized. Empty if it was not requested.
    pub(crate) text: String,
    /// Number of malformed sequences, which are decoded as U+FFFD.
    pub(crate) malformed_count: u64,
    /// Byte offset of the first malformed sequence in the document.
    pub(crate) first_malformed: usize,
}

/// Maps ascending positions in the decoded text of a document to offsets in its bytes.
pub(crate) struct DocumentCursor<'a> {
    decoder: PieceDecoder<'a>,
    is_at_end: bool,
    /// The last malformed sequence that was decoded: the position of its U+FFFD, and its offset in the bytes.
    malformed: Option<(usize, usize)>,
    out: Vec<u8>,
}

impl DocumentCursor<'_> {
    /// Returns the offset in the bytes of the character at position `place` of the text. Positions must ascend from
    /// call to call.
    pub(crate) fn offset(&mut self, place: usize) -> usize {
        while self.decoder.written < place && !self.is_at_end {
            self.step(place);
        }
        self.decoder.read
    }

    /// Returns the offset in the bytes of the first malformed sequence whose U+FFFD is in `from..to` of the text.
    pub(crate) fn find_malformed(&mut self, from: usize, to: usize) -> Option<usize> {
        self.offset(from);
        loop {
            if let Some((_, offset)) = self.malformed.filter(|(at, _)| (from..to).contains(at)) {
                return Some(offset);
            }
            if self.decoder.written >= to || self.is_at_end {
                return None;
            }
            self.step(to);
        }
    }

    /// Decodes some bytes, but not so many that the text might pass `place`. The last bytes before `place` are decoded
    /// one at a time.
    fn step(&mut self, place: usize) {
        let count = ((place - self.decoder.written) / MAX_GROWTH).clamp(1, PIECE_LEN / MAX_GROWTH);
        match self.decoder.decode(count, &mut self.out).1 {
            PieceEnd::Text => {}
            PieceEnd::Malformed { at } => {
                self.malformed = Some((self.decoder.written - char::REPLACEMENT_CHARACTER.len_utf8(), at));
            }
            PieceEnd::EndOfDocument => self.is_at_end = true,
        }
    }
}

impl Charset {
    /// Decodes a whole document. A byte order mark is decoded as a character.
    pub(crate) fn transcode_document(self, bytes: &[u8]) -> Transcoded {
        let mut text = String::with_capacity(bytes.len());
        let counts = self.decode_pieces(bytes, |piece| text.push_str(piece));
        Transcoded { text, ..counts }
    }

    /// Counts the malformed sequences of a document. The result has no text.
    pub(crate) fn count_malformed(self, bytes: &[u8]) -> Transcoded {
        self.decode_pieces(bytes, |_| ())
    }

    /// Decodes a whole document, calls `push` with its text piece by piece, and returns the counts of malformed sequences.
    fn decode_pieces(self, bytes: &[u8], mut push: impl FnMut(&str)) -> Transcoded {
        let mut document = Transcoded::default();
        let mut decoder = PieceDecoder::new(self.decoder(), bytes);
        let mut out = vec![0; PIECE_LEN * MAX_GROWTH];
        loop {
            let (written, end) = decoder.decode(PIECE_LEN, &mut out);
            // The decoder writes whole characters of UTF-8.
            push(std::str::from_utf8(&out[..written]).unwrap_or_default());
            match end {
                PieceEnd::Text => {}
                PieceEnd::Malformed { at } => {
                    if document.malformed_count == 0 {
                        document.first_malformed = at;
                    }
                    document.malformed_count += 1;
                    push(char::REPLACEMENT_CHARACTER.encode_utf8(&mut [0; 4]));
                }
                PieceEnd::EndOfDocument => return document,
            }
        }
    }

    /// Returns a cursor at the beginning of a document.
    pub(crate) fn document_cursor(self, bytes: &[u8]) -> DocumentCursor<'_> {
        DocumentCursor {
            decoder: PieceDecoder::new(self.decoder(), bytes),
            is_at_end: false,
            malformed: None,
            out: vec![0; PIECE_LEN],
        }
    }
}

#[cfg(test)]
mod tests {
    use encoding_rs::Encoding;
    use proptest::prelude::*;

    use super::*;
    use crate::encoding::UnmappableMode;

    fn offsets(charset: Charset, bytes: &[u8], places: &[usize]) -> Vec<usize> {
        let mut cursor = charset.document_cursor(bytes);
        places.iter().map(|place| cursor.offset(*place)).collect()
    }

    #[test]
    fn documents_are_decoded_and_offsets_mapped_back() {
        let decoded = Charset::named("shift_jis").unwrap().transcode_document(b"\x83\x86<\x82");
        assert_eq!(
            (decoded.text.as_str(), decoded.malformed_count, decoded.first_malformed),
            ("\u{30E6}<\u{FFFD}", 1, 3)
        );
        let charset = Charset::named("utf-16le").unwrap();
        assert_eq!(offsets(charset, b"\xE9\0a\0b\0", &[0, 2, 3, 4]), [0, 2, 4, 6]);
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
            assert!(decoded.malformed_count == 0, "{label}");
            let width = decoded.text.chars().next().unwrap().len_utf8();
            let place = 15_000 * width;
            let at = offsets(charset, &bytes, &[0, place, place + width])[1];
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
            let (text, is_malformed) = Encoding::for_label(label.as_bytes()).unwrap().decode_without_bom_handling(&bytes);
            prop_assert_eq!((&*decoded.text, decoded.malformed_count > 0), (&*text, is_malformed));
            prop_assert_eq!(charset.count_malformed(&bytes), Transcoded { text: String::new(), ..decoded.clone() });
            let places: Vec<usize> = decoded.text.char_indices().map(|(at, _)| at).collect();
            let mut cursor = charset.document_cursor(&bytes);
            let bad: Vec<usize> = decoded.text.char_indices().filter_map(|(at, c)| cursor.find_malformed(at, at + c.len_utf8())).collect();
            prop_assert_eq!(bad.len() as u64, decoded.malformed_count);
            prop_assert!(bad.is_sorted() && bad.first().is_none_or(|at| *at == decoded.first_malformed && *at < bytes.len()));
            let offsets = offsets(charset, &bytes, &places);
            prop_assert!(offsets.is_sorted() && offsets.iter().all(|at| *at <= bytes.len()));
            if label == "utf-16le" && decoded.malformed_count == 0 {
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
