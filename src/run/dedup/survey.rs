//! Collects the rows of a run for a survey ([`RunSurvey`]), and names the rules that give two URIs the same key.

use super::super::Ticket;
use super::candidate_keys::{CandidateKeys, first_bits, lower_rungs};
use super::job::SURVEY_STAGE;
use super::options::{DedupKey, DedupOptions};
use crate::canon::{Policy, Rows};
use crate::dedup::{DuplicateSurvey, Findings, RowGroupSurvey, SurveyRow};
use crate::key::{Draft, KeyAlgorithm, RULES, Recipe};
use crate::learn::Spelling;

/// The survey of a run.
pub(super) struct RunSurvey {
    survey: DuplicateSurvey,
    candidates: CandidateKeys,
    lower_rungs: [Option<usize>; 2],
}

impl RunSurvey {
    pub(super) fn new(options: &DedupOptions, policy: &Policy) -> RunSurvey {
        RunSurvey {
            survey: DuplicateSurvey::default(),
            candidates: CandidateKeys::new(options, policy),
            lower_rungs: lower_rungs(policy),
        }
    }

    /// Adds the rows of a row group, in the order of row groups; `None` if the run was stopped.
    pub(super) fn add(&self, ticket: &Ticket<'_>, rows: &Rows) -> Option<()> {
        let row_group = self.survey_rows(rows);
        ticket.pass(SURVEY_STAGE, || self.survey.add(row_group))
    }

    /// The findings.
    pub(super) fn finish(self, key: DedupKey, policy: &Policy) -> Findings {
        self.survey.finish(rules(key, policy))
    }

    /// Surveys the rows without a fault.
    fn survey_rows(&self, rows: &Rows) -> RowGroupSurvey {
        let mut row_group = RowGroupSurvey::default();
        let mut faults = rows.faults.iter().map(|(row, _)| *row as usize).peekable();
        for row in 0..rows.len() {
            if faults.next_if_eq(&row).is_some() {
                continue;
            }
            let own = &rows.key[row];
            let lower = |index: Option<usize>| first_bits(index.map_or(own, |index| &rows.more_keys[index][row]));
            let [simple, syntax] = self.lower_rungs.map(lower);
            let rungs = [simple, syntax, first_bits(own)];
            let key = self.candidates.key(rows, row);
            let row = SurveyRow { key, rungs, uri: rows.uri.get(row), digest: content_digest(rows, row) };
            row_group.add(&self.survey, &row);
        }
        row_group
    }
}

/// A hash of the digest of a successful response. Digests of redirects and errors say nothing about the content.
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
fn rules(key: DedupKey, policy: &Policy) -> impl Fn(&[u8], &[u8]) -> Vec<String> {
    let recipe = match key {
        DedupKey::Recipe(index) => policy.recipes.get(index).map(|wanted| wanted.recipe.clone()),
        _ => None,
    };
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
