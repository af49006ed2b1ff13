//! Punycode (RFC 3492) of short labels. The `idna` crate inserts and counts characters one by one, which takes up to
//! five times as long; it converts the labels that are too long for this module.

use crate::kernel::low_bits;

/// Longest label, in characters. Which characters of a label were encoded is a mask of this many bits.
pub(super) const MAX_LABEL_LEN: usize = 128;

/// The parameters of section 5.
const BASE: u32 = 36;
const T_MIN: u32 = 1;
const T_MAX: u32 = 26;
const SKEW: u32 = 38;
const DAMP: u32 = 700;
const INITIAL_BIAS: u32 = 72;
const INITIAL_N: u32 = 128;

const DIGITS: [u8; BASE as usize] = *b"abcdefghijklmnopqrstuvwxyz0123456789";

/// The weights of digits, which adapt to the deltas before.
struct Bias {
    bias: u32,
    is_first: bool,
}

impl Bias {
    fn new() -> Bias {
        Bias { bias: INITIAL_BIAS, is_first: true }
    }

    /// The threshold of the digit with this number.
    fn threshold(&self, digit: u32) -> u32 {
        (BASE * (digit + 1)).saturating_sub(self.bias).clamp(T_MIN, T_MAX)
    }

    /// Appends a delta as a variable-length integer (section 3.3).
    fn push_delta(&self, delta: u32, out: &mut Vec<u8>) {
        let mut rest = delta;
        for digit in 0.. {
            let threshold = self.threshold(digit);
            if rest < threshold {
                break;
            }
            rest -= threshold;
            out.push(DIGITS[(threshold + rest % (BASE - threshold)) as usize]);
            rest /= BASE - threshold;
        }
        out.push(DIGITS[rest as usize]);
    }

    /// Returns the delta at the start of `text`, and its length in bytes; `None` if it does not end, or is too large.
    fn delta(&self, text: &[u8]) -> Option<(u32, usize)> {
        let (mut delta, mut weight) = (0_u32, 1_u32);
        for (digit, byte) in (0..).zip(text) {
            let value = match byte {
                b'a'..=b'z' => u32::from(byte - b'a'),
                b'0'..=b'9' => u32::from(byte - b'0') + 26,
                _ => return None,
            };
            delta = delta.checked_add(value.checked_mul(weight)?)?;
            let threshold = self.threshold(digit);
            if value < threshold {
                return Some((delta, digit as usize + 1));
            }
            weight = weight.checked_mul(BASE - threshold)?;
        }
        None
    }

    /// Section 6.1: adapts the bias to a delta, after which `count` characters are there.
    fn adapt(&mut self, delta: u32, count: u32) {
        let mut delta = if self.is_first { delta / DAMP } else { delta / 2 };
        self.is_first = false;
        delta += delta / count;
        let mut digits = 0;
        while delta > (BASE - T_MIN) * T_MAX / 2 {
            delta /= BASE - T_MIN;
            digits += BASE;
        }
        self.bias = digits + (BASE - T_MIN + 1) * delta / (delta + SKEW);
    }
}

/// Appends the Punycode of a label to `out` (section 6.3). `order` is a buffer.
///
/// # Panics
/// If the label has more than [`MAX_LABEL_LEN`] characters.
pub(super) fn encode(label: &[char], order: &mut Vec<u32>, out: &mut Vec<u8>) {
    assert!(label.len() <= MAX_LABEL_LEN, "the label is too long");
    // A bit for each character that is encoded: at first the ASCII characters.
    let mut encoded = 0_u128;
    order.clear();
    for (at, &c) in label.iter().enumerate() {
        if c.is_ascii() {
            out.push(c as u8);
            encoded |= 1 << at;
        } else {
            // The order of the other characters: by code point, then by position.
            order.push((c as u32) << 8 | at as u32);
        }
    }
    if encoded != 0 {
        out.push(b'-');
    }
    order.sort_unstable();
    let (mut bias, mut count) = (Bias::new(), encoded.count_ones());
    // Where the decoder is: before this position of the label, in the pass that inserts this code point.
    let (mut from, mut code) = (0, INITIAL_N);
    for entry in order {
        let (next_code, at) = (*entry >> 8, (*entry & 0xFF) as usize);
        // The delta is the number of places for a character that the decoder passes.
        let after = encoded & !low_bits(from);
        let delta = if next_code == code {
            (after & low_bits(at)).count_ones()
        } else {
            let before = encoded & low_bits(at);
            after.count_ones() + 1 + (next_code - code - 1) * (count + 1) + before.count_ones()
        };
        bias.push_delta(delta, out);
        count += 1;
        bias.adapt(delta, count);
        encoded |= 1 << at;
        (from, code) = (at + 1, next_code);
    }
}

