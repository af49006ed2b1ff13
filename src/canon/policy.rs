//! The choices of a run. Runs with equal policies and records produce equal rows.

use std::sync::Arc;

use crate::encoding::Charset;
use crate::iri::{Backslashes, CharacterReferences, ParseMode, PreprocessOptions, Profile, Spaces, is_scheme};
use crate::key::psl::SuffixList;
use crate::key::{KeyAlgorithm, Recipe};
use crate::learn::Equivalences;
use crate::record::fields::FieldSet;

pub use crate::iri::Rung;

/// The choices that rows depend on, besides the records themselves.
///
/// ```
/// use irikey::canon::{Policy, Rung};
/// let policy = Policy { rung: Rung::Syntax, ..Policy::default() };
/// assert_eq!(policy.describe().first(), Some(&("profile", "rfc3987".to_string())));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// The specification whose syntax and repairs apply. The rungs are those of RFC 3987, except for `whatwg`: its syntax
    /// and scheme rungs are both the `href`.
    pub profile: &'static Profile,
    /// How text that violates the grammar is treated.
    pub mode: ParseMode,
    /// The rung of the `uri` and `key` columns. With [`Rung::Simple`], the URI is that of the syntax rung.
    pub rung: Rung,
    /// The rungs of further key columns.
    pub more_keys: Vec<Rung>,
    /// The hash function of the keys.
    pub algorithm: KeyAlgorithm,
    /// The base of relative references in records without a base of their own.
    pub base: Option<Vec<u8>>,
    /// Resolve exactly as in RFC 3986 section 5.2, without removing dot segments of the base first.
    pub literal_base: bool,
    /// Remove fragments from the URI and its key (retrieval, RFC 3987 section 5.1).
    pub drop_fragment: bool,
    /// The scheme of references that have none and look like `host/path`, such as `https`.
    pub assume_scheme: Option<String>,
    /// Repairs of a record's text before it is parsed. With [`Spaces::Split`](crate::iri::Spaces::Split), the decoder has already
    /// made a record of each reference in a field.
    pub preprocess: PreprocessOptions,
    /// The charset of records that do not name one. By default it is UTF-8, and bytes that are not UTF-8 are allowed.
    pub charset: Option<Charset>,
    /// The charset of the documents that contained the records, for the queries of http and https, unless the record
    /// names one.
    pub query_charset: Option<Charset>,
    /// Records name charsets, see [`crate::record::Records::charsets`]. Only used for metadata.
    pub has_record_charsets: bool,
    /// Records name charsets of documents, see [`crate::record::Records::query_charsets`]. Only used for metadata.
    pub has_record_query_charsets: bool,
    /// Keep the record's text of rows whose URI differs from it.
    pub keep_input: bool,
    /// Set the spoofing flags of each row, see [`crate::iri::find_spoofing`].
    pub spoofing_flags: bool,
    /// The maximum length of a URL. A longer one is a fault.
    pub max_url_len: MaxUrlLen,
    /// The fields that are carried from records to rows.
    pub carry: FieldSet,
    /// The recipes whose keys are made.
    pub recipes: Vec<RecipeColumn>,
    /// Also make the keys of these recipes without one of their rules, for each rule that changed a row.
    pub rule_variants: bool,
    /// The Public Suffix List of the `url_host_*` columns.
    pub suffixes: SuffixList,
    /// Observed equivalences, which fill [`super::Rows::protocol`]. They require [`Rung::Scheme`] and their hash function.
    pub equivalences: Option<Arc<Equivalences>>,
}

/// The maximum length of a URL in a record, in bytes; by default 1 MiB. A longer one has the fault
/// [`TooLong`](crate::iri::FaultKind::TooLong), and only its key is made.
///
/// The limit applies to the bytes of the record, before they are decoded, repaired and resolved: the URI can be longer, for
/// example by the length of a base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxUrlLen(pub usize);

