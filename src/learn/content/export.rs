//! Rules about content as regular expressions for other tools: [`regexes_of`].
//!
//! The expressions use no lookaround, so that Java, RE2 and others understand them. Groups are written `$1`.

use super::rule::{ContentRule, PathContext, ScopedRule, SegmentPlace};
use super::value_shape::ValueShape;

/// A regular expression for a whole URL, and what replaces a match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RegexRule {
    pub(crate) pattern: String,
    pub(crate) replacement: String,
}

/// Returns expressions that do what a rule does for the hosts of its scope, to be applied one after the other until nothing
/// changes. There are none if expressions cannot do it (letter case, order of parameters), if the result could not be fetched
/// (values of segments), or if the rule only limits others.
pub(crate) fn regexes_of(scope: &[u8], ScopedRule { rule, context }: &ScopedRule) -> Vec<RegexRule> {
    let host = host_pattern(scope);
    let (any, path) = (format!("(https?://{host}"), path_pattern(context));
    let one = |pattern: String, replacement: &str| vec![RegexRule { pattern, replacement: replacement.to_string() }];
    // Where the paths of the context begin, for rules that also change their ends.
    let first = match (rule, context) {
        (_, PathContext::Any) | (ContentRule::Parameter(..) | ContentRule::Query, _) => String::new(),
        (ContentRule::Segment(..), _) | (_, PathContext::Extension(_)) => return Vec::new(),
        (_, PathContext::Prefix(first)) => format!("/{}", escaped(first)),
    };
    match rule {
        ContentRule::Scheme => one(format!("^http://({host}{first}(?:[/?#].*)?)$"), "https://$1"),
        ContentRule::DoubledSlashes => one(format!("^{any}{first}(?:/[^?#]*?)?)//+(.*)$"), "$1/$2"),
        ContentRule::FinalSlash if !first.is_empty() => {
            one(format!("^{any}{first}(?:/[^?#]*[^?#/])?)/([?#].*)?$"), "$1$2")
        }
        ContentRule::FinalSlash => one(format!("^{any}/[^?#]*[^?#/])/([?#].*)?$"), "$1$2"),
        ContentRule::Document(name) => one(format!("^{any}{first}(?:/[^?#]*)?/){}([?#].*)?$", escaped(name)), "$1$2"),
        ContentRule::PathParameter(name) => {
            one(format!("^{any}{first}/[^?#]*?);(?i:{})(?:=[^/?#;]*)?((?:[/?#;].*)?)$", escaped(name)), "$1$2")
        }
        ContentRule::Segment(SegmentPlace::First, name) => {
            let name = escaped(name);
            all([(format!("^{any})/{name}/(.*)$"), "$1/$2"), (format!("^{any})/{name}([?#].*)?$"), "$1/$2")])
        }
        ContentRule::Segment(SegmentPlace::Last, name) => {
            let name = escaped(name);
            all([
                (format!("^{any}/[^?#]*)/{name}(/?(?:[?#].*)?)$"), "$1$2"),
                (format!("^{any})/{name}/?([?#].*)?$"), "$1/$2"),
            ])
        }
        ContentRule::Parameter(name, shape) => {
            let value = shape.map_or("(?:=[^&#]*)?".to_string(), |shape| format!("={}", shape_pattern(shape)));
            let parameter = format!("{}{value}", escaped(name));
            all([
                (format!("^{any}{path})\\?{parameter}(#.*)?$"), "$1$2"),
                (format!("^{any}{path}\\?){parameter}&(.*)$"), "$1$2"),
                (format!("^{any}{path}\\?[^#]*)&{parameter}([&#].*)?$"), "$1$2"),
            ])
        }
        ContentRule::Query => one(format!("^{any}{path})\\?[^#]*(#.*)?$"), "$1$2"),
        ContentRule::EmptyParameters => all([
            (format!("^{any}{path}\\?[^#]*?)&&+(.*)$"), "$1&$2"),
            (format!("^{any}{path}\\?)&(.*)$"), "$1$2"),
            (format!("^{any}{path}\\?[^#]*)&(#.*)?$"), "$1$2"),
            (format!("^{any}{path})\\?(#.*)?$"), "$1$2"),
        ]),
        ContentRule::Fragment => one(format!("^{any}{first}(?:[/?][^#]*)?)#.*$"), "$1"),
        ContentRule::SameAs { from_https, is_https, host: target } => {
            let from = from_https.map_or("https?", |is_https| if is_https { "https" } else { "http" });
            let to = if *is_https { "https" } else { "http" };
            let target = String::from_utf8_lossy(target);
            one(format!("^{from}://{host}({first}(?:[/?#].*)?)$"), &format!("{to}://{target}$1"))
        }
        ContentRule::SegmentValue(..)
        | ContentRule::PathCase
        | ContentRule::ParameterOrder
        | ContentRule::KeepParameter(_) => Vec::new(),
    }
}

