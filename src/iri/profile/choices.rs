//! The choices that specifications of IRIs make, and each one's words in the table of differences.

/// An enumeration of choices, each with the words that the table of differences has for it.
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $($variant:ident $words:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $(#[doc = $words] $variant),*
        }

        impl $name {
            /// The choice in words.
            pub const fn words(self) -> &'static str {
                match self {
                    $($name::$variant => $words),*
                }
            }
        }
    };
}

choice! {
    /// Characters beyond ASCII.
    Repertoire {
        UcscharAndPrivate "`ucschar`; `iprivate` in queries",
        Ucschar "`ucschar`, no private use anywhere",
        UcscharLessSpaces "`ucschar` less look-alikes of the space, no private use anywhere",
    }
}

choice! {
    /// Space, `<`, `>`, `"`, `{`, `}`, `|`, `\`, `^` and backtick.
    ExcludedAscii { Refused "refused", Allowed "allowed, encoded on the way to a URI" }
}

choice! {
    /// Characters beyond ASCII in hosts.
    HostRepertoire { Any "allowed", Ascii "refused" }
}

choice! {
    /// What IRI->URI asks of its input, unless told.
    AcceptedInput {
        Checked "an IRI reference; makes a URI reference or a fault",
        Total "anything; `%`, `#`, `[` and `]` pass as they are",
        TotalWithBrackets "anything; brackets outside hosts, `@` in them and a second `#` are encoded, a stray `%` passes",
        Parsed "what the parser takes",
    }
}

choice! {
    /// Unicode normalisation of Unicode input on the way to a URI.
    NormalForm { Kept "none", Nfc "NFC" }
}

choice! {
    /// Which escapes URI->IRI decodes.
    DecodedEscapes {
        Unreserved "`unreserved` and characters beyond ASCII",
        BeyondAscii "characters beyond ASCII only",
    }
}

choice! {
    /// What takes references apart.
    ReferenceParser {
        Grammar "the ABNF, or a fault",
        Total "a split that never fails",
        Whatwg "the URL Standard's state machine",
    }
}
