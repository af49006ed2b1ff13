//! Writes bytes to a file or to standard output.
//!
//! A regular file is written under a temporary name in its own directory, and renamed when it is complete and on disk.
//! Standard output, pipes and devices are written directly. An object in a store gets its name when it is complete.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use super::error::{OutputError, WriteError};
use super::options::Destination;
use crate::process::{
    BackgroundSync, CommitError, Existing, HandleName, PendingFile, check_stdout, links, obstacle, parent, path_name,
    remedy, sync_directory, visible_lines,
};
use crate::remote::{RemoteUrl, RemoteWriter, clear_object};

/// Buffer length; larger writes bypass the buffer.
const BUFFER_LEN: usize = 1 << 16;

/// Bytes after which a background sync is requested. A smaller file is synced only at its end.
const SYNC_LEN: u64 = 32 << 20;

/// The state of a regular file after an error: only its temporary name existed.
pub(super) const NO_FILE: &str = "no partial file is left behind";

/// The state of standard output, a pipe or a device after an error.
const PARTIAL: &str = "the output is incomplete";

/// A buffered file that counts the bytes written.
#[derive(Debug)]
pub(super) struct Sink {
    file: SinkFile,
    written: u64,
    /// The sink is a terminal. Control characters in texts are escaped; binary formats are not written to terminals.
    is_terminal: bool,
}

#[derive(Debug)]
enum SinkFile {
    /// A regular file, whose bytes must survive a power failure: it is synced at its end, and in the background from
    /// `requested_at` bytes on.
    Regular {
        file: BufWriter<File>,
        requested_at: u64,
        syncer: Option<BackgroundSync>,
    },
    /// Standard output, a pipe or a device.
    Direct(BufWriter<File>),
    Object(Upload),
}

/// An object in a store that is being written.
#[derive(Debug)]
pub(super) struct Upload {
    writer: Box<RemoteWriter>,
    /// The name of the object without credentials.
    path: PathBuf,
    existing: Existing,
}

/// The destination of an output. Removes the temporary file if it is dropped before [`OutputTarget::commit`].
#[derive(Debug)]
pub(super) enum OutputTarget {
    Rename {
        pending: PendingFile,
        path: PathBuf,
        existing: Existing,
    },
    /// Not a regular file, or an open handle: a rename would replace the device, or the file that others write.
    Direct(PathBuf),
    /// An object in a store: its name without credentials.
    Object(PathBuf, Existing),
    Stdout,
}

pub(super) fn create(destination: &Destination) -> Result<(Sink, OutputTarget), OutputError> {
    if let Some((url, existing)) = remote_name(destination) {
        return create_object(&url, existing);
    }
    let (file, target) = match destination {
        Destination::Stdout => (stdout()?, OutputTarget::Stdout),
        Destination::File(path) | Destination::NewFile(path) => open(path, destination.existing())?,
    };
    let is_terminal = file.is_terminal();
    let file = BufWriter::with_capacity(BUFFER_LEN, file);
    let file = match target {
        OutputTarget::Rename { .. } => SinkFile::Regular { file, requested_at: 0, syncer: None },
        OutputTarget::Direct(_) | OutputTarget::Object(..) | OutputTarget::Stdout => SinkFile::Direct(file),
    };
    Ok((Sink { file, written: 0, is_terminal }, target))
}

/// The object that a destination names.
fn remote_name(destination: &Destination) -> Option<(RemoteUrl, Existing)> {
    Some((RemoteUrl::of_path(destination.path()?)?, destination.existing()))
}

fn create_object(url: &RemoteUrl, existing: Existing) -> Result<(Sink, OutputTarget), OutputError> {
    let path = PathBuf::from(url.name());
    match RemoteWriter::create(url, existing == Existing::Keep) {
        Ok(writer) => {
            let file = SinkFile::Object(Upload { writer: Box::new(writer), path: path.clone(), existing });
            let sink = Sink { file, written: 0, is_terminal: false };
            Ok((sink, OutputTarget::Object(path, existing)))
        }
        Err(error) => Err(object_error(&path, "create", error)),
    }
}

