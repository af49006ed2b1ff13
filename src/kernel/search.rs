//! Searches of short texts for a byte or a pair of bytes, when its position does not matter. A search that ends at the
//! first match tests one byte at a time; these searches test all bytes, and compilers vectorize them if the test has no
//! branches (`|` instead of `||`).

/// Bytes that are tested at once.
const BLOCK: usize = 16;

/// Returns whether `is_sought` is true for a byte of `text`.
#[inline(always)]
pub(crate) fn any_byte(text: &[u8], is_sought: impl Fn(u8) -> bool) -> bool {
    let mut found = [0; BLOCK];
    let mut test = |block: &[u8; BLOCK]| {
        found.iter_mut().zip(block).for_each(|(found, byte)| *found |= u8::from(is_sought(*byte)));
    };
    let Some(last) = text.last_chunk() else { return text.iter().any(|byte| is_sought(*byte)) };
    text.as_chunks().0.iter().for_each(&mut test);
    test(last);
    u128::from_ne_bytes(found) != 0
}

/// Returns whether `is_sought` is true for a byte of `text` and the byte after it.
#[inline(always)]
pub(crate) fn any_pair(text: &[u8], is_sought: impl Fn(u8, u8) -> bool) -> bool {
    let Some((firsts, seconds)) = text.split_last().map(|(_, firsts)| (firsts, &text[1..])) else { return false };
    let mut found = [0; BLOCK];
    let mut test = |(firsts, seconds): (&[u8; BLOCK], &[u8; BLOCK])| {
        let pairs = firsts.iter().zip(seconds);
        found.iter_mut().zip(pairs).for_each(|(found, (byte, next))| *found |= u8::from(is_sought(*byte, *next)));
    };
    let (Some(last), Some(after)) = (firsts.last_chunk(), seconds.last_chunk()) else {
        return firsts.iter().zip(seconds).any(|(byte, next)| is_sought(*byte, *next));
    };
    firsts.as_chunks().0.iter().zip(seconds.as_chunks().0).for_each(&mut test);
    test((last, after));
    u128::from_ne_bytes(found) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn searches_equal_scalar_ones_at_all_lengths_and_positions() {
        for len in 0..=200 {
            let mut text = vec![b'a'; len];
            assert!(
                !any_byte(&text, |byte| byte == b'/') && !any_pair(&text, |byte, next| byte == b'/' || next == b'/')
            );
            for at in 0..len {
                text[at] = b'/';
                assert!(any_byte(&text, |byte| byte == b'/'), "{at} of {len}");
                assert_eq!(any_pair(&text, |byte, next| (byte, next) == (b'/', b'a')), at + 1 < len, "{at} of {len}");
                assert_eq!(any_pair(&text, |byte, next| (byte, next) == (b'a', b'/')), at > 0, "{at} of {len}");
                text[at] = b'a';
            }
        }
    }
}
