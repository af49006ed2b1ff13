//! Applies rules to URLs whose delimiters are known: [`DelimitedUrl`]. Rules that are about queries only, or about paths only,
//! need not split the URLs.

use super::super::path_text::PathText;
use super::super::query_rules::{QueryForm, QueryText};
use super::super::url_parts::{RestMasks, UrlOrigin, UrlParts};
use super::{ContentRuleSet, Repetition, RuleBuffers};
use crate::kernel::{BufferedText, MAX_MASKED_LEN, append_range};

/// Which parts of URLs rules are about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RuleSubject {
    /// Queries only.
    Query,
    /// Paths only.
    Path,
    /// Several parts, other parts, or none.
    #[default]
    Other,
}

/// A URL, and the delimiters in what follows its origin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DelimitedUrl<'a> {
    pub(crate) text: BufferedText<'a>,
    /// The number of bytes of scheme, `://` and authority.
    pub(crate) path_at: usize,
    pub(crate) masks: &'a RestMasks,
}

impl<'a> DelimitedUrl<'a> {
    /// Returns whether all delimiters are in the masks.
    #[inline(always)]
    pub(crate) fn is_masked(&self) -> bool {
        self.text.text().len() - self.path_at <= MAX_MASKED_LEN
    }

    /// Splits the URL into its parts.
    pub(crate) fn split(&self) -> UrlParts<'a> {
        let origin = UrlOrigin::of_text(&self.text.text()[..self.path_at]);
        origin.split_with(self.text, Some(self.masks))
    }
}

impl ContentRuleSet {
    /// Returns which parts of URLs the rules are about.
    pub(crate) fn subject(&self) -> RuleSubject {
        let has_others =
            self.scheme.is_used() || self.fragment.is_used() || self.same_as.iter().any(|of| !of.is_empty());
        match (self.query.is_used(), self.path.is_used()) {
            _ if has_others => RuleSubject::Other,
            (true, false) => RuleSubject::Query,
            (false, true) => RuleSubject::Path,
            _ => RuleSubject::Other,
        }
    }

    /// Appends what [`Self::write`] writes for a URL, if rules change it. They must be about queries only, and the masks must
    /// have all delimiters. Returns whether they change it; `None` if the rules are to be applied to the result again.
    #[inline(always)]
    pub(crate) fn append_with_query(
        &self,
        url: DelimitedUrl<'_>,
        buffers: &mut RuleBuffers,
        out: &mut Vec<u8>,
    ) -> Option<bool> {
        let DelimitedUrl { text, path_at, masks } = url;
        let (text, len) = (text.buffer(), text.text().len());
        let (path_len, fragment_at) = masks.ends_of_parts();
        let (at, end) = (path_at + path_len + 1, len.min(path_at + fragment_at));
        if at > end {
            return Some(false);
        }
        let separators = masks.separators(path_len + 1, end - at);
        let query = QueryText { text, at, query: &text[at..end], separators };
        // No rule about queries is in the list.
        let mut repetition = Repetition { rules: &[], is_needed: false };
        let form = self.query.find_parts((query, &text[path_at..at - 1]), &mut buffers.query, &mut repetition);
        if form == QueryForm::Whole {
            return Some(false);
        }
        if form.has_new_parameters(query.query, &buffers.query) {
            return None;
        }
        append_range(out, text, 0, at - 1);
        query.write(form, &buffers.query, out);
        if end < len {
            append_range(out, text, end, len - end);
        }
        Some(true)
    }

    /// Does what [`Self::append_with_query`] does for rules about paths only. `None` if the rules are to be applied to the
    /// result again.
    #[inline(always)]
    pub(crate) fn append_with_path(
        &self,
        url: DelimitedUrl<'_>,
        buffers: &mut RuleBuffers,
        out: &mut Vec<u8>,
    ) -> Option<bool> {
        let DelimitedUrl { text, path_at, masks } = url;
        let (text, uri) = (text.buffer(), text.text());
        let (query_at, fragment_at) = masks.ends_of_parts();
        let end = uri.len().min(path_at + query_at.min(fragment_at));
        let delimiters = masks.delimiters_of_path(end - path_at);
        let path = PathText { text, at: path_at, path: &text[path_at..end], delimiters };
        let changes = self.path.changes(path);
        if !changes.any() {
            return Some(false);
        }
        let from = out.len();
        append_range(out, text, 0, path_at);
        let mut repetition = self.repetition();
        self.path.write((path, changes), &mut buffers.path, &mut repetition, out);
        if self.is_repeated(&repetition, &out[from + path_at..]) {
            return None;
        }
        append_range(out, text, end, uri.len() - end);
        Some(out[from..] != *uri)
    }
}
