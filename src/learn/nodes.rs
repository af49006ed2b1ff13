//! The URLs that redirects speak of, each once, under a number: [`UrlNodes`].

use super::memory;
use crate::key::KeyBytes;
use std::collections::HashMap;

/// URIs by number and by key.
#[derive(Debug, Default)]
pub(super) struct UrlNodes {
    texts: Vec<u8>,
    /// Where each text ends.
    ends: Vec<usize>,
    keys: Vec<KeyBytes>,
    numbers: HashMap<KeyBytes, u32>,
}

impl UrlNodes {
    /// The number of a URI, a new one if it is new.
    pub fn intern(&mut self, uri: &[u8], key: KeyBytes) -> u32 {
        let next = self.keys.len() as u32;
        *self.numbers.entry(key).or_insert_with(|| {
            self.texts.extend_from_slice(uri);
            self.ends.push(self.texts.len());
            self.keys.push(key);
            next
        })
    }

    /// Bytes of memory, if there come to be so many more URIs, of so many bytes.
    pub fn memory_len(&self, more: usize, text_len: usize) -> usize {
        let UrlNodes { texts, ends, keys, numbers } = self;
        memory::of_vec(texts, text_len)
            + memory::of_vec(ends, more)
            + memory::of_vec(keys, more)
            + memory::of_map(numbers, more)
    }

    /// Bytes of all URIs.
    pub fn texts_len(&self) -> usize {
        self.texts.len()
    }

    pub fn len(&self) -> usize {
        self.keys.len()
    }

    pub fn uri(&self, node: u32) -> &[u8] {
        let node = node as usize;
        let start = if node == 0 { 0 } else { self.ends[node - 1] };
        &self.texts[start..self.ends[node]]
    }

    pub fn key(&self, node: u32) -> KeyBytes {
        self.keys[node as usize]
    }
}
