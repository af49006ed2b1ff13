//! The options of a canonicalizer as Python passes them, converted to a [`Policy`] and output columns. They are kept as they
//! are, so that a canonicalizer can be pickled.

use std::sync::Arc;

use arrow::ipc::reader::StreamReader;
use irikey::batch::{ColumnId, ColumnSet, EquivalencesReader, EquivalencesTableError};
use irikey::canon::{MaxUrlLen, Policy, PolicyError, RecipeColumn, Rung};
use irikey::encoding::Charset;
use irikey::iri::{Backslashes, CharacterReferences, ParseMode, PreprocessOptions, Profile, Spaces};
use irikey::key::psl::SuffixList;
use irikey::key::{KeyAlgorithm, Recipe};
use irikey::learn::Equivalences;
use irikey::record::csv::{ColumnChoice, CsvOptions};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::argument::{Contents, FromArgument, Options};

/// The rung that needs equivalences.
const PROTOCOL: &str = "protocol";

/// The recipe of the columns `key_rules` and `url_rules`.
pub const RULES: &str = "rules";

/// Parameters of functions that read files. They have a flag of the command, as the options of [`Configuration`] have.
const FILE_PARAMETERS: [&str; 3] = ["format", "record_types", "threads"];

/// The column of a batch that holds the URLs, if none was chosen.
const DEFAULT_URL_COLUMN: &str = "url";

/// The default columns of results.
const DEFAULT_COLUMNS: [&str; 5] = ["uri", "key", "fault", "fault_at", "flags"];

/// Returns whether a column needs a record of a file: its position there, or a field that its format states besides the
/// URL. Rows of a batch have neither.
fn needs_file(column: ColumnId) -> bool {
    matches!(
        column,
        ColumnId::Source
            | ColumnId::PathValue(_)
            | ColumnId::Record
            | ColumnId::RecordOffset
            | ColumnId::Input
            | ColumnId::Carried(_)
    )
}

/// A value that is the same in all rows, instead of the name of a column: `base=irikey.lit("http://example.org/")`.
#[pyclass(frozen, eq, hash, module = "irikey", name = "lit")]
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Literal {
    /// The value.
    #[pyo3(get)]
    value: String,
}

#[pymethods]
impl Literal {
    #[new]
    fn new(value: &Bound<'_, PyAny>) -> PyResult<Literal> {
        Ok(Literal { value: String::from_argument("value", value)? })
    }

    fn __getnewargs__(&self) -> (String,) {
        (self.value.clone(),)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("irikey.lit({})", PyString::new(py, &self.value).repr()?))
    }
}

/// An input besides the URL: the name of a column, a literal, or both; the literal is for rows without a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operand {
    pub column: Option<String>,
    pub literal: Option<String>,
}

impl FromArgument for Operand {
    fn from_argument(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Operand> {
        if let Ok(literal) = value.cast::<Literal>() {
            return Ok(Operand { column: None, literal: Some(literal.get().value.clone()) });
        }
        if value.is_instance_of::<PyString>() {
            return Ok(Operand { column: Some(value.extract()?), literal: None });
        }
        if let Ok((column, literal)) = value.extract::<(String, Py<Literal>)>() {
            return Ok(Operand { column: Some(column), literal: Some(literal.get().value.clone()) });
        }
        let kind = value.get_type().name()?;
        let expected = "expected the name of a column, lit(value), or (column, lit(value))";
        Err(PyTypeError::new_err(format!("{name}: {expected}, found {kind}")))
    }
}

impl<'py> IntoPyObject<'py> for &Operand {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let literal = |value: &String| Bound::new(py, Literal { value: value.clone() });
        Ok(match (&self.column, &self.literal) {
            (None, None) => py.None().into_bound(py),
            (Some(column), None) => PyString::new(py, column).into_any(),
            (None, Some(value)) => literal(value)?.into_any(),
            (Some(column), Some(value)) => (column, literal(value)?).into_pyobject(py)?.into_any(),
        })
    }
}

