//! Charsets by label: a document's bytes in, text out (RFC 3987 section 3.1, step 1); text in, a query's bytes out
//! (draft-weber-iri-guidelines-00 section 6.1).
//!
//! Labels and tables are those of the WHATWG Encoding Standard: `iso-8859-1` and `us-ascii` mean windows-1252, so that
//! bytes 80 to 9F are typographic characters and not C1 controls. Those controls are in no IRI, and documents that say
//! `iso-8859-1` and hold such bytes mean windows-1252. UTF-32, UTF-7 and EBCDIC have no label there and are unknown.
//! Refuses what it cannot read or write, with the offset; never writes U+FFFD or `?` in its place.

use std::borrow::Cow;
use std::fmt;

use encoding_rs::{Decoder, DecoderResult, EncoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE};
use unicode_normalization::{UnicodeNormalization, is_nfc};

use super::ByteOrder;

/// A charset that documents are written in.
///
/// ```
/// use irikey::encoding::Charset;
/// let charset = Charset::named("windows-1258").unwrap();
/// assert_eq!(charset.decode(b"Vi\xEA\xF2t").unwrap(), "Vi\u{1EC7}t");
/// assert_eq!(Charset::named("Latin1").unwrap().name(), "windows-1252");
/// assert_eq!(Charset::named("no-such-charset"), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charset {
    encoding: &'static Encoding,
    /// Labelled without a byte order: a byte order mark chooses.
    is_order_open: bool,
}

/// Bytes that are not text in their charset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undecodable {
    /// Offset of the first byte of the malformed sequence.
    pub at: usize,
    /// The bytes there are the byte order mark of another charset.
    pub is_foreign_mark: bool,
}

impl fmt::Display for Undecodable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_foreign_mark {
            true => write!(f, "byte {}: the byte order mark of another charset", self.at),
            false => write!(f, "byte {}: not text in this charset", self.at),
        }
    }
}

impl std::error::Error for Undecodable {}

/// What becomes of text that a charset has no bytes for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lacking {
    /// Refused, at its first such character.
    #[default]
    Refused,
    /// All of it as UTF-8, and said so: half in one charset and half in another could be read by nobody.
    Utf8,
    /// Such characters as decimal character references, as browsers send them (WHATWG Encoding, `html` error mode).
    Reference,
}

/// Text as a charset's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// Runs of text in bytes of the charset, in order; whether the run was beyond ASCII.
    pub runs: Vec<(Vec<u8>, bool)>,
    /// Some character was not in the charset, and what [`Lacking`] says was done.
    pub has_lacking: bool,
}

/// Byte order marks, the longer one of two with the same beginning first.
const MARKS: [(&[u8], &Encoding); 3] = [(b"\xEF\xBB\xBF", UTF_8), (b"\xFE\xFF", UTF_16BE), (b"\xFF\xFE", UTF_16LE)];

impl Charset {
    /// UTF-8, which everything is where nobody says otherwise.
    pub const UTF_8: Charset = Charset { encoding: UTF_8, is_order_open: false };

    /// The charset with this label, in any case, white space around it ignored; `None` if the label is unknown or of a
    /// charset that is dangerous to read (`iso-2022-kr`, `hz-gb-2312` and others, which hide ASCII).
    pub fn named(label: &str) -> Option<Charset> {
        let encoding = Encoding::for_label_no_replacement(label.as_bytes())?;
        let is_order_open = encoding == UTF_16LE && !label.trim_ascii().to_ascii_lowercase().ends_with("le");
        Some(Charset { encoding, is_order_open })
    }

    /// The charset whose byte order mark `bytes` begin with, and the mark's length.
    pub fn of_mark(bytes: &[u8]) -> Option<(Charset, usize)> {
        let (mark, encoding) = MARKS.into_iter().find(|(mark, _)| bytes.starts_with(mark))?;
        Some((Charset { encoding, is_order_open: false }, mark.len()))
    }

    /// A decoder that takes a byte order mark for what it stands for: a character.
    pub(super) fn decoder(self) -> Decoder {
        self.encoding.new_decoder_without_bom_handling()
    }

