//! Right-to-left IRIs, RFC 3987 section 4 and UAX #9. In: a reference as text, in logical order. Out: what its components
//! violate (4.2), its visual order, its display form (4.1). Percent-escapes are the characters they are written with
//! (4.4, example 9). Refuses nothing but a display form whose embedding the text itself would end.

use std::borrow::Cow;
use std::ops::Range;

use unicode_bidi::{BidiClass, BidiInfo, Level, bidi_class};

use super::class::is_any_bidi_control;
use super::parts::Parts;
use super::{Component, Fault, FaultKind};

/// Whose restrictions and whose visual order apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BidiRules {
    /// RFC 3987 section 4: UAX #9 over the whole IRI; numbers may stand inside a right-to-left component.
    #[default]
    Rfc3987,
    /// draft-duerst-iri-01 sections 4.1 and 4.2: components and the characters between them stand strictly from left to
    /// right, as if between LRMs; a right-to-left component has no other characters.
    Duerst01,
}

impl BidiRules {
    /// The rules that a profile of that name declares; `None` if it has no section on right-to-left IRIs that is ours.
    pub fn for_profile(profile: &str) -> Option<BidiRules> {
        match profile {
            "rfc3987" | "weber-00" => Some(BidiRules::Rfc3987),
            "duerst-01" => Some(BidiRules::Duerst01),
            _ => None,
        }
    }
}

/// A component for the purposes of section 4.2: the grammar's own, and the smaller ones the section suggests.
///
/// It leaves open where a segment's extensions and a query's names and values begin. Ours: each `.` of a segment begins
/// an extension (4.4, examples 4 and 5, pin the last one); `&` and `;` part pairs of a query, the first `=` of a pair its
/// name from its value, and every further `=` one value from the next. A host that is an IP-literal is one label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BidiPart {
    /// `iuserinfo`.
    Userinfo,
    /// A label of `ireg-name`, as RFC 3490 reads it: its other full stops part labels too.
    Label,
    /// `isegment`, up to its first `.`.
    Segment,
    /// What follows a `.` of a segment.
    Extension,
    /// A parameter's name, in a query.
    Name,
    /// A parameter's value, in a query.
    Value,
    /// `ifragment`.
    Fragment,
}

impl BidiPart {
    /// The name shown to people.
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

/// What a component violates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BidiViolation {
    /// A bidirectional formatting character (section 4.1).
    Control,
    /// Both right-to-left and left-to-right characters (section 4.2, restriction 1).
    Mixed,
    /// Right-to-left characters, but not at the start or not at the end (section 4.2, restriction 2).
    Edge,
    /// Right-to-left characters and others (draft-duerst-iri-01 section 4.1, restriction 3).
    Other,
}

impl BidiViolation {
    /// The name shown to people.
    pub const fn name(self) -> &'static str {
        match self {
            BidiViolation::Control => "bidi-control",
            BidiViolation::Mixed => "bidi-mixed",
            BidiViolation::Edge => "bidi-edge",
            BidiViolation::Other => "bidi-other",
        }
    }

    /// One sentence for a person, with the section that asks for it.
    pub const fn meaning(self) -> &'static str {
        match self {
            BidiViolation::Control => {
                "IRIs must not contain bidirectional formatting characters (RFC 3987 section 4.1)"
            }
            BidiViolation::Mixed => {
                "a component should not use both right-to-left and left-to-right characters (RFC 3987 section 4.2, 1)"
            }
            BidiViolation::Edge => {
                "a component that uses right-to-left characters should start and end with them (RFC 3987 section 4.2, 2)"
            }
            BidiViolation::Other => {
                "a component that uses right-to-left characters must not use others (draft-duerst-iri-01 section 4.1)"
            }
        }
    }
}

/// A component that violates a restriction. Offsets are bytes into the reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BidiProblem {
    /// What is violated.
    pub violation: BidiViolation,
    /// By what kind of component.
    pub part: BidiPart,
    /// Where that component stands.
    pub range: Range<usize>,
    /// First byte of the character that violates it.
    pub at: usize,
}

/// A character that has an inherent right-to-left direction: class R or AL of UAX #9.
fn is_rtl(class: BidiClass) -> bool {
    matches!(class, BidiClass::R | BidiClass::AL)
}

/// The reference has a right-to-left character: it is a Bidi IRI (RFC 3987 section 4).
///
/// ```
/// assert!(irikey::iri::is_bidi("http://example.org/א"));
/// assert!(!irikey::iri::is_bidi("http://example.org/é"));
/// ```
pub fn is_bidi(text: &str) -> bool {
    !text.is_ascii() && text.chars().any(|c| !c.is_ascii() && is_rtl(bidi_class(c)))
}