/// Defines [`Configuration`] by the options of the constructor in Python: the name, type and default of each.
macro_rules! configuration {
    ($($(#[$doc:meta])* $name:ident: $kind:ty = $default:expr,)*) => {
        /// All options of a canonicalizer.
        #[derive(Clone, Debug)]
        pub struct Configuration {
            $($(#[$doc])* pub $name: $kind,)*
        }

        impl Default for Configuration {
            fn default() -> Configuration {
                Configuration { $($name: $default,)* }
            }
        }

        impl Configuration {
            /// The names of the options.
            const OPTIONS: &[&str] = &[$(stringify!($name)),*];

            /// Returns the configuration of a call of the constructor. The values of options are not checked, only their types.
            ///
            /// # Errors
            /// An option does not exist, or has another type; a file cannot be read.
            pub fn of(options: Options<'_, '_>) -> PyResult<Configuration> {
                options.check("Canonicalizer", Configuration::OPTIONS)?;
                let defaults = Configuration::default();
                Ok(Configuration { $($name: options.get(stringify!($name))?.unwrap_or(defaults.$name),)* })
            }

            /// Returns all options by name, as the constructor takes them.
            pub fn arguments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
                let arguments = PyDict::new(py);
                $(arguments.set_item(stringify!($name), &self.$name)?;)*
                Ok(arguments)
            }
        }
    };
}

configuration! {
    /// The column of the URLs: by default `url` in a batch; in a file it is found as the command finds it.
    url: Option<String> = None,
    base: Operand = Operand::default(),
    charset: Operand = Operand::default(),
    query_charset: Operand = Operand::default(),
    rung: String = Rung::Scheme.name().to_string(),
    recipe: Option<String> = None,
    columns: Option<Vec<String>> = None,
    strict: bool = false,
    drop_fragment: bool = false,
    literal_base: bool = false,
    assume_scheme: Option<String> = None,
    /// Longest URL in bytes.
    max_url: i64 = MaxUrlLen::default().0 as i64,
    profile: String = "rfc3987".to_string(),
    key_hash: String = "xxh3".to_string(),
    trim: bool = false,
    inner_spaces: Option<String> = None,
    character_references: Option<String> = None,
    backslashes: Option<String> = None,
    /// A Public Suffix List in the format of publicsuffix.org.
    psl: Option<Contents> = None,
    /// The table that `irikey learn` wrote, as an Arrow IPC stream.
    equivalences: Option<Contents> = None,
    types: String = "arrow".to_string(),
}

/// The types of result columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Types {
    /// As in files of irikey: keys of fixed width, dictionaries, unsigned numbers.
    Arrow,
    /// Types that Spark reads: binary, text, long.
    Spark,
}

/// The columns of results: the name of each, and its place among the columns that the core makes.
#[derive(Clone, Debug)]
pub struct Outputs {
    pub columns: ColumnSet,
    pub selected: Vec<(String, usize)>,
}

fn invalid(message: impl Into<String>) -> PyErr {
    PyValueError::new_err(message.into())
}

/// Returns the value of a named choice; `None` is the default.
fn choice<T: Copy + Default>(parameter: &str, name: Option<&str>, choices: &[(&str, T)]) -> PyResult<T> {
    let Some(name) = name else { return Ok(T::default()) };
    let found = choices.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    let names = || choices.iter().map(|(known, _)| format!("{known:?}")).collect::<Vec<_>>().join(" or ");
    found.ok_or_else(|| invalid(format!("{parameter} is {}, not {name:?}", names())))
}

impl Configuration {
    /// Returns the column of a batch that holds the URLs.
    pub fn url_column(&self) -> &str {
        self.url.as_deref().unwrap_or(DEFAULT_URL_COLUMN)
    }

    /// Returns the columns of a batch that are read; the first one holds the URLs.
    pub fn input_columns(&self) -> Vec<&str> {
        let others = [&self.base, &self.charset, &self.query_charset];
        let others = others.into_iter().filter_map(|operand| operand.column.as_deref());
        std::iter::once(self.url_column()).chain(others).collect()
    }

    /// Returns the columns of a table that hold the URLs, bases and charsets, as the flags `--column`, `--base-column`,
    /// `--charset-column` and `--query-charset-column` of the command choose them.
    pub fn table_columns(&self) -> CsvOptions {
        let column = |name: &Option<String>| name.as_deref().map(ColumnChoice::parse);
        CsvOptions {
            url: column(&self.url),
            base: column(&self.base.column),
            charset: column(&self.charset.column),
            query_charset: column(&self.query_charset.column),
            ..CsvOptions::default()
        }
    }

    /// Returns the columns of results. With a recipe, the column `key` is that of the recipe; for the rung `protocol`, it is that
    /// of representatives.
    ///
    /// # Errors
    /// The name is unknown, or the column exists only in files and `of_files` is false.
    pub fn outputs(&self, of_files: bool) -> PyResult<Outputs> {
        let names: Vec<&str> = match &self.columns {
            Some(names) => names.iter().map(String::as_str).collect(),
            None => DEFAULT_COLUMNS.to_vec(),
        };
        let mut distinct: Vec<&str> = Vec::new();
        for name in names {
            if !distinct.contains(&name) {
                distinct.push(name);
            }
        }
        let unknown = |error: irikey::batch::UnknownColumn| invalid(format!("columns: {error}"));
        let columns = ColumnSet::named(distinct.iter().map(|name| self.source_of(name))).map_err(unknown)?;
        if let Some(column) = columns.iter().find(|column| !of_files && needs_file(column.id)) {
            let message =
                format!("columns: {:?} describes records of files; rows of a batch have no such value", column.name);
            return Err(invalid(message));
        }
        let place = |name: &&str| {
            // `NAME=` is the column NAME of values in paths.
            let [name, source] = [*name, self.source_of(name)].map(|name| name.strip_suffix('=').unwrap_or(name));
            let place = columns.names().position(|made| made == source);
            let missing = || invalid(format!("columns: no column is made for {name:?}"));
            Ok((name.to_string(), place.ok_or_else(missing)?))
        };
        let selected = distinct.iter().map(place).collect::<PyResult<_>>()?;
        Ok(Outputs { selected, columns })
    }

    /// Returns the column of the core with the values of the result column `name`.
    fn source_of<'a>(&self, name: &'a str) -> &'a str {
        match name {
            "key" if self.recipe.is_some() => "key_rules",
            "key" if self.is_protocol() => "key_protocol",
            name => name,
        }
    }

    /// Returns the types of result columns.
    ///
    /// # Errors
    /// The name is unknown.
    pub fn types(&self) -> PyResult<Types> {
        match self.types.as_str() {
            "arrow" => Ok(Types::Arrow),
            "spark" => Ok(Types::Spark),
            other => Err(invalid(format!("types is \"arrow\" or \"spark\", not {other:?}"))),
        }
    }

    /// Returns whether the column `key` is that of representatives.
    pub fn is_protocol(&self) -> bool {
        self.rung == PROTOCOL
    }

    /// Returns the equivalences for keys of `policy`: those that it has, or what is read from the table.
    fn read_equivalences(&self, policy: &Policy, columns: &ColumnSet) -> PyResult<Option<Arc<Equivalences>>> {
        let is_needed = self.is_protocol() || columns.contains(ColumnId::KeyProtocol);
        let Some(Contents(bytes)) = &self.equivalences else {
            return match is_needed {
                true => Err(invalid(
                    "rung=\"protocol\" and the column key_protocol need equivalences=; see irikey.equivalences()",
                )),
                false => Ok(None),
            };
        };
        if !is_needed {
            return Err(invalid("equivalences= needs rung=\"protocol\" or the column key_protocol"));
        }
        if policy.rung != Rung::Scheme {
            return Err(invalid("the column key_protocol needs rung=\"scheme\""));
        }
        if let Some(parsed) = &policy.equivalences {
            return Ok(Some(parsed.clone()));
        }
        let refused = |error: EquivalencesTableError| invalid(python_terms(&format!("equivalences: {error}")));
        let read = || -> Result<Equivalences, EquivalencesTableError> {
            let stream = StreamReader::try_new(&bytes[..], None)?;
            let mut reader = EquivalencesReader::new(&stream.schema(), policy)?;
            stream.into_iter().try_for_each(|batch| reader.add(&batch?))?;
            reader.finish()
        };
        read().map(|read| Some(Arc::new(read))).map_err(refused)
    }

    fn preprocess(&self, profile: &Profile) -> PyResult<PreprocessOptions> {
        let spaces = [("remove", Spaces::Removed), ("encode", Spaces::Encoded)];
        if self.inner_spaces.as_deref() == Some("split") {
            return Err(invalid("inner_spaces=\"split\" makes several rows of one; split the column before the call"));
        }
        let references = [("xml", CharacterReferences::Xml), ("html", CharacterReferences::Html)];
        let backslashes = [("slash", Backslashes::Slash), ("encode", Backslashes::Encoded)];
        Ok(PreprocessOptions {
            is_trimmed: self.trim || profile.is_field_of_references,
            spaces: choice("inner_spaces", self.inner_spaces.as_deref(), &spaces)?,
            character_references: choice("character_references", self.character_references.as_deref(), &references)?,
            backslashes: choice("backslashes", self.backslashes.as_deref(), &backslashes)?,
        })
    }

    /// Returns the profile.
    fn profile(&self) -> PyResult<&'static Profile> {
        let names = || Profile::ALL.map(|profile| profile.name).join(", ");
        let unknown = || invalid(format!("unknown profile {:?}; expected one of {}", self.profile, names()));
        Profile::named(&self.profile).ok_or_else(unknown)
    }

    /// Refuses options that contradict each other, as the command does.
    fn check(&self) -> PyResult<()> {
        if self.literal_base && self.base == Operand::default() {
            return Err(invalid("literal_base needs base="));
        }
        if self.profile == "whatwg" && (self.strict || self.literal_base) {
            return Err(invalid("profile=\"whatwg\" parses every URL in one way; omit strict and literal_base"));
        }
        Ok(())
    }

    /// Returns the length of the longest URL.
    fn max_url_len(&self) -> PyResult<MaxUrlLen> {
        let most = MaxUrlLen::MAX.0;
        let len = usize::try_from(self.max_url).ok().filter(|len| (1..=most).contains(len));
        len.map(MaxUrlLen).ok_or_else(|| invalid(format!("max_url is from 1 to {most} bytes")))
    }

    fn recipes(&self, columns: &ColumnSet) -> PyResult<Vec<RecipeColumn>> {
        let recipe = |column: &'static str| {
            let name = match (&self.recipe, column) {
                (Some(name), RULES) => name.as_str(),
                (None, RULES) => return Err(invalid("the columns key_rules and url_rules need recipe=")),
                (_, name) => name,
            };
            Ok(RecipeColumn { column, recipe: parse_recipe(name)? })
        };
        columns.recipes().into_iter().map(recipe).collect()
    }

    fn suffixes(&self) -> PyResult<SuffixList> {
        let Some(Contents(bytes)) = &self.psl else { return Ok(SuffixList::default()) };
        let text = std::str::from_utf8(bytes).map_err(|_| invalid("psl: the list is not UTF-8"))?;
        SuffixList::parse(text).map_err(|error| invalid(format!("psl: {error}")))
    }

    /// Returns the policy of the options for these columns. `parsed` is a policy of the same options for other columns, whose
    /// suffix list and equivalences are used again.
    ///
    /// # Errors
    /// An option is invalid.
    pub fn policy(&self, columns: &ColumnSet, parsed: Option<&Policy>) -> PyResult<Policy> {
        self.check()?;
        let max_url_len = self.max_url_len()?;
        if let Some(recipe) = &self.recipe {
            parse_recipe(recipe)?;
        }
        let profile = self.profile()?;
        let policy = Policy {
            profile,
            mode: if self.strict { ParseMode::Strict } else { ParseMode::Lenient },
            rung: if self.is_protocol() { Rung::Scheme } else { rung(&self.rung, &[PROTOCOL])? },
            recipes: self.recipes(columns)?,
            algorithm: algorithm(&self.key_hash)?,
            base: self.base.literal.clone().map(String::into_bytes),
            literal_base: self.literal_base,
            drop_fragment: self.drop_fragment,
            assume_scheme: self.assume_scheme.as_ref().map(|scheme| scheme.to_ascii_lowercase()),
            max_url_len,
            preprocess: self.preprocess(profile)?,
            charset: charset("charset", &self.charset)?,
            query_charset: charset("query_charset", &self.query_charset)?,
            has_record_charsets: self.charset.column.is_some(),
            has_record_query_charsets: self.query_charset.column.is_some(),
            suffixes: parsed.map_or_else(|| self.suffixes(), |parsed| Ok(parsed.suffixes.clone()))?,
            equivalences: parsed.and_then(|parsed| parsed.equivalences.clone()),
            ..Policy::default()
        };
        policy.check().map_err(|error| match error {
            PolicyError::AssumedScheme(text) => {
                invalid(format!("assume_scheme is the name of a scheme such as \"https\", not {text:?}"))
            }
            error => invalid(error.to_string()),
        })?;
        policy.check_base().map_err(|fault| invalid(python_terms(&format!("base: {fault}"))))?;
        let policy = columns.complete_policy(policy);
        Ok(Policy { equivalences: self.read_equivalences(&policy, columns)?, ..policy })
    }
}

