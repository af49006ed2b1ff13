//! What must hold of every engine for every input. In: an engine and generated references. Out: a counter-example.
//!
//! Each property is a function over `&dyn Engine`, so that generated tests and fuzz targets ask the same questions;
//! [`agree`] holds an engine to the oracle.

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use irikey::canon::Policy;
use irikey::iri::{Flags, Rung as LibraryRung, normalize_to_rung};

use crate::engine::{Base, Engine, KINDS, Kind, RUNGS, Rung, fused_rows, library_intake};
use crate::oracle::{components, grammar};

/// A counter-example is an error that shows it.
pub type Verdict = Result<(), TestCaseError>;

/// Everything that must hold of one reference.
pub fn of_one_reference(engine: &dyn Engine, input: &[u8]) -> Verdict {
    every_rung_is_idempotent(engine, input)?;
    a_rung_refines_the_lower_ones(engine, input)?;
    output_is_a_uri(engine, input)?;
    output_keeps_its_components(engine, input)?;
    strict_is_lenient_or_nothing(engine, input)?;
    start_symbols_nest(engine, input)?;
    mapping_is_idempotent(engine, input)
}

/// A rung's text is its own text on that rung, and never refused.
pub fn every_rung_is_idempotent(engine: &dyn Engine, input: &[u8]) -> Verdict {
    for rung in RUNGS {
        if let Some(once) = engine.normalize(input, rung, false) {
            let twice = engine.normalize(once.as_bytes(), rung, false);
            prop_assert_eq!(twice.as_ref(), Some(&once), "{} {:?} of {:?}", engine.name(), rung, input);
        }
    }
    Ok(())
}

/// RFC 3987 section 5.3: a higher rung's text can be made from a lower one's, so what is equal below is equal above.
pub fn a_rung_refines_the_lower_ones(engine: &dyn Engine, input: &[u8]) -> Verdict {
    for (place, lower) in RUNGS.into_iter().enumerate() {
        let Some(text) = engine.normalize(input, lower, false) else { continue };
        for &higher in &RUNGS[place..] {
            let straight = engine.normalize(input, higher, false);
            let by_way = engine.normalize(text.as_bytes(), higher, false);
            prop_assert_eq!(straight, by_way, "{} {:?} by way of {:?}", engine.name(), higher, lower);
        }
    }
    Ok(())
}

/// Two spellings of one reference: equal at syntax, and then at scheme.
pub fn spellings_are_equal(engine: &dyn Engine, pair: &(Vec<u8>, Vec<u8>)) -> Verdict {
    for rung in [Rung::Syntax, Rung::Scheme] {
        let [left, right] = [&pair.0, &pair.1].map(|input| engine.normalize(input, rung, false));
        prop_assert_eq!(left, right, "{} {:?}: {:?}", engine.name(), rung, pair);
    }
    Ok(())
}

/// Equal on a rung implies equal on every higher one, for any two references.
pub fn equal_below_is_equal_above(engine: &dyn Engine, pair: &(Vec<u8>, Vec<u8>)) -> Verdict {
    let mut equal_below = false;
    for rung in RUNGS {
        let [left, right] = [&pair.0, &pair.1].map(|input| engine.normalize(input, rung, false));
        let equal = left.is_some() && left == right;
        prop_assert!(equal || !equal_below, "{} {:?}: {:?}", engine.name(), rung, pair);
        equal_below = equal;
    }
    Ok(())
}

/// What comes out is US-ASCII, and a URI unless something stray was kept.
pub fn output_is_a_uri(engine: &dyn Engine, input: &[u8]) -> Verdict {
    for rung in [Rung::Syntax, Rung::Scheme] {
        let Some(out) = engine.normalize(input, rung, false) else { continue };
        prop_assert!(out.is_ascii(), "{} {out:?}", engine.name());
        prop_assert!(engine.validate(Kind::Uri, out.as_bytes()) || keeps_stray(input), "{} {out:?}", engine.name());
    }
    Ok(())
}

/// A `%` without two hexadecimal digits; `[` or `]` outside the authority; a second `#`.
fn keeps_stray(input: &[u8]) -> bool {
    let stray_percent = |at: usize| input[at] == b'%' && !input.get(at + 1..at + 3).is_some_and(are_hex_digits);
    let text: String = input.iter().copied().map(char::from).collect();
    let split = components::split(&text);
    let others = [Some(split.path), split.query, split.fragment.clone()];
    (0..input.len()).any(stray_percent)
        || others.into_iter().flatten().any(|component| component.contains(['[', ']']))
        || split.fragment.is_some_and(|fragment| fragment.contains('#'))
}

