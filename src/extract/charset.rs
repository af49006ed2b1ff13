//! Which charset a document is in: its byte order mark, else what its transport says, else what it says itself, else the
//! default. HTML Standard, "determining the character encoding" and "prescan"; XML 1.0, appendix F; labels of the Encoding
//! Standard. Contradictions and unknown labels are defects, never silence.

use html5gum::emitters::callback::CallbackEvent;

use super::html::tell_tags;
use super::{Context, Defect, DefectKind, Defects, Markup};
use crate::encoding::Charset;

/// An HTML document names its charset in these first bytes, or not at all.
const PRESCAN_LEN: usize = 1024;

/// What was decided.
pub(super) struct Choice {
    pub(super) charset: Charset,
    /// Length of the byte order mark, which is no part of the text.
    pub(super) mark_len: usize,
    pub(super) markup: Markup,
    pub(super) defects: Vec<Defect>,
}

/// A charset that a document says it is in.
struct Declared {
    label: String,
    at: usize,
}

/// An attribute of a `meta` element.
struct MetaAttribute {
    name: Vec<u8>,
    value: Vec<u8>,
    /// Where its value stands.
    at: usize,
}

/// How a document is to be read.
pub(super) fn choose(bytes: &[u8], context: &Context) -> Choice {
    let mark = Charset::from_bom(bytes);
    let mark_len = mark.map_or(0, |(_, len)| len);
    let unmarked = mark.map(|(charset, _)| charset).or_else(|| sixteen_bits(bytes));
    let markup = context.markup.unwrap_or_else(|| look(&bytes[mark_len..], unmarked));
    let declared = match (markup, unmarked) {
        // In sixteen bits no declaration can be read, nor is any needed.
        (_, Some(charset)) if charset != Charset::UTF_8 => None,
        (Markup::Html, _) => declared_in_html(&bytes[mark_len..]),
        (Markup::Xml, _) => declared_in_xml(&bytes[mark_len..]),
    };
    let mut defects = Defects::default();
    let named = declared.as_ref().and_then(|declared| known(declared, mark_len, markup, &mut defects));
    if let Some((charset, _)) = mark {
        contradict(charset, context.charset, named, &mut defects);
    }
    let charset = mark.map(|(charset, _)| charset).or(context.charset).or(named);
    let charset = charset.or(unmarked).unwrap_or(context.default_charset);
    Choice { charset, mark_len, markup, defects: defects.0 }
}

/// UTF-16 without a mark: the first characters of an XML document are ASCII (XML 1.0, appendix F.1).
fn sixteen_bits(bytes: &[u8]) -> Option<Charset> {
    match bytes {
        [b'<', 0, b'?', 0, ..] => Charset::named("utf-16le"),
        [0, b'<', 0, b'?', ..] => Charset::named("utf-16be"),
        _ => None,
    }
}

/// XML says so in its first characters.
fn look(bytes: &[u8], charset: Option<Charset>) -> Markup {
    let ascii: Vec<u8> = match charset {
        Some(charset) if charset != Charset::UTF_8 => {
            bytes.iter().copied().filter(|byte| *byte != 0).take(64).collect()
        }
        _ => bytes.iter().copied().take(64).collect(),
    };
    if ascii.trim_ascii_start().starts_with(b"<?xml") { Markup::Xml } else { Markup::Html }
}

/// The charset of a declaration, if somebody knows it. A document whose declaration could be read as ASCII is not in
/// UTF-16, whatever it says; HTML takes UTF-8 then, and so does XML here, with a defect.
fn known(declared: &Declared, shift: usize, markup: Markup, defects: &mut Defects) -> Option<Charset> {
    let at = (declared.at + shift) as u64;
    match Charset::named(&declared.label) {
        Some(charset) if charset.name().starts_with("UTF-16") => {
            if markup == Markup::Xml {
                let detail = || "the declaration there says UTF-16 and is not in UTF-16; read as UTF-8".to_string();
                defects.note(DefectKind::ContradictingCharset, at, detail);
            }
            Some(Charset::UTF_8)
        }
        Some(charset) => Some(charset),
        None => {
            let label: String = declared.label.chars().take(40).collect();
            defects.note(DefectKind::UnknownCharset, at, || format!("no charset is called {label:?}"));
            None
        }
    }
}

