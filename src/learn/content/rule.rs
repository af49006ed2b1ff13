//! Rules about content: which part of a URL makes no difference. [`ContentRule`] and its text in files.

use super::url_parts::{general_segment, scheme_name};
use super::value_shape::ValueShape;
use std::fmt;

/// The place in a path of a segment that may be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum SegmentPlace {
    /// It is the first segment.
    First,
    /// It is the last segment.
    Last,
}

/// What makes no difference in URLs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ContentRule {
    /// http or https.
    Scheme,
    /// Several slashes instead of one.
    DoubledSlashes,
    /// A slash at the end of the path.
    FinalSlash,
    /// The letter case of the path.
    PathCase,
    /// This last segment, such as `index.html`.
    Document(Vec<u8>),
    /// The path parameter `;name` or `;name=value`.
    PathParameter(Vec<u8>),
    /// The segments `name=value`.
    SegmentParameter(Vec<u8>),
    /// This segment.
    Segment(SegmentPlace, Vec<u8>),
    /// The value of the segment after these, of a shape or any. Segments before it are names, `#` for a number, or `*`.
    SegmentValue(Vec<Vec<u8>>, Option<ValueShape>),
    /// This query parameter, with values of a shape or any, and whether it is there.
    Parameter(Vec<u8>, Option<ValueShape>),
    /// The whole query.
    Query,
    /// The order of query parameters.
    ParameterOrder,
    /// Empty query parameters, and an empty query.
    EmptyParameters,
    /// The fragment.
    Fragment,
    /// The host: its URLs (of one scheme, or of both) name what the same URLs of this origin name.
    SameAs {
        /// The rule is for URLs of this scheme only: https, or http.
        from_https: Option<bool>,
        /// The origin has the scheme https.
        is_https: bool,
        /// The host of the origin.
        host: Vec<u8>,
    },
    /// More general rules do not hold here for this query parameter.
    KeepParameter(Vec<u8>),
}

/// Which paths a rule is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum PathContext {
    /// All.
    #[default]
    Any,
    /// Those that begin with these segments, which have slashes between them.
    Prefix(Vec<u8>),
    /// Those whose last segment ends with a dot and this.
    Extension(Vec<u8>),
}

impl PathContext {
    /// Returns the context with this text.
    pub(crate) fn parse(text: &str) -> Option<PathContext> {
        let are_names = |names: &&str| names.split('/').all(|name| !name.is_empty()) && !names.contains(['?', '#']);
        if text.is_empty() {
            return Some(PathContext::Any);
        }
        if let Some(extension) = text.strip_prefix("*.") {
            let is_extension = |name: &&str| {
                extension_of(format!("x.{name}").as_bytes()) == Some(name.as_bytes()) && !name.contains(['/', '?', '#'])
            };
            return Some(extension).filter(is_extension).map(|name| PathContext::Extension(name.into()));
        }
        let first = text.strip_prefix('/')?.strip_suffix('/').filter(are_names)?;
        Some(PathContext::Prefix(first.into()))
    }

    /// Returns whether the context contains a path.
    #[inline(always)]
    pub(super) fn contains(&self, path: &[u8]) -> bool {
        matches!(self, PathContext::Any) || self.is_narrow_and_contains(path)
    }

    fn is_narrow_and_contains(&self, path: &[u8]) -> bool {
        let path = path.strip_prefix(b"/").unwrap_or(path);
        match self {
            PathContext::Any => true,
            _ if path.is_empty() => false,
            PathContext::Prefix(first) => {
                path.strip_prefix(&first[..]).is_some_and(|rest| matches!(rest, [] | [b'/', ..]))
            }
            PathContext::Extension(extension) => {
                let path = path.strip_suffix(b"/").unwrap_or(path);
                // Each parameter of a URL may ask for this, so the whole of a long segment is not searched: a byte before the
                // dot is enough.
                let end = &path[path.len().saturating_sub(1 + ".".len() + MAX_EXTENSION_LEN)..];
                let last = memchr::memrchr(b'/', end).map_or(end, |at| &end[at + 1..]);
                extension_of(last) == Some(extension)
            }
        }
    }

