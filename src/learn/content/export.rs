//! Rules about content as regular expressions for other tools: [`regexes_of`].
//!
//! The expressions use no lookaround, so that Java, RE2 and others understand them. Groups are written `$1`.

use super::rule::{ContentRule, PathContext, ScopedRule, SegmentPlace, extension_of};
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
    let host = host_pattern(scope, "[^/?#]+");
    let any = format!("(https?://{host}");
    let Some(path) = path_pattern(context) else { return Vec::new() };
    // Another scheme or host may only replace a host without userinfo and port.
    let bare_host = host_pattern(scope, "[^/?#@:]+");
    let one = |pattern: String, replacement: &str| vec![RegexRule { pattern, replacement: replacement.to_string() }];
    // Where the paths of the context begin, for rules that also change their ends.
    let first = match (rule, context) {
        (_, PathContext::Any) | (ContentRule::Parameter(..) | ContentRule::Query, _) => String::new(),
        (ContentRule::Segment(..), _) | (_, PathContext::Extension(_)) => return Vec::new(),
        (_, PathContext::Prefix(first)) => format!("/{}", escaped(first)),
    };
    match rule {
        // An address with a port or of IPv6 keeps its scheme and host.
        ContentRule::Scheme | ContentRule::SameAs { .. } if scope.contains(&b':') => Vec::new(),
        ContentRule::Scheme => one(format!("^http://({bare_host}{first}(?:[/?#].*)?)$"), "https://$1"),
        ContentRule::DoubledSlashes => one(format!("^{any}{first}(?:/[^?#]*?)?)//+(.*)$"), "$1/$2"),
        ContentRule::FinalSlash if !first.is_empty() => {
            one(format!("^{any}{first}(?:/[^?#]*[^?#/])?)/+([?#].*)?$"), "$1$2")
        }
        ContentRule::FinalSlash => one(format!("^{any}/(?:[^?#]*[^?#/])?)/+([?#].*)?$"), "$1$2"),
        ContentRule::Document(name) => one(format!("^{any}{first}(?:/[^?#]*)?/){}([?#].*)?$", escaped(name)), "$1$2"),
        ContentRule::PathParameter(name) => {
            one(format!("^{any}{first}/[^?#]*?);(?i:{})(?:=[^/?#;]*)?((?:[/?#;].*)?)$", escaped(name)), "$1$2")
        }
        ContentRule::SegmentParameter(name) => {
            let segment = format!("{}=[^/?#]*", escaped(name));
            let before = if first.is_empty() { "/[^?#]*" } else { "(?:/[^?#]*)?" };
            let rules = [
                (format!("^{any}{first}(?:/[^?#]*)?)/{segment}(/.*)$"), "$1$2"),
                (format!("^{any}{first}{before})/{segment}([?#].*)?$"), "$1$2"),
                // One slash remains of the path.
                (format!("^{any})/{segment}([?#].*)?$"), "$1/$2"),
            ];
            all(rules).into_iter().take(if first.is_empty() { 3 } else { 2 }).collect()
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
            let (value, only_value) = match shape.map(shape_pattern) {
                None => ("(?:=[^&#]*)?".to_string(), "(?:=[^&#;]*)?".to_string()),
                Some(Some(value)) => (format!("={value}"), format!("={value}")),
                Some(None) => return Vec::new(),
            };
            let [parameter, only] = [value, only_value].map(|value| format!("{}{value}", escaped(name)));
            all([
                // Without `&`, a semicolon may begin the next parameter.
                (format!("^{any}{path})\\?{only}(#.*)?$"), "$1$2"),
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
            one(format!("^{from}://{bare_host}({first}(?:[/?#].*)?)$"), &format!("{to}://{target}$1"))
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

/// Returns the pattern of the hosts of a scope. `any` is the pattern of all hosts.
fn host_pattern(scope: &[u8], any: &str) -> String {
    match scope {
        b"*" => any.to_string(),
        [b'*', b'.', domain @ ..] => format!("(?:{any}\\.)?{}", escaped(domain)),
        host => escaped(host),
    }
}

/// Returns the pattern of the paths of a context; `None` if it contains no path.
fn path_pattern(context: &PathContext) -> Option<String> {
    Some(match context {
        PathContext::Any => "(?:/[^?#]*)?".to_string(),
        PathContext::Prefix(first) => format!("/{}(?:/[^?#]*)?", escaped(first)),
        PathContext::Extension(extension) => {
            let is_extension = extension_of(&[b"x.", &extension[..]].concat()) == Some(extension);
            format!("/(?:[^?#]*/)?[^/?#]+\\.{}/?", escaped(is_extension.then_some(extension)?))
        }
    })
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
        // No expression has exactly the values of these shapes, and no path has such an extension.
        assert!(patterns("a", "ignore-parameter s=<token>", "").is_empty());
        assert!(patterns("a", "ignore-parameter s=<other>", "").is_empty());
        assert!(patterns("a", "ignore-query", "*.tar.gz").is_empty());
    }
}
