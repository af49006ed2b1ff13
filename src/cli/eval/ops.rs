//! The ops: a request in, an answer out. Each op is one arm, and says by itself which options it takes.

use serde_json::{Value, json};
use unicode_normalization::is_nfc;

use super::Answer;
use super::request::Request;
use crate::iri::{
    Component, Fault, FaultKind, HostMapping, Intake, Rung, check_bidi_controls, check_iri, check_iri_reference,
    check_uri, check_uri_reference, climb, find_scheme, idn_to_ascii, idn_to_unicode, percent_encode,
    remove_dot_segments, to_iri, to_uri,
};

type Answered = Result<Answer, Answer>;

/// Answers a request.
pub(super) fn answer(request: &Request) -> Answered {
    if request.profile != "rfc3987" && request.op != "percent_encode_bytes" {
        return Ok(Answer::Unsupported);
    }
    match request.op {
        "validate_iri" | "validate_iri_reference" | "validate_uri" | "validate_uri_reference" => validate(request),
        "parse" => parse(request),
        "resolve" => resolve(request),
        "normalize" => normalize(request),
        "normalize_path" => normalize_path(request),
        "compare" => compare(request),
        "to_uri" => to_uri_op(request),
        "to_uri_idempotent" => to_uri_idempotent(request),
        "to_iri" => to_iri_op(request),
        "percent_encode_bytes" => text_answer(percent_encode(request.input()?)),
        "idna_to_ascii" => idna(request, |host| idn_to_ascii(host).0),
        "idna_to_unicode" => idna(request, idn_to_unicode),
        "surt" => super::surt_op::answer(request),
        "is_nfc" => Ok(output(is_nfc(request.input_text()?))),
        _ => Ok(Answer::Unsupported),
    }
}

fn output(value: impl Into<Value>) -> Answer {
    Answer::Output(value.into())
}

fn validate(request: &Request) -> Answered {
    let Ok(text) = request.input_text() else { return Ok(output(false)) };
    let is_derived = match request.op {
        "validate_iri" => check_iri(text).is_ok(),
        "validate_iri_reference" => check_iri_reference(text).is_ok(),
        "validate_uri" => check_uri(text).is_ok(),
        _ => check_uri_reference(text).is_ok(),
    };
    let is_banned = request.opt("level") == Some("strict") && check_bidi_controls(text).is_err();
    Ok(output(is_derived && !is_banned))
}

fn parse(request: &Request) -> Answered {
    if request.opt_bool("lenient") == Some(true) {
        return Ok(Answer::Unsupported);
    }
    let text = request.input_text()?;
    let parts = check_iri_reference(text)?;
    let text = text.as_bytes();
    let show = |part: Option<&[u8]>| part.map(|part| String::from_utf8_lossy(part).into_owned());
    Ok(output(json!({
        "scheme": show(parts.scheme(text)),
        "userinfo": show(parts.userinfo(text)),
        "host": show(parts.host(text)),
        "port": show(parts.port(text)),
        "path": show(Some(parts.path(text))),
        "query": show(parts.query(text)),
        "fragment": show(parts.fragment(text)),
    })))
}

fn resolve(request: &Request) -> Answered {
    let base = request.base()?.ok_or_else(|| Answer::Error("\"resolve\" takes a \"base\"".into()))?;
    text_answer(base.resolve(request.input()?)?)
}

/// Bytes as the answer's text, which they must be.
fn text_answer(text: Vec<u8>) -> Answered {
    match String::from_utf8(text) {
        Ok(text) => Ok(output(text)),
        Err(error) => {
            Err(Fault::new(FaultKind::NotUtf8, Component::Reference, error.utf8_error().valid_up_to()).into())
        }
    }
}

fn intake(request: &Request, otherwise: Intake) -> Intake {
    match request.opt_bool("lenient") {
        Some(true) => Intake::Lenient,
        Some(false) => Intake::Strict,
        None => otherwise,
    }
}

/// An input as its rung's text, resolved first where there is a base.
fn rung_text(request: &Request, input: &[u8], rung: Rung) -> Result<Vec<u8>, Answer> {
    let target = match request.base()? {
        Some(base) if find_scheme(input).is_none() => base.resolve(input)?,
        _ => input.to_vec(),
    };
    if rung == Rung::Simple {
        return Ok(target);
    }
    Ok(climb(&target, rung, intake(request, Intake::Lenient))?.0)
}

fn normalize(request: &Request) -> Answered {
    let text = rung_text(request, request.input()?, request.rung()?)?;
    match request.form {
        "uri" => text_answer(text),
        "iri" => Ok(output(to_iri(&String::from_utf8_lossy(&text), HostMapping::Percent))),
        _ => Err(Answer::Error("\"form\" is \"uri\" or \"iri\"".into())),
    }
}

fn normalize_path(request: &Request) -> Answered {
    let mut path = request.input()?.to_vec();
    let len = remove_dot_segments(&mut path);
    path.truncate(len);
    text_answer(path)
}

fn compare(request: &Request) -> Answered {
    let rung = request.rung()?;
    let [a, b] = request.pair()?;
    Ok(output(rung_text(request, a, rung)? == rung_text(request, b, rung)?))
}

fn to_uri_op(request: &Request) -> Answered {
    if request.has_other_opts(&["lenient", "idn"]) {
        return Ok(Answer::Unsupported);
    }
    let Some(host) = host_mapping(request) else { return Ok(Answer::Unsupported) };
    Ok(output(to_uri(request.input()?, intake(request, Intake::Strict), host)?))
}

fn host_mapping(request: &Request) -> Option<HostMapping> {
    match request.opt("idn") {
        None | Some("pct") => Some(HostMapping::Percent),
        Some("ascii") => Some(HostMapping::Ascii),
        Some("unicode") => Some(HostMapping::Unicode),
        Some(_) => None,
    }
}

fn to_uri_idempotent(request: &Request) -> Answered {
    let once = to_uri(request.input()?, intake(request, Intake::Strict), HostMapping::Percent)?;
    let twice = to_uri(once.as_bytes(), Intake::Strict, HostMapping::Percent)?;
    Ok(output(once == twice))
}

fn to_iri_op(request: &Request) -> Answered {
    if request.has_other_opts(&["idn"]) {
        return Ok(Answer::Unsupported);
    }
    let Some(host) = host_mapping(request) else { return Ok(Answer::Unsupported) };
    Ok(output(to_iri(request.input_text()?, host)))
}

fn idna(request: &Request, map: impl Fn(&[u8]) -> Option<String>) -> Answered {
    match map(request.input()?) {
        Some(host) => Ok(output(host)),
        None => Err(Fault::new(FaultKind::Character, Component::Host, 0).into()),
    }
}
