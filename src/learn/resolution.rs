//! Follows redirects and patterns to where they end, and makes classes of the URLs that lead to one URL:
//! [`RedirectObserver::finish`].
//!
//! ```text
//! keys    --link--> the next URL of each URL, contents of forms --mark_loops--> loops
//! contents --mark_contradicted--> redirects that contradict the contents of forms
//! edges   --judge--> verdicts of all edges, votes --> groups
//! targets --add_ends--> URLs where redirects end without a response --> groups
//! groups  --learn_groups--> patterns; the URLs that patterns make of ends --add_patterns--> the next URL of each end
//! edges, patterns, targets --members--> rows by the number of the URL where they end --rank--> rows by representative
//! ```
//!
//! Texts are in sorters only. In memory are the number of the next URL and the flags of each numbered URL, and a state while loops are searched: six
//! bytes.

use super::equivalences::{Equivalences, EquivalencesBuilder};
use super::graph::{NOWHERE, follow_to_ends, mark_loops};
use super::learned::{LearnCounts, LearnedRedirects, MemberReason, MemberRow};
use super::observer::{RedirectObserver, flag};
use super::patterns::{END, GroupVotes, HostVotes, count_accepted, count_against, group_of, write_votes};
use super::redirect::{LearnLimits, RedirectEvidence, RedirectVerdict};
use super::redirect_rows::{ContentRow, EdgeRow, KeyOf, KeyRow, NumberedUrl};
use super::sorter::{FieldReader, ReadRecords, ReaderOf, RecordFields, SortRecords, SorterFactory};
use super::spelling::Spelling;
use crate::key::{KeyAlgorithm, KeyBytes};

/// Where the numbered URLs lead.
pub(super) struct Resolution<'a, S: SorterFactory> {
    sorters: &'a S,
    next: Vec<u32>,
    pub(super) flags: Vec<u8>,
    /// URLs that only patterns make: their numbers follow those of the others, and they lead nowhere.
    added: u32,
    pub(super) record: Vec<u8>,
    /// URLs that classes may end at. One may occur twice.
    ends: S::Sorter,
    /// Rows of members by the number of the URL where they end.
    members: S::Sorter,
}

impl<S: SorterFactory> RedirectObserver<S> {
    /// Decides about the remaining edges, learns patterns, and makes classes.
    pub(crate) fn finish(mut self, sorters: &S) -> Result<LearnedRedirects<S>, S::Error> {
        self.end()?;
        let RedirectObserver { limits, algorithm, records, flags, mut counts, .. } = self;
        let mut made = sorters.sorter();
        let mut urls = Resolution {
            sorters,
            next: vec![NOWHERE; flags.len()],
            flags,
            added: 0,
            record: Vec::new(),
            ends: sorters.sorter(),
            members: sorters.sorter(),
        };
        let forms = urls.link(records.keys.sorted()?, &mut made)?;
        urls.mark_contradicted(forms.sorted()?, records.contents)?;
        let mut groups = records.groups;
        let edges = urls.judge(records.edges.sorted()?, &mut groups, &mut counts)?;
        urls.add_ends(records.targets.sorted()?, &mut groups)?;
        let mut learned_patterns = sorters.sorter();
        let mut learner: GroupLearner<'_, S> = GroupLearner {
            algorithm,
            limits: &limits,
            counts: &mut counts,
            patterns: &mut learned_patterns,
            made: &mut made,
            record: Vec::new(),
        };
        learner.learn(groups.sorted()?)?;
        urls.add_patterns(made.sorted()?, edges)?;
        let members = urls.rank(&mut counts)?;
        counts.read = counts.records.iter().sum();
        Ok(LearnedRedirects { algorithm, counts, members, patterns: learned_patterns.sorted()? })
    }
}

