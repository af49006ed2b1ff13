//! The keys of a policy's recipes: one text per row and recipe, and how often each rule changed a row.
//!
//! A recipe reads the text of the record, like the software that it reproduces, and not our URI, in which escapes and dot
//! segments are already normalized. White space that the policy trims is not part of it. It reads the URI if the record alone
//! is not the URL: if the record was resolved against a base, has no scheme, was repaired otherwise, is not in UTF-8, or has
//! a query in the charset of its document.

use super::base::base_of;
use super::policy::Policy;
use super::record_text::{CharsetLabels, RecordCharsets};
use super::rows::{Rows, RuleVariants};
use super::tally::RecipeTally;
use super::text_column::TextColumn;
use crate::encoding::Charset;
use crate::iri::{Fault, FaultKind, Flags, Parts, Scheme, find_scheme, trimmed_range};
use crate::kernel::{BufferedText, Span};
use crate::key::{Draft, Recipe, RecipeKeys};
use crate::record::Records;

/// Evaluates the recipes of a policy; keeps its scratch memory.
#[derive(Debug, Default)]
pub(super) struct RecipeEvaluator {
    draft: Draft,
    /// A key that is not needed.
    key: Vec<u8>,
}

impl RecipeEvaluator {
    /// Appends the keys' texts of `records`, whose rows are the last ones of `rows`.
    pub(super) fn append(&mut self, policy: &Policy, records: &Records<'_>, rows: &mut Rows) {
        if policy.recipes.is_empty() {
            return;
        }
        rows.recipe_texts.resize_with(policy.recipes.len(), TextColumn::default);
        rows.tally.recipes.resize_with(policy.recipes.len(), RecipeTally::default);
        let variants = if policy.rule_variants { policy.recipes.len() } else { 0 };
        rows.rule_variants.resize_with(variants, RuleVariants::default);
        let first = rows.len() - records.urls.len();
        let Rows { uri: uris, faults, flags, recipe_texts, rule_variants, tally, .. } = rows;
        let fault_at = faults.partition_point(|(row, _)| (*row as usize) < first);
        for (place, column) in policy.recipes.iter().enumerate() {
            let (texts, tally) = (&mut recipe_texts[place], &mut tally.recipes[place]);
            let inputs = || {
                let faults = faults[fault_at..].iter();
                RecipeInputs { records, uris, flags, faults, first, at: 0, choice: SourceChoice::new(policy, records) }
            };
            let mut keys = RecipeKeys {
                texts: &mut texts.values,
                ends: &mut texts.offsets,
                count: &mut tally.keys,
                applied: &mut tally.applied,
            };
            column.recipe.write_keys(inputs(), &mut self.draft, &mut keys);
            if let Some(variants) = rule_variants.get_mut(place) {
                let sound = (first..).zip(inputs()).filter(|(row, _)| !uris.get(*row).is_empty());
                let urls = sound.filter_map(|(row, url)| Some((row as u32, url?)));
                urls.for_each(|(row, url)| self.append_variants(&column.recipe, (row, url.text()), variants));
            }
        }
    }

    /// Appends the keys of a URL without each of the rules that change it.
    fn append_variants(&mut self, recipe: &Recipe, (row, url): (u32, &[u8]), variants: &mut RuleVariants) {
        self.key.clear();
        let Ok(applied) = recipe.write_key(url, &mut self.draft, &mut self.key) else { return };
        for rule in applied.iter() {
            // Without a key, the text is empty.
            let _ = recipe.write_key_without(rule, url, &mut self.draft, &mut variants.texts.values);
            variants.texts.end();
            variants.places.push((row, rule as u8));
        }
    }
}

/// The texts that recipes read for the rows of a chunk, `None` if the record contains no URL, or one that is too long.
struct RecipeInputs<'a> {
    records: &'a Records<'a>,
    uris: &'a TextColumn,
    flags: &'a [u32],
    /// The faults of the rows that have not been read.
    faults: std::slice::Iter<'a, (u32, Fault)>,
    /// The row of the first record.
    first: usize,
    /// The number of the next record.
    at: usize,
    choice: SourceChoice<'a>,
}

/// Flags of records whose text alone is not the URL: they have an assumed scheme, or were repaired by more than trimming.
const CHANGED: u32 = Flags::ASSUMED_SCHEME.0 | Flags::CHARACTER_REFERENCE.0 | Flags::INNER_SPACE.0 | Flags::BACKSLASH.0;

/// Decides whether recipes read the record or the URI of a row whose record has a scheme and was not repaired.
struct SourceChoice<'a> {
    policy: &'a Policy,
    /// Recipes read every record of the chunk: the records and their queries are in UTF-8, and no record is relative.
    reads_all_records: bool,
    labels: CharsetLabels,
    /// The charsets of records without labels.
    common: RecordCharsets,
}

