//! The rules of hosts, and how the rules of a URL's host are found: [`HostRules`], [`HostRuleIndex`].
//!
//! Rules about content are for a host, for a domain (`*.example.org`) or for all hosts (`*`).

use super::content::{ContentRule, ContentRuleSet, RuleBuffers, RuleSubject, ScopedRule, UrlParts};
use super::host_places::{HostFilter, HostPlace, UrlColumn};
use super::host_table::{HostLookup, HostTable};
use super::rewrite_pattern::{OriginPattern, RewritePattern};
use super::spelling::Spelling;
use super::text_map::TextMap;
use std::collections::HashMap;

/// What determined the key of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOrigin {
    /// Neither a class nor a pattern: the URL has its own key.
    None,
    /// The URL is a member of a class and not its representative.
    Class,
    /// Patterns of its host, possibly followed by a class.
    Pattern,
    /// Rules about content, possibly followed by patterns and a class.
    Rule,
}

/// What was applied to a URL in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) origin: KeyOrigin,
    /// The rules about content of the host change nothing any more.
    pub(super) is_settled: bool,
    /// Nothing else applies, except a class.
    pub(super) is_last: bool,
}

/// The patterns of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct HostPatterns {
    /// The rule for URLs of `http`, and the one for `https`.
    origins: [Option<OriginPattern>; 2],
    slashes: [bool; 3],
}

const SLASHES: [RewritePattern; 3] =
    [RewritePattern::AddSlash, RewritePattern::AddSlashToFiles, RewritePattern::StripSlash];

impl HostPatterns {
    /// Adds a pattern. Returns whether it can apply to the host and does not contradict the others.
    pub(super) fn add(&mut self, host: &[u8], rule: RewritePattern) -> bool {
        match rule {
            RewritePattern::Origin(origin) => {
                let slot = &mut self.origins[usize::from(origin.from_https)];
                if origin.host(host).is_none() || slot.is_some_and(|before| before != origin) {
                    return false;
                }
                *slot = Some(origin);
                true
            }
            slash => {
                SLASHES.iter().zip(&mut self.slashes).for_each(|(rule, is_on)| *is_on |= *rule == slash);
                !(self.slashes[2] && (self.slashes[0] || self.slashes[1]))
            }
        }
    }

    /// Returns the first of the patterns that change the origin.
    pub(super) fn first_of_origin(&self) -> Option<RewritePattern> {
        self.origins.into_iter().flatten().map(RewritePattern::Origin).next()
    }

    /// Returns the patterns that may apply to a URL, those of origins before those of slashes.
    pub(super) fn of_scheme(&self, is_https: bool) -> impl Iterator<Item = RewritePattern> {
        let origin = self.origins[usize::from(is_https)].map(RewritePattern::Origin);
        let slashes = SLASHES.into_iter().zip(self.slashes).filter(|(_, is_on)| *is_on).map(|(rule, _)| rule);
        origin.into_iter().chain(slashes)
    }

    fn has_slashes(&self) -> bool {
        self.slashes.contains(&true)
    }

    fn is_empty(&self) -> bool {
        !self.has_slashes() && self.origins.iter().all(Option::is_none)
    }

    /// Returns whether a pattern of the host decides what the rule is about. Patterns are what the host itself does.
    pub(super) fn decides(&self, rule: &ContentRule) -> bool {
        match rule {
            ContentRule::Scheme | ContentRule::SameAs { .. } => self.origins.iter().any(Option::is_some),
            ContentRule::FinalSlash => self.has_slashes(),
            _ => false,
        }
    }
}

/// Rules and patterns, which several hosts may share.
#[derive(Clone, Debug, Default)]
pub(super) struct HostRules {
    pub(super) patterns: HostPatterns,
    /// Rules about content: those of the host, of its domain and of all hosts.
    pub(super) content: ContentRuleSet,
    /// What the rules are about, if there are no patterns.
    pub(super) subject: RuleSubject,
}

