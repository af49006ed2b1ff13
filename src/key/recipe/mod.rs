//! Recipes: named, versioned lists of lossy rules that produce the keys of crawl software (SURT and others).
//!
//! A recipe maps the bytes of any URL, however malformed, to the text of a key. Recipes are independent of the comparison
//! ladder of RFC 3987, and most of their rules violate it.
//!
//! ```text
//! URL --read--> Draft --the recipe's rules, in the order of RULES--> Draft --write--> key
//! ```
//!
//! - A [`Draft`] holds the components of the URL, which rules change one by one.
//! - A [`Rule`] is one step with a name. [`RULES`] in `rules.rs` lists all rules in the order in which they apply.
//! - A [`RecipeDefinition`] is a function that reads a URL, the names of rules, and a function that writes the key.
//!   [`RECIPES`] lists all definitions.
//!
//! To add a recipe, define it in a file of its own and add it to [`RECIPES`]. Rules that do not exist yet are functions in
//! the same file with one entry each in [`RULES`]. The command line, the schema and the reports follow from these two
//! tables; the column `key_NAME` is one line in the list of columns of the module `batch`.
//!
//! A name and a version always mean the same keys: a recipe whose keys change gets a new version.

mod crawler_commons;
mod definition;
mod draft;
mod escapes;
mod heritrix;
mod host;
mod path;
mod rule_set;
mod rules;
mod session;
mod surt;
mod surt_parts;
mod surt_query;
mod surt_shortcut;
mod urlcanon;
mod w3lib;

pub use draft::Draft;
use rule_set::RuleCounter;
pub use rule_set::RuleSet;
pub use rules::{RULES, Rule};

use crate::iri::Fault;
use crate::kernel::{BufferedText, SimdTask, UrlMasks, mask_urls, run_with_simd};
use definition::RecipeDefinition;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use surt_parts::MaskedUrl;
use surt_shortcut::SurtShortcut;

/// A recipe without rules that splits a URL by the generic syntax of RFC 3986 and writes it as it was.
const PLAIN: RecipeDefinition = RecipeDefinition {
    name: "plain",
    version: 2,
    read: draft::read_url,
    rules: "",
    write: draft::write_url,
    shortcut: None,
};

/// All named recipes.
static RECIPES: [RecipeDefinition; 8] = [
    PLAIN,
    crawler_commons::CRAWLER_COMMONS,
    crawler_commons::NUTCH,
    w3lib::W3LIB,
    urlcanon::URLCANON_AGGRESSIVE,
    heritrix::HERITRIX,
    surt::SURT_WAYBACK,
    surt::SURT_IA,
];

/// A recipe: a named one, or one with added and removed rules.
///
/// Its name is that of the definition, followed by the changes in the order of [`RULES`]. So recipes with equal rules have equal
/// names.
#[derive(Clone, Debug)]
pub struct Recipe {
    name: String,
    definition: &'static RecipeDefinition,
    rules: RuleSet,
    /// The shortcut of the definition, if the rules are those of the definition.
    shortcut: Option<&'static SurtShortcut>,
}

/// Recipes are equal if their names are: the name includes all changes.
impl PartialEq for Recipe {
    fn eq(&self, other: &Recipe) -> bool {
        self.name == other.name
    }
}

impl Eq for Recipe {}

impl Hash for Recipe {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

/// Writes the name, from which [`Recipe::parse`] makes an equal recipe.
impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// As [`Recipe::parse`].
impl FromStr for Recipe {
    type Err = RecipeError;

