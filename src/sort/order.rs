//! The order of rows: which columns they are sorted by ([`SortBy`]), and a check that rows are in it ([`OrderCheck`]).
//!
//! Tables compare by columns; nulls come last unless asked otherwise. Lines of CDX and CDXJ compare by key and time,
//! their first two fields; other lines compare as bytes.

use std::fmt;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::compute::{SortOptions, cast};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;
use arrow::row::{OwnedRow, RowConverter, SortField};
use arrow::util::display::array_value_to_string;

/// The key under which the metadata of a file states its order.
pub(crate) const SORT_METADATA_KEY: &str = "irikey.sort";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OrderColumn {
    /// Name of the column.
    pub name: String,
    /// The highest value comes first.
    pub descending: bool,
    /// Nulls come before all values.
    pub nulls_first: bool,
}

/// The columns that rows are sorted by, the most significant first.
///
/// ```
/// use irikey::sort::SortBy;
/// let by = SortBy::parse(["url_surtkey", "-fetch_time"]);
/// assert_eq!(by.to_string(), "url_surtkey,-fetch_time");
/// assert!(by.names().eq(["url_surtkey", "fetch_time"]));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SortBy(Vec<OrderColumn>);

impl SortBy {
    /// Column names, each descending if it begins with `-`. Repeated names are ignored.
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

    pub(crate) fn from_columns(columns: Vec<OrderColumn>) -> SortBy {
        SortBy(columns)
    }

    /// Returns the order by columns of these names, one for each column, instead of its own.
    pub(crate) fn renamed<'a>(self, names: impl IntoIterator<Item = &'a str>) -> SortBy {
        let columns = self.0.into_iter().zip(names);
        SortBy(columns.map(|(column, name)| OrderColumn { name: name.to_string(), ..column }).collect())
    }

    /// The columns, the most significant first.
    pub(crate) fn columns(&self) -> &[OrderColumn] {
        &self.0
    }

    /// The names of the columns.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|column| column.name.as_str())
    }

    /// Rows are not sorted.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A converter of arrays of these types, one per column, to bytes that compare in this order.
    pub(crate) fn converter(&self, types: impl IntoIterator<Item = DataType>) -> Result<RowConverter, ArrowError> {
        let field = |(column, kind): (&OrderColumn, DataType)| {
            let options = SortOptions { descending: column.descending, nulls_first: column.nulls_first };
            SortField::new_with_options(kind, options)
        };
        RowConverter::new(self.0.iter().zip(types).map(field).collect())
    }

    /// Indices of the columns in a schema; an error if one is missing.
    pub(crate) fn indices(&self, schema: &SchemaRef) -> Result<Vec<usize>, ArrowError> {
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

/// Why rows are not in order, or cannot be compared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OrderError {
    /// A row belongs before the previous one.
    #[error("row {row}: {found} comes after {previous}")]
    OutOfOrder {
        /// Number of the row in its file, from 1.
        row: u64,
        /// Its values in the columns of the order.
        found: String,
        /// The values of the row before it.
        previous: String,
    },
    /// A column has another type than in the first table, and values of the two types may compare in another way.
    #[error(
        "column {column} has the type {found}, but {first} in an earlier file; check files with different types by themselves"
    )]
    Types {
        /// Name of the column.
        column: String,
        /// Its type in the first table.
        first: DataType,
        /// Its type in this table.
        found: DataType,
    },
    /// A column is missing, or its type has no order.
    #[error(transparent)]
    Columns(#[from] ArrowError),
}

impl OrderError {
    /// The error of rows with so many rows of the file before them.
    pub(crate) fn after_rows(self, rows: u64) -> OrderError {
        match self {
            OrderError::OutOfOrder { row, found, previous } => {
                OrderError::OutOfOrder { row: rows + row, found, previous }
            }
            error => error,
        }
    }
}

