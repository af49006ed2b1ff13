//! Recipes: named, versioned lists of lossy rules that make the keys of the crawl world. In: bytes of a URL, however
//! broken. Out: a key's text, and which rules fired. They stand beside the ladder of RFC 3987 and never inside it.
//!
//! ```text
//! URL --read--> Draft --rules, in the catalogue's order--> Draft --write--> key
//! ```
//!
//! A recipe is a way to read, a set of rules and a way to write. What a name and version stand for never changes.

mod commons;
pub mod draft;
mod escapes;
mod heritrix;
mod host;
mod path;
mod rules;
mod session;
mod urlcanon;
mod w3lib;

use std::fmt;

pub use draft::Draft;
pub use rules::{RULES, Rule, RuleSet};

use super::surt::{self, Reading};
use crate::iri::Fault;

/// How a recipe takes a URL apart and puts its key together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Style {
    /// By RFC 3986's generic syntax, written as a URL.
    Generic,
    /// As crawler-commons, written as a URL.
    Commons,
    /// As Nutch, written as a URL.
    Nutch,
    /// As w3lib, written as that does.
    W3lib,
    /// As urlcanon, written as a URL.
    Urlcanon,
    /// As webarchive-commons, written as a SURT.
    SurtWayback,
    /// As Python surt, written as a SURT.
    SurtIa,
}

/// A list of rules with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipe {
    name: String,
    version: u32,
    style: Style,
    rules: RuleSet,
}

/// A recipe of ours, before it is looked up.
struct Named {
    name: &'static str,
    version: u32,
    style: Style,
    rules: &'static [&'static str],
}

/// The named recipes.
const NAMED: [Named; 8] = [
    Named { name: "plain", version: 1, style: Style::Generic, rules: &[] },
    Named {
        name: "crawler-commons",
        version: 1,
        style: Style::Commons,
        rules: &[
            "fragment",
            "userinfo",
            "scheme-case",
            "host-ascii",
            "host-case",
            "host-final-dot",
            "port",
            "path-fill",
            "escapes-tidy",
            "path-dots",
            "query-names",
            "query-empty",
        ],
    },
    Named {
        name: "nutch",
        version: 1,
        style: Style::Nutch,
        rules: &[
            "fragment",
            "userinfo",
            "scheme-case",
            "host-ascii",
            "host-case",
            "port",
            "path-fill",
            "escapes-tidy",
            "path-dots",
        ],
    },
    Named {
        name: "w3lib",
        version: 1,
        style: Style::W3lib,
        rules: &[
            "fragment",
            "userinfo-recode",
            "host-ascii-or-raw",
            "host-ipv6",
            "host-case",
            "path-fill-any",
            "path-decode",
            "path-dots-rfc",
            "query-form",
        ],
    },
    Named {
        name: "urlcanon-aggressive",
        version: 1,
        style: Style::Urlcanon,
        rules: &[
            "fragment",
            "userinfo",
            "host-ascii-special",
            "host-dots",
            "host-ipv4-browser",
            "host-ipv6",
            "www-once",
            "port-special",
            "scheme-http",
            "path-decode-all",
            "path-backslashes",
            "path-root",
            "path-dots-rfc",
            "path-slashes",
            "path-case",
            "path-session-any",
            "path-slash",
            "query-decode-all",
            "query-case",
            "query-session-any",
            "query-ampersands",
            "query-sort-bytes",
            "query-empty",
        ],
    },
    Named {
        name: "heritrix",
        version: 1,
        style: Style::Generic,
        rules: &["all-case", "userinfo-web", "www-pages", "session-last", "query-fix"],
    },
    Named {
        name: "surt-wayback",
        version: 1,
        style: Style::SurtWayback,
        rules: &[
            "fragment",
            "userinfo",
            "scheme-case",
            "host-ascii",
            "host-dots",
            "host-ipv4",
            "host-case",
            "www",
            "port",
            "path-escapes",
            "path-segments",
            "query-escapes",
            "path-case",
            "path-session",
            "path-slash",
            "query-session",
            "query-case",
            "query-sort",
            "query-empty",
        ],
    },
    Named {
        name: "surt-ia",
        version: 1,
        style: Style::SurtIa,
        rules: &[
            "fragment",
            "userinfo",
            "host-ascii-ignoring",
            "host-dot-pairs",
            "host-ipv4-short",
            "host-case",
            "host-empty",
            "www-once",
            "port",
            "path-escapes",
            "path-segments",
            "query-escapes",
            "del-escapes",
            "path-case",
            "path-session",
            "path-slash",
            "query-session",
            "query-case",
            "query-sort",
            "query-empty",
        ],
    },
];

