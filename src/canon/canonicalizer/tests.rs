//! Rows of records, of whatever the policy is: texts, keys, flags, redirects and pages.

use bstr::ByteSlice;

use super::*;
use crate::canon::rows::MAX_TEXT_LEN;
use crate::canon::{MaxUrlLen, RecipeColumn, Rung, TextColumn, UrlCanonicalizer};
use crate::encoding::Charset;
use crate::iri::{CLASSIFIER, CharacterReferences, FaultKind, Flags, ParseMode, Profile, SpoofingFlags};
use crate::kernel::Span;
use crate::key::{KeyAlgorithm, Recipe};
use crate::record::{TextDecoder, lines::Lines};

/// The limit is lowered, because the real one needs 2 GB of memory.
#[test]
fn texts_that_do_not_fit_are_left_out() {
    let policy = Policy { base: Some([&b"http://h/"[..], &[b'b'; 1000], b"/"].concat()), ..Policy::default() };
    let (mut lines, mut bitmaps, mut rows) = (Lines::default(), Bitmaps::default(), Rows::default());
    let mut canonicalizer = Canonicalizer::new(&policy);
    canonicalizer.writer.max_text_len = 10_000;
    let text = "a\nhttp://h/\nHTTP://h/\n".repeat(20);
    let records = lines.decode(text.as_bytes(), 0, &mut bitmaps);
    canonicalizer.append(&records, &bitmaps, &mut rows);
    assert!(rows.is_overfull);
    assert_eq!((rows.len(), rows.key.len(), rows.tally.unchanged + rows.tally.changed), (60, 60, 60));
    assert!((8_900..=10_000).contains(&rows.uri.values.len()), "{}", rows.uri.values.len());
    assert_eq!((rows.uri.get(0).len(), rows.uri.get(1)), (1011, &b"http://h/"[..]));
    let mut expected = Rows::default();
    Canonicalizer::new(&policy).append(&records, &bitmaps, &mut expected);
    let whole = (0..60).take_while(|&i| !rows.uri.get(i).is_empty()).count();
    assert!((25..30).contains(&whole) && (0..whole).all(|i| rows.uri.get(i) == expected.uri.get(i)));
    assert!((whole..60).all(|i| rows.uri.get(i).is_empty() && rows.input.get(i).is_empty()));
    assert!(!expected.is_overfull);
    rows.clear();
    assert!(!rows.is_overfull);
}

/// The texts of faulty records, of recipes and of carried fields count, too.
#[test]
fn every_column_of_texts_is_limited() {
    let rows_within = |policy: &Policy, url: &str, max_text_len: usize| {
        let text = format!("{url} text/html");
        let (urls, mimes) = ([Span::new(0, url.len())], [Some(Span::new(url.len() + 1, 9))]);
        let mut records = Records { text: text.as_bytes(), urls: &urls, ..Records::default() };
        records.fields.mimes = &mimes;
        let (mut bitmaps, mut rows) = (Bitmaps::default(), Rows::default());
        records.classify(&mut bitmaps);
        let mut canonicalizer = Canonicalizer::new(policy);
        canonicalizer.writer.max_text_len = max_text_len;
        (0..4).for_each(|_| canonicalizer.append(&records, &bitmaps, &mut rows));
        rows
    };
    let carry = crate::record::fields::FieldSet { mime: true, ..Default::default() };
    let recipes = vec![RecipeColumn { column: "surt", recipe: Recipe::parse("surt-ia").unwrap() }];
    type Column = fn(&Rows) -> &TextColumn;
    let cases: [(Policy, &str, Column); 4] = [
        (Policy::default(), "http://h/", |rows| &rows.uri),
        (Policy { keep_input: true, ..Policy::default() }, "http://[/", |rows| &rows.input),
        (Policy { recipes, ..Policy::default() }, "http://[/", |rows| &rows.recipe_texts[0]),
        (Policy { carry, ..Policy::default() }, "x:", |rows| &rows.carried.mimes),
    ];
    for (policy, url, column) in cases {
        let len = column(&rows_within(&policy, url, MAX_TEXT_LEN)).values.len();
        assert!(len >= 4 && !rows_within(&policy, url, len).is_overfull, "{policy:?}");
        assert!(rows_within(&policy, url, len - 1).is_overfull, "{policy:?}");
    }
}

