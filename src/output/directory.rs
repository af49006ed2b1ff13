//! Writes a directory of files: `part-00000.parquet` and so on, optionally below directories of partitions.
//!
//! A file is complete, and verified if requested, before the next one begins. While a job writes the directory, it holds a
//! lock on the file `_incomplete` there, which it removes when the directory is complete. From the first part on, the file has
//! a mark. A job that finds a marked file without a lock removes the parts of the job that was interrupted, and starts again.
//! Stores have no locks: a job fails if it finds a marked object of this name below its prefix.

use std::fs;
use std::path::{Path, PathBuf};

use super::cluster::{ClusterIndex, MemberPlace};
use super::directory_mark::{DirectoryMark, StoreMark};
use super::encoder::{EncodedRows, Encoder};
use super::error::OutputError;
use super::options::{Arrangement, Destination, OutputOptions, ReadBack};
use super::packing::TextPacking;
use super::sink::{check_name, open_error};
use super::writer::{FileOpener, FinishedOutput, FinishedPart, Output, encoder};
use crate::process::part_names::{
    CLUSTER, INCOMPLETE, MANIFEST, SPLITS, is_hidden_name, is_index_of_parts, is_part_name, part_name,
};
use crate::process::{
    DirectoryLock, Existing, NewDirectories, PendingFile, commit_all, file_names, parent, sync_directory,
};
use crate::remote::{RemoteError, RemoteUrl, has_objects};
use crate::sort::Partition;

/// What the names of directories of partitions begin with, before `=`.
const PARTITIONS: [&str; 2] = [Partition::HOST_DIRECTORY, Partition::SURT_DIRECTORY];

/// The paths of the files of a directory, and what is known about those of an earlier job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DirectoryLayout {
    pub(crate) directory: PathBuf,
    /// Directories below it that contain all files, outermost first, such as `crawl=A`.
    pub(crate) fixed: Vec<String>,
    /// Name prefix of the partitions' directories and their number, if the output has partitions.
    pub(crate) partitions: Option<(&'static str, u32)>,
    /// What happens to a file that appears where a part or an index will be written.
    pub(crate) existing: Existing,
    /// An earlier run of the job wrote parts and was interrupted, also if the directory has no mark.
    pub(crate) is_interrupted: bool,
}

impl DirectoryLayout {
    /// Returns the directory that contains all files.
    pub(crate) fn root(&self) -> PathBuf {
        let mut path = self.directory.clone();
        path.extend(&self.fixed);
        path
    }

    fn partition(&self, partition: u32) -> PathBuf {
        let mut path = self.root();
        if let Some((name, count)) = self.partitions {
            let width = count.saturating_sub(1).to_string().len();
            path.push(format!("{name}={partition:0width$}"));
        }
        path
    }

    pub(crate) fn file(&self, partition: u32, part: u32, suffix: &str) -> PathBuf {
        self.partition(partition).join(part_name(part.into(), suffix))
    }

    /// Returns the directory whose parts, together with those of `partition`, are in order.
    fn ordered(&self, partition: u32) -> PathBuf {
        match self.partitions {
            // All other partitions are ranges.
            Some((Partition::HOST_DIRECTORY, _)) => self.partition(partition),
            _ => self.root(),
        }
    }
}

/// Creates the reader that verifies the files of one partition.
pub(crate) type NewReadBack = Box<dyn Fn() -> ReadBack + Send>;

/// Number of complete files that are named together. Each holds a file descriptor until then.
const MAX_PENDING: usize = 64;

/// A directory of outputs that is being written.
pub(crate) struct PartDirectory {
    layout: DirectoryLayout,
    files: FileOpener,
    current: Option<OpenPart>,
    finished: Vec<FinishedOutput>,
    /// Complete files that do not have their names yet, and their names.
    pending: Vec<(PendingFile, PathBuf)>,
    /// The indexes of members, if the format has them.
    clusters: Vec<ClusterIndex>,
    /// Creates a reader for the files of a partition; `None` if files are not read back.
    new_read_back: Option<NewReadBack>,
    /// The current partition and its reader, which has read all of its finished files.
    read_back: Option<(u32, ReadBack)>,
    /// Dropped after the current file.
    mark: DirectoryMark,
    /// The directories above the parts that did not exist. Dropped after the mark, whose file is in one of them.
    _created: Option<NewDirectories>,
}

