//! Tests of learning in parts: `irikey learn --part` and `--merge` give what learning at once gives.

use super::{irikey, printed};
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::concat_batches;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

fn batches(path: &Path) -> Vec<RecordBatch> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap().build().unwrap();
    reader.map(Result::unwrap).collect()
}

/// Kind, URL, host and rule of all rows, one row per line.
fn lines(batches: &[RecordBatch]) -> String {
    let text = |batch: &RecordBatch, name: &str, row: usize| {
        let column = batch.column_by_name(name).unwrap().as_string::<i32>();
        if column.is_valid(row) { column.value(row).to_string() } else { String::new() }
    };
    let line = |batch: &RecordBatch, row: usize| {
        let texts = ["kind", "uri", "host", "pattern"].map(|name| text(batch, name, row));
        texts.join(" ") + "\n"
    };
    batches.iter().flat_map(|batch| (0..batch.num_rows()).map(move |row| line(batch, row))).collect()
}

/// Captures of site `number`, one per line: trackers on all sites, three hosts on some, aliases, and a site on which the
/// tracker selects the page.
fn captures(number: u32) -> String {
    let hosts: &[&str] = match number % 5 {
        0 => &["a.", "b.", "c."],
        1 => &["", "www."],
        _ => &[""],
    };
    let mut lines = String::new();
    for host in hosts {
        for (page, source) in (0..12).flat_map(|page| (0..3).map(move |source| (page, source))) {
            let content = match (number % 5, number) {
                (_, 28) => format!("{number}-{page}-{source}"),
                (1, _) => format!("{number}-{page}"),
                _ => format!("{number}-{host}-{page}"),
            };
            let more = if number == 28 { String::new() } else { format!("&x{}={source}", number % 3) };
            let url = format!("http://{host}site{number}.example/p{page}?utm_source=s{source}{more}");
            lines += &format!(
                "k)/ 2026010100000{source} {{\"url\": \"{url}\", \"status\": \"200\", \"digest\": \"CONTENT-{content}\"}}\n"
            );
        }
    }
    lines
}

#[test]
fn parts_give_the_rules_that_all_captures_give() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let text = |name: &str| at(name).display().to_string();
    let learn = |arguments: &[&str]| printed(&[&["learn", "-q"], arguments].concat(), b"");
    let redirects = (0..4).map(|i| {
        format!("k)/ 20260101000000 {{\"url\": \"http://old.example/{i}\", \"status\": \"301\", \"redirect\": \"https://old.example/{i}\"}}\n")
    });
    fs::write(at("redirects.cdxj"), redirects.collect::<String>()).unwrap();
    let mut sites: Vec<String> = (0..60).map(captures).collect();
    // The site of the second host is below a public suffix, and comes between the hosts of the first site.
    let others = [&["aaa.amazonaws.com", "zzz.amazonaws.com"][..], &["x.s3.amazonaws.com"]];
    for hosts in others {
        sites.push(hosts.iter().map(|host| captures(2).replace("site2.example", host)).collect());
    }
    fs::write(at("all.cdxj"), sites.concat()).unwrap();
    learn(&[&text("all.cdxj"), "-o", &text("all.parquet")]);
    fs::create_dir(at("parts")).unwrap();
    for part in 0..3 {
        let captures: String = sites.iter().skip(part).step_by(3).map(String::as_str).collect();
        fs::write(at("part.cdxj"), captures).unwrap();
        learn(&[&text("part.cdxj"), "--part", "-o", &text(&format!("parts/{part}.parquet"))]);
    }
    learn(&["--merge", &text("parts"), "-o", &text("merged.parquet")]);
    let all = batches(&at("all.parquet"));
    assert_eq!(batches(&at("merged.parquet")), all);
    let rules = lines(&all);
    let needed = [
        "rule  * ignore-parameter utm_source",
        "rule  *.site5.example",
        "rule  site28.example keep-parameter utm_source",
        "same-as",
    ];
    for rule in needed {
        assert!(rules.contains(rule), "{rule}\n{rules}");
    }
    // The rule for all hosts is applied, except where it is not to be.
    let url = |number: u32, source: u32| format!("http://site{number}.example/p?utm_source=s{source}\n");
    let urls =
        [(2, 1), (2, 2), (28, 1), (28, 2), (99, 1), (99, 2)].map(|(number, source)| url(number, source)).concat();
    let flags = ["--key", "protocol", "--equivalences", &text("merged.parquet")];
    let kept = printed(&[&["dedup", "-q"], &flags[..]].concat(), urls.as_bytes());
    assert_eq!(kept.lines().count(), 4, "{kept}");
    // Redirects come from the inputs.
    learn(&[&text("redirects.cdxj"), "--merge", &text("parts"), "-o", &text("merged.parquet")]);
    learn(&[&text("redirects.cdxj"), &text("all.cdxj"), "-o", &text("all.parquet")]);
    let kinds = |name: &str| lines(&batches(&at(name)));
    assert_eq!(kinds("merged.parquet"), kinds("all.parquet"));
    assert!(kinds("all.parquet").contains("http->https"));
}

