//! Expands arguments to [`Sources`]: files, members of ZIP archives, `-`, directories and `@list` files, in the order of the
//! arguments.
//!
//! A directory stands for all regular files below it, sorted by the bytes of their paths, so that the same tree gives the
//! same list on every system. Files and directories whose name begins with `.` or `_` are skipped, as Hive and Spark do:
//! they hold manifests, markers and unfinished files. Links to files are followed; links to directories are not, because
//! they may form cycles. Links without a target, pipes, sockets and devices are sources that cannot be read, so that they
//! are reported. A path that is itself an argument is always read, whatever it is.
//!
//! A ZIP archive stands for its members, each a source `ARCHIVE!MEMBER`; `ARCHIVE!PATTERN` is an argument as well.

use super::detect::{Packing, packing};
use super::error::{Defect, ListError};
use super::table::TableFile;
use super::whole_file::{read_file, shown_path};
use super::zip::{self, ListedMember, MemberSelection, ZipMember};
use crate::process::visible;
use crate::record::UnsupportedFormat;
use crate::remote::{RemoteError, RemoteObject, RemoteReader, RemoteUrl, read_ahead};
use flate2::read::MultiGzDecoder;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// A ZIP archive without files to read.
const NO_MEMBERS: UnsupportedFormat = UnsupportedFormat {
    name: "a ZIP archive without files to read (names that begin with . or _ are skipped)",
    advice: "name the members, for example 'ARCHIVE.zip!*'",
};

/// Bytes by which a ZIP archive is recognized.
const ZIP_HEAD_LEN: u64 = 4;

/// Most names of members in a message.
const SHOWN_MEMBERS: usize = 20;

/// Longest list that is compressed, unpacked, in bytes.
const MAX_LIST_LEN: u64 = 1 << 30;

/// Where a source's bytes come from.
pub(crate) enum Origin {
    /// Standard input.
    Stdin,
    /// A file, pipe or device in the file system.
    Path(PathBuf),
    /// A member of a ZIP archive.
    Member(ZipMember),
    /// A pipe, socket or device that was found in a directory. It is reported, but not read.
    Special,
    /// A damaged archive, or a member that cannot be read.
    Unreadable(Defect),
    /// An object in a store, or a file on an HTTP server.
    Remote(RemoteObject),
    /// Any other reader.
    Reader(Box<dyn Read + Send>),
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Stdin => f.write_str("Stdin"),
            Origin::Path(path) => f.debug_tuple("Path").field(path).finish(),
            Origin::Member(member) => f.debug_tuple("Member").field(member).finish(),
            Origin::Special => f.write_str("Special"),
            Origin::Unreadable(defect) => f.debug_tuple("Unreadable").field(defect).finish(),
            Origin::Remote(object) => f.debug_tuple("Remote").field(object).finish(),
            Origin::Reader(_) => f.write_str("Reader"),
        }
    }
}

impl Origin {
    /// The file in the file system that is read.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Origin::Path(path) => Some(path),
            Origin::Member(member) => match &member.file {
                TableFile::Path(path) => Some(path),
                TableFile::Remote(_) => None,
            },
            Origin::Stdin | Origin::Special | Origin::Remote(_) | Origin::Unreadable(_) | Origin::Reader(_) => None,
        }
    }
}

/// A named input.
#[derive(Debug)]
pub struct Source {
    /// Name in messages and in the column `source`: the path as given, or `-`.
    pub name: String,
    /// Where its bytes come from.
    pub(crate) origin: Origin,
    /// Length of a regular file or of an object, bytes as stored, or of a member of a ZIP archive; `None` if the length is
    /// not known before reading.
    pub len: Option<u64>,
}

impl Source {
    /// An object in a store.
    pub(crate) fn remote(object: RemoteObject) -> Source {
        Source { name: object.name().to_string(), len: object.len(), origin: Origin::Remote(object) }
    }

    /// Standard input.
    pub(crate) fn stdin() -> Source {
        Source { name: "-".to_string(), origin: Origin::Stdin, len: None }
    }

    /// The bytes of `reader`.
    pub fn reader(name: &str, reader: impl Read + Send + 'static) -> Source {
        Source { name: name.to_string(), origin: Origin::Reader(Box::new(reader)), len: None }
    }

