//! Bidirectional IRIs: RFC 3987 section 4 and UAX #9.
//!
//! All functions take a reference as text in logical order. [`check_bidi`] finds components that violate section 4.2,
//! [`bidi_visual`] returns the visual order, and [`bidi_display`] the form for display (section 4.1). Escapes count as
//! the ASCII characters that they are written with (section 4.4, example 9).

use std::borrow::Cow;
use std::ops::Range;

use unicode_bidi::{BidiClass, BidiInfo, Level, bidi_class};

use super::check::check_controls;
use super::class::is_any_bidi_control;
use super::fault::{Fault, described_enum};
use super::parts::Parts;

/// The specification whose restrictions and visual order apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BidiRules {
    /// RFC 3987 section 4: UAX #9 applies to the whole IRI; a right-to-left component may contain numbers.
    #[default]
    Rfc3987,
    /// draft-duerst-iri-01 sections 4.1 and 4.2: components and the characters between them are displayed strictly from
    /// left to right, as if separated by LRMs; a right-to-left component contains only right-to-left characters.
    Duerst01,
}

/// A component as section 4.2 uses the word: a component of the grammar, or one of the smaller parts that the section
/// suggests.
///
/// The section leaves open where extensions of a segment and names and values of a query begin. irikey decides: each
/// `.` of a segment begins an extension (section 4.4, examples 4 and 5, require that for the last one); `&` and `;`
/// separate the pairs of a query; the first `=` of a pair separates name and value, and every further `=` separates two
/// values. An IP literal is one label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BidiPart {
    /// `iuserinfo`.
    Userinfo,
    /// A label of `ireg-name`. The other full stops of RFC 3490 separate labels too.
    Label,
    /// `isegment`, up to its first `.`.
    Segment,
    /// The part of a segment after a `.`.
    Extension,
    /// The name of a parameter in a query.
    Name,
    /// The value of a parameter in a query.
    Value,
    /// `ifragment`.
    Fragment,
}

impl BidiPart {
    /// The name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            BidiPart::Userinfo => "userinfo",
            BidiPart::Label => "host label",
            BidiPart::Segment => "path segment",
            BidiPart::Extension => "extension",
            BidiPart::Name => "query name",
            BidiPart::Value => "query value",
            BidiPart::Fragment => "fragment",
        }
    }
}

described_enum! {
    /// A rule that a component violates.
    BidiViolation {
        /// A bidirectional formatting character (section 4.1).
        Control "bidi-control" "IRIs must not contain bidirectional formatting characters (RFC 3987 section 4.1)";
        /// Both right-to-left and left-to-right characters (section 4.2, restriction 1).
        Mixed "bidi-mixed" "a component should not use both right-to-left and left-to-right characters (RFC 3987 section 4.2, 1)";
        /// Right-to-left characters, but not at the start or not at the end (section 4.2, restriction 2).
        Edge "bidi-edge" "a component that uses right-to-left characters should start and end with them (RFC 3987 section 4.2, 2)";
        /// Right-to-left characters and others (draft-duerst-iri-01 section 4.1, restriction 3).
        Other "bidi-other" "a component that uses right-to-left characters must not use others (draft-duerst-iri-01 section 4.1)";
    }
}

/// A component that violates a restriction. Offsets are bytes into the reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BidiProblem {
    /// The violated rule.
    pub violation: BidiViolation,
    /// The kind of the component.
    pub part: BidiPart,
    /// The range of the component.
    pub range: Range<usize>,
    /// Offset of the character that violates the rule.
    pub at: usize,
}

/// Returns true for the classes of right-to-left characters: R and AL of UAX #9.
fn is_rtl(class: BidiClass) -> bool {
    matches!(class, BidiClass::R | BidiClass::AL)
}

/// Returns true if the reference is a Bidi IRI: it contains a right-to-left character (RFC 3987 section 4).
///
/// ```
/// assert!(irikey::iri::is_bidi("http://example.org/א"));
/// assert!(!irikey::iri::is_bidi("http://example.org/é"));
/// ```
pub fn is_bidi(text: &str) -> bool {
    !text.is_ascii() && text.chars().any(|c| !c.is_ascii() && is_rtl(bidi_class(c)))
}

