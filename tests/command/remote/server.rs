//! A server on loopback with the requests of S3 that the command makes, which fails on demand: [`Server`].

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hasher};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Keys per page of a listing.
const PAGE_KEYS: usize = 1000;

/// What happens to a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// No fault.
    None,
    /// The response has this status and body.
    Status(u16, &'static str),
    /// The response has this status and a body that is not UTF-8.
    Page(u16, &'static [u8]),
    /// The response has this header field in addition.
    Field(&'static str, &'static str),
    /// The connection is closed without a response.
    Drop,
    /// The connection is closed after so many bytes of the body.
    Truncate(usize),
    /// The response comes later.
    Delay(Duration),
    /// The object is changed before the response.
    Change,
    /// All bytes are sent, whatever range is requested.
    IgnoreRange,
    /// The last byte of a requested range is ignored if it is 0, and an empty object has the range of an empty text.
    WrongRange,
    /// As [`Fault::IgnoreRange`], in chunks, without a length.
    Chunked,
    /// As [`Fault::Chunked`], but the connection is closed after so many bytes.
    CutChunks(usize),
    /// As [`Fault::None`], but the bytes of a range are in chunks, without a length.
    ChunkedRange,
    /// At most so many bytes of a range are sent.
    ShortRange(usize),
    /// A range is sent without the length of the object.
    UnknownLength,
    /// As [`Fault::UnknownLength`], and HEAD requests get a response as if the object were empty.
    EmptyHead,
    /// So many wrong bytes of a range are sent, which ends before it begins.
    BackwardRange(usize),
    /// The object is sent decompressed and whole, unless gzip is accepted.
    Unpacked(&'static [u8]),
    /// The response has this encoding, which the object has already.
    Coded(&'static str),
    /// The request is performed, and the connection is closed without a response.
    Lost,
    /// A listing has the first page only, and says that there are others.
    CutListing,
    /// The response has no entity tag; the object was changed at this time.
    Untagged(&'static str),
    /// The response has this media type; as [`Fault::IgnoreRange`] unless it has ranges.
    Typed { media_type: &'static str, has_ranges: bool },
    /// The client is sent to this path or address.
    Redirect(String),
    /// The server is busy, and names this time in `Retry-After`.
    Busy(&'static str),
    /// The entity tag has no quotes, and `If-Match` never matches, as for the package `net/http` of Go.
    UnquotedTag,
    /// The connection stays open without a response.
    Stall,
    /// The body is sent byte by byte, with this pause between them.
    Trickle(Duration),
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    /// Path and query.
    pub target: String,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// The value of a parameter of the query; empty if it has none.
    pub fn parameter(&self, name: &str) -> Option<String> {
        let query = self.target.split_once('?')?.1;
        let find = |pair: &str| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (key == name).then(|| unescape(&value.replace('+', " ")))
        };
        query.split('&').find_map(find)
    }

    fn range(&self, len: usize) -> Option<Range<usize>> {
        let (start, end) = self.header("range")?.strip_prefix("bytes=")?.split_once('-')?;
        let end = end.parse::<usize>().map_or(len, |end| (end + 1).min(len));
        Some(start.parse().ok()?..end)
    }
}

/// Undoes percent-encoding.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8(bytes).unwrap()
}

#[derive(Default)]
struct Contents {
    /// Objects by `/bucket/key`.
    objects: BTreeMap<String, Vec<u8>>,
    /// Parts of uploads that are not complete, by number.
    uploads: BTreeMap<String, BTreeMap<u32, Vec<u8>>>,
    /// Blocks of Azure that are not committed, by `/bucket/key` and name.
    blocks: BTreeMap<String, BTreeMap<String, Vec<u8>>>,
    /// Requests in progress, and the most at a time.
    current: usize,
    most: usize,
    requests: Vec<Request>,
}

/// A server that runs until the process ends.
#[derive(Clone)]
pub struct Server {
    pub address: String,
    contents: Arc<Mutex<Contents>>,
}

type Faults = dyn Fn(usize, &Request) -> Fault + Send + Sync;

impl Server {
    /// Starts a server with objects by `/bucket/key`. `faults` decides on each request, by its number from 0.
    pub fn start(
        objects: impl IntoIterator<Item = (String, Vec<u8>)>,
        faults: impl Fn(usize, &Request) -> Fault + Send + Sync + 'static,
    ) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("127.0.0.1:{}", listener.local_addr().unwrap().port());
        let contents = Contents { objects: objects.into_iter().collect(), ..Contents::default() };
        let server = Server { address, contents: Arc::new(Mutex::new(contents)) };
        let (accepting, faults): (_, Arc<Faults>) = (server.clone(), Arc::new(faults));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (server, faults) = (accepting.clone(), Arc::clone(&faults));
                thread::spawn(move || server.serve(&stream, &*faults));
            }
        });
        server
    }

    pub fn requests(&self) -> Vec<Request> {
        self.contents.lock().unwrap().requests.clone()
    }

    pub fn object(&self, path: &str) -> Option<Vec<u8>> {
        self.contents.lock().unwrap().objects.get(path).cloned()
    }

    pub fn paths(&self) -> Vec<String> {
        self.contents.lock().unwrap().objects.keys().cloned().collect()
    }

    /// The most requests that were in progress at a time.
    pub fn most_at_a_time(&self) -> usize {
        self.contents.lock().unwrap().most
    }

    /// Number of uploads that are neither complete nor aborted.
    pub fn upload_count(&self) -> usize {
        self.contents.lock().unwrap().uploads.len()
    }

    /// Responds to the requests of a connection.
    fn serve(&self, stream: &TcpStream, faults: &Faults) {
        let mut reader = BufReader::new(stream);
        while let Some(request) = read_request(&mut reader) {
            let number = {
                let mut contents = self.contents.lock().unwrap();
                contents.requests.push(request.clone());
                contents.current += 1;
                contents.most = contents.most.max(contents.current);
                contents.requests.len() - 1
            };
            let is_open = self.respond_to(stream, &request, number, faults);
            self.contents.lock().unwrap().current -= 1;
            if !is_open {
                return;
            }
        }
    }

    /// Responds to a request. Returns false if the connection is to be closed.
    fn respond_to(&self, stream: &TcpStream, request: &Request, number: usize, faults: &Faults) -> bool {
        let fault = faults(number, request);
        let mut cut = usize::MAX;
        let response = match &fault {
            Fault::Drop => return false,
            Fault::Stall => {
                // Returns when the client closes the connection.
                let _ = (&*stream).read(&mut [0]);
                return false;
            }
            Fault::Status(status, body) => Response::new(*status, body.as_bytes().to_vec()),
            Fault::Page(status, body) => Response::new(*status, body.to_vec()),
            Fault::UnquotedTag if request.header("if-match").is_some() => Response::new(412, Vec::new()),
            Fault::Redirect(path) => Response::new(302, Vec::new()).with_field("Location", path),
            Fault::Busy(time) => Response::new(503, Vec::new()).with_field("Retry-After", time),
            fault => {
                match fault {
                    Fault::Delay(time) => thread::sleep(*time),
                    Fault::Truncate(len) | Fault::CutChunks(len) => cut = *len,
                    Fault::Change => self.change(request.path()),
                    _ => {}
                }
                self.response(request, fault)
            }
        };
        let is_chunked = match fault {
            Fault::Chunked | Fault::CutChunks(_) => true,
            Fault::ChunkedRange => response.status == 206,
            _ => false,
        };
        match fault {
            Fault::Lost => false,
            Fault::Trickle(pause) => response.trickle(stream, pause),
            _ => response.send(stream, request, is_chunked, cut),
        }
    }

    pub fn put(&self, path: &str, bytes: &[u8]) {
        self.contents.lock().unwrap().objects.insert(path.to_string(), bytes.to_vec());
    }

    pub fn change(&self, path: &str) {
        if let Some(object) = self.contents.lock().unwrap().objects.get_mut(path) {
            // The same length, so that only the entity tag tells.
            object.iter_mut().filter(|byte| **byte == b'o').for_each(|byte| *byte = b'0');
        }
    }

    fn response(&self, request: &Request, fault: &Fault) -> Response {
        let path = unescape(request.path());
        let mut contents = self.contents.lock().unwrap();
        match request.method.as_str() {
            "GET" if request.parameter("comp").is_some() => list_azure(&contents.objects, &path, request),
            "PUT" if request.parameter("comp").is_some() => contents.write_azure(&path, request),
            "GET" if request.parameter("list-type").is_some() => {
                let mut response = list(&contents.objects, &path, request);
                if *fault == Fault::CutListing {
                    response.cut_listing();
                }
                response
            }
            "GET" | "HEAD" => {
                let has_wrong_range = *fault == Fault::WrongRange && request.method == "GET";
                let is_without_ranges = matches!(
                    fault,
                    Fault::IgnoreRange | Fault::Chunked | Fault::CutChunks(_) | Fault::Typed { has_ranges: false, .. }
                );
                let mut response = get(&contents.objects, &path, request, is_without_ranges || has_wrong_range);
                response.limit_range(fault);
                response.add_field(fault, request);
                if *fault == Fault::UnquotedTag {
                    let tags = response.headers.iter_mut().filter(|(name, _)| name == "ETag");
                    tags.for_each(|(_, tag)| *tag = tag.replace('"', ""));
                }
                if let Fault::Untagged(time) = fault {
                    response.headers.retain(|(name, _)| name != "ETag" && name != "Last-Modified");
                    response.headers.push(("Last-Modified".to_string(), time.to_string()));
                }
                if let Some(range) =
                    request.range(response.body.len()).filter(|_| has_wrong_range && response.status == 200)
                {
                    let len = response.body.len();
                    let end = if range.end == 1 { len } else { range.end };
                    response.body = response.body[range.start..end].to_vec();
                    response.status = 206;
                    let place = format!("bytes {}-{}/{len}", range.start, end as i64 - 1);
                    response.headers.push(("Content-Range".to_string(), place));
                }
                response
            }
            "PUT" | "POST" | "DELETE" => contents.write(&path, request),
            _ => Response::new(405, Vec::new()),
        }
    }
}