/// Splits Punycode at the last `-` into ASCII characters and deltas. There is no delimiter without ASCII characters.
pub(super) fn split(encoded: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memrchr(b'-', encoded) {
        Some(at) if at > 0 => (&encoded[..at], &encoded[at + 1..]),
        _ => (b"", encoded),
    }
}

/// Decodes deltas in lower case that insert characters into `count` others (section 6.2). Calls `accept` with each character
/// and its position at that time. Returns false if these are not deltas, or if `accept` returns false.
pub(super) fn decode(deltas: &[u8], mut count: u32, mut accept: impl FnMut(char, u32) -> bool) -> bool {
    let (mut bias, mut code, mut at) = (Bias::new(), INITIAL_N, 0);
    let mut rest = deltas;
    while !rest.is_empty() {
        let Some((delta, len)) = bias.delta(rest) else { return false };
        rest = &rest[len..];
        count += 1;
        bias.adapt(delta, count);
        let Some(place) = delta.checked_add(at) else { return false };
        (code, at) = (code.saturating_add(place / count), place % count);
        if !char::from_u32(code).is_some_and(|c| accept(c, at)) {
            return false;
        }
        at += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use idna::punycode as oracle;
    use proptest::prelude::*;

    fn encoded(label: &[char]) -> String {
        let mut out = Vec::new();
        encode(label, &mut Vec::new(), &mut out);
        String::from_utf8(out).unwrap()
    }

    /// Decodes a label as the `idna` crate does.
    fn decoded(encoded: &[u8]) -> Option<Vec<char>> {
        let (ascii, deltas) = split(encoded);
        let mut label: Vec<char> = ascii.iter().map(|&byte| char::from(byte)).collect();
        let accept = |c, at: u32| {
            label.insert(at as usize, c);
            true
        };
        decode(deltas, ascii.len() as u32, accept).then_some(label)
    }

    /// Characters that repeat, and neighbors of these.
    fn character() -> impl Strategy<Value = char> {
        prop_oneof![
            2 => "[a-c0-1-]".prop_map(|text| text.chars().next().unwrap()),
            2 => "[б-дюя中国]".prop_map(|text| text.chars().next().unwrap()),
            1 => any::<char>(),
        ]
    }

    proptest! {
        #[test]
        fn labels_are_encoded_as_by_the_idna_crate(label in prop::collection::vec(character(), 0..=MAX_LABEL_LEN)) {
            let expected = oracle::encode(&label).unwrap();
            prop_assert_eq!(&encoded(&label), &expected);
            let lower_case = expected.to_ascii_lowercase();
            prop_assert_eq!(decoded(lower_case.as_bytes()), oracle::decode(&lower_case));
        }

        #[test]
        fn labels_are_decoded_as_by_the_idna_crate(encoded in "[a-z0-9-]{0,12}|[a-c-]{0,3}[x-z7-9]{0,20}|[a-z]{1,4}[!é]?[a-z]{0,2}") {
            prop_assert_eq!(decoded(encoded.as_bytes()), oracle::decode(&encoded));
        }
    }

    /// RFC 3492 section 7.1, and the limits of labels.
    #[test]
    fn examples_are_encoded() {
        for (label, expected) in [
            ("Pročprostěnemluvíčesky", "Proprostnemluvesky-uyb24dma41a"),
            ("почемужеонинеговорятпорусски", "b1abfaaepdrnnbgefbadotcwatmq2g4l"),
            ("安室奈美恵-with-SUPER-MONKEYS", "-with-SUPER-MONKEYS-pc58ag80a8qai00g7n9n"),
            ("", ""),
            ("abc", "abc-"),
        ] {
            assert_eq!(encoded(&label.chars().collect::<Vec<_>>()), expected);
        }
        for c in ['\u{80}', '\u{10FFFF}'] {
            let label = [c; MAX_LABEL_LEN];
            assert_eq!(decoded(encoded(&label).as_bytes()).as_deref(), Some(&label[..]));
        }
    }
}
