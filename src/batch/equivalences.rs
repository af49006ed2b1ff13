//! The table of learned equivalences: one row per member of a class, per pattern, and per rule about content.
//!
//! [`EquivalenceRows`] makes record batches of what was learned; [`EquivalencesReader`] reads them back as
//! [`Equivalences`]. The reader refuses tables of another policy or version, and rows whose keys do not belong to their
//! URIs.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayBuilder, ArrayRef, AsArray, FixedSizeBinaryBuilder, Float64Builder, ListBuilder, RecordBatch,
    StringBuilder, UInt64Builder,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;

use super::column::KEY_LEN;
#[cfg(feature = "cli")]
use super::row_cells::RowCells;
use crate::canon::Policy;
use crate::key::{KeyAlgorithm, KeyBytes};
#[cfg(feature = "pipeline")]
use crate::learn::content::ContentLimits;
use crate::learn::content::{ContentRule, PathContext, ScopedRule};
use crate::learn::{
    ClassMember, Equivalences, EquivalencesBuilder, EquivalencesConflict, LearnLimits, Pattern, RewritePattern,
};

/// Version of the columns and of the meaning of rows; stored in the metadata as `irikey.equivalences`.
const EQUIVALENCES_VERSION: &str = "2";

/// Versions that are read. Tables of version 1 have no rules about content.
const READABLE_VERSIONS: [&str; 2] = ["1", EQUIVALENCES_VERSION];

/// Metadata key of the limits of rules about content, in a table that holds a part of them.
const PART_METADATA_KEY: &str = "irikey.learn.part";

/// Metadata key that identifies the table; the value is its version.
const EQUIVALENCES_METADATA_KEY: &str = "irikey.equivalences";

const BATCH_ROWS: usize = 64 << 10;

/// Name and meaning of each column, in order.
pub(crate) const EQUIVALENCE_COLUMNS: [(&str, &str); 20] = [
    (
        "kind",
        "member (of a class), pattern (of a host), rule (about content), or refused (a rule that is not applied); in a part \
         also votes (of registered domains, about a rule for all hosts)",
    ),
    ("uri", "member: the canonical URL"),
    ("key", "member: its key on the rung scheme"),
    ("representative_uri", "member: the representative of its class, the URL where the redirects end"),
    ("representative_key", "member: key of the representative, which is the member's key on the rung protocol"),
    (
        "how",
        "member: representative; permanent, temporary or unknown (status of its redirect); or pattern; rule: content, \
         content+canonical (too few contents without canonical links) or hand; refused: why",
    ),
    ("target_uri", "member: target of its own redirect; null for the representative"),
    ("records", "member: number of records that state the redirect; votes: registered domains that agree"),
    ("source", "member: source of the first of these records"),
    ("record", "member: ordinal of that record in its source; votes: registered domains that disagree"),
    ("host", "host, and port if there is one; rule: also *. and a domain for all hosts of it, or * for all hosts"),
    ("pattern", "name of the pattern or rule"),
    (
        "support",
        "pattern: number of distinct URLs that confirm it; rule: number of contents for which it made no difference",
    ),
    ("counter", "number of distinct URLs that contradict it; rule: pages that it would merge with others"),
    ("confidence", "support / (support + counter)"),
    (
        "examples",
        "pattern: up to three URLs that confirm it; rule: pairs of URLs with equal content, one after the other",
    ),
    ("counter_examples", "pattern: up to three URLs that contradict it; rule: pairs of URLs with different content"),
    ("context", "rule: paths that it is for, such as /shop/ or *.css; null for all"),
    ("lower_bound", "rule: lower bound of its share of right merges (Wilson, 95 %), less what noise explains"),
    ("merged", "rule: number of URLs that it made equal to others"),
];

