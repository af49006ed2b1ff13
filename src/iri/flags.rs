//! Sets of named bits that describe one row: what irikey noticed ([`Flags`]), which normalization steps changed the
//! text ([`Changes`]) and what may mislead a reader ([`SpoofingFlags`]).
//!
//! None of these is an error. A reference that cannot be normalized has a [`super::Fault`] instead.

/// Defines a set of named bits. Each line gives bit number, constant, name in output, and meaning.
macro_rules! bit_set {
    ($(#[$doc:meta])* $set:ident { $($bit:literal $name:ident $text:literal $meaning:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct $set(pub u32);

        impl $set {
            /// The empty set.
            pub const NONE: $set = $set(0);
            $(#[doc = $meaning] pub const $name: $set = $set(1 << $bit);)*
            /// Every bit with its name and its meaning, in bit order.
            pub const ALL: &'static [($set, &'static str, &'static str)] = &[$(($set::$name, $text, $meaning)),*];

            /// Returns true if no bit is set.
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }
            /// Returns true if the two sets have a bit in common.
            pub const fn intersects(self, other: $set) -> bool {
                self.0 & other.0 != 0
            }
            /// Returns true if every bit of `other` is set.
            pub const fn contains(self, other: $set) -> bool {
                self.0 & other.0 == other.0
            }
            /// The bits that are set, each as a set, in bit order.
            pub fn iter(self) -> impl Iterator<Item = $set> {
                Self::ALL.iter().map(|(bit, ..)| *bit).filter(move |bit| self.intersects(*bit))
            }
            /// Names of the bits that are set, in bit order.
            pub fn names(self) -> impl Iterator<Item = &'static str> {
                Self::ALL.iter().filter(move |(bit, ..)| self.intersects(*bit)).map(|(_, name, _)| *name)
            }
        }

        /// Writes the names of the bits that are set, separated by commas.
        impl std::fmt::Display for $set {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                for (i, name) in self.names().enumerate() {
                    f.write_str(if i > 0 { "," } else { "" })?;
                    f.write_str(name)?;
                }
                Ok(())
            }
        }

        impl std::ops::BitOr for $set {
            type Output = $set;
            fn bitor(self, other: $set) -> $set {
                $set(self.0 | other.0)
            }
        }

        impl std::ops::BitOrAssign for $set {
            fn bitor_assign(&mut self, other: $set) {
                self.0 |= other.0;
            }
        }
    };
}