/// Returns the violations of section 4.2, in the order of the components; none for a well-structured Bidi IRI and for
/// an IRI without right-to-left characters.
///
/// A component may violate two restrictions. A combining mark has the direction of the character before it (UAX #9,
/// W1), so that a word that ends in a vowel sign ends in a right-to-left character.
///
/// ```
/// use irikey::iri::{BidiPart, BidiRules, BidiViolation, check_bidi};
/// assert!(check_bidi("http://ab.גדה.ij/טי.html", BidiRules::Rfc3987).is_empty());
/// let problems = check_bidi("http://ab/גד1", BidiRules::Rfc3987);
/// assert_eq!((problems[0].violation, problems[0].part), (BidiViolation::Edge, BidiPart::Segment));
/// assert_eq!(problems[0].at, 14);
/// ```
pub fn check_bidi(text: &str, rules: BidiRules) -> Vec<BidiProblem> {
    let mut problems = Vec::new();
    if text.is_ascii() || !text.chars().any(is_in_bidi_block) {
        return problems;
    }
    for (part, range) in bidi_parts(text) {
        let mut report = |violation, at: Option<usize>| {
            let problem = at.map(|at| BidiProblem { violation, part, range: range.clone(), at: range.start + at });
            problems.extend(problem);
        };
        let component = &text[range.clone()];
        report(BidiViolation::Control, component.find(is_any_bidi_control));
        let classes = classes(component);
        if !classes.iter().any(|&(_, class)| is_rtl(class)) {
            continue;
        }
        match rules {
            BidiRules::Rfc3987 => {
                report(BidiViolation::Mixed, find_other_direction(&classes));
                report(BidiViolation::Edge, find_edge(&classes));
            }
            BidiRules::Duerst01 => report(BidiViolation::Other, find_class(&classes, |class| !is_rtl(class))),
        }
    }
    problems
}

/// Returns true for the characters of all blocks that contain right-to-left characters or bidirectional controls. A text without
/// such characters has no violation, and needs no lookup of classes.
const fn is_in_bidi_block(c: char) -> bool {
    matches!(
        c,
        '\u{590}'..='\u{8FF}' | '\u{2000}'..='\u{206F}' | '\u{FB1D}'..='\u{FEFF}' | '\u{10800}'..='\u{10FFF}'
            | '\u{1E800}'..='\u{1EFFF}'
    )
}

/// Offset and class of each character. A combining mark has the class of the character before it (UAX #9, W1).
fn classes(component: &str) -> Vec<(usize, BidiClass)> {
    let mut before = BidiClass::ON;
    let resolve = |(at, c)| {
        let class = bidi_class(c);
        if class != BidiClass::NSM {
            before = class;
        }
        (at, before)
    };
    component.char_indices().map(resolve).collect()
}

fn find_class(classes: &[(usize, BidiClass)], is_match: impl Fn(BidiClass) -> bool) -> Option<usize> {
    classes.iter().find(|&&(_, class)| is_match(class)).map(|&(at, _)| at)
}

/// Restriction 1: finds the first character whose direction differs from that of the characters before it.
fn find_other_direction(classes: &[(usize, BidiClass)]) -> Option<usize> {
    let rtl_at = find_class(classes, is_rtl)?;
    let ltr_at = find_class(classes, |class| class == BidiClass::L)?;
    Some(rtl_at.max(ltr_at))
}

/// Restriction 2: finds the first character if it is not right-to-left, otherwise the last one if that is not.
fn find_edge(classes: &[(usize, BidiClass)]) -> Option<usize> {
    let edges = [classes.first()?, classes.last()?];
    edges.into_iter().find(|&&(_, class)| !is_rtl(class)).map(|&(at, _)| at)
}

/// The components of section 4.2 in order. The characters between them are delimiters.
fn bidi_parts(text: &str) -> Vec<(BidiPart, Range<usize>)> {
    let mut found = Vec::new();
    let parts = Parts::split(text.as_bytes());
    if let Some(authority) = parts.authority {
        let [at, host_at, host_end] = [authority.at, authority.host_at, authority.host_end].map(|at| at as usize);
        if host_at > at {
            found.push((BidiPart::Userinfo, at..host_at - 1));
        }
        let is_literal = text[host_at..host_end].starts_with('[');
        let is_stop = |c| !is_literal && is_label_stop(c);
        found.extend(split(text, host_at..host_end, is_stop).into_iter().map(|range| (BidiPart::Label, range)));
    }
    for segment in split(text, parts.path_at as usize..parts.path_end as usize, |c| c == '/') {
        found.extend(split_parts(text, segment, '.', [BidiPart::Segment, BidiPart::Extension]));
    }
    if let Some(query_at) = parts.query_at {
        for pair in split(text, query_at as usize..parts.query_end as usize, |c| matches!(c, '&' | ';')) {
            found.extend(split_parts(text, pair, '=', [BidiPart::Name, BidiPart::Value]));
        }
    }
    if let Some(fragment_at) = parts.fragment_at {
        found.push((BidiPart::Fragment, fragment_at as usize..text.len()));
    }
    found
}

/// The full stops of RFC 3490 section 3.1; UTS 46 maps them to the first.
fn is_label_stop(c: char) -> bool {
    matches!(c, '.' | '\u{3002}' | '\u{FF0E}' | '\u{FF61}')
}

/// Splits `text[range]` at the characters for which `is_delimiter` returns true. There is at least one piece; pieces
/// may be empty.
fn split(text: &str, range: Range<usize>, is_delimiter: impl Fn(char) -> bool) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let mut start = range.start;
    for (at, delimiter) in text[range.clone()].match_indices(is_delimiter) {
        pieces.push(start..range.start + at);
        start = range.start + at + delimiter.len();
    }
    pieces.push(start..range.end);
    pieces
}

