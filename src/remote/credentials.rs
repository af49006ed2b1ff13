//! Opens stores with the options, credentials and profiles of the user: [`open`].

use std::collections::HashMap;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::{env, fs};

use data_encoding::BASE64;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, AwsCredential};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::client::ClientConfigKey;
use object_store::gcp::{GcpCredential, GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig, StaticCredentialProvider};

use super::error::RemoteError;
use super::failure::Failure;
use super::options::{
    StoreOption, is_address, is_plain_address, options, retry_pause, retry_timeout, switch, switch_of, value,
};
use super::service::{Connector, RequestHeader};
use super::store::{PagedStore, RemoteStore, StorePurpose};
use super::url::{RemoteScheme, RemoteUrl};
use crate::iri::class::REG_NAME;
use crate::iri::decode_escapes;

/// Opens the store of `url`. No request is made.
pub(super) fn open(url: &RemoteUrl, purpose: StorePurpose, connector: &Connector) -> Result<RemoteStore, RemoteError> {
    let retry = retry_config(purpose);
    let is_http = url.scheme == RemoteScheme::Http;
    if is_http && let Some(c) = not_in_host(url) {
        return Err(RemoteError::new(format!("{c:?} is not allowed in a host"), "check the address"));
    }
    let opened = match url.scheme {
        RemoteScheme::Http => open_http(url, retry, connector),
        _ if url.bucket.is_empty() => return Err(RemoteError::new("no bucket is named", "write s3://BUCKET/KEY")),
        _ if url.bucket.contains('@') => {
            let found = "the name contains credentials";
            return Err(RemoteError::new(found, "remove them; give them by variables, such as AWS_ACCESS_KEY_ID"));
        }
        RemoteScheme::S3 => open_s3(url, retry, connector),
        RemoteScheme::Google => open_google(url, retry, connector),
        RemoteScheme::Azure => open_azure(url, retry, connector),
    };
    opened.map_err(|error| {
        let cause = Failure::of(&error).cause;
        match is_http && error.to_string().contains("Unable parse source url") {
            true => RemoteError::new(format!("the address is not valid: {cause}"), "check it"),
            false => RemoteError::of_options(&without_value(&cause, options())),
        }
    })
}

/// The cause without the value of the option that it is about, which may be a secret, and with the name of this option.
fn without_value(cause: &str, options: &[StoreOption]) -> String {
    let named = options.iter().rev().find_map(|StoreOption { key, value }| {
        let spellings = [format!("\"{value}\""), format!(": {value}.")];
        let shown = spellings.into_iter().find(|spelling| cause.contains(spelling))?;
        Some(format!("{key}: {}", cause.replace(&shown, &shown.replace(value, "..."))))
    });
    named.unwrap_or_else(|| cause.to_string())
}

/// The first character that the host and port of no address contain. The client accepts some of them here, and panics later.
fn not_in_host(url: &RemoteUrl) -> Option<char> {
    let host = url.bucket.rsplit('@').next()?;
    let is_allowed = |byte: u8| !byte.is_ascii() || REG_NAME.contains(byte) || b"%:[]".contains(&byte);
    host.bytes().find(|byte| !is_allowed(*byte)).map(char::from)
}

/// Repetitions of one request. One that writes is repeated until [`retry_timeout`], because much work is lost otherwise. One
/// that reads is repeated for some seconds, so that a wrong name is reported soon; the caller repeats it on if the object was
/// found.
fn retry_config(purpose: StorePurpose) -> RetryConfig {
    let retry_timeout = retry_timeout();
    let max_retries = match purpose {
        _ if retry_timeout.is_zero() => 0,
        StorePurpose::Read => 5,
        StorePurpose::Write => usize::MAX,
    };
    let backoff = BackoffConfig { init_backoff: retry_pause(), ..BackoffConfig::default() };
    RetryConfig { backoff, max_retries, retry_timeout }
}

/// The options of the user that clients have.
fn client_settings() -> Vec<(ClientConfigKey, String)> {
    let chosen = options().iter().filter_map(|option| Some((option.key.parse().ok()?, option.value.clone())));
    // An endpoint without TLS was chosen by the user.
    let is_plain = value("endpoint").is_some_and(is_plain_address);
    let allow_http = is_plain.then(|| (ClientConfigKey::AllowHttp, "true".to_string()));
    allow_http.into_iter().chain(chosen).collect()
}