fn are_hex_digits(bytes: &[u8]) -> bool {
    bytes.iter().all(u8::is_ascii_hexdigit)
}

/// The output is taken apart as the input was: no component comes, goes or swallows another at syntax.
pub fn output_keeps_its_components(engine: &dyn Engine, input: &[u8]) -> Verdict {
    let Some(out) = engine.normalize(input, Rung::Syntax, false) else { return Ok(()) };
    // Every byte as one character: delimiters are US-ASCII, and only they matter here.
    let text: String = input.iter().copied().map(char::from).collect();
    let (before, after) = (components::split(&text), components::split(&out));
    prop_assert_eq!(before.scheme.map(|scheme| scheme.to_ascii_lowercase()), after.scheme);
    prop_assert_eq!(before.authority.is_some(), after.authority.is_some());
    let parts = |authority: Option<String>| components::split_authority(&authority.unwrap_or_default());
    let (before_parts, after_parts) = (parts(before.authority), parts(after.authority));
    prop_assert_eq!(before_parts.userinfo.is_some(), after_parts.userinfo.is_some());
    prop_assert_eq!(before_parts.port, after_parts.port);
    prop_assert_eq!(before_parts.host.is_empty(), after_parts.host.is_empty());
    prop_assert_eq!(before.path.starts_with('/'), after.path.starts_with('/'));
    let shape = |component: Option<String>| component.map(|text| text.replace(|c| !"/?:@#".contains(c), ""));
    prop_assert_eq!(shape(before.query), shape(after.query));
    prop_assert_eq!(shape(before.fragment), shape(after.fragment));
    Ok(())
}

/// Strict intake takes what the grammar and section 4.1 take, and then gives the lenient text.
pub fn strict_is_lenient_or_nothing(engine: &dyn Engine, input: &[u8]) -> Verdict {
    let is_clean = std::str::from_utf8(input).is_ok_and(|text| !grammar::has_bidi_formatting(text));
    let taken = is_clean && engine.validate(Kind::Iri, input);
    for rung in RUNGS {
        let lenient = engine.normalize(input, rung, false);
        prop_assert!(!taken || lenient.is_some(), "{} refuses an IRI: {:?}", engine.name(), input);
        let expected = if taken { lenient } else { None };
        prop_assert_eq!(engine.normalize(input, rung, true), expected, "{} {:?}", engine.name(), rung);
    }
    Ok(())
}

/// The four start symbols include one another as the grammars say.
pub fn start_symbols_nest(engine: &dyn Engine, input: &[u8]) -> Verdict {
    let [iri, iri_reference, uri, uri_reference] = KINDS.map(|kind| engine.validate(kind, input));
    prop_assert!(!iri || iri_reference);
    prop_assert!(!uri || uri_reference);
    prop_assert_eq!(uri, iri && input.is_ascii());
    prop_assert_eq!(uri_reference, iri_reference && input.is_ascii());
    Ok(())
}

/// RFC 3987 section 3.1: "the mapping is idempotent" and "an identity transformation for URIs".
pub fn mapping_is_idempotent(engine: &dyn Engine, input: &[u8]) -> Verdict {
    for lenient in [false, true] {
        let uri = engine.to_uri(input, lenient);
        if !lenient {
            prop_assert_eq!(uri.is_some(), engine.validate(Kind::IriReference, input));
        }
        if let Some(uri) = uri {
            prop_assert!(engine.validate(Kind::UriReference, uri.as_bytes()), "{} {uri:?}", engine.name());
            let again = engine.to_uri(uri.as_bytes(), lenient);
            prop_assert_eq!(again, Some(uri));
        }
    }
    if engine.validate(Kind::UriReference, input) {
        let identity = engine.to_uri(input, false).map(String::into_bytes);
        prop_assert_eq!(identity.as_deref(), Some(input));
    }
    Ok(())
}

/// A target of two references that the grammar has is an IRI without dots, and resolves to itself.
pub fn a_target_is_an_iri(engine: &dyn Engine, base: &str, reference: &str) -> Verdict {
    let valid =
        engine.validate(Kind::Iri, base.as_bytes()) && engine.validate(Kind::IriReference, reference.as_bytes());
    for reading in [Base::Normalised, Base::Literal] {
        let target = engine.resolve(base, reference, reading);
        prop_assert!(target.is_some() || !valid, "{} {base:?} {reference:?}", engine.name());
        let Some(target) = target.filter(|_| valid) else { continue };
        prop_assert!(engine.validate(Kind::Iri, target.as_bytes()), "{} {target:?}", engine.name());
        if reading == Base::Normalised && components::split(&target).path.starts_with('/') {
            let again = engine.resolve(base, &target, reading);
            prop_assert_eq!(again, Some(target));
        }
    }
    Ok(())
}