    /// Returns whether the context contains a path, without regard to letter case.
    pub(super) fn contains_ignoring_case(&self, path: &[u8]) -> bool {
        self.contains(path) || {
            let lower = |bytes: &Vec<u8>| bytes.to_ascii_lowercase();
            let context = match self {
                PathContext::Any => PathContext::Any,
                PathContext::Prefix(first) => PathContext::Prefix(lower(first)),
                PathContext::Extension(extension) => PathContext::Extension(lower(extension)),
            };
            context.contains(&path.to_ascii_lowercase())
        }
    }
}

impl fmt::Display for PathContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathContext::Any => Ok(()),
            PathContext::Prefix(first) => write!(f, "/{}/", text(first)),
            PathContext::Extension(extension) => write!(f, "*.{}", text(extension)),
        }
    }
}

/// Length of the longest extension.
const MAX_EXTENSION_LEN: usize = 5;

/// Returns the extension of a segment: the 1 to [`MAX_EXTENSION_LEN`] bytes after its last dot. `None` if there are fewer or more
/// of them, or if the segment begins with this dot.
pub(super) fn extension_of(segment: &[u8]) -> Option<&[u8]> {
    let at = memchr::memrchr(b'.', segment)?;
    Some(&segment[at + 1..]).filter(|extension| at > 0 && (1..=MAX_EXTENSION_LEN).contains(&extension.len()))
}

/// A rule and the paths that it is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ScopedRule {
    pub(crate) rule: ContentRule,
    pub(crate) context: PathContext,
}

impl From<ContentRule> for ScopedRule {
    fn from(rule: ContentRule) -> ScopedRule {
        ScopedRule { rule, context: PathContext::Any }
    }
}

impl ContentRule {
    /// For each kind of rules: what they are written like, beginning with the name of the kind; and what makes no difference by
    /// them.
    pub(crate) const FORMS: [(&'static str, &'static str); 16] = [
        ("ignore-scheme", "http and https"),
        ("ignore-doubled-slashes", "`//` in the path is `/`"),
        ("ignore-final-slash", "a slash at the end of the path"),
        ("ignore-path-case", "letter case of the path"),
        ("ignore-document NAME", "this last segment, such as `index.html`"),
        ("ignore-path-parameter NAME", "`;NAME` and `;NAME=...` in the path"),
        ("ignore-segment-parameter NAME", "segments `NAME=...` of the path"),
        ("ignore-segment /NAME/...", "the first segment NAME; with `.../NAME`, the last one"),
        (
            "ignore-segment-value /a/#/*",
            "any segment after these: names of letters and `_`, `#` (a number) or `*` (another); with `/a/<hex>`, one of a shape",
        ),
        ("ignore-parameter NAME", "this query parameter; `NAME=<hex>` for values of a shape only"),
        ("ignore-query", "all query parameters"),
        ("ignore-parameter-order", "order of query parameters"),
        ("ignore-empty-parameters", "`?` and `&` without a parameter"),
        ("ignore-fragment", "the fragment"),
        ("same-as ORIGIN", "the host is an alias of ORIGIN; `same-as ORIGIN for http` only for that scheme"),
        ("keep-parameter NAME", "rules of the domain or of all hosts do not hold here for this parameter"),
    ];

