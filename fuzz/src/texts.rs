//! Targets of single references, documents and requests.

use crate::engine::{Engine, Oracle, engines};
use crate::properties;
use crate::runs::{choose, split_choices};
use encoding_rs::Encoding;
use irikey::canon::{Canonicalizer, Policy, Rows, Rung};
use irikey::encoding::{Charset, UnmappableMode};
use irikey::extract::{DocumentContext, Markup};
use irikey::iri::{ParseMode, PreprocessOptions, Profile};
use irikey::kernel::Bitmaps;
use irikey::key::{Draft, RULES, Recipe};
use irikey::record::RecordBuffer;
use libfuzzer_sys::Corpus;
use std::cell::RefCell;

/// One reference: the properties of the tests hold for every engine, and its results equal the oracle's.
pub fn normalize(input: &[u8]) -> Corpus {
    for engine in engines() {
        properties::of_one_reference(engine, input).expect("a property holds");
        properties::agree(&Oracle, engine, input).expect("the engine equals the oracle");
    }
    properties::fused_rows_equal_the_ladder(input).expect("the single pass equals the ladder");
    Corpus::Keep
}

/// A base and a reference, separated by a line end: the target is an IRI, and it and the row of the reference equal the
/// oracle's.
pub fn resolve(input: &[u8]) -> Corpus {
    let Ok(input) = std::str::from_utf8(input) else { return Corpus::Reject };
    let (base, reference) = input.split_once('\n').unwrap_or(("http://a/b/c/d;p?q", input));
    for engine in engines() {
        let engine: &dyn Engine = engine;
        properties::a_target_is_an_iri(engine, base, reference).expect("a target is an IRI");
        properties::dots_equal_a_stack(engine, reference).expect("dot segments are removed as by a stack");
        properties::agree_on_targets(&Oracle, engine, base, reference).expect("the engine equals the oracle");
    }
    properties::rows_with_a_base_equal_the_oracle(base, reference).expect("the row equals the oracle's");
    Corpus::Keep
}

fn rows_of(text: &[u8], policy: &Policy) -> Rows {
    let (mut buffer, mut bitmaps, mut rows) = (RecordBuffer::default(), Bitmaps::default(), Rows::default());
    buffer.push_url(text);
    let records = buffer.classified_records(&mut bitmaps);
    Canonicalizer::new(policy).append(&records, &bitmaps, &mut rows);
    rows
}

/// The URI of a row is accepted again by its profile and does not change.
pub fn profiles(input: &[u8]) -> Corpus {
    let Some(([profile, mode, rung], text)) = split_choices(input) else { return Corpus::Reject };
    let profile = choose(&Profile::ALL, profile);
    let policy = Policy {
        profile,
        mode: choose(&[ParseMode::Lenient, ParseMode::Strict], mode),
        rung: choose(&[Rung::Scheme, Rung::Syntax], rung),
        base: (mode & 2 > 0).then(|| b"http://base/a/b".to_vec()),
        preprocess: PreprocessOptions { is_trimmed: mode & 4 > 0, ..PreprocessOptions::default() },
        keep_input: true,
        spoofing_flags: true,
        ..Policy::default()
    };
    let rows = rows_of(text, &policy);
    if rows.faults.is_empty() {
        let uri = rows.uri.get(0);
        assert!(uri.is_ascii(), "{uri:?}");
        let again = rows_of(uri, &policy);
        let fault = again.faults.first().map(|(_, fault)| fault.to_string());
        assert_eq!(fault, None, "{} refuses {:?}", profile.name, String::from_utf8_lossy(uri));
        assert_eq!(again.uri.get(0), uri, "{} changes its own URI", profile.name);
        assert_eq!(again.key, rows.key);
    }
    Corpus::Keep
}

thread_local! {
    /// A draft that every execution uses again.
    static DRAFT: RefCell<Draft> = RefCell::default();
}

