//! Reads listings page by page, and limits them: [`ListingPages`], [`ListingCounts`].
//!
//! `ObjectStore::list_with_delimiter` returns the names of all pages together, and a server may name another page forever.

use object_store::ListResult;
use object_store::list::PaginatedListOptions;
use object_store::path::Path;

use super::error::RemoteError;
use super::repetition::FetchError;
use super::store::RemoteStore;

/// Limits of the listings that one name requires.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListingLimits {
    /// Objects, or prefixes in the place of one part of a pattern.
    pub(super) objects: usize,
    /// Pages that follow another one, whatever names they have.
    pub(super) pages: usize,
}

/// What the listings have that one name requires.
#[derive(Debug)]
pub(super) struct ListingCounts {
    limits: ListingLimits,
    /// Pages that were read.
    pub(super) pages: usize,
    /// Requests of pages that follow another one.
    following: usize,
}

impl ListingCounts {
    pub(super) fn new(limits: ListingLimits) -> ListingCounts {
        ListingCounts { limits, pages: 0, following: 0 }
    }

    /// Counts a page that follows another one.
    fn follow(&mut self) -> Result<(), RemoteError> {
        self.following += 1;
        let limit = self.limits.pages;
        match self.following > limit {
            true => Err(too_long(format!("the listing goes on for more than {limit} pages"))),
            false => Ok(()),
        }
    }

    /// Refuses more than the maximum number of objects.
    pub(super) fn check_objects(&self, count: usize) -> Result<(), RemoteError> {
        let limit = self.limits.objects;
        match count > limit {
            true => Err(too_long(format!("more than {limit} objects have such a name"))),
            false => Ok(()),
        }
    }
}

fn too_long(found: String) -> RemoteError {
    RemoteError::new(found, "use a longer prefix")
}

/// The error of a server without listings.
pub(super) fn no_listings() -> RemoteError {
    RemoteError::new("HTTP servers have no listings", "name a prefix in a store, or a local directory")
}

/// The pages of a listing.
pub(super) struct ListingPages<'a> {
    store: &'a RemoteStore,
    prefix: Option<String>,
    /// The request of the next page; `None` after the last one.
    next: Option<PaginatedListOptions>,
}

impl<'a> ListingPages<'a> {
    /// The pages with all objects below `prefix`.
    pub(super) fn below(store: &'a RemoteStore, prefix: &Path) -> ListingPages<'a> {
        let prefix = Some(prefix).filter(|prefix| !prefix.as_ref().is_empty()).map(|prefix| format!("{prefix}/"));
        ListingPages { store, prefix, next: Some(PaginatedListOptions::default()) }
    }

    /// The pages with the objects directly below `prefix`, and with the prefixes of the others up to the next slash.
    pub(super) fn directly_below(store: &'a RemoteStore, prefix: &Path) -> ListingPages<'a> {
        let next = PaginatedListOptions { delimiter: Some("/".into()), ..PaginatedListOptions::default() };
        ListingPages { next: Some(next), ..ListingPages::below(store, prefix) }
    }

    /// The pages of [`ListingPages::directly_below`] with only the names that begin with `start`.
    pub(super) fn beginning_with(store: &'a RemoteStore, prefix: &Path, start: &str) -> ListingPages<'a> {
        let pages = ListingPages::directly_below(store, prefix);
        ListingPages { prefix: Some(pages.prefix.unwrap_or_default() + start), ..pages }
    }

    /// Returns whether the last page names a page that follows it.
    pub(super) fn has_more(&self) -> bool {
        self.next.is_some()
    }

    /// Requests the next page, and counts it in `counts`. Returns `None` after the last one.
    ///
    /// # Errors
    /// The request fails, or there are too many pages.
    pub(super) async fn next(&mut self, counts: &mut ListingCounts) -> Result<Option<ListResult>, FetchError> {
        let Some(options) = self.next.take() else { return Ok(None) };
        if options.page_token.is_some() {
            counts.follow()?;
        }
        let pages = self.store.pages.as_ref().ok_or_else(no_listings)?;
        let page = pages.list_paginated(self.prefix.as_deref(), options.clone()).await;
        let page = page.map_err(|error| FetchError::of(&error, self.store))?;
        counts.pages += 1;
        let token = page.page_token.filter(|token| !token.is_empty());
        self.next = token.map(|token| PaginatedListOptions { page_token: Some(token), ..options });
        Ok(Some(page.result))
    }
}
