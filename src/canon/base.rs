//! Bases of relative references, and the canonical URIs of their parts. Most relative references only have to be appended to
//! such a URI.

use std::borrow::Cow;
use std::sync::Arc;

use super::policy::Policy;
use crate::iri::{
    Base, BasePart, CLASSIFIER, Changes, Fault, FaultKind, Flags, MarkedReference, Normalizer, ParseMode, Rung,
};
use crate::kernel::Bitmaps;
use crate::record::Records;

/// The base of the policy and the one of the last record that had one.
#[derive(Debug)]
pub(super) struct Bases {
    policy: Arc<Policy>,
    /// The base of the policy, if it has one.
    own: Option<PolicyBase>,
    /// Adjacent records often have the same base.
    last: PolicyBase,
}

impl Bases {
    pub(super) fn new(policy: &Arc<Policy>) -> Bases {
        Bases {
            policy: Arc::clone(policy),
            own: policy.base.as_deref().map(|text| PolicyBase::new(text, policy)),
            last: PolicyBase::new(b"", policy),
        }
    }

    /// Returns the base of a record whose own base is `text`, which may be empty; `None` if there is neither this one nor one
    /// of the policy.
    #[inline(always)]
    pub(super) fn get(&mut self, text: &[u8]) -> Option<&mut PolicyBase> {
        if text.is_empty() {
            return self.own.as_mut();
        }
        if self.last.text != text {
            self.last.replace(text, &self.policy);
        }
        Some(&mut self.last)
    }
}

/// A base as a policy reads it.
#[derive(Debug)]
pub(super) struct PolicyBase {
    /// The text of the base in the policy or in a record.
    text: Vec<u8>,
    base: Result<Base, Fault>,
    /// The parts that references were appended to, in the order of [`BasePart`].
    parts: [CanonicalPart; BasePart::COUNT],
    /// The text of a part before normalization.
    part_text: Vec<u8>,
    part_bitmaps: Bitmaps,
}

/// The URI of a part of a base on the rung `scheme`.
#[derive(Debug, Default)]
pub(super) struct CanonicalPart {
    state: PartState,
    uri: Vec<u8>,
    /// The first slash of the path.
    path_at: usize,
    pub(super) flags: Flags,
    pub(super) changes: Changes,
}

/// What is known of a part of a base.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum PartState {
    /// No reference was appended to it yet.
    #[default]
    Unknown,
    /// A URI is made by appending a reference.
    Known,
    /// References are resolved as a whole: the base or this part of it has a fault, the base is not an http or https URI, or the
    /// policy takes bases literally.
    Unusable,
}

impl CanonicalPart {
    /// Returns the URI of a directory after `..` removed `count` segments, or another part if `count` is 0; `None` if it is
    /// not known.
    #[inline(always)]
    pub(super) fn without_segments(&self, count: usize) -> Option<&[u8]> {
        // A flag or a change may come from a segment that is removed.
        if count > 0 && (!self.flags.is_empty() || self.changes != Changes::RESOLVED) {
            return None;
        }
        let mut end = self.uri.len();
        for _ in 0..count {
            let directory = &self.uri[self.path_at..end - 1];
            end = self.path_at + 1 + memchr::memrchr(b'/', directory).unwrap_or(0);
        }
        Some(&self.uri[..end])
    }
}

impl PolicyBase {
    fn new(text: &[u8], policy: &Policy) -> PolicyBase {
        PolicyBase {
            text: text.to_vec(),
            base: read_base(text, policy),
            parts: Default::default(),
            part_text: Vec::new(),
            part_bitmaps: Bitmaps::default(),
        }
    }

    /// Becomes the base `text`, and keeps the memory.
    fn replace(&mut self, text: &[u8], policy: &Policy) {
        self.text.clear();
        self.text.extend_from_slice(text);
        self.base = read_base(text, policy);
        self.parts.iter_mut().for_each(|part| part.state = PartState::Unknown);
    }

    /// Returns the base.
    ///
    /// # Errors
    /// The fault of the base.
    pub(super) fn base(&self) -> Result<&Base, Fault> {
        self.base.as_ref().map_err(|fault| *fault)
    }

    /// Returns the canonical URI of a part, if URIs are made by appending references to it.
    #[inline(always)]
    pub(super) fn part(&mut self, part: BasePart, normalizer: &mut Normalizer) -> Option<&CanonicalPart> {
        if self.parts[part as usize].state == PartState::Unknown {
            self.canonicalize_part(part, normalizer);
        }
        let part = &self.parts[part as usize];
        (part.state == PartState::Known).then_some(part)
    }

    #[inline(never)]
    fn canonicalize_part(&mut self, part: BasePart, normalizer: &mut Normalizer) {
        let canonical = &mut self.parts[part as usize];
        canonical.state = PartState::Unusable;
        let Some(base) = self.base.as_ref().ok().filter(|base| base.is_normalized_http()) else { return };
        self.part_text.clear();
        base.write_part(part, &mut self.part_text);
        self.part_bitmaps.classify(&self.part_text, &CLASSIFIER);
        canonical.uri.clear();
        let reference = MarkedReference::whole(&self.part_text, &self.part_bitmaps);
        let Ok((flags, changes)) = normalizer.normalize(reference, Rung::Scheme, false, &mut canonical.uri) else {
            return;
        };
        if part == BasePart::Authority {
            // The path `/`: the reference begins with one.
            canonical.uri.pop();
        }
        let host_at = self.part_text.iter().position(|byte| *byte == b'/').map_or(0, |slash| slash + 2);
        canonical.path_at =
            canonical.uri[host_at..].iter().position(|byte| *byte == b'/').map_or(0, |slash| host_at + slash);
        (canonical.flags, canonical.changes) = (flags, changes | Changes::RESOLVED);
        canonical.state = PartState::Known;
    }
}

/// Reads a base as the profile and the mode of the policy require.
pub(super) fn read_base(text: &[u8], policy: &Policy) -> Result<Base, Fault> {
    let text = if policy.profile.is_rfc3987() { Cow::Borrowed(text) } else { policy.profile.prepare(text).0 };
    if policy.mode == ParseMode::Strict {
        policy.profile.check_strict(&text).map_err(|fault| Fault { kind: FaultKind::Base, ..fault })?;
    }
    if policy.literal_base { Base::literal(&text) } else { Base::new(&text) }
}

/// Returns the base of record `i`; empty if it has none of its own.
pub(super) fn base_of<'a>(records: &Records<'a>, i: usize) -> &'a [u8] {
    records.bases.get(i).map_or(&[][..], |base| base.of(records.text))
}
