//! What collections take: in, one of them, and how many items more there will be; out, bytes of memory, those of a copy
//! included that growing takes for a while.

use std::collections::{HashMap, HashSet};

/// Items that there is room for as soon as there is one.
const LEAST: usize = 8;

/// Of a vector, less what its items point to.
pub(super) fn of_vec<T>(items: &Vec<T>, more: usize) -> usize {
    let grown = items.len() + more;
    let slots = if grown <= items.capacity() {
        items.capacity()
    } else {
        items.capacity() + grown.max(2 * items.capacity()).max(LEAST)
    };
    slots * size_of::<T>()
}

/// Of a map, likewise.
pub(super) fn of_map<K, V, S>(items: &HashMap<K, V, S>, more: usize) -> usize {
    slots(items.len(), items.capacity(), more) * (size_of::<(K, V)>() + 1)
}

/// Of a set, likewise.
pub(super) fn of_set<K, S>(items: &HashSet<K, S>, more: usize) -> usize {
    slots(items.len(), items.capacity(), more) * (size_of::<K>() + 1)
}

/// Slots of a hash table, seven of eight of which may be taken; twice as many beside them while it grows.
fn slots(len: usize, capacity: usize, more: usize) -> usize {
    let now = if capacity == 0 { 0 } else { (capacity * 8 / 7).next_power_of_two() };
    let grown = ((len + more) * 8).div_ceil(7).next_power_of_two().max(LEAST);
    if len + more <= capacity { now } else { now + grown.max(now * 2) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growing_is_counted_before_it_is_done() {
        let (mut items, mut set) = (Vec::new(), HashSet::new());
        for i in 0..100_000u64 {
            let (told, told_set) = (of_vec(&items, 1), of_set(&set, 1));
            items.push(i);
            set.insert(i);
            assert!(items.capacity() * 8 <= told && set.capacity() * 9 <= told_set, "{i}");
        }
        assert!(of_vec(&items, 0) < 3 * 800_000 && of_set(&set, 0) < 4 * 900_000);
        assert_eq!(of_vec::<u8>(&Vec::new(), 0), 0);
        assert_eq!(of_map(&HashMap::<u8, u8>::new(), 0), 0);
    }
}
