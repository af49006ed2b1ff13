//! Byte loops that know nothing of IRIs.

/// Where bytes of each class stand in a text, one bit a byte.
#[derive(Debug, Default)]
pub struct Bitmaps {
    len: usize,
}

impl Bitmaps {
    /// Describes `text` from now on.
    pub fn classify(&mut self, text: &[u8]) {
        self.len = text.len();
    }
}
