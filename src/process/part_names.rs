//! Names of files beside the parts of an output, or beside ZipNum data. Writers and readers of directories share them.

use std::path::{Path, PathBuf};

/// Lists the parts, and the policy under which they were made.
pub(crate) const MANIFEST: &str = "_manifest.json";

/// The points at which sorted parts were split.
pub(crate) const SPLITS: &str = "splits.txt";

/// The index of the members of all parts, and where the parts are.
pub(crate) const CLUSTER: [&str; 2] = ["cluster.idx", "cluster.loc"];

/// Returns whether a file of this name is about parts, and holds no records. The manifest is hidden by its name.
pub(crate) fn is_about_parts(name: &str) -> bool {
    name == SPLITS || CLUSTER.contains(&name)
}

/// Returns the paths of the index of members and of the location of the file: `x.idx` and `x.loc` beside `x.cdx.gz`.
pub(crate) fn member_index_paths(path: &Path) -> [PathBuf; 2] {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let stem = [".gz", ".cdx", ".cdxj"].iter().fold(&name[..], |stem, end| stem.strip_suffix(end).unwrap_or(stem));
    ["idx", "loc"].map(|suffix| path.with_file_name(format!("{stem}.{suffix}")))
}

/// The suffixes of ZipNum data, beside which are an index (`.idx`) and the path of the data (`.loc`).
const ZIPNUM_SUFFIXES: [&str; 2] = ["cdx.gz", "cdxj.gz"];

/// Returns the names of ZipNum data whose index or path the file `name` is if they exist: `x.cdx.gz` for `x.idx`. The inverse
/// of [`member_index_paths`] for the usual suffixes.
pub(crate) fn zipnum_data_of(name: &str) -> impl Iterator<Item = String> {
    let stem = [".idx", ".loc"].into_iter().find_map(|suffix| name.strip_suffix(suffix));
    stem.into_iter().flat_map(|stem| ZIPNUM_SUFFIXES.map(|suffix| format!("{stem}.{suffix}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_of_zipnum_data_lead_back_to_the_data() {
        for data in ["x.cdx.gz", "x.y.cdxj.gz"] {
            for index in member_index_paths(Path::new(data)) {
                assert!(zipnum_data_of(index.to_str().unwrap()).any(|name| name == data), "{data}");
            }
        }
        assert_eq!(zipnum_data_of("x.txt").count(), 0);
    }
}
