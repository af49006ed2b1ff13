//! Names of the parts of an output, of the index files of parts and of ZipNum data, and the files of a directory or prefix that
//! are not inputs. Writers and readers share these names.

use std::path::{Path, PathBuf};

const PART_PREFIX: &str = "part-";

/// Lists the parts, and the policy under which they were made.
pub(crate) const MANIFEST: &str = "_manifest.json";

/// The lock file of a directory in which parts are written; it stays if the job is interrupted.
pub(crate) const INCOMPLETE: &str = "_incomplete";

/// The points at which sorted parts were split.
pub(crate) const SPLITS: &str = "splits.txt";

/// The index of the members of all parts, and where the parts are.
pub(crate) const CLUSTER: [&str; 2] = ["cluster.idx", "cluster.loc"];

/// Returns whether a file with this name has the split points or the index of parts, and no records. ([`MANIFEST`] is hidden by
/// its name.)
pub(crate) fn is_index_of_parts(name: &str) -> bool {
    name == SPLITS || CLUSTER.contains(&name)
}

/// Returns the paths of the index of members and of the location of the file: `x.idx` and `x.loc` beside `x.cdx.gz`.
pub(crate) fn member_index_paths(path: &Path) -> [PathBuf; 2] {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let stem = [".gz", ".cdx", ".cdxj"].iter().fold(&name[..], |stem, end| stem.strip_suffix(end).unwrap_or(stem));
    ["idx", "loc"].map(|suffix| path.with_file_name(format!("{stem}.{suffix}")))
}

/// Suffixes of ZipNum data. `USUAL_SUFFIXES` are those that irikey writes. `OTHER_SUFFIXES` are the other endings that
/// [`member_index_paths`] removes.
const USUAL_SUFFIXES: [&str; 2] = [".cdx.gz", ".cdxj.gz"];
const OTHER_SUFFIXES: [&str; 4] = ["", ".gz", ".cdx", ".cdxj"];

/// Returns whether a file is the index of ZipNum data, or contains the path of the data: `x.idx` or `x.loc` beside `x.cdx.gz`.
/// Beside data with another name, such as `x.gz`, both files must exist. `has` returns whether a file exists.
fn is_zipnum_index(path: &[u8], has: impl Fn(&[u8]) -> bool) -> bool {
    let pairs = [(".idx", ".loc"), (".loc", ".idx")];
    let parts = pairs.into_iter().find_map(|(own, other)| Some((path.strip_suffix(own.as_bytes())?, other)));
    let Some((stem, other)) = parts else { return false };
    let has = |suffix: &str| has(&[stem, suffix.as_bytes()].concat());
    USUAL_SUFFIXES.into_iter().any(has) || has(other) && OTHER_SUFFIXES.into_iter().any(has)
}

/// Returns whether a file or directory of this name is skipped in a directory or prefix of inputs, as Hive and Spark do:
/// such names are those of manifests, markers and unfinished files.
pub(crate) fn is_hidden_name(name: &[u8]) -> bool {
    matches!(name.first(), Some(b'.' | b'_'))
}

/// Digits of the numbers of the first parts.
const DIGITS: usize = 5;

/// Returns the name of a part. The names sort in the order of their numbers, because readers of a directory sort its names: from
/// 100,000 on, a letter precedes the number: `a` for six digits, `b` for seven, as in `part-a100000`.
pub(crate) fn part_name(number: u64, suffix: &str) -> String {
    let digits = format!("{number:0DIGITS$}");
    let more = digits.len() - DIGITS;
    let letter = more.checked_sub(1).map_or(String::new(), |more| char::from(b'a' + more as u8).to_string());
    format!("{PART_PREFIX}{letter}{digits}.{suffix}")
}

/// Returns whether a file has the name of a part, as [`part_name`] makes it.
pub(crate) fn is_part_name(name: &str) -> bool {
    let number = name.strip_prefix(PART_PREFIX).and_then(|rest| rest.split_once('.'));
    let digits = number.map(|(number, _)| number.strip_prefix(|c: char| c.is_ascii_lowercase()).unwrap_or(number));
    digits.is_some_and(|digits| digits.len() >= DIGITS && digits.bytes().all(|digit| digit.is_ascii_digit()))
}

/// Removes the files of a directory or prefix that have no records, but the index of other files: the split points and the
/// index of parts below a manifest, and the index of ZipNum data. `files` are sorted by the bytes of their paths. `outputs`
/// are the paths of directories with a manifest, which end with a slash.
pub(crate) fn remove_index_files<T>(files: &mut Vec<T>, outputs: &[Vec<u8>], path_of: impl Fn(&T) -> &[u8]) {
    let has = |path: &[u8]| files.binary_search_by(|file| path_of(file).cmp(path)).is_ok();
    let is_index_file = |file: &T| {
        let path = path_of(file);
        let name = &path[memchr::memrchr(b'/', path).map_or(0, |slash| slash + 1)..];
        let is_in_output = || outputs.iter().any(|output| path.starts_with(output));
        std::str::from_utf8(name).is_ok_and(is_index_of_parts) && is_in_output() || is_zipnum_index(path, has)
    };
    let removed: Vec<bool> = files.iter().map(is_index_file).collect();
    let mut removed = removed.into_iter();
    files.retain(|_| !removed.next().unwrap_or(false));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Readers sort the names of a directory.
    #[test]
    fn names_of_parts_are_sorted_as_their_numbers() {
        assert_eq!(part_name(7, "csv"), "part-00007.csv");
        assert_eq!(part_name(99_999, "csv"), "part-99999.csv");
        assert_eq!(part_name(100_000, "csv"), "part-a100000.csv");
        assert_eq!(part_name(1_000_000, "csv"), "part-b1000000.csv");
        let around = |power: u32| 10_u64.pow(power) - 2..10_u64.pow(power) + 2;
        let numbers = [0, 1, 9].into_iter().chain((2..19).flat_map(around)).chain([u64::MAX]);
        let names: Vec<String> = numbers.map(|number| part_name(number, "cdx.gz")).collect();
        assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
        assert!(names.iter().all(|name| is_part_name(name)));
        let others =
            ["part-", "part-mine.txt", "part-0000.csv", "part-00000", "part-00000-4f2e.csv", "part-ab00000.csv"];
        assert!(!others.into_iter().any(is_part_name));
    }

    #[test]
    fn indexes_of_zipnum_data_lead_back_to_the_data() {
        for (data, is_usual) in [
            ("d/x.cdx.gz", true),
            ("d/x.y.cdxj.gz", true),
            ("d/x", false),
            ("d/x.gz", false),
            ("d/x.cdx", false),
            ("d/x.idx.cdxj", false),
        ] {
            let indexes = member_index_paths(Path::new(data)).map(|path| path.to_str().unwrap().to_string());
            for (index, other) in [(&indexes[0], &indexes[1]), (&indexes[1], &indexes[0])] {
                let is_about = |files: &[&str]| {
                    is_zipnum_index(index.as_bytes(), |path| files.iter().any(|file| file.as_bytes() == path))
                };
                assert!(is_about(&[data, index, other]), "{data}");
                assert_eq!(is_about(&[data, index]), is_usual, "{data}");
                assert!(!is_about(&[index, other]), "{data}");
            }
        }
        assert!(!is_zipnum_index(b"x.txt", |_| true));
    }
}
