//! The flags that say how single IRIs are read, declared once for the commands that take them.

use crate::iri::{Base, Fault, Intake};

/// How IRIs of the command line are read.
#[derive(Debug, clap::Args)]
pub(super) struct Reading {
    /// Resolve relative references against this absolute IRI
    #[arg(long, value_name = "URI")]
    base: Option<String>,
    /// Refuse whatever RFC 3987 section 2.2 or 4.1 refuses, instead of repairing and flagging it
    #[arg(long)]
    strict: bool,
}

impl Reading {
    /// The base, if one was given.
    pub(super) fn base(&self) -> Result<Option<Base>, Fault> {
        self.base.as_deref().map(|base| Base::new(base.as_bytes())).transpose()
    }

    pub(super) fn intake(&self) -> Intake {
        if self.strict { Intake::Strict } else { Intake::Lenient }
    }
}
