//! Rules about content by hand (`learn --rules`), and rules for other tools (`learn --export`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use arrow::array::{Array, BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::error::ArrowError;
use csv::StringRecord;
use serde_json::{Value, json};

use crate::batch::{applied_rule, rule_batch};
use crate::cli::error::CommandError;
use crate::iri::{ParseMode, Rung, normalize_to_rung};
use crate::learn::Equivalences;
use crate::learn::content::{ContentRule, PathContext, ScopeRule, ScopedRule, regexes_of};
use crate::process::plain_error;

/// Rules that a user added, and learned rules that the user struck out.
#[derive(Debug, Default)]
pub(super) struct HandRules {
    added: Vec<ScopeRule>,
    /// Scope and rule.
    struck: BTreeSet<(Vec<u8>, ScopedRule)>,
}

/// Columns of a table of rules by hand, of which the last one is optional.
const COLUMNS: [&str; 4] = ["host", "pattern", "how", "context"];

/// The places of [`COLUMNS`].
type Columns = [Option<usize>; 4];

impl HandRules {
    /// Reads a CSV table with the columns `host`, `pattern`, `how` (`hand` or `strike`; other rows are ignored) and, if there is
    /// one, `context`: the table that `--export csv=FILE` writes.
    pub(super) fn read(path: &Path) -> Result<HandRules, CommandError> {
        let refused =
            |place: String, reason: &str| CommandError::Usage(format!("--rules {}{place}: {reason}", path.display()));
        let text = std::fs::read(path)
            .map_err(|error| refused(String::new(), &format!("cannot read: {}", plain_error(&error))))?;
        let mut reader = csv::ReaderBuilder::new().flexible(true).trim(csv::Trim::All).from_reader(&text[..]);
        let find = |header: &StringRecord| COLUMNS.map(|name| header.iter().position(|field| field == name));
        let columns = reader.headers().ok().map(find).filter(|columns| columns[..3].iter().all(Option::is_some));
        let no_header = || refused(String::new(), "expected a header with the columns host, pattern and how");
        let (columns, mut rules) = (columns.ok_or_else(no_header)?, HandRules::default());
        for (i, row) in reader.records().enumerate() {
            let place = || format!(", row {}", i + 2);
            let row = row.map_err(|error| refused(place(), &error.to_string()))?;
            rules.add(&row, columns).map_err(|reason| refused(place(), &reason))?;
        }
        rules.with_patterns(Equivalences::default())?;
        Ok(rules)
    }

    /// Returns the added rules together with patterns of hosts.
    pub(super) fn with_patterns(&self, mut all: Equivalences) -> Result<Equivalences, CommandError> {
        self.added.iter().for_each(|rule| all.add_rule(&rule.scope, rule.judged.rule.clone()));
        match all.find_loops().into_iter().min() {
            Some(host) => Err(CommandError::Usage(format!(
                "--rules: the rules of {} form a loop, with redirects or with other rules; remove one of them",
                String::from_utf8_lossy(&host)
            ))),
            None => Ok(all),
        }
    }

    fn add(&mut self, row: &StringRecord, columns: Columns) -> Result<(), String> {
        let [host, pattern, how, context] = columns.map(|at| at.and_then(|at| row.get(at)).unwrap_or_default());
        if !["hand", "strike"].contains(&how) {
            return Ok(());
        }
        let rule = ContentRule::parse(pattern)
            .ok_or_else(|| format!("unknown rule {pattern:?}; irikey schema lists the rules about content"))?;
        let context = PathContext::parse(context).ok_or("the context is neither /NAME/, /NAME/NAME/ nor *.NAME")?;
        if host.is_empty() || host.contains(['/', ' ']) {
            return Err(format!("the host is {host:?}, expected a host, *.DOMAIN or *"));
        }
        // Letters after a `%` may be hexadecimal digits.
        let has_upper_case = host.bytes().any(|byte| byte.is_ascii_uppercase()) && !host.contains('%');
        if has_upper_case || !host.is_ascii() {
            return Err(format!(
                "the host is {host:?}, which no canonical URI has; write it in lower case and with xn-- labels, as irikey explain does"
            ));
        }
        check_scope(host, how == "hand")?;
        let rule = ScopedRule { rule, context };
        match how {
            "hand" => self.added.push(ScopeRule::by_hand(host.as_bytes(), rule)),
            _ => drop(self.struck.insert((host.as_bytes().to_vec(), rule))),
        }
        Ok(())
    }