fn object_error(path: &Path, operation: &'static str, error: io::Error) -> OutputError {
    match error.kind() {
        io::ErrorKind::AlreadyExists => OutputError::Exists(path.to_path_buf()),
        _ => io_error(path, operation, error, "no partial object is left behind"),
    }
}

impl Sink {
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Requests a background sync if enough bytes were written since the last request.
    fn request_sync(&mut self) -> io::Result<()> {
        let SinkFile::Regular { file, requested_at, syncer } = &mut self.file else { return Ok(()) };
        if self.written - *requested_at < SYNC_LEN {
            return Ok(());
        }
        *requested_at = self.written;
        match syncer {
            Some(syncer) => syncer.request(),
            None => syncer.insert(BackgroundSync::start(file.get_ref())?).request(),
        }
        Ok(())
    }
}

impl Write for SinkFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            SinkFile::Regular { file, .. } | SinkFile::Direct(file) => file.write(bytes),
            SinkFile::Object(upload) => upload.writer.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            SinkFile::Regular { file, .. } | SinkFile::Direct(file) => file.flush(),
            SinkFile::Object(upload) => upload.writer.flush(),
        }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_terminal {
            // A text is written in whole lines, so that no character is divided between two calls.
            self.file.write_all(visible_lines(&String::from_utf8_lossy(bytes)).as_bytes())?;
            self.written += bytes.len() as u64;
            return Ok(bytes.len());
        }
        let written = self.file.write(bytes)?;
        self.written += written as u64;
        self.request_sync()?;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl OutputTarget {
    pub(super) fn temporary_path(&self) -> Option<&Path> {
        match self {
            OutputTarget::Rename { pending, .. } => Some(pending.path()),
            _ => None,
        }
    }

    /// Returns the final path, unless the output is standard output.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            OutputTarget::Rename { path, .. } | OutputTarget::Direct(path) | OutputTarget::Object(path, _) => {
                Some(path)
            }
            OutputTarget::Stdout => None,
        }
    }

    /// The destination of a file that belongs to this one, with the same rule for files that exist.
    pub(super) fn destination(&self, path: PathBuf) -> Destination {
        let existing = match self {
            OutputTarget::Rename { existing, .. } | OutputTarget::Object(_, existing) => *existing,
            OutputTarget::Direct(_) | OutputTarget::Stdout => Existing::Replace,
        };
        Destination::new(path, existing)
    }

    /// Flushes `sink`, syncs the file, renames it to its final name and makes the name durable.
    pub(super) fn commit(self, sink: Sink) -> Result<(), OutputError> {
        self.close(sink)?.commit()
    }

    /// Flushes and closes an output that does not have its name yet, unless it is a device.
    pub(super) fn close(self, sink: Sink) -> Result<ClosedOutput, OutputError> {
        let (file, syncer) = match sink.file {
            SinkFile::Object(upload) => return Ok(ClosedOutput::Object(upload)),
            SinkFile::Regular { file, syncer, .. } => (file, syncer),
            SinkFile::Direct(file) => (file, None),
        };
        drop(file.into_inner().map_err(|error| self.error(error.into_error().into()))?);
        let OutputTarget::Rename { pending, path, existing } = self else { return Ok(ClosedOutput::Device) };
        if let Some(syncer) = syncer {
            syncer.finish().map_err(|error| io_error(&path, "write to disk", error, NO_FILE))?;
        }
        Ok(ClosedOutput::File { pending, path, existing })
    }

    /// Removes the temporary file.
    pub(super) fn abort(self) -> Result<(), OutputError> {
        let OutputTarget::Rename { pending, .. } = self else { return Ok(()) };
        let place = pending.path().to_path_buf();
        pending.remove().map_err(|error| io_error(&place, "remove", error, "remove it manually"))
    }

    /// Returns the error of a failed write: the path, and the state of the output.
    pub(super) fn error(&self, cause: WriteError) -> OutputError {
        let error = match cause {
            WriteError::Io(error) => error,
            other => return other.into(),
        };
        match self {
            OutputTarget::Rename { path, .. } => io_error(path, "write", error, NO_FILE),
            OutputTarget::Direct(_) | OutputTarget::Stdout if error.kind() == io::ErrorKind::BrokenPipe => {
                OutputError::ClosedPipe
            }
            OutputTarget::Direct(path) => io_error(path, "write", error, PARTIAL),
            OutputTarget::Object(path, _) => object_error(path, "write", error),
            OutputTarget::Stdout => io_error(Path::new("standard output"), "write", error, PARTIAL),
        }
    }
}

