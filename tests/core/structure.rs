//! The structure of `src`: layers, purity, cycles between files, and one definition per public type name.
//!
//! The table of layers is read from `docs/ARCHITECTURE.md`, so that the documentation is the rule. Imports and inline
//! paths (`crate::x`, `super::x`) are resolved to files, through re-exports; code for tests is ignored.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::source::{Resolver, SourceFile, load};

/// What a pure module does not use: files, clocks, threads, the terminal, the environment, Arrow, and global state.
const IMPURE: [&str; 14] = [
    "std::fs",
    "std::env",
    "std::process",
    "std::thread",
    "std::time",
    "std::net::Tcp",
    "rayon",
    "arrow::",
    "File::",
    "Instant",
    "println!",
    "static mut",
    "OnceLock",
    "LazyLock",
];

/// The highest layer that is pure.
const LAST_PURE_LAYER: usize = 4;

/// Modules in those layers that are not pure.
const IMPURE_MODULES: [&str; 2] = ["ordered", "process"];

/// Where `unsafe` is allowed: the byte kernels, the mapping of files, the memory of key tables, libdeflate and zstd, signals, Arrow
/// arrays made without a second check, and the function that runs before the runtime.
const UNSAFE: [&str; 8] = [
    "src/kernel/",
    "src/input/mmap",
    "src/dedup/block_arena",
    "src/input/deflate",
    "src/output/pages/zstd_context",
    "src/process",
    "src/batch/text_array",
    "src/main.rs",
];

/// The rows of the table of layers: number, modules, and the row as it is written.
fn layers(text: &str) -> Vec<(usize, Vec<String>, String)> {
    let rows = text.lines().map(|line| line.trim_start_matches("//!").trim());
    rows.filter_map(|row| {
        let mut cells = row.strip_prefix('|')?.split('|');
        let number = cells.next()?.trim().parse().ok()?;
        let modules = cells.next()?.split('`').skip(1).step_by(2).map(str::to_string).collect();
        Some((number, modules, row.to_string()))
    })
    .collect()
}

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
}

/// The layer of each module.
fn layer_of() -> BTreeMap<String, usize> {
    let rows = layers(&read("docs/ARCHITECTURE.md"));
    rows.into_iter().flat_map(|(number, modules, _)| modules.into_iter().map(move |name| (name, number))).collect()
}

/// Edges between modules that the table does not allow, with the files that have them.
fn forbidden_edges(files: &[SourceFile]) -> BTreeMap<(String, String), BTreeSet<String>> {
    let layer_of = layer_of();
    let mut forbidden: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for file in files.iter().filter(|file| !file.module.is_empty()) {
        let from = &file.module[0];
        let layer = layer_of.get(from).unwrap_or_else(|| panic!("docs/ARCHITECTURE.md: no layer has `{from}`"));
        for to in file.references().iter().filter_map(|reference| reference.first()) {
            if to != from && layer_of.get(to).is_some_and(|below| below >= layer) {
                forbidden.entry((from.clone(), to.clone())).or_default().insert(file.path.clone());
            }
        }
    }
    forbidden
}

#[test]
fn modules_import_only_from_lower_layers() {
    let files = load();
    assert!(files.len() >= 100, "found only {} source files", files.len());
    let found = forbidden_edges(&files);
    assert!(found.is_empty(), "imports from a layer that is not lower (docs/ARCHITECTURE.md): {found:#?}");
}

#[test]
fn the_crate_documentation_shows_the_same_layers() {
    let (architecture, library) = (layers(&read("docs/ARCHITECTURE.md")), layers(&read("src/lib.rs")));
    assert!(architecture.len() >= 8, "docs/ARCHITECTURE.md has no table of layers");
    let rows = |table: Vec<(usize, Vec<String>, String)>| table.into_iter().map(|(_, _, row)| row).collect::<Vec<_>>();
    assert_eq!(rows(architecture), rows(library), "docs/ARCHITECTURE.md and src/lib.rs show different layers");
}

/// Pure files that use the operating system, threads or Arrow.
fn impure(files: &[SourceFile]) -> BTreeMap<&str, &'static str> {
    let layer_of = layer_of();
    let is_pure = |file: &&SourceFile| {
        file.module
            .first()
            .is_some_and(|name| !IMPURE_MODULES.contains(&name.as_str()) && layer_of[name] <= LAST_PURE_LAYER)
    };
    let word = |file: &SourceFile| IMPURE.into_iter().find(|word| file.uses(word));
    files.iter().filter(is_pure).filter_map(|file| Some((file.path.as_str(), word(file)?))).collect()
}

