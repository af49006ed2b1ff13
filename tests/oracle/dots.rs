//! Removes the segments `.` and `..` from a path, as the steps of RFC 3986 section 5.2.4 say. The input buffer and the
//! output buffer are strings. Nothing is decoded: `%2E` is not a dot here.

/// Section 5.2.4, steps 1, 2A-2E and 3.
pub fn remove_dot_segments(path: &str) -> String {
    // 1. The input buffer is initialized with the now-appended path components and the output buffer is initialized
    //    to the empty string.
    let mut input = path.to_string();
    let mut output = String::new();
    // 2. While the input buffer is not empty, loop as follows:
    while !input.is_empty() {
        if input.starts_with("../") || input.starts_with("./") {
            // A. If the input buffer begins with a prefix of "../" or "./", then remove that prefix from the input
            //    buffer; otherwise,
            let prefix = if input.starts_with("../") { "../" } else { "./" };
            input = input[prefix.len()..].to_string();
        } else if input.starts_with("/./") || input == "/." {
            // B. if the input buffer begins with a prefix of "/./" or "/.", where "." is a complete path segment,
            //    then replace that prefix with "/" in the input buffer; otherwise,
            let prefix = if input == "/." { "/." } else { "/./" };
            input = format!("/{}", &input[prefix.len()..]);
        } else if input.starts_with("/../") || input == "/.." {
            // C. if the input buffer begins with a prefix of "/../" or "/..", where ".." is a complete path segment,
            //    then replace that prefix with "/" in the input buffer and remove the last segment and its preceding
            //    "/" (if any) from the output buffer; otherwise,
            let prefix = if input == "/.." { "/.." } else { "/../" };
            input = format!("/{}", &input[prefix.len()..]);
            output.truncate(output.rfind('/').unwrap_or(0));
        } else if input == "." || input == ".." {
            // D. if the input buffer consists only of "." or "..", then remove that from the input buffer; otherwise,
            input.clear();
        } else {
            // E. move the first path segment in the input buffer to the end of the output buffer, including the
            //    initial "/" character (if any) and any subsequent characters up to, but not including, the next "/"
            //    character or the end of the input buffer.
            let first = usize::from(input.starts_with('/'));
            let end = input[first..].find('/').map_or(input.len(), |at| first + at);
            output.push_str(&input[..end]);
            input = input[end..].to_string();
        }
    }
    // 3. Finally, the output buffer is returned as the result of remove_dot_segments.
    output
}
