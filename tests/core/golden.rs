//! Compares the keys of recipes with keys that the original programs created.
//!
//! `IRIKEY_GOLDEN` names a tab-separated file with a header: `url` and the columns of [`COLUMNS`]. A value is the key,
//! `ERR` if the program failed, or empty if the program did not run on this URL. The file is not part of the repository;
//! the cases in `data/cases/surt.jsonl` and `recipes.jsonl` are a selection of such keys.

use irikey::key::{Draft, Recipe};

/// The column of the file, the recipe that must give the same keys, and how many of ten thousand keys may differ.
const COLUMNS: [(&str, &str, usize); 7] = [
    ("surt_wayback", "surt-wayback", 1),
    ("surt_ia", "surt-ia", 1),
    ("crawler_commons", "crawler-commons", 50),
    ("nutch", "nutch", 50),
    ("w3lib", "w3lib", 50),
    ("urlcanon_aggressive", "urlcanon-aggressive", 50),
    ("heritrix", "heritrix", 50),
];

/// The key of a URL as the file represents it.
fn key(recipe: &Recipe, url: &[u8], draft: &mut Draft) -> Vec<u8> {
    let mut out = Vec::new();
    match recipe.write_key(url, draft, &mut out) {
        Ok(_) => out,
        Err(_) => b"ERR".to_vec(),
    }
}

#[test]
#[ignore = "needs the environment variable IRIKEY_GOLDEN: a file with keys of the original programs"]
fn keys_equal_those_of_the_original_programs() {
    let path = std::env::var_os("IRIKEY_GOLDEN").expect("IRIKEY_GOLDEN names the file with the keys");
    let path = std::path::Path::new(&path);
    let file = std::fs::read(path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    let mut lines = file.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    let fields = |line: &[u8]| line.split(|&byte| byte == b'\t').map(<[u8]>::to_vec).collect::<Vec<_>>();
    let header = fields(lines.next().expect("the file has a header"));
    let rows: Vec<_> = lines.map(fields).collect();
    let (mut compared_count, mut failures) = (0, Vec::new());
    for (column, recipe, allowed) in COLUMNS {
        let Some(at) = header.iter().position(|name| name == column.as_bytes()) else { continue };
        let recipe = Recipe::parse(recipe).expect("the name of a recipe");
        let mut draft = Draft::default();
        let (mut count, mut differences) = (0, Vec::new());
        for row in rows.iter().filter(|row| row.get(at).is_some_and(|expected| !expected.is_empty())) {
            count += 1;
            let got = key(&recipe, &row[0], &mut draft);
            // crawler-commons prints NULL if it fails.
            let is_rejected = got == b"ERR" && row[at] == b"NULL";
            if got != row[at] && !is_rejected {
                let show = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
                differences.push(format!("{}: expected {}, found {}", show(&row[0]), show(&row[at]), show(&got)));
            }
        }
        println!("{column}: {} of {count} keys are equal", count - differences.len());
        differences.iter().take(40).for_each(|difference| println!("  {difference}"));
        compared_count += count;
        if differences.len() * 10_000 > count * allowed {
            failures.push(column);
        }
    }
    assert!(compared_count > 0, "{}: no column has keys to compare", path.display());
    assert!(failures.is_empty(), "too many differences in {failures:?}");
}