/// A recipe, possibly with further rules, gives a key of any bytes. The key does not depend on what its draft held, nor on
/// whether the recipe has a shortcut.
pub fn recipes(input: &[u8]) -> Corpus {
    let Some(([name, added, removed], url)) = split_choices(input) else { return Corpus::Reject };
    let names: Vec<&str> = Recipe::names().collect();
    let mut text = choose(&names, name).to_string();
    for (sign, choice) in [('+', added), ('-', removed)] {
        // A change without effect is refused.
        let changed = RULES.get(choice).map(|rule| format!("{text},{sign}{}", rule.name));
        text = changed.filter(|changed| Recipe::parse(changed).is_ok()).unwrap_or(text);
    }
    let key = |name: &str, draft: &mut Draft| {
        let (recipe, mut key) = (Recipe::parse(name).expect("the names are known"), Vec::new());
        let applied = recipe.write_key(url, draft, &mut key);
        (applied.map(|rules| rules.names().collect::<Vec<_>>()).map_err(|fault| fault.to_string()), key)
    };
    let reused = DRAFT.with_borrow_mut(|draft| key(&text, draft));
    assert_eq!(reused, key(&text, &mut Draft::default()), "{text}");
    for name in ["surt-wayback", "surt-ia"] {
        // A recipe with changes has no shortcut, also if the changes cancel each other.
        let by_rules = key(&format!("{name},-port,+port"), &mut Draft::default());
        assert_eq!(key(name, &mut Draft::default()), by_rules, "{name}");
    }
    Corpus::Keep
}

/// Text in a charset: exactly malformed text is refused, where the error begins, and what was encoded is decoded to the same
/// text.
pub fn charsets(input: &[u8]) -> Corpus {
    const LABELS: [&str; 12] = [
        "utf-8",
        "utf-16le",
        "utf-16be",
        "utf-16",
        "windows-1252",
        "windows-1258",
        "shift_jis",
        "euc-jp",
        "iso-2022-jp",
        "gb18030",
        "big5",
        "euc-kr",
    ];
    let Some(([label], bytes)) = split_choices(input) else { return Corpus::Reject };
    let label = choose(&LABELS, label);
    let charset = Charset::named(label).expect("a label of the standard");
    let encoding = Encoding::for_label(label.as_bytes()).expect("a label of the standard");
    let decoded = charset.decode(bytes);
    if let Err(error) = &decoded {
        assert!(charset.decode(&bytes[..error.offset()]).is_ok(), "{label}: {error}, but an error is before it");
    }
    if Encoding::for_bom(bytes).is_none() {
        let is_malformed = encoding.decode_without_bom_handling(bytes).1;
        assert_eq!(decoded.is_err(), is_malformed, "{label}: malformed text is refused, and no other");
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return Corpus::Keep };
    for mode in [UnmappableMode::Fail, UnmappableMode::Utf8, UnmappableMode::CharacterReference] {
        let encoded = charset.encode(text, mode);
        match &encoded {
            Err(at) => assert!(mode == UnmappableMode::Fail && text.is_char_boundary(*at) && *at < text.len()),
            Ok(encoded) if !encoded.has_unmappable && !label.starts_with("utf-16") => {
                if !text.contains(is_read_as_another) {
                    decodes_to(encoding, &encoded.runs, text);
                }
            }
            Ok(_) => (),
        }
    }
    Corpus::Keep
}

/// The Encoding Standard encodes this character as bytes that it decodes to another one: in charsets of Japan, and in gb18030
/// since its edition of 2022.
fn is_read_as_another(c: char) -> bool {
    let is_japanese = matches!(c, '\u{A5}' | '\u{203E}' | '\u{2212}' | '\u{FF61}'..='\u{FF9F}');
    let is_chinese =
        matches!(c as u32, 0xE78D..=0xE796 | 0xE81E | 0xE826 | 0xE82B | 0xE82C | 0xE832 | 0xE843 | 0xE854 | 0xE864);
    is_japanese || is_chinese
}

