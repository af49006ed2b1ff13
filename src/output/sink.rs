//! Bytes in, a file or standard output out. A regular file is written under a temporary name in its own directory
//! and renamed when it is whole and on the disk; standard output, pipes and devices are written as they are.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::TempPath;

use super::Destination;
use super::error::{OutputError, WriteError};
use super::sync::BackgroundSync;
use crate::process::TemporaryFileGuard;

/// Small writes are gathered to this many bytes; larger ones pass.
const BUFFER_LEN: usize = 1 << 18;

/// Bytes after which the disk is asked to take what there is; a smaller file waits for its end.
const SYNC_LEN: u64 = 32 << 20;

const NOT_NAMED: &str = "nothing was written under the final name";
const NOT_WHOLE: &str = "what it got before is not whole";

/// Where bytes go; counts them.
#[derive(Debug)]
pub(super) struct Sink {
    file: BufWriter<File>,
    written: u64,
    durability: Durability,
}

/// Whether the bytes are to outlive a power failure.
#[derive(Debug)]
enum Durability {
    /// They are not in a file of their own.
    None,
    /// At the end; `written` of them were there when the disk was last asked.
    Wanted { asked_at: u64, syncer: Option<BackgroundSync> },
}

/// Where an output will be when it is whole. Dropped before that, it removes what lies under the temporary name.
#[derive(Debug)]
pub(super) enum OutputTarget {
    Rename {
        temporary: TempPath,
        path: PathBuf,
        /// Removes the temporary file if a signal ends the process.
        _guard: TemporaryFileGuard,
    },
    /// Something that is not a regular file: renaming over it would replace the device.
    Direct(PathBuf),
    Stdout,
}

/// Opens a destination.
pub(super) fn create(destination: &Destination) -> Result<(Sink, OutputTarget), OutputError> {
    let (file, target) = match destination {
        Destination::Stdout => (stdout()?, OutputTarget::Stdout),
        Destination::File(path) => open(path)?,
    };
    let durability = match target {
        OutputTarget::Rename { .. } => Durability::Wanted { asked_at: 0, syncer: None },
        OutputTarget::Direct(_) | OutputTarget::Stdout => Durability::None,
    };
    Ok((Sink { file: BufWriter::with_capacity(BUFFER_LEN, file), written: 0, durability }, target))
}

impl Sink {
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Has the disk begin with what was written since it was last asked, if that is much.
    fn sync_early(&mut self) -> io::Result<()> {
        let Durability::Wanted { asked_at, syncer } = &mut self.durability else { return Ok(()) };
        if self.written - *asked_at < SYNC_LEN {
            return Ok(());
        }
        *asked_at = self.written;
        match syncer {
            Some(syncer) => syncer.nudge(),
            None => syncer.insert(BackgroundSync::start(self.file.get_ref())?).nudge(),
        }
        Ok(())
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.written += written as u64;
        self.sync_early()?;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl OutputTarget {
    /// Where bytes are now, while that is not where they will be.
    pub(super) fn temporary_path(&self) -> Option<&Path> {
        match self {
            OutputTarget::Rename { temporary, .. } => Some(temporary),
            _ => None,
        }
    }

    /// Where bytes will be, unless they are on standard output.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            OutputTarget::Rename { path, .. } | OutputTarget::Direct(path) => Some(path),
            OutputTarget::Stdout => None,
        }
    }

    /// Flushes `sink`, makes its bytes durable and gives them their name.
    pub(super) fn commit(self, sink: Sink) -> Result<(), OutputError> {
        let file = sink.file.into_inner().map_err(|error| self.blame(error.into_error().into()))?;
        let OutputTarget::Rename { temporary, path, .. } = self else { return Ok(()) };
        let failed = |operation, error| io_error(&path, operation, error, NOT_NAMED);
        let early = match sink.durability {
            Durability::Wanted { syncer: Some(syncer), .. } => syncer.finish(),
            _ => Ok(()),
        };
        early.and_then(|()| file.sync_all()).map_err(|error| failed("write to the disk", error))?;
        drop(file);
        temporary.persist(&path).map_err(|error| failed("rename to its final name", error.error))?;
        sync_directory(parent(&path)).map_err(|error| {
            io_error(&path, "make its name durable", error, "the file is whole, but may be lost if the power fails now")
        })
    }

    /// Removes what was written under a temporary name.
    pub(super) fn abort(self) -> Result<(), OutputError> {
        let OutputTarget::Rename { temporary, .. } = self else { return Ok(()) };
        let place = temporary.to_path_buf();
        temporary.close().map_err(|error| io_error(&place, "remove", error, "remove it by hand"))
    }

    /// Says where a write failed and what that leaves behind.
    pub(super) fn blame(&self, cause: WriteError) -> OutputError {
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

/// A handle of our own on standard output: the one of the standard library looks for line ends in every write.
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
    // A link is followed, so that its target is replaced and the link stays.
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
        Err(error) => Err(io_error(&path, "create", error, "choose a directory that you may write to")),
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
        // What open(2) gives an ordinary new file: the umask takes away from it.
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

/// The rename is durable only when the directory is.
fn sync_directory(directory: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(directory)?.sync_all() } else { Ok(()) }
}
