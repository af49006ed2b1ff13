//! JSON Feed 1.0 and 1.1 (jsonfeed.org): members whose value is a reference.
//!
//! The text is read token by token. So the references before the end of a truncated feed are found, and nothing recurses.

use std::borrow::Cow;
use std::ops::Range;

use super::document::DefectKind;
use super::feeds::IDENTIFIER;
use super::links::{LinkAttribute, LinkSink, ParserStop};
use crate::iri::find_scheme;
use crate::record::json::{find_lone_surrogate, quoted, unescape, unescaped};

/// Maximum nesting depth of objects and arrays.
const MAX_DEPTH: usize = 64;

/// The member that holds the object, or the array of objects; its member with the reference; what that is for the feed.
const REFERENCES: [(&str, &str, &str); 16] = [
    ("", "home_page_url", "home"),
    ("", "feed_url", "self"),
    ("", "next_url", "next"),
    ("", "icon", "icon"),
    ("", "favicon", "icon"),
    ("hubs", "url", "hub"),
    ("items", "url", ""),
    ("items", "id", IDENTIFIER),
    ("items", "external_url", "external"),
    ("items", "image", "image"),
    ("items", "banner_image", "image"),
    ("attachments", "url", "enclosure"),
    ("authors", "url", "author"),
    ("authors", "avatar", "icon"),
    // Version 1.0 has one author.
    ("author", "url", "author"),
    ("author", "avatar", "icon"),
];

/// Gives the references of a feed to `sink`.
pub(super) fn read(text: &[u8], sink: &mut LinkSink<'_>) {
    let mut reader = FeedReader { text, at: 0, open: Vec::new(), member: None, unescaped: Vec::new(), sink };
    if let Err((kind, detail)) = reader.read_values() {
        let position = reader.at;
        sink.stop(ParserStop { kind, position, detail: detail.to_string() });
    }
}

/// An object or array that has not ended.
#[derive(Clone, Copy)]
struct Container {
    is_object: bool,
    /// The member that holds it, or the array that it is in, if one of its members may be a reference. `None` for others.
    name: Option<&'static str>,
}

struct FeedReader<'a, 's, 'sink> {
    text: &'a [u8],
    at: usize,
    open: Vec<Container>,
    /// The name of the member whose value comes next.
    member: Option<Cow<'a, [u8]>>,
    unescaped: Vec<u8>,
    sink: &'s mut LinkSink<'sink>,
}

type Stop = (DefectKind, &'static str);

const ENDS_EARLY: Stop = (DefectKind::Truncated, "the feed ends within an object, an array or a string");
const WRONG_BRACKET: Stop = (DefectKind::IllFormed, "a bracket here does not close what is open");
const NO_VALUE: Stop = (DefectKind::IllFormed, "this is not JSON: a value or the name of a member was expected");
const TOO_DEEP: Stop =
    (DefectKind::IllFormed, "objects and arrays are nested more than 64 levels deep; the rest of the feed is not read");

impl<'a> FeedReader<'a, '_, '_> {
    /// Reads values until the object of the feed ends.
    fn read_values(&mut self) -> Result<(), Stop> {
        while !self.sink.is_done() {
            let Some(byte) = self.text.get(self.at) else { return Err(ENDS_EARLY) };
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' | b',' | b':' => self.at += 1,
                b'"' => self.read_string()?,
                b'{' | b'[' => self.begin(*byte == b'{')?,
                b'}' | b']' => {
                    self.end(*byte == b'}')?;
                    if self.open.is_empty() {
                        break;
                    }
                }
                b'-' | b'0'..=b'9' | b'a'..=b'z' if !self.open.is_empty() => self.skip_word(),
                _ => return Err(NO_VALUE),
            }
        }
        Ok(())
    }

    /// Reads a string: the name of a member, or a value.
    fn read_string(&mut self) -> Result<(), Stop> {
        let (string, rest) = quoted(&self.text[self.at..]).ok_or(ENDS_EARLY)?;
        let end = self.text.len() - rest.len() - 1;
        self.at = end + 1;
        let container = *self.open.last().ok_or(NO_VALUE)?;
        if container.is_object && self.member.is_none() {
            self.member = Some(unescaped(string));
        } else if let Some(member) = self.member.take()
            && let Some((_, element, rel)) = reference(container.name, &member)
        {
            self.push(element, rel, end - string.len()..end);
        }
        Ok(())
    }

    fn push(&mut self, element: &'static str, rel: &'static str, span: Range<usize>) {
        let string = &self.text[span.clone()];
        self.unescaped.clear();
        unescape(string, &mut self.unescaped);
        let value = self.unescaped.trim_ascii();
        // As in other feeds, an identifier without a scheme is not a reference, and neither is nothing.
        if value.is_empty() || rel == IDENTIFIER && find_scheme(value).is_none() {
            return;
        }
        let bad_reference = find_lone_surrogate(string).map(|at| span.start + at);
        self.sink.push(&LinkAttribute { bad_reference, ..LinkAttribute::content(element, rel, value, span) });
    }

    fn begin(&mut self, is_object: bool) -> Result<(), Stop> {
        if self.open.len() == MAX_DEPTH {
            return Err(TOO_DEEP);
        }
        let name = match (self.open.last(), self.member.take()) {
            (None, _) => is_object.then_some(""),
            (Some(_), Some(member)) => holder(&member),
            (Some(array), None) => array.name.filter(|_| !array.is_object),
        };
        self.open.push(Container { is_object, name });
        self.at += 1;
        Ok(())
    }

    fn end(&mut self, is_object: bool) -> Result<(), Stop> {
        let ended = self.open.pop().ok_or(WRONG_BRACKET)?;
        if ended.is_object != is_object {
            return Err(WRONG_BRACKET);
        }
        self.member = None;
        self.at += 1;
        Ok(())
    }

    /// Skips a number, `true`, `false` or `null`.
    fn skip_word(&mut self) {
        let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
        self.at += self.text[self.at..].iter().take_while(is_part).count();
        self.member = None;
    }
}

/// The reference that the member of an object is.
fn reference(holder: Option<&str>, member: &[u8]) -> Option<(&'static str, &'static str, &'static str)> {
    let holder = holder?;
    REFERENCES.into_iter().find(|(name, element, _)| *name == holder && element.as_bytes() == member)
}

/// The name of a member that holds objects with references.
fn holder(member: &[u8]) -> Option<&'static str> {
    REFERENCES.into_iter().map(|(name, ..)| name).find(|name| !name.is_empty() && name.as_bytes() == member)
}
