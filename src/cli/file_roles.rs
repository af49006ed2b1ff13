//! The files that a command reads and writes: [`FileRoles`]. Before a job begins, they are compared by device and inode, so
//! that no output replaces an input or another output.

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};

use super::error::CommandError;
use crate::input::{Origin, Sources, list_name, shown_path};
use crate::output::{
    Destination, OutputError, OutputFormat, check_creatable, check_name, has_visible_files, is_part_file, target_path,
};
use crate::process::part_names::{INCOMPLETE, is_hidden_name, member_index_paths};
use crate::process::{HandleName, links, parent, path_name};
use crate::remote::{RemoteObject, RemoteUrl};

/// The files that the flags of a command name.
#[derive(Debug, Default)]
pub(crate) struct FileRoles {
    /// Files that are written, each with its flag, without the report.
    outputs: Vec<(&'static str, PathBuf)>,
    report: Option<PathBuf>,
    /// Files that are read besides the sources, each with its flag.
    inputs: Vec<(&'static str, PathBuf)>,
    /// Directories that are read.
    input_directories: Vec<PathBuf>,
    /// The directory of the parts, if the output is a directory.
    directory: Option<PathBuf>,
    /// The directory above the parts, if the job does not go on with those of an earlier one.
    new_parts: Option<PathBuf>,
    /// The directory of the seen store.
    store: Option<PathBuf>,
    /// Standard output is written.
    has_stdout: bool,
    /// A list of inputs is read from standard input.
    has_list_on_stdin: bool,
    /// Files that exist are not replaced.
    no_clobber: bool,
}

impl FileRoles {
    /// The report, and the directories and lists of inputs (`@FILE`) among the arguments of a command. With `no_clobber`, an
    /// output that exists is an error.
    pub(crate) fn new(arguments: &[PathBuf], no_clobber: bool, report: Option<&Path>) -> FileRoles {
        let lists = arguments.iter().filter_map(|argument| list_name(argument.as_os_str()));
        let (on_stdin, in_files): (Vec<_>, Vec<_>) = lists.partition(|name| name == "-");
        FileRoles {
            inputs: in_files.into_iter().map(|name| ("the list of inputs", PathBuf::from(name))).collect(),
            has_list_on_stdin: !on_stdin.is_empty(),
            input_directories: arguments.iter().filter(|path| path.is_dir()).cloned().collect(),
            report: report.map(Path::to_path_buf),
            no_clobber,
            ..FileRoles::default()
        }
    }

    /// Adds a file that is written.
    pub(crate) fn output(mut self, flag: &'static str, path: Option<&Path>) -> FileRoles {
        self.outputs.extend(path.map(|path| (flag, path.to_path_buf())));
        self
    }

    /// Adds the destination of rows, and the index that is written with it.
    pub(crate) fn destination(mut self, destination: &Destination, format: OutputFormat) -> FileRoles {
        let Some(path) = destination.path() else {
            self.has_stdout = true;
            return self;
        };
        self = self.output("-o", Some(path));
        if format == OutputFormat::Zipnum {
            let [index, location] = member_index_paths(&target_path(path));
            self = self.output("the index of -o,", Some(&index)).output("the location of -o,", Some(&location));
        }
        self
    }

    /// Adds a directory in which parts are written: all of them below `root`, unless the job goes on with those of an earlier
    /// one.
    pub(crate) fn directory(mut self, path: &Path, root: Option<PathBuf>) -> FileRoles {
        (self.directory, self.new_parts) = (Some(path.to_path_buf()), root);
        self
    }

    /// Adds a file that is read besides the sources.
    pub(crate) fn input(mut self, flag: &'static str, path: Option<&Path>) -> FileRoles {
        self.inputs.extend(path.map(|path| (flag, path.to_path_buf())));
        self
    }

    /// Adds a seen store.
    pub(crate) fn store(mut self, path: Option<&Path>) -> FileRoles {
        self.store = path.map(Path::to_path_buf);
        self
    }

    /// Returns the files that the job will replace.
    ///
    /// # Errors
    /// A usage error if an output is an input or another output, or exists although it must not. Devices are never in the way,
    /// because nothing is lost if they are written. An output error if the name of an output is too long or
    /// its file cannot be replaced, or if the report, which is written when the job has ended, could not be created.
    pub(crate) fn check(&self, sources: &Sources) -> Result<Vec<PathBuf>, CommandError> {
        let written = self.written()?;
        let inputs = self.inputs.iter().map(|(flag, path)| (FileId::of_file(path), name(flag, path)));
        let stdin = || (FileId::of_handle(&std::io::stdin()), "standard input".to_string());
        let sources_with_ids = sources.0.iter().map(|source| match &source.origin {
            Origin::Stdin => stdin(),
            Origin::Remote(object) => (FileId::of_object(object.name().as_ref()), source.name.clone()),
            origin => (origin.file().and_then(FileId::of_file), source.name.clone()),
        });
        let list = self.has_list_on_stdin.then(stdin);
        for (id, input) in inputs.chain(list).chain(sources_with_ids).filter(|_| !written.is_empty()) {
            if let Some(output) = id.and_then(|id| written.get(&id)) {
                return Err(CommandError::Usage(format!(
                    "{output}: this file is also an input ({input}), which would be lost; name another output"
                )));
            }
        }
        self.check_directory(sources)?;
        self.check_store()?;
        self.check_own_files(sources)?;
        self.check_no_parts()?;
        let replaced: Vec<PathBuf> =
            self.all_outputs().map(|(_, path)| path).filter(|path| self.is_replaced(path)).cloned().collect();
        if let Some(path) = replaced.first().filter(|_| self.no_clobber) {
            let path = path_name(path);
            return Err(CommandError::Usage(format!(
                "{path}: the file exists, and --no-clobber does not replace it; name another file"
            )));
        }
        self.all_outputs().try_for_each(|(_, path)| check_name(path))?;
        self.report.as_deref().map_or(Ok(()), check_report)?;
        Ok(replaced)
    }

    /// With `--no-clobber`, there are no parts yet. Those of a job that was interrupted are no output, and are made again.
    fn check_no_parts(&self) -> Result<(), CommandError> {
        let Some(root) = self.new_parts.as_deref().filter(|_| self.no_clobber) else { return Ok(()) };
        let is_listed = RemoteUrl::of_path(root).is_some() || root.is_dir() && !root.join(INCOMPLETE).exists();
        match is_listed && has_visible_files(root)? {
            true => Err(CommandError::Usage(format!(
                "{}: the directory contains parts, and --no-clobber does not replace them; name another directory",
                path_name(root)
            ))),
            false => Ok(()),
        }
    }

    fn all_outputs(&self) -> impl Iterator<Item = (&'static str, &PathBuf)> {
        let outputs = self.outputs.iter().map(|(flag, path)| (*flag, path));
        outputs.chain(self.report.iter().map(|path| ("--report", path)))
    }

    /// A file or object exists at the path of an output. Objects are only looked for if it matters.
    fn is_replaced(&self, path: &Path) -> bool {
        match RemoteUrl::of_path(path) {
            Some(url) => self.no_clobber && RemoteObject::exists(&url),
            None => HandleName::of(path).is_none() && fs::metadata(path).is_ok_and(|data| data.is_file()),
        }
    }

    /// The files of [`FileRoles::check`] that are replaced after all: only the report if `is_nothing_read`, because errors of
    /// the inputs left no record.
    pub(crate) fn replaced_after(&self, replaced: Vec<PathBuf>, is_nothing_read: bool) -> Vec<PathBuf> {
        let is_replaced = |path: &PathBuf| !is_nothing_read || Some(path) == self.report.as_ref();
        replaced.into_iter().filter(is_replaced).collect()
    }

    /// The names of all outputs that are regular files or pipes, or do not exist.
    fn written(&self) -> Result<HashMap<FileId, String>, CommandError> {
        let stdout = self.has_stdout.then(|| FileId::of_handle(&std::io::stdout())).flatten();
        let mut written: HashMap<_, _> = stdout.into_iter().map(|id| (id, "standard output".to_string())).collect();
        for (flag, path) in self.all_outputs() {
            let name = name(flag, path);
            let other = FileId::of_output(path).and_then(|id| written.insert(id, name.clone()));
            if let Some(other) = other {
                let message = format!("{other} and {name} are the same file; name different files");
                return Err(CommandError::Usage(message));
            }
        }
        Ok(written)
    }

    /// The directory of the parts contains no source, and is in no directory of sources: a later run would read its own
    /// output.
    fn check_directory(&self, sources: &Sources) -> Result<(), CommandError> {
        if let Some(url) = self.directory.as_deref().and_then(RemoteUrl::of_path) {
            return check_prefix(&url, sources);
        }
        let Some(directory) = self.directory.as_deref().map(absolute) else { return Ok(()) };
        if let Some(input) = self.input_with(&directory) {
            return Err(CommandError::Usage(format!(
                "-o {}: this directory is in the input {}, so the next job would read its own output; name another directory",
                path_name(&directory),
                path_name(input)
            )));
        }
        let is_inside = |path: &Path| fs::canonicalize(path).is_ok_and(|path| path_below(&path, &directory).is_some());
        let mut inside = sources.0.iter().filter(|source| source.origin.file().is_some_and(is_inside));
        match inside.next() {
            Some(source) => Err(CommandError::Usage(format!(
                "-o {}: this directory contains the input {}; name another directory",
                path_name(&directory),
                source.name
            ))),
            None => Ok(()),
        }
    }

    /// The directory among the inputs in which `directory` would be read.
    fn input_with(&self, directory: &Path) -> Option<&PathBuf> {
        // A directory of inputs is read without what is hidden.
        let is_visible = |below: &Path| !below.iter().any(|name| is_hidden_name(name.as_encoded_bytes()));
        self.input_directories.iter().find(|input| path_below(directory, &absolute(input)).is_some_and(is_visible))
    }

    /// The seen store is in no directory of sources: a later job would read its files as records. Neither the store nor the
    /// directory of the parts is in the other.
    fn check_store(&self) -> Result<(), CommandError> {
        let Some(store) = self.store.as_deref().map(absolute) else { return Ok(()) };
        let local = self.directory.as_deref().filter(|path| RemoteUrl::of_path(path).is_none());
        if let Some(directory) = local.map(absolute)
            && (path_below(&store, &directory).is_some() || path_below(&directory, &store).is_some())
        {
            return Err(CommandError::Usage(format!(
                "--seen {}: the store contains the directory of -o or is in it; name another directory",
                path_name(&store)
            )));
        }
        match self.input_with(&store) {
            Some(input) => Err(CommandError::Usage(format!(
                "--seen {}: this directory is in the input {}, so jobs would read the store as an input; keep the store \
                 elsewhere, or in a directory whose name begins with _, which is skipped",
                path_name(&store),
                path_name(input)
            ))),
            None => Ok(()),
        }
    }

    /// No other file is one of those that a seen store or a directory of parts consists of, and no output is in that directory, where
    /// readers would take it for a part.
    fn check_own_files(&self, sources: &Sources) -> Result<(), CommandError> {
        let outputs = self.all_outputs().map(|(flag, path)| (flag, path.as_path(), true));
        let inputs = self.inputs.iter().map(|(flag, path)| (*flag, path.as_path(), false));
        let sources = sources.0.iter().filter_map(|source| Some(("the input", source.origin.file()?, false)));
        let store = self.store.as_deref().map(absolute);
        let directory = self.directory.as_deref().map(absolute);
        for (flag, path, is_output) in outputs.chain(inputs).chain(sources) {
            let path = resolve(path);
            let is_part = |below: &Path| is_output || is_written_in(below);
            let owner = match (&store, &directory) {
                (Some(store), _) if path_below(&path, store).is_some() => "the store of --seen",
                (_, Some(directory)) if path_below(&path, directory).is_some_and(is_part) => {
                    "the directory of -o, whose parts, manifest and split points the job writes"
                }
                _ => continue,
            };
            let path = path_name(&path);
            return Err(CommandError::Usage(format!("{flag} {path}: this file is in {owner}; name another file")));
        }
        Ok(())
    }
}

/// Checks that a report can be created at `path`.
fn check_report(path: &Path) -> Result<(), CommandError> {
    check_creatable(path).map_err(|error| match error {
        OutputError::Directory(path) => CommandError::Usage(format!(
            "{}: --report names a directory; name a file such as {}",
            path_name(&path),
            path_name(&path.join("report.html"))
        )),
        error => error.into(),
    })
}

/// A file with its flag, without credentials.
fn name(flag: &str, path: &Path) -> String {
    format!("{flag} {}", path_name(&shown_path(path)))
}

/// No source is below the prefix `url`, in which parts are written.
fn check_prefix(url: &RemoteUrl, sources: &Sources) -> Result<(), CommandError> {
    let (directory, name) = (PathBuf::from(url.identity()), url.name());
    let is_below =
        |name: &str| RemoteUrl::parse(name).is_some_and(|url| Path::new(&url.identity()).starts_with(&directory));
    match sources.0.iter().find(|source| is_below(&source.name)) {
        Some(source) => Err(CommandError::Usage(format!(
            "-o {}/: this prefix contains the input {}; name another prefix",
            name.trim_end_matches('/'),
            source.name
        ))),
        None => Ok(()),
    }
}

/// A job that writes parts in a directory writes, replaces or removes the file that is `below` it.
fn is_written_in(below: &Path) -> bool {
    let is_own = |name: &str| is_part_file(name) || name.starts_with('_');
    below.iter().any(|name| is_own(&name.to_string_lossy()))
}

/// The part of `path` after `directory`, if it is below this directory. The directory may have other names than that in the
/// path, for example where it is mounted a second time. Both paths are [absolute].
fn path_below<'a>(path: &'a Path, directory: &Path) -> Option<&'a Path> {
    let id = FileId::of_directory(directory);
    let is_same = |above: &Path| above == directory || (id.is_some() && FileId::of_directory(above) == id);
    path.ancestors().find(|above| is_same(above)).and_then(|above| path.strip_prefix(above).ok())
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
    /// The object that a remote name stands for; `None` for the path of a local file.
    fn of_object(path: &Path) -> Option<FileId> {
        Some(FileId::Path(RemoteUrl::of_path(path)?.identity().into()))
    }