impl MaxUrlLen {
    /// The largest limit: 64 MiB. The URI can be 9 times as long as the record, because a byte of a legacy charset can be three
    /// bytes of UTF-8, which are written as three escapes. It must fit into the texts of a row group.
    pub const MAX: MaxUrlLen = MaxUrlLen(64 << 20);
}

impl Default for MaxUrlLen {
    fn default() -> MaxUrlLen {
        MaxUrlLen(1 << 20)
    }
}

/// A recipe and the column that its keys are written to.
///
/// ```
/// use irikey::canon::{Policy, RecipeColumn, UrlCanonicalizer};
/// use irikey::key::Recipe;
/// let surt = RecipeColumn { column: "surt-ia", recipe: Recipe::parse("surt-ia").unwrap() };
/// let policy = Policy { recipes: vec![surt], ..Policy::default() };
/// let mut urls = UrlCanonicalizer::new(&policy);
/// let rows = urls.canonicalize([(&b"http://www.example.org/A"[..], None)])?;
/// assert_eq!(rows.recipe_texts[0].get(0), b"org,example)/a");
/// # Ok::<(), irikey::canon::TextTooLong>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecipeColumn {
    /// The name of the column: the name of a recipe, or `rules` for a custom one.
    pub column: &'static str,
    /// The recipe.
    pub recipe: Recipe,
}

impl RecipeColumn {
    /// Returns `name@version` of the recipe.
    pub(crate) fn describe(&self) -> String {
        format!("{}@{}", self.recipe.name(), self.recipe.version())
    }
}

/// The form of a scheme, for messages.
pub(crate) const SCHEME_FORM: &str = "a scheme is a letter, then letters, digits, '+', '-' or '.'; for example https";

/// Why a policy cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// [`Policy::assume_scheme`] is not a scheme (RFC 3986 section 3.1).
    #[error("{0:?} is not a scheme; {form}", form = SCHEME_FORM)]
    AssumedScheme(String),
    /// [`Policy::max_url_len`] is more than [`MaxUrlLen::MAX`].
    #[error("the maximum length of a URL is {0} bytes; expected at most {max}", max = MaxUrlLen::MAX.0)]
    MaxUrlLen(usize),
    /// Equivalences are about keys of the rung `scheme`, and the policy has another rung.
    #[error("equivalences are about keys of the rung scheme, but the rung is {0}")]
    EquivalencesRung(Rung),
    /// Equivalences are about keys of another hash function.
    #[error("the equivalences are about keys of {found}, but the keys are those of {expected}")]
    EquivalencesAlgorithm {
        /// That of the equivalences.
        found: KeyAlgorithm,
        /// That of the policy.
        expected: KeyAlgorithm,
    },
}

impl Policy {
    /// Checks the settings that are wrong whatever the records are: the assumed scheme must be a scheme, the maximum length of URLs
    /// at most [`MaxUrlLen::MAX`], and the equivalences must be about the keys of the policy. The base is not checked: one that is
    /// not valid is a fault of each relative record. [`Policy::check_base`] checks it.
    ///
    /// ```
    /// use irikey::canon::{Policy, PolicyError};
    /// let policy = |scheme: &str| Policy { assume_scheme: Some(scheme.to_string()), ..Policy::default() };
    /// assert!(policy("https").check().is_ok());
    /// assert_eq!(policy("https://").check(), Err(PolicyError::AssumedScheme("https://".to_string())));
    /// ```
    ///
    /// # Errors
    /// See [`PolicyError`].
    pub fn check(&self) -> Result<(), PolicyError> {
        if let Some(scheme) = self.assume_scheme.as_ref().filter(|scheme| !is_scheme(scheme.as_bytes())) {
            return Err(PolicyError::AssumedScheme(scheme.clone()));
        }
        if self.max_url_len.0 > MaxUrlLen::MAX.0 {
            return Err(PolicyError::MaxUrlLen(self.max_url_len.0));
        }
        let Some(equivalences) = &self.equivalences else { return Ok(()) };
        let (found, expected) = (equivalences.algorithm(), self.algorithm);
        match self.rung {
            Rung::Scheme if found == expected => Ok(()),
            Rung::Scheme => Err(PolicyError::EquivalencesAlgorithm { found, expected }),
            rung => Err(PolicyError::EquivalencesRung(rung)),
        }
    }

