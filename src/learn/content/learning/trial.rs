//! Tries rules on the captures of a host: [`Trial`]. It groups URLs that the rules make equal, and compares their contents.
//!
//! [`UrlGroup`] determines what a group is evidence for. A content under many unlike URLs (an error page, a login) is a *sink*
//! and no evidence for any rule.

use super::super::removal::Removed;
use super::super::rule::ScopedRule;
use super::super::rule_set::{ContentRuleSet, RuleBuffers};
use super::super::url_parts::{UrlParts, name_and_value};
use super::super::value_shape::ValueShape;
use super::captures::{ContentHash, HostCaptures, MAX_CLEAR_NOISE};
use super::differences::is_rule_name;
use super::evidence::RuleEvidence;
use super::group::UrlGroup;
use super::pairs::{PairCounts, pairs_of};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use xxhash_rust::xxh3::xxh3_64;

/// Maximum number of groups, as the rules that are tried make them, in which a content may occur; one in more is a sink.
const MAX_GROUPS_OF_CONTENT: usize = 8;

/// The captures of a host, prepared for trials.
pub(super) struct Trial<'a> {
    captures: &'a HostCaptures,
    urls: Vec<Option<UrlParts<'a>>>,
    /// Unequal contents do not show that URLs are different pages, so that equal ones may be a coincidence.
    is_noisy: bool,
}

/// The URLs in the form that rules give them.
pub(super) struct Forms {
    /// Hash of the form of each URL.
    hashes: Vec<u64>,
    removed: Vec<(u16, Removed)>,
    /// Where the entries in `removed` of each URL end.
    removed_ends: Vec<u32>,
}

impl Forms {
    fn removed(&self, url: usize) -> &[(u16, Removed)] {
        let from = if url == 0 { 0 } else { self.removed_ends[url - 1] };
        &self.removed[from as usize..self.removed_ends[url] as usize]
    }

    /// Returns the numbers of the URLs, those of one form one after the other.
    fn order(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.hashes.len() as u32).collect();
        order.sort_unstable_by_key(|url| (self.hashes[*url as usize], *url));
        order
    }

    /// Returns the URLs of each form.
    fn groups<'o>(&self, order: &'o [u32]) -> impl Iterator<Item = &'o [u32]> {
        order.chunk_by(|a, b| self.hashes[*a as usize] == self.hashes[*b as usize])
    }

    /// Returns the number of different forms.
    pub(super) fn count(&self) -> usize {
        let mut hashes = self.hashes.clone();
        hashes.sort_unstable();
        hashes.dedup();
        hashes.len()
    }
}

/// A content of several groups, and of how many URLs and groups it is.
#[derive(Clone, Copy, Debug)]
struct ContentPlaces {
    content: ContentHash,
    urls: usize,
    groups: usize,
}

impl ContentPlaces {
    /// Returns whether the content is of too many groups.
    fn is_sink(&self) -> bool {
        self.groups > MAX_GROUPS_OF_CONTENT
    }

    /// Returns whether the content is of so many groups that two of its URLs are in one by chance: the rules explain less than
    /// half of the URLs beyond the first that have the content.
    fn is_scattered(&self) -> bool {
        self.urls - self.groups < self.groups
    }
}

/// Returns the contents whose places are wanted.
fn contents_at(places: &[ContentPlaces], is_wanted: fn(&ContentPlaces) -> bool) -> HashSet<ContentHash> {
    places.iter().filter(|places| is_wanted(places)).map(|places| places.content).collect()
}

impl<'a> Trial<'a> {
    pub(super) fn new(captures: &'a HostCaptures) -> Trial<'a> {
        let urls = (0..captures.len()).map(|i| UrlParts::of(captures.uri(i))).collect();
        Trial { captures, urls, is_noisy: captures.noise() > MAX_CLEAR_NOISE }
    }

    pub(super) fn url(&self, i: u32) -> Option<&UrlParts<'a>> {
        self.urls[i as usize].as_ref()
    }

    /// Returns whether a URL has a query.
    pub(super) fn has_queries(&self) -> bool {
        self.urls.iter().flatten().any(|url| url.query().is_some())
    }

    /// Returns whether all path parameters with this name have values that software makes.
    pub(super) fn has_made_path_parameters(&self, name: &[u8]) -> bool {
        let parameters = self.urls.iter().flatten().flat_map(|url| {
            let segments = url.path().split(|byte| *byte == b'/');
            segments.flat_map(|segment| segment.split(|byte| *byte == b';').skip(1).map(name_and_value))
        });
        let mut values = parameters.filter(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value);
        values.all(|value| ValueShape::of(value).is_made())
    }

    /// Returns the first `count` names of path parameters (`;name`) and, with `true`, of segments `name=value`.
    pub(super) fn path_names(&self, count: usize) -> BTreeSet<(bool, Vec<u8>)> {
        let mut names = BTreeSet::new();
        let mut add = |is_segment: bool, name: &[u8]| {
            if is_rule_name(name) && names.insert((is_segment, name.to_vec())) && names.len() > count {
                names.pop_last();
            }
        };
        for segment in self.urls.iter().flatten().flat_map(|url| url.path().split(|byte| *byte == b'/')) {
            let mut parts = segment.split(|byte| *byte == b';');
            if let Some(first) = parts.next().filter(|first| first.contains(&b'=')) {
                add(true, name_and_value(first).0);
            }
            parts.for_each(|parameter| add(false, name_and_value(parameter).0));
        }
        names
    }

