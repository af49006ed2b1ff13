//! Rewrites header sections of responses that HTTP allows (RFC 9110) and `object_store` does not accept: [`accept`]. Refuses
//! responses that `object_store` would take for a whole object: [`check_content`].

use std::io;
use std::ops::Range;

use object_store::client::{HttpError, HttpErrorKind, HttpRequest, HttpResponse};
use tower_http::follow_redirect::RequestUri;

use super::failure::NO_CONTENT;

/// The length of the object is not known from the response.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnknownLength;

/// The server sends only the beginning of the range that was requested.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShorterRange;

/// The address that sent the response, because the server redirected the request.
#[derive(Clone, Debug)]
pub(super) struct FinalAddress(pub(super) String);

/// Adds the [`FinalAddress`] to the response to a request of the address `requested` (RFC 3986 section 5.1.3).
pub(super) fn add_final_address(response: &mut HttpResponse, requested: &str) {
    let uri = response.extensions().get::<RequestUri>().map(|uri| uri.0.to_string());
    if let Some(address) = uri.filter(|uri| uri != requested) {
        response.extensions_mut().insert(FinalAddress(address));
    }
}

/// The range that a request asks for.
pub(super) fn requested_range(request: &HttpRequest) -> Option<Range<u64>> {
    parse_range(request.headers().get("range")?.to_str().ok()?.strip_prefix("bytes=")?)
}

/// Rewrites the header section of the response to a request of this range.
pub(super) fn accept(response: &mut HttpResponse, requested: Option<Range<u64>>) {
    rewrite_date(response);
    remove_fields_outside_ascii(response);
    match (response.status().as_u16(), requested) {
        (200, _) if !response.headers().contains_key("content-length") => {
            // `object_store` does not compare the length with that of the body. If the body breaks, it requests the rest up to
            // this length.
            response.headers_mut().insert("content-length", u64::MAX.into());
            response.extensions_mut().insert(UnknownLength);
        }
        (206, Some(requested)) => rewrite_range(response, requested).unwrap_or_default(),
        _ => {}
    }
}

/// Refuses a response that succeeds and is not what a request of an object asks for: an empty one, one that is not ready, or a
/// part although no range was requested (RFC 9110 section 15.3).
pub(super) fn check_content(status: u16, is_range: bool) -> Result<(), HttpError> {
    match status {
        200 | 203 => Ok(()),
        206 if is_range => Ok(()),
        200..=299 => {
            let found = format!("the server responds with {status} {NO_CONTENT}");
            Err(HttpError::new(HttpErrorKind::Decode, io::Error::other(found)))
        }
        _ => Ok(()),
    }
}

/// A range whose end is inclusive.
fn parse_range(text: &str) -> Option<Range<u64>> {
    let (start, last) = text.split_once('-')?;
    Some(start.parse().ok()?..last.parse::<u64>().ok()?.checked_add(1)?)
}

/// Replaces an unknown length of the object by the largest one, and a range that ends early by the one that was requested: the
/// caller requests the rest. `None` if there is another range, which `object_store` reports.
fn rewrite_range(response: &mut HttpResponse, requested: Range<u64>) -> Option<()> {
    let text = response.headers().get("content-range")?.to_str().ok()?;
    let (range, len) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
    let sent = parse_range(range.trim()).filter(|sent| sent.start == requested.start && !sent.is_empty())?;
    let len = if len.trim() == "*" { None } else { Some(len.trim().parse::<u64>().ok()?) };
    let end = requested.end.min(len.unwrap_or(u64::MAX)).max(sent.end);
    let rewritten = format!("bytes {}-{}/{}", sent.start, end - 1, len.unwrap_or(u64::MAX));
    if sent.end < end {
        response.extensions_mut().insert(ShorterRange);
    }
    if len.is_none() {
        response.extensions_mut().insert(UnknownLength);
    }
    let headers = response.headers_mut();
    headers.insert("content-range", rewritten.parse().ok()?);
    // A body in chunks has none. `object_store` takes the length of the range instead.
    headers.entry("content-length").or_insert(0.into());
    Some(())
}

