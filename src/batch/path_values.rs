//! Columns of values in the paths of inputs: directories `NAME=VALUE`, as Hive and Spark partition tables.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, DictionaryArray, Int32Array, StringArray};
use arrow::error::ArrowError;

use super::source_run::BatchRuns;
use crate::iri::decode_escapes;

/// The value that Hive writes for null.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// The values of one name, one per source.
#[derive(Debug)]
pub(super) struct PathValues {
    /// The distinct values.
    values: ArrayRef,
    /// Index of the value of each source; `None` if its path has no directory of the name.
    of_source: Vec<Option<i32>>,
}

impl PathValues {
    pub(super) fn new(name: &str, sources: &[String]) -> PathValues {
        let mut values = DistinctValues::default();
        let of_source = sources.iter().map(|source| Some(values.index(&value_in(source, name)?))).collect();
        PathValues { values: values.to_array(), of_source }
    }

    pub(super) fn values(&self) -> &ArrayRef {
        &self.values
    }

    /// The column of rows from these sources, which exist.
    pub(super) fn array(&self, runs: BatchRuns<'_>) -> Result<ArrayRef, ArrowError> {
        let keys = Int32Array::from(runs.per_row(|run, _| self.of_source[run.source as usize]));
        Ok(Arc::new(DictionaryArray::try_new(keys, self.values.clone())?))
    }
}

/// The distinct values of a dictionary, in the order in which they were added.
#[derive(Debug, Default)]
pub(crate) struct DistinctValues {
    values: Vec<String>,
    indexes: HashMap<String, i32>,
}

impl DistinctValues {
    /// The index of a value, which is added if it is new.
    pub(crate) fn index(&mut self, value: &str) -> i32 {
        self.find(value).unwrap_or_else(|| {
            let index = self.values.len() as i32;
            self.values.push(value.to_string());
            self.indexes.insert(value.to_string(), index);
            index
        })
    }

    /// The index of a value that was added.
    pub(crate) fn find(&self, value: &str) -> Option<i32> {
        self.indexes.get(value).copied()
    }

    pub(crate) fn to_array(&self) -> ArrayRef {
        Arc::new(StringArray::from_iter_values(&self.values))
    }
}

/// The value of the innermost directory `name=VALUE` of a path, without percent-encoding.
pub(crate) fn value_in(path: &str, name: &str) -> Option<String> {
    let (directories, _) = path.rsplit_once('/')?;
    let value = directories.rsplit('/').find_map(|directory| directory.strip_prefix(name)?.strip_prefix('='))?;
    let decoded = decode_escapes(value.as_bytes());
    let decoded = std::str::from_utf8(&decoded).map_or_else(|_| value.to_string(), str::to_string);
    Some(decoded).filter(|value| value != NULL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_directories() {
        let crawl = |path: &str| value_in(path, "crawl");
        assert_eq!(crawl("/t/crawl=CC-MAIN-2026-46/subset=warc/a.parquet").as_deref(), Some("CC-MAIN-2026-46"));
        assert_eq!(crawl("s3://b/crawl=a%2Fb%3D/x").as_deref(), Some("a/b="));
        assert_eq!(crawl("crawl=1/crawl=2/x").as_deref(), Some("2"));
        assert_eq!(crawl("crawl=%FF/x").as_deref(), Some("%FF"));
        assert_eq!(crawl("crawl=/x").as_deref(), Some(""));
        for path in ["crawl=a", "/my-crawl=a/x", "/crawls=a/x", "/crawl/x", "-", "crawl=__HIVE_DEFAULT_PARTITION__/x"] {
            assert_eq!(crawl(path), None, "{path}");
        }
    }
}
