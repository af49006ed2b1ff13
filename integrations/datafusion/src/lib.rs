//! Canonical URIs and 128-bit keys as scalar functions of DataFusion, for engines that build on it, such as Ballista.
//!
//! | function | result |
//! |---|---|
//! | `irikey_uri(url)` | canonical URI; null if the URL is null or cannot be parsed |
//! | `irikey_key(url)` | key, 16 bytes; null only if the URL is null |
//! | `irikey_surt(url)` | SURT key of webarchive-commons; null if the URL is null or has no such key |
//! | `irikey_uri_from(url, base)`, `irikey_key_from(url, base)` | the same for references relative to `base` |
//!
//! The names are those of the Python package in Spark and DuckDB, and values are the same, bit for bit. Arguments are any
//! arrays or literals of text or bytes.
//!
//! ```
//! use irikey::canon::{Policy, Rung};
//! let functions = irikey_datafusion::functions("irikey_", &Policy::default());
//! assert_eq!(functions[0].name(), "irikey_uri");
//! // Functions with another policy need another prefix.
//! let syntax = Policy { rung: Rung::Syntax, ..Policy::default() };
//! assert_eq!(irikey_datafusion::functions("syntax_", &syntax)[1].name(), "syntax_key");
//! ```

mod function;
mod rows;

use std::sync::Arc;

use datafusion_common::Result;
use datafusion_expr::ScalarUDF;
use datafusion_expr::registry::FunctionRegistry;
use irikey::canon::{Policy, RecipeColumn};
use irikey::key::Recipe;

use function::{Function, Output};

/// Returns the functions, whose names begin with `prefix`. They compute by `policy`, whose rung is that of URI and key;
/// recipes, further keys and equivalences of the policy have no effect.
pub fn functions(prefix: &str, policy: &Policy) -> Vec<ScalarUDF> {
    let policy = Policy { recipes: Vec::new(), more_keys: Vec::new(), equivalences: None, ..policy.clone() };
    let surt = Recipe::parse("surt-wayback").map(|recipe| vec![RecipeColumn { column: "surt-wayback", recipe }]);
    let with_surt = Policy { recipes: surt.unwrap_or_default(), ..policy.clone() };
    let made = [
        ("uri", 1, Output::Uri, &policy),
        ("key", 1, Output::Key, &policy),
        ("uri_from", 2, Output::Uri, &policy),
        ("key_from", 2, Output::Key, &policy),
        ("surt", 1, Output::Recipe, &with_surt),
    ];
    made.map(|(name, arity, output, policy)| Function::new(format!("{prefix}{name}"), arity, output, policy))
        .map(ScalarUDF::new_from_impl)
        .into()
}

/// Registers the functions of [`functions`], for example in a `SessionContext`.
///
/// # Errors
/// The registry refuses functions.
pub fn register(registry: &mut dyn FunctionRegistry, prefix: &str, policy: &Policy) -> Result<()> {
    functions(prefix, policy).into_iter().try_for_each(|made| registry.register_udf(Arc::new(made)).map(|_| ()))
}
