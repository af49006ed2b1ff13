//! Chooses the charset of a document: that of its byte order mark, otherwise that of the transport, otherwise the one that
//! the document declares, otherwise the default. HTML Standard, "determining the character encoding" and "prescan"; XML
//! 1.0, appendix F; labels of the Encoding Standard. Contradictions and unknown labels are reported as defects.

use html5gum::emitters::callback::CallbackEvent;

use super::document::{CharsetChoice, DefectKind, DefectList, DocumentContext, Markup};
use super::html::{RawElements, StartTag, for_each_event};
use crate::encoding::Charset;
use crate::kernel::strip_prefix_ignoring_case;
use crate::record::json::is_json_feed;

/// Browsers look for the declaration of an HTML document in this many bytes first; that of XML is there.
const PRESCAN_LEN: usize = 1024;

/// The charset that a document declares.
struct DeclaredCharset {
    label: String,
    at: usize,
}

impl DeclaredCharset {
    fn new(label: &[u8], at: usize) -> DeclaredCharset {
        DeclaredCharset { label: String::from_utf8_lossy(label).into_owned(), at }
    }

    fn is_known(&self) -> bool {
        Charset::named(&self.label).is_some()
    }
}

/// Chooses charset and markup language of a document.
pub(super) fn choose(bytes: &[u8], context: &DocumentContext) -> CharsetChoice {
    let mark = Charset::from_bom(bytes);
    let mark_len = mark.map_or(0, |(_, len)| len);
    let unmarked = mark.map(|(charset, _)| charset).or_else(|| utf16_of_xml(bytes));
    let assumed = context.charset.unwrap_or(context.default_charset);
    let markup = context.markup.unwrap_or_else(|| detect_markup(bytes, Some(assumed)));
    let declared = match (markup, unmarked) {
        // UTF-16 is known without a declaration.
        (_, Some(charset)) if charset != Charset::UTF_8 => None,
        (Markup::Html, _) => declared_in_html(&bytes[mark_len..], mark.is_some() || context.charset.is_some()),
        (Markup::Xml, _) => declared_in_xml(&bytes[mark_len..]),
        // These are in UTF-8 (RFC 9309 section 2.2, RFC 8259 section 8.1).
        (Markup::Robots | Markup::Urls | Markup::JsonFeed, _) => None,
    };
    let mut defects = DefectList::default();
    let named = declared.as_ref().and_then(|declared| resolve_label(declared, mark_len, markup, &mut defects));
    if let Some((charset, _)) = mark {
        check_contradiction(charset, context.charset, named, &mut defects);
    }
    let charset = mark.map(|(charset, _)| charset).or(context.charset).or(named);
    let charset = charset.or(unmarked).unwrap_or(context.default_charset);
    CharsetChoice { charset, mark_len, markup, defects }
}

/// UTF-16 without a byte order mark: the first characters of an XML document are ASCII (XML 1.0, appendix F.1).
pub(crate) fn utf16_of_xml(bytes: &[u8]) -> Option<Charset> {
    match bytes {
        [b'<', 0, b'?', 0, ..] => Charset::named("utf-16le"),
        [0, b'<', 0, b'?', ..] => Charset::named("utf-16be"),
        _ => None,
    }
}

/// Bytes from which the markup is recognized.
const SNIFF_LEN: usize = 4 << 10;

/// Roots of feeds and sitemaps, which are XML also without a declaration.
const XML_ROOTS: [&[u8]; 6] = [b"rss", b"feed", b"rdf:rdf", b"urlset", b"sitemapindex", b"opml"];

/// The first bytes of a document without the byte order mark, in ASCII if the document begins so: of UTF-16, zero bytes are left
/// out. `charset` is that of a document whose first bytes do not show the charset.
pub(crate) fn document_head(bytes: &[u8], charset: Option<Charset>) -> Vec<u8> {
    let (marked, mark_len) = Charset::from_bom(bytes).unzip();
    let charset = marked.or_else(|| utf16_of_xml(bytes)).or(charset);
    let is_wide = charset.is_some_and(Charset::is_utf16);
    let text = bytes[mark_len.unwrap_or(0)..].iter().copied();
    text.filter(|byte| !is_wide || *byte != 0).take(SNIFF_LEN).collect()
}

