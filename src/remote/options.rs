//! Options of stores: `--store-option KEY=VALUE`.

use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

#[cfg(feature = "remote")]
use object_store::aws::AmazonS3ConfigKey;
#[cfg(feature = "remote")]
use object_store::azure::AzureConfigKey;
#[cfg(feature = "remote")]
use object_store::client::ClientConfigKey;
#[cfg(feature = "remote")]
use object_store::gcp::GoogleConfigKey;

use super::url::{RemoteScheme, split_scheme};
use crate::process::parse_size;

/// Options whose values are checked. The others are checked by `object_store`, when a store is opened.
const CHECKED_KEYS: [(&str, ValueKind); 13] = [
    ("anonymous", ValueKind::Switch),
    ("block_size", ValueKind::Bytes),
    ("part_size", ValueKind::Bytes),
    ("path_style", ValueKind::Switch),
    ("retry_pause", ValueKind::Time),
    ("retry_timeout", ValueKind::Time),
    ("connect_timeout", ValueKind::Time),
    ("read_timeout", ValueKind::Time),
    ("timeout", ValueKind::Time),
    ("endpoint", ValueKind::Address),
    ("endpoint_url", ValueKind::Address),
    ("aws_endpoint", ValueKind::Address),
    ("aws_endpoint_url", ValueKind::Address),
];

#[derive(Clone, Copy)]
enum ValueKind {
    Switch,
    Bytes,
    Time,
    Address,
}

impl ValueKind {
    /// What is expected instead of `value`.
    fn expected(self, value: &str) -> Option<&'static str> {
        match self {
            ValueKind::Switch => switch_of(value).is_none().then_some("true or false"),
            ValueKind::Bytes => bytes_of(value).is_none().then_some("1 to 1G bytes, such as 65536, 64K or 8M"),
            ValueKind::Time => duration_of(value).is_none().then_some("a time, such as 30s or 100ms"),
            ValueKind::Address => (!is_address(value)).then_some("a URL, such as https://host:port"),
        }
    }
}

/// The URL of a server.
pub(super) fn is_address(text: &str) -> bool {
    let Some((_, RemoteScheme::Http, host)) = split_scheme(text) else { return false };
    !host.starts_with(['/', '?', '#']) && !host.is_empty() && !host.contains(char::is_whitespace)
}

/// The URL of a server without TLS.
#[cfg(feature = "remote")]
pub(super) fn is_plain_address(text: &str) -> bool {
    matches!(split_scheme(text), Some(("http://", ..)))
}

/// An option of all stores of the process, such as `region=eu-central-1`.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct StoreOption {
    pub(super) key: String,
    pub(super) value: String,
}

/// Shows the key only: the value may be a secret.
impl std::fmt::Debug for StoreOption {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}=...", self.key)
    }
}

impl FromStr for StoreOption {
    type Err = String;

    fn from_str(text: &str) -> Result<StoreOption, String> {
        let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE, such as region=eu-central-1")?;
        let mut option = StoreOption { key: key.to_ascii_lowercase(), value: value.to_string() };
        let kind = CHECKED_KEYS.iter().find(|(checked, _)| *checked == option.key).map(|(_, kind)| *kind);
        if matches!(kind, Some(ValueKind::Time)) && value.bytes().all(|byte| byte.is_ascii_digit()) {
            // `object_store` expects a unit.
            option.value.push('s');
        }
        let key = &option.key;
        let expected = match kind {
            Some(kind) => kind.expected(value),
            None if is_store_key(key) => None,
            None => {
                return Err(format!(
                    "no store has the option `{key}`; expected endpoint, region, path_style, anonymous, allow_http, \
                     connect_timeout, read_timeout, timeout, retry_timeout, retry_pause, block_size, part_size, account_name, or \
                     an option of the crate object_store, such as proxy_url"
                ));
            }
        };
        expected.map_or(Ok(option.clone()), |expected| Err(format!("{key}: expected {expected}")))
    }
}

/// Whether some store has an option of this name.
#[cfg(feature = "remote")]
fn is_store_key(key: &str) -> bool {
    let client = key.parse::<ClientConfigKey>().is_ok();
    let store = key.parse::<AmazonS3ConfigKey>().is_ok() || key.parse::<GoogleConfigKey>().is_ok();
    client || store || key.parse::<AzureConfigKey>().is_ok()
}

/// Without stores, no option is wrong.
#[cfg(not(feature = "remote"))]
fn is_store_key(_key: &str) -> bool {
    true
}

/// Maximum number of bytes that are read ahead, unless the memory of the job allows less: eight blocks ahead and the
/// beginnings of as many sources.
pub(crate) const MAX_READ_AHEAD: usize = 96 << 20;

/// Bytes of memory to read ahead.
static READ_AHEAD: AtomicUsize = AtomicUsize::new(MAX_READ_AHEAD);

