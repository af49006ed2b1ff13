//! Options of reading tables, and the choice of columns.

use arrow::datatypes::{DataType, Schema};

use crate::input::error::Defect;
use crate::record::csv::{ColumnChoice, ColumnChoiceError, URL_COLUMN_NAMES};
use crate::record::fields::{CarriedField, FieldSet};

/// Which columns hold the URL and its base.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableColumns {
    /// Column of the URL; `None` means the first column with a known name.
    pub(crate) url: Option<ColumnChoice>,
    /// Column of the base URL.
    pub(crate) base: Option<ColumnChoice>,
}

/// How a table is read.
#[derive(Clone, Debug)]
pub(crate) struct TableOptions {
    pub(crate) columns: TableColumns,
    /// Fields that are carried; the columns of other fields are not read.
    pub(crate) carry: FieldSet,
    /// Threads that decode at the same time; with 1, the reading thread decodes.
    pub(crate) threads: usize,
    /// Length limit of a row: bytes of all its texts that are read.
    pub(crate) max_record_len: usize,
    /// Limit of decoded rows that are not read yet, bytes per thread.
    pub(crate) held_len: usize,
}

/// The columns of one table that are read.
#[derive(Clone, Debug)]
pub(super) struct TableProjection {
    pub(super) url: String,
    /// The column with the texts of rows that have no URL, as in tables of this program: `input` beside `uri`.
    pub(super) input: Option<String>,
    pub(super) base: Option<String>,
    pub(super) carry: FieldSet,
    pub(super) max_record_len: usize,
    /// URLs are strings, not bytes.
    pub(super) is_text: bool,
}

impl TableProjection {
    /// Finds the columns in `schema`.
    ///
    /// # Errors
    /// A requested column does not exist, or no column has a known name.
    pub(super) fn find(schema: &Schema, options: &TableOptions) -> Result<TableProjection, Defect> {
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let columns = || names.join(", ");
        // As in CSV, letter case does not matter; but a table can have names that differ in nothing else.
        let named = |name: &str| {
            let exact = names.iter().find(|other| **other == name);
            exact.or_else(|| names.iter().find(|other| other.eq_ignore_ascii_case(name)))
        };
        let find = |column: &ColumnChoice| {
            let found = match column {
                ColumnChoice::Number(number) => number.checked_sub(1).and_then(|i| names.get(i)),
                ColumnChoice::Name(name) => named(name),
            };
            let missing = || ColumnChoiceError::Missing { chosen: column.clone(), columns: columns() };
            found.ok_or_else(|| Defect::NoColumn(missing()))
        };
        let url = match &options.columns.url {
            Some(column) => find(column)?,
            None => {
                let known = URL_COLUMN_NAMES.iter().find_map(|name| named(name));
                known.ok_or_else(|| Defect::Columns(ColumnChoiceError::Unclear(columns()).to_string()))?
            }
        };
        let base = options.columns.base.as_ref().map(find).transpose()?;
        let (url, base) = (url.to_string(), base.map(|name| name.to_string()));
        let input = input_column(schema).filter(|_| url == "uri").map(str::to_string);
        let (carry, max_record_len) = (options.carry, options.max_record_len);
        let is_text = input.is_none() && schema.field_with_name(&url).is_ok_and(|field| has_strings(field.data_type()));
        let found = TableProjection { url, input, base, carry, max_record_len, is_text };
        // Columns are read by their names.
        let is_ambiguous = |name: &&str| names.iter().filter(|other| *other == name).count() > 1;
        if let Some(name) = found.names().find(is_ambiguous) {
            return Err(Defect::Columns(format!("several columns have the name {name}; rename them")));
        }
        Ok(found)
    }

    /// Whether the column `name` is read.
    pub(super) fn has(&self, name: &str) -> bool {
        self.names().any(|column| column == name)
    }

    /// The names of the columns to read. Columns of carried fields may be missing in the table.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let carried = CarriedField::ALL.iter().filter(|field| self.carry.contains(**field));
        let columns = [&self.url].into_iter().chain(&self.input).chain(&self.base).map(String::as_str);
        columns.chain(carried.map(|field| field.column()))
    }
}

