//! Equivalences that are learned from redirects, compared with those of the oracle, which unites sets; and properties of
//! every key of the rung `protocol`.

use crate::generators::config;
use crate::oracle::equivalence::{self, Contents, Redirect};
use irikey::key::{KeyAlgorithm, KeyBytes};
use irikey::learn::{
    Equivalences, EquivalencesBuilder, KeyOrigin, LearnLimits, Learned, MemberReason, Observations, RecordPlace,
    RedirectCode, RedirectVerdict,
};
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::BTreeMap;

fn key(uri: &str) -> KeyBytes {
    KeyAlgorithm::Xxh3.key(uri.as_bytes())
}

/// Every spelling of a few URLs; closed under the rewrite rules that can be learned.
fn universe() -> Vec<String> {
    let mut all = Vec::new();
    for scheme in ["http", "https"] {
        for host in ["a.test", "www.a.test", "b.test", "www.b.test", "c.test:8080", "u@a.test"] {
            for path in ["/", "/x", "/x/", "/y", "/y/", "/f.html", "/f.html/", "/x?q", "/x/?q", "//"] {
                all.push(format!("{scheme}://{host}{path}"));
            }
        }
    }
    all.push("ftp://a.test/x".to_string());
    all.push("urn:a:b".to_string());
    all
}

/// Redirects, many of them between spellings of one URL, and URLs that responded.
fn observations() -> impl Strategy<Value = (Vec<Redirect>, Vec<String>)> {
    let any = || select(universe());
    let statuses = || select(vec![Some(301), Some(301), Some(301), Some(308), Some(302), Some(307), Some(200), None]);
    let redirect = (any(), any(), statuses());
    let secure = (any(), statuses()).prop_map(|(from, status)| {
        let to = from.replace("http://", "https://");
        (from, to, status)
    });
    let slash =
        (any(), statuses()).prop_map(|(from, status)| (format!("{}/", from.trim_end_matches('/')), from, status));
    let few = (any(), select(vec!["http://a.test/", "https://b.test/x"]), statuses())
        .prop_map(|(from, to, status)| (from, to.to_string(), status));
    let one = prop_oneof![3 => redirect, 3 => secure, 2 => slash, 2 => few];
    (proptest::collection::vec(one, 0..40), proptest::collection::vec(any(), 0..6))
}

/// Few contents, so that some agree and some do not.
fn contents() -> impl Strategy<Value = Contents> {
    let few = || proptest::collection::vec((select(universe()), 0..3u64), 0..12);
    (few(), few()).prop_map(|(own, forms)| Contents { own, forms })
}

fn learn(redirects: &[Redirect], served: &[String], limits: &LearnLimits) -> Learned {
    learn_with(redirects, &Contents::default(), served, limits)
}

fn learn_with(redirects: &[Redirect], contents: &Contents, served: &[String], limits: &LearnLimits) -> Learned {
    let mut observed = Observations::default();
    for (i, (from, to, status)) in redirects.iter().enumerate() {
        let place = RecordPlace { source: 0, record: i as u64 + 1 };
        observed.add_redirect(from.as_bytes(), to.as_bytes(), *status, place);
    }
    served.iter().for_each(|uri| observed.add_served(uri.as_bytes()));
    contents.own.iter().for_each(|(uri, content)| observed.add_content(uri.as_bytes(), *content));
    contents.forms.iter().for_each(|(form, content)| observed.add_form(form.as_bytes(), *content));
    observed.learn(limits, KeyAlgorithm::Xxh3)
}

