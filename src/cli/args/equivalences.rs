//! The flag that names what redirects showed, and the equivalences that it means.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use crate::canon::{Policy, Rung};
use crate::learn::Equivalences;
use crate::run::read_equivalences;

/// Flags of every command that makes keys of the rung `protocol`.
#[derive(Debug, Args)]
pub struct EquivalenceArgs {
    /// What `irikey learn` wrote: the equivalences that --key protocol goes by. Learned with the same --profile, --key-hash
    /// and --drop-fragment
    #[arg(long, value_name = "FILE", help_heading = "Canonical form")]
    equivalences: Option<PathBuf>,
}

impl EquivalenceArgs {
    /// The equivalences for keys of `policy`; none if no key goes by them.
    ///
    /// # Errors
    /// A key that goes by them without the file, or the file without such a key; a file that does not do.
    pub fn read(&self, policy: &Policy, is_wanted: bool) -> Result<Option<Arc<Equivalences>>, String> {
        let path = match &self.equivalences {
            None if !is_wanted => return Ok(None),
            None => return Err("--key protocol needs --equivalences FILE, which irikey learn writes".to_string()),
            Some(_) if !is_wanted => {
                return Err(
                    "--equivalences is for --key protocol, and no rung below it knows them; ask for it".to_string()
                );
            }
            Some(_) if policy.rung != Rung::Scheme => {
                return Err("--key protocol stands on the rung scheme; leave --rung out".to_string());
            }
            Some(path) => path,
        };
        let read = read_equivalences(path, policy);
        read.map(|read| Some(Arc::new(read))).map_err(|error| format!("{}: {error}", path.display()))
    }
}
