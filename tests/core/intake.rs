//! Properties of preprocessing: with any settings, a record of any bytes becomes one row, and the row equals the result
//! of the separate steps.

use irikey::canon::Policy;
use irikey::encoding::Charset;
use irikey::iri::{
    Backslashes, CharacterReferences, Flags, ParseMode, PreprocessOptions, Profile, Rung, Spaces, normalize_to_rung,
    repair, split_field,
};
use proptest::prelude::*;

use crate::engine::fused_rows;
use crate::generators::config;

fn preprocess_options() -> impl Strategy<Value = PreprocessOptions> {
    use {Backslashes as B, CharacterReferences as C, Spaces as S};
    let references = prop_oneof![Just(C::Kept), Just(C::Xml), Just(C::Html)];
    let spaces = prop_oneof![Just(S::Kept), Just(S::Split), Just(S::Encoded), Just(S::Removed)];
    let backslashes = prop_oneof![Just(B::Kept), Just(B::Slash), Just(B::Encoded)];
    (references, any::<bool>(), spaces, backslashes).prop_map(
        |(character_references, is_trimmed, spaces, backslashes)| PreprocessOptions {
            character_references,
            is_trimmed,
            spaces,
            backslashes,
        },
    )
}

/// A field, mostly an absolute URL, with many of the characters that preprocessing changes.
fn field() -> impl Strategy<Value = Vec<u8>> {
    let words = [
        "http://h/",
        "HTTP://",
        "x:",
        "//",
        "@",
        ":",
        "80",
        "[",
        "]",
        "::1",
        "#",
        "?",
        "%41",
        "%",
        " ",
        "\t",
        "\n",
        "\\",
        "&amp;",
        "&#32;",
        "&#x2F;",
        "&eacute",
        "&#0;",
        "&",
        "é",
        "A\u{30A}",
        "\u{E000}",
        "\u{A0}",
        "a",
        "..",
        "/",
    ];
    let piece = prop_oneof![
        20 => proptest::sample::select(words.to_vec()).prop_map(|word| word.as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..4),
    ];
    let start = proptest::sample::select(vec!["", "http://h", "HTTP://h:80/", "x:"]);
    let rest = proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat());
    (start, rest).prop_map(|(start, rest)| [start.as_bytes(), &rest].concat())
}

/// The canonical URI of a record by the separate steps of the library.
fn canonicalize_by_steps(record: &[u8], policy: &Policy) -> Option<Vec<u8>> {
    let (text, _) = repair(record, &policy.preprocess).ok()?;
    let (text, ..) = policy.profile.prepare(&text);
    if policy.mode == ParseMode::Strict {
        policy.profile.check_strict(&text).ok()?;
    }
    normalize_to_rung(&text, policy.rung, ParseMode::Lenient).ok().map(|(uri, _)| uri)
}

proptest! {
    #![proptest_config(config(1))]

    #[test]
    fn a_row_equals_the_result_of_the_steps(
        record in field(),
        preprocess in preprocess_options(),
        profile in 0usize..5,
        is_strict in any::<bool>(),
        is_syntax in any::<bool>(),
    ) {
        let policy = Policy {
            preprocess,
            profile: Profile::ALL[profile],
            mode: if is_strict { ParseMode::Strict } else { ParseMode::Lenient },
            rung: if is_syntax { Rung::Syntax } else { Rung::Scheme },
            keep_input: true,
            ..Policy::default()
        };
        let rows = fused_rows(&record, 7, &policy);
        prop_assert!(rows.tally.is_balanced() && rows.len() == 1);
        let uri = rows.faults.is_empty().then(|| rows.uri.get(0).to_vec());
        prop_assert_eq!(uri.as_deref().map(escaped), canonicalize_by_steps(&record, &policy).as_deref().map(escaped));
        let input = if rows.differs(0) { rows.input.get(0) } else { rows.uri.get(0) };
        prop_assert_eq!(input, &record[..]);
        prop_assert!(uri.is_none_or(|uri| uri.is_ascii()));
    }

    #[test]
    fn any_bytes_in_any_charset_become_one_row(
        record in proptest::collection::vec(prop_oneof![5 => b' '..0x7f, 1 => any::<u8>()], 0..40),
        label in proptest::sample::select(vec!["utf-8", "latin1", "shift_jis", "iso-2022-jp", "gb18030", "big5"]),
        query in proptest::sample::select(vec!["utf-8", "koi8-r", "shift_jis", "iso-2022-jp"]),
        preprocess in preprocess_options(),
    ) {
        let record = [b"http://h/?", &record[..]].concat();
        let policy = Policy { charset: Charset::named(label), query_charset: Charset::named(query), preprocess, ..Policy::default() };
        let rows = fused_rows(&record, 3, &policy);
        prop_assert!(rows.tally.is_balanced() && rows.len() == 1 && rows.uri.get(0).is_ascii());
        let text = policy.charset.and_then(|charset| charset.decode(&record).ok());
        let uri = text.and_then(|text| canonicalize_by_steps(text.as_bytes(), &policy));
        let has_uri = rows.faults.is_empty();
        if query == "utf-8" {
            prop_assert_eq!(has_uri.then(|| escaped(rows.uri.get(0))), uri.as_deref().map(escaped));
        } else {
            prop_assert_eq!(has_uri, uri.is_some());
        }
    }

    #[test]
    #[cfg(feature = "whatwg")]
    fn a_whatwg_row_is_the_href_or_a_fault(record in field(), drop_fragment in any::<bool>(), has_base in any::<bool>()) {
        let base = has_base.then_some("http://h/a/b?c#d");
        let profile = Profile::named("whatwg").unwrap();
        let policy = Policy { profile, drop_fragment, base: base.map(|base| base.into()), ..Policy::default() };
        let rows = fused_rows(&record, 0, &policy);
        prop_assert!(rows.tally.is_balanced() && rows.len() == 1 && rows.uri.get(0).is_ascii());
        let href = std::str::from_utf8(&record).ok().and_then(|text| irikey::iri::whatwg_href(text, base, None).ok());
        let kept = href.map(|href| if drop_fragment { href.split('#').next().unwrap().to_string() } else { href });
        prop_assert_eq!(escaped(rows.uri.get(0)), escaped(kept.unwrap_or_default().as_bytes()));
    }

    #[test]
    fn references_of_a_field_are_separate_and_complete(field in field(), options in preprocess_options()) {
        let ranges = split_field(&field, &options);
        prop_assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start));
        prop_assert!(ranges.iter().all(|range| !range.is_empty() && !field[range.clone()].contains(&b' ')));
        let outside: Vec<u8> = (0..field.len()).filter(|at| !ranges.iter().any(|range| range.contains(at))).map(|at| field[at]).collect();
        let is_space = |byte: &u8| b" \t\r\n&#x0123;".contains(byte);
        prop_assert!(outside.iter().all(is_space), "{:?}", outside);
    }
}