impl Contents {
    fn write(&mut self, path: &str, request: &Request) -> Response {
        let body = request.body.clone();
        let tagged =
            |body: &[u8]| Response { headers: vec![("ETag".into(), tag(body))], ..Response::new(200, Vec::new()) };
        let upload = request.parameter("uploadId");
        let part = request.parameter("partNumber").and_then(|number| number.parse::<u32>().ok());
        match (request.method.as_str(), upload, part) {
            ("POST", None, _) if request.parameter("uploads").is_some() => {
                let id = format!("upload-{}", self.requests.len());
                self.uploads.insert(id.clone(), BTreeMap::new());
                let xml = format!(
                    "<InitiateMultipartUploadResult><Bucket>b</Bucket><Key>k</Key><UploadId>{id}</UploadId>\
                     </InitiateMultipartUploadResult>"
                );
                Response::new(200, xml.into_bytes())
            }
            ("PUT", Some(id), Some(part)) => {
                // A part may arrive after its upload was aborted.
                let Some(parts) = self.uploads.get_mut(&id) else { return error(404, "NoSuchUpload") };
                let response = tagged(&body);
                parts.insert(part, body);
                response
            }
            ("POST", Some(id), _) => {
                if self.is_refused(path, request) {
                    return error(412, "PreconditionFailed");
                }
                let Some(parts) = self.uploads.remove(&id) else { return error(404, "NoSuchUpload") };
                let object: Vec<u8> = parts.into_values().flatten().collect();
                let xml = format!(
                    "<CompleteMultipartUploadResult><Bucket>b</Bucket><Key>k</Key><ETag>{}</ETag>\
                     </CompleteMultipartUploadResult>",
                    tag(&object).replace('"', "&quot;")
                );
                self.objects.insert(path.to_string(), object);
                Response::new(200, xml.into_bytes())
            }
            ("DELETE", Some(id), _) => {
                self.uploads.remove(&id);
                Response::new(204, Vec::new())
            }
            ("PUT", None, _) => {
                if self.is_refused(path, request) {
                    return error(412, "PreconditionFailed");
                }
                let response = tagged(&body);
                self.objects.insert(path.to_string(), body);
                response
            }
            ("DELETE", None, _) => {
                self.objects.remove(path);
                Response::new(204, Vec::new())
            }
            _ => Response::new(400, Vec::new()),
        }
    }

