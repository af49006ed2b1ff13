//! Redirects as a graph in which every URL leads to at most one: which of them go round, and what they join.

/// Leads nowhere.
pub(super) const NOWHERE: u32 = u32::MAX;

/// Which nodes are on a circle, or lead into one.
pub(super) fn find_loops(next: &[u32]) -> Vec<bool> {
    const NEW: u8 = 0;
    const ON_THE_WAY: u8 = 1;
    const FINE: u8 = 2;
    const LOOP: u8 = 3;
    let mut states = vec![NEW; next.len()];
    let mut way = Vec::new();
    for start in 0..next.len() as u32 {
        let mut at = start;
        while at != NOWHERE && states[at as usize] == NEW {
            states[at as usize] = ON_THE_WAY;
            way.push(at);
            at = next[at as usize];
        }
        let is_loop = at != NOWHERE && states[at as usize] != FINE;
        way.drain(..).for_each(|node| states[node as usize] = if is_loop { LOOP } else { FINE });
    }
    states.into_iter().map(|state| state == LOOP).collect()
}

/// UrlNodes that are one, by union-find.
pub(super) struct UnionFind {
    parents: Vec<u32>,
    sizes: Vec<u32>,
}

impl UnionFind {
    /// Every node a class of its own.
    pub fn new(count: usize) -> UnionFind {
        UnionFind { parents: (0..count as u32).collect(), sizes: vec![1; count] }
    }

    /// A node that stands for the class of `node`.
    pub fn find(&mut self, mut node: u32) -> u32 {
        while self.parents[node as usize] != node {
            let above = self.parents[self.parents[node as usize] as usize];
            self.parents[node as usize] = above;
            node = above;
        }
        node
    }

    /// Makes one class of two.
    pub fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.find(a), self.find(b));
        if a == b {
            return;
        }
        let (small, large) = if self.sizes[a as usize] < self.sizes[b as usize] { (a, b) } else { (b, a) };
        self.parents[small as usize] = large;
        self.sizes[large as usize] += self.sizes[small as usize];
    }

    /// How many nodes the class of `node` has.
    pub fn size(&mut self, node: u32) -> u32 {
        let root = self.find(node);
        self.sizes[root as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_and_what_leads_into_them() {
        // 0 -> 1 -> 2 -> 1; 3 -> 3; 4 -> 5 -> nowhere; 6 -> 5
        let next = [1, 2, 1, 3, 5, NOWHERE, 5];
        assert_eq!(find_loops(&next), [true, true, true, true, false, false, false]);
    }

    #[test]
    fn unions_are_transitive() {
        let mut classes = UnionFind::new(5);
        [(0, 1), (2, 3), (1, 3), (0, 2)].into_iter().for_each(|(a, b)| classes.join(a, b));
        let root = classes.find(0);
        assert!((1..4).all(|node| classes.find(node) == root));
        assert_ne!(classes.find(4), root);
        assert_eq!((classes.size(2), classes.size(4)), (4, 1));
    }
}