    /// Returns the name of the rule's kind.
    pub(crate) fn kind(&self) -> &'static str {
        ContentRule::FORMS[self.kind_number()].0.split(' ').next().unwrap_or_default()
    }

    /// Returns the number of the rule's kind: its place in [`Self::FORMS`].
    pub(super) fn kind_number(&self) -> usize {
        match self {
            ContentRule::Scheme => 0,
            ContentRule::DoubledSlashes => 1,
            ContentRule::FinalSlash => 2,
            ContentRule::PathCase => 3,
            ContentRule::Document(_) => 4,
            ContentRule::PathParameter(_) => 5,
            ContentRule::SegmentParameter(_) => 6,
            ContentRule::Segment(..) => 7,
            ContentRule::SegmentValue(..) => 8,
            ContentRule::Parameter(..) => 9,
            ContentRule::Query => 10,
            ContentRule::ParameterOrder => 11,
            ContentRule::EmptyParameters => 12,
            ContentRule::Fragment => 13,
            ContentRule::SameAs { .. } => 14,
            ContentRule::KeepParameter(_) => 15,
        }
    }

    /// Returns the rule with this text, which is the one that [`fmt::Display`] writes.
    pub(crate) fn parse(text: &str) -> Option<ContentRule> {
        let (kind, argument) = text.split_once(' ').unwrap_or((text, ""));
        let is_free_of = |bytes: &[char]| !argument.is_empty() && !argument.contains(bytes);
        let name = || is_free_of(&[' ', '&', '#']).then(|| argument.as_bytes().to_vec());
        // Paths may contain ampersands.
        let segment = || is_free_of(&[' ', '/', '?', '#']).then(|| argument.as_bytes().to_vec());
        let alone = |rule| argument.is_empty().then_some(rule);
        match kind {
            "ignore-scheme" => alone(ContentRule::Scheme),
            "ignore-doubled-slashes" => alone(ContentRule::DoubledSlashes),
            "ignore-final-slash" => alone(ContentRule::FinalSlash),
            "ignore-path-case" => alone(ContentRule::PathCase),
            "ignore-document" => segment().map(ContentRule::Document),
            "ignore-path-parameter" => segment().map(ContentRule::PathParameter),
            "ignore-segment-parameter" => {
                segment().filter(|name| !name.contains(&b'=')).map(ContentRule::SegmentParameter)
            }
            "ignore-segment" => parse_segment(argument),
            "ignore-segment-value" => parse_segment_value(argument),
            "ignore-parameter" => name().and_then(|whole| match argument.split_once('=') {
                Some((name, shape)) if !name.is_empty() => {
                    ValueShape::named(shape).map(|shape| ContentRule::Parameter(name.into(), Some(shape)))
                }
                _ => Some(ContentRule::Parameter(whole, None)),
            }),
            "ignore-query" => alone(ContentRule::Query),
            "ignore-parameter-order" => alone(ContentRule::ParameterOrder),
            "ignore-empty-parameters" => alone(ContentRule::EmptyParameters),
            "ignore-fragment" => alone(ContentRule::Fragment),
            "same-as" => parse_same_as(argument),
            "keep-parameter" => name().filter(|name| !name.contains(&b'=')).map(ContentRule::KeepParameter),
            _ => None,
        }
    }
}

fn parse_segment(argument: &str) -> Option<ContentRule> {
    // The name may be `...` as well.
    let (place, name) = match argument.strip_prefix('/') {
        Some(name) => (SegmentPlace::First, name.strip_suffix("/...")?),
        None => (SegmentPlace::Last, argument.strip_prefix(".../")?),
    };
    (!name.is_empty() && !name.contains(['/', ' ', '?', '#'])).then(|| ContentRule::Segment(place, name.into()))
}

fn parse_segment_value(argument: &str) -> Option<ContentRule> {
    let mut before: Vec<&str> = argument.strip_prefix('/')?.split('/').collect();
    let shape = match before.pop()? {
        "*" => None,
        shape => Some(ValueShape::named(shape)?),
    };
    let is_form = |segment: &&str| *segment == "#" || general_segment(segment.as_bytes()) == segment.as_bytes();
    before.iter().all(is_form).then(|| ContentRule::SegmentValue(before.into_iter().map(Into::into).collect(), shape))
}

fn parse_same_as(argument: &str) -> Option<ContentRule> {
    let (origin, from_https) = match argument.split_once(" for ") {
        None => (argument, None),
        Some((origin, "http")) => (origin, Some(false)),
        Some((origin, "https")) => (origin, Some(true)),
        Some(_) => return None,
    };
    let (is_https, host) = match origin.strip_prefix("https://") {
        Some(host) => (true, host),
        None => (false, origin.strip_prefix("http://")?),
    };
    let is_host = !host.is_empty() && !host.contains(['/', '?', '#', '@', ' ']);
    is_host.then(|| ContentRule::SameAs { from_https, is_https, host: host.into() })
}

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    // Canonical URIs are ASCII.
    String::from_utf8_lossy(bytes)
}

