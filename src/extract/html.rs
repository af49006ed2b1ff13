//! Finds the attributes of HTML that hold references. The tokenizer of the HTML Standard finds the tags; no tree is built,
//! so a tag is read wherever it is: in a template, in foreign content, in the wrong place of a table. Scripting is off:
//! the content of `noscript` is read, that of comments and of the `script`, `style` and `title` of HTML is not.
//!
//! A tag in which the document ends gives no links, as in browsers; it is a defect.

use std::ops::Range;

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Error, Span, State as TokenizerState, Tokenizer};

use super::attributes::{self, ReferenceSyntax};
use super::content_tracker::ContentTracker;
use super::document::DefectKind;
use super::links::{LinkAttribute, LinkSink, ParserStop, short_name};
use super::paused_reader::{Pause, PausedReader};

/// Errors of the tokenizer after which it writes U+FFFD for something else.
const REPLACING_ERRORS: [Error; 4] = [
    Error::SurrogateCharacterReference,
    Error::CharacterReferenceOutsideUnicodeRange,
    Error::NullCharacterReference,
    Error::UnexpectedNullCharacter,
];

/// Whether the elements whose content is not markup, such as `script`, are read as the HTML Standard specifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RawElements {
    Known,
    /// Their content is read as markup.
    Ignored,
}

/// What the tokenizer does after an event.
enum TokenizerStep {
    /// Continue in this state.
    Enter(TokenizerState),
    /// Read no more.
    Stop,
}

/// The start tag that is being read.
#[derive(Default)]
pub(super) struct StartTag {
    pub(super) name: Vec<u8>,
    /// Where it begins.
    at: usize,
    /// Its attributes that are used, the first one of each name.
    attributes: Vec<TagAttribute>,
    /// The next value belongs to the last one of `attributes`.
    expects_value: bool,
    /// Where the tokenizer wrote U+FFFD; of adjacent places only the first one.
    replaced: Vec<usize>,
    /// The last place where it did.
    last_replaced: usize,
}

/// An attribute of a start tag.
pub(super) struct TagAttribute {
    name: Vec<u8>,
    pub(super) value: Vec<u8>,
    /// Where the value is.
    pub(super) span: Range<usize>,
}

/// Collects the attributes from the events of the tokenizer.
struct HtmlCollector<'a, 'b> {
    sink: &'a mut LinkSink<'b>,
    tag: Option<StartTag>,
    /// The number of templates around the last `a` element: the content of others is not part of its text.
    templates: usize,
}

/// Calls `handle` with every event of the tokenizer, and what is open after it, until it returns false, but not with the text
/// of scripts and style sheets. All callers share one instance of the tokenizer, because its code is large.
pub(super) fn for_each_event(
    text: &[u8],
    elements: RawElements,
    handle: &mut dyn FnMut(CallbackEvent<'_>, Span<usize>, &ContentTracker) -> bool,
) {
    let mut tracker = ContentTracker::default();
    let step = |event: CallbackEvent<'_>, span: Span<usize>| {
        let state = tracker.follow(&event).filter(|_| elements == RawElements::Known);
        let is_script = tracker.is_in_hidden() && matches!(event, CallbackEvent::String { .. });
        match is_script || handle(event, span, &tracker) {
            true => state.map(TokenizerStep::Enter),
            false => Some(TokenizerStep::Stop),
        }
    };
    let mut tokenizer = Tokenizer::new_with_emitter(PausedReader::new(text), CallbackEmitter::new(step));
    while let Some(step) = tokenizer.next() {
        match step {
            Ok(TokenizerStep::Enter(state)) => tokenizer.set_state(state),
            Ok(TokenizerStep::Stop) => return,
            Err(Pause) => {}
        }
    }
}

/// Reads a document and gives its references to `sink`.
pub(super) fn read(text: &[u8], sink: &mut LinkSink<'_>) {
    let mut collector = HtmlCollector { sink, tag: None, templates: 0 };
    for_each_event(text, RawElements::Known, &mut |event, span, tracker| collector.handle(event, span, tracker));
    let HtmlCollector { sink, tag, .. } = collector;
    if let Some(tag) = tag.filter(|_| !sink.is_done()) {
        let name = String::from_utf8_lossy(&tag.name);
        let detail = format!("the document ends in the tag <{name} that begins there");
        sink.stop(ParserStop { kind: DefectKind::Truncated, position: tag.at, detail });
    }
}