bit_set! {
    /// What was noticed or repaired in a record. In [`super::ParseMode::Strict`], what the grammar rejects is a fault instead.
    ///
    /// These are the bits of the `flags` column. The bit numbers are part of the file format.
    ///
    /// ```
    /// use irikey::iri::{Flags, ParseMode, Rung, normalize_to_rung};
    /// let (uri, flags) = normalize_to_rung(b"http://h/a b%", Rung::Syntax, ParseMode::Lenient).unwrap();
    /// assert_eq!(uri, b"http://h/a%20b%");
    /// assert_eq!(flags, Flags::EXCLUDED | Flags::STRAY_PERCENT);
    /// assert_eq!(flags.to_string(), "excluded,stray-percent");
    /// assert!(flags.iter().eq([Flags::EXCLUDED, Flags::STRAY_PERCENT]));
    /// assert!(flags.contains(Flags::EXCLUDED) && !flags.contains(Flags::EXCLUDED | Flags::CONTROL));
    /// assert!(flags.intersects(Flags::EXCLUDED | Flags::CONTROL) && !flags.intersects(Flags::CONTROL));
    /// ```
    Flags {
        0 NOT_UTF8 "not-utf8" "bytes that are not UTF-8, percent-encoded unchanged";
        1 EXCLUDED "excluded" "space, < > \" { } | \\ ^ or ` percent-encoded (RFC 3987 section 3.1, step 2)";
        2 CONTROL "control" "a C0 or C1 control character or DEL percent-encoded";
        3 STRAY_PERCENT "stray-percent" "a % without two hexadecimal digits, kept";
        4 STRAY_DELIM "stray-delim" "a bracket or a second # that the grammar does not allow there, kept; percent-encoded by profile weber-00";
        5 NOT_UCSCHAR "not-ucschar" "a noncharacter, U+FFFD or misplaced private-use character percent-encoded (RFC 3987 section 2.2), or a character that the profile excludes";
        6 BIDI_CONTROL "bidi-control" "a bidirectional formatting character percent-encoded (RFC 3987 section 4.1)";
        7 HOST_NOT_IDNA "host-not-idna" "UTS 46 gives the host no ASCII form, or one with a character outside unreserved, such as *; it stays as syntax-based normalization wrote it";
        8 BAD_A_LABEL "bad-a-label" "an xn-- label that does not decode to a valid U-label, or is in a host with a character outside unreserved, such as *; kept in lower case";
        9 PORT_RANGE "port-range" "a port above 65535, kept";
        10 ASSUMED_SCHEME "assumed-scheme" "the scheme was assumed (--assume-scheme)";
        11 QUERY_CHARSET "query-charset" "the document's charset cannot encode a character of the query, so the query is in UTF-8 (--query-charset)";
        12 TRIMMED "trimmed" "leading or trailing white space removed (--trim, draft-weber section 4.1)";
        13 INNER_SPACE "inner-space" "inner white space removed or percent-encoded (--inner-spaces, draft-weber section 4.2)";
        14 CHARACTER_REFERENCE "character-reference" "character references of XML or HTML replaced (--character-references, draft-weber section 4.4)";
        15 BACKSLASH "backslash" "backslashes replaced by / or %5C (--backslashes, draft-weber section 7)";
        16 SPLIT "split" "one of several references in a field (--inner-spaces split, draft-weber section 4.2)";
        17 BRACKETED "bracketed" "the URI was written between < and >, which were removed (WARC-Target-URI)";
        18 STRAY_BYTES "stray-bytes" "bytes before this record belong to no record and were skipped";
        19 CUT "cut" "the length of this record's content is unknown, or differs from the length in its header";
    }
}

bit_set! {
    /// The normalization steps that changed a record's text; the report counts them.
    ///
    /// Section numbers without a document are those of RFC 3987.
    Changes {
        0 RESOLVED "resolved" "a reference resolved against its base (RFC 3986 section 5.2)";
        1 CASE "case" "scheme or host converted to lower case (RFC 3987 section 5.3.2.1)";
        2 PCT_CASE "pct-case" "hexadecimal digits of an escape converted to upper case (section 5.3.2.1)";
        3 PCT_DECODED "pct-decoded" "an escaped unreserved character decoded (section 5.3.2.3)";
        4 PCT_ENCODED "pct-encoded" "a character replaced by its percent-encoded UTF-8 (section 3.1)";
        5 DOT_SEGMENTS "dot-segments" "dot segments removed (section 5.3.2.4)";
        6 PATH_GUARD "path-guard" "/. written before a path that begins with //, which would otherwise be read as an authority";
        7 PORT "port" "an empty or default port, or leading zeros of a port, removed (section 5.3.3)";
        8 EMPTY_PATH "empty-path" "an empty path written as / (section 5.3.3)";
        9 IDNA "idna" "a host written as A-labels by UTS 46 (section 5.3.3)";
        10 IP_LITERAL "ip-literal" "an IPv6 address written as RFC 5952 requires";
        11 FILE_HOST "file-host" "the authority of a file URI written as empty (RFC 8089)";
        12 URN_NID "urn-nid" "a URN's namespace identifier converted to lower case (RFC 8141)";
        13 FRAGMENT "fragment" "the fragment removed (--drop-fragment, section 5.1)";
        14 TRANSCODED "transcoded" "text in another charset converted to UTF-8 in NFC (--charset, section 3.1 step 1)";
        15 QUERY_CHARSET "query-charset" "the query encoded in the document's charset (--query-charset, draft-weber section 6.1)";
        16 REPAIRED "repaired" "white space, character references or backslashes replaced as requested (draft-weber sections 4 and 7)";
        17 NFC "nfc" "text converted to NFC, as the profile requires";
        18 WHATWG "whatwg" "text rewritten by the URL Standard's parser (--profile whatwg)";
    }
}