    /// The object or the regular file at `path`; `None` if there is no such file.
    fn of_file(path: &Path) -> Option<FileId> {
        if let Some(object) = FileId::of_object(path) {
            return Some(object);
        }
        let metadata = fs::metadata(path).ok()?;
        metadata.is_file().then(|| FileId::new(&metadata, path))
    }

    /// The directory at `path`.
    fn of_directory(path: &Path) -> Option<FileId> {
        let metadata = fs::metadata(path).ok()?;
        metadata.is_dir().then(|| FileId::new(&metadata, path))
    }

    /// The regular file or pipe at `path`, or the file that will be created there; `None` for devices and directories.
    fn of_output(path: &Path) -> Option<FileId> {
        if let Some(object) = FileId::of_object(path) {
            return Some(object);
        }
        match fs::metadata(path) {
            Ok(metadata) => is_file_or_pipe(&metadata).then(|| FileId::new(&metadata, path)),
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

    /// The regular file or pipe behind an open handle.
    #[cfg(unix)]
    fn of_handle(handle: &impl std::os::fd::AsFd) -> Option<FileId> {
        let file = fs::File::from(handle.as_fd().try_clone_to_owned().ok()?);
        let metadata = file.metadata().ok()?;
        is_file_or_pipe(&metadata).then(|| FileId::new(&metadata, Path::new("")))
    }

    #[cfg(not(unix))]
    fn of_handle<H>(_handle: &H) -> Option<FileId> {
        None
    }
}

/// What a reader would find mixed if two outputs were written to it. A terminal and a device such as `/dev/null` may get several.
fn is_file_or_pipe(metadata: &Metadata) -> bool {
    #[cfg(unix)]
    let is_pipe = std::os::unix::fs::FileTypeExt::is_fifo(&metadata.file_type());
    #[cfg(not(unix))]
    let is_pipe = false;
    metadata.is_file() || is_pipe
}

/// Path of a file that does not exist: its directory without links, and its name. Follows links to missing files.
fn resolve(path: &Path) -> PathBuf {
    let path = links(path).last().unwrap_or_else(|| path.to_path_buf());
    absolute(parent(&path)).join(path.file_name().unwrap_or_default())
}

/// The path without links. What does not exist is taken as it is written.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    match (fs::canonicalize(path), path.file_name()) {
        (Ok(path), _) => path,
        (Err(_), Some(name)) => absolute(parent(path)).join(name),
        (Err(_), None) => path.to_path_buf(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory that is mounted a second time has another path, and the same device and inode; so has a link.
    #[test]
    #[cfg(unix)]
    fn paths_below_a_directory_are_found_by_any_of_its_names() {
        let directory = tempfile::tempdir().unwrap();
        let (real, other) = (directory.path().join("real"), directory.path().join("other"));
        fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &other).unwrap();
        assert_eq!(path_below(&other.join("x/y"), &real), Some(Path::new("x/y")));
        assert_eq!(path_below(&real.join("x"), &other), Some(Path::new("x")));
        assert_eq!(path_below(&directory.path().join("x"), &real), None);
        let missing = directory.path().join("missing");
        assert_eq!(path_below(&missing.join("x"), &missing), Some(Path::new("x")));
        assert_eq!(path_below(&real.join("x"), &missing), None);
    }
}