/// Checks that rows, given in the order of their files, ascend.
#[derive(Debug, Default)]
pub struct OrderCheck {
    by: Option<SortBy>,
    /// Converter of the first table, and the types of its columns.
    columns: Option<(RowConverter, Vec<DataType>)>,
    /// The first row of a table that was checked, and how it is shown.
    first_row: Option<(OwnedRow, String)>,
    last_row: Option<(OwnedRow, String)>,
    last_line: Option<Vec<u8>>,
    rows: u64,
    /// Rows before the current file.
    file_start: u64,
}

impl OrderCheck {
    /// A check by `by`; without it, by the order that the first table declares.
    pub fn new(by: Option<SortBy>) -> OrderCheck {
        OrderCheck { by, ..OrderCheck::default() }
    }

    /// Whether rows are compared by columns.
    pub(crate) fn has_columns(&self) -> bool {
        self.by.is_some()
    }

    /// Rows checked so far.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Rows of the current file checked so far.
    pub(crate) fn rows_of_file(&self) -> u64 {
        self.rows - self.file_start
    }

    /// The next rows are of another file, from which errors count rows.
    pub(crate) fn start_file(&mut self) {
        self.file_start = self.rows;
    }

    /// The order to check by: that of the check, otherwise the `declared` one, which then holds for all later files.
    pub(crate) fn order_or(&mut self, declared: Option<SortBy>) -> Option<SortBy> {
        self.by = self.by.take().or(declared);
        self.by.clone()
    }

    /// A check of rows that come after those of this check. Another thread can make it; then [`OrderCheck::append`] adds it.
    pub(crate) fn of_later_rows(&self) -> Result<OrderCheck, OrderError> {
        let columns = match (&self.by, &self.columns) {
            (Some(by), Some((_, types))) => Some((by.converter(types.clone())?, types.clone())),
            _ => None,
        };
        Ok(OrderCheck { by: self.by.clone(), columns, ..OrderCheck::default() })
    }

    /// Adds a check of the rows after those of this check, in the same file.
    ///
    /// # Errors
    /// Its first row comes before the last row of this check.
    pub(crate) fn append(&mut self, later: OrderCheck) -> Result<(), OrderError> {
        if let (Some((last, previous)), Some((first, found))) = (&self.last_row, later.first_row)
            && first.row() < last.row()
        {
            let row = self.rows_of_file() + 1;
            return Err(OrderError::OutOfOrder { row, found, previous: previous.clone() });
        }
        self.columns = self.columns.take().or(later.columns);
        self.last_row = later.last_row.or(self.last_row.take());
        self.rows += later.rows;
        Ok(())
    }

    pub(crate) fn check_batch(&mut self, by: &SortBy, batch: &RecordBatch) -> Result<(), OrderError> {
        let indices = by.indices(batch.schema_ref())?;
        let columns = indices.iter().map(|&at| batch.column(at).clone()).collect();
        let columns = self.cast_to_first(by, columns)?;
        let Some((converter, _)) = &self.columns else { return Ok(()) };
        let rows = converter.convert_columns(&columns)?;
        let show = |row: usize| columns.iter().map(|column| show(column, row)).collect::<Vec<_>>().join(", ");
        if self.first_row.is_none() && rows.num_rows() > 0 {
            self.first_row = Some((rows.row(0).owned(), show(0)));
        }
        for row in 0..rows.num_rows() {
            let previous = match row.checked_sub(1) {
                Some(previous) => Some(rows.row(previous)),
                None => self.last_row.as_ref().map(|(last, _)| last.row()),
            };
            if previous.is_some_and(|previous| rows.row(row) < previous) {
                let last = self.last_row.as_ref().map_or("", |(_, text)| text).to_string();
                let previous = row.checked_sub(1).map_or(last, show);
                let number = self.rows_of_file() + row as u64 + 1;
                return Err(OrderError::OutOfOrder { row: number, found: show(row), previous });
            }
        }
        if let Some(last) = rows.num_rows().checked_sub(1) {
            self.last_row = Some((rows.row(last).owned(), show(last)));
        }
        self.rows += rows.num_rows() as u64;
        Ok(())
    }

