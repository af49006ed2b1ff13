//! Graphs of redirects, whose nodes are numbered URLs, each of which leads to at most one other; and sets of nodes.

/// The target of a node that leads nowhere.
pub(super) const NOWHERE: u32 = u32::MAX;

/// Returns the target of a node. Nodes without an entry lead nowhere.
fn target_of(next: &[u32], node: u32) -> u32 {
    next.get(node as usize).copied().unwrap_or(NOWHERE)
}

/// Returns for each node whether it is on a cycle or leads into one. `next` holds the target of each node.
pub(super) fn mark_loops(next: &[u32]) -> Vec<bool> {
    const UNVISITED: u8 = 0;
    const ON_PATH: u8 = 1;
    const ENDS: u8 = 2;
    const LOOPS: u8 = 3;
    let mut states = vec![UNVISITED; next.len()];
    for start in 0..next.len() as u32 {
        let mut node = start;
        while let Some(state @ &mut UNVISITED) = states.get_mut(node as usize) {
            *state = ON_PATH;
            node = target_of(next, node);
        }
        let found = match states.get(node as usize) {
            Some(&(ON_PATH | LOOPS)) => LOOPS,
            _ => ENDS,
        };
        node = start;
        while let Some(state @ &mut ON_PATH) = states.get_mut(node as usize) {
            *state = found;
            node = target_of(next, node);
        }
    }
    states.into_iter().map(|state| state == LOOPS).collect()
}

/// Replaces the target of each node by the node where its path ends. There are no cycles.
pub(super) fn follow_to_ends(next: &mut [u32]) {
    for start in 0..next.len() as u32 {
        let mut end = start;
        while target_of(next, end) != NOWHERE {
            end = target_of(next, end);
        }
        let mut node = start;
        while node != end {
            node = std::mem::replace(&mut next[node as usize], end);
        }
    }
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_cycles_and_the_nodes_that_lead_into_them() {
        // 0 -> 1 -> 2 -> 1; 3 -> 3; 4 -> 5 -> nowhere; 6 -> 5; 7 -> 8, which has no entry
        let next = [1, 2, 1, 3, 5, NOWHERE, 5, 8];
        assert_eq!(mark_loops(&next), [true, true, true, true, false, false, false, false]);
    }

    #[test]
    fn paths_are_followed_to_their_ends() {
        // 0 -> 1 -> 2 -> nowhere; 4 -> 3 -> 1; 5 -> nowhere; 6 -> 9, which has no entry
        let mut next = [1, 2, NOWHERE, 1, 3, NOWHERE, 9];
        follow_to_ends(&mut next);
        assert_eq!(next, [2, 2, NOWHERE, 2, 2, NOWHERE, 9]);
    }

    #[test]
    fn unions_are_transitive() {
        let mut sets = UnionFind::new(5);
        [(0, 1), (2, 3), (1, 3), (0, 2)].into_iter().for_each(|(a, b)| sets.join(a, b));
        let root = sets.find(0);
        assert!((1..4).all(|node| sets.find(node) == root));
        assert_ne!(sets.find(4), root);
    }
}
