//! Rules about content as rows of the table of equivalences, and back.
//!
//! A part, which `irikey learn --part` writes, has the rules of its registered domains, and rows of votes: how many domains
//! agree on a rule for all hosts.

use arrow::array::RecordBatch;
use arrow::error::ArrowError;

use super::equivalences::EquivalenceRows;
use super::row_cells::RowCells;
use crate::learn::content::{
    ContentRule, EVERYWHERE, JudgedRule, PathContext, RuleRefusal, ScopeRule, ScopedRule, Votes,
};

/// The greatest count of a part that is read, so that sums of counts do not overflow.
const MAX_COUNT: u64 = 1 << 48;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PartRow {
    /// A rule of a host or a registered domain, learned or refused.
    Rule(ScopeRule),
    /// The votes of registered domains on a rule for all hosts.
    Votes(ScopedRule, Votes),
}

impl EquivalenceRows {
    fn rule(&mut self, ScopeRule { scope, judged, is_by_hand }: &ScopeRule) {
        self.no_keys();
        let JudgedRule { rule, support, counter, merged, lower_bound, .. } = judged;
        let (name, context) = (rule.rule.to_string(), rule.context.to_string());
        let (kind, how) = judged.refusal.map_or(("rule", "content"), |refusal| ("refused", refusal.name()));
        let how = match () {
            () if *is_by_hand => "hand",
            () if judged.needs_canonical => "content+canonical",
            () => how,
        };
        let context = Some(context.as_bytes()).filter(|context| !context.is_empty());
        let (kind, how, name) = (Some(kind.as_bytes()), Some(how.as_bytes()), Some(name.as_bytes()));
        self.texts([kind, None, None, how, None, None, Some(scope), name, context]);
        self.counts([None, None, Some(*support), Some(*counter), Some(*merged)]);
        let confidence = *support as f64 / (support + counter).max(1) as f64;
        self.shares([Some(confidence), Some(*lower_bound)]);
        self.examples([&judged.examples, &judged.counter_examples]);
    }

    fn votes(&mut self, rule: &ScopedRule, votes: &Votes) {
        self.no_keys();
        let (name, context) = (rule.rule.to_string(), rule.context.to_string());
        let context = Some(context.as_bytes()).filter(|context| !context.is_empty());
        self.texts([Some(b"votes"), None, None, None, None, None, Some(EVERYWHERE), Some(name.as_bytes()), context]);
        let Votes { agree, disagree, support, counter, merged } = *votes;
        self.counts([agree, disagree, support, counter, merged].map(Some));
        self.shares([None; 2]);
        self.examples([&[]; 2]);
    }
}

/// Returns the host and the rule in a row; `None` if it is not the row of an applied rule about content.
pub(crate) fn applied_rule(batch: &RecordBatch, row: usize) -> Option<(&[u8], ScopedRule)> {
    let cells = RowCells { batch, row };
    let rule = ContentRule::parse(cells.text("pattern").filter(|_| cells.text("kind") == Some("rule"))?)?;
    let context = PathContext::parse(cells.text("context").unwrap_or_default())?;
    Some((cells.text("host")?.as_bytes(), ScopedRule { rule, context }))
}

pub(crate) fn rule_batch(rules: &[ScopeRule]) -> Result<RecordBatch, ArrowError> {
    let mut rows = EquivalenceRows::default();
    rules.iter().for_each(|rule| rows.rule(rule));
    rows.finish()
}

pub(crate) fn vote_batch<'v>(
    votes: impl Iterator<Item = (&'v ScopedRule, &'v Votes)>,
) -> Result<RecordBatch, ArrowError> {
    let mut rows = EquivalenceRows::default();
    votes.for_each(|(rule, votes)| rows.votes(rule, votes));
    rows.finish()
}

/// Returns row `row` of a part.
///
/// # Errors
/// What is wrong with the row.
pub(crate) fn part_row(batch: &RecordBatch, row: usize) -> Result<PartRow, String> {
    let cells = RowCells { batch, row };
    let unknown = |name: &str| format!("column {name} is missing or invalid");
    let rule = cells.text("pattern").and_then(ContentRule::parse).ok_or_else(|| unknown("pattern"))?;
    let context = PathContext::parse(cells.text("context").unwrap_or_default()).ok_or_else(|| unknown("context"))?;
    let rule = ScopedRule { rule, context };
    let count = |name: &str| cells.count(name).filter(|count| *count <= MAX_COUNT).ok_or_else(|| unknown(name));
    let (support, counter, merged) = (count("support")?, count("counter")?, count("merged")?);
    let (kind, how) = (cells.text("kind").unwrap_or_default(), cells.text("how").unwrap_or_default());
    let refusal = match kind {
        "votes" => {
            let (agree, disagree) = (count("records")?, count("record")?);
            return Ok(PartRow::Votes(rule, Votes { agree, disagree, support, counter, merged }));
        }
        "rule" => None,
        "refused" => Some(RuleRefusal::named(how).ok_or_else(|| unknown("how"))?),
        _ => return Err(format!("kind is {kind:?}, expected rule, refused or votes")),
    };
    let uris = |name| cells.texts(name).into_iter().map(String::into_bytes).collect();
    let judged = JudgedRule {
        rule,
        support,
        counter,
        merged,
        lower_bound: cells.share("lower_bound").ok_or_else(|| unknown("lower_bound"))?,
        needs_canonical: how == "content+canonical",
        refusal,
        examples: uris("examples"),
        counter_examples: uris("counter_examples"),
    };
    let scope = cells.text("host").filter(|host| !host.is_empty()).ok_or_else(|| unknown("host"))?;
    Ok(PartRow::Rule(ScopeRule::learned(scope.as_bytes().to_vec(), judged)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_parts_are_read_as_they_were_written() {
        let rule = |text: &str, context: &str| ScopedRule {
            rule: ContentRule::parse(text).unwrap(),
            context: PathContext::parse(context).unwrap(),
        };
        let judged = |rule: ScopedRule, refusal| JudgedRule {
            rule,
            support: 7,
            counter: 1,
            merged: 9,
            lower_bound: 0.123456789,
            needs_canonical: false,
            refusal,
            examples: vec![b"http://a/".to_vec(), b"http://a/?s".to_vec()],
            counter_examples: Vec::new(),
        };
        let rules = [
            ScopeRule::learned(b"*.b.c".to_vec(), judged(rule("ignore-parameter sid", ""), None)),
            ScopeRule::learned(b"a.b.c".to_vec(), judged(rule("ignore-query", "*.css"), Some(RuleRefusal::Support))),
            ScopeRule::learned(
                b"a.b.c".to_vec(),
                JudgedRule { needs_canonical: true, ..judged(rule("ignore-final-slash", "/x/"), None) },
            ),
        ];
        let batch = rule_batch(&rules).unwrap();
        let read: Vec<_> = (0..3).map(|row| part_row(&batch, row).unwrap()).collect();
        assert_eq!(read, rules.map(PartRow::Rule));
        let votes = Votes { agree: 1, disagree: 2, support: 3, counter: 4, merged: 5 };
        let rule = rule("ignore-parameter q", "");
        let batch = vote_batch([(&rule, &votes)].into_iter()).unwrap();
        assert_eq!(part_row(&batch, 0).unwrap(), PartRow::Votes(rule.clone(), votes));
        let batch = vote_batch([(&rule, &Votes { support: u64::MAX, ..votes })].into_iter()).unwrap();
        assert_eq!(part_row(&batch, 0).unwrap_err(), "column support is missing or invalid");
    }
}
