//! The names of remote objects, and how they are shown without credentials: [`RemoteUrl`].

use std::path::Path;

use super::error::RemoteError;

/// The kind of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RemoteScheme {
    S3,
    Google,
    Azure,
    Http,
}

/// Schemes of remote names.
const SCHEMES: [(&str, RemoteScheme); 6] = [
    ("s3://", RemoteScheme::S3),
    ("s3a://", RemoteScheme::S3),
    ("gs://", RemoteScheme::Google),
    ("az://", RemoteScheme::Azure),
    ("https://", RemoteScheme::Http),
    ("http://", RemoteScheme::Http),
];

/// A parameter of a query or of `--store-option` is secret if its name contains one of these.
const SECRET_NAMES: [&str; 11] =
    ["sig", "token", "credential", "key", "secret", "password", "passwd", "auth", "policy", "session", "accessid"];

/// A longer value of a query parameter is taken for a secret, whatever its name is.
const MAX_PLAIN_VALUE: usize = 48;

const REDACTED: &str = "REDACTED";

/// Whether an address that was made from a [name](RemoteUrl::name) lacks a secret that the name does not show.
pub(crate) fn has_hidden_part(address: &[u8]) -> bool {
    memchr::memmem::find(address, REDACTED.as_bytes()).is_some()
}

/// A name such as `s3://bucket/key` or `https://host/path`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RemoteUrl {
    pub(super) scheme: RemoteScheme,
    /// The name as given, with the scheme in lower case. It may contain credentials: show [`RemoteUrl::name`] instead.
    pub(super) text: String,
    /// The part before the first slash: the bucket, or the host with what belongs to it.
    pub(super) bucket: String,
    /// The part after that slash.
    pub(super) key: String,
}

impl RemoteUrl {
    /// Returns `None` for the name of a local file. `./s3:/x` is one.
    pub(crate) fn parse(text: &str) -> Option<RemoteUrl> {
        let (prefix, scheme, rest) = split_scheme(text)?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let key = rest[end..].strip_prefix('/').unwrap_or(&rest[end..]);
        let (text, bucket) = (format!("{prefix}{rest}"), rest[..end].to_string());
        Some(RemoteUrl { scheme, text, bucket, key: key.to_string() })
    }

    /// As [`RemoteUrl::parse`].
    pub(crate) fn of_path(path: &Path) -> Option<RemoteUrl> {
        RemoteUrl::parse(path.to_str()?)
    }

    /// The name stands for objects that are listed: it is a prefix that ends in `/`, or a pattern.
    pub(crate) fn is_list(&self) -> bool {
        let is_list = is_prefix(&self.key) || is_pattern(&self.key);
        self.is_in_store() && !self.bucket.is_empty() && is_list
    }

    /// Whether the URL names a store or what is in one. An HTTP server is no store: its files cannot be listed or written.
    pub(super) fn is_in_store(&self) -> bool {
        self.scheme != RemoteScheme::Http
    }

    /// Checks that the URL can name an object to write, or a prefix below which objects are written. Makes no request.
    pub(crate) fn check_writable(&self) -> Result<(), RemoteError> {
        match self.is_in_store() {
            true => Ok(()),
            false => Err(RemoteError::not_an_output()),
        }
    }

    /// The URL of the objects below this one.
    pub(crate) fn prefix(&self) -> RemoteUrl {
        let slash = if is_prefix(&self.key) { "" } else { "/" };
        RemoteUrl { text: format!("{}{slash}", self.text), key: format!("{}{slash}", self.key), ..self.clone() }
    }

    /// The URL of an archive, and the name or pattern of its members, which follows `!`; `None` if the URL has another form.
    pub(crate) fn split_member(&self) -> Option<(RemoteUrl, &str)> {
        let splits = self.text.match_indices('!').map(|(at, _)| (&self.text[..at], &self.text[at + 1..]));
        let is_archive = |url: &str| is_archive_name(without_query(url));
        let (archive, member) = splits.into_iter().find(|(archive, _)| is_archive(archive))?;
        Some((RemoteUrl::parse(archive)?, member))
    }

