//! Generators of hard references: nearly grammatical ones, random sequences of delimiters, mutations of the cases, and
//! pairs that are equal on the rung `syntax` or nearly so.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::FileFailurePersistence;

use crate::cases;
use crate::oracle::{components, grammar};

/// A configuration with `factor` times the default number of cases, which `PROPTEST_CASES` sets.
///
/// The seed of a failing case is appended to a `.regressions` file beside the source file, and later runs repeat it.
pub fn config(factor: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    let failure_persistence = FileFailurePersistence::WithSource("regressions");
    ProptestConfig {
        cases: factor * default.cases,
        failure_persistence: Some(Box::new(failure_persistence)),
        ..default
    }
}

fn one_of(texts: &'static [&'static str]) -> BoxedStrategy<Vec<u8>> {
    select(texts).prop_map(|text| text.as_bytes().to_vec()).boxed()
}

fn joined(parts: impl Strategy<Value = Vec<Vec<u8>>> + 'static) -> BoxedStrategy<Vec<u8>> {
    parts.prop_map(|parts| parts.concat()).boxed()
}

/// A piece of any component: letters, escapes of every kind, stray `%`, excluded characters, bidi controls and
/// malformed UTF-8.
fn piece() -> BoxedStrategy<Vec<u8>> {
    let plain = one_of(&["a", "B", "7", "-", ".", "_", "~", "x%61", "é", "日本", "\u{10300}", "!", "$&'", "+", ",;="]);
    let escaped =
        one_of(&["%41", "%7e", "%2E", "%2e", "%2f", "%C3%A9", "%c3", "%25", "%2541", "%00", "%34", "%31", "%5b"]);
    let stray = one_of(&["%", "%%", "%4", "%zz", "%é", " ", "<", "\"", "{|}", "\\", "^`", "\t", "\0", "\u{7f}"]);
    let odd = one_of(&["\u{202E}", "\u{2066}", "\u{FFFD}", "\u{E000}", "\u{FDD0}", "\u{85}", "\u{A0}", "e\u{301}"]);
    let broken = select(vec![b"\xff".to_vec(), b"\xc3".to_vec(), b"\xed\xa0\x80".to_vec(), b"\xf0\x9f".to_vec()]);
    prop_oneof![12 => plain, 8 => escaped, 2 => stray, 1 => odd, 1 => broken].boxed()
}

fn pieces(max_count: usize) -> BoxedStrategy<Vec<u8>> {
    joined(vec(piece(), 0..=max_count))
}

fn scheme() -> BoxedStrategy<Vec<u8>> {
    let known = one_of(&["http", "HTTP", "hTTps", "https", "ws", "WSS", "ftp", "file", "FILE", "urn", "URN", "mailto"]);
    let other = one_of(&["x", "X", "a+b-c.9", "1a", "é", "", "data", "h%74tp", "git+SSH"]);
    prop_oneof![5 => known, 1 => other].boxed()
}

fn host() -> BoxedStrategy<Vec<u8>> {
    let ascii = one_of(&["h", "Example.ORG", "localhost", "LOCALHOST", "127.0.0.1", "0x7f.1", "h.", "", "a_b", "a!b"]);
    let idn = one_of(&["bücher.example", "BÜCHER", "b%C3%BCcher", "b%c3%bccher.DE", "faß.de", "例え.テスト", "אב"]);
    let odd_idn = one_of(&["\u{AD}", "ｅｘ。org", "\u{200D}", "℀", "א.a", "ex\u{AD}ample", "%E9", "%2E", "\u{301}a"]);
    let a_label = one_of(&["xn--bcher-kva.example", "XN--BCHER-KVA", "xn--a", "xn--a-", "xn--", "%58n--fa-hia.de"]);
    let literal = one_of(&[
        "[::1]",
        "[2001:DB8:0:0::A]",
        "[2001:db8::a:0:1]",
        "[1:2:3:4:5:6:7:ab]",
        "[::ffff:1.2.3.4]",
        "[v1.A]",
        "[::1",
        "[fe80::1%25e]",
        "[]",
    ]);
    prop_oneof![4 => ascii, 3 => idn, 2 => odd_idn, 2 => a_label, 2 => literal, 2 => pieces(3)].boxed()
}