/// Splits `text[range]` at `delimiter`. The first piece is a part of kind `first`, all others are of kind `rest`.
fn split_parts(
    text: &str,
    range: Range<usize>,
    delimiter: char,
    [first, rest]: [BidiPart; 2],
) -> impl Iterator<Item = (BidiPart, Range<usize>)> {
    let pieces = split(text, range, |c| c == delimiter);
    pieces.into_iter().enumerate().map(move |(nth, piece)| (if nth == 0 { first } else { rest }, piece))
}

/// Returns the characters of `text` in visual order, from left to right (UAX #9 inside a left-to-right embedding).
/// Mirrored characters such as brackets are not replaced, because mirroring is a matter of glyphs (L4).
///
/// ```
/// use irikey::iri::{BidiRules, bidi_visual};
/// assert_eq!(bidi_visual("http://ab.גדה.וזח/ij", BidiRules::Rfc3987), "http://ab.חזו.הדג/ij");
/// assert_eq!(bidi_visual("http://ab.גדה.וזח/ij", BidiRules::Duerst01), "http://ab.הדג.חזו/ij");
/// ```
pub fn bidi_visual(text: &str, rules: BidiRules) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    match rules {
        BidiRules::Rfc3987 => Cow::Owned(reorder(text)),
        BidiRules::Duerst01 => {
            let mut visual = String::with_capacity(text.len());
            let mut end = 0;
            for (_, range) in bidi_parts(text) {
                visual.push_str(&text[end..range.start]);
                visual.push_str(&reorder(&text[range.clone()]));
                end = range.end;
            }
            visual.push_str(&text[end..]);
            Cow::Owned(visual)
        }
    }
}

/// Applies UAX #9 with paragraph level 0. An LRE embedding inside a left-to-right paragraph gives the same result,
/// because sos and eos are L in both. Paragraphs are split here (P1) because the crate visits all levels of the text
/// for each paragraph, which would be quadratic.
fn reorder(text: &str) -> String {
    let reorder_paragraph = |paragraph| {
        let info = BidiInfo::new(paragraph, Some(Level::ltr()));
        let lines = info.paragraphs.iter().map(|line| info.reorder_line(line, line.range.clone()));
        lines.collect::<String>()
    };
    text.split_inclusive(|c| bidi_class(c) == BidiClass::B).map(reorder_paragraph).collect()
}

/// Returns a Bidi IRI between LRE and PDF (section 4.1), so that it is displayed in a left-to-right embedding inside
/// any text. An IRI without right-to-left characters stays as it is.
///
/// # Errors
/// The first bidirectional formatting character, including those that Unicode added later. Section 4.1 forbids them,
/// and they would end the embedding or change the display.
///
/// ```
/// use irikey::iri::bidi_display;
/// assert_eq!(bidi_display("http://example.org/א").unwrap(), "\u{202A}http://example.org/א\u{202C}");
/// assert_eq!(bidi_display("http://example.org/a").unwrap(), "http://example.org/a");
/// assert_eq!(bidi_display("http://example.org/\u{202E}a").unwrap_err().at, 19);
/// assert_eq!(bidi_display("?\u{2067}a").unwrap_err().to_string(),
///     "bidi-control in query at byte 1: IRIs must not contain bidirectional formatting characters");
/// ```
pub fn bidi_display(text: &str) -> Result<Cow<'_, str>, Fault> {
    if text.is_ascii() {
        return Ok(Cow::Borrowed(text));
    }
    check_controls(text, is_any_bidi_control)?;
    Ok(if is_bidi(text) { Cow::Owned(format!("\u{202A}{text}\u{202C}")) } else { Cow::Borrowed(text) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_can_cause_problems_are_in_their_blocks() {
        for c in ('\0'..=char::MAX).filter(|&c| !is_in_bidi_block(c)) {
            assert!(!is_rtl(bidi_class(c)) && !is_any_bidi_control(c), "U+{:04X}", c as u32);
        }
        assert!(!"aé日ア한я".chars().any(is_in_bidi_block));
    }

    #[test]
    fn problems_have_component_and_offset() {
        let found = |text: &str| {
            let problems = check_bidi(text, BidiRules::Rfc3987);
            problems.into_iter().map(|it| (it.violation, it.part, it.range.start, it.at)).collect::<Vec<_>>()
        };
        assert_eq!(
            found("//אa/"),
            [(BidiViolation::Mixed, BidiPart::Label, 2, 4), (BidiViolation::Edge, BidiPart::Label, 2, 4)]
        );
        assert_eq!(found("/b.1א"), [(BidiViolation::Edge, BidiPart::Extension, 3, 3)]);
        assert_eq!(found("?א=ב1"), [(BidiViolation::Edge, BidiPart::Value, 4, 6)]);
        assert_eq!(found("#\u{202E}"), [(BidiViolation::Control, BidiPart::Fragment, 1, 1)]);
    }

    #[test]
    fn reordering_is_linear_in_the_number_of_paragraphs() {
        let text = "א\n".repeat(100_000);
        assert_eq!(bidi_visual(&text, BidiRules::Rfc3987), text);
    }
}
