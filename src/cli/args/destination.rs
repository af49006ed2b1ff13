//! What the flag `-o` and standard output accept, in every command that writes rows.

use std::ffi::OsStr;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use crate::cli::error::CommandError;
use crate::output::{Destination, OutputFormat};
use crate::process::{HandleName, path_name};

/// The path of `-o`; `None` for standard output.
pub(crate) fn output_path(output: Option<&PathBuf>) -> Option<&Path> {
    output.map(PathBuf::as_path).filter(|path| path.as_os_str() != "-")
}

/// Refuses a directory in the place of a file. `example` is the name of a file in it, `advice` another way to go on.
pub(crate) fn refuse_directory(path: &Path, example: &str, advice: &str) -> Result<(), CommandError> {
    if !path.is_dir() && !ends_with_slash(path) {
        return Ok(());
    }
    let (path, file) = (path.display(), path.join(example));
    let file = file.display();
    Err(CommandError::Usage(format!("{path}: -o names a directory; name a file such as {file}{advice}")))
}

/// Refuses to write a binary format to a terminal.
pub(crate) fn refuse_terminal(destination: &Destination, format: OutputFormat) -> Result<(), CommandError> {
    if format.is_binary() && *destination == Destination::Stdout && std::io::stdout().is_terminal() {
        let name = format.name();
        let message = format!("{name} is binary and standard output is a terminal; use -o FILE or a pipe");
        return Err(CommandError::Usage(message));
    }
    Ok(())
}

/// Checks that the output can have an index beside it, whose lines end with LF and whose fields are separated by tabs.
pub(super) fn check_has_index(destination: &Destination) -> Result<(), CommandError> {
    let Some(path) = destination.path() else {
        return Err(CommandError::usage("zipnum writes an index beside its data; name a file or a directory with -o"));
    };
    let is_allowed = |name: &OsStr| name.to_str().is_some_and(|name| !name.contains(['\t', '\n', '\r']));
    match path.file_name().is_none_or(is_allowed) {
        true => Ok(()),
        false => Err(CommandError::Usage(format!(
            "{}: zipnum writes this name into its index; choose one in UTF-8 without tabs and line ends",
            path_name(path)
        ))),
    }
}

/// No format is chosen for a file of one of these formats. `advice` is another way to go on.
pub(crate) fn unknown_suffix(path: &Path, formats: &[OutputFormat], advice: &str) -> CommandError {
    let suffixes = |is_listed: fn(OutputFormat) -> bool| -> String {
        let formats = formats.iter().filter(|format| is_listed(**format));
        formats.flat_map(|format| format.suffixes()).copied().collect::<Vec<_>>().join(", ")
    };
    let (all, packable, path) = (suffixes(|_| true), suffixes(OutputFormat::is_packable), path.display());
    CommandError::Usage(format!(
        "{path}: the suffix names no format; expected one of {all}, of which {packable} may be followed by .gz or .zst; \
         {advice}or use --output-format"
    ))
}

/// The path has the suffix of a format, and no directory has this name.
pub(super) fn is_name_of_file(path: &Path) -> bool {
    OutputFormat::of_path(path).is_some() && !ends_with_slash(path) && !path.is_dir()
}

/// The path names a directory, whether it exists or not.
pub(super) fn ends_with_slash(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

/// The path is a device, a pipe or an open handle, such as `/dev/null` or `/dev/stdout`: it has no suffix, and no file replaces
/// it.
pub(crate) fn is_written_in_place(path: &Path) -> bool {
    let is_device_or_pipe = |metadata: std::fs::Metadata| !metadata.is_file() && !metadata.is_dir();
    std::fs::metadata(path).is_ok_and(is_device_or_pipe) || HandleName::of(path).is_some()
}