/// Why a text names no recipe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecipeError {
    /// No recipe is called so.
    UnknownRecipe(String),
    /// No rule is called so.
    UnknownRule(String),
    /// A change of a rule begins with `+` or `-`.
    NoSign(String),
}

impl fmt::Display for RecipeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecipeError::UnknownRecipe(name) => {
                let names: Vec<_> = Recipe::names().collect();
                write!(f, "no recipe is called {name:?} / take one of {}", names.join(", "))
            }
            RecipeError::UnknownRule(name) => {
                let names: Vec<_> = RULES.iter().map(|rule| rule.name).collect();
                write!(f, "no rule is called {name:?} / take one of {}", names.join(", "))
            }
            RecipeError::NoSign(item) => {
                write!(f, "{item:?} stands where +RULE or -RULE is expected / put a sign before it")
            }
        }
    }
}

impl std::error::Error for RecipeError {}

impl Recipe {
    /// The names that [`Recipe::parse`] knows.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMED.iter().map(|named| named.name)
    }

    /// A recipe by name, with changes: `surt-wayback`, `surt-ia,-www-once`, `+www,-fragment`. Where no name stands
    /// first, the changes are to `plain`, which has no rules. Rules apply in the catalogue's order, however written.
    ///
    /// ```
    /// use irikey::key::{Draft, Recipe};
    /// let recipe = Recipe::parse("+www,+fragment").unwrap();
    /// let (mut draft, mut key) = (Draft::default(), Vec::new());
    /// let fired = recipe.write_key(b"http://www.example.org/a#b", &mut draft, &mut key).unwrap();
    /// assert_eq!(key, b"http://example.org/a");
    /// assert_eq!(fired.names().collect::<Vec<_>>(), ["fragment", "www"]);
    /// ```
    ///
    /// # Errors
    /// A name is unknown, or a change has no sign.
    pub fn parse(text: &str) -> Result<Recipe, RecipeError> {
        let mut items = text.split(',').map(str::trim);
        let first = items.clone().next().filter(|first| !first.starts_with(['+', '-']));
        let mut recipe = match first {
            Some(name) => {
                items.next();
                Recipe::named(name).ok_or_else(|| RecipeError::UnknownRecipe(name.into()))?
            }
            None => Recipe::named("plain").ok_or_else(|| RecipeError::UnknownRecipe("plain".into()))?,
        };
        for item in items {
            recipe.change(item)?;
        }
        Ok(recipe)
    }

    fn named(name: &str) -> Option<Recipe> {
        let named = NAMED.iter().find(|named| named.name == name)?;
        let rules = RuleSet::of(named.rules).ok()?;
        Some(Recipe { name: named.name.into(), version: named.version, style: named.style, rules })
    }

    fn change(&mut self, item: &str) -> Result<(), RecipeError> {
        let (is_added, name) = match item.split_at_checked(1) {
            Some(("+", name)) => (true, name),
            Some(("-", name)) => (false, name),
            _ => return Err(RecipeError::NoSign(item.into())),
        };
        let index = rules::find(name).ok_or_else(|| RecipeError::UnknownRule(name.into()))?;
        let rules = if is_added { self.rules.with(index) } else { self.rules.without(index) };
        if rules != self.rules {
            self.rules = rules;
            self.name = format!("{},{item}", self.name);
        }
        Ok(())
    }

    /// The name, changes included; parses to this recipe again.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Raised if a key that the name makes would ever change.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The rules.
    pub fn rules(&self) -> RuleSet {
        self.rules
    }

    /// Appends the key of `url` to `out`; gives the rules that changed something. `draft` is scratch.
    ///
    /// # Errors
    /// The program that the recipe follows gives no key for this URL; nothing was appended.
    pub fn write_key(&self, url: &[u8], draft: &mut Draft, out: &mut Vec<u8>) -> Result<RuleSet, Fault> {
        draft.clear();
        let reading = match self.style {
            Style::Generic => {
                draft.read_generic(url);
                Reading::Parts
            }
            Style::Commons => {
                commons::read(url, draft)?;
                Reading::Parts
            }
            Style::Nutch => {
                commons::read_absolute(url, draft)?;
                Reading::Parts
            }
            Style::W3lib => {
                w3lib::read(url, draft)?;
                Reading::Parts
            }
            Style::Urlcanon => {
                urlcanon::read(url, draft);
                Reading::Parts
            }
            Style::SurtWayback => surt::read_wayback(url, draft, out)?,
            Style::SurtIa => surt::read_ia(url, draft, out)?,
        };
        if reading == Reading::Key {
            return Ok(RuleSet::NONE);
        }
        let mut fired = RuleSet::NONE;
        for index in self.rules.iter() {
            if (RULES[index].apply)(draft) {
                fired = fired.with(index);
            }
        }
        match self.style {
            Style::Generic | Style::Nutch | Style::Urlcanon => draft.write_url(out),
            Style::W3lib => w3lib::write(draft, out),
            Style::Commons => {
                commons::check(draft)?;
                draft.write_url(out);
            }
            Style::SurtWayback => draft.write_surt(out),
            Style::SurtIa => surt::write_ia(draft, out),
        }
        Ok(fired)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(recipe: &str, url: &str) -> String {
        let mut out = Vec::new();
        let recipe = Recipe::parse(recipe).unwrap();
        recipe.write_key(url.as_bytes(), &mut Draft::default(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_name_is_a_recipe() {
        for name in Recipe::names() {
            assert_eq!(Recipe::parse(name).unwrap().name(), name);
        }
    }

    #[test]
    fn changes_are_part_of_the_name() {
        let recipe = Recipe::parse("surt-ia, -www-once,+www,+www").unwrap();
        assert_eq!(recipe.name(), "surt-ia,-www-once,+www");
        assert_eq!(Recipe::parse(recipe.name()).unwrap(), recipe);
        assert_eq!(key("surt-ia,-www-once,+www", "http://www.www.example.org"), "org,example)/");
        assert_eq!(key("surt-ia", "http://www.www.example.org"), "org,example,www)/");
    }

    #[test]
    fn no_rules_change_nothing() {
        for url in ["http://u@h:80/a/../b?q#f", "urn:a:b", "//h", "a/b", "", "?", "http://h?#", "x://:/"] {
            assert_eq!(key("plain", url), url);
        }
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(Recipe::parse("nope"), Err(RecipeError::UnknownRecipe("nope".into())));
        assert_eq!(Recipe::parse("+nope"), Err(RecipeError::UnknownRule("nope".into())));
        assert_eq!(Recipe::parse("plain,www"), Err(RecipeError::NoSign("www".into())));
        assert_eq!(Recipe::parse(""), Err(RecipeError::UnknownRecipe(String::new())));
    }

    #[test]
    fn what_fired_is_told() {
        let recipe = Recipe::parse("surt-wayback").unwrap();
        let (mut draft, mut out) = (Draft::default(), Vec::new());
        let fired = recipe.write_key(b"http://example.org/a", &mut draft, &mut out).unwrap();
        assert!(fired.is_empty());
        let fired = recipe.write_key(b"http://www.example.org:80/A/?b&a", &mut draft, &mut out).unwrap();
        let names: Vec<_> = fired.names().collect();
        assert_eq!(names, ["www", "port", "path-case", "path-slash", "query-sort"]);
    }
}