fn rows_of(policy: &Policy, lines: impl AsRef<[u8]>) -> Rows {
    let (mut decoder, mut bitmaps) = (Lines::default(), Bitmaps::default());
    let mut rows = Rows::default();
    let records = decoder.decode(lines.as_ref(), 0, &mut bitmaps);
    Canonicalizer::new(policy).append(&records, &bitmaps, &mut rows);
    rows
}

/// A host may begin with a digit or contain characters that a scheme cannot contain.
#[test]
fn a_host_with_a_port_gets_a_scheme_although_there_is_a_base() {
    let policy =
        Policy { assume_scheme: Some("https".into()), base: Some(b"http://b.c/d/".to_vec()), ..Policy::default() };
    for (line, uri) in [
        ("h.x:80/", "https://h.x:80/"),
        ("1.2.3.4:80", "https://1.2.3.4:80/"),
        ("é.x:443/y", "https://xn--9ca.x/y"),
        ("localhost:1?q", "https://localhost:1/?q"),
        ("h.x/y:80", "http://b.c/d/h.x/y:80"),
        ("h.x", "http://b.c/d/h.x"),
        ("?h.x:80", "http://b.c/d/?h.x:80"),
    ] {
        assert_eq!(rows_of(&policy, line).uri.get(0), uri.as_bytes(), "{line}");
    }
}

/// On the simple rung, two references are equal if their texts are, after relative ones were resolved.
#[test]
fn simple_keys_are_those_of_the_absolute_text() {
    let lines = "http://h/%41\nHTTP://h:80/../x\n../%41\nhttp://h/b\nhttp://h/%41\n";
    let texts = ["http://h/%41", "HTTP://h:80/../x", "http://h/%41", "http://h/b", "http://h/%41"];
    let syntax = ["http://h/A", "http://h:80/x", "http://h/A", "http://h/b", "http://h/A"];
    let base = Some(b"http://h/c/d".to_vec());
    for algorithm in [KeyAlgorithm::Xxh3, KeyAlgorithm::Blake3] {
        let expected = texts.map(|text| algorithm.key(text.as_bytes()));
        let policy = Policy { rung: Rung::Simple, base: base.clone(), algorithm, ..Policy::default() };
        let rows = rows_of(&policy, lines);
        assert_eq!(rows.key, expected);
        for (i, uri) in syntax.iter().enumerate() {
            assert_eq!(rows.uri.get(i), uri.as_bytes());
        }
        let policy = Policy { more_keys: vec![Rung::Simple], base: base.clone(), algorithm, ..Policy::default() };
        assert_eq!(rows_of(&policy, lines).more_keys, [expected]);
    }
}

/// The counts of flags are those of the rows, wherever a flag comes from.
#[test]
fn flags_are_counted() {
    let text = "http://h/%zz\nHTTP://h/#a#b\nhttp://h/\u{fffd}\nhttp://h/\nhttp://[/\n";
    let policy = Policy { spoofing_flags: true, ..Policy::default() };
    let (mut decoder, mut bitmaps, mut rows) = (Lines::default(), Bitmaps::default(), Rows::default());
    let decoded = [(1, Flags::CUT), (3, Flags::CUT)];
    for _ in 0..2 {
        let mut records = decoder.decode(text.as_bytes(), 0, &mut bitmaps);
        (records.siblings, records.flags) = (&[1, 2], &decoded);
        Canonicalizer::new(&policy).append(&records, &bitmaps, &mut rows);
    }
    let has = |row: usize, flag: Flags| rows.flags[row] & flag.0 != 0;
    assert_eq!(rows.flags.len(), 10);
    assert!((0..10).all(|row| has(row, Flags::SPLIT) == [1, 2].contains(&(row % 5))));
    assert!((0..10).all(|row| has(row, Flags::CUT) == [1, 3].contains(&(row % 5))));
    assert!(has(0, Flags::STRAY_PERCENT) && has(6, Flags::STRAY_DELIM));
    let count = |column: &[u32], bit: usize| column.iter().filter(|flags| **flags >> bit & 1 == 1).count() as u64;
    for (bit, counted) in rows.tally.flags.iter().enumerate() {
        assert_eq!(*counted, count(&rows.flags, bit), "{bit}");
    }
    for (bit, counted) in rows.tally.spoofing_flags.iter().enumerate() {
        assert_eq!(*counted, count(&rows.spoofing_flags, bit), "{bit}");
    }
}

