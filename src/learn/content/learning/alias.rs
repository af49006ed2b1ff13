//! Finds hosts of one site that name the same pages: [`find_aliases`].
//!
//! A sample of the URLs of every host is compared: those whose paths have the smallest hashes. So all hosts are sampled at the
//! same paths.

use super::super::removal::IgnoredRemovals;
use super::super::rule::{ContentRule, PathContext, ScopedRule};
use super::super::rule_set::RuleBuffers;
use super::super::url_parts::UrlParts;
use super::agreement::common_content;
use super::captures::{ContentHash, HostCaptures, UrlContent, explaining_noise};
use super::differences::is_rule_name;
use super::judged_rule::{
    ContentLimits, JudgedRule, LearnedRules, RuleRefusal, contents_beyond_chance, learned_set, wilson_lower_bound,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use xxhash_rust::xxh3::xxh3_64;

/// Maximum number of URLs of a host that are compared with those of other hosts.
const MAX_SAMPLE: usize = 2048;

/// Maximum number of first segments of paths of a host that are compared on their own.
const MAX_SECTIONS: usize = 64;

/// Maximum number of hosts with one page that are compared with each other.
const MAX_HOSTS_OF_PAGE: usize = 16;

/// Maximum number of hosts with different paths in which one content may occur; a content at more paths is not evidence.
const MAX_PATHS_OF_CONTENT: usize = 8;

/// What is needed of a host to compare it with others.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HostSample {
    pub(super) host: Vec<u8>,
    /// The scheme of all URLs is https, or http; `None` if both schemes name the same pages.
    is_https: Option<bool>,
    /// The contents of pages, in order.
    pages: Vec<PageContent>,
    /// First segments of paths by their hashes.
    sections: BTreeMap<u64, Vec<u8>>,
    urls: u64,
    noise: f64,
    known: KnownRules,
}

/// What is known of the rules of a host.
#[derive(Clone, Debug, PartialEq)]
struct KnownRules {
    /// Rules that were learned, which would also be for an alias of the host.
    learned: BTreeSet<ScopedRule>,
    /// Rules that captures contradict.
    contradicted: BTreeSet<ScopedRule>,
    /// Query parameters that make a difference.
    needed: BTreeSet<Vec<u8>>,
}

impl KnownRules {
    fn of(rules: &LearnedRules) -> KnownRules {
        let with_refusal = |refusal| {
            let judged = rules.rules.iter().filter(move |judged| judged.refusal == refusal);
            judged.map(|judged| judged.rule.clone())
        };
        let refused = with_refusal(Some(RuleRefusal::CounterExamples));
        KnownRules {
            learned: with_refusal(None).collect(),
            contradicted: refused.chain(rules.contradicted.iter().cloned()).collect(),
            needed: rules.parameters.keys().cloned().collect(),
        }
    }

    /// Returns whether captures of the host contradict a rule that it would have as an alias of another one.
    fn contradict(&self, rule: &ScopedRule) -> bool {
        let is_needed = matches!(&rule.rule, ContentRule::Parameter(name, _) if self.needed.contains(name));
        self.contradicted.contains(rule) || is_needed && !self.learned.contains(rule)
    }
}

/// A content of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PageContent {
    /// Hash of path and query.
    page: u64,
    /// The content. The number of captures is of one of the URLs of the page.
    captured: UrlContent,
    /// Hash of the first segment of the path; 0 if it is the only one.
    section: u64,
}

impl HostSample {
    /// Returns the sample of a host; `None` if its schemes have different pages.
    pub(crate) fn of(host: &[u8], captures: &HostCaptures, rules: &LearnedRules) -> Option<HostSample> {
        let set = learned_set(&rules.rules);
        let (mut buffers, mut form) = (RuleBuffers::default(), Vec::new());
        let (mut pages, mut schemes, mut sections) = (Vec::new(), [false; 2], BTreeMap::new());
        for i in 0..captures.len() {
            let Some(url) = UrlParts::of(captures.uri(i)).filter(UrlParts::has_host_name_only) else { continue };
            set.write(&url, &mut buffers, &mut IgnoredRemovals, &mut form);
            let form = UrlParts::of(&form)?;
            schemes[usize::from(form.is_https())] = true;
            let page = xxh3_64(&[form.path(), b"?", form.query().unwrap_or_default()].concat());
            let name = first_segment(form.path());
            let section = name.map_or(0, xxh3_64);
            if let Some(name) = name.filter(|_| sections.len() < MAX_SECTIONS) {
                sections.entry(section).or_insert_with(|| name.to_vec());
            }
            pages.extend(captures.contents(i).iter().map(|captured| PageContent {
                page,
                captured: *captured,
                section,
            }));
        }
        let known = KnownRules::of(rules);
        let is_scheme_ignored = known.learned.contains(&ScopedRule::from(ContentRule::Scheme));
        let is_https = match schemes {
            [true, true] => return None,
            _ if is_scheme_ignored => None,
            [_, is_https] => Some(is_https),
        };
        let mut pages = with_united_periods(pages);
        remove_sinks(&mut pages);
        pages.truncate(MAX_SAMPLE);
        let (host, urls, noise) = (host.to_vec(), captures.len() as u64, captures.noise());
        Some(HostSample { host, is_https, pages, sections, urls, noise, known })
    }