    /// The name of another object of the same store, without credentials.
    #[cfg(feature = "remote")]
    pub(super) fn shown_name_of(&self, key: &str) -> ShownName {
        let prefix = &self.text[..self.text.len() - self.key.len()];
        let slash = if prefix.ends_with('/') { "" } else { "/" };
        ShownName::new(&format!("{prefix}{slash}{key}"))
    }

    /// The name without credentials.
    #[cfg(feature = "remote")]
    pub(super) fn shown_name(&self) -> ShownName {
        ShownName::new(&self.text)
    }

    /// The key of a file on an HTTP server without query and fragment.
    pub(crate) fn path(&self) -> &str {
        self.key.split(['?', '#']).next().unwrap_or_default()
    }

    /// A name that is the same for all spellings of the scheme, to compare objects by.
    pub(crate) fn identity(&self) -> String {
        match self.text.strip_prefix("s3a://") {
            Some(rest) => redact(&format!("s3://{rest}")),
            None => self.name(),
        }
    }

    /// The name without user, password, and secret parts of the query.
    pub(crate) fn name(&self) -> String {
        redact(&self.text)
    }
}

/// The name of an object without credentials.
#[cfg(feature = "remote")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ShownName {
    pub(super) text: String,
    /// Beginning of a hash of the whole name, if `text` lacks a part of the query: other objects may have the same `text`.
    /// User and password are not hashed. The hash is a cryptographic one, because it is written to manifests.
    hidden: Option<String>,
}

#[cfg(feature = "remote")]
impl ShownName {
    pub(super) fn new(name: &str) -> ShownName {
        const HASH_LEN: usize = 16;
        let (text, whole) = (redact(name), without_user(name));
        let hidden = (text != whole).then(|| blake3::hash(whole.as_bytes()).to_hex()[..HASH_LEN].to_string());
        ShownName { text, hidden }
    }

    /// The text lacks a part of the query.
    pub(super) fn is_query_hidden(&self) -> bool {
        self.hidden.is_some()
    }

    /// Another text for every object.
    pub(super) fn identity(&self) -> String {
        self.hidden.as_ref().map_or_else(|| self.text.clone(), |hash| format!("{}#{hash}", self.text))
    }
}

/// The name without query and fragment, if it is the address of a file on an HTTP server. In other names, these are part of the
/// key.
pub(crate) fn without_query(name: &str) -> &str {
    let is_address = matches!(split_scheme(name), Some((_, RemoteScheme::Http, _)));
    let end = name.find(['?', '#']).filter(|_| is_address);
    &name[..end.unwrap_or(name.len())]
}

/// The name ends like that of a ZIP archive.
pub(super) fn is_archive_name(name: &str) -> bool {
    [".zip", ".wacz"].iter().any(|suffix| {
        let start = name.len().checked_sub(suffix.len()).and_then(|start| name.get(start..));
        start.is_some_and(|end| end.eq_ignore_ascii_case(suffix))
    })
}

/// The name ends like that of a table in a binary format.
pub(crate) fn is_table_name(name: &str) -> bool {
    [".parquet", ".pq", ".arrow", ".arrows", ".feather"].iter().any(|suffix| name.ends_with(suffix))
}

/// A key stands for all objects below it.
pub(super) fn is_prefix(key: &str) -> bool {
    key.is_empty() || key.ends_with('/')
}

/// The characters with which wildcards begin.
pub(super) const WILDCARDS: [char; 3] = ['*', '?', '['];

/// The text contains a wildcard.
pub(super) fn is_pattern(text: &str) -> bool {
    text.contains(WILDCARDS)
}

