//! The report of `learn` as an HTML page: what rules about content do, and which refused rules a person should judge.

use crate::cli::report::{Bar, Table, bar_chart, chart_and_table, document, escape, section, share};
use crate::cli::terminal::thousands;
use crate::learn::Pattern;
use crate::learn::content::{HostReduction, ScopeRule};
use crate::run::LearnedContent;

/// What the page shows.
pub(super) struct LearnPage<'a> {
    /// The summary for the terminal.
    pub(super) text: &'a str,
    /// Those with the most support.
    pub(super) patterns: &'a [Pattern],
    pub(super) content: Option<&'a LearnedContent>,
    /// Names and values of limits and policy.
    pub(super) settings: &'a [(&'static str, String)],
}

impl LearnPage<'_> {
    pub(super) fn to_html(&self) -> String {
        let mut html = String::from("<header>\n<h1>irikey learn report</h1>\n</header>\n");
        section(&mut html, "Summary", "", &format!("<pre><code>{}</code></pre>\n", escape_lines(self.text)));
        if let Some(content) = self.content {
            kinds(&mut html, content);
            hosts(&mut html, content);
            doubtful(&mut html, content);
        }
        patterns(&mut html, self.patterns);
        let settings = self.settings.iter().filter(|(_, value)| !value.is_empty());
        let rows = settings.map(|(name, value)| vec![(*name).to_string(), value.clone()]);
        let table = Table::new("Limits of learning, and settings that keys depend on", &["=setting", "value"]);
        section(&mut html, "Settings", "", &table.with_rows(rows).to_html());
        document("irikey learn report", &html)
    }
}

fn escape_lines(text: &str) -> String {
    text.lines().map(|line| escape(line) + "\n").collect()
}

fn kinds(html: &mut String, content: &LearnedContent) {
    let mut kinds: Vec<_> = content.highlights.kinds.iter().collect();
    kinds.sort_by_key(|(_, totals)| std::cmp::Reverse(totals.merged));
    let counts = &content.counts;
    let note = format!(
        "{} of {} URLs are equal to others after the rules of their hosts ({}). A URL that several rules change is counted for each of \
         them.",
        thousands(counts.urls - counts.forms),
        thousands(counts.urls),
        share(counts.urls - counts.forms, counts.urls)
    );
    let bars: Vec<Bar> = kinds.iter().map(|(name, totals)| Bar::new(**name, totals.merged)).collect();
    let rows = kinds.iter().map(|(name, totals)| {
        let merged = share(totals.merged, counts.urls);
        vec![name.to_string(), thousands(totals.rules), thousands(totals.support), thousands(totals.merged), merged]
    });
    let columns = &["rule", "#rules", "#contents", "#URLs made equal", "#share"];
    let table = Table::new("Rules about content by kind", columns).with_rows(rows);
    let body = match bars.is_empty() {
        true => "<p>No rule was learned.</p>\n".to_string(),
        false => chart_and_table(&bar_chart("kinds", "URLs made equal, by rule", ("URLs", ""), &bars), &table),
    };
    section(html, "Reduction by kind of rule", &note, &body);
}

fn hosts(html: &mut String, content: &LearnedContent) {
    let hosts = &content.highlights.hosts;
    if hosts.is_empty() {
        return;
    }
    let name = |host: &[u8]| String::from_utf8_lossy(host).into_owned();
    let bar = |host: &HostReduction| Bar { part: host.merged(), ..Bar::new(name(&host.host), host.urls) };
    let bars: Vec<Bar> = hosts.iter().take(10).map(bar).collect();
    let rows = hosts.iter().map(|host| {
        let reduction = share(host.merged(), host.urls);
        vec![name(&host.host), thousands(host.urls), thousands(host.forms), thousands(host.merged()), reduction]
    });
    let columns = &["host", "#URLs", "#after the rules", "#fewer", "#share"];
    let table = Table::new("Hosts with the greatest reduction", columns).with_rows(rows);
    let chart = bar_chart("hosts", "Hosts with the greatest reduction", ("URLs", "made equal"), &bars);
    let note = "Of hosts with very many URLs, those of a sample are counted.";
    section(html, "Hosts", note, &chart_and_table(&chart, &table));
}

fn doubtful(html: &mut String, content: &LearnedContent) {
    let rules = &content.highlights.doubtful;
    if rules.is_empty() {
        return;
    }
    let note = "Rules that were refused because captures contradict them, the closest first. If the pages of the counter-examples \
                are the same to you, add the rule by hand with --rules.";
    let row = |rule: &ScopeRule| {
        let judged = &rule.judged;
        vec![
            String::from_utf8_lossy(&rule.scope).into_owned(),
            judged.rule.rule.to_string(),
            judged.rule.context.to_string(),
            thousands(judged.support),
            thousands(judged.counter),
            pair(&judged.examples),
            pair(&judged.counter_examples),
        ]
    };
    let columns = &["host", "=rule", "=context", "#for", "#against", "equal content", "different content"];
    let table = Table::new("Refused rules to judge", columns).with_rows(rules.iter().map(row));
    section(html, "Doubtful rules", note, &table.to_html());
}

/// The first pair of URLs.
fn pair(examples: &[Vec<u8>]) -> String {
    let texts: Vec<_> = examples.iter().take(2).map(|uri| String::from_utf8_lossy(uri)).collect();
    texts.join(" and ")
}

fn patterns(html: &mut String, patterns: &[Pattern]) {
    if patterns.is_empty() {
        return;
    }
    let rows = patterns.iter().map(|pattern| {
        let host = String::from_utf8_lossy(&pattern.host).into_owned();
        vec![host, pattern.rule.name(), thousands(pattern.support), thousands(pattern.counter)]
    });
    let table = Table::new("Patterns with the most support", &["host", "=pattern", "#for", "#against"]).with_rows(rows);
    section(html, "Patterns from redirects", "", &table.to_html());
}