/// Canonical URIs are copied without the parser of the URL Standard, unless it would change them.
#[test]
#[cfg(feature = "whatwg")]
fn whatwg_rows_of_nearly_canonical_uris_are_their_hrefs() {
    let hosts = " h a-b _ xn--a a--b H é h. h.. .h h..i 7 0x1 h.7 h.0x1 h.1a h.a1 1.2.3.4 01.2.3.4 7. h:80 u@h %68";
    let rests =
        " / /a /' /a'b?c /?' /?a'b /#' /?# /? /# /~.a /.a /a/../b /a:b /c:/ /%20 /%41 /%e9 /% /a?b#c /a#b#c /a|b /^ ?a";
    for (host, rest) in hosts.split(' ').flat_map(|host| rests.split(' ').map(move |rest| (host, rest))) {
        for (scheme, drop_fragment) in [("http", false), ("https", true), ("https", false), ("ftp", false)] {
            let record = format!("{scheme}://{host}{rest}");
            let policy = Policy { profile: Profile::named("whatwg").unwrap(), drop_fragment, ..Policy::default() };
            let rows = fused_rows(record.as_bytes(), 0, &policy);
            let href = irikey::iri::whatwg_href(&record, None, None).ok();
            let kept = href.map(|href| if drop_fragment { href.split('#').next().unwrap().to_string() } else { href });
            assert_eq!(rows.faults.is_empty(), kept.is_some(), "{record}");
            assert_eq!(rows.tally.unchanged == 1, kept.as_ref() == Some(&record), "{record}");
            assert_eq!(rows.uri.get(0), kept.unwrap_or_default().as_bytes(), "{record}");
        }
    }
}

#[test]
fn faults_of_records_with_an_assumed_scheme_have_their_position_in_the_record() {
    let policy = Policy { assume_scheme: Some("https".into()), mode: ParseMode::Strict, ..Policy::default() };
    let with_base = Policy {
        base: Some("http://example.org/a/".into()),
        query_charset: Charset::named("koi8-r"),
        ..policy.clone()
    };
    let with_charset = Policy { query_charset: Charset::named("koi8-r"), ..policy.clone() };
    for (record, policy, at) in [
        ("http://example.org/a b", &policy, 20),
        ("example.org/a b", &policy, 13),
        ("//example.org/a b", &policy, 15),
        ("example.org:80/%zz", &policy, 15),
        ("localhost:80/#a#", &policy, 15),
        (" example.org/", &policy, 0),
        ("//example.org:x/", &policy, 14),
        ("http://example.org/?é", &with_charset, 20),
        ("example.org/?é", &with_charset, 13),
        ("/x?é", &with_base, 3),
    ] {
        let rows = fused_rows(record.as_bytes(), 0, policy);
        assert_eq!(rows.faults.first().map(|(_, fault)| fault.at), Some(at), "{record}");
    }
}

/// What is noticed in a query does not depend on the charset in which its characters are encoded.
#[test]
fn flags_of_queries_do_not_depend_on_their_charset() {
    let flags = |record: &str, charset: Option<&str>| {
        let policy = Policy { query_charset: charset.and_then(Charset::named), ..Policy::default() };
        let rows = fused_rows(record.as_bytes(), 0, &policy);
        Flags(rows.flags[0] & !Flags::QUERY_CHARSET.0).names().collect::<Vec<_>>()
    };
    for (record, expected) in [
        ("http://h/?a\u{200E}", &["bidi-control"][..]),
        ("http://h/?\u{FFFD}", &["not-ucschar"]),
        ("http://h/?\u{85}", &["control"]),
        ("http://h/?\u{E000}", &[]),
        ("http://h/?é[%", &["stray-percent", "stray-delim"]),
        ("http://h/?é b#a#b", &["excluded", "stray-delim"]),
    ] {
        for charset in [None, Some("utf-8"), Some("windows-1252"), Some("gb18030")] {
            assert_eq!(flags(record, charset), expected, "{record:?} {charset:?}");
        }
    }
}

fn escaped(text: &[u8]) -> String {
    text.escape_ascii().to_string()
}
