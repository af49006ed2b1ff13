//! Ordered sets of columns, and their Arrow schemas.

use std::collections::HashMap;
use std::fmt;

use arrow::datatypes::{Field, Schema};

use super::column::{Column, ColumnId, ColumnKind};
use super::columns::COLUMNS;
use crate::canon::{Policy, RecipeColumn};
use crate::iri::Rung;
use crate::key::Recipe;
use crate::record::fields::{CarriedField, FieldSet};

/// A name that is not the name of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownColumn(pub String);

impl fmt::Display for UnknownColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == "=" {
            return f.write_str("`=` has no name; `NAME=` is the column of directories NAME=VALUE");
        }
        if let Some(name) = self.0.strip_suffix('=') {
            return write!(f, "`{name}=` cannot be a column of values in paths, because `{name}` is another column");
        }
        let names: Vec<_> = COLUMNS.iter().map(|column| column.name).collect();
        let similar = similar_names(&self.0, &names).join("` or `");
        if !similar.is_empty() {
            return write!(
                f,
                "unknown column `{}`; did you mean `{similar}`? `irikey schema` lists all columns",
                self.0
            );
        }
        write!(
            f,
            "unknown column `{}`; `irikey schema` lists all columns; `NAME=` is the column of directories NAME=VALUE",
            self.0
        )
    }
}

impl std::error::Error for UnknownColumn {}

/// Returns the names that differ from a wrong one in one or two letters; otherwise those that contain it.
pub(crate) fn similar_names<'a>(wrong: &str, names: &[&'a str]) -> Vec<&'a str> {
    let distance = |name: &&&str| strsim::osa_distance(wrong, name);
    match names.iter().min_by_key(distance).filter(|name| distance(name) <= 2) {
        Some(nearest) => vec![nearest],
        None if wrong.len() < 3 => Vec::new(),
        None => names.iter().filter(|name| name.contains(wrong)).copied().collect(),
    }
}

/// The columns of an output in order, each at most once.
///
/// ```
/// use irikey::batch::ColumnSet;
/// let columns = ColumnSet::named(["key", "uri"]).unwrap();
/// assert_eq!(columns.names().collect::<Vec<_>>(), ["key", "uri"]);
/// assert!(ColumnSet::named(["kye"]).is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSet(Vec<Column>);

impl Default for ColumnSet {
    fn default() -> ColumnSet {
        ColumnSet(COLUMNS.iter().filter(|column| column.is_default).copied().collect())
    }
}

impl ColumnSet {
    /// Returns the columns with these names in this order; repeated names count once. `NAME=` is the column NAME of the
    /// values of directories `NAME=VALUE` in the paths of the sources.
    ///
    /// # Errors
    /// A name is not the name of a column.
    pub fn named<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<ColumnSet, UnknownColumn> {
        let mut columns = ColumnSet(Vec::new());
        for name in names {
            columns.push(find(name).ok_or_else(|| UnknownColumn(name.to_string()))?);
        }
        Ok(columns)
    }

    /// Returns the default columns, followed by the columns with these names.
    pub(crate) fn default_and<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<ColumnSet, UnknownColumn> {
        let mut columns = ColumnSet::default();
        ColumnSet::named(names)?.0.into_iter().for_each(|column| columns.push(column));
        Ok(columns)
    }

    /// Returns these columns in this order; repeated ones count once.
    pub(crate) fn of(ids: &[ColumnId]) -> ColumnSet {
        let mut columns = ColumnSet(Vec::new());
        ids.iter().for_each(|id| columns.add(*id));
        columns
    }

    /// Adds the columns of `keys` after the last key column, or at the end; columns that exist stay where they are.
    pub fn add_keys(&mut self, keys: &[ColumnId]) {
        for id in keys {
            if !self.contains(*id) {
                let last_key = self.0.iter().rposition(|column| column.kind == ColumnKind::Key);
                let place = last_key.map_or(self.0.len(), |at| at + 1);
                self.0.splice(place..place, COLUMNS.iter().filter(|column| column.id == *id).copied());
            }
        }
    }

    /// Adds a column at the end, unless the set contains it.
    pub(crate) fn add(&mut self, id: ColumnId) {
        COLUMNS.iter().filter(|column| column.id == id).for_each(|column| self.push(*column));
    }

    /// Adds the columns of another set at the end, unless the set contains them.
    pub(crate) fn add_all(&mut self, others: &ColumnSet) {
        others.iter().for_each(|column| self.push(*column));
    }