/// An output that is complete, and gets its name next.
#[derive(Debug)]
pub(super) enum ClosedOutput {
    /// A regular file has its temporary name.
    File { pending: PendingFile, path: PathBuf, existing: Existing },
    /// An object appears when its upload is completed.
    Object(Upload),
    /// Standard output, a pipe or a device.
    Device,
}

impl ClosedOutput {
    /// Writes a regular file to disk.
    pub(super) fn sync(&self) -> Result<(), OutputError> {
        let ClosedOutput::File { pending, path, .. } = self else { return Ok(()) };
        pending.sync().map_err(|error| io_error(path, "write to disk", error, NO_FILE))
    }

    /// The pending file. An output that is not a regular file is completed instead.
    pub(super) fn into_pending(self) -> Result<Option<PendingFile>, OutputError> {
        match self {
            ClosedOutput::File { pending, .. } => Ok(Some(pending)),
            other => other.commit().map(|()| None),
        }
    }

    /// Removes durably a file that belongs to the file that will be replaced; clears an object. A symbolic link stays,
    /// because the new file replaces its target.
    pub(super) fn remove_replaced(&self, path: &Path) -> Result<(), OutputError> {
        let target = target_path(path);
        let removed = match self {
            ClosedOutput::File { existing: Existing::Replace, .. } => match fs::remove_file(&target) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                removed => removed.and_then(|()| sync_directory(parent(&target))),
            },
            ClosedOutput::Object(Upload { existing: Existing::Replace, .. }) => {
                RemoteUrl::of_path(path).map_or(Ok(()), |url| clear_object(&url))
            }
            _ => Ok(()),
        };
        removed.map_err(|error| io_error(path, "remove the old index", error, NO_FILE))
    }

    /// Syncs the file, renames it to its final name and makes the name durable; or completes the upload.
    pub(super) fn commit(self) -> Result<(), OutputError> {
        match self {
            ClosedOutput::File { pending, path, existing } => Ok(pending.commit(&path, existing)?),
            ClosedOutput::Object(Upload { writer, path, .. }) => {
                writer.finish().map_err(|error| object_error(&path, "write", error))
            }
            ClosedOutput::Device => Ok(()),
        }
    }
}

impl From<CommitError> for OutputError {
    fn from(CommitError { path, operation, error, is_named }: CommitError) -> OutputError {
        match is_named {
            true => io_error(&path, operation, error, "the file is complete, but may be lost if the power fails now"),
            false if error.kind() == io::ErrorKind::AlreadyExists => OutputError::Exists(path),
            false => io_error(&path, operation, error, NO_FILE),
        }
    }
}

/// Writes a whole file: either all bytes or nothing get the name.
pub(crate) fn write_file(destination: &Destination, bytes: &[u8]) -> Result<(), OutputError> {
    let (mut sink, target) = create(destination)?;
    sink.write_all(bytes).map_err(|error| target.error(error.into()))?;
    target.commit(sink)
}

/// Checks that a file can be created at `path`. Objects, pipes and devices are not opened.
pub(crate) fn check_creatable(path: &Path) -> Result<(), OutputError> {
    let is_special = fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir());
    if is_special || RemoteUrl::of_path(path).is_some() {
        return Ok(());
    }
    open(path, Existing::Replace)?.1.abort()
}

/// Checks the final name of an output. The file is written under another name, so that the file system would refuse the final
/// name only when the output is complete.
///
/// # Errors
/// Only a directory can have the name, or the name is too long; the file that has the name cannot be replaced; or it is on an
/// HTTP server.
pub(crate) fn check_name(path: &Path) -> Result<(), OutputError> {
    if let Some(url) = RemoteUrl::of_path(path) {
        return url.check_writable().map_err(|error| object_error(Path::new(&url.name()), "create", error.into()));
    }
    if HandleName::of(path).is_some() {
        return Ok(());
    }
    check_names_file(path)?;
    let path = target_path(path);
    match fs::symlink_metadata(&path) {
        Ok(metadata) if metadata.is_file() => check_replaceable(&path, &metadata),
        Err(error) if error.kind() == io::ErrorKind::InvalidFilename => {
            Err(open_error(&path, "create", error, "choose a shorter name"))
        }
        _ => Ok(()),
    }
}

