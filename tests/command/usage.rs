//! Tests of messages about flags and the files that they name: what is wrong, where, and what to do.

use std::fs;
use std::process::Stdio;

use crate::{irikey, printed, sample};

/// Runs a job that is refused as a usage error, and returns its message.
fn refused(words: &str) -> String {
    let words: Vec<&str> = words.split(' ').collect();
    let ran = irikey(&words, b"http://a/\n", Stdio::null());
    let message = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(ran.status.code(), Some(2), "{words:?}: {message}");
    message
}

#[test]
fn all_usage_errors_have_one_form() {
    for (words, first, command) in [
        ("canon --no-such", "irikey: unexpected argument '--no-such' found\n", "irikey canon"),
        ("canon --threads x -", "irikey: invalid value 'x' for '--threads <N>'", "irikey canon"),
        ("dedup --key syntax -", "irikey: --key syntax needs --rung syntax (now scheme)", "irikey dedup"),
        ("learn -", "irikey: the following required arguments were not provided:\n", "irikey learn"),
        ("cannon", "irikey: unrecognized subcommand 'cannon'\n", "irikey"),
    ] {
        let message = refused(words);
        assert!(message.starts_with(first), "{message}");
        assert!(message.ends_with(&format!("\nFor more information, try '{command} --help'.\n")), "{message}");
    }
}

#[test]
fn flags_of_other_commands_are_named() {
    for (words, expected) in [
        ("dedup --sort uri", "irikey: --sort is a flag of irikey canon, not of irikey dedup\n\nFor more information"),
        ("dedup --resume", "irikey: --resume is a flag of irikey canon, not of irikey dedup\n"),
        ("count --part-rows 5", "irikey: --part-rows is a flag of irikey canon and dedup, not of irikey count\n"),
        ("count --keep last", "irikey: --keep is a flag of irikey dedup, not of irikey count\n"),
        ("seen --seen x", "irikey: --seen is a flag of irikey dedup, not of irikey seen\n"),
        ("--key x", "irikey: --key is a flag of irikey canon, dedup, count, diff and explain\n"),
        ("canon --colums x", "  tip: a similar argument exists: '--columns'\n\nUsage"),
    ] {
        let message = refused(words);
        assert!(message.contains(expected), "{message}");
        assert!(!message.contains("as a value"), "{message}");
    }
}

#[test]
fn files_that_cannot_be_opened_are_named_with_their_flags() {
    let directory = tempfile::tempdir().unwrap();
    let learn = format!("learn -o {}", directory.path().join("x.parquet").display());
    for (flags, named) in [
        ("canon --columns url_host_tld --psl no/file", "--psl no/file"),
        ("canon -o no/x --partition surt:no/file", "--partition surt:no/file"),
        ("canon --key protocol --equivalences no/file", "--equivalences no/file"),
        (&format!("{learn} --rules no/file"), "--rules no/file"),
        (&format!("{learn} --merge no/file"), "--merge no/file"),
    ] {
        let message = refused(flags);
        let expected = format!("irikey: {named}: cannot open: no such file or directory; check the path\n");
        assert!(message.starts_with(&expected), "{flags}: {message}");
    }
    let message = refused(&format!("canon --columns url_host_tld --psl {}", sample("crawl.parquet")));
    assert!(
        message.contains(": not a Public Suffix List; expected UTF-8 text such as public_suffix_list.dat"),
        "{message}"
    );
}

#[test]
fn values_of_flags_are_refused_with_what_is_expected() {
    for (words, expected) in [
        (
            "canon --base foo",
            "irikey: --base foo: not an absolute IRI; it needs a scheme, such as https://example.org/\n",
        ),
        (
            "canon --strict --base http://h:x/",
            "irikey: --base http://h:x/: not an absolute IRI; correct the port at byte 9\n",
        ),
        (
            "extract --base foo",
            "'--base <URI>': not an absolute IRI; it needs a scheme, such as https://example.org/\n",
        ),
        (
            "compare foo http://a/",
            "irikey: A foo: relative in reference at byte 0: a relative reference needs a base (--base)",
        ),
        (
            "compare http://a/ b/c",
            "irikey: B b/c: relative in reference at byte 0: a relative reference needs a base (--base)",
        ),
        ("compare a: b.org/c", "a host without a scheme needs --assume-scheme\n"),
        ("canon --sort uri,", "irikey: --sort: a name is empty; write names between single commas, such as uri,key\n"),
        (
            "canon --columns +uri,+",
            "irikey: --columns: a name is empty; write names between single commas, such as uri,key\n",
        ),
        (
            "canon --columns xyz",
            "unknown column `xyz`; `irikey schema` lists all columns; `NAME=` is the column of directories",
        ),
        (
            "extract --columns ulr",
            "--columns: unknown column `ulr`; did you mean `url`? expected some of url, base, charset",
        ),
        ("extract --columns +foo", "--columns: unknown column `foo`; expected some of url, base, charset"),
        (
            "canon -o e/x",
            "csv, tsv, jsonl, ndjson, txt may be followed by .gz or .zst; for a directory of parts, write e/x/; or use",
        ),
        ("dedup -o e/x", "for a directory of parts, write e/x/; or use --output-format\n"),
        ("man foo", "irikey: irikey has no command `foo`; 'irikey help' lists the commands\n"),
    ] {
        let message = refused(words);
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn flags_without_effect_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("page.html").display().to_string();
    fs::write(&page, "<a href=x>").unwrap();
    let [archive, index, list, csv] = ["crawl.warc.gz", "redirects.cdxj", "urls.txt", "crawl.csv"].map(sample);
    let out = directory.path().join("out.parquet").display().to_string();
    let base = "--base had no effect, because all inputs are archives";
    let learned = "had no effect, because no input is WARC or ARC; remove it, or check the inputs\n";
    let table = "had no effect, because no input is a table or JSON lines; remove it, or check the inputs\n";
    let text_table = "had no effect, because no input is CSV or TSV; remove it, or check the inputs\n";
    let cases: [(&[&str], &str, bool); 11] = [
        (&["canon", "--column", "1", &archive], table, true),
        (&["count", "--no-header", &archive], text_table, true),
        (&["dedup", "--delimiter", ";", &archive, &list], text_table, false),
        (&["canon", "--column", "url", &csv, &archive], table, false),
        (&["canon", "-q", "--column", "1", &archive], table, false),
        (&["extract", "--base", "http://b/", &archive], base, true),
        (&["extract", "--base", "http://b/", &archive, &page], base, false),
        (&["extract", &archive], base, false),
        (&["learn", "-o", &out, "--near-duplicates", "3", &index], learned, true),
        (&["learn", "-o", &out, "--canonical-links", &index], learned, true),
        (&["learn", "-o", &out, "--canonical-links", &archive], learned, false),
    ];
    for (words, message, is_reported) in cases {
        let printed = String::from_utf8(irikey(words, b"", Stdio::null()).stderr).unwrap();
        assert_eq!(printed.contains(message), is_reported, "{words:?}: {printed}");
    }
    for (command, flag) in [("diff", "--rung "), ("compare", "--key-hash")] {
        assert!(!printed(&[command, "--help"], b"").contains(flag), "{command}");
    }
}

#[test]
fn manual_pages_of_commands_are_printed() {
    let page = printed(&["man", "canon"], b"");
    assert!(page.contains("irikey-canon") && page.contains("part\\-rows"), "{page}");
    assert!(printed(&["man"], b"").contains("irikey\\-canon(1)"));
}