impl Changes {
    /// The steps of scheme-based normalization (section 5.3.3), which the rung `syntax` does not include.
    pub(crate) const OF_SCHEME: Changes = Changes(
        Changes::PORT.0
            | Changes::EMPTY_PATH.0
            | Changes::IDNA.0
            | Changes::IP_LITERAL.0
            | Changes::FILE_HOST.0
            | Changes::URN_NID.0,
    );
}

bit_set! {
    /// Properties of a reference that may mislead a person or a filter; see [`super::find_spoofing`].
    ///
    /// These are the bits of the `spoofing_flags` column. The bit numbers are part of the file format.
    SpoofingFlags {
        0 MIXED_SCRIPT "mixed-script" "a host label mixes scripts that no language writes together (RFC 3987 section 8; UTS 39 section 5.2, beyond highly restrictive); only scripts of characters that UTS 39 allows in identifiers count";
        1 ASCII_LOOK_ALIKE "ascii-look-alike" "a host label with non-ASCII characters that looks like an ASCII label (RFC 3987 section 8; UTS 39 section 4, skeleton)";
        2 DISCOURAGED "discouraged" "a host label with a character that UTS 39 section 3.1 excludes from identifiers (RFC 3987 section 6.1, c)";
        3 INVISIBLE "invisible" "a default-ignorable character, for example a soft hyphen (RFC 3987 section 6.1, b)";
        4 JOINER "joiner" "a zero-width joiner or non-joiner, which some scripts need (RFC 3987 section 6.1, b; UTS 39 section 3.1.1)";
        5 BIDI_CONTROL "hidden-bidi-control" "a bidirectional formatting character, escaped or not (RFC 3987 sections 4.1 and 8)";
        6 BIDI_STRUCTURE "bidi-structure" "a component with right-to-left characters mixes directions, or does not start and end with them (RFC 3987 section 4.2)";
        7 SPACE "space-look-alike" "a non-ASCII space, or a character that is displayed as a space (RFC 3987 section 6.1, b)";
        8 DELIM_LOOK_ALIKE "delim-look-alike" "a non-ASCII character that looks like one of . / : ? # @ % \\ (RFC 3987 sections 6.1, b, and 8)";
        9 COMPATIBILITY "compatibility" "a character that NFKC changes: full-width form, presentation form, ligature (RFC 3987 sections 5.3.2.2, 6.1, b, and 7.5)";
        10 NOT_NFC "not-nfc" "text that NFC changes, and that therefore looks like another text (RFC 3987 sections 5.3.2.2 and 7.5)";
        11 OVERLONG "overlong" "octets that only a decoder that accepts overlong forms reads as UTF-8 (RFC 3987 section 8; RFC 3629 section 10)";
        12 SURROGATE "surrogate" "octets of a surrogate in UTF-8, as in CESU-8 (RFC 3987 section 8; RFC 3629 section 3)";
        13 ENCODED_SLASH "encoded-slash" "%2F or %5C before the query (RFC 3986 sections 2.2 and 7.3)";
        14 HIDDEN_DOTS "hidden-dots" "a dot segment that appears only after escapes are decoded, once or twice (RFC 3986 sections 6.2.2.3 and 7.3; RFC 3629 section 10)";
        15 DOUBLE_ENCODED "double-encoded" "%25 before two hexadecimal digits, which becomes an escape if it is decoded (RFC 3986 section 2.4)";
        16 ENCODED_CONTROL "encoded-control" "an escaped control character such as %00, or a C1 control character (RFC 3986 section 7.3)";
        17 USERINFO_HOST "userinfo-host" "userinfo that looks like a host (RFC 3986 section 7.6)";
    }
}
