//! Preprocessing of fields that contain references: draft-weber-iri-guidelines-00 sections 4 and 7.
//!
//! A field is, for example, the value of an HTML attribute. [`PreprocessOptions`] select the steps; by default there
//! are none: character references, white space around and inside, backslashes. Character references are replaced once.
//! A reference to a character that does not exist is a fault and never becomes U+FFFD.

use std::borrow::Cow;
use std::ops::Range;

use bstr::ByteSlice;

use super::fault::{Component, Fault, FaultKind};
use super::flags::Flags;
use crate::encoding::Charset;
use crate::kernel::ByteSet;

/// The character references that are replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CharacterReferences {
    /// None.
    #[default]
    Kept,
    /// Those of XML: numbers, and the five names that need no declaration (XML 1.0 section 4.6).
    Xml,
    /// Those of HTML attributes: numbers and all names, some of them also without `;` (HTML section 13.2.5.73).
    Html,
}

/// What happens to spaces inside the field (section 4.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Spaces {
    /// They stay.
    #[default]
    Kept,
    /// Runs of U+0020 separate references.
    Split,
    /// Each U+0020 becomes `%20`.
    Encoded,
    /// White space is removed.
    Removed,
}

/// What happens to backslashes (section 7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Backslashes {
    /// They stay; the mapping rejects or encodes them.
    #[default]
    Kept,
    /// Before the query and the fragment they become `/`, as in browsers; after that they are data and stay.
    Slash,
    /// They become `%5C` everywhere.
    Encoded,
}

/// The steps that are applied to a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PreprocessOptions {
    /// Section 4.4.
    pub character_references: CharacterReferences,
    /// Section 4.1: U+0020, U+000D, U+000A and U+0009 are removed at both ends.
    pub is_trimmed: bool,
    /// Section 4.2.
    pub spaces: Spaces,
    /// Section 7.
    pub backslashes: Backslashes,
}

impl PreprocessOptions {
    /// Returns true if no step is selected.
    pub(crate) fn is_nothing(&self) -> bool {
        *self == PreprocessOptions::default()
    }
}

/// The white space of section 4.1; other white space of Unicode is not included.
const WHITE_SPACE: ByteSet = ByteSet::of(b" \r\n\t");

/// Returns the references in `field`: one, or with [`Spaces::Split`] any number. Character references are replaced
/// before white space is handled, as in a browser.
///
/// # Errors
/// A character reference to a character that does not exist; `at` is an offset into `field`.
///
/// ```
/// use irikey::iri::{CharacterReferences, PreprocessOptions, Spaces, preprocess};
/// let options = PreprocessOptions {
///     character_references: CharacterReferences::Html,
///     is_trimmed: true,
///     spaces: Spaces::Split,
///     ..PreprocessOptions::default()
/// };
/// assert_eq!(preprocess(" http://a/ros&eacute;  /b?x&amp;y\n", &options).unwrap(), ["http://a/rosé", "/b?x&y"]);
/// ```
pub fn preprocess(field: &str, options: &PreprocessOptions) -> Result<Vec<String>, Fault> {
    let is_split = options.spaces == Spaces::Split;
    let ranges =
        if is_split { split_field(field.as_bytes(), options) } else { std::iter::once(0..field.len()).collect() };
    let mut references = Vec::with_capacity(ranges.len());
    for range in ranges {
        let (reference, _) = repair(&field.as_bytes()[range.clone()], options)
            .map_err(|fault| Fault { at: fault.at + range.start as u32, ..fault })?;
        references.push(String::from_utf8_lossy(&reference).into_owned());
    }
    references.retain(|reference| !is_split || !reference.is_empty());
    Ok(references)
}

/// Splits `field` at U+0020, written as a space or as a character reference, and returns the ranges of the references.
/// Call [`repair`] for the text of each reference.
///
/// ```
/// use irikey::iri::{CharacterReferences, PreprocessOptions, split_field};
/// let options = PreprocessOptions { character_references: CharacterReferences::Xml, ..PreprocessOptions::default() };
/// assert_eq!(split_field(b" /a&#32;/b&amp;c  /d", &options), [1..3, 8..16, 18..20]);
/// ```
pub fn split_field(field: &[u8], options: &PreprocessOptions) -> Vec<Range<usize>> {
    references_in(field, options).collect()
}

/// The ranges that [`split_field`] returns, one after the other.
pub(crate) fn references_in(field: &[u8], options: &PreprocessOptions) -> impl Iterator<Item = Range<usize>> {
    let PreprocessOptions { character_references, is_trimmed, .. } = *options;
    let is_space = move |&byte: &u8| byte == b' ' || is_trimmed && WHITE_SPACE.contains(byte);
    let space = move |at| Some((at, space_len(&field[at..], character_references)?));
    let spaces = memchr::memchr2_iter(b' ', b'&', field).filter_map(space);
    let mut start = 0;
    let ranges = spaces.chain([(field.len(), 0)]).map(move |(at, len)| std::mem::replace(&mut start, at + len)..at);
    ranges.filter(move |range| !field[range.clone()].iter().all(is_space))
}