impl HostRules {
    fn new(patterns: HostPatterns, rules: &[&ScopedRule]) -> HostRules {
        let content = ContentRuleSet::new(rules.iter().copied());
        let subject = if patterns.is_empty() { content.subject() } else { RuleSubject::Other };
        HostRules { patterns, content, subject }
    }

    pub(super) fn has_patterns(&self) -> bool {
        !self.patterns.is_empty()
    }

    /// Applies the rules about content, otherwise one pattern, and writes the result to `out`. `is_settled` is true if no rule
    /// about content applies. Returns `None` if nothing applies.
    pub(super) fn apply(
        &self,
        url: &UrlParts<'_>,
        is_settled: bool,
        buffers: &mut RuleBuffers,
        out: &mut Vec<u8>,
    ) -> Option<Step> {
        out.clear();
        if !is_settled
            && let Some(is_repeated) = self.content.append_changed::<{ RuleSubject::OTHER }>(url, buffers, out)
        {
            let is_last = !is_repeated && !self.has_patterns();
            return Some(Step { origin: KeyOrigin::Rule, is_settled: !is_repeated, is_last });
        }
        let mut patterns = self.patterns.of_scheme(url.is_https()).peekable();
        patterns.peek()?;
        let spelling = Spelling::of(url.uri())?;
        patterns.find(|rule| rule.write(&spelling, out))?;
        Some(Step { origin: KeyOrigin::Pattern, is_settled: false, is_last: false })
    }
}

/// A host, or a domain with its hosts, and what applies to it.
#[derive(Clone, Debug)]
pub(super) struct NamedRules<'r> {
    pub(super) is_domain: bool,
    /// The host or the domain; empty for all hosts.
    pub(super) name: &'r [u8],
    pub(super) patterns: HostPatterns,
    /// All rules about content that hold there. A later one about the same part replaces an earlier one.
    pub(super) rules: Vec<&'r ScopedRule>,
}

/// The rules of all hosts. Hosts with equal rules share them, so that the rules of most URLs are in a cache of the processor.
#[derive(Clone, Debug, Default)]
pub(super) struct HostRuleIndex {
    /// Different rules. Their number is their place. Similar rules are next to each other.
    rules: Vec<HostRules>,
    /// Hosts with rules or patterns of their own.
    hosts: HostTable,
    /// For the other hosts: the rules by domain.
    domains: TextMap<Vec<u8>, u32>,
    /// The length of the longest of these domains.
    max_domain_len: usize,
    /// For the others: the rules for all hosts.
    everywhere: Option<u32>,
    /// The hosts that may have rules. All of them, if there are rules for all hosts.
    filter: HostFilter,
}

impl HostRuleIndex {
    /// Returns the index of hosts and domains, each of which occurs once.
    pub(super) fn new(mut named: Vec<NamedRules<'_>>) -> HostRuleIndex {
        named.sort_unstable_by_key(|named| (named.is_domain, named.name));
        let filter = HostFilter::of(named.iter().map(|named| (named.is_domain, named.name)));
        let mut index = HostRuleIndex { filter, ..HostRuleIndex::default() };
        let (mut places, mut sets) = (HashMap::new(), Vec::new());
        let mut names = Vec::with_capacity(named.len());
        for NamedRules { is_domain, name, patterns, rules } in named {
            let place = *places.entry((patterns, rules)).or_insert_with_key(|(patterns, rules)| {
                sets.push(HostRules::new(*patterns, rules));
                sets.len() - 1
            });
            names.push((is_domain, name, place));
        }
        let numbers = index.add_rules(sets);
        names.into_iter().for_each(|(is_domain, name, place)| index.add_name(is_domain, name, numbers[place]));
        index
    }

    /// Adds rules in the order of what they are about. Returns their numbers.
    fn add_rules(&mut self, sets: Vec<HostRules>) -> Vec<u32> {
        let (mut numbers, mut sorted): (_, Vec<_>) = (vec![0; sets.len()], sets.into_iter().enumerate().collect());
        sorted.sort_by_key(|(_, rules)| (rules.subject, rules.content.kinds()));
        for (number, (place, rules)) in (0..).zip(sorted) {
            numbers[place] = number;
            self.rules.push(rules);
        }
        numbers
    }

