//! The first marks of records that begin with one of two prefixes, for many records at once: [`Bitmaps::push_prefix_marks`].

#[cfg(target_arch = "x86_64")]
mod avx512;
mod marks;

pub(crate) use marks::{PrefixMarks, Prefixes};

use super::bitmaps::Bitmaps;
use super::span::Span;
use marks::SHORT_LEN;

impl Bitmaps {
    /// Appends the marks of the records `spans` of `text`, of which these are the bitmaps, and returns true. Returns false and
    /// appends nothing if the processor has no AVX-512; the caller then searches the bitmaps record by record.
    ///
    /// # Panics
    /// If these are the bitmaps of a text that is shorter by more than 64 bytes. Spans that are not within the text may cause a
    /// panic, or have any marks.
    pub(crate) fn push_prefix_marks(
        &self,
        (text, spans): (&[u8], &[Span]),
        prefixes: &Prefixes,
        marks: &mut Vec<PrefixMarks>,
    ) -> bool {
        #[cfg(target_arch = "x86_64")]
        if super::cpu::Avx512::new().is_some() {
            let (stops, attentions) = self.bytes();
            let marked = avx512::MarkedText { text, stops, attentions, prefixes };
            let far = |span: &Span| self.prefix_marks(text, *span, prefixes);
            // SAFETY: `Avx512::new` found that the processor has AVX-512 F, CD and DQ.
            unsafe { avx512::push(&marked, spans, marks, far) }
            return true;
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (text, spans, prefixes, marks);
        false
    }

    /// Returns the marks of one record: the definition of [`Bitmaps::push_prefix_marks`], which also uses it for records that the
    /// vectors do not reach.
    ///
    /// # Panics
    /// If the span is not within the text.
    #[cfg_attr(not(any(target_arch = "x86_64", test)), expect(dead_code))]
    pub(crate) fn prefix_marks(&self, text: &[u8], span: Span, prefixes: &Prefixes) -> PrefixMarks {
        let line = span.of(text);
        let Some(head) = line.first_chunk() else { return PrefixMarks::default() };
        let is_long = *head == prefixes.long;
        if !is_long && head[..SHORT_LEN] != prefixes.short {
            return PrefixMarks::default();
        }
        let from = span.at as usize + SHORT_LEN + usize::from(is_long);
        let end = span.at as usize + line.len();
        let offset = |mark: usize| mark.min(end) as u32 - span.at;
        PrefixMarks { stop: offset(self.next_stop(from)), attention: offset(self.next_attention_near(from)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{ByteSet, Classifier};

    const PREFIXES: Prefixes = Prefixes { short: *b"http://", long: *b"https://" };
    const CLASSIFIER: Classifier = Classifier::new(
        ByteSet::of(b"\0\n%"),
        [b'/', b'.'],
        ByteSet::range(b'a', b'z').or(ByteSet::of(b"-.")).not(),
        [b'-', b'-'],
    );

    fn bitmaps(text: &[u8]) -> Bitmaps {
        let mut bitmaps = Bitmaps::default();
        bitmaps.classify(text, &CLASSIFIER);
        bitmaps
    }

    /// The marks by a look at every byte.
    fn scanned(text: &[u8], span: Span) -> PrefixMarks {
        let line = span.of(text);
        let from = [&PREFIXES.long[..], &PREFIXES.short]
            .into_iter()
            .find(|prefix| line.starts_with(prefix))
            .map_or(0, <[u8]>::len);
        if from == 0 || line.len() < 8 {
            return PrefixMarks::default();
        }
        let first = |is_marked: fn(u8, [u8; 2]) -> bool| {
            let marked = (from..line.len()).find(|&i| is_marked(line[i], [line[i - 1], line[i]]));
            marked.unwrap_or(line.len()) as u32
        };
        PrefixMarks {
            stop: first(|byte, pair| !(byte.is_ascii_lowercase() || b"-.".contains(&byte)) || pair == *b"--"),
            attention: first(|byte, pair| b"\0\n%".contains(&byte) || pair == *b"/."),
        }
    }

    /// Whether marks are found at once.
    fn has_kernel() -> bool {
        #[cfg(target_arch = "x86_64")]
        return crate::kernel::cpu::Avx512::new().is_some();
        #[cfg(not(target_arch = "x86_64"))]
        false
    }

    /// Records of all lengths with marks at all places; `separator` is between them.
    fn records(separator: &str) -> (Vec<u8>, Vec<Span>) {
        let (mut text, mut spans) = (Vec::new(), Vec::new());
        let mut push = |record: String| {
            spans.push(Span::new(text.len(), record.len()));
            text.extend_from_slice(record.as_bytes());
            text.extend_from_slice(separator.as_bytes());
        };
        for prefix in ["http://", "https://", "HTTP://", "https:/", "ftp://", ""] {
            for len in (0..150).chain([300, 1_000]) {
                push(format!("{prefix}{}", "a".repeat(len)));
                push(format!("{prefix}{}/b", "a".repeat(len)));
                push(format!("{prefix}h/{}%", "-.".repeat(len)));
                push(format!("{prefix}h/{}/..", "c".repeat(len)));
            }
            push(format!("{prefix}.h--/"));
        }
        (text, spans)
    }

    #[test]
    fn marks_are_found_by_the_definition_and_at_once() {
        for separator in ["\n", "", ","] {
            let (text, mut spans) = records(separator);
            for part in [0, 1, 3] {
                // In another order, records of different lengths meet in a group.
                spans.sort_by_key(|span| (span.at as usize * part) % 97);
                let expected: Vec<_> = spans.iter().map(|span| scanned(&text, *span)).collect();
                let bitmaps = bitmaps(&text);
                let defined: Vec<_> = spans.iter().map(|span| bitmaps.prefix_marks(&text, *span, &PREFIXES)).collect();
                assert_eq!(defined, expected);
                let mut found = vec![PrefixMarks::default()];
                assert_eq!(bitmaps.push_prefix_marks((&text, &spans), &PREFIXES, &mut found), has_kernel());
                assert!(
                    found[1..] == expected[..if has_kernel() { spans.len() } else { 0 }],
                    "separator {separator:?}"
                );
            }
        }
    }

    /// Texts end at all places of a group, and no byte after them is read.
    #[cfg(unix)]
    #[test]
    fn the_end_of_a_text_is_not_passed() {
        use crate::kernel::guarded::GuardedText;
        for count in 0..20 {
            for last in ["", "x", "http://", "https://", "http://h", "https://h.example/%"] {
                let text = ["http://h.a/\n".repeat(count), last.to_string()].concat();
                let text = GuardedText::before_guard(text.as_bytes());
                let mut spans: Vec<_> = (0..count).map(|i| Span::new(12 * i, 11)).collect();
                spans.push(Span::new(12 * count, last.len()));
                let mut found = Vec::new();
                bitmaps(&text).push_prefix_marks((&text, &spans), &PREFIXES, &mut found);
                assert_eq!(found.len(), if has_kernel() { spans.len() } else { 0 });
                assert!(
                    found.is_empty() || found.iter().zip(&spans).all(|(marks, span)| *marks == scanned(&text, *span))
                );
            }
        }
    }

    #[test]
    fn bitmaps_of_a_shorter_text_are_refused() {
        let (text, spans) = records("\n");
        let short = bitmaps(&text[..100]);
        let push = || short.push_prefix_marks((&text, &spans), &PREFIXES, &mut Vec::new());
        let is_refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(push)).is_err();
        assert_eq!(is_refused, has_kernel());
    }
}
