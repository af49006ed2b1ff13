//! Lists the objects that a prefix or a pattern stands for: [`list`].

use futures_util::TryStreamExt;
use glob::{MatchOptions, Pattern};
use object_store::path::Path;
use object_store::{ListResult, ObjectMeta};

use super::client::client;
use super::error::RemoteError;
use super::failure::{SLASH_BEFORE_KEY, UNUSABLE_KEY, unusable_key};
use super::object::{RemoteObject, location_of};
use super::repetition::{FetchError, Repetition};
use super::store::{RemoteStore, StorePurpose};
use super::url::{RemoteUrl, is_pattern, is_prefix};
use crate::process::part_names::{INCOMPLETE, MANIFEST, is_hidden_name, remove_about_others};

/// Maximum number of objects that one name may stand for.
const MAX_OBJECTS: usize = 10_000_000;

/// How names are compared with patterns.
const MATCHING: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: false };

/// Returns the objects that `url` stands for, sorted by the bytes of their keys: those below a prefix that ends in `/`, or
/// those that match a pattern. There may be none in outputs without rows: `has_rows` says whether a manifest is of another one.
///
/// # Errors
/// The bucket cannot be listed, or there is no such object.
pub(crate) fn list(
    url: &RemoteUrl,
    has_rows: impl Fn(&RemoteObject) -> bool,
) -> Result<Vec<RemoteObject>, RemoteError> {
    let store = listed_store(url)?;
    let Found { objects, manifests } = sorted(&store, &url.key)?;
    let listed = |metas: Vec<ObjectMeta>| metas.into_iter().map(|meta| RemoteObject::listed(url, &store, meta));
    if objects.is_empty() && (manifests.is_empty() || listed(manifests).any(|manifest| has_rows(&manifest))) {
        let found = "no objects have such a name (names that begin with . or _ are skipped)";
        return Err(RemoteError::new(found, "check the bucket and the prefix"));
    }
    Ok(listed(objects).collect())
}

/// Whether there are objects that `url` stands for.
pub(crate) fn has_objects(url: &RemoteUrl) -> Result<bool, RemoteError> {
    Ok(!sorted(&listed_store(url)?, &url.key)?.objects.is_empty())
}

/// The store in which `url` is.
///
/// # Errors
/// The store cannot be opened. Files on HTTP servers are in none: a request for a listing could be repeated for minutes.
fn listed_store(url: &RemoteUrl) -> Result<RemoteStore, RemoteError> {
    match url.is_in_store() {
        true => client()?.store(url, StorePurpose::Read),
        false => {
            Err(RemoteError::new("HTTP servers have no listings", "name a prefix in a store, or a local directory"))
        }
    }
}

fn sorted(store: &RemoteStore, key: &str) -> Result<Found, RemoteError> {
    let (store, listed) = (store.clone(), key.to_string());
    let lost = || Err(RemoteError::new("the listing ended early", "run again"));
    let mut found = client()?.wait(async move { find(&store, &listed).await }).unwrap_or_else(lost)?;
    found.objects.sort_unstable_by(|a, b| a.location.as_ref().cmp(b.location.as_ref()));
    remove_markers(&mut found.objects);
    if is_prefix(key) {
        let keys = found.manifests.iter().map(|meta| meta.location.as_ref());
        let outputs: Vec<_> = keys.filter_map(|key| Some(key.strip_suffix(MANIFEST)?.into())).collect();
        remove_about_others(&mut found.objects, &outputs, |meta| meta.location.as_ref().as_bytes());
    }
    Ok(found)
}

/// What a listing found.
#[derive(Default)]
struct Found {
    objects: Vec<ObjectMeta>,
    /// The manifests of outputs.
    manifests: Vec<ObjectMeta>,
}

/// Lists again from the beginning if a request fails. The time for repetitions begins again when a listing comes farther than
/// those before it.
async fn find(store: &RemoteStore, key: &str) -> Result<Found, RemoteError> {
    let (mut repetition, mut farthest) = (Repetition::new(), None);
    loop {
        let mut listed = 0;
        let found = match is_prefix(key) {
            true => below(store, key, &mut listed).await,
            false => matching(store, key, &mut listed).await,
        };
        if farthest.is_none_or(|most| listed > most) {
            (repetition, farthest) = (Repetition::new(), Some(listed));
        }
        match found {
            Ok(found) => return Ok(found),
            Err(FetchError::Final(error)) => return Err(error),
            Err(FetchError::Transient(failure)) => repetition.pause(|| failure.error(store)).await?,
        }
    }
}

/// All objects below a prefix, except those with a hidden name. Counts in `listed` the objects that the store has listed.
async fn below(store: &RemoteStore, prefix: &str, listed: &mut usize) -> Result<Found, FetchError> {
    let prefix = parse(prefix)?;
    let start = prefix.as_ref().len();
    let mut pages = store.store.list(Some(&prefix)).try_chunks(1000);
    let mut found = Found::default();
    loop {
        let page = pages.try_next().await.map_err(|error| {
            *listed += error.0.len();
            FetchError::of(&error.1, store)
        })?;
        let Some(page) = page else { return Ok(found) };
        *listed += page.len();
        for meta in page {
            let key = meta.location.as_ref();
            let rest = key.get(start..).unwrap_or_default();
            // An empty object with the name of the prefix marks a directory.
            if rest.is_empty() && meta.size == 0 {
                continue;
            }
            if !rest.split('/').any(|name| is_hidden_name(name.as_bytes())) {
                found.objects.push(meta);
            } else if is_mark(rest, &meta) {
                return Err(incomplete(key).into());
            } else if is_about_output(rest, MANIFEST) {
                found.manifests.push(meta);
            }
        }
        check_count(found.objects.len())?;
    }
}

