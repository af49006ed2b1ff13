//! Right-to-left IRIs and look-alikes: cases, and properties over any text. In: `data/cases/{bidi,spoof}.jsonl`,
//! generators. Out: a failure that names every case that is missed.

use irikey::iri::{BidiRules, bidi_display, bidi_visual, check_bidi, find_spoofing, is_bidi, skeleton};
use proptest::prelude::*;
use serde_json::Value;

use crate::cases::{Case, read};

fn answer(case: &Case) -> Value {
    let input = case.input.as_slice();
    let text = || std::str::from_utf8(input).unwrap_or_else(|_| panic!("{}: {} takes text", case.id, case.op));
    let rules = BidiRules::for_profile(&case.profile).unwrap_or_else(|| panic!("{}: no such profile", case.id));
    match case.op.as_str() {
        "bidi_check" => check_bidi(text(), rules).is_empty().into(),
        "bidi_visual" => bidi_visual(text(), rules).into(),
        "bidi_display" => bidi_display(text()).ok().into(),
        "look" => find_spoofing(input).flags.names().collect(),
        "skeleton" => skeleton(input).into(),
        op => panic!("{}: no such op: {op}", case.id),
    }
}

#[test]
fn every_case_is_answered() {
    let mut misses = Vec::new();
    for case in ["bidi.jsonl", "spoof.jsonl"].into_iter().flat_map(read) {
        let got = answer(&case);
        if got != case.expect {
            let input = String::from_utf8_lossy(&case.input);
            misses.push(format!("{}: {input:?} expect {} got {got}", case.id, case.expect));
        }
    }
    assert!(misses.is_empty(), "{} misses:\n{}", misses.len(), misses.join("\n"));
}

/// Texts rich in what UAX #9 and section 4.2 look at.
const BIDI_TEXT: &str =
    "(http:)?(//)?[a-c1-3א-גا-ج٠-٣.:/?#@&;=%()\\[\\] \n\u{5B8}\u{651}\u{200F}\u{202E}\u{2067}]{0,24}";

proptest! {
    #[test]
    fn visual_order_keeps_the_characters(text in BIDI_TEXT) {
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
    fn problems_stand_where_they_say(text in BIDI_TEXT) {
        for rules in [BidiRules::Rfc3987, BidiRules::Duerst01] {
            let problems = check_bidi(&text, rules);
            prop_assert!(problems.iter().all(|it| it.range.contains(&it.at) && !it.range.is_empty()));
            prop_assert!(problems.iter().all(|it| text.is_char_boundary(it.at)));
        }
    }

    #[test]
    fn what_the_draft_allows_the_standard_allows(text in BIDI_TEXT) {
        if check_bidi(&text, BidiRules::Duerst01).is_empty() {
            prop_assert!(check_bidi(&text, BidiRules::Rfc3987).is_empty());
        }
    }

    #[test]
    fn display_embeds_bidi_iris_alone(text in BIDI_TEXT) {
        if let Ok(display) = bidi_display(&text) {
            prop_assert_eq!(display != text, is_bidi(&text));
        }
    }

    #[test]
    fn looks_name_what_they_found(octets in "(http://)?(\\PC|%[0-9A-Fa-f]{2}|[./@]|xn--){0,20}") {
        let look = find_spoofing(octets.as_bytes());
        prop_assert_eq!(look.flags.is_empty(), look.findings.is_empty());
        prop_assert!(look.findings.iter().all(|finding| finding.at < octets.len() && look.flags.intersects(finding.flag)));
    }

    #[test]
    fn any_octets_are_looked_at(octets in proptest::collection::vec(any::<u8>(), 0..40)) {
        find_spoofing(&octets);
        skeleton(&octets);
    }

    #[test]
    fn ascii_without_escapes_shows_nothing(reference in "[a-zA-Z0-9./:?#&=_~!$'()*+,;-]{0,40}") {
        prop_assume!(!reference.to_ascii_lowercase().contains("xn--"));
        prop_assert!(find_spoofing(reference.as_bytes()).flags.is_empty());
    }
}
