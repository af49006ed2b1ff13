//! The flag that configures stores.

use clap::Args;

use crate::cli::error::CommandError;
use crate::remote::{StoreOption, set_options};

/// Flags of every command that reads or writes remote objects.
#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    /// Set an option of the stores that s3://, gs://, az:// and https:// inputs are in, such as endpoint=URL,
    /// region=NAME, path_style=true, anonymous=true, connect_timeout=5s, read_timeout=30s or retry_timeout=180s. Repeat the
    /// flag for more
    // A text, because the parser of flags would repeat a wrong option with its value, which may be a secret.
    #[arg(long = "store-option", value_name = "KEY=VALUE", help_heading = "Input")]
    options: Vec<String>,
}

impl StoreArgs {
    /// Sets the options of this process.
    ///
    /// # Errors
    /// No store has such an option.
    pub(crate) fn apply(&self) -> Result<(), CommandError> {
        let parse = |text: &String| text.parse::<StoreOption>();
        let options: Result<Vec<_>, String> = self.options.iter().map(parse).collect();
        set_options(&options.map_err(|error| CommandError::Usage(format!("--store-option: {error}")))?);
        Ok(())
    }
}