    /// Returns the index of a rung in [`Policy::more_keys`].
    pub(crate) fn key_index(&self, rung: Rung) -> Option<usize> {
        self.more_keys.iter().position(|known| *known == rung)
    }

    /// Adds a rung to [`Policy::more_keys`], if it is missing, and returns its index.
    pub(crate) fn add_key(&mut self, rung: Rung) -> usize {
        self.key_index(rung).unwrap_or_else(|| {
            self.more_keys.push(rung);
            self.more_keys.len() - 1
        })
    }

    /// Returns the names and values of all choices that rows depend on, for the metadata of files.
    pub fn describe(&self) -> Vec<(&'static str, String)> {
        let yes_no = |flag: bool| if flag { "yes" } else { "no" }.to_string();
        let mut pairs = vec![
            ("profile", self.profile.name.to_string()),
            ("intake", self.mode.name().to_string()),
            ("rung", self.rung.name().to_string()),
            ("key", self.algorithm.name().to_string()),
            ("key_version", self.algorithm.version().to_string()),
            ("drop_fragment", yes_no(self.drop_fragment)),
            ("literal_base", yes_no(self.literal_base)),
            ("assume_scheme", self.assume_scheme.clone().unwrap_or_default()),
            ("base", self.base.as_deref().map(|base| String::from_utf8_lossy(base).into_owned()).unwrap_or_default()),
            ("preprocess", describe_preprocess(&self.preprocess)),
            ("charset", describe_charset(self.charset, self.has_record_charsets)),
            ("query_charset", describe_charset(self.query_charset, self.has_record_query_charsets)),
            ("recipes", self.recipes.iter().map(RecipeColumn::describe).collect::<Vec<_>>().join("; ")),
            ("psl", self.suffixes.version().to_string()),
            ("unicode", crate::iri::unicode_version().to_string()),
        ];
        if self.max_url_len != MaxUrlLen::default() {
            pairs.push((MAX_URL, self.max_url_len.0.to_string()));
        }
        if let Some(equivalences) = &self.equivalences {
            pairs.push(("equivalences", equivalences.identity()));
        }
        pairs
    }

    /// Returns the settings of [`Policy::describe`] that the keys of rungs and recipes depend on, for a comparison with stored
    /// ones. `recipes` and `psl` are missing, because they change columns only. `max_url` is empty if it has its default,
    /// because it is not stored then.
    #[cfg(feature = "pipeline")]
    pub(crate) fn describe_keys(&self) -> Vec<(&'static str, String)> {
        let mut pairs = self.describe();
        pairs.retain(|(name, _)| !matches!(*name, "recipes" | "psl"));
        if self.max_url_len == MaxUrlLen::default() {
            pairs.push((MAX_URL, String::new()));
        }
        pairs
    }
}

/// Describes settings that differ, each with its name, the value that `place` stores, and that of this run; `None` if there are
/// none. Compare the values of [`Policy::describe_keys`].
#[cfg(feature = "pipeline")]
pub(crate) fn describe_differences<'a>(
    place: &str,
    differing: impl Iterator<Item = (&'a str, &'a str, &'a str)>,
) -> Option<String> {
    let describe = |(name, stored, value)| format!("{name} is {stored:?} in the {place} and {value:?} in this run");
    let differences: Vec<String> = differing.map(describe).collect();
    (!differences.is_empty()).then(|| differences.join(", "))
}

/// The setting that is described only if it is not the default.
const MAX_URL: &str = "max_url";

