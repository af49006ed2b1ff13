//! The flags that say which keys of the crawl world are made, and by which list hosts are taken apart.

use std::path::PathBuf;

use clap::Args;

use crate::batch::{ColumnSet, OWN_RULES};
use crate::canon::RecipeColumn;
use crate::key::Recipe;
use crate::key::psl::SuffixList;

/// Flags of every command that makes keys of recipes.
#[derive(Debug, Args)]
pub struct RecipeArgs {
    /// A recipe of one's own for the columns key_rules and url_rules: a recipe's name or none, then rules to add and to
    /// take away, such as +www,+fragment or surt-wayback,-path-case. `irikey schema` names the rules
    #[arg(long, value_name = "LIST", value_parser = parse_rules, allow_hyphen_values = true, help_heading = "Canonical form")]
    rules: Option<Recipe>,
    /// Public Suffix List that the columns url_host_* use instead of the embedded one: a public_suffix_list.dat
    #[arg(long, value_name = "FILE", help_heading = "Canonical form")]
    psl: Option<PathBuf>,
}

impl RecipeArgs {
    /// The recipes that `columns` want.
    ///
    /// # Errors
    /// Columns of --rules without --rules, or the other way round.
    pub fn wanted(&self, columns: &ColumnSet) -> Result<Vec<RecipeColumn>, String> {
        let names = columns.recipes();
        if self.rules.is_some() && !names.contains(&OWN_RULES) {
            return Err("--rules makes the columns key_rules and url_rules; ask for one with --columns or --key".into());
        }
        let recipe = |name: &'static str| match &self.rules {
            Some(rules) if name == OWN_RULES => Ok(rules.clone()),
            None if name == OWN_RULES => Err("key_rules and url_rules hold what --rules makes; give it".to_string()),
            _ => Recipe::parse(name).map_err(|error| error.to_string()),
        };
        names.into_iter().map(|column| Ok(RecipeColumn { column, recipe: recipe(column)? })).collect()
    }

    /// The Public Suffix List.
    ///
    /// # Errors
    /// It cannot be read, or is none.
    pub fn suffixes(&self) -> Result<SuffixList, String> {
        let Some(path) = &self.psl else { return Ok(SuffixList::default()) };
        let text = std::fs::read_to_string(path).map_err(|error| format!("--psl: {}: {error}", path.display()))?;
        SuffixList::parse(&text).map_err(|error| format!("--psl: {}: {error}", path.display()))
    }
}

fn parse_rules(text: &str) -> Result<Recipe, String> {
    Recipe::parse(text).map_err(|error| error.to_string())
}
