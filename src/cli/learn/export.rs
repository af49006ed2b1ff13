//! Rules about content for other tools: `learn --export`.

use std::collections::BTreeMap;
use std::iter;
use std::path::PathBuf;

use arrow::array::{Array, RecordBatch};
use quick_xml::escape::partial_escape;
use serde_json::{Value, json};

use crate::batch::applied_rule;
use crate::cli::args::check_named;
use crate::learn::content::{ContentRule, RegexRule, ScopedRule, regexes_of};

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
    let (format, path) = text.split_once('=').filter(|(_, path)| !path.is_empty()).ok_or(expected)?;
    let format = match format {
        "csv" => ExportFormat::Csv,
        "nutch" => ExportFormat::Nutch,
        "stormcrawler" => ExportFormat::StormCrawler,
        "sql" => ExportFormat::Sql,
        _ => return Err(expected.to_string()),
    };
    Ok(Export { format, path: check_named(path.into())? })
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
        let render: fn(&[RegexRule]) -> String = match self.format {
            ExportFormat::Csv => return (to_csv(rules), 0),
            ExportFormat::Nutch => to_nutch,
            ExportFormat::StormCrawler => to_storm_crawler,
            ExportFormat::Sql => to_sql,
        };
        let (mut regexes, mut left_out) = (Vec::new(), 0);
        let kept = KeptParameters::of(rules);
        for ExportedRule { scope, rule, .. } in rules {
            // Without lookaround, an expression for many hosts cannot leave out those that keep the parameter.
            let expressions = if kept.limit(scope, rule) { Vec::new() } else { regexes_of(scope, rule) };
            left_out += usize::from(expressions.is_empty());
            regexes.extend(expressions);
        }
        (render(&regexes), left_out)
    }
}

/// The configuration of Nutch's plugin urlnormalizer-regex.
fn to_nutch(rules: &[RegexRule]) -> String {
    let regex = |RegexRule { pattern, replacement }: &RegexRule| {
        format!(
            "  <regex>\n    <pattern>{}</pattern>\n    <substitution>{}</substitution>\n  </regex>\n",
            partial_escape(pattern),
            partial_escape(replacement)
        )
    };
    let all: String = rules.iter().map(regex).collect();
    format!("<?xml version=\"1.0\"?>\n<regex-normalize>\n{all}</regex-normalize>\n")
}

/// Statements that make a table of the expressions, for `regexp_replace`.
fn to_sql(rules: &[RegexRule]) -> String {
    let quote = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let insert = |(i, RegexRule { pattern, replacement }): (usize, &RegexRule)| {
        let replacement = to_re2(replacement);
        format!("INSERT INTO url_rules VALUES ({i}, {}, {});\n", quote(pattern), quote(&replacement))
    };
    let all: String = rules.iter().enumerate().map(insert).collect();
    format!("CREATE TABLE url_rules (ordinal INTEGER, pattern VARCHAR, replacement VARCHAR);\n{all}")
}

/// A replacement in the syntax of RE2, which writes `\1` for a group.
fn to_re2(replacement: &str) -> String {
    replacement.split("\\$").map(|part| part.replace('$', "\\")).collect::<Vec<_>>().join("$")
}

/// The URL filter of StormCrawler.
fn to_storm_crawler(rules: &[RegexRule]) -> String {
    let regex = |rule: &RegexRule| json!({"pattern": rule.pattern, "substitution": rule.replacement});
    let all: Vec<Value> = rules.iter().map(regex).collect();
    let class = "org.apache.stormcrawler.filtering.regex.RegexURLNormalizer";
    let filter = json!({"class": class, "name": "irikey", "params": {"urlNormalizers": all}});
    format!("{filter:#}\n")
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
        let mut scopes = self.0.get(&name[..]).into_iter().flatten();
        scopes.any(|kept| is_within(kept, scope) || is_within(scope, kept))
    }
}

/// Returns whether all hosts of a scope are also hosts of another one.
fn is_within(scope: &[u8], other: &[u8]) -> bool {
    let name = scope.strip_prefix(b"*.").unwrap_or(scope);
    let is_below = |domain: &[u8]| name.strip_suffix(domain).is_some_and(|rest| matches!(rest, [] | [.., b'.']));
    scope == other || other == b"*" || other.strip_prefix(b"*.").is_some_and(is_below)
}

fn to_csv(rules: &[ExportedRule]) -> String {
    let mut table = csv::Writer::from_writer(Vec::new());
    let rows = rules.iter().map(|rule| rule.fields.each_ref().map(String::as_str));
    let written = iter::once(EXPORTED_COLUMNS).chain(rows).try_for_each(|row| table.write_record(row));
    written.expect("rows of one length are written to memory");
    let text = table.into_inner().expect("memory is flushed");
    String::from_utf8(text).expect("the fields are UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dollar_sign_of_a_host_is_no_group() {
        let rule = ExportedRule {
            fields: Default::default(),
            scope: b"a.b".to_vec(),
            rule: ScopedRule::parse("same-as https://$1.b"),
        };
        let render = |format| Export { format, path: "rules".into() }.render(std::slice::from_ref(&rule)).0;
        assert!(render(ExportFormat::Sql).contains("'https://$1.b\\1'"));
        assert!(render(ExportFormat::Nutch).contains("<substitution>https://\\$1.b$1</substitution>"));
    }

    #[test]
    fn rules_that_some_hosts_are_excepted_from_are_left_out_of_expressions() {
        let exported = |(scope, rule): &(&str, &str)| ExportedRule {
            fields: Default::default(),
            scope: scope.as_bytes().to_vec(),
            rule: ScopedRule::parse(rule),
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
