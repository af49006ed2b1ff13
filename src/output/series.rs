//! Parts in, a directory of outputs out: `part-00000.parquet` and so on, each whole and checked before the next one
//! begins, below directories of partitions where there are some. Files that are finished keep their names whatever comes
//! after them; [`PartDirectory::finish`] says which there are.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::OutputError;
use super::{
    Arrangement, Destination, Encoder, FinishedOutput, Output, OutputOptions, Part, ReadBack, create_arranged,
};

/// Where the files of a series stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectoryLayout {
    /// The directory.
    pub directory: PathBuf,
    /// Directories below it, outermost first, such as `crawl=A`.
    pub fixed: Vec<String>,
    /// Name of a partition's directory and how many there are, if there are partitions.
    pub partitions: Option<(&'static str, u32)>,
}

impl DirectoryLayout {
    /// What all parts stand below.
    pub fn root(&self) -> PathBuf {
        let mut path = self.directory.clone();
        path.extend(&self.fixed);
        path
    }

    /// The file of a part.
    pub fn file(&self, partition: u32, part: u32, suffix: &str) -> PathBuf {
        let mut path = self.root();
        if let Some((name, count)) = self.partitions {
            let width = count.saturating_sub(1).to_string().len();
            path.push(format!("{name}={partition:0width$}"));
        }
        path.push(format!("part-{part:05}.{suffix}"));
        path
    }
}

/// Makes the reader that verifies the files of one partition.
pub(crate) type NewReadBack = Box<dyn Fn() -> ReadBack + Send>;

/// A directory of outputs that is being written.
pub struct PartDirectory {
    place: DirectoryLayout,
    options: OutputOptions,
    arrangement: Arrangement,
    current: Option<OpenPart>,
    finished: Vec<FinishedOutput>,
    /// Makes a reader for the files of a partition; `None` if files are not read back.
    new_read_back: Option<NewReadBack>,
    /// The current partition and its reader, which has read all of its finished files.
    read_back: Option<(u32, ReadBack)>,
}

struct OpenPart {
    partition: u32,
    part: u32,
    output: Output,
}

impl PartDirectory {
    /// A series in a directory, which is made if it is not there; and the encoder of all its parts.
    ///
    /// # Errors
    /// The directory cannot be made, or has parts already.
    pub(crate) fn create(
        place: DirectoryLayout,
        options: OutputOptions,
        arrangement: Arrangement,
        new_read_back: Option<NewReadBack>,
    ) -> Result<(Encoder, PartDirectory), OutputError> {
        let root = place.root();
        make_directory(&root)?;
        let is_part = |name: &str| !name.starts_with(['.', '_']);
        let entries = fs::read_dir(&root).into_iter().flatten().flatten();
        if entries.into_iter().any(|entry| is_part(&entry.file_name().to_string_lossy())) {
            return Err(OutputError::NotEmpty(root));
        }
        // An output that is dropped at once, for its encoder: that is the same for all.
        let probe = Destination::File(place.directory.join("part"));
        let (encoder, _) = create_arranged(&probe, options.clone(), &arrangement)?;
        Ok((
            encoder,
            PartDirectory {
                place,
                options,
                arrangement,
                current: None,
                finished: Vec::new(),
                new_read_back,
                read_back: None,
            },
        ))
    }

    /// Appends rows to a part of a partition; another one than that of the rows before begins a file.
    ///
    /// # Errors
    /// A file cannot be written, or is not in order when it is read again.
    pub fn append(&mut self, part: Part, partition: u32, number: u32) -> Result<(), OutputError> {
        if self.current.as_ref().is_none_or(|current| (current.partition, current.part) != (partition, number)) {
            self.close()?;
            let path = self.place.file(partition, number, self.options.format.suffixes()[0]);
            make_directory(path.parent().unwrap_or(&self.place.directory))?;
            let destination = Destination::File(path);
            let (_, output) = create_arranged(&destination, self.options.clone(), &self.arrangement)?;
            self.current = Some(OpenPart { partition, part: number, output });
        }
        match &mut self.current {
            Some(current) => current.output.append(part),
            None => Ok(()),
        }
    }

    /// Ends the current file.
    fn close(&mut self) -> Result<(), OutputError> {
        let Some(OpenPart { partition, output, .. }) = self.current.take() else { return Ok(()) };
        if self.read_back.as_ref().is_none_or(|(current, _)| *current != partition) {
            self.read_back = self.new_read_back.as_ref().map(|new| (partition, new()));
        }
        let finished = match &mut self.read_back {
            Some((_, read_back)) => output.finish_verified(read_back)?,
            None => output.finish()?,
        };
        self.finished.push(finished);
        Ok(())
    }

    /// Ends the last file; gives all.
    ///
    /// # Errors
    /// As [`PartDirectory::append`].
    pub fn finish(mut self) -> Result<Vec<FinishedOutput>, OutputError> {
        self.close()?;
        Ok(self.finished)
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.place.directory
    }
}

fn make_directory(path: &Path) -> Result<(), OutputError> {
    fs::create_dir_all(path).map_err(|error| OutputError::Io {
        place: path.display().to_string(),
        operation: "make the directory",
        error,
        advice: "choose a directory that you may write to",
    })
}