/// Length of the U+0020 at the start of `text`, which is a space or `&`.
fn space_len(text: &[u8], references: CharacterReferences) -> Option<usize> {
    if text[0] == b' ' {
        return Some(1);
    }
    if references == CharacterReferences::Kept {
        return None;
    }
    match find_reference(text, references) {
        Ok(Some((len, character))) if character == " " => Some(len),
        _ => None,
    }
}

/// A step of [`repair`]. It returns the new text, or `None` if the text stays.
type RepairStep = fn(&[u8], &PreprocessOptions) -> Result<Option<Vec<u8>>, Fault>;

/// Applies all selected steps except splitting to one reference. Returns the text and a flag for each step that changed
/// it. Bytes that are not UTF-8 stay.
///
/// # Errors
/// As [`preprocess`].
pub fn repair<'a>(reference: &'a [u8], options: &PreprocessOptions) -> Result<(Cow<'a, [u8]>, Flags), Fault> {
    let steps: [(Flags, RepairStep); 4] = [
        (Flags::CHARACTER_REFERENCE, |text, options| replace_references(text, options.character_references)),
        (Flags::TRIMMED, |text, options| Ok(trim(text, options.is_trimmed))),
        (Flags::INNER_SPACE, |text, options| Ok(replace_spaces(text, options.spaces))),
        (Flags::BACKSLASH, |text, options| Ok(replace_backslashes(text, options.backslashes))),
    ];
    let mut repaired = (Cow::from(reference), Flags::NONE);
    for (flag, step) in steps {
        if let Some(text) = step(&repaired.0, options)? {
            repaired = (text.into(), repaired.1 | flag);
        }
    }
    Ok(repaired)
}

/// Section 4.1.
fn trim(text: &[u8], is_trimmed: bool) -> Option<Vec<u8>> {
    let trimmed = trimmed_range(text);
    (is_trimmed && trimmed.len() < text.len()).then(|| text[trimmed].to_vec())
}

/// The range of `text` without white space at both ends (section 4.1).
pub(crate) fn trimmed_range(text: &[u8]) -> Range<usize> {
    let inner = |byte: &u8| !WHITE_SPACE.contains(*byte);
    let start = text.iter().position(inner).unwrap_or(text.len());
    start..text.iter().rposition(inner).map_or(start, |last| last + 1)
}

/// Section 4.2.
fn replace_spaces(text: &[u8], spaces: Spaces) -> Option<Vec<u8>> {
    match spaces {
        Spaces::Kept | Spaces::Split => None,
        Spaces::Encoded => text.contains(&b' ').then(|| text.replace(" ", "%20")),
        Spaces::Removed => {
            let kept = |text: &[u8]| text.iter().copied().filter(|&byte| !WHITE_SPACE.contains(byte)).collect();
            text.iter().any(|&byte| WHITE_SPACE.contains(byte)).then(|| kept(text))
        }
    }
}

/// Section 7.
fn replace_backslashes(text: &[u8], backslashes: Backslashes) -> Option<Vec<u8>> {
    match backslashes {
        Backslashes::Kept => None,
        Backslashes::Encoded => text.contains(&b'\\').then(|| text.replace("\\", "%5C")),
        Backslashes::Slash => {
            let hierarchy_end = memchr::memchr2(b'?', b'#', text).unwrap_or(text.len());
            let (hierarchy, rest) = text.split_at(hierarchy_end);
            hierarchy.contains(&b'\\').then(|| [&hierarchy.replace("\\", "/")[..], rest].concat())
        }
    }
}

/// Section 4.4: replaces each character reference by its character, once. Text that is not a valid reference stays.
fn replace_references(field: &[u8], references: CharacterReferences) -> Result<Option<Vec<u8>>, Fault> {
    if references == CharacterReferences::Kept {
        return Ok(None);
    }
    let mut out = Vec::new();
    let mut copied = 0;
    for at in memchr::memchr_iter(b'&', field) {
        let Some((len, text)) = find_reference(&field[at..], references).map_err(|()| invalid_character(at))? else {
            continue;
        };
        out.extend_from_slice(&field[copied..at]);
        out.extend_from_slice(text.as_bytes());
        copied = at + len;
    }
    out.extend_from_slice(&field[copied..]);
    Ok((copied > 0).then_some(out))
}

fn invalid_character(at: usize) -> Fault {
    Fault::new(FaultKind::Character, Component::Reference, at)
}

/// Length and replacement of the character reference at the start of `text`, which begins with `&`.
fn find_reference(text: &[u8], references: CharacterReferences) -> Result<Option<(usize, Cow<'static, str>)>, ()> {
    if text.get(1) != Some(&b'#') {
        return Ok(match references {
            CharacterReferences::Xml => find_xml_name(text),
            _ => find_html_name(text),
        });
    }
    let Some((digits, radix)) = find_digits(text, references) else { return Ok(None) };
    let is_ended = text.get(digits.end) == Some(&b';');
    if !is_ended && references == CharacterReferences::Xml {
        return Ok(None);
    }
    let len = digits.end + usize::from(is_ended);
    let code = number(&text[digits], radix).ok_or(())?;
    let character = match references {
        CharacterReferences::Xml => char::from_u32(code).filter(|&c| is_xml_char(c)),
        _ => html_character(code),
    };
    Ok(Some((len, character.ok_or(())?.to_string().into())))
}

