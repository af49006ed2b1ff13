//! Tests of bidirectional IRIs and of spoofing flags: the cases of `data/cases/{bidi,spoof}.jsonl`, and properties over
//! generated texts. The test of the cases reports every case that fails, not only the first.

use irikey::iri::{
    BidiRules, BidiViolation, Profile, SpoofingFlags, bidi_display, bidi_visual, check_bidi, find_spoofing, is_bidi,
    skeleton,
};
use proptest::prelude::*;
use serde_json::Value;

use crate::cases::{Case, read};
use crate::generators::config;
use crate::oracle::components;

fn answer(case: &Case) -> Value {
    let input = case.input.as_slice();
    let text = || std::str::from_utf8(input).unwrap_or_else(|_| panic!("{}: {} needs text as input", case.id, case.op));
    let rules = Profile::named(&case.profile).and_then(|profile| profile.bidi_rules);
    let rules = rules.unwrap_or_else(|| panic!("{}: unknown profile", case.id));
    match case.op.as_str() {
        "bidi_check" => check_bidi(text(), rules).is_empty().into(),
        "bidi_visual" => bidi_visual(text(), rules).into(),
        "bidi_display" => bidi_display(text()).ok().into(),
        "spoofing_flags" => find_spoofing(input).flags.names().collect(),
        "skeleton" => skeleton(input).into(),
        op => panic!("{}: unknown operation {op}", case.id),
    }
}

