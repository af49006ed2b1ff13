//! Hosts: IP literals and internationalized domain names (IDNs). No name is ever resolved.
//!
//! ```text
//! host ── ip     IP-literal: syntax (RFC 3986 section 3.2.2), text of an IPv6 address (RFC 5952)
//!      └─ idn    ToASCII and ToUnicode by UTS 46
//!         form   canonical form of any other host: escapes, case, then ToASCII; a fast path for common scripts,
//!                whose labels `punycode` converts
//!         cache  forms of recent hosts, because crawl data repeats hosts
//! ```

mod cache;
mod form;
pub(super) mod idn;
pub(super) mod ip;
mod punycode;

pub(super) use cache::HostCache;
pub(super) use form::{MAX_HOST_GROWTH, lower_case_outside_escapes};
