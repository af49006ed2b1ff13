//! Which instructions the processor has. std asks it once and keeps the answer.

/// A set of instructions that kernels are written in, poorest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Those that every processor has, 64 bits at a time or as the compiler finds.
    Words,
    /// 32-byte vectors.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 64-byte vectors with masks: AVX-512 F, BW and DQ.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    /// All levels of this architecture, poorest first.
    #[cfg(target_arch = "x86_64")]
    pub const ALL: [Level; 3] = [Level::Words, Level::Avx2, Level::Avx512];
    /// All levels of this architecture, poorest first.
    #[cfg(not(target_arch = "x86_64"))]
    pub const ALL: [Level; 1] = [Level::Words];

    /// The processor has it.
    #[inline(always)]
    pub fn is_available(self) -> bool {
        match self {
            Level::Words => true,
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => std::arch::is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => {
                use std::arch::is_x86_feature_detected as has;
                has!("avx512f") && has!("avx512bw") && has!("avx512dq")
            }
        }
    }

    /// The richest level that the processor has.
    pub fn best() -> Level {
        Level::ALL.into_iter().rfind(|level| level.is_available()).unwrap_or(Level::Words)
    }
}
