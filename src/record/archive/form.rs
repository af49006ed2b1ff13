//! Queries of limited length: [`FormWriter`] writes names and values as `application/x-www-form-urlencoded`.

use crate::iri::write_form_encoded;

/// Longest query of a request, in characters; the rest is left out.
pub(super) const MAX_QUERY_LEN: usize = 4096;

/// A query that is being written.
#[derive(Debug, Default)]
pub(super) struct FormWriter {
    query: Vec<u8>,
}

impl FormWriter {
    /// Whether what follows would be left out.
    pub(super) fn is_full(&self) -> bool {
        self.query.len() >= MAX_QUERY_LEN
    }

    /// Appends `name=value`. Callers stop when the query is full.
    pub(super) fn field(&mut self, name: &[u8], value: &[u8]) {
        if !self.query.is_empty() {
            self.query.push(b'&');
        }
        self.encode(name);
        self.query.push(b'=');
        self.encode(value);
    }

    fn encode(&mut self, text: &[u8]) {
        // A byte gives at least one character.
        write_form_encoded(&text[..text.len().min(MAX_QUERY_LEN)], &mut self.query);
    }

    /// The query, at most [`MAX_QUERY_LEN`] characters.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.query.truncate(MAX_QUERY_LEN);
        self.query
    }
}

/// Cuts a text after [`MAX_QUERY_LEN`] characters.
pub(super) fn cut_text(text: &str) -> &str {
    text.char_indices().nth(MAX_QUERY_LEN).map_or(text, |(at, _)| &text[..at])
}
