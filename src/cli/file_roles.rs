//! The files that a command reads and writes: [`FileRoles`]. Before a job begins, they are compared by device and inode, so
//! that no output replaces an input or another output.

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};

use super::error::CommandError;
use crate::input::{Origin, Sources, list_name};
use crate::output::{Destination, OutputFormat, member_index_path, target_path};
use crate::run::Summary;

/// The flag of the report.
const REPORT: &str = "--report";

/// The files that the flags of a command name.
#[derive(Debug, Default)]
pub(crate) struct FileRoles {
    /// Files that are written, each with its flag.
    outputs: Vec<(&'static str, PathBuf)>,
    /// Files that are read besides the sources, each with its flag.
    inputs: Vec<(&'static str, PathBuf)>,
    /// The directory of the parts, if the output is a directory.
    directory: Option<PathBuf>,
    /// Standard output is written.
    has_stdout: bool,
    /// Files that exist are not replaced.
    no_clobber: bool,
}

impl FileRoles {
    /// No files yet. With `no_clobber`, an output that exists is an error.
    pub(crate) fn new(no_clobber: bool) -> FileRoles {
        FileRoles { no_clobber, ..FileRoles::default() }
    }

    /// Adds a file that is written.
    pub(crate) fn output(mut self, flag: &'static str, path: Option<&Path>) -> FileRoles {
        self.outputs.extend(path.map(|path| (flag, path.to_path_buf())));
        self
    }

    /// Adds the report.
    pub(crate) fn report(self, path: Option<&Path>) -> FileRoles {
        self.output(REPORT, path)
    }

    /// Adds the destination of rows, and the index that is written beside it.
    pub(crate) fn destination(mut self, destination: &Destination, format: OutputFormat) -> FileRoles {
        let Some(path) = destination.path() else {
            self.has_stdout = true;
            return self;
        };
        let index = (format == OutputFormat::Zipnum).then(|| member_index_path(&target_path(path)));
        self.output("-o", Some(path)).output("the index of -o,", index.as_deref())
    }

    /// Adds a directory in which parts are written.
    pub(crate) fn directory(mut self, path: &Path) -> FileRoles {
        self.directory = Some(path.to_path_buf());
        self
    }

    /// Adds a file that is read besides the sources.
    pub(crate) fn input(mut self, flag: &'static str, path: Option<&Path>) -> FileRoles {
        self.inputs.extend(path.map(|path| (flag, path.to_path_buf())));
        self
    }

    /// Adds the lists of inputs (`@FILE`) among the arguments of a command.
    pub(crate) fn lists(mut self, arguments: &[PathBuf]) -> FileRoles {
        let lists = arguments.iter().filter_map(|argument| list_name(argument.as_os_str()));
        self.inputs.extend(lists.map(|name| ("the list of inputs", PathBuf::from(name))));
        self
    }

    /// Returns the files that the job will replace.
    ///
    /// # Errors
    /// A usage error if an output is an input or another output, or exists although it must not. Devices and pipes are
    /// never in the way, because nothing is lost if they are written.
    pub(crate) fn check(&self, sources: &Sources) -> Result<Vec<PathBuf>, CommandError> {
        let written = self.written()?;
        let inputs =
            self.inputs.iter().map(|(flag, path)| (FileId::of_file(path), format!("{flag} {}", path.display())));
        let sources_with_ids = sources.0.iter().map(|source| match &source.origin {
            Origin::Path(path) => (FileId::of_file(path), source.name.clone()),
            Origin::Stdin => (FileId::of_handle(&std::io::stdin()), "standard input".to_string()),
            Origin::Special | Origin::Reader(_) => (None, source.name.clone()),
        });
        for (id, input) in inputs.chain(sources_with_ids).filter(|_| !written.is_empty()) {
            if let Some(output) = id.and_then(|id| written.get(&id)) {
                return Err(CommandError::Usage(format!(
                    "{output}: this file is also an input ({input}), which would be lost; name another output"
                )));
            }
        }
        self.check_directory(sources)?;
        let is_replaced =
            |path: &&PathBuf| !is_device_name(path) && fs::metadata(path).is_ok_and(|data| data.is_file());
        let replaced: Vec<PathBuf> = self.outputs.iter().map(|(_, path)| path).filter(is_replaced).cloned().collect();
        match replaced.first().filter(|_| self.no_clobber) {
            Some(path) => {
                let path = path.display();
                Err(CommandError::Usage(format!("{path}: the file exists, and --no-clobber forbids to replace it")))
            }
            None => Ok(replaced),
        }
    }

    /// The files of [`FileRoles::check`] that are replaced after all: only the report if no input could be read.
    pub(crate) fn replaced_after(&self, replaced: Vec<PathBuf>, summary: &Summary) -> Vec<PathBuf> {
        let report = self.outputs.iter().find(|(flag, _)| *flag == REPORT).map(|(_, path)| path);
        let is_replaced = |path: &PathBuf| !summary.is_nothing_read() || Some(path) == report;
        replaced.into_iter().filter(is_replaced).collect()
    }

    /// The names of all outputs that are regular files or do not exist.
    fn written(&self) -> Result<HashMap<FileId, String>, CommandError> {
        let stdout = self.has_stdout.then(|| FileId::of_handle(&std::io::stdout())).flatten();
        let mut written: HashMap<_, _> = stdout.into_iter().map(|id| (id, "standard output".to_string())).collect();
        for (flag, path) in &self.outputs {
            let name = format!("{flag} {}", path.display());
            let other = FileId::of_output(path).and_then(|id| written.insert(id, name.clone()));
            if let Some(other) = other {
                let message = format!("{other} and {name} are the same file; name different files");
                return Err(CommandError::Usage(message));
            }
        }
        Ok(written)
    }

    /// The directory of the parts contains no source: a later run would read its own output.
    fn check_directory(&self, sources: &Sources) -> Result<(), CommandError> {
        let Some(directory) = self.directory.as_ref().and_then(|path| fs::canonicalize(path).ok()) else {
            return Ok(());
        };
        let is_inside = |path: &PathBuf| fs::canonicalize(path).is_ok_and(|path| path.starts_with(&directory));
        let mut inside = sources.0.iter().filter(|source| match &source.origin {
            Origin::Path(path) => is_inside(path),
            _ => false,
        });
        match inside.next() {
            Some(source) => Err(CommandError::Usage(format!(
                "-o {}: this directory contains the input {}; name another directory",
                directory.display(),
                source.name
            ))),
            None => Ok(()),
        }
    }
}

/// Identifies a file, under whatever name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum FileId {
    /// Device and inode of a file that exists.
    #[cfg(unix)]
    Inode(u64, u64),
    /// The resolved path of a file.
    Path(PathBuf),
}

impl FileId {
    /// The regular file at `path`; `None` if there is none.
    fn of_file(path: &Path) -> Option<FileId> {
        let metadata = fs::metadata(path).ok()?;
        metadata.is_file().then(|| FileId::new(&metadata, path))
    }