fn contradict(marked: Charset, given: Option<Charset>, named: Option<Charset>, defects: &mut Defects) {
    let sixteen = |charset: Charset| charset.name().starts_with("UTF-16");
    for (other, who) in [(given, "was given"), (named, "is declared")] {
        // Whoever says UTF-16 leaves the order of its bytes to the mark.
        if let Some(other) =
            other.filter(|other| other.name() != marked.name() && !(sixteen(*other) && sixteen(marked)))
        {
            let detail =
                || format!("a byte order mark of {}, where {} {who}; the mark counts", marked.name(), other.name());
            defects.note(DefectKind::ContradictingCharset, 0, detail);
        }
    }
}

/// `<meta charset=...>`, or `<meta http-equiv=content-type content="...; charset=...">`: the first of them.
fn declared_in_html(bytes: &[u8]) -> Option<Declared> {
    let mut found = None;
    let mut meta: Option<Vec<MetaAttribute>> = None;
    tell_tags(&bytes[..bytes.len().min(PRESCAN_LEN)], &mut |event, span| {
        match event {
            CallbackEvent::OpenStartTag { name } => meta = (name == b"meta").then(Vec::new),
            CallbackEvent::AttributeName { name } => {
                if let Some(meta) = &mut meta {
                    meta.push(MetaAttribute { name: name.to_vec(), value: Vec::new(), at: span.end });
                }
            }
            CallbackEvent::AttributeValue { value } => {
                if let Some(last) = meta.as_mut().and_then(|meta| meta.last_mut()) {
                    (last.value, last.at) = (value.to_vec(), span.start);
                }
            }
            CallbackEvent::CloseStartTag { .. } if found.is_none() => {
                found = meta.take().and_then(|meta| declared_by(&meta));
            }
            _ => {}
        }
        None
    });
    found
}

fn declared_by(meta: &[MetaAttribute]) -> Option<Declared> {
    let named = |name: &[u8]| meta.iter().find(|attribute| attribute.name == name);
    let declared = |label: &[u8], at| Declared { label: String::from_utf8_lossy(label).into_owned(), at };
    if let Some(charset) = named(b"charset") {
        return Some(declared(&charset.value, charset.at));
    }
    let content = named(b"content")?;
    let is_type = named(b"http-equiv")?.value.trim_ascii().eq_ignore_ascii_case(b"content-type");
    is_type.then(|| label_in(&content.value).map(|label| declared(label, content.at))).flatten()
}

/// What follows `charset =` in the content of a `meta` element.
fn label_in(content: &[u8]) -> Option<&[u8]> {
    const NAME: &[u8] = b"charset";
    let mut at = 0;
    loop {
        let offset = content.get(at..)?.windows(NAME.len()).position(|word| word.eq_ignore_ascii_case(NAME))?;
        at += offset + NAME.len();
        let Some(label) = content[at..].trim_ascii_start().strip_prefix(b"=") else { continue };
        let label = label.trim_ascii_start();
        let (label, is_end): (_, &dyn Fn(u8) -> bool) = match label.first() {
            Some(quote @ (b'"' | b'\'')) => (&label[1..], &move |byte| byte == *quote),
            _ => (label, &|byte: u8| byte == b';' || byte.is_ascii_whitespace()),
        };
        return Some(&label[..label.iter().position(|byte| is_end(*byte)).unwrap_or(label.len())]);
    }
}

/// `<?xml version="1.0" encoding="..."?>`
fn declared_in_xml(bytes: &[u8]) -> Option<Declared> {
    const NAME: &[u8] = b"encoding";
    let declaration = &bytes[..bytes.len().min(PRESCAN_LEN)];
    let declaration = declaration.strip_prefix(b"<?xml")?;
    let declaration = &declaration[..declaration.windows(2).position(|end| end == b"?>")?];
    let name = declaration.windows(NAME.len()).position(|word| word == NAME)?;
    let rest = &declaration[name + NAME.len()..];
    let quote = rest.iter().position(|byte| matches!(byte, b'"' | b'\''))?;
    let label = &rest[quote + 1..];
    let label = &label[..label.iter().position(|byte| *byte == rest[quote])?];
    let at = "<?xml".len() + name + NAME.len() + quote + 1;
    Some(Declared { label: String::from_utf8_lossy(label).into_owned(), at })
}
