//! Rules about content by hand: `learn --rules`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::error::ArrowError;
use csv::StringRecord;

use crate::batch::{applied_rule, rule_batch};
use crate::cli::error::CommandError;
use crate::iri::{ParseMode, Rung, normalize_to_rung};
use crate::learn::EquivalencesBuilder;
use crate::learn::content::{ContentRule, PathContext, ScopeRule, ScopedRule, scheme_name};

/// Rules that a user added, and learned rules that the user struck out.
#[derive(Debug, Default)]
pub(super) struct HandRules {
    added: Vec<ScopeRule>,
    /// Scope and rule, and whether such a rule was learned.
    struck: BTreeMap<(Vec<u8>, ScopedRule), bool>,
    left_out: u64,
}

/// What rules by hand changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HandCounts {
    pub(super) added: u64,
    /// Learned rules that were struck out.
    pub(super) left_out: u64,
}

/// Rules that were struck out and not learned, of which a message names at most this many.
const MAX_NAMED: usize = 5;

/// Columns of a table of rules by hand, of which the last one is optional.
const COLUMNS: [&str; 4] = ["host", "pattern", "how", "context"];

/// The words in the column `how` of rules that are added or removed by hand; rows with others are skipped.
const HOW: [&str; 2] = ["hand", "strike"];

/// The places of [`COLUMNS`].
type Columns = [Option<usize>; 4];

impl HandRules {
    /// Reads a CSV table with the columns `host`, `pattern`, `how` (`hand` or `strike`; other rows are ignored) and, if
    /// there is one, `context`: the table that `--export csv=FILE` writes.
    pub(super) fn read(path: &Path) -> Result<HandRules, CommandError> {
        let refused =
            |place: String, reason: &str| CommandError::Usage(format!("--rules {}{place}: {reason}", path.display()));
        let text = std::fs::read(path).map_err(|error| CommandError::not_opened("--rules", path, &error))?;
        let mut reader = csv::ReaderBuilder::new().flexible(true).trim(csv::Trim::All).from_reader(&text[..]);
        let find = |header: &StringRecord| COLUMNS.map(|name| header.iter().position(|field| field == name));
        let unreadable =
            |error: csv::Error| refused(", row 1".to_string(), &format!("cannot read the header: {error}"));
        let columns = find(reader.headers().map_err(unreadable)?);
        if columns[..3].contains(&None) {
            return Err(refused(String::new(), "expected a header with the columns host, pattern and how"));
        }
        let mut rules = HandRules::default();
        for (i, row) in reader.records().enumerate() {
            let place = || format!(", row {}", i + 2);
            let row = row.map_err(|error| refused(place(), &error.to_string()))?;
            rules.add(&row, columns).map_err(|reason| refused(place(), &reason))?;
        }
        let mut added = BTreeSet::new();
        rules.added.retain(|rule| added.insert((rule.scope.clone(), rule.judged.rule.clone())));
        rules.with_patterns(EquivalencesBuilder::default())?;
        Ok(rules)
    }

    /// Returns the added rules together with patterns of hosts.
    pub(super) fn with_patterns(&self, mut all: EquivalencesBuilder) -> Result<EquivalencesBuilder, CommandError> {
        self.added.iter().for_each(|rule| all.add_rule(&rule.scope, rule.judged.rule.clone()));
        let all = all.build_unchecked();
        match all.find_loops().into_iter().min() {
            Some(host) => Err(CommandError::Usage(format!(
                "--rules: the rules of {} form a loop, with redirects or with other rules; remove one of them",
                String::from_utf8_lossy(&host)
            ))),
            None => Ok(all.into_builder()),
        }
    }

