//! HTML in, the attributes that hold references out. Tags are found by the HTML Standard's tokenizer; there is no tree,
//! so that a tag counts wherever it stands, in a template, in foreign content, in the wrong table. Scripting is off:
//! what `noscript` holds counts, what `script`, `style`, `title` and comments hold does not.
//!
//! A tag that the document ends in gives no links, as in browsers; it is a defect.

use std::ops::Range;

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Error, Span, State, Tokenizer};

use super::attributes::{self, Shape};
use super::links::{Attribute, Found};
use super::{Body, DefectKind};

/// Errors of the tokenizer after which a U+FFFD stands for something else.
const REPLACED: [Error; 5] = [
    Error::SurrogateCharacterReference,
    Error::CharacterReferenceOutsideUnicodeRange,
    Error::NullCharacterReference,
    Error::UnexpectedNullCharacter,
    Error::NoncharacterCharacterReference,
];

/// The tag that is being read.
#[derive(Default)]
struct Tag {
    name: Vec<u8>,
    /// Where it begins.
    at: usize,
    /// Its attributes that hold references, the first of each name.
    attributes: Vec<(Vec<u8>, Vec<u8>, Range<usize>)>,
    /// Set while the value of an attribute that holds references is awaited.
    is_awaited: bool,
    /// Where something was replaced.
    replaced: Vec<usize>,
}

/// What the tokenizer tells, gathered.
#[derive(Default)]
struct Gathered {
    found: Found,
    tag: Option<Tag>,
}

/// Tells `listen` the tags of a document; it gives the state to go on in, where that is not the one for markup. One
/// tokenizer serves all who listen, since its code is long.
pub(super) fn tell_tags(text: &[u8], listen: &mut dyn FnMut(CallbackEvent<'_>, Span<usize>) -> Option<State>) {
    let mut tokenizer = Tokenizer::new_with_emitter(text, CallbackEmitter::new(listen));
    // Reading from memory does not fail.
    while let Some(Ok(state)) = tokenizer.next() {
        tokenizer.set_state(state);
    }
}

/// The attributes of a document.
pub(super) fn read(body: &Body) -> Found {
    let mut gathered = Gathered::default();
    tell_tags(body.text(), &mut |event, span| gathered.take(event, span));
    if let Some(tag) = gathered.tag {
        let name = String::from_utf8_lossy(&tag.name).into_owned();
        gathered.found.stopped =
            Some((DefectKind::Truncated, tag.at, format!("the document ends in the tag <{name} that begins there")));
    }
    gathered.found
}

impl Gathered {
    /// Takes an event; gives the state that the tokenizer goes on in, where that is not the one for markup.
    fn take(&mut self, event: CallbackEvent<'_>, span: Span<usize>) -> Option<State> {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                self.tag = Some(Tag { name: name.to_vec(), at: span.start, ..Tag::default() });
            }
            CallbackEvent::AttributeName { name } => {
                if let Some(tag) = &mut self.tag {
                    tag.open(name, span.end);
                }
            }
            CallbackEvent::AttributeValue { value } => {
                if let Some(tag) = self.tag.as_mut().filter(|tag| tag.is_awaited)
                    && let Some((_, held, place)) = tag.attributes.last_mut()
                {
                    *held = value.to_vec();
                    *place = span.start..span.end;
                }
            }
            CallbackEvent::CloseStartTag { .. } => return self.tag.take().and_then(|tag| self.close(tag)),
            CallbackEvent::Error(error) if REPLACED.contains(&error) => {
                if let Some(tag) = &mut self.tag {
                    tag.replaced.push(span.start);
                }
            }
            _ => {}
        }
        None
    }

    /// A start tag is whole.
    fn close(&mut self, tag: Tag) -> Option<State> {
        let state = state_after(&tag.name);
        let is_refresh = tag
            .attributes
            .iter()
            .any(|(name, value, _)| name == b"http-equiv" && value.trim_ascii().eq_ignore_ascii_case(b"refresh"));
        for (name, value, span) in tag.attributes {
            let Some((name, shape)) = attributes::html(&tag.name, &name) else { continue };
            if shape == Shape::Refresh && !is_refresh {
                continue;
            }
            if tag.name == b"base" && name == "href" && self.found.html_base.is_none() {
                self.found.html_base = Some(self.found.attributes.len());
            }
            let bad_reference = tag.replaced.iter().find(|place| (span.start..=span.end).contains(place)).copied();
            self.found.attributes.push(Attribute {
                element: String::from_utf8_lossy(&tag.name).into_owned(),
                name,
                shape,
                value,
                span,
                bad_reference,
                base: 0,
            });
        }
        state
    }
}

impl Tag {
    /// An attribute begins; of two with one name the first counts. `end` is where its value would stand, if it has none.
    fn open(&mut self, name: &[u8], end: usize) {
        let is_wanted = name == b"http-equiv" || attributes::html(&self.name, name).is_some();
        self.is_awaited = is_wanted && self.attributes.iter().all(|(other, ..)| other != name);
        if self.is_awaited {
            self.attributes.push((name.to_vec(), Vec::new(), end..end));
        }
    }
}

/// How the inside of an element is tokenized, where that is not as markup (HTML Standard, 13.2.6.4; scripting off).
fn state_after(name: &[u8]) -> Option<State> {
    match name {
        b"textarea" | b"title" => Some(State::RcData),
        b"script" => Some(State::ScriptData),
        b"style" | b"xmp" | b"iframe" | b"noembed" | b"noframes" => Some(State::RawText),
        b"plaintext" => Some(State::PlainText),
        _ => None,
    }
}
