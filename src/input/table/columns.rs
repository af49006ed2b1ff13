//! The columns of a table that count. In: its schema, and what is wanted. Out: their names.

use arrow::datatypes::Schema;

use super::super::error::Defect;
use super::TableOptions;
use crate::record::csv::{CsvColumn, URL_COLUMN_NAMES};
use crate::record::fields::{CarriedField, FieldSet};

/// Which columns hold the URL and its base; unsaid, the URL's is found by its name.
#[derive(Clone, Debug, Default)]
pub struct TableColumns {
    /// The URL's.
    pub url: Option<CsvColumn>,
    /// The base's.
    pub base: Option<CsvColumn>,
}

/// The columns of one table that are read.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) url: String,
    pub(super) base: Option<String>,
    pub(super) carry: FieldSet,
    pub(super) max_record_len: usize,
}

impl Wanted {
    /// Finds them.
    ///
    /// # Errors
    /// There is no such column, or none that is known to hold URLs.
    pub(super) fn find(schema: &Schema, options: &TableOptions) -> Result<Wanted, Defect> {
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let missing = |wanted: &dyn std::fmt::Display| {
            Defect::Table("columns", format!("there is no column {wanted}; there are {}", names.join(", ")))
        };
        let asked = |column: &CsvColumn| match column {
            CsvColumn::Number(number) => {
                number.checked_sub(1).and_then(|i| names.get(i)).ok_or_else(|| missing(column))
            }
            CsvColumn::Name(name) => names.iter().find(|other| *other == name).ok_or_else(|| missing(column)),
        };
        let url = match &options.columns.url {
            Some(column) => asked(column)?,
            None => URL_COLUMN_NAMES
                .iter()
                .find(|name| names.contains(name))
                .ok_or_else(|| missing(&"of a URL: choose one with --column"))?,
        };
        let base = options.columns.base.as_ref().map(asked).transpose()?;
        let (url, base) = (url.to_string(), base.map(|name| name.to_string()));
        Ok(Wanted { url, base, carry: options.carry, max_record_len: options.max_record_len })
    }

    /// The column `name` is read.
    pub(super) fn has(&self, name: &str) -> bool {
        self.names().any(|wanted| wanted == name)
    }

    /// All of them; not each is there.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let carried = CarriedField::ALL.iter().filter(|field| self.carry.contains(**field));
        let columns = [&self.url].into_iter().chain(&self.base).map(String::as_str);
        columns.chain(carried.map(|field| field.column()))
    }
}
