//! A named input: [`Source`], and where its bytes come from: [`Origin`].

use super::detect::{ContentType, Packing, SNIFF_LEN, content_type, packing};
use super::error::{Defect, ListError};
use super::stored_file::StoredFile;
use super::zip::{self, ListedMember, MemberSelection, ZipMember};
use crate::encoding::Charset;
use crate::kernel::strip_prefix_ignoring_case;
use crate::process::{path_name, visible};
use crate::record::archive::is_archive;
use crate::record::{UnsupportedFormat, charset_of_media_type};
use crate::remote::{RemoteObject, RemoteReader, RemoteUrl};
use std::ffi::OsString;
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

/// Maximum number of names of members in a message.
const SHOWN_MEMBERS: usize = 20;

/// Where a source's bytes come from.
pub(crate) enum Origin {
    /// Standard input.
    Stdin,
    /// A file, pipe or device in the file system.
    Path(PathBuf),
    /// A member of a ZIP archive.
    Member(ZipMember),
    /// A damaged archive, a member that cannot be read, or a pipe, socket or device that was found in a directory. The defect is
    /// reported.
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
                StoredFile::Path(path) => Some(path),
                StoredFile::Remote(_) => None,
            },
            Origin::Stdin | Origin::Remote(_) | Origin::Unreadable(_) | Origin::Reader(_) => None,
        }
    }
}

/// A named input.
#[derive(Debug)]
pub struct Source {
    /// Name in messages and in the column `source`: the path as given, or `-`.
    pub name: String,
    pub(crate) origin: Origin,
    /// Length of a regular file or of an object, bytes as stored, or of a member of a ZIP archive; `None` if the length is
    /// not known before reading.
    pub len: Option<u64>,
}

impl Source {
    /// The object, if it is a file on an HTTP server.
    fn web_file(&mut self) -> Option<&mut RemoteObject> {
        let has_scheme = |scheme: &[u8]| strip_prefix_ignoring_case(self.name.as_bytes(), scheme).is_some();
        let is_web = has_scheme(b"http:") || has_scheme(b"https:");
        match &mut self.origin {
            Origin::Remote(object) if is_web => Some(object),
            _ => None,
        }
    }

    /// Waits for the first response of an HTTP server, from which [`Source::address`] and [`Source::declared_charset`] are known.
    ///
    /// # Errors
    /// [`Defect::Open`].
    pub(crate) fn wait_for_server(&mut self) -> Result<(), Defect> {
        let Some(object) = self.web_file() else { return Ok(()) };
        object.begin();
        *object = object.clone().found().map_err(|error| Defect::Open(error.into()))?;
        Ok(())
    }

    /// The address of a file on an HTTP server, after redirects, to which references in the file are relative (RFC 3986
    /// section 5.1.3).
    pub(crate) fn address(&mut self) -> Option<String> {
        self.web_file().map(|object| object.address())
    }

    /// The name by which the format is recognized. For a file on an HTTP server, it is the path of its address after redirects,
    /// or the path in its name, both without the query: the first of these that `indicates_format` accepts. Otherwise it is the
    /// name of the source.
    pub(crate) fn file_name(&mut self, indicates_format: impl Fn(&str) -> bool) -> String {
        let addresses = self.address().into_iter().flat_map(|address| [address, self.name.clone()]);
        let mut paths = addresses.filter_map(|address| Some(RemoteUrl::parse(&address)?.path().to_string()));
        paths.find(|path| indicates_format(path)).unwrap_or_else(|| self.name.clone())
    }

    /// Whether [`Source::address`] lacks a part of the query, which is a secret.
    pub(crate) fn is_query_hidden(&self) -> bool {
        matches!(&self.origin, Origin::Remote(object) if object.is_query_hidden())
    }

    /// The name; for an object whose name lacks a secret, also a hash, because others may have the same name.
    pub(crate) fn identity(&self) -> String {
        match &self.origin {
            Origin::Remote(object) => object.identity(),
            _ => self.name.clone(),
        }
    }