impl<'a> SourceChoice<'a> {
    fn new(policy: &'a Policy, records: &Records<'_>) -> SourceChoice<'a> {
        let common = RecordCharsets::common(policy, records);
        let are_utf8 = !records.has_charset_labels() && common.query.is_none() && is_utf8(common.text);
        let may_be_relative = policy.profile.is_whatwg() && (policy.base.is_some() || !records.bases.is_empty());
        let reads_all_records = are_utf8 && !may_be_relative;
        SourceChoice { policy, reads_all_records, labels: CharsetLabels::default(), common }
    }

    /// Returns whether recipes read record `i`, which has no fault, and not its URI.
    #[inline(always)]
    fn reads_record(&mut self, records: &Records<'_>, i: usize) -> bool {
        self.reads_all_records || self.is_utf8_and_absolute(records, i)
    }

    /// Returns whether record `i`, which has no fault, is in UTF-8, its query is ASCII or not in a legacy charset, and it is not
    /// relative.
    #[cold]
    fn is_utf8_and_absolute(&mut self, records: &Records<'_>, i: usize) -> bool {
        let Ok(charsets) = self.labels.charsets(records, i, self.common) else { return false };
        let text = records.urls[i].of(records.text);
        let has_ascii_query = || Parts::split(text).query(text).is_none_or(<[u8]>::is_ascii);
        let base = Some(base_of(records, i)).filter(|base| !base.is_empty()).or(self.policy.base.as_deref());
        is_utf8(charsets.text)
            && (charsets.query.is_none_or(Charset::is_unicode) || has_ascii_query())
            && !(self.policy.profile.is_whatwg() && base.is_some_and(|base| is_relative(text, base)))
    }
}

/// Returns whether a browser reads `text`, which has a scheme, as relative to `base`: it has no authority, and the scheme of
/// the base, which is special (URL Standard, *special relative or authority state* and *file state*).
fn is_relative(text: &[u8], base: &[u8]) -> bool {
    let split = |text| find_scheme(text).map(|len| (Scheme::from_name(&text[..len]), &text[len + 1..]));
    let (Some((scheme, rest)), Some((base_scheme, _))) = (split(text), split(base)) else { return false };
    scheme.is_special() && scheme == base_scheme && !matches!(rest, [b'/' | b'\\', b'/' | b'\\', ..])
}

/// Returns whether text in this charset is in UTF-8, as text without a charset is.
fn is_utf8(charset: Option<Charset>) -> bool {
    charset.is_none_or(|charset| charset == Charset::UTF_8)
}

/// Returns the record at `at..at + len` of `text` without the white space at its ends.
#[cold]
fn trimmed(text: &[u8], Span { at, len }: Span) -> BufferedText<'_> {
    let start = at as usize;
    let inner = trimmed_range(&text[start..start + len as usize]);
    BufferedText::within(text, start + inner.start, inner.len())
}

impl<'a> Iterator for RecipeInputs<'a> {
    type Item = Option<BufferedText<'a>>;

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let span @ Span { at, len } = *self.records.urls.get(self.at)?;
        let mut record = BufferedText::within(self.records.text, at as usize, len as usize);
        let (i, row) = (self.at, self.first + self.at);
        self.at += 1;
        if let Some((faulty, fault)) = self.faults.as_slice().first()
            && *faulty as usize == row
        {
            self.faults.next();
            return Some(Some(record).filter(|_| has_readable_url(fault.kind)));
        }
        let flags = self.flags[row];
        if flags & Flags::TRIMMED.0 != 0 {
            record = trimmed(self.records.text, span);
        }
        let reads_record =
            flags & CHANGED == 0 && has_scheme(record.text()) && self.choice.reads_record(self.records, i);
        Some(Some(if reads_record { record } else { self.uris.get(row).into() }))
    }
}

/// Returns whether a record with this fault contains a URL that recipes and the search for misleading properties read. They do not
/// read one that is too long, because lists of its parts could take many times its length.
pub(super) fn has_readable_url(fault: FaultKind) -> bool {
    use FaultKind::{MissingColumn, NoUrl, NotOfFormat, TooLong, Undecodable};
    !matches!(fault, NotOfFormat | NoUrl | MissingColumn | TooLong | Undecodable)
}