/// Section 5.2.4 by another way, for paths with a root: a stack of segments.
pub fn dots_equal_a_stack(engine: &dyn Engine, path: &str) -> Verdict {
    let rooted = format!("/{path}");
    let mut stack = Vec::new();
    let mut ends_in_directory = false;
    for segment in rooted[1..].split('/') {
        ends_in_directory = matches!(segment, "." | "..");
        match segment {
            "." => {}
            ".." => drop(stack.pop()),
            name => stack.push(name),
        }
    }
    let end = if ends_in_directory && !stack.is_empty() { "/" } else { "" };
    let expected = format!("/{}{end}", stack.join("/"));
    prop_assert_eq!(engine.remove_dot_segments(&rooted), expected, "{} {:?}", engine.name(), rooted);
    Ok(())
}

/// Every answer to one input is the oracle's.
pub fn agree(oracle: &dyn Engine, engine: &dyn Engine, input: &[u8]) -> Verdict {
    for kind in KINDS {
        let (expected, got) = (oracle.validate(kind, input), engine.validate(kind, input));
        prop_assert_eq!(expected, got, "{} {:?} {:?}", engine.name(), kind, input);
    }
    for strict in [false, true] {
        for rung in RUNGS {
            let (expected, got) = (oracle.normalize(input, rung, strict), engine.normalize(input, rung, strict));
            prop_assert_eq!(expected, got, "{} {:?} strict {} {:?}", engine.name(), rung, strict, input);
        }
        let lenient = !strict;
        prop_assert_eq!(oracle.to_uri(input, lenient), engine.to_uri(input, lenient), "{:?}", input);
        prop_assert_eq!(oracle.to_uri_ascii(input, lenient), engine.to_uri_ascii(input, lenient), "{:?}", input);
    }
    Ok(())
}

/// The same for two texts, and for dot segments.
pub fn agree_on_targets(oracle: &dyn Engine, engine: &dyn Engine, base: &str, reference: &str) -> Verdict {
    for reading in [Base::Normalised, Base::Literal] {
        let [expected, got] = [oracle, engine].map(|engine| engine.resolve(base, reference, reading));
        if got.is_none() && oracle.normalize(base.as_bytes(), Rung::Syntax, false).is_none() {
            // The oracle resolves against what cannot be taken apart; an engine may refuse to.
            continue;
        }
        prop_assert_eq!(expected, got, "{} {:?} {:?} {:?}", engine.name(), reading, base, reference);
    }
    prop_assert_eq!(oracle.remove_dot_segments(reference), engine.remove_dot_segments(reference), "{:?}", reference);
    Ok(())
}

/// The fused pass notices and refuses what the ladder does, and its row accounts for itself.
pub fn fused_rows_account_for_themselves(input: &[u8]) -> Verdict {
    for (rung, strict) in [(LibraryRung::Scheme, false), (LibraryRung::Syntax, false), (LibraryRung::Scheme, true)] {
        let policy = Policy {
            rung,
            intake: library_intake(strict),
            keep_input: true,
            more_keys: LibraryRung::ALL.into(),
            ..Policy::default()
        };
        let rows = fused_rows(input, input.len() % 64, &policy);
        prop_assert!(rows.len() == 1 && rows.tally.rows == 1 && rows.tally.is_balanced());
        let fault = rows.faults.first().map(|(_, fault)| *fault);
        let climbed = normalize_to_rung(input, rung, policy.intake);
        prop_assert_eq!(fault, climbed.as_ref().err().copied(), "{:?}", input);
        if let Ok((text, flags)) = climbed {
            prop_assert_eq!(Flags(rows.flags[0]), flags, "flags of {:?} on {:?}", input, rung);
            prop_assert_eq!(rows.differs(0), text != input);
        }
        prop_assert_eq!(rows.differs(0), rows.tally.unchanged == 0);
        prop_assert_eq!(rows.input.get(0), if rows.differs(0) { input } else { b"" });
        for (place, lower) in LibraryRung::ALL.into_iter().enumerate() {
            let text = normalize_to_rung(input, lower, policy.intake).map_or(input.to_vec(), |(text, _)| text);
            prop_assert_eq!(rows.more_keys[place][0], policy.algorithm.key(&text), "key_{}", lower.name());
        }
    }
    Ok(())
}