    /// Adds the columns with these names at the end, unless the set contains them. Ignores unknown names.
    pub(crate) fn add_named<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) {
        for name in names {
            COLUMNS.iter().filter(|column| column.name == name).for_each(|column| self.push(*column));
        }
    }

    fn push(&mut self, column: Column) {
        if !self.contains(column.id) {
            self.0.push(column);
        }
    }

    /// Returns the columns in order.
    pub fn iter(&self) -> impl Iterator<Item = &Column> {
        self.0.iter()
    }

    /// Returns the names of the columns in order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|column| column.name)
    }

    /// Returns whether the set contains the column.
    pub fn contains(&self, id: ColumnId) -> bool {
        self.0.iter().any(|column| column.id == id)
    }

    /// Returns the rungs of the additional key columns, in order: the value for [`crate::canon::Policy::more_keys`].
    pub fn key_rungs(&self) -> Vec<Rung> {
        let rung = |column: &Column| match column.id {
            ColumnId::KeyOf(rung) => Some(rung),
            _ => None,
        };
        self.0.iter().filter_map(rung).collect()
    }

    /// Returns the names of the recipes that columns need, as columns name them, each once.
    pub fn recipes(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        for column in &self.0 {
            if let ColumnId::RecipeText(name) | ColumnId::RecipeKey(name) = column.id
                && !names.contains(&name)
            {
                names.push(name);
            }
        }
        names
    }

    /// Returns the fields that the columns need: the value for [`crate::canon::Policy::carry`].
    pub fn carry(&self) -> FieldSet {
        let mut carry = FieldSet::default();
        for field in CarriedField::ALL.iter().filter(|field| self.contains(ColumnId::Carried(**field))) {
            carry.insert(*field);
        }
        // The digest of the payload is computed only if the record has none.
        carry.digest |= carry.payload_digest;
        // The segment is found in the name of the archive.
        carry.filename |= carry.segment;
        carry
    }

    /// Returns `policy` with everything that rows of these columns need: further keys, the keys of named recipes, the input,
    /// carried fields and spoofing flags. Without them, columns are null or [`BatchBuilder`](super::BatchBuilder) refuses the
    /// rows. The caller has to provide what a name does not say: the recipe of the columns `key_rules` and `url_rules`, and the
    /// equivalences of `key_protocol`.
    ///
    /// ```
    /// use irikey::{batch::ColumnSet, canon::Policy};
    /// let columns = ColumnSet::named(["input", "key_syntax", "url_surtkey_ia"]).unwrap();
    /// let policy = columns.complete_policy(Policy::default());
    /// assert!(policy.keep_input && policy.more_keys.len() == 1);
    /// assert_eq!(policy.recipes[0].recipe.name(), "surt-ia");
    /// ```
    pub fn complete_policy(&self, mut policy: Policy) -> Policy {
        for rung in self.key_rungs() {
            policy.add_key(rung);
        }
        for column in self.recipes() {
            let is_missing = policy.recipes.iter().all(|known| known.column != column);
            if let Some(recipe) = Recipe::parse(column).ok().filter(|_| is_missing) {
                policy.recipes.push(RecipeColumn { column, recipe });
            }
        }
        let carry = self.carry();
        CarriedField::ALL.iter().filter(|field| carry.contains(**field)).for_each(|field| policy.carry.insert(*field));
        policy.keep_input |= self.contains(ColumnId::Input);
        policy.spoofing_flags |= self.contains(ColumnId::SpoofingFlags);
        policy
    }

    /// Returns the Arrow schema with `metadata`.
    pub fn schema(&self, metadata: &[(String, String)]) -> Schema {
        let fields: Vec<Field> = self.0.iter().map(Column::field).collect();
        Schema::new_with_metadata(fields, metadata.iter().cloned().collect::<HashMap<_, _>>())
    }
}

/// The column called `name`, or that of values in paths if `name` is `NAME=`.
fn find(name: &str) -> Option<Column> {
    let known = |name: &str| COLUMNS.iter().find(|column| column.name == name).copied();
    match name.strip_suffix('=') {
        Some(name) if name.is_empty() || known(name).is_some() => None,
        Some(name) => Some(Column::of_path_values(name)),
        None => known(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_keys_follow_the_key() {
        let mut columns = ColumnSet::default();
        columns.add_keys(&[Rung::Syntax, Rung::Simple, Rung::Syntax].map(ColumnId::KeyOf));
        let names: Vec<_> = columns.names().collect();
        let key = names.iter().position(|name| *name == "key").unwrap();
        assert_eq!(names[key..key + 4], ["key", "key_syntax", "key_simple", "fault"]);
        assert_eq!(columns.key_rungs(), [Rung::Syntax, Rung::Simple]);
    }

    #[test]
    fn policies_keep_what_other_columns_need() {
        let named = |names: &[&'static str]| ColumnSet::named(names.iter().copied()).unwrap();
        let policy = named(&["key_syntax", "fetch_time", "url_surtkey"]).complete_policy(Policy::default());
        assert!(!policy.keep_input && !policy.spoofing_flags && policy.carry.contains(CarriedField::FetchTime));
        let columns = named(&["key_simple", "key_syntax", "payload_digest", "key_surt_wayback", "spoofing_flags"]);
        let policy = columns.complete_policy(policy);
        assert_eq!(policy.more_keys, [Rung::Syntax, Rung::Simple]);
        assert_eq!(policy.recipes.iter().map(|recipe| recipe.column).collect::<Vec<_>>(), ["surt-wayback"]);
        let carried = [CarriedField::FetchTime, CarriedField::PayloadDigest, CarriedField::ContentDigest];
        assert!(policy.spoofing_flags && carried.iter().all(|field| policy.carry.contains(*field)));
        // Rules are given by the caller.
        assert!(named(&["key_rules"]).complete_policy(Policy::default()).recipes.is_empty());
    }

    #[test]
    fn errors_name_similar_columns() {
        let error = |name| ColumnSet::named([name]).unwrap_err().to_string();
        assert!(error("uri=").contains("because `uri` is another column"));
        assert_eq!(error("="), "`=` has no name; `NAME=` is the column of directories NAME=VALUE");
        assert_eq!(error("kye"), "unknown column `kye`; did you mean `key`? `irikey schema` lists all columns");
        assert!(error("digest").contains("did you mean `content_digest` or `payload_digest`?"));
        assert!(error("xyz").starts_with("unknown column `xyz`; `irikey schema` lists all columns"));
    }
}
