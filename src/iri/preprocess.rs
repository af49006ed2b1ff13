//! From a field of a document to references, draft-weber-iri-guidelines-00 sections 4 and 7: text in, references out.
//! What is done is chosen, nothing by default: character references, white space around and inside, backslashes.
//! Refuses references to characters that do not exist; never writes U+FFFD for them. Decodes once.

use std::borrow::Cow;
use std::ops::Range;

use super::{Component, Fault, FaultKind};
use crate::encoding::Charset;

/// Whose character references are replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CharacterReferences {
    /// Nobody's.
    #[default]
    Kept,
    /// XML's: numbers, and the five names that need no declaration (XML 1.0 section 4.6).
    Xml,
    /// HTML's in attributes: numbers, all names, old ones also without their `;` (HTML section 13.2.5.73).
    Html,
}

/// What becomes of spaces inside the field (section 4.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spaces {
    /// They stay.
    #[default]
    Kept,
    /// Runs of U+0020 separate references.
    Split,
    /// Each U+0020 becomes `%20`.
    Encoded,
    /// White space is taken out.
    Removed,
}

/// What becomes of backslashes (section 7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backslashes {
    /// They stay, for the mapping to refuse or to encode.
    #[default]
    Kept,
    /// `/`, as browsers read them: before the query and the fragment, in which they are data.
    Slash,
    /// `%5C`, everywhere.
    Encoded,
}

/// What is done to a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Preprocess {
    /// Section 4.4.
    pub character_references: CharacterReferences,
    /// Section 4.1: U+0020, U+000D, U+000A and U+0009 at both ends are taken off.
    pub is_trimmed: bool,
    /// Section 4.2.
    pub spaces: Spaces,
    /// Section 7.
    pub backslashes: Backslashes,
}

/// The white space of section 4.1, and none of Unicode's other.
const WHITE_SPACE: [char; 4] = [' ', '\r', '\n', '\t'];

/// The references that `field` holds: one, or with [`Spaces::Split`] any number. The order is that of a browser, whose
/// markup parser has replaced character references before anybody looks for white space.
///
/// # Errors
/// A character reference to no character; its offset is one into `field`.
///
/// ```
/// use irikey::iri::{CharacterReferences, Preprocess, Spaces, preprocess};
/// let choices = Preprocess {
///     character_references: CharacterReferences::Html,
///     is_trimmed: true,
///     spaces: Spaces::Split,
///     ..Preprocess::default()
/// };
/// assert_eq!(preprocess(" http://a/ros&eacute;  /b?x&amp;y\n", &choices).unwrap(), ["http://a/rosé", "/b?x&y"]);
/// ```
pub fn preprocess(field: &str, choices: &Preprocess) -> Result<Vec<String>, Fault> {
    let replaced = replace_references(field, choices.character_references)?;
    let text = if choices.is_trimmed { replaced.trim_matches(WHITE_SPACE) } else { &replaced };
    let references: Vec<Cow<str>> = match choices.spaces {
        Spaces::Kept => vec![text.into()],
        Spaces::Split => text.split(' ').filter(|reference| !reference.is_empty()).map(Cow::from).collect(),
        Spaces::Encoded => vec![text.replace(' ', "%20").into()],
        Spaces::Removed => vec![text.replace(WHITE_SPACE, "").into()],
    };
    Ok(references.into_iter().map(|reference| replace_backslashes(&reference, choices.backslashes)).collect())
}

/// Section 7.
fn replace_backslashes(reference: &str, backslashes: Backslashes) -> String {
    match backslashes {
        Backslashes::Kept => reference.to_string(),
        Backslashes::Encoded => reference.replace('\\', "%5C"),
        Backslashes::Slash => {
            let hierarchy_end = reference.find(['?', '#']).unwrap_or(reference.len());
            let (hierarchy, rest) = reference.split_at(hierarchy_end);
            hierarchy.replace('\\', "/") + rest
        }
    }
}

/// Section 4.4: each reference by its character, once; what looks like one and is none stays.
fn replace_references(field: &str, references: CharacterReferences) -> Result<Cow<'_, str>, Fault> {
    let bytes = field.as_bytes();
    if references == CharacterReferences::Kept || memchr::memchr(b'&', bytes).is_none() {
        return Ok(field.into());
    }
    let mut out = String::with_capacity(field.len());
    let mut copied = 0;
    for at in memchr::memchr_iter(b'&', bytes) {
        // An ampersand inside a name does not happen; one inside text already copied does not either.
        let Some((len, text)) = find_reference(&field[at..], references).map_err(|()| no_character(at))? else {
            continue;
        };
        out.push_str(&field[copied..at]);
        out.push_str(&text);
        copied = at + len;
    }
    out.push_str(&field[copied..]);
    Ok(out.into())
}

fn no_character(at: usize) -> Fault {
    Fault::new(FaultKind::Character, Component::Reference, at)
}

/// Length and meaning of the character reference that `text`, which begins with `&`, begins with.
fn find_reference(text: &str, references: CharacterReferences) -> Result<Option<(usize, Cow<'static, str>)>, ()> {
    if text.as_bytes().get(1) != Some(&b'#') {
        return Ok(match references {
            CharacterReferences::Xml => find_xml_name(text),
            _ => find_html_name(text),
        });
    }
    let Some((digits, radix)) = find_digits(text.as_bytes(), references) else { return Ok(None) };
    let is_ended = text.as_bytes().get(digits.end) == Some(&b';');
    if !is_ended && references == CharacterReferences::Xml {
        return Ok(None);
    }
    let len = digits.end + usize::from(is_ended);
    // Leading zeros are as many as their writer likes; a number too long for u32 is no character's.
    let code = u32::from_str_radix(&text[digits], radix).map_err(|_| ())?;
    let character = match references {
        CharacterReferences::Xml => char::from_u32(code).filter(|&c| is_xml_char(c)),
        _ => html_character(code),
    };
    Ok(Some((len, character.ok_or(())?.to_string().into())))
}

