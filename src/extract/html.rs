//! Finds the attributes of HTML that hold references. The tokenizer of the HTML Standard finds the tags; no tree is built,
//! so that a tag counts wherever it is: in a template, in foreign content, in the wrong place of a table. Scripting is off:
//! the content of `noscript` counts, that of `script`, `style`, `title` and comments does not.
//!
//! A tag in which the document ends gives no links, as in browsers; it is a defect.

use std::ops::Range;

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Error, Span, State as TokenizerState, Tokenizer};

use super::attributes::{self, ReferenceSyntax};
use super::document::{DefectKind, DocumentText};
use super::links::{LinkAttribute, LinkAttributes, ParserStop, element_name};

/// Errors of the tokenizer after which it writes U+FFFD for something else.
const REPLACING_ERRORS: [Error; 5] = [
    Error::SurrogateCharacterReference,
    Error::CharacterReferenceOutsideUnicodeRange,
    Error::NullCharacterReference,
    Error::UnexpectedNullCharacter,
    Error::NoncharacterCharacterReference,
];

/// The start tag that is being read.
#[derive(Default)]
struct StartTag {
    name: Vec<u8>,
    /// Where it begins.
    at: usize,
    /// Its attributes that hold references, the first one of each name: name, value, position of the value.
    attributes: Vec<(Vec<u8>, Vec<u8>, Range<usize>)>,
    /// The next value belongs to the last one of `attributes`.
    expects_value: bool,
    /// Where the tokenizer wrote U+FFFD.
    replaced: Vec<usize>,
}

/// Collects the attributes from the events of the tokenizer.
#[derive(Default)]
struct HtmlCollector {
    found: LinkAttributes,
    tag: Option<StartTag>,
}

/// Calls `handle` with every event of the tokenizer. It returns the state in which the tokenizer continues, if that is not
/// the one for markup. All callers share one instance of the tokenizer, because its code is large.
pub(super) fn for_each_event(
    text: &[u8],
    handle: &mut dyn FnMut(CallbackEvent<'_>, Span<usize>) -> Option<TokenizerState>,
) {
    let mut tokenizer = Tokenizer::new_with_emitter(text, CallbackEmitter::new(handle));
    // Reading memory does not fail.
    while let Some(Ok(state)) = tokenizer.next() {
        tokenizer.set_state(state);
    }
}

/// The attributes of a document.
pub(super) fn read(text: &DocumentText) -> LinkAttributes {
    let mut collector = HtmlCollector::default();
    for_each_event(text.text(), &mut |event, span| collector.handle(event, span));
    if let Some(tag) = collector.tag.filter(|_| collector.found.stop.is_none()) {
        let name = String::from_utf8_lossy(&tag.name);
        let detail = format!("the document ends in the tag <{name} that begins there");
        collector.found.stop = Some(ParserStop { kind: DefectKind::Truncated, position: tag.at, detail });
    }
    collector.found
}

impl HtmlCollector {
    /// Handles an event; returns the state in which the tokenizer continues, if that is not the one for markup.
    fn handle(&mut self, event: CallbackEvent<'_>, span: Span<usize>) -> Option<TokenizerState> {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                self.tag = Some(StartTag { name: name.to_vec(), at: span.start, ..StartTag::default() });
            }
            CallbackEvent::AttributeName { name } => {
                if let Some(tag) = &mut self.tag {
                    tag.begin_attribute(name, span.end);
                }
            }
            CallbackEvent::AttributeValue { value } => {
                if let Some(tag) = self.tag.as_mut().filter(|tag| tag.expects_value)
                    && let Some((_, held, position)) = tag.attributes.last_mut()
                {
                    *held = value.to_vec();
                    *position = span.start..span.end;
                }
            }
            CallbackEvent::CloseStartTag { .. } => return self.tag.take().and_then(|tag| self.end_tag(tag)),
            CallbackEvent::Error(error) if REPLACING_ERRORS.contains(&error) => {
                if let Some(tag) = &mut self.tag {
                    tag.replaced.push(span.start);
                }
            }
            _ => {}
        }
        None
    }

    /// Ends a start tag.
    fn end_tag(&mut self, tag: StartTag) -> Option<TokenizerState> {
        let state = state_after(&tag.name);
        let is_refresh = tag
            .attributes
            .iter()
            .any(|(name, value, _)| name == b"http-equiv" && value.trim_ascii().eq_ignore_ascii_case(b"refresh"));
        for (name, value, span) in tag.attributes {
            let Some((name, syntax)) = attributes::html(&tag.name, &name) else { continue };
            if syntax == ReferenceSyntax::Refresh && !is_refresh {
                continue;
            }
            if tag.name == b"base" && name == "href" && self.found.html_base.is_none() {
                self.found.html_base = Some(self.found.attributes.len());
            }
            let bad_reference = tag.replaced.iter().find(|at| (span.start..=span.end).contains(at)).copied();
            let element = element_name(&tag.name);
            self.found.push(LinkAttribute { element, name, syntax, value, span, bad_reference, base: 0 });
        }
        state
    }
}

impl StartTag {
    /// Begins an attribute; of two with one name the first one counts. `end` is the position of its value if it has none.
    fn begin_attribute(&mut self, name: &[u8], end: usize) {
        let is_relevant = name == b"http-equiv" || attributes::html(&self.name, name).is_some();
        self.expects_value = is_relevant && self.attributes.iter().all(|(other, ..)| other != name);
        if self.expects_value {
            self.attributes.push((name.to_vec(), Vec::new(), end..end));
        }
    }
}

/// The state of the tokenizer for the content of an element, if that is not markup (HTML Standard, 13.2.6.4; scripting off).
fn state_after(name: &[u8]) -> Option<TokenizerState> {
    match name {
        b"textarea" | b"title" => Some(TokenizerState::RcData),
        b"script" => Some(TokenizerState::ScriptData),
        b"style" | b"xmp" | b"iframe" | b"noembed" | b"noframes" => Some(TokenizerState::RawText),
        b"plaintext" => Some(TokenizerState::PlainText),
        _ => None,
    }
}
