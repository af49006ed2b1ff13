//! Decodes UTF-16 to UTF-8 piece by piece.
//!
//! An unpaired surrogate becomes the three bytes that UTF-8 forbids for it. Nothing is lost or replaced, and a later UTF-8
//! check rejects these bytes at their position. Half a code unit or half a pair at the end is not written:
//! [`Utf16Decoder::is_whole`] reports it.

/// The byte order of code units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByteOrder {
    /// Low byte first.
    Little,
    /// High byte first.
    Big,
}

/// The largest number of UTF-8 bytes that a code unit becomes.
const MAX_UNIT_LEN: usize = 3;

/// A decoder that keeps an incomplete code unit or pair until the next piece arrives.
#[derive(Clone, Debug)]
pub(crate) struct Utf16Decoder {
    order: ByteOrder,
    /// The first byte of an incomplete code unit.
    byte: Option<u8>,
    /// A high surrogate whose low surrogate has not been read.
    high: Option<u16>,
}

impl Utf16Decoder {
    /// Returns a decoder for a text whose byte order mark has been removed.
    pub(crate) fn new(order: ByteOrder) -> Utf16Decoder {
        Utf16Decoder { order, byte: None, high: None }
    }

    /// Appends the text of `bytes` to `out`.
    pub(crate) fn decode(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        // Up to two more units: one completed by the first byte, and a surrogate from the previous piece.
        out.reserve(bytes.len() / 2 * MAX_UNIT_LEN + 2 * MAX_UNIT_LEN);
        let mut bytes = bytes;
        if let (Some(first), Some((second, rest))) = (self.byte, bytes.split_first()) {
            self.byte = None;
            self.push_unit([first, *second], out);
            bytes = rest;
        }
        let (units, rest) = bytes.as_chunks::<2>();
        for unit in units {
            self.push_unit(*unit, out);
        }
        if let [byte] = rest {
            self.byte = Some(*byte);
        }
    }

    #[inline]
    fn push_unit(&mut self, bytes: [u8; 2], out: &mut Vec<u8>) {
        let unit = match self.order {
            ByteOrder::Little => u16::from_le_bytes(bytes),
            ByteOrder::Big => u16::from_be_bytes(bytes),
        };
        let high = self.high.take();
        match (high, unit) {
            (None, 0..0x80) => out.push(unit as u8),
            (Some(high), 0xDC00..=0xDFFF) => {
                push_code_point(0x10000 + ((u32::from(high) - 0xD800) << 10) + (u32::from(unit) - 0xDC00), out);
            }
            (high, unit) => {
                if let Some(high) = high {
                    push_code_point(u32::from(high), out);
                }
                match unit {
                    0xD800..=0xDBFF => self.high = Some(unit),
                    _ => push_code_point(u32::from(unit), out),
                }
            }
        }
    }

    /// Returns whether all bytes so far are complete code units and pairs.
    pub(crate) fn is_whole(&self) -> bool {
        self.byte.is_none() && self.high.is_none()
    }
}

/// Appends a code point in the scheme of RFC 3629 section 3, which is applied to surrogates too.
pub(crate) fn push_code_point(code: u32, out: &mut Vec<u8>) {
    let tail = |shift: u32| 0x80 | (code >> shift & 0x3F) as u8;
    match code {
        0..0x80 => out.push(code as u8),
        0x80..0x800 => out.extend_from_slice(&[0xC0 | (code >> 6) as u8, tail(0)]),
        0x800..0x10000 => out.extend_from_slice(&[0xE0 | (code >> 12) as u8, tail(6), tail(0)]),
        _ => out.extend_from_slice(&[0xF0 | (code >> 18) as u8, tail(12), tail(6), tail(0)]),
    }
}

/// Returns the length in UTF-16 of `text`, the output of a [`Utf16Decoder`], in bytes.
pub(crate) fn utf16_len(text: &[u8]) -> usize {
    let units = |byte: u8| usize::from(byte & 0xC0 != 0x80) + usize::from(byte >= 0xF0);
    2 * text.iter().map(|&byte| units(byte)).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes_of(units: &[u16], order: ByteOrder) -> Vec<u8> {
        let bytes = |unit: &u16| match order {
            ByteOrder::Little => unit.to_le_bytes(),
            ByteOrder::Big => unit.to_be_bytes(),
        };
        units.iter().flat_map(bytes).collect()
    }

    fn decoded(bytes: &[u8], step: usize, order: ByteOrder) -> (Vec<u8>, bool) {
        let (mut decoder, mut text) = (Utf16Decoder::new(order), Vec::new());
        bytes.chunks(step).for_each(|bytes| decoder.decode(bytes, &mut text));
        (text, decoder.is_whole())
    }

    #[test]
    fn unpaired_surrogates_are_kept() {
        let units = [0xDC00, 0x61, 0xD800, 0x62, 0xD83D, 0xD83D, 0xDE00, 0xDBFF];
        let expected = b"\xED\xB0\x80a\xED\xA0\x80b\xED\xA0\xBD\xF0\x9F\x98\x80";
        assert_eq!(decoded(&bytes_of(&units, ByteOrder::Big), 3, ByteOrder::Big), (expected.to_vec(), false));
        assert_eq!(utf16_len(expected), 14);
    }

    #[test]
    fn incomplete_units_are_kept_until_the_next_piece() {
        let (mut decoder, mut text) = (Utf16Decoder::new(ByteOrder::Little), Vec::new());
        decoder.decode(b"h\0\xE9\0\x3D\xD8\x00", &mut text);
        assert!(!decoder.is_whole());
        decoder.decode(b"\xDE!\0", &mut text);
        assert_eq!(text, "hé\u{1F600}!".as_bytes());
        assert_eq!(utf16_len("aé\u{1F600}".as_bytes()), 8);
    }

    proptest! {
        #[test]
        fn text_is_decoded_in_pieces_of_any_length(text in "\\PC{0,60}", step in 1usize..9, is_big in any::<bool>()) {
            let order = if is_big { ByteOrder::Big } else { ByteOrder::Little };
            let bytes = bytes_of(&text.encode_utf16().collect::<Vec<_>>(), order);
            prop_assert_eq!(decoded(&bytes, step, order), (text.clone().into_bytes(), true));
            prop_assert_eq!(utf16_len(text.as_bytes()), bytes.len());
        }

        #[test]
        fn half_a_code_unit_is_not_whole(bytes in proptest::collection::vec(any::<u8>(), 1..40)) {
            prop_assert!(bytes.len() % 2 == 0 || !decoded(&bytes, 7, ByteOrder::Little).1);
        }
    }
}