#[test]
fn spoofing_flags_are_those_of_the_decoded_and_repaired_text() {
    let charset = |label| Policy { charset: Charset::named(label), ..Policy::default() };
    let mut with_references = Policy::default();
    with_references.preprocess.character_references = CharacterReferences::Html;
    let with_scheme = Policy { assume_scheme: Some("http".into()), ..Policy::default() };
    let masinter = Policy { profile: Profile::named("masinter-07").unwrap(), ..Policy::default() };
    let cases = [
        (charset("windows-1251"), &b"http://\xf0\xe0.example/"[..], "ascii-look-alike"),
        (charset("iso-8859-1"), b"http://h/\xC0\xAF", "compatibility"),
        (charset("utf-7"), b"http://h/\xC0\xAF", "overlong"),
        (with_references.clone(), b"http://&#1072;pple.com/", "mixed-script ascii-look-alike"),
        (with_references, b"http://a&commat;h/%2&#x66;", "encoded-slash"),
        (with_scheme.clone(), b"www.bank.com@h.org", "userinfo-host"),
        (with_scheme, b"www.bank.com:8", ""),
        (masinter, b"http://h/A\xCC\x8A", "not-nfc"),
    ];
    for (policy, line, expected) in cases {
        let rows = rows_of(&Policy { spoofing_flags: true, ..policy }, line);
        let names: Vec<_> = SpoofingFlags(rows.spoofing_flags[0]).names().collect();
        assert_eq!(names.join(" "), expected, "{}", line.escape_ascii());
    }
}

/// Lists of the parts of a URL that is too long could take many times its length.
#[test]
fn only_the_key_is_made_of_long_urls_and_of_records_without_one() {
    let recipes = vec![RecipeColumn { column: "surt", recipe: Recipe::parse("surt-ia").unwrap() }];
    let policy = Policy { max_url_len: MaxUrlLen(12), spoofing_flags: true, recipes, ..Policy::default() };
    let rows = rows_of(&policy, "http://h/%2F\nhttp://h/%2Fa\nhttp://[/%2F\n");
    let flags = SpoofingFlags::ENCODED_SLASH.0;
    assert_eq!(rows.spoofing_flags, [flags, 0, flags]);
    assert_eq!(rows.tally.spoofing_flags.iter().sum::<u64>(), 2);
    let has_key = |row: usize| !rows.recipe_texts[0].get(row).is_empty();
    assert_eq!([0, 1, 2].map(has_key), [true, false, true]);
    assert_eq!(rows.fault(1).unwrap().kind, FaultKind::TooLong);
    assert_eq!(rows.key[1], policy.algorithm.fault_key(b"http://h/%2Fa"));
}

/// The scheme decides, not an authority; and another component that is not UTF-8 does not matter.
#[test]
fn queries_are_encoded_in_the_charset_of_their_document() {
    let policy = Policy { query_charset: Charset::named("iso-8859-1"), ..Policy::default() };
    for (line, expected) in [
        (&b"http://h/?\xC3\xA9#\xC3\xA9"[..], "http://h/?%E9#%C3%A9"),
        (b"http://h/\xFF?\xC3\xA9#\xFF", "http://h/%FF?%E9#%FF"),
        (b"http://h/?\xC3\xA9\xFF", "http://h/?%C3%A9%FF"),
        (b"HTTPS:x?\xC3\xA9", "https:x?%E9"),
        (b"ftp://h/?\xC3\xA9", "ftp://h/?%C3%A9"),
    ] {
        assert_eq!(rows_of(&policy, line).uri.get(0).as_bstr(), expected, "{}", line.escape_ascii());
    }
}