    fn contents_of(&self, page: u64) -> Vec<UrlContent> {
        let from = self.pages.partition_point(|known| known.page < page);
        self.pages[from..].iter().take_while(|known| known.page == page).map(|known| known.captured).collect()
    }

    /// The last page of the sample: pages with greater hashes may be missing.
    fn end(&self) -> u64 {
        if self.pages.len() < MAX_SAMPLE { u64::MAX } else { self.pages.last().map_or(0, |last| last.page) }
    }
}

/// Returns the first segment of a path that has others.
fn first_segment(path: &[u8]) -> Option<&[u8]> {
    let path = path.strip_prefix(b"/")?;
    let len = path.iter().position(|byte| *byte == b'/')?;
    Some(&path[..len]).filter(|name| is_rule_name(name))
}

/// Returns the contents of pages in order, each once.
fn with_united_periods(mut pages: Vec<PageContent>) -> Vec<PageContent> {
    let key = |known: &PageContent| (known.page, known.captured.content, known.section);
    pages.sort_unstable();
    pages.dedup_by(|other, known| {
        let is_known = key(other) == key(known);
        if is_known {
            known.captured.period = known.captured.period.with(other.captured.period);
        }
        is_known
    });
    pages
}

/// Removes contents of too many pages.
fn remove_sinks(pages: &mut Vec<PageContent>) {
    let mut counts: HashMap<ContentHash, usize> = HashMap::new();
    pages.iter().for_each(|page| *counts.entry(page.captured.content).or_default() += 1);
    pages.retain(|page| counts[&page.captured.content] <= MAX_PATHS_OF_CONTENT);
}

/// Returns rules by which hosts are aliases of others, learned and refused, each with the alias.
pub(super) fn find_aliases<'h>(hosts: &'h [HostSample], limits: &ContentLimits) -> Vec<(&'h [u8], JudgedRule)> {
    let mut partners: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (a, b) in pairs_that_share(hosts, limits) {
        partners.entry(a).or_default().push(b);
        partners.entry(b).or_default().push(a);
    }
    // Hosts are aliases of hosts with more URLs, which are not aliases themselves.
    let rank = |at: &usize| (std::cmp::Reverse(hosts[*at].urls), &hosts[*at].host);
    let mut order: Vec<usize> = partners.keys().copied().collect();
    order.sort_by_key(rank);
    let mut found: BTreeMap<usize, Vec<JudgedRule>> = BTreeMap::new();
    for alias in order {
        let is_alias = |at: &usize| found.get(at).is_some_and(|rules| rules.iter().any(|rule| rule.refusal.is_none()));
        let targets = partners[&alias].iter().filter(|target| rank(target) < rank(&alias) && !is_alias(target));
        let judged = targets.map(|target| (judge(&hosts[alias], &hosts[*target], None, limits), *target));
        let Some((whole, target)) = judged.max_by_key(|(judged, _)| (judged.refusal.is_none(), judged.support)) else {
            continue;
        };
        // Of hosts that differ in some parts, others may be equal.
        let sections = match whole.refusal {
            Some(RuleRefusal::CounterExamples) => judge_sections(&whole, &hosts[alias], &hosts[target], limits),
            _ => Vec::new(),
        };
        found.insert(alias, [vec![whole], sections].concat());
    }
    let named =
        |(alias, rules): (usize, Vec<JudgedRule>)| rules.into_iter().map(move |rule| (&hosts[alias].host[..], rule));
    found.into_iter().flat_map(named).collect()
}

