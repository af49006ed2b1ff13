//! Computes the keys of the rung `protocol` of many URLs at a time: [`KeyResolver`].
//!
//! ```text
//! URLs --find_places--> those whose host may have rules --Targets--> those whose host has rules, by the rules
//!      --ContentRuleSet::append_changed, follow_rules--> those that rules change --hash--> keys
//! ```

use super::changed_urls::ChangedUrls;
use super::content::{RuleSubject, UrlParts};
use super::equivalences::Equivalences;
use super::host_places::{HostPlace, UrlColumn};
use super::host_rules::KeyOrigin;
use super::protocol_keys::FollowBuffers;
use super::targets::{Target, Targets};
use crate::kernel::{SimdTask, append, run_with_simd};
use crate::key::KeyBytes;

/// How many keys each kind of equivalence determined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OriginCounts {
    pub(crate) by_class: u64,
    pub(crate) by_pattern: u64,
    pub(crate) by_rule: u64,
}

impl OriginCounts {
    fn add(&mut self, origin: KeyOrigin) {
        match origin {
            KeyOrigin::None => (),
            KeyOrigin::Class => self.by_class += 1,
            KeyOrigin::Pattern => self.by_pattern += 1,
            KeyOrigin::Rule => self.by_rule += 1,
        }
    }
}

/// Computes the keys of columns of URLs, and keeps its buffers between them.
#[derive(Debug, Default)]
pub(crate) struct KeyResolver {
    places: Vec<HostPlace>,
    targets: Targets,
    buffers: FollowBuffers,
    changed: ChangedUrls,
}

impl KeyResolver {
    /// Replaces the keys of `urls` on the rung `scheme` by those of their representatives, as [`Equivalences::key`] does. The
    /// keys of empty URLs stay.
    pub(crate) fn resolve(
        &mut self,
        equivalences: &Equivalences,
        urls: UrlColumn<'_>,
        keys: &mut [KeyBytes],
    ) -> OriginCounts {
        let mut counts = OriginCounts::default();
        if !equivalences.representatives().is_empty() {
            replace_by_classes(equivalences, urls, keys, &mut counts);
        }
        if !equivalences.by_host.is_empty() {
            equivalences.by_host.find_places(urls, &mut self.places);
            let (KeyResolver { places, targets, buffers, changed }, counts) = (self, &mut counts);
            let targets = targets.find(equivalences, urls, places, keys);
            RuleApplication { equivalences, urls, buffers, changed, keys, counts }.apply_to(targets);
        }
        counts
    }
}

/// Replaces the keys of the URLs that rules change.
struct RuleApplication<'a> {
    equivalences: &'a Equivalences,
    urls: UrlColumn<'a>,
    buffers: &'a mut FollowBuffers,
    changed: &'a mut ChangedUrls,
    keys: &'a mut [KeyBytes],
    counts: &'a mut OriginCounts,
}

impl RuleApplication<'_> {
    /// Applies the rules to all targets.
    fn apply_to(mut self, targets: &[Target]) {
        let subject = |target: &Target| self.equivalences.by_host.numbered(target.rules).subject;
        for targets in targets.chunk_by(|a, b| subject(a) == subject(b)) {
            let (subject, application) = (subject(&targets[0]), &mut self);
            match subject {
                RuleSubject::Query => run_with_simd(ApplyRules::<{ RuleSubject::QUERY }> { application, targets }),
                RuleSubject::QueryOrder => {
                    run_with_simd(ApplyRules::<{ RuleSubject::QUERY_ORDER }> { application, targets });
                }
                RuleSubject::Path => run_with_simd(ApplyRules::<{ RuleSubject::PATH }> { application, targets }),
                RuleSubject::Other => run_with_simd(ApplyRules::<{ RuleSubject::OTHER }> { application, targets }),
            }
        }
        self.changed.hash(self.equivalences, self.keys);
    }

    /// Applies all rules and patterns to a URL, until none applies.
    fn follow(&mut self, target: &Target) {
        let rules = self.equivalences.by_host.numbered(target.rules);
        let text = self.urls.buffered(target.place.url as usize);
        let url = UrlParts::of_any(text, target.place.origin_len as usize);
        match self.equivalences.follow_rules(&url, rules, self.buffers) {
            Some(followed) if followed.is_one_step || self.buffers.uri != url.uri() => {
                self.counts.add(followed.origin);
                match followed.key {
                    Some(key) => self.keys[target.place.url as usize] = key,
                    None => {
                        self.changed.begin(self.equivalences, self.keys);
                        append(&mut self.changed.texts, &self.buffers.uri);
                        self.changed.end(target.place.url);
                    }
                }
            }
            _ => (),
        }
    }
}