/// Where the digits of a numeric reference stand, and their base.
fn find_digits(text: &[u8], references: CharacterReferences) -> Option<(Range<usize>, u32)> {
    let (start, radix) = match text.get(2)? {
        b'x' => (3, 16),
        b'X' if references == CharacterReferences::Html => (3, 16),
        _ => (2, 10),
    };
    let len = text[start..].iter().take_while(|&&byte| char::from(byte).is_digit(radix)).count();
    (len > 0).then_some((start..start + len, radix))
}

/// `Char`, XML 1.0 section 2.2.
fn is_xml_char(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{FFFD}' | '\u{10000}'..)
}

/// HTML section 13.2.5.80: the numbers of C1 controls mean what the bytes mean in windows-1252.
fn html_character(code: u32) -> Option<char> {
    match code {
        0 => None,
        0x80..=0x9F => Charset::named("windows-1252")?.decode(&[code as u8]).ok()?.chars().next(),
        _ => char::from_u32(code),
    }
}

fn find_xml_name(text: &str) -> Option<(usize, Cow<'static, str>)> {
    const NAMES: [(&str, &str); 5] = [("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'")];
    let (name, character) = NAMES.into_iter().find(|(name, _)| text.starts_with(name))?;
    Some((name.len(), character.into()))
}

/// A name with its `;`, or the longest old name without it that is followed by neither `=` nor a letter or digit: the
/// rule for attributes, by which `?a=1&copy=2` keeps its parameter.
fn find_html_name(text: &str) -> Option<(usize, Cow<'static, str>)> {
    let bytes = text.as_bytes();
    let alphanumeric_len = bytes[1..].iter().take(LONGEST_NAME).take_while(|byte| byte.is_ascii_alphanumeric()).count();
    let end = 1 + alphanumeric_len;
    let len = match bytes.get(end) {
        Some(b';') => end + 1,
        Some(b'=') => return None,
        _ => end,
    };
    let meaning = htmlize::ENTITIES.get(&bytes[..len])?;
    Some((len, String::from_utf8_lossy(meaning).into_owned().into()))
}

/// Letters and digits of the longest name, `CounterClockwiseContourIntegral`.
const LONGEST_NAME: usize = 31;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn replaced(field: &str, references: CharacterReferences) -> Result<String, u32> {
        replace_references(field, references).map(Cow::into_owned).map_err(|fault| fault.at)
    }

    #[test]
    fn html_references() {
        let cases = [
            ("ros&eacute;&#233;&#xe9;&#XE9;", "roséééé"),
            ("?a=1&copy=2&copyx;&b", "?a=1&copy=2&copyx;&b"),
            ("&copy &copy", "© ©"),
            ("&amp;#233;&amp;amp;", "&#233;&amp;"),
            ("&#128;&#x80", "€€"),
            ("&CounterClockwiseContourIntegral;", "∳"),
            ("&NotEqualTilde;", "≂\u{338}"),
            ("&;&#;&#x;&", "&;&#;&#x;&"),
        ];
        for (field, text) in cases {
            assert_eq!(replaced(field, CharacterReferences::Html).as_deref(), Ok(text), "{field}");
        }
    }

    #[test]
    fn xml_references() {
        let cases = [
            ("&#x44F;&#0000000000233;", "яé"),
            ("&lt;&gt;&quot;&apos;&amp;", "<>\"'&"),
            ("&eacute;&#233&#XE9;&amp", "&eacute;&#233&#XE9;&amp"),
            ("&amp;amp;lt;", "&amp;lt;"),
        ];
        for (field, text) in cases {
            assert_eq!(replaced(field, CharacterReferences::Xml).as_deref(), Ok(text), "{field}");
        }
    }

    #[test]
    fn no_character_is_refused_and_not_replaced() {
        for reference in ["&#0;", "&#xD800;", "&#x110000;", "&#99999999999999999999;"] {
            let field = format!("é{reference}");
            for references in [CharacterReferences::Xml, CharacterReferences::Html] {
                assert_eq!(replaced(&field, references), Err(2), "{reference}");
            }
        }
        assert_eq!(replaced("&#1;", CharacterReferences::Xml), Err(0));
        assert_eq!(replaced("&#xFFFF;", CharacterReferences::Xml), Err(0));
    }

    #[test]
    fn backslashes_in_queries_are_data() {
        assert_eq!(replace_backslashes(r"http:\\h\a?b\c#\", Backslashes::Slash), r"http://h/a?b\c#\");
        assert_eq!(replace_backslashes(r"\a?\", Backslashes::Encoded), "%5Ca?%5C");
    }

    proptest! {
        #[test]
        fn any_text_is_answered(field in "(&|#|x|[0-9]|[a-z]|;| |\\\\|\\PC){0,40}", html in any::<bool>()) {
            let references = if html { CharacterReferences::Html } else { CharacterReferences::Xml };
            let choices = Preprocess {
                character_references: references,
                is_trimmed: true,
                spaces: Spaces::Split,
                backslashes: Backslashes::Slash,
            };
            if let Ok(found) = preprocess(&field, &choices) {
                prop_assert!(found.iter().all(|reference| !reference.is_empty() && !reference.contains(' ')));
            }
        }
    }
}
