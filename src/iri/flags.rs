//! What a record showed without being refused ([`Flags`]) and which steps of the ladder changed it ([`Changes`]).

/// A set of named bits; `$all` lists them in bit order with their meaning.
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

            /// Nothing set.
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }
            /// Some bit of `other` is set here too.
            pub const fn intersects(self, other: $set) -> bool {
                self.0 & other.0 != 0
            }
            /// Names of the set bits, in bit order.
            pub fn names(self) -> impl Iterator<Item = &'static str> {
                Self::ALL.iter().filter(move |(bit, ..)| self.intersects(*bit)).map(|(_, name, _)| *name)
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
    /// Noticed or repaired by lenient intake; bits of the `flags` column. The numbers are part of the file format.
    Flags {
        0 NOT_UTF8 "not-utf8" "bytes that are not UTF-8, percent-encoded as they are";
        1 EXCLUDED "excluded" "space, < > \" { } | \\ ^ or ` percent-encoded (RFC 3987 section 3.1, step 2)";
        2 CONTROL "control" "a C0 or C1 control or DEL percent-encoded";
        3 STRAY_PERCENT "stray-percent" "a % without two hexadecimal digits, kept";
        4 STRAY_DELIM "stray-delim" "a [, ] or second # where the grammar has none, kept; percent-encoded by profile weber-00";
        5 NOT_UCSCHAR "not-ucschar" "a non-character, U+FFFD or misplaced private-use character percent-encoded (RFC 3987 section 2.2), or a character that the profile leaves out";
        6 BIDI_CONTROL "bidi-control" "a bidirectional formatting character percent-encoded (RFC 3987 section 4.1)";
        7 HOST_NOT_IDNA "host-not-idna" "the host has no ASCII form by UTS 46 and stays as syntax-based normalisation left it";
        8 BAD_A_LABEL "bad-a-label" "an xn-- label that decodes to no valid U-label, kept in lower case";
        9 PORT_RANGE "port-range" "a port above 65535, kept";
        10 ASSUMED_SCHEME "assumed-scheme" "the scheme was assumed (--assume-scheme)";
        11 QUERY_CHARSET "query-charset" "the document's charset lacks a character of the query, which is in UTF-8 then (--query-charset)";
        12 TRIMMED "trimmed" "white space taken off the ends (--trim, draft-weber section 4.1)";
        13 INNER_SPACE "inner-space" "white space inside taken out or percent-encoded (--inner-spaces, draft-weber section 4.2)";
        14 CHARACTER_REFERENCE "character-reference" "character references of XML or HTML replaced (--character-references, draft-weber section 4.4)";
        15 BACKSLASH "backslash" "backslashes made / or %5C (--backslashes, draft-weber section 7)";
        16 SPLIT "split" "one of several references of its field (--inner-spaces split, draft-weber section 4.2)";
        17 BRACKETED "bracketed" "the URI stood between < and >, which were taken off (WARC-Target-URI)";
        18 STRAY_BYTES "stray-bytes" "bytes that belong to no record stood before this one and were passed over";
        19 CUT "cut" "the archive ends within this record's content";
    }
}

bit_set! {
    /// The steps that changed a record's text on the way to its rung; counted in the report.
    Changes {
        0 RESOLVED "resolved" "a reference resolved against its base (RFC 3986 section 5.2)";
        1 CASE "case" "scheme or host put into lower case (RFC 3987 section 5.3.2.1)";
        2 PCT_CASE "pct-case" "hexadecimal digits of an escape put into upper case (section 5.3.2.1)";
        3 PCT_DECODED "pct-decoded" "an escaped unreserved character decoded (section 5.3.2.3)";
        4 PCT_ENCODED "pct-encoded" "a character mapped to its percent-encoded UTF-8 (section 3.1)";
        5 DOT_SEGMENTS "dot-segments" "dot segments removed (section 5.3.2.4)";
        6 PATH_GUARD "path-guard" "/. written before a path that would have begun with // and been read as an authority";
        7 PORT "port" "an empty or default port dropped, or leading zeros of one (section 5.3.3)";
        8 EMPTY_PATH "empty-path" "an empty path written as / (section 5.3.3)";
        9 IDNA "idna" "a host written as A-labels by UTS 46 (section 5.3.3)";
        10 IP_LITERAL "ip-literal" "an IPv6 address written as RFC 5952 has it";
        11 FILE_HOST "file-host" "the authority of a file URI written as empty (RFC 8089)";
        12 URN_NID "urn-nid" "a URN's namespace identifier put into lower case (RFC 8141)";
        13 FRAGMENT "fragment" "the fragment dropped (--drop-fragment, section 5.1)";
        14 TRANSCODED "transcoded" "text in another charset made UTF-8 in NFC (--charset, section 3.1 step 1)";
        15 QUERY_CHARSET "query-charset" "the query written in its document's charset (--query-charset, draft-weber section 6.1)";
        16 REPAIRED "repaired" "white space, character references or backslashes replaced as asked (draft-weber sections 4 and 7)";
        17 NFC "nfc" "text put into NFC, as the profile has it";
        18 WHATWG "whatwg" "written as the URL Standard's parser writes it (--profile whatwg)";
    }
}

