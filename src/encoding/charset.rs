//! Charsets by label: decodes the bytes of a document to text (RFC 3987 section 3.1, step 1), and encodes text in the
//! charset of a document for its queries (draft-weber-iri-guidelines-00 section 6.1).
//!
//! Labels and tables are those of the WHATWG Encoding Standard. `iso-8859-1` and `us-ascii` therefore mean windows-1252,
//! which has typographic characters at 0x80 to 0x9F. The C1 controls of ISO 8859-1 do not occur in IRIs, and documents
//! that are labeled `iso-8859-1` and contain these bytes are written in windows-1252. UTF-32, UTF-7 and EBCDIC have no
//! label in the standard and are unknown. Bytes that cannot be decoded and characters that cannot be encoded are reported
//! with their offset; they are never replaced by U+FFFD or `?`.

use std::borrow::Cow;
use std::fmt;

use super::nfc_of;
use super::piece_decoder::PieceDecoder;
use super::utf16::ByteOrder;
use encoding_rs::{Decoder, EncoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE};

/// A character encoding of documents.
///
/// ```
/// use irikey::encoding::Charset;
/// let charset = Charset::named("windows-1258").unwrap();
/// assert_eq!(charset.decode(b"Vi\xEA\xF2t").unwrap(), "Vi\u{1EC7}t");
/// assert_eq!(Charset::named("Latin1").unwrap().name(), "windows-1252");
/// assert_eq!(Charset::named("no-such-charset"), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Charset {
    encoding: &'static Encoding,
    /// The label leaves the byte order open, so a byte order mark decides.
    is_order_open: bool,
}

/// An error of [`Charset::decode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undecodable {
    /// The text begins with the byte order mark of another charset.
    #[error("byte 0: the byte order mark of another charset")]
    ForeignByteOrderMark,
    /// A malformed sequence begins at this byte offset.
    #[error("byte {0}: not text in this charset")]
    Malformed(usize),
}

impl Undecodable {
    /// Returns the byte offset of the error.
    pub fn offset(self) -> usize {
        match self {
            Undecodable::ForeignByteOrderMark => 0,
            Undecodable::Malformed(at) => at,
        }
    }
}

/// How [`Charset::encode`] treats characters that the charset cannot encode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnmappableMode {
    /// Return an error at the first such character.
    #[default]
    Fail,
    /// Encode the whole text as UTF-8: no reader could decode a mixture of two charsets.
    Utf8,
    /// Write such characters as escaped decimal character references (`%26%231103%3B`), as browsers do (URL Standard,
    /// *percent-encode after encoding*).
    CharacterReference,
}

/// Text in the bytes of a charset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// Runs of encoded text, in order, and whether the run encodes non-ASCII text. Escape sequences of ISO-2022-JP belong
    /// to such runs, and escaped character references to the others.
    pub runs: Vec<(Vec<u8>, bool)>,
    /// Some character was unmappable and treated as [`UnmappableMode`] specifies.
    pub has_unmappable: bool,
}

/// Byte order marks. None begins with another one.
const MARKS: [(&[u8], &Encoding); 3] = [(b"\xEF\xBB\xBF", UTF_8), (b"\xFE\xFF", UTF_16BE), (b"\xFF\xFE", UTF_16LE)];

/// Writes the name.
impl fmt::Display for Charset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Charset {
    /// UTF-8, the default charset.
    pub(crate) const UTF_8: Charset = Charset { encoding: UTF_8, is_order_open: false };

    /// Returns the charset with this label. Case and surrounding white space do not matter. Unknown labels, and labels of
    /// charsets that are unsafe because they hide ASCII (`iso-2022-kr`, `hz-gb-2312` and others), give `None`.
    pub fn named(label: &str) -> Option<Charset> {
        let encoding = Encoding::for_label_no_replacement(label.as_bytes())?;
        let is_order_open = encoding == UTF_16LE && !label.trim_ascii().to_ascii_lowercase().ends_with("le");
        Some(Charset { encoding, is_order_open })
    }

