//! The counts of a [`Tally`] with the names that `irikey schema` lists.

use crate::canon::{RecipeTally, Tally};
use crate::iri::{Changes, FaultKind, Flags, SpoofingFlags};
use crate::key::RULES;

pub(super) type NamedCounts = Vec<(&'static str, u64)>;

/// Records that each normalization step changed.
pub(super) fn of_changes(tally: &Tally) -> NamedCounts {
    Changes::ALL.iter().map(|(_, name, _)| *name).zip(tally.changes).collect()
}

pub(super) fn of_faults(tally: &Tally) -> NamedCounts {
    FaultKind::ALL.into_iter().map(FaultKind::name).zip(tally.faults).collect()
}

pub(super) fn of_flags(tally: &Tally) -> NamedCounts {
    Flags::ALL.iter().map(|(_, name, _)| *name).zip(tally.flags).collect()
}

pub(super) fn of_spoofing_flags(tally: &Tally) -> NamedCounts {
    SpoofingFlags::ALL.iter().map(|(_, name, _)| *name).zip(tally.spoofing_flags).collect()
}

/// Keys that each rule of a recipe changed.
pub(super) fn of_rules(recipe: &RecipeTally) -> NamedCounts {
    RULES.iter().map(|rule| rule.name).zip(recipe.applied.iter().copied()).collect()
}