/// Writes the time of the last change in the form of mails, which `object_store` reads, or removes it.
fn rewrite_date(response: &mut HttpResponse) {
    let headers = response.headers_mut();
    let Some(date) = headers.remove("last-modified") else { return };
    let date = date.to_str().ok().and_then(mail_date).and_then(|date| date.parse().ok());
    date.into_iter().for_each(|date| _ = headers.insert("last-modified", date));
}

/// Removes the fields whose values are not ASCII, such as names of files: RFC 9110 section 5.5 allows other bytes, and
/// `object_store` refuses responses with them.
fn remove_fields_outside_ascii(response: &mut HttpResponse) {
    let headers = response.headers_mut();
    let outside = headers.iter().filter(|(_, value)| value.to_str().is_err());
    let names: Vec<_> = outside.map(|(name, _)| name.clone()).collect();
    names.into_iter().for_each(|name| _ = headers.remove(name));
}

/// The date of one of the three forms of RFC 9110 section 5.6.7, without the weekday, which may be wrong.
fn mail_date(date: &str) -> Option<String> {
    let words: Vec<&str> = date.split_ascii_whitespace().collect();
    let [day, month, year, time] = match words[..] {
        [_, day, month, year, time, _] => [day, month, year, time],
        [_, date, time, _] => {
            let mut parts = date.splitn(3, '-');
            [parts.next()?, parts.next()?, parts.next()?, time]
        }
        [_, month, day, time, year] => [day, month, year, time],
        _ => return None,
    };
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_time = time.len() == 8 && time.split(':').count() == 3 && time.split(':').all(is_number);
    let is_date = is_number(day) && is_number(year) && matches!(year.len(), 2 | 4) && MONTHS.contains(&month);
    // Years of two digits are those from 1970 on.
    let century = match year.len() {
        4 => "",
        _ if year < "70" => "20",
        _ => "19",
    };
    (is_date && is_time).then(|| format!("{day} {month} {century}{year} {time} GMT"))
}

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::client::HttpResponseBody;

    #[test]
    fn dates_of_all_forms_are_written_as_in_mails() {
        let expected = Some("06 Nov 1994 08:49:37 GMT".to_string());
        for date in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Mon, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sunday, 06-Nov-1994 08:49:37 GMT",
        ] {
            assert_eq!(mail_date(date), expected, "{date}");
        }
        assert_eq!(mail_date("Sun Nov  6 08:49:37 1994"), Some("6 Nov 1994 08:49:37 GMT".to_string()));
        assert_eq!(mail_date("Friday, 06-Nov-26 08:49:37 GMT"), Some("06 Nov 2026 08:49:37 GMT".to_string()));
        for date in ["", "0", "now", "Sunday, 06/Nov/94 08:49:37 GMT", "Sun, 06 Nov 1994 8:49 GMT"] {
            assert_eq!(mail_date(date), None, "{date}");
        }
    }

    fn response(range: &str, requested: Range<u64>) -> HttpResponse {
        let mut response = HttpResponse::new(HttpResponseBody::from(Vec::new()));
        *response.status_mut() = 206.try_into().unwrap();
        response.headers_mut().insert("content-range", range.parse().unwrap());
        accept(&mut response, Some(requested));
        response
    }

    #[test]
    fn ranges_are_those_that_were_requested() {
        let most = u64::MAX;
        for (range, rewritten, is_shorter, is_len_known) in [
            ("bytes 5-9/20", "bytes 5-9/20", false, true),
            ("bytes 5-7/20", "bytes 5-9/20", true, true),
            ("bytes 5-7/8", "bytes 5-7/8", false, true),
            ("bytes 5-9/*", &format!("bytes 5-9/{most}"), false, false),
            ("bytes 5-7/*", &format!("bytes 5-9/{most}"), true, false),
            ("bytes 5-19/20", "bytes 5-19/20", false, true),
            ("bytes 4-9/20", "bytes 4-9/20", false, true),
            ("bytes 5-x/20", "bytes 5-x/20", false, true),
            ("bytes 5-3/20", "bytes 5-3/20", false, true),
        ] {
            let response = response(range, 5..10);
            assert_eq!(response.headers()["content-range"], rewritten, "{range}");
            assert_eq!(response.extensions().get::<ShorterRange>().is_some(), is_shorter, "{range}");
            assert_eq!(response.extensions().get::<UnknownLength>().is_none(), is_len_known, "{range}");
        }
    }
}
