//! The beginning of an object, which is requested before the object is opened: [`ObjectHead`].

use parking_lot::{Mutex, MutexGuard};

use bytes::Bytes;

use super::client::Running;
use super::error::RemoteError;
use super::repetition::FetchError;
use super::version::ObjectVersion;

/// The version of an object, and its first bytes.
pub(super) type Head = (ObjectVersion, Bytes);

/// The answer to the first request of an object. Objects that are cloned share it.
#[derive(Debug)]
pub(super) struct ObjectHead(Mutex<HeadState>);

#[derive(Debug)]
enum HeadState {
    Requested(Running<Result<Head, FetchError>>),
    /// The bytes are there until they are taken.
    Arrived(ObjectVersion, Option<Bytes>),
    Failed(RemoteError),
    /// The server does not answer requests of ranges, or the object is empty, or the request may succeed later.
    Nothing,
}

impl ObjectHead {
    /// Waits for the answer when it is needed.
    pub(super) fn new(request: Running<Result<Head, FetchError>>) -> ObjectHead {
        ObjectHead(Mutex::new(HeadState::Requested(request)))
    }

    /// The version of the object; `None` if it is not known from the answer.
    ///
    /// # Errors
    /// The object does not exist or cannot be read.
    pub(super) fn version(&self) -> Result<Option<ObjectVersion>, RemoteError> {
        match &*self.answered() {
            HeadState::Arrived(version, _) => Ok(Some(version.clone())),
            HeadState::Failed(error) => Err(error.clone()),
            HeadState::Nothing | HeadState::Requested(_) => Ok(None),
        }
    }

    /// Takes the bytes. There are none if they were taken before.
    pub(super) fn take_bytes(&self) -> Option<Bytes> {
        match &mut *self.answered() {
            HeadState::Arrived(_, bytes) => bytes.take(),
            _ => None,
        }
    }

    /// Waits for the answer.
    fn answered(&self) -> MutexGuard<'_, HeadState> {
        let mut state = self.0.lock();
        if matches!(*state, HeadState::Requested(_))
            && let HeadState::Requested(request) = std::mem::replace(&mut *state, HeadState::Nothing)
        {
            *state = match request.wait() {
                Some(Ok((version, bytes))) => HeadState::Arrived(version, Some(bytes)),
                Some(Err(FetchError::Final(error))) => HeadState::Failed(error),
                Some(Err(FetchError::Transient(_))) | None => HeadState::Nothing,
            };
        }
        state
    }
}