/// Refuses an address without TLS if the user forbids such addresses: by an option, or by a variable of the store, whose names
/// begin with `prefix`.
fn check_plain(address: Option<&str>, prefix: &str) -> object_store::Result<()> {
    const KEY: &str = "allow_http";
    let own_key = format!("{prefix}{KEY}");
    let chosen = options().iter().rev().find(|option| option.key == KEY || option.key == own_key);
    let variable = || env::var(own_key.to_ascii_uppercase()).ok().filter(|_| !prefix.is_empty());
    let value = chosen.map(|option| option.value.clone()).or_else(variable);
    let is_forbidden = value.as_deref().and_then(switch_of) == Some(false);
    if address.is_some_and(is_plain_address) && is_forbidden {
        let source = "allow_http forbids an address without TLS".into();
        return Err(object_store::Error::Generic { store: "HTTP", source });
    }
    Ok(())
}

/// The settings of a store: those of its client, and then the options of the user that the store has.
fn store_settings<K: FromStr>(client_key: fn(ClientConfigKey) -> K) -> impl Iterator<Item = (K, String)> {
    let chosen = options().iter().filter_map(|option| Some((option.key.parse().ok()?, option.value.clone())));
    client_settings().into_iter().map(move |(key, value)| (client_key(key), value)).chain(chosen)
}

/// The store of `url`, opened.
fn opened(store: impl ObjectStore + PagedStore, url: &RemoteUrl, is_anonymous: bool) -> RemoteStore {
    let store = Arc::new(store);
    RemoteStore { pages: Some(store.clone()), store, scheme: url.scheme, is_anonymous }
}

fn has_environment(names: &[&str]) -> bool {
    names.iter().any(|name| env::var_os(name).is_some_and(|value| !value.is_empty()))
}

fn has_option(names: &[&str]) -> bool {
    options().iter().any(|StoreOption { key, .. }| names.contains(&key.as_str()))
}

fn open_s3(url: &RemoteUrl, retry: RetryConfig, connector: &Connector) -> object_store::Result<RemoteStore> {
    let mut builder = s3_builder();
    if let Some(is_path_style) = switch("path_style") {
        builder = builder.with_virtual_hosted_style_request(!is_path_style);
    }
    let roles =
        ["AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"];
    let has_key = builder.get_config_value(&AmazonS3ConfigKey::AccessKeyId).is_some();
    let has_choice = has_option(&["skip_signature", "aws_skip_signature"]);
    let is_anonymous = switch("anonymous").unwrap_or(!has_key && !has_choice && !has_environment(&roles));
    if is_anonymous {
        builder = builder.with_skip_signature(true);
    }
    // An endpoint without TLS was chosen by the user.
    let endpoint = [AmazonS3ConfigKey::S3Endpoint, AmazonS3ConfigKey::Endpoint];
    let endpoint = endpoint.iter().find_map(|key| builder.get_config_value(key));
    if let Some(endpoint) = &endpoint
        && !is_address(endpoint)
    {
        // The crate would panic.
        return Err(object_store::Error::Generic {
            store: "S3",
            source: "the endpoint is not the URL of a server".into(),
        });
    }
    check_plain(endpoint.as_deref(), "aws_")?;
    if endpoint.as_deref().is_some_and(is_plain_address) {
        builder = builder.with_allow_http(true);
    }
    let builder = builder.with_bucket_name(&url.bucket).with_retry(retry);
    Ok(opened(builder.with_http_connector(connector.clone()).build()?, url, is_anonymous))
}

/// The settings of the options; otherwise those of the environment; otherwise those of the profile.
fn s3_builder() -> AmazonS3Builder {
    let environment = AmazonS3Builder::from_env();
    // Not all stores with the interface of S3 delete several objects by one request.
    let mut builder = environment.clone().with_config(AmazonS3ConfigKey::DisableBulkDelete, "true");
    for (key, value) in store_settings(AmazonS3ConfigKey::Client) {
        if key == AmazonS3ConfigKey::Endpoint {
            // Otherwise AWS_ENDPOINT_URL_S3 would take precedence.
            builder = builder.with_config(AmazonS3ConfigKey::S3Endpoint, &value);
        }
        builder = builder.with_config(key, value);
    }
    with_profile(builder, &environment, aws_profile())
}

