//! Limits the length of bodies that `object_store` reads into memory: [`limited`].

use std::io;

use http_body_util::{BodyExt, Limited};
use object_store::client::{HttpError, HttpErrorKind, HttpResponseBody};

/// The body, which breaks with the error `found` if it has more than `max_len` bytes.
pub(super) fn limited(body: HttpResponseBody, max_len: usize, found: &'static str) -> HttpResponseBody {
    let too_long = move || HttpError::new(HttpErrorKind::Decode, io::Error::other(found));
    // An error of another type is that of the limit.
    let body = Limited::new(body, max_len);
    HttpResponseBody::new(body.map_err(move |error| error.downcast().map_or_else(|_| too_long(), |error| *error)))
}