    /// The file at `path`, which must exist. A regular file must be readable.
    ///
    /// # Errors
    /// [`ListError::Open`].
    pub fn path(path: PathBuf) -> Result<Source, ListError> {
        let failed = |error| ListError::Open { path: path.clone(), error };
        let metadata = fs::metadata(&path).map_err(failed)?;
        if metadata.is_file() {
            // Only regular files are opened as a test: opening a pipe waits for its writer, and closing it ends the
            // writer.
            File::open(&path).map_err(failed)?;
        }
        let len = metadata.is_file().then_some(metadata.len());
        Ok(Source { name: source_name(&path), origin: Origin::Path(path), len })
    }

    /// The sources that the file at `path` stands for: its members if it is a ZIP archive, otherwise the file.
    fn of_file(path: PathBuf) -> Result<Vec<Source>, ListError> {
        let source = Source::path(path.clone())?;
        let is_zip = source.len.is_some() && File::open(&path).is_ok_and(|file| zip::is_zip(&file));
        if !is_zip {
            return Ok(vec![source]);
        }
        Ok(source.members(&TableFile::Path(path)))
    }

    /// The members of an object that is an archive, otherwise the object.
    fn of_object(object: RemoteObject) -> Vec<Source> {
        let is_zip = object.is_named_as_archive()
            && object.blocks_until(ZIP_HEAD_LEN).is_ok_and(|blocks| zip::is_zip(RemoteReader::new(blocks, 0)));
        let source = Source::remote(object.clone());
        if is_zip { source.members(&TableFile::Remote(object)) } else { vec![source] }
    }

    /// The sources that this one, an archive, stands for.
    fn members(self, file: &TableFile) -> Vec<Source> {
        let archive = PathBuf::from(&self.name);
        let archive = if let TableFile::Path(path) = file { path } else { &archive };
        let unreadable = |defect| vec![Source { origin: Origin::Unreadable(defect), ..self }];
        match zip::list_members(file, MemberSelection::Default) {
            Ok(members) if members.is_empty() => unreadable(Defect::Unsupported(NO_MEMBERS)),
            Ok(members) => members.into_iter().map(|member| Source::member(archive, member)).collect(),
            Err(defect) => unreadable(defect),
        }
    }

    /// The sources that the name of an archive, `!`, and a name or pattern stand for; `None` if the path is not of this kind.
    fn of_members(path: &Path) -> Option<Result<Vec<Source>, ListError>> {
        let bytes = path.as_os_str().as_encoded_bytes();
        let mut splits = memchr::memchr_iter(b'!', bytes).map(|at| (&bytes[..at], &bytes[at + 1..]));
        let (archive, pattern) = splits.find_map(|(archive, pattern)| {
            let archive = PathBuf::from(os_string(archive)?);
            File::open(&archive).is_ok_and(|file| zip::is_zip(&file)).then_some((archive, pattern))
        })?;
        Some(Source::matching_members(&TableFile::Path(archive.clone()), &archive, pattern))
    }

    /// The members of the archive in `file`, which is named `archive`, whose names match `pattern`.
    fn matching_members(file: &TableFile, archive: &Path, pattern: &[u8]) -> Result<Vec<Source>, ListError> {
        let failed = |defect: Defect| ListError::Open { path: archive.to_path_buf(), error: io::Error::other(defect) };
        let members = zip::list_members(file, MemberSelection::Pattern(pattern)).map_err(failed)?;
        if !members.is_empty() {
            return Ok(members.into_iter().map(|member| Source::member(archive, member)).collect());
        }
        let all = zip::list_members(file, MemberSelection::Pattern(b"*")).unwrap_or_default();
        let names = all.iter().take(SHOWN_MEMBERS).map(|member| String::from_utf8_lossy(&member.name).into_owned());
        let members = visible(&names.collect::<Vec<_>>().join(", ")).to_string();
        let path = [archive.as_os_str().as_encoded_bytes(), b"!", pattern].concat();
        let lossy = || OsString::from(String::from_utf8_lossy(&path).into_owned());
        Err(ListError::NoMember { path: os_string(&path).unwrap_or_else(lossy).into(), members })
    }

    fn member(archive: &Path, listed: ListedMember) -> Source {
        let path = [archive.as_os_str().as_encoded_bytes(), b"!", &listed.name].concat();
        let lossy = || OsString::from(String::from_utf8_lossy(&path).into_owned());
        let name = source_name(Path::new(&os_string(&path).unwrap_or_else(lossy)));
        match listed.member {
            Ok(member) => Source { name, len: Some(member.len), origin: Origin::Member(member) },
            Err(defect) => Source { name, len: None, origin: Origin::Unreadable(defect) },
        }
    }
}