/// Why a table cannot be used as equivalences for a policy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EquivalencesTableError {
    /// The metadata does not identify a table of equivalences.
    #[error("not a table of equivalences; create one with irikey learn")]
    NotEquivalences,
    /// The table has another version.
    #[error("equivalences have version {0}, expected {EQUIVALENCES_VERSION}; run irikey learn again")]
    Version(String),
    /// The table holds what was learned of a part of the captures.
    #[error("the table is a part, which irikey learn --part wrote; merge all parts with irikey learn --merge")]
    Part,
    /// The table holds no part.
    #[error("the table is not a part; create parts with irikey learn --part")]
    NoPart,
    /// The table was learned under another policy.
    #[error(
        "the equivalences were learned with {name} {theirs:?}, but this run uses {ours:?}; use the same flags for both"
    )]
    Policy {
        /// The part of the policy that differs.
        name: &'static str,
        /// Value of the table.
        theirs: String,
        /// Value of the run.
        ours: String,
    },
    /// A row is invalid.
    #[error("row {row} of the equivalences: {reason}; the table was changed, run irikey learn again")]
    Row {
        /// Number of the row, from 1.
        row: u64,
        /// The reason.
        reason: String,
    },
    /// Rows contradict each other.
    #[error("{0}; the table was changed, run irikey learn again")]
    EquivalencesConflict(#[from] EquivalencesConflict),
    /// Columns are missing or have other types.
    #[error("cannot read the equivalences: {0}; give a file that irikey learn wrote")]
    Arrow(#[from] ArrowError),
}

/// Returns the parts of the policy that keys of equivalences depend on.
fn policy_pairs(policy: &Policy) -> impl Iterator<Item = (&'static str, String)> {
    let names = ["profile", "key", "key_version", "drop_fragment", "unicode"];
    policy.describe().into_iter().filter(move |(name, _)| names.contains(name))
}

/// Returns the metadata of the table, in addition to the metadata of every output.
pub(crate) fn equivalences_metadata(limits: &LearnLimits) -> Vec<(String, String)> {
    let limits = limits.describe().into_iter().map(|(name, value)| (format!("irikey.learn.{name}"), value));
    [(EQUIVALENCES_METADATA_KEY.to_string(), EQUIVALENCES_VERSION.to_string())].into_iter().chain(limits).collect()
}

/// Returns the metadata of a table that holds a part of the rules about content, which were learned with these limits.
#[cfg(feature = "pipeline")]
pub(crate) fn part_metadata(limits: &ContentLimits, documents: &[(String, String)]) -> (String, String) {
    let ContentLimits { min_contents, min_precision, .. } = limits;
    let documents: String = documents.iter().map(|(name, value)| format!(" {name}={value}")).collect();
    (PART_METADATA_KEY.to_string(), format!("min_contents={min_contents} min_precision={min_precision}{documents}"))
}

/// Checks that a table is one of equivalences for keys of this policy.
fn check_table(schema: &Schema, policy: &Policy) -> Result<(), EquivalencesTableError> {
    let metadata = schema.metadata();
    match metadata.get(EQUIVALENCES_METADATA_KEY) {
        None => return Err(EquivalencesTableError::NotEquivalences),
        // The metadata of rows names the equivalences of their keys by a hash, under the same key.
        Some(version) if version.parse::<u32>().is_err() => return Err(EquivalencesTableError::NotEquivalences),
        Some(version) if !READABLE_VERSIONS.contains(&version.as_str()) => {
            return Err(EquivalencesTableError::Version(version.clone()));
        }
        // Without its contexts, a rule for some paths would be applied to all of them. Version 1 has no contexts.
        Some(version) if version == EQUIVALENCES_VERSION && schema.column_with_name("context").is_none() => {
            return Err(ArrowError::SchemaError("column context is missing".to_string()).into());
        }
        Some(_) => (),
    }
    for (name, ours) in policy_pairs(policy) {
        let theirs = metadata.get(&format!("irikey.{name}")).cloned().unwrap_or_default();
        if theirs != ours {
            return Err(EquivalencesTableError::Policy { name, theirs, ours });
        }
    }
    Ok(())
}

/// Checks that a table is a part, for keys of this policy. Returns the limits with which it was learned.
#[cfg(feature = "pipeline")]
pub(crate) fn check_part(schema: &Schema, policy: &Policy) -> Result<String, EquivalencesTableError> {
    check_table(schema, policy)?;
    schema.metadata().get(PART_METADATA_KEY).cloned().ok_or(EquivalencesTableError::NoPart)
}

pub(crate) fn equivalences_schema() -> SchemaRef {
    let texts = DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true)));
    let field = |&(name, _): &(&str, &str)| {
        let kind = match name {
            "key" | "representative_key" => DataType::FixedSizeBinary(KEY_LEN),
            "records" | "record" | "support" | "counter" | "merged" => DataType::UInt64,
            "confidence" | "lower_bound" => DataType::Float64,
            "examples" | "counter_examples" => texts.clone(),
            _ => DataType::Utf8,
        };
        Field::new(name, kind, name != "kind")
    };
    Arc::new(Schema::new(EQUIVALENCE_COLUMNS.iter().map(field).collect::<Vec<_>>()))
}