/// Returns the redirect of a record to `text`, and the URI of the record after it, whose URL is `text`.
fn redirect_and_uri(policy: &Policy, text: &str) -> [String; 2] {
    let chunk = format!("http://h/p/q {text}");
    let (page, target) = (Span::new(0, 12), Span::new(13, text.len()));
    let (urls, redirects) = ([page, target], [Some(target), None]);
    let mut records = Records { text: chunk.as_bytes(), urls: &urls, ..Records::default() };
    records.fields.redirects = &redirects;
    let (mut bitmaps, mut rows) = (Bitmaps::default(), Rows::default());
    bitmaps.classify(chunk.as_bytes(), &CLASSIFIER);
    Canonicalizer::new(policy).append(&records, &bitmaps, &mut rows);
    [rows.carried.redirects.get(0), rows.uri.get(1)].map(|uri| uri.escape_ascii().to_string())
}

#[test]
fn an_empty_redirect_is_none() {
    let carry = crate::record::fields::FieldSet { redirect: true, ..Default::default() };
    let policy = Policy { carry, ..Policy::default() };
    assert_eq!(redirect_and_uri(&policy, "")[0], "");
    assert_eq!(redirect_and_uri(&policy, "#")[0], "http://h/p/q#");
}

/// A redirect can be joined with the record to which it leads.
#[test]
fn redirects_are_written_like_urls_by_every_profile() {
    let texts = "HTTP://h:80/a|b%7E http://h/A\u{30A} http://a@b@c/[ http://0x7f.1/\\..\\x http://h/\u{A0} \
                 http://h/a?b#c ../x|y //h2/\u{e9} %2e%2e/../\u{e9} http:y 1:b %zz/../x";
    let mut made = std::collections::BTreeSet::new();
    for profile in Profile::ALL {
        for mode in [ParseMode::Lenient, ParseMode::Strict] {
            let carry = crate::record::fields::FieldSet { redirect: true, ..Default::default() };
            let base = Some(b"http://h/p/q".to_vec());
            let policy = Policy { profile, mode, carry, base, drop_fragment: true, ..Policy::default() };
            for text in texts.split(' ') {
                let [redirect, uri] = redirect_and_uri(&policy, text);
                assert_eq!(redirect, uri, "{} {mode:?} {text}", profile.name);
                made.insert((text, uri));
            }
        }
    }
    // Profiles differ, the profile whatwg most.
    let least = if cfg!(feature = "whatwg") { 20 } else { 15 };
    assert!(made.len() > least, "{made:?}");
}

#[test]
fn pages_are_canonical_uris_or_null() {
    let long = format!("http://h/{}", "x".repeat(100));
    let pages = ["HTTP://P:80/%7Ea", "", "HTTP://P:80/%7Ea", "http://q", "p/a", "http://[/", &long, "http://h/b"];
    let expected = ["http://p/~a", "", "http://p/~a", "http://q/", "", "", "", "http://h/b"];
    let (mut text, mut spans) = (b"http://h/ ".to_vec(), Vec::new());
    for page in pages {
        // Two links of each page.
        let span = Span::new(text.len(), page.len());
        spans.extend([Some(span).filter(|_| !page.is_empty()); 2]);
        text.extend_from_slice(page.as_bytes());
    }
    let urls = vec![Span { at: 0, len: 9 }; spans.len()];
    let mut records = Records { text: &text, urls: &urls, ..Records::default() };
    records.fields.pages = &spans;
    let carry = crate::record::fields::FieldSet { page: true, ..Default::default() };
    let policy = Policy { carry, max_url_len: MaxUrlLen(100), ..Policy::default() };
    let (mut bitmaps, mut rows) = (Bitmaps::default(), Rows::default());
    bitmaps.classify(&text, &CLASSIFIER);
    for _ in 0..2 {
        Canonicalizer::new(&policy).append(&records, &bitmaps, &mut rows);
    }
    let found: Vec<_> = (0..32).map(|row| std::str::from_utf8(rows.carried.pages.get(row)).unwrap()).collect();
    let both: Vec<_> = expected.iter().flat_map(|page| [*page; 2]).collect();
    assert_eq!((&found[..16], &found[16..]), (&both[..], &both[..]));
}