/// Section 4.2: what the components of `text` violate, in the order in which they stand; nothing if it is a
/// well-structured Bidi IRI or none. A component may violate two restrictions. A combining mark has the direction of
/// the character before it (UAX #9, W1), so that words which end in a vowel sign end in a right-to-left character.
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
    if text.is_ascii() {
        return problems;
    }
    for (part, range) in bidi_parts(text) {
        let mut report = |violation, at: Option<usize>| {
            let found = at.map(|at| BidiProblem { violation, part, range: range.clone(), at: range.start + at });
            problems.extend(found);
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

/// The characters of a component: offset and class, combining marks with that of the character before them (UAX #9, W1).
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

fn find_class(classes: &[(usize, BidiClass)], is_wanted: impl Fn(BidiClass) -> bool) -> Option<usize> {
    classes.iter().find(|&&(_, class)| is_wanted(class)).map(|&(at, _)| at)
}

/// Restriction 1: the first character of the direction that the component does not begin with.
fn find_other_direction(classes: &[(usize, BidiClass)]) -> Option<usize> {
    let rtl_at = find_class(classes, is_rtl)?;
    let ltr_at = find_class(classes, |class| class == BidiClass::L)?;
    Some(rtl_at.max(ltr_at))
}

/// Restriction 2: the first character if it is not right-to-left, else the last.
fn find_edge(classes: &[(usize, BidiClass)]) -> Option<usize> {
    let edges = [classes.first()?, classes.last()?];
    edges.into_iter().find(|&&(_, class)| !is_rtl(class)).map(|&(at, _)| at)
}

/// The components of section 4.2, in the order in which they stand; the characters between them are delimiters.
fn bidi_parts(text: &str) -> Vec<(BidiPart, Range<usize>)> {
    let mut found = Vec::new();
    let parts = Parts::split(text.as_bytes());
    if let Some(it) = parts.authority {
        let (at, host_at, host_end) = (it.at as usize, it.host_at as usize, it.host_end as usize);
        if host_at > at {
            found.push((BidiPart::Userinfo, at..host_at - 1));
        }
        let is_literal = text[host_at..host_end].starts_with('[');
        let is_stop = |c| !is_literal && is_label_stop(c);
        found.extend(split(text, host_at..host_end, is_stop).into_iter().map(|range| (BidiPart::Label, range)));
    }
    for segment in split(text, parts.path_at as usize..parts.path_end as usize, |c| c == '/') {
        push_first_and_rest(text, segment, '.', [BidiPart::Segment, BidiPart::Extension], &mut found);
    }
    if let Some(query_at) = parts.query_at {
        for pair in split(text, query_at as usize..parts.query_end as usize, |c| matches!(c, '&' | ';')) {
            push_first_and_rest(text, pair, '=', [BidiPart::Name, BidiPart::Value], &mut found);
        }
    }
    if let Some(fragment_at) = parts.fragment_at {
        found.push((BidiPart::Fragment, fragment_at as usize..text.len()));
    }
    found
}

/// The full stops that RFC 3490 section 3.1 knows; UTS 46 maps them to the first.
fn is_label_stop(c: char) -> bool {
    matches!(c, '.' | '\u{3002}' | '\u{FF0E}' | '\u{FF61}')
}

/// The pieces of `text[range]` between the characters that `is_delimiter` finds; at least one, if an empty one.
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

fn push_first_and_rest(
    text: &str,
    range: Range<usize>,
    delimiter: char,
    [first, rest]: [BidiPart; 2],
    found: &mut Vec<(BidiPart, Range<usize>)>,
) {
    let pieces = split(text, range, |c| c == delimiter);
    found.extend(pieces.into_iter().enumerate().map(|(nth, piece)| (if nth == 0 { first } else { rest }, piece)));
}

/// The characters of `text` in the order in which they are seen from left to right (UAX #9 inside a left-to-right
/// embedding). The same characters: brackets are not exchanged for their mirrors, which is a matter of glyphs (L4).
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

/// UAX #9 in paragraphs of level 0. An embedding by LRE inside a left-to-right paragraph resolves alike: sos and eos are
/// L in both. Paragraphs are parted here (P1), since the crate walks all levels of the text for each of them.
fn reorder(text: &str) -> String {
    let reorder_paragraph = |paragraph| {
        let info = BidiInfo::new(paragraph, Some(Level::ltr()));
        let lines = info.paragraphs.iter().map(|line| info.reorder_line(line, line.range.clone()));
        lines.collect::<String>()
    };
    text.split_inclusive(|c| bidi_class(c) == BidiClass::B).map(reorder_paragraph).collect()
}

/// Section 4.1: a Bidi IRI between LRE and PDF, so that any text it is put into shows it in left-to-right embedding.
/// An IRI without right-to-left characters is not one and stays as it is.
///
/// # Errors
/// The first bidirectional formatting character, those that Unicode added later included: section 4.1 bans them, and
/// they would end the embedding or change what is seen in it.
///
/// ```
/// use irikey::iri::bidi_display;
/// assert_eq!(bidi_display("http://example.org/א").unwrap(), "\u{202A}http://example.org/א\u{202C}");
/// assert_eq!(bidi_display("http://example.org/a").unwrap(), "http://example.org/a");
/// assert_eq!(bidi_display("http://example.org/\u{202E}a").unwrap_err().at, 19);
/// ```
pub fn bidi_display(text: &str) -> Result<Cow<'_, str>, Fault> {
    if text.is_ascii() {
        return Ok(Cow::Borrowed(text));
    }
    super::check_bidi_controls(text)?;
    if let Some(at) = text.find(is_any_bidi_control) {
        return Err(Fault::new(FaultKind::BidiControl, Component::Reference, at));
    }
    Ok(if is_bidi(text) { Cow::Owned(format!("\u{202A}{text}\u{202C}")) } else { Cow::Borrowed(text) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_name_component_and_offset() {
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
    fn many_paragraphs_take_no_time_to_speak_of() {
        let text = "א\n".repeat(100_000);
        assert_eq!(bidi_visual(&text, BidiRules::Rfc3987), text);
    }
}