/// Adds the settings of a profile that neither the options nor the environment have. The session token is that of the key
/// pair: with another one, requests fail, and a server learns a token that was issued for another server.
fn with_profile(
    mut builder: AmazonS3Builder,
    environment: &AmazonS3Builder,
    mut profile: HashMap<String, String>,
) -> AmazonS3Builder {
    use AmazonS3ConfigKey::{AccessKeyId, Endpoint, Region, S3Endpoint, SecretAccessKey, Token};
    const TOKEN_OPTIONS: [&str; 4] = ["aws_session_token", "aws_token", "session_token", "token"];
    let places = [("region", Region, &[Region][..]), ("endpoint_url", Endpoint, &[Endpoint, S3Endpoint])];
    for (name, key, chosen) in places {
        if chosen.iter().all(|key| builder.get_config_value(key).is_none())
            && let Some(value) = profile.remove(name)
        {
            builder = builder.with_config(key, value);
        }
    }
    let mut token = builder.get_config_value(&Token);
    if builder.get_config_value(&AccessKeyId).is_none() {
        token = profile.remove("aws_session_token");
        for (name, key) in [("aws_access_key_id", AccessKeyId), ("aws_secret_access_key", SecretAccessKey)] {
            builder = profile.remove(name).into_iter().fold(builder, |builder, value| builder.with_config(key, value));
        }
    } else if builder.get_config_value(&SecretAccessKey) != environment.get_config_value(&SecretAccessKey)
        && !has_option(&TOKEN_OPTIONS)
    {
        // The token is that of the key pair in the environment, and the options have another one.
        token = None;
    }
    match builder.get_config_value(&AccessKeyId).zip(builder.get_config_value(&SecretAccessKey)) {
        Some((key_id, secret_key)) => {
            let credential = AwsCredential { key_id, secret_key, token };
            builder.with_credentials(Arc::new(StaticCredentialProvider::new(credential)))
        }
        // `object_store` reports a key without its secret.
        None => builder,
    }
}

/// The settings of the profile in the files of the AWS command: that of AWS_PROFILE, or `default`.
fn aws_profile() -> HashMap<String, String> {
    let home = env::var_os("HOME").or_else(|| env::var_os("USERPROFILE")).map(PathBuf::from).unwrap_or_default();
    let file =
        |variable: &str, name: &str| env::var_os(variable).map_or_else(|| home.join(".aws").join(name), PathBuf::from);
    let profile = env::var("AWS_PROFILE").unwrap_or_else(|_| "default".to_string());
    let read = |path: PathBuf| fs::read_to_string(path).unwrap_or_default();
    let mut settings = profile_settings(&read(file("AWS_CONFIG_FILE", "config")), &profile);
    settings.extend(profile_settings(&read(file("AWS_SHARED_CREDENTIALS_FILE", "credentials")), &profile));
    settings
}

/// The settings in the section `[profile]` or `[profile NAME]` of a file of the AWS command.
fn profile_settings(text: &str, profile: &str) -> HashMap<String, String> {
    let mut settings = HashMap::new();
    let mut is_inside = false;
    for line in text.lines() {
        let line_end = line.trim();
        if let Some(section) = line_end.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let section = section.trim();
            is_inside = section.strip_prefix("profile ").map_or(section, str::trim) == profile;
        } else if is_inside && !line.starts_with([' ', '\t', '#', ';']) {
            let pair = line.split_once('=').map(|(name, value)| (name.trim().to_string(), value.trim().to_string()));
            settings.extend(pair);
        }
    }
    settings
}

fn open_google(url: &RemoteUrl, retry: RetryConfig, connector: &Connector) -> object_store::Result<RemoteStore> {
    let mut builder = GoogleCloudStorageBuilder::from_env();
    for (key, value) in store_settings(GoogleConfigKey::Client) {
        builder = builder.with_config(key, value);
    }
    if let Some(endpoint) = value("endpoint") {
        check_plain(Some(endpoint), "")?;
        builder = builder.with_base_url(endpoint);
    }
    let keys =
        [GoogleConfigKey::ServiceAccount, GoogleConfigKey::ServiceAccountKey, GoogleConfigKey::ApplicationCredentials];
    let has_key = keys.iter().any(|key| builder.get_config_value(key).is_some());
    let default = if cfg!(windows) { "APPDATA" } else { "HOME" };
    let file = if cfg!(windows) { "gcloud" } else { ".config/gcloud" };
    let path = PathBuf::from(env::var_os(default).unwrap_or_default()).join(file);
    let has_file = path.join("application_default_credentials.json").is_file();
    let has_choice = has_option(&["skip_signature", "google_skip_signature"]);
    let is_anonymous = switch("anonymous").unwrap_or(!has_key && !has_file && !has_choice);
    if is_anonymous {
        // Requests that write ask for credentials even so, and would look for a metadata server for minutes.
        let no_token = GcpCredential { bearer: String::new() };
        let credentials = Arc::new(StaticCredentialProvider::new(no_token));
        builder = builder.with_skip_signature(true).with_credentials(credentials);
    }
    // Otherwise the server decompresses objects that are stored with `Content-Encoding: gzip`, and sends no ranges of them.
    let gzip = RequestHeader { name: "accept-encoding", value: "gzip".to_string(), is_of_ranges: true };
    let connector = connector.with_headers(vec![gzip]);
    let builder = builder.with_bucket_name(&url.bucket).with_retry(retry);
    Ok(opened(builder.with_http_connector(connector).build()?, url, is_anonymous))
}