/// Returns the learned rules by which parts of a host are aliases of parts of another one. `whole` is the rule for all parts,
/// which was refused.
fn judge_sections(
    whole: &JudgedRule,
    alias: &HostSample,
    target: &HostSample,
    limits: &ContentLimits,
) -> Vec<JudgedRule> {
    let judged = alias.sections.iter().map(|(section, name)| {
        let mut judged = judge(alias, target, Some(*section), limits);
        judged.rule.context = PathContext::Prefix(name.clone());
        judged
    });
    let needed = contents_beyond_chance(whole.counter as f64 / (whole.counter + whole.support) as f64);
    judged.filter(|judged| judged.refusal.is_none() && judged.support >= needed).collect()
}

/// Returns pairs of hosts with enough equal contents at equal paths.
fn pairs_that_share(hosts: &[HostSample], limits: &ContentLimits) -> Vec<(usize, usize)> {
    let pages = hosts
        .iter()
        .enumerate()
        .flat_map(|(at, host)| host.pages.iter().map(move |page| ((page.page, page.captured.content), at)));
    let mut pages: Vec<((u64, ContentHash), usize)> = pages.collect();
    pages.sort_unstable();
    let mut shared: BTreeMap<(usize, usize), u64> = BTreeMap::new();
    for hosts in pages.chunk_by(|a, b| a.0 == b.0).filter(|hosts| hosts.len() <= MAX_HOSTS_OF_PAGE) {
        for (i, (_, a)) in hosts.iter().enumerate() {
            hosts[i + 1..].iter().for_each(|(_, b)| *shared.entry((*a, *b)).or_default() += 1);
        }
    }
    shared.into_iter().filter(|(_, pages)| *pages >= limits.min_contents).map(|(pair, _)| pair).collect()
}

/// Compares an alias with the host that it may be an alias of: all its pages, or those with this first segment.
fn judge(alias: &HostSample, target: &HostSample, section: Option<u64>, limits: &ContentLimits) -> JudgedRule {
    let (mut equal, mut counter) = (BTreeSet::new(), 0u64);
    let end = alias.end().min(target.end());
    let is_compared = |page: &&PageContent| page.page <= end && section.is_none_or(|section| section == page.section);
    let mut pages: Vec<u64> = alias.pages.iter().filter(is_compared).map(|page| page.page).collect();
    pages.dedup();
    for page in pages {
        let theirs = target.contents_of(page);
        match common_content(&alias.contents_of(page), &theirs) {
            Some(content) => drop(equal.insert(content)),
            None => counter += u64::from(!theirs.is_empty()),
        }
    }
    // One content under several pages, such as a notice, counts once.
    let support = equal.len() as u64;
    let noise = explaining_noise(alias.noise.max(target.noise), support, counter);
    let noise = 1.2 * noise * (support + counter) as f64;
    let excess = (counter as f64 - noise).max(0.0);
    let wrong_share = excess / (excess + support as f64).max(1.0);
    let is_contradicted = target.known.learned.iter().any(|rule| alias.known.contradict(rule));
    let refusal = match () {
        () if is_contradicted || wrong_share > 1.0 - limits.min_precision => Some(RuleRefusal::CounterExamples),
        () if support < 2 * limits.min_contents => Some(RuleRefusal::Support),
        () => None,
    };
    let is_https = target.is_https.unwrap_or(true);
    let rule = ContentRule::SameAs { from_https: alias.is_https, is_https, host: target.host.clone() };
    let lower_bound = wilson_lower_bound(support as f64, support as f64 + excess);
    JudgedRule { lower_bound, refusal, ..JudgedRule::new(rule.into(), support, counter, support + counter) }
}

#[cfg(test)]
mod tests {
    use super::super::host::learn_host;
    use super::super::near::DocumentEvidence;
    use super::*;

    fn host(name: &str, pages: std::ops::Range<u64>, content: impl Fn(u64) -> u64) -> HostSample {
        sample(name, pages.map(|page| (format!("{page:04}"), content(page))))
    }

    fn sample(name: &str, pages: impl Iterator<Item = (String, u64)>) -> HostSample {
        let mut captures = HostCaptures::default();
        pages.for_each(|(path, content)| captures.push(format!("https://{name}/{path}").as_bytes(), content));
        let rules = learn_host(&captures, &DocumentEvidence::default(), &ContentLimits::default());
        HostSample::of(name.as_bytes(), &captures, &rules).unwrap()
    }

