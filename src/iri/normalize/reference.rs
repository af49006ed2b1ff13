//! A reference in its chunk, and what its first bytes and its marks show before the pass starts.
//!
//! [`CanonicalHead`] and [`CanonicalHead::is_canonical`] prove from the bitmaps alone that a reference is canonical on
//! every rung, so that it can be copied without a pass.

use std::hint::select_unpredictable;
use std::ops::Range;

use crate::iri::percent::{is_canonical_escape, is_canonical_triple, run_of_undecoded_escapes};
use crate::iri::resolve::BasePart;
use crate::iri::scheme::Scheme;
use crate::kernel::{
    AsciiCase, Bitmaps, BufferedText, PrefixMarks, Prefixes, Span, append_range, append_range_in_case, find_byte,
    low_bits_of_64, mask_of, mask_of_triples,
};

/// One reference in a text that is described by bitmaps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MarkedReference<'a> {
    /// The text that contains the reference: a chunk, or the reference alone.
    pub(crate) text: &'a [u8],
    /// Bitmaps of the text, made with [`crate::iri::CLASSIFIER`].
    pub(crate) bitmaps: &'a Bitmaps,
    /// Position of the reference in the text.
    pub(crate) span: Span,
}

/// How a relative reference is appended to its base.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RelativeReference {
    /// The part of the base.
    pub(crate) part: BasePart,
    /// The number of segments that leading `..` segments remove from the end of the directory.
    pub(crate) parent_count: usize,
    /// Where the reference continues after its leading dot segments.
    rest_at: usize,
}

