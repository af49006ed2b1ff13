//! Versions of objects, which are compared so that no two are mixed: [`ObjectVersion`].

use object_store::{GetResult, ObjectMeta};

use super::service::UnknownLength;

/// What distinguishes two contents of an object.
#[derive(Clone, Debug)]
pub(super) struct ObjectVersion {
    /// Bytes; `None` if the server does not say it.
    pub(super) len: Option<u64>,
    /// The entity tag without quotes, which are missing in listings of Azure.
    pub(super) tag: Option<String>,
    /// Time of the last change, seconds since 1970; 0 if the server does not say it.
    pub(super) modified: i64,
}

impl ObjectVersion {
    /// The version in a listing, or in the head of an answer.
    pub(super) fn of(meta: &ObjectMeta, is_len_known: bool) -> ObjectVersion {
        let tag = meta.e_tag.as_ref().map(|tag| tag.trim_matches('"').to_string());
        ObjectVersion { len: is_len_known.then_some(meta.size), tag, modified: meta.last_modified.timestamp() }
    }

    /// Both are the same content.
    pub(super) fn is_same(&self, other: &ObjectVersion) -> bool {
        let is_same_tag = match (&self.tag, &other.tag) {
            (Some(tag), Some(other)) => tag == other,
            _ => self.modified == other.modified,
        };
        is_same_tag && self.len == other.len
    }

    /// The version that was sent.
    pub(super) fn of_answer(result: &GetResult) -> ObjectVersion {
        let is_len_known = result.extensions.get::<UnknownLength>().is_none();
        ObjectVersion::of(&result.meta, is_len_known)
    }
}