#[test]
fn results_equal_the_cases() {
    let mut failures = Vec::new();
    for case in ["bidi.jsonl", "spoof.jsonl"].into_iter().flat_map(read) {
        let got = answer(&case);
        if got != case.expect {
            let input = String::from_utf8_lossy(&case.input);
            failures.push(format!("{}: input {input:?}, expected {}, found {got}", case.id, case.expect));
        }
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

/// Texts with many characters that matter to UAX #9 and to section 4.2 of RFC 3987, and IRIs, of which many are allowed.
const BIDI_TEXT: &str = "(http:)?(//)?[a-c1-3א-גا-ج٠-٣.:/?#@&;=%()\\[\\] \n\u{5B8}\u{651}\u{200F}\u{202E}\u{2067}]{0,24}\
     |(http:)?//([א-ג1-3]{1,4}|[a-c]{1,3})([./?&=-]([א-ג1-3]{1,4}|[a-c1]{1,3})){0,6}";

/// The formatting characters of [`BIDI_TEXT`].
const FORMATTING: [char; 3] = ['\u{200F}', '\u{202E}', '\u{2067}'];

/// The characters of [`BIDI_TEXT`] that are written from right to left: letters, and the mark RLM.
fn is_rtl(c: char) -> bool {
    matches!(c, 'א'..='ג' | 'ا'..='ج' | '\u{200F}')
}

/// The components of section 4.2, and the rules that each violates.
fn violations(text: &str, rules: BidiRules) -> Vec<(String, BidiViolation)> {
    let components = components::split_with_valid_scheme(text);
    let mut parts = Vec::new();
    let mut push = |part: &str, delimiters: &[char]| parts.extend(part.split(delimiters).map(str::to_string));
    if let Some(authority) = components.authority {
        let authority = components::split_authority(&authority);
        authority.userinfo.iter().for_each(|userinfo| push(userinfo, &[]));
        push(&authority.host, if authority.host.starts_with('[') { &[] } else { &['.'] });
    }
    push(&components.path, &['/', '.']);
    components.query.iter().for_each(|query| push(query, &['&', ';', '=']));
    components.fragment.iter().for_each(|fragment| push(fragment, &[]));
    let violations =
        |part: String| violations_of_part(&part, rules).into_iter().map(move |found| (part.clone(), found));
    parts.into_iter().flat_map(violations).collect()
}

/// Restrictions 1 and 2 of section 4.2, or restriction 3 of draft-duerst-iri-01 section 4.1.
fn violations_of_part(part: &str, rules: BidiRules) -> Vec<BidiViolation> {
    let mut found = Vec::new();
    if part.contains(FORMATTING) {
        found.push(BidiViolation::Control);
    }
    if !part.contains(is_rtl) {
        return found;
    }
    // A vowel sign has the direction of the character before it (UAX #9, W1). At the start it has none.
    let signs = ['\u{5B8}', '\u{651}'];
    let is_sign_first = part.starts_with(signs);
    let letters = part.replace(signs, "");
    if rules == BidiRules::Duerst01 {
        found.extend((is_sign_first || !letters.chars().all(is_rtl)).then_some(BidiViolation::Other));
        return found;
    }
    let is_mixed = letters.contains(|c: char| c.is_ascii_alphabetic());
    let is_enclosed = !is_sign_first && letters.starts_with(is_rtl) && letters.ends_with(is_rtl);
    found.extend(is_mixed.then_some(BidiViolation::Mixed));
    found.extend((!is_enclosed).then_some(BidiViolation::Edge));
    found
}

proptest! {
    #![proptest_config(config(1))]

    #[test]
    fn visual_order_is_a_permutation_of_the_characters(text in BIDI_TEXT) {
        let sorted = |text: &str| {
            let mut characters: Vec<char> = text.chars().collect();
            characters.sort_unstable();
            characters
        };
        for rules in [BidiRules::Rfc3987, BidiRules::Duerst01] {
            let visual = bidi_visual(&text, rules);
            prop_assert_eq!(sorted(&visual), sorted(&text));
        }
    }

    #[test]
    fn problems_are_those_of_the_definition(text in BIDI_TEXT) {
        for rules in [BidiRules::Rfc3987, BidiRules::Duerst01] {
            let problems = check_bidi(&text, rules);
            let found: Vec<_> = problems.iter().map(|it| (text[it.range.clone()].to_string(), it.violation)).collect();
            prop_assert_eq!(found, violations(&text, rules));
            prop_assert!(problems.iter().all(|it| it.range.contains(&it.at) && text.is_char_boundary(it.at)));
        }
    }

    /// Section 4.1: a Bidi IRI is displayed as if between LRE and PDF, and contains no formatting characters.
    #[test]
    fn only_bidi_iris_without_formatting_characters_are_embedded(text in BIDI_TEXT) {
        let expected = match text.find(FORMATTING) {
            Some(at) => Err(at),
            None if text.contains(is_rtl) => Ok(format!("\u{202A}{text}\u{202C}")),
            None => Ok(text.clone()),
        };
        let display = bidi_display(&text).map(|display| display.into_owned()).map_err(|fault| fault.at as usize);
        prop_assert_eq!(display, expected);
        prop_assert_eq!(is_bidi(&text), text.contains(is_rtl));
    }

    #[test]
    fn spoofing_flags_equal_the_findings(octets in "(http://)?(\\PC|%[0-9A-Fa-f]{2}|[./@]|xn--){0,20}") {
        let spoofing = find_spoofing(octets.as_bytes());
        let flags = spoofing.findings.iter().fold(SpoofingFlags::NONE, |flags, finding| flags | finding.flag);
        prop_assert_eq!(flags, spoofing.flags);
        prop_assert!(spoofing.findings.iter().all(|finding| finding.at < octets.len() && !finding.flag.is_empty()));
    }

    #[test]
    fn spoofing_checks_accept_any_bytes(octets in proptest::collection::vec(any::<u8>(), 0..40)) {
        find_spoofing(&octets);
        skeleton(&octets);
    }

    #[test]
    fn ascii_without_escapes_has_no_spoofing_flags(reference in "[a-zA-Z0-9./:?#&=_~!$'()*+,;-]{0,40}") {
        prop_assume!(!reference.to_ascii_lowercase().contains("xn--"));
        prop_assert!(find_spoofing(reference.as_bytes()).flags.is_empty());
    }
}
