//! The HTTP client of all stores, which sends no `Referer`: [`http_client`].

use std::hash::{BuildHasher, RandomState};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use object_store::ClientOptions;
use object_store::client::{ClientConfigKey as Key, HttpClient, HttpConnector, ReqwestConnector};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::tls::Certificate;
use reqwest::{ClientBuilder, NoProxy, Proxy};
use tokio::net::lookup_host;

use super::options::switch_of;

/// The field `User-Agent`, unless the option `user_agent` is set.
const USER_AGENT: &str = concat!("irikey/", env!("CARGO_PKG_VERSION"));

/// Makes a client with the options of the user.
///
/// It differs from that of [`ReqwestConnector`], which after a redirect sends the address before it to the next host, in the
/// field `Referer`: the query of an address may contain a signature. Time limits of requests are not set.
///
/// # Errors
/// An option has a wrong value.
pub(super) fn http_client(options: &ClientOptions) -> object_store::Result<HttpClient> {
    // This checks the values.
    ReqwestConnector::default().connect(&options.clone().with_timeout_disabled().with_read_timeout_disabled())?;
    let client = client_builder(options).and_then(ClientBuilder::build);
    let error = |source: reqwest::Error| object_store::Error::Generic { store: "HTTP client", source: source.into() };
    client.map(HttpClient::new).map_err(error)
}

/// Applies the options that [`ClientOptions`] can be asked for. No others are used here.
fn client_builder(options: &ClientOptions) -> reqwest::Result<ClientBuilder> {
    type Time = humantime::Duration;
    let builder = ClientBuilder::new().referer(false).user_agent(USER_AGENT).https_only(true);
    let configured = Configuration { options, builder }
        .set(Key::UserAgent, |builder, agent: String| builder.user_agent(agent))
        .set(Key::ConnectTimeout, |builder, time: Time| builder.connect_timeout(time.into()))
        .set(Key::PoolIdleTimeout, |builder, time: Time| builder.pool_idle_timeout(Duration::from(time)))
        .set(Key::PoolMaxIdlePerHost, ClientBuilder::pool_max_idle_per_host)
        .set(Key::Http2KeepAliveInterval, |builder, time: Time| builder.http2_keep_alive_interval(Duration::from(time)))
        .set(Key::Http2KeepAliveTimeout, |builder, time: Time| builder.http2_keep_alive_timeout(time.into()))
        .set(Key::Http2MaxFrameSize, |builder, len: u32| builder.http2_max_frame_size(len))
        .switch(Key::Http2KeepAliveWhileIdle, |builder| builder.http2_keep_alive_while_idle(true))
        .switch(Key::Http1Only, ClientBuilder::http1_only)
        .switch(Key::Http2Only, ClientBuilder::http2_prior_knowledge)
        .switch(Key::NoSystemCertificates, |builder| builder.tls_certs_only([]))
        .switch(Key::AllowInvalidCertificates, |builder| builder.danger_accept_invalid_certs(true))
        .switch(Key::RandomizeAddresses, |builder| builder.dns_resolver(Arc::new(ShufflingResolver)))
        .switch(Key::AllowHttp, |builder| builder.https_only(false));
    let Some(url) = options.get_config_value(&Key::ProxyUrl) else { return Ok(configured.builder) };
    let excludes = options.get_config_value(&Key::ProxyExcludes);
    let proxy = Proxy::all(url)?.no_proxy(excludes.as_deref().and_then(NoProxy::from_string));
    let certificate = options.get_config_value(&Key::ProxyCaCertificate);
    let certificate = certificate.map(|pem| Certificate::from_pem(pem.as_bytes())).transpose()?;
    Ok(configured.builder.proxy(proxy).tls_certs_merge(certificate))
}

/// A client to which options are applied.
struct Configuration<'a> {
    options: &'a ClientOptions,
    builder: ClientBuilder,
}