struct OpenPart {
    partition: u32,
    part: u32,
    output: Output,
}

impl PartDirectory {
    /// Creates the directory if it does not exist, and removes the parts of an interrupted job. Also returns the encoder of
    /// all files.
    ///
    /// # Errors
    /// The directory cannot be created, contains the parts of a complete job, or is being written by another job.
    pub(crate) fn create(
        layout: DirectoryLayout,
        options: OutputOptions,
        arrangement: &Arrangement,
        new_read_back: Option<NewReadBack>,
    ) -> Result<(Encoder, PartDirectory), OutputError> {
        let root = layout.root();
        check_name(&layout.file(0, 0, options.format.suffixes()[0]))?;
        let (created, mark) = match remote_directory(&root) {
            Some(_) => (None, DirectoryMark::Store(StoreMark::new(&root))),
            None => {
                let created = NewDirectories::create(&root);
                let created = created.map_err(|error| io_error(&root, "create the directory", error))?;
                (Some(created), DirectoryMark::Lock(claim_directory(&root, layout.is_interrupted)?))
            }
        };
        if has_visible_files(&root)? {
            return Err(OutputError::NotEmpty(root));
        }
        let (encoder, files) = encoder(options, arrangement, TextPacking::None)?;
        Ok((
            encoder,
            PartDirectory {
                layout,
                files,
                current: None,
                finished: Vec::new(),
                pending: Vec::new(),
                clusters: Vec::new(),
                new_read_back,
                read_back: None,
                mark,
                _created: created,
            },
        ))
    }

    /// Appends rows to a part of a partition. Another part or partition than before closes the current file.
    ///
    /// # Errors
    /// A file cannot be written, or reading it back fails.
    pub(crate) fn append(&mut self, encoded: EncodedRows, partition: u32, part: u32) -> Result<(), OutputError> {
        if let Some(current) = &mut self.current
            && (current.partition, current.part) == (partition, part)
        {
            return current.output.append(encoded);
        }
        self.close()?;
        self.open_part(partition, part)?.append(encoded)
    }

    fn open_part(&mut self, partition: u32, part: u32) -> Result<&mut Output, OutputError> {
        let output = self.open(&self.layout.file(partition, part, self.files.format.suffixes()[0]))?;
        Ok(&mut self.current.insert(OpenPart { partition, part, output }).output)
    }

    /// Opens the next file.
    fn open(&mut self, path: &Path) -> Result<Output, OutputError> {
        self.mark.add_file(path)?;
        if self.mark.is_local() {
            // Its name is made durable in the end, with those of all partitions.
            let directory = parent(path);
            fs::create_dir_all(directory).map_err(|error| io_error(directory, "create the directory", error))?;
        }
        self.files.open(&Destination::new(path.to_path_buf(), self.layout.existing))
    }

    /// Adds the names of the split points, the manifest and the indexes to the mark of the directory, before these files are
    /// written, also if there are no parts.
    fn mark_index_files(&mut self) -> Result<(), OutputError> {
        let root = self.layout.root();
        let of_clusters = self.clusters.iter().flat_map(|index| CLUSTER.map(|name| index.directory().join(name)));
        let files = [SPLITS, MANIFEST].map(|name| root.join(name)).into_iter().chain(of_clusters);
        files.collect::<Vec<_>>().iter().try_for_each(|path| self.mark.add_file(path))
    }

    fn close(&mut self) -> Result<(), OutputError> {
        let Some(OpenPart { partition, output, .. }) = self.current.take() else { return Ok(()) };
        if self.read_back.as_ref().is_none_or(|(current, _)| *current != partition) {
            self.read_back = self.new_read_back.as_ref().map(|new| (partition, new()));
        }
        let read_back = self.read_back.as_mut().map(|(_, read_back)| read_back);
        let FinishedPart { output, members, pending } = output.finish_part(read_back)?;
        if let (Some(path), Some(members)) = (&output.path, members) {
            self.add_to_cluster(self.layout.ordered(partition), path, &members);
        }
        self.pending.extend(pending.zip(output.path.clone()));
        self.finished.push(output);
        if self.pending.len() >= MAX_PENDING {
            commit_all(std::mem::take(&mut self.pending), self.layout.existing)?;
        }
        Ok(())
    }