    /// Adds a host or a domain with the number of its rules.
    fn add_name(&mut self, is_domain: bool, name: &[u8], number: u32) {
        match is_domain {
            false => self.hosts.insert(name, number),
            true if name.is_empty() => self.everywhere = Some(number),
            true => {
                self.domains.insert(name.to_vec(), number);
                self.max_domain_len = self.max_domain_len.max(name.len());
            }
        }
    }

    /// Returns whether there are no rules.
    pub(super) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns the hosts with rules of their own.
    pub(super) fn hosts(&self) -> impl Iterator<Item = (&[u8], &HostRules)> {
        self.hosts.iter().map(|(host, number)| (host, self.numbered(number)))
    }

    /// Returns the domains that have rules, which are also for their hosts without rules of their own.
    pub(super) fn domains(&self) -> impl Iterator<Item = (&[u8], &HostRules)> {
        self.domains.iter().map(|(domain, number)| (&domain[..], self.numbered(*number)))
    }

    /// Replaces the contents of `found` by the URLs for which there may be rules, and perhaps some of other schemes.
    pub(super) fn find_places(&self, urls: UrlColumn<'_>, found: &mut Vec<HostPlace>) {
        self.filter.find_places(urls, found);
    }

    /// Returns the rules that are for a host.
    pub(super) fn find(&self, host: &[u8]) -> Option<&HostRules> {
        let lookup = || self.find_number(&self.start(host, host.len()));
        let number = if self.filter.may_contain(host) { lookup() } else { None };
        number.map(|number| self.numbered(number))
    }

    /// Starts to look up the rules that are for a host which [`Self::find_places`] found. The host is at the beginning of
    /// `buffer` and has `len` bytes.
    #[inline(always)]
    pub(super) fn start<'t>(&self, buffer: &'t [u8], len: usize) -> HostLookup<'t> {
        self.hosts.start(buffer, len)
    }

    /// Continues a lookup: prefetches what [`Self::find_number`] reads.
    #[inline(always)]
    pub(super) fn prefetch(&self, lookup: &HostLookup<'_>) {
        self.hosts.prefetch_entry(lookup);
    }

    /// Completes a lookup: returns the number of the rules.
    #[inline(always)]
    pub(super) fn find_number(&self, lookup: &HostLookup<'_>) -> Option<u32> {
        let number = self.hosts.find(lookup);
        if number.is_some() || self.domains.is_empty() {
            return number.or(self.everywhere);
        }
        let mut domains = domains_of(lookup.host(), self.max_domain_len);
        domains.find_map(|domain| self.domains.get(domain)).copied().or(self.everywhere)
    }

    /// Returns the rules with a number. The numbers are less than [`Self::len`].
    #[inline(always)]
    pub(super) fn numbered(&self, number: u32) -> &HostRules {
        &self.rules[number as usize]
    }

    /// Returns how many numbers there are.
    pub(super) fn len(&self) -> usize {
        self.rules.len()
    }
}

