//! Collects the rows of a run for a survey ([`RunSurvey`]), and names the rules that give two URIs the same key.

use super::super::RowKey;
use super::candidate_keys::{CandidateKeys, RungKeys};
use super::options::DedupOptions;
use super::summary::{DedupTotals, RowState};
use crate::canon::{Policy, Rows};
use crate::dedup::seen::{SeenError, SeenStore};
use crate::dedup::{Decisions, DuplicateSurvey, Findings, RowFate, RowGroupSurvey, SurveyRow, SurveyTotals};
use crate::key::{Draft, KeyAlgorithm, RULES, Recipe};
use crate::learn::Spelling;

/// The survey of a run.
pub(super) struct RunSurvey {
    survey: DuplicateSurvey,
    rungs: RungKeys,
    /// The recipe of the compared key, if it has one.
    recipe: Option<Recipe>,
}

impl RunSurvey {
    pub(super) fn new(options: &DedupOptions, policy: &Policy) -> RunSurvey {
        let recipe = match options.key {
            RowKey::Recipe(index) => policy.recipes.get(index).map(|wanted| wanted.recipe.clone()),
            _ => None,
        };
        let survey = DuplicateSurvey::new(options.key != RowKey::Rung);
        RunSurvey { survey, rungs: RungKeys::new(policy), recipe }
    }

    /// Samples the rows of a row group whose first row is number `first_row` of the run.
    pub(super) fn add(&self, candidates: &CandidateKeys, first_row: u64, rows: &Rows, states: &[RowState]) {
        let mut row_group = self.survey.row_group();
        for (row, state) in states.iter().enumerate() {
            let fate = match state {
                RowState::Keep => RowFate::Kept,
                RowState::Duplicate => RowFate::Duplicate,
                RowState::Seen => RowFate::Seen,
                RowState::Pending => RowFate::Pending,
                RowState::KeepFaulty | RowState::DropFaulty => continue,
            };
            let (key, ordinal) = (candidates.key(rows, row), first_row + row as u64);
            if row_group.takes_record(ordinal) {
                row_group.add_record(ordinal, key, rows.uri.get(row), fate);
            }
            // Groups with seen keys are removed at the end: it is not always known here that a key was seen, and the sample must
            // not depend on that.
            if row_group.takes_group(key) {
                self.add_to_group(&mut row_group, rows, row, key);
            }
        }
        self.survey.add(row_group);
    }

    fn add_to_group(&self, row_group: &mut RowGroupSurvey, rows: &Rows, row: usize, key: u128) {
        let rungs = self.rungs.of_row(rows, row);
        row_group.add_to_group(&SurveyRow { key, rungs, uri: rows.uri.get(row), digest: content_digest(rows, row) });
    }

    /// Decides about pending rows. `store` has the keys of earlier jobs.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(super) fn decide_pending(&mut self, decisions: &Decisions, store: Option<&SeenStore>) -> Result<(), SeenError> {
        self.survey.decide_pending(|ordinal| decisions.is_kept(ordinal));
        let Some(store) = store else { return Ok(()) };
        let mut cursor = store.cursor(0)?;
        self.survey.remove_seen(|key| cursor.seek(key))
    }

    /// The findings.
    pub(super) fn finish(self, totals: &DedupTotals) -> Findings {
        let DedupTotals { kept, duplicates, seen, .. } = *totals;
        self.survey.finish(&SurveyTotals { kept, duplicates, seen }, rules(self.recipe))
    }
}

/// A hash of the digest of a successful response. Digests of redirects and errors do not identify the content of the page.
fn content_digest(rows: &Rows, row: usize) -> Option<u64> {
    let status = rows.carried.statuses.get(row).copied().flatten();
    if rows.carried.digests.len() <= row || status.is_some_and(|status| !(200..300).contains(&status)) {
        return None;
    }
    match rows.carried.digests.get(row) {
        b"" => None,
        digest => KeyAlgorithm::Xxh3.key(digest).first_chunk().copied().map(u64::from_be_bytes),
    }
}

/// Returns a function that names the rules that give two URIs the same key. For a recipe these are the rules without which
/// the keys would differ, or `several` if each rule alone can be removed; for equivalences, what the URIs differ in.
fn rules(recipe: Option<Recipe>) -> impl Fn(&[u8], &[u8]) -> Vec<String> {
    let reduced: Vec<(&'static str, Recipe)> = recipe.iter().flat_map(without_each_rule).collect();
    move |a, b| match &recipe {
        Some(recipe) if key_text(recipe, a) != key_text(recipe, b) => vec!["spelling of the record".to_string()],
        Some(_) => {
            let needed = reduced.iter().filter(|(_, recipe)| key_text(recipe, a) != key_text(recipe, b));
            let names: Vec<_> = needed.map(|(name, _)| (*name).to_string()).collect();
            if names.is_empty() { vec!["several".to_string()] } else { names }
        }
        None => differences(a, b),
    }
}

/// The recipe without each of its rules.
fn without_each_rule(recipe: &Recipe) -> Vec<(&'static str, Recipe)> {
    let rules = recipe.rules().iter().map(|index| RULES[index].name);
    rules.filter_map(|rule| Some((rule, Recipe::parse(&format!("{},-{rule}", recipe.name())).ok()?))).collect()
}

fn key_text(recipe: &Recipe, uri: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    recipe.write_key(uri, &mut Draft::default(), &mut out).ok().map(|_| out)
}

/// What two equivalent URIs differ in.
fn differences(a: &[u8], b: &[u8]) -> Vec<String> {
    let spellings = Spelling::of(a).zip(Spelling::of(b));
    let Some((a, b, change)) = spellings.and_then(|(a, b)| Some((a, b, a.change_to(&b)?))) else {
        return vec!["another URL".to_string()];
    };
    let all = [
        ("http = https", a.is_https != b.is_https),
        ("www.", a.authority != b.authority),
        ("final slash", change.slash.is_some()),
    ];
    all.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name.to_string()).collect()
}