/// Writes a part in which the first vote follows the first rule. Returns the number of its row, from 1.
fn write_with_vote_after_rule(part: &Path, changed: &Path) -> usize {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(part).unwrap()).unwrap();
    // The metadata of the file is in this schema only.
    let schema = reader.schema().clone();
    let rows = batches(part);
    let rows = concat_batches(rows[0].schema_ref(), &rows).unwrap().with_schema(schema).unwrap();
    let votes = lines(std::slice::from_ref(&rows)).lines().take_while(|line| line.starts_with("votes")).count();
    assert!(votes > 0 && votes + 1 < rows.num_rows());
    let mut writer = ArrowWriter::try_new(File::create(changed).unwrap(), rows.schema(), None).unwrap();
    let rest = rows.slice(votes + 1, rows.num_rows() - votes - 1);
    [rows.slice(1, votes), rows.slice(0, 1), rest].iter().for_each(|rows| writer.write(rows).unwrap());
    writer.close().unwrap();
    votes + 1
}

/// Which part has captures to learn from may not be known when they are divided.
#[test]
fn a_part_without_evidence_is_empty_and_can_be_merged() {
    let directory = tempfile::tempdir().unwrap();
    let text = |name: &str| directory.path().join(name).display().to_string();
    fs::create_dir(text("parts")).unwrap();
    fs::write(text("in.cdxj"), captures(0) + &captures(1)).unwrap();
    fs::write(text("urls.txt"), "http://h/\n").unwrap();
    let learn = |arguments: &[&str]| drop(printed(&[&["learn", "-q"], arguments].concat(), b""));
    learn(&[&text("in.cdxj"), "--part", "-o", &text("parts/1.parquet")]);
    learn(&["--merge", &text("parts"), "-o", &text("one.parquet")]);
    learn(&[&text("urls.txt"), "--part", "-o", &text("parts/2.parquet")]);
    assert_eq!(lines(&batches(Path::new(&text("parts/2.parquet")))), "");
    learn(&["--merge", &text("parts"), "-o", &text("both.parquet")]);
    let rules = |name: &str| lines(&batches(Path::new(&text(name))));
    assert!(!rules("one.parquet").is_empty());
    assert_eq!(rules("both.parquet"), rules("one.parquet"));
    let ran = irikey(&["learn", &text("urls.txt"), "-o", &text("out.parquet")], b"", Stdio::null());
    assert_eq!(ran.status.code(), Some(2), "without --part, there is nothing to learn");
}

/// Only rules about content are written to a part.
#[test]
fn the_summary_of_a_part_counts_no_redirects_that_are_not_written() {
    let directory = tempfile::tempdir().unwrap();
    let text = |name: &str| directory.path().join(name).display().to_string();
    let [input, out, report] = ["in.cdxj", "part.parquet", "report.txt"].map(text);
    let redirect = "k)/ 20260101000000 {\"url\": \"http://a.example/\", \"status\": \"301\", \"redirect\": \"http://a.example/b\"}\n";
    fs::write(&input, captures(0) + redirect).unwrap();
    for (flags, has_classes) in [(&["--part"][..], false), (&[], true)] {
        let all = [&["learn", "-q", &input, "-o", &out, "--report", &report], flags].concat();
        printed(&all, b"");
        let summary = fs::read_to_string(&report).unwrap();
        assert!(summary.contains("redirects ") && summary.contains("rules about content"), "{summary}");
        assert_eq!(["accepted", "classes", "patterns of hosts"].map(|label| summary.contains(label)), [has_classes; 3]);
        assert_eq!(summary.contains("give these inputs also to the job with --merge"), !has_classes, "{summary}");
    }
}

