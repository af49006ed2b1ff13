//! Which partition a row belongs to: by a hash of its host, or by the range of its SURT key. The number of a partition is
//! part of the names of files, so the mapping never changes.

use std::fmt;

use arrow::array::{Array, StringArray, UInt32Array};

use crate::key::KeyAlgorithm;

/// The first keys of all partitions but the first, ascending; one per line in a file.
///
/// ```
/// use irikey::sort::SplitPoints;
/// let points = SplitPoints::parse("com,example)/\norg,\n").unwrap();
/// assert_eq!([points.find("com,a)/"), points.find("com,example)/"), points.find("org,z)/")], [0, 1, 2]);
/// assert!(SplitPoints::parse("org,\ncom,\n").is_err());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SplitPoints(Vec<String>);

impl SplitPoints {
    /// Parses the text of a file.
    ///
    /// # Errors
    /// The number, from 1, of the first line that is not greater than the line before it.
    pub fn parse(text: &str) -> Result<SplitPoints, usize> {
        let points: Vec<String> = text.lines().map(str::to_string).collect();
        match points.windows(2).position(|pair| pair[0] >= pair[1]) {
            Some(index) => Err(index + 2),
            None => Ok(SplitPoints(points)),
        }
    }

    /// Adds a point that is greater than all others.
    pub(crate) fn push(&mut self, point: String) {
        self.0.push(point);
    }

    /// The partition of a key: the number of points that are not greater.
    pub fn find(&self, key: &str) -> u32 {
        self.0.partition_point(|point| point.as_str() <= key) as u32
    }

    pub(crate) fn partitions(&self) -> u32 {
        self.0.len() as u32 + 1
    }
}

impl fmt::Display for SplitPoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|point| writeln!(f, "{point}"))
    }
}

/// How rows are partitioned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Partition {
    /// XXH3-128 of the host (column `url_host_name`), modulo the number of partitions. A missing host counts as empty.
    Host(u32),
    /// By ranges of `url_surtkey`. A row without a key belongs to the last range.
    Surt(SplitPoints),
}

impl Partition {
    /// The names in the directories of partitions, as in `host_hash=07`.
    pub(crate) const HOST_DIRECTORY: &str = "host_hash";
    pub(crate) const SURT_DIRECTORY: &str = "surt_range";

    /// The column that determines the partition.
    pub(crate) fn column(&self) -> &'static str {
        match self {
            Partition::Host(_) => "url_host_name",
            Partition::Surt(_) => "url_surtkey",
        }
    }

    /// The name in the directories of these partitions.
    pub(crate) fn directory_name(&self) -> &'static str {
        match self {
            Partition::Host(_) => Partition::HOST_DIRECTORY,
            Partition::Surt(_) => Partition::SURT_DIRECTORY,
        }
    }

    /// Number of partitions.
    pub fn count(&self) -> u32 {
        match self {
            Partition::Host(count) => *count,
            Partition::Surt(points) => points.partitions(),
        }
    }

    /// The partition of each row, given its values in [`Partition::column`].
    pub(crate) fn of(&self, texts: &StringArray) -> UInt32Array {
        let texts = (0..texts.len()).map(|row| texts.is_valid(row).then(|| texts.value(row)));
        match self {
            Partition::Host(count) => texts.map(|host| host_partition(host.unwrap_or_default(), *count)).collect(),
            Partition::Surt(points) => {
                texts.map(|key| key.map_or(points.partitions() - 1, |key| points.find(key))).collect()
            }
        }
    }
}

fn host_partition(host: &str, count: u32) -> u32 {
    let hash = u128::from_be_bytes(KeyAlgorithm::Xxh3.key(host.as_bytes()));
    (hash % u128::from(count.max(1))) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_of_hosts_are_stable() {
        let hosts = StringArray::from(vec![Some("example.org"), None, Some(""), Some("example.org")]);
        let partitions = Partition::Host(64).of(&hosts);
        assert_eq!(partitions.value(0), partitions.value(3));
        assert_eq!(partitions.value(1), partitions.value(2));
        // This number must not change: other jobs find the rows of a host by it.
        assert_eq!(host_partition("example.org", 64), 38);
        assert!(partitions.iter().all(|partition| partition.unwrap() < 64));
        assert!(Partition::Host(1).of(&hosts).iter().all(|partition| partition == Some(0)));
    }

    #[test]
    fn ranges_begin_at_their_split_points() {
        let points = SplitPoints::parse("b\nd\n").unwrap();
        let keys = StringArray::from(vec![Some("a"), Some("b"), Some("c"), Some("d"), Some("e"), None]);
        let partitions = Partition::Surt(points.clone()).of(&keys);
        assert_eq!(partitions.values(), &[0, 1, 1, 2, 2, 2]);
        assert_eq!(SplitPoints::parse(&points.to_string()), Ok(points));
        assert_eq!(SplitPoints::parse("b\nb\n"), Err(2));
    }
}
