//! Elements of feeds and sitemaps whose content is a reference: Sitemaps 0.9 with its extensions for images and videos, RSS
//! 0.9x, 1.0 and 2.0, Atom, OPML.
//!
//! The root of the document decides the vocabulary. Namespaces only distinguish the elements of the vocabulary from those of
//! extensions, because many documents declare a wrong namespace or none.

/// The vocabulary of a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Vocabulary {
    #[default]
    Other,
    Sitemap,
    Rss,
    Atom,
    Opml,
}

/// Elements on which the meaning of their children depends.
const PARENTS: [&str; 10] =
    ["sitemap", "url", "image", "video", "channel", "item", "entry", "author", "contributor", "textinput"];

/// The meaning of an element that identifies an entry. Its content is a reference only if it has a scheme.
pub(super) const IDENTIFIER: &str = "identifier";

/// Vocabulary, parent (empty for any), element, what the reference is for the document.
type ContentRule = (Vocabulary, &'static str, &'static str, &'static str);

/// Elements of the vocabularies.
const CORE: [ContentRule; 16] = [
    (Vocabulary::Sitemap, "sitemap", "loc", "sitemap"),
    (Vocabulary::Sitemap, "", "loc", ""),
    (Vocabulary::Rss, "", "link", ""),
    (Vocabulary::Rss, "", "guid", "permalink"),
    (Vocabulary::Rss, "", "comments", "comments"),
    (Vocabulary::Rss, "", "docs", "docs"),
    (Vocabulary::Rss, "image", "url", "image"),
    (Vocabulary::Atom, "", "id", IDENTIFIER),
    (Vocabulary::Atom, "", "icon", "icon"),
    (Vocabulary::Atom, "", "logo", "logo"),
    (Vocabulary::Atom, "author", "uri", "author"),
    (Vocabulary::Atom, "contributor", "uri", "contributor"),
    (Vocabulary::Atom, "author", "url", "author"),
    (Vocabulary::Atom, "contributor", "url", "contributor"),
    (Vocabulary::Opml, "", "ownerId", "owner"),
    (Vocabulary::Opml, "", "docs", "docs"),
];

/// Elements of extensions, in any namespace but that of the root.
const EXTENSIONS: [ContentRule; 12] = [
    (Vocabulary::Sitemap, "sitemap", "loc", "sitemap"),
    (Vocabulary::Sitemap, "image", "loc", "image"),
    (Vocabulary::Sitemap, "image", "license", "license"),
    (Vocabulary::Sitemap, "video", "thumbnail_loc", "thumbnail"),
    (Vocabulary::Sitemap, "video", "content_loc", "video"),
    (Vocabulary::Sitemap, "video", "player_loc", "player"),
    (Vocabulary::Sitemap, "video", "gallery_loc", "gallery"),
    (Vocabulary::Sitemap, "url", "loc", ""),
    (Vocabulary::Rss, "", "origLink", "original"),
    (Vocabulary::Rss, "", "commentRss", "comments"),
    (Vocabulary::Rss, "", "comment", "comments"),
    (Vocabulary::Rss, "", "new-feed-url", "feed"),
];

impl Vocabulary {
    /// The vocabulary of a document with this root.
    pub(super) fn of_root(name: &str) -> Vocabulary {
        match name {
            "urlset" | "sitemapindex" => Vocabulary::Sitemap,
            "rss" | "RDF" => Vocabulary::Rss,
            "feed" | "entry" => Vocabulary::Atom,
            "opml" => Vocabulary::Opml,
            _ => Vocabulary::Other,
        }
    }

    /// What the content of an element is for the document; `None` if it is not a reference. `is_core`: the element is in the
    /// namespace of the vocabulary.
    pub(super) fn rel_of_content(self, parent: &str, element: &str, is_core: bool) -> Option<&'static str> {
        let rules = if is_core { &CORE[..] } else { &EXTENSIONS[..] };
        let applies = |(vocabulary, outer, name, _): &&ContentRule| {
            *vocabulary == self && *name == element && (outer.is_empty() || *outer == parent)
        };
        rules.iter().find(applies).map(|(.., rel)| *rel)
    }
}

/// The name of an element, if the meaning of its children depends on it; otherwise an empty text.
pub(super) fn parent_name(name: &str) -> &'static str {
    PARENTS.iter().find(|known| **known == name).copied().unwrap_or_default()
}