fn authority() -> BoxedStrategy<Vec<u8>> {
    let userinfo = prop_oneof![
        6 => Just(Vec::new()),
        1 => one_of(&["u@", "@", ":@", "U:p%41@", "é@", "a@b@"]),
        1 => joined((pieces(2), Just(b"@".to_vec())).prop_map(|(info, at)| vec![info, at])),
    ];
    let port = one_of(&[
        "", "", "", ":", ":80", ":443", ":080", ":0", ":21", ":8080", ":65536", ":065535", ":8a", ":1:2", ":-1",
    ]);
    joined((userinfo, host(), port).prop_map(|(userinfo, host, port)| vec![userinfo, host, port]))
}

fn path() -> BoxedStrategy<Vec<u8>> {
    let dots = one_of(&[".", "..", "%2e", "%2E%2e", ".%2e", "...", "", ""]);
    let brackets = one_of(&["[", "]", "a:b", "@", "c|"]);
    let segment = prop_oneof![4 => dots, 5 => pieces(3), 1 => brackets];
    let rooted = vec(segment.clone(), 0..7).prop_map(|segments| {
        segments.into_iter().flat_map(|segment| [b"/".to_vec(), segment]).collect::<Vec<_>>().concat()
    });
    let rootless = vec(segment, 0..4).prop_map(|segments| segments.join(&b'/'));
    let named = one_of(&["ISBN:x", "A:x", "a-B:%41", "", "/"]);
    prop_oneof![8 => rooted, 2 => rootless, 1 => named].boxed()
}

fn tail(mark: &'static str) -> BoxedStrategy<Vec<u8>> {
    let some = pieces(4).prop_map(move |text| [mark.as_bytes(), &text].concat());
    let odd = one_of(&["/", "?", "[]", "#"]).prop_map(move |text| [mark.as_bytes(), &text].concat());
    prop_oneof![4 => Just(Vec::new()), 3 => some, 1 => odd].boxed()
}

/// References that follow the grammar, or nearly so.
pub fn grammatical() -> BoxedStrategy<Vec<u8>> {
    let scheme = prop_oneof![9 => scheme().prop_map(|scheme| [&scheme[..], b":"].concat()), 1 => Just(Vec::new())];
    let authority =
        prop_oneof![4 => authority().prop_map(|authority| [b"//", &authority[..]].concat()), 1 => Just(Vec::new())];
    joined((scheme, authority, path(), tail("?"), tail("#")).prop_map(|(s, a, p, q, f)| vec![s, a, p, q, f]))
}

/// Random sequences of delimiters. Some begin with a scheme, so that parsing does not fail at once.
pub fn soup() -> BoxedStrategy<Vec<u8>> {
    let alphabet = select(b"::////..??##@@[]%%%2eE4137aAfFhtpxn-+ \\|\xc3\xa9\xff".to_vec());
    let start = one_of(&["", "", "x:", "http://", "http://h/", "file:", "urn:", "x:/"]);
    (start, vec(alphabet, 0..24)).prop_map(|(start, soup)| [start, soup].concat()).boxed()
}

/// An input of `data/cases` with some bytes removed, inserted, doubled or replaced.
pub fn mutated_case() -> BoxedStrategy<Vec<u8>> {
    let inputs: Vec<Vec<u8>> = cases::all().into_iter().map(|case| case.input).collect();
    (select(inputs), vec((any::<Index>(), 0..4u8, piece()), 0..4))
        .prop_map(|(mut input, edits)| {
            for (place, edit, piece) in edits {
                let at = place.index(input.len() + 1);
                let end = (at + 1).min(input.len());
                let taken: Vec<u8> = match edit {
                    0 => Vec::new(),
                    1 => [&piece[..], &input[at..end]].concat(),
                    2 => input[at..end].repeat(2),
                    _ => piece,
                };
                input.splice(at..end, taken);
            }
            input
        })
        .boxed()
}

/// A reference from any of the three generators above.
pub fn reference() -> BoxedStrategy<Vec<u8>> {
    prop_oneof![3 => grammatical(), 1 => soup(), 1 => mutated_case()].boxed()
}

/// A reference as text, for functions that take `&str`.
pub fn text_reference() -> BoxedStrategy<String> {
    reference().prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).boxed()
}

