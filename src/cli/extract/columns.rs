//! The columns that `--columns` names.

use crate::batch::similar_names;
use crate::cli::args::{Named, listed_columns};
use crate::cli::error::CommandError;
use crate::run::LINK_COLUMNS;

/// The names of columns. [`parse_columns`] checks them, because a `+` may precede them.
pub(super) const COLUMN_NAMES: Named<String> =
    Named { parse: |name| Ok(name.to_string()), names: || LINK_COLUMNS.iter().map(|(_, name, ..)| *name).collect() };

/// The names of the columns that a list selects: names in order, or, each with a `+`, additions to the default ones.
///
/// # Errors
/// An unknown name, a name that is repeated, or names with and without `+`.
pub(super) fn parse_columns(list: &[String]) -> Result<Vec<&'static str>, CommandError> {
    let (names, are_added) = listed_columns(list)?;
    let defaults = LINK_COLUMNS.iter().filter(|(_, _, _, is_default, _)| are_added && *is_default);
    let mut chosen: Vec<&str> = defaults.map(|(_, name, ..)| *name).collect();
    for name in names {
        let Some((_, known, ..)) = LINK_COLUMNS.iter().find(|(_, known, ..)| *known == name) else {
            return Err(unknown_column(name));
        };
        // A default column that is added again stays where it is.
        if !chosen.contains(known) {
            chosen.push(known);
        }
    }
    Ok(chosen)
}

fn unknown_column(name: &str) -> CommandError {
    let all: Vec<&str> = LINK_COLUMNS.iter().map(|(_, known, ..)| *known).collect();
    let similar = match similar_names(name, &all).join("` or `") {
        similar if similar.is_empty() => similar,
        similar => format!("did you mean `{similar}`? "),
    };
    CommandError::Usage(format!(
        "--columns: unknown column `{name}`; {similar}expected some of {}, with a + before every name to add columns, or before \
         none",
        all.join(", ")
    ))
}

/// Name and meaning of every column, for the help.
pub(super) fn describe_columns() -> String {
    let line = |(_, name, _, is_default, meaning)| {
        format!("  {name}{} {meaning}\n", if is_default { ":" } else { " (on request):" })
    };
    LINK_COLUMNS.into_iter().map(line).collect()
}
