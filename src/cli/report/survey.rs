//! The survey of the groups of duplicates, as JSON and as sections of the page.

use serde_json::{Map, Value, json};

use super::chart::Bar;
use super::html::{Table, section, share};
use crate::cli::terminal::{count_of, thousands};
use crate::dedup::{Coverage, Estimate, Findings, HostFindings, RuleFindings};

/// The member `survey` of the report. `levels` are the duplicates by what makes them duplicates.
pub(super) fn to_json(findings: &Findings, levels: &[(String, Estimate)]) -> Value {
    let rule = |(name, rule): (&String, &RuleFindings)| {
        let json = json!({
            "merged": rule.merged.value,
            "margin": rule.merged.margin,
            "compared": rule.compared,
            "differing": rule.differing,
            "examples": rule.examples,
        });
        (name.clone(), json)
    };
    let by_level = |number: fn(&Estimate) -> u64| {
        let counts = levels.iter().map(|(name, count)| (name.clone(), json!(number(count))));
        counts.collect::<Map<_, _>>()
    };
    json!({
        "groups": findings.groups.all,
        "groups_sampled": findings.groups.sampled,
        "records": findings.records.all,
        "records_sampled": findings.records.sampled,
        "groups_by_size": findings.sizes.iter().map(|class| json!({
            "from": class.from,
            "to": class.to,
            "groups": class.groups.value,
            "margin": class.groups.margin,
        })).collect::<Vec<_>>(),
        "duplicates_by": by_level(|count| count.value),
        "duplicates_by_margin": by_level(|count| count.margin),
        "rules": findings.rules.iter().map(rule).collect::<Map<_, _>>(),
        "same_uri": {"compared": findings.repeated.0, "differing": findings.repeated.1},
        "hosts": findings.hosts.iter().map(|host| json!({
            "host": host.host,
            "records": host.records.value,
            "margin": host.records.margin,
            "duplicates": host.duplicates.value,
            "duplicates_margin": host.duplicates.margin,
        })).collect::<Vec<_>>(),
        "most_repeated": findings.keys.iter().map(|key| json!({
            "uri": key.uri,
            "records": key.records.value,
            "margin": key.records.margin,
        })).collect::<Vec<_>>(),
    })
}

pub(super) fn sections(html: &mut String, found: &Findings, levels: &[(String, Estimate)]) {
    let note = "The lowest rung of the comparison ladder on which a duplicate equals another record of its group: simple is the \
                same text; syntax and scheme are the steps of RFC 3986 and RFC 3987.";
    let bars: Vec<Bar> = levels.iter().map(|(name, count)| Bar::new(name, count.value)).collect();
    let all: u64 = levels.iter().map(|(_, count)| count.value).sum();
    let row = |(name, count): &(String, Estimate)| {
        vec![name.clone(), thousands(count.value), share(count.value, all), margin(count)]
    };
    let columns = &["equal on", "#duplicates", "#share", "#margin"];
    let table = Table::new("Duplicates by rung", columns, levels.iter().map(row));
    let note = format!("{note} {}", group_sample(found));
    section(html, "Duplicates by rung", &note, &table.with_bars("rungs", ("duplicates", ""), &bars));

    let size = |from: u64, to: u64| {
        if from >= to { thousands(to) } else { format!("{} to {}", thousands(from), thousands(to)) }
    };
    let sizes: Vec<_> = found.sizes.iter().map(|class| (size(class.from, class.to), class.groups)).collect();
    let bars: Vec<Bar> = sizes.iter().map(|(name, count)| Bar::new(name, count.value)).collect();
    let rows = sizes.iter().map(|(name, count)| vec![name.clone(), thousands(count.value), margin(count)]);
    let table = Table::new("Groups by number of records", &["records", "#groups", "#margin"], rows);
    let note = format!("A group is all records with the same key. {}", group_sample(found));
    section(html, "Sizes of groups", &note, &table.with_bars("sizes", ("groups", ""), &bars));
    rules(html, found);
    hosts(html, found);
    keys(html, found);
}

