//! The HTTP clients of all stores, which count requests and bytes: [`Connector`].

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use http_body_util::BodyExt;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};

use super::Transfer;
use super::failure::{LONG_RESPONSE, is_transient_status};
use super::http_client::http_client;
use super::limited_body::limited;
use super::listing_page::{checked_page, is_listing};
use super::repetition::requested_pause;
use super::response_header::{accept, add_final_address, check_content, requested_range};
use super::time_limits::TimeLimits;

/// Maximum length of a response to a request that writes. One has the name of an upload, or a tag.
const MAX_RESPONSE_LEN: usize = 1 << 20;

/// What was requested and transferred.
#[derive(Debug, Default)]
struct TransferCounts {
    requests: AtomicU64,
    /// Requests that failed in a way that is worth a repetition.
    failures: AtomicU64,
    /// Bytes of bodies that were received.
    received: AtomicU64,
}

/// Makes HTTP clients. Stores with the same options share one, and with it its connections.
#[derive(Clone, Debug, Default)]
pub(super) struct Connector {
    clients: Arc<Mutex<HashMap<String, HttpClient>>>,
    counts: Arc<TransferCounts>,
    headers: Vec<RequestHeader>,
}

/// A header that is added to requests.
#[derive(Clone, Debug)]
pub(super) struct RequestHeader {
    pub(super) name: &'static str,
    pub(super) value: String,
    /// It is added only to requests of ranges of objects.
    pub(super) is_of_ranges: bool,
}

impl Connector {
    /// The same, with these headers in requests.
    pub(super) fn with_headers(&self, headers: Vec<RequestHeader>) -> Connector {
        Connector { headers, ..self.clone() }
    }

    /// What all clients requested and received so far.
    pub(super) fn transfer(&self) -> Transfer {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let TransferCounts { requests, failures, received } = &*self.counts;
        Transfer { requests: count(requests), failed_requests: count(failures), received: count(received) }
    }

    fn shared_client(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let mut clients = self.clients.lock();
        let options_text = format!("{options:?}");
        if let Some(client) = clients.get(&options_text) {
            return Ok(client.clone());
        }
        let client = http_client(options)?;
        clients.insert(options_text, client.clone());
        Ok(client)
    }
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = self.shared_client(options)?;
        let counts = Arc::clone(&self.counts);
        Ok(HttpClient::new(CountingService { client, counts, headers: self.headers.clone() }))
    }
}

#[derive(Debug)]
struct CountingService {
    client: HttpClient,
    counts: Arc<TransferCounts>,
    headers: Vec<RequestHeader>,
}

impl CountingService {
    /// Adds the headers of the store.
    fn add_headers(&self, request: &mut HttpRequest, is_range: bool) {
        for header in self.headers.iter().filter(|header| is_range || !header.is_of_ranges) {
            header.value.parse().into_iter().for_each(|value| _ = request.headers_mut().insert(header.name, value));
        }
    }

    fn count_failure(&self) {
        self.counts.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// The body, whose bytes are counted.
    fn counted(&self, body: HttpResponseBody) -> HttpResponseBody {
        let (received, failed) = (Arc::clone(&self.counts), Arc::clone(&self.counts));
        let body = body.map_frame(move |frame| {
            let len = frame.data_ref().map_or(0, |bytes| bytes.len());
            received.received.fetch_add(len as u64, Ordering::Relaxed);
            frame
        });
        HttpResponseBody::new(body.map_err(move |error| {
            failed.failures.fetch_add(1, Ordering::Relaxed);
            error
        }))
    }
}

#[async_trait]
impl HttpService for CountingService {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (range, is_listing) = (requested_range(&request), is_listing(&request));
        let is_writing = !request.method().is_safe();
        let is_reading = request.method().as_str() == "GET" && !is_listing;
        self.add_headers(&mut request, range.is_some());
        let address = request.uri().to_string();
        self.counts.requests.fetch_add(1, Ordering::Relaxed);
        let mut limits = TimeLimits::of_options();
        let response = limits.wait(self.client.execute(request)).await.flatten();
        let mut response = response.inspect_err(|_| self.count_failure())?;
        let is_busy = is_transient_status(response.status().as_u16());
        let pause = requested_pause(&response);
        if is_reading {
            check_content(response.status().as_u16(), range.is_some())?;
        }
        accept(&mut response, range);
        add_final_address(&mut response, &address);
        let (parts, body) = response.into_parts();
        let mut body = self.counted(limits.limit(body));
        if !parts.status.is_success() {
            body = error_page(body).await.into();
        } else if is_listing {
            body = checked_page(body).await?;
        } else if is_writing {
            body = limited(body, MAX_RESPONSE_LEN, LONG_RESPONSE);
        }
        if is_busy {
            self.count_failure();
            // `object_store` does not know this pause, and repeats the request after it gets the response.
            tokio::time::sleep(pause).await;
        }
        Ok(HttpResponse::from_parts(parts, body))
    }
}

/// The beginning of the body of an error, in which `object_store` looks for an error code. It would read a body of any
/// length, and would take one that is not UTF-8 for a broken response, of which the status is not known.
async fn error_page(mut body: HttpResponseBody) -> String {
    const MAX_LEN: usize = 64 << 10;
    let mut page = Vec::new();
    while page.len() < MAX_LEN
        && let Some(Ok(frame)) = body.frame().await
    {
        page.extend_from_slice(frame.data_ref().map_or(&[], |bytes| &bytes[..]));
    }
    page.truncate(MAX_LEN);
    String::from_utf8_lossy(&page).into_owned()
}
