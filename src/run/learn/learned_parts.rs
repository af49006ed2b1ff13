//! Merges what was learned of parts of the captures: [`OpenParts`].
//!
//! ```text
//! captures of some registered domains --learn --part--> part: rules of the domains in order, votes for rules for all hosts
//! parts --merge by domain--> rules of all domains in order; votes --sum--> rules for all hosts
//! ```
//!
//! All captures of a registered domain belong to one part. Then the result is the same as if all captures were learned from
//! at once.

use super::super::equivalences::{EquivalencesError, catch_table_panic, open_table};
use super::content_rules::LearnedContent;
use super::held_out::HeldOutSpool;
use super::parts_error::PartsError;
use super::rule_collector::RuleCollector;
use crate::batch::{EquivalencesTableError, PartRow, check_part, part_row};
use crate::canon::Policy;
use crate::input::ParquetBatches;
use crate::learn::content::{ScopeRule, ScopedRule, Votes, site_of};
use parquet::arrow::ProjectionMask;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::path::{Path, PathBuf};

/// Rows of a part that are held at a time.
const BATCH_ROWS: usize = 1024;

/// Files with parts, which are open and were learned with the same limits.
pub(super) struct OpenParts<'a> {
    paths: &'a [PathBuf],
    readers: Vec<PartReader<'a>>,
}

impl OpenParts<'_> {
    /// Opens the parts in files, for keys of `policy`.
    ///
    /// # Errors
    /// A file cannot be opened, or is not a part; parts have different limits.
    pub(super) fn open<'a>(paths: &'a [PathBuf], policy: &Policy) -> Result<OpenParts<'a>, PartsError> {
        let mut readers: Vec<PartReader<'a>> = Vec::with_capacity(paths.len());
        for path in paths {
            let part = PartReader::open(path, policy)?;
            if let Some(first) = readers.first().filter(|first| first.limits != part.limits) {
                let (ours, theirs) = (first.limits.clone(), part.limits);
                return Err(PartsError::Limits { path: path.clone(), first: paths[0].clone(), theirs, ours });
            }
            readers.push(part);
        }
        Ok(OpenParts { paths, readers })
    }

    /// Merges the parts; returns `None` if there are none.
    pub(super) fn merge(self, directory: &Path) -> Result<Option<LearnedContent>, PartsError> {
        let OpenParts { paths, readers: mut parts } = self;
        if parts.is_empty() {
            return Ok(None);
        }
        let mut collector = RuleCollector::new(directory);
        for part in &mut parts {
            for (rule, votes) in part.read_votes()? {
                collector.general.add_part(rule, votes);
            }
        }
        // The next site of each part, the first in the order of sites at the top.
        let mut next = BinaryHeap::new();
        for (i, part) in parts.iter_mut().enumerate() {
            next.extend(part.next_site()?.map(|site| Reverse((site, i))));
        }
        let mut last: Option<(SitePlace, usize)> = None;
        while let Some(Reverse((site, i))) = next.pop() {
            if let Some((_, other)) = last.as_ref().filter(|(known, other)| *known == site && *other != i) {
                return Err(PartsError::Site {
                    paths: [*other, i].map(|at| paths[at].clone()),
                    site: parts[i].site_name(),
                });
            }
            collector.add_rules(std::mem::take(&mut parts[i].site))?;
            next.extend(parts[i].next_site()?.map(|site| Reverse((site, i))));
            last = Some((site, i));
        }
        collector.spill()?;
        Ok(Some(LearnedContent::collected(collector, HeldOutSpool::new(directory))))
    }
}

/// The labels of a registered domain, reversed, and their end. Places compare as sites are learned: as the hosts of captures are
/// sorted, but those below a site come before it, because its last host may come after theirs.
type SitePlace = Vec<PlaceLabel>;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PlaceLabel {
    Label(Vec<u8>),
    /// Compares after every label.
    End,
}

fn place_of(site: &[u8]) -> SitePlace {
    let labels = site.rsplit(|byte| *byte == b'.').map(|label| PlaceLabel::Label(label.to_vec()));
    labels.chain([PlaceLabel::End]).collect()
}

fn site_of_scope(scope: &[u8]) -> &[u8] {
    scope.strip_prefix(b"*.").unwrap_or_else(|| site_of(scope))
}

struct PartReader<'a> {
    path: &'a Path,
    limits: String,
    batches: ParquetBatches,
    rows: VecDeque<PartRow>,
    /// Number of rows that were read.
    read: u64,
    /// The rules of the next site.
    site: Vec<ScopeRule>,
}

impl PartReader<'_> {
    fn open<'a>(path: &'a Path, policy: &Policy) -> Result<PartReader<'a>, PartsError> {
        let open = || {
            let table = open_table(path)?;
            let limits = check_part(table.metadata.schema(), policy)?;
            Ok((limits, table.batches(&ProjectionMask::all(), BATCH_ROWS)?))
        };
        let failed = |error| PartsError::Read { path: path.to_path_buf(), error };
        let (limits, batches) = catch_table_panic(open).map_err(failed)?;
        Ok(PartReader { path, limits, batches, rows: VecDeque::new(), read: 0, site: Vec::new() })
    }

    fn failed(&self, error: impl Into<EquivalencesError>) -> PartsError {
        PartsError::Read { path: self.path.to_path_buf(), error: error.into() }
    }

    /// The name of the next site.
    fn site_name(&self) -> String {
        let site = self.site.first().map_or(&[][..], |rule| site_of_scope(&rule.scope));
        String::from_utf8_lossy(site).into_owned()
    }

    /// Row number `row`, from 1, is invalid.
    fn invalid(&self, row: u64, reason: String) -> PartsError {
        self.failed(EquivalencesTableError::Row { row, reason })
    }

    /// Makes sure that a row is held. Returns false after the last.
    fn fill(&mut self) -> Result<bool, PartsError> {
        while self.rows.is_empty() {
            let next = || Ok(self.batches.next().transpose()?);
            let Some(batch) = catch_table_panic(next).map_err(|error| self.failed(error))? else { return Ok(false) };
            for row in 0..batch.num_rows() {
                self.read += 1;
                self.rows.push_back(part_row(&batch, row).map_err(|reason| self.invalid(self.read, reason))?);
            }
        }
        Ok(true)
    }

    /// Reads the votes, which are the first rows.
    fn read_votes(&mut self) -> Result<Vec<(ScopedRule, Votes)>, PartsError> {
        let mut votes = Vec::new();
        while self.fill()? {
            match self.rows.pop_front() {
                Some(PartRow::Votes(rule, counts)) => votes.push((rule, counts)),
                Some(rule) => {
                    self.rows.push_front(rule);
                    break;
                }
                None => break,
            }
        }
        Ok(votes)
    }

    /// Reads the rules of the next site into `site`; returns `None` after the last.
    fn next_site(&mut self) -> Result<Option<SitePlace>, PartsError> {
        let mut site = Vec::new();
        while self.fill()? {
            match self.rows.pop_front() {
                Some(PartRow::Rule(rule)) if self.site.is_empty() || site_of_scope(&rule.scope) == site => {
                    site = site_of_scope(&rule.scope).to_vec();
                    self.site.push(rule);
                }
                Some(PartRow::Votes(..)) => {
                    let row = self.read - self.rows.len() as u64;
                    return Err(self.invalid(row, "votes follow rules".to_string()));
                }
                Some(rule) => {
                    self.rows.push_front(rule);
                    break;
                }
                None => break,
            }
        }
        Ok((!self.site.is_empty()).then(|| place_of(&site)))
    }
}
