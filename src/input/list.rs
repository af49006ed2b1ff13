//! Expands arguments to [`Sources`]: files, members of ZIP archives, `-`, directories and `@list` files, in the order of the
//! arguments.
//!
//! A directory gives all regular files below it, sorted by the bytes of their paths, so that the same tree gives the
//! same list on every system. Files and directories whose name begins with `.` or `_` are skipped, as Hive and Spark
//! do: they hold manifests, markers and unfinished files. So are the split points and the index of parts that a job
//! wrote, and the index of a ZipNum file beside it. Links to files are followed; links to directories are not, because
//! they may form cycles. Links without a target, pipes, sockets and devices are sources that cannot be read, so that
//! they are reported. A path that is itself an argument is always read, whatever it is.
//!
//! A ZIP archive gives its members, each a source `ARCHIVE!MEMBER`; `ARCHIVE!PATTERN` is an argument as well.

use super::detect::{Packing, packing};
use super::error::{Defect, ListError};
use super::source::{Origin, Source, os_string};
use super::stored_file::StoredFile;
use super::whole_file::{read_file, read_object, shown_path};
use crate::encoding::Charset;
use crate::process::part_names::{INCOMPLETE, MANIFEST, is_hidden_name, remove_index_files};
use crate::process::{HandleName, check_stdin, path_name};
use crate::remote::{RemoteError, RemoteObject, RemoteUrl, read_ahead, unknown_scheme};
use flate2::read::MultiGzDecoder;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirEntry};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Maximum length of a compressed list after decompression, in bytes.
const MAX_LIST_LEN: u64 = 1 << 30;

/// The inputs of a run, in order.
#[derive(Debug, Default)]
pub struct Sources(pub Vec<Source>);

impl Sources {
    /// The names of the sources.
    pub fn names(&self) -> Vec<String> {
        self.0.iter().map(|source| source.name.clone()).collect()
    }

    /// The [identities](Source::identity) of the sources.
    pub(crate) fn identities(&self) -> Vec<String> {
        self.0.iter().map(Source::identity).collect()
    }

    /// Returns copies of the sources; `None` if one of them can be read only once or is not a file of this system.
    pub(crate) fn again(&self) -> Option<Sources> {
        self.0
            .iter()
            .map(|source| source.again().filter(|_| source.is_local_file()))
            .collect::<Option<_>>()
            .map(Sources)
    }

    /// Makes the first requests of the first of `sources` ahead, as many as memory allows, so that they are open sooner.
    pub(crate) fn begin_ahead<'a>(sources: impl Iterator<Item = &'a mut Source>) {
        /// Maximum number of sources whose first requests are made ahead.
        const SOURCES_AHEAD: usize = 64;
        let mut space = read_ahead() as u64 / 2;
        for source in sources.take(SOURCES_AHEAD) {
            let Origin::Remote(object) = &mut source.origin else { continue };
            let Some(rest) = space.checked_sub(object.first_request_len()) else { return };
            space = rest;
            object.begin();
        }
    }

    /// Asks for the lengths and versions of objects that are not known, many at a time. Those that are not found stay as they
    /// are.
    pub(crate) fn find_objects(&mut self) {
        let is_unknown = |object: &RemoteObject| object.len().is_none();
        let unknown = self.0.iter_mut().filter_map(|source| match &mut source.origin {
            Origin::Remote(object) if is_unknown(object) => Some((&mut source.len, object)),
            _ => None,
        });
        let mut unknown: Vec<_> = unknown.collect();
        let objects = unknown.iter().map(|(_, object)| (**object).clone()).collect();
        for (place, object) in RemoteObject::found_of(objects) {
            *unknown[place].0 = object.len();
            *unknown[place].1 = object;
        }
    }

    /// Total length in bytes, if every source is a regular file.
    pub fn total_len(&self) -> Option<u64> {
        self.0.iter().map(|source| source.len).sum()
    }

    fn has_stdin(&self) -> bool {
        let is_stdin = |source: &Source| match &source.origin {
            Origin::Stdin => true,
            Origin::Path(path) => names_stdin(path),
            _ => false,
        };
        self.0.iter().any(is_stdin)
    }

    /// Adds what `path` names. An object in a list is not requested before it is opened, because a list may be long.
    fn push(&mut self, path: PathBuf, is_listed: bool) -> Result<(), ListError> {
        if let Some(url) = RemoteUrl::of_path(&path) {
            self.0.extend(remote_sources(&url, is_listed)?);
            return Ok(());
        }
        if names_stdin(&path) && self.has_stdin() {
            return Err(ListError::StdinTwice);
        }
        if path.as_os_str() == "-" {
            check_stdin().map_err(|error| ListError::Open { path, error })?;
            self.0.push(Source::stdin());
        } else if path.is_dir() {
            self.0.extend(list_directory(&path)?);
        } else {
            let members = if path.exists() { None } else { Source::of_members(&path) };
            self.0.extend(members.unwrap_or_else(|| Source::of_file(path)).map_err(with_scheme)?);
        }
        Ok(())
    }
}

