//! The options of a canonicalizer as Python passes them, converted to a [`Policy`] and a [`ColumnSet`]. They are kept as they
//! are, so that a canonicalizer can be pickled.

use std::sync::Arc;

use arrow::ipc::reader::StreamReader;
use irikey::batch::{ColumnId, ColumnSet, EquivalencesReader, EquivalencesTableError};
use irikey::canon::{Policy, RecipeColumn, Rung};
use irikey::iri::{Base, ParseMode, Profile};
use irikey::key::{KeyAlgorithm, Recipe};
use irikey::learn::Equivalences;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

/// The rung that needs equivalences.
const PROTOCOL: &str = "protocol";

/// The default columns of results.
const DEFAULT_COLUMNS: [&str; 5] = ["uri", "key", "fault", "fault_at", "flags"];

/// Returns whether a column needs a record of a file: its position there, or a field that its format states besides the
/// URL. Rows of a batch have neither.
fn needs_file(column: ColumnId) -> bool {
    matches!(
        column,
        ColumnId::Source | ColumnId::Record | ColumnId::RecordOffset | ColumnId::Input | ColumnId::Carried(_)
    )
}

/// All options of a canonicalizer.
#[derive(Clone, Debug)]
pub struct Configuration {
    pub url: String,
    pub base: Option<String>,
    pub charset: Option<String>,
    pub query_charset: Option<String>,
    pub key: String,
    pub columns: Option<Vec<String>>,
    pub base_uri: Option<String>,
    pub strict: bool,
    pub drop_fragment: bool,
    pub literal_base: bool,
    pub assume_scheme: Option<String>,
    pub profile: String,
    pub key_hash: String,
    pub types: String,
    /// The table that `irikey learn` wrote, as an Arrow IPC stream.
    pub equivalences: Option<Arc<[u8]>>,
}

/// The types of result columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Types {
    /// As in files of irikey: keys of fixed width, dictionaries, unsigned numbers.
    Arrow,
    /// Types that Spark reads: binary, text, long.
    Spark,
}

