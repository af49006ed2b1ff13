//! What a format says of a record beside its URL. In: fields as a decoder finds them. Out: [`Fields`], columns beside
//! the URLs of [`super::Records`], of the same length, their spans in the same text; those that nobody wants are empty.
//! Nothing is judged here.

use super::Span;
use super::split::gather;

/// The one list of fields: column, field, type, meaning.
macro_rules! fields {
    ($($(#[$meaning:meta])* $column:ident, $field:ident: $kind:ty;)*) => {
        /// Which fields are carried from records to rows; decoders need not look for others.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Carry {
            $(#[doc = concat!("[`Fields::", stringify!($column), "`]")] pub $field: bool,)*
        }

        impl Carry {
            /// All there are.
            pub const ALL: Carry = Carry { $($field: true,)* };
        }

        /// Columns as long as [`super::Records::urls`], or empty; spans point into [`super::Records::text`].
        #[derive(Clone, Copy, Debug, Default)]
        pub struct Fields<'a> {
            $($(#[$meaning])* pub $column: &'a [Option<$kind>],)*
        }

        /// What one record says.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Field {
            $(#[doc = concat!("[`Fields::", stringify!($column), "`]")] pub $field: Option<$kind>,)*
        }

        /// The memory of the columns; a decoder keeps it.
        #[derive(Clone, Debug)]
        pub struct FieldColumns {
            carry: Carry,
            $($column: Vec<Option<$kind>>,)*
        }

        impl Default for FieldColumns {
            fn default() -> FieldColumns {
                FieldColumns { carry: Carry::ALL, $($column: Vec::new(),)* }
            }
        }

        impl FieldColumns {
            /// Forgets all records.
            pub fn clear(&mut self) {
                $(self.$column.clear();)*
            }

            /// The entries of `from` by `origins`; empty columns stay empty.
            pub(super) fn gather(&mut self, origins: &[u32], from: &Fields<'_>) {
                $(gather(origins, from.$column, &mut self.$column);)*
            }

            /// One more record.
            #[inline]
            pub fn push(&mut self, field: Field) {
                if self.carry.is_none() {
                    return;
                }
                $(if self.carry.$field {
                    self.$column.push(field.$field);
                })*
            }

            /// The columns.
            pub fn fields(&self) -> Fields<'_> {
                Fields { $($column: &self.$column,)* }
            }
        }
    };
}

fields! {
    /// Milliseconds since 1970-01-01T00:00:00Z.
    times, time: i64;
    /// Status of the fetch: HTTP's, or a crawler's own, which may be negative.
    statuses, status: i32;
    /// Where the response redirects to, as it says: often relative to the URL.
    redirects, redirect: Span;
    /// The URL whose response redirected to this record's.
    redirected_from, redirected_from: Span;
    /// Of the content, in the format's own notation.
    digests, digest: Span;
    /// Label of the content's charset.
    charsets, charset: Span;
    /// Media type of the content as the server named it, without parameters.
    mimes, mime: Span;
    /// Media type as it was found out.
    detected_mimes, detected_mime: Span;
    /// Languages of the content, between commas.
    languages, languages: Span;
    /// The archive that the capture lies in.
    filenames, filename: Span;
    /// Where it begins there, bytes.
    capture_offsets, capture_offset: i64;
    /// How long it is there, bytes: packed, if the archive is.
    capture_lengths, capture_length: i64;
}

impl Carry {
    /// There is nothing to carry.
    pub fn is_none(self) -> bool {
        self == Carry::default()
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
}
