//! Follows which elements of HTML are open, as far as it matters how their content is read: [`ContentTracker`].
//!
//! In SVG and MathML, which are foreign content, a CDATA section is text, a tag that ends in `/>` has no content, and the content
//! of every element is markup, also that of a `script`, a `style` or a `title`. No tree is built, so foreign content is followed
//! by the names of tags alone: it begins with `svg` and `math`, it ends with them and at tags such as `<p>`, and some of its
//! elements contain HTML again (HTML Standard, 13.2.6.5 and 13.2.4.2). Attributes do not count: those of `font` and
//! `annotation-xml` would.
//!
//! The content of a `template` is not part of the document (HTML Standard, 4.12.3).

use html5gum::emitters::callback::CallbackEvent;
use html5gum::{Error, State as TokenizerState};

/// An open element that is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpenElement {
    /// `svg` or `math`.
    ForeignRoot,
    /// An element of foreign content whose content is HTML: its place in [`HTML_CONTAINERS`].
    OfHtml(usize),
    /// A `template` of HTML.
    Template,
}

/// Follows tags and chooses the state of the tokenizer.
#[derive(Default)]
pub(super) struct ContentTracker {
    /// Name of the last start tag.
    tag: Vec<u8>,
    /// The text is that of a [hidden](is_hidden) element of HTML.
    is_in_hidden: bool,
    /// The content is text of an element of HTML, so that the next end tag is that of this element.
    is_in_text: bool,
    /// The number of `open` elements around the outermost open script or style sheet of foreign content.
    foreign_script: Option<usize>,
    /// The number of open elements `a` of SVG, which have the name of an element of HTML.
    foreign_links: usize,
    /// The open elements, outermost first.
    open: Vec<OpenElement>,
    /// The number of templates in `open`.
    templates: usize,
    /// The last tag is the start tag of the last one of `open`, which is [`OpenElement::OfHtml`].
    is_directly_in_it: bool,
}

impl ContentTracker {
    /// The text that follows is not for readers: a script, a style sheet, or the content of another hidden element.
    pub(super) fn is_in_hidden(&self) -> bool {
        self.is_in_hidden || self.foreign_script.is_some()
    }

    /// The number of open templates.
    pub(super) fn template_count(&self) -> usize {
        self.templates
    }

    /// Returns the state of the tokenizer after an event, if the tokenizer does not choose it itself.
    pub(super) fn follow(&mut self, event: &CallbackEvent<'_>) -> Option<TokenizerState> {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                self.tag.clear();
                self.tag.extend_from_slice(name);
            }
            CallbackEvent::CloseStartTag { self_closing } => return self.begin_content(*self_closing),
            CallbackEvent::EndTag { name } => self.end(name),
            // The tokenizer takes all sections for those of HTML.
            CallbackEvent::Error(Error::CdataInHtmlContent) if self.is_in_foreign_element() => {
                return Some(TokenizerState::CdataSection);
            }
            _ => {}
        }
        None
    }

    fn begin_content(&mut self, is_self_closing: bool) -> Option<TokenizerState> {
        if ends_foreign_content(&self.tag) {
            self.leave_foreign_content();
        }
        (self.is_in_hidden, self.is_in_text, self.is_directly_in_it) = (false, false, false);
        let (is_foreign, is_root) = (self.is_in_foreign_content(), is_foreign_root(&self.tag));
        if is_self_closing && (is_foreign || is_root) {
            return None;
        }
        if is_root {
            self.open.push(OpenElement::ForeignRoot);
        } else if !is_foreign {
            if self.tag == b"template" {
                self.open.push(OpenElement::Template);
                self.templates += 1;
            }
            self.is_in_hidden = is_hidden(&self.tag);
            let state = state_after(&self.tag);
            self.is_in_text = state.is_some();
            return state;
        } else if let Some(place) = HTML_CONTAINERS.iter().position(|name| *name == self.tag) {
            self.open.push(OpenElement::OfHtml(place));
            self.is_directly_in_it = true;
        } else if is_script(&self.tag) {
            self.foreign_script.get_or_insert(self.open.len());
        } else if self.tag == b"a" {
            self.foreign_links += 1;
        }
        None
    }

    fn end(&mut self, name: &[u8]) {
        self.is_in_hidden = false;
        if std::mem::take(&mut self.is_in_text) {
            return;
        }
        if std::mem::take(&mut self.is_directly_in_it) && is_foreign_root(name) {
            self.close_last();
        }
        let ends_last = match self.open.last() {
            Some(OpenElement::ForeignRoot) => is_foreign_root(name),
            Some(OpenElement::OfHtml(place)) => HTML_CONTAINERS[*place] == name,
            Some(OpenElement::Template) | None => false,
        };
        if ends_last {
            self.close_last();
        } else if name == b"template" {
            self.end_template();
        } else if name == b"a" && self.is_in_foreign_content() && self.foreign_links > 0 {
            self.foreign_links -= 1;
        } else if name == b"a" || ends_foreign_content(name) || contains_foreign_content(name) {
            self.leave_foreign_content();
        } else if is_script(name) && self.foreign_script == Some(self.open.len()) {
            self.foreign_script = None;
        }
    }

    /// Closes the innermost template and all elements in it, if a template is open.
    fn end_template(&mut self) {
        let outer = self.templates.saturating_sub(1);
        while self.templates > outer {
            self.close_last();
        }
    }

    fn close_last(&mut self) {
        if self.open.pop() == Some(OpenElement::Template) {
            self.templates -= 1;
        }
        if !self.is_in_foreign_content() {
            self.foreign_links = 0;
        }
        self.foreign_script = self.foreign_script.filter(|around| *around <= self.open.len());
    }

    /// Elements that begin here are foreign, unless they end foreign content.
    pub(super) fn is_in_foreign_content(&self) -> bool {
        self.open.last() == Some(&OpenElement::ForeignRoot)
    }

    /// The innermost open element is foreign, as far as tags show it.
    fn is_in_foreign_element(&self) -> bool {
        self.is_in_foreign_content() || self.is_directly_in_it
    }

    fn leave_foreign_content(&mut self) {
        while self.is_in_foreign_content() {
            self.close_last();
        }
    }
}

