//! Runs the properties on generated references, for every engine.
//!
//! A property that holds trivially for most inputs returns whether the input exercises it. Its test fails if the
//! generators produce too few such inputs.

use std::cell::Cell;

use irikey::iri::Parts;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::engine::{Oracle, engines};
use crate::generators;
use crate::oracle::components::{self, Components};
use crate::properties::{
    Verdict, a_target_is_an_iri, agree, agree_on_targets, dots_equal_a_stack, equal_below_is_equal_above,
    fused_rows_equal_the_ladder, of_one_reference, rows_with_a_base_equal_the_oracle, spellings_are_equal,
};

proptest! {
    #![proptest_config(generators::config(8))]

    #[test]
    fn properties_of_one_reference(input in generators::reference()) {
        for engine in engines() {
            of_one_reference(engine, &input)?;
            agree(&Oracle, engine, &input)?;
        }
        fused_rows_equal_the_ladder(&input)?;
        components_equal_those_of_the_oracle(&input)?;
    }
}

fn components_equal_those_of_the_oracle(input: &[u8]) -> Verdict {
    // Maps every byte to one character: only the delimiters matter here, and they are US-ASCII.
    let text = |bytes: &[u8]| -> String { bytes.iter().copied().map(char::from).collect() };
    let Components { scheme, authority, path, query, fragment } = components::split_with_valid_scheme(&text(input));
    let authority = authority.map(|authority| components::split_authority(&authority));
    let host = authority.as_ref().map(|authority| authority.host.clone());
    let components::Authority { userinfo, port, .. } = authority.unwrap_or_default();
    let found = Parts::split(input).components(input).map(|(_, component)| component.map(text));
    prop_assert_eq!(found, [scheme, userinfo, host, port, Some(path), query, fragment], "{:?}", text(input));
    Ok(())
}

/// Runs `property` on generated values. Fails if it returns `true` for less than `min_percent` of the values.
fn check_with_share<S: Strategy>(
    test_name: &'static str,
    strategy: S,
    min_percent: u32,
    property: impl Fn(S::Value) -> Result<bool, TestCaseError>,
) {
    let mut config = generators::config(8);
    config.source_file = Some(file!());
    config.test_name = Some(test_name);
    let (value_count, exercised_count) = (Cell::new(0), Cell::new(0));
    let result = TestRunner::new(config).run(&strategy, |value| {
        let is_exercised = property(value)?;
        value_count.set(value_count.get() + 1);
        exercised_count.set(exercised_count.get() + u32::from(is_exercised));
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    let percent = exercised_count.get() * 100 / value_count.get().max(1);
    println!("{test_name}: {percent} % of {} values exercise the property", value_count.get());
    assert!(
        percent >= min_percent,
        "{percent} % of the values exercise the property, expected {min_percent} % or more"
    );
}

#[test]
fn properties_of_two_spellings() {
    check_with_share("properties_of_two_spellings", generators::syntax_pair(), 35, |pair| {
        let mut is_exercised = true;
        for engine in engines() {
            is_exercised &= spellings_are_equal(engine, &pair)?;
            is_exercised &= equal_below_is_equal_above(engine, &pair)?;
            agree(&Oracle, engine, &pair.1)?;
        }
        Ok(is_exercised)
    });
}

/// All references with four pieces, which have dot segments before, at and after the end of the path.
#[test]
fn dot_segments_end_with_the_path() {
    let pieces = ["/..", "/.", "/%2e", "/a", "?", "#", "."];
    for code in 0..pieces.len().pow(4) {
        let rest: String = (0..4).map(|i| pieces[code / pieces.len().pow(i) % pieces.len()]).collect();
        for start in ["http://h/b", "ftp://h", "x:/b"] {
            let input = format!("{start}{rest}");
            engines().into_iter().try_for_each(|engine| agree(&Oracle, engine, input.as_bytes())).unwrap();
        }
        for base in BASES {
            for start in ["", "b", "..", "/", "//h/b"] {
                rows_with_a_base_equal_the_oracle(base, &format!("{start}{rest}")).unwrap();
            }
        }
    }
}

/// Bases of rows. Most references are appended to canonical parts of an http or https base; others are resolved as a whole.
const BASES: [&str; 9] = [
    "http://h/a/b/c?d#e",
    "http://h",
    "https://U@H.example:80/%7Ea/../b%2fc/",
    "http://h?q/r",
    "http://h/%2e%2e/b//%2E",
    "http://h/x?a/b/../c",
    "ftp://h/a/b",
    "urn:a:b",
    "http://h:x/",
];

#[test]
fn properties_of_rows_with_a_base() {
    let without_scheme =
        |reference: String| components::recompose(&Components { scheme: None, ..components::split(&reference) });
    let pair = (proptest::sample::select(&BASES[..]), generators::text_reference().prop_map(without_scheme));
    check_with_share("properties_of_rows_with_a_base", pair, 40, |(base, reference)| {
        rows_with_a_base_equal_the_oracle(base, &reference)
    });
}

#[test]
fn properties_of_similar_references() {
    check_with_share("properties_of_similar_references", generators::similar_pair(), 3, |pair| {
        let mut is_exercised = true;
        for engine in engines() {
            is_exercised &= equal_below_is_equal_above(engine, &pair)?;
        }
        Ok(is_exercised)
    });
}

#[test]
fn properties_of_base_and_reference() {
    let pair = (generators::text_reference(), generators::text_reference());
    check_with_share("properties_of_base_and_reference", pair, 30, |(base, reference)| {
        let mut is_exercised = true;
        for engine in engines() {
            a_target_is_an_iri(engine, &base, &reference)?;
            dots_equal_a_stack(engine, &components::split(&reference).path)?;
            is_exercised &= agree_on_targets(&Oracle, engine, &base, &reference)?;
        }
        Ok(is_exercised)
    });
}
