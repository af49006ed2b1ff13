//! Lines for the benchmarks: the file that `IRIKEY_CORPUS` names (`scripts/corpus` generates one), otherwise the samples,
//! repeated.

use std::path::Path;

/// Returns about 8 MB of whole lines.
pub fn lines() -> Vec<u8> {
    const LEN: usize = 8 << 20;
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/samples/urls.txt");
    let path = std::env::var_os("IRIKEY_CORPUS").map_or(samples, Into::into);
    let mut text = std::fs::read(&path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    assert!(text.contains(&b'\n'), "{} has no line ends", path.display());
    text = text.repeat(LEN.div_ceil(text.len()));
    let end = text[..LEN].iter().rposition(|&byte| byte == b'\n').map_or(LEN, |at| at + 1);
    text.truncate(end);
    text
}
