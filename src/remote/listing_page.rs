//! Checks the pages of listings: [`checked_page`].
//!
//! `object_store` reads pages of any length into memory, ends a listing at a page that does not name the next one, and removes a
//! slash at the beginning of a key, which gives the key of another object.

use std::io;

use http_body_util::BodyExt;
use memchr::memmem;
use object_store::client::{HttpError, HttpErrorKind, HttpRequest, HttpResponseBody};

use super::failure::SLASH_BEFORE_KEY;
use super::limited_body::limited;

/// What an error about a listing contains that is not complete.
const CUT_LISTING: &str = "the listing has more pages than it names";

/// What an error about a page contains that is too long.
const LONG_PAGE: &str = "a page of the listing has more than 64 MiB";

/// Maximum length of a page. One has at most 5,000 keys of at most 1 KiB, which may be escaped.
const MAX_PAGE_LEN: usize = 64 << 20;

/// The request is one of a page of a listing: of S3 and Google, or of Azure.
pub(super) fn is_listing(request: &HttpRequest) -> bool {
    let is_of_listing = |parameter| matches!(parameter, "list-type=2" | "comp=list");
    request.uri().query().is_some_and(|query| query.split('&').any(is_of_listing))
}

/// Reads a page.
///
/// # Errors
/// Other pages follow it, and it does not name the next one. It is longer than [`MAX_PAGE_LEN`]. A key begins with a slash.
pub(super) async fn checked_page(body: HttpResponseBody) -> Result<HttpResponseBody, HttpError> {
    let wrong = |found| HttpError::new(HttpErrorKind::Decode, io::Error::other(found));
    let page = limited(body, MAX_PAGE_LEN, LONG_PAGE).collect().await?.to_bytes();
    match () {
        () if is_cut(&page) => Err(wrong(CUT_LISTING)),
        () if has_slash_before_key(&page) => Err(wrong(SLASH_BEFORE_KEY)),
        () => Ok(page.into()),
    }
}

/// A key of S3 or Google, or of Azure, begins with a slash. Common prefixes may do so, because not all are used.
fn has_slash_before_key(page: &[u8]) -> bool {
    [&b"<Key>/"[..], b"<Blob><Name>/"].iter().any(|start| memmem::find(page, start).is_some())
}

fn is_cut(page: &[u8]) -> bool {
    const TOKEN: &[u8] = b"<NextContinuationToken>";
    let has_token = || memmem::find(page, TOKEN).is_some_and(|at| page.get(at + TOKEN.len()) != Some(&b'<'));
    memmem::find(page, b"<IsTruncated>true</IsTruncated>").is_some() && !has_token()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use futures_util::stream;
    use http_body_util::StreamBody;

    #[test]
    fn pages_with_followers_name_the_next_one() {
        let page = |truncated: &str, token: &str| {
            is_cut(format!("<X><IsTruncated>{truncated}</IsTruncated>{token}</X>").as_bytes())
        };
        let token = |token: &str| format!("<NextContinuationToken>{token}</NextContinuationToken>");
        assert!(page("true", "") && page("true", &token("")) && page("true", "<NextContinuationToken/>"));
        assert!(!page("true", &token("x")) && !page("false", "") && !is_cut(b""));
    }

    #[test]
    fn long_pages_and_broken_ones_are_errors() {
        let check = |body: HttpResponseBody| {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(checked_page(body)).map(|_| ()).map_err(|error| error.kind())
        };
        let page = |len: usize| HttpResponseBody::from(Bytes::from(vec![0; len]));
        assert_eq!(check(page(MAX_PAGE_LEN)), Ok(()));
        assert_eq!(check(page(MAX_PAGE_LEN + 1)), Err(HttpErrorKind::Decode));
        let broken = HttpError::new(HttpErrorKind::Interrupted, io::Error::other("broken"));
        let broken = HttpResponseBody::new(StreamBody::new(stream::iter([Err(broken)])));
        assert_eq!(check(broken), Err(HttpErrorKind::Interrupted));
    }
}
