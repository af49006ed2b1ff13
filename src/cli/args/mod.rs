//! Flags, declared once in groups that commands flatten: what is read, what the canonical form is, what is written,
//! with what means, what is told. Each group checks itself and gives what its flags mean; combinations that make no
//! sense are refused before anything is opened.

mod equivalences;
mod form;
mod input;
mod output;
mod recipes;
mod repair;
mod reporting;
mod sizes;
mod sort;
mod spill;
mod work;

pub use equivalences::EquivalenceArgs;
pub use form::{FormArgs, parse_profile};
pub use input::{InputArgs, InputFormat, Inputs};
pub use output::{OutputArgs, Outputs};
pub use recipes::RecipeArgs;
pub use reporting::{Reporting, ReportingArgs, When};
pub use sort::{SortArgs, Sorting};
pub use spill::SpillArgs;
pub use work::{Work, WorkArgs};
