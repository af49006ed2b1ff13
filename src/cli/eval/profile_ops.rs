//! The operations that depend on the profile: `validate_iri`, `parse`, `to_uri`, `to_iri`, `preprocess`, `whatwg_parse`.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::request::{Answer, EvalResult, Request, output, text_of};
use crate::encoding::Charset;
use crate::iri::{
    Backslashes, CharacterReferences, Component, Fault, FaultKind, HostMapping, MappingOptions, ParseMode, Parts,
    PreprocessOptions, Profile, QueryCharset, ReferenceParser, Rung, Spaces, check_bidi_controls, check_uri,
    check_uri_reference, preprocess, whatwg_href,
};

pub(super) fn profile(request: &Request) -> Result<&'static Profile, Answer> {
    Profile::named(request.profile).ok_or(Answer::Unsupported)
}

pub(super) fn validate(request: &Request) -> EvalResult {
    let profile = profile(request)?;
    let Ok(text) = request.input_text() else { return Ok(output(false)) };
    let is_derived = match request.op {
        "validate_iri" => profile.check_iri(text).is_ok(),
        // `absolute-IRI = scheme ":" ihier-part [ "?" iquery ]`: an IRI without a fragment.
        "validate_absolute_iri" => !text.contains('#') && profile.check_iri(text).is_ok(),
        "validate_iri_reference" => profile.check_iri_reference(text).is_ok(),
        "validate_uri" => check_uri(text).is_ok(),
        _ => check_uri_reference(text).is_ok(),
    };
    let is_banned = request.opt("level") == Some("strict") && check_bidi_controls(text).is_err();
    Ok(output(is_derived && !is_banned))
}

pub(super) fn parse(request: &Request) -> EvalResult {
    let profile = profile(request)?;
    let text = request.input_text()?;
    match profile.parser {
        _ if request.opt_bool("lenient") == Some(true) => Ok(weber_value(text)),
        ReferenceParser::Total => Ok(weber_value(text)),
        ReferenceParser::Grammar => Ok(output(parts_value(profile.check_iri_reference(text)?, text.as_bytes()))),
        // The delimiters of an `href` are in place, so any split of it is the standard's.
        ReferenceParser::Whatwg => {
            Ok(weber_value(&whatwg_href(text, request.base_text(), query_charset(request, profile)?)?))
        }
    }
}

/// Components as JSON, null where absent.
fn parts_value(parts: Parts, text: &[u8]) -> Value {
    let show = |part: Option<&[u8]>| part.map(|part| String::from_utf8_lossy(part).into_owned());
    json!({
        "scheme": show(parts.scheme(text)),
        "userinfo": show(parts.userinfo(text)),
        "host": show(parts.host(text)),
        "port": show(parts.port(text)),
        "path": show(Some(parts.path(text))),
        "query": show(parts.query(text)),
        "fragment": show(parts.fragment(text)),
    })
}

/// The components by draft-weber-iri-guidelines-00 section 5, in which only digits are a port.
fn weber_value(text: &str) -> Answer {
    let (parts, text) = (Parts::split(text.as_bytes()), text.as_bytes());
    let mut value = parts_value(parts, text);
    if parts.port(text).is_some_and(|port| !port.iter().all(u8::is_ascii_digit)) {
        value["port"] = Value::Null;
        value["port_invalid"] = true.into();
    }
    output(value)
}

/// A charset among the options.
fn charset(request: &Request, name: &str) -> Result<Option<Charset>, Answer> {
    let unknown = || Answer::Fault(Fault::new(FaultKind::UnknownCharset, Component::Reference, 0));
    request.opt(name).map(|label| Charset::named(label).ok_or_else(unknown)).transpose()
}

/// The input in UTF-8: as it is, or decoded from the charset that the options name.
fn decoded<'a>(request: &'a Request, is_normalized: bool) -> Result<Cow<'a, [u8]>, Answer> {
    let input = request.input()?;
    let Some(charset) = charset(request, "charset")? else { return Ok(input.into()) };
    let text = if is_normalized { charset.decode(input) } else { charset.transcode(input) };
    let undecodable = |at| Answer::Fault(Fault::new(FaultKind::Undecodable, Component::Reference, at));
    Ok(text.map_err(|error| undecodable(error.offset()))?.into_owned().into_bytes().into())
}