/// The object marks a prefix that is in no hidden directory, and below which a job writes. An empty one does not.
fn is_mark(rest: &str, meta: &ObjectMeta) -> bool {
    meta.size > 0 && is_about_output(rest, INCOMPLETE)
}

/// The object is called `expected`, and in no hidden directory.
fn is_about_output(rest: &str, expected: &str) -> bool {
    let rest = rest.trim_start_matches('/');
    let (above, name) = rest.rsplit_once('/').unwrap_or(("", rest));
    name == expected && !above.split('/').any(|name| is_hidden_name(name.as_bytes()))
}

fn incomplete(mark: &str) -> RemoteError {
    RemoteError::new(
        format!("the output of irikey there is not complete: it has the object {mark}"),
        "wait for the job that writes it; if it was interrupted, remove its objects and run it again, or name those to read",
    )
}

/// The objects whose keys match a pattern. Each part between slashes is compared with the names at its place. Counts in `listed`
/// the prefixes that the store has listed.
async fn matching(store: &RemoteStore, pattern: &str, listed: &mut usize) -> Result<Found, FetchError> {
    let parts: Vec<&str> = pattern.split('/').collect();
    let mut prefixes = vec![String::new()];
    let mut objects = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        let is_last = number + 1 == parts.len();
        if !is_last && !is_pattern(part) {
            prefixes.iter_mut().for_each(|prefix| *prefix = format!("{prefix}{part}/"));
            continue;
        }
        let part = PartPattern::parse(part)?;
        let mut found = Vec::new();
        for prefix in &prefixes {
            let path = parse(prefix)?;
            let names = store.store.list_with_delimiter(Some(&path)).await;
            let names = names.map_err(|error| FetchError::of(&error, store))?;
            *listed += 1;
            let names = matching_names(names, &part, is_last)?;
            objects.extend(names.objects);
            found.extend(names.common_prefixes.into_iter().map(|path| format!("{path}/")));
            check_count(objects.len().max(found.len()))?;
        }
        prefixes = found;
    }
    Ok(Found { objects, manifests: Vec::new() })
}

/// The objects of a listing whose names match the last part of a pattern, or the prefixes whose names match another one.
///
/// # Errors
/// There are some, and a job writes below the prefix that was listed. A prefix is a slash alone, which `object_store` removes.
fn matching_names(names: ListResult, part: &PartPattern, is_last: bool) -> Result<ListResult, RemoteError> {
    let ListResult { mut objects, mut common_prefixes, extensions } = names;
    let mark = objects.iter().find(|meta| is_mark(meta.location.filename().unwrap_or_default(), meta)).cloned();
    objects.retain(|meta| is_last && part.has(&meta.location));
    common_prefixes.retain(|path| !is_last && part.has(path));
    if common_prefixes.iter().any(|path| path.as_ref().is_empty()) {
        return Err(unusable_key(SLASH_BEFORE_KEY));
    }
    match mark {
        Some(mark) if !objects.is_empty() || !common_prefixes.is_empty() => Err(incomplete(mark.location.as_ref())),
        _ => Ok(ListResult { objects, common_prefixes, extensions }),
    }
}

/// The pattern of one name.
struct PartPattern {
    pattern: Pattern,
    /// The pattern begins with this byte, so that names that begin with it are not hidden.
    first: Option<char>,
}

impl PartPattern {
    fn parse(part: &str) -> Result<PartPattern, RemoteError> {
        let damaged = |_| {
            RemoteError::new(format!("the pattern `{part}` is damaged"), "close [ with ], and write [*] for a star")
        };
        if part.contains("**") {
            let advice = "write one star, or a prefix that ends in / for everything below it";
            return Err(RemoteError::new("two stars have no meaning here", advice));
        }
        Ok(PartPattern { pattern: Pattern::new(part).map_err(damaged)?, first: part.chars().next() })
    }

    /// The last name of `path` matches.
    fn has(&self, path: &Path) -> bool {
        let name = path.filename().unwrap_or_default();
        let is_shown = !is_hidden_name(name.as_bytes()) || name.chars().next() == self.first;
        is_shown && self.pattern.matches_with(name, MATCHING)
    }
}

fn parse(prefix: &str) -> Result<Path, RemoteError> {
    let damaged = || RemoteError::new(format!("this is a prefix {UNUSABLE_KEY}"), "check the prefix");
    location_of(prefix).ok_or_else(damaged)
}

fn check_count(count: usize) -> Result<(), RemoteError> {
    match count > MAX_OBJECTS {
        true => {
            Err(RemoteError::new(format!("more than {MAX_OBJECTS} objects have such a name"), "use a longer prefix"))
        }
        false => Ok(()),
    }
}

/// Removes empty objects that mark directories. `objects` are sorted.
fn remove_markers(objects: &mut Vec<ObjectMeta>) {
    let is_marker = |meta: &ObjectMeta| {
        let prefix = format!("{}/", meta.location);
        let next = objects.partition_point(|other| other.location.as_ref() < prefix.as_str());
        meta.size == 0 && objects.get(next).is_some_and(|other| other.location.as_ref().starts_with(&prefix))
    };
    let markers: Vec<bool> = objects.iter().map(is_marker).collect();
    let mut markers = markers.into_iter();
    objects.retain(|_| !markers.next().unwrap_or(false));
}
