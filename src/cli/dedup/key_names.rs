//! Names of the key by which `dedup` compares records: its column, its name in reports, and what a store records of it.

use crate::canon::{Policy, RecipeColumn};
use crate::cli::args::policy::PROTOCOL;
use crate::run::RowKey;

/// The column of a key.
pub(super) fn key_column(policy: &Policy, key: RowKey) -> String {
    match key {
        RowKey::Rung => "key".to_string(),
        RowKey::More(_) => "key_simple".to_string(),
        RowKey::Protocol => "key_protocol".to_string(),
        RowKey::Recipe(place) => {
            let name = policy.recipes.get(place).map_or("", |wanted| wanted.column);
            format!("key_{}", name.replace('-', "_"))
        }
    }
}

/// The name of a key; empty if it is that of the rung.
pub(super) fn key_name(policy: &Policy, key: RowKey) -> String {
    match key {
        RowKey::Rung => String::new(),
        RowKey::More(place) => policy.more_keys.get(place).map_or("", |rung| rung.name()).to_string(),
        RowKey::Recipe(place) => policy.recipes.get(place).map(RecipeColumn::describe).unwrap_or_default(),
        RowKey::Protocol => PROTOCOL.to_string(),
    }
}

/// What the keys in a store depend on: the policy, and which of its keys they are.
pub(super) fn describe_keys(policy: &Policy, key: RowKey) -> Vec<(&'static str, String)> {
    policy.describe().into_iter().chain([("dedup_key", key_name(policy, key))]).collect()
}