    /// Adds the members of a file to the index of the directory.
    fn add_to_cluster(&mut self, directory: PathBuf, path: &Path, members: &[MemberPlace]) {
        if self.clusters.last().is_none_or(|last| last.directory() != directory) {
            self.clusters.push(ClusterIndex::new(directory));
        }
        if let Some(cluster) = self.clusters.last_mut() {
            cluster.add(path, members);
        }
    }

    /// Finishes the last file. Returns all files, and the mark of the directory, which the caller completes. Without rows, there
    /// is one part, which has the schema, unless the directory has partitions.
    pub(crate) fn finish(mut self) -> Result<(Vec<FinishedOutput>, DirectoryMark), OutputError> {
        if self.current.is_none() && self.finished.is_empty() && self.layout.partitions.is_none() {
            self.open_part(0, 0)?;
        }
        self.close()?;
        self.mark_index_files()?;
        commit_all(std::mem::take(&mut self.pending), self.layout.existing)?;
        if self.mark.is_local() {
            let root = self.layout.root();
            sync_directory(&root).map_err(|error| io_error(&root, "sync the directory", error))?;
        }
        self.clusters.iter().try_for_each(|index| index.write(self.layout.existing))?;
        Ok((self.finished, self.mark))
    }

    /// Gives up a directory in which no part was written.
    pub(crate) fn abandon(self) -> Result<(), OutputError> {
        self.mark.complete()
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.layout.directory
    }
}

/// Locks a directory, and removes the parts of an interrupted job: the directory has its mark, or `is_interrupted`.
fn claim_directory(root: &Path, is_interrupted: bool) -> Result<DirectoryLock, OutputError> {
    let lock = lock_directory(root)?;
    if lock.is_marked() || is_interrupted {
        remove_parts(root)?;
    }
    Ok(lock)
}

/// Whether a directory, or a prefix in a store, has anything whose name is not hidden, such as parts.
///
/// # Errors
/// It cannot be listed.
pub(crate) fn has_visible_files(root: &Path) -> Result<bool, OutputError> {
    if let Some(url) = remote_directory(root) {
        let failed = |operation, error: RemoteError| {
            open_error(Path::new(&url.name()), operation, error.into(), "or choose another prefix")
        };
        url.check_writable().map_err(|error| failed("create", error))?;
        return has_objects(&url).map_err(|error| failed("list", error));
    }
    let names = file_names(root).map_err(|error| io_error(root, "list", error))?;
    Ok(names.iter().any(|name| !is_hidden_name(name.as_encoded_bytes())))
}

/// The directory as a prefix in a store, if it is one.
fn remote_directory(root: &Path) -> Option<RemoteUrl> {
    RemoteUrl::parse(&format!("{}/", root.to_str()?.trim_end_matches('/')))
}

/// Locks a directory in which parts are written.
///
/// # Errors
/// [`OutputError::Locked`] if another job has the lock; the lock file cannot be created or locked.
pub(crate) fn lock_directory(directory: &Path) -> Result<DirectoryLock, OutputError> {
    let path = directory.join(INCOMPLETE);
    let lock = DirectoryLock::acquire(&path).map_err(|error| io_error(&path, "lock", error))?;
    lock.ok_or_else(|| OutputError::Locked(directory.to_path_buf()))
}

