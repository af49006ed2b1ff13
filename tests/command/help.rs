//! The examples in `--help` run as they are printed, in a directory that has the files which they name.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use super::{gzip, printed, sample};

/// The commands with examples, those first whose examples make files that others read.
const COMMANDS: [&str; 15] = [
    "canon",
    "learn",
    "dedup",
    "count",
    "extract",
    "diff",
    "explain",
    "compare",
    "check-sorted",
    "seen",
    "schema",
    "completions",
    "man",
    "eval",
    "conform",
];

/// The names of all commands but `help`, as the main help lists them.
fn listed_commands() -> Vec<String> {
    let help = printed(&["--help"], b"");
    let section = |title: &str| {
        let (_, rest) = help.split_once(&format!("\n{title}:\n")).unwrap();
        let lines: Vec<String> = rest.lines().take_while(|line| !line.is_empty()).map(str::to_string).collect();
        lines
    };
    let lines = ["Commands", "Developer commands"].into_iter().flat_map(section);
    // Further lines of a description are indented by more.
    let names = lines.filter_map(|line| Some(line.strip_prefix("  ")?.split_once(' ')?.0.to_string()));
    names.filter(|name| !name.is_empty() && name != "help").collect()
}

/// The scripts among the examples of a help text: lines that begin with a capital letter are their titles.
fn scripts(help: &str) -> Vec<String> {
    let Some((_, examples)) = help.split_once("\nExamples:\n") else { return Vec::new() };
    let examples = examples.lines().take_while(|line| line.is_empty() || line.starts_with("  "));
    let mut scripts: Vec<String> = Vec::new();
    let mut is_continued = false;
    for line in examples.map(str::trim).filter(|line| !line.is_empty()) {
        match scripts.last_mut() {
            Some(script) if is_continued => *script += &format!("\n{line}"),
            _ if line.starts_with(char::is_uppercase) => continue,
            _ => scripts.push(line.to_string()),
        }
        is_continued = line.ends_with(['\\', '|']);
    }
    scripts
}