    /// Returns the charset of the byte order mark that `bytes` begin with, and the length of the mark.
    pub(crate) fn from_bom(bytes: &[u8]) -> Option<(Charset, usize)> {
        let (mark, encoding) = MARKS.into_iter().find(|(mark, _)| bytes.starts_with(mark))?;
        Some((Charset { encoding, is_order_open: false }, mark.len()))
    }

    /// Returns a decoder that treats a byte order mark as a character.
    pub(super) fn decoder(self) -> Decoder {
        self.encoding.new_decoder_without_bom_handling()
    }

    /// Returns the name of the charset in the Encoding Standard.
    pub fn name(self) -> &'static str {
        self.encoding.name()
    }

    /// Returns whether the charset is UTF-8 or UTF-16. Text in these is not normalized (RFC 3987 section 3.1, step 1c),
    /// and queries are not written in them. GB18030 covers all of Unicode but is not one of these.
    pub(crate) fn is_unicode(self) -> bool {
        self.encoding == UTF_8 || self.is_utf16()
    }

    /// Returns whether the charset is UTF-16, in either byte order.
    pub(crate) fn is_utf16(self) -> bool {
        [UTF_16LE, UTF_16BE].contains(&self.encoding)
    }

    /// Decodes `bytes` as in step 1 of RFC 3987 section 3.1: text in a legacy charset is normalized to NFC (1b), text in a
    /// Unicode charset is not (1c).
    ///
    /// # Errors
    /// The position of the first malformed sequence, or a byte order mark that contradicts the label.
    pub fn decode(self, bytes: &[u8]) -> Result<Cow<'_, str>, Undecodable> {
        let text = self.transcode(bytes)?;
        Ok(if self.is_unicode() { text } else { nfc_of(&text).map_or(text, Cow::Owned) })
    }

    /// [`Charset::decode`] without the normalization of step 1b.
    pub(crate) fn transcode(self, bytes: &[u8]) -> Result<Cow<'_, str>, Undecodable> {
        let (encoding, mark_len) = self.resolve_bom(bytes)?;
        let bytes = &bytes[mark_len..];
        if let Some(text) = encoding.decode_without_bom_handling_and_without_replacement(bytes) {
            return Ok(text);
        }
        let decoder = PieceDecoder::new(encoding.new_decoder_without_bom_handling(), bytes);
        Err(Undecodable::Malformed(mark_len + decoder.find_malformed()))
    }

    /// Returns the encoding to decode `bytes` with and the length of their byte order mark. A mark that contradicts the
    /// label is an error, because the bytes do not show which of the two is right.
    fn resolve_bom(self, bytes: &[u8]) -> Result<(&'static Encoding, usize), Undecodable> {
        let Some((marked, mark_len)) = Charset::from_bom(bytes) else { return Ok((self.encoding, 0)) };
        let is_allowed = self.encoding == marked.encoding || self.is_order_open && marked.is_utf16();
        if is_allowed { Ok((marked.encoding, mark_len)) } else { Err(Undecodable::ForeignByteOrderMark) }
    }

    /// Returns the byte order of a UTF-16 charset; little-endian if the label leaves the order open.
    pub(crate) fn utf16_byte_order(self) -> Option<ByteOrder> {
        [(UTF_16LE, ByteOrder::Little), (UTF_16BE, ByteOrder::Big)]
            .into_iter()
            .find_map(|(encoding, order)| (self.encoding == encoding).then_some(order))
    }

    /// Returns whether a text with this label may begin as `text` does: without a byte order mark or with its own.
    pub(crate) fn allows_bom_of(self, text: &[u8]) -> bool {
        self.resolve_bom(text).is_ok()
    }

    /// Encodes `text` in this charset, or in UTF-8 if this is a Unicode charset.
    ///
    /// # Errors
    /// With [`UnmappableMode::Fail`], the offset of the first character that the charset cannot encode.
    ///
    /// ```
    /// use irikey::encoding::{Charset, UnmappableMode};
    /// let latin = Charset::named("iso-8859-1").unwrap();
    /// let encoded = latin.encode("q=é", UnmappableMode::Fail).unwrap();
    /// assert_eq!(encoded.runs, [(b"q=".to_vec(), false), (b"\xE9".to_vec(), true)]);
    /// assert_eq!(latin.encode("q=я", UnmappableMode::Fail), Err(2));
    /// ```
    pub fn encode(self, text: &str, mode: UnmappableMode) -> Result<Encoded, usize> {
        let mut encoder = self.encoding.output_encoding().new_encoder();
        let mut encoded = Encoded { runs: Vec::new(), has_unmappable: false };
        // A character has up to 4 bytes, and an escape sequence of 3 bytes before or after it in ISO-2022-JP.
        let mut bytes = [0; 16];
        for (at, c) in text.char_indices() {
            let c_text = &text[at..at + c.len_utf8()];
            let (result, _, len) = encoder.encode_from_utf8_without_replacement(c_text, &mut bytes, false);
            // An ASCII character is one byte, which an escape sequence may precede.
            let ascii_at = if c.is_ascii() && result == EncoderResult::InputEmpty { len - 1 } else { len };
            encoded.push(&bytes[..ascii_at], true);
            encoded.push(&bytes[ascii_at..len], false);
            if let EncoderResult::Unmappable(c) = result {
                match mode {
                    UnmappableMode::Fail => return Err(at),
                    UnmappableMode::Utf8 => return Ok(encode_in_utf8(text)),
                    UnmappableMode::CharacterReference => {
                        encoded.push(format!("%26%23{}%3B", c as u32).as_bytes(), false);
                        encoded.has_unmappable = true;
                    }
                }
            }
        }
        let (_, _, len) = encoder.encode_from_utf8_without_replacement("", &mut bytes, true);
        encoded.push(&bytes[..len], true);
        Ok(encoded)
    }
}

