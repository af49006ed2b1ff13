//! Sorts texts that share long prefixes: [`sort_texts`].

/// Groups of at most this many texts are compared as a whole.
const SMALL_GROUP: usize = 8;

/// Returns up to eight bytes as a number that compares as they do.
fn word(bytes: &[u8]) -> u64 {
    match bytes.first_chunk() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => bytes.iter().enumerate().fold(0, |word, (at, byte)| word | u64::from(*byte) << (56 - 8 * at)),
    }
}

/// Sorts texts by eight bytes at a time: texts with equal bytes are sorted by the next eight.
pub(super) fn sort_texts(texts: &mut [&[u8]]) {
    let mut keyed: Vec<(u64, u8, &[u8])> = texts.iter().map(|text| (0, 0, *text)).collect();
    let mut groups = vec![(0..keyed.len(), 0)];
    while let Some((range, depth)) = groups.pop() {
        let group = &mut keyed[range.clone()];
        if group.len() <= SMALL_GROUP {
            group.sort_unstable_by(|a, b| a.2[depth..].cmp(&b.2[depth..]));
            continue;
        }
        for (head, len, text) in group.iter_mut() {
            let rest = &text[depth..];
            // Texts of which more than these eight bytes remain come last.
            (*head, *len) = (word(rest), rest.len().min(9) as u8);
        }
        group.sort_unstable_by_key(|(head, len, _)| (*head, *len));
        let mut from = range.start;
        for equal in keyed[range].chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            if equal.len() > 1 && equal[0].1 == 9 {
                groups.push((from..from + equal.len(), depth + 8));
            }
            from += equal.len();
        }
    }
    texts.iter_mut().zip(keyed).for_each(|(text, (_, _, sorted))| *text = sorted);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_sorted_as_slices_are() {
        let text = |i: u64| {
            let hash = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            let letters = (0..hash % 40).map(|at| if (hash >> (at / 4)) & 1 == 0 { 0 } else { b'a' });
            letters.collect::<Vec<u8>>()
        };
        let all: Vec<Vec<u8>> = (0..3000).map(text).chain((0..20).map(|len| vec![0; len])).collect();
        let mut sorted: Vec<&[u8]> = all.iter().map(Vec::as_slice).collect();
        let mut expected = sorted.clone();
        sort_texts(&mut sorted);
        expected.sort();
        assert!(sorted == expected);
    }
}
