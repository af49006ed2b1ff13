//! The table of learned equivalences: one row per member of a class and one row per pattern.
//!
//! [`equivalences_batches`] writes [`Learned`] as record batches; [`EquivalencesReader`] reads them back as
//! [`Equivalences`]. The reader refuses tables of another policy or version, and rows whose keys do not belong to their
//! URIs.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeBinaryBuilder, Float64Builder, ListBuilder, RecordBatch, StringBuilder,
    UInt64Builder,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;

use super::column::KEY_LEN;
use crate::canon::Policy;
use crate::key::{KeyAlgorithm, KeyBytes};
use crate::learn::{ClassMember, Equivalences, EquivalencesConflict, LearnLimits, Learned, Pattern, RewriteRule};

/// Version of the columns and of the meaning of patterns; stored in the metadata as `irikey.equivalences`.
const EQUIVALENCES_VERSION: &str = "1";

/// Metadata key that identifies the table; the value is its version.
const EQUIVALENCES_METADATA_KEY: &str = "irikey.equivalences";

/// Rows per batch.
const BATCH_ROWS: usize = 64 << 10;

/// Name and meaning of each column, in order.
pub(crate) const EQUIVALENCE_COLUMNS: [(&str, &str); 17] = [
    ("kind", "member (of a class) or pattern (of a host)"),
    ("uri", "member: the canonical URL"),
    ("key", "member: its key on the rung scheme"),
    ("representative_uri", "member: the representative of its class, the URL where the redirects end"),
    ("representative_key", "member: key of the representative, which is the member's key on the rung protocol"),
    ("how", "member: representative; permanent, temporary or unknown (status of its redirect); or pattern"),
    ("target_uri", "member: target of its own redirect; null for the representative"),
    ("records", "member: number of records that state the redirect"),
    ("source", "member: source of the first of these records"),
    ("record", "member: ordinal of that record in its source"),
    ("host", "pattern: host, and port if there is one"),
    ("pattern", "pattern: name of the rule"),
    ("support", "pattern: number of distinct URLs that confirm it"),
    ("counter", "pattern: number of distinct URLs that it applies to and that contradict it"),
    ("confidence", "pattern: support / (support + counter)"),
    ("examples", "pattern: up to three URLs that confirm it"),
    ("counter_examples", "pattern: up to three URLs that contradict it"),
];

/// Why a table cannot be used as equivalences for a policy.
#[derive(Debug, thiserror::Error)]
pub enum EquivalencesTableError {
    /// The metadata does not identify a table of equivalences.
    #[error("not a table of equivalences; create one with irikey learn")]
    NotEquivalences,
    /// The table has another version.
    #[error("equivalences have version {0}, expected {EQUIVALENCES_VERSION}; run irikey learn again")]
    Version(String),
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
    #[error("cannot read the equivalences: {0}")]
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

/// Returns the schema of the table.
pub(crate) fn equivalences_schema() -> SchemaRef {
    let texts = DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true)));
    let field = |&(name, _): &(&str, &str)| {
        let kind = match name {
            "key" | "representative_key" => DataType::FixedSizeBinary(KEY_LEN),
            "records" | "record" | "support" | "counter" => DataType::UInt64,
            "confidence" => DataType::Float64,
            "examples" | "counter_examples" => texts.clone(),
            _ => DataType::Utf8,
        };
        Field::new(name, kind, name != "kind")
    };
    Arc::new(Schema::new(EQUIVALENCE_COLUMNS.iter().map(field).collect::<Vec<_>>()))
}

/// Returns the rows of the table: members, then patterns. `sources` are the sorted names of the sources.
pub(crate) fn equivalences_batches<'a>(
    learned: &'a Learned,
    sources: &'a [String],
) -> impl Iterator<Item = Result<RecordBatch, ArrowError>> + 'a {
    let members = learned.members.chunks(BATCH_ROWS).map(|members| {
        let mut rows = TableRows::default();
        members.iter().try_for_each(|member| rows.member(member, sources))?;
        rows.finish()
    });
    let patterns = learned.patterns.chunks(BATCH_ROWS).map(|patterns| {
        let mut rows = TableRows::default();
        patterns.iter().for_each(|pattern| rows.pattern(pattern));
        rows.finish()
    });
    members.chain(patterns)
}

/// Builders of the columns, grouped by type in the order of the schema.
#[derive(Default)]
struct TableRows {
    texts: [StringBuilder; 8],
    keys: Option<[FixedSizeBinaryBuilder; 2]>,
    counts: [UInt64Builder; 4],
    confidence: Float64Builder,
    examples: [ListBuilder<StringBuilder>; 2],
}

