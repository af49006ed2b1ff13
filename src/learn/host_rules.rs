//! The rules of hosts, and how the rules of a URL's host are found: [`HostRules`], [`HostRuleIndex`].
//!
//! Rules about content are for a host, for a domain (`*.example.org`) or for all hosts (`*`).

use super::content::{ContentRule, ContentRuleSet, RuleBuffers, RuleSubject, UrlParts};
use super::host_places::{HostFilter, HostPlace, UrlColumn};
use super::rewrite::{OriginRule, RewriteRule};
use super::spelling::Spelling;
use super::text_map::TextMap;

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

/// The rules of a host.
#[derive(Clone, Debug, Default)]
pub(super) struct HostRules {
    /// The rule for URLs of `http`, and the one for `https`.
    origins: [Option<OriginRule>; 2],
    slashes: [bool; 3],
    /// Rules about content: those of the host, of its domain and of all hosts.
    pub(super) content: ContentRuleSet,
    /// What the rules are about, if there are no patterns.
    pub(super) subject: RuleSubject,
}

const SLASHES: [RewriteRule; 3] = [RewriteRule::AddSlash, RewriteRule::AddSlashToFiles, RewriteRule::StripSlash];

impl HostRules {
    /// Adds a pattern. Returns whether it can apply to the host and does not contradict the others.
    pub(super) fn add_pattern(&mut self, host: &[u8], rule: RewriteRule) -> bool {
        match rule {
            RewriteRule::Origin(origin) => {
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
    pub(super) fn origin_pattern(&self) -> Option<RewriteRule> {
        self.origins.into_iter().flatten().map(RewriteRule::Origin).next()
    }

    /// Returns the patterns that may apply to a URL, those of origins before those of slashes.
    pub(super) fn patterns(&self, is_https: bool) -> impl Iterator<Item = RewriteRule> {
        let origin = self.origins[usize::from(is_https)].map(RewriteRule::Origin);
        let slashes = SLASHES.into_iter().zip(self.slashes).filter(|(_, is_on)| *is_on).map(|(rule, _)| rule);
        origin.into_iter().chain(slashes)
    }

    fn has_slash_patterns(&self) -> bool {
        self.slashes.contains(&true)
    }

    pub(super) fn has_patterns(&self) -> bool {
        self.has_slash_patterns() || self.origins.iter().any(Option::is_some)
    }

    /// Returns whether a pattern of the host decides what the rule is about. Patterns are what the host itself does.
    pub(super) fn decides(&self, rule: &ContentRule) -> bool {
        match rule {
            ContentRule::Scheme | ContentRule::SameAs { .. } => self.origins.iter().any(Option::is_some),
            ContentRule::FinalSlash => self.has_slash_patterns(),
            _ => false,
        }
    }

    /// Applies the rules about content, otherwise one pattern, and writes the result to `out`. `is_settled` says that no rule
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
        if self.origins[usize::from(url.is_https())].is_none() && !self.has_slash_patterns() {
            return None;
        }
        let spelling = Spelling::of(url.uri())?;
        self.patterns(spelling.is_https).find(|rule| rule.write(&spelling, out))?;
        Some(Step { origin: KeyOrigin::Pattern, is_settled: false, is_last: false })
    }
}

/// The rules of all hosts.
#[derive(Clone, Debug, Default)]
pub(super) struct HostRuleIndex {
    /// The rules. The number of a host's rules is their place. After [`Self::complete`], similar rules are next to each other.
    rules: Vec<HostRules>,
    /// Hosts with rules or patterns of their own.
    hosts: TextMap<Vec<u8>, u32>,
    /// For the other hosts: the rules by domain.
    domains: TextMap<Vec<u8>, u32>,
    /// For the others: the rules for all hosts.
    everywhere: Option<u32>,
    /// The hosts that may have rules. All of them, if there are rules for all hosts.
    filter: HostFilter,
}

impl HostRuleIndex {
    /// Returns whether there are no rules.
    pub(super) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns the hosts with rules of their own.
    pub(super) fn hosts(&self) -> impl Iterator<Item = (&[u8], &HostRules)> {
        self.hosts.iter().map(|(host, number)| (&host[..], &self.rules[*number as usize]))
    }

    /// Returns the domains that have rules, which are also for their hosts without rules of their own.
    pub(super) fn domains(&self) -> impl Iterator<Item = (&[u8], &HostRules)> {
        self.domains.iter().map(|(domain, number)| (&domain[..], &self.rules[*number as usize]))
    }

    /// Returns the rules of a host itself.
    pub(super) fn own_rules(&self, host: &[u8]) -> Option<&HostRules> {
        self.hosts.get(host).map(|number| &self.rules[*number as usize])
    }

    /// Returns the rules of a host itself, and adds it if there are none.
    pub(super) fn own_rules_mut(&mut self, host: &[u8]) -> &mut HostRules {
        let next = self.rules.len();
        let number = *self.hosts.entry(host.to_vec()).or_insert(next as u32) as usize;
        if number == next {
            self.rules.push(HostRules::default());
        }
        &mut self.rules[number]
    }

    /// Replaces the contents of `found` by the URLs for which there may be rules, and perhaps some of other schemes.
    pub(super) fn find_places(&self, urls: UrlColumn<'_>, found: &mut Vec<HostPlace>) {
        self.filter.find_places(urls, found);
    }

    /// Returns the rules that are for a host.
    pub(super) fn find(&self, host: &[u8]) -> Option<&HostRules> {
        let number = if self.filter.may_contain(host) { self.find_number(host) } else { None };
        number.map(|number| &self.rules[number as usize])
    }

    /// Returns the number of the rules that are for a host which [`Self::find_places`] found.
    #[inline]
    pub(super) fn find_number(&self, host: &[u8]) -> Option<u32> {
        let of_domain = || domains_of(host).find_map(|domain| self.domains.get(domain));
        let named = self.hosts.get(host).or_else(|| if self.domains.is_empty() { None } else { of_domain() });
        named.copied().or(self.everywhere)
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

    /// Sets the rules of domains, and completes the index. The empty domain has the rules for all hosts.
    pub(super) fn complete(&mut self, domains: impl Iterator<Item = (Vec<u8>, ContentRuleSet)>) {
        let HostRuleIndex { mut rules, hosts, .. } = std::mem::take(self);
        let hosts = hosts.into_iter().map(|(host, number)| (false, host, std::mem::take(&mut rules[number as usize])));
        let domains = domains.map(|(domain, content)| (true, domain, HostRules { content, ..HostRules::default() }));
        let mut all: Vec<(bool, Vec<u8>, HostRules)> = hosts.chain(domains).collect();
        for (.., rules) in &mut all {
            rules.subject = if rules.has_patterns() { RuleSubject::Other } else { rules.content.subject() };
        }
        all.sort_by(|(a_domain, a, a_rules), (b_domain, b, b_rules)| {
            let kinds = |rules: &HostRules| (rules.subject, rules.content.kinds());
            (kinds(a_rules), a_domain, a).cmp(&(kinds(b_rules), b_domain, b))
        });
        self.filter = HostFilter::of(all.iter().map(|(is_domain, name, _)| (*is_domain, &name[..])));
        for (number, (is_domain, name, rules)) in (0..).zip(all) {
            self.rules.push(rules);
            match is_domain {
                false => _ = self.hosts.insert(name, number),
                true if name.is_empty() => self.everywhere = Some(number),
                true => _ = self.domains.insert(name, number),
            }
        }
    }
}

/// Returns the domains that contain a host, from the host itself to the largest.
pub(super) fn domains_of(host: &[u8]) -> impl Iterator<Item = &[u8]> {
    let dots = memchr::memchr_iter(b'.', host).map(|at| &host[at + 1..]).filter(|domain| !domain.is_empty());
    std::iter::once(host).filter(|host| !host.is_empty()).chain(dots)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(hosts: &[&str], domains: &[&str]) -> HostRuleIndex {
        let set = |name: &str| ContentRuleSet::new([&ContentRule::Document(name.into()).into()]);
        let mut index = HostRuleIndex::default();
        hosts.iter().for_each(|host| index.own_rules_mut(host.as_bytes()).content = set(host));
        index.complete(domains.iter().map(|domain| (domain.as_bytes().to_vec(), set(domain))));
        index
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