    /// The charset that an HTTP server declares for the file in the field `Content-Type` (RFC 9110 section 8.3.2), if it is
    /// known. Other sources, also objects in stores, have no declared charset.
    pub(crate) fn declared_charset(&mut self) -> Option<Charset> {
        let label = charset_of_media_type(self.web_file()?.media_type().unwrap_or_default().as_bytes());
        std::str::from_utf8(label).ok().and_then(Charset::named)
    }

    pub(crate) fn remote(object: RemoteObject) -> Source {
        Source { name: object.name().to_string(), len: object.len(), origin: Origin::Remote(object) }
    }

    /// Whether the bytes can be read only once: they come from a pipe or a device.
    pub(crate) fn is_read_once(&self) -> bool {
        match &self.origin {
            Origin::Stdin | Origin::Reader(_) => true,
            // A file that does not exist is reported when it is opened.
            Origin::Path(path) => self.len.is_none() && path.exists(),
            _ => false,
        }
    }

    /// The same source, to be read once more; `None` if it cannot be read, or only once.
    pub(crate) fn again(&self) -> Option<Source> {
        let origin = match &self.origin {
            Origin::Path(path) => Origin::Path(path.clone()),
            Origin::Member(member) => Origin::Member(member.clone()),
            Origin::Remote(object) => Origin::Remote(object.clone()),
            Origin::Stdin | Origin::Unreadable(_) | Origin::Reader(_) => return None,
        };
        Some(Source { name: self.name.clone(), origin, len: self.len })
    }

    /// The source is a regular file of this system, or a member of one.
    pub(super) fn is_local_file(&self) -> bool {
        match &self.origin {
            Origin::Path(_) => self.len.is_some(),
            Origin::Member(member) => matches!(member.file, StoredFile::Path(_)),
            Origin::Stdin | Origin::Unreadable(_) | Origin::Remote(_) | Origin::Reader(_) => false,
        }
    }

    /// Whether several threads can read the source at once: it is a file of this system that begins with text as it is stored.
    /// Archives, and JSON, which may be one document, count as others. Only the time to read depends on the result.
    pub(crate) fn is_divisible(&self) -> bool {
        let (Origin::Path(path), Some(_)) = (&self.origin, self.len) else { return false };
        let mut head = Vec::with_capacity(SNIFF_LEN);
        let read = File::open(path).and_then(|file| file.take(SNIFF_LEN as u64).read_to_end(&mut head));
        let is_text = packing(&head) == Packing::Plain && matches!(content_type(&head), ContentType::Records(_));
        read.is_ok() && is_text && !is_archive(&head) && !head.trim_ascii_start().starts_with(b"{")
    }

    pub(super) fn stdin() -> Source {
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
        Source::open_path(path).map(|(source, _)| source)
    }

    /// As [`Source::path`], and the opened file if it is a regular one.
    fn open_path(path: PathBuf) -> Result<(Source, Option<File>), ListError> {
        let failed = |error| ListError::Open { path: path.clone(), error };
        let metadata = fs::metadata(&path).map_err(failed)?;
        // Only regular files are opened as a test: opening a pipe waits for its writer, and closing it ends the writer.
        let file = metadata.is_file().then(|| File::open(&path)).transpose().map_err(failed)?;
        let len = file.is_some().then_some(metadata.len());
        Ok((Source { name: path_name(&path), origin: Origin::Path(path), len }, file))
    }

    /// The members of the file at `path` if it is a ZIP archive, otherwise the file.
    pub(super) fn of_file(path: PathBuf) -> Result<Vec<Source>, ListError> {
        let (source, file) = Source::open_path(path.clone())?;
        match file.is_some_and(|file| zip::is_zip(&file)) {
            true => Ok(source.members(&StoredFile::Path(path))),
            false => Ok(vec![source]),
        }
    }

    /// The members of an object that is an archive, otherwise the object.
    pub(super) fn of_object(object: RemoteObject) -> Vec<Source> {
        let is_zip = object.is_named_as_archive()
            && object.blocks_until(ZIP_HEAD_LEN).is_ok_and(|blocks| zip::is_zip(RemoteReader::new(blocks, 0)));
        let source = Source::remote(object.clone());
        if is_zip { source.members(&StoredFile::Remote(object)) } else { vec![source] }
    }

