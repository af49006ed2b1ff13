//! Rules about content as regular expressions for other tools: [`regexes_of`].
//!
//! The expressions use no lookaround, so that Java, RE2 and others understand them. In replacements, groups are written `$1` and a
//! dollar sign `\$`, as in Java.

use super::rule::{ContentRule, PathContext, ScopedRule, SegmentPlace};
use super::url_parts::scheme_name;
use super::value_shape::ValueShape;

/// A regular expression for a whole URL, and what replaces a match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RegexRule {
    pub(crate) pattern: String,
    pub(crate) replacement: String,
}

/// Returns expressions that do what a rule does for the hosts of its scope, to be applied one after the other until nothing
/// changes. They never change a URL that the rule does not change. There are none if expressions cannot do it (letter case,
/// order of parameters, values that look like tokens), if the result could not be fetched (values of segments), or if the
/// rule only limits others.
pub(crate) fn regexes_of(scope: &[u8], ScopedRule { rule, context }: &ScopedRule) -> Vec<RegexRule> {
    let Some(patterns) = UrlPatterns::new(scope, rule, context) else { return Vec::new() };
    match rule {
        // An address with a port or of IPv6 keeps its scheme and host.
        ContentRule::Scheme | ContentRule::SameAs { .. } if scope.contains(&b':') => Vec::new(),
        ContentRule::Scheme => patterns.with_https(),
        ContentRule::SameAs { from_https, is_https, host } => {
            let host = String::from_utf8_lossy(host).replace('$', "\\$");
            let origin = format!("{}://{host}", scheme_name(*is_https));
            patterns.with_origin(from_https.map_or("https?", scheme_name), &origin)
        }
        ContentRule::DoubledSlashes => patterns.without_doubled_slashes(),
        ContentRule::FinalSlash => patterns.without_final_slash(),
        ContentRule::Document(name) => patterns.without_document(&escaped(name)),
        ContentRule::PathParameter(name) => patterns.without_path_parameter(&escaped(name)),
        ContentRule::SegmentParameter(name) => patterns.without_segment_parameter(&escaped(name)),
        ContentRule::Segment(place, name) => patterns.without_segment(*place, &escaped(name)),
        ContentRule::Parameter(name, shape) => patterns.without_parameter(&escaped(name), *shape),
        ContentRule::Query => patterns.without_query(),
        ContentRule::EmptyParameters => patterns.without_empty_parameters(),
        ContentRule::Fragment => patterns.without_fragment(),
        ContentRule::SegmentValue(..)
        | ContentRule::PathCase
        | ContentRule::ParameterOrder
        | ContentRule::KeepParameter(_) => Vec::new(),
    }
}

/// The patterns of the URLs of a scope and a context. Each method returns the expressions of one kind of rules.
struct UrlPatterns {
    /// Scheme and authority, in a group that is not closed.
    origin: String,
    /// A host without userinfo and port: only for it may another scheme or host be written.
    bare_host: String,
    /// The paths of the context.
    path: String,
    /// Where the paths of the context begin, for rules that also change their ends; empty for all paths.
    first: String,
}

impl UrlPatterns {
    /// Returns the patterns for a rule; `None` if expressions cannot express its context.
    fn new(scope: &[u8], rule: &ContentRule, context: &PathContext) -> Option<UrlPatterns> {
        let first = match (rule, context) {
            (_, PathContext::Any) | (ContentRule::Parameter(..) | ContentRule::Query, _) => String::new(),
            (ContentRule::Segment(..), _) | (_, PathContext::Extension(_)) => return None,
            (_, PathContext::Prefix(first)) => format!("/{}", escaped(first)),
        };
        Some(UrlPatterns {
            origin: format!("(https?://{}", host_pattern(scope, "[^/?#]+")),
            bare_host: host_pattern(scope, "[^/?#@:]+"),
            path: path_pattern(context),
            first,
        })
    }

    fn with_https(&self) -> Vec<RegexRule> {
        let UrlPatterns { bare_host, first, .. } = self;
        all([(format!("^http://({bare_host}{first}(?:[/?#].*)?)$"), "https://$1")])
    }

    fn with_origin(&self, from_scheme: &str, origin: &str) -> Vec<RegexRule> {
        let UrlPatterns { bare_host, first, .. } = self;
        let replacement = format!("{origin}$1");
        all([(format!("^{from_scheme}://{bare_host}({first}(?:[/?#].*)?)$"), &replacement)])
    }

    fn without_doubled_slashes(&self) -> Vec<RegexRule> {
        let UrlPatterns { origin, first, .. } = self;
        all([(format!("^{origin}{first}(?:/[^?#]*?)?)//+(.*)$"), "$1/$2")])
    }

