//! Media types as servers name them.

/// A media type without its parameters, which white space alone may separate from it.
pub(super) fn without_parameters(media_type: &[u8]) -> &[u8] {
    let is_end = |byte: &u8| *byte == b';' || byte.is_ascii_whitespace();
    media_type.trim_ascii_start().split(is_end).next().unwrap_or_default()
}

/// Whether a content of this type is an HTTP message (RFC 9112 section 10), which has a media type of its own.
pub(super) fn is_http(media_type: &[u8]) -> bool {
    let name = without_parameters(media_type);
    [&b"application/http"[..], b"message/http"].iter().any(|http| name.eq_ignore_ascii_case(http))
}

/// The `charset` parameter of a media type, without quotes; empty without one.
pub(crate) fn charset(media_type: &[u8]) -> &[u8] {
    let mut parts = media_type.split(|&byte| byte == b';');
    let words = parts.next().unwrap_or_default().trim_ascii().split(u8::is_ascii_whitespace).skip(1);
    for parameter in parts.chain(words) {
        let equals = parameter.iter().position(|&byte| byte == b'=').unwrap_or(0);
        if let Some((name, value)) = parameter.split_at_checked(equals)
            && name.trim_ascii().eq_ignore_ascii_case(b"charset")
        {
            let value = value[1..].trim_ascii();
            let quoted = value.strip_prefix(b"\"");
            return quoted.map_or(value, |rest| rest.split(|&byte| byte == b'"').next().unwrap_or_default());
        }
    }
    b""
}