/// The error of a name `SCHEME://...` that is no file, with the schemes that are read.
fn with_scheme(error: ListError) -> ListError {
    match error {
        ListError::Open { path, error } if error.kind() == io::ErrorKind::NotFound => {
            let error = unknown_scheme(&path).map_or(error, |unknown| io::Error::new(io::ErrorKind::NotFound, unknown));
            ListError::Open { path, error }
        }
        error => error,
    }
}

/// Returns the sources that `arguments` name; without arguments, standard input. `@NAME` names a file (`@-`: standard input)
/// with one path or `-` per line. The file may be compressed with gzip or Zstandard. Empty lines and lines that begin with `#`
/// are skipped. If the list contains a NUL byte, NUL ends every path, as `find -print0` writes them, and every path counts. A
/// list cannot name another list.
///
/// # Errors
/// The error of the argument that names no readable input; [`ListError::Several`] if there are more.
pub fn list<S: AsRef<OsStr>>(arguments: &[S]) -> Result<Sources, ListError> {
    list_prefixed(arguments, OsStr::new(""))
}

/// [`list`], with `prefix` before each name of a list.
pub(crate) fn list_prefixed<S: AsRef<OsStr>>(arguments: &[S], prefix: &OsStr) -> Result<Sources, ListError> {
    let mut sources = Sources::default();
    if arguments.is_empty() {
        sources.push(PathBuf::from("-"), false)?;
    }
    let mut errors = Vec::new();
    for argument in arguments {
        let list_name = list_name(argument.as_ref());
        let paths = match &list_name {
            Some(name) => read_list(Path::new(name), prefix),
            None => Ok(vec![PathBuf::from(argument.as_ref())]),
        };
        let is_listed = list_name.is_some();
        match paths {
            Ok(paths) => errors.extend(paths.into_iter().filter_map(|path| sources.push(path, is_listed).err())),
            Err(error) => errors.push(error),
        }
    }
    let mut lists = arguments.iter().filter_map(|argument| list_name(argument.as_ref()));
    if lists.any(|list| names_stdin(Path::new(&list))) && sources.has_stdin() {
        errors.push(ListError::StdinTwice);
    }
    match errors.pop() {
        None => Ok(sources),
        Some(error) if errors.is_empty() => Err(error),
        Some(error) => {
            errors.push(error);
            Err(ListError::Several(errors))
        }
    }
}

/// The path is `-`, or a name of the handle of standard input such as `/dev/stdin`. If that is a file, its bytes could be read
/// twice; from a pipe, the second source would get none.
fn names_stdin(path: &Path) -> bool {
    let is_handle = || path.starts_with("/dev") || path.starts_with("/proc");
    path.as_os_str() == "-" || is_handle() && HandleName::of(path) == Some(HandleName::Own(0))
}

/// Returns the name after the `@` of an argument that is a list.
pub(crate) fn list_name(argument: &OsStr) -> Option<OsString> {
    let name = argument.as_encoded_bytes().strip_prefix(b"@").filter(|name| !name.is_empty())?;
    os_string(name)
}

/// Reads the paths in the list at `path`, and puts `prefix` before each.
fn read_list(path: &Path, prefix: &OsStr) -> Result<Vec<PathBuf>, ListError> {
    let failed = |error| ListError::List { path: shown_path(path), error };
    let mut bytes = Vec::new();
    if path.as_os_str() == "-" {
        check_stdin().and_then(|()| io::stdin().read_to_end(&mut bytes)).map_err(failed)?;
    } else {
        bytes = read_file(path).map_err(failed)?;
    }
    let bytes = unpack_list(bytes).map_err(failed)?;
    // Programs of Windows write a byte order mark.
    let bytes = match Charset::from_bom(&bytes) {
        Some((charset, _)) if charset.is_utf16() => {
            return Err(failed(not_a_list("it is in UTF-16; convert it to UTF-8")));
        }
        mark => &bytes[mark.map_or(0, |(_, len)| len)..],
    };
    let mut paths = Vec::new();
    let has_nul = bytes.contains(&0);
    let end = if has_nul { 0 } else { b'\n' };
    for (i, line) in bytes.split(|&byte| byte == end).enumerate() {
        let line = if has_nul { line } else { line.strip_suffix(b"\r").unwrap_or(line) };
        let is_comment = !has_nul && line.starts_with(b"#");
        if !line.is_empty() && !is_comment {
            let bad = || ListError::ListPath { path: shown_path(path), line: i + 1 };
            let mut name = prefix.to_os_string();
            name.push(os_string(line).ok_or_else(bad)?);
            paths.push(PathBuf::from(name));
        }
    }
    if paths.is_empty() {
        return Err(ListError::EmptyList(shown_path(path)));
    }
    Ok(paths)
}