/// The name of the column `input`, if there is one with texts.
fn input_column(schema: &Schema) -> Option<&str> {
    let mut named = schema.fields().iter().filter(|field| field.name() == "input");
    let (Some(field), None) = (named.next(), named.next()) else { return None };
    has_texts(field.data_type()).then(|| field.name().as_str())
}

/// Whether an array of a type stores strings, perhaps in a dictionary.
fn has_strings(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => values.is_string(),
        data_type => data_type.is_string(),
    }
}

/// Whether an array of a type stores texts, or bytes of any length.
pub(super) fn has_texts(data_type: &DataType) -> bool {
    data_type.is_string() || (data_type.is_binary() && !matches!(data_type, DataType::FixedSizeBinary(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::{DataType, Field};

    #[test]
    fn columns_are_found_by_name_in_any_case_or_by_number() {
        let url_of = |names: &[&str], chosen: Option<ColumnChoice>| {
            let fields: Vec<_> = names.iter().map(|name| Field::new(*name, DataType::Utf8, true)).collect();
            let columns = TableColumns { url: chosen, base: None };
            let (carry, threads, max_record_len, held_len) = (FieldSet::default(), 1, 1, 1);
            let options = TableOptions { columns, carry, threads, max_record_len, held_len };
            TableProjection::find(&Schema::new(fields), &options)
                .map(|found| found.url)
                .map_err(|error| error.to_string())
        };
        let name = |name: &str| Some(ColumnChoice::Name(name.to_string()));
        assert_eq!(url_of(&["id", "URL"], None).as_deref(), Ok("URL"));
        assert_eq!(url_of(&["Page", "page"], name("page")).as_deref(), Ok("page"));
        assert_eq!(url_of(&["Page"], name("pAGE")).as_deref(), Ok("Page"));
        assert_eq!(url_of(&["a", "b"], Some(ColumnChoice::Number(2))).as_deref(), Ok("b"));
        for chosen in [name("url"), Some(ColumnChoice::Number(3)), None] {
            assert!(url_of(&["url", "a", "url"], chosen).unwrap_err().contains("several columns have the name url"));
        }
        assert_eq!(url_of(&["a", "url", "a"], None).as_deref(), Ok("url"));
        for chosen in [None, name("c"), Some(ColumnChoice::Number(0)), Some(ColumnChoice::Number(3))] {
            assert!(url_of(&["a", "b"], chosen).unwrap_err().contains("the columns are a, b"));
        }
    }

    #[test]
    fn input_is_read_beside_uri() {
        let input_of = |names: &[&str], kind: DataType, url: Option<ColumnChoice>| {
            let field =
                |name: &&str| Field::new(*name, if *name == "input" { kind.clone() } else { DataType::Utf8 }, true);
            let columns = TableColumns { url, base: None };
            let (carry, threads, max_record_len, held_len) = (FieldSet::default(), 1, 1, 1);
            let options = TableOptions { columns, carry, threads, max_record_len, held_len };
            TableProjection::find(&Schema::new(names.iter().map(field).collect::<Vec<_>>()), &options).unwrap().input
        };
        assert_eq!(input_of(&["input", "uri"], DataType::Binary, None).as_deref(), Some("input"));
        assert_eq!(input_of(&["input", "uri"], DataType::Int64, None), None);
        assert_eq!(input_of(&["input", "input", "uri"], DataType::Binary, None), None);
        assert_eq!(input_of(&["input", "uri", "url"], DataType::Binary, None), None);
        let name = |name: &str| Some(ColumnChoice::Name(name.to_string()));
        assert_eq!(input_of(&["input", "uri"], DataType::Binary, name("uri")).as_deref(), Some("input"));
        assert_eq!(input_of(&["input", "uri", "x"], DataType::Binary, name("x")), None);
        assert_eq!(input_of(&["input", "URI"], DataType::Binary, None), None);
    }
}