    fn from_str(text: &str) -> Result<Recipe, RecipeError> {
        Recipe::parse(text)
    }
}

/// An error of [`Recipe::parse`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecipeError {
    /// No recipe has this name.
    #[error("unknown recipe {0:?}; expected one of {names}", names = join(Recipe::names()))]
    UnknownRecipe(String),
    /// No rule has this name.
    #[error("unknown rule {0:?}; expected one of {names}", names = join(RULES.iter().map(|rule| rule.name)))]
    UnknownRule(String),
    /// An item after the first does not begin with `+` or `-`.
    #[error("{0:?} has no sign; expected +RULE or -RULE")]
    NoSign(String),
    /// A rule is added to a recipe that has it.
    #[error("the recipe {recipe} already has the rule {rule:?}; {}; leave out +{rule}", describe(*.rules))]
    RulePresent {
        /// The name of the recipe, with the changes before this one.
        recipe: String,
        /// The name of the rule.
        rule: &'static str,
        /// The rules of the recipe.
        rules: RuleSet,
    },
    /// A rule is removed from a recipe that does not have it.
    #[error("the recipe {recipe} does not have the rule {rule:?}; {}; leave out -{rule}", describe(*.rules))]
    RuleAbsent {
        /// The name of the recipe, with the changes before this one.
        recipe: String,
        /// The name of the rule.
        rule: &'static str,
        /// The rules of the recipe.
        rules: RuleSet,
    },
}