impl<'a> MarkedReference<'a> {
    /// A reference that is the whole text of `bitmaps`.
    pub(crate) fn whole(text: &'a [u8], bitmaps: &'a Bitmaps) -> MarkedReference<'a> {
        MarkedReference { text, bitmaps, span: Span::new(0, text.len()) }
    }

    /// The bytes of the reference.
    #[inline(always)]
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.span.of(self.text)
    }

    /// Offset of the reference in the text.
    #[inline(always)]
    fn at(&self) -> usize {
        self.span.at as usize
    }

    #[inline(always)]
    pub(super) fn next_attention_near(&self, from: usize) -> usize {
        self.bitmaps.next_attention_near(self.at() + from) - self.at()
    }

    #[inline(always)]
    pub(super) fn next_stop(&self, from: usize) -> usize {
        self.bitmaps.next_stop(self.at() + from) - self.at()
    }

    /// The 64 bytes of the text from byte `from` of the reference on, and a mask of the stop bytes among them; `None` if the
    /// text ends before.
    #[inline(always)]
    pub(super) fn window(&self, from: usize) -> Option<(&'a [u8; 64], u64)> {
        let bytes = self.text.get(self.at() + from..)?.first_chunk()?;
        Some((bytes, self.bitmaps.stops(self.at() + from)))
    }

    /// The 66 bytes of the text from byte `from` of the reference on, and a mask of the attention bytes among the first 64;
    /// `None` if the text ends before.
    #[inline(always)]
    fn marks(&self, from: usize) -> Option<(&'a [u8; 66], u64)> {
        let bytes = self.text.get(self.at() + from..)?.first_chunk()?;
        Some((bytes, self.bitmaps.attentions(self.at() + from)))
    }

    /// Length of a run of escapes of octets that are not unreserved characters, which begins at byte `from`, and whether a digit
    /// in it is in lower case. Octets outside ASCII come in long runs, which are found at once; otherwise the run ends with the
    /// first escape.
    #[inline(always)]
    pub(super) fn undecoded_escapes(&self, from: usize) -> (usize, bool) {
        let rest = &self.bytes()[from..];
        match self.marks(from) {
            Some((bytes, _)) if bytes[1] >= b'8' => {
                let len = run_of_undecoded_escapes(bytes).min(rest.len() - rest.len() % 3);
                (len, mask_of(&bytes[..64], |byte| byte >= b'a') & low_bits_of_64(len) != 0)
            }
            _ => (3, rest[1].max(rest[2]) >= b'a'),
        }
    }

    /// Bytes `range` of the reference, in the text.
    #[inline(always)]
    pub(super) fn buffered(&self, range: Range<usize>) -> BufferedText<'a> {
        BufferedText::within(self.text, self.at() + range.start, range.len())
    }

    /// Appends the reference to `out`.
    #[inline(always)]
    pub(crate) fn append_to(&self, out: &mut Vec<u8>) {
        self.append(0..self.bytes().len(), out);
    }

    /// Returns true if the reference has a scheme other than `file` and no rung changes it: the scheme and a host are in lower
    /// case, there is neither userinfo nor a port, and nothing needs attention. Returns false for some others that no rung
    /// changes, among them those that end with their host.
    #[inline(always)]
    pub(crate) fn is_canonical_of_any_scheme(&self) -> bool {
        let bytes = self.bytes();
        // The bytes that no rung changes in a host are those of a scheme without `+`, and `_`.
        let colon = self.next_stop(0);
        let Some([b':', rest @ ..]) = bytes.get(colon..) else { return false };
        let scheme = &bytes[..colon];
        let host_at = colon + 3;
        let has_canonical_start = match rest {
            [b'/', b'/', ..] => bytes.get(self.next_stop(host_at)).is_some_and(|byte| *byte == b'/'),
            // The namespace identifier.
            _ if scheme == b"urn" => bytes.get(self.next_stop(colon + 1)).is_some_and(|byte| *byte == b':'),
            _ => true,
        };
        has_canonical_start
            && self.next_attention_near(colon) >= bytes.len()
            && scheme.first().is_some_and(u8::is_ascii_lowercase)
            && !scheme.contains(&b'_')
            && scheme != b"file"
    }

    /// Returns true if the reference is an http or https URI that neither a rung nor the parser of the URL Standard changes.
    /// Returns false for some others. `keep_fragment` is that of [`CanonicalHead::is_canonical`].
    pub(crate) fn is_canonical_href(&self, keep_fragment: bool) -> bool {
        CanonicalHead::of(self).is_some_and(|head| head.is_canonical(self, keep_fragment) && head.is_href(self))
    }

    /// Returns how the reference is appended to a part of its base (RFC 3986 section 5.2.2), if it is relative and no rung
    /// changes it after its leading dot segments. Also returns `None` for some others that no rung changes.
    ///
    /// With `keep_fragment` the reference may have a fragment, otherwise it has none.
    #[inline(always)]
    pub(crate) fn relative(&self, keep_fragment: bool) -> Option<RelativeReference> {
        let bytes = self.bytes();
        let (mut at, mut parent_count) = (0, 0);
        loop {
            match bytes[at..] {
                [b'.', b'/', ..] => at += 2,
                [b'.', b'.', b'/', ..] => (at, parent_count) = (at + 3, parent_count + 1),
                _ => break,
            }
        }
        let part = match bytes[at..] {
            [b'.', ..] => return None,
            _ if at > 0 => BasePart::Directory,
            [b'/', b'/', ..] if bytes.get(self.next_stop(2)) == Some(&b'/') => BasePart::Scheme,
            [] | [b'/', b'/', ..] => return None,
            [b'/', ..] => BasePart::Authority,
            [b'?', ..] => BasePart::Path,
            [b'#', ..] => BasePart::Query,
            _ => BasePart::Directory,
        };
        let mark = self.next_attention_near(at);
        if !is_rest_canonical(self, mark, keep_fragment) {
            return None;
        }
        // A colon in the first segment ends a scheme, or is a fault.
        let is_delim = |byte: u8| (byte == b':') | (byte == b'/') | (byte == b'?') | (byte == b'#');
        let has_colon = part == BasePart::Directory
            && at == 0
            && find_byte(bytes, is_delim).is_some_and(|delim| bytes[delim] == b':');
        (!has_colon).then_some(RelativeReference { part, parent_count, rest_at: at })
    }

    /// Appends what follows the leading dot segments of the reference.
    #[inline(always)]
    pub(crate) fn append_rest(&self, relative: RelativeReference, out: &mut Vec<u8>) {
        self.append(relative.rest_at..self.bytes().len(), out);
    }

    /// Appends bytes `range` of the reference to `out`.
    #[inline(always)]
    pub(super) fn append(&self, range: Range<usize>, out: &mut Vec<u8>) {
        append_range(out, self.text, self.at() + range.start, range.len());
    }

    /// Appends bytes `range` of the reference to `out`, with ASCII letters converted to `case`.
    #[inline(always)]
    pub(super) fn append_in_case(&self, range: Range<usize>, case: AsciiCase, out: &mut Vec<u8>) {
        append_range_in_case(out, self.text, self.at() + range.start..self.at() + range.end, case);
    }
}