/// The value of `digits`; `None` if it exceeds `u32`. Any number of leading zeros is allowed.
fn number(digits: &[u8], radix: u32) -> Option<u32> {
    digits
        .iter()
        .try_fold(0u32, |number, &digit| number.checked_mul(radix)?.checked_add(char::from(digit).to_digit(radix)?))
}

/// Range of the digits of a numeric reference, and their radix.
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

/// HTML section 13.2.5.80: the numbers of C1 controls mean the characters of windows-1252.
fn html_character(code: u32) -> Option<char> {
    match code {
        0 => None,
        0x80..=0x9F => Charset::named("windows-1252")?.decode(&[code as u8]).ok()?.chars().next(),
        _ => char::from_u32(code),
    }
}

fn find_xml_name(text: &[u8]) -> Option<(usize, Cow<'static, str>)> {
    const NAMES: [(&str, &str); 5] = [("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'")];
    let (name, character) = NAMES.into_iter().find(|(name, _)| text.starts_with(name.as_bytes()))?;
    Some((name.len(), character.into()))
}

/// Finds a name with `;`, or a name that is valid without `;` and is followed by neither `=` nor a letter or digit.
/// That is the rule for attributes: `?a=1&copy=2` keeps its parameter.
fn find_html_name(bytes: &[u8]) -> Option<(usize, Cow<'static, str>)> {
    let alphanumeric_len = bytes[1..].iter().take(MAX_NAME_LEN).take_while(|byte| byte.is_ascii_alphanumeric()).count();
    let end = 1 + alphanumeric_len;
    let len = match bytes.get(end) {
        Some(b';') => end + 1,
        Some(b'=') => return None,
        _ => end,
    };
    let meaning = htmlize::ENTITIES.get(&bytes[..len])?;
    Some((len, String::from_utf8_lossy(meaning).into_owned().into()))
}

/// Length of the longest name, `CounterClockwiseContourIntegral`.
const MAX_NAME_LEN: usize = 31;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn replaced(field: &str, references: CharacterReferences) -> Result<String, u32> {
        let replaced = replace_references(field.as_bytes(), references).map_err(|fault| fault.at)?;
        Ok(replaced.map_or(field.to_string(), |text| String::from_utf8(text).unwrap()))
    }

    #[test]
    fn text_without_white_space_around_it_is_not_trimmed() {
        for (text, trimmed) in [("a b", None), ("", None), (" a b\t", Some("a b")), ("\r\n", Some(""))] {
            assert_eq!(trim(text.as_bytes(), true).as_deref(), trimmed.map(str::as_bytes), "{text:?}");
            assert_eq!(trim(text.as_bytes(), false), None, "{text:?}");
        }
    }

    #[test]
    fn html_references_are_replaced_as_in_attributes() {
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
    fn xml_references_are_replaced() {
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
    fn references_to_invalid_characters_are_faults() {
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
    fn backslashes_in_queries_stay() {
        let replaced = |text: &str, backslashes| replace_backslashes(text.as_bytes(), backslashes);
        assert_eq!(replaced(r"http:\\h\a?b\c#\", Backslashes::Slash).unwrap(), br"http://h/a?b\c#\");
        assert_eq!(replaced(r"/a?\", Backslashes::Slash), None);
        assert_eq!(replaced(r"\a?\", Backslashes::Encoded).unwrap(), b"%5Ca?%5C");
    }

    proptest! {
        #[test]
        fn splitting_and_then_repairing_equals_repairing_and_then_splitting(
            field in "(&|&#32;?|&#9;|&#0;|&copy;?|#|x|[0-9]|[a-z]|;|=| |\t|\\?|\\\\|\\PC){0,20}",
            html in any::<bool>(),
        ) {
            let references = if html { CharacterReferences::Html } else { CharacterReferences::Xml };
            let options = PreprocessOptions {
                character_references: references,
                is_trimmed: true,
                spaces: Spaces::Split,
                backslashes: Backslashes::Slash,
            };
            let expected = replaced(&field, references).map(|text| {
                let trimmed = text.split(' ').map(|reference| reference.trim_matches(['\t', '\r', '\n']));
                let with_slashes = |reference: &str| {
                    let hierarchy_end = reference.find(['?', '#']).unwrap_or(reference.len());
                    reference[..hierarchy_end].replace('\\', "/") + &reference[hierarchy_end..]
                };
                trimmed.filter(|reference| !reference.is_empty()).map(with_slashes).collect::<Vec<_>>()
            });
            prop_assert_eq!(preprocess(&field, &options).map_err(|fault| fault.at), expected);
        }
    }
}