/// Rows of the table that become batches: builders of the columns, grouped by type in the order of the schema.
#[derive(Default)]
pub(crate) struct EquivalenceRows {
    texts: [StringBuilder; 9],
    keys: Option<[FixedSizeBinaryBuilder; 2]>,
    counts: [UInt64Builder; 5],
    shares: [Float64Builder; 2],
    examples: [ListBuilder<StringBuilder>; 2],
}

impl EquivalenceRows {
    fn len(&self) -> usize {
        self.texts[0].len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len() == BATCH_ROWS
    }

    /// Returns the rows as a batch, if there are any, and removes them.
    pub(crate) fn take_batch(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let rows = std::mem::take(self);
        if rows.len() == 0 { Ok(None) } else { rows.finish().map(Some) }
    }

    pub(super) fn texts(&mut self, texts: [Option<&[u8]>; 9]) {
        for (column, text) in self.texts.iter_mut().zip(texts) {
            // A canonical URI is ASCII, but the name of a source may not be UTF-8.
            column.append_option(text.map(String::from_utf8_lossy));
        }
    }

    pub(super) fn counts(&mut self, counts: [Option<u64>; 5]) {
        self.counts.iter_mut().zip(counts).for_each(|(column, count)| column.append_option(count));
    }

    pub(super) fn shares(&mut self, shares: [Option<f64>; 2]) {
        self.shares.iter_mut().zip(shares).for_each(|(column, share)| column.append_option(share));
    }

    pub(super) fn examples(&mut self, examples: [&[Vec<u8>]; 2]) {
        for (column, examples) in self.examples.iter_mut().zip(examples) {
            examples.iter().for_each(|uri| column.values().append_value(String::from_utf8_lossy(uri)));
            column.append(true);
        }
    }

    /// Adds a member. `sources` are the sorted names of the sources.
    pub(crate) fn add_member(&mut self, member: &ClassMember, sources: &[String]) -> Result<(), ArrowError> {
        let keys = self.keys.get_or_insert_with(key_builders);
        keys[0].append_value(member.key)?;
        keys[1].append_value(member.representative_key)?;
        let source = member.first.and_then(|place| sources.get(place.source as usize)).map(String::as_bytes);
        self.texts([
            Some(b"member"),
            Some(&member.uri),
            Some(&member.representative),
            Some(member.how.name().as_bytes()),
            member.target.as_deref(),
            source,
            None,
            None,
            None,
        ]);
        self.counts([Some(member.records), member.first.map(|place| place.record), None, None, None]);
        self.shares([None; 2]);
        self.examples.iter_mut().for_each(ListBuilder::append_null);
        Ok(())
    }

    pub(super) fn no_keys(&mut self) {
        self.keys.get_or_insert_with(key_builders).iter_mut().for_each(FixedSizeBinaryBuilder::append_null);
    }