/// `http://` and `https://` in lower case.
pub(crate) const WEB_PREFIXES: Prefixes = Prefixes { short: *b"http://", long: *b"https://" };

/// A head that no rung changes: `http://` or `https://` in lower case, a host of lower-case letters, digits, `.`, `_` and
/// `-` without `--`, and the `/` of the path after it, or the end of the reference.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CanonicalHead {
    /// End of the host and start of the path, which may be empty.
    pub(super) host_end: usize,
    /// The first attention byte, which is in the host if that begins with a dot; the length of the reference or more if there
    /// is none.
    pub(super) first_mark: usize,
}

impl CanonicalHead {
    /// The head of `reference`, if it is canonical.
    #[inline(always)]
    pub(crate) fn of(reference: &MarkedReference<'_>) -> Option<CanonicalHead> {
        let bytes = reference.bytes();
        let head = u64::from_le_bytes(*bytes.first_chunk::<8>()?);
        let is_http = head & 0x00FF_FFFF_FFFF_FFFF == u64::from_le_bytes(*b"http://\0");
        let is_https = head == u64::from_le_bytes(*b"https://");
        // One branch at the end, when everything is known: branches that differ from reference to reference are expensive.
        let host_at = 7 + usize::from(is_https);
        let host_end = reference.next_stop(host_at).min(bytes.len());
        let ends = bytes.get(host_end).is_none_or(|byte| *byte == b'/');
        // No byte of a canonical host is marked, except a dot at its start. A search from there can begin before the end of the
        // host is known.
        ((is_http | is_https) & ends)
            .then(|| CanonicalHead { host_end, first_mark: reference.next_attention_near(host_at) })
    }

    /// The head of `reference`, which has these marks after a prefix of [`WEB_PREFIXES`], if it is canonical.
    #[inline(always)]
    pub(crate) fn at_marks(reference: &MarkedReference<'_>, marks: PrefixMarks) -> Option<CanonicalHead> {
        // No byte of a canonical host is marked, except a dot at its start. Thus the first mark is that of the rest, too.
        let PrefixMarks { stop, attention } = marks;
        let ends = reference.bytes().get(stop as usize).is_none_or(|byte| *byte == b'/');
        (stop > 0 && ends).then_some(CanonicalHead { host_end: stop as usize, first_mark: attention as usize })
    }

    /// Returns true if `reference`, which has this head, is a URI that no rung changes: after the head it has no dot
    /// segment, no character that a URI cannot contain, and only canonical escapes.
    ///
    /// Never returns true for a reference that a rung changes; returns false for some that no rung changes. With
    /// `keep_fragment` the reference may have a fragment, otherwise it has none.
    #[inline(always)]
    pub(crate) fn is_canonical(self, reference: &MarkedReference<'_>, keep_fragment: bool) -> bool {
        // The empty path becomes `/`. This is checked last, which takes fewer instructions.
        is_rest_canonical(reference, self.first_mark, keep_fragment) && self.host_end < reference.bytes().len()
    }

    /// Returns true if the parser of the URL Standard does not change `reference`, which has this head and is canonical. It would
    /// change a host whose last label is a number, reject an empty host, and encode `'` in a query.
    fn is_href(self, reference: &MarkedReference<'_>) -> bool {
        let bytes = reference.bytes();
        let host_at = 7 + usize::from(bytes[4] == b's');
        let host = &bytes[host_at..self.host_end];
        let last_label = host.strip_suffix(b".").unwrap_or(host).rsplit(|byte| *byte == b'.').next();
        last_label.and_then(<[u8]>::first).is_some_and(|byte| !byte.is_ascii_digit())
            && memchr::memchr(b'\'', bytes).is_none()
    }
}

