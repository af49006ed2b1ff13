//! The graph of redirects: its nodes are URLs, and every node leads to at most one other.

use crate::key::KeyBytes;
use std::collections::HashMap;

/// The target of a node that leads nowhere.
pub(super) const NOWHERE: u32 = u32::MAX;

/// The URLs of all redirects, numbered, each stored once.
#[derive(Debug, Default)]
pub(super) struct UrlNodes {
    texts: Vec<u8>,
    /// End offset of each text.
    ends: Vec<usize>,
    keys: Vec<KeyBytes>,
    numbers: HashMap<KeyBytes, u32>,
}

impl UrlNodes {
    /// Returns the number of a URI; a new URI gets the next number.
    pub(super) fn intern(&mut self, uri: &[u8], key: KeyBytes) -> u32 {
        let next = self.keys.len() as u32;
        *self.numbers.entry(key).or_insert_with(|| {
            self.texts.extend_from_slice(uri);
            self.ends.push(self.texts.len());
            self.keys.push(key);
            next
        })
    }

    /// Returns whether a URI with this key has a number.
    pub(super) fn contains(&self, key: &KeyBytes) -> bool {
        self.numbers.contains_key(key)
    }

    /// Bytes of all URIs.
    pub(super) fn texts_len(&self) -> usize {
        self.texts.len()
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(super) fn uri(&self, node: u32) -> &[u8] {
        let node = node as usize;
        let start = if node == 0 { 0 } else { self.ends[node - 1] };
        &self.texts[start..self.ends[node]]
    }

    pub(super) fn key(&self, node: u32) -> KeyBytes {
        self.keys[node as usize]
    }
}

/// Returns for each node whether it is on a cycle or leads into one. `next` holds the target of each node.
pub(super) fn find_loops(next: &[u32]) -> Vec<bool> {
    const UNVISITED: u8 = 0;
    const ON_PATH: u8 = 1;
    const ENDS: u8 = 2;
    const LOOPS: u8 = 3;
    let mut states = vec![UNVISITED; next.len()];
    let mut path = Vec::new();
    for start in 0..next.len() as u32 {
        let mut node = start;
        while node != NOWHERE && states[node as usize] == UNVISITED {
            states[node as usize] = ON_PATH;
            path.push(node);
            node = next[node as usize];
        }
        let is_loop = node != NOWHERE && states[node as usize] != ENDS;
        path.drain(..).for_each(|node| states[node as usize] = if is_loop { LOOPS } else { ENDS });
    }
    states.into_iter().map(|state| state == LOOPS).collect()
}

/// Disjoint sets of nodes, with union by size and path halving.
pub(super) struct UnionFind {
    parents: Vec<u32>,
    sizes: Vec<u32>,
}

impl UnionFind {
    /// Creates one set per node.
    pub(super) fn new(count: usize) -> UnionFind {
        UnionFind { parents: (0..count as u32).collect(), sizes: vec![1; count] }
    }

    /// Returns the node that identifies the set of `node`.
    pub(super) fn find(&mut self, mut node: u32) -> u32 {
        while self.parents[node as usize] != node {
            let grandparent = self.parents[self.parents[node as usize] as usize];
            self.parents[node as usize] = grandparent;
            node = grandparent;
        }
        node
    }

    /// Joins the sets of two nodes.
    pub(super) fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.find(a), self.find(b));
        if a == b {
            return;
        }
        let (small, large) = if self.sizes[a as usize] < self.sizes[b as usize] { (a, b) } else { (b, a) };
        self.parents[small as usize] = large;
        self.sizes[large as usize] += self.sizes[small as usize];
    }

    /// Returns the number of nodes in the set of `node`.
    pub(super) fn size(&mut self, node: u32) -> u32 {
        let root = self.find(node);
        self.sizes[root as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_cycles_and_the_nodes_that_lead_into_them() {
        // 0 -> 1 -> 2 -> 1; 3 -> 3; 4 -> 5 -> nowhere; 6 -> 5
        let next = [1, 2, 1, 3, 5, NOWHERE, 5];
        assert_eq!(find_loops(&next), [true, true, true, true, false, false, false]);
    }

    #[test]
    fn unions_are_transitive() {
        let mut sets = UnionFind::new(5);
        [(0, 1), (2, 3), (1, 3), (0, 2)].into_iter().for_each(|(a, b)| sets.join(a, b));
        let root = sets.find(0);
        assert!((1..4).all(|node| sets.find(node) == root));
        assert_ne!(sets.find(4), root);
        assert_eq!((sets.size(2), sets.size(4)), (4, 1));
    }
}