impl Encoded {
    fn push(&mut self, bytes: &[u8], is_beyond_ascii: bool) {
        match self.runs.last_mut() {
            _ if bytes.is_empty() => {}
            Some((run, is_last_beyond_ascii)) if *is_last_beyond_ascii == is_beyond_ascii => {
                run.extend_from_slice(bytes);
            }
            _ => self.runs.push((bytes.to_vec(), is_beyond_ascii)),
        }
    }
}

/// Encodes the whole text in UTF-8, because the charset cannot encode a character of it.
fn encode_in_utf8(text: &str) -> Encoded {
    let runs = text.as_bytes().chunk_by(|a, b| a.is_ascii() == b.is_ascii());
    let runs = runs.map(|run| (run.to_vec(), !run.is_ascii())).collect();
    Encoded { runs, has_unmappable: true }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use unicode_normalization::UnicodeNormalization;

    fn decode(label: &str, bytes: &[u8]) -> Result<String, Undecodable> {
        Charset::named(label).unwrap().decode(bytes).map(Cow::into_owned)
    }

    fn malformed_at(at: usize) -> Result<String, Undecodable> {
        Err(Undecodable::Malformed(at))
    }

    #[test]
    fn malformed_sequences_have_their_exact_offset() {
        let cases: [(&str, &[u8], usize); 14] = [
            ("utf-8", b"a\xFF", 1),
            ("utf-8", b"ab\xC3", 2),
            ("utf-8", b"\xEF\xBB\xBFab\xE2\x82", 5),
            ("utf-8", b"a\xC0\xAF", 1),
            ("utf-8", b"a\xED\xA0\x80", 1),
            ("utf-16le", b"a\0\x00\xD8b\0", 2),
            ("utf-16le", b"a\0b\0\x00\xDC", 4),
            ("utf-16be", b"\0a\xD8\x00", 2),
            ("utf-16", b"\xFE\xFF\0a\0", 4),
            ("shift_jis", b"ab\x82", 2),
            ("euc-jp", b"a\xA4\xA2\xA4", 3),
            ("gb18030", b"abc\x81\x30\x81", 3),
            ("big5", b"a\xFF\xFF", 1),
            ("windows-1253", b"a\xD2", 1),
        ];
        for (label, bytes, at) in cases {
            assert_eq!(decode(label, bytes), malformed_at(at), "{label} {bytes:x?}");
        }
    }

    #[test]
    fn malformed_sequence_after_long_text_has_its_offset() {
        let bytes = [&b"\xA4\xA2".repeat(40_000)[..], b"\xA4"].concat();
        assert_eq!(decode("euc-jp", &bytes), malformed_at(80_000));
    }

    #[test]
    fn byte_order_mark_selects_the_order_or_is_an_error() {
        assert_eq!(decode("utf-16", b"\xFE\xFF\0a").as_deref(), Ok("a"));
        assert_eq!(decode("utf-16", b"\xFF\xFEa\0").as_deref(), Ok("a"));
        assert_eq!(decode("utf-16", b"a\0").as_deref(), Ok("a"));
        assert_eq!(decode("utf-16be", b"\xFE\xFF\0a").as_deref(), Ok("a"));
        for (label, bytes) in
            [("utf-16le", &b"\xFE\xFF\0a"[..]), ("utf-8", b"\xFF\xFEa\0"), ("koi8-r", b"\xEF\xBB\xBFa")]
        {
            assert_eq!(decode(label, bytes), Err(Undecodable::ForeignByteOrderMark), "{label}");
        }
    }

    #[test]
    fn byte_order_marks_are_checked_against_labels() {
        let allows = |label, text| Charset::named(label).unwrap().allows_bom_of(text);
        assert!(allows("utf-16", b"\xFE\xFF\0h") && allows("koi8-r", b"http:"));
        assert!(!allows("utf-16le", b"\xFE\xFF\0h") && !allows("koi8-r", b"\xEF\xBB\xBFh"));
    }

    #[test]
    fn only_legacy_charsets_are_normalized() {
        assert_eq!(decode("utf-8", "e\u{301}".as_bytes()).as_deref(), Ok("e\u{301}"));
        assert_eq!(decode("windows-1258", b"Vi\xEA\xF2t").as_deref(), Ok("Vi\u{1EC7}t"));
        let direct = Charset::named("windows-1258").unwrap().transcode(b"Vi\xEA\xF2t").unwrap();
        assert_eq!(direct, "Vi\u{EA}\u{323}t");
    }

    #[test]
    fn unmappable_characters_fail_or_are_replaced_or_written_in_utf8() {
        let latin = Charset::named("iso-8859-1").unwrap();
        assert_eq!(latin.encode("é=яé", UnmappableMode::Fail), Err(3));
        let bytes = |mode| latin.encode("é=яé", mode).unwrap().runs.into_iter().map(|(b, _)| b).collect::<Vec<_>>();
        assert_eq!(bytes(UnmappableMode::CharacterReference).concat(), b"\xE9=%26%231103%3B\xE9");
        assert_eq!(bytes(UnmappableMode::Utf8).concat(), "é=яé".as_bytes());
        assert!(latin.encode("я", UnmappableMode::Utf8).unwrap().has_unmappable);
        assert_eq!(
            Charset::named("utf-16").unwrap().encode("é", UnmappableMode::Fail).unwrap().runs[0].0,
            "é".as_bytes()
        );
    }

    /// The encoder of the Encoding Standard stays in its Roman state for ASCII characters except `\\` and `~`.
    #[test]
    fn text_is_one_stream_for_a_stateful_charset() {
        let charset = Charset::named("iso-2022-jp").unwrap();
        let encode = |text| charset.encode(text, UnmappableMode::CharacterReference).unwrap().runs;
        let run = |text: &str, is_beyond_ascii| (text.as_bytes().to_vec(), is_beyond_ascii);
        assert_eq!(
            encode("a\u{a5}8\u{203e}"),
            [run("a", false), run("\x1b(J\\", true), run("8", false), run("~\x1b(B", true)]
        );
        assert_eq!(
            encode("\u{a5}8\\"),
            [run("\x1b(J\\", true), run("8", false), run("\x1b(B", true), run("\\", false)]
        );
        assert_eq!(encode("\u{a5}é8"), [run("\x1b(J\\", true), run("%26%23233%3B8", false), run("\x1b(B", true)]);
        assert_eq!(encode("日é"), [run("\x1b$BF|\x1b(B", true), run("%26%23233%3B", false)]);
        assert_eq!(encode("日日"), [run("\x1b$BF|F|\x1b(B", true)]);
        assert_eq!(charset.encode("日a\x1b", UnmappableMode::Fail), Err(4));
        assert_eq!(encode("日\x1b"), [run("\x1b$BF|\x1b(B", true), run("%26%2365533%3B", false)]);
    }

    /// Labels, and patterns of texts that their charsets can encode.
    const TEXTS: [(&str, &str); 7] = [
        ("utf-8", "\\PC{0,20}"),
        ("gb18030", "\\PC{0,20}"),
        ("iso-2022-jp", "[ -~¥‾ァ-ンぁ-んｦ-ﾝＡ-Ｚ日本語−－]{0,20}"),
        ("shift_jis", "[ -~ァ-ンぁ-んｦ-ﾝＡ-Ｚ日本語−－]{0,20}"),
        ("big5", "[ -~ㄅ-ㄩ一丁七中文字═╞╡╪]{0,20}"),
        ("euc-kr", "[ -~가-힣ㄱ-ㅎА-я中文]{0,20}"),
        ("koi8-r", "[ -~А-яёЁ─│┌]{0,20}"),
    ];

    proptest! {
        #[test]
        fn bytes_are_decoded_up_to_the_first_malformed_sequence(
            label in "utf-8|utf-16|utf-16be|iso-2022-jp|gb18030|big5|euc-kr|shift_jis|windows-1258|koi8-r",
            bytes in prop::collection::vec(prop_oneof![4 => b' '..0x7f, 1 => any::<u8>()], 0..40),
        ) {
            prop_assume!(Encoding::for_bom(&bytes).is_none());
            let charset = Charset::named(&label).unwrap();
            let (expected, is_malformed) = charset.encoding.decode_without_bom_handling(&bytes);
            let before = match charset.transcode(&bytes) {
                Ok(text) => text,
                Err(error) => charset.transcode(&bytes[..error.offset()]).unwrap() + "\u{FFFD}",
            };
            let is_equal = if is_malformed { expected.starts_with(&*before) } else { expected == before };
            prop_assert!(is_equal, "{} {}", before, expected);
            let nfc: String = if charset.is_unicode() { before.clone().into() } else { before.nfc().collect() };
            prop_assert_eq!(decode(&label, &bytes).ok(), (!is_malformed).then_some(nfc));
        }

        #[test]
        fn text_is_encoded_as_by_encoding_rs_and_decoded_again(
            (label, text) in prop::sample::select(&TEXTS[..]).prop_flat_map(|(label, texts)| (Just(label), texts)),
        ) {
            let charset = Charset::named(label).unwrap();
            let encode = |text: &str| -> Result<Vec<u8>, usize> {
                let runs = charset.encode(text, UnmappableMode::Fail)?.runs;
                Ok(runs.into_iter().flat_map(|(run, _)| run).collect())
            };
            let (bytes, _, has_unmappable) = charset.encoding.encode(&text);
            prop_assert!(!has_unmappable);
            prop_assert_eq!(encode(&text), Ok(bytes.to_vec()));
            // Some charsets map two characters to the same bytes (Shift_JIS: U+2212 and U+FF0D), so the second
            // encoding is compared.
            let once = charset.transcode(&bytes).unwrap();
            prop_assert_eq!(encode(&once), Ok(bytes.to_vec()));
        }
    }
}
