//! Which vector instructions the processor has, as values that prove it.
//!
//! A kernel that is compiled for an instruction set may only run on a processor that has the instructions. [`Avx2`] and
//! [`Avx512`] are zero-sized values that only their `new` creates, and only after it tested the processor. Code that
//! holds such a value may call kernels of that level. The standard library tests the processor once and caches the result.

/// Proof that the processor has AVX2 (32-byte vectors).
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx2(());

#[cfg(target_arch = "x86_64")]
impl Avx2 {
    /// Returns the proof if the processor has AVX2.
    #[inline(always)]
    pub(super) fn new() -> Option<Avx2> {
        std::arch::is_x86_feature_detected!("avx2").then_some(Avx2(()))
    }
}

/// Proof that the processor has AVX-512 F, BW, CD and DQ (64-byte vectors with masks), as all processors with BW do.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx512(());

#[cfg(target_arch = "x86_64")]
impl Avx512 {
    /// Returns the proof if the processor has all four instruction sets.
    #[inline(always)]
    pub(super) fn new() -> Option<Avx512> {
        use std::arch::is_x86_feature_detected as has;
        (has!("avx512f") && has!("avx512bw") && has!("avx512cd") && has!("avx512dq")).then_some(Avx512(()))
    }
}

/// An instruction set that kernels are written for and that the processor has.
#[derive(Clone, Copy, Debug)]
pub(super) enum SimdLevel {
    /// Portable code, which the compiler vectorizes with the baseline instructions of the target.
    #[cfg_attr(all(target_arch = "aarch64", not(test)), expect(dead_code))]
    Portable,
    /// 16-byte vectors, which every aarch64 processor has.
    #[cfg(target_arch = "aarch64")]
    Neon,
    /// 32-byte vectors.
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    /// 64-byte vectors with masks.
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
}

impl SimdLevel {
    /// Returns the level with the widest vectors that the processor has.
    #[inline]
    pub(super) fn best() -> SimdLevel {
        #[cfg(target_arch = "x86_64")]
        if let Some(avx512) = Avx512::new() {
            return SimdLevel::Avx512(avx512);
        } else if let Some(avx2) = Avx2::new() {
            return SimdLevel::Avx2(avx2);
        }
        #[cfg(target_arch = "aarch64")]
        return SimdLevel::Neon;
        #[cfg(not(target_arch = "aarch64"))]
        SimdLevel::Portable
    }

    /// Returns every level that the processor has, so that tests compare all of them with the scalar definitions.
    #[cfg(test)]
    pub(super) fn available() -> Vec<SimdLevel> {
        let mut levels = vec![SimdLevel::Portable];
        #[cfg(target_arch = "aarch64")]
        levels.push(SimdLevel::Neon);
        #[cfg(target_arch = "x86_64")]
        {
            levels.extend(Avx2::new().map(SimdLevel::Avx2));
            levels.extend(Avx512::new().map(SimdLevel::Avx512));
        }
        levels
    }
}

/// Scalar work that [`run_with_simd`] compiles for several instruction sets.
///
/// The body of [`SimdTask::run`] is compiled for an instruction set only as far as it is inlined: mark `run` and the
/// functions that it calls `#[inline(always)]`.
pub(crate) trait SimdTask {
    /// Does the work.
    fn run(self);
}

/// Runs `task` with AVX2 and the bit manipulation instructions if the processor has them.
///
/// The loop over the lines of a chunk is a task, so that the choice is made once per chunk instead of once per line.
#[inline]
pub(crate) fn run_with_simd(task: impl SimdTask) {
    #[cfg(target_arch = "x86_64")]
    if has_avx2_and_bmi() {
        // SAFETY: `has_avx2_and_bmi` tested for every instruction set that `run_with_avx2_and_bmi` is compiled for.
        return unsafe { run_with_avx2_and_bmi(task) };
    }
    task.run();
}

/// Returns whether the processor has AVX2 and the bit manipulation instructions. Nearly all processors with AVX2 do.
#[cfg(target_arch = "x86_64")]
#[inline]
fn has_avx2_and_bmi() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("avx2") && has!("bmi1") && has!("bmi2") && has!("lzcnt") && has!("popcnt")
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn run_with_avx2_and_bmi(task: impl SimdTask) {
    task.run();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_run_once() {
        struct CountOnes<'a>(&'a [u64], &'a mut u32);
        impl SimdTask for CountOnes<'_> {
            #[inline(always)]
            fn run(self) {
                *self.1 += self.0.iter().map(|word| word.count_ones()).sum::<u32>();
            }
        }
        let mut ones = 0;
        run_with_simd(CountOnes(&[7, 8], &mut ones));
        assert_eq!(ones, 4);
    }
}
