//! Chooses the charset of a document: that of its byte-order mark, otherwise that of the transport, otherwise the one that
//! the document declares, otherwise the default. HTML Standard, "determining the character encoding" and "prescan"; XML
//! 1.0, appendix F; labels of the Encoding Standard. Contradictions and unknown labels are reported as defects.

use html5gum::emitters::callback::CallbackEvent;

use super::document::{CharsetChoice, DefectKind, DefectList, DocumentContext, Markup};
use super::html::for_each_event;
use crate::encoding::Charset;

/// An HTML document declares its charset within so many bytes, or not at all.
const PRESCAN_LEN: usize = 1024;

/// The charset that a document declares.
struct DeclaredCharset {
    label: String,
    at: usize,
}

/// An attribute of a `meta` element.
struct MetaAttribute {
    name: Vec<u8>,
    value: Vec<u8>,
    /// The position of its value.
    at: usize,
}

/// Chooses charset and markup language of a document.
pub(super) fn choose(bytes: &[u8], context: &DocumentContext) -> CharsetChoice {
    let mark = Charset::from_bom(bytes);
    let mark_len = mark.map_or(0, |(_, len)| len);
    let unmarked = mark.map(|(charset, _)| charset).or_else(|| unmarked_utf16(bytes));
    let markup = context.markup.unwrap_or_else(|| detect_markup(&bytes[mark_len..], unmarked));
    let declared = match (markup, unmarked) {
        // UTF-16 is known without a declaration.
        (_, Some(charset)) if charset != Charset::UTF_8 => None,
        (Markup::Html, _) => declared_in_html(&bytes[mark_len..]),
        (Markup::Xml, _) => declared_in_xml(&bytes[mark_len..]),
    };
    let mut defects = DefectList::default();
    let named = declared.as_ref().and_then(|declared| resolve_label(declared, mark_len, markup, &mut defects));
    if let Some((charset, _)) = mark {
        check_contradiction(charset, context.charset, named, &mut defects);
    }
    let charset = mark.map(|(charset, _)| charset).or(context.charset).or(named);
    let charset = charset.or(unmarked).unwrap_or(context.default_charset);
    CharsetChoice { charset, mark_len, markup, defects: defects.0 }
}

/// UTF-16 without a byte-order mark: the first characters of an XML document are ASCII (XML 1.0, appendix F.1).
fn unmarked_utf16(bytes: &[u8]) -> Option<Charset> {
    match bytes {
        [b'<', 0, b'?', 0, ..] => Charset::named("utf-16le"),
        [0, b'<', 0, b'?', ..] => Charset::named("utf-16be"),
        _ => None,
    }
}

/// Detects XML by its declaration.
fn detect_markup(bytes: &[u8], charset: Option<Charset>) -> Markup {
    let ascii: Vec<u8> = match charset {
        Some(charset) if charset != Charset::UTF_8 => {
            bytes.iter().copied().filter(|byte| *byte != 0).take(64).collect()
        }
        _ => bytes.iter().copied().take(64).collect(),
    };
    if ascii.trim_ascii_start().starts_with(b"<?xml") { Markup::Xml } else { Markup::Html }
}

/// The charset of a declaration, if its label is known. A document whose declaration can be read as ASCII is not in UTF-16,
/// whatever it declares; HTML takes UTF-8 then, and so does XML here, with a defect.
fn resolve_label(
    declared: &DeclaredCharset,
    shift: usize,
    markup: Markup,
    defects: &mut DefectList,
) -> Option<Charset> {
    let at = (declared.at + shift) as u64;
    match Charset::named(&declared.label) {
        Some(charset) if charset.name().starts_with("UTF-16") => {
            if markup == Markup::Xml {
                let detail = || "the document declares UTF-16 but is not in UTF-16; read as UTF-8".to_string();
                defects.add(DefectKind::ContradictingCharset, at, detail);
            }
            Some(Charset::UTF_8)
        }
        Some(charset) => Some(charset),
        None => {
            let label: String = declared.label.chars().take(40).collect();
            defects.add(DefectKind::UnknownCharset, at, || format!("unknown charset {label:?}"));
            None
        }
    }
}

fn check_contradiction(marked: Charset, given: Option<Charset>, named: Option<Charset>, defects: &mut DefectList) {
    let is_utf16 = |charset: Charset| charset.name().starts_with("UTF-16");
    for (other, who) in [(given, "was given"), (named, "is declared")] {
        // A declaration of UTF-16 leaves the byte order to the mark.
        if let Some(other) =
            other.filter(|other| other.name() != marked.name() && !(is_utf16(*other) && is_utf16(marked)))
        {
            let detail = || {
                format!("the byte-order mark is that of {}, but {} {who}; the mark counts", marked.name(), other.name())
            };
            defects.add(DefectKind::ContradictingCharset, 0, detail);
        }
    }
}

/// The first `<meta charset=...>` or `<meta http-equiv=content-type content="...; charset=...">`.
fn declared_in_html(bytes: &[u8]) -> Option<DeclaredCharset> {
    let mut found = None;
    let mut meta: Option<Vec<MetaAttribute>> = None;
    for_each_event(&bytes[..bytes.len().min(PRESCAN_LEN)], &mut |event, span| {
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

fn declared_by(meta: &[MetaAttribute]) -> Option<DeclaredCharset> {
    let named = |name: &[u8]| meta.iter().find(|attribute| attribute.name == name);
    let declared = |label: &[u8], at| DeclaredCharset { label: String::from_utf8_lossy(label).into_owned(), at };
    if let Some(charset) = named(b"charset") {
        return Some(declared(&charset.value, charset.at));
    }
    let content = named(b"content")?;
    let is_type = named(b"http-equiv")?.value.trim_ascii().eq_ignore_ascii_case(b"content-type");
    is_type.then(|| label_in(&content.value).map(|label| declared(label, content.at))).flatten()
}

/// The label after `charset =` in the content of a `meta` element.
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
fn declared_in_xml(bytes: &[u8]) -> Option<DeclaredCharset> {
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
    Some(DeclaredCharset { label: String::from_utf8_lossy(label).into_owned(), at })
}
