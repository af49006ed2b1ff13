//! The keys of a policy's recipes: one text per row and recipe, and how often each rule changed a row.
//!
//! A recipe reads the text of the record, like the software that it reproduces, and not our URI, in which escapes and dot
//! segments are already normalized. It reads the URI if the record alone is not the URL: if the record was resolved
//! against a base, has no scheme, or is in another charset.

use super::policy::Policy;
use super::rows::{Rows, RuleVariants};
use super::tally::RecipeTally;
use super::text_column::TextColumn;
use crate::iri::{Fault, FaultKind, Flags, find_scheme};
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
            let is_utf8 = policy.charset.is_none();
            let inputs =
                || RecipeInputs { records, uris, flags, faults: faults[fault_at..].iter(), first, at: 0, is_utf8 };
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

/// The texts that recipes read for the rows of a chunk, `None` if the record contains no URL.
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
    is_utf8: bool,
}

impl<'a> Iterator for RecipeInputs<'a> {
    type Item = Option<BufferedText<'a>>;

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let Span { at, len } = *self.records.urls.get(self.at)?;
        let record = BufferedText::within(self.records.text, at as usize, len as usize);
        let row = self.first + self.at;
        self.at += 1;
        if let Some((faulty, fault)) = self.faults.as_slice().first()
            && *faulty as usize == row
        {
            self.faults.next();
            return Some(Some(record).filter(|_| has_url(fault.kind)));
        }
        let is_whole = self.is_utf8 && self.flags[row] & Flags::ASSUMED_SCHEME.0 == 0;
        Some(Some(if is_whole && has_scheme(record.text()) { record } else { self.uris.get(row).into() }))
    }
}

/// Returns whether a record with this fault contains a URL.
fn has_url(fault: FaultKind) -> bool {
    use FaultKind::{MissingColumn, NoUrl, NotOfFormat, Undecodable};
    !matches!(fault, NotOfFormat | NoUrl | MissingColumn | Undecodable)
}

#[inline(always)]
fn has_scheme(text: &[u8]) -> bool {
    text.starts_with(b"https:") || text.starts_with(b"http:") || find_scheme(text).is_some()
}