fn join(names: impl Iterator<Item = &'static str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

/// The rules of a recipe, for an error message.
fn describe(rules: RuleSet) -> String {
    if rules == RuleSet::NONE { "it has no rules".into() } else { format!("its rules are {}", join(rules.names())) }
}

impl Recipe {
    /// Returns the names of all recipes.
    pub fn names() -> impl Iterator<Item = &'static str> {
        RECIPES.iter().map(|definition| definition.name)
    }

    /// Parses the name of a recipe and changes to its rules: `surt-wayback`, `surt-ia,-www-once`, `+www,+fragment`.
    /// Without a name the changes apply to `plain`, which has no rules. Rules apply in the order of [`RULES`], whatever
    /// their order in `text`, and changes that cancel each other are as if neither was made.
    ///
    /// ```
    /// use irikey::key::{Draft, Recipe};
    /// let recipe = Recipe::parse("+www,+fragment").unwrap();
    /// let (mut draft, mut key) = (Draft::default(), Vec::new());
    /// let applied = recipe.write_key(b"http://www.example.org/a#b", &mut draft, &mut key).unwrap();
    /// assert_eq!(key, b"http://example.org/a");
    /// assert_eq!(applied.names().collect::<Vec<_>>(), ["fragment", "www"]);
    /// assert_eq!(recipe.name(), "plain,+fragment,+www");
    /// ```
    ///
    /// # Errors
    /// A name is unknown, a change has no sign, or a change has no effect: it adds a rule that the recipe has, or removes one
    /// that it does not have.
    pub fn parse(text: &str) -> Result<Recipe, RecipeError> {
        let mut items = text.split(',').map(str::trim).peekable();
        let name = items.next_if(|first| !first.starts_with(['+', '-'])).unwrap_or(PLAIN.name);
        let mut recipe = Recipe::named(name).ok_or_else(|| RecipeError::UnknownRecipe(name.into()))?;
        for item in items {
            recipe.change(item)?;
        }
        Ok(recipe)
    }

    fn named(name: &str) -> Option<Recipe> {
        let definition = RECIPES.iter().find(|definition| definition.name == name)?;
        Some(Recipe::of(definition, RuleSet::of(definition.rules)?))
    }

    /// Returns the recipe of a definition with these rules instead of its own.
    fn of(definition: &'static RecipeDefinition, rules: RuleSet) -> Recipe {
        let own = RuleSet::of(definition.rules).unwrap_or_default();
        let mut name = definition.name.to_string();
        for index in rules.symmetric_difference(own).iter() {
            let sign = if own.contains(index) { '-' } else { '+' };
            name.extend([",", &sign.to_string(), RULES[index].name]);
        }
        Recipe { name, definition, rules, shortcut: definition.shortcut.filter(|_| rules == own) }
    }

    fn change(&mut self, item: &str) -> Result<(), RecipeError> {
        let (is_added, name) = match item.split_at_checked(1) {
            Some(("+", name)) => (true, name),
            Some(("-", name)) => (false, name),
            _ => return Err(RecipeError::NoSign(item.into())),
        };
        let index = rules::find_rule(name).ok_or_else(|| RecipeError::UnknownRule(name.into()))?;
        let rules = if is_added { self.rules.with(index) } else { self.rules.without(index) };
        if rules == self.rules {
            let (recipe, rule) = (self.name.clone(), RULES[index].name);
            return Err(match is_added {
                true => RecipeError::RulePresent { recipe, rule, rules },
                false => RecipeError::RuleAbsent { recipe, rule, rules },
            });
        }
        *self = Recipe::of(self.definition, rules);
        Ok(())
    }

    /// Returns the name with all changes in the order of [`RULES`], from which [`Recipe::parse`] makes an equal recipe.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the version, which is raised if a key of the recipe ever changes.
    pub fn version(&self) -> u32 {
        self.definition.version
    }

    /// Returns the rules.
    pub(crate) fn rules(&self) -> RuleSet {
        self.rules
    }

    /// Appends the key of `url` to `out` and returns the rules that changed something. `draft` is a reusable buffer.
    ///
    /// # Errors
    /// The software that the recipe reproduces makes no key for this URL. Nothing is appended. The `at` of the fault is
    /// not a position in the URL: recipes rewrite the URL before they find the reason.
    pub fn write_key(&self, url: &[u8], draft: &mut Draft, out: &mut Vec<u8>) -> Result<RuleSet, Fault> {
        let mut masks = [UrlMasks::default()];
        if self.shortcut.is_some() {
            mask_urls(&[url.into()], &mut masks);
        }
        self.write_masked(MaskedUrl::new(url.into(), &masks[0]), draft, out)
    }

    /// Appends the key of a URL with its masks.
    // The shortcut uses no closures, because they would not be compiled for the instruction set of the caller.
    #[inline(always)]
    fn write_masked(&self, url: MaskedUrl<'_>, draft: &mut Draft, out: &mut Vec<u8>) -> Result<RuleSet, Fault> {
        let written = match self.shortcut {
            Some(shortcut) => shortcut.write(url, draft, out),
            None => None,
        };
        match written {
            Some(applied) => Ok(applied),
            None => self.write_by(self.rules, url.text, draft, out),
        }
    }

    /// Appends the key of each of `urls` to `keys`, as [`Recipe::write_key`] does, and an empty key for `None`.
    pub(crate) fn write_keys<'a>(
        &self,
        urls: impl Iterator<Item = Option<BufferedText<'a>>>,
        draft: &mut Draft,
        keys: &mut RecipeKeys<'_>,
    ) {
        run_with_simd(WriteKeys { recipe: self, urls, draft, keys });
    }

    /// As [`Recipe::write_key`], but without the rule at `index` of [`RULES`]. If that rule did not change the URL, the key is
    /// that of the whole recipe.
    pub(crate) fn write_key_without(
        &self,
        index: usize,
        url: &[u8],
        draft: &mut Draft,
        out: &mut Vec<u8>,
    ) -> Result<RuleSet, Fault> {
        self.write_by(self.rules.without(index), url, draft, out)
    }

    /// Applies `rules` in their order, without a shortcut. With all rules of the recipe, this is the definition of
    /// [`Recipe::write_key`].
    fn write_by(&self, rules: RuleSet, url: &[u8], draft: &mut Draft, out: &mut Vec<u8>) -> Result<RuleSet, Fault> {
        draft.clear();
        (self.definition.read)(url, draft)?;
        if let Some(key) = draft.literal_key.get() {
            out.extend_from_slice(key);
            return Ok(RuleSet::NONE);
        }
        let mut applied = RuleSet::NONE;
        for index in rules.iter() {
            if (RULES[index].apply)(draft) {
                applied = applied.with(index);
            }
        }
        (self.definition.write)(draft, out)?;
        Ok(applied)
    }
}

