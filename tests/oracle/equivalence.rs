//! RFC 3987 section 5.3.4, as far as redirects can show it: which URLs are one. In: redirects as `(from, to, status)`. Out:
//! a verdict on each, and a representative for every URL that is joined with others. Written down literally: sets that are
//! united until nothing changes, paths that are walked from every URL.

use std::collections::{BTreeMap, BTreeSet};

/// `(from, to, status)`, the texts canonical.
pub type Redirect = (String, String, Option<i32>);

/// What is believed.
pub struct Limits {
    pub weak: bool,
    pub max_sources: u64,
}

/// Scheme and `www.` and a final slash taken away: equal for the spellings of one URL.
fn skeleton(uri: &str) -> String {
    let Some((scheme, rest)) = uri.split_once("://").filter(|(scheme, _)| ["http", "https"].contains(scheme)) else {
        return uri.to_string();
    };
    let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (path, tail) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
    let path = match path.strip_suffix('/') {
        Some(less) if !less.is_empty() && !less.ends_with('/') => less,
        _ => path,
    };
    if authority.contains([':', '@']) {
        return format!("{scheme}://{authority}{path}{tail}");
    }
    format!("//{}{path}{tail}", authority.strip_prefix("www.").filter(|host| !host.is_empty()).unwrap_or(authority))
}

/// The strength of a redirect over all records that show it: 0 permanent, 1 temporary, 2 unknown.
fn strength(status: Option<i32>) -> Option<u8> {
    match status {
        None => Some(2),
        Some(301 | 308) => Some(0),
        Some(302 | 303 | 307) => Some(1),
        Some(_) => None,
    }
}

/// The verdict on each record's redirect, by name, in their order; and the representative of every URL that has one.
pub fn judge(redirects: &[Redirect], limits: &Limits) -> (Vec<&'static str>, BTreeMap<String, String>) {
    let mut strongest: BTreeMap<(&str, &str), u8> = BTreeMap::new();
    for (from, to, status) in redirects {
        if let Some(strength) = strength(*status) {
            let entry = strongest.entry((from, to)).or_insert(strength);
            *entry = strength.min(*entry);
        }
    }
    let mut verdicts: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    for (&(from, to), &strength) in &strongest {
        if from == to {
            verdicts.insert((from, to), "self");
        } else if strength > 0 && !limits.weak {
            verdicts.insert((from, to), "weak");
        }
    }
    let open = |verdicts: &BTreeMap<(&str, &str), &str>| -> Vec<_> {
        strongest.keys().copied().filter(|edge| !verdicts.contains_key(edge)).collect::<Vec<(&str, &str)>>()
    };
    for (from, to) in open(&verdicts) {
        let of_from: Vec<_> = open(&verdicts).into_iter().filter(|edge| edge.0 == from).collect();
        let best = of_from.iter().map(|edge| strongest[edge]).min();
        let targets = of_from.iter().filter(|edge| Some(strongest[*edge]) == best).count();
        if targets > 1 || Some(strongest[&(from, to)]) != best {
            of_from.iter().filter(|edge| targets > 1 || Some(strongest[*edge]) != best).for_each(|edge| {
                verdicts.insert(*edge, "ambiguous");
            });
        }
    }
    let leads: BTreeMap<&str, &str> = open(&verdicts).into_iter().collect();
    for (from, to) in open(&verdicts) {
        let mut seen = BTreeSet::from([from]);
        let mut at = to;
        let goes_round = loop {
            if !seen.insert(at) {
                break true;
            }
            let Some(next) = leads.get(at) else { break false };
            at = next;
        };
        if goes_round {
            verdicts.insert((from, to), "loop");
        }
    }
    let others = |target: &str| {
        let to_it = strongest.keys().filter(|(from, to)| *to == target && from != to);
        to_it.filter(|(from, to)| skeleton(from) != skeleton(to)).count() as u64
    };
    for (from, to) in open(&verdicts) {
        if skeleton(from) != skeleton(to) && others(to) > limits.max_sources {
            verdicts.insert((from, to), "sink");
        }
    }
    let accepted = open(&verdicts);
    let of_record = |(from, to, status): &Redirect| match strength(*status) {
        None => "other-status",
        Some(_) => verdicts.get(&(from.as_str(), to.as_str())).copied().unwrap_or("accepted"),
    };
    (redirects.iter().map(of_record).collect(), representatives(&accepted))
}

/// Unites the two sets of every redirect; the representative is the member that leads nowhere.
fn representatives(accepted: &[(&str, &str)]) -> BTreeMap<String, String> {
    let mut sets: Vec<BTreeSet<&str>> = Vec::new();
    for (from, to) in accepted {
        let (mine, others): (Vec<_>, Vec<_>) = sets.into_iter().partition(|set| set.contains(from) || set.contains(to));
        sets = others;
        sets.push(mine.into_iter().flatten().chain([*from, *to]).collect());
    }
    let mut found = BTreeMap::new();
    for set in sets {
        let ends: Vec<_> = set.iter().filter(|uri| accepted.iter().all(|(from, _)| from != *uri)).collect();
        assert_eq!(ends.len(), 1, "redirects without circles and with one target end in one place");
        set.iter().for_each(|uri| drop(found.insert(uri.to_string(), ends[0].to_string())));
    }
    found
}