fn charset(parameter: &str, operand: &Operand) -> PyResult<Option<Charset>> {
    let Some(label) = &operand.literal else { return Ok(None) };
    let unknown =
        || invalid(format!("{parameter}: unknown charset {label:?}; expected a label of the Encoding Standard"));
    Charset::named(label).map(Some).ok_or_else(unknown)
}

/// Returns the rung with this name. `others` are names that the caller accepts as well.
pub fn rung(name: &str, others: &[&str]) -> PyResult<Rung> {
    let names = || [&Rung::ALL.map(Rung::name), others].concat().join(", ");
    Rung::named(name).ok_or_else(|| invalid(format!("unknown rung {name:?}; expected one of {}", names())))
}

/// Returns the recipe with this name and changes.
pub fn parse_recipe(name: &str) -> PyResult<Recipe> {
    Recipe::parse(name).map_err(|error| invalid(format!("recipe: {error}")))
}

/// Returns the hash function with this name.
pub fn algorithm(name: &str) -> PyResult<KeyAlgorithm> {
    match name {
        "xxh3" => Ok(KeyAlgorithm::Xxh3),
        "blake3" => Ok(KeyAlgorithm::Blake3),
        other => Err(invalid(format!("key_hash is \"xxh3\" or \"blake3\", not {other:?}"))),
    }
}

