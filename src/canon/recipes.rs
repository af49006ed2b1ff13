//! Keys of recipes for rows. In: records and the rows just made of them. Out: one text a row and recipe, and how often
//! each rule fired.
//!
//! A recipe reads what the record says, as the program did that it follows: not our URI, whose escapes and dots are
//! settled already. Only where the record is a reference that was resolved, stood without its scheme, or is in another
//! charset, is there nothing else to read than the URI.

use super::{Policy, Rows, TextColumn};
use crate::iri::{Fault, FaultKind, find_scheme};
use crate::key::{Draft, RULES, Recipe};
use crate::record::Records;

/// A recipe, and which columns want it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecipeColumn {
    /// What columns call it: the name of a recipe, or `rules` for one that was put together.
    pub column: &'static str,
    /// It.
    pub recipe: Recipe,
}

impl RecipeColumn {
    /// Name and version.
    pub fn describe(&self) -> String {
        format!("{}@{}", self.recipe.name(), self.recipe.version())
    }
}

/// What a recipe did, summed over rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecipeTally {
    /// Rows for which it gave a key.
    pub keys: u64,
    /// Rows by rule that changed them, indexed as [`RULES`].
    pub fired: Vec<u64>,
}

impl Default for RecipeTally {
    fn default() -> RecipeTally {
        RecipeTally { keys: 0, fired: vec![0; RULES.len()] }
    }
}

impl RecipeTally {
    /// Adds what another worker counted.
    pub fn add(&mut self, other: &RecipeTally) {
        self.keys += other.keys;
        self.fired.iter_mut().zip(&other.fired).for_each(|(mine, theirs)| *mine += theirs);
    }
}

/// Makes the keys of a policy's recipes; keeps its scratch.
#[derive(Debug, Default)]
pub(super) struct Cook {
    draft: Draft,
}

impl Cook {
    /// Appends the texts of `records`, whose rows begin at row `first`.
    pub(super) fn append(&mut self, policy: &Policy, records: &Records<'_>, first: usize, rows: &mut Rows) {
        if policy.recipes.is_empty() {
            return;
        }
        rows.recipe_texts.resize_with(policy.recipes.len(), TextColumn::new);
        rows.tally.recipes.resize_with(policy.recipes.len(), RecipeTally::default);
        let fault_at = rows.faults.partition_point(|(row, _)| (*row as usize) < first);
        for (place, wanted) in policy.recipes.iter().enumerate() {
            let (texts, tally) = (&mut rows.recipe_texts[place], &mut rows.tally.recipes[place]);
            let mut faults = rows.faults[fault_at..].iter().peekable();
            for (i, span) in records.urls.iter().enumerate() {
                let row = first + i;
                let fault = faults.next_if(|(at, _)| *at as usize == row).map(|(_, fault)| *fault);
                let record = span.of(records.text);
                if let Some(url) = readable(policy, record, rows.uri.get(row), fault)
                    && let Ok(fired) = wanted.recipe.write_key(url, &mut self.draft, &mut texts.values)
                {
                    tally.keys += 1;
                    fired.iter().for_each(|rule| tally.fired[rule] += 1);
                }
                texts.end();
            }
        }
    }
}

/// What a recipe reads of a row, if there is anything.
fn readable<'a>(policy: &Policy, record: &'a [u8], uri: &'a [u8], fault: Option<Fault>) -> Option<&'a [u8]> {
    match fault.map(|fault| fault.kind) {
        Some(FaultKind::NotOfFormat | FaultKind::NoUrl | FaultKind::MissingColumn | FaultKind::Undecodable) => None,
        Some(_) => Some(record),
        None if policy.charset.is_some() || find_scheme(record).is_none() => Some(uri),
        None => Some(record),
    }
}
