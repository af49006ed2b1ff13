//! What rows are sorted by: names of columns, each ascending or, with a `-` before it, descending. Nulls come last.

use std::fmt;

use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;
use arrow::row::{RowConverter, SortField};

/// One column of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderColumn {
    /// Its name.
    pub name: String,
    /// From high to low.
    pub descending: bool,
    /// Nulls come before all else.
    pub nulls_first: bool,
}

/// An order: by the first column, where that is equal by the second, and so on.
///
/// ```
/// use irikey::sort::SortBy;
/// let by = SortBy::parse(["url_surtkey", "-fetch_time"]);
/// assert_eq!(by.to_string(), "url_surtkey,-fetch_time");
/// assert!(by.columns()[1].descending);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SortBy(Vec<OrderColumn>);

impl SortBy {
    /// Names as flags have them; a name said twice counts once.
    pub fn parse<'a>(names: impl IntoIterator<Item = &'a str>) -> SortBy {
        let mut columns: Vec<OrderColumn> = Vec::new();
        for name in names {
            let (descending, name) = match name.strip_prefix('-') {
                Some(name) => (true, name),
                None => (false, name),
            };
            if columns.iter().all(|column| column.name != name) {
                columns.push(OrderColumn { name: name.to_string(), descending, nulls_first: false });
            }
        }
        SortBy(columns)
    }

    /// The same with nulls before all else.
    pub fn with_nulls_first(mut self) -> SortBy {
        self.0.iter_mut().for_each(|column| column.nulls_first = true);
        self
    }

    /// An order of these columns.
    pub fn of(columns: Vec<OrderColumn>) -> SortBy {
        SortBy(columns)
    }

    /// The columns, the one that counts most first.
    pub fn columns(&self) -> &[OrderColumn] {
        &self.0
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|column| column.name.as_str())
    }

    /// There is no order.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What makes comparable bytes of arrays of these types, in the order of the columns.
    ///
    /// # Errors
    /// A type that has no order.
    pub fn converter(&self, types: impl IntoIterator<Item = DataType>) -> Result<RowConverter, ArrowError> {
        let field = |(column, kind): (&OrderColumn, DataType)| {
            let options = SortOptions { descending: column.descending, nulls_first: column.nulls_first };
            SortField::new_with_options(kind, options)
        };
        RowConverter::new(self.0.iter().zip(types).map(field).collect())
    }

    /// Places of the columns in a schema.
    ///
    /// # Errors
    /// The first name that no column bears.
    pub fn places(&self, schema: &SchemaRef) -> Result<Vec<usize>, ArrowError> {
        self.names().map(|name| schema.index_of(name)).collect()
    }
}

impl fmt::Display for SortBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, column) in self.0.iter().enumerate() {
            let (comma, sign) = (if i > 0 { "," } else { "" }, if column.descending { "-" } else { "" });
            write!(f, "{comma}{sign}{}", column.name)?;
        }
        Ok(())
    }
}
