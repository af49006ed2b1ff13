//! `Link` header fields (RFC 8288): [`LinkValues`] reads one value after the other.

/// One link of a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LinkValue<'a> {
    /// The target between `<` and `>`, without white space around it.
    pub(crate) target: &'a [u8],
    /// The first `rel`; otherwise the first `rev` after `rev:`, because it states the relation in the other direction.
    pub(crate) rel: Vec<u8>,
    /// The first `title`.
    pub(crate) title: Vec<u8>,
    /// The first `anchor`: the link is one from there, and not from the document.
    pub(crate) anchor: Option<Vec<u8>>,
}

/// The links of a field value, or of several that are joined by commas. What is not a link is skipped up to the next comma.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkValues<'a> {
    text: &'a [u8],
    /// Where the search for the next link begins.
    pub(crate) at: usize,
}

impl<'a> LinkValues<'a> {
    /// The links from byte `at` of a value on.
    pub(crate) fn from(text: &'a [u8], at: usize) -> LinkValues<'a> {
        LinkValues { text, at }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Passes the bytes for which `is_passed` is true, and returns them.
    fn pass(&mut self, is_passed: impl Fn(u8) -> bool) -> &'a [u8] {
        let rest = &self.text[self.at.min(self.text.len())..];
        let len = rest.iter().position(|byte| !is_passed(*byte)).unwrap_or(rest.len());
        self.at += len;
        &rest[..len]
    }

    fn skip_spaces(&mut self) {
        self.pass(|byte| byte.is_ascii_whitespace());
    }

    /// Reads the value of a parameter: a quoted string without its quotes and backslashes, or a token.
    fn value(&mut self) -> Vec<u8> {
        if self.peek() != Some(b'"') {
            return self.pass(|byte| !matches!(byte, b';' | b',') && !byte.is_ascii_whitespace()).to_vec();
        }
        self.at += 1;
        let mut value = Vec::new();
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'"' => break,
                b'\\' => {
                    value.extend(self.peek());
                    self.at += 1;
                }
                byte => value.push(byte),
            }
        }
        value
    }

    /// Reads the parameters of a link, up to the comma that ends it.
    fn parameters(&mut self, link: &mut LinkValue<'a>) {
        let (mut rel, mut rev, mut title) = (None, None, None);
        loop {
            self.skip_spaces();
            match self.peek() {
                None | Some(b',') => break,
                Some(b';') => self.at += 1,
                Some(_) => {}
            }
            self.skip_spaces();
            let name = self.pass(|byte| !matches!(byte, b'=' | b';' | b',') && !byte.is_ascii_whitespace());
            self.skip_spaces();
            if self.peek() != Some(b'=') {
                continue;
            }
            self.at += 1;
            self.skip_spaces();
            let value = self.value();
            let slot = match name.to_ascii_lowercase().as_slice() {
                b"rel" => &mut rel,
                b"rev" => &mut rev,
                b"title" => &mut title,
                b"anchor" => &mut link.anchor,
                _ => continue,
            };
            slot.get_or_insert(value);
        }
        let rev = rev.map(|rev| [b"rev:", &rev[..]].concat());
        (link.rel, link.title) = (rel.or(rev).unwrap_or_default(), title.unwrap_or_default());
    }
}

impl<'a> Iterator for LinkValues<'a> {
    type Item = LinkValue<'a>;

    fn next(&mut self) -> Option<LinkValue<'a>> {
        loop {
            self.pass(|byte| byte == b',' || byte.is_ascii_whitespace());
            match self.peek()? {
                b'<' => {}
                _ => {
                    self.pass(|byte| byte != b',');
                    continue;
                }
            }
            self.at += 1;
            let target = self.pass(|byte| byte != b'>');
            // A target without an end is not a target.
            self.peek()?;
            self.at += 1;
            let mut link = LinkValue { target: target.trim_ascii(), ..LinkValue::default() };
            self.parameters(&mut link);
            return Some(link);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let show = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let link = |link: LinkValue<'_>| {
            let anchor = link.anchor.map_or(String::new(), |anchor| format!(" from {}", show(&anchor)));
            format!("{} [{}] {:?}{anchor}", show(link.target), show(&link.rel), show(&link.title))
        };
        LinkValues::from(text.as_bytes(), 0).map(link).collect()
    }

    /// The examples of RFC 8288 section 3.5, and fields as servers send them.
    #[test]
    fn links_of_fields() {
        let cases: [(&str, &[&str]); 14] = [
            (
                "<http://example.com/TheBook/chapter2>; rel=\"previous\"; title=\"previous chapter\"",
                &["http://example.com/TheBook/chapter2 [previous] \"previous chapter\""],
            ),
            ("</>; rel=\"http://example.net/foo\"", &["/ [http://example.net/foo] \"\""]),
            ("</terms>; rel=\"copyright\"; anchor=\"#foo\"", &["/terms [copyright] \"\" from #foo"]),
            (
                "</a>; rel=\"previous\"; title*=UTF-8'de'letztes%20Kapitel, </b>; rel=\"next\"",
                &["/a [previous] \"\"", "/b [next] \"\""],
            ),
            ("<a,b;c>;rel=x,<d>", &["a,b;c [x] \"\"", "d [] \"\""]),
            ("<a>; REL = \"x  y\" ; rel=z", &["a [x  y] \"\""]),
            ("<a>; title=\"x, \\\"y\\\" <b>; rel=no\"; rev=made", &["a [rev:made] \"x, \\\"y\\\" <b>; rel=no\""]),
            ("<a>;;crossorigin;rel=preload;,, <b> ", &["a [preload] \"\"", "b [] \"\""]),
            ("<a> rel=next", &["a [next] \"\""]),
            ("no, <a>, b>; rel=c, <d", &["a [] \"\""]),
            ("<>; rel=self", &[" [self] \"\""]),
            ("<%C3%A9?a=%2C>; rel=a", &["%C3%A9?a=%2C [a] \"\""]),
            ("<a>; title=\"open", &["a [] \"open\""]),
            ("", &[]),
        ];
        for (text, expected) in cases {
            assert_eq!(shown(text), expected, "{text}");
        }
    }
}
