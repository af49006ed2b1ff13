//! Profile `whatwg`: a reference as a browser reads it. In: text, base, the document's charset. Out: the `href`, or the
//! fault nearest to why there is none. Refuses bytes that are not UTF-8, where a browser would put U+FFFD.

use crate::iri::{Changes, Component, Fault, FaultKind, Flags, QueryCharset};

/// The `href` of `text`.
#[cfg(feature = "whatwg")]
pub(super) fn href(text: &[u8], base: Option<&[u8]>, query: Option<QueryCharset>) -> Result<(String, Flags), Fault> {
    let text = utf8(text)?;
    if text.is_empty() && base.is_none() {
        return Err(Fault::new(FaultKind::Empty, Component::Reference, 0));
    }
    let base = base.map(utf8).transpose().map_err(|fault| Fault { kind: FaultKind::Base, ..fault })?;
    let href = crate::iri::whatwg_href(text, base, query)?;
    let has_unmappable = query.is_some_and(|query| matches!(crate::iri::encode_query(text, query), Ok((_, true))));
    Ok((href, if has_unmappable { Flags::QUERY_CHARSET } else { Flags::NONE }))
}

/// Without the URL Standard's parser there is no profile of that name, see [`super::Canonicalizer::new`].
#[cfg(not(feature = "whatwg"))]
pub(super) fn href(text: &[u8], _: Option<&[u8]>, _: Option<QueryCharset>) -> Result<(String, Flags), Fault> {
    utf8(text).and(Err(Fault::new(FaultKind::Relative, Component::Reference, 0)))
}

fn utf8(text: &[u8]) -> Result<&str, Fault> {
    let at = |error: std::str::Utf8Error| Fault::new(FaultKind::NotUtf8, Component::Reference, error.valid_up_to());
    std::str::from_utf8(text).map_err(at)
}

/// Appends the `href`, without its fragment if that is to be dropped; what changed by it.
pub(super) fn write_href(href: &[u8], drop_fragment: bool, out: &mut Vec<u8>) -> Changes {
    let end = memchr::memchr(b'#', href).filter(|_| drop_fragment);
    out.extend_from_slice(&href[..end.unwrap_or(href.len())]);
    if end.is_some() { Changes::FRAGMENT } else { Changes::NONE }
}