/// Without parts, standard input would be read, which is refused if it is a terminal.
#[test]
fn parts_are_merged_on_a_terminal_without_inputs() {
    let directory = tempfile::tempdir().unwrap();
    let text = |name: &str| directory.path().join(name).display().to_string();
    fs::write(text("in.cdxj"), captures(0)).unwrap();
    printed(&["learn", "-q", &text("in.cdxj"), "--part", "-o", &text("part.parquet")], b"");
    let on_terminal = |flags: &str| {
        let command = format!("{} learn -q {flags} -o {}", env!("CARGO_BIN_EXE_irikey"), text("out.parquet"));
        // `script` of util-linux runs a command on a terminal of its own.
        let script = ["-qec", &command, "/dev/null"];
        let ran = Command::new("script").args(script).stdin(Stdio::null()).output();
        ran.ok().map(|ran| (ran.status.code(), String::from_utf8(ran.stdout).unwrap()))
    };
    let Some((code, message)) = on_terminal("") else { return };
    assert!(code == Some(2) && message.contains("no input: name a file"), "{code:?} {message}");
    let (code, message) = on_terminal(&format!("--merge {}", text("part.parquet"))).unwrap();
    assert!(code == Some(0) && message.is_empty(), "{code:?} {message}");
    assert!(!batches(&directory.path().join("out.parquet")).is_empty());
}

#[test]
fn files_that_are_not_matching_parts_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let text = |name: &str| directory.path().join(name).display().to_string();
    fs::write(text("in.cdxj"), captures(0)).unwrap();
    let learn = |flags: &[&str], out: &str| {
        printed(&[&["learn", "-q", &text("in.cdxj"), "-o", &text(out)], flags].concat(), b"");
    };
    learn(&[], "whole.parquet");
    learn(&["--part"], "part.parquet");
    learn(&["--part", "--min-contents", "6"], "other.parquet");
    learn(&["--part", "--drop-fragment"], "keys.parquet");
    fs::copy(text("part.parquet"), text("same.parquet")).unwrap();
    fs::create_dir(text("empty")).unwrap();
    let refused = |arguments: &[&str], reason: &str| {
        let ran = irikey(arguments, b"", Stdio::null());
        let message = String::from_utf8(ran.stderr).unwrap();
        assert!(ran.status.code() == Some(2) && message.contains(reason), "{arguments:?}: {message}");
        assert!(!directory.path().join("out.parquet").exists());
    };
    let [whole, part, other, keys, same, empty, missing] =
        ["whole.parquet", "part.parquet", "other.parquet", "keys.parquet", "same.parquet", "empty", "missing.parquet"]
            .map(text);
    let merge = |files: &[&str], reason: &str| {
        let out = text("out.parquet");
        let mut arguments = vec!["learn", "-o", &out];
        files.iter().for_each(|file| arguments.extend(["--merge", file]));
        refused(&arguments, reason);
    };
    merge(&[&whole], "is not a part");
    merge(&[&part, &other], "use the same flags for all parts");
    merge(&[&keys], "drop_fragment");
    merge(&[&part, &same], "has rules of site0.example, as ");
    merge(&[&empty], "there are no .parquet files");
    merge(&[&missing], "missing.parquet");
    merge(&["s3://b/part.parquet"], "--merge s3://b/part.parquet: this file is read from a local disk only");
    fs::create_dir_all(text("spark/part.parquet")).unwrap();
    merge(&[&text("spark")], "part.parquet: is a directory; name the file");
    let changed = text("changed.parquet");
    let row = write_with_vote_after_rule(Path::new(&part), Path::new(&changed));
    merge(&[&changed], &format!("row {row} of the equivalences: votes follow rules"));
    // Flags that would have no effect.
    for flags in
        [&["--part", "--weak"][..], &["--part", "--min-support", "5"], &["--no-content", "--min-contents", "6"]]
    {
        refused(&[&["learn", &text("in.cdxj"), "-o", &text("out.parquet")], flags].concat(), flags[1]);
    }
    refused(&["learn", "--merge", &part, "--min-precision", "0.9", "-o", &text("out.parquet")], "--min-precision");
    for flags in [
        &["--weak"][..],
        &["--max-sources", "9"],
        &["--same-site"],
        &["--min-support", "9"],
        &["--min-confidence", "0.9"],
    ] {
        refused(&[&["learn", "--merge", &part, "-o", &text("out.parquet")], flags].concat(), flags[0]);
    }
    learn(&["--weak", "--merge", &part], "merged.parquet");
    merge(&[&text("in.cdxj")], "in.cdxj");
    // Files of parts are checked before the inputs are read, which have no such column.
    fs::write(text("in.csv"), "url\nhttp://h/\n").unwrap();
    let inputs = ["learn", "--format", "csv", "--column", "nope", &text("in.csv"), "-o", &text("out.parquet")];
    refused(&[&inputs[..], &["--merge", &whole]].concat(), "is not a part");
    refused(&[&inputs[..], &["--merge", &part]].concat(), "nope");
    fs::create_dir(text("parts")).unwrap();
    fs::copy(&part, text("parts/a.parquet")).unwrap();
    let replacing = ["learn", "--merge", &text("parts"), "-o", &text("parts/a.parquet")];
    refused(&replacing, "parts/a.parquet: this file is also an input");
    let canon = ["canon", &text("in.cdxj"), "--key", "protocol", "--equivalences", &part];
    refused(&canon, "merge all parts with irikey learn --merge");
}

