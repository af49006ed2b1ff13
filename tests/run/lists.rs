//! The list of sources that the arguments name.

use crate::collect::file;
use irikey::input::{ListError, list};
use std::fs;
use std::path::Path;

fn names(arguments: &[&str], root: &Path) -> Vec<String> {
    let strip = |name: String| name.strip_prefix(&format!("{}/", root.display())).map(str::to_string).unwrap_or(name);
    list(arguments).unwrap().names().into_iter().map(strip).collect()
}

#[test]
fn arguments_name_files_directories_lists_and_standard_input() {
    let root = tempfile::tempdir().unwrap();
    let path = |name: &str| root.path().join(name).display().to_string();
    for directory in ["d", "d/b", "d/.hidden", "e"] {
        fs::create_dir(root.path().join(directory)).unwrap();
    }
    for name in ["d/b/2", "d/b/10", "d/b.txt", "d/a", "d/.dot", "d/.hidden/x", "d/_SUCCESS", "one"] {
        file(&root, name, b"x");
    }
    assert_eq!(names(&[], root.path()), ["-"]);
    let sorted = ["d/a", "d/b.txt", "d/b/10", "d/b/2"];
    assert_eq!(names(&[&path("d")], root.path()), sorted);
    assert_eq!(names(&[&path("one"), "-", &path("d/.dot"), &path("one")], root.path()), ["one", "-", "d/.dot", "one"]);
    let text = format!("{}\r\n\n{}\n-\n", path("one"), path("d"));
    let listed = file(&root, "list", text.as_bytes());
    let expected = [&["one"][..], &sorted, &["-"]].concat();
    assert_eq!(names(&[&format!("@{}", listed.display())], root.path()), expected);
    assert_eq!(list(&[path("d")]).unwrap().total_len(), Some(4));
    assert_eq!(list(&[path("d"), "-".to_string()]).unwrap().total_len(), None);

    // A list may be compressed.
    for packed in [crate::collect::gzip(text.as_bytes()), crate::collect::zstd(text.as_bytes())] {
        let packed = file(&root, "packed", &packed);
        assert_eq!(names(&[&format!("@{}", packed.display())], root.path()), expected);
    }
    let unknown = file(&root, "list.bz2", b"BZh91AY&SY");
    let error = list(&[format!("@{}", unknown.display())]).unwrap_err().to_string();
    assert!(error.contains("neither with gzip nor with Zstandard"), "{error}");
    let utf16 = file(&root, "utf16", b"\xFF\xFEo\0n\0e\0\n\0");
    let error = list(&[format!("@{}", utf16.display())]).unwrap_err().to_string();
    assert!(error.contains("it is in UTF-16; convert it"), "{error}");
    let damaged = file(&root, "damaged.gz", &crate::collect::gzip(text.as_bytes())[..20]);
    assert!(matches!(list(&[format!("@{}", damaged.display())]), Err(ListError::List { .. })));

    assert!(matches!(list(&["-", "-"]), Err(ListError::StdinTwice)));
    #[cfg(target_os = "linux")]
    for names in [["-", "/dev/stdin"], ["/dev/fd/0", "-"], ["/dev/stdin", "/proc/self/fd/0"]] {
        assert!(matches!(list(&names), Err(ListError::StdinTwice)), "{names:?}");
    }
    assert!(matches!(list(&[path("e")]), Err(ListError::EmptyDirectory(_))));
    // A manifest without parts is that of an output without rows. Parts that it lists may be lost.
    for (manifest, is_complete) in [("{\"parts\": []}", true), ("{\"parts\": [{}]}", false), ("{}", false)] {
        let written = file(&root, "e/_manifest.json", manifest.as_bytes());
        assert_eq!(list(&[path("e")]).ok().map(|sources| sources.0.len()), is_complete.then_some(0), "{manifest}");
        fs::remove_file(written).unwrap();
    }
    std::fs::create_dir(root.path().join("d/out")).unwrap();
    file(&root, "d/out/part-00000.csv", b"url\n");
    file(&root, "d/out/_incomplete", b"");
    for directory in ["d", "d/out"] {
        let error = list(&[path(directory)]).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{}: this output of irikey is not complete", path("d/out"))), "{error}");
    }
    assert!(list(&[path("d/out/part-00000.csv")]).is_ok());
    let error = list(&[path("missing")]).unwrap_err().to_string();
    assert_eq!(error, format!("{}: cannot open: no such file or directory; check the path", path("missing")));
    let missing: Vec<_> = (0..23).map(|i| path(&format!("missing{i}"))).collect();
    let error = |count: usize| list(&missing[..count]).unwrap_err().to_string();
    assert!(error(23).contains("missing19") && error(23).ends_with("\n  and 3 more"), "{}", error(23));
    assert!(error(20).contains("missing19") && !error(20).contains("more"), "{}", error(20));
    let empty = file(&root, "empty", b"\n\n");
    assert!(matches!(list(&[format!("@{}", empty.display())]), Err(ListError::EmptyList(_))));
    assert!(matches!(list(&[format!("@{}", path("missing"))]), Err(ListError::List { .. })));
}

/// Names in a list that NUL ends are taken as they are.
#[cfg(unix)]
#[test]
fn lists_with_nul_name_any_file() {
    let root = tempfile::tempdir().unwrap();
    let names_of_files = ["#x", "cr\r", "two\nlines", " "];
    let paths: Vec<_> = names_of_files.iter().map(|name| file(&root, name, b"http://a/\n")).collect();
    let text = paths.iter().map(|path| format!("{}\0", path.display())).collect::<String>();
    let listed = file(&root, "list", text.as_bytes());
    assert_eq!(list(&[format!("@{}", listed.display())]).unwrap().total_len(), Some(40));
    // Relative names begin as they are written.
    let relative = file(&root, "relative", b"#x\0");
    let error = list(&[format!("@{}", relative.display())]).unwrap_err().to_string();
    assert!(error.starts_with("#x: cannot open"), "{error}");
}

/// A link to a directory may lead back.
#[cfg(unix)]
#[test]
fn links_to_directories_are_not_followed() {
    let root = tempfile::tempdir().unwrap();
    file(&root, "a", b"http://a/\n");
    std::os::unix::fs::symlink(root.path(), root.path().join("b")).unwrap();
    std::os::unix::fs::symlink(root.path().join("a"), root.path().join("c")).unwrap();
    assert_eq!(names(&[root.path().to_str().unwrap()], root.path()), ["a", "c"]);
}

#[cfg(unix)]
#[test]
fn a_named_pipe_is_opened_once() {
    use crate::collect::{options, run};
    let root = tempfile::tempdir().unwrap();
    let pipe = root.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let sources = list(&[&pipe]).unwrap();
    assert_eq!(sources.total_len(), None);
    let writer = std::thread::spawn(move || fs::write(pipe, "http://a/\n".repeat(50_000)).unwrap());
    assert_eq!(run(sources, &options(2, 10_000, 1000)).rows.len(), 50_000);
    writer.join().unwrap();
}
