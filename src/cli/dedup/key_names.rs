//! Names of the key by which `dedup` compares records: its column, its name in reports, and what a store records of it.

use crate::canon::{Policy, RecipeColumn};
use crate::cli::args::policy::PROTOCOL;
use crate::run::DedupKey;

/// The column of a key.
pub(super) fn key_column(policy: &Policy, key: DedupKey) -> String {
    match key {
        DedupKey::Rung => "key".to_string(),
        DedupKey::More(_) => "key_simple".to_string(),
        DedupKey::Protocol => "key_protocol".to_string(),
        DedupKey::Recipe(place) => {
            let name = policy.recipes.get(place).map_or("", |wanted| wanted.column);
            format!("key_{}", name.replace('-', "_"))
        }
    }
}

/// The name of a key; empty if it is that of the rung.
pub(super) fn key_name(policy: &Policy, key: DedupKey) -> String {
    match key {
        DedupKey::Rung => String::new(),
        DedupKey::More(place) => policy.more_keys.get(place).map_or("", |rung| rung.name()).to_string(),
        DedupKey::Recipe(place) => policy.recipes.get(place).map(RecipeColumn::describe).unwrap_or_default(),
        DedupKey::Protocol => PROTOCOL.to_string(),
    }
}

/// What the keys in a store depend on: the policy, and which of its keys they are.
pub(super) fn describe_keys(policy: &Policy, key: DedupKey) -> Vec<(&'static str, String)> {
    policy.describe().into_iter().chain([("dedup_key", key_name(policy, key))]).collect()
}