/// Checks that a path ends with the name of a file. A path such as `a/` or `a/.` can only be that of a directory.
fn check_names_file(path: &Path) -> Result<(), OutputError> {
    let ends_with = |name: &OsStr| path.as_os_str().as_encoded_bytes().ends_with(name.as_encoded_bytes());
    match path.file_name().is_some_and(ends_with) {
        true => Ok(()),
        false => Err(OutputError::Directory(path.to_path_buf())),
    }
}

fn check_replaceable(path: &Path, metadata: &Metadata) -> Result<(), OutputError> {
    let Some((reason, advice)) = obstacle(path, metadata) else { return Ok(()) };
    Err(io_error(path, "replace", io::Error::new(io::ErrorKind::PermissionDenied, reason), advice))
}

fn io_error(path: &Path, operation: &'static str, error: io::Error, advice: &'static str) -> OutputError {
    OutputError::Io { place: path_name(path), operation, error, advice }
}

/// The error of an output that does not exist yet.
pub(super) fn open_error(path: &Path, operation: &'static str, error: io::Error, advice: &'static str) -> OutputError {
    let advice = remedy(&error).unwrap_or(advice);
    io_error(path, operation, error, advice)
}

/// Duplicates the handle of standard output, because the standard library's writer searches every write for line ends.
fn stdout() -> Result<File, OutputError> {
    let duplicate = || -> io::Result<File> {
        check_stdout()?;
        #[cfg(unix)]
        let handle = std::os::fd::AsFd::as_fd(&io::stdout()).try_clone_to_owned()?;
        #[cfg(windows)]
        let handle = std::os::windows::io::AsHandle::as_handle(&io::stdout()).try_clone_to_owned()?;
        Ok(File::from(handle))
    };
    duplicate().map_err(|error| open_error(Path::new("standard output"), "open", error, "use -o FILE"))
}

/// The path of the file that is written: a symbolic link is kept, and its target is replaced, or created if it does not exist.
pub(crate) fn target_path(path: &Path) -> PathBuf {
    match links(path).last() {
        Some(target) if target != path => fs::canonicalize(&target).unwrap_or(target),
        _ => path.to_path_buf(),
    }
}

fn open(path: &Path, existing: Existing) -> Result<(File, OutputTarget), OutputError> {
    if let Some(handle) = HandleName::of(path) {
        return direct(path.to_path_buf(), handle.open());
    }
    check_names_file(path)?;
    let path = target_path(path);
    match fs::metadata(&path) {
        Ok(metadata) if metadata.is_dir() => return Err(OutputError::Directory(path)),
        Ok(metadata) if !metadata.is_file() => {
            let opened = OpenOptions::new().write(true).open(&path);
            return direct(path, opened);
        }
        Ok(metadata) => check_replaceable(&path, &metadata)?,
        // Its directory cannot be searched, links form a cycle, or the name is too long.
        Err(error) if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Err(open_error(&path, "create", error, "choose a writable directory"));
        }
        Err(_) => {}
    }
    create_pending(path, existing)
}

/// Creates the temporary file of an output that is a regular file or does not exist.
fn create_pending(path: PathBuf, existing: Existing) -> Result<(File, OutputTarget), OutputError> {
    if !parent(&path).is_dir() {
        let parent = parent(&path).to_path_buf();
        return Err(match parent.exists() {
            true => OutputError::NotADirectory { path, parent },
            false => OutputError::NoDirectory { path, parent },
        });
    }
    match PendingFile::create(parent(&path)) {
        Ok((file, pending)) => Ok((file, OutputTarget::Rename { pending, path, existing })),
        Err(error) => Err(open_error(&path, "create", error, "choose a writable directory")),
    }
}

fn direct(path: PathBuf, opened: io::Result<File>) -> Result<(File, OutputTarget), OutputError> {
    match opened {
        Ok(file) => Ok((file, OutputTarget::Direct(path))),
        Err(error) => Err(open_error(&path, "open", error, "choose another output")),
    }
}
