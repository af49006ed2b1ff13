//! Reads a text at many positions. All positions are checked at once, because two checks for each of them take longer.

/// Returns the `N` bytes of `text` at each of `positions`.
///
/// # Panics
/// If fewer than `N` bytes follow a position.
#[inline(always)]
pub(crate) fn chunks_at<'a, const N: usize>(
    text: &'a [u8],
    positions: &'a [u32],
) -> impl ExactSizeIterator<Item = &'a [u8; N]> {
    // A maximum is a loop of vector instructions.
    let last = positions.iter().fold(0, |last, at| (*at).max(last)) as usize;
    assert!(positions.is_empty() || text.len() >= N && last <= text.len() - N, "bytes follow each position");
    positions.iter().map(|at| {
        // SAFETY: the assertion checked that the `N` bytes from the greatest position on are within `text`, so those from `at`
        // on are as well. They live as long as `text`, and the type `[u8; N]` needs no alignment.
        unsafe { &*text.as_ptr().add(*at as usize).cast::<[u8; N]>() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_those_of_slices_up_to_the_end_of_the_text() {
        let text: Vec<u8> = (0..=255).collect();
        for len in 32..=200 {
            let text = &text[..len];
            let positions: Vec<u32> = (0..=len as u32 - 32).rev().collect();
            let expected: Vec<&[u8]> = positions.iter().map(|at| &text[*at as usize..*at as usize + 32]).collect();
            assert_eq!(chunks_at::<32>(text, &positions).collect::<Vec<_>>(), expected);
        }
        assert_eq!(chunks_at::<8>(b"", &[]).len(), 0);
    }

    #[test]
    fn positions_with_too_few_bytes_are_refused() {
        for (len, positions) in [(40, vec![0, 33, 1]), (7, vec![0]), (0, vec![0]), (40, vec![u32::MAX])] {
            let text = vec![0; len];
            std::panic::catch_unwind(|| chunks_at::<8>(&text, &positions).len()).expect_err("too few bytes");
        }
    }
}
