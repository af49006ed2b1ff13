//! The documentation: links resolve, examples run and print what is shown, generated tables are current.
//!
//! An example is a fenced block of `sh` or `sql` below the line `<!-- run -->`; if a `text` block follows it, that is
//! its output. Blocks of one file share a directory, which has `data` in it, and run in order. A generated table is
//! enclosed in `<!-- generated: NAME -->` and `<!-- end -->`.
//!
//! `IRIKEY_UPDATE_DOCS=1` (`scripts/docs`) writes tables and outputs anew. SQL needs a Python with DuckDB:
//! `IRIKEY_PYTHON` names it; without one, SQL is not run.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::reference_tables::Tables;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All documentation, relative to the package.
fn markdown_files() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].into_iter().map(PathBuf::from).collect();
    for directory in
        ["docs", "data", "data/cases", "docs/guide", "docs/reference", "benches/results", "python", "python/docs"]
    {
        let Ok(entries) = fs::read_dir(root().join(directory)) else { continue };
        let names = entries.map(|entry| Path::new(directory).join(entry.expect("an entry").file_name()));
        files.extend(names.filter(|path| path.extension().is_some_and(|suffix| suffix == "md")));
    }
    files.sort();
    files
}

fn read(path: &Path) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
}

/// Lines outside fenced blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The anchors that a renderer makes of headings: lower case, spaces as hyphens, without punctuation.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).filter_map(|line| Some(line.strip_prefix('#')?.trim_start_matches('#').trim()));
    let keep = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    headings.map(|heading| heading.to_lowercase().chars().filter(keep).collect::<String>().replace(' ', "-")).collect()
}

/// Targets of links, inline or by reference, without code spans.
fn links(text: &str) -> Vec<String> {
    let mut links = Vec::new();
    for line in prose(text) {
        let line: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        links.extend(line.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0.to_string())));
        if let Some((_, target)) = line.strip_prefix('[').and_then(|rest| rest.split_once("]: ")) {
            links.push(target.trim().to_string());
        }
    }
    links
}

