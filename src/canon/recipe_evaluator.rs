//! The keys of a policy's recipes: one text per row and recipe, and how often each rule changed a row.
//!
//! A recipe reads the text of the record, like the software that it reproduces, and not our URI, in which escapes and dot
//! segments are already normalized. It reads the URI if the record alone is not the URL: if the record was resolved
//! against a base, has no scheme, or is in another charset.

use super::policy::Policy;
use super::rows::Rows;
use super::tally::RecipeTally;
use super::text_column::TextColumn;
use crate::iri::{Fault, FaultKind, Flags, find_scheme};
use crate::key::Draft;
use crate::record::Records;

/// Evaluates the recipes of a policy; keeps its scratch memory.
#[derive(Debug, Default)]
pub(super) struct RecipeEvaluator {
    draft: Draft,
}

impl RecipeEvaluator {
    /// Appends the keys' texts of `records`, whose rows are the last ones of `rows`.
    pub(super) fn append(&mut self, policy: &Policy, records: &Records<'_>, rows: &mut Rows) {
        if policy.recipes.is_empty() {
            return;
        }
        rows.recipe_texts.resize_with(policy.recipes.len(), TextColumn::new);
        rows.tally.recipes.resize_with(policy.recipes.len(), RecipeTally::default);
        let first = rows.len() - records.urls.len();
        let fault_at = rows.faults.partition_point(|(row, _)| (*row as usize) < first);
        for (place, column) in policy.recipes.iter().enumerate() {
            let (texts, tally) = (&mut rows.recipe_texts[place], &mut rows.tally.recipes[place]);
            let mut faults = rows.faults[fault_at..].iter().peekable();
            for (i, span) in records.urls.iter().enumerate() {
                let row = first + i;
                let fault = faults.next_if(|(at, _)| *at as usize == row).map(|(_, fault)| *fault);
                let record = span.of(records.text);
                let has_assumed_scheme = rows.flags[row] & Flags::ASSUMED_SCHEME.0 != 0;
                let is_whole = policy.charset.is_none() && !has_assumed_scheme;
                if let Some(url) = recipe_input(is_whole, record, rows.uri.get(row), fault)
                    && let Ok(applied) = column.recipe.write_key(url, &mut self.draft, &mut texts.values)
                {
                    tally.keys += 1;
                    applied.iter().for_each(|rule| tally.applied[rule] += 1);
                }
                texts.end();
            }
        }
    }
}

/// Returns the text that recipes read for a row, or `None` if the record contains no URL. If `is_whole`, the record is in
/// UTF-8 and got no scheme.
fn recipe_input<'a>(is_whole: bool, record: &'a [u8], uri: &'a [u8], fault: Option<Fault>) -> Option<&'a [u8]> {
    match fault.map(|fault| fault.kind) {
        Some(FaultKind::NotOfFormat | FaultKind::NoUrl | FaultKind::MissingColumn | FaultKind::Undecodable) => None,
        Some(_) => Some(record),
        None if !is_whole || find_scheme(record).is_none() => Some(uri),
        None => Some(record),
    }
}