fn open_azure(url: &RemoteUrl, retry: RetryConfig, connector: &Connector) -> object_store::Result<RemoteStore> {
    let mut builder = MicrosoftAzureBuilder::from_env();
    for (key, value) in store_settings(AzureConfigKey::Client) {
        builder = builder.with_config(key, value);
    }
    // An endpoint without TLS was chosen by the user.
    let endpoint = builder.get_config_value(&AzureConfigKey::Endpoint);
    check_plain(endpoint.as_deref(), "azure_")?;
    if endpoint.as_deref().is_some_and(is_plain_address) {
        builder = builder.with_allow_http(true);
    }
    let keys = [AzureConfigKey::AccessKey, AzureConfigKey::SasKey, AzureConfigKey::Token, AzureConfigKey::ClientId];
    let has_key = keys.iter().any(|key| builder.get_config_value(key).is_some());
    let has_choice = has_option(&["skip_signature", "azure_skip_signature"]);
    // The emulator has a key that everybody knows.
    let is_emulator = builder.get_config_value(&AzureConfigKey::UseEmulator).is_some_and(|value| value == "true");
    let is_anonymous = switch("anonymous").unwrap_or(!has_key && !has_choice && !is_emulator);
    if is_anonymous {
        builder = builder.with_skip_signature(true);
    }
    let builder = builder.with_container_name(&url.bucket).with_retry(retry);
    Ok(opened(builder.with_http_connector(connector.clone()).build()?, url, is_anonymous))
}

/// A store whose only object is the URL itself, because keys cannot express every path and no query.
fn open_http(url: &RemoteUrl, retry: RetryConfig, connector: &Connector) -> object_store::Result<RemoteStore> {
    let (text, authorization) = split_authorization(url);
    check_plain(Some(&text), "")?;
    let mut client = ClientOptions::new().with_allow_http(is_plain_address(&text));
    for (key, value) in client_settings() {
        client = client.with_config(key, value);
    }
    let is_anonymous = authorization.is_none();
    let header = |name, value| RequestHeader { name, value, is_of_ranges: false };
    // Without the first, a server may send the file encoded in any way (RFC 9110 section 12.5.3).
    let mut headers = vec![header("accept-encoding", "identity".to_string())];
    headers.extend(authorization.map(|value| header("authorization", value)));
    let connector = connector.with_headers(headers);
    let builder = HttpBuilder::new().with_url(text).with_client_options(client).with_retry(retry);
    let store = Arc::new(builder.with_http_connector(connector).build()?);
    Ok(RemoteStore { store, pages: None, scheme: url.scheme, is_anonymous })
}

/// The URL without user and password, and the header that they stand for.
fn split_authorization(url: &RemoteUrl) -> (String, Option<String>) {
    let start = url.text.find("://").map_or(0, |at| at + 3);
    let Some((user, host)) = url.bucket.rsplit_once('@') else { return (url.text.clone(), None) };
    let text = format!("{}{host}{}", &url.text[..start], &url.text[start + url.bucket.len()..]);
    let (name, password) = user.split_once(':').unwrap_or((user, ""));
    let pair = [&decode_escapes(name.as_bytes())[..], b":", &decode_escapes(password.as_bytes())].concat();
    (text, Some(format!("Basic {}", BASE64.encode(&pair))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_name_the_option_and_not_its_value() {
        let options: Vec<StoreOption> = ["skip_signature=secret", "region=", "server_side_encryption=other"]
            .map(|text| text.parse().unwrap())
            .into();
        let cause = |text: &str| without_value(text, &options);
        assert_eq!(
            cause("failed to parse \"secret\" as boolean"),
            "skip_signature: failed to parse \"...\" as boolean"
        );
        let encryption = "server_side_encryption: Invalid encryption type: .... Valid values are \"sse-c\".";
        assert_eq!(cause("Invalid encryption type: other. Valid values are \"sse-c\"."), encryption);
        assert_eq!(cause("failed to parse \"t\" as boolean"), "failed to parse \"t\" as boolean");
    }
}
