//! Rows as a survey looks at them, and the names of what makes two URIs one.

use super::super::Ticket;
use super::competing::Competing;
use super::job::SURVEY_LANE;
use super::{DedupKey, DedupOptions};
use crate::canon::{Policy, Rows, Rung};
use crate::dedup::{Findings, Look, SpanLook, Survey, number};
use crate::key::{Draft, KeyAlgorithm, KeyBytes, RULES, Recipe};
use crate::learn::Spelling;

/// How rows of a run are looked at.
pub struct Surveyor {
    survey: Survey,
    competing: Competing,
    /// Which of the further keys are those of `simple` and `syntax`.
    rungs: [Option<usize>; 2],
}

impl Surveyor {
    pub fn new(wanted: &DedupOptions, policy: &Policy) -> Surveyor {
        let rung = |rung| policy.more_keys.iter().position(|key| *key == rung);
        Surveyor {
            survey: Survey::default(),
            competing: Competing::new(wanted, policy),
            rungs: [rung(Rung::Simple), rung(Rung::Syntax)],
        }
    }

    /// Takes in what a span's rows show, in its turn; `None` if the run is stopped.
    pub fn look(&self, ticket: &Ticket<'_>, rows: &Rows) -> Option<()> {
        let span = self.span(rows);
        ticket.pass(SURVEY_LANE, || self.survey.add(span))
    }

    /// What was found.
    pub fn finish(self, key: DedupKey, policy: &Policy) -> Findings {
        self.survey.finish(rules(key, policy))
    }

    /// What a span's rows show; those with a fault show nothing.
    fn span(&self, rows: &Rows) -> SpanLook {
        let mut span = SpanLook::default();
        let mut faults = rows.faults.iter().map(|(row, _)| *row as usize).peekable();
        let first_bits = |key: &KeyBytes| (number(key) >> 64) as u64;
        for row in 0..rows.len() {
            if faults.next_if_eq(&row).is_some() {
                continue;
            }
            let own = &rows.key[row];
            let [simple, syntax] =
                self.rungs.map(|place| first_bits(place.map_or(own, |place| &rows.more_keys[place][row])));
            let rungs = [simple, syntax, first_bits(own)];
            let key = self.competing.key(rows, row);
            span.add(&self.survey, &Look { key, rungs, uri: rows.uri.get(row), digest: digest(rows, row) });
        }
        span
    }
}

/// Of what was fetched, not of a notice that it is elsewhere.
fn digest(rows: &Rows, row: usize) -> Option<u64> {
    let status = rows.carried.statuses.get(row).copied().flatten();
    if rows.carried.digests.len() <= row || status.is_some_and(|status| !(200..300).contains(&status)) {
        return None;
    }
    match rows.carried.digests.get(row) {
        b"" => None,
        digest => KeyAlgorithm::Xxh3.key(digest).first_chunk().copied().map(u64::from_be_bytes),
    }
}

/// The rules that make one of two URIs: those of a recipe without which they would be two, `several` if any of several
/// would do; of the protocol rung what the two differ in.
fn rules(key: DedupKey, policy: &Policy) -> impl Fn(&[u8], &[u8]) -> Vec<String> {
    let recipe = match key {
        DedupKey::Recipe(place) => policy.recipes.get(place).map(|wanted| wanted.recipe.clone()),
        _ => None,
    };
    let less: Vec<(&'static str, Recipe)> = recipe.iter().flat_map(without_each).collect();
    move |a, b| match &recipe {
        Some(recipe) if text(recipe, a) != text(recipe, b) => vec!["spelling of the record".to_string()],
        Some(_) => {
            let alone = less.iter().filter(|(_, recipe)| text(recipe, a) != text(recipe, b));
            let names: Vec<_> = alone.map(|(name, _)| (*name).to_string()).collect();
            if names.is_empty() { vec!["several".to_string()] } else { names }
        }
        None => changes(a, b),
    }
}

fn without_each(recipe: &Recipe) -> Vec<(&'static str, Recipe)> {
    let rules = recipe.rules().iter().map(|index| RULES[index].name);
    rules.filter_map(|rule| Some((rule, Recipe::parse(&format!("{},-{rule}", recipe.name())).ok()?))).collect()
}

fn text(recipe: &Recipe, uri: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    recipe.write_key(uri, &mut Draft::default(), &mut out).ok().map(|_| out)
}

fn changes(a: &[u8], b: &[u8]) -> Vec<String> {
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
