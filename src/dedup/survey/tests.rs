//! Tests of the survey.

use super::super::key_set::key_number;
use super::findings::SizeClass;
use super::*;
use crate::key::KeyAlgorithm;

fn number(text: &str) -> u128 {
    key_number(&KeyAlgorithm::Xxh3.key(text.as_bytes()))
}

/// A record of the tests: group, URI and spelling are numbers.
#[derive(Clone, Copy)]
struct Record {
    group: usize,
    uri: usize,
    spelling: usize,
}

/// Surveys records in `row_groups` row groups. The first record of each group is kept.
fn survey(records: &[Record], row_groups: usize) -> Findings {
    let (survey, totals) = sample(records, row_groups);
    survey.finish(&totals, |_, _| vec!["scheme".to_string()])
}

/// [`survey`] before its end.
fn sample(records: &[Record], row_groups: usize) -> (DuplicateSurvey, SurveyTotals) {
    let mut seen = HashSet::new();
    let mut totals = SurveyTotals::default();
    let survey = DuplicateSurvey::new(true);
    let mut row = 0;
    for records in records.chunks(records.len().div_ceil(row_groups)) {
        let mut row_group = survey.row_group();
        for record in records {
            let uri = format!("http://h{}.test/{}-{}", record.group % 7, record.group, record.uri);
            let is_kept = seen.insert(record.group);
            totals.kept += u64::from(is_kept);
            totals.duplicates += u64::from(!is_kept);
            let (key, rung) = (number(&record.group.to_string()), number(&uri) as u64);
            let syntax = number(&format!("{uri} {}", record.spelling / 2)) as u64;
            let simple = number(&format!("{uri} {} {}", record.spelling / 2, record.spelling)) as u64;
            if row_group.takes_record(row) {
                let fate = if is_kept { RowFate::Kept } else { RowFate::Duplicate };
                row_group.add_record(row, key, uri.as_bytes(), fate);
            }
            if row_group.takes_group(key) {
                let digest = Some(if record.group.is_multiple_of(10) { rung } else { 1 });
                row_group.add_to_group(&SurveyRow { key, rungs: [simple, syntax, rung], uri: uri.as_bytes(), digest });
            }
            row += 1;
        }
        survey.add(row_group);
    }
    (survey, totals)
}

/// Every part is at most its total, and the parts of a total add up to it.
fn assert_consistent(findings: &Findings, kept: u64, duplicates: u64) {
    assert_eq!(findings.by_step.iter().map(|count| count.value).sum::<u64>(), duplicates);
    assert_eq!(findings.sizes.iter().map(|class| class.groups.value).sum::<u64>(), kept);
    for host in &findings.hosts {
        assert!(host.duplicates.value <= host.records.value, "{host:?}");
    }
    assert!(findings.hosts.iter().map(|host| host.duplicates.value).sum::<u64>() <= duplicates);
    assert!(findings.hosts.iter().map(|host| host.records.value).sum::<u64>() <= findings.records.all);
    assert!(findings.rules.values().all(|rule| rule.merged.value <= findings.by_step[3].value));
    assert!(findings.keys.iter().all(|key| key.records.value <= findings.records.all));
}

/// The true value is within twice the margin, which is so in almost all of many cases.
fn assert_near(count: &Estimate, expected: u64) {
    assert!(count.value.abs_diff(expected) <= 2 * count.margin, "{count:?}, expected {expected}");
}

/// Records of `groups` groups: 3 spellings, 2 URIs, 6 records each.
fn uniform(groups: usize) -> Vec<Record> {
    let record = |i: usize| Record { group: i % groups, uri: i / groups % 2, spelling: i / groups % 3 };
    (0..6 * groups).map(record).collect()
}

