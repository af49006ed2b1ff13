//! What a recipe consists of.

use super::draft::Draft;
use super::surt_shortcut::SurtShortcut;
use crate::iri::Fault;

/// The definition of a named recipe.
#[derive(Debug)]
pub(super) struct RecipeDefinition {
    pub(super) name: &'static str,
    pub(super) version: u32,
    /// Splits a URL into the components of a draft; or sets [`Draft::literal_key`], and no rule applies.
    pub(super) read: fn(&[u8], &mut Draft) -> Result<(), Fault>,
    /// Names of the rules, separated by spaces, in any order.
    pub(super) rules: &'static str,
    /// Appends the key.
    pub(super) write: fn(&Draft, &mut Vec<u8>) -> Result<(), Fault>,
    /// Writes the keys of common URLs faster than the rules, which define them.
    pub(super) shortcut: Option<&'static SurtShortcut>,
}