/// A reference and another spelling of it that section 5.3.2 defines to be equal; see [`respell`].
pub fn syntax_pair() -> BoxedStrategy<(Vec<u8>, Vec<u8>)> {
    (reference(), vec(any::<u8>(), 64)).prop_map(|(input, dice)| (input.clone(), respell(&input, &dice))).boxed()
}

/// Two references that are often equal on some rung: one is the other with a short text inserted or a byte escaped,
/// removed or changed in case. Every eighth pair consists of two unrelated references.
pub fn similar_pair() -> BoxedStrategy<(Vec<u8>, Vec<u8>)> {
    let inserted = one_of(&["/.", "/./", "/x/..", "//", ":", ":80", "%2e", "%41", "a", "?", "#", "@"]);
    let edited = (prop_oneof![soup(), grammatical()], any::<Index>(), 0..4u8, inserted).prop_map(
        |(input, place, edit, inserted)| {
            let at = place.index(input.len() + 1);
            let end = (at + 1).min(input.len());
            let replacement = match (edit, input.get(at)) {
                (0, _) => [&inserted[..], &input[at..end]].concat(),
                (1, Some(byte)) => format!("%{byte:02x}").into_bytes(),
                (2, Some(byte)) if byte.is_ascii_lowercase() => vec![byte.to_ascii_uppercase()],
                (2, Some(byte)) => vec![byte.to_ascii_lowercase()],
                _ => Vec::new(),
            };
            let mut output = input.clone();
            output.splice(at..end, replacement);
            (input, output)
        },
    );
    prop_oneof![7 => edited, 1 => (soup(), soup())].boxed()
}

/// Returns another spelling of `input`: changes the case of the scheme, the host and the digits of escapes, escapes
/// unreserved and non-ASCII characters, and inserts `/./` into rooted paths. Does not change bytes that are not UTF-8.
fn respell(input: &[u8], dice: &[u8]) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(input) else { return input.to_vec() };
    let mut roll = dice.iter().copied().cycle();
    let mut split = components::split(text);
    split.scheme = split.scheme.map(|scheme| flip_case(&scheme, &mut roll));
    split.authority = split.authority.map(|authority| {
        let mut parts = components::split_authority(&authority);
        parts.userinfo = parts.userinfo.map(|userinfo| respell_escapes(&userinfo, &mut roll));
        parts.host = flip_case(&parts.host, &mut roll);
        if !parts.host.contains(['[', ']']) {
            parts.host = respell_escapes(&parts.host, &mut roll);
        }
        components::recompose_authority(&parts)
    });
    split.path = respell_escapes(&split.path, &mut roll);
    if split.path.starts_with('/') && roll.next() > Some(127) {
        split.path.insert_str(0, "/.");
    }
    split.query = split.query.map(|query| respell_escapes(&query, &mut roll));
    split.fragment = split.fragment.map(|fragment| respell_escapes(&fragment, &mut roll));
    components::recompose(&split).into_bytes()
}

fn flip_case(text: &str, roll: &mut impl Iterator<Item = u8>) -> String {
    let flip = |c: char| if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() };
    text.chars().map(|c| if roll.next() > Some(127) { flip(c) } else { c }).collect()
}

/// Changes escapes and escapes characters at random. The two characters after a stray `%` do not change, because a
/// change could complete an escape.
fn respell_escapes(component: &str, roll: &mut impl Iterator<Item = u8>) -> String {
    let mut out = String::new();
    let mut rest = component;
    let mut since_stray = 2;
    while let Some(first) = rest.chars().next() {
        let is_triplet = rest.get(..3).is_some_and(grammar::pct_encoded);
        let run = if is_triplet { 3 } else { first.len_utf8() };
        let chosen = roll.next() > Some(127) && since_stray >= 2;
        match (is_triplet, chosen) {
            (true, true) => out.push_str(&flip_case(&rest[..run], roll)),
            (false, true) if grammar::unreserved(first) || !first.is_ascii() => {
                rest[..run].bytes().for_each(|byte| out.push_str(&format!("%{byte:02x}")));
            }
            _ => out.push_str(&rest[..run]),
        }
        since_stray = if first == '%' && !is_triplet { 0 } else { since_stray + 1 };
        rest = &rest[run..];
    }
    out
}