/// The content of the element is not that of HTML.
fn is_foreign_root(name: &[u8]) -> bool {
    matches!(name, b"svg" | b"math")
}

/// The foreign elements whose content is HTML.
const HTML_CONTAINERS: [&[u8]; 8] = [b"foreignobject", b"desc", b"title", b"mi", b"mo", b"mn", b"ms", b"mtext"];

/// The start tag of this element of HTML ends foreign content. Its end tag does, too: the element is around foreign content.
#[rustfmt::skip]
fn ends_foreign_content(name: &[u8]) -> bool {
    matches!(
        name,
        b"b" | b"big" | b"blockquote" | b"body" | b"br" | b"center" | b"code" | b"dd" | b"div" | b"dl" | b"dt" | b"em"
            | b"embed" | b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" | b"head" | b"hr" | b"i" | b"img" | b"li" | b"listing" | b"menu"
            | b"meta" | b"nobr" | b"ol" | b"p" | b"pre" | b"ruby" | b"s" | b"small" | b"span" | b"strong" | b"strike" | b"sub"
            | b"sup" | b"table" | b"tt" | b"u" | b"ul" | b"var"
    )
}

/// Further elements of HTML whose end tag ends foreign content in them. SVG and MathML have no elements of these names.
fn contains_foreign_content(name: &[u8]) -> bool {
    matches!(
        name,
        b"article"
            | b"aside"
            | b"button"
            | b"footer"
            | b"form"
            | b"header"
            | b"html"
            | b"label"
            | b"main"
            | b"nav"
            | b"section"
            | b"tbody"
            | b"td"
            | b"tfoot"
            | b"th"
            | b"thead"
            | b"tr"
    )
}

/// The text of this element of HTML is not for readers: it is a script, a style sheet, or what browsers without frames or plugins
/// show.
fn is_hidden(name: &[u8]) -> bool {
    is_script(name) || matches!(name, b"iframe" | b"noembed" | b"noframes")
}

/// The element is a script or a style sheet.
fn is_script(name: &[u8]) -> bool {
    matches!(name, b"script" | b"style")
}

/// The state of the tokenizer for the content of an element of HTML, if that is not markup (HTML Standard, 13.2.6.4; scripting
/// off).
fn state_after(name: &[u8]) -> Option<TokenizerState> {
    match name {
        b"textarea" | b"title" => Some(TokenizerState::RcData),
        b"script" => Some(TokenizerState::ScriptData),
        b"style" | b"xmp" | b"iframe" | b"noembed" | b"noframes" => Some(TokenizerState::RawText),
        b"plaintext" => Some(TokenizerState::PlainText),
        _ => None,
    }
}