impl fmt::Display for ContentRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())?;
        match self {
            ContentRule::Document(name)
            | ContentRule::PathParameter(name)
            | ContentRule::SegmentParameter(name)
            | ContentRule::KeepParameter(name) => write!(f, " {}", text(name)),
            ContentRule::Segment(SegmentPlace::First, name) => write!(f, " /{}/...", text(name)),
            ContentRule::Segment(SegmentPlace::Last, name) => write!(f, " .../{}", text(name)),
            ContentRule::SegmentValue(before, shape) => {
                f.write_str(" ")?;
                before.iter().try_for_each(|segment| write!(f, "/{}", text(segment)))?;
                write!(f, "/{}", shape.map_or("*", ValueShape::name))
            }
            ContentRule::Parameter(name, None) => write!(f, " {}", text(name)),
            ContentRule::Parameter(name, Some(shape)) => write!(f, " {}={}", text(name), shape.name()),
            ContentRule::SameAs { from_https, is_https, host } => {
                write!(f, " {}://{}", scheme_name(*is_https), text(host))?;
                from_https.map_or(Ok(()), |from| write!(f, " for {}", scheme_name(from)))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl ScopedRule {
        /// Returns the rule with this text, which may begin with a context and a colon.
        pub(crate) fn parse(text: &str) -> ScopedRule {
            let (context, rule) = text.split_once(": ").unwrap_or(("", text));
            ScopedRule { rule: ContentRule::parse(rule).unwrap(), context: PathContext::parse(context).unwrap() }
        }
    }

    /// An extension is that of the whole last segment, although only its end is read.
    #[test]
    fn extensions_are_those_of_last_segments() {
        let last_of = |path: &'static str| path.trim_start_matches('/').trim_end_matches('/').rsplit('/').next();
        let (mut paths, mut found) = (Vec::new(), 0);
        for end in [
            "x.html", ".html", "x.xhtml", "x.shtmls", "x.", "html", "a.b/html", "x.html/", "a.html/x", "/.html",
            "é.html",
        ] {
            for start in ["", "/", "/d/", "/d.html/", "/dddddddddd", "/dddddddddd."] {
                paths.push(&*format!("{start}{end}").leak());
            }
        }
        for (path, name) in paths.iter().flat_map(|path| ["html", "xhtml", "shtmls", "h"].map(|name| (path, name))) {
            let expected = last_of(path).and_then(|last| extension_of(last.as_bytes())) == Some(name.as_bytes());
            assert_eq!(PathContext::Extension(name.into()).contains(path.as_bytes()), expected, "{path} {name}");
            found += u32::from(expected);
        }
        assert!(found > 20, "{found}");
    }

    #[test]
    fn rules_and_contexts_have_texts() {
        let rules = [
            "ignore-scheme",
            "ignore-doubled-slashes",
            "ignore-final-slash",
            "ignore-path-case",
            "ignore-document index.html",
            "ignore-path-parameter jsessionid",
            "ignore-segment-parameter ref",
            "ignore-path-parameter a&b",
            "ignore-segment-parameter a&b",
            "ignore-document a&b",
            "ignore-segment /print/...",
            "ignore-segment .../amp",
            "ignore-segment .../...",
            "ignore-segment /.../...",
            "ignore-segment-value /article/#/*",
            "ignore-segment-value /<hex>",
            "ignore-parameter sid",
            "ignore-parameter sid=<uuid>",
            "ignore-query",
            "ignore-parameter-order",
            "ignore-empty-parameters",
            "ignore-fragment",
            "same-as https://www.example.org",
            "same-as http://example.org for https",
            "keep-parameter id",
        ];
        for rule in rules {
            assert_eq!(ContentRule::parse(rule).map(|rule| rule.to_string()).as_deref(), Some(rule));
        }
        for rule in [
            "",
            "ignore-parameter",
            "ignore-scheme x",
            "ignore-parameter a=<x>",
            "ignore-parameter a&b",
            "ignore-parameter a&b=<hex>",
            "ignore-parameter a b=<hex>",
            "ignore-segment-parameter a=b",
            "ignore-segment-parameter a/b",
            "ignore-segment /a/b/...",
            "ignore-segment /...",
            "ignore-segment a",
            "ignore-segment-value /a-b/*",
            "ignore-segment-value /12/*",
            "ignore-segment-value //*",
            "keep-parameter a=b",
            "same-as example.org",
            "same-as http://a/b",
        ] {
            assert_eq!(ContentRule::parse(rule), None, "{rule}");
        }
        for context in ["", "/shop/", "/shop/new/", "*.css"] {
            assert_eq!(PathContext::parse(context).map(|context| context.to_string()).as_deref(), Some(context));
        }
        let unknown = ["shop", "/a//b/", "/a", "//", "*.", "*.tar.gz", "*.a/b", "*.a?b", "/a#b/", "*.sitemap"];
        assert!(unknown.iter().all(|context| PathContext::parse(context).is_none()));
    }
}