/// Detects the markup by the first tag. A document with an XML declaration is XML, unless its root is `html`: most of those
/// are not well-formed, and browsers read them as HTML.
pub(super) fn detect_markup(bytes: &[u8], charset: Option<Charset>) -> Markup {
    let head = document_head(bytes, charset);
    let text = head.trim_ascii_start();
    match text.first() {
        Some(b'<') => markup_of_root(text),
        _ if is_json_feed(text) => Markup::JsonFeed,
        _ if is_url_list(text) => Markup::Urls,
        _ if is_robots(text) => Markup::Robots,
        _ => Markup::Html,
    }
}

/// The markup of a document that begins with a tag, a comment, or a declaration.
fn markup_of_root(mut text: &[u8]) -> Markup {
    let has_declaration = text.starts_with(b"<?xml");
    loop {
        text = text.trim_ascii_start();
        let end: &[u8] = match text {
            [b'<', b'!', b'-', b'-', ..] => b"-->",
            [b'<', b'?', ..] => b"?>",
            [b'<', b'!', ..] => b">",
            _ => break,
        };
        let Some(len) = memchr::memmem::find(text, end) else { break };
        text = &text[len + end.len()..];
    }
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'>' | b'/');
    let root = text.strip_prefix(b"<").and_then(|tag| tag.split(is_end).next()).unwrap_or_default();
    let is_xml = (has_declaration && !root.eq_ignore_ascii_case(b"html"))
        || XML_ROOTS.iter().any(|known| known.eq_ignore_ascii_case(root));
    if is_xml { Markup::Xml } else { Markup::Html }
}

/// Whether a text is a list of URLs, such as a sitemap: its first line is one.
fn is_url_list(text: &[u8]) -> bool {
    let line = text.split(|byte| matches!(byte, b'\n' | b'\r')).next().unwrap_or_default().trim_ascii_end();
    let mut schemes = [&b"http://"[..], b"https://"].into_iter();
    let has_scheme = schemes.any(|scheme| strip_prefix_ignoring_case(line, scheme).is_some());
    has_scheme && !line.iter().any(|byte| byte.is_ascii_whitespace() || matches!(byte, b'<' | b'>' | b'"'))
}

/// Whether a text begins with a group of `robots.txt`, possibly after comments.
fn is_robots(text: &[u8]) -> bool {
    let mut lines = text.split(|byte| matches!(byte, b'\n' | b'\r')).map(<[u8]>::trim_ascii);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with(b"#")).unwrap_or_default();
    let name = first.split(|byte| *byte == b':').next().unwrap_or_default().trim_ascii();
    name.len() < first.len()
        && [&b"user-agent"[..], b"sitemap", b"disallow", b"allow"].iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// The charset of a declaration, if its label is known. A document whose declaration can be read as ASCII is not in UTF-16,
/// whatever it declares; HTML is then read as UTF-8, and so is XML here, with a defect.
fn resolve_label(
    declared: &DeclaredCharset,
    shift: usize,
    markup: Markup,
    defects: &mut DefectList,
) -> Option<Charset> {
    let at = (declared.at + shift) as u64;
    match Charset::named(&declared.label) {
        Some(charset) if charset.is_utf16() => {
            if markup == Markup::Xml {
                let detail = || "the document declares UTF-16 but is not in UTF-16; read as UTF-8".to_string();
                defects.add(DefectKind::ContradictingCharset, at, detail);
            }
            Some(Charset::UTF_8)
        }
        // HTML Standard, section 13.2.3.2. The charset itself is for programs that read bytes.
        Some(charset) if charset.name() == "x-user-defined" && markup == Markup::Html => Charset::named("windows-1252"),
        Some(charset) => Some(charset),
        None => {
            let label: String = declared.label.chars().take(40).collect();
            defects.add(DefectKind::UnknownCharset, at, || format!("unknown charset {label:?}"));
            None
        }
    }
}

fn check_contradiction(marked: Charset, given: Option<Charset>, named: Option<Charset>, defects: &mut DefectList) {
    for (other, who) in [(given, "was given"), (named, "is declared")] {
        // A declaration of UTF-16 leaves the byte order to the mark.
        if let Some(other) =
            other.filter(|other| other.name() != marked.name() && !(other.is_utf16() && marked.is_utf16()))
        {
            let (mark, other) = (marked.name(), other.name());
            let detail = || format!("the byte order mark is that of {mark}, but {other} {who}; the mark is used");
            defects.add(DefectKind::ContradictingCharset, 0, detail);
        }
    }
}