/// The keys of many URLs.
#[derive(Debug)]
pub(crate) struct RecipeKeys<'k> {
    /// The bytes of all keys.
    pub(crate) texts: &'k mut Vec<u8>,
    /// The end of each key in `texts`.
    pub(crate) ends: &'k mut Vec<i32>,
    /// The number of URLs with a key.
    pub(crate) count: &'k mut u64,
    /// How often each rule applied, indexed like [`RULES`].
    pub(crate) applied: &'k mut [u64],
}

/// [`Recipe::write_keys`], compiled for several instruction sets.
struct WriteKeys<'t, 'k, I> {
    recipe: &'t Recipe,
    urls: I,
    draft: &'t mut Draft,
    keys: &'t mut RecipeKeys<'k>,
}

/// URLs whose masks are computed at once. The masks stay in the nearest cache.
const BATCH: usize = 32;

impl<'a, I: Iterator<Item = Option<BufferedText<'a>>>> SimdTask for WriteKeys<'_, '_, I> {
    #[inline(always)]
    fn run(self) {
        let WriteKeys { recipe, mut urls, draft, keys } = self;
        let RecipeKeys { texts, ends, count, applied } = keys;
        let mut batch = [BufferedText::EMPTY; BATCH];
        let mut masks = [UrlMasks::default(); BATCH];
        let mut counter = RuleCounter::default();
        loop {
            let (mut len, mut has_url) = (0, 0_u32);
            while len < BATCH
                && let Some(url) = urls.next()
            {
                batch[len] = url.unwrap_or(BufferedText::EMPTY);
                has_url |= u32::from(url.is_some()) << len;
                len += 1;
            }
            if recipe.shortcut.is_some() {
                mask_urls(&batch[..len], &mut masks);
            }
            ends.reserve(len);
            for (i, (url, masks)) in batch[..len].iter().zip(&masks).enumerate() {
                if has_url >> i & 1 != 0
                    && let Ok(set) = recipe.write_masked(MaskedUrl::new(*url, masks), draft, texts)
                {
                    **count += 1;
                    counter.add(set, applied);
                }
                ends.push(texts.len() as i32);
            }
            if len < BATCH {
                return counter.finish(applied);
            }
        }
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
    fn every_recipe_can_be_parsed() {
        for name in Recipe::names() {
            assert_eq!(Recipe::parse(name).unwrap().name(), name);
        }
    }

    #[test]
    fn changes_are_part_of_the_name() {
        let recipe = Recipe::parse("surt-ia, -www-once,+www").unwrap();
        assert_eq!(recipe.name(), "surt-ia,+www,-www-once");
        assert_eq!(Recipe::parse(recipe.name()).unwrap(), recipe);
        assert_eq!(key("surt-ia,-www-once,+www", "http://www.www.example.org"), "org,example)/");
        assert_eq!(key("surt-ia", "http://www.www.example.org"), "org,example,www)/");
    }

    #[test]
    fn recipe_without_rules_changes_nothing() {
        for url in ["http://u@h:80/a/../b?q#f", "urn:a:b", "//h", "a/b", "", "?", "http://h?#", "x://:/"] {
            assert_eq!(key("plain", url), url);
        }
    }

    #[test]
    fn mistakes_are_reported() {
        assert_eq!(Recipe::parse("nope"), Err(RecipeError::UnknownRecipe("nope".into())));
        assert_eq!(Recipe::parse("+nope"), Err(RecipeError::UnknownRule("nope".into())));
        assert_eq!(Recipe::parse("plain,www"), Err(RecipeError::NoSign("www".into())));
        assert_eq!(Recipe::parse(""), Err(RecipeError::UnknownRecipe(String::new())));
        let message = Recipe::parse("nope").unwrap_err().to_string();
        assert!(message.starts_with("unknown recipe \"nope\"; expected one of plain, crawler-commons, "), "{message}");
    }

    #[test]
    fn changes_without_effect_are_refused() {
        let message = |text: &str| Recipe::parse(text).unwrap_err().to_string();
        for (text, start, end) in [
            (
                "surt-wayback,-www-once",
                "the recipe surt-wayback does not have the rule \"www-once\"",
                "leave out -www-once",
            ),
            ("surt-wayback,+www", "the recipe surt-wayback already has the rule \"www\"", "leave out +www"),
            ("surt-ia,+www,+www", "the recipe surt-ia,+www already has the rule \"www\"", "leave out +www"),
        ] {
            let message = message(text);
            assert!(message.starts_with(&format!("{start}; its rules are fragment, ")), "{message}");
            assert!(message.ends_with(end), "{message}");
        }
        assert_eq!(
            message("-fragment"),
            "the recipe plain does not have the rule \"fragment\"; it has no rules; leave out -fragment"
        );
    }

    #[test]
    fn recipes_with_equal_rules_are_equal() {
        let recipe = |text: &str| Recipe::parse(text).unwrap();
        for (text, name) in [
            ("+fragment,+www", "plain,+fragment,+www"),
            ("+www,+fragment", "plain,+fragment,+www"),
            ("+www,-www,+www", "plain,+www"),
            ("surt-ia,-www-once,+www", "surt-ia,+www,-www-once"),
            ("surt-ia,-www-once,+www-once", "surt-ia"),
        ] {
            assert_eq!(recipe(text), recipe(name), "{text}");
            assert_eq!((recipe(text).name(), recipe(text).shortcut.is_some()), (name, name == "surt-ia"), "{text}");
        }
        assert_ne!(recipe("surt-ia,+www"), recipe("surt-ia"));
    }

    /// A rule that did not change a URL makes no difference to its key.
    #[test]
    fn keys_without_a_rule_differ_only_where_it_applied() {
        let urls = [
            "http://www.example.org:80/A/../b/?b&a#f",
            "HTTPS://u:p@WWW.www2.Example.ORG./%7Ea//b;jsessionid=0123456789abcdef0123456789abcdef?B=%2f&a&&c=",
            "http://0x7f.1:8080/index.html?PHPSESSID=0123456789abcdef0123456789abcdef&x=1",
            "ftp://h/a\\b c?q=\u{e9}",
            "http://b\u{fc}cher.example/%C3%A9?",
            "urn:a:b",
            "//h",
            "",
        ];
        for name in Recipe::names() {
            let recipe = Recipe::parse(name).unwrap();
            for url in urls {
                let (mut draft, mut whole) = (Draft::default(), Vec::new());
                let applied = recipe.write_key(url.as_bytes(), &mut draft, &mut whole);
                for rule in recipe.rules().iter() {
                    let (mut key, mut expected) = (Vec::new(), Vec::new());
                    let without = Recipe::parse(&format!("{name},-{}", RULES[rule].name)).unwrap();
                    let written = recipe.write_key_without(rule, url.as_bytes(), &mut draft, &mut key);
                    assert_eq!(written, without.write_key(url.as_bytes(), &mut draft, &mut expected));
                    assert_eq!(key, expected, "{name} {url}");
                    let is_applied = applied.as_ref().is_ok_and(|applied| applied.iter().any(|index| index == rule));
                    assert!(is_applied || applied.is_err() || key == whole, "{name} {url}: {}", RULES[rule].name);
                }
            }
        }
    }

    #[test]
    fn applied_rules_are_returned() {
        let recipe = Recipe::parse("surt-wayback").unwrap();
        let (mut draft, mut out) = (Draft::default(), Vec::new());
        let applied = recipe.write_key(b"http://example.org/a", &mut draft, &mut out).unwrap();
        assert_eq!(applied, RuleSet::NONE);
        let applied = recipe.write_key(b"http://www.example.org:80/A/?b&a", &mut draft, &mut out).unwrap();
        let names: Vec<_> = applied.names().collect();
        assert_eq!(names, ["www", "port", "path-case", "path-slash", "query-sort"]);
    }
}