#[test]
fn small_runs_are_exact_in_any_order() {
    let mut records = uniform(1_000);
    let findings = survey(&records, 3);
    assert!(findings.groups.is_whole() && findings.records.is_whole());
    let exact = |value| Estimate { value, margin: 0 };
    assert_eq!(findings.sizes, [SizeClass { from: 5, to: 8, groups: exact(1_000) }]);
    assert_eq!(findings.by_step, [exact(0), exact(2_000), exact(2_000), exact(1_000)]);
    assert_consistent(&findings, 1_000, 5_000);
    let rule = &findings.rules["scheme"];
    assert_eq!((rule.merged, rule.compared, rule.differing, rule.examples.len()), (exact(1_000), 1_000, 100, 3));
    assert_eq!((findings.hosts.len(), findings.hosts[0].records, findings.keys[0].records), (7, exact(858), exact(6)));
    records.reverse();
    assert_eq!(survey(&records, 5), findings);
}

#[test]
fn large_runs_are_estimated_consistently_and_within_the_margin() {
    let records = uniform(40_000);
    let findings = survey(&records, 9);
    let Findings { groups, by_step, .. } = &findings;
    assert!(groups.sampled > 1_000 && groups.sampled < groups.all * 2 / 3, "{groups:?}");
    assert_eq!((groups.all, findings.records.sampled), (40_000, records::MAX_RECORDS as u64));
    assert_consistent(&findings, 40_000, 200_000);
    for (count, expected) in by_step.iter().zip([0, 80_000, 80_000, 40_000]) {
        assert_near(count, expected);
    }
    findings.hosts.iter().for_each(|host| assert_near(&host.records, 240_000 / 7));
    // The cut into row groups, and so the number of threads, changes nothing.
    assert_eq!(survey(&records, 31), findings);
}

#[test]
fn margins_of_very_large_runs_do_not_overflow() {
    let (survey, SurveyTotals { kept, duplicates, .. }) = sample(&uniform(40_000), 9);
    let totals = SurveyTotals { kept: kept << 24, duplicates: duplicates << 24, seen: 0 };
    let findings = survey.finish(&totals, |_, _| vec!["scheme".to_string()]);
    // The rule merges all pairs of the sample.
    let (all, rule) = (findings.by_step[3], findings.rules["scheme"].merged);
    assert_eq!(rule.value, all.value);
    assert!((all.margin..all.margin + all.value / 1_000).contains(&rule.margin), "{rule:?} {all:?}");
}

#[test]
fn a_group_with_most_records_does_not_distort_the_estimates() {
    for group in [1, 2] {
        let mut records = uniform(30_000);
        // The large group may be in the sample of groups or not.
        records.extend((0..120_000).map(|i| Record { group, uri: 0, spelling: i % 4 }));
        let findings = survey(&records, 4);
        assert_consistent(&findings, 30_000, 270_000);
        assert_near(&findings.by_step[0], 120_000);
        assert_near(&findings.by_step[3], 30_000);
        let host = format!("h{}.test", group % 7);
        assert_eq!(findings.hosts[0].host, host);
        assert_near(&findings.hosts[0].records, 180_000 / 7 + 120_000);
        assert_near(&findings.keys[0].records, 120_006);
        assert!(findings.keys[0].uri.starts_with(&format!("http://{host}/{group}-")));
    }
}

#[test]
fn keys_that_earlier_runs_have_seen_are_no_duplicates() {
    let mut survey = DuplicateSurvey::new(false);
    let mut row_group = survey.row_group();
    for row in 0..300u64 {
        let key = u128::from(row % 100);
        row_group.add_record(row, key, b"http://h/", RowFate::Pending);
        row_group.add_to_group(&SurveyRow { key, rungs: [row % 100; 3], uri: b"http://h/", digest: None });
    }
    survey.add(row_group);
    survey.decide_pending(|row| (40..100).contains(&row));
    let mut asked = Vec::new();
    let is_seen = |key| {
        asked.push(key);
        Ok::<_, ()>(key < 40)
    };
    survey.remove_seen(is_seen).unwrap();
    assert!(asked.is_sorted_by(|a, b| a < b) && asked.len() == 100);
    let totals = SurveyTotals { kept: 60, duplicates: 120, seen: 120 };
    let findings = survey.finish(&totals, |_, _| Vec::new());
    assert_consistent(&findings, 60, 120);
    assert_eq!(findings.groups.sampled, 60);
    assert_eq!((findings.hosts[0].records.value, findings.hosts[0].duplicates.value), (300, 120));
}