    fn add(&mut self, row: &StringRecord, columns: Columns) -> Result<(), String> {
        let [host, pattern, how, context] = columns.map(|at| at.and_then(|at| row.get(at)).unwrap_or_default());
        if !HOW.contains(&how) {
            let is_meant = HOW.iter().any(|word| how.eq_ignore_ascii_case(word));
            return if is_meant { Err(format!("the column how is {how:?}; write hand or strike")) } else { Ok(()) };
        }
        let rule = ContentRule::parse(pattern)
            .ok_or_else(|| format!("unknown rule {pattern:?}; irikey schema lists the rules about content"))?;
        let context = PathContext::parse(context).ok_or(
            "the context is neither /NAME/, /NAME/NAME/ nor *.NAME, whose name has at most 5 characters and no dot",
        )?;
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
            "hand" => {
                check_names(&rule)?;
                self.added.push(ScopeRule::by_hand(host.as_bytes(), rule));
            }
            _ => drop(self.struck.insert((host.as_bytes().to_vec(), rule), false)),
        }
        Ok(())
    }

    /// Returns the batch without rules that were struck out.
    pub(super) fn without_struck(&mut self, batch: RecordBatch) -> Result<RecordBatch, ArrowError> {
        let mut is_kept = |row: usize| {
            let rule = applied_rule(&batch, row).map(|(scope, rule)| (scope.to_vec(), rule));
            let struck = rule.and_then(|rule| self.struck.get_mut(&rule));
            struck.map(|is_learned| *is_learned = true).is_none()
        };
        let kept: BooleanArray = (0..batch.num_rows()).map(|row| Some(is_kept(row))).collect();
        self.left_out += kept.false_count() as u64;
        filter_record_batch(&batch, &kept)
    }

    pub(super) fn counts(&self) -> HandCounts {
        HandCounts { added: self.added.len() as u64, left_out: self.left_out }
    }

    /// Returns a message about the rules that were struck out and not learned, if there are any: their hosts may be misspelled.
    pub(super) fn unlearned(&self) -> Option<String> {
        let unlearned: Vec<_> = self.struck.iter().filter(|(_, is_learned)| !**is_learned).collect();
        let name = |((scope, rule), _): &(&(Vec<u8>, ScopedRule), &bool)| {
            format!("{} of {}", rule.rule, String::from_utf8_lossy(scope))
        };
        let mut names: Vec<String> = unlearned.iter().take(MAX_NAMED).map(name).collect();
        names.extend(unlearned.len().checked_sub(MAX_NAMED + 1).map(|more| format!("{} more", more + 1)));
        (!names.is_empty()).then(|| {
            format!(
                "--rules: these rules are struck out, but were not learned: {}; check hosts and contexts",
                names.join(", ")
            )
        })
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

/// Refuses a rule that would never apply, because no canonical URI has its names, or whose target is an
/// origin that no canonical URI has.
fn check_names(ScopedRule { rule, context }: &ScopedRule) -> Result<(), String> {
    if let ContentRule::SameAs { is_https, host, .. } = rule {
        let (scheme, host) = (scheme_name(*is_https), text(host));
        let own = canonical_authority(scheme, &host);
        if own.as_ref() != Some(&host) {
            let advice = own.map_or(String::new(), |own| format!("; write {scheme}://{own}"));
            return Err(format!("the origin is {scheme}://{host}, which no canonical URI has{advice}"));
        }
    }
    let of_context = match context {
        PathContext::Any => String::new(),
        PathContext::Prefix(first) => format!("{}/", text(first)),
        PathContext::Extension(extension) => format!("x.{}", text(extension)),
    };
    let of_rule = match rule {
        ContentRule::Document(name) | ContentRule::Segment(_, name) => text(name),
        // Their letter case makes no difference, but escapes have upper-case digits.
        ContentRule::PathParameter(name) => format!("x;{}", text(name).to_ascii_uppercase()),
        ContentRule::SegmentParameter(name) => format!("{}=x", text(name)),
        ContentRule::Parameter(name, _) | ContentRule::KeepParameter(name) => format!("?{}", text(name)),
        _ => String::new(),
    };
    for uri in [of_context, of_rule].map(|part| format!("http://h/{part}")) {
        if let Some(own) = canonical(&uri).filter(|own| *own != uri) {
            return Err(format!("no canonical URI has a name of this rule: {uri:?} is written {own:?}; use that name"));
        }
    }
    Ok(())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the canonical form of a URI.
fn canonical(uri: &str) -> Option<String> {
    let (canonical, _) = normalize_to_rung(uri.as_bytes(), Rung::Scheme, ParseMode::Lenient).ok()?;
    String::from_utf8(canonical.to_vec()).ok()
}

/// Returns the authority of the canonical URI that begins with a scheme and this authority, if there is one.
fn canonical_authority(scheme: &str, authority: &str) -> Option<String> {
    let canonical = canonical(&format!("{scheme}://{authority}/"))?;
    let authority = canonical.strip_prefix(scheme)?.strip_prefix("://")?.strip_suffix('/')?;
    (!authority.is_empty() && !authority.contains(['/', '?', '#'])).then(|| authority.to_string())
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
        // No rule was learned that could be struck out.
        assert!(rules.unlearned().is_some_and(|message| message.contains("ignore-query of *;")));
        let many =
            (0..9).fold(String::from("host,pattern,how\n"), |text, i| text + &format!("h{i},ignore-query,strike\n"));
        assert!(read(&many).unwrap().unlearned().is_some_and(|message| message.contains("of h4, 4 more")));
        assert_eq!(read("host,pattern,how\na.b,ignore-query,hand\n").unwrap().unlearned(), None);
        let row = "a.b,\"ignore-parameter sid\",hand\n";
        let rules = read(&format!("\u{feff}\"host\", pattern,how\n\n{row}{row}")).unwrap();
        assert_eq!(rules.counts(), HandCounts { added: 1, left_out: 0 }, "a rule is added once");
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
            ("host,pattern,how\na,same-as https://B.example,hand\n", "no canonical URI has; write https://b.example"),
            ("host,pattern,how\na,same-as https://b:443,hand\n", "no canonical URI has; write https://b"),
            ("host,pattern,how\na,ignore-parameter \u{e9},hand\n", "is written \"http://h/?%C3%A9\""),
            ("host,pattern,how\na,ignore-document %7ea,hand\n", "is written \"http://h/~a\""),
            ("host,pattern,how\na,ignore-path-parameter %7e,hand\n", "is written \"http://h/x;~\""),
            ("host,pattern,how\na,ignore-segment /../...,hand\n", "is written \"http://h/\""),
            ("host,pattern,how,context\na,ignore-query,hand,/a b/\n", "is written \"http://h/a%20b/\""),
            ("host,pattern,how,context\na,ignore-query,hand,*.tar.gz\n", "neither"),
            ("host,pattern,how\na,ignore-segment-value /a-b/*,hand\n", "unknown rule"),
        ];
        let names = "host,pattern,how,context\na,same-as http://b:8080,hand,\na,ignore-parameter 100%,hand,/%C3%A9/\n\
                     a,ignore-path-parameter a%c3,hand,*.html\na,ignore-parameter %C3%A9,strike,/%c3%a9/\n";
        assert!(read(names).is_ok());
        std::fs::write(&path, b"host,pattern,how\xFF\na,ignore-query,hand\n").unwrap();
        let error = HandRules::read(&path).unwrap_err().to_string();
        assert!(error.contains("rules.csv, row 1: cannot read the header: ") && error.contains("UTF-8"), "{error}");
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
}
