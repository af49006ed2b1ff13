//! Which of the keys of a row are compared or counted: [`RowKey`].

use std::borrow::Cow;

#[cfg(feature = "cli")]
use crate::batch::ColumnId;
#[cfg(feature = "cli")]
use crate::canon::Policy;
use crate::canon::Rows;
use crate::key::{KeyAlgorithm, KeyBytes};

/// A key of each row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowKey {
    /// The key of the policy's rung.
    #[default]
    Rung,
    /// One of the policy's `more_keys`, by its index.
    More(usize),
    /// The key of one of the policy's recipes, by its index; the key of the rung if the recipe gives none.
    Recipe(usize),
    /// The key of the representative by the policy's equivalences.
    Protocol,
}

impl RowKey {
    /// Returns the key of a key column, and adds its rung to `policy` if it lacks it. The policy has the recipe of the column.
    #[cfg(feature = "cli")]
    pub(crate) fn of_column(key: ColumnId, policy: &mut Policy) -> RowKey {
        match key {
            ColumnId::KeyOf(rung) if rung == policy.rung => RowKey::Rung,
            ColumnId::KeyOf(rung) => RowKey::More(policy.add_key(rung)),
            ColumnId::RecipeKey(name) => {
                let place = policy.recipes.iter().position(|recipe| recipe.column == name);
                RowKey::Recipe(place.expect("the policy has the recipe of each column"))
            }
            _ => RowKey::Protocol,
        }
    }

    /// Returns whether a row without a fault has this key.
    pub(super) fn has_key(self, rows: &Rows, row: usize) -> bool {
        match self {
            RowKey::Recipe(index) => !rows.recipe_texts[index].get(row).is_empty(),
            RowKey::Rung | RowKey::More(_) | RowKey::Protocol => true,
        }
    }

    pub(super) fn of_rows(self, rows: &Rows, algorithm: KeyAlgorithm) -> Cow<'_, [KeyBytes]> {
        match self {
            RowKey::Rung => Cow::Borrowed(&rows.key),
            RowKey::More(index) => Cow::Borrowed(&rows.more_keys[index]),
            RowKey::Protocol => Cow::Borrowed(&rows.protocol),
            RowKey::Recipe(_) => (0..rows.len()).map(|row| self.of_row(rows, row, algorithm)).collect(),
        }
    }

    pub(super) fn of_row(self, rows: &Rows, row: usize, algorithm: KeyAlgorithm) -> KeyBytes {
        match self {
            RowKey::Rung => rows.key[row],
            RowKey::More(index) => rows.more_keys[index][row],
            RowKey::Protocol => rows.protocol[row],
            RowKey::Recipe(index) => match rows.recipe_texts[index].get(row) {
                [] => rows.key[row],
                text => algorithm.key(text),
            },
        }
    }
}