/// Applies rules to URLs. `SUBJECT` is the subject of the rules, for which the loop is compiled.
struct ApplyRules<'r, 'a, const SUBJECT: u8> {
    application: &'r mut RuleApplication<'a>,
    targets: &'r [Target],
}

/// How many URLs are prefetched: they are not in the order of the memory.
const PREFETCHED: usize = 8;

impl<const SUBJECT: u8> SimdTask for ApplyRules<'_, '_, SUBJECT> {
    #[inline(always)]
    fn run(self) {
        let ApplyRules { application, targets } = self;
        for (i, target) in targets.iter().enumerate() {
            if let Some(ahead) = targets.get(i + PREFETCHED) {
                application.urls.prefetch(ahead.place.url as usize);
            }
            let text = application.urls.buffered(target.place.url as usize);
            let rules = application.equivalences.by_host.numbered(target.rules);
            match UrlParts::of_short(text, target.place.origin_len as usize) {
                Some(url) if SUBJECT != RuleSubject::OTHER || !rules.has_patterns() => {
                    let RuleApplication { equivalences, buffers, changed, keys, .. } = &mut *application;
                    let from = changed.begin(equivalences, keys);
                    match rules.content.append_changed::<SUBJECT>(&url, &mut buffers.rules, &mut changed.texts) {
                        None => (),
                        Some(false) => {
                            changed.end(target.place.url);
                            application.counts.by_rule += 1;
                        }
                        Some(true) => {
                            changed.texts.truncate(from);
                            application.follow(target);
                        }
                    }
                }
                _ => application.follow(target),
            }
        }
    }
}

