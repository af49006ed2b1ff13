//! The operations of RFC 3987 sections 6.1, 7.5 and 8: `look` (spoofing flags), `skeleton` (of a host).

use super::ops::{EvalResult, output};
use super::request::Request;

/// The names of the spoofing flags of a reference, in bit order.
pub(super) fn look(request: &Request) -> EvalResult {
    Ok(output(crate::iri::find_spoofing(request.input()?).flags.names().collect::<Vec<_>>()))
}

/// The UTS 39 skeleton of a host.
pub(super) fn skeleton(request: &Request) -> EvalResult {
    Ok(output(crate::iri::skeleton(request.input()?)))
}
