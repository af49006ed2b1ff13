//! Files in, blocks of bytes out. Opens, maps, reads and unpacks; knows nothing of URLs and little of records.
//!
//! ```text
//! arguments --list--> Sources --open--> Opened::Mapped(MappedFile)            --> Block (a range of the map)
//!                                       Opened::Stream(plain or packed)     --> Block (an owned buffer)
//!                                       TableReader (Parquet, Arrow IPC)          --> rows, which are no bytes
//! ```
//!
//! How a source is packed follows from its first bytes, never from its name: [`detect`]. A name is asked only whether it
//! is a table's, which its bytes do not tell. Regular files are mapped, all else
//! is read. A source that turns out damaged gives a [`Defect`], which ends that source and not the run.

mod block;
pub mod detect;
mod error;
mod inflate;
mod keyed;
mod list;
mod members;
pub mod mmap;
mod open;
mod read;
mod table;
mod unpack;
mod utf16;

pub use block::{Block, Buffer, BufferPool};
pub use error::{Defect, InputError, ListError};
pub use inflate::MemberEnd;
pub use keyed::KeyedFile;
pub use list::{Origin, Source, Sources, list};
pub use open::{OpenOptions, Opened, Stream, open};
pub use table::{TableColumns, TableOptions, TableReader};