    fn without_final_slash(&self) -> Vec<RegexRule> {
        let UrlPatterns { origin, first, .. } = self;
        // The path `/` stays.
        let path = if first.is_empty() { "/(?:[^?#]*[^?#/])?" } else { "(?:/[^?#]*[^?#/])?" };
        all([(format!("^{origin}{first}{path})/+([?#].*)?$"), "$1$2")])
    }

    fn without_document(&self, name: &str) -> Vec<RegexRule> {
        let UrlPatterns { origin, first, .. } = self;
        all([(format!("^{origin}{first}(?:/[^?#]*)?/){name}([?#].*)?$"), "$1$2")])
    }

    fn without_path_parameter(&self, name: &str) -> Vec<RegexRule> {
        let UrlPatterns { origin, first, .. } = self;
        all([(format!("^{origin}{first}/[^?#]*?);(?i:{name})(?:=[^/?#;]*)?((?:[/?#;].*)?)$"), "$1$2")])
    }

    fn without_segment_parameter(&self, name: &str) -> Vec<RegexRule> {
        let UrlPatterns { origin, first, .. } = self;
        let segment = format!("{name}=[^/?#]*");
        let before = if first.is_empty() { "/[^?#]*" } else { "(?:/[^?#]*)?" };
        let mut rules = all([
            (format!("^{origin}{first}(?:/[^?#]*)?)/{segment}(/.*)$"), "$1$2"),
            (format!("^{origin}{first}{before})/{segment}([?#].*)?$"), "$1$2"),
        ]);
        if first.is_empty() {
            // One slash remains of the path.
            rules.extend(all([(format!("^{origin})/{segment}([?#].*)?$"), "$1/$2")]));
        }
        rules
    }

    fn without_segment(&self, place: SegmentPlace, name: &str) -> Vec<RegexRule> {
        let UrlPatterns { origin, .. } = self;
        match place {
            SegmentPlace::First => {
                all([(format!("^{origin})/{name}/(.*)$"), "$1/$2"), (format!("^{origin})/{name}([?#].*)?$"), "$1/$2")])
            }
            SegmentPlace::Last => all([
                (format!("^{origin}/[^?#]*)/{name}(/?(?:[?#].*)?)$"), "$1$2"),
                (format!("^{origin})/{name}/?([?#].*)?$"), "$1/$2"),
            ]),
        }
    }

    fn without_parameter(&self, name: &str, shape: Option<ValueShape>) -> Vec<RegexRule> {
        let UrlPatterns { origin, path, .. } = self;
        let (value, only_value) = match shape.map(shape_pattern) {
            None => ("(?:=[^&#]*)?".to_string(), "(?:=[^&#;]*)?".to_string()),
            Some(Some(value)) => (format!("={value}"), format!("={value}")),
            Some(None) => return Vec::new(),
        };
        let [parameter, only] = [value, only_value].map(|value| format!("{name}{value}"));
        all([
            // Without `&`, a semicolon may begin the next parameter.
            (format!("^{origin}{path})\\?{only}(#.*)?$"), "$1$2"),
            (format!("^{origin}{path}\\?){parameter}&(.*)$"), "$1$2"),
            (format!("^{origin}{path}\\?[^#]*)&{parameter}([&#].*)?$"), "$1$2"),
        ])
    }

    fn without_query(&self) -> Vec<RegexRule> {
        let UrlPatterns { origin, path, .. } = self;
        all([(format!("^{origin}{path})\\?[^#]*(#.*)?$"), "$1$2")])
    }

    fn without_empty_parameters(&self) -> Vec<RegexRule> {
        let UrlPatterns { origin, path, .. } = self;
        all([
            (format!("^{origin}{path}\\?[^#]*?)&&+(.*)$"), "$1&$2"),
            (format!("^{origin}{path}\\?)&(.*)$"), "$1$2"),
            (format!("^{origin}{path}\\?[^#]*)&(#.*)?$"), "$1$2"),
            (format!("^{origin}{path})\\?(#.*)?$"), "$1$2"),
        ])
    }

    fn without_fragment(&self) -> Vec<RegexRule> {
        let UrlPatterns { origin, first, .. } = self;
        all([(format!("^{origin}{first}(?:[/?][^#]*)?)#.*$"), "$1")])
    }
}

fn all<const N: usize>(rules: [(String, &str); N]) -> Vec<RegexRule> {
    rules.map(|(pattern, replacement)| RegexRule { pattern, replacement: replacement.to_string() }).to_vec()
}