    /// A block, or the list of blocks that are the object.
    fn write_azure(&mut self, path: &str, request: &Request) -> Response {
        match request.parameter("blockid") {
            Some(id) => _ = self.blocks.entry(path.to_string()).or_default().insert(id, request.body.clone()),
            None => {
                let mut blocks = self.blocks.remove(path).unwrap_or_default();
                let list = String::from_utf8(request.body.clone()).unwrap();
                let ids = list.split("<Uncommitted>").skip(1).map(|rest| rest.split('<').next().unwrap());
                let object = ids.flat_map(|id| blocks.remove(id).expect("a block of this name")).collect();
                self.objects.insert(path.to_string(), object);
            }
        }
        let tag = tag(self.objects.get(path).map_or(b"", Vec::as_slice));
        Response { headers: vec![("ETag".into(), tag)], ..Response::new(201, Vec::new()) }
    }

    /// The object exists, and the request says that it must not.
    fn is_refused(&self, path: &str, request: &Request) -> bool {
        let must_be_new =
            request.header("if-none-match") == Some("*") || request.header("x-goog-if-generation-match") == Some("0");
        must_be_new && self.objects.contains_key(path)
    }
}

struct Response {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Response {
    fn new(status: u16, body: Vec<u8>) -> Response {
        Response { status, headers: Vec::new(), body }
    }

