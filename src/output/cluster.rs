//! The index of a ZipNum cluster: which gzip member of which file begins with which line (`.idx`), and where the files are
//! (`.loc`). The formats are those of pywb.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::error::OutputError;
use super::options::Destination;
use super::sink::write_file;
use crate::process::Existing;
use crate::process::part_names::CLUSTER;

/// Where a gzip member is in its file.
#[derive(Debug)]
pub(super) struct MemberPlace {
    /// `key time` of its first line.
    pub(super) key: Vec<u8>,
    pub(super) offset: u64,
    pub(super) len: usize,
}

/// The index of several files in one directory, which together are in order.
#[derive(Debug)]
pub(super) struct ClusterIndex {
    directory: PathBuf,
    lines: Vec<u8>,
    locations: Vec<u8>,
    members: u64,
}

impl ClusterIndex {
    pub(super) fn new(directory: PathBuf) -> ClusterIndex {
        ClusterIndex { directory, lines: Vec::new(), locations: Vec::new(), members: 0 }
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Adds a file below the directory. Files are named by their paths from there, and members are numbered through all
    /// files.
    pub(super) fn add(&mut self, path: &Path, members: &[MemberPlace]) {
        let path = path.strip_prefix(&self.directory).unwrap_or(path);
        let name = path.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/");
        self.locations.extend(location(&name));
        write_index(members, &name, self.members + 1, &mut self.lines);
        self.members += members.len() as u64;
    }

    /// Writes the index and the locations.
    pub(super) fn write(&self, existing: Existing) -> Result<(), OutputError> {
        let [index, locations] = CLUSTER.map(|name| Destination::new(self.directory.join(name), existing));
        write_file(&locations, &self.locations)?;
        write_file(&index, &self.lines)
    }
}

/// Appends the lines of the members of a file: key and time, name of the file, offset, length, and number, which is `first`
/// for the first member.
pub(super) fn write_index(members: &[MemberPlace], file: &str, first: u64, out: &mut Vec<u8>) {
    for (MemberPlace { key, offset, len }, number) in members.iter().zip(first..) {
        out.extend_from_slice(key);
        // Writing to memory does not fail.
        let _ = writeln!(out, "\t{file}\t{offset}\t{len}\t{number}");
    }
}

/// The line that states that the file `name` is beside the index.
pub(super) fn location(name: &str) -> Vec<u8> {
    let mut line = Vec::new();
    // Writing to memory does not fail.
    let _ = writeln!(line, "{name}\t{name}");
    line
}