/// Which groups are sampled depends on the set of rows, not on their order or row groups, although groups have more URIs than
/// are remembered, of different lengths.
#[test]
fn the_sample_is_a_function_of_the_set_of_rows() {
    let uri = |group: u64, i: u64| {
        let len = if group < 4 { number(&format!("{group} {i}")) as usize % 1_500 } else { 30 };
        format!("http://h/{group}/{i}/{}", "a".repeat(len)).into_bytes()
    };
    let several = (0..4).flat_map(|group| (0..2_000).map(move |i| (group, i)));
    let rows: Vec<(u64, u64)> = several.chain((4..30_000).map(|group| (group, 0))).collect();
    let survey = |order: &[(u64, u64)], row_groups: usize, has_uris| {
        let survey = DuplicateSurvey::new(has_uris);
        for rows in order.chunks(order.len() / row_groups) {
            let mut row_group = survey.row_group();
            for &(group, i) in rows {
                // The large groups are among the first of the sample.
                let key = if group < 4 { u128::from(group) } else { number(&group.to_string()) };
                let (rung, uri) = (number(&format!("{group}/{i}")) as u64, uri(group, i));
                if row_group.takes_group(key) {
                    row_group.add_to_group(&SurveyRow { key, rungs: [rung; 3], uri: &uri, digest: Some(rung % 9) });
                }
            }
            survey.add(row_group);
        }
        survey.finish(&SurveyTotals { kept: 30_000, duplicates: 7_996, seen: 0 }, |_, _| vec!["rule".to_string()])
    };
    for has_uris in [true, false] {
        let expected = survey(&rows, 1, has_uris);
        assert!(expected.groups.sampled > 5_000 && !expected.groups.is_whole(), "{:?}", expected.groups);
        for (seed, row_groups) in [(1, 1), (2, 7), (3, 60), (4, 2)] {
            let mut order = rows.clone();
            order.sort_by_cached_key(|row| number(&format!("{seed} {row:?}")));
            assert!(survey(&order, row_groups, has_uris) == expected, "{seed} {has_uris}");
        }
        let mut order = rows.clone();
        order.sort_by_cached_key(|(group, i)| (uri(*group, *i).len(), *group, *i));
        assert!(survey(&order, 3, has_uris) == expected, "short URIs first {has_uris}");
        order.reverse();
        assert!(survey(&order, 3, has_uris) == expected, "long URIs first {has_uris}");
        // The large groups are longest when all others are there.
        order.sort_by_key(|(group, _)| *group < 4);
        assert!(survey(&order, 1, has_uris) == expected, "large groups last {has_uris}");
    }
}

/// URIs with smaller keys replace those that are remembered, which may be longer.
#[test]
fn a_group_of_many_uris_may_become_shorter() {
    let survey = DuplicateSurvey::new(true);
    let long = vec![b'a'; 500];
    for rows in [0..5_000u64, 5_000..10_000] {
        let mut row_group = survey.row_group();
        for row in rows {
            let (rung, uri) = (10_000 - row, if row < 5_000 { &long[..] } else { b"http://h/" });
            row_group.add_to_group(&SurveyRow { key: 1, rungs: [rung; 3], uri, digest: None });
        }
        survey.add(row_group);
    }
    let findings = survey.finish(&SurveyTotals { kept: 1, duplicates: 9_999, seen: 0 }, |_, _| Vec::new());
    assert_eq!((findings.groups.sampled, findings.groups.all), (1, 1));
}

#[test]
fn long_texts_and_many_spellings_do_not_fill_memory() {
    let survey = DuplicateSurvey::new(true);
    let uri = vec![b'a'; 1 << 20];
    let mut row_group = survey.row_group();
    for row in 0..20_000u64 {
        row_group.add_record(row, 1, &uri, RowFate::Kept);
        row_group.add_to_group(&SurveyRow { key: 1, rungs: [row; 3], uri: &uri, digest: Some(row) });
    }
    survey.add(row_group);
    let totals = SurveyTotals { kept: 1, duplicates: 19_999, seen: 0 };
    assert_consistent(&survey.finish(&totals, |_, _| Vec::new()), 1, 19_999);
}