#[test]
fn layers_up_to_canon_are_pure() {
    let files = load();
    let found = impure(&files);
    assert!(found.is_empty(), "files of pure layers use what is not pure: {found:#?}");
}

#[test]
fn unsafe_code_is_confined() {
    let files = load();
    let found: Vec<_> = files.iter().filter(|file| file.words().any(|word| word == "unsafe")).collect();
    let is_in = |file: &SourceFile, place: &&str| file.path.starts_with(place);
    for file in &found {
        assert!(UNSAFE.iter().any(|place| is_in(file, place)), "{}: unsafe", file.path);
    }
    let unused: Vec<_> = UNSAFE.iter().filter(|place| !found.iter().any(|file| is_in(file, place))).collect();
    assert!(unused.is_empty(), "no unsafe code any more, so remove them from the list: {unused:?}");
}

/// Circles of imports between files of one module, as sorted lists of paths.
fn cycles(files: &[SourceFile]) -> BTreeSet<Vec<String>> {
    let resolver = Resolver::new(files);
    let mut edges: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for file in files.iter().filter(|file| !file.module.is_empty()) {
        for reference in file.references() {
            if let Some(to) = resolver.file(&reference)
                && to.path != file.path
                && to.module.first() == file.module.first()
            {
                edges.entry(&file.path).or_default().insert(&to.path);
            }
        }
    }
    let reachable = |from: &str| {
        let (mut seen, mut pending) = (BTreeSet::new(), vec![from.to_string()]);
        while let Some(path) = pending.pop() {
            let next = edges.get(path.as_str()).into_iter().flatten();
            pending.extend(next.filter(|to| seen.insert(to.to_string())).map(|to| to.to_string()));
        }
        seen
    };
    let reach: BTreeMap<String, BTreeSet<String>> =
        edges.keys().map(|path| (path.to_string(), reachable(path))).collect();
    let circle = |path: &String| -> Option<Vec<String>> {
        let others = reach[path].iter().filter(|other| reach.get(*other).is_some_and(|back| back.contains(path)));
        let members: Vec<String> = others.cloned().collect();
        (members.len() > 1).then_some(members)
    };
    reach.keys().filter_map(circle).collect()
}

#[test]
fn files_of_one_module_do_not_import_in_circles() {
    let found = cycles(&load());
    assert!(found.is_empty(), "files import each other in a circle: {found:#?}");
}

/// Public type names that more than one file or line defines.
fn duplicates(files: &[SourceFile]) -> BTreeMap<String, Vec<String>> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in files {
        for name in file.public_types() {
            places.entry(name).or_default().push(file.path.clone());
        }
    }
    places.retain(|_, places| places.len() > 1);
    places
}

#[test]
fn a_public_type_name_is_defined_once() {
    let found = duplicates(&load());
    assert!(found.is_empty(), "public type names with several definitions: {found:#?}");
}

/// Longest line, in characters.
const MAX_LINE_LEN: usize = 130;

/// Formatters wrap the lines of Rust, but not those of Python and of scripts.
#[test]
fn lines_of_python_and_scripts_are_short() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut python, mut scripts) = (Vec::new(), Vec::new());
    for name in ["lib", "tests", "benches", "docs", "examples"] {
        files_below(&root.join("python").join(name), &mut python);
    }
    python.retain(|path| path.extension().is_some_and(|suffix| suffix == "py" || suffix == "pyi"));
    files_below(&root.join("scripts"), &mut scripts);
    scripts.retain(|path| path.extension().is_none_or(|suffix| suffix == "py"));
    assert!(python.len() > 20 && scripts.len() > 20, "found only {} and {} files", python.len(), scripts.len());
    for path in python.iter().chain(&scripts) {
        let text = fs::read_to_string(path).expect("sources are UTF-8");
        let long = text.lines().position(|line| line.chars().count() > MAX_LINE_LEN);
        assert!(long.is_none(), "{}:{}: more than {MAX_LINE_LEN} characters", path.display(), long.unwrap_or(0) + 1);
    }
}

/// Every `.rs` file below `directory`.
pub(super) fn rust_files(directory: &Path, files: &mut Vec<PathBuf>) {
    files_below(directory, files);
    files.retain(|path| path.extension().is_some_and(|suffix| suffix == "rs"));
}

/// Every file below `directory`.
fn files_below(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap_or_else(|error| panic!("cannot list {}: {error}", directory.display()))
    {
        let path = entry.expect("a directory entry").path();
        if path.is_dir() {
            files_below(&path, files);
        } else {
            files.push(path);
        }
    }
}