    /// Returns the batch without rules that were struck out.
    pub(super) fn without_struck(&self, batch: RecordBatch) -> Result<RecordBatch, ArrowError> {
        let is_kept = |row: usize| {
            let rule = applied_rule(&batch, row).map(|(scope, rule)| (scope.to_vec(), rule));
            rule.is_none_or(|rule| !self.struck.contains(&rule))
        };
        let kept: BooleanArray = (0..batch.num_rows()).map(|row| Some(is_kept(row))).collect();
        filter_record_batch(&batch, &kept)
    }

    /// Returns the rules that were added as rows of the table.
    pub(super) fn added_batch(&self) -> Result<RecordBatch, ArrowError> {
        rule_batch(&self.added)
    }
}

/// Refuses a host for which a rule would never apply; `is_added` says that the rule is added, not struck out.
fn check_scope(scope: &str, is_added: bool) -> Result<(), String> {
    let host = scope.strip_prefix("*.").unwrap_or(scope);
    if scope == "*" {
        return Ok(());
    }
    if host.is_empty() || host.contains('*') {
        return Err(format!(
            "the host is {scope:?}, which is the name of no host: * is all hosts, *.example.org those of a domain, and * has no other meaning"
        ));
    }
    let canonical = ["http", "https"].map(|scheme| canonical_authority(scheme, host));
    let [http, https] = canonical.each_ref().map(|found| found.as_deref() == Some(host));
    let own = canonical.iter().flatten().find(|other| *other != host);
    match (http, https) {
        (true, true) => Ok(()),
        // A learned rule may be of such a host, and be struck out.
        (true, false) | (false, true) if !is_added => Ok(()),
        (true, false) | (false, true) => Err(format!(
            "the host is {scope:?}, but canonical URIs do not have the default port of their scheme; write {:?}",
            scope.replace(host, own.map_or("", String::as_str))
        )),
        (false, false) => Err(match own {
            Some(own) => {
                format!("the host is {scope:?}, which no canonical URI has; write {:?}", scope.replace(host, own))
            }
            None => format!("the host is {scope:?}, which no canonical URI has"),
        }),
    }
}

