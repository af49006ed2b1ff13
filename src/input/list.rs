//! Arguments of a command in, [`Sources`] out: files, `-`, directories, `@list` files. The order is that of the
//! arguments, and within a directory that of the bytes of the paths: the same tree gives the same list everywhere.
//!
//! A directory stands for all regular files beneath it, except those whose name, or a directory's name on the way,
//! begins with a dot. Links to files in it are followed, links to directories are not (they may lead round in
//! circles); sockets, pipes and devices in it are skipped. Named by themselves, all of these are read.

use super::error::ListError;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Where a source's bytes come from.
pub enum Origin {
    /// Standard input.
    Stdin,
    /// A file, a pipe or a device in the file system.
    Path(PathBuf),
    /// Anything else that can be read.
    Reader(Box<dyn Read + Send>),
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Stdin => f.write_str("Stdin"),
            Origin::Path(path) => f.debug_tuple("Path").field(path).finish(),
            Origin::Reader(_) => f.write_str("Reader"),
        }
    }
}

/// A named input.
#[derive(Debug)]
pub struct Source {
    /// What messages and the `source` column call it: the path as given, or `-`.
    pub name: String,
    /// Where its bytes come from.
    pub origin: Origin,
    /// Bytes of a regular file, compressed as they are; `None` for what has no length beforehand.
    pub len: Option<u64>,
}

impl Source {
    /// Standard input.
    pub fn stdin() -> Source {
        Source { name: "-".to_string(), origin: Origin::Stdin, len: None }
    }

    /// Whatever `reader` gives.
    pub fn reader(name: &str, reader: impl Read + Send + 'static) -> Source {
        Source { name: name.to_string(), origin: Origin::Reader(Box::new(reader)), len: None }
    }

    /// The file at `path`; the file must exist and, if it is a regular one, be readable.
    ///
    /// # Errors
    /// [`ListError::Open`].
    pub fn path(path: PathBuf) -> Result<Source, ListError> {
        let failed = |error| ListError::Open { path: path.clone(), error };
        let metadata = fs::metadata(&path).map_err(failed)?;
        if metadata.is_file() {
            // Opening a pipe would wait for its writer, and end its writing when closed: only files are tried.
            File::open(&path).map_err(failed)?;
        }
        let len = metadata.is_file().then_some(metadata.len());
        Ok(Source { name: path.display().to_string(), origin: Origin::Path(path), len })
    }
}

/// The inputs of a run, in order.
#[derive(Debug, Default)]
pub struct Sources(pub Vec<Source>);

impl Sources {
    /// What messages and the `source` column call them.
    pub fn names(&self) -> Vec<String> {
        self.0.iter().map(|source| source.name.clone()).collect()
    }

    /// Bytes in all, if every source is a regular file.
    pub fn total_len(&self) -> Option<u64> {
        self.0.iter().map(|source| source.len).sum()
    }

    fn push(&mut self, path: PathBuf) -> Result<(), ListError> {
        if path.as_os_str() == "-" {
            if self.0.iter().any(|source| matches!(source.origin, Origin::Stdin)) {
                return Err(ListError::StdinTwice);
            }
            self.0.push(Source::stdin());
        } else if path.is_dir() {
            self.0.extend(directory(&path)?);
        } else {
            self.0.push(Source::path(path)?);
        }
        Ok(())
    }
}

/// The sources that `arguments` name. No argument is standard input. `@NAME` is a file (`@-`: standard input) with a
/// path a line, blank lines aside; what stands in it is a path or `-`, never a further list.
///
/// # Errors
/// The first argument that names nothing readable.
pub fn list<S: AsRef<OsStr>>(arguments: &[S]) -> Result<Sources, ListError> {
    let mut sources = Sources::default();
    if arguments.is_empty() {
        sources.0.push(Source::stdin());
    }
    for argument in arguments {
        match list_name(argument.as_ref()) {
            Some(name) => {
                for path in listed(Path::new(&name))? {
                    sources.push(path)?;
                }
            }
            None => sources.push(PathBuf::from(argument.as_ref()))?,
        }
    }
    Ok(sources)
}

/// What follows the `@` of a list's argument.
fn list_name(argument: &OsStr) -> Option<OsString> {
    let name = argument.as_encoded_bytes().strip_prefix(b"@").filter(|name| !name.is_empty())?;
    os_string(name)
}

#[cfg(unix)]
fn os_string(bytes: &[u8]) -> Option<OsString> {
    use std::os::unix::ffi::OsStrExt;
    Some(OsStr::from_bytes(bytes).to_os_string())
}

#[cfg(not(unix))]
fn os_string(bytes: &[u8]) -> Option<OsString> {
    std::str::from_utf8(bytes).ok().map(OsString::from)
}

/// The paths in the list at `path`.
fn listed(path: &Path) -> Result<Vec<PathBuf>, ListError> {
    let failed = |error| ListError::List { path: path.to_path_buf(), error };
    let mut bytes = Vec::new();
    if path.as_os_str() == "-" {
        io::stdin().read_to_end(&mut bytes).map_err(failed)?;
    } else {
        bytes = fs::read(path).map_err(failed)?;
    }
    let mut paths = Vec::new();
    for (i, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if !line.is_empty() {
            let bad = || ListError::ListPath { path: path.to_path_buf(), line: i + 1 };
            paths.push(PathBuf::from(os_string(line).ok_or_else(bad)?));
        }
    }
    if paths.is_empty() {
        return Err(ListError::EmptyList(path.to_path_buf()));
    }
    Ok(paths)
}

/// The files beneath `root`, sorted.
fn directory(root: &Path) -> Result<Vec<Source>, ListError> {
    let mut files = Vec::new();
    let mut todo = vec![root.to_path_buf()];
    while let Some(path) = todo.pop() {
        let failed = |error| ListError::Open { path: path.clone(), error };
        for entry in fs::read_dir(&path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let kind = entry.file_type().map_err(failed)?;
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            if kind.is_dir() {
                todo.push(entry.path());
            } else if kind.is_file() || (kind.is_symlink() && entry.path().is_file()) {
                files.push(entry.path());
            }
        }
    }
    if files.is_empty() {
        return Err(ListError::EmptyDirectory(root.to_path_buf()));
    }
    files.sort_unstable_by(|a, b| a.as_os_str().as_encoded_bytes().cmp(b.as_os_str().as_encoded_bytes()));
    files.into_iter().map(Source::path).collect()
}