/// Returns the pattern of the hosts of a scope. `any` is the pattern of all hosts.
fn host_pattern(scope: &[u8], any: &str) -> String {
    match scope {
        b"*" => any.to_string(),
        [b'*', b'.', domain @ ..] => format!("(?:{any}\\.)?{}", escaped(domain)),
        host => escaped(host),
    }
}

/// Returns the pattern of the paths of a context.
fn path_pattern(context: &PathContext) -> String {
    match context {
        PathContext::Any => "(?:/[^?#]*)?".to_string(),
        PathContext::Prefix(first) => format!("/{}(?:/[^?#]*)?", escaped(first)),
        PathContext::Extension(extension) => format!("/(?:[^?#]*/)?[^/?#]+\\.{}/?", escaped(extension)),
    }
}

/// Returns the pattern of the values of a shape; `None` if no expression has exactly these values.
fn shape_pattern(shape: ValueShape) -> Option<String> {
    // At least 16 digits, of which at least one is a letter: the first letter is at one of these places.
    let hex = |digits: usize| match digits {
        16 => "[0-9]{16,}[A-Fa-f][0-9A-Fa-f]*".to_string(),
        _ => format!("[0-9]{{{digits}}}[A-Fa-f][0-9A-Fa-f]{{{},}}", 15 - digits),
    };
    Some(match shape {
        ValueShape::Hex => format!("(?:{})", (0..=16).map(hex).collect::<Vec<_>>().join("|")),
        ValueShape::Uuid => "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}".to_string(),
        ValueShape::Time => "(?:1[0-9]{9}|1[0-9]{12}|(?:19|20)[0-9]{12})".to_string(),
        ValueShape::Number => "(?:[0-9]{1,9}|[02-9][0-9]{9}|[0-9]{11,12}|[02-9][0-9]{12}\
                               |(?:[03-9][0-9]|1[0-8]|2[1-9])[0-9]{12}|[0-9]{15,})"
            .to_string(),
        ValueShape::Token | ValueShape::Other => return None,
    })
}

fn escaped(text: &[u8]) -> String {
    let mut out = String::new();
    for c in String::from_utf8_lossy(text).chars() {
        out.push_str(if c.is_ascii_alphanumeric() || "_-%=~".contains(c) { "" } else { "\\" });
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_written_as_expressions() {
        let patterns = |scope: &str, rule: &str, context: &str| {
            let rules = regexes_of(scope.as_bytes(), &ScopedRule::parse(&format!("{context}: {rule}")));
            rules.into_iter().map(|rule| format!("{} -> {}", rule.pattern, rule.replacement)).collect::<Vec<_>>()
        };
        assert_eq!(patterns("a.b", "ignore-scheme", ""), ["^http://(a\\.b(?:[/?#].*)?)$ -> https://$1"]);
        assert_eq!(
            patterns("*.b", "ignore-final-slash", ""),
            ["^(https?://(?:[^/?#]+\\.)?b/(?:[^?#]*[^?#/])?)/+([?#].*)?$ -> $1$2"]
        );
        assert_eq!(
            patterns("*", "same-as https://c for http", ""),
            ["^http://[^/?#@:]+((?:[/?#].*)?)$ -> https://c$1"]
        );
        assert_eq!(patterns("a", "same-as http://$1.b", ""), ["^https?://a((?:[/?#].*)?)$ -> http://\\$1.b$1"]);
        assert_eq!(patterns("*", "ignore-parameter s", "").len(), 3);
        assert_eq!(
            patterns("a", "ignore-parameter s", "")[0],
            "^(https?://a(?:/[^?#]*)?)\\?s(?:=[^&#;]*)?(#.*)?$ -> $1$2"
        );
        assert_eq!(
            patterns("a", "ignore-query", "*.css"),
            ["^(https?://a/(?:[^?#]*/)?[^/?#]+\\.css/?)\\?[^#]*(#.*)?$ -> $1$2"]
        );
        assert_eq!(
            patterns("a", "ignore-final-slash", "/b/c/"),
            ["^(https?://a/b\\/c(?:/[^?#]*[^?#/])?)/+([?#].*)?$ -> $1$2"]
        );
        assert_eq!(patterns("a", "ignore-scheme", "/b/"), ["^http://(a/b(?:[/?#].*)?)$ -> https://$1"]);
        assert!(patterns("a", "ignore-final-slash", "*.css").is_empty());
        assert!(patterns("a", "ignore-path-case", "").is_empty());
        assert!(patterns("a:8080", "ignore-scheme", "").is_empty());
        // No expression has exactly the values of these shapes.
        assert!(patterns("a", "ignore-parameter s=<token>", "").is_empty());
        assert!(patterns("a", "ignore-parameter s=<other>", "").is_empty());
    }
}