    fn with_field(mut self, name: &str, value: &str) -> Response {
        self.headers.push((name.to_string(), value.to_string()));
        self
    }

    /// Removes the token of the next page.
    fn cut_listing(&mut self) {
        let page = String::from_utf8(std::mem::take(&mut self.body)).unwrap();
        let (start, rest) = page.split_once("<NextContinuationToken>").expect("a listing of several pages");
        let (_, rest) = rest.split_once("</NextContinuationToken>").unwrap();
        self.body = format!("{start}<IsTruncated>true</IsTruncated>{rest}").into_bytes();
    }

    /// Sends less of a range, or does not state the length of the object.
    fn limit_range(&mut self, fault: &Fault) {
        let Some((_, place)) = self.headers.iter_mut().find(|(name, _)| name == "Content-Range") else { return };
        let (range, len) = place.split_once('/').unwrap();
        let start: usize = range["bytes ".len()..].split('-').next().unwrap().parse().unwrap();
        match fault {
            Fault::ShortRange(most) => {
                self.body.truncate(*most);
                *place = format!("bytes {start}-{}/{len}", start + self.body.len() - 1);
            }
            Fault::UnknownLength | Fault::EmptyHead => *place = format!("{range}/*"),
            Fault::BackwardRange(count) => {
                self.body = b"x".repeat(*count);
                *place = format!("bytes {start}-{}/{len}", start as i64 - 2);
            }
            _ => {}
        }
    }

    /// Adds the header field that describes the body, and replaces the body if it is another one.
    fn add_field(&mut self, fault: &Fault, request: &Request) {
        let (name, value) = match fault {
            Fault::Typed { media_type, .. } => ("Content-Type", *media_type),
            Fault::Coded(coding) => ("Content-Encoding", *coding),
            Fault::Field(name, value) => (*name, *value),
            Fault::Unpacked(text) if request.header("accept-encoding") != Some("gzip") => {
                self.headers.retain(|(name, _)| name != "Content-Range");
                (self.status, self.body) = (200, text.to_vec());
                return;
            }
            Fault::Unpacked(_) => ("Content-Encoding", "gzip"),
            Fault::EmptyHead if request.method == "HEAD" => return self.body.clear(),
            _ => return,
        };
        self.headers.push((name.to_string(), value.to_string()));
    }

    /// Sends the header, and then the body byte by byte, until the client closes the connection.
    fn trickle(&self, mut stream: &TcpStream, pause: Duration) -> bool {
        let is_sent = stream.write_all(self.header(false).as_bytes()).is_ok();
        is_sent
            && self.body.iter().all(|byte| {
                thread::sleep(pause);
                stream.write_all(&[*byte]).is_ok()
            })
    }

    fn header(&self, is_chunked: bool) -> String {
        let mut text = format!("HTTP/1.1 {} x\r\n", self.status);
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        match is_chunked {
            true => text.push_str("Transfer-Encoding: chunked\r\n\r\n"),
            false => text.push_str(&format!("Content-Length: {}\r\n\r\n", self.body.len())),
        }
        text
    }

