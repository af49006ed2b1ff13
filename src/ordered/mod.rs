//! Ordered parallel work: several threads work at once, and their results are consumed in the order of the work.
//!
//! ```text
//!          take                       push, finish                  pop or drain
//! source ----------> ticket number ----------------> ReorderQueue ----------------> consumer
//!   one at a time      several threads, any order      bounded        one at a time, in order
//!                            |
//!                            +-- StageTicket::pass: serial stages, in the order of the ticket numbers
//! ```
//!
//! - [`ReorderQueue`] numbers units of work when they are taken, bounds how far workers may be ahead of the consumer (in
//!   units and in bytes), and delivers the results by number.
//! - [`Stages`] are serial sections inside the work: a ticket enters a stage after all earlier tickets have left it.
//! - [`ReadAhead`] is an iterator whose items are made by background threads.
//!
//! The module is the lowest layer because inputs use it to decompress and decode ahead, and runs use it to order row
//! groups. It knows nothing of either. [`ReadAhead`] starts the threads of inputs and of `extract`; the threads of a run belong
//! to [`crate::run`].
//!
//! No thread waits forever: the earliest unfinished ticket waits only for the consumer, stopping wakes all waiting threads,
//! and a worker that panics releases its ticket.

mod ahead;
mod queue;
mod stages;

pub(crate) use ahead::ReadAhead;
pub(crate) use queue::{QueueLimits, ReorderQueue};
pub(crate) use stages::{StageTicket, Stages};