/// Returns the domains of at most `max_len` bytes that contain a host, from the host itself to the largest. A host of very many
/// labels has as many domains, whose lengths add up to the square of its length.
pub(super) fn domains_of(host: &[u8], max_len: usize) -> impl Iterator<Item = &[u8]> {
    let end = &host[host.len().saturating_sub(max_len.saturating_add(1))..];
    let domains = memchr::memchr_iter(b'.', end).map(|at| &end[at + 1..]);
    let is_domain = move |domain: &&[u8]| (1..=max_len).contains(&domain.len());
    std::iter::once(host).chain(domains).filter(is_domain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(hosts: &[&str], domains: &[&str]) -> HostRuleIndex {
        let of_hosts = hosts.iter().map(|host| (false, *host));
        let all: Vec<(bool, &str, ScopedRule)> = of_hosts
            .chain(domains.iter().map(|domain| (true, *domain)))
            .map(|(is_domain, name)| (is_domain, name, ContentRule::Document(name.into()).into()))
            .collect();
        let named = all.iter().map(|(is_domain, name, rule)| NamedRules {
            is_domain: *is_domain,
            name: name.as_bytes(),
            patterns: HostPatterns::default(),
            rules: vec![rule],
        });
        HostRuleIndex::new(named.collect())
    }

    #[test]
    fn hosts_with_equal_rules_share_them() {
        let rules: [ScopedRule; 2] = [ContentRule::Query.into(), ContentRule::Fragment.into()];
        let mut patterns = HostPatterns::default();
        assert!(patterns.add(b"d", RewritePattern::AddSlash));
        let of = |name: &'static str, patterns, rules| NamedRules {
            is_domain: false,
            name: name.as_bytes(),
            patterns,
            rules,
        };
        let none = HostPatterns::default();
        let named = vec![
            of("a", none, vec![&rules[0]]),
            of("b", none, vec![&rules[0], &rules[1]]),
            of("c", none, vec![&rules[0]]),
            of("d", patterns, vec![&rules[0]]),
        ];
        let index = HostRuleIndex::new(named);
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|host| std::ptr::from_ref(index.find(host.as_bytes()).unwrap()));
        assert_eq!((index.len(), a), (3, c));
        assert!(a != b && a != d && b != d);
    }

    #[test]
    fn long_domains_are_left_out() {
        let domains = |host, max_len| domains_of(host, max_len).map(<[u8]>::len).collect::<Vec<_>>();
        assert_eq!(domains(b"a.bc.d", usize::MAX), [6, 4, 1]);
        assert_eq!((domains(b"a.bc.d", 6), domains(b"a.bc.d", 5)), (vec![6, 4, 1], vec![4, 1]));
        assert_eq!((domains(b"a.bc.d", 3), domains(b"a.bc.d", 0)), (vec![1], vec![]));
        assert_eq!((domains(b"..d.", 9), domains(b"", 9)), (vec![4, 3, 2], vec![]));
        assert_eq!(domains("a.".repeat(1 << 20).as_bytes(), 9), [8, 6, 4, 2]);
    }

    /// Returns the name of the document that the rules found for `host` are about.
    fn found(index: &HostRuleIndex, host: &str) -> Option<String> {
        let rules = index.find(host.as_bytes())?;
        let names = ["a.b", "b.c", "x.y.b.c", "b", "", "localhost", "c.d."];
        let is_about = |name: &&&str| {
            let uri = format!("http://h/{name}");
            let url = UrlParts::of(uri.as_bytes()).unwrap();
            rules
                .content
                .append_changed::<{ RuleSubject::OTHER }>(&url, &mut RuleBuffers::default(), &mut Vec::new())
                .is_some()
        };
        names.iter().find(is_about).map(|name| name.to_string())
    }

    #[test]
    fn the_rules_of_the_nearest_domain_are_found() {
        let few = index(&["a.b", "localhost"], &["b.c", "x.y.b.c", "c.d."]);
        let cases = [
            ("a.b", Some("a.b")),
            ("z.a.b", None),
            ("localhost", Some("localhost")),
            ("b.c", Some("b.c")),
            ("q.b.c", Some("b.c")),
            ("y.b.c", Some("b.c")),
            ("z.x.y.b.c", Some("x.y.b.c")),
            ("xx.y.b.c", Some("b.c")),
            ("e.c.d.", Some("c.d.")),
            ("c", None),
            ("", None),
            (".", None),
        ];
        for (host, want) in cases {
            assert_eq!(found(&few, host).as_deref(), want, "{host}");
        }
        let wide = index(&["a.b"], &["b"]);
        assert_eq!(
            [found(&wide, "q.w.b"), found(&wide, "b"), found(&wide, "a.b")].map(Option::unwrap),
            ["b", "b", "a.b"]
        );
        assert_eq!(found(&wide, "q.c"), None);
    }
}
