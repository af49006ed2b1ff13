//! Whole documents: bytes in a charset in, text out, with every place that was no text; and offsets into that text back
//! as offsets into the bytes (RFC 3987 section 3.1, step 1, for what holds IRIs rather than is one).
//!
//! What is no text becomes U+FFFD here, so that a parser can go on behind it, and is listed: who takes a part of the text
//! must look whether the list names a place in it.

use encoding_rs::{Decoder, DecoderResult};

use super::Charset;

/// Bytes decoded at a time.
const PIECE_LEN: usize = 8 << 10;

/// No byte of any charset becomes more bytes of UTF-8 than this.
const MOST_GROWTH: usize = 4;

/// A document as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transcoded {
    /// Its characters, as they stand (not normalised).
    pub text: String,
    /// Where it is no text, ascending.
    pub malformed: Vec<Malformed>,
}

/// A sequence of bytes that is no text; U+FFFD stands for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Byte of the text at which its U+FFFD stands.
    pub text_at: usize,
    /// Byte of the document at which it begins.
    pub at: usize,
}

/// A decoder and how far it came.
struct Walk<'a> {
    decoder: Decoder,
    bytes: &'a [u8],
    read: usize,
    written: usize,
}

/// What one step of a walk met.
enum Step {
    Text,
    Malformed { at: usize },
}

impl Walk<'_> {
    fn new(charset: Charset, bytes: &[u8]) -> Walk<'_> {
        Walk { decoder: charset.decoder(), bytes, read: 0, written: 0 }
    }

    /// Decodes up to `count` bytes into `out`. A step may stop short of them.
    fn step(&mut self, count: usize, out: &mut [u8]) -> (usize, Option<Step>) {
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
                (written, Some(Step::Malformed { at }))
            }
            DecoderResult::InputEmpty if is_last => (written, None),
            DecoderResult::InputEmpty | DecoderResult::OutputFull => (written, Some(Step::Text)),
        }
    }
}

impl Charset {
    /// The text of a whole document, its byte order mark aside.
    ///
    /// ```
    /// use irikey::encoding::Charset;
    /// let read = Charset::named("shift_jis").unwrap().transcode_document(b"\x83\x86<\x82");
    /// assert_eq!((read.text.as_str(), read.malformed[0].at), ("\u{30E6}<\u{FFFD}", 3));
    /// ```
    pub fn transcode_document(self, bytes: &[u8]) -> Transcoded {
        let mut walk = Walk::new(self, bytes);
        let mut document = Transcoded { text: String::with_capacity(bytes.len()), malformed: Vec::new() };
        let mut out = vec![0; PIECE_LEN * MOST_GROWTH];
        loop {
            let (written, step) = walk.step(PIECE_LEN, &mut out);
            // A decoder writes UTF-8, and whole characters of it.
            document.text.push_str(std::str::from_utf8(&out[..written]).unwrap_or_default());
            match step {
                Some(Step::Text) => {}
                Some(Step::Malformed { at }) => {
                    document.malformed.push(Malformed { text_at: document.text.len(), at });
                    document.text.push(char::REPLACEMENT_CHARACTER);
                }
                None => return document,
            }
        }
    }

    /// Where in `bytes` the characters begin that begin at `places` of their text; `places` ascend.
    ///
    /// ```
    /// use irikey::encoding::Charset;
    /// let charset = Charset::named("utf-16le").unwrap();
    /// assert_eq!(charset.document_offsets(b"\xE9\0a\0b\0", &[0, 2, 3, 4]), [0, 2, 4, 6]);
    /// ```
    pub fn document_offsets(self, bytes: &[u8], places: &[usize]) -> Vec<usize> {
        let mut walk = Walk::new(self, bytes);
        let mut out = [0; PIECE_LEN];
        let mut is_ended = false;
        let mut offsets = Vec::with_capacity(places.len());
        for place in places {
            while walk.written < *place && !is_ended {
                // So few bytes that the place cannot be passed; in the end one at a time.
                let count = ((place - walk.written) / MOST_GROWTH).clamp(1, PIECE_LEN / MOST_GROWTH);
                is_ended = walk.step(count, &mut out).1.is_none();
            }
            offsets.push(walk.read);
        }
        offsets
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::encoding::Lacking;

    #[test]
    fn long_documents_keep_their_places() {
        for label in ["gb18030", "euc-jp", "utf-16be", "windows-1251", "big5"] {
            let charset = Charset::named(label).unwrap();
            let one = match label {
                "utf-16be" => vec![0x4e, 0x2d],
                "windows-1251" => vec![0xe9],
                _ => charset.encode("中", Lacking::Refused).unwrap().runs.remove(0).0,
            };
            let bytes = one.repeat(20_000);
            let read = charset.transcode_document(&bytes);
            assert!(read.malformed.is_empty(), "{label}");
            let width = read.text.chars().next().unwrap().len_utf8();
            let place = 15_000 * width;
            let at = charset.document_offsets(&bytes, &[0, place, place + width])[1];
            assert_eq!(charset.transcode_document(&bytes[..at]).text, read.text[..place], "{label}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_become_text_with_their_defects(
            label in "utf-8|utf-16le|utf-16be|iso-2022-jp|gb18030|big5|euc-kr|shift_jis|windows-1258|koi8-r",
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
        ) {
            let charset = Charset::named(&label).unwrap();
            let read = charset.transcode_document(&bytes);
            prop_assert!(read.malformed.iter().all(|bad| bad.at < bytes.len() && read.text[bad.text_at..].starts_with(char::REPLACEMENT_CHARACTER)));
            let places: Vec<usize> = read.text.char_indices().map(|(at, _)| at).collect();
            let offsets = charset.document_offsets(&bytes, &places);
            prop_assert!(offsets.is_sorted() && offsets.iter().all(|at| *at <= bytes.len()));
            if label == "utf-16le" && read.malformed.is_empty() {
                let expected: Vec<usize> = read.text.chars().scan(0, |at, c| {
                    let here = *at;
                    *at += c.len_utf16() * 2;
                    Some(here)
                }).collect();
                prop_assert_eq!(offsets, expected);
            }
        }
    }
}