/// Returns true if no rung changes `reference` from its first mark on. The mark is at byte `first`; a position at the end or past it
/// means that there is none.
#[inline(always)]
fn is_rest_canonical(reference: &MarkedReference<'_>, first: usize, keep_fragment: bool) -> bool {
    let bytes = reference.bytes();
    match bytes.get(first..) {
        None | Some([]) => true,
        Some([b'#', ..]) if reference.next_attention_near(first + 1) >= bytes.len() => keep_fragment,
        // If an escape changes, the first one usually does.
        Some(rest) if rest[0] == b'#' || is_canonical_escape(rest) => {
            are_marks_canonical(reference, first, keep_fragment)
        }
        Some(_) => false,
    }
}

/// Returns true if every mark from byte `at` on is an escape that stays, or the `#` of the fragment if that is kept.
#[inline(always)]
fn are_marks_canonical(reference: &MarkedReference<'_>, mut at: usize, keep_fragment: bool) -> bool {
    let len = reference.span.len as usize;
    let mut may_begin_fragment = keep_fragment;
    while at < len {
        // The last references of a text take the pass.
        let Some((bytes, marks)) = reference.marks(at) else { return false };
        // An escape does not continue in the text after the reference.
        let escapes = mask_of_triples(bytes, is_canonical_triple) & low_bits_of_64((len - at).saturating_sub(2));
        let others = marks & low_bits_of_64(len - at) & !escapes;
        if others != 0 {
            let is_fragment = others.is_power_of_two() && bytes[others.trailing_zeros() as usize] == b'#';
            if !is_fragment || !may_begin_fragment {
                return false;
            }
            may_begin_fragment = false;
        }
        at += 64;
    }
    true
}

/// `http://` or `https://`, in any case, at the start of a reference.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HttpHead {
    /// [`Scheme::Http`] or [`Scheme::Https`].
    pub(crate) scheme: Scheme,
    /// Length in bytes, including `//`.
    pub(crate) len: usize,
    /// The scheme is written in lower case.
    pub(crate) is_lower_case: bool,
    /// The head in lower case; after `http://` follows one byte of the host.
    pub(super) lower_case: [u8; 8],
}

impl HttpHead {
    /// The head of `bytes`, if it is `http://` or `https://`. There is no branch on which of the two it is.
    #[inline(always)]
    pub(crate) fn of(bytes: &[u8]) -> Option<HttpHead> {
        let head = u64::from_le_bytes(*bytes.first_chunk::<8>()?);
        // Bit 5 is set in the positions of letters only. Only the two cases of a letter become that letter.
        let (as_http, as_https) = (head | 0x2020_2020, head | 0x20_2020_2020);
        let is_http = as_http & 0x00FF_FFFF_FFFF_FFFF == u64::from_le_bytes(*b"http://\0");
        let is_https = as_https == u64::from_le_bytes(*b"https://");
        let lower_case = select_unpredictable(is_https, as_https, as_http);
        (is_http | is_https).then_some(HttpHead {
            scheme: select_unpredictable(is_https, Scheme::Https, Scheme::Http),
            len: 7 + usize::from(is_https),
            is_lower_case: head == lower_case,
            lower_case: lower_case.to_le_bytes(),
        })
    }
}

/// The head of an `http` or `https` reference, as far as it is known before the pass.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ReferenceHead {
    /// Scheme and host stay as they are.
    Canonical(CanonicalHead),
    /// The scheme is known.
    Http(HttpHead),
}