/// Every run, decoded alone, is a piece of `text`.
fn decodes_to(encoding: &'static Encoding, runs: &[(Vec<u8>, bool)], text: &str) {
    let pieces = runs.iter().map(|(run, is_encoded)| {
        let encoding = if *is_encoded { encoding.output_encoding() } else { encoding_rs::UTF_8 };
        encoding.decode_without_bom_handling(run).0.into_owned()
    });
    assert_eq!(pieces.collect::<String>(), text, "{}", encoding.name());
}

/// Documents: every link has its base and its place, its URL is text, unless it has a defect, and its text is short.
pub fn extract(input: &[u8]) -> Corpus {
    let Some(([markup, charset, base], bytes)) = split_choices(input) else { return Corpus::Reject };
    let labels = [None, None, Some("windows-1252"), Some("utf-16le"), Some("shift_jis"), Some("iso-2022-jp")];
    let context = DocumentContext {
        markup: choose(
            &[None, Some(Markup::Html), Some(Markup::Xml), Some(Markup::Robots), Some(Markup::Urls)],
            markup,
        ),
        charset: choose(&labels, charset).and_then(Charset::named),
        base: (base % 2 == 1).then(|| b"http://base/a/b".to_vec()),
        text: base & 2 > 0,
        ..DocumentContext::default()
    };
    let document = irikey::extract::extract(bytes, &context);
    for link in &document.links {
        assert!(link.base < document.bases.len(), "{link:?}");
        assert!(link.offset <= bytes.len() as u64, "{link:?}");
        assert_eq!(link.url.trim_ascii(), link.url, "{link:?}");
        assert!(link.text.len() <= 1 << 10 && link.rel.len() <= 3 << 10, "{link:?}");
        if let Some((_, at)) = link.defect {
            assert!(link.url.is_empty() && at <= bytes.len() as u64, "{link:?}");
        }
    }
    Corpus::Keep
}

/// Any line is answered, with its own `id` if it is an object.
pub fn eval(input: &[u8]) -> Corpus {
    let answer = irikey::cli::fuzzing::eval(input);
    let members = answer.as_object().expect("an object");
    let kinds = ["output", "fault", "unsupported", "error"];
    assert_eq!(members.keys().filter(|name| kinds.contains(&name.as_str())).count(), 1, "{answer}");
    if let Ok(question) = serde_json::from_slice::<serde_json::Value>(input) {
        assert_eq!(answer["id"], *question.get("id").unwrap_or(&serde_json::Value::Null));
    }
    Corpus::Keep
}

/// Any text is explained, as text and as JSON.
pub fn explain(input: &[u8]) -> Corpus {
    let Some(([profile, flags], text)) = split_choices(input) else { return Corpus::Reject };
    if text.contains(&0) {
        return Corpus::Reject;
    }
    let profile = choose(&Profile::ALL, profile).name;
    let mut arguments = vec!["--profile", profile];
    if flags & 1 > 0 {
        arguments.extend(["--base", "http://base/a/../b?q"]);
    }
    // The profile whatwg has no strict mode.
    if flags & 2 > 0 && profile != "whatwg" {
        arguments.push("--strict");
    }
    let more: [&[&str]; 6] = [
        &["--assume-scheme", "https"],
        &["--trim", "--backslashes", "slash"],
        &["--drop-fragment", "--max-url", "100"],
        &["--inner-spaces", "remove", "--character-references", "html"],
        &["--charset", "windows-1251"],
        &["--query-charset", "koi8-r", "--key", "surt-ia,w3lib"],
    ];
    let chosen = more.iter().enumerate().filter(|(bit, _)| flags >> (bit + 2) & 1 > 0);
    arguments.extend(chosen.flat_map(|(_, flags)| flags.iter().copied()));
    let shown = irikey::cli::fuzzing::explain(text, &arguments);
    assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "a terminal shows {shown:?}");
    arguments.push("--json");
    let json = irikey::cli::fuzzing::explain(text, &arguments);
    let value: serde_json::Value = serde_json::from_str(json.trim_end()).expect("a JSON object");
    assert_eq!(value["input"], String::from_utf8_lossy(text).into_owned());
    Corpus::Keep
}
