//! Tests of bidirectional IRIs and of spoofing flags: the cases of `data/cases/{bidi,spoof}.jsonl`, and properties over
//! generated texts. The test of the cases reports every case that fails, not only the first.

use irikey::iri::{BidiRules, bidi_display, bidi_visual, check_bidi, find_spoofing, is_bidi, skeleton};
use proptest::prelude::*;
use serde_json::Value;

use crate::cases::{Case, read};
use crate::generators::config;

fn answer(case: &Case) -> Value {
    let input = case.input.as_slice();
    let text = || std::str::from_utf8(input).unwrap_or_else(|_| panic!("{}: {} needs text as input", case.id, case.op));
    let rules = BidiRules::for_profile(&case.profile).unwrap_or_else(|| panic!("{}: unknown profile", case.id));
    match case.op.as_str() {
        "bidi_check" => check_bidi(text(), rules).is_empty().into(),
        "bidi_visual" => bidi_visual(text(), rules).into(),
        "bidi_display" => bidi_display(text()).ok().into(),
        "look" => find_spoofing(input).flags.names().collect(),
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
    fn problems_lie_within_the_text(text in BIDI_TEXT) {
        for rules in [BidiRules::Rfc3987, BidiRules::Duerst01] {
            let problems = check_bidi(&text, rules);
            prop_assert!(problems.iter().all(|problem| problem.range.contains(&problem.at) && !problem.range.is_empty()));
            prop_assert!(problems.iter().all(|problem| text.is_char_boundary(problem.at)));
        }
    }

    #[test]
    fn duerst_01_allows_no_more_than_rfc_3987(text in BIDI_TEXT) {
        if check_bidi(&text, BidiRules::Duerst01).is_empty() {
            prop_assert!(check_bidi(&text, BidiRules::Rfc3987).is_empty());
        }
    }

    #[test]
    fn display_changes_only_bidi_iris(text in BIDI_TEXT) {
        if let Ok(display) = bidi_display(&text) {
            prop_assert_eq!(display != text, is_bidi(&text));
        }
    }

    #[test]
    fn spoofing_flags_equal_the_findings(octets in "(http://)?(\\PC|%[0-9A-Fa-f]{2}|[./@]|xn--){0,20}") {
        let spoofing = find_spoofing(octets.as_bytes());
        prop_assert_eq!(spoofing.flags.is_empty(), spoofing.findings.is_empty());
        prop_assert!(spoofing.findings.iter().all(|finding| finding.at < octets.len() && spoofing.flags | finding.flag == spoofing.flags));
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
