//! Checks the pages of listings, of which `object_store` reads only the name of the next one: [`checked_page`].

use std::io;

use memchr::memmem;
use object_store::client::{HttpError, HttpErrorKind, HttpRequest, HttpResponseBody};

/// What an error about a listing contains that is not complete.
const CUT_LISTING: &str = "the listing has more pages than it names";

/// The request is one of a page of a listing of S3, or of a store with its interface.
pub(super) fn is_listing(request: &HttpRequest) -> bool {
    request.uri().query().is_some_and(|query| query.split('&').any(|parameter| parameter == "list-type=2"))
}

/// Reads a page.
///
/// # Errors
/// Other pages follow it, and it does not name the next one.
pub(super) async fn checked_page(body: HttpResponseBody) -> Result<HttpResponseBody, HttpError> {
    let page = body.bytes().await?;
    match is_cut(&page) {
        true => Err(HttpError::new(HttpErrorKind::Decode, io::Error::other(CUT_LISTING))),
        false => Ok(page.into()),
    }
}

fn is_cut(page: &[u8]) -> bool {
    const TOKEN: &[u8] = b"<NextContinuationToken>";
    let has_token = || memmem::find(page, TOKEN).is_some_and(|at| page.get(at + TOKEN.len()) != Some(&b'<'));
    memmem::find(page, b"<IsTruncated>true</IsTruncated>").is_some() && !has_token()
}

#[cfg(test)]
mod tests {
    use super::is_cut;

    #[test]
    fn pages_with_followers_name_the_next_one() {
        let page = |truncated: &str, token: &str| {
            is_cut(format!("<X><IsTruncated>{truncated}</IsTruncated>{token}</X>").as_bytes())
        };
        let token = |token: &str| format!("<NextContinuationToken>{token}</NextContinuationToken>");
        assert!(page("true", "") && page("true", &token("")) && page("true", "<NextContinuationToken/>"));
        assert!(!page("true", &token("x")) && !page("false", "") && !is_cut(b""));
    }
}
