//! Splits a reference into its five components and an authority into its parts, and recomposes them.
//!
//! RFC 3986 appendix B (the regular expression), section 3.2 (authority) and section 5.3 (recomposition). Splitting never
//! fails: every string has components.

use super::grammar;

/// The five components; `None` is "undefined" in the RFC's words, `Some("")` is "empty".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Components {
    pub scheme: Option<String>,
    pub authority: Option<String>,
    pub path: String,
    pub query: Option<String>,
    pub fragment: Option<String>,
}

/// The parts of an authority: `[ userinfo "@" ] host [ ":" port ]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Authority {
    pub userinfo: Option<String>,
    pub host: String,
    pub port: Option<String>,
}

/// Appendix B: `^(([^:/?#]+):)?(//([^/?#]*))?([^?#]*)(\?([^#]*))?(#(.*))?`, group by group.
pub fn split(reference: &str) -> Components {
    let mut rest = reference;
    let mut components = Components::default();

    // (([^:/?#]+):)?
    let run = rest.find([':', '/', '?', '#']).unwrap_or(rest.len());
    if run > 0 && rest[run..].starts_with(':') {
        components.scheme = Some(rest[..run].to_string());
        rest = &rest[run + 1..];
    }
    // (//([^/?#]*))?
    if let Some(after) = rest.strip_prefix("//") {
        let run = after.find(['/', '?', '#']).unwrap_or(after.len());
        components.authority = Some(after[..run].to_string());
        rest = &after[run..];
    }
    // ([^?#]*)
    let run = rest.find(['?', '#']).unwrap_or(rest.len());
    components.path = rest[..run].to_string();
    rest = &rest[run..];
    // (\?([^#]*))?
    if let Some(after) = rest.strip_prefix('?') {
        let run = after.find('#').unwrap_or(after.len());
        components.query = Some(after[..run].to_string());
        rest = &after[run..];
    }
    // (#(.*))?
    components.fragment = rest.strip_prefix('#').map(str::to_string);
    components
}

/// [`split`] for a reference whose scheme may be none of the grammar (section 3.1): then the scheme is a part of the path.
pub fn split_with_valid_scheme(reference: &str) -> Components {
    let components = split(reference);
    if components.scheme.as_deref().is_none_or(grammar::is_scheme) {
        return components;
    }
    let mut components = split(&format!("/{reference}"));
    components.path.remove(0);
    components
}

/// Section 5.3, "Component Recomposition".
pub fn recompose(components: &Components) -> String {
    // result = ""
    let mut result = String::new();
    // if defined(scheme) then append scheme to result; append ":" to result;
    if let Some(scheme) = &components.scheme {
        result.push_str(scheme);
        result.push(':');
    }
    // if defined(authority) then append "//" to result; append authority to result;
    if let Some(authority) = &components.authority {
        result.push_str("//");
        result.push_str(authority);
    }
    // append path to result;
    result.push_str(&components.path);
    // if defined(query) then append "?" to result; append query to result;
    if let Some(query) = &components.query {
        result.push('?');
        result.push_str(query);
    }
    // if defined(fragment) then append "#" to result; append fragment to result;
    if let Some(fragment) = &components.fragment {
        result.push('#');
        result.push_str(fragment);
    }
    // return result;
    result
}

/// Section 3.3: "If a URI does not contain an authority component, then the path cannot begin with two slash
/// characters". Inserts `/.` before such a path; removing dot segments deletes it again.
pub fn guard_path(components: &mut Components) {
    if components.authority.is_none() && components.path.starts_with("//") {
        components.path.insert_str(0, "/.");
    }
}

/// Section 3.2. The userinfo ends at the first `@`; the port begins after the last `:` that is not followed by `]`.
pub fn split_authority(authority: &str) -> Authority {
    let (userinfo, host_and_port) = match authority.split_once('@') {
        Some((userinfo, rest)) => (Some(userinfo.to_string()), rest),
        None => (None, authority),
    };
    let after_bracket = host_and_port.rfind(']').map_or(0, |at| at + 1);
    match host_and_port[after_bracket..].rfind(':') {
        Some(at) => Authority {
            userinfo,
            host: host_and_port[..after_bracket + at].to_string(),
            port: Some(host_and_port[after_bracket + at + 1..].to_string()),
        },
        None => Authority { userinfo, host: host_and_port.to_string(), port: None },
    }
}

/// `authority = [ userinfo "@" ] host [ ":" port ]`, section 3.2.
pub fn recompose_authority(authority: &Authority) -> String {
    let mut result = String::new();
    if let Some(userinfo) = &authority.userinfo {
        result.push_str(userinfo);
        result.push('@');
    }
    result.push_str(&authority.host);
    if let Some(port) = &authority.port {
        result.push(':');
        result.push_str(port);
    }
    result
}