impl<S: SorterFactory> Resolution<'_, S> {
    /// Finds the next URL of every source by its key, and writes the keys of all URLs to `keys`. Returns the contents of the
    /// URLs that rules about content make.
    fn link(&mut self, mut reader: ReaderOf<S>, keys: &mut S::Sorter) -> Result<S::Sorter, S::Error> {
        let (mut node, mut forms) = (None, self.sorters.sorter());
        while let Some(record) = reader.next_record()? {
            let mut fields = FieldReader(record);
            let KeyRow { key, of, number } = KeyRow::read(&mut fields);
            match node.filter(|(known, _)| of != KeyOf::Url && *known == key) {
                _ if of == KeyOf::Url => {
                    node = Some((key, number));
                    keys.push(record)?;
                }
                Some((_, form)) if of == KeyOf::Form => {
                    self.record.clear();
                    ContentRow { number: form, content: fields.u64(), sought_for: None }.write(&mut self.record);
                    forms.push(&self.record)?;
                }
                Some((_, target)) => self.set_next(number, target),
                None => (),
            }
        }
        Ok(forms)
    }

    /// Returns the URL to which a URL redirects; [`NOWHERE`] if it does not.
    pub(super) fn next_of(&self, number: u32) -> u32 {
        self.next.get(number as usize).copied().unwrap_or(NOWHERE)
    }

    fn set_next(&mut self, number: u32, target: u32) {
        if let Some(next) = self.next.get_mut(number as usize) {
            *next = target;
        }
    }

    pub(super) fn set_flag(&mut self, number: u32, flag: u8) {
        if let Some(flags) = self.flags.get_mut(number as usize) {
            *flags |= flag;
        }
    }

    pub(super) fn flag(&self, number: u32, flag: u8) -> bool {
        self.flags.get(number as usize).is_some_and(|flags| flags & flag != 0)
    }

    /// Refuses edges in loops, to sinks, and that contents contradict, and counts votes. Returns the accepted edges.
    fn judge(
        &mut self,
        mut edges: ReaderOf<S>,
        groups: &mut S::Sorter,
        counts: &mut LearnCounts,
    ) -> Result<S::Sorter, S::Error> {
        let is_loop = mark_loops(&self.next);
        let (mut accepted, mut votes, mut host) = (self.sorters.sorter(), HostVotes::new(), Vec::new());
        while let Some(record) = edges.next_record()? {
            let EdgeRow { number, evidence, from, to } = EdgeRow::read(record);
            let spelling = Spelling::of(from);
            let authority = spelling.map_or(&b""[..], |from| from.authority);
            if host != authority {
                write_votes(&std::mem::take(&mut votes), &mut self.record, groups)?;
                host = authority.to_vec();
            }
            let change = spelling.and_then(|from| from.change_to(&Spelling::of(to)?));
            let next = self.next_of(number);
            let verdict = match change {
                _ if is_loop.get(number as usize) == Some(&true) => RedirectVerdict::Loop,
                None if self.flag(next, flag::SINK) => RedirectVerdict::Sink,
                None if self.flag(number, flag::CONTRADICTED) => RedirectVerdict::Contradicted,
                _ => RedirectVerdict::Accepted,
            };
            counts.records[verdict as usize] += evidence.records;
            counts.redirects[verdict as usize] += 1;
            if verdict != RedirectVerdict::Accepted {
                if verdict != RedirectVerdict::Loop {
                    count_against(&mut votes, from);
                }
                self.set_next(number, NOWHERE);
                continue;
            }
            counts.origin_changes += u64::from(change.is_some_and(|change| change.origin));
            counts.slash_changes += u64::from(change.is_some_and(|change| change.slash.is_some()));
            count_accepted(&mut votes, from, to);
            self.set_flag(next, flag::TARGET);
            accepted.push(record)?;
        }
        write_votes(&votes, &mut self.record, groups)?;
        Ok(accepted)
    }

    /// Adds the URLs where accepted edges end to their groups, if they did not respond.
    fn add_ends(&mut self, mut targets: ReaderOf<S>, groups: &mut S::Sorter) -> Result<(), S::Error> {
        while let Some(target) = targets.next_record()? {
            let end @ NumberedUrl { number, uri } = NumberedUrl::read(FieldReader(target));
            if !self.flag(number, flag::TARGET) || self.next.get(number as usize) != Some(&NOWHERE) {
                continue;
            }
            self.ends.push(target)?;
            if let (false, Some(spelling)) = (self.flag(number, flag::SERVED), Spelling::of(uri)) {
                self.record.clear();
                self.record.put_text(group_of(spelling.authority));
                self.record.push(END);
                end.write(&mut self.record);
                groups.push(&self.record)?;
            }
        }
        Ok(())
    }

    /// Joins ends to the URLs that patterns make of them, unless that closes a loop, and writes the rows of members.
    fn add_patterns(&mut self, mut made: ReaderOf<S>, edges: S::Sorter) -> Result<(), S::Error> {
        let (mut node, mut by_pattern) = (None::<(KeyBytes, u32)>, self.sorters.sorter());
        while let Some(record) = made.next_record()? {
            let mut fields = FieldReader(record);
            let KeyRow { key, of, number } = KeyRow::read(&mut fields);
            if of == KeyOf::Url {
                node = Some((key, number));
                continue;
            }
            let (text, end) = (fields.text(), fields.0);
            let target = match node {
                Some((known, target)) if known == key => target,
                _ => self.add_url(),
            };
            node = Some((key, target));
            self.set_next(number, target);
            self.record.clear();
            NumberedUrl { number: target, uri: text }.write(&mut self.record);
            self.ends.push(&self.record)?;
            self.set_flag(number, flag::PATTERN);
            self.record.clear();
            self.record.put_u32(number);
            self.record.put_text(end);
            self.record.extend_from_slice(text);
            by_pattern.push(&self.record)?;
        }
        self.refuse_pattern_loops();
        follow_to_ends(&mut self.next);
        self.add_members(edges.sorted()?, by_pattern.sorted()?)
    }

    /// Numbers a URL that no record has.
    fn add_url(&mut self) -> u32 {
        self.added += 1;
        self.next.len() as u32 + self.added - 1
    }

    /// Refuses patterns that would close a loop of observed redirects.
    fn refuse_pattern_loops(&mut self) {
        if self.flags.iter().all(|flags| flags & flag::PATTERN == 0) {
            return;
        }
        let is_loop = mark_loops(&self.next);
        for ((next, flags), is_loop) in self.next.iter_mut().zip(&mut self.flags).zip(is_loop) {
            if is_loop && *flags & flag::PATTERN != 0 {
                (*next, *flags) = (NOWHERE, *flags & !flag::PATTERN);
            }
        }
    }

    /// Writes the rows of members, except for representatives.
    fn add_members(&mut self, mut edges: ReaderOf<S>, mut by_pattern: ReaderOf<S>) -> Result<(), S::Error> {
        while let Some(record) = edges.next_record()? {
            let EdgeRow { number, evidence, from, to } = EdgeRow::read(record);
            let RedirectEvidence { code, records, first } = evidence;
            let how = MemberReason::Redirect(code);
            self.add_member(number, MemberRow { how, records, first, uri: from, target: to })?;
        }
        while let Some(record) = by_pattern.next_record()? {
            let mut fields = FieldReader(record);
            let number = fields.u32();
            if self.flag(number, flag::PATTERN) {
                let uri = fields.text();
                self.add_member(number, MemberRow::without_records(MemberReason::Pattern, uri, fields.0))?;
            }
        }
        Ok(())
    }

    fn add_member(&mut self, number: u32, row: MemberRow<'_>) -> Result<(), S::Error> {
        let Some(end) = self.next.get(number as usize).filter(|end| **end != NOWHERE) else { return Ok(()) };
        self.record.clear();
        self.record.put_u32(*end);
        self.record.push(MEMBER);
        row.write(&mut self.record);
        self.members.push(&self.record)
    }

    /// Gives every member its representative, and sorts the rows by representative and URL.
    fn rank(self, counts: &mut LearnCounts) -> Result<ReaderOf<S>, S::Error> {
        let Resolution { sorters, mut members, ends, next, mut record, .. } = self;
        let mut ends = ends.sorted()?;
        while let Some(end) = ends.next_record()? {
            let NumberedUrl { number, uri } = NumberedUrl::read(FieldReader(end));
            if next.get(number as usize).is_none_or(|next| *next == NOWHERE) {
                record.clear();
                record.put_u32(number);
                record.push(REPRESENTATIVE);
                record.extend_from_slice(uri);
                members.push(&record)?;
            }
        }
        drop(next);
        let (mut ranked, mut members, mut class) = (sorters.sorter(), members.sorted()?, Class::default());
        while let Some(member) = members.next_record()? {
            let mut fields = FieldReader(member);
            let (number, kind) = (fields.u32(), fields.u8());
            if kind == REPRESENTATIVE {
                class.begin(number, fields.0);
                continue;
            }
            if class.members == 0 {
                let uri = &class.representative;
                write_row(uri, MemberRow::without_records(MemberReason::Representative, uri, b""), &mut record);
                ranked.push(&record)?;
                (counts.classes, counts.members, class.members) = (counts.classes + 1, counts.members + 1, 1);
            }
            class.members += 1;
            counts.members += 1;
            counts.largest = counts.largest.max(class.members);
            write_row(&class.representative, MemberRow::read(&mut fields), &mut record);
            ranked.push(&record)?;
        }
        ranked.sorted()
    }
}