/// Returns the name of the charset, after "by record" if records name theirs.
fn describe_charset(charset: Option<Charset>, is_by_record: bool) -> String {
    match (is_by_record, charset) {
        (false, charset) => charset.map(Charset::name).unwrap_or_default().to_string(),
        (true, None) => "by record".to_string(),
        (true, Some(charset)) => format!("by record, else {}", charset.name()),
    }
}

/// Returns the names of the repairs in the order in which they apply.
fn describe_preprocess(options: &PreprocessOptions) -> String {
    let steps = [
        match options.character_references {
            CharacterReferences::Kept => "",
            CharacterReferences::Xml => "xml character references",
            CharacterReferences::Html => "html character references",
        },
        if options.is_trimmed { "trim" } else { "" },
        match options.spaces {
            Spaces::Kept => "",
            Spaces::Split => "split at spaces",
            Spaces::Encoded => "encode spaces",
            Spaces::Removed => "remove spaces",
        },
        match options.backslashes {
            Backslashes::Kept => "",
            Backslashes::Slash => "backslashes to slashes",
            Backslashes::Encoded => "encode backslashes",
        },
    ];
    steps.into_iter().filter(|step| !step.is_empty()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learn::EquivalencesBuilder;

    #[test]
    fn descriptions_list_exactly_the_chosen_repairs() {
        assert_eq!(describe_preprocess(&PreprocessOptions::default()), "");
        let options = PreprocessOptions { is_trimmed: true, spaces: Spaces::Split, ..PreprocessOptions::default() };
        assert_eq!(describe_preprocess(&options), "trim, split at spaces");
        let latin = Charset::named("latin1");
        assert_eq!(describe_charset(latin, true), "by record, else windows-1252");
        assert_eq!(
            (describe_charset(latin, false), describe_charset(None, false)),
            ("windows-1252".into(), String::new())
        );
    }

    #[test]
    fn schemes_and_equivalences_are_checked() {
        let assume = |scheme: &str| Policy { assume_scheme: Some(scheme.to_string()), ..Policy::default() }.check();
        for scheme in ["https", "HTTP", "a+b-c.1"] {
            assert_eq!(assume(scheme), Ok(()), "{scheme}");
        }
        for scheme in ["http://", "http:", "ht tp", "", "\u{e9}", "1a"] {
            assert_eq!(assume(scheme), Err(PolicyError::AssumedScheme(scheme.to_string())));
        }
        let equivalences = |algorithm| EquivalencesBuilder::new(algorithm).build().map(Arc::new).ok();
        let policy = Policy { equivalences: equivalences(KeyAlgorithm::Xxh3), ..Policy::default() };
        assert_eq!(policy.check(), Ok(()));
        let other = Policy { rung: Rung::Syntax, ..policy.clone() };
        assert_eq!(other.check(), Err(PolicyError::EquivalencesRung(Rung::Syntax)));
        let other = Policy { algorithm: KeyAlgorithm::Blake3, ..policy };
        assert!(matches!(other.check(), Err(PolicyError::EquivalencesAlgorithm { .. })));
        assert_eq!(Policy { equivalences: equivalences(KeyAlgorithm::Blake3), ..other }.check(), Ok(()));
    }

    #[test]
    fn the_length_of_urls_is_limited() {
        let check = |len| Policy { max_url_len: MaxUrlLen(len), ..Policy::default() }.check();
        assert_eq!(check(MaxUrlLen::MAX.0), Ok(()));
        let error = check(MaxUrlLen::MAX.0 + 1).unwrap_err();
        assert_eq!(error.to_string(), "the maximum length of a URL is 67108865 bytes; expected at most 67108864");
    }

    #[test]
    fn descriptions_name_another_length_of_urls() {
        let max_url = |policy: Policy| policy.describe().into_iter().find(|(name, _)| *name == "max_url");
        assert_eq!(max_url(Policy::default()), None);
        let policy = Policy { max_url_len: MaxUrlLen(5), ..Policy::default() };
        assert_eq!(max_url(policy), Some(("max_url", "5".to_string())));
    }
}
