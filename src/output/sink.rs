//! Writes bytes to a file or to standard output.
//!
//! A regular file is written under a temporary name in its own directory, and renamed when it is complete and on disk.
//! Standard output, pipes and devices are written directly.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::TempPath;

use super::error::{OutputError, WriteError};
use super::options::Destination;
use crate::process::{BackgroundSync, TemporaryFileGuard};

/// Buffer length; larger writes bypass the buffer.
const BUFFER_LEN: usize = 1 << 18;

/// Bytes after which a background sync is requested. A smaller file is synced only at its end.
const SYNC_LEN: u64 = 32 << 20;

const NOT_NAMED: &str = "no partial file is left behind";
const NOT_WHOLE: &str = "the output is incomplete";

/// A buffered file that counts the bytes written.
#[derive(Debug)]
pub(super) struct Sink {
    file: BufWriter<File>,
    written: u64,
    durability: Durability,
}

/// Whether the bytes must survive a power failure.
#[derive(Debug)]
enum Durability {
    /// The sink is not a regular file.
    NotNeeded,
    /// The file is synced at its end, and in the background from `requested_at` bytes on.
    Required { requested_at: u64, syncer: Option<BackgroundSync> },
}

/// The destination of an output. Removes the temporary file if it is dropped before [`OutputTarget::commit`].
#[derive(Debug)]
pub(super) enum OutputTarget {
    Rename {
        temporary: TempPath,
        path: PathBuf,
        /// Removes the temporary file if a signal ends the process.
        _guard: TemporaryFileGuard,
    },
    /// Not a regular file: a rename would replace the device.
    Direct(PathBuf),
    Stdout,
}

/// Opens a destination for writing.
pub(super) fn create(destination: &Destination) -> Result<(Sink, OutputTarget), OutputError> {
    let (file, target) = match destination {
        Destination::Stdout => (stdout()?, OutputTarget::Stdout),
        Destination::File(path) => open(path)?,
    };
    let durability = match target {
        OutputTarget::Rename { .. } => Durability::Required { requested_at: 0, syncer: None },
        OutputTarget::Direct(_) | OutputTarget::Stdout => Durability::NotNeeded,
    };
    Ok((Sink { file: BufWriter::with_capacity(BUFFER_LEN, file), written: 0, durability }, target))
}

impl Sink {
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Requests a background sync if enough bytes were written since the last request.
    fn request_sync(&mut self) -> io::Result<()> {
        let Durability::Required { requested_at, syncer } = &mut self.durability else { return Ok(()) };
        if self.written - *requested_at < SYNC_LEN {
            return Ok(());
        }
        *requested_at = self.written;
        match syncer {
            Some(syncer) => syncer.request(),
            None => syncer.insert(BackgroundSync::start(self.file.get_ref())?).request(),
        }
        Ok(())
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
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
    /// Returns the path of the temporary file.
    pub(super) fn temporary_path(&self) -> Option<&Path> {
        match self {
            OutputTarget::Rename { temporary, .. } => Some(temporary),
            _ => None,
        }
    }

    /// Returns the final path, unless the output is standard output.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            OutputTarget::Rename { path, .. } | OutputTarget::Direct(path) => Some(path),
            OutputTarget::Stdout => None,
        }
    }

    /// Flushes `sink`, syncs the file and renames it to its final name.
    pub(super) fn commit(self, sink: Sink) -> Result<(), OutputError> {
        let file = sink.file.into_inner().map_err(|error| self.error(error.into_error().into()))?;
        let OutputTarget::Rename { temporary, path, .. } = self else { return Ok(()) };
        let failed = |operation, error| io_error(&path, operation, error, NOT_NAMED);
        let synced = match sink.durability {
            Durability::Required { syncer: Some(syncer), .. } => syncer.finish(),
            _ => Ok(()),
        };
        synced.and_then(|()| file.sync_all()).map_err(|error| failed("write to disk", error))?;
        drop(file);
        temporary.persist(&path).map_err(|error| failed("rename to its final name", error.error))?;
        sync_directory(parent(&path)).map_err(|error| {
            io_error(&path, "sync the directory", error, "the file is complete, but may be lost if the power fails now")
        })
    }

    /// Removes the temporary file.
    pub(super) fn abort(self) -> Result<(), OutputError> {
        let OutputTarget::Rename { temporary, .. } = self else { return Ok(()) };
        let place = temporary.to_path_buf();
        temporary.close().map_err(|error| io_error(&place, "remove", error, "remove it manually"))
    }

    /// Returns the error of a failed write: the path, and the state of the output.
    pub(super) fn error(&self, cause: WriteError) -> OutputError {
        let error = match cause {
            WriteError::Io(error) => error,
            other => return other.into(),
        };
        match self {
            OutputTarget::Rename { path, .. } => io_error(path, "write", error, NOT_NAMED),
            _ if error.kind() == io::ErrorKind::BrokenPipe => OutputError::ClosedPipe,
            OutputTarget::Direct(path) => io_error(path, "write", error, NOT_WHOLE),
            OutputTarget::Stdout => io_error(Path::new("standard output"), "write", error, NOT_WHOLE),
        }
    }
}

fn io_error(path: &Path, operation: &'static str, error: io::Error, advice: &'static str) -> OutputError {
    OutputError::Io { place: path.display().to_string(), operation, error, advice }
}

/// Duplicates the handle of standard output, because the standard library's writer searches every write for line ends.
fn stdout() -> Result<File, OutputError> {
    let duplicate = || -> io::Result<File> {
        #[cfg(unix)]
        let handle = std::os::fd::AsFd::as_fd(&io::stdout()).try_clone_to_owned()?;
        #[cfg(windows)]
        let handle = std::os::windows::io::AsHandle::as_handle(&io::stdout()).try_clone_to_owned()?;
        Ok(File::from(handle))
    };
    duplicate().map_err(|error| io_error(Path::new("standard output"), "open", error, "use -o FILE"))
}

fn open(path: &Path) -> Result<(File, OutputTarget), OutputError> {
    // Follow a symbolic link: replace its target and keep the link.
    let path =
        if path.is_symlink() { fs::canonicalize(path).unwrap_or(path.to_path_buf()) } else { path.to_path_buf() };
    match fs::metadata(&path) {
        Ok(metadata) if metadata.is_dir() => return Err(OutputError::Directory(path)),
        Ok(metadata) if !metadata.is_file() => return open_direct(path),
        _ => {}
    }
    if !parent(&path).is_dir() {
        let parent = parent(&path).to_path_buf();
        return Err(OutputError::NoDirectory { path, parent });
    }
    match open_temporary(parent(&path)) {
        Ok((file, temporary)) => {
            let _guard = TemporaryFileGuard::register(&temporary);
            Ok((file, OutputTarget::Rename { temporary, path, _guard }))
        }
        Err(error) => Err(io_error(&path, "create", error, "choose a writable directory")),
    }
}

fn open_direct(path: PathBuf) -> Result<(File, OutputTarget), OutputError> {
    match OpenOptions::new().write(true).open(&path) {
        Ok(file) => Ok((file, OutputTarget::Direct(path))),
        Err(error) => Err(io_error(&path, "open", error, "choose another output")),
    }
}

fn open_temporary(directory: &Path) -> io::Result<(File, TempPath)> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".irikey-").suffix(".tmp");
    #[cfg(unix)]
    {
        // The mode of an ordinary new file; the umask applies.
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    }
    Ok(builder.tempfile_in(directory)?.into_parts())
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Syncs a directory, which makes a rename in it durable.
fn sync_directory(directory: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(directory)?.sync_all() } else { Ok(()) }
}
