//! Names of files in a directory to which a job writes parts, besides the parts. Writers and readers of directories share them.

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