    /// The members of this source, which is an archive.
    fn members(self, file: &StoredFile) -> Vec<Source> {
        let archive = PathBuf::from(&self.name);
        let archive = if let StoredFile::Path(path) = file { path } else { &archive };
        let unreadable = |defect| vec![Source { origin: Origin::Unreadable(defect), ..self }];
        match zip::list_members(file, MemberSelection::Default) {
            Ok(members) if members.is_empty() => unreadable(Defect::Unsupported(NO_MEMBERS)),
            Ok(members) => members.into_iter().map(|member| Source::member(archive, member)).collect(),
            Err(defect) => unreadable(defect),
        }
    }

    /// The members that a path names: an archive, `!`, and a name or pattern. `None` if the path is not of this kind.
    pub(super) fn of_members(path: &Path) -> Option<Result<Vec<Source>, ListError>> {
        let bytes = path.as_os_str().as_encoded_bytes();
        let mut splits = memchr::memchr_iter(b'!', bytes).map(|at| (&bytes[..at], &bytes[at + 1..]));
        let (archive, pattern) = splits.find_map(|(archive, pattern)| {
            let archive = PathBuf::from(os_string(archive)?);
            File::open(&archive).is_ok_and(|file| zip::is_zip(&file)).then_some((archive, pattern))
        })?;
        Some(Source::matching_members(&StoredFile::Path(archive.clone()), &archive, pattern))
    }

    /// The members of the archive in `file`, which is named `archive`, whose names match `pattern`.
    pub(super) fn matching_members(
        file: &StoredFile,
        archive: &Path,
        pattern: &[u8],
    ) -> Result<Vec<Source>, ListError> {
        let failed = |defect: Defect| ListError::Open { path: archive.to_path_buf(), error: io::Error::other(defect) };
        let members = zip::list_members(file, MemberSelection::Pattern(pattern)).map_err(failed)?;
        if !members.is_empty() {
            return Ok(members.into_iter().map(|member| Source::member(archive, member)).collect());
        }
        let all = zip::list_members(file, MemberSelection::Pattern(b"*")).unwrap_or_default();
        Err(ListError::NoMember { path: member_path(archive, pattern), members: names_text(&all) })
    }

    fn member(archive: &Path, listed: ListedMember) -> Source {
        let name = path_name(&member_path(archive, &listed.name));
        match listed.member {
            Ok(member) => Source { name, len: Some(member.len), origin: Origin::Member(member) },
            Err(defect) => Source { name, len: None, origin: Origin::Unreadable(defect) },
        }
    }
}

/// The names of the first members, and how many more there are.
fn names_text(members: &[ListedMember]) -> String {
    let names = members.iter().take(SHOWN_MEMBERS).map(|member| String::from_utf8_lossy(&member.name).into_owned());
    let names = names.collect::<Vec<_>>().join(", ");
    match members.len().saturating_sub(SHOWN_MEMBERS) {
        0 => visible(&names).to_string(),
        more => format!("{}, and {more} more", visible(&names)),
    }
}

/// The name of an archive, `!`, and the name of a member or a pattern.
fn member_path(archive: &Path, member: &[u8]) -> PathBuf {
    let path = [archive.as_os_str().as_encoded_bytes(), b"!", member].concat();
    let lossy = || OsString::from(String::from_utf8_lossy(&path).into_owned());
    os_string(&path).unwrap_or_else(lossy).into()
}

/// Converts `bytes` to an `OsString`; `None` if the system cannot represent them.
#[cfg(unix)]
pub(super) fn os_string(bytes: &[u8]) -> Option<OsString> {
    use std::os::unix::ffi::OsStringExt;
    Some(OsString::from_vec(bytes.to_vec()))
}

#[cfg(not(unix))]
pub(super) fn os_string(bytes: &[u8]) -> Option<OsString> {
    std::str::from_utf8(bytes).ok().map(OsString::from)
}