    /// The regular file at `path`, or the one that will be created there; `None` for devices, pipes and directories.
    fn of_output(path: &Path) -> Option<FileId> {
        match fs::metadata(path) {
            Ok(metadata) => metadata.is_file().then(|| FileId::new(&metadata, path)),
            Err(_) => Some(FileId::Path(resolve(path))),
        }
    }

    #[cfg(unix)]
    fn new(metadata: &Metadata, _path: &Path) -> FileId {
        use std::os::unix::fs::MetadataExt;
        FileId::Inode(metadata.dev(), metadata.ino())
    }

    #[cfg(not(unix))]
    fn new(_metadata: &Metadata, path: &Path) -> FileId {
        FileId::Path(fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf()))
    }

    /// The regular file behind an open handle.
    #[cfg(unix)]
    fn of_handle(handle: &impl std::os::fd::AsFd) -> Option<FileId> {
        let file = fs::File::from(handle.as_fd().try_clone_to_owned().ok()?);
        let metadata = file.metadata().ok()?;
        metadata.is_file().then(|| FileId::new(&metadata, Path::new("")))
    }

    #[cfg(not(unix))]
    fn of_handle<H>(_handle: &H) -> Option<FileId> {
        None
    }
}

/// Path of a file that does not exist: its directory without links, and its name. Follows links to missing files.
fn resolve(path: &Path) -> PathBuf {
    /// As many links as Linux follows.
    const MAX_LINKS: usize = 40;
    let mut path = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        let Ok(target) = fs::read_link(&path) else { break };
        path = parent(&path).join(target);
    }
    let directory = fs::canonicalize(parent(&path)).unwrap_or_else(|_| parent(&path).to_path_buf());
    directory.join(path.file_name().unwrap_or_default())
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The path names a device or an open handle (`/dev/stdout`), and not a file that the command replaces.
fn is_device_name(path: &Path) -> bool {
    path.starts_with("/dev") || path.starts_with("/proc")
}
