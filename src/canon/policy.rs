//! What is asked of a run: intake, rung, keys, repairs. Two runs with equal policies give equal rows.

use super::RecipeColumn;
use std::sync::Arc;

use crate::encoding::Charset;
use crate::iri::{Backslashes, CharacterReferences, ParseMode, PreprocessOptions, Profile, Spaces};
use crate::key::KeyAlgorithm;
use crate::key::psl::SuffixList;
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
    /// The specification whose syntax and repairs apply. The rungs are RFC 3987's whatever it is, but for `whatwg`: there
    /// the syntax and the scheme rung are the `href`, and nothing stands between it and the text.
    pub profile: &'static Profile,
    /// What becomes of text that the grammar refuses.
    pub intake: ParseMode,
    /// The rung of the `uri` and `key` columns: [`Rung::Syntax`] or [`Rung::Scheme`]; with [`Rung::Simple`] the URI
    /// is the syntax rung's and the key the simple one's.
    pub rung: Rung,
    /// Rungs of further key columns.
    pub more_keys: Vec<Rung>,
    /// Hash of the keys.
    pub algorithm: KeyAlgorithm,
    /// Base of relative references in records that bring none.
    pub base: Option<Vec<u8>>,
    /// Resolve against bases exactly as RFC 3986 section 5.2 has it, without removing the base's own dot segments.
    pub literal_base: bool,
    /// Leave fragments out of the URI and its key (retrieval, RFC 3987 section 5.1).
    pub drop_fragment: bool,
    /// Scheme written before references that have none and look like `host/path`.
    pub assume_scheme: Option<String>,
    /// What is done to a record's text before it is a reference. Whoever decodes records splits them.
    pub preprocess: PreprocessOptions,
    /// Charset of the records that name none; UTF-8 where it is not said, and then bytes need not even be that.
    pub charset: Option<Charset>,
    /// Charset of the documents that the records were found in, for the queries of http and https, where the record
    /// names none.
    pub query_charset: Option<Charset>,
    /// Records bring charsets of their own, [`crate::record::Records::charsets`]; for the metadata alone.
    pub has_record_charsets: bool,
    /// So do their documents, [`crate::record::Records::query_charsets`].
    pub has_record_query_charsets: bool,
    /// Keep the input of rows that differ from their URI.
    pub keep_input: bool,
    /// Look for what misleads in each record, see [`crate::iri::find_spoofing`].
    pub spoofing_flags: bool,
    /// What is carried from records to rows beside the URL.
    pub carry: FieldSet,
    /// Keys of the crawl world that are made beside the ladder's.
    pub recipes: Vec<RecipeColumn>,
    /// Public Suffix List of the `url_host_*` columns.
    pub suffixes: SuffixList,
    /// What redirects showed of which URLs are one; makes [`super::Rows::protocol`], which takes [`Rung::Scheme`].
    pub equivalences: Option<Arc<Equivalences>>,
}

impl Policy {
    /// Name and value of everything that the keys depend on, for a file's metadata.
    pub fn describe(&self) -> Vec<(&'static str, String)> {
        let yes_no = |flag: bool| if flag { "yes" } else { "no" }.to_string();
        let mut pairs = vec![
            ("profile", self.profile.name.to_string()),
            ("intake", self.intake.name().to_string()),
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
            ("unicode", crate::iri::UNICODE_VERSION.to_string()),
        ];
        if let Some(equivalences) = &self.equivalences {
            pairs.push(("equivalences", equivalences.identity()));
        }
        pairs
    }
}

/// The name of the charset; "by record" where records name theirs, and what else applies.
fn describe_charset(charset: Option<Charset>, is_by_record: bool) -> String {
    match (is_by_record, charset) {
        (false, charset) => charset.map(Charset::name).unwrap_or_default().to_string(),
        (true, None) => "by record".to_string(),
        (true, Some(charset)) => format!("by record, else {}", charset.name()),
    }
}

/// What is done, in the order in which it is done.
fn describe_preprocess(choices: &PreprocessOptions) -> String {
    let steps = [
        match choices.character_references {
            CharacterReferences::Kept => "",
            CharacterReferences::Xml => "xml character references",
            CharacterReferences::Html => "html character references",
        },
        if choices.is_trimmed { "trim" } else { "" },
        match choices.spaces {
            Spaces::Kept => "",
            Spaces::Split => "split at spaces",
            Spaces::Encoded => "encode spaces",
            Spaces::Removed => "remove spaces",
        },
        match choices.backslashes {
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

    #[test]
    fn what_is_done_is_described_and_nothing_else() {
        assert_eq!(describe_preprocess(&PreprocessOptions::default()), "");
        let choices = PreprocessOptions { is_trimmed: true, spaces: Spaces::Split, ..PreprocessOptions::default() };
        assert_eq!(describe_preprocess(&choices), "trim, split at spaces");
        let latin = Charset::named("latin1");
        assert_eq!(describe_charset(latin, true), "by record, else windows-1252");
        assert_eq!(
            (describe_charset(latin, false), describe_charset(None, false)),
            ("windows-1252".into(), String::new())
        );
    }
}
