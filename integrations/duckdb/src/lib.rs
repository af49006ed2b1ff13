//! Canonical URIs and 128-bit keys as scalar functions of DuckDB: an extension that any DuckDB of the same platform loads,
//! without Python. It uses the C extension API, so that it need not be built again for each version of DuckDB.
//!
//! | function | result |
//! |---|---|
//! | `irikey_uri(url)` | canonical URI, VARCHAR; null if the URL is null or cannot be parsed |
//! | `irikey_key(url)` | key, BLOB of 16 bytes; null only if the URL is null |
//! | `irikey_surt(url)` | SURT key of webarchive-commons, VARCHAR; null if the URL is null or has no such key |
//! | `irikey_uri_from(url, base)`, `irikey_key_from(url, base)` | the same for references relative to `base` |
//!
//! Names and values are those of the Python package. Arguments are VARCHAR, or BLOB for bytes that may not be UTF-8.

mod function;

quack_rs::entry_point_v2!(irikey_init_c_api, |connection| function::register(connection));