/// Marks the row of the URL where a class ends; it comes before the other rows of the class.
const REPRESENTATIVE: u8 = 0;

/// Marks the row of another member.
const MEMBER: u8 = 1;

/// The class whose rows are read.
#[derive(Default)]
struct Class {
    number: Option<u32>,
    representative: Vec<u8>,
    members: u64,
}

impl Class {
    /// Begins the class of a representative, which may be named twice.
    fn begin(&mut self, number: u32, uri: &[u8]) {
        if self.number.replace(number) != Some(number) {
            self.members = 0;
            self.representative.clear();
            self.representative.extend_from_slice(uri);
        }
    }
}

/// Writes the row of a member of a class.
fn write_row(representative: &[u8], row: MemberRow<'_>, record: &mut Vec<u8>) {
    record.clear();
    record.put_text(representative);
    row.write(record);
}

/// Learns the patterns of one group of hosts after the other, and applies them to the ends of the group.
struct GroupLearner<'a, S: SorterFactory> {
    algorithm: KeyAlgorithm,
    limits: &'a LearnLimits,
    counts: &'a mut LearnCounts,
    patterns: &'a mut S::Sorter,
    /// URLs that patterns make: key, number of the end, URL and end.
    made: &'a mut S::Sorter,
    record: Vec<u8>,
}