fn all<const N: usize>(rules: [(String, &str); N]) -> Vec<RegexRule> {
    rules.map(|(pattern, replacement)| RegexRule { pattern, replacement: replacement.to_string() }).to_vec()
}

fn host_pattern(scope: &[u8]) -> String {
    match scope {
        b"*" => "[^/?#]+".to_string(),
        [b'*', b'.', domain @ ..] => format!("(?:[^/?#]+\\.)?{}", escaped(domain)),
        host => escaped(host),
    }
}

fn path_pattern(context: &PathContext) -> String {
    match context {
        PathContext::Any => "(?:/[^?#]*)?".to_string(),
        PathContext::Prefix(first) => format!("/{}(?:/[^?#]*)?", escaped(first)),
        PathContext::Extension(extension) => format!("/[^?#]*\\.{}", escaped(extension)),
    }
}

fn shape_pattern(shape: ValueShape) -> &'static str {
    match shape {
        ValueShape::Hex => "[0-9A-Fa-f]{16,}",
        ValueShape::Uuid => "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}",
        ValueShape::Time => "(?:1[0-9]{9}|1[0-9]{12}|(?:19|20)[0-9]{12})",
        ValueShape::Token => "[0-9A-Za-z_.-]{16,}",
        ValueShape::Number => "[0-9]+",
        ValueShape::Other => "[^&#/?]*",
    }
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
            let rule = ContentRule::parse(rule).unwrap();
            let rules =
                regexes_of(scope.as_bytes(), &ScopedRule { rule, context: PathContext::parse(context).unwrap() });
            rules.into_iter().map(|rule| format!("{} -> {}", rule.pattern, rule.replacement)).collect::<Vec<_>>()
        };
        assert_eq!(patterns("a.b", "ignore-scheme", ""), ["^http://(a\\.b(?:[/?#].*)?)$ -> https://$1"]);
        assert_eq!(
            patterns("*.b", "ignore-final-slash", ""),
            ["^(https?://(?:[^/?#]+\\.)?b/[^?#]*[^?#/])/([?#].*)?$ -> $1$2"]
        );
        assert_eq!(patterns("*", "ignore-parameter s", "").len(), 3);
        assert_eq!(patterns("a", "ignore-query", "*.css"), ["^(https?://a/[^?#]*\\.css)\\?[^#]*(#.*)?$ -> $1$2"]);
        assert_eq!(
            patterns("a", "ignore-final-slash", "/b/c/"),
            ["^(https?://a/b\\/c(?:/[^?#]*[^?#/])?)/([?#].*)?$ -> $1$2"]
        );
        assert_eq!(patterns("a", "ignore-scheme", "/b/"), ["^http://(a/b(?:[/?#].*)?)$ -> https://$1"]);
        assert!(patterns("a", "ignore-final-slash", "*.css").is_empty());
        assert!(patterns("a", "ignore-path-case", "").is_empty());
    }
}
