//! The operations of `eval`. Each is one match arm, and decides itself which options it supports.

use unicode_normalization::is_nfc;

use super::profile_ops;
use super::request::{Answer, EvalResult, Request, output, text_of};
use crate::iri::{
    BidiRules, Component, Fault, FaultKind, HostMapping, ParseMode, Profile, Rung, bidi_display, bidi_visual,
    check_bidi, domain_to_ascii, domain_to_unicode, find_scheme, find_spoofing, idn_to_ascii, idn_to_unicode,
    normalize_to_rung, percent_encode, remove_dot_segments, skeleton, to_iri,
};
use crate::key::{Draft, Recipe};

pub(super) fn answer(request: &Request) -> EvalResult {
    match request.op {
        "validate_iri"
        | "validate_absolute_iri"
        | "validate_iri_reference"
        | "validate_uri"
        | "validate_uri_reference" => profile_ops::validate(request),
        "parse" => profile_ops::parse(request),
        "resolve" if request.profile == "whatwg" => profile_ops::whatwg_resolve(request),
        "resolve" => resolve(request),
        "normalize" => normalize(request),
        "normalize_path" => normalize_path(request),
        "compare" => compare(request),
        "to_uri" => profile_ops::map_to_uri(request),
        "to_uri_idempotent" => profile_ops::to_uri_idempotent(request),
        "to_iri" => profile_ops::map_to_iri(request),
        "preprocess" => profile_ops::preprocess_op(request),
        "whatwg_parse" => profile_ops::whatwg_parse(request),
        "percent_encode_bytes" => text_answer(percent_encode(request.input()?)),
        // Browsers accept hosts that registries do not.
        "idna_to_ascii" if request.profile == "whatwg" => idna(request, |host| idn_to_ascii(host).0),
        "idna_to_unicode" if request.profile == "whatwg" => idna(request, idn_to_unicode),
        "idna_to_ascii" => idna(request, domain_to_ascii),
        "idna_to_unicode" => idna(request, domain_to_unicode),
        "bidi_check" => Ok(output(check_bidi(request.input_text()?, bidi_rules(request)?).is_empty())),
        "bidi_visual" => Ok(output(bidi_visual(request.input_text()?, bidi_rules(request)?))),
        // The drafts define the same.
        "bidi_display" => bidi_rules(request).and_then(|_| Ok(output(bidi_display(request.input_text()?)?))),
        "spoofing_flags" | "skeleton" if request.profile != "rfc3987" => Ok(Answer::Unsupported),
        "spoofing_flags" => Ok(output(find_spoofing(request.input()?).flags.names().collect::<Vec<_>>())),
        "skeleton" => Ok(output(skeleton(request.input()?))),
        "surt" => surt(request),
        "recipe" => recipe(request),
        "is_nfc" => Ok(output(is_nfc(request.input_text()?))),
        _ => Ok(Answer::Unsupported),
    }
}

fn bidi_rules(request: &Request) -> Result<BidiRules, Answer> {
    Profile::named(request.profile).and_then(|profile| profile.bidi_rules).ok_or(Answer::Unsupported)
}

fn resolve(request: &Request) -> EvalResult {
    let base = request.base()?.ok_or_else(|| Answer::Error("\"resolve\" takes a \"base\"".into()))?;
    text_answer(base.resolve_rfc3986(request.input()?)?)
}

/// An answer of UTF-8 text; anything else is a fault.
fn text_answer(text: Vec<u8>) -> EvalResult {
    text_of(&text).map(output)
}

/// The text of an input on a rung of the request's profile. Resolves it first if there is a base.
fn rung_text(request: &Request, input: &[u8], rung: Rung) -> Result<Vec<u8>, Answer> {
    let profile = profile_ops::profile(request)?;
    if profile.is_whatwg() {
        return profile_ops::whatwg_text(request, input, rung);
    }
    let (reference, ..) = profile.prepare(input);
    let target = match request.base()? {
        Some(base) if find_scheme(&reference).is_none() => base.resolve(&reference)?,
        _ => reference.into_owned(),
    };
    if rung == Rung::Simple {
        return Ok(target);
    }
    if request.parse_mode() == Some(ParseMode::Strict) {
        profile.check_strict(&target)?;
    }
    Ok(normalize_to_rung(&target, rung, ParseMode::Lenient)?.0)
}

fn normalize(request: &Request) -> EvalResult {
    let rung = request.rung()?;
    let text = rung_text(request, request.input()?, rung)?;
    if rung == Rung::Simple && !profile_ops::profile(request)?.is_whatwg() {
        // The text stays as it is, but only an absolute IRI has a place on the ladder.
        normalize_to_rung(&text, rung, request.parse_mode().unwrap_or(ParseMode::Lenient))?;
    }
    match request.form {
        "uri" => text_answer(text),
        "iri" => Ok(output(to_iri(&String::from_utf8_lossy(&text), HostMapping::Percent))),
        _ => Err(Answer::Error("\"form\" is \"uri\" or \"iri\"".into())),
    }
}

fn normalize_path(request: &Request) -> EvalResult {
    let mut path = request.input()?.to_vec();
    remove_dot_segments(&mut path);
    text_answer(path)
}

/// Whether the two are equal on the scheme rung, or a redirect between them was observed.
fn compare_by_redirect(request: &Request) -> EvalResult {
    let text = |input: &[u8]| rung_text(request, input, Rung::Scheme);
    let [a, b] = request.pair()?;
    let (a, b) = (text(a)?, text(b)?);
    let Some([from, to]) = request.redirect()? else { return Ok(output(a == b)) };
    let (from, to) = (text(from.as_bytes())?, text(to.as_bytes())?);
    Ok(output(a == b || (a == from && b == to) || (a == to && b == from)))
}

fn compare(request: &Request) -> EvalResult {
    if request.is_on_protocol_rung() {
        return compare_by_redirect(request);
    }
    let rung = request.rung()?;
    let [a, b] = request.pair()?;
    Ok(output(rung_text(request, a, rung)? == rung_text(request, b, rung)?))
}

/// The SURT key by which web archives look URLs up.
fn surt(request: &Request) -> EvalResult {
    let name = match request.opt("dialect") {
        None | Some("wayback") => "surt-wayback",
        Some("ia") => "surt-ia",
        Some(_) => return Ok(Answer::Unsupported),
    };
    recipe_key(request, name)
}

/// The key of a recipe, given by its name and changed rules.
fn recipe(request: &Request) -> EvalResult {
    match request.opt("recipe") {
        Some(name) => recipe_key(request, name),
        None => Err(Answer::Error("recipe needs opts.recipe, the name of one".into())),
    }
}

fn recipe_key(request: &Request, name: &str) -> EvalResult {
    let recipe = Recipe::parse(name).map_err(|error| Answer::Error(error.to_string()))?;
    let mut key = Vec::new();
    recipe.write_key(request.input()?, &mut Draft::default(), &mut key)?;
    text_answer(key)
}

fn idna(request: &Request, map: impl Fn(&[u8]) -> Option<String>) -> EvalResult {
    match map(request.input()?) {
        Some(host) => Ok(output(host)),
        None => Err(Fault::new(FaultKind::Character, Component::Host, 0).into()),
    }
}