impl<S: SorterFactory> GroupLearner<'_, S> {
    fn learn(&mut self, mut groups: ReaderOf<S>) -> Result<(), S::Error> {
        let (mut group, mut votes, mut hosts) = (None::<Vec<u8>>, GroupVotes::default(), None::<Equivalences>);
        while let Some(record) = groups.next_record()? {
            let mut fields = FieldReader(record);
            let name = fields.text();
            if group.as_deref() != Some(name) {
                self.end_group(std::mem::take(&mut votes))?;
                (group, hosts) = (Some(name.to_vec()), None);
            }
            if votes.add(fields) {
                continue;
            }
            let hosts = match &mut hosts {
                Some(hosts) => hosts,
                None => hosts.insert(self.end_group(std::mem::take(&mut votes))?.build_unchecked()),
            };
            fields.u8();
            self.apply(hosts, NumberedUrl::read(fields))?;
        }
        self.end_group(votes)?;
        Ok(())
    }

    /// Learns the patterns of a group, and returns them. They are built only if the group has ends.
    fn end_group(&mut self, votes: GroupVotes) -> Result<EquivalencesBuilder, S::Error> {
        let mut hosts = EquivalencesBuilder::new(self.algorithm);
        for pattern in votes.learn(self.limits, &mut self.counts.refused) {
            // Patterns that contradict each other were refused before.
            let added = hosts.add_pattern(&pattern.host, pattern.rewrite);
            debug_assert!(added.is_ok());
            self.counts.patterns += 1;
            pattern.write(&mut self.record);
            self.patterns.push(&self.record)?;
        }
        Ok(hosts)
    }

    /// Applies patterns to an end.
    fn apply(&mut self, hosts: &Equivalences, end: NumberedUrl<'_>) -> Result<(), S::Error> {
        let Some((text, (key, _))) = hosts.follow(end.uri) else { return Ok(()) };
        self.record.clear();
        KeyRow { key, of: KeyOf::Target, number: end.number }.write(&mut self.record);
        self.record.put_text(&text);
        self.record.extend_from_slice(end.uri);
        self.made.push(&self.record)
    }
}
