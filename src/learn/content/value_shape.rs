//! What values of parameters and segments look like: [`ValueShape`].

use crate::kernel::{any_byte, count_bytes};

/// What a value looks like. Identifiers that software makes have shapes that words and small numbers do not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ValueShape {
    /// 16 or more hexadecimal digits.
    Hex,
    /// 32 hexadecimal digits in five groups.
    Uuid,
    /// 10 or 13 digits that are seconds or milliseconds since 2001, or 14 digits of a date and time.
    Time,
    /// 16 or more letters and digits, of both kinds, and hardly anything else.
    Token,
    /// Digits that are not a time.
    Number,
    /// Anything else.
    Other,
}

impl ValueShape {
    const ALL: [(ValueShape, &'static str); 6] = [
        (ValueShape::Hex, "<hex>"),
        (ValueShape::Uuid, "<uuid>"),
        (ValueShape::Time, "<time>"),
        (ValueShape::Token, "<token>"),
        (ValueShape::Number, "<number>"),
        (ValueShape::Other, "<other>"),
    ];

    /// Returns the shape of `value`.
    pub(super) fn of(value: &[u8]) -> ValueShape {
        let digits = count_bytes(value, |byte| byte.is_ascii_digit());
        let is_hex = |value: &[u8]| !any_byte(value, |byte| !byte.is_ascii_hexdigit());
        let is_token = |len: usize| {
            let letters = count_bytes(value, |byte| byte.is_ascii_alphabetic());
            digits * 10 >= len && letters > 0 && (len - digits - letters) * 16 <= len
        };
        match value.len() {
            10 | 13 if digits == value.len() && value[0] == b'1' => ValueShape::Time,
            14 if digits == 14 && (value.starts_with(b"19") || value.starts_with(b"20")) => ValueShape::Time,
            len if len > 0 && digits == len => ValueShape::Number,
            36 if is_uuid(value) => ValueShape::Uuid,
            len if len >= 16 && is_hex(value) => ValueShape::Hex,
            len if len >= 16 && is_token(len) => ValueShape::Token,
            _ => ValueShape::Other,
        }
    }

    /// Returns whether `value` has this shape.
    #[inline(always)]
    pub(super) fn is_of(self, value: &[u8]) -> bool {
        match self {
            // Most values of rules have this shape.
            ValueShape::Hex => {
                let is_digit = |byte: u8| byte.wrapping_sub(b'0') < 10;
                let is_letter = |byte: u8| (byte | 0x20).wrapping_sub(b'a') < 6;
                value.len() >= 16
                    && !any_byte(value, |byte| !(is_digit(byte) | is_letter(byte)))
                    && any_byte(value, is_letter)
            }
            _ => ValueShape::of(value) == self,
        }
    }

    /// Returns whether software makes values of this shape, and people do not.
    pub(super) fn is_made(self) -> bool {
        !matches!(self, ValueShape::Number | ValueShape::Other)
    }

    pub(super) fn name(self) -> &'static str {
        ValueShape::ALL.iter().find(|(shape, _)| *shape == self).map_or("", |(_, name)| name)
    }

    pub(super) fn named(name: &str) -> Option<ValueShape> {
        ValueShape::ALL.iter().find(|(_, known)| *known == name).map(|(shape, _)| *shape)
    }
}

fn is_uuid(value: &[u8]) -> bool {
    let is_right = |(at, byte): (usize, &u8)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    value.len() == 36 && value.iter().enumerate().all(is_right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_recognized() {
        let cases = [
            ("d41d8cd98f00b204e9800998ecf8427e", ValueShape::Hex),
            ("123e4567-e89b-12d3-a456-426614174000", ValueShape::Uuid),
            ("123e4567-e89b-12d3-a456-42661417400g", ValueShape::Other),
            ("123e4567e-89b-12d3-a456-426614174000", ValueShape::Other),
            ("1600000000", ValueShape::Time),
            ("1600000000123", ValueShape::Time),
            ("20260102030405", ValueShape::Time),
            ("42", ValueShape::Number),
            ("1234567890123456", ValueShape::Number),
            ("123456789012345f", ValueShape::Hex),
            ("12345678901234f", ValueShape::Other),
            ("a8f3kq02mzp19xw7", ValueShape::Token),
            ("the-history-of-the-river-in-2024", ValueShape::Other),
            ("news", ValueShape::Other),
            ("", ValueShape::Other),
        ];
        for (value, shape) in cases {
            assert_eq!(ValueShape::of(value.as_bytes()), shape, "{value}");
            for (other, _) in ValueShape::ALL {
                assert_eq!(other.is_of(value.as_bytes()), other == shape, "{value}");
            }
        }
    }
}
