//! Computes the keys of the rung `protocol` of many URLs at a time: [`KeyResolver`].
//!
//! ```text
//! URLs --find_places--> those whose host may have rules --follow_rules--> those that rules change --hash--> keys
//! ```

use super::content::UrlOrigin;
use super::equivalences::Equivalences;
use super::host_places::{HostPlace, UrlColumn};
use super::host_rules::{HostRules, KeyOrigin};
use super::protocol_keys::FollowBuffers;
use crate::kernel::append;
use crate::key::{KeyAlgorithm, KeyBytes};

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
        if !equivalences.representatives.is_empty() {
            replace_by_classes(equivalences, urls, keys, &mut counts);
        }
        if !equivalences.by_host.is_empty() {
            equivalences.by_host.find_places(urls, &mut self.places);
            self.apply_rules(equivalences, urls, keys, &mut counts);
        }
        counts
    }

    /// Replaces the keys of the URLs at the places that rules change.
    fn apply_rules(
        &mut self,
        equivalences: &Equivalences,
        urls: UrlColumn<'_>,
        keys: &mut [KeyBytes],
        counts: &mut OriginCounts,
    ) {
        let KeyResolver { places, buffers, changed } = self;
        let mut hosts = HostCache { equivalences, origin: None, rules: None };
        for place in places.iter() {
            let (row, url) = (place.url as usize, urls.get(place.url as usize));
            let Some((origin, rules)) = hosts.find_rules(&url[..place.origin_len as usize]) else { continue };
            // A class has precedence, and every representative is in its own class.
            if equivalences.representative(&keys[row]).is_some() {
                continue;
            }
            match equivalences.follow_rules((&origin.split(url), rules), buffers) {
                Some(followed) if followed.is_one_step || buffers.uri != url => {
                    counts.add(followed.origin);
                    match followed.key {
                        Some(key) => keys[row] = key,
                        None => changed.push((row, &buffers.uri), equivalences.algorithm, keys),
                    }
                }
                _ => (),
            }
        }
        changed.hash(equivalences.algorithm, keys);
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

/// The rules of the last host: successive URLs are often of one host.
struct HostCache<'e, 't> {
    equivalences: &'e Equivalences,
    /// The origin of the last URL.
    origin: Option<UrlOrigin<'t>>,
    rules: Option<&'e HostRules>,
}

impl<'e, 't> HostCache<'e, 't> {
    /// Returns the origin with this text, and the rules of its host.
    #[inline(always)]
    fn find_rules(&mut self, text: &'t [u8]) -> Option<(UrlOrigin<'t>, &'e HostRules)> {
        let origin = UrlOrigin::of_text(text);
        if self.origin != Some(origin) {
            self.origin = Some(origin);
            self.rules = self.equivalences.by_host.find_at_place(origin.authority);
        }
        self.rules.map(|rules| (origin, rules))
    }
}

/// Most bytes of URLs that are hashed together. They stay in a cache of the processor.
const MAX_CHANGED_LEN: usize = 32 << 10;

/// URLs that rules resulted in. Hashing several of them at once is faster.
#[derive(Debug, Default)]
struct ChangedUrls {
    texts: Vec<u8>,
    /// URL `i` is `texts[ends[i]..ends[i + 1]]`.
    ends: Vec<i32>,
    /// The row of each URL.
    rows: Vec<u32>,
    keys: Vec<KeyBytes>,
}

impl ChangedUrls {
    /// Adds a URL, whose key will replace that of its row.
    #[inline(always)]
    fn push(&mut self, (row, url): (usize, &[u8]), algorithm: KeyAlgorithm, keys: &mut [KeyBytes]) {
        if self.texts.len() + url.len() > MAX_CHANGED_LEN {
            self.hash(algorithm, keys);
        }
        if self.ends.is_empty() {
            self.ends.push(0);
        }
        append(&mut self.texts, url);
        self.ends.push(self.texts.len() as i32);
        self.rows.push(row as u32);
    }

    /// Replaces the keys of the rows by those of their URLs, and removes the URLs.
    fn hash(&mut self, algorithm: KeyAlgorithm, keys: &mut [KeyBytes]) {
        if self.rows.is_empty() {
            return;
        }
        self.keys.clear();
        algorithm.push_keys(&self.texts, &self.ends, &mut self.keys);
        for (row, key) in self.rows.drain(..).zip(&self.keys) {
            keys[row as usize] = *key;
        }
        self.texts.clear();
        self.ends.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::content::ContentRule;
    use super::super::rewrite::RewriteRule;
    use super::*;

    fn key(uri: &str) -> KeyBytes {
        KeyAlgorithm::Xxh3.key(uri.as_bytes())
    }

    fn equivalences(class: Option<(&str, &str)>) -> Equivalences {
        let mut all = Equivalences::new(KeyAlgorithm::Xxh3);
        if let Some((member, representative)) = class {
            all.add_member(key(member), key(representative)).unwrap();
        }
        all.add_pattern(b"e.b", RewriteRule::named("http->https").unwrap()).unwrap();
        let rules = [("a.b", "ignore-parameter sid"), ("*.d.b", "ignore-final-slash"), ("m.b", "same-as https://a.b")];
        for (scope, rule) in rules {
            all.add_rule(scope.as_bytes(), ContentRule::parse(rule).unwrap().into());
        }
        all.check().unwrap();
        all
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

    #[test]
    fn keys_of_columns_are_those_of_their_urls() {
        let hosts = ["a.b", "a.bc", "a.b:80", "e.b", "x.d.b", "m.b", "q.r", "a.b", "a.b"];
        let url = |host| ["/x?sid=1", "/x/", "/y?sid=2&z", "/"].map(|rest| format!("http://{host}{rest}"));
        let urls: Vec<String> = hosts.into_iter().flat_map(url).collect();
        // More than one group of URLs is hashed.
        let many: Vec<String> = urls.iter().chain(urls.iter().rev()).cycle().take(4000).cloned().collect();
        let counts = check(&equivalences(None), &many);
        assert!(counts.by_class == 0 && counts.by_pattern > 100 && counts.by_rule > 500, "{counts:?}");
        let counts = check(&equivalences(Some(("http://a.b/y?z", "http://a.b/"))), &many);
        assert!(counts.by_class == 0 && counts.by_rule > 500, "{counts:?}");
        let counts = check(&equivalences(Some(("http://a.b/x?sid=1", "http://q.r/"))), &many);
        assert!(counts.by_class > 100 && counts.by_rule > 500, "{counts:?}");
    }

    #[test]
    fn keys_of_empty_urls_stay() {
        let all = equivalences(Some(("", "http://q.r/")));
        let (mut keys, column) = ([key("")], UrlColumn { texts: b"", ends: &[0, 0] });
        assert_eq!(KeyResolver::default().resolve(&all, column, &mut keys), OriginCounts::default());
        assert_eq!(keys, [key("")]);
    }
}