    #[test]
    fn hosts_with_equal_pages_are_aliases_of_the_largest() {
        let hosts = [
            host("a.b", 0..60, |page| page),
            host("www.a.b", 20..70, |page| page),
            host("m.a.b", 30..70, |page| page),
            // Every fourth page is another one.
            host("old.a.b", 0..50, |page| if page % 4 == 0 { page + 1000 } else { page }),
            host("other.a.b", 0..50, |page| page + 2000),
        ];
        let found = find_aliases(&hosts, &ContentLimits::default());
        let found: Vec<_> =
            found.into_iter().map(|(host, judged)| (host, judged.rule.rule.to_string(), judged.refusal)).collect();
        let rule = "same-as https://a.b for https".to_string();
        let expected = [
            (&b"www.a.b"[..], rule.clone(), None),
            (b"m.a.b", rule.clone(), None),
            (b"old.a.b", rule, Some(RuleRefusal::CounterExamples)),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn an_alias_does_not_take_rules_that_its_captures_contradict() {
        let host = |name: &str, variants: u64| {
            let pages = (0..40).map(|page| (format!("p{page}"), page));
            let more =
                (0..60).map(move |i| (format!("r{:02}?ref={}", i / 3, i % 3), 1000 + i / 3 + i % variants * 100));
            let mut all: Vec<(String, u64)> = pages.chain(more).collect();
            all.sort();
            sample(name, all.into_iter())
        };
        let refusal = |variants: u64| {
            let hosts = [host("a.b", 1), host("www.a.b", variants)];
            find_aliases(&hosts, &ContentLimits::default())[0].1.refusal
        };
        assert_eq!([1, 3].map(refusal), [None, Some(RuleRefusal::CounterExamples)]);
    }

    #[test]
    fn a_notice_under_several_paths_is_one_content() {
        // 16 paths have one of two notices on both hosts, and the others are of one host only.
        let notice = |from: u64| move |page: u64| if page < 16 { page % 2 } else { from + page };
        let mut hosts = [host("a.b", 0..60, notice(1000)), host("www.a.b", 0..16, notice(0))];
        let found = find_aliases(&hosts, &ContentLimits::default());
        assert_eq!((found[0].1.support, found[0].1.refusal), (2, Some(RuleRefusal::Support)));
        hosts[1] = host("www.a.b", 0..30, |page| if page < 16 { page % 2 } else { 1000 + page });
        let found = find_aliases(&hosts, &ContentLimits::default());
        assert_eq!((found[0].1.support, found[0].1.refusal), (16, None));
    }

    #[test]
    fn a_copy_that_changed_apart_is_no_alias() {
        // Each page is captured later as well, and at last under a URL with a session identifier.
        let host = |name: &str, later: u64, last: u64| {
            let mut captures = HostCaptures::default();
            for page in 0..40u64 {
                let uri = format!("https://{name}/{page:02}");
                captures.push_at(uri.as_bytes(), page, Some(0));
                captures.push_at(uri.as_bytes(), later + page, Some(90_000_000));
                captures.push_at(format!("{uri}?sid={page:032x}").as_bytes(), last + page, Some(90_000_000));
            }
            let rules = learn_host(&captures, &DocumentEvidence::default(), &ContentLimits::default());
            HostSample::of(name.as_bytes(), &captures, &rules).unwrap()
        };
        let found = |hosts: [HostSample; 2]| {
            let found = find_aliases(&hosts, &ContentLimits::default());
            (found[0].1.support, found[0].1.counter, found[0].1.refusal)
        };
        let copy = |later, last| found([host("a.b", 100, 100), host("www.a.b", later, last)]);
        assert_eq!(copy(100, 100), (40, 0, None));
        assert_eq!(copy(200, 200), (0, 40, Some(RuleRefusal::CounterExamples)));
        // The first content is still the one of the URLs with a session identifier.
        assert_eq!(found([host("a.b", 100, 0), host("www.a.b", 200, 0)]), (40, 0, None));
    }

    #[test]
    fn parts_of_hosts_may_be_aliases() {
        let host = |name: &str, other: u64| {
            let page = |page: u64| {
                let part = ["blog", "news", "shop", "wiki"][page as usize / 40];
                (format!("{part}/{page:04}"), if part == "blog" { page + other } else { page })
            };
            sample(name, (0..160).map(page))
        };
        let hosts = [host("a.b", 0), host("www.a.b", 1000)];
        let found = find_aliases(&hosts, &ContentLimits::default()).into_iter();
        let mut found: Vec<_> = found.map(|(_, judged)| (judged.rule.context.to_string(), judged.refusal)).collect();
        found.sort();
        let parts = ["/news/", "/shop/", "/wiki/"].map(|part| (part.to_string(), None));
        assert_eq!((&found[0], &found[1..]), (&(String::new(), Some(RuleRefusal::CounterExamples)), &parts[..]));
    }
}