/// Decompresses a list, if it is compressed with gzip or Zstandard.
fn unpack_list(list: Vec<u8>) -> io::Result<Vec<u8>> {
    let unpacked: Box<dyn Read + '_> = match packing(&list) {
        Packing::Plain => return Ok(list),
        Packing::Gzip => Box::new(MultiGzDecoder::new(&list[..])),
        Packing::Zstd => Box::new(zstd::Decoder::new(&list[..])?),
        _ => return Err(not_a_list("it is compressed, but neither with gzip nor with Zstandard; decompress it")),
    };
    let mut bytes = Vec::new();
    unpacked.take(MAX_LIST_LEN + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_LIST_LEN { Err(not_a_list("it is longer than 1 GiB; divide it")) } else { Ok(bytes) }
}

fn not_a_list(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

/// The objects that `url` names, and the members of those that are ZIP archives. An object that `is_listed` is not
/// requested, unless it is named as an archive.
fn remote_sources(url: &RemoteUrl, is_listed: bool) -> Result<Vec<Source>, ListError> {
    let failed = |error: RemoteError| ListError::Open { path: url.name().into(), error: error.into() };
    if let Some((archive, members)) = url.split_member() {
        let object = RemoteObject::named(&archive).and_then(RemoteObject::found).map_err(failed)?;
        let name = PathBuf::from(object.name());
        return Source::matching_members(&StoredFile::Remote(object), &name, members.as_bytes());
    }
    let objects = match url.is_list() {
        true => crate::remote::list(url, |manifest| !lists_no_parts(&read_object(manifest))).map_err(failed)?,
        false => vec![RemoteObject::named(url).map_err(failed)?],
    };
    let find = |object: RemoteObject| match is_listed {
        false => object.found(),
        true if object.is_named_as_archive() => Ok(object.clone().found().unwrap_or(object)),
        true => Ok(object),
    };
    let objects = objects.into_iter().map(find);
    let sources: Result<Vec<_>, _> = objects.map(|object| Ok(Source::of_object(object?))).collect();
    Ok(sources.map_err(failed)?.into_iter().flatten().collect())
}

/// Returns the files below `root`, sorted. There may be none in an output without rows.
fn list_directory(root: &Path) -> Result<Vec<Source>, ListError> {
    let (mut files, mut outputs, mut todo) = (Vec::new(), Vec::new(), vec![root.to_path_buf()]);
    while let Some(path) = todo.pop() {
        let failed = |error| ListError::Open { path: path.clone(), error };
        if path.join(MANIFEST).exists() {
            outputs.push(path.join("").into_os_string().into_encoded_bytes());
        }
        if path.join(INCOMPLETE).exists() {
            return Err(ListError::IncompleteDirectory(path));
        }
        let entries: io::Result<Vec<_>> = fs::read_dir(&path).and_then(Iterator::collect);
        let mut entries = entries.map_err(failed)?;
        // The order of the system must not decide which error is found first.
        entries.sort_unstable_by_key(DirEntry::file_name);
        for entry in entries {
            let kind = entry.file_type().map_err(failed)?;
            if is_hidden_name(entry.file_name().as_encoded_bytes()) {
                continue;
            }
            let path = entry.path();
            if kind.is_dir() {
                todo.push(path);
            } else if !(kind.is_symlink() && path.is_dir()) {
                files.push(path);
            }
        }
    }
    files.sort_unstable_by(|a, b| a.as_os_str().as_encoded_bytes().cmp(b.as_os_str().as_encoded_bytes()));
    remove_index_files(&mut files, &outputs, |file| file.as_os_str().as_encoded_bytes());
    let is_of_outputs = || !outputs.is_empty() && outputs.iter().all(|output| is_output_without_parts(output));
    if files.is_empty() && !is_of_outputs() {
        return Err(ListError::EmptyDirectory(root.to_path_buf()));
    }
    let sources: Result<Vec<_>, _> = files.into_iter().map(file_in_directory).collect();
    Ok(sources?.into_iter().flatten().collect())
}

/// Whether the manifest in a directory, whose path ends with a slash, lists no parts: it is the output of a job without rows.
fn is_output_without_parts(directory: &[u8]) -> bool {
    let Some(path) = os_string(directory).map(|directory| Path::new(&directory).join(MANIFEST)) else { return false };
    lists_no_parts(&fs::read(path))
}

/// Whether a manifest lists no parts.
fn lists_no_parts(manifest: &io::Result<Vec<u8>>) -> bool {
    let manifest = manifest.as_ref().ok().and_then(|text| serde_json::from_slice::<serde_json::Value>(text).ok());
    manifest.is_some_and(|manifest| manifest["parts"].as_array().is_some_and(Vec::is_empty))
}

/// The sources of a file that a directory contains. The run reports pipes, sockets, devices and links without a target.
fn file_in_directory(path: PathBuf) -> Result<Vec<Source>, ListError> {
    let name = path_name(&path);
    let origin = match fs::metadata(&path) {
        Ok(metadata) if metadata.is_file() => return Source::of_file(path),
        Ok(_) => Origin::Unreadable(Defect::Special),
        Err(_) => Origin::Path(path),
    };
    Ok(vec![Source { name, origin, len: None }])
}
