//! Names of files beside the parts of an output, or beside ZipNum data. Writers and readers of directories share them.

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

/// The suffixes of ZipNum data, beside which are an index (`.idx`) and the path of the data (`.loc`).
const ZIPNUM_SUFFIXES: [&str; 2] = ["cdx.gz", "cdxj.gz"];

/// Returns the names of ZipNum data whose index or path the file `name` is if they exist: `x.cdx.gz` for `x.idx`.
pub(crate) fn zipnum_data_of(name: &str) -> impl Iterator<Item = String> {
    let stem = [".idx", ".loc"].into_iter().find_map(|suffix| name.strip_suffix(suffix));
    stem.into_iter().flat_map(|stem| ZIPNUM_SUFFIXES.map(|suffix| format!("{stem}.{suffix}")))
}