/// Sets the memory in which this process reads ahead, bytes.
pub(crate) fn set_read_ahead(bytes: usize) {
    READ_AHEAD.store(bytes, Ordering::Relaxed);
}

/// Memory in which this process reads ahead, bytes. One half is for the source that is read, one for those after it.
pub(crate) fn read_ahead() -> usize {
    READ_AHEAD.load(Ordering::Relaxed)
}

/// Bytes per request of a stream.
#[cfg(feature = "remote")]
pub(super) fn block_len() -> u64 {
    const MIN_LEN: u64 = 1 << 20;
    const MAX_LEN: u64 = 4 << 20;
    bytes("block_size").unwrap_or((read_ahead() as u64 / 24).clamp(MIN_LEN, MAX_LEN))
}

static OPTIONS: OnceLock<Vec<StoreOption>> = OnceLock::new();

/// Sets the options of all stores. The first call before the first request counts.
pub(crate) fn set_options(options: &[StoreOption]) {
    // A second command in one process has the options of the first one.
    let _ = OPTIONS.set(options.to_vec());
}

/// Whether the user has set options.
pub(crate) fn has_options() -> bool {
    OPTIONS.get().is_some_and(|options| !options.is_empty())
}

#[cfg(feature = "remote")]
pub(super) fn options() -> &'static [StoreOption] {
    OPTIONS.get().map_or(&[], Vec::as_slice)
}

/// The last value of an option.
#[cfg(feature = "remote")]
pub(super) fn value(key: &str) -> Option<&'static str> {
    options().iter().rfind(|option| option.key == key).map(|option| option.value.as_str())
}

/// The value of an own option that is a switch.
#[cfg(feature = "remote")]
pub(super) fn switch(key: &str) -> Option<bool> {
    value(key).and_then(switch_of)
}

/// The value of an own option that is a time.
#[cfg(feature = "remote")]
pub(super) fn duration(key: &str) -> Option<Duration> {
    value(key).and_then(duration_of)
}

/// The value of an own option that is a number of bytes.
#[cfg(feature = "remote")]
pub(super) fn bytes(key: &str) -> Option<u64> {
    value(key).and_then(bytes_of)
}

/// Time after which a request is not repeated any more.
#[cfg(feature = "remote")]
pub(super) fn retry_timeout() -> Duration {
    const DEFAULT: Duration = Duration::from_secs(180);
    duration("retry_timeout").unwrap_or(DEFAULT)
}

/// The pause before the first repetition of a request. Later pauses are longer.
#[cfg(feature = "remote")]
pub(super) fn retry_pause() -> Duration {
    const DEFAULT: Duration = Duration::from_millis(100);
    duration("retry_pause").unwrap_or(DEFAULT)
}

/// The words are those of `object_store`.
pub(super) fn switch_of(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "y" | "on" => Some(true),
        "false" | "0" | "no" | "n" | "off" => Some(false),
        _ => None,
    }
}

/// A number of bytes, up to 1 GiB, with the units of other flags.
fn bytes_of(text: &str) -> Option<u64> {
    parse_size(text).ok().map(|bytes| bytes as u64).filter(|bytes| *bytes <= 1 << 30)
}

/// A number of seconds, or a number with the unit `ms`, `s` or `m`.
fn duration_of(text: &str) -> Option<Duration> {
    let at = text.find(|byte: char| !byte.is_ascii_digit()).unwrap_or(text.len());
    let count: u64 = text[..at].parse().ok().filter(|count| *count <= u64::from(u32::MAX))?;
    match &text[at..] {
        "ms" => Some(Duration::from_millis(count)),
        "" | "s" => Some(Duration::from_secs(count)),
        "m" => Some(Duration::from_secs(count * 60)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_checked_without_showing_their_values() {
        let parse = |text: &str| text.parse::<StoreOption>();
        for valid in ["REGION=eu", "path_style=TRUE", "retry_timeout=0", "retry_pause=5ms", "endpoint=http://h:1/a=b"] {
            assert!(parse(valid).is_ok(), "{valid}");
        }
        assert_eq!(parse("timeout=5").unwrap().value, "5s");
        assert_eq!(["1M", "8MiB", "65536", "1G"].map(bytes_of), [1 << 20, 8 << 20, 65536, 1 << 30].map(Some));
        let message = "block_size: expected 1 to 1G bytes, such as 65536, 64K or 8M";
        assert_eq!(parse("block_size=1.1G").unwrap_err(), message);
        let addresses = ["endpoint=pass", "endpoint=ftp://pass", "endpoint=http:///pass", "aws_endpoint_url=http://"];
        let others =
            ["region", "anonymous=pass", "retry_timeout=pass", "retry_pause=1h", "block_size=0", "timeout=pass"];
        for invalid in addresses.into_iter().chain(others) {
            assert!(parse(invalid).is_err_and(|error| !error.contains("pass")), "{invalid}");
        }
        assert!(!format!("{:?}", parse("token=secret")).contains("secret"));
    }
}
