//! Lists the objects that a prefix or a pattern stands for: [`list`].

use std::collections::BTreeSet;
use std::sync::Arc;

use glob::{MatchOptions, Pattern};
use object_store::path::Path;
use object_store::{ListResult, ObjectMeta};

use super::client::client;
use super::error::RemoteError;
use super::failure::{SLASH_BEFORE_KEY, UNUSABLE_KEY, unusable_key};
use super::listing_pages::{ListingCounts, ListingLimits, ListingPages, no_listings};
use super::object::{RemoteObject, location_of};
use super::repetition::{FetchError, Repetition};
use super::store::{RemoteStore, StorePurpose};
use super::url::{RemoteUrl, WILDCARDS, is_pattern, is_prefix};
use crate::process::part_names::{INCOMPLETE, MANIFEST, is_hidden_name, remove_index_files};

/// Limits of what one name may stand for. A full page has 1,000 names or more.
const LIMITS: ListingLimits = ListingLimits { objects: 10_000_000, pages: 100_000 };

/// How names are compared with patterns.
const MATCHING: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: false };

/// Returns the objects that `url` stands for, sorted by the bytes of their keys: those below a prefix that ends in `/`, or
/// those that match a pattern. The result is empty if these are outputs without rows: `has_rows` returns whether a manifest
/// belongs to an output with rows.
///
/// # Errors
/// The bucket cannot be listed, or there is no such object.
pub(crate) fn list(
    url: &RemoteUrl,
    has_rows: impl Fn(&RemoteObject) -> bool,
) -> Result<Vec<RemoteObject>, RemoteError> {
    let store = Arc::new(listed_store(url)?);
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
/// The store cannot be opened. HTTP servers have no listings; this is an error at once, because a request could be retried for
/// minutes.
fn listed_store(url: &RemoteUrl) -> Result<RemoteStore, RemoteError> {
    match url.is_in_store() {
        true => client()?.store(url, StorePurpose::Read),
        false => Err(no_listings()),
    }
}

fn sorted(store: &RemoteStore, key: &str) -> Result<Found, RemoteError> {
    let (store, listed) = (store.clone(), key.to_string());
    let lost = || Err(RemoteError::new("the listing ended early", "run again"));
    let mut found = client()?.wait(async move { find(&store, &listed, LIMITS).await }).unwrap_or_else(lost)?;
    found.objects.sort_unstable_by(|a, b| a.location.as_ref().cmp(b.location.as_ref()));
    remove_markers(&mut found.objects);
    if is_prefix(key) {
        let keys = found.manifests.iter().map(|meta| meta.location.as_ref());
        let outputs: Vec<_> = keys.filter_map(|key| Some(key.strip_suffix(MANIFEST)?.into())).collect();
        remove_index_files(&mut found.objects, &outputs, |meta| meta.location.as_ref().as_bytes());
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
async fn find(store: &RemoteStore, key: &str, limits: ListingLimits) -> Result<Found, RemoteError> {
    let (mut repetition, mut farthest) = (Repetition::new(), None);
    loop {
        let mut counts = ListingCounts::new(limits);
        let found = match is_prefix(key) {
            true => below(store, key, &mut counts).await,
            false => matching(store, key, &mut counts).await,
        };
        if farthest.is_none_or(|most| counts.pages > most) {
            (repetition, farthest) = (Repetition::new(), Some(counts.pages));
        }
        match found {
            Ok(found) => return Ok(found),
            Err(FetchError::Final(error)) => return Err(error),
            Err(FetchError::Transient(failure)) => repetition.pause(|| failure.error(store)).await?,
        }
    }
}

/// All objects below a prefix, except those with a hidden name.
async fn below(store: &RemoteStore, prefix: &str, counts: &mut ListingCounts) -> Result<Found, FetchError> {
    let prefix = parse(prefix)?;
    let start = prefix.as_ref().len();
    let mut pages = ListingPages::below(store, &prefix);
    let mut found = Found::default();
    while let Some(page) = pages.next(counts).await? {
        for meta in page.objects {
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
        counts.check_objects(found.objects.len().max(found.manifests.len()))?;
    }
    Ok(found)
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

/// The objects whose keys match a pattern. Each part between slashes is compared with the names at its place.
async fn matching(store: &RemoteStore, pattern: &str, counts: &mut ListingCounts) -> Result<Found, FetchError> {
    let parts: Vec<&str> = pattern.split('/').collect();
    let (mut prefixes, mut objects) = (BTreeSet::from([String::new()]), Vec::new());
    for (number, part) in parts.iter().enumerate() {
        let is_last = number + 1 == parts.len();
        if !is_last && !is_pattern(part) {
            prefixes = prefixes.into_iter().map(|prefix| format!("{prefix}{part}/")).collect();
            continue;
        }
        let mut names = MatchingNames::of(part, is_last)?;
        for prefix in &prefixes {
            names.add(store, prefix, counts).await?;
        }
        (prefixes, objects) = (names.prefixes, names.objects);
    }
    Ok(Found { objects, manifests: Vec::new() })
}

/// What matches one part of a pattern.
struct MatchingNames {
    part: PartPattern,
    /// The part is the last one, which objects match. Prefixes match the others.
    is_last: bool,
    objects: Vec<ObjectMeta>,
    /// With a slash at the end. Several pages may have the same prefix.
    prefixes: BTreeSet<String>,
}

impl MatchingNames {
    fn of(part: &str, is_last: bool) -> Result<MatchingNames, RemoteError> {
        let part = PartPattern::parse(part)?;
        Ok(MatchingNames { part, is_last, objects: Vec::new(), prefixes: BTreeSet::new() })
    }

    fn count(&self) -> usize {
        self.objects.len().max(self.prefixes.len())
    }

    /// Adds the names directly below `prefix` that match. If they have several pages, lists only those that begin like the
    /// pattern, and the mark.
    ///
    /// # Errors
    /// There are some, and a job writes below the prefix.
    async fn add(&mut self, store: &RemoteStore, prefix: &str, counts: &mut ListingCounts) -> Result<(), FetchError> {
        let parent = parse(prefix)?;
        let mut pages = ListingPages::directly_below(store, &parent);
        let (before, mut mark) = (self.count(), None);
        let mut page = pages.next(counts).await?;
        if pages.has_more() && !self.part.start.is_empty() {
            mark = find_mark(store, &parent, counts).await?;
            pages = ListingPages::beginning_with(store, &parent, &self.part.start);
            page = pages.next(counts).await?;
        }
        while let Some(found) = page {
            mark = mark.or_else(|| mark_of(&found));
            self.add_page(found)?;
            counts.check_objects(self.count())?;
            page = pages.next(counts).await?;
        }
        match mark {
            Some(mark) if self.count() > before => Err(incomplete(mark.location.as_ref()).into()),
            _ => Ok(()),
        }
    }

    /// Adds the names of a page.
    ///
    /// # Errors
    /// A prefix that matches is a slash alone, which `object_store` removes.
    fn add_page(&mut self, page: ListResult) -> Result<(), RemoteError> {
        if self.is_last {
            self.objects.extend(page.objects.into_iter().filter(|meta| self.part.has(&meta.location)));
            return Ok(());
        }
        let prefixes: Vec<_> = page.common_prefixes.into_iter().filter(|path| self.part.has(path)).collect();
        if prefixes.iter().any(|path| path.as_ref().is_empty()) {
            return Err(unusable_key(SLASH_BEFORE_KEY));
        }
        self.prefixes.extend(prefixes.into_iter().map(|path| format!("{path}/")));
        Ok(())
    }
}

/// Returns the object that marks `parent`, below which a job writes.
async fn find_mark(
    store: &RemoteStore,
    parent: &Path,
    counts: &mut ListingCounts,
) -> Result<Option<ObjectMeta>, FetchError> {
    let (mut pages, mut mark) = (ListingPages::beginning_with(store, parent, INCOMPLETE), None);
    while mark.is_none()
        && let Some(page) = pages.next(counts).await?
    {
        mark = mark_of(&page);
    }
    Ok(mark)
}

/// Returns the object of the page that marks the prefix directly above it.
fn mark_of(page: &ListResult) -> Option<ObjectMeta> {
    let is_mark = |meta: &&ObjectMeta| is_mark(meta.location.filename().unwrap_or_default(), meta);
    page.objects.iter().find(is_mark).cloned()
}

/// The pattern of one name.
struct PartPattern {
    pattern: Pattern,
    /// The text before the first wildcard. If there is none, hidden names do not match.
    start: String,
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
        let start = part.split(WILDCARDS).next().unwrap_or_default().to_string();
        Ok(PartPattern { pattern: Pattern::new(part).map_err(damaged)?, start })
    }

    /// The last name of `path` matches.
    fn has(&self, path: &Path) -> bool {
        let name = path.filename().unwrap_or_default();
        let is_shown = !is_hidden_name(name.as_bytes()) || !self.start.is_empty();
        is_shown && self.pattern.matches_with(name, MATCHING)
    }
}

fn parse(prefix: &str) -> Result<Path, RemoteError> {
    let damaged = || RemoteError::new(format!("this is a prefix {UNUSABLE_KEY}"), "check the prefix");
    location_of(prefix).ok_or_else(damaged)
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;
    use object_store::list::{PaginatedListOptions, PaginatedListResult, PaginatedListStore};
    use object_store::memory::InMemory;

    use super::super::url::RemoteScheme;
    use super::*;

    /// A store that names another page forever. Every page has one object and one prefix.
    #[derive(Debug)]
    struct EndlessStore {
        /// The name on the page with this number.
        name: fn(usize) -> String,
        pages: AtomicUsize,
    }

    #[async_trait]
    impl PaginatedListStore for EndlessStore {
        async fn list_paginated(
            &self,
            prefix: Option<&str>,
            _: PaginatedListOptions,
        ) -> object_store::Result<PaginatedListResult> {
            let number = self.pages.fetch_add(1, Ordering::Relaxed);
            let location = Path::from(format!("{}{}", prefix.unwrap_or_default(), (self.name)(number)));
            let common_prefixes = vec![location.clone()];
            let meta = ObjectMeta { location, last_modified: Default::default(), size: 0, e_tag: None, version: None };
            let result = ListResult { common_prefixes, objects: vec![meta], extensions: Default::default() };
            Ok(PaginatedListResult { result, page_token: Some(number.to_string()) })
        }
    }

    /// The error of a listing of at most 50 objects and 200 pages that follow the first one, and the number of its pages.
    fn error_of_endless(key: &str, name: fn(usize) -> String) -> (String, usize) {
        let limits = ListingLimits { objects: 50, pages: 200 };
        let pages = Arc::new(EndlessStore { name, pages: AtomicUsize::new(0) });
        let (store, scheme) = (Arc::new(InMemory::new()), RemoteScheme::S3);
        let store = RemoteStore { store, pages: Some(pages.clone()), scheme, is_anonymous: true };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let error = runtime.block_on(find(&store, key, limits)).err().unwrap();
        (error.to_string(), pages.pages.load(Ordering::Relaxed))
    }

    #[test]
    fn listings_without_an_end_are_refused() {
        let is_refused = |key: &str, name: fn(usize) -> String, pages: usize| {
            let expected = if pages == 51 { "more than 50 objects have" } else { "goes on for more than 200 pages" };
            let (error, count) = error_of_endless(key, name);
            assert!(error.contains(expected) && count == pages, "{key}: {count} {error}");
        };
        for key in ["", "p/", "*", "[!.]*", "*/x", "p/*/*"] {
            is_refused(key, |number| format!("a{number}"), 51);
            is_refused(key, |number| format!("_{number}"), 201);
        }
        is_refused("p/", |number| format!("{number}/_manifest.json"), 51);
        is_refused("p/*.gz", |number| format!("{number}.txt"), 201);
        // The same prefix on every page is one prefix.
        is_refused("*/*", |_| "a".to_string(), 201);
    }
}