    pub(crate) fn add_pattern(&mut self, pattern: &Pattern) {
        self.no_keys();
        let name = pattern.rewrite.name();
        self.texts([Some(b"pattern"), None, None, None, None, None, Some(&pattern.host), Some(name.as_bytes()), None]);
        self.counts([None, None, Some(pattern.support), Some(pattern.counter), None]);
        self.shares([Some(pattern.confidence()), None]);
        self.examples([&pattern.examples, &pattern.counter_examples]);
    }

    pub(super) fn finish(self) -> Result<RecordBatch, ArrowError> {
        let mut texts = self.texts.into_iter().map(|mut column| Arc::new(column.finish()) as ArrayRef);
        let keys = self.keys.unwrap_or_else(key_builders);
        let mut keys = keys.into_iter().map(|mut column| Arc::new(column.finish()) as ArrayRef);
        let mut counts = self.counts.into_iter().map(|mut column| Arc::new(column.finish()) as ArrayRef);
        let mut examples = self.examples.into_iter().map(|mut column| Arc::new(column.finish()) as ArrayRef);
        let mut shares = self.shares.into_iter().map(|mut column| Arc::new(column.finish()) as ArrayRef);
        let schema = equivalences_schema();
        let column = |field: &Arc<Field>| match field.data_type() {
            DataType::FixedSizeBinary(_) => keys.next(),
            DataType::UInt64 => counts.next(),
            DataType::Float64 => shares.next(),
            DataType::List(_) => examples.next(),
            _ => texts.next(),
        };
        let columns: Vec<_> = schema.fields().iter().filter_map(column).collect();
        RecordBatch::try_new(schema, columns)
    }
}

fn key_builders() -> [FixedSizeBinaryBuilder; 2] {
    [FixedSizeBinaryBuilder::new(KEY_LEN), FixedSizeBinaryBuilder::new(KEY_LEN)]
}

/// The evidence in a row of the table.
#[cfg(feature = "cli")]
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct EvidenceRow {
    pub(crate) how: String,
    pub(crate) support: Option<u64>,
    pub(crate) counter: Option<u64>,
    pub(crate) lower_bound: Option<f64>,
    pub(crate) examples: Vec<String>,
    pub(crate) representative: Option<String>,
}

/// Returns the evidence in the first row whose texts in some columns are these; a missing text is empty.
#[cfg(feature = "cli")]
pub(crate) fn find_evidence(batch: &RecordBatch, texts: &[(&str, String)]) -> Option<EvidenceRow> {
    let is_found =
        |cells: &RowCells<'_>| texts.iter().all(|(name, value)| cells.text(name).unwrap_or_default() == *value);
    let cells = (0..batch.num_rows()).map(|row| RowCells { batch, row }).find(is_found)?;
    Some(EvidenceRow {
        how: cells.text("how").unwrap_or_default().to_string(),
        support: cells.count("support"),
        counter: cells.count("counter"),
        lower_bound: cells.share("lower_bound"),
        examples: cells.texts("examples"),
        representative: cells.text("representative_uri").map(str::to_string),
    })
}

/// Reads a table of equivalences batch by batch.
#[derive(Debug)]
pub struct EquivalencesReader {
    builder: EquivalencesBuilder,
    algorithm: KeyAlgorithm,
    rows: u64,
}

impl EquivalencesReader {
    /// Creates a reader of a table with this schema, for keys of this policy.
    ///
    /// # Errors
    /// The schema is not one of equivalences, or they are for other keys.
    pub fn new(schema: &Schema, policy: &Policy) -> Result<EquivalencesReader, EquivalencesTableError> {
        check_table(schema, policy)?;
        if schema.metadata().contains_key(PART_METADATA_KEY) {
            return Err(EquivalencesTableError::Part);
        }
        let algorithm = policy.algorithm;
        Ok(EquivalencesReader { builder: EquivalencesBuilder::new(algorithm), algorithm, rows: 0 })
    }