/// The error of a name `SCHEME://...` that is not remote; `None` for other names. Schemes of one letter are drives.
pub(crate) fn unknown_scheme(path: &Path) -> Option<RemoteError> {
    let text = path.to_str()?;
    let (scheme, _) = text.split_once("://")?;
    let is_of_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    let is_scheme = scheme.len() > 1 && scheme.as_bytes()[0].is_ascii_alphabetic() && scheme.bytes().all(is_of_scheme);
    if !is_scheme || split_scheme(text).is_some() {
        return None;
    }
    let found = format!("not a file, and irikey does not read {scheme}://");
    let known = SCHEMES.map(|(prefix, _)| prefix).join(", ");
    Some(RemoteError::new(found, format!("download it, or name an address that begins with one of {known}")))
}

/// The prefix and the scheme of a remote name, and what follows the prefix.
pub(super) fn split_scheme(text: &str) -> Option<(&'static str, RemoteScheme, &str)> {
    SCHEMES.iter().find_map(|(prefix, scheme)| {
        let head = text.get(..prefix.len())?;
        head.eq_ignore_ascii_case(prefix).then(|| (*prefix, *scheme, &text[prefix.len()..]))
    })
}

/// The URL `text` without credentials.
fn redact(text: &str) -> String {
    let text = without_user(text);
    let Some((path, query)) = text.split_once('?') else { return text };
    let parameters: Vec<_> = query.split('&').map(|parameter| redact_parameter(parameter, MAX_PLAIN_VALUE)).collect();
    format!("{path}?{}", parameters.join("&"))
}

/// The URL `text` without user and password.
fn without_user(text: &str) -> String {
    let Some(start) = text.find("://").map(|at| at + 3) else { return text.to_string() };
    let rest = &text[start..];
    let authority_end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let host = rest[..authority_end].rfind('@').map_or(0, |at| at + 1);
    format!("{}{}", &text[..start], &rest[host..])
}

