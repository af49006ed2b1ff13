//! One loop, compiled twice: for any processor of its kind, and for those with AVX2 and the bit instructions that came
//! with it. Kernels that work on a whole text choose once a call; what runs a line at a time is a [`Task`] around the lines.

/// Work that is done with the best instructions that the processor has.
///
/// What [`Task::run`] calls is compiled for them as far as it is inlined: mark it `#[inline(always)]`, `run` itself too.
pub trait Task {
    /// Does the work.
    fn run(self);
}

/// Runs `task`.
///
/// ```
/// use irikey::kernel::{Task, run};
/// struct Count<'a>(&'a [u64], &'a mut u32);
/// impl Task for Count<'_> {
///     #[inline(always)]
///     fn run(self) {
///         *self.1 = self.0.iter().map(|word| word.count_ones()).sum();
///     }
/// }
/// let mut ones = 0;
/// run(Count(&[7, 8], &mut ones));
/// assert_eq!(ones, 4);
/// ```
#[inline]
pub fn run(task: impl Task) {
    #[cfg(target_arch = "x86_64")]
    if has_haswell() {
        // SAFETY: the processor has these instructions.
        return unsafe { run_haswell(task) };
    }
    task.run();
}

/// AVX2 and the bit instructions: all processors that have one have the others, but for a few that are asked for here.
#[cfg(target_arch = "x86_64")]
#[inline]
fn has_haswell() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("avx2") && has!("bmi1") && has!("bmi2") && has!("lzcnt") && has!("popcnt")
}

/// # Safety
/// The processor has these instructions.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn run_haswell(task: impl Task) {
    task.run();
}
