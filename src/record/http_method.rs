//! Methods of HTTP requests, as the field `method` has them.

/// The method that `text` names, in upper case. `None` for GET and HEAD, the methods of most requests, and for a text that has
/// other bytes than letters, digits and `-`.
pub(super) fn carried_method(text: &[u8]) -> Option<Vec<u8>> {
    let is_method = !text.is_empty() && text.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-');
    let method = is_method.then(|| text.to_ascii_uppercase())?;
    Some(method).filter(|method| !matches!(&method[..], b"GET" | b"HEAD"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_in_upper_case_and_those_of_usual_requests_are_left_out() {
        for (text, method) in [("post", "POST"), ("M-SEARCH", "M-SEARCH"), ("DELETE", "DELETE")] {
            assert_eq!(carried_method(text.as_bytes()), Some(method.into()));
        }
        for text in ["", "GET", "head", "\\x16\\x03", "POST ", "a/b"] {
            assert_eq!(carried_method(text.as_bytes()), None, "{text}");
        }
    }
}