#[test]
fn links_resolve() {
    let mut broken = Vec::new();
    let mut count = 0;
    for path in markdown_files() {
        for link in links(&read(&path)) {
            let (target, anchor) = link.split_once('#').unwrap_or((&link, ""));
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            count += 1;
            let file = if target.is_empty() { path.clone() } else { path.parent().unwrap().join(target) };
            let is_there = root().join(&file).exists();
            if !is_there || (!anchor.is_empty() && !anchors(&read(&file)).contains(anchor)) {
                broken.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "links without a target: {broken:#?}");
    assert!(count >= 50, "found only {count} links");
}

#[test]
fn the_summary_lists_every_page() {
    let listed: BTreeSet<PathBuf> =
        links(&read(Path::new("docs/SUMMARY.md"))).iter().map(|link| Path::new("docs").join(link)).collect();
    let pages = markdown_files().into_iter().filter(|path| path.starts_with("docs") && !path.ends_with("SUMMARY.md"));
    let missing: Vec<_> = pages.filter(|page| !listed.contains(page)).collect();
    assert!(missing.is_empty(), "docs/SUMMARY.md does not list {missing:?}");
}

#[test]
fn the_readme_is_short() {
    let text = read(Path::new("README.md"));
    assert!(text.len() < 10_000 && text.lines().count() < 200, "README.md: {} bytes", text.len());
}

/// Scripts write "unknown" if a binary may be of another commit than the checkout.
#[test]
fn every_results_file_names_a_commit() {
    let is_hash = |word: &str| {
        let hash = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        (7..=40).contains(&hash.len()) && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let names_commit = |text: &str| {
        let words: Vec<&str> = text.split_whitespace().collect();
        words.windows(2).any(|pair| pair[0].to_lowercase().contains("commit") && is_hash(pair[1]))
    };
    let files = markdown_files().into_iter().filter(|path| path.starts_with("benches/results"));
    let (named, missing): (Vec<_>, Vec<_>) =
        files.filter(|path| !path.ends_with("README.md")).partition(|path| names_commit(&read(path)));
    assert!(missing.is_empty(), "these files do not name the commit that was measured: {missing:?}");
    assert!(named.len() >= 60, "found only {} files", named.len());
}

#[test]
fn every_fuzz_target_is_described() {
    let targets = read(Path::new("fuzz/src/main.rs"));
    let names = targets.lines().filter_map(|line| Some(line.strip_prefix("    (\"")?.split_once('"')?.0));
    let text = read(Path::new("CONTRIBUTING.md"));
    let section = text.split_once("\n## Fuzz").and_then(|(_, rest)| rest.split_once("\n## ")).expect("a section").0;
    let (described, missing): (Vec<_>, Vec<_>) = names.partition(|name| section.contains(&format!("`{name}`")));
    assert!(missing.is_empty(), "not in the table of CONTRIBUTING.md: {missing:?}");
    assert!(described.len() >= 20, "found only {described:?}");
}

#[test]
fn every_column_is_in_one_table() {
    let tables = Tables::load();
    let text = read(Path::new("docs/reference/columns.md"));
    let count = |name: &str| tables.render(Path::new("columns.md"), &text).matches(&format!("\n| `{name}` |")).count();
    let wrong: Vec<_> = tables.column_names().into_iter().filter(|name| count(name) != 1).collect();
    assert!(wrong.is_empty(), "not in exactly one table of docs/reference/columns.md: {wrong:?}");
}

#[test]
fn documentation_is_current() {
    let tables = Tables::load();
    let python = python();
    let mut examples = Examples { python, count: BTreeMap::new() };
    let mut stale = Vec::new();
    for path in markdown_files() {
        let text = read(&path);
        let current = examples.render(&path, &tables.render(&path, &text));
        if current == text {
            continue;
        }
        if std::env::var_os("IRIKEY_UPDATE_DOCS").is_some() {
            fs::write(root().join(&path), current).expect("documentation can be written");
        } else {
            let difference = text.lines().zip(current.lines()).find(|(old, new)| old != new);
            let (old, new) = difference.unwrap_or(("", ""));
            stale.push(format!("{}\n  shown:   {old}\n  current: {new}", path.display()));
        }
    }
    assert!(stale.is_empty(), "not current; run scripts/docs and review the changes:\n{}", stale.join("\n"));
    assert!(examples.count["sh"] >= 20, "ran only {:?}", examples.count);
}

/// A Python with DuckDB.
fn python() -> Option<String> {
    let name = std::env::var("IRIKEY_PYTHON").unwrap_or_else(|_| "python3".to_string());
    let ran = Command::new(&name).args(["-c", "import duckdb"]).output().ok()?;
    assert!(ran.status.success() || std::env::var_os("IRIKEY_PYTHON").is_none(), "{name} has no DuckDB");
    ran.status.success().then_some(name)
}

struct Examples {
    python: Option<String>,
    /// Examples that ran, by language.
    count: BTreeMap<&'static str, usize>,
}

impl Examples {
    /// The text of a file with the outputs that its examples have now.
    fn render(&mut self, path: &Path, text: &str) -> String {
        let directory = tempfile::tempdir().expect("a temporary directory");
        link(&root().join("data"), &directory.path().join("data"));
        let lines: Vec<&str> = text.lines().collect();
        let (mut out, mut at) = (Vec::new(), 0);
        while at < lines.len() {
            out.push(lines[at].to_string());
            at += 1;
            let language = match (lines[at - 1], lines.get(at).copied()) {
                ("<!-- run -->", Some("```sh")) => "sh",
                ("<!-- run -->", Some("```sql")) => "sql",
                // The tests of the Python package run these.
                ("<!-- run -->", Some("```python")) => continue,
                ("<!-- run -->", other) => panic!("{}: nothing to run in {other:?}", path.display()),
                _ => continue,
            };
            let end = fence_end(&lines, at);
            let code = lines[at + 1..end].join("\n");
            out.extend(lines[at..=end].iter().map(|line| line.to_string()));
            at = end + 1;
            let printed = self.run(language, &code, directory.path()).unwrap_or_else(|| String::from("not run"));
            if lines.get(at) == Some(&"") && lines.get(at + 1) == Some(&"```text") {
                let end = fence_end(&lines, at + 1);
                let shown = lines[at + 2..end].join("\n");
                let now = if language == "sql" && self.python.is_none() { shown } else { printed };
                out.extend([String::new(), "```text".to_string()]);
                out.extend(now.trim_end().lines().map(|line| line.trim_end().to_string()));
                at = end;
            }
        }
        out.join("\n") + "\n"
    }

    /// What an example prints on standard output, or none if this machine cannot run it.
    fn run(&mut self, language: &'static str, code: &str, directory: &Path) -> Option<String> {
        let mut command = match language {
            "sh" => {
                let mut command = Command::new("bash");
                command.args([
                    "-euo",
                    "pipefail",
                    "-c",
                    &code.replace("cargo run --release --", "irikey").replace("target/release/irikey", "irikey"),
                ]);
                command
            }
            _ => {
                let mut command = Command::new(self.python.as_ref()?);
                let program =
                    "import duckdb, sys\nanswer = duckdb.sql(sys.argv[1])\nanswer and answer.show(max_width=100)";
                command.args(["-c", program, code]);
                command
            }
        };
        *self.count.entry(language).or_default() += 1;
        let binary = Path::new(env!("CARGO_BIN_EXE_irikey")).parent().expect("a directory");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths([binary.to_path_buf()].into_iter().chain(std::env::split_paths(&path)));
        let ran = command.current_dir(directory).env("PATH", path.expect("a path")).output().expect("a shell");
        assert!(ran.status.success(), "{code}\nfailed: {}", String::from_utf8_lossy(&ran.stderr));
        Some(String::from_utf8(ran.stdout).expect("examples print text"))
    }
}

/// The line that closes the fence which line `open` opens.
fn fence_end(lines: &[&str], open: usize) -> usize {
    let closing = lines[open + 1..].iter().position(|line| *line == "```");
    open + 1 + closing.unwrap_or_else(|| panic!("{} is not closed", lines[open]))
}

#[cfg(unix)]
fn link(target: &Path, name: &Path) {
    std::os::unix::fs::symlink(target, name).expect("a symbolic link");
}

#[cfg(not(unix))]
fn link(_: &Path, _: &Path) {
    panic!("examples need a Unix shell");
}