/// The charset that an HTML document declares in a `meta` element, otherwise in an XML declaration. A known charset precedes
/// unknown ones.
///
/// Browsers look for the `meta` element in the first 1,024 bytes first. If there is none, they begin to read, and read
/// again when they find one further on (HTML Standard, "changing the encoding while parsing"), so a declaration at any
/// place is used. `is_decided`: the declaration is only compared.
fn declared_in_html(bytes: &[u8], is_decided: bool) -> Option<DeclaredCharset> {
    let prescan = declared_in_meta(&bytes[..bytes.len().min(PRESCAN_LEN)], RawElements::Ignored);
    if prescan.as_ref().is_some_and(DeclaredCharset::is_known) {
        return prescan;
    }
    let has_more = !is_decided && find_ignoring_case(bytes, b"charset").is_some();
    let later = if has_more { declared_in_meta(bytes, RawElements::Known) } else { None };
    // The first one that is known, otherwise the first one.
    [prescan, later, declared_in_xml(bytes)].into_iter().flatten().min_by_key(|declared| !declared.is_known())
}

/// The first known charset of `<meta charset=...>` or `<meta http-equiv=content-type content="...; charset=...">`; otherwise
/// the first unknown one.
fn declared_in_meta(bytes: &[u8], elements: RawElements) -> Option<DeclaredCharset> {
    let mut found: Option<DeclaredCharset> = None;
    let mut tag = StartTag::default();
    for_each_event(bytes, elements, &mut |event, span, _| {
        match event {
            CallbackEvent::OpenStartTag { name } => tag = StartTag::new(name, span.start),
            CallbackEvent::AttributeName { name } => {
                let is_used = tag.name == b"meta" && matches!(name, b"charset" | b"content" | b"http-equiv");
                tag.begin_attribute(name, span.end, is_used);
            }
            CallbackEvent::AttributeValue { value } => tag.set_value(value, span),
            CallbackEvent::CloseStartTag { .. } => {
                if let Some(declared) = declared_by(&tag) {
                    let is_known = declared.is_known();
                    if is_known || found.is_none() {
                        found = Some(declared);
                    }
                    return !is_known;
                }
            }
            _ => {}
        }
        true
    });
    found
}

/// The position of a word in lower case, in any case.
pub(super) fn find_ignoring_case(bytes: &[u8], word: &[u8]) -> Option<usize> {
    let (first, rest) = (word[0], &word[1..]);
    let upper = first.to_ascii_uppercase();
    memchr::memchr2_iter(first, upper, bytes).find(|at| strip_prefix_ignoring_case(&bytes[at + 1..], rest).is_some())
}

/// The charset that a `meta` element declares; only its attributes are kept.
fn declared_by(meta: &StartTag) -> Option<DeclaredCharset> {
    if let Some(charset) = meta.attribute(b"charset") {
        return Some(DeclaredCharset::new(&charset.value, charset.span.start));
    }
    let content = meta.attribute(b"content")?;
    let is_type = meta.attribute(b"http-equiv")?.value.eq_ignore_ascii_case(b"content-type");
    label_in(&content.value).filter(|_| is_type).map(|label| DeclaredCharset::new(label, content.span.start))
}

/// The label after `charset =` in the content of a `meta` element (HTML Standard, "algorithm for extracting a character encoding
/// from a meta element").
fn label_in(content: &[u8]) -> Option<&[u8]> {
    const NAME: &[u8] = b"charset";
    let mut at = 0;
    loop {
        at += find_ignoring_case(&content[at..], NAME)? + NAME.len();
        let Some(label) = content[at..].trim_ascii_start().strip_prefix(b"=") else { continue };
        let label = label.trim_ascii_start();
        return match label.split_first()? {
            // Without the second quote, there is no label.
            (quote @ (b'"' | b'\''), label) => memchr::memchr(*quote, label).map(|len| &label[..len]),
            _ => label.split(|byte| *byte == b';' || byte.is_ascii_whitespace()).next(),
        };
    }
}

/// `<?xml version="1.0" encoding="..."?>`
fn declared_in_xml(bytes: &[u8]) -> Option<DeclaredCharset> {
    const NAME: &[u8] = b"encoding";
    let declaration = &bytes[..bytes.len().min(PRESCAN_LEN)];
    let declaration = declaration.strip_prefix(b"<?xml")?;
    let declaration = &declaration[..memchr::memmem::find(declaration, b"?>")?];
    let name = memchr::memmem::find(declaration, NAME)?;
    let rest = &declaration[name + NAME.len()..];
    let quote = rest.iter().position(|byte| matches!(byte, b'"' | b'\''))?;
    let label = &rest[quote + 1..];
    let label = &label[..label.iter().position(|byte| *byte == rest[quote])?];
    let at = "<?xml".len() + name + NAME.len() + quote + 1;
    Some(DeclaredCharset::new(label, at))
}