impl ReferenceHead {
    /// The head of `reference`, which is `canonical` if that is present; `None` for other schemes.
    #[inline(always)]
    pub(crate) fn of(reference: &MarkedReference<'_>, canonical: Option<CanonicalHead>) -> Option<ReferenceHead> {
        match canonical {
            Some(head) => Some(ReferenceHead::Canonical(head)),
            None => HttpHead::of(reference.bytes()).map(ReferenceHead::Http),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Normalizer;
    use super::*;
    use crate::iri::{CLASSIFIER, Changes, Flags, Rung};

    /// Calls `work` with the reference `url` in a text in which `rest` follows it.
    fn with_reference<R>(url: &str, rest: &str, work: impl FnOnce(MarkedReference<'_>) -> R) -> R {
        let text = [url, rest, &"x".repeat(66)].concat();
        let mut bitmaps = Bitmaps::default();
        bitmaps.classify(text.as_bytes(), &CLASSIFIER);
        work(MarkedReference { text: text.as_bytes(), bitmaps: &bitmaps, span: Span::new(0, url.len()) })
    }

    /// Whether `url` is proved to be canonical.
    fn is_canonical(url: &str, rest: &str, keep_fragment: bool) -> bool {
        with_reference(url, rest, |reference| {
            CanonicalHead::of(&reference).is_some_and(|head| head.is_canonical(&reference, keep_fragment))
        })
    }

    #[test]
    fn escapes_and_one_fragment_are_canonical_at_all_positions() {
        for len in 0..200 {
            let start = format!("http://h.example/{}", "a".repeat(len));
            for (tail, is_kept) in [
                ("%2F", true),
                ("%C3%A9%20#%2F", true),
                ("#", true),
                ("%2f", false),
                ("%7E", false),
                ("%20%41", false),
                ("%20%", false),
                ("##", false),
                ("#%20#", false),
                ("%20|", false),
                ("%20/./", false),
            ] {
                let url = format!("{start}{tail}");
                assert_eq!(is_canonical(&url, "\n", true), is_kept, "{url}");
                assert_eq!(is_canonical(&url, "\n", false), is_kept && !tail.contains('#'), "{url}");
                let longer = format!("{url}{}%20", "b".repeat(70));
                assert_eq!(is_canonical(&longer, "\n", true), is_kept, "{longer}");
            }
            // The second `#` is not in the same 64 bytes.
            assert!(!is_canonical(&format!("{start}#{}#", "b".repeat(70)), "\n", true));
            // An escape that would continue in the next reference.
            assert!(!is_canonical(&format!("{start}%"), "2F", true) && !is_canonical(&format!("{start}%2"), "F", true));
            assert!(
                !is_canonical(&format!("{start}%20%2"), "F", true)
                    && !is_canonical(&format!("{start}%20%"), "2F", true)
            );
            assert!(is_canonical(&format!("{start}%2F"), "%", true) && is_canonical(&start, "%2", true));
        }
    }

    #[test]
    fn marks_give_the_same_heads() {
        let hosts = ["", "h", ".", ".h", "a.b_c-d", "a--b", "H", "h:80", "u@h", "é", "h h", "[::1]"];
        for scheme in ["http://", "https://", "http:/", "HTTP://", "httpss://", "ftp://", ""] {
            for host in hosts.map(str::to_string).into_iter().chain((40..140).map(|len| "a".repeat(len))) {
                for rest in ["", "/", "/.", "/a%41", "?q", "#f", "/p?q#f", "/\n"] {
                    let url = format!("{scheme}{host}{rest}");
                    with_reference(&url, "/x%", |reference| {
                        let marks = reference.bitmaps.prefix_marks(reference.text, reference.span, &WEB_PREFIXES);
                        let parts = |head: CanonicalHead| (head.host_end, head.first_mark.min(url.len()));
                        let head = CanonicalHead::at_marks(&reference, marks).map(parts);
                        assert_eq!(head, CanonicalHead::of(&reference).map(parts), "{url}");
                    });
                }
            }
        }
    }

    #[test]
    fn a_dot_at_the_start_of_a_host_is_no_dot_segment() {
        for (url, uri) in
            [("http://.h/", "http://.h/"), ("https://./a/../b", "https://./b"), ("http://.h/%41", "http://.h/A")]
        {
            let mut out = Vec::new();
            let written = with_reference(url, "\n", |reference| {
                let head = ReferenceHead::of(&reference, CanonicalHead::of(&reference)).unwrap();
                Normalizer::default().normalize_http(reference, head, false, &mut out)
            });
            assert_eq!((written.is_ok(), out), (true, uri.as_bytes().to_vec()));
        }
    }

    #[test]
    fn a_host_alone_ends_with_its_reference() {
        for rest in ["", "x.example/", "/", "\n"] {
            assert!(!is_canonical("http://h.example", rest, true), "{rest}");
            let mut out = Vec::new();
            let written = with_reference("https://h.example", rest, |reference| {
                let head = ReferenceHead::of(&reference, CanonicalHead::of(&reference)).unwrap();
                Normalizer::default().normalize_http(reference, head, false, &mut out)
            });
            assert_eq!((written.unwrap(), &out[..]), ((Flags::NONE, Changes::EMPTY_PATH), &b"https://h.example/"[..]));
        }
    }

    #[test]
    fn canonical_references_of_any_scheme_are_unchanged() {
        let schemes = "a x+y x-1.z x_y X 1a file http https ftp ws urn javascript";
        let rests = "b /b //h/b //h //h? //h:21/ //u@h/ //H/ //a--b/ //[::1]/b /../b ../b b/./c b:c: b:c B:c b--c:d isbn:12 \
                     void(0) a%20b a%7Eb a%2fb a|b \u{E9} [ # a#b ?a?b /.//b //h//../b %41:b a%b -a:b a-:b 1:2 //h/?#  ;=@!$&'()*+,:";
        let mut canonical_count = 0;
        for (scheme, rest) in schemes.split(' ').flat_map(|scheme| rests.split(' ').map(move |rest| (scheme, rest))) {
            let url = format!("{scheme}:{rest}");
            for after in ["\n", "/./x", "x:"] {
                with_reference(&url, after, |reference| {
                    if !reference.is_canonical_of_any_scheme() {
                        return;
                    }
                    canonical_count += 1;
                    for rung in [Rung::Syntax, Rung::Scheme] {
                        let mut out = Vec::new();
                        let written = Normalizer::default().normalize(reference, rung, true, &mut out);
                        assert_eq!((written, out), (Ok((Flags::NONE, Changes::NONE)), url.clone().into_bytes()));
                    }
                });
            }
        }
        assert!((300..600).contains(&canonical_count), "{canonical_count}");
        for url in
            ["mailto:a@b.example?subject=c", "urn:isbn:12", "tel:+1", "ftp://h/a;type=i", "http:a", "x:", "app://a.b/c"]
        {
            assert!(with_reference(url, "\n", |reference| reference.is_canonical_of_any_scheme()), "{url}");
        }
    }

    fn is_undecoded(escape: &[u8; 3]) -> bool {
        is_canonical_escape(&escape.map(|byte| byte.to_ascii_uppercase()))
    }

    #[test]
    fn runs_of_escapes_are_found_at_once() {
        let escapes = ["%C3", "%c3", "%2F", "%bF", "%7E", "%8", "%", "a"];
        // The definition: the escapes at the start of a text that stay, and whether a digit in them is in lower case.
        let expected = |url: &str, max_count: usize| {
            let escapes = url.as_bytes().as_chunks::<3>().0.iter().take(max_count);
            let run: Vec<u8> = escapes.take_while(|escape| is_undecoded(escape)).flatten().copied().collect();
            (run.len(), run.iter().any(u8::is_ascii_lowercase))
        };
        for count in 1..30 {
            for (number, last) in escapes.iter().enumerate() {
                let run = escapes[number % 4].repeat(count);
                // Runs of octets outside ASCII are found at once.
                let max_count = if number % 4 == 2 { 1 } else { 21 };
                for (url, rest) in [(format!("{run}{last}"), "A%C3"), (run, *last)] {
                    let found = with_reference(&url, rest, |reference| reference.undecoded_escapes(0));
                    assert_eq!(found, expected(&url, max_count), "{url}");
                }
            }
        }
    }
}