/// Removes the parts of an interrupted job, and nothing else. The caller has the lock of the directory.
///
/// # Errors
/// [`OutputError::NotEmpty`] if there are other files; then none is removed.
fn remove_parts(root: &Path) -> Result<(), OutputError> {
    let entries = fs::read_dir(root).map_err(|error| io_error(root, "list", error))?;
    let (mut files, mut partitions) = (Vec::new(), Vec::new());
    for entry in entries {
        let entry = entry.map_err(|error| io_error(root, "list", error))?;
        let (name, path) = (entry.file_name().to_string_lossy().into_owned(), entry.path());
        match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            true if is_partition(&name) => partitions.push(path),
            false if is_part_file(&name) => files.push(path),
            _ if is_hidden_name(name.as_bytes()) => (),
            _ => return Err(OutputError::NotEmpty(root.to_path_buf())),
        }
    }
    let remove_all = |paths: Vec<PathBuf>, remove: fn(&Path) -> std::io::Result<()>| {
        paths.iter().try_for_each(|path| remove(path).map_err(|error| io_error(path, "remove", error)))
    };
    remove_all(files, |path| fs::remove_file(path))?;
    remove_all(partitions, |path| fs::remove_dir_all(path))
}

/// Whether a job writes a directory of this name, as [`DirectoryLayout`] makes it.
fn is_partition(name: &str) -> bool {
    let is_number = |number: &str| !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
    name.split_once('=').is_some_and(|(name, number)| PARTITIONS.contains(&name) && is_number(number))
}

/// Whether a job writes a file of this name in its directory, besides the manifest.
pub(crate) fn is_part_file(name: &str) -> bool {
    is_part_name(name) || is_index_of_parts(name)
}