impl HtmlCollector<'_, '_> {
    /// Takes an event. Returns false if the parser can stop.
    fn handle(&mut self, event: CallbackEvent<'_>, span: Span<usize>, tracker: &ContentTracker) -> bool {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                // The parser makes `img` of `image` (HTML Standard, 13.2.6.4.7).
                let is_img = name == b"image" && !tracker.is_in_foreign_content();
                self.tag = Some(StartTag::new(if is_img { b"img" } else { name }, span.start));
            }
            CallbackEvent::AttributeName { name } => {
                if let Some(tag) = &mut self.tag {
                    let is_read = matches!(name, b"http-equiv" | b"rel" | b"alt");
                    let is_used = is_read || attributes::html(&tag.name, name).is_some();
                    tag.begin_attribute(name, span.end, is_used);
                }
            }
            CallbackEvent::AttributeValue { value } => {
                if let Some(tag) = &mut self.tag {
                    tag.set_value(value, span);
                }
            }
            CallbackEvent::CloseStartTag { .. } => {
                if let Some(tag) = self.tag.take() {
                    let is_in_document = tracker.template_count() == 0 && !tracker.is_in_foreign_content();
                    self.push_attributes(&tag, is_in_document);
                    self.begin_text(&tag, tracker.template_count());
                }
            }
            CallbackEvent::EndTag { name: b"a" } => self.sink.end_text(),
            CallbackEvent::String { value } if tracker.template_count() == self.templates => self.sink.push_text(value),
            CallbackEvent::Error(error) if REPLACING_ERRORS.contains(&error) => {
                if let Some(tag) = &mut self.tag {
                    tag.note_replaced(span.start);
                }
            }
            _ => {}
        }
        !self.sink.is_done()
    }

    /// Gives the attributes of a start tag to the sink. A `base` counts only in the document.
    fn push_attributes(&mut self, tag: &StartTag, is_in_document: bool) {
        let value_of = |name: &[u8]| tag.attribute(name).map(|attribute| &attribute.value[..]);
        let is_refresh = value_of(b"http-equiv").is_some_and(|value| value.eq_ignore_ascii_case(b"refresh"));
        let rel = value_of(b"rel").unwrap_or_default();
        if tag.is_anchor() {
            self.sink.end_text();
        }
        let element = short_name(&tag.name);
        for TagAttribute { name, value, span } in &tag.attributes {
            let Some((name, syntax)) = attributes::html(&tag.name, name) else { continue };
            if syntax == ReferenceSyntax::Refresh && !is_refresh {
                continue;
            }
            let bad_reference = tag.replaced_in(span);
            let is_html_base = is_in_document && element == "base" && name == "href";
            let (element, span) = (&element, span.clone());
            let attribute =
                LinkAttribute { element, name, rel, syntax, value, span, bad_reference, is_html_base, base: 0 };
            if !self.sink.push(&attribute) {
                return;
            }
        }
    }

    /// Sets the text of the links of a start tag, or begins it. `templates` is the number of open templates.
    fn begin_text(&mut self, tag: &StartTag, templates: usize) {
        match tag.attribute(b"alt") {
            _ if tag.is_anchor() => {
                self.templates = templates;
                self.sink.begin_text();
            }
            Some(alt) => self.sink.set_text(&alt.value),
            None => self.sink.end_tag(),
        }
    }
}

impl StartTag {
    /// A tag that begins at `at`.
    pub(super) fn new(name: &[u8], at: usize) -> StartTag {
        StartTag { name: name.to_vec(), at, ..StartTag::default() }
    }

    /// Begins an attribute, which is kept if it is used; of several with one name, the first is used. `end` is the
    /// position of its value if it has none.
    pub(super) fn begin_attribute(&mut self, name: &[u8], end: usize, is_used: bool) {
        self.expects_value = is_used && self.attribute(name).is_none();
        if self.expects_value {
            self.attributes.push(TagAttribute { name: name.to_vec(), value: Vec::new(), span: end..end });
        }
    }

    /// Sets the value of the attribute that began last.
    pub(super) fn set_value(&mut self, value: &[u8], span: Span<usize>) {
        if let Some(attribute) = self.attributes.last_mut().filter(|_| self.expects_value) {
            (attribute.value, attribute.span) = (value.to_vec(), span.start..span.end);
        }
    }

    fn is_anchor(&self) -> bool {
        self.name == b"a"
    }

    /// The attribute of this name, if it is kept.
    pub(super) fn attribute(&self, name: &[u8]) -> Option<&TagAttribute> {
        self.attributes.iter().find(|attribute| attribute.name == name)
    }

    /// Notes that the tokenizer wrote U+FFFD for the byte at `at`.
    fn note_replaced(&mut self, at: usize) {
        if self.replaced.is_empty() || self.last_replaced + 1 < at {
            self.replaced.push(at);
        }
        self.last_replaced = at;
    }

    /// The first place in a value where the tokenizer wrote U+FFFD.
    fn replaced_in(&self, span: &Range<usize>) -> Option<usize> {
        let first = self.replaced.partition_point(|at| *at < span.start);
        self.replaced.get(first).filter(|at| **at <= span.end).copied()
    }
}
