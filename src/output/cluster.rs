//! The index of a ZipNum cluster: which gzip member of which file begins with which line (`.idx`), and where the files are
//! (`.loc`). The formats are those of pywb.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::error::OutputError;
use super::options::Destination;
use super::sink::write_file;
use crate::process::part_names::CLUSTER;

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

    /// Adds the lines of the index of a file below the directory. Files are named by their paths from there, and members
    /// are numbered through all files.
    pub(super) fn add(&mut self, path: &Path, lines: &[u8]) {
        let path = path.strip_prefix(&self.directory).unwrap_or(path);
        let name = path.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/");
        self.locations.extend(location(&name));
        for line in lines.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            let mut fields = line.split(|&byte| byte == b'\t');
            let mut next = || fields.next().unwrap_or_default();
            let [key, _, offset, len] = [next(), next(), next(), next()];
            self.members += 1;
            let number = self.members.to_string();
            let fields = [key, name.as_bytes(), offset, len, number.as_bytes()];
            self.lines.extend(fields.join(&b'\t'));
            self.lines.push(b'\n');
        }
    }

    /// Writes the index and the locations.
    pub(super) fn write(&self) -> Result<(), OutputError> {
        let [index, locations] = CLUSTER.map(|name| Destination::File(self.directory.join(name)));
        write_file(&locations, &self.locations)?;
        write_file(&index, &self.lines)
    }
}

/// The line that says that the file `name` is beside the index.
pub(super) fn location(name: &str) -> Vec<u8> {
    let mut line = Vec::new();
    // Writing to memory does not fail.
    let _ = writeln!(line, "{name}\t{name}");
    line
}
