//! The markups that `--format` names.

use crate::cli::args::Choices;
use crate::extract::Markup;

/// `None`: recognize the markup by name and content. This is an alias, because clap takes a field that is declared as `Option`
/// for a flag without a default.
pub(super) type MarkupChoice = Option<Markup>;

pub(super) const MARKUPS: Choices<MarkupChoice> = Choices(&[
    ("auto", None, "Recognize by the name of the file, then by its first bytes"),
    ("html", Some(Markup::Html), "HTML, parsed as in the HTML Standard"),
    ("xml", Some(Markup::Xml), "XML, including XHTML, SVG, feeds and sitemaps"),
    ("robots", Some(Markup::Robots), "robots.txt, whose Sitemap lines are references"),
    ("json-feed", Some(Markup::JsonFeed), "JSON Feed 1.0 and 1.1"),
    ("urls", Some(Markup::Urls), "One reference per line, such as a sitemap in text"),
]);

/// The name of a markup in `--format`.
pub(super) fn name_of_markup(markup: Markup) -> &'static str {
    MARKUPS.0.iter().find(|(_, choice, _)| *choice == Some(markup)).map_or("unknown", |(name, ..)| name)
}