/// The inputs of a run, in order.
#[derive(Debug, Default)]
pub struct Sources(pub Vec<Source>);

impl Sources {
    /// The names of the sources.
    pub fn names(&self) -> Vec<String> {
        self.0.iter().map(|source| source.name.clone()).collect()
    }

    /// Makes the first requests of the first of `sources` ahead, as many as memory allows, so that they are open sooner.
    pub(crate) fn begin_ahead(sources: &mut [Source]) {
        /// Most sources whose first requests are made ahead.
        const SOURCES_AHEAD: usize = 64;
        let mut space = read_ahead() as u64 / 2;
        for source in sources.iter_mut().take(SOURCES_AHEAD) {
            let Origin::Remote(object) = &mut source.origin else { continue };
            let Some(rest) = space.checked_sub(object.head_len()) else { return };
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

    /// Adds what `path` names. An object in a list is not asked for before it is opened, because a list may be long.
    fn push(&mut self, path: PathBuf, is_listed: bool) -> Result<(), ListError> {
        if let Some(url) = path.to_str().and_then(RemoteUrl::parse) {
            self.0.extend(remote_sources(&url, is_listed)?);
            return Ok(());
        }
        if path.as_os_str() == "-" {
            if self.0.iter().any(|source| matches!(source.origin, Origin::Stdin)) {
                return Err(ListError::StdinTwice);
            }
            self.0.push(Source::stdin());
        } else if path.is_dir() {
            self.0.extend(list_directory(&path)?);
        } else {
            let members = if path.exists() { None } else { Source::of_members(&path) };
            self.0.extend(members.unwrap_or_else(|| Source::of_file(path))?);
        }
        Ok(())
    }
}

/// Returns the sources that `arguments` name; without arguments, standard input. `@NAME` names a file (`@-`: standard input)
/// with one path or `-` per line, perhaps compressed with gzip; empty lines and lines that begin with `#` are skipped. If the
/// list contains a NUL byte, NUL ends every path, as `find -print0` writes them, and every path counts. A list cannot name
/// another list.
///
/// # Errors
/// The error of the argument that names no readable input; [`ListError::Several`] if there are more.
pub fn list<S: AsRef<OsStr>>(arguments: &[S]) -> Result<Sources, ListError> {
    list_prefixed(arguments, OsStr::new(""))
}

/// [`list`], with `prefix` before each name of a list.
///
/// # Errors
/// As [`list`].
pub(crate) fn list_prefixed<S: AsRef<OsStr>>(arguments: &[S], prefix: &OsStr) -> Result<Sources, ListError> {
    let mut sources = Sources::default();
    if arguments.is_empty() {
        sources.0.push(Source::stdin());
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
    match errors.pop() {
        None => Ok(sources),
        Some(error) if errors.is_empty() => Err(error),
        Some(error) => {
            errors.push(error);
            Err(ListError::Several(errors))
        }
    }
}

/// Returns the name after the `@` of an argument that is a list.
pub(crate) fn list_name(argument: &OsStr) -> Option<OsString> {
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

/// Reads the paths in the list at `path`, and puts `prefix` before each.
fn read_list(path: &Path, prefix: &OsStr) -> Result<Vec<PathBuf>, ListError> {
    let failed = |error| ListError::List { path: shown_path(path), error };
    let mut bytes = Vec::new();
    if path.as_os_str() == "-" {
        io::stdin().read_to_end(&mut bytes).map_err(failed)?;
    } else {
        bytes = read_file(path).map_err(failed)?;
    }
    if packing(&bytes) == Packing::Gzip {
        bytes = unpack_list(&bytes).map_err(failed)?;
    }
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

/// Unpacks a list that is compressed with gzip.
fn unpack_list(packed: &[u8]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    MultiGzDecoder::new(packed).take(MAX_LIST_LEN + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > MAX_LIST_LEN {
        true => Err(io::Error::new(io::ErrorKind::InvalidData, "it is longer than 1 GiB; divide it")),
        false => Ok(bytes),
    }
}

/// The objects that `url` stands for, and the members of those that are ZIP archives. An object that is `in_list` is not
/// asked for, unless it is named as an archive.
fn remote_sources(url: &RemoteUrl, in_list: bool) -> Result<Vec<Source>, ListError> {
    let failed = |error: RemoteError| ListError::Open { path: url.name().into(), error: error.into() };
    if let Some((archive, members)) = url.split_member() {
        let object = RemoteObject::named(&archive).and_then(RemoteObject::found).map_err(failed)?;
        let name = PathBuf::from(object.name());
        return Source::matching_members(&TableFile::Remote(object), &name, members.as_bytes());
    }
    let objects = match url.is_list() {
        true => crate::remote::list(url).map_err(failed)?,
        false => vec![RemoteObject::named(url).map_err(failed)?],
    };
    let find = |object: RemoteObject| match in_list {
        false => object.found(),
        true if object.is_named_as_archive() => Ok(object.clone().found().unwrap_or(object)),
        true => Ok(object),
    };
    let objects = objects.into_iter().map(find);
    let sources: Result<Vec<_>, _> = objects.map(|object| Ok(Source::of_object(object?))).collect();
    Ok(sources.map_err(failed)?.into_iter().flatten().collect())
}

/// Returns the files below `root`, sorted.
fn list_directory(root: &Path) -> Result<Vec<Source>, ListError> {
    let mut files: Vec<(PathBuf, ListedFile)> = Vec::new();
    let mut todo = vec![root.to_path_buf()];
    while let Some(path) = todo.pop() {
        let failed = |error| ListError::Open { path: path.clone(), error };
        for entry in fs::read_dir(&path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let kind = entry.file_type().map_err(failed)?;
            if matches!(entry.file_name().as_encoded_bytes().first(), Some(b'.' | b'_')) {
                continue;
            }
            let path = entry.path();
            if kind.is_dir() {
                todo.push(path);
            } else if let Some(file) = ListedFile::at(&path) {
                files.push((path, file));
            }
        }
    }
    if files.is_empty() {
        return Err(ListError::EmptyDirectory(root.to_path_buf()));
    }
    let bytes = |path: &Path| path.as_os_str().as_encoded_bytes().to_vec();
    files.sort_unstable_by_key(|(path, _)| bytes(path));
    let sources: Result<Vec<_>, _> = files.into_iter().map(|(path, file)| file.sources(path)).collect();
    Ok(sources?.into_iter().flatten().collect())
}

/// Returns the name of a path: the path itself if it is UTF-8. Otherwise, and if the path begins with `bytes:`, the name is
/// `bytes:` and the path with `%` and all bytes that are not UTF-8 percent-encoded. Different paths have different names.
fn source_name(path: &Path) -> String {
    const MARK: &str = "bytes:";
    let encoded = || {
        let mut name = MARK.to_string();
        for chunk in path.as_os_str().as_encoded_bytes().utf8_chunks() {
            name.push_str(&chunk.valid().replace('%', "%25"));
            name.extend(chunk.invalid().iter().map(|byte| format!("%{byte:02X}")));
        }
        name
    };
    path.to_str().filter(|name| !name.starts_with(MARK)).map_or_else(encoded, str::to_string)
}

/// What a directory contains under a name.
enum ListedFile {
    Regular,
    /// A link without a target. The run reports that it cannot be opened.
    Missing,
    /// A pipe, socket or device.
    Special,
}

impl ListedFile {
    /// The file at `path`; `None` for links to directories.
    fn at(path: &Path) -> Option<ListedFile> {
        match fs::metadata(path) {
            Err(_) => Some(ListedFile::Missing),
            Ok(metadata) if metadata.is_dir() => None,
            Ok(metadata) if metadata.is_file() => Some(ListedFile::Regular),
            Ok(_) => Some(ListedFile::Special),
        }
    }

    fn sources(self, path: PathBuf) -> Result<Vec<Source>, ListError> {
        let name = source_name(&path);
        match self {
            ListedFile::Regular => Source::of_file(path),
            ListedFile::Missing => Ok(vec![Source { name, origin: Origin::Path(path), len: None }]),
            ListedFile::Special => Ok(vec![Source { name, origin: Origin::Special, len: None }]),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn different_paths_have_different_names() {
        let name = |bytes: &[u8]| source_name(Path::new(OsStr::from_bytes(bytes)));
        assert_eq!(name("dir/ü%20.txt".as_bytes()), "dir/ü%20.txt");
        assert_eq!(name(b"a\xFF%\xC3\xBC"), "bytes:a%FF%25ü");
        assert_eq!(name(b"bytes:a%FF"), "bytes:bytes:a%25FF");
        assert_ne!(name(b"a\xFF"), name(b"a\xFE"));
    }
}