fn apply(learned: &Learned) -> Equivalences {
    let mut equivalences = EquivalencesBuilder::new(KeyAlgorithm::Xxh3);
    for member in &learned.members {
        equivalences.add_member(member.key, member.representative_key).unwrap();
    }
    for pattern in &learned.patterns {
        equivalences.add_pattern(&pattern.host, pattern.rewrite).unwrap();
    }
    equivalences.build().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

proptest! {
    #![proptest_config(config(1))]

    #[test]
    fn classes_equal_those_of_the_oracle(
        (redirects, served) in observations(), contents in contents(), weak in any::<bool>(), max_sources in 0..4u64,
    ) {
        let limits = LearnLimits { weak, max_sources, min_support: 1_000, ..LearnLimits::default() };
        let learned = learn_with(&redirects, &contents, &served, &limits);
        let limits = equivalence::Limits { weak, max_sources };
        let (verdicts, representatives) = equivalence::judge(&redirects, &contents, &limits);
        for verdict in RedirectVerdict::ALL {
            let count = verdicts.iter().filter(|name| **name == verdict.name()).count() as u64;
            prop_assert_eq!(learned.counts.records[verdict as usize], count, "{}", verdict.name());
        }
        prop_assert_eq!(learned.counts.read, redirects.len() as u64);
        let found: BTreeMap<String, String> =
            learned.members.iter().map(|member| (text(&member.uri), text(&member.representative))).collect();
        prop_assert_eq!(found, representatives);
    }

    #[test]
    fn the_order_of_redirects_does_not_matter((redirects, served) in observations(), rotation in 0..40usize) {
        let limits = LearnLimits { min_support: 1, min_confidence: 0.6, max_sources: 2, ..LearnLimits::default() };
        let one = learn(&redirects, &served, &limits);
        let mut reordered = redirects.clone();
        reordered.rotate_left(rotation.min(redirects.len()));
        reordered.reverse();
        let other = learn(&reordered, &served.iter().rev().cloned().collect::<Vec<_>>(), &limits);
        prop_assert_eq!(&one.counts, &other.counts);
        prop_assert_eq!(&one.patterns, &other.patterns);
        let without_place = |learned: &Learned| -> Vec<_> {
            learned.members.iter().map(|member| irikey::learn::ClassMember { first: None, ..member.clone() }).collect()
        };
        prop_assert_eq!(without_place(&one), without_place(&other));
        prop_assert_eq!(apply(&one).identity(), apply(&other).identity());
    }

    #[test]
    fn the_protocol_key_is_idempotent((redirects, served) in observations(), min_support in 1..3u64) {
        let limits = LearnLimits { min_support, min_confidence: 0.6, ..LearnLimits::default() };
        let learned = learn(&redirects, &served, &limits);
        let equivalences = apply(&learned);
        let texts: BTreeMap<KeyBytes, String> = universe().into_iter().map(|uri| (key(&uri), uri)).collect();
        for uri in universe() {
            let (once, origin) = equivalences.key(uri.as_bytes(), key(&uri));
            prop_assert_eq!(origin == KeyOrigin::None, once == key(&uri));
            let representative = &texts[&once];
            prop_assert_eq!(equivalences.key(representative.as_bytes(), once), (once, KeyOrigin::None), "{}", uri);
        }
        for member in &learned.members {
            let (found, _) = equivalences.key(&member.uri, member.key);
            prop_assert_eq!(found, member.representative_key);
        }
    }
}

fn redirect(from: &str, to: &str, status: i32) -> Redirect {
    (from.to_string(), to.to_string(), Some(status))
}

#[test]
fn a_pattern_needs_support_and_few_counter_examples() {
    let secure = |i: usize| redirect(&format!("http://a.test/{i}"), &format!("https://a.test/{i}"), 301);
    let twenty: Vec<_> = (0..20).map(secure).collect();
    let served = ["http://a.test/served".to_string(), "http://a.test/other".to_string()];
    let learn = |redirects: &[Redirect], served: &[String]| learn(redirects, served, &LearnLimits::default());
    let one = learn(&twenty, &served[..1]);
    let [pattern] = &one.patterns[..] else { panic!("{:?}", one.patterns) };
    assert_eq!((pattern.rewrite.name().as_str(), pattern.support, pattern.counter), ("http->https", 20, 1));
    assert_eq!(text(&pattern.counter_examples[0]), served[0]);
    assert_eq!(pattern.examples.iter().map(|uri| text(uri)).collect::<Vec<_>>()[1], "http://a.test/1");
    let two = learn(&twenty, &served);
    assert_eq!((two.patterns.len(), two.counts.refused.confidence), (0, 1));
    let few = learn(&twenty[..2], &[]);
    assert_eq!((few.patterns.len(), few.counts.refused.support), (0, 1));
    // A hundred records of one redirect support a pattern once.
    let same = learn(&vec![twenty[0].clone(); 100], &[]);
    assert_eq!((same.patterns.len(), same.members[0].records, same.counts.records[0]), (0, 100, 100));
}

#[test]
fn combined_changes_are_two_patterns() {
    let all: Vec<_> =
        (0..5).map(|i| redirect(&format!("http://a.test/{i}"), &format!("https://www.a.test/{i}/"), 308)).collect();
    let learned = learn(&all, &[], &LearnLimits::default());
    let names: Vec<_> = learned.patterns.iter().map(|pattern| (text(&pattern.host), pattern.rewrite.name())).collect();
    let expected = [("a.test", "http->https+www"), ("www.a.test", "add-slash")];
    assert_eq!(names, expected.map(|(host, rule)| (host.to_string(), rule.to_string())));
    let (equivalences, unseen) = (apply(&learned), "http://a.test/unseen?q");
    let (found, origin) = equivalences.key(unseen.as_bytes(), key(unseen));
    assert_eq!((found, origin), (key("https://www.a.test/unseen/?q"), KeyOrigin::Pattern));
    assert_eq!((learned.counts.origin_changes, learned.counts.slash_changes), (5, 5));
}

#[test]
fn a_pattern_extends_a_class_unless_its_representative_responded() {
    let mut all: Vec<_> =
        (0..5).map(|i| redirect(&format!("http://a.test/{i}"), &format!("https://a.test/{i}"), 301)).collect();
    all.push(redirect("http://a.test/old", "http://a.test/new", 301));
    let limits = LearnLimits { min_confidence: 0.6, ..LearnLimits::default() };
    let learned = learn(&all, &[], &limits);
    let member = |uri: &str, learned: &Learned| learned.members.iter().find(|member| text(&member.uri) == uri).cloned();
    let old = member("http://a.test/old", &learned).unwrap();
    assert_eq!(text(&old.representative), "https://a.test/new");
    assert_eq!(text(&old.target.unwrap()), "http://a.test/new");
    assert_eq!(member("http://a.test/new", &learned).unwrap().how, MemberReason::Pattern);
    let learned = learn(&all, &["http://a.test/new".to_string()], &limits);
    assert_eq!(text(&member("http://a.test/old", &learned).unwrap().representative), "http://a.test/new");
}

#[test]
fn statuses_of_other_records_make_a_redirect_strong() {
    let (from, to) = ("http://a.test/", "http://b.test/");
    let mut observed = Observations::default();
    let place = RecordPlace { source: 0, record: 2 };
    observed.add_redirect(from.as_bytes(), to.as_bytes(), None, place);
    observed.add_status(from.as_bytes(), RedirectCode::Permanent);
    let learned = observed.learn(&LearnLimits::default(), KeyAlgorithm::Xxh3);
    assert_eq!((learned.counts.records[RedirectVerdict::Accepted as usize], learned.members.len()), (1, 2));
}

#[test]
fn redirects_that_contents_of_forms_contradict_are_refused() {
    let all = [
        redirect("http://a.test/p", "https://a.test/p", 301),
        redirect("https://a.test/p", "http://a.test/start", 301),
        redirect("http://a.test/start", "https://a.test/start", 301),
    ];
    let learned = |forms: &[(&str, u64)]| {
        let forms = forms.iter().map(|(form, content)| (form.to_string(), *content)).collect();
        let contents = Contents { own: vec![("https://a.test/start".to_string(), 1)], forms };
        let learned = learn_with(&all, &contents, &[], &LearnLimits::default());
        let representative = learned.members.iter().find(|member| text(&member.uri) == "http://a.test/p");
        let count = learned.counts.records[RedirectVerdict::Contradicted as usize];
        (text(&representative.unwrap().representative), count)
    };
    let (page, start) = ("https://a.test/p".to_string(), "https://a.test/start".to_string());
    assert_eq!(learned(&[]), (start.clone(), 0));
    // The redirect that is no change of spelling is refused, also if it is not the first one.
    assert_eq!(learned(&[("http://a.test/p", 2)]), (page.clone(), 1));
    assert_eq!(learned(&[("https://a.test/p", 2), ("https://a.test/p", 3)]), (page, 1));
    // One content agrees, also if it is that of another spelling of the end by rules.
    assert_eq!(learned(&[("http://a.test/p", 1), ("http://a.test/p", 2)]), (start.clone(), 0));
    assert_eq!(learned(&[("http://a.test/p", 2), ("https://a.test/start", 2)]), (start.clone(), 0));
    assert_eq!(learned(&[("http://a.test/start", 2)]), (start, 0));
}

#[test]
fn redirects_to_other_sites_are_rejected_on_request() {
    let all = [
        redirect("http://x.a.co.uk/", "http://y.a.co.uk/", 301),
        redirect("http://a.co.uk/", "http://b.co.uk/", 301),
        redirect("http://192.0.2.1/", "https://192.0.2.1/", 301),
    ];
    let limits = LearnLimits { same_site: true, ..LearnLimits::default() };
    let learned = learn(&all, &[], &limits);
    assert_eq!(learned.counts.records[RedirectVerdict::OtherSite as usize], 1);
    assert_eq!(learned.counts.records[RedirectVerdict::Accepted as usize], 2);
}