/// Replaces the keys of URLs that are in classes.
fn replace_by_classes(
    equivalences: &Equivalences,
    urls: UrlColumn<'_>,
    keys: &mut [KeyBytes],
    counts: &mut OriginCounts,
) {
    for (key, ends) in keys.iter_mut().zip(urls.ends.windows(2)) {
        let representative = equivalences.representative(key).filter(|other| other != key && ends[0] < ends[1]);
        if let Some(representative) = representative {
            *key = representative;
            counts.by_class += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::content::ScopedRule;
    use super::super::equivalences::EquivalencesBuilder;
    use super::super::rewrite_pattern::RewritePattern;
    use super::*;
    use crate::key::KeyAlgorithm;

    fn key(uri: &str) -> KeyBytes {
        KeyAlgorithm::Xxh3.key(uri.as_bytes())
    }

    /// Compares the keys of a column with those of its URLs, one after the other. Returns the counts.
    fn check(equivalences: &Equivalences, urls: &[String]) -> OriginCounts {
        let (mut ends, texts) = (vec![0], urls.concat());
        urls.iter().for_each(|url| ends.push(ends[ends.len() - 1] + url.len() as i32));
        let mut counts = OriginCounts::default();
        let own: Vec<KeyBytes> = urls.iter().map(|url| key(url)).collect();
        let expected: Vec<KeyBytes> = urls
            .iter()
            .zip(&own)
            .map(|(url, own)| {
                let (key, origin) = equivalences.key(url.as_bytes(), *own);
                counts.add(origin);
                key
            })
            .collect();
        let (mut resolver, column) = (KeyResolver::default(), UrlColumn { texts: texts.as_bytes(), ends: &ends });
        for _ in 0..2 {
            let mut keys = own.clone();
            assert_eq!(resolver.resolve(equivalences, column, &mut keys), counts);
            assert_eq!(keys, expected);
        }
        counts
    }

    /// URLs of hosts whose rules are about queries or paths only take other ways than those that [`Equivalences::key`] applies.
    #[test]
    fn keys_of_columns_are_those_of_their_urls() {
        let rules: [&[&str]; 24] = [
            &["ignore-parameter sid"],
            &["ignore-parameter sid=<hex>"],
            &["ignore-parameter a-long-name", "ignore-parameter-order"],
            &["ignore-parameter-order", "ignore-empty-parameters"],
            &["/b/: ignore-parameter-order", "/b/: ignore-parameter x"],
            &["ignore-parameter sid", "ignore-parameter x", "keep-parameter x"],
            &["ignore-query"],
            &["*.html: ignore-query"],
            &["ignore-final-slash"],
            &["/b/: ignore-final-slash"],
            &["ignore-document index.html"],
            &["ignore-document index.html", "ignore-final-slash"],
            &["ignore-path-case"],
            &["ignore-path-parameter sid"],
            &["ignore-doubled-slashes"],
            &["ignore-doubled-slashes", "ignore-path-parameter sid", "ignore-path-case", "ignore-document index.html"],
            &["ignore-segment /b/..."],
            &["ignore-segment .../b", "ignore-segment-value /<number>"],
            &["ignore-segment-value /b/*"],
            &["ignore-segment-value /b/*/<hex>", "ignore-segment-value /*"],
            &["ignore-segment-value /b/<hex>", "ignore-final-slash"],
            &["ignore-final-slash", "ignore-parameter sid"],
            &["ignore-fragment", "ignore-parameter sid"],
            &["ignore-scheme", "ignore-path-case"],
        ];
        let mut builder = EquivalencesBuilder::new(KeyAlgorithm::Xxh3);
        for (i, rules) in rules.iter().enumerate() {
            for text in *rules {
                builder.add_rule(format!("h{i}.a-host").as_bytes(), ScopedRule::parse(text));
            }
        }
        builder.add_rule(b"*.d.b", ScopedRule::parse("ignore-final-slash"));
        builder.add_rule(b"m.b", ScopedRule::parse("same-as https://h0.a-host"));
        builder.add_pattern(b"e.b", RewritePattern::named("http->https").unwrap()).unwrap();
        let all = builder.clone().build().unwrap();
        let long = "long-".repeat(14);
        let segments = ["", "b", "B", "index.html", "x;sid=1", "12", "*", "%C3", "0123456789abcdef", &long];
        let ends = [
            "",
            "?",
            "?x=1&sid=2",
            "?sid",
            "?sid=0123456789abcdef&y#z",
            "#b",
            "?a&&b#",
            "?y=1;sid=2;x=3",
            "?y=1&a-long-name=2&",
            "?b=2&a-long-name-too=1&a=3&b=1",
            &format!("?{long}=1&sid=2&x={long}"),
            &format!("?sid={long}{long}#?/;&"),
        ];
        let mut urls = Vec::new();
        for (i, a) in segments.iter().enumerate() {
            for (j, b) in segments.iter().enumerate() {
                for (k, end) in ends.iter().enumerate() {
                    let scheme = if (i + j + k) % 3 == 0 { "https" } else { "http" };
                    let paths = [format!("/{a}"), format!("/{a}/{b}"), format!("/b/{a}/{b}"), format!("/{a}/{b}/")];
                    let path = &paths[(i * 7 + j * 3 + k) % 4];
                    urls.extend((0..rules.len()).map(|host| format!("{scheme}://h{host}.a-host{path}{end}")));
                    let others = ["x.d.b", "m.b", "e.b", "q.r", "h0.a-hosts", "h0.a-host:80"];
                    urls.extend(others.map(|host| format!("{scheme}://{host}{path}{end}")));
                    urls.push(format!("ftp://h1.a-host{path}{end}"));
                }
            }
        }
        let counts = check(&all, &urls);
        assert!(counts.by_rule > 5_000 && counts.by_rule < 20_000 && counts.by_pattern > 500, "{counts:?}");
        // Some URLs, and some that rules result in, are in classes; some hosts have patterns besides rules.
        for url in urls.iter().step_by(3) {
            let representative = key(&format!("{url}&representative"));
            builder.add_member(key(url), representative).unwrap();
        }
        builder.add_pattern(b"h0.a-host", RewritePattern::named("http->https").unwrap()).unwrap();
        builder.add_pattern(b"h8.a-host", RewritePattern::named("add-slash").unwrap()).unwrap();
        let more = builder.build().unwrap();
        let counts = check(&more, &urls);
        assert!(counts.by_class > 5_000 && counts.by_rule > 2_000 && counts.by_pattern > 100, "{counts:?}");
        // One URL after the other: nothing follows it in the column.
        for url in urls.iter().step_by(17) {
            check(&all, std::slice::from_ref(url));
        }
    }

    #[test]
    fn keys_of_empty_urls_stay() {
        let mut builder = EquivalencesBuilder::new(KeyAlgorithm::Xxh3);
        builder.add_member(key(""), key("http://q.r/")).unwrap();
        builder.add_rule(b"*", ScopedRule::parse("ignore-query"));
        let all = builder.build().unwrap();
        let (mut keys, column) = ([key("")], UrlColumn { texts: b"", ends: &[0, 0] });
        assert_eq!(KeyResolver::default().resolve(&all, column, &mut keys), OriginCounts::default());
        assert_eq!(keys, [key("")]);
    }
}
