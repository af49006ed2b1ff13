//! Runs the properties on generated references, for each engine.

use proptest::prelude::*;

use crate::engine::{Oracle, engines};
use crate::generators;
use crate::oracle::components;
use crate::properties::{
    a_target_is_an_iri, agree, agree_on_targets, dots_equal_a_stack, equal_below_is_equal_above,
    fused_rows_account_for_themselves, of_one_reference, spellings_are_equal,
};

// Eight times the default number of cases; PROPTEST_CASES scales it.
proptest! {
    #![proptest_config(ProptestConfig { cases: 8 * ProptestConfig::default().cases, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn properties_of_one_reference(input in generators::reference()) {
        for engine in engines() {
            of_one_reference(engine, &input)?;
            agree(&Oracle, engine, &input)?;
        }
        fused_rows_account_for_themselves(&input)?;
    }

    #[test]
    fn properties_of_two_spellings(pair in generators::syntax_pair()) {
        for engine in engines() {
            spellings_are_equal(engine, &pair)?;
            equal_below_is_equal_above(engine, &pair)?;
            agree(&Oracle, engine, &pair.1)?;
        }
    }

    #[test]
    fn properties_of_base_and_reference(base in generators::text_reference(), reference in generators::text_reference()) {
        for engine in engines() {
            a_target_is_an_iri(engine, &base, &reference)?;
            dots_equal_a_stack(engine, &components::split(&reference).path)?;
            agree_on_targets(&Oracle, engine, &base, &reference)?;
        }
    }

    #[test]
    fn references_that_share_little(left in generators::soup(), right in generators::soup()) {
        for engine in engines() {
            equal_below_is_equal_above(engine, &(left.clone(), right.clone()))?;
        }
    }
}
