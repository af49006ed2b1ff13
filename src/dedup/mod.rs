//! Keys in, which rows to keep out; exact, in bounded memory, and the same answer however the work is shared.
//!
//! ```text
//! keys of a span --Scattered--> by partition --Known--> new | known | unknown, for want of memory
//!                                                                        |
//!                          verdict on each row <--Resolver- Spill <--entries
//!                                                           Spool <--rows that wait for a verdict
//! ```
//!
//! While memory lasts, the first row of each key is kept as it comes and nothing waits. When a partition's table may not
//! grow any more, or the representative cannot be told before all rows are known, rows wait in a [`Spool`] and their
//! keys in a [`Spill`], both of them files without a name that vanish with the process, however it ends.

mod candidates;
mod distinct;
mod entry;
pub mod evidence;
mod findings;
mod keep;
mod known;
mod partition;
mod resolver;
mod sample;
pub mod seen;
mod spill;
mod survey;
mod table;
mod verdict;

pub use distinct::{Gathering, KINDS, Kinds};
pub use entry::{Entry, Layout, Texts};
pub use findings::{Findings, HostFindings, RuleFindings, SizeClass};
pub use keep::{Candidate, Keep};
pub use known::{Found, Known, LANES};
pub use partition::{PARTITION_BITS, PARTITIONS, Scattered, number};
pub use resolver::Resolver;
pub use spill::Spill;
pub use survey::{Look, SpanLook, Survey};
pub use table::Table;
pub use verdict::{Collision, Collisions, Verdict, Verdicts};