/// Returns the authority of the canonical URI that begins with a scheme and this authority, if there is one.
fn canonical_authority(scheme: &str, authority: &str) -> Option<String> {
    let uri = format!("{scheme}://{authority}/");
    let (canonical, _) = normalize_to_rung(uri.as_bytes(), Rung::Scheme, ParseMode::Lenient).ok()?;
    let canonical = String::from_utf8(canonical.to_vec()).ok()?;
    let authority = canonical.strip_prefix(scheme)?.strip_prefix("://")?.strip_suffix('/')?;
    (!authority.is_empty() && !authority.contains(['/', '?', '#'])).then(|| authority.to_string())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExportFormat {
    /// The rules as a table that `--rules` reads.
    Csv,
    /// `regex-normalize.xml` of Apache Nutch.
    Nutch,
    /// A URL filter of Apache StormCrawler.
    StormCrawler,
    /// Statements that create a table of regular expressions.
    Sql,
}

/// A file that rules are exported to.
#[derive(Clone, Debug)]
pub(super) struct Export {
    format: ExportFormat,
    pub(super) path: PathBuf,
}

/// Parses `FORMAT=FILE`.
pub(super) fn parse_export(text: &str) -> Result<Export, String> {
    let expected = "expected csv=FILE, nutch=FILE, stormcrawler=FILE or sql=FILE";
    let (format, path) = text.split_once('=').ok_or(expected)?;
    let format = match format {
        "csv" => ExportFormat::Csv,
        "nutch" => ExportFormat::Nutch,
        "stormcrawler" => ExportFormat::StormCrawler,
        "sql" => ExportFormat::Sql,
        _ => return Err(expected.to_string()),
    };
    if path.is_empty() {
        return Err(expected.to_string());
    }
    Ok(Export { format, path: path.into() })
}

#[derive(Debug)]
pub(super) struct ExportedRule {
    fields: [String; 7],
    scope: Vec<u8>,
    rule: ScopedRule,
}

const EXPORTED_COLUMNS: [&str; 7] = ["host", "pattern", "context", "how", "support", "counter", "lower_bound"];

impl ExportedRule {
    /// Returns the rules in a batch of the table.
    pub(super) fn of_batch(batch: &RecordBatch) -> Vec<ExportedRule> {
        let rule = |row: usize| {
            let (scope, rule) = applied_rule(batch, row)?;
            let field = |name: &str| batch.column_by_name(name).map_or(String::new(), |column| display(column, row));
            Some(ExportedRule { fields: EXPORTED_COLUMNS.map(field), scope: scope.to_vec(), rule })
        };
        (0..batch.num_rows()).filter_map(rule).collect()
    }
}

fn display(column: &dyn Array, row: usize) -> String {
    if column.is_null(row) {
        return String::new();
    }
    arrow::util::display::array_value_to_string(column, row).unwrap_or_default()
}

impl Export {
    /// Returns the contents of the file, and the number of rules that its format cannot express.
    pub(super) fn render(&self, rules: &[ExportedRule]) -> (String, usize) {
        if self.format == ExportFormat::Csv {
            return (to_csv(rules), 0);
        }
        let (mut lines, mut left_out) = (Vec::new(), 0);
        let kept = KeptParameters::of(rules);
        for ExportedRule { scope, rule, .. } in rules {
            // Without lookaround, an expression for many hosts cannot leave out those that keep the parameter.
            let expressions = if kept.limit(scope, rule) { Vec::new() } else { regexes_of(scope, rule) };
            left_out += usize::from(expressions.is_empty());
            lines.extend(expressions);
        }
        let text = match self.format {
            ExportFormat::Nutch => {
                let regex = |pattern: &str, replacement: &str| {
                    format!(
                        "  <regex>\n    <pattern>{}</pattern>\n    <substitution>{}</substitution>\n  </regex>\n",
                        xml(pattern),
                        xml(replacement)
                    )
                };
                let all: String = lines.iter().map(|line| regex(&line.pattern, &line.replacement)).collect();
                format!("<?xml version=\"1.0\"?>\n<regex-normalize>\n{all}</regex-normalize>\n")
            }
            ExportFormat::Sql => {
                let quote = |text: &str| format!("'{}'", text.replace('\'', "''"));
                let rows = lines.iter().enumerate().map(|(i, line)| {
                    let replacement = line.replacement.replace('$', "\\");
                    format!("INSERT INTO url_rules VALUES ({i}, {}, {});\n", quote(&line.pattern), quote(&replacement))
                });
                let all: String = rows.collect();
                format!("CREATE TABLE url_rules (ordinal INTEGER, pattern VARCHAR, replacement VARCHAR);\n{all}")
            }
            _ => {
                let all: Vec<Value> = lines
                    .iter()
                    .map(|line| json!({"pattern": line.pattern, "substitution": line.replacement}))
                    .collect();
                let class = "org.apache.stormcrawler.filtering.regex.RegexURLNormalizer";
                let filter = json!({"class": class, "name": "irikey", "params": {"urlNormalizers": all}});
                format!("{filter:#}\n")
            }
        };
        (text, left_out)
    }
}

/// The scopes of the rules `keep-parameter` by parameter.
struct KeptParameters<'r>(BTreeMap<&'r [u8], Vec<&'r [u8]>>);

impl<'r> KeptParameters<'r> {
    fn of(rules: &'r [ExportedRule]) -> KeptParameters<'r> {
        let mut kept: BTreeMap<&[u8], Vec<&[u8]>> = BTreeMap::new();
        for ExportedRule { scope, rule, .. } in rules {
            if let ContentRule::KeepParameter(name) = &rule.rule {
                kept.entry(name).or_default().push(scope);
            }
        }
        KeptParameters(kept)
    }

    /// Returns whether a rule does not hold for some hosts of its scope.
    fn limit(&self, scope: &[u8], rule: &ScopedRule) -> bool {
        let ContentRule::Parameter(name, _) = &rule.rule else { return false };
        let scopes = self.0.get(&name[..]).into_iter().flatten();
        scopes.into_iter().any(|kept| is_within(kept, scope) || is_within(scope, kept))
    }
}

/// Returns whether all hosts of a scope are also hosts of another one.
fn is_within(scope: &[u8], other: &[u8]) -> bool {
    let name = scope.strip_prefix(b"*.").unwrap_or(scope);
    let is_below = |domain: &[u8]| name.strip_suffix(domain).is_some_and(|rest| matches!(rest, [] | [.., b'.']));
    scope == other || other == b"*" || other.strip_prefix(b"*.").is_some_and(is_below)
}

fn to_csv(rules: &[ExportedRule]) -> String {
    let field = |text: &String| match text.contains([',', '"']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.clone(),
    };
    let lines = rules.iter().map(|rule| rule.fields.each_ref().map(field).join(",") + "\n");
    lines.fold(EXPORTED_COLUMNS.join(",") + "\n", |text, line| text + &line)
}

fn xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_by_hand_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rules.csv");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            HandRules::read(&path).map_err(|error| error.to_string())
        };
        let rules = read("host,pattern,context,how\r\na.b,ignore-parameter sid,/x/,hand\n*,ignore-query,*.css,strike\nc,x,,content\n").unwrap();
        assert_eq!((rules.added.len(), rules.struck.len()), (1, 1));
        let rules = read("\u{feff}\"host\", pattern,how\n\na.b,\"ignore-parameter sid\",hand\n").unwrap();
        assert_eq!(rules.added.len(), 1);
        let cases = [
            ("", "expected a header"),
            ("pattern\n", "expected a header"),
            ("host,pattern,how\na,ignore-x,hand\n", "row 2: unknown rule \"ignore-x\""),
            ("host,pattern,how\nhttp://a/,ignore-query,hand\n", "expected a host"),
            ("host,pattern,how\n*.Example,ignore-query,hand\n", "lower case"),
            ("host,pattern,how\nb\u{fc}cher.example,ignore-query,strike\n", "xn-- labels"),
            ("host,pattern,how,context\na,ignore-query,hand,x\n", "neither"),
            ("host,pattern,how\n*.*,ignore-query,hand\n", "\"*.*\", which is the name of no host"),
            ("host,pattern,how\na.*,ignore-query,strike\n", "which is the name of no host"),
            ("host,pattern,how\n*.,ignore-query,hand\n", "which is the name of no host"),
            ("host,pattern,how\nh:80,ignore-query,hand\n", "default port of their scheme; write \"h\""),
            ("host,pattern,how\n*.h:443,ignore-query,hand\n", "default port of their scheme; write \"*.h\""),
            ("host,pattern,how\nh:,ignore-query,hand\n", "no canonical URI has; write \"h\""),
            ("host,pattern,how\nh:08080,ignore-query,strike\n", "no canonical URI has; write \"h:8080\""),
            ("host,pattern,how\n%41.org,ignore-query,hand\n", "no canonical URI has; write \"a.org\""),
            ("host,pattern,how\nh?x,ignore-query,hand\n", "no canonical URI has"),
        ];
        for host in
            ["*", "*.a.b", "a:8080", "[::1]", "[::1]:8080", "127.0.0.1", "a.b.", "u@a", "xn--bcher-kva.example", "a_b"]
        {
            assert!(read(&format!("host,pattern,how\n{host},ignore-query,hand\n")).is_ok(), "{host}");
        }
        assert!(read("host,pattern,how\nh:443,ignore-query,strike\n").is_ok());
        for (text, advice) in cases {
            let message = read(text).unwrap_err();
            assert!(message.contains(advice), "{message}");
        }
    }

    #[test]
    fn rules_that_some_hosts_are_excepted_from_are_left_out_of_expressions() {
        let exported = |(scope, rule): &(&str, &str)| ExportedRule {
            fields: Default::default(),
            scope: scope.as_bytes().to_vec(),
            rule: ContentRule::parse(rule).unwrap().into(),
        };
        let export = Export { format: ExportFormat::Sql, path: "rules.sql".into() };
        let count = |rules: &[(&str, &str)]| {
            let (text, left_out) = export.render(&rules.iter().map(exported).collect::<Vec<_>>());
            (text.matches("INSERT").count(), left_out)
        };
        for (scope, kept, is_left_out) in [
            ("*", "a.b", true),
            ("*", "*.b", true),
            ("*.b", "a.b", true),
            ("*.b", "b", true),
            ("a.b", "*.b", true),
            ("a.b", "*", true),
            ("a.b", "a.b", true),
            ("*.b", "c.ab", false),
            ("*.b", "a.c", false),
            ("a.b", "z.a.b", false),
        ] {
            let want = if is_left_out { (0, 2) } else { (3, 1) };
            assert_eq!(count(&[(scope, "ignore-parameter x"), (kept, "keep-parameter x")]), want, "{scope} {kept}");
        }
        assert_eq!(count(&[("*", "ignore-parameter x"), ("a.b", "keep-parameter y")]), (3, 1));
    }
}
