//! What is asked of a run: intake, rung, keys, repairs. Two runs with equal policies give equal rows.

use crate::encoding::Charset;
use crate::iri::Intake;
use crate::key::KeyAlgorithm;

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
    /// What becomes of text that the grammar refuses.
    pub intake: Intake,
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
    /// Charset of the records; UTF-8 where it is not said, and then bytes need not even be that.
    pub charset: Option<Charset>,
    /// Charset of the documents that the records were found in, for the queries of http and https.
    pub query_charset: Option<Charset>,
    /// Keep the input of rows that differ from their URI.
    pub keep_input: bool,
}

impl Policy {
    /// Name and value of everything that the keys depend on, for a file's metadata.
    pub fn describe(&self) -> Vec<(&'static str, String)> {
        let yes_no = |flag: bool| if flag { "yes" } else { "no" }.to_string();
        vec![
            ("profile", "rfc3987".to_string()),
            ("intake", self.intake.name().to_string()),
            ("rung", self.rung.name().to_string()),
            ("key", self.algorithm.name().to_string()),
            ("key_version", self.algorithm.version().to_string()),
            ("drop_fragment", yes_no(self.drop_fragment)),
            ("literal_base", yes_no(self.literal_base)),
            ("assume_scheme", self.assume_scheme.clone().unwrap_or_default()),
            ("base", self.base.as_deref().map(|base| String::from_utf8_lossy(base).into_owned()).unwrap_or_default()),
            ("charset", self.charset.map(Charset::name).unwrap_or_default().to_string()),
            ("query_charset", self.query_charset.map(Charset::name).unwrap_or_default().to_string()),
            ("unicode", crate::iri::UNICODE_VERSION.to_string()),
        ]
    }
}
