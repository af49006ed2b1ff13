//! Placeholder.

use super::{Policy, Rows};
use crate::iri::{Component, Fault, FaultKind};
use crate::kernel::Bitmaps;
use crate::record::{Offsets, Records};

/// Turns records into rows under one policy; one a worker, reused.
#[derive(Debug)]
pub struct Canonicalizer {
    policy: Policy,
}

impl Canonicalizer {
    /// A canonicalizer for `policy`.
    pub fn new(policy: &Policy) -> Canonicalizer {
        Canonicalizer { policy: policy.clone() }
    }

    /// Appends one row a record to `rows`; `bitmaps` describe `records.text`.
    pub fn append(&mut self, records: &Records<'_>, _bitmaps: &Bitmaps, rows: &mut Rows) {
        for (i, span) in records.urls.iter().enumerate() {
            let url = span.of(records.text);
            let row = rows.len() as u32;
            rows.key.push(self.policy.algorithm.key(url));
            rows.more_keys.iter_mut().for_each(|keys| keys.push(self.policy.algorithm.key(url)));
            rows.flags.push(0);
            rows.offset.push(match records.offsets {
                Offsets::From(base) => base + u64::from(span.at),
                Offsets::Each(offsets) => offsets[i],
            });
            if rows.differs.len() * 64 <= row as usize {
                rows.differs.push(0);
            }
            rows.tally.rows += 1;
            if url.starts_with(b"http") {
                rows.uri.values.extend_from_slice(&url.to_ascii_lowercase());
                rows.tally.unchanged += 1;
            } else {
                rows.faults.push((row, Fault::new(FaultKind::Relative, Component::Reference, 0)));
                rows.tally.faulty += 1;
                rows.tally.faults[FaultKind::Relative as usize] += 1;
                rows.differs[row as usize / 64] |= 1 << (row % 64);
                if self.policy.keep_input {
                    rows.input.values.extend_from_slice(url);
                }
            }
            rows.uri.end();
            rows.input.end();
        }
    }
}