/// `NAME=VALUE` without a value that is secret or longer than `max_len`.
fn redact_parameter(parameter: &str, max_len: usize) -> String {
    match parameter.split_once('=') {
        Some((name, value)) if is_secret(name) || value.len() > max_len => format!("{name}={REDACTED}"),
        None if parameter.len() > max_len => REDACTED.to_string(),
        _ => parameter.to_string(),
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_NAMES.iter().any(|secret| name.contains(secret))
}

/// A word of a command line without credentials: of a remote name in it, or of a `--store-option` before it.
pub(crate) fn redact_argument(word: &str, previous: Option<&str>) -> String {
    const FLAG: &str = "--store-option";
    if previous == Some(FLAG) {
        return redact_option(word);
    }
    if let Some(option) = word.strip_prefix(FLAG).and_then(|rest| rest.strip_prefix('=')) {
        return format!("{FLAG}={}", redact_option(option));
    }
    let is_start = |at: usize| split_scheme(&word[at..]).is_some();
    match word.char_indices().map(|(at, _)| at).find(|&at| is_start(at)) {
        Some(at) => format!("{}{}", &word[..at], redact(&word[at..])),
        None => word.to_string(),
    }
}

fn redact_option(option: &str) -> String {
    let option = redact_parameter(option, usize::MAX);
    match option.split_once('=') {
        Some((name, value)) => format!("{name}={}", redact(value)),
        None => option,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_divided_into_store_and_key() {
        let parts = |text: &str| RemoteUrl::parse(text).map(|url| (url.scheme, url.bucket, url.key));
        let s3 = |key: &str| Some((RemoteScheme::S3, "b".to_string(), key.to_string()));
        assert_eq!(parts("s3://b/x/y.gz"), s3("x/y.gz"));
        assert_eq!((parts("S3A://b"), parts("s3://b/"), parts("s3://b//x?y")), (s3(""), s3(""), s3("/x?y")));
        for local in ["x", "s3:/b/k", "./s3://b/k", "/http://h", "ftp://h/x", "s3", "ä3://x"] {
            assert_eq!(parts(local), None, "{local}");
        }
    }

    #[test]
    fn prefixes_and_patterns_are_listed() {
        let is_list = |text: &str| RemoteUrl::parse(text).unwrap().is_list();
        for name in ["s3://b", "s3://b/", "gs://b/p/", "az://c/p/*.gz", "s3://b/[0-9]/x"] {
            assert!(is_list(name), "{name}");
        }
        for name in ["s3://b/p", "http://h/", "https://h/x?y", "s3://", "s3:///"] {
            assert!(!is_list(name), "{name}");
        }
    }

    #[test]
    fn spellings_of_the_scheme_have_one_identity() {
        let identity = |text: &str| RemoteUrl::parse(text).unwrap().identity();
        for name in ["s3://b/k", "S3://b/k", "s3a://b/k", "S3A://KEY:SECRET@b/k"] {
            assert_eq!(identity(name), "s3://b/k");
        }
        for name in ["s3://b/K", "gs://b/k", "az://b/k", "https://h/x?page=2", "http://h/x"] {
            let (scheme, rest) = name.split_once(':').unwrap();
            assert_eq!(identity(&format!("{}:{rest}", scheme.to_uppercase())), name);
        }
    }

    #[test]
    fn names_are_shown_without_credentials() {
        let name = |text: &str| RemoteUrl::parse(text).unwrap().name();
        for plain in ["s3://b/k", "https://h:80/x?page=2&q=a", "http://h/@x?", "gs://b/a@b:c"] {
            assert_eq!(name(plain), plain);
        }
        assert_eq!(name("https://u:p@ss@h/x"), "https://h/x");
        assert_eq!(name("s3://KEY:SECRET@b/k"), "s3://b/k");
        assert_eq!(name("HTTP://H/X"), "http://H/X");
        let signed = "https://h/x?id=7&X-Amz-Signature=0af&sig=z%3D&AWSAccessKeyId=AK&x-goog-credential=c";
        let shown = "https://h/x?id=7&X-Amz-Signature=REDACTED&sig=REDACTED&AWSAccessKeyId=REDACTED\
                     &x-goog-credential=REDACTED";
        assert_eq!(name(signed), shown);
        let long = format!("http://h/?{}&a={}", "x".repeat(50), "y".repeat(50));
        assert_eq!(name(&long), "http://h/?REDACTED&a=REDACTED");
    }

    #[test]
    #[cfg(feature = "remote")]
    fn names_with_hidden_parts_have_different_identities() {
        let shown = |text: &str| RemoteUrl::parse(text).unwrap().shown_name();
        let names = ["https://h/x?key=a", "https://h/x?key=b", "https://h/x?key=REDACTED", "https://h/x"].map(shown);
        assert!(names[..3].iter().all(|name| name.text == "https://h/x?key=REDACTED"));
        let identities: std::collections::HashSet<_> = names.iter().map(ShownName::identity).collect();
        assert_eq!(identities.len(), 4);
        assert!(names[0].is_query_hidden() && !names[3].is_query_hidden());
        // Another password is no other object.
        assert_eq!(shown("https://u:p@h/x?key=a"), names[0]);
        assert_eq!(shown("https://u:p@h/x").identity(), "https://h/x");
    }

    #[test]
    fn command_lines_are_shown_without_credentials() {
        let redacted = |word: &str| redact_argument(word, None);
        assert_eq!(redacted("@https://u:p@h/list?sig=1"), "@https://h/list?sig=REDACTED");
        assert_eq!(redacted("--report=x"), "--report=x");
        assert_eq!(redacted("--store-option=secret_access_key=a=b"), "--store-option=secret_access_key=REDACTED");
        let option = |word: &str| redact_argument(word, Some("--store-option"));
        assert_eq!(option("endpoint=http://u:p@h:1"), "endpoint=http://h:1");
        assert_eq!((option("token=x"), option("region=eu")), ("token=REDACTED".to_string(), "region=eu".to_string()));
    }
}
