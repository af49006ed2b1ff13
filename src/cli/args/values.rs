//! Parsers of flag values: names that stand for values of library types, sizes in bytes, and files.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::builder::{PathBufValueParser, PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser};
use clap::{Arg, Command};

use crate::batch::COLUMNS;
use crate::cli::error::CommandError;
use crate::input::read_file;
use crate::output::OutputFormat;
pub(crate) use crate::process::parse_size;
use crate::sort::SortBy;

/// Parses one of a few names, each of which stands for a value of a library type. Each entry is a name, its value and
/// its help text.
#[derive(Clone, Copy)]
pub(crate) struct Choices<T: 'static>(pub(crate) &'static [(&'static str, T, &'static str)]);

impl<T> Choices<T> {
    fn possible(&self) -> impl Iterator<Item = PossibleValue> + use<'_, T> {
        self.0.iter().map(|(name, _, help)| PossibleValue::new(*name).help(*help))
    }
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Choices<T> {
    type Value = T;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<T, clap::Error> {
        let name = PossibleValuesParser::new(self.possible()).parse_ref(command, arg, value)?;
        let found = self.0.iter().find(|(choice, ..)| *choice == name);
        found.map(|(_, value, _)| value.clone()).ok_or_else(|| clap::Error::new(clap::error::ErrorKind::InvalidValue))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.possible()))
    }
}

/// The entry of an output format in [`Choices`].
pub(crate) const fn format_choice(
    format: OutputFormat,
    help: &'static str,
) -> (&'static str, OutputFormat, &'static str) {
    (format.name(), format, help)
}

/// Parses a value with `parse`. Completions offer the names; flags hide them in the help (`hide_possible_values`), whose text
/// explains them.
#[derive(Clone, Copy)]
pub(crate) struct Named<T: 'static> {
    pub(crate) parse: fn(&str) -> Result<T, String>,
    pub(crate) names: fn() -> Vec<&'static str>,
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Named<T> {
    type Value = T;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<T, clap::Error> {
        let parse = self.parse;
        StringValueParser::new().try_map(move |text| parse(&text)).parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.names)().into_iter().map(PossibleValue::new)))
    }
}

/// Parses the path of a file or directory that must have a name, see [`check_named`].
pub(crate) fn named_path() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(check_named)
}

/// Refuses `-`, which means standard input or output in other flags. A file of this name would be a surprise.
pub(crate) fn check_named(path: PathBuf) -> Result<PathBuf, &'static str> {
    match path.as_os_str() == "-" {
        true => Err("standard input and output cannot be used here; if this is really the name, write ./-"),
        false => Ok(path),
    }
}

/// Parses the path of a table that the command writes as Parquet.
pub(crate) fn parquet_path() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| match OutputFormat::of_path(&path) {
        Some(OutputFormat::Parquet) => Ok(path),
        _ => Err("expected a file name that ends in .parquet"),
    })
}

/// The first of `names` that one before it repeats.
pub(crate) fn find_repeated<T: PartialEq>(names: impl IntoIterator<Item = T>) -> Option<T> {
    let mut seen = Vec::new();
    names.into_iter().find_map(|name| match seen.contains(&name) {
        true => Some(name),
        false => {
            seen.push(name);
            None
        }
    })
}

/// The names of `--columns`, and whether they are added to the default ones: then a `+` is before each, and is removed.
///
/// # Errors
/// A name is empty, or a column is named twice. A `+` before a name does not count.
pub(crate) fn listed_columns(list: &[String]) -> Result<(Vec<&str>, bool), CommandError> {
    let names = list.iter().map(|name| name.trim());
    check_names("--columns", names.clone().map(|name| name.strip_prefix('+').unwrap_or(name)))?;
    if let Some(name) = find_repeated(names.clone().map(|name| name.strip_prefix('+').unwrap_or(name))) {
        return Err(CommandError::Usage(format!("--columns names `{name}` twice; a column is written once")));
    }
    let added: Option<Vec<&str>> = names.clone().map(|name| name.strip_prefix('+')).collect();
    Ok(added.map_or_else(|| (names.collect(), false), |added| (added, true)))
}

