//! What is wrong with an archive: [`ArchiveDamage`].

use std::fmt;

/// Damage that an archive has besides its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArchiveDamage {
    /// Bytes that belong to no record.
    pub stray_len: u64,
    /// Number of places that have such bytes.
    pub stray_count: u64,
    /// Number of records whose content is shorter than their length states.
    pub short_count: u64,
    /// Byte of the decompressed archive at which the first damage is.
    pub at: Option<u64>,
}

impl fmt::Display for ArchiveDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |count| if count == 1 { "" } else { "s" };
        let ArchiveDamage { stray_len, stray_count, short_count, at } = *self;
        if stray_count > 0 {
            let (bytes, places) = (plural(stray_len), plural(stray_count));
            let [verb, was] = if stray_len == 1 { ["belongs", "was"] } else { ["belong", "were"] };
            write!(f, "{stray_len} byte{bytes} in {stray_count} place{places} {verb} to no record and {was} skipped")?;
        }
        if short_count > 0 {
            let lead = if stray_count > 0 { ", and " } else { "" };
            let (records, verb) = (plural(short_count), if short_count == 1 { "is" } else { "are" });
            write!(f, "{lead}{short_count} record{records} {verb} shorter than stated in the header")?;
        }
        write!(f, ", first at byte {} (after decompression)", at.unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_described_in_singular_and_plural() {
        for (stray_len, stray_count, short_count, text) in [
            (1, 1, 0, "1 byte in 1 place belongs to no record and was skipped, first at byte 7 (after decompression)"),
            (0, 0, 1, "1 record is shorter than stated in the header, first at byte 7 (after decompression)"),
            (
                9,
                2,
                3,
                "9 bytes in 2 places belong to no record and were skipped, and 3 records are shorter than stated in the \
                 header, first at byte 7 (after decompression)",
            ),
        ] {
            let damage = ArchiveDamage { stray_len, stray_count, short_count, at: Some(7) };
            assert_eq!(damage.to_string(), text);
        }
    }
}
