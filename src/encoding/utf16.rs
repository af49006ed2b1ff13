//! UTF-16 in, UTF-8 out, piece by piece. A surrogate without its other half becomes the three bytes that UTF-8 forbids for
//! it: nothing is lost or replaced, and whoever wants text refuses them where they stand. Bytes left over at the end, half
//! a code unit or the first half of a pair, are not text: [`Utf16Decoder::is_whole`] tells.

/// Which byte of a code unit comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// The low one.
    Little,
    /// The high one.
    Big,
}

/// The most bytes of UTF-8 that come of one byte of UTF-16, twice: a code unit becomes three at most, and one that waited
/// comes with it.
const MOST: usize = 3;

/// Decodes; keeps what is not whole yet.
///
/// ```
/// use irikey::encoding::{ByteOrder, Utf16Decoder};
/// let (mut decoder, mut text) = (Utf16Decoder::new(ByteOrder::Little), Vec::new());
/// decoder.decode(b"h\0\xE9\0\x3D\xD8\x00", &mut text);
/// assert!(!decoder.is_whole());
/// decoder.decode(b"\xDE!\0", &mut text);
/// assert_eq!(text, "hé\u{1F600}!".as_bytes());
/// ```
#[derive(Clone, Debug)]
pub struct Utf16Decoder {
    order: ByteOrder,
    /// The first byte of a code unit.
    byte: Option<u8>,
    /// A high surrogate.
    high: Option<u16>,
}

impl Utf16Decoder {
    /// A decoder at the beginning of a text, after its mark.
    pub fn new(order: ByteOrder) -> Utf16Decoder {
        Utf16Decoder { order, byte: None, high: None }
    }

    /// Appends the text of `bytes` to `out`.
    pub fn decode(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        out.reserve(bytes.len() / 2 * MOST + 2 * MOST);
        let mut bytes = bytes;
        if let (Some(first), Some((second, rest))) = (self.byte, bytes.split_first()) {
            self.byte = None;
            self.unit([first, *second], out);
            bytes = rest;
        }
        let (units, rest) = bytes.as_chunks::<2>();
        for unit in units {
            self.unit(*unit, out);
        }
        if let [byte] = rest {
            self.byte = Some(*byte);
        }
    }

    #[inline]
    fn unit(&mut self, bytes: [u8; 2], out: &mut Vec<u8>) {
        let unit = match self.order {
            ByteOrder::Little => u16::from_le_bytes(bytes),
            ByteOrder::Big => u16::from_be_bytes(bytes),
        };
        let high = self.high.take();
        match (high, unit) {
            (None, 0..0x80) => out.push(unit as u8),
            (Some(high), 0xDC00..=0xDFFF) => {
                push(0x10000 + ((u32::from(high) - 0xD800) << 10) + (u32::from(unit) - 0xDC00), out);
            }
            (high, unit) => {
                if let Some(high) = high {
                    push(u32::from(high), out);
                }
                match unit {
                    0xD800..=0xDBFF => self.high = Some(unit),
                    _ => push(u32::from(unit), out),
                }
            }
        }
    }

    /// No bytes wait for others.
    pub fn is_whole(&self) -> bool {
        self.byte.is_none() && self.high.is_none()
    }
}

/// The bytes of a code point, by the scheme of RFC 3629 section 3, surrogates too.
fn push(code: u32, out: &mut Vec<u8>) {
    let tail = |shift: u32| 0x80 | (code >> shift & 0x3F) as u8;
    match code {
        0..0x80 => out.push(code as u8),
        0x80..0x800 => out.extend_from_slice(&[0xC0 | (code >> 6) as u8, tail(0)]),
        0x800..0x10000 => out.extend_from_slice(&[0xE0 | (code >> 12) as u8, tail(6), tail(0)]),
        _ => out.extend_from_slice(&[0xF0 | (code >> 18) as u8, tail(12), tail(6), tail(0)]),
    }
}

/// Bytes that `text`, which a [`Utf16Decoder`] made, took in UTF-16.
///
/// ```
/// assert_eq!(irikey::encoding::utf16_len("aé\u{1F600}".as_bytes()), 8);
/// ```
pub fn utf16_len(text: &[u8]) -> usize {
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
    fn surrogates_without_their_other_half_stay() {
        let units = [0xDC00, 0x61, 0xD800, 0x62, 0xD83D, 0xD83D, 0xDE00, 0xDBFF];
        let want = b"\xED\xB0\x80a\xED\xA0\x80b\xED\xA0\xBD\xF0\x9F\x98\x80";
        assert_eq!(decoded(&bytes_of(&units, ByteOrder::Big), 3, ByteOrder::Big), (want.to_vec(), false));
        assert_eq!(utf16_len(want), 14);
    }

    proptest! {
        #[test]
        fn text_is_itself_however_it_arrives(text in "\\PC{0,60}", step in 1usize..9, is_big in any::<bool>()) {
            let order = if is_big { ByteOrder::Big } else { ByteOrder::Little };
            let bytes = bytes_of(&text.encode_utf16().collect::<Vec<_>>(), order);
            prop_assert_eq!(decoded(&bytes, step, order), (text.clone().into_bytes(), true));
            prop_assert_eq!(utf16_len(text.as_bytes()), bytes.len());
        }

        #[test]
        fn half_a_unit_is_not_whole(bytes in proptest::collection::vec(any::<u8>(), 1..40)) {
            prop_assert!(bytes.len() % 2 == 0 || !decoded(&bytes, 7, ByteOrder::Little).1);
        }
    }
}
