//! Properties that hold for every engine and every input.
//!
//! Each property is a function over `&dyn Engine`, so that the generated tests and the fuzz targets check the same
//! properties. [`agree`] and [`agree_on_targets`] compare an engine with the oracle.

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use irikey::canon::Policy;
use irikey::iri::{Flags, Rung as LibraryRung, normalize_to_rung};

use crate::engine::{Base, Engine, KINDS, Kind, RUNGS, Rung, fused_rows, parse_mode};
use crate::oracle::{components, grammar, ladder, mapping, resolve};

/// The result of a property: the error describes a counter-example.
pub type Verdict = Result<(), TestCaseError>;

/// All properties of one reference.
pub fn of_one_reference(engine: &dyn Engine, input: &[u8]) -> Verdict {
    every_rung_is_idempotent(engine, input)?;
    a_rung_refines_the_lower_ones(engine, input)?;
    output_is_a_uri(engine, input)?;
    output_keeps_its_components(engine, input)?;
    strict_results_are_lenient_results(engine, input)?;
    start_symbols_nest(engine, input)?;
    mapping_is_idempotent(engine, input)
}

/// Normalizing the result of a rung again does not change it and does not fail.
pub fn every_rung_is_idempotent(engine: &dyn Engine, input: &[u8]) -> Verdict {
    for rung in RUNGS {
        if let Some(once) = engine.normalize(input, rung, false) {
            let twice = engine.normalize(once.as_bytes(), rung, false);
            prop_assert_eq!(twice.as_ref(), Some(&once), "{} {:?} of {:?}", engine.name(), rung, input);
        }
    }
    Ok(())
}

/// RFC 3987 section 5.3: normalizing to a lower rung first does not change the result of a higher rung. So references
/// that are equal on a rung are equal on every higher rung.
pub fn a_rung_refines_the_lower_ones(engine: &dyn Engine, input: &[u8]) -> Verdict {
    for (level, lower) in RUNGS.into_iter().enumerate() {
        let Some(text) = engine.normalize(input, lower, false) else { continue };
        for &higher in &RUNGS[level..] {
            let direct = engine.normalize(input, higher, false);
            let indirect = engine.normalize(text.as_bytes(), higher, false);
            prop_assert_eq!(direct, indirect, "{} {:?} through {:?}", engine.name(), higher, lower);
        }
    }
    Ok(())
}

/// Two spellings of one reference are equal on the rungs `syntax` and `scheme`. Returns whether the pair exercises the
/// property: whether the spellings differ and are accepted.
pub fn spellings_are_equal(engine: &dyn Engine, pair: &(Vec<u8>, Vec<u8>)) -> Result<bool, TestCaseError> {
    let mut is_accepted = true;
    for rung in [Rung::Syntax, Rung::Scheme] {
        let [left, right] = [&pair.0, &pair.1].map(|input| engine.normalize(input, rung, false));
        is_accepted &= left.is_some();
        prop_assert_eq!(left, right, "{} {:?}: {:?}", engine.name(), rung, pair);
    }
    Ok(is_accepted && pair.0 != pair.1)
}

/// Two references that are equal on a rung are equal on every higher rung. Returns whether the pair exercises the
/// property: whether the references differ and are equal on the rung `syntax`.
pub fn equal_below_is_equal_above(engine: &dyn Engine, pair: &(Vec<u8>, Vec<u8>)) -> Result<bool, TestCaseError> {
    let mut is_exercised = false;
    let mut equal_below = false;
    for rung in RUNGS {
        let [left, right] = [&pair.0, &pair.1].map(|input| engine.normalize(input, rung, false));
        let equal = left.is_some() && left == right;
        prop_assert!(equal || !equal_below, "{} {:?}: {:?}", engine.name(), rung, pair);
        equal_below = equal;
        is_exercised |= equal && rung == Rung::Syntax && pair.0 != pair.1;
    }
    Ok(is_exercised)
}

/// The result is US-ASCII, and a URI unless the input has stray characters, which are kept.
pub fn output_is_a_uri(engine: &dyn Engine, input: &[u8]) -> Verdict {
    for rung in [Rung::Syntax, Rung::Scheme] {
        let Some(out) = engine.normalize(input, rung, false) else { continue };
        prop_assert!(out.is_ascii(), "{} {out:?}", engine.name());
        prop_assert!(
            engine.validate(Kind::Uri, out.as_bytes()) || has_stray_characters(input),
            "{} {out:?}",
            engine.name()
        );
    }
    Ok(())
}