fn check_names<'a>(flag: &str, mut names: impl Iterator<Item = &'a str>) -> Result<(), CommandError> {
    match names.any(str::is_empty) {
        true => Err(CommandError::Usage(format!(
            "{flag}: a name is empty; write names between single commas, such as uri,key"
        ))),
        false => Ok(()),
    }
}

/// The order by the columns that `flag` names, each descending if `-` is before it. The names are checked later.
///
/// # Errors
/// A name is empty, or a column is named twice.
pub(crate) fn sort_order(flag: &str, names: &[String]) -> Result<SortBy, CommandError> {
    let names = names.iter().map(|name| name.trim());
    check_names(flag, names.clone().map(|name| name.strip_prefix('-').unwrap_or(name)))?;
    match find_repeated(names.clone().map(|name| name.strip_prefix('-').unwrap_or(name))) {
        Some(name) => {
            Err(CommandError::Usage(format!("{flag} names `{name}` twice; rows are compared by a column once")))
        }
        None => Ok(SortBy::parse(names)),
    }
}

/// The names of columns. They are checked later, because a sign may precede them.
pub(crate) const COLUMN_NAMES: Named<String> =
    Named { parse: |name| Ok(name.to_string()), names: || COLUMNS.iter().map(|column| column.name).collect() };

/// Parses a whole number from `MIN` to `MAX`, without a unit.
///
/// # Errors
/// Signs, units, and other numbers.
pub(crate) fn parse_number<T: TryFrom<u64>, const MIN: u64, const MAX: u64>(text: &str) -> Result<T, String> {
    let expected = || match MAX {
        u64::MAX => format!("expected a whole number without a unit, {MIN} or more"),
        _ => format!("expected a whole number from {MIN} to {MAX}"),
    };
    let digits = Some(text).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let number = digits.and_then(|digits| digits.parse().ok()).filter(|number| (MIN..=MAX).contains(number));
    number.and_then(|number| T::try_from(number).ok()).ok_or_else(expected)
}

/// Parses a whole number that is `MIN` or more, without a unit.
///
/// # Errors
/// As for [`parse_number`].
pub(crate) fn parse_number_from<T: TryFrom<u64>, const MIN: u64>(text: &str) -> Result<T, String> {
    parse_number::<T, MIN, { u64::MAX }>(text)
}

pub(crate) fn parse_size_up_to<const LIMIT: usize>(text: &str) -> Result<usize, String> {
    match parse_size(text)? {
        size if size <= LIMIT => Ok(size),
        _ => Err(format!("at most {}M is supported", LIMIT >> 20)),
    }
}

/// Parses the text of the file that `flag` names. `not_text` is the message if it is not UTF-8.
pub(crate) fn read_text<T>(
    flag: &str,
    path: &Path,
    not_text: &str,
    parse: impl FnOnce(String) -> Result<T, String>,
) -> Result<T, CommandError> {
    let bytes = read_file(path).map_err(|error| CommandError::not_opened(flag, path, &error))?;
    let text = String::from_utf8(bytes).map_err(|_| not_text.to_string());
    text.and_then(parse).map_err(|reason| CommandError::unusable(flag, path, &reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_no_sign_and_no_unit() {
        let number = |text: &str| parse_number::<u16, 1, 512>(text);
        assert_eq!((number("1"), number("512"), number("007")), (Ok(1), Ok(512), Ok(7)));
        for text in ["", "0", "513", "-1", "+1", "1k", "1.5", " 1", "99999999999999999999"] {
            assert_eq!(number(text), Err("expected a whole number from 1 to 512".to_string()), "{text}");
        }
        let least = |text: &str| parse_number_from::<u64, 0>(text);
        assert_eq!((least("0"), least("18446744073709551615")), (Ok(0), Ok(u64::MAX)));
        assert_eq!(least("1k"), Err("expected a whole number without a unit, 0 or more".to_string()));
    }

    #[test]
    fn sizes_have_a_limit() {
        assert_eq!(parse_size_up_to::<{ 1 << 20 }>("1024K"), Ok(1 << 20));
        assert!(parse_size_up_to::<{ 1 << 20 }>("1025K").is_err_and(|message| message.contains("1M")));
    }
}