fn io_error(path: &Path, operation: &'static str, error: std::io::Error) -> OutputError {
    open_error(path, operation, error, "choose a writable directory")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use arrow::array::{RecordBatch, StringArray};

    use super::*;
    use crate::canon::Rows;
    use crate::output::{Compression, OutputFormat};

    /// Writes three empty files, two of them in one partition. `read_back` gets the number of files that it has read, and
    /// returns the number of rows.
    fn write(
        directory: &Path,
        read_back: impl Fn(u64) -> u64 + Copy + Send + 'static,
    ) -> Result<Vec<FinishedOutput>, OutputError> {
        let new_read_back = move || {
            let mut files = 0;
            let read_file = move |path: &Path| {
                assert!(path.exists());
                files += 1;
                Ok(read_back(files))
            };
            Box::new(read_file) as ReadBack
        };
        let partitions = Some((Partition::HOST_DIRECTORY, 11));
        let layout = DirectoryLayout { directory: directory.to_path_buf(), partitions, ..DirectoryLayout::default() };
        let (options, new_read_back) = (OutputOptions::of_uris(OutputFormat::Parquet), Box::new(new_read_back));
        let (encoder, mut parts) =
            PartDirectory::create(layout, options, &Arrangement::default(), Some(new_read_back))?;
        for (partition, number) in [(1, 0), (1, 1), (10, 0)] {
            parts.append(encoder.encode(&mut Rows::default(), &[])?, partition, number)?;
        }
        let (files, mark) = parts.finish()?;
        mark.complete()?;
        Ok(files)
    }

    /// One reader reads the files of a partition, so that it can compare the rows of one with those of the next.
    #[test]
    fn files_are_read_back_by_partition() {
        static MOST: AtomicU64 = AtomicU64::new(0);
        let directory = tempfile::tempdir().unwrap();
        let read_back = |files| {
            MOST.fetch_add(files, Ordering::Relaxed);
            0
        };
        let files = write(directory.path(), read_back).unwrap();
        let paths = files.iter().map(|file| file.path.as_deref().unwrap().strip_prefix(directory.path()).unwrap());
        let expected = ["host_hash=01/part-00000", "host_hash=01/part-00001", "host_hash=10/part-00000"];
        assert!(paths.eq(expected.map(|name| Path::new(name).with_extension("parquet"))));
        // 1 and 2 files of the first partition, 1 of the second.
        assert_eq!(MOST.load(Ordering::Relaxed), 4);
    }

    /// Memory does not grow with the number of row groups.
    #[test]
    fn row_groups_take_the_buffers_of_earlier_ones() {
        let directory = tempfile::tempdir().unwrap();
        let layout = DirectoryLayout { directory: directory.path().join("out"), ..DirectoryLayout::default() };
        let options = OutputOptions { compression: Compression::None, ..OutputOptions::of_uris(OutputFormat::Parquet) };
        let (encoder, mut parts) = PartDirectory::create(layout, options, &Arrangement::default(), None).unwrap();
        let uris = StringArray::from_iter_values((0..2_000).map(|i| format!("http://example.org/{i:0>100}")));
        let batch = RecordBatch::try_new(encoder.schema().clone(), vec![Arc::new(uris)]).unwrap();
        for number in [0, 0, 0, 1, 1] {
            parts.append(encoder.encode_batch(&batch).unwrap(), 0, number).unwrap();
            assert_eq!(encoder.pooled_buffer_count(), 1);
        }
    }

    /// A job that is refused removes nothing.
    #[test]
    fn only_parts_of_an_interrupted_job_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let parts = ["part-00000.csv", "part-a100000.csv", "splits.txt", "surt_range=07/part-00000.csv"];
        let others = ["part-mine.txt", "host_hash=mine/f", "x"];
        fs::create_dir_all(path("surt_range=07")).unwrap();
        parts.iter().for_each(|name| fs::write(path(name), "").unwrap());
        // Each of them alone.
        for other in others {
            fs::create_dir_all(path(other).parent().unwrap()).unwrap();
            fs::write(path(other), "").unwrap();
            let refused = claim_directory(directory.path(), true);
            assert!(matches!(refused, Err(OutputError::NotEmpty(_))), "{other}");
            assert!(parts.iter().all(|name| path(name).exists()) && path(other).exists());
            fs::remove_file(path(other)).unwrap();
            let _ = fs::remove_dir(path("host_hash=mine"));
        }
        claim_directory(directory.path(), true).unwrap();
        assert!(!has_visible_files(directory.path()).unwrap());
    }

    /// Readers need a schema also if there are no rows.
    #[test]
    fn a_directory_without_rows_has_one_part_or_no_partition() {
        for partitions in [None, Some((Partition::HOST_DIRECTORY, 4))] {
            let directory = tempfile::tempdir().unwrap();
            let layout =
                DirectoryLayout { directory: directory.path().join("out"), partitions, ..DirectoryLayout::default() };
            let options = OutputOptions::of_uris(OutputFormat::Parquet);
            let (_, parts) = PartDirectory::create(layout, options, &Arrangement::default(), None).unwrap();
            let (files, mark) = parts.finish().unwrap();
            mark.complete().unwrap();
            let paths: Vec<_> = files.iter().filter_map(|file| file.path.clone()).collect();
            match partitions {
                None => assert_eq!(paths, [directory.path().join("out/part-00000.parquet")]),
                Some(_) => assert!(paths.is_empty()),
            }
            assert!(paths.iter().all(|path| path.exists()));
        }
    }

    /// Something else may write to the directory while the job runs.
    #[test]
    fn a_file_that_appears_is_replaced_or_kept() {
        for existing in [Existing::Replace, Existing::Keep] {
            let directory = tempfile::tempdir().unwrap();
            let part = directory.path().join("part-00000.parquet");
            let layout =
                DirectoryLayout { directory: directory.path().to_path_buf(), existing, ..DirectoryLayout::default() };
            let options = OutputOptions::of_uris(OutputFormat::Parquet);
            let (_, parts) = PartDirectory::create(layout, options, &Arrangement::default(), None).unwrap();
            fs::write(&part, "other").unwrap();
            let finished = parts.finish().map(drop);
            let is_kept = fs::read(&part).unwrap() == b"other";
            match existing {
                Existing::Replace => assert!(finished.is_ok() && !is_kept),
                Existing::Keep => {
                    assert!(matches!(finished, Err(OutputError::Exists(path)) if path == part) && is_kept)
                }
            }
        }
    }

    #[test]
    fn a_file_that_is_not_as_written_ends_the_job() {
        for failing in [1, 2] {
            let directory = tempfile::tempdir().unwrap();
            let written = write(directory.path(), move |files| u64::from(files == failing));
            assert!(matches!(written, Err(OutputError::NotAsWritten { .. })));
        }
    }
}