#[test]
fn hosts_whose_names_stand_for_many_hosts_have_no_rules() {
    let directory = tempfile::tempdir().unwrap();
    let text = |name: &str| directory.path().join(name).display().to_string();
    let learn = |arguments: &[&str]| printed(&[&["learn", "-q"], arguments].concat(), b"");
    let captures = |host: &str| -> String {
        let pages = (0..12).flat_map(|page| (0..2).map(move |word| (page, word)));
        let line = |(page, word)| {
            let url = format!("http://{host}/view?id={page}&q=w{word}x{page}");
            format!("k)/ 20260101000000 {{\"url\": \"{url}\", \"status\": \"200\", \"digest\": \"{host}-{page}\"}}\n")
        };
        pages.map(line).collect()
    };
    let odd: String = ["*", "*:80", "*:8080", "*.example", "*.co.uk", ""].map(captures).concat();
    fs::write(text("odd.cdxj"), odd + &captures("shop.example")).unwrap();
    learn(&[&text("odd.cdxj"), "-o", &text("all.parquet")]);
    let rules = "rule  shop.example ignore-parameter q\n";
    assert_eq!(lines(&batches(&directory.path().join("all.parquet"))), rules);
    learn(&[&text("odd.cdxj"), "--part", "-o", &text("part.parquet")]);
    learn(&["--merge", &text("part.parquet"), "-o", &text("merged.parquet")]);
    assert_eq!(lines(&batches(&directory.path().join("merged.parquet"))), rules);
    // The rules of no such host reach others.
    let hosts = ["other.example", "x.co.uk", "h.test:8080", "shop.example", ""];
    let urls: String = hosts.map(|host| format!("http://{host}/view?id=9&q=1\nhttp://{host}/view?id=9&q=2\n")).concat();
    let kept = printed(&["dedup", "-q", "--key", "protocol", "--equivalences", &text("all.parquet")], urls.as_bytes());
    assert_eq!(kept.lines().count(), 9, "{kept}");
}

#[test]
fn rules_for_domains_do_not_reach_sites_of_others() {
    let directory = tempfile::tempdir().unwrap();
    let text = |name: &str| directory.path().join(name).display().to_string();
    let captures = |host: String| -> String {
        let pages = (0..12).flat_map(|page| (0..2).map(move |word| (page, word)));
        let line = |(page, word)| {
            let url = format!("http://{host}/view?id={page}&q=w{word}x{page}");
            format!("k)/ 20260101000000 {{\"url\": \"{url}\", \"status\": \"200\", \"digest\": \"{host}-{page}\"}}\n")
        };
        pages.map(line).collect()
    };
    // Three hosts that agree make a rule for their site only.
    let sites = ["*.0.0.1:8080", "u@*.0.0.1", "*.co.uk:8080", "*.github.io:8080", "*.test.", "*.shop.test:8080"];
    let hosts =
        |site: &str, names: &[&str]| -> Vec<String> { names.iter().map(|name| site.replace('*', name)).collect() };
    let learned: String = sites.iter().flat_map(|site| hosts(site, &["10", "11", "12"])).map(captures).collect();
    fs::write(text("in.cdxj"), learned).unwrap();
    printed(&["learn", "-q", &text("in.cdxj"), "-o", &text("rules.parquet")], b"");
    let rules = lines(&batches(&directory.path().join("rules.parquet")));
    assert_eq!(rules.matches("*.").count(), 1, "{rules}");
    assert!(rules.contains("rule  *.shop.test:8080 ignore-parameter q"), "{rules}");
    let kept = |host: &str| {
        let urls = [1, 2].map(|word| format!("http://{host}/view?id=9&q={word}\n")).concat();
        let flags = ["dedup", "-q", "--key", "protocol", "--equivalences", &text("rules.parquet")];
        printed(&flags, urls.as_bytes()).lines().count()
    };
    for (site, count) in sites.iter().zip([2, 2, 2, 2, 2, 1]) {
        assert_eq!(kept(&hosts(site, &["99"])[0]), count, "{site}");
        assert_eq!(kept(&hosts(site, &["11"])[0]), 1, "{site}");
    }
}