/// Reports whether the input has a `%` without two hexadecimal digits, a `[` or `]` outside the authority, or a second
/// `#`.
fn has_stray_characters(input: &[u8]) -> bool {
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

/// On the rung `syntax`, the result has the same components as the input: none is added, removed or merged.
pub fn output_keeps_its_components(engine: &dyn Engine, input: &[u8]) -> Verdict {
    let Some(out) = engine.normalize(input, Rung::Syntax, false) else { return Ok(()) };
    // Maps every byte to one character: only the delimiters matter here, and they are US-ASCII.
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

/// The strict mode accepts what the grammar and section 4.1 allow; the result is that of the lenient mode.
pub fn strict_results_are_lenient_results(engine: &dyn Engine, input: &[u8]) -> Verdict {
    let is_clean = std::str::from_utf8(input).is_ok_and(|text| !grammar::has_bidi_formatting(text));
    let is_accepted = is_clean && engine.validate(Kind::Iri, input);
    for rung in RUNGS {
        let lenient = engine.normalize(input, rung, false);
        prop_assert!(!is_accepted || lenient.is_some(), "{} rejects an IRI: {:?}", engine.name(), input);
        let expected = if is_accepted { lenient } else { None };
        prop_assert_eq!(engine.normalize(input, rung, true), expected, "{} {:?}", engine.name(), rung);
    }
    Ok(())
}

/// The four start symbols include each other as the grammars define.
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

/// The target of a valid base and a valid reference is an IRI, and resolves to itself.
pub fn a_target_is_an_iri(engine: &dyn Engine, base: &str, reference: &str) -> Verdict {
    let valid =
        engine.validate(Kind::Iri, base.as_bytes()) && engine.validate(Kind::IriReference, reference.as_bytes());
    for reading in [Base::Normalized, Base::Literal] {
        let target = engine.resolve(base, reference, reading);
        prop_assert!(target.is_some() || !valid, "{} {base:?} {reference:?}", engine.name());
        let Some(target) = target.filter(|_| valid) else { continue };
        prop_assert!(engine.validate(Kind::Iri, target.as_bytes()), "{} {target:?}", engine.name());
        if reading == Base::Normalized && components::split(&target).path.starts_with('/') {
            let again = engine.resolve(base, &target, reading);
            prop_assert_eq!(again, Some(target));
        }
    }
    Ok(())
}

/// Section 5.2.4 for rooted paths equals another definition: a stack of segments.
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

/// Every result for one reference equals the result of the oracle.
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
    let uri = mapping::encode(input);
    prop_assert_eq!(oracle.to_iri(&uri), engine.to_iri(&uri), "{:?}", uri);
    Ok(())
}

/// Every target equals the target of the oracle, and so does the removal of dot segments. Returns whether there is a
/// target.
///
/// An engine also rejects a base that normalization rejects; the oracle only checks the scheme of a base.
pub fn agree_on_targets(
    oracle: &dyn Engine,
    engine: &dyn Engine,
    base: &str,
    reference: &str,
) -> Result<bool, TestCaseError> {
    let is_base_valid = oracle.normalize(base.as_bytes(), Rung::Syntax, false).is_some();
    let mut has_target = false;
    for reading in [Base::Normalized, Base::Literal] {
        let expected = oracle.resolve(base, reference, reading).filter(|_| is_base_valid);
        let got = engine.resolve(base, reference, reading).filter(|_| is_base_valid || engine.name() != oracle.name());
        has_target |= got.is_some();
        prop_assert_eq!(expected, got, "{} {:?} {:?} {:?}", engine.name(), reading, base, reference);
    }
    prop_assert_eq!(oracle.remove_dot_segments(reference), engine.remove_dot_segments(reference), "{:?}", reference);
    Ok(has_target)
}

/// The URI of a row whose policy has a base is that of the oracle: a reference without a scheme is resolved, after the escaped
/// dots of its dot segments were decoded; any other reference is only normalized. Returns whether the row has a URI that was
/// resolved.
pub fn rows_with_a_base_equal_the_oracle(base: &str, reference: &str) -> Result<bool, TestCaseError> {
    let normalize = |text: &str| ladder::normalize(text.as_bytes(), Rung::Scheme, false).ok();
    let has_scheme = components::split(reference).scheme.is_some_and(|scheme| grammar::is_scheme(&scheme));
    let target = if has_scheme {
        Some(reference.to_string())
    } else {
        normalize(base).and_then(|_| resolve::resolve(base, &resolve::decode_dots_of(reference), Base::Normalized))
    };
    let expected = target.and_then(|target| normalize(&target));
    let policy = Policy { base: Some(base.into()), ..Policy::default() };
    let rows = fused_rows(reference.as_bytes(), reference.len() % 64, &policy);
    let uri = rows.faults.is_empty().then(|| String::from_utf8_lossy(rows.uri.get(0)).into_owned());
    prop_assert_eq!(&uri, &expected, "{:?} against {:?}", reference, base);
    let key =
        expected.map_or(policy.algorithm.fault_key(reference.as_bytes()), |uri| policy.algorithm.key(uri.as_bytes()));
    prop_assert_eq!(rows.key[0], key, "{:?} against {:?}", reference, base);
    Ok(uri.is_some() && !has_scheme)
}

/// The row of the single pass has the fault, the flags and the keys of the ladder, and its counts are consistent.
pub fn fused_rows_equal_the_ladder(input: &[u8]) -> Verdict {
    for (rung, strict) in [(LibraryRung::Scheme, false), (LibraryRung::Syntax, false), (LibraryRung::Scheme, true)] {
        let policy = Policy {
            rung,
            mode: parse_mode(strict),
            keep_input: true,
            more_keys: LibraryRung::ALL.into(),
            ..Policy::default()
        };
        let rows = fused_rows(input, input.len() % 64, &policy);
        prop_assert!(rows.len() == 1 && rows.tally.rows == 1 && rows.tally.is_balanced());
        let fault = rows.faults.first().map(|(_, fault)| *fault);
        let expected = normalize_to_rung(input, rung, policy.mode);
        prop_assert_eq!(fault, expected.as_ref().err().copied(), "{:?}", input);
        if let Ok((text, flags)) = expected {
            prop_assert_eq!(Flags(rows.flags[0]), flags, "flags of {:?} on {:?}", input, rung);
            prop_assert_eq!(rows.differs(0), text != input);
        }
        prop_assert_eq!(rows.differs(0), rows.tally.unchanged == 0);
        prop_assert_eq!(rows.input.get(0), if rows.differs(0) { input } else { b"" });
        for (column, lower) in LibraryRung::ALL.into_iter().enumerate() {
            let expected = match normalize_to_rung(input, lower, policy.mode) {
                Ok((text, _)) if fault.is_none() => policy.algorithm.key(&text),
                _ => policy.algorithm.fault_key(input),
            };
            prop_assert_eq!(rows.more_keys[column][0], expected, "key_{}", lower.name());
        }
    }
    Ok(())
}
