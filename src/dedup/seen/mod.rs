//! Keys seen by earlier runs, in a directory: [`Store`]. In: sorted keys of a run. Out: a cursor over all keys, or a set
//! of them in memory.
//!
//! ```text
//! DIR/manifest.json   policy of the keys, and which runs count; replaced by rename, so it is the old one or the new one
//! DIR/run-NNNNNN      sorted keys, with their policy, their number and a checksum
//! DIR/lock            locked by whoever adds to the store, and by the system let go with its process
//! ```
//!
//! A file that the manifest does not name does not count: what a killed process leaves behind is removed by the next
//! one that adds. Runs are merged, beside the job that adds to them, when a later one is more than half as large as the
//! one before, so that N keys are in few more than log2 N runs. Refuses keys of another policy, a second writer, and files
//! that are torn.

mod cursor;
mod error;
mod merging;
mod run_file;
mod set;
mod store;

pub use cursor::Cursor;
pub use error::SeenError;
pub use merging::{Merge, Merged};
pub use run_file::RunWriter;
pub use set::SeenSet;
pub use store::{Info, Store};
