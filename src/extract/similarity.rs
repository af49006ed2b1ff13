//! A hash of the text of an HTML document that differs in few bits from those of similar texts: [`similarity_hash`]
//! (SimHash: M. Charikar, Similarity Estimation Techniques from Rounding Algorithms, STOC 2002).

use html5gum::emitters::callback::CallbackEvent;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::charset;
use super::document::{DocumentContext, DocumentText, Markup};
use super::html::{RawElements, for_each_event};

/// A text of fewer words has no hash: a few words decide about all its bits.
const MIN_WORDS: u32 = 20;

/// From this character on, every letter is a word: these scripts do not separate words.
const FIRST_IDEOGRAPH: char = '\u{2e80}';

/// Returns the hash of a document's text, made of all sequences of three words without letter case; `None` if the document is not
/// HTML or its text is short. Scripts, styles and markup are not part of the text.
pub(crate) fn similarity_hash(bytes: &[u8], context: &DocumentContext) -> Option<u64> {
    let choice = charset::choose(bytes, context);
    if choice.markup != Markup::Html {
        return None;
    }
    let text = DocumentText::new(bytes, &choice);
    let mut hasher = SimilarityHasher { words: [0; 2], count: 0, sums: [0; 64] };
    for_each_event(text.text(), RawElements::Known, &mut |event, _, _| {
        if let CallbackEvent::String { value } = event {
            hasher.add_text(&String::from_utf8_lossy(value));
        }
        true
    });
    hasher.finish()
}

/// Collects the words of a text.
struct SimilarityHasher {
    /// Hashes of the last two words.
    words: [u64; 2],
    count: u32,
    /// For each bit of the hash: sequences that have it, less those that do not.
    sums: [i32; 64],
}

impl SimilarityHasher {
    fn add_text(&mut self, text: &str) {
        for word in text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()) {
            match word.find(|letter: char| letter >= FIRST_IDEOGRAPH) {
                None => self.add_word(word),
                Some(_) => {
                    word.char_indices().for_each(|(at, letter)| self.add_word(&word[at..at + letter.len_utf8()]))
                }
            }
        }
    }

    fn add_word(&mut self, word: &str) {
        let hash = xxh3_64(word.to_lowercase().as_bytes());
        self.count = self.count.saturating_add(1);
        if self.count > 2 {
            let [first, second] = self.words;
            let sequence = xxh3_64_with_seed(&hash.to_le_bytes(), first ^ second.rotate_left(21));
            for (bit, sum) in self.sums.iter_mut().enumerate() {
                *sum += ((sequence >> bit & 1) as i32) * 2 - 1;
            }
        }
        self.words = [self.words[1], hash];
    }

    fn finish(&self) -> Option<u64> {
        let bits = self.sums.iter().enumerate().filter(|(_, sum)| **sum > 0);
        (self.count >= MIN_WORDS).then(|| bits.fold(0, |hash, (bit, _)| hash | 1 << bit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(text: &str) -> Option<u64> {
        similarity_hash(text.as_bytes(), &DocumentContext::default())
    }

    #[test]
    fn similar_texts_have_near_hashes() {
        let text = |seed: u64, count: u64| {
            let word = |i: u64| format!("w{}", (i * seed + i * i) % 9973);
            (0..count).map(word).collect::<Vec<_>>().join(" ")
        };
        let page =
            |date: &str, text: &str| format!("<html><title>T</title><body><p>{date}</p><div>{text}</div></body>");
        let (one, other) = (text(7, 600), text(11, 600));
        let first = hash(&page("Monday 1", &one)).unwrap();
        let distance = |other: u64| (first ^ other).count_ones();
        assert!(distance(hash(&page("Tuesday 22", &one)).unwrap()) <= 8);
        assert!(distance(hash(&page("Monday 1", &other)).unwrap()) > 12);
        let marked =
            page("Monday 1", &one).replace("<div>", "<script>var x = 'a < b';</script><div class=a><style>p{}</style>");
        assert_eq!(hash(&marked), Some(first));
        assert_eq!(hash(&page("", &text(7, 10))), None);
        assert_eq!(hash("<?xml version=\"1.0\"?><a/>"), None);
        assert!(hash(&format!("<p>{}", "\u{65e5}\u{672c}\u{8a9e}".repeat(10))).is_some());
    }
}