    /// Casts columns to the types of the first table, so that tables compare with each other. Only the encodings of types may
    /// differ: other casts lose values.
    fn cast_to_first(&mut self, by: &SortBy, columns: Vec<ArrayRef>) -> Result<Vec<ArrayRef>, OrderError> {
        match &self.columns {
            Some((_, types)) => {
                let cast_one = |((column, first), name): ((&ArrayRef, &DataType), &str)| {
                    let found = column.data_type();
                    if value_type(found) != value_type(first) {
                        let (first, found) = (first.clone(), found.clone());
                        return Err(OrderError::Types { column: name.to_string(), first, found });
                    }
                    Ok(cast(column, first)?)
                };
                columns.iter().zip(types).zip(by.names()).map(cast_one).collect()
            }
            None => {
                let types: Vec<DataType> = columns.iter().map(|column| column.data_type().clone()).collect();
                self.columns = Some((by.converter(types.clone())?, types));
                Ok(columns)
            }
        }
    }

    pub(crate) fn check_line(&mut self, line: &[u8]) -> Result<(), OrderError> {
        // The header of a CDX file is not a row.
        if line.starts_with(b" CDX ") && self.rows == self.file_start {
            return Ok(());
        }
        let key = line_key(line);
        if let Some(last) = self.last_line.as_ref().filter(|last| key < &last[..]) {
            // Long lines are shown from shortly before the first difference on.
            let same = key.iter().zip(last).take_while(|(a, b)| a == b).count();
            let from = if same > MAX_SHOWN { same - MAX_SHOWN / 2 } else { 0 };
            let show = |text: &[u8]| excerpt(&String::from_utf8_lossy(&text[from..]), from > 0);
            let row = self.rows_of_file() + 1;
            return Err(OrderError::OutOfOrder { row, found: show(key), previous: show(last) });
        }
        let last = self.last_line.get_or_insert_default();
        last.clear();
        last.extend_from_slice(key);
        self.rows += 1;
        Ok(())
    }
}

/// The type of the values of a column, whatever its encoding is.
fn value_type(kind: &DataType) -> &DataType {
    match kind {
        DataType::Dictionary(_, values) => value_type(values),
        DataType::LargeUtf8 | DataType::Utf8View => &DataType::Utf8,
        DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => &DataType::Binary,
        other => other,
    }
}

/// `key time` of a line that begins with these two fields; otherwise the whole line.
pub(crate) fn line_key(line: &[u8]) -> &[u8] {
    let spaces: Vec<usize> = memchr::memchr_iter(b' ', line).take(2).collect();
    let [key_end, end] = spaces[..] else { return line };
    let time = &line[key_end + 1..end];
    // The digits of a year are four; with those of milliseconds, a time has 17.
    let is_time = time == b"-" || ((4..=17).contains(&time.len()) && time.iter().all(u8::is_ascii_digit));
    if is_time { &line[..end] } else { line }
}

fn show(column: &ArrayRef, row: usize) -> String {
    match column.is_null(row) {
        true => "null".to_string(),
        false => {
            let text = match column.data_type() {
                // Names of time zones cannot be shown.
                DataType::Timestamp(unit, Some(_)) => cast(&column.slice(row, 1), &DataType::Timestamp(*unit, None))
                    .and_then(|times| array_value_to_string(&times, 0)),
                _ => array_value_to_string(column, row),
            };
            text.map_or_else(|error| error.to_string(), |text| excerpt(&text, false))
        }
    }
}

/// Maximum number of characters of a value in a message.
const MAX_SHOWN: usize = 200;

/// The beginning of a text, quoted. `is_cut`: it is not the beginning of the value.
fn excerpt(text: &str, is_cut: bool) -> String {
    let end = text.char_indices().nth(MAX_SHOWN).map(|(at, _)| at);
    let (before, after) = (if is_cut { "..." } else { "" }, if end.is_some() { "..." } else { "" });
    format!("{before}{:?}{after}", &text[..end.unwrap_or(text.len())])
}
