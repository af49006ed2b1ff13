//! Compares recipes with keys that the original programs made. `IRIKEY_GOLDEN` names a tab-separated file with a header: `url`, and
//! the columns below; `ERR` means that a program failed, an empty field that it was not run. Without the variable, the test
//! does nothing.

use irikey::key::{Draft, Recipe};

/// Columns, the recipes that must equal them, and how many differences per ten thousand are allowed.
const COLUMNS: [(&str, &str, usize); 7] = [
    ("surt_wayback", "surt-wayback", 1),
    ("surt_ia", "surt-ia", 1),
    ("crawler_commons", "crawler-commons", 50),
    ("nutch", "nutch", 50),
    ("w3lib", "w3lib", 50),
    ("urlcanon_aggressive", "urlcanon-aggressive", 50),
    ("heritrix", "heritrix", 50),
];

/// Returns the key in the notation of the file.
fn key(recipe: &Recipe, url: &[u8], draft: &mut Draft) -> Vec<u8> {
    let mut out = Vec::new();
    match recipe.write_key(url, draft, &mut out) {
        Ok(_) => out,
        Err(_) => b"ERR".to_vec(),
    }
}

#[test]
fn recipes_equal_the_originals() {
    let Some(path) = std::env::var_os("IRIKEY_GOLDEN") else { return };
    let file = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut lines = file.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    let fields = |line: &[u8]| line.split(|&byte| byte == b'\t').map(<[u8]>::to_vec).collect::<Vec<_>>();
    let header = fields(lines.next().expect("a header"));
    let rows: Vec<_> = lines.map(fields).collect();
    let mut failures = Vec::new();
    for (column, recipe, allowed) in COLUMNS {
        let Some(at) = header.iter().position(|name| name == column.as_bytes()) else { continue };
        let recipe = Recipe::parse(recipe).expect("a recipe");
        let mut draft = Draft::default();
        let (mut asked, mut misses) = (0, Vec::new());
        for row in rows.iter().filter(|row| row.get(at).is_some_and(|want| !want.is_empty())) {
            asked += 1;
            let got = key(&recipe, &row[0], &mut draft);
            // crawler-commons writes NULL if it fails.
            let refused = got == b"ERR" && row[at] == b"NULL";
            if got != row[at] && !refused {
                let show = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
                misses.push(format!("{}: want {} got {}", show(&row[0]), show(&row[at]), show(&got)));
            }
        }
        println!("{column}: {} of {asked} agree", asked - misses.len());
        misses.iter().take(40).for_each(|miss| println!("  {miss}"));
        if misses.len() * 10_000 > asked * allowed {
            failures.push(column);
        }
    }
    assert!(failures.is_empty(), "too many differences in {failures:?}");
}
