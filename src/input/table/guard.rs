//! Catches panics of the crates that decode tables. A file may hold anything, and a panic must end one source only.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, catch_unwind};

thread_local! {
    /// This thread runs [`catch_panic`].
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// The message of a caught panic.
pub(super) const DECODER_PANICKED: &str = "the decoder panicked";

/// Runs `work` and returns its result, or the result of `error` if it panics. After an error, nothing that `work` has
/// changed may be used.
pub(crate) fn catch_panic<T, E>(work: impl FnOnce() -> Result<T, E>, error: impl FnOnce(String) -> E) -> Result<T, E> {
    let was_guarded = IS_GUARDED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    IS_GUARDED.set(was_guarded);
    result.unwrap_or_else(|_| Err(error(DECODER_PANICKED.to_string())))
}

/// Installs a panic hook that prints nothing for panics that become a [`Defect`](crate::input::Defect). If zstd has no memory for
/// a context, for which its crate panics, the process ends as it does without memory for anything else.
pub(crate) fn set_panic_hook() {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if IS_GUARDED.get() {
            return;
        }
        #[cfg(unix)]
        if info.payload_as_str().is_some_and(|text| text.starts_with("zstd returned null pointer")) {
            crate::process::end_without_memory();
        }
        print(info);
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_become_errors() {
        assert_eq!(catch_panic(|| Ok(1), |error| error), Ok(1));
        assert_eq!(catch_panic::<(), _>(|| panic!("decoder"), |error| error), Err(DECODER_PANICKED.to_string()));
        assert!(!IS_GUARDED.get());
    }
}
