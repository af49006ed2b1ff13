//! Which partition a row belongs to: by a hash of its host, or by where its SURT key stands between split points. In: a
//! column of texts. Out: numbers, from 0. What a hash or a file of split points stands for never changes.

use std::fmt;

use arrow::array::{Array, StringArray, UInt32Array};

use crate::key::KeyAlgorithm;

/// Keys at which partitions begin, ascending; one partition more than there are of them. As a file: one a line.
///
/// ```
/// use irikey::sort::SplitPoints;
/// let points = SplitPoints::parse("com,example)/\norg,\n").unwrap();
/// assert_eq!([points.place("com,a)/"), points.place("com,example)/"), points.place("org,z)/")], [0, 1, 2]);
/// assert!(SplitPoints::parse("org,\ncom,\n").is_err());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SplitPoints(Vec<String>);

impl SplitPoints {
    /// The points of a file.
    ///
    /// # Errors
    /// The first line that does not stand after the one before it, counted from 1.
    pub fn parse(text: &str) -> Result<SplitPoints, usize> {
        let points: Vec<String> = text.lines().map(str::to_string).collect();
        match points.windows(2).position(|pair| pair[0] >= pair[1]) {
            Some(place) => Err(place + 2),
            None => Ok(SplitPoints(points)),
        }
    }

    /// Adds a point after all others.
    pub fn push(&mut self, point: String) {
        self.0.push(point);
    }

    /// The partition of a key: how many points do not stand after it.
    pub fn place(&self, key: &str) -> u32 {
        self.0.partition_point(|point| point.as_str() <= key) as u32
    }

    /// How many partitions there are.
    pub fn partitions(&self) -> u32 {
        self.0.len() as u32 + 1
    }
}

impl fmt::Display for SplitPoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|point| writeln!(f, "{point}"))
    }
}

/// How rows are parted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Partition {
    /// XXH3-128 of the host as `url_host_name` has it, modulo this many. A row without a host counts as one with an empty
    /// one.
    Host(u32),
    /// By ranges of `url_surtkey`. A row without a key belongs to the last one.
    Surt(SplitPoints),
}

impl Partition {
    /// The column that it looks at.
    pub fn column(&self) -> &'static str {
        match self {
            Partition::Host(_) => "url_host_name",
            Partition::Surt(_) => "url_surtkey",
        }
    }

    /// How directories of partitions are called, as in `host_hash=07`.
    pub fn directory_name(&self) -> &'static str {
        match self {
            Partition::Host(_) => "host_hash",
            Partition::Surt(_) => "surt_range",
        }
    }

    /// How many partitions there are.
    pub fn count(&self) -> u32 {
        match self {
            Partition::Host(count) => *count,
            Partition::Surt(points) => points.partitions(),
        }
    }

    /// The partition of each row, of its text in [`Partition::column`].
    pub fn of(&self, texts: &StringArray) -> UInt32Array {
        let texts = (0..texts.len()).map(|row| texts.is_valid(row).then(|| texts.value(row)));
        match self {
            Partition::Host(count) => texts.map(|host| host_place(host.unwrap_or_default(), *count)).collect(),
            Partition::Surt(points) => {
                texts.map(|key| key.map_or(points.partitions() - 1, |key| points.place(key))).collect()
            }
        }
    }
}

fn host_place(host: &str, count: u32) -> u32 {
    let hash = u128::from_be_bytes(KeyAlgorithm::Xxh3.key(host.as_bytes()));
    (hash % u128::from(count.max(1))) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_keep_their_partition() {
        let hosts = StringArray::from(vec![Some("example.org"), None, Some(""), Some("example.org")]);
        let places = Partition::Host(64).of(&hosts);
        assert_eq!(places.value(0), places.value(3));
        assert_eq!(places.value(1), places.value(2));
        // Frozen: other jobs find the rows of a host by it.
        assert_eq!(host_place("example.org", 64), 38);
        assert!(places.iter().all(|place| place.unwrap() < 64));
        assert!(Partition::Host(1).of(&hosts).iter().all(|place| place == Some(0)));
    }

    #[test]
    fn ranges_begin_at_their_points() {
        let points = SplitPoints::parse("b\nd\n").unwrap();
        let keys = StringArray::from(vec![Some("a"), Some("b"), Some("c"), Some("d"), Some("e"), None]);
        let places = Partition::Surt(points.clone()).of(&keys);
        assert_eq!(places.values(), &[0, 1, 1, 2, 2, 2]);
        assert_eq!(SplitPoints::parse(&points.to_string()), Ok(points));
        assert_eq!(SplitPoints::parse("b\nb\n"), Err(2));
    }
}