    /// The name that the Encoding Standard gives it.
    pub fn name(self) -> &'static str {
        self.encoding.name()
    }

    /// UTF-8 or UTF-16: its text is not normalised (RFC 3987 section 3.1, step 1c), and queries are not written in it.
    /// GB18030, though it has all of Unicode, is not one of these.
    pub fn is_unicode(self) -> bool {
        [UTF_8, UTF_16LE, UTF_16BE].contains(&self.encoding)
    }

    /// Step 1 of section 3.1: `bytes` as text, in NFC if the charset is not a Unicode one (1b), as it is if it is (1c).
    ///
    /// # Errors
    /// The first sequence that is no text, a byte order mark that contradicts the label included.
    pub fn decode(self, bytes: &[u8]) -> Result<Cow<'_, str>, Undecodable> {
        let text = self.transcode(bytes)?;
        if self.is_unicode() || is_nfc(&text) { Ok(text) } else { Ok(Cow::Owned(text.nfc().collect())) }
    }

    /// [`Charset::decode`] without normalisation, which is not what step 1b asks for.
    ///
    /// # Errors
    /// As [`Charset::decode`].
    pub fn transcode(self, bytes: &[u8]) -> Result<Cow<'_, str>, Undecodable> {
        let (encoding, mark_len) = self.byte_order(bytes)?;
        let (bytes, skipped) = (&bytes[mark_len..], mark_len);
        if let Some(text) = encoding.decode_without_bom_handling_and_without_replacement(bytes) {
            return Ok(text);
        }
        Err(Undecodable { at: skipped + find_malformed(encoding, bytes), is_foreign_mark: false })
    }

    /// The charset that a mark at the start leaves, and the length of the mark. A mark of another charset than the
    /// label's is a contradiction: which of the two is wrong, only a reader of the text could say.
    fn byte_order(self, bytes: &[u8]) -> Result<(&'static Encoding, usize), Undecodable> {
        let Some((mark, marked)) = MARKS.into_iter().find(|(mark, _)| bytes.starts_with(mark)) else {
            return Ok((self.encoding, 0));
        };
        let is_open = self.is_order_open && marked != UTF_8;
        if is_open || marked == self.encoding {
            return Ok((marked, mark.len()));
        }
        Err(Undecodable { at: 0, is_foreign_mark: true })
    }

    /// The order of the bytes of its code units, if it is a UTF-16; little-endian where a mark might say otherwise.
    pub fn byte_order_of_utf16(self) -> Option<ByteOrder> {
        [(UTF_16LE, ByteOrder::Little), (UTF_16BE, ByteOrder::Big)]
            .into_iter()
            .find_map(|(encoding, order)| (self.encoding == encoding).then_some(order))
    }

    /// Whether a byte order mark, UTF-8's or one of UTF-16, can begin a text that bears this label.
    ///
    /// ```
    /// use irikey::encoding::Charset;
    /// let agrees = |label, text| Charset::named(label).unwrap().agrees_with_mark(text);
    /// assert!(agrees("utf-16", b"\xFE\xFF\0h") && agrees("koi8-r", b"http:"));
    /// assert!(!agrees("utf-16le", b"\xFE\xFF\0h") && !agrees("koi8-r", b"\xEF\xBB\xBFh"));
    /// ```
    pub fn agrees_with_mark(self, text: &[u8]) -> bool {
        self.byte_order(text).is_ok()
    }

    /// `text` in this charset; in UTF-8 if it is a Unicode one.
    ///
    /// # Errors
    /// With [`Lacking::Refused`] the offset of the first character that the charset lacks.
    ///
    /// ```
    /// use irikey::encoding::{Charset, Lacking};
    /// let latin = Charset::named("iso-8859-1").unwrap();
    /// assert_eq!(latin.encode("q=é", Lacking::Refused).unwrap().runs, [(b"q=".to_vec(), false), (b"\xE9".to_vec(), true)]);
    /// assert_eq!(latin.encode("q=я", Lacking::Refused), Err(2));
    /// ```
    pub fn encode(self, text: &str, lacking: Lacking) -> Result<Encoded, usize> {
        let encoding = self.encoding.output_encoding();
        let mut encoded = Encoded { runs: Vec::new(), has_lacking: false };
        let mut at = 0;
        for run in text.as_bytes().chunk_by(|a, b| a.is_ascii() == b.is_ascii()) {
            let run = &text[at..at + run.len()];
            if run.is_ascii() {
                encoded.runs.push((run.as_bytes().to_vec(), false));
            } else {
                encode_run(encoding, run, lacking, &mut encoded).map_err(|in_run| at + in_run)?;
            }
            at += run.len();
        }
        if encoded.has_lacking && lacking == Lacking::Utf8 {
            let in_utf8 = Charset::UTF_8.encode(text, lacking)?;
            return Ok(Encoded { has_lacking: true, ..in_utf8 });
        }
        Ok(encoded)
    }
}

/// One run of characters beyond ASCII. A charset with states (ISO-2022-JP) is back in its first one after it.
fn encode_run(encoding: &'static Encoding, run: &str, lacking: Lacking, out: &mut Encoded) -> Result<(), usize> {
    let mut encoder = encoding.new_encoder();
    let mut bytes = Vec::new();
    let mut at = 0;
    let mut buffer = [0; 256];
    loop {
        let (result, read, written) = encoder.encode_from_utf8_without_replacement(&run[at..], &mut buffer, true);
        bytes.extend_from_slice(&buffer[..written]);
        at += read;
        match result {
            EncoderResult::InputEmpty => break,
            EncoderResult::OutputFull => {}
            EncoderResult::Unmappable(c) if lacking == Lacking::Refused => return Err(at - c.len_utf8()),
            EncoderResult::Unmappable(c) => {
                out.has_lacking = true;
                // The encoder has put ISO-2022-JP into its ASCII state before it says this.
                bytes.extend_from_slice(format!("&#{};", c as u32).as_bytes());
            }
        }
    }
    out.runs.push((bytes, true));
    Ok(())
}