/// Most relative references are appended to the canonical URI of a part of their base. A second column of keys turns this off:
/// each reference is then resolved and normalized as a whole.
#[test]
fn appended_references_equal_resolved_ones() {
    let bases = "http://h/a/b/c?d=e#f http://h https://h/ HTTP://U@H.example:80/%7Ea/b%2fc/d http://h?q/r http://h/a/../b/c/. \
                 http://h/%2e%2e/b/./%2E http://m\u{FC}ller.example:8080/\u{442}/x y http://h:1:2/ http://h:99999/ http://[::1]/a \
                 ftp://h/a/b urn:a:b http:a/b a/b http:// http://h/a//b http://h/%zz/%/b?%7e http://h/x?a/b/../c file:///a/b http:///a/b/c http://h/a//b//c";
    let references = "c /c c/d?e ?q #f g#h i?j#k ../x ./x . .. /./x /x/../y //other/z //other x:y ./x:y a?x:y #x:y ?x:y \
                      /x:y :x 1:x http:g HTTP://H2/ mailto:m %41 a%2fb a%zz \u{E9} a#b#c a|b a[b] / // /// /.well-known \
                      .. ./ ../ ../../ ../../../../x ../.. ../x:y ./? ../?q ../#f .//x ..//x ../a/../b ../%41 ../.x ./../x ../x#y \
                      //Other/z //u@h/ //h:80/ //.h/x //a--b/ //h/./x //h/#f //h?q //h/%41 a/.b .b ..b \
                      a. a.. x/%2e%2e/y HTTP:x h:80 ;a=b a//b /a//b \u{1} \
                      a%2Fb /%C3%A9?%25#%FF ../%2F ?%C3#%A9 #%20%00 a%2F#b#c a%2F%7E %2F%2f a%2F/../b a%2F/. a%2F%2 %2F:x \
                      //h2/%2F %2F%41 a%2Fb|";
    // All references of a base in a row, then a different base for each reference.
    let by_base = bases.split(' ').flat_map(|base| references.split(' ').map(move |reference| (reference, base)));
    let by_reference = references.split(' ').flat_map(|reference| bases.split(' ').map(move |base| (reference, base)));
    let urls: Vec<_> = by_base.chain(by_reference).map(|(url, base)| (url.as_bytes(), Some(base.as_bytes()))).collect();
    let default = Policy::default;
    let policies = [
        default(),
        Policy { drop_fragment: true, ..default() },
        Policy { literal_base: true, ..default() },
        Policy { mode: ParseMode::Strict, ..default() },
        Policy { rung: Rung::Syntax, ..default() },
        Policy { profile: Profile::named("duerst-01").unwrap(), ..default() },
        Policy { charset: Charset::named("windows-1252"), ..default() },
    ];
    for policy in policies {
        let resolved = Policy { more_keys: vec![Rung::Syntax], ..policy.clone() };
        let rows_of = |policy| UrlCanonicalizer::new(policy).canonicalize(urls.iter().copied()).unwrap().clone();
        let (appended, resolved) = (rows_of(&policy), rows_of(&resolved));
        for i in 0..appended.len() {
            assert_eq!(appended.uri.get(i).as_bstr(), resolved.uri.get(i).as_bstr());
            assert_eq!((appended.fault(i), appended.flags[i]), (resolved.fault(i), resolved.flags[i]));
        }
        assert_eq!((&appended.key, &appended.tally), (&resolved.key, &resolved.tally));
    }
}
