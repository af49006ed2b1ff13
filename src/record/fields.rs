//! What a format says of a record beside its URL. In: fields as a decoder finds them. Out: [`Fields`], columns beside
//! the URLs of [`super::Records`], of the same length, their spans in the same text; those that nobody wants are empty.
//! Nothing is judged here.

use super::Span;
use super::split::gather;

/// Which fields are carried from records to rows; decoders need not look for others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carry {
    /// [`Fields::times`]
    pub time: bool,
    /// [`Fields::statuses`]
    pub status: bool,
    /// [`Fields::redirects`]
    pub redirect: bool,
    /// [`Fields::redirected_from`]
    pub redirected_from: bool,
    /// [`Fields::digests`]
    pub digest: bool,
    /// [`Fields::charsets`]
    pub charset: bool,
}

impl Carry {
    /// All there are.
    pub const ALL: Carry =
        Carry { time: true, status: true, redirect: true, redirected_from: true, digest: true, charset: true };

    /// There is nothing to carry.
    pub fn is_none(self) -> bool {
        self == Carry::default()
    }
}

/// Columns as long as [`super::Records::urls`], or empty; spans point into [`super::Records::text`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Fields<'a> {
    /// Status of the fetch: HTTP's, or a crawler's own, which may be negative.
    pub statuses: &'a [Option<i32>],
    /// Milliseconds since 1970-01-01T00:00:00Z.
    pub times: &'a [Option<i64>],
    /// Where the response redirects to, as it says: often relative to the URL.
    pub redirects: &'a [Option<Span>],
    /// The URL whose response redirected to this record's.
    pub redirected_from: &'a [Option<Span>],
    /// Of the content, in the format's own notation.
    pub digests: &'a [Option<Span>],
    /// Label of the content's charset.
    pub charsets: &'a [Option<Span>],
}

/// What one record says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Field {
    /// See [`Fields::statuses`].
    pub status: Option<i32>,
    /// See [`Fields::times`].
    pub time: Option<i64>,
    /// See [`Fields::redirects`].
    pub redirect: Option<Span>,
    /// See [`Fields::redirected_from`].
    pub redirected_from: Option<Span>,
    /// See [`Fields::digests`].
    pub digest: Option<Span>,
    /// See [`Fields::charsets`].
    pub charset: Option<Span>,
}

/// The memory of the columns; a decoder keeps it.
#[derive(Clone, Debug)]
pub struct FieldColumns {
    carry: Carry,
    statuses: Vec<Option<i32>>,
    times: Vec<Option<i64>>,
    redirects: Vec<Option<Span>>,
    redirected_from: Vec<Option<Span>>,
    digests: Vec<Option<Span>>,
    charsets: Vec<Option<Span>>,
}

impl Default for FieldColumns {
    fn default() -> FieldColumns {
        FieldColumns {
            carry: Carry::ALL,
            statuses: Vec::new(),
            times: Vec::new(),
            redirects: Vec::new(),
            redirected_from: Vec::new(),
            digests: Vec::new(),
            charsets: Vec::new(),
        }
    }
}

impl FieldColumns {
    /// What is pushed from now on has these columns.
    pub fn set_carry(&mut self, carry: Carry) {
        self.carry = carry;
    }

    /// The columns that are filled.
    pub fn carry(&self) -> Carry {
        self.carry
    }

    /// Forgets all records.
    pub fn clear(&mut self) {
        self.statuses.clear();
        self.times.clear();
        self.redirects.clear();
        self.redirected_from.clear();
        self.digests.clear();
        self.charsets.clear();
    }

    /// The entries of `from` by `origins`; empty columns stay empty.
    pub(super) fn gather(&mut self, origins: &[u32], from: &Fields<'_>) {
        gather(origins, from.statuses, &mut self.statuses);
        gather(origins, from.times, &mut self.times);
        gather(origins, from.redirects, &mut self.redirects);
        gather(origins, from.redirected_from, &mut self.redirected_from);
        gather(origins, from.digests, &mut self.digests);
        gather(origins, from.charsets, &mut self.charsets);
    }

    /// One more record.
    #[inline]
    pub fn push(&mut self, field: Field) {
        if self.carry.is_none() {
            return;
        }
        push_if(self.carry.status, &mut self.statuses, field.status);
        push_if(self.carry.time, &mut self.times, field.time);
        push_if(self.carry.redirect, &mut self.redirects, field.redirect);
        push_if(self.carry.redirected_from, &mut self.redirected_from, field.redirected_from);
        push_if(self.carry.digest, &mut self.digests, field.digest);
        push_if(self.carry.charset, &mut self.charsets, field.charset);
    }

    /// The columns.
    pub fn fields(&self) -> Fields<'_> {
        Fields {
            statuses: &self.statuses,
            times: &self.times,
            redirects: &self.redirects,
            redirected_from: &self.redirected_from,
            digests: &self.digests,
            charsets: &self.charsets,
        }
    }
}

fn push_if<T>(is_wanted: bool, column: &mut Vec<T>, value: T) {
    if is_wanted {
        column.push(value);
    }
}
