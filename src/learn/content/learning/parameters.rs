//! Query parameters that make a difference on a host: evidence against rules for all hosts. [`needed_parameters`].

use super::super::removal::IgnoredRemovals;
use super::super::rule_set::{ContentRuleSet, RuleBuffers};
use super::super::url_parts::{UrlParts, name_and_value, parameters_of};
use super::super::value_shape::ValueShape;
use super::captures::ContentHash;
use super::differences::is_rule_name;
use super::trial::Trial;
use std::collections::BTreeMap;
use xxhash_rust::xxh3::xxh3_64;

/// Maximum number of names of parameters of a host that are returned.
const MAX_NAMES: usize = 256;

/// A URL without one of its parameters.
struct WithoutParameter<'a> {
    name: &'a [u8],
    /// Sum of the hashes of path and other parameters: their order makes no difference here.
    rest: u64,
    value: u64,
    content: ContentHash,
}

/// Returns the query parameters that `rules` leave, without which URLs with different contents would be equal, and the
/// number of such contents. `noise` is the share of pairs of captures of one URL that differ.
pub(super) fn needed_parameters(trial: &Trial<'_>, rules: &ContentRuleSet, noise: f64) -> BTreeMap<Vec<u8>, u64> {
    if !trial.has_queries() {
        return BTreeMap::new();
    }
    let forms = FormTexts::of(trial, rules);
    let (mut urls, mut contents_of_rest) = (Vec::new(), Vec::new());
    for (form, content) in forms.iter() {
        let Some(url) = UrlParts::of(form) else { continue };
        let path = xxh3_64(url.path()).wrapping_add(xxh3_64(url.authority()));
        let parameters = || url.query().into_iter().flat_map(parameters_of);
        let all = parameters().fold(path, |sum, parameter| sum.wrapping_add(xxh3_64(parameter)));
        contents_of_rest.push((all, content));
        for parameter in parameters() {
            let (name, value) = name_and_value(parameter);
            if is_rule_name(name) && ValueShape::of(name) == ValueShape::Other {
                let rest = all.wrapping_sub(xxh3_64(parameter));
                urls.push(WithoutParameter { name, rest, value: xxh3_64(value), content });
            }
        }
    }
    // Of several URLs with equal parts, the first one counts.
    contents_of_rest.sort_by_key(|(rest, _)| *rest);
    let content_of_rest = |rest: u64| {
        let at = contents_of_rest.partition_point(|(other, _)| *other < rest);
        contents_of_rest.get(at).filter(|(other, _)| *other == rest).map(|(_, content)| content)
    };
    urls.sort_unstable_by(|a, b| (a.name, a.rest, a.content, a.value).cmp(&(b.name, b.rest, b.content, b.value)));
    let mut counts: Vec<(&[u8], u64)> = Vec::new();
    for urls in urls.chunk_by(|a, b| a.name == b.name) {
        let groups = urls.chunk_by(|a, b| a.rest == b.rest);
        let sum = groups.map(|group| different_contents(group, content_of_rest(group[0].rest), noise)).sum::<f64>();
        counts.push((urls[0].name, sum.ceil() as u64));
    }
    counts.retain(|(_, count)| *count > 0);
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts.into_iter().take(MAX_NAMES).map(|(name, count)| (name.to_vec(), count)).collect()
}

/// Returns how many contents the URLs of a group have beyond the first, less what noise explains. `without` is the content
/// of the URL without the parameter.
fn different_contents(group: &[WithoutParameter<'_>], without: Option<&ContentHash>, noise: f64) -> f64 {
    let mut contents: Vec<(ContentHash, u64)> = group.iter().map(|url| (url.content, url.value)).collect();
    contents.extend(without.map(|content| (*content, 0)));
    contents.sort_unstable();
    let is_one_value = contents.iter().all(|(_, value)| *value == contents[0].1);
    if is_one_value {
        return 0.0;
    }
    let different = contents.chunk_by(|a, b| a.0 == b.0).count() - 1;
    (different as f64 - 1.2 * noise * (contents.len() - 1) as f64).max(0.0)
}

/// The URLs of a host in the form that rules give them, each with its first content.
struct FormTexts {
    texts: Vec<u8>,
    ends: Vec<(usize, ContentHash)>,
}

impl FormTexts {
    fn of(trial: &Trial<'_>, rules: &ContentRuleSet) -> FormTexts {
        let (mut buffers, mut form) = (RuleBuffers::default(), Vec::new());
        let mut forms = FormTexts { texts: Vec::new(), ends: Vec::new() };
        for (url, content) in trial.urls_and_contents() {
            rules.write(url, &mut buffers, &mut IgnoredRemovals, &mut form);
            forms.texts.extend_from_slice(&form);
            forms.ends.push((forms.texts.len(), content));
        }
        forms
    }

    fn iter(&self) -> impl Iterator<Item = (&[u8], ContentHash)> {
        let mut from = 0;
        self.ends.iter().map(move |(end, content)| {
            let text = &self.texts[from..*end];
            from = *end;
            (text, *content)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::captures::HostCaptures;
    use super::*;

    #[test]
    fn parameters_that_tell_contents_apart_are_needed() {
        let mut captures = HostCaptures::default();
        let urls = [
            ("http://a/x", 0),
            ("http://a/x?id=1&s=1", 1),
            ("http://a/x?id=2&s=1", 2),
            ("http://a/x?id=2&s=2", 2),
            ("http://a/x?t=1", 0),
        ];
        urls.into_iter().for_each(|(uri, content)| captures.push(uri.as_bytes(), content));
        let found = needed_parameters(&Trial::new(&captures), &ContentRuleSet::default(), 0.0);
        assert_eq!(found, BTreeMap::from([(b"id".to_vec(), 1)]));
    }

    #[test]
    fn a_host_may_need_many_parameters() {
        let needed = |count: usize| {
            let mut captures = HostCaptures::default();
            for (name, value) in (0..count).flat_map(|name| (0..3).map(move |value| (name, value))) {
                captures.push(format!("http://a/x?name{name:03}={value}").as_bytes(), (10 * name + value) as u64);
            }
            needed_parameters(&Trial::new(&captures), &ContentRuleSet::default(), 0.0).len()
        };
        assert_eq!([40, MAX_NAMES, MAX_NAMES + 1].map(needed), [40, MAX_NAMES, MAX_NAMES]);
    }
}