/// The rules of the compared key, and how often they may have merged different pages.
fn rules(html: &mut String, found: &Findings) {
    if found.rules.is_empty() {
        return;
    }
    let (all, differing) = found.repeated;
    let note = format!(
        "URIs that a rule merged with the first URI of their group, and how often the content digests of both differ, which \
         may be a false merge. For comparison: of {} that were fetched several times, {} had different digests ({}).",
        count_of(all, "URI"),
        thousands(differing),
        share(differing, all)
    );
    let bars: Vec<Bar> = found.rules.iter().map(|(name, rule)| Bar::new(name, rule.merged.value)).collect();
    let row = |(name, rule): (&String, &RuleFindings)| {
        let (merged, compared) = (thousands(rule.merged.value), thousands(rule.compared));
        vec![name.clone(), merged, margin(&rule.merged), compared, share(rule.differing, rule.compared)]
    };
    let columns = &["rule", "#merged", "#margin", "#compared", "#different"];
    let table = Table::new("URIs merged, by rule", columns, found.rules.iter().map(row));
    let mut body = table.with_bars("rules", ("URIs", ""), &bars);
    let pairs = found.rules.iter().flat_map(|(name, rule)| rule.examples.iter().map(move |pair| (name, pair)));
    let rows: Vec<_> = pairs.map(|(name, (a, b))| vec![name.clone(), a.clone(), b.clone()]).collect();
    if !rows.is_empty() {
        let columns = &["=rule", "URI", "merged with"];
        body.push_str(&Table::new("Examples with different digests", columns, rows).to_html());
    }
    section(html, "Duplicates by rule", &note, &body);
}

fn hosts(html: &mut String, found: &Findings) {
    let bar = |host: &HostFindings| Bar { part: host.duplicates.value, ..Bar::new(&host.host, host.records.value) };
    let bars: Vec<Bar> = found.hosts.iter().take(10).map(bar).collect();
    if bars.is_empty() {
        return;
    }
    let row = |host: &HostFindings| {
        let (records, duplicates) = (thousands(host.records.value), thousands(host.duplicates.value));
        vec![
            host.host.clone(),
            records,
            margin(&host.records),
            duplicates,
            share(host.duplicates.value, host.records.value),
        ]
    };
    let columns = &["host", "#records", "#margin", "#duplicates", "#share"];
    let table = Table::new("Hosts with the most records", columns, found.hosts.iter().map(row));
    section(html, "Hosts", &record_sample(found), &table.with_bars("hosts", ("records", "duplicates"), &bars));
}

fn keys(html: &mut String, found: &Findings) {
    let rows: Vec<_> = found
        .keys
        .iter()
        .map(|key| vec![key.uri.clone(), thousands(key.records.value), margin(&key.records)])
        .collect();
    if !rows.is_empty() {
        let columns = &["one of the URIs", "#records", "#margin"];
        let table = Table::new("Keys with the most records", columns, rows).to_html();
        section(html, "Most repeated keys", &record_sample(found), &table);
    }
}

fn group_sample(found: &Findings) -> String {
    describe_sample(found.groups, "groups")
}

fn record_sample(found: &Findings) -> String {
    describe_sample(found.records, "records without a fault")
}

fn describe_sample(coverage: Coverage, what: &str) -> String {
    let Coverage { sampled, all } = coverage;
    match coverage.is_whole() {
        true => format!("Counted over all {what}."),
        false => format!(
            "Estimated from {} of {} {what}; in 19 of 20 cases the true number is within the margin.",
            thousands(sampled),
            thousands(all)
        ),
    }
}

/// The margin of an estimate; nothing for an exact number.
fn margin(count: &Estimate) -> String {
    if count.margin == 0 { "exact".to_string() } else { format!("± {}", thousands(count.margin)) }
}