/// Offset of the first malformed sequence of `bytes`, which has one; its end if none is found.
fn find_malformed(encoding: &'static Encoding, bytes: &[u8]) -> usize {
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let mut at = 0;
    let mut text = [0; 1024];
    loop {
        let (result, read, _) = decoder.decode_to_utf8_without_replacement(&bytes[at..], &mut text, true);
        at += read;
        match result {
            DecoderResult::InputEmpty => return bytes.len(),
            DecoderResult::OutputFull => {}
            DecoderResult::Malformed(len, after) => return at.saturating_sub(usize::from(len) + usize::from(after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(label: &str, bytes: &[u8]) -> Result<String, Undecodable> {
        Charset::named(label).expect("a label").decode(bytes).map(Cow::into_owned)
    }

    fn malformed_at(at: usize) -> Result<String, Undecodable> {
        Err(Undecodable { at, is_foreign_mark: false })
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
    fn long_text_is_searched_to_its_end() {
        let bytes = [&b"\xA4\xA2".repeat(40_000)[..], b"\xA4"].concat();
        assert_eq!(decode("euc-jp", &bytes), malformed_at(80_000));
    }

    #[test]
    fn a_mark_chooses_the_order_or_contradicts() {
        assert_eq!(decode("utf-16", b"\xFE\xFF\0a").as_deref(), Ok("a"));
        assert_eq!(decode("utf-16", b"\xFF\xFEa\0").as_deref(), Ok("a"));
        assert_eq!(decode("utf-16", b"a\0").as_deref(), Ok("a"));
        assert_eq!(decode("utf-16be", b"\xFE\xFF\0a").as_deref(), Ok("a"));
        for (label, bytes) in
            [("utf-16le", &b"\xFE\xFF\0a"[..]), ("utf-8", b"\xFF\xFEa\0"), ("koi8-r", b"\xEF\xBB\xBFa")]
        {
            assert_eq!(decode(label, bytes), Err(Undecodable { at: 0, is_foreign_mark: true }), "{label}");
        }
    }

    #[test]
    fn only_legacy_charsets_are_normalised() {
        assert_eq!(decode("utf-8", "e\u{301}".as_bytes()).as_deref(), Ok("e\u{301}"));
        assert_eq!(decode("windows-1258", b"Vi\xEA\xF2t").as_deref(), Ok("Vi\u{1EC7}t"));
        let direct = Charset::named("windows-1258").unwrap().transcode(b"Vi\xEA\xF2t").unwrap();
        assert_eq!(direct, "Vi\u{EA}\u{323}t");
    }

    #[test]
    fn what_a_charset_lacks_is_refused_replaced_or_written_in_utf8() {
        let latin = Charset::named("iso-8859-1").unwrap();
        assert_eq!(latin.encode("é=яé", Lacking::Refused), Err(3));
        let bytes =
            |lacking| latin.encode("é=яé", lacking).unwrap().runs.into_iter().map(|(b, _)| b).collect::<Vec<_>>();
        assert_eq!(bytes(Lacking::Reference).concat(), b"\xE9=&#1103;\xE9");
        assert_eq!(bytes(Lacking::Utf8).concat(), "é=яé".as_bytes());
        assert!(latin.encode("я", Lacking::Utf8).unwrap().has_lacking);
        assert_eq!(Charset::named("utf-16").unwrap().encode("é", Lacking::Refused).unwrap().runs[0].0, "é".as_bytes());
    }

    proptest! {
        #[test]
        fn any_bytes_are_text_or_have_an_offset_inside(
            label in "utf-8|utf-16|utf-16be|iso-2022-jp|gb18030|big5|euc-kr|shift_jis|windows-1258|koi8-r",
            bytes in proptest::collection::vec(any::<u8>(), 0..100),
        ) {
            match decode(&label, &bytes) {
                Ok(text) => prop_assert!(!text.contains(char::REPLACEMENT_CHARACTER) || !label.starts_with('k')),
                Err(found) => prop_assert!(found.at < bytes.len()),
            }
        }

        #[test]
        fn what_is_encoded_decodes_to_itself(label in "utf-8|iso-2022-jp|gb18030|big5|euc-kr|shift_jis|koi8-r", text in "\\PC{0,20}") {
            let charset = Charset::named(&label).unwrap();
            if let Ok(encoded) = charset.encode(&text, Lacking::Refused) {
                let bytes: Vec<u8> = encoded.runs.into_iter().flat_map(|(run, _)| run).collect();
                // Some charsets write two characters alike (Shift_JIS: U+2212 and U+FF0D), so one round more is compared.
                let once = charset.transcode(&bytes).unwrap().into_owned();
                let again = charset.encode(&once, Lacking::Refused).unwrap().runs;
                prop_assert_eq!(again.into_iter().flat_map(|(run, _)| run).collect::<Vec<u8>>(), bytes);
            }
        }
    }
}