    /// Returns the URLs, each with its first content.
    pub(super) fn urls_and_contents(&self) -> impl Iterator<Item = (&UrlParts<'a>, ContentHash)> {
        (0..).zip(&self.urls).filter_map(|(i, url)| Some((url.as_ref()?, self.first_content(i)?)))
    }

    fn first_content(&self, url: usize) -> Option<ContentHash> {
        self.captures.contents(url).first().map(|known| known.content)
    }

    /// Returns the URLs in the form that `rules` give them.
    pub(super) fn forms(&self, rules: &ContentRuleSet) -> Forms {
        let (mut buffers, mut form, mut removed) = (RuleBuffers::default(), Vec::new(), Vec::new());
        let mut forms = Forms { hashes: Vec::new(), removed: Vec::new(), removed_ends: Vec::new() };
        for (i, url) in self.urls.iter().enumerate() {
            removed.clear();
            let text = match url {
                Some(url) => {
                    rules.write(url, &mut buffers, &mut removed, &mut form);
                    &form
                }
                None => self.captures.uri(i),
            };
            forms.hashes.push(xxh3_64(text));
            forms.removed.append(&mut removed);
            forms.removed_ends.push(forms.removed.len() as u32);
        }
        forms
    }

    /// Tries `rules` together and returns the evidence about each.
    pub(super) fn evaluate(&self, rules: &[ScopedRule]) -> (Vec<RuleEvidence>, Forms) {
        let forms = self.forms(&ContentRuleSet::new(rules));
        let mut evidence = vec![RuleEvidence::default(); rules.len()];
        let places = self.content_places(&forms);
        let sinks = contents_at(&places, ContentPlaces::is_sink);
        for group in forms.groups(&forms.order()) {
            if group.len() > 1 {
                self.judge_group(group, &forms, &sinks, &mut evidence);
            }
        }
        let scattered = if self.is_noisy { contents_at(&places, ContentPlaces::is_scattered) } else { HashSet::new() };
        evidence.iter_mut().for_each(|evidence| evidence.count_contents(&scattered));
        (evidence, forms)
    }

    /// Counts pairs of URLs. `sinks` are not evidence for equal URLs.
    pub(super) fn count_pairs(&self, forms: &Forms, sinks: &HashSet<ContentHash>) -> PairCounts {
        let mut counts = PairCounts::default();
        for group in forms.groups(&forms.order()) {
            let right = self.group(group, &HashSet::new()).sizes().iter().map(|size| pairs_of(*size as u64)).sum();
            counts.merged.add_group(right, pairs_of(group.len() as u64));
        }
        let contents = (0..self.urls.len()).filter_map(|url| Some((self.first_content(url)?, forms.hashes[url])));
        let mut contents: Vec<_> = contents.filter(|(content, _)| !sinks.contains(content)).collect();
        contents.sort_unstable();
        for urls in contents.chunk_by(|a, b| a.0 == b.0) {
            let found = urls.chunk_by(|a, b| a.1 == b.1).map(|urls| pairs_of(urls.len() as u64)).sum();
            counts.equal.add_group(found, pairs_of(urls.len() as u64));
        }
        counts
    }

    /// Returns the number of URLs whose contents all are sinks.
    pub(super) fn count_urls_of(&self, sinks: &HashSet<ContentHash>) -> u64 {
        let is_sink = |url: &usize| self.captures.contents(*url).iter().all(|known| sinks.contains(&known.content));
        (0..self.urls.len()).filter(is_sink).count() as u64
    }

    /// Returns the contents of too many groups.
    pub(super) fn sinks(&self, forms: &Forms) -> HashSet<ContentHash> {
        contents_at(&self.content_places(forms), ContentPlaces::is_sink)
    }

    /// Returns where contents of several groups are.
    fn content_places(&self, forms: &Forms) -> Vec<ContentPlaces> {
        let contents_of = |url: usize| self.captures.contents(url).iter().map(|known| known.content);
        let pairs = (0..self.urls.len()).flat_map(|url| contents_of(url).map(move |content| (content, url)));
        let mut pairs: Vec<(ContentHash, u64)> = pairs.map(|(content, url)| (content, forms.hashes[url])).collect();
        pairs.sort_unstable();
        let places = pairs.chunk_by(|a, b| a.0 == b.0).map(|places| {
            let groups = places.chunk_by(|a, b| a.1 == b.1).count();
            ContentPlaces { content: places[0].0, urls: places.len(), groups }
        });
        places.filter(|places| places.groups > 1).collect()
    }

    /// Adds the evidence of the URLs of one form.
    fn judge_group(&self, group: &[u32], forms: &Forms, sinks: &HashSet<ContentHash>, evidence: &mut [RuleEvidence]) {
        let mut values: BTreeMap<u16, Vec<Removed>> = BTreeMap::new();
        for (at, url) in group.iter().enumerate() {
            for (rule, text) in forms.removed(*url as usize) {
                let values = values.entry(*rule).or_insert_with(|| vec![0; group.len()]);
                // A rule may remove several texts from a URL.
                values[at] = values[at].rotate_left(7) ^ text;
            }
        }
        values.retain(|_, values| values.iter().any(|value| *value != values[0]));
        let disagreement = |url: u32| self.captures.disagreement(url as usize);
        self.group(group, sinks).judge(&values, disagreement, evidence);
    }

    fn group<'g>(&self, urls: &'g [u32], sinks: &HashSet<ContentHash>) -> UrlGroup<'g> {
        UrlGroup::new(urls, |url| self.captures.contents(url as usize), sinks)
    }
}
