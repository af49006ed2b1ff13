//! RFC 3987 section 5.3.4, as far as redirects show it: decides which URLs identify one resource. Returns a verdict on each
//! redirect, and a representative for every URL that is equivalent to others. The algorithm is literal: it unites sets
//! until nothing changes, and it follows the path from every URL.

use std::collections::{BTreeMap, BTreeSet};

/// `(from, to, status)`; the texts are canonical URIs.
pub type Redirect = (String, String, Option<i32>);

/// What captures have: contents of URLs, and contents of other URLs, each with the URL that rules make of it.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    pub own: Vec<(String, u64)>,
    pub forms: Vec<(String, u64)>,
}

impl Contents {
    fn of_form(&self, uri: &str) -> BTreeSet<u64> {
        self.forms.iter().filter(|(form, _)| form == uri).map(|(_, content)| *content).collect()
    }

    fn of(&self, uri: &str) -> BTreeSet<u64> {
        let own = self.own.iter().filter(|(of, _)| of == uri).map(|(_, content)| *content);
        own.chain(self.of_form(uri)).collect()
    }
}

/// Which redirects count.
pub struct Limits {
    pub weak: bool,
    pub max_sources: u64,
}

/// The URI without the scheme, `www.` and a final slash. Spellings of one URL have equal skeletons.
fn skeleton(uri: &str) -> String {
    let Some((scheme, rest)) = uri.split_once("://").filter(|(scheme, _)| ["http", "https"].contains(scheme)) else {
        return uri.to_string();
    };
    let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (path, tail) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
    let path = match path.strip_suffix('/') {
        Some(shorter) if !shorter.is_empty() && !shorter.ends_with('/') => shorter,
        _ => path,
    };
    if authority.contains([':', '@']) {
        return format!("{scheme}://{authority}{path}{tail}");
    }
    format!("//{}{path}{tail}", authority.strip_prefix("www.").filter(|host| !host.is_empty()).unwrap_or(authority))
}

/// The strength of a redirect with this status: 0 permanent, 1 temporary, 2 unknown; `None` if it is not a redirect.
fn strength(status: Option<i32>) -> Option<u8> {
    match status {
        None => Some(2),
        Some(301 | 308) => Some(0),
        Some(302 | 303 | 307) => Some(1),
        Some(_) => None,
    }
}

/// Returns the name of the verdict on each redirect, in order, and the representative of every URL that has one.
pub fn judge(
    redirects: &[Redirect],
    contents: &Contents,
    limits: &Limits,
) -> (Vec<&'static str>, BTreeMap<String, String>) {
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
    let target_of: BTreeMap<&str, &str> = open(&verdicts).into_iter().collect();
    for (from, to) in open(&verdicts) {
        let mut seen = BTreeSet::from([from]);
        let mut at = to;
        let is_loop = loop {
            if !seen.insert(at) {
                break true;
            }
            let Some(next) = target_of.get(at) else { break false };
            at = next;
        };
        if is_loop {
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
    let next_of: BTreeMap<&str, &str> = open(&verdicts).into_iter().collect();
    let forms: BTreeSet<&str> = contents.forms.iter().map(|(form, _)| form.as_str()).collect();
    for form in forms {
        let mut way = vec![form];
        while let Some(next) = next_of.get(way[way.len() - 1]) {
            way.push(next);
        }
        let first = way.windows(2).find(|edge| skeleton(edge[0]) != skeleton(edge[1]));
        let (here, there) = (contents.of_form(form), contents.of(way[way.len() - 1]));
        if let Some(edge) = first.filter(|_| here.is_disjoint(&there)) {
            verdicts.insert((edge[0], edge[1]), "contradicted");
        }
    }
    let accepted = open(&verdicts);
    let of_record = |(from, to, status): &Redirect| match strength(*status) {
        None => "other-status",
        Some(_) => verdicts.get(&(from.as_str(), to.as_str())).copied().unwrap_or("accepted"),
    };
    (redirects.iter().map(of_record).collect(), representatives(&accepted))
}

/// Unites the sets of the two ends of every redirect. The representative is the member that redirects nowhere.
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
        assert_eq!(ends.len(), 1, "redirects without loops and with one target each have one end");
        set.iter().for_each(|uri| drop(found.insert(uri.to_string(), ends[0].to_string())));
    }
    found
}