    /// Adds the rows of a batch.
    ///
    /// # Errors
    /// A row is invalid or contradicts another row.
    pub fn add(&mut self, batch: &RecordBatch) -> Result<(), EquivalencesTableError> {
        let column = |name: &str, kind: &DataType| match batch.column_by_name(name) {
            Some(column) => cast(column, kind),
            None => Err(ArrowError::SchemaError(format!("column {name} is missing"))),
        };
        let text = |name| column(name, &DataType::Utf8);
        let columns = [text("kind")?, text("uri")?, text("host")?, text("pattern")?];
        let [kinds, uris, hosts, patterns] = columns.each_ref().map(|array| array.as_string::<i32>());
        // Version 1 has no contexts.
        let contexts = batch.column_by_name("context").map(|column| cast(column, &DataType::Utf8)).transpose()?;
        let context = |row: usize| {
            let contexts = contexts.as_ref().map(|contexts| contexts.as_string::<i32>());
            contexts.filter(|contexts| contexts.is_valid(row)).map_or("", |contexts| contexts.value(row))
        };
        let keys = [column("key", &DataType::Binary)?, column("representative_key", &DataType::Binary)?];
        for row in 0..batch.num_rows() {
            self.rows += 1;
            let key = |place: usize| {
                let keys = keys[place].as_binary::<i32>();
                if keys.is_valid(row) { keys.value(row) } else { b"" }
            };
            match kinds.value(row) {
                "member" => self.member(uris.value(row).as_bytes(), key(0), key(1))?,
                "pattern" => self.pattern(hosts.value(row), patterns.value(row))?,
                "rule" => self.rule(hosts.value(row), patterns.value(row), context(row))?,
                "refused" => (),
                other => {
                    return Err(
                        self.invalid_row(format!("kind is {other:?}, expected member, pattern, rule or refused"))
                    );
                }
            }
        }
        Ok(())
    }

    fn member(&mut self, uri: &[u8], key: &[u8], representative: &[u8]) -> Result<(), EquivalencesTableError> {
        let as_key = |bytes: &[u8]| KeyBytes::try_from(bytes).ok();
        let (Some(key), Some(representative)) = (as_key(key), as_key(representative)) else {
            return Err(self.invalid_row("a key does not have 16 bytes".to_string()));
        };
        if self.algorithm.key(uri) != key {
            return Err(self.invalid_row(format!("the key does not belong to {}", String::from_utf8_lossy(uri))));
        }
        Ok(self.builder.add_member(key, representative)?)
    }

    fn pattern(&mut self, host: &str, name: &str) -> Result<(), EquivalencesTableError> {
        let rule = RewritePattern::named(name).ok_or_else(|| self.invalid_row(format!("unknown pattern {name:?}")))?;
        Ok(self.builder.add_pattern(host.as_bytes(), rule)?)
    }

    fn rule(&mut self, scope: &str, name: &str, context: &str) -> Result<(), EquivalencesTableError> {
        let rule = ContentRule::parse(name).ok_or_else(|| self.invalid_row(format!("unknown rule {name:?}")))?;
        let context = PathContext::parse(context);
        let context = context
            .ok_or_else(|| self.invalid_row("the context is neither /NAME/, /NAME/NAME/ nor *.NAME".to_string()))?;
        if scope.is_empty() {
            return Err(self.invalid_row("the rule has no host".to_string()));
        }
        self.builder.add_rule(scope.as_bytes(), ScopedRule { rule, context });
        Ok(())
    }

    fn invalid_row(&self, reason: String) -> EquivalencesTableError {
        EquivalencesTableError::Row { row: self.rows, reason }
    }

    /// Returns the equivalences.
    ///
    /// # Errors
    /// Rows contradict each other.
    pub fn finish(self) -> Result<Equivalences, EquivalencesTableError> {
        Ok(self.builder.build()?)
    }
}