#[inline(always)]
fn has_scheme(text: &[u8]) -> bool {
    text.starts_with(b"https:") || text.starts_with(b"http:") || find_scheme(text).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canon::{Canonicalizer, RecipeColumn};
    use crate::iri::{Backslashes, CharacterReferences, PreprocessOptions, Spaces};
    use crate::kernel::Bitmaps;
    use crate::record::RecordBuffer;

    /// Returns what the recipe `plain` makes of records, each with the labels of its charset and that of its document.
    fn plain_keys(policy: Policy, records: &[(&[u8], &str, &str)]) -> Vec<String> {
        let recipes = vec![RecipeColumn { column: "rules", recipe: Recipe::parse("plain").unwrap() }];
        let (mut buffer, mut bitmaps, mut rows) = (RecordBuffer::default(), Bitmaps::default(), Rows::default());
        for (url, charset, query_charset) in records {
            buffer.push_url(url);
            buffer.push_charset(charset.as_bytes());
            buffer.push_query_charset(query_charset.as_bytes());
        }
        let records = buffer.classified_records(&mut bitmaps);
        Canonicalizer::new(&Policy { recipes, ..policy }).append(&records, &bitmaps, &mut rows);
        assert!(rows.faults.is_empty());
        (0..rows.len()).map(|row| rows.recipe_texts[0].get(row).escape_ascii().to_string()).collect()
    }

    #[test]
    fn recipes_read_the_uri_of_records_in_other_charsets() {
        let cases: [(&[u8], _, _, _); 9] = [
            (b"http://h/%7e\xE9", "latin1", "", "http://h/~%C3%A9"),
            (b"http://h/%7e", "latin1", "", "http://h/~"),
            (b"http://h/%7e\xC3\xA9", "utf-8", "", r"http://h/%7e\xc3\xa9"),
            (b"http://h/%7e\xC3\xA9", "", "", r"http://h/%7e\xc3\xa9"),
            (b"http://h/%7e?\xC3\xA9", "", "latin1", "http://h/~?%E9"),
            (b"http://h/%7e\xC3\xA9?a", "", "latin1", r"http://h/%7e\xc3\xa9?a"),
            (b"http://h/%7e?\xC3\xA9", "", "utf-8", r"http://h/%7e?\xc3\xa9"),
            (b"http://h/%7e?a#\xC3\xA9", "", "latin1", r"http://h/%7e?a#\xc3\xa9"),
            (b"http://h/%7e#?\xC3\xA9", "", "latin1", r"http://h/%7e#?\xc3\xa9"),
        ];
        let records = cases.map(|(url, charset, query_charset, _)| (url, charset, query_charset));
        assert_eq!(plain_keys(Policy::default(), &records), cases.map(|case| case.3));
        let policy = Policy { query_charset: Charset::named("latin1"), ..Policy::default() };
        assert_eq!(plain_keys(policy, &[(b"http://h/%7e?\xC3\xA9", "", "")]), ["http://h/~?%E9"]);
        let policy = Policy { charset: Charset::named("latin1"), ..Policy::default() };
        assert_eq!(plain_keys(policy, &[(b"http://h/%7e\xE9", "", "")]), ["http://h/~%C3%A9"]);
        // The charset UTF-8 changes no text, whether the job or a label names it.
        let policy = Policy { charset: Charset::named("utf-8"), ..Policy::default() };
        let records: [(&[u8], _, _); 2] = [(b"http://h/%7e\xC3\xA9", "", ""), (b"http://h/%7e\xE9", "latin1", "")];
        assert_eq!(plain_keys(policy, &records), [r"http://h/%7e\xc3\xa9", "http://h/~%C3%A9"]);
    }

    /// For a browser, a URL with the scheme of its base may be relative.
    #[test]
    #[cfg(feature = "whatwg")]
    fn recipes_read_the_uri_of_relative_urls_with_a_scheme() {
        let urls =
            ["http:%7e", "HTTP:/%7e", "http:\\\\g/%7e", "http://g/%7e", "https:%7e", "mailto:%7e", "file:%7e", "%7e"];
        let keys = |base: &str| {
            let (profile, base) = (crate::iri::Profile::named("whatwg").unwrap(), Some(base.as_bytes().to_vec()));
            let policy = Policy { profile, base, ..Policy::default() };
            plain_keys(policy, &urls.map(|url| (url.as_bytes(), "", ""))).join(" ")
        };
        let others = r"http:\\\\g/%7e http://g/%7e https:%7e mailto:%7e";
        assert_eq!(keys("HTTP://h/a/b"), format!("http://h/a/%7e http://h/%7e {others} file:%7e http://h/a/%7e"));
        assert_eq!(keys("file:///a/b"), format!("http:%7e HTTP:/%7e {others} file:///a/%7e file:///a/%7e"));
    }

    #[test]
    fn recipes_read_the_uri_of_repaired_records() {
        let preprocess = PreprocessOptions {
            character_references: CharacterReferences::Html,
            is_trimmed: true,
            spaces: Spaces::Removed,
            backslashes: Backslashes::Slash,
        };
        let cases: [(&[u8], _); 8] = [
            (b"http://h/%7e?a&amp;b", "http://h/~?a&b"),
            (b"http://h/%7e ", "http://h/%7e"),
            (b" http://h/%7e", "http://h/%7e"),
            (b"\t http://h/%7e \r", "http://h/%7e"),
            (b" http://h/%7e b ", "http://h/~b"),
            (b"http://h/%7e b", "http://h/~b"),
            (b"http://h\\%7e", "http://h/~"),
            (b"http://h/%7e", "http://h/%7e"),
        ];
        let policy = Policy { preprocess, ..Policy::default() };
        assert_eq!(plain_keys(policy, &cases.map(|(url, _)| (url, "", ""))), cases.map(|case| case.1));
    }
}
