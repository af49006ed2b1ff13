//! What went wrong with a request, from the errors of `object_store`: [`Failure`].

use std::error::Error;

use object_store::client::{HttpError, HttpErrorKind};

use super::error::RemoteError;
use super::store::RemoteStore;
use super::url::RemoteScheme;

/// What a key must not have.
pub(super) const UNUSABLE_KEY: &str = "with an empty part, a part that is . or .., or a control character";

/// What an error about a listing with a key contains that begins with a slash.
pub(super) const SLASH_BEFORE_KEY: &str = "a key begins with /";

/// The cause of an error about a response that has fewer bytes than it should.
pub(super) const SHORT_RESPONSE: &str = "the response ended early";

/// The advice if the server does not send ranges as it should.
const OTHER_PROGRAM: &str = "run again later, or fetch the file with another program";

/// What an error about a response contains that is too long, to a request that writes.
pub(super) const LONG_RESPONSE: &str = "a response of the store has more than 1 MiB";

/// How an error about a successful response ends that is not the object.
pub(super) const NO_CONTENT: &str = "instead of the content";

#[derive(Debug)]
pub(super) struct Failure {
    pub(super) status: Option<u16>,
    /// The error code in the body of the response, such as `NoSuchKey`.
    code: Option<String>,
    /// How the transport failed.
    transport: Option<HttpErrorKind>,
    /// The innermost cause. It contains no URL.
    pub(super) cause: String,
    /// The server sent all bytes although a range was requested.
    pub(super) is_without_ranges: bool,
    /// The server sent another range than was requested, or its description of the range cannot be read.
    is_wrong_range: bool,
}

/// Whether a request that got this status may succeed later.
pub(super) fn is_transient_status(status: u16) -> bool {
    matches!(status, 408 | 429 | 500..)
}