impl Changes {
    /// The steps of the scheme rung, which the syntax rung does not take (section 5.3.3).
    pub const OF_SCHEME: Changes = Changes(
        Changes::PORT.0
            | Changes::EMPTY_PATH.0
            | Changes::IDNA.0
            | Changes::IP_LITERAL.0
            | Changes::FILE_HOST.0
            | Changes::URN_NID.0,
    );
}

bit_set! {
    /// What a reference has about it that may mislead a person or a filter; bits of the `looks` column. None is a fault.
    /// The numbers are part of the file format.
    SpoofFlags {
        0 MIXED_SCRIPT "mixed-script" "a host label mixes scripts that no language writes together (RFC 3987 section 8; UTS 39 section 5.2, beyond highly restrictive)";
        1 ASCII_LOOK_ALIKE "ascii-look-alike" "a host label with characters beyond ASCII that looks like an ASCII one (RFC 3987 section 8; UTS 39 section 4, skeleton)";
        2 DISCOURAGED "discouraged" "a host label with a character that UTS 39 section 3.1 keeps out of identifiers (RFC 3987 section 6.1, c)";
        3 INVISIBLE "invisible" "a default-ignorable character, a soft hyphen for one (RFC 3987 section 6.1, b)";
        4 JOINER "joiner" "a zero-width joiner or non-joiner, which some scripts need (RFC 3987 section 6.1, b; UTS 39 section 3.1.1)";
        5 BIDI_CONTROL "hidden-bidi-control" "a bidirectional formatting character, escaped or not (RFC 3987 sections 4.1 and 8)";
        6 BIDI_STRUCTURE "bidi-structure" "a component with right-to-left characters mixes directions, or does not start and end with them (RFC 3987 section 4.2)";
        7 SPACE "space-look-alike" "a space beyond ASCII, or a character that shows as one (RFC 3987 section 6.1, b)";
        8 DELIM_LOOK_ALIKE "delim-look-alike" "a character beyond ASCII that looks like one of . / : ? # @ % \\ (RFC 3987 sections 6.1, b, and 8)";
        9 COMPATIBILITY "compatibility" "a character that NFKC changes: full-width, presentation form, ligature (RFC 3987 sections 5.3.2.2, 6.1, b, and 7.5)";
        10 NOT_NFC "not-nfc" "text that NFC changes, and so looks like another text (RFC 3987 sections 5.3.2.2 and 7.5)";
        11 OVERLONG "overlong" "octets that are UTF-8 only to a decoder that takes overlong forms (RFC 3987 section 8; RFC 3629 section 10)";
        12 SURROGATE "surrogate" "octets of a surrogate in UTF-8, as CESU-8 has them (RFC 3987 section 8; RFC 3629 section 3)";
        13 ENCODED_SLASH "encoded-slash" "%2F or %5C before the query (RFC 3986 sections 2.2 and 7.3)";
        14 HIDDEN_DOTS "hidden-dots" "a dot segment that shows only when escapes are decoded, once or twice (RFC 3986 sections 6.2.2.3 and 7.3; RFC 3629 section 10)";
        15 DOUBLE_ENCODED "double-encoded" "%25 before two hexadecimal digits: an escape again, if decoded twice (RFC 3986 section 2.4)";
        16 ENCODED_CONTROL "encoded-control" "an escaped control, %00 for one, or a C1 control (RFC 3986 section 7.3)";
        17 USERINFO_HOST "userinfo-host" "userinfo that looks like a host (RFC 3986 section 7.6)";
    }
}