pub(super) fn map_to_uri(request: &Request) -> EvalResult {
    if request.has_other_opts(&["lenient", "idn", "charset", "query_charset", "backslash"]) {
        return Ok(Answer::Unsupported);
    }
    let profile = profile(request)?;
    let Some(host) = host_mapping(request) else { return Ok(Answer::Unsupported) };
    let input = decoded(request, true)?;
    let query = query_charset(request, profile)?;
    if profile.parser == ReferenceParser::Whatwg {
        return Ok(output(whatwg_href(text_of(&input)?, request.base_text(), query)?));
    }
    let input = match backslashes(request, profile.backslashes)? {
        Backslashes::Kept => input,
        backslashes => {
            let choices = PreprocessOptions { backslashes, ..PreprocessOptions::default() };
            preprocess(text_of(&input)?, &choices)?.concat().into_bytes().into()
        }
    };
    let mapping = MappingOptions { mode: request.parse_mode(), host: request.opt("idn").map(|_| host), query };
    Ok(output(profile.to_uri(&input, &mapping)?))
}

/// The form of hosts that the options ask for.
fn host_mapping(request: &Request) -> Option<HostMapping> {
    match request.opt("idn") {
        None | Some("pct") => Some(HostMapping::Percent),
        Some("ascii") => Some(HostMapping::Ascii),
        Some("unicode") => Some(HostMapping::Unicode),
        Some(_) => None,
    }
}

fn backslashes(request: &Request, otherwise: Backslashes) -> Result<Backslashes, Answer> {
    match request.opt("backslash") {
        None => Ok(otherwise),
        Some("slash") => Ok(Backslashes::Slash),
        Some("encode") => Ok(Backslashes::Encoded),
        Some(_) => Err(Answer::Error("\"backslash\" is \"slash\" or \"encode\"".into())),
    }
}

pub(super) fn map_to_iri(request: &Request) -> EvalResult {
    if request.has_other_opts(&["idn"]) {
        return Ok(Answer::Unsupported);
    }
    let profile = profile(request)?;
    let Some(host) = host_mapping(request) else { return Ok(Answer::Unsupported) };
    Ok(output(profile.to_iri(request.input_text()?, host)))
}

pub(super) fn to_uri_idempotent(request: &Request) -> EvalResult {
    let profile = profile(request)?;
    let map = |input: &[u8], mode| profile.to_uri(input, &MappingOptions { mode, ..MappingOptions::default() });
    let once = map(request.input()?, request.parse_mode())?;
    Ok(output(once == map(once.as_bytes(), Some(ParseMode::Lenient))?))
}

pub(super) fn preprocess_op(request: &Request) -> EvalResult {
    if request.has_other_opts(&["charset", "normalize", "ncr", "space", "backslash", "multi"]) {
        return Ok(Answer::Unsupported);
    }
    let profile = profile(request)?;
    let choices = PreprocessOptions {
        character_references: match request.opt("ncr") {
            None => CharacterReferences::Kept,
            Some("xml") => CharacterReferences::Xml,
            Some("html") => CharacterReferences::Html,
            Some(_) => return Err(Answer::Error("\"ncr\" is \"xml\" or \"html\"".into())),
        },
        is_trimmed: profile.is_field_of_references,
        spaces: match request.opt("space") {
            None if request.opt_bool("multi") == Some(true) => Spaces::Split,
            None => Spaces::Kept,
            Some("encode") => Spaces::Encoded,
            Some("remove") => Spaces::Removed,
            Some(_) => return Err(Answer::Error("\"space\" is \"encode\" or \"remove\"".into())),
        },
        backslashes: backslashes(request, Backslashes::Kept)?,
    };
    let field = decoded(request, request.opt("normalize") != Some("none"))?;
    let references = preprocess(text_of(&field)?, &choices)?;
    let is_list = profile.is_field_of_references || request.opt_bool("multi").is_some();
    Ok(if is_list { output(references) } else { output(references.concat()) })
}

/// The charset of the document, for queries.
fn query_charset(request: &Request, profile: &Profile) -> Result<Option<QueryCharset>, Answer> {
    let unmappable = profile.unmappable;
    Ok(charset(request, "query_charset")?.map(|charset| QueryCharset { charset, unmappable }))
}

/// The `href` of a text by the URL Standard, in any profile.
fn href(request: &Request, text: &[u8]) -> Result<String, Answer> {
    let whatwg = Profile::named("whatwg").ok_or(Answer::Unsupported)?;
    Ok(whatwg_href(text_of(text)?, request.base_text(), query_charset(request, whatwg)?)?)
}

pub(super) fn whatwg_parse(request: &Request) -> EvalResult {
    Ok(output(json!({"href": href(request, request.input()?)?})))
}

/// The target by the URL Standard.
pub(super) fn whatwg_resolve(request: &Request) -> EvalResult {
    Ok(output(href(request, request.input()?)?))
}

/// The text of a rung in profile `whatwg`: the `href`, or the text itself on the rung `simple` without a base.
pub(super) fn whatwg_text(request: &Request, text: &[u8], rung: Rung) -> Result<Vec<u8>, Answer> {
    let href = href(request, text)?;
    let is_itself = rung == Rung::Simple && request.base_text().is_none();
    Ok(if is_itself { text.to_vec() } else { href.into_bytes() })
}