impl Failure {
    pub(super) fn of(error: &object_store::Error) -> Failure {
        let mut innermost: &(dyn Error + 'static) = error;
        let mut transport = None;
        while let Some(source) = innermost.source() {
            innermost = source;
            transport = transport.or(innermost.downcast_ref::<HttpError>().map(HttpError::kind));
        }
        let text = error.to_string();
        let is_partial = text.contains("non-partial response") || text.contains("Content-Range header not present");
        Failure {
            status: number_after(&text, "status code: "),
            code: tag(&text, "Code"),
            transport,
            cause: without_url(&innermost.to_string()),
            is_without_ranges: is_partial || matches!(error, object_store::Error::NotSupported { .. }),
            is_wrong_range: text.contains("value for CONTENT_RANGE header")
                || (text.contains("Requested ") && text.contains(", got ")),
        }
    }

    /// Whether the same request may succeed later.
    pub(super) fn is_transient(&self) -> bool {
        match self.status {
            Some(status) => is_transient_status(status),
            None => {
                let is_readable = self.transport.is_some_and(|kind| kind != HttpErrorKind::Decode);
                is_readable && !self.is_redirect_loop() && !self.is_without_tls()
            }
        }
    }

    /// The response indicates that the same request may succeed later.
    pub(super) fn is_busy(&self) -> bool {
        self.status.is_some() && self.is_transient()
    }

    /// The request failed because of its range: an empty object has no valid range, and some servers read the last byte 0 as
    /// missing.
    pub(super) fn is_of_range(&self) -> bool {
        self.status.map_or(self.is_wrong_range, |status| status == 416)
    }

    fn is_redirect_loop(&self) -> bool {
        self.cause.contains("redirect")
    }

    /// The address, or one to which the server redirects, begins with `http://`, which the options forbid.
    fn is_without_tls(&self) -> bool {
        self.cause == "URL scheme is not allowed"
    }

    /// The error of a request to `store`.
    pub(super) fn error(&self, store: &RemoteStore) -> RemoteError {
        let response = || match (&self.code, self.status) {
            (Some(code), Some(status)) => format!("{status} {code}"),
            (None, Some(status)) => status.to_string(),
            _ => self.cause.clone(),
        };
        let code = self.code.as_deref().unwrap_or_default();
        if self.cause.contains("incorrectly configured region") || is_region(code) {
            let advice = "name the region of the bucket with --store-option region=REGION";
            return RemoteError::new("the bucket is in another region", advice);
        }
        let cause = &self.cause;
        let (found, advice) = match (self.status, self.transport) {
            (Some(412), _) => return changed(),
            (Some(401 | 403), _) => return self.denied(store, &response()),
            (Some(404 | 410), _) if store.scheme == RemoteScheme::Http => {
                (format!("there is no such file on the server ({})", response()), "check the URL")
            }
            (Some(404 | 410), _) if matches!(code, "NoSuchBucket" | "ContainerNotFound") => {
                ("there is no such bucket".to_string(), "check the name of the bucket, and the endpoint")
            }
            (Some(404 | 410), _) => (
                format!("there is no such object ({})", response()),
                "check the name; one that ends in / stands for the objects below it",
            ),
            (Some(300..=399), _) => (
                format!("the server redirects ({}) and does not say where", response()),
                "check the endpoint and the region",
            ),
            (Some(_), _) if self.is_transient() => {
                (format!("the server responds with {}, even after retries", response()), "run again later")
            }
            (Some(_), _) => (format!("the server responds with {}", response()), "check the name and the endpoint"),
            (None, _) if cause.contains("path segment") || cause == SLASH_BEFORE_KEY => return unusable_key(cause),
            (None, _) if cause == LONG_RESPONSE => (cause.clone(), "check the endpoint"),
            (None, _) if cause.ends_with(NO_CONTENT) => {
                (cause.clone(), "check the URL in a browser, or run again later")
            }
            (None, Some(HttpErrorKind::Decode)) => {
                (cause.clone(), "check the endpoint; if it is right, name the objects in a list (@FILE)")
            }
            (None, Some(kind)) => return self.broken_connection(kind),
            (None, None) if ["invalid type", "missing field"].iter().any(|text| cause.contains(text)) => (
                format!("the server does not respond as a store does ({cause})"),
                "check the endpoint and the name of the bucket",
            ),
            (None, None) if self.is_without_ranges => {
                ("the server sent the whole object instead of the requested range".to_string(), OTHER_PROGRAM)
            }
            (None, None) if self.is_wrong_range => {
                ("the server sent another range than was requested".to_string(), OTHER_PROGRAM)
            }
            (None, None) if cause == SHORT_RESPONSE => (format!("{cause}, even after retries"), "run again later"),
            (None, None) => (cause.clone(), "check the name and the options of the store"),
        };
        RemoteError::new(found, advice)
    }

    /// The error of a request without a response.
    fn broken_connection(&self, kind: HttpErrorKind) -> RemoteError {
        let (found, advice) = match kind {
            HttpErrorKind::Timeout => (
                "no response in time".to_string(),
                "check the network, or allow more time with --store-option read_timeout=60s or timeout=20m",
            ),
            HttpErrorKind::Connect if self.cause.contains("certificate") => (
                format!("cannot connect: {}", self.cause),
                "add the certificate of the server's authority to the system, or name a file with it in SSL_CERT_FILE",
            ),
            HttpErrorKind::Connect => {
                (format!("cannot connect: {}", self.cause), "check the name of the host, and the network")
            }
            _ if self.is_without_tls() => (
                "the address, or one to which the server redirects, has no TLS".to_string(),
                "check the address; --store-option allow_http=true allows it",
            ),
            _ if self.is_redirect_loop() => {
                ("the server redirects again and again".to_string(), "check the URL in a browser")
            }
            _ => (format!("the connection broke: {}", self.cause), "run again"),
        };
        RemoteError::new(found, advice)
    }

    fn denied(&self, store: &RemoteStore, response: &str) -> RemoteError {
        if !store.is_anonymous {
            let advice = "check the credentials, their permissions and the region";
            return RemoteError::new(format!("access is denied ({response}), or there is no such object"), advice);
        }
        let found = format!("access is denied ({response}), or there is no such object; no credentials were found");
        let advice = match store.scheme {
            RemoteScheme::S3 => "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
            RemoteScheme::Google => "set GOOGLE_APPLICATION_CREDENTIALS, or run gcloud auth application-default login",
            RemoteScheme::Azure => "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
            RemoteScheme::Http => "check the URL, or write it with user and password",
        };
        RemoteError::new(found, advice)
    }
}

/// The error of a listing with a key that cannot be requested.
pub(super) fn unusable_key(cause: &str) -> RemoteError {
    let found = format!("the listing has a key {UNUSABLE_KEY} ({cause})");
    RemoteError::new(found, "use a longer prefix, or name the objects in a list (@FILE)")
}

/// The error of an object that has another version than before.
pub(super) fn changed() -> RemoteError {
    RemoteError::new("the object changed while it was read", "run again when it does not change any more")
}

/// The bucket is in another region, by the error code of S3.
fn is_region(code: &str) -> bool {
    ["PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException"].contains(&code)
}

/// The three digits after `prefix`.
fn number_after(text: &str, prefix: &str) -> Option<u16> {
    let at = text.find(prefix)? + prefix.len();
    text.get(at..at + 3)?.parse().ok()
}

/// The content of an XML element, if it is a word.
fn tag(text: &str, name: &str) -> Option<String> {
    const MAX_LEN: usize = 64;
    let start = text.find(&format!("<{name}>"))? + name.len() + 2;
    let len = text[start..].find('<')?;
    let word = &text[start..start + len];
    (len <= MAX_LEN && !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric()))
        .then(|| word.to_string())
}

/// A message of another crate, cut before a URL, which may contain credentials, and without `(os error 2)`.
fn without_url(text: &str) -> String {
    const MAX_LEN: usize = 160;
    let end = [text.find("://"), text.find(" (os error"), text.find('<'), text.find('\n'), text.find("string \"")];
    let end = end.into_iter().flatten().min().unwrap_or(text.len()).min(text.floor_char_boundary(MAX_LEN));
    let cut = &text[..end];
    let cut = if text[end..].starts_with("://") { cut.rsplit_once(' ').map_or("", |(before, _)| before) } else { cut };
    cut.trim_end_matches([' ', ':', '(', '"']).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_contain_no_url_and_no_body() {
        assert_eq!(without_url("Connection refused (os error 111)"), "Connection refused");
        assert_eq!(without_url("error for url (http://u:p@h/x?sig=1)"), "error for url");
        assert_eq!(without_url("http://u:p@h/"), "");
        assert_eq!(without_url("status 500: <html>secret"), "status 500");
        assert_eq!(without_url("invalid type: string \"secret\", expected a map"), "invalid type");
    }

    #[test]
    fn codes_are_words() {
        let text = "status code: 404 Not Found: <Error><Code>NoSuchKey</Code><Key>k</Key>";
        assert_eq!(
            (number_after(text, "status code: "), tag(text, "Code")),
            (Some(404), Some("NoSuchKey".to_string()))
        );
        assert_eq!(
            (tag("<Code>a b</Code>", "Code"), tag("<Code>", "Code"), number_after("status code: x", "code: ")),
            (None, None, None)
        );
    }
}
