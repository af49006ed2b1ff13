//! The `surt` op: a URL in, its SURT key in the dialect that `opts.dialect` names out (`wayback` if none is named).

use super::Answer;
use super::request::Request;
use crate::key::{Draft, Recipe};

/// Answers the op. What has no key in the dialect is a fault.
pub(super) fn answer(request: &Request) -> Result<Answer, Answer> {
    if request.has_other_opts(&["dialect"]) {
        return Ok(Answer::Unsupported);
    }
    let name = match request.opt("dialect") {
        None | Some("wayback") => "surt-wayback",
        Some("ia") => "surt-ia",
        Some(_) => return Ok(Answer::Unsupported),
    };
    let recipe = Recipe::parse(name).map_err(|error| Answer::Error(error.to_string()))?;
    let mut key = Vec::new();
    recipe.write_key(request.input()?, &mut Draft::default(), &mut key)?;
    // Records that carry a name instead of a URL have it as their key, whatever its bytes.
    Ok(Answer::Output(String::from_utf8_lossy(&key).into_owned().into()))
}