impl Configuration {
    /// Returns all options by name, as the constructor takes them.
    pub fn arguments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let arguments = PyDict::new(py);
        arguments.set_item("url", &self.url)?;
        arguments.set_item("base", &self.base)?;
        arguments.set_item("charset", &self.charset)?;
        arguments.set_item("query_charset", &self.query_charset)?;
        arguments.set_item("key", &self.key)?;
        arguments.set_item("columns", &self.columns)?;
        arguments.set_item("base_uri", &self.base_uri)?;
        arguments.set_item("strict", self.strict)?;
        arguments.set_item("drop_fragment", self.drop_fragment)?;
        arguments.set_item("literal_base", self.literal_base)?;
        arguments.set_item("assume_scheme", &self.assume_scheme)?;
        arguments.set_item("profile", &self.profile)?;
        arguments.set_item("key_hash", &self.key_hash)?;
        arguments.set_item("types", &self.types)?;
        let equivalences = self.equivalences.as_ref().map(|bytes| PyBytes::new(py, bytes));
        arguments.set_item("equivalences", equivalences)?;
        Ok(arguments)
    }

    /// Returns the columns of results.
    ///
    /// # Errors
    /// The name is unknown, or the column exists only in files.
    pub fn columns(&self) -> PyResult<ColumnSet> {
        let names: Vec<&str> = match &self.columns {
            Some(names) => names.iter().map(String::as_str).collect(),
            None => DEFAULT_COLUMNS.to_vec(),
        };
        let columns = ColumnSet::named(names).map_err(|unknown| PyValueError::new_err(unknown.to_string()))?;
        if let Some(column) = columns.iter().find(|column| needs_file(column.id)) {
            let message =
                format!("column {:?} describes records of files; rows of a batch have no such value", column.name);
            return Err(PyValueError::new_err(message));
        }
        Ok(columns)
    }

    /// Returns the types of result columns.
    ///
    /// # Errors
    /// The name is unknown.
    pub fn types(&self) -> PyResult<Types> {
        match self.types.as_str() {
            "arrow" => Ok(Types::Arrow),
            "spark" => Ok(Types::Spark),
            other => Err(PyValueError::new_err(format!("types is \"arrow\" or \"spark\", not {other:?}"))),
        }
    }

    /// Returns whether the column `key` is that of representatives.
    pub fn is_protocol(&self) -> bool {
        self.key == PROTOCOL
    }

    /// Reads the equivalences for keys of `policy`.
    fn read_equivalences(&self, policy: &Policy, columns: &ColumnSet) -> PyResult<Option<Arc<Equivalences>>> {
        let wrong = |message: &str| Err(PyValueError::new_err(message.to_string()));
        let Some(bytes) = &self.equivalences else {
            return match self.is_protocol() || columns.contains(ColumnId::KeyProtocol) {
                true => {
                    wrong("key=\"protocol\" and the column key_protocol need equivalences=; see irikey.equivalences()")
                }
                false => Ok(None),
            };
        };
        if !self.is_protocol() && !columns.contains(ColumnId::KeyProtocol) {
            return wrong("equivalences= needs key=\"protocol\" or the column key_protocol");
        }
        if policy.rung != Rung::Scheme {
            return wrong("the column key_protocol needs key=\"scheme\"");
        }
        let refused = |error: EquivalencesTableError| PyValueError::new_err(error.to_string());
        let read = || -> Result<Equivalences, EquivalencesTableError> {
            let stream = StreamReader::try_new(&bytes[..], None)?;
            let mut reader = EquivalencesReader::new(&stream.schema(), policy)?;
            stream.into_iter().try_for_each(|batch| reader.add(&batch?))?;
            reader.finish()
        };
        read().map(|read| Some(Arc::new(read))).map_err(refused)
    }

    /// Returns the policy of the options.
    ///
    /// # Errors
    /// An option is invalid.
    pub fn policy(&self) -> PyResult<Policy> {
        let columns = self.columns()?;
        if let Some(base) = &self.base_uri {
            Base::new(base.as_bytes()).map_err(|fault| PyValueError::new_err(format!("base_uri: {fault}")))?;
        }
        let recipe = |column: &'static str| match Recipe::parse(column) {
            Ok(recipe) => Ok(RecipeColumn { column, recipe }),
            Err(error) => Err(PyValueError::new_err(error.to_string())),
        };
        let recipes = columns.recipes().into_iter().map(recipe).collect::<PyResult<Vec<_>>>()?;
        let profile = Profile::from_name(&self.profile);
        let unknown = || PyValueError::new_err(format!("unknown profile {:?}", self.profile));
        let policy = Policy {
            profile: profile.ok_or_else(unknown)?,
            intake: if self.strict { ParseMode::Strict } else { ParseMode::Lenient },
            rung: if self.is_protocol() { Rung::Scheme } else { rung(&self.key)? },
            more_keys: columns.key_rungs(),
            recipes,
            algorithm: match self.key_hash.as_str() {
                "xxh3" => KeyAlgorithm::Xxh3,
                "blake3" => KeyAlgorithm::Blake3,
                other => {
                    return Err(PyValueError::new_err(format!("key_hash is \"xxh3\" or \"blake3\", not {other:?}")));
                }
            },
            base: self.base_uri.clone().map(String::into_bytes),
            literal_base: self.literal_base,
            drop_fragment: self.drop_fragment,
            assume_scheme: self.assume_scheme.clone(),
            spoofing_flags: columns.contains(ColumnId::SpoofingFlags),
            has_record_charsets: self.charset.is_some(),
            has_record_query_charsets: self.query_charset.is_some(),
            ..Policy::default()
        };
        Ok(Policy { equivalences: self.read_equivalences(&policy, &columns)?, ..policy })
    }
}

/// Returns the rung with this name.
pub fn rung(name: &str) -> PyResult<Rung> {
    let names = || Rung::ALL.map(Rung::name).join(", ");
    let found = Rung::ALL.into_iter().find(|rung| rung.name() == name);
    found.ok_or_else(|| PyValueError::new_err(format!("unknown rung {name:?}; expected one of {}", names())))
}