/// Writes the files that examples read, and stands in for programs that may be missing.
fn prepare(directory: &Path) {
    let at = |name: &str| directory.join(name);
    for name in ["bin", "pages", "parts", "crawl-data", "big", "suite", ".zfunc", ".config/fish/completions"] {
        fs::create_dir_all(at(name)).unwrap();
    }
    fs::create_dir_all(at(".local/share/bash-completion/completions")).unwrap();
    fs::create_dir_all(at(".local/share/man/man1")).unwrap();
    let copies = [
        ("urls.txt", "urls.txt"),
        ("urls.txt.gz", "urls.txt.gz"),
        ("crawl.warc.gz", "crawl-data/1.warc.gz"),
        ("crawl.warc.gz", "crawl.warc.gz"),
        ("redirects.cdxj", "redirects.cdxj"),
    ];
    for (from, to) in copies {
        fs::copy(sample(from), at(to)).unwrap();
    }
    fs::write(at("cdx-1.gz"), gzip(&fs::read(sample("crawl.cdx")).unwrap())).unwrap();
    fs::write(at("lists.txt"), "urls.txt\n# a comment\nurls.txt.gz\n").unwrap();
    fs::write(at("links.csv"), "href,page,charset\n../a,http://example.org/b/c,utf-8\n").unwrap();
    fs::write(at("page.html"), "<a href=b>b</a>").unwrap();
    fs::write(at("pages/1.html"), "<a href=http://example.org/>a</a>").unwrap();
    for (name, script) in [("duckdb", "exit 0"), ("man", "cat > man.txt")] {
        let path = at("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// Runs a script, in which paths that no test may write are replaced.
fn run(script: &str, directory: &Path) -> Result<(), String> {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/cases").display().to_string();
    let script = script.replace("/big/disk", "big").replace("data/cases", &cases);
    let binary = Path::new(env!("CARGO_BIN_EXE_irikey")).parent().unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = [directory.join("bin"), binary.to_path_buf()];
    let path = std::env::join_paths(folders.into_iter().chain(std::env::split_paths(&path))).unwrap();
    let mut command = Command::new("bash");
    command.args(["-euo", "pipefail", "-c", &script]).current_dir(directory).env("PATH", path).env("HOME", directory);
    let ran = command.output().unwrap();
    match ran.status.success() {
        true => Ok(()),
        false => Err(format!("{script}\n  {}: {}", ran.status, String::from_utf8_lossy(&ran.stderr))),
    }
}

#[test]
fn the_examples_in_help_run_as_they_are_printed() {
    let directory = tempfile::tempdir().unwrap();
    prepare(directory.path());
    let captures = "irikey canon -q cdx-1.gz --sort url_surtkey,-fetch_time -o captures.parquet
        cp captures.parquet captures-1.parquet";
    run(captures, directory.path()).unwrap();
    let (mut failed, mut count) = (Vec::new(), 0);
    for command in COMMANDS.map(Some).into_iter().chain([None]) {
        let arguments: Vec<&str> = command.into_iter().chain(["--help"]).collect();
        let scripts = scripts(&printed(&arguments, b""));
        assert!(!scripts.is_empty(), "{arguments:?}: no examples");
        count += scripts.len();
        failed.extend(scripts.iter().filter_map(|script| run(script, directory.path()).err()));
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(count >= 30, "found only {count} examples");
}

/// Exit codes are listed once; the help of a command says where.
#[test]
fn exit_codes_are_listed_in_the_main_help_only() {
    let list = |help: &str| help.contains("\nExit codes:\n  0  success,");
    assert!(list(&printed(&["help"], b"")) && list(&printed(&["--help"], b"")));
    for command in ["canon", "dedup", "count", "learn", "extract", "diff"] {
        let help = printed(&[command, "--help"], b"");
        assert!(!list(&help) && help.contains("`irikey help` lists all of them"), "{command}");
    }
}

#[test]
fn help_names_a_command_that_is_similar_to_an_unknown_one() {
    for (words, similar) in [(&["help", "canno"][..], "'canon'"), (&["help", "seen", "verfy"], "'verify'")] {
        let ran = Command::new(env!("CARGO_BIN_EXE_irikey")).args(words).output().unwrap();
        let message = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.code() == Some(2) && message.contains(similar), "{words:?}: {message}");
    }
}

/// The examples of `bench` would take too long.
#[test]
fn the_examples_of_every_command_run_but_those_of_bench() {
    let mut commands = [&COMMANDS[..], &["bench"]].concat();
    commands.sort_unstable();
    let mut listed = listed_commands();
    listed.sort_unstable();
    assert_eq!(listed, commands);
}

/// A longer line of an example would be broken, and could not be copied.
#[test]
fn every_command_has_help_of_100_columns() {
    for command in listed_commands() {
        for flag in ["-h", "--help"] {
            let text = printed(&[&command, flag], b"");
            let wide = text.lines().find(|line| line.chars().count() > 100);
            assert!(wide.is_none(), "{command} {flag}: {wide:?}");
        }
    }
}

/// Flags that take one of a few names offer them in completions, also if the help lists them in its text only.
#[test]
fn completions_offer_the_names_that_flags_take() {
    let completions = printed(&["completions", "fish"], b"");
    // The names are the last argument, one per line or as arguments of a function.
    let offers = |command: &str, flag: &str, name: &str| {
        let begin = format!("-c irikey -n \"__fish_irikey_using_subcommand {command}\" -l {flag} ");
        let (_, rest) = completions.split_once(&begin).unwrap();
        let (_, names) = rest.split("\ncomplete ").next().unwrap().split_once(" -a \"").unwrap_or_default();
        names.split(['\n', '\\', ' ', ')']).any(|word| word == name)
    };
    let flags = [
        ("canon", "profile", "masinter-07"),
        ("canon", "key", "surt-wayback"),
        ("canon", "columns", "url_host_name"),
        ("canon", "sort", "fetch_time"),
        ("canon", "rules", "www-once"),
        ("canon", "rules", "surt-ia"),
        ("check-sorted", "by", "url_surtkey"),
        ("extract", "columns", "link_rel"),
        ("canon", "record-types", "continuation"),
        ("dedup", "key", "protocol"),
        ("dedup", "compression", "snappy"),
        ("count", "key", "simple"),
        ("diff", "key", "nutch"),
        ("explain", "key", "surt-ia"),
        ("bench", "compression", "lz4"),
    ];
    for (command, flag, name) in flags {
        assert!(offers(command, flag, name), "{command} --{flag} {name}");
    }
    assert!(!printed(&["canon", "--help"], b"").contains("[possible values: zstd"));
}

/// Shells complete the last item of a list, offer directories only where a directory is expected, and no files for sizes.
#[test]
fn completions_know_lists_and_directories() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("folder")).unwrap();
    fs::write(directory.path().join("file"), b"").unwrap();
    fs::write(directory.path().join("irikey.bash"), printed(&["completions", "bash"], b"")).unwrap();
    let complete = |words: &[&str]| {
        let script = "source ./irikey.bash; COMP_WORDS=(irikey \"$@\"); COMP_CWORD=$#\n\
                      _irikey irikey \"${COMP_WORDS[$#]}\" \"${COMP_WORDS[$# - 1]}\" 2> errors\n\
                      printf '%s\\n' \"${COMPREPLY[@]}\"";
        let mut bash = Command::new("bash");
        let output = bash.args(["-c", script, "bash"]).args(words).current_dir(directory.path()).output().unwrap();
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_string).collect::<Vec<_>>()
    };
    for (words, expected) in [
        (["canon", "--key", "sy"], &["syntax"][..]),
        (["canon", "--key", "scheme,surt-"], &["scheme,surt-wayback", "scheme,surt-ia"]),
        (["canon", "--columns", "+url_pa"], &["+url_path"]),
        (["canon", "--columns", "uri,fault_"], &["uri,fault_component", "uri,fault_at"]),
        (["canon", "--sort", "url_surtkey,-fetch_ti"], &["url_surtkey,-fetch_time"]),
        (["dedup", "--rules", "surt-ia,-www-o"], &["surt-ia,-www-once"]),
        (["count", "--record-types", "response,rev"], &["response,revisit"]),
        (["canon", "--psl", "fi"], &["file"]),
        (["canon", "--memory", ""], &[""]),
        (["canon", "--charset", "fi"], &["fi"]),
    ] {
        assert_eq!(complete(&words), expected, "{words:?}");
    }
    for (shell, function, directories) in [
        ("zsh", ":LIST: _irikey_list simple syntax ", ":DIR:_files -/"),
        ("fish", "-a \"(__fish_irikey_list simple syntax ", "__fish_complete_directories"),
    ] {
        let script = printed(&["completions", shell], b"");
        assert!(script.contains(function) && script.contains(directories), "{shell}");
    }
}
