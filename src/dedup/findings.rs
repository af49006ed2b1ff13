//! What a survey found: [`Findings`], and how a group adds to them.

use super::sample::{Group, Member};
use std::collections::BTreeMap;

/// Examples of each rule.
pub(super) const EXAMPLES: usize = 3;

/// Groups of so many rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SizeClass {
    /// Least number of rows.
    pub from: u64,
    /// Largest number of rows.
    pub to: u64,
    /// Groups.
    pub groups: f64,
    /// Rows in them.
    pub rows: f64,
}

/// What a rule did that makes several URIs one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RuleFindings {
    /// URIs that it made one with the first URI of their group.
    pub merged: f64,
    /// Those among them in the sample where both have a digest.
    pub compared: u64,
    /// Those whose digests have none in common.
    pub differing: u64,
    /// Some of them.
    pub examples: Vec<(String, String)>,
}

/// A host and its records.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostFindings {
    /// The host.
    pub host: String,
    /// Its records: at least so many.
    pub records: u64,
    /// Its duplicates.
    pub duplicates: f64,
}

/// What was found. Numbers that are not whole are estimates from a sample, unless `share` is 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// The share of all keys that the sample holds.
    pub share: f64,
    /// Groups in it.
    pub sampled: u64,
    /// By their size.
    pub sizes: Vec<SizeClass>,
    /// Duplicates by the lowest rung that makes them: `simple`, `syntax`, the policy's rung, and the key itself.
    pub by_step: [f64; 4],
    /// What made URIs one, by rule.
    pub rules: BTreeMap<String, RuleFindings>,
    /// URIs that have several rows with digests, and those where these differ: what pages do by themselves.
    pub repeated: (u64, u64),
    /// Those with the most records.
    pub hosts: Vec<HostFindings>,
    /// Records by which `HostFindings::records` may be too low.
    pub host_error: u64,
}

impl Findings {
    pub(super) fn add(&mut self, group: &Group, share: f64, rules: &impl Fn(&[u8], &[u8]) -> Vec<String>) {
        let to = group.rows.next_power_of_two();
        let class = match self.sizes.iter().position(|class| class.to == to) {
            Some(at) => &mut self.sizes[at],
            None => {
                let at = self.sizes.partition_point(|class| class.to < to);
                self.sizes.insert(at, SizeClass { from: to / 2 + 1, to, ..SizeClass::default() });
                &mut self.sizes[at]
            }
        };
        class.groups += 1.0 / share;
        class.rows += group.rows as f64 / share;
        let [simple, syntax, members] =
            [group.simple.len(), group.syntax.len(), group.members.len()].map(|count| count as u64);
        let steps = [group.rows - simple, simple.saturating_sub(syntax), syntax.saturating_sub(members), members - 1];
        self.by_step.iter_mut().zip(steps).for_each(|(all, count)| *all += count as f64 / share);
        let mut members: Vec<&Member> = group.members.values().collect();
        members.sort_unstable_by(|a, b| a.uri.cmp(&b.uri));
        for member in members.iter().filter(|member| member.digested > 1) {
            self.repeated.0 += 1;
            self.repeated.1 += u64::from(member.digests.len() > 1);
        }
        for member in &members[1..] {
            self.compare(members[0], member, share, rules);
        }
    }

    fn compare(&mut self, first: &Member, member: &Member, share: f64, rules: &impl Fn(&[u8], &[u8]) -> Vec<String>) {
        let both = !first.digests.is_empty() && !member.digests.is_empty();
        let differ = both && first.digests.is_disjoint(&member.digests);
        for rule in rules(&first.uri, &member.uri) {
            let found = self.rules.entry(rule).or_default();
            found.merged += 1.0 / share;
            found.compared += u64::from(both);
            found.differing += u64::from(differ);
            if differ && found.examples.len() < EXAMPLES {
                let text = |member: &Member| String::from_utf8_lossy(&member.uri).into_owned();
                found.examples.push((text(first), text(member)));
            }
        }
    }
}