    /// Sends at most `cut` bytes of the body. Returns false if the connection is to be closed.
    fn send(&self, mut stream: &TcpStream, request: &Request, is_chunked: bool, cut: usize) -> bool {
        let mut bytes = self.header(is_chunked).into_bytes();
        let body = &self.body[..self.body.len().min(cut)];
        if request.method == "HEAD" {
        } else if is_chunked {
            for chunk in body.chunks(1000) {
                bytes.extend(format!("{:x}\r\n", chunk.len()).bytes());
                bytes.extend_from_slice(chunk);
                bytes.extend(b"\r\n");
            }
            bytes.extend(if cut < self.body.len() { &b""[..] } else { b"0\r\n\r\n" });
        } else {
            bytes.extend_from_slice(body);
        }
        stream.write_all(&bytes).is_ok() && cut >= self.body.len()
    }
}

fn error(status: u16, code: &str) -> Response {
    let xml = format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>secret-message</Message></Error>");
    Response::new(status, xml.into_bytes())
}

fn tag(body: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    hasher.write(body);
    format!("\"{:016x}\"", hasher.finish())
}

fn get(objects: &BTreeMap<String, Vec<u8>>, path: &str, request: &Request, is_whole: bool) -> Response {
    let Some(object) = objects.get(path) else {
        let bucket = format!("/{}/", path.split('/').nth(1).unwrap_or_default());
        let has_bucket = objects.keys().any(|key| key.starts_with(&bucket));
        return error(404, if has_bucket { "NoSuchKey" } else { "NoSuchBucket" });
    };
    if request.header("if-match").is_some_and(|expected| expected != tag(object)) {
        return error(412, "PreconditionFailed");
    }
    let mut headers = vec![
        ("ETag".to_string(), tag(object)),
        ("Last-Modified".to_string(), "Wed, 01 Jan 2025 00:00:00 GMT".to_string()),
    ];
    match request.range(object.len()).filter(|_| !is_whole) {
        Some(range) if range.start >= object.len() => error(416, "InvalidRange"),
        Some(range) => {
            let place = format!("bytes {}-{}/{}", range.start, range.end - 1, object.len());
            headers.push(("Content-Range".to_string(), place));
            Response { headers, ..Response::new(206, object[range].to_vec()) }
        }
        None => Response { headers, ..Response::new(200, object.clone()) },
    }
}

/// A page of a listing.
fn list(objects: &BTreeMap<String, Vec<u8>>, bucket: &str, request: &Request) -> Response {
    let bucket = format!("{}/", bucket.trim_end_matches('/'));
    let prefix = format!("{bucket}{}", request.parameter("prefix").unwrap_or_default());
    let after = request.parameter("continuation-token").unwrap_or_default();
    let start = if after > prefix { &after } else { &prefix };
    let keys = objects.range(start.clone()..).take_while(|(path, _)| path.starts_with(&prefix));
    let mut keys = keys.filter(|(path, _)| **path != after).peekable();
    let page: Vec<_> = keys.by_ref().take(PAGE_KEYS).collect();
    let mut xml = String::from("<ListBucketResult>");
    if let (Some(_), Some((last, _))) = (keys.peek(), page.last()) {
        xml.push_str(&format!("<NextContinuationToken>{last}</NextContinuationToken>"));
    }
    let delimiter = request.parameter("delimiter").filter(|delimiter| !delimiter.is_empty());
    let directory = |path: &str| {
        let end = path[prefix.len()..].find(delimiter.as_deref()?)? + prefix.len() + 1;
        Some(path[bucket.len()..end].to_string())
    };
    let directories: BTreeSet<String> = page.iter().filter_map(|(path, _)| directory(path)).collect();
    for directory in directories {
        xml.push_str(&format!("<CommonPrefixes><Prefix>{directory}</Prefix></CommonPrefixes>"));
    }
    for (path, object) in page.into_iter().filter(|(path, _)| directory(path).is_none()) {
        xml.push_str(&format!(
            "<Contents><Key>{}</Key><Size>{}</Size><LastModified>2025-01-01T00:00:00.000Z</LastModified>\
             <ETag>{}</ETag></Contents>",
            &path[bucket.len()..],
            object.len(),
            tag(object).replace('"', "&quot;"),
        ));
    }
    xml.push_str("</ListBucketResult>");
    Response::new(200, xml.into_bytes())
}

/// A listing of Azure, which is one page.
fn list_azure(objects: &BTreeMap<String, Vec<u8>>, container: &str, request: &Request) -> Response {
    let container = format!("{}/", container.trim_end_matches('/'));
    let prefix = format!("{container}{}", request.parameter("prefix").unwrap_or_default());
    let is_flat = request.parameter("delimiter").is_none();
    let mut xml = String::from("<EnumerationResults><Blobs>");
    for (path, object) in objects.iter().filter(|(path, _)| path.starts_with(&prefix)) {
        if is_flat || !path[prefix.len()..].contains('/') {
            xml.push_str(&format!(
                "<Blob><Name>{}</Name><Properties><Last-Modified>Wed, 01 Jan 2025 00:00:00 GMT</Last-Modified>\
                 <Content-Length>{}</Content-Length><Content-Type>x</Content-Type><Etag>{}</Etag></Properties></Blob>",
                &path[container.len()..],
                object.len(),
                tag(object).trim_matches('"'),
            ));
        }
    }
    xml.push_str("</Blobs><NextMarker /></EnumerationResults>");
    Response::new(200, xml.into_bytes())
}

fn read_request(reader: &mut impl BufRead) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|len| *len > 0)?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_string(), words.next()?.to_string());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|len| *len > 0)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_string());
    }
    let len = headers.get("content-length").and_then(|len| len.parse().ok()).unwrap_or(0);
    let mut body = vec![0; len];
    reader.read_exact(&mut body).ok()?;
    Some(Request { method, target, headers, body })
}
