//! The pure rooms stay pure: no file, clock, thread, terminal or environment in their source. And what the README says
//! of profiles is what the code says.

use std::fs;
use std::path::{Path, PathBuf};

const PURE: [&str; 8] = ["canon", "encoding", "extract", "iri", "kernel", "key", "learn", "record"];

const FORBIDDEN: [&str; 12] = [
    "std::fs",
    "std::env",
    "std::process",
    "std::thread",
    "std::time",
    "std::net::Tcp",
    "rayon",
    "File::",
    "Instant",
    "println!",
    "static mut",
    "OnceLock",
];

#[test]
fn pure_rooms_import_no_world() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    PURE.iter().for_each(|room| collect(&src.join(room), &mut files));
    assert!(files.len() >= 25, "only {} files: were the rooms moved?", files.len());
    for path in files {
        let text = fs::read_to_string(&path).expect("sources are UTF-8");
        for word in FORBIDDEN {
            assert!(!text.contains(word), "{}: {word} in a pure room", path.display());
        }
        let is_kernel = path.starts_with(src.join("kernel"));
        assert!(is_kernel || !text.contains("unsafe"), "{}: unsafe outside kernel", path.display());
    }
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a room is a directory") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
}

#[test]
fn the_readme_shows_the_profiles_as_they_are() {
    let readme = include_str!("../../README.md");
    let table = irikey::iri::Profile::table();
    assert!(readme.contains(&table), "README.md must hold this table:\n{table}");
}