/// Returns a message of the library with the names of parameters instead of flags: `base=` instead of `--base`. Flags without a
/// parameter, and other words with hyphens such as names of files, do not change.
pub fn python_terms(message: &str) -> String {
    // Only the command can choose these.
    let message = message.replace(" (--format)", "").replace(", --max-record", "");
    message.split_inclusive(' ').map(|word| python_term(word).unwrap_or_else(|| word.to_string())).collect()
}

/// Returns a word with the name of a parameter instead of a flag; `None` if it is no flag, or one without a parameter.
fn python_term(word: &str) -> Option<String> {
    let at = word.find("--").filter(|at| word[..*at].bytes().all(|byte| b"(`".contains(&byte)))?;
    let (before, flag) = (&word[..at], &word[at + 2..]);
    let (flag, after) = flag.split_at(flag.find(|c: char| !c.is_ascii_lowercase() && c != '-').unwrap_or(flag.len()));
    let name = match flag {
        "column" => "url".to_string(),
        "rules" => "recipe".to_string(),
        flag => flag.strip_suffix("-column").unwrap_or(flag).replace('-', "_"),
    };
    let is_known = Configuration::OPTIONS.contains(&&*name) || FILE_PARAMETERS.contains(&&*name);
    let is_whole = after.is_empty() || after.starts_with([' ', ')', ',', ';', '`']);
    (is_known && is_whole).then(|| format!("{before}{name}={after}"))
}