impl Configuration<'_> {
    /// Applies an option that has a value.
    fn set<T: FromStr>(mut self, key: Key, apply: impl FnOnce(ClientBuilder, T) -> ClientBuilder) -> Self {
        if let Some(value) = self.options.get_config_value(&key).and_then(|value| value.parse().ok()) {
            self.builder = apply(self.builder, value);
        }
        self
    }

    /// Applies an option that is on.
    fn switch(mut self, key: Key, apply: impl FnOnce(ClientBuilder) -> ClientBuilder) -> Self {
        if self.options.get_config_value(&key).as_deref().and_then(switch_of) == Some(true) {
            self.builder = apply(self.builder);
        }
        self
    }
}

/// Resolves a host to its addresses in random order, which spreads requests over the servers of a store.
struct ShufflingResolver;

impl Resolve for ShufflingResolver {
    fn resolve(&self, host: Name) -> Resolving {
        Box::pin(async move {
            let mut found: Vec<_> = lookup_host((host.as_str(), 0)).await?.collect();
            let order = RandomState::new();
            found.sort_by_cached_key(|address| order.hash_one(address));
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The options of `object_store` that are applied above or used elsewhere.
    const APPLIED: &str = "user_agent no_system_certificates default_content_type proxy_url proxy_ca_certificate proxy_excludes \
                           allow_http allow_invalid_certificates timeout connect_timeout read_timeout pool_idle_timeout \
                           pool_max_idle_per_host http2_keep_alive_interval http2_keep_alive_timeout \
                           http2_keep_alive_while_idle http2_max_frame_size http1_only http2_only randomize_addresses";

    /// Those that are never set.
    const UNUSED: [&str; 4] = ["root_certificates", "content_type_map", "default_headers", "dns_resolver"];

    #[test]
    fn new_options_of_the_crate_are_noticed() {
        let options = format!("{:#?}", ClientOptions::new());
        let fields = options.lines().filter_map(|line| line.strip_prefix("    ")?.split_once(": "));
        let names: Vec<_> = fields.map(|(name, _)| name).filter(|name| !name.starts_with(' ')).collect();
        let mut known: Vec<_> = APPLIED.split(' ').chain(UNUSED).collect();
        known.sort_unstable_by_key(|known| names.iter().position(|name| name == known));
        assert_eq!(names, known);
    }

    #[test]
    fn options_are_applied() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let described = |options: &[(Key, &str)]| {
            let set = |all: ClientOptions, (key, value): &(Key, &str)| all.with_config(*key, *value);
            let options = options.iter().fold(ClientOptions::new(), set);
            http_client(&options).map(|_| format!("{:?}", client_builder(&options).unwrap()))
        };
        let plain = described(&[]).unwrap();
        let default = [USER_AGENT, "connect_timeout: 5s", "http1_only: true"];
        assert!(default.iter().all(|part| plain.contains(part)) && !plain.contains("referer"), "{plain}");
        assert!(!plain.contains(" timeout") && !plain.contains("invalid_certs"), "{plain}");
        let chosen = described(&[
            (Key::UserAgent, "agent/1"),
            (Key::ConnectTimeout, "1m 7s"),
            (Key::Http1Only, "No"),
            (Key::Http2Only, "y"),
            (Key::AllowInvalidCertificates, "ON"),
            (Key::ProxyUrl, "http://proxy.invalid:1"),
        ]);
        let chosen = chosen.unwrap();
        for part in ["agent/1", "connect_timeout: 67s", "http2_prior_knowledge", "invalid_certs", "proxy.invalid:1"] {
            assert!(chosen.contains(part), "{part}: {chosen}");
        }
        for (key, value) in [
            (Key::UserAgent, "\n"),
            (Key::Http1Only, "maybe"),
            (Key::PoolIdleTimeout, "x"),
            (Key::Http2MaxFrameSize, "-1"),
            (Key::ProxyUrl, "\0"),
        ] {
            assert!(described(&[(key, value)]).is_err(), "{key:?}");
        }
    }
}