impl TableRows {
    fn texts(&mut self, texts: [Option<&[u8]>; 8]) {
        for (column, text) in self.texts.iter_mut().zip(texts) {
            // A canonical URI is ASCII, but the name of a source may not be UTF-8.
            column.append_option(text.map(String::from_utf8_lossy));
        }
    }

    fn counts(&mut self, counts: [Option<u64>; 4]) {
        self.counts.iter_mut().zip(counts).for_each(|(column, count)| column.append_option(count));
    }

    fn member(&mut self, member: &ClassMember, sources: &[String]) -> Result<(), ArrowError> {
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
        ]);
        self.counts([Some(member.records), member.first.map(|place| place.record), None, None]);
        self.confidence.append_null();
        self.examples.iter_mut().for_each(ListBuilder::append_null);
        Ok(())
    }

    fn pattern(&mut self, pattern: &Pattern) {
        self.keys.get_or_insert_with(key_builders).iter_mut().for_each(FixedSizeBinaryBuilder::append_null);
        let name = pattern.rule.name();
        self.texts([Some(b"pattern"), None, None, None, None, None, Some(&pattern.host), Some(name.as_bytes())]);
        self.counts([None, None, Some(pattern.support), Some(pattern.counter)]);
        self.confidence.append_value(pattern.confidence());
        for (column, examples) in self.examples.iter_mut().zip([&pattern.examples, &pattern.counter_examples]) {
            examples.iter().for_each(|uri| column.values().append_value(String::from_utf8_lossy(uri)));
            column.append(true);
        }
    }

    fn finish(self) -> Result<RecordBatch, ArrowError> {
        let mut texts = self.texts.into_iter().map(|mut column| Arc::new(column.finish()) as ArrayRef);
        let keys = self.keys.unwrap_or_else(key_builders);
        let mut keys = keys.into_iter().map(|mut column| Arc::new(column.finish()) as ArrayRef);
        let mut counts = self.counts.into_iter().map(|mut column| Arc::new(column.finish()) as ArrayRef);
        let mut examples = self.examples.into_iter().map(|mut column| Arc::new(column.finish()) as ArrayRef);
        let mut confidence = self.confidence;
        let schema = equivalences_schema();
        let column = |field: &Arc<Field>| match field.data_type() {
            DataType::FixedSizeBinary(_) => keys.next(),
            DataType::UInt64 => counts.next(),
            DataType::Float64 => Some(Arc::new(confidence.finish()) as ArrayRef),
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

/// Reads a table of equivalences batch by batch.
#[derive(Debug)]
pub struct EquivalencesReader {
    equivalences: Equivalences,
    algorithm: KeyAlgorithm,
    rows: u64,
}

impl EquivalencesReader {
    /// Creates a reader of a table with this schema, for keys of this policy.
    ///
    /// # Errors
    /// The schema is not one of equivalences, or they are for other keys.
    pub fn new(schema: &Schema, policy: &Policy) -> Result<EquivalencesReader, EquivalencesTableError> {
        let metadata = schema.metadata();
        match metadata.get(EQUIVALENCES_METADATA_KEY) {
            None => return Err(EquivalencesTableError::NotEquivalences),
            Some(version) if version != EQUIVALENCES_VERSION => {
                return Err(EquivalencesTableError::Version(version.clone()));
            }
            Some(_) => (),
        }
        for (name, ours) in policy_pairs(policy) {
            let theirs = metadata.get(&format!("irikey.{name}")).cloned().unwrap_or_default();
            if theirs != ours {
                return Err(EquivalencesTableError::Policy { name, theirs, ours });
            }
        }
        let algorithm = policy.algorithm;
        Ok(EquivalencesReader { equivalences: Equivalences::new(algorithm), algorithm, rows: 0 })
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
                other => return Err(self.invalid_row(format!("kind is {other:?}, expected member or pattern"))),
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
        Ok(self.equivalences.add_member(key, representative)?)
    }

    fn pattern(&mut self, host: &str, name: &str) -> Result<(), EquivalencesTableError> {
        let rule = RewriteRule::named(name).ok_or_else(|| self.invalid_row(format!("unknown pattern {name:?}")))?;
        Ok(self.equivalences.add_pattern(host.as_bytes(), rule)?)
    }

    fn invalid_row(&self, reason: String) -> EquivalencesTableError {
        EquivalencesTableError::Row { row: self.rows, reason }
    }

    /// Returns the equivalences.
    ///
    /// # Errors
    /// Rows contradict each other.
    pub fn finish(self) -> Result<Equivalences, EquivalencesTableError> {
        self.equivalences.check()?;
        Ok(self.equivalences)
    }
}
