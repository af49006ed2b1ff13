//! Sorts texts that share long prefixes: [`sort_by_text`].

/// Groups of at most this many texts are compared as a whole.
const SMALL_GROUP: usize = 8;

/// Bits of the place in an item.
const PLACE_BITS: u32 = u32::BITS;

/// The length in an item if more than eight bytes of the text remain.
const LONG: usize = 9;

/// Returns the first eight bytes, padded with zeros, as a number that compares as they do.
pub(super) fn first_bytes(bytes: &[u8]) -> u64 {
    match bytes.first_chunk() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => bytes.iter().enumerate().fold(0, |word, (at, byte)| word | u64::from(*byte) << (56 - 8 * at)),
    }
}

/// The next eight bytes of a text, the number of its remaining bytes, at most [`LONG`], and its place. Texts that are equal up
/// to these bytes compare as their items do, unless the items differ in the place alone and the texts are longer.
fn item(rest: &[u8], place: u32) -> u128 {
    u128::from(first_bytes(rest)) << 64 | (rest.len().min(LONG) as u128) << PLACE_BITS | u128::from(place)
}

/// The place of an item.
fn place_of(item: u128) -> u32 {
    item as u32
}

/// The texts of this item, and of others with the same bytes, have more bytes.
fn is_long(item: u128) -> bool {
    (item >> PLACE_BITS) as u32 as usize == LONG
}

/// Sorts places by the texts at them, and those of equal texts in ascending order, by eight bytes at a time: texts with equal
/// bytes are sorted by the next eight.
pub(super) fn sort_by_text<T: AsRef<[u8]>>(places: &mut [u32], text: impl Fn(u32) -> T) {
    let mut items: Vec<u128> = places.iter().map(|place| u128::from(*place)).collect();
    let mut groups = vec![(0..items.len(), 0)];
    while let Some((range, depth)) = groups.pop() {
        let group = &mut items[range.clone()];
        if group.len() <= SMALL_GROUP {
            group.sort_unstable_by(|a, b| {
                let (a, b) = (place_of(*a), place_of(*b));
                text(a).as_ref()[depth..].cmp(&text(b).as_ref()[depth..]).then(a.cmp(&b))
            });
            continue;
        }
        for old in group.iter_mut() {
            let place = place_of(*old);
            *old = item(&text(place).as_ref()[depth..], place);
        }
        group.sort_unstable();
        let mut from = range.start;
        for equal in items[range].chunk_by(|a, b| a >> PLACE_BITS == b >> PLACE_BITS) {
            if equal.len() > 1 && is_long(equal[0]) {
                groups.push((from..from + equal.len(), depth + 8));
            }
            from += equal.len();
        }
    }
    places.iter_mut().zip(items).for_each(|(place, item)| *place = place_of(item));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_sorted_as_texts_are_and_equal_texts_by_place() {
        let text = |i: u64| {
            let hash = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            let letters = (0..hash % 40).map(|at| if (hash >> (at / 4)) & 1 == 0 { 0 } else { b'a' });
            letters.collect::<Vec<u8>>()
        };
        let all: Vec<Vec<u8>> = (0..3000).map(|i| text(i % 2500)).chain((0..20).map(|len| vec![0; len])).collect();
        // Places need not ascend at first, and other places are not sorted.
        let mut places: Vec<u32> = (7..all.len() as u32).rev().collect();
        let mut expected = places.clone();
        sort_by_text(&mut places, |place| &all[place as usize]);
        expected.sort_by_key(|place| (&all[*place as usize], *place));
        assert!(places == expected);
    }
}
