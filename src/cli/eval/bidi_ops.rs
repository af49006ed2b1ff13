//! The operations of RFC 3987 section 4: `bidi_check`, `bidi_visual`, `bidi_display`.

use super::Answer;
use super::ops::{EvalResult, output};
use super::request::Request;
use crate::iri::{BidiRules, bidi_display, bidi_visual, check_bidi};

fn rules(request: &Request) -> Result<BidiRules, Answer> {
    BidiRules::for_profile(request.profile).ok_or(Answer::Unsupported)
}

/// True if no component violates the restrictions of section 4.2 or of the profile.
pub(super) fn check(request: &Request) -> EvalResult {
    Ok(output(check_bidi(request.input_text()?, rules(request)?).is_empty()))
}

/// The characters in visual order.
pub(super) fn visual(request: &Request) -> EvalResult {
    Ok(output(bidi_visual(request.input_text()?, rules(request)?)))
}

/// The text, embedded between LRE and PDF if necessary. The drafts define the same.
pub(super) fn display(request: &Request) -> EvalResult {
    rules(request)?;
    Ok(output(bidi_display(request.input_text()?)?))
}
