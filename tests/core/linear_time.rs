//! The time per byte does not grow with the length of a record: hostile shapes of records, recipes, decoders and
//! documents are processed at two lengths. Work that grows with the square of the length fails.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use irikey::canon::{Canonicalizer, Policy, Rows};
use irikey::iri::{Backslashes, CharacterReferences, ParseMode, PreprocessOptions, Profile, Spaces};
use irikey::kernel::Bitmaps;
use irikey::key::{Draft, Recipe};
use irikey::record::archive::{ArchiveEnd, ArchiveParser, ArchiveWindow, BatchLimits, CaptureBatch};
use irikey::record::fields::FieldSet;
use irikey::record::{TextDecoder, access_log, cdx, cdxj, crawl_log, csv, journal, json_lines, lines};

/// The longer record has this multiple of the length of the shorter one.
const FACTOR: usize = 4;

/// Work per byte at the longer length may be this multiple of the work per byte at the shorter length. Quadratic work
/// gives [`FACTOR`].
const MAX_GROWTH: f64 = 1.6;

/// A shape grows too much only if it does at this many lengths, each [`FACTOR`] times the one before: caches, the allocator or the
/// system may slow down texts that exceed some length.
const LEVELS: u32 = 3;

/// If work per byte grows by this factor at two lengths, the third one, which would take long, is not tried.
const CLEAR_GROWTH: f64 = 3.2;

/// Work that takes less time at the longer length passes: quadratic work takes milliseconds.
const MIN_TIME: Duration = Duration::from_micros(200);

/// Work that takes less time per byte at the longer length, in seconds, passes: a text that exceeds a cache is copied more
/// slowly than one that fits, but still as fast as this.
const COPY_TIME_PER_BYTE: f64 = 0.5e-9;

/// The machine may be busy, so a shape fails only if it grows too much in each of this many attempts.
const ATTEMPTS: usize = 30;

/// Held while times are compared, because tests that run at the same time share the caches.
static COMPARISON: Mutex<()> = Mutex::new(());

/// Returns the CPU time of this thread, which does not count the time of other programs.
fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes to `time`, which is valid for writes.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(status, 0);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Returns a message if the time that `work` takes per byte grows with the length of the text that `shape` returns, at each of
/// [`LEVELS`] lengths, the shortest of which is `len`.
fn check(name: &str, len: usize, shape: impl Fn(usize) -> Vec<u8>, mut work: impl FnMut(&[u8])) -> Option<String> {
    let (mut messages, mut clear_count) = (Vec::new(), 0);
    for level in 0..LEVELS {
        let (factor, message) = growth(len * FACTOR.pow(level), &shape, &mut work)?;
        messages.push(message);
        clear_count += u32::from(factor >= CLEAR_GROWTH);
        if clear_count == 2 {
            break;
        }
    }
    Some(format!("{name}: the time per byte grows {}", messages.join(", ")))
}

/// Returns how the time per byte grows from texts of about `len` bytes to texts [`FACTOR`] times as long, as a factor and as a message.
/// Returns `None` if it is within the bound.
fn growth(len: usize, shape: &dyn Fn(usize) -> Vec<u8>, work: &mut dyn FnMut(&[u8])) -> Option<(f64, String)> {
    let texts = [shape(len), shape(len * FACTOR)];
    let _alone = COMPARISON.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut times, mut factor) = ([Duration::MAX; 2], f64::MAX);
    for _ in 0..ATTEMPTS {
        for (text, time) in texts.iter().zip(&mut times) {
            for _ in 0..2 {
                let begin = cpu_time();
                work(text);
                *time = (cpu_time() - begin).min(*time);
            }
        }
        let per_byte = |i: usize| times[i].as_secs_f64() / texts[i].len() as f64;
        factor = per_byte(1) / per_byte(0);
        if factor < MAX_GROWTH || times[1] < MIN_TIME || per_byte(1) < COPY_TIME_PER_BYTE {
            return None;
        }
    }
    let [short, long] = texts.map(|text| text.len());
    Some((factor, format!("by {factor:.1} from {short} to {long} bytes ({times:?})")))
}

/// The check itself: each byte is compared with one in sixteen of the others.
#[test]
fn quadratic_work_is_found() {
    let others =
        |text: &[u8], byte: u8| text.iter().step_by(16).filter(|other| **other == std::hint::black_box(byte)).count();
    let work = |text: &[u8]| {
        std::hint::black_box(text.iter().map(|byte| others(text, *byte)).sum::<usize>());
    };
    let message = check("quadratic", 1 << 10, |len| vec![b'a'; len], work).expect("growth is found");
    assert!(message.matches(" bytes (").count() == 2, "the third length is not tried: {message}");
    let linear = |text: &[u8]| (0..1_000).for_each(|_| _ = others(text, b'b'));
    assert_eq!(check("linear", 1 << 10, |len| vec![b'a'; len], linear), None);
}

/// Returns `prefix`, then `part` as often as it fits into `len` bytes, then `suffix`.
fn repeat(prefix: &[u8], part: &[u8], suffix: &[u8], len: usize) -> Vec<u8> {
    let mut text = prefix.to_vec();
    (0..len / part.len()).for_each(|_| text.extend_from_slice(part));
    text.extend_from_slice(suffix);
    text
}

/// Text before the repeated part, the repeated part, and text after it.
type Shape<'a> = (&'a [u8], &'a [u8], &'a [u8]);

/// Checks each shape, see [`check`], and returns the messages.
fn check_shapes(name: &str, shapes: &[Shape<'_>], len: usize, mut work: impl FnMut(&[u8])) -> Vec<String> {
    let failures = shapes.iter().filter_map(|&(prefix, part, suffix)| {
        let name = format!("{name} of {:?}", [prefix, part, suffix].map(String::from_utf8_lossy));
        check(&name, len, |len| repeat(prefix, part, suffix, len), &mut work)
    });
    failures.collect()
}

/// URLs whose parts repeat.
const URLS: &[Shape<'_>] = &[
    (b"http://xn--", b"a", b"/"),
    (b"http://", b"xn--a.", b"/"),
    (b"http://", b"xn--mller-kva.", b"/"),
    (b"http://", b"xn--", b"/"),
    (b"http://", b"xn--xn--a.", b"/"),
    (b"http://xn--xn--", b"a", b"/"),
    (b"http://", "\u{FC}".as_bytes(), b"/"),
    (b"http://", "\u{FC}a.".as_bytes(), b"/"),
    (b"http://", "a\u{301}".as_bytes(), b"/"),
    (b"http://a", "\u{301}".as_bytes(), b"/"),
    (b"http://a", "\u{301}\u{316}".as_bytes(), b"/"),
    (b"http://", "\u{5D0}".as_bytes(), b"/"),
    (b"http://", b"%C3%BC", b"/"),
    (b"http://", b"%41", b"/"),
    (b"http://", b"\xFF", b"/"),
    (b"http://", b"\xFFa", b"/"),
    (b"http://", b"%", b"/"),
    (b"http://", b".", b"/"),
    (b"http://", b"1.", b"/"),
    (b"http://", b"@", b"/"),
    (b"http://", b"a:", b"@h/"),
    (b"http://", b"[", b"/"),
    (b"http://h:", b"0", b"/"),
    (b"http://h:", b"1", b"/"),
    (b"http://", b"www.", b"example.org/a"),
    (b"http://", b"www1.", b"example.org/a"),
    (b"http://", b"WWW.", b"/a"),
    (b"http://h/", b"\xFFa", b""),
    (b"http://h/", b"\xFF", b""),
    (b"http://h/?", b"\xFFa", b""),
    (b"http://h/", "\u{E000}a".as_bytes(), b""),
    (b"http://h/#", "\u{E000}a".as_bytes(), b""),
    (b"http://h/", "\u{5D0}".as_bytes(), b""),
    (b"http://h/", "\u{5D0}/".as_bytes(), b""),
    (b"http://h/", "\u{5D0}1-".as_bytes(), b""),
    (b"http://h/", b"../", b""),
    (b"http://h/", b"a/../", b""),
    (b"http://h", b"/a", b""),
    (b"http://h/", b"/", b""),
    (b"http://h/", b"%2e%2e/", b""),
    (b"http://h/", b"%25", b""),
    (b"http://h/%", b"25", b""),
    (b"http://h/", b"%2525", b""),
    (b"http://h/", b"%zz", b""),
    (b"http://h/", b"%e4", b""),
    (b"http://h/", b"%", b""),
    (b"http://h/", b"[", b""),
    (b"http://h/", b"#", b""),
    (b"http://h/", b"?", b""),
    (b"http://h/?", b"&", b""),
    (b"http://h/?", b"a&", b""),
    (b"http://h/?", b"b=1&a=2&", b""),
    (b"http://h/?", b"a=", b""),
    (b"http://h/?", b"cfid=", b""),
    (b"http://h/?", b"cfid=1&", b""),
    (b"http://h/?", b"cfid=&cftoken=", b""),
    (b"http://h/?", b"cfid=1&cftoken=1&", b""),
    (b"http://h/?", b"cfid=1&cftoken=", b""),
    (b"http://h/?cfid=1&cftoken=", b"cfid=", b""),
    (b"http://h/?", b"sid=", b""),
    (b"http://h/?", b"sid=0123456789abcdefghijklemopqrstuv", b""),
    (b"http://h/?", b"sid=0123456789abcdefghijklemopqrstuv&", b""),
    (b"http://h/?", b"cfid=1&cftoken=1&", b""),
    (b"http://h/?", b"jsessionid=0123456789abcdefghijklemopqrstuv", b""),
    (b"http://h/", b";jsessionid=", b""),
    (b"http://h/", b";jsessionid=0123456789abcdefghijklemopqrstuv", b""),
    (b"http://h/", b"(a(4hqa0555fwsecu455xqckv45))/", b""),
    (b"http://h/(", b"a(4hqa0555fwsecu455xqckv45)", b""),
    (b"http://h/(", b"a(4hqa0555fwsecu455xqckv45)", b")/a.aspx"),
    (b"http://h/", b"(4hqa0555fwsecu455xqckv45)/", b""),
    (b"http://h/", b"(4hqa0555fwsecu455xqckv45)/", b"a.aspx"),
    (b"http://h/", b"/(a(4hqa0555fwsecu455xqckv45)", b""),
    (b"http://h/", b"(", b""),
    (b"http://h/", b";", b""),
    (b"http://h/", b"\\", b""),
    (b"http://h/", b" ", b""),
    (b"http://h/", b"&amp;", b""),
    (b"http://h/", b"&", b""),
    (b"http://h/", b"&#", b""),
    (b"http://h/&#", b"0", b""),
    (b"http://h/", b"\t", b""),
    (b"", b"http:", b""),
    (b"", b"http://", b""),
    (b"", b"a", b""),
    (b"", b"a:", b""),
    (b"", b":", b""),
    (b"", b"/", b""),
    (b"", b"../", b""),
    (b"urn:", b"a", b":b"),
    (b"mailto:", b"a@", b""),
    (b"data:", b"a,", b""),
    (b"file:", b"/", b""),
    (b"dns:", b"a.", b""),
];

fn canonicalize(policy: Policy) -> impl FnMut(&[u8]) {
    let (mut lines, mut bitmaps) = (lines::Lines::default(), Bitmaps::default());
    let (mut canonicalizer, mut rows) = (Canonicalizer::new(&policy), Rows::default());
    move |line| {
        let records = lines.decode(line, 0, &mut bitmaps);
        canonicalizer.append(&records, &bitmaps, &mut rows);
        rows.clear();
    }
}

#[test]
fn canonicalization_is_linear() {
    let base = Some(b"http://example.org/a/b?c".to_vec());
    let lenient = Policy { base: base.clone(), ..Policy::default() };
    let strict = Policy { mode: ParseMode::Strict, spoofing_flags: true, base, ..Policy::default() };
    let mut failures = check_shapes("canonicalization", URLS, 16 << 10, canonicalize(lenient));
    failures.extend(check_shapes("strict canonicalization", URLS, 16 << 10, canonicalize(strict)));
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn repairs_and_profiles_are_linear() {
    let preprocess = PreprocessOptions {
        character_references: CharacterReferences::Html,
        is_trimmed: true,
        spaces: Spaces::Encoded,
        backslashes: Backslashes::Slash,
    };
    let mut failures = Vec::new();
    for profile in ["rfc3987", "masinter-07", "weber-00", "whatwg"].into_iter().filter_map(Profile::named) {
        if profile.name == "whatwg" && cfg!(not(feature = "whatwg")) {
            continue;
        }
        let policy = Policy { profile, preprocess, spoofing_flags: true, ..Policy::default() };
        failures.extend(check_shapes(profile.name, URLS, 4 << 10, canonicalize(policy)));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn hosts_of_many_letters_are_linear() {
    let letters = |len: usize| {
        let text: String = ('\u{4E00}'..='\u{9FFF}').cycle().take(len / 3).collect();
        format!("http://{text}/").into_bytes()
    };
    assert_eq!(check("different Han letters", 16 << 10, letters, canonicalize(Policy::default())), None);
}

/// Checks that the time that each recipe takes per byte does not grow with the length of `shapes`.
fn check_recipes(shapes: &[Shape<'_>], len: usize) {
    let mut failures = Vec::new();
    for name in Recipe::names() {
        let recipe = Recipe::parse(name).expect("a recipe");
        let (mut draft, mut key) = (Draft::default(), Vec::new());
        failures.extend(check_shapes(name, shapes, len, |url| {
            key.clear();
            let _ = recipe.write_key(url, &mut draft, &mut key);
        }));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn recipes_are_linear() {
    check_recipes(URLS, 16 << 10);
}

/// Queries of one long field and many short ones, which rules of recipes sort.
#[test]
fn recipes_that_sort_fields_are_linear() {
    let mut failures = Vec::new();
    for name in Recipe::names() {
        let recipe = Recipe::parse(name).expect("a recipe");
        let (mut draft, mut key) = (Draft::default(), Vec::new());
        for (first, field, last) in [("x", "&", ""), ("", "?&", "\u{2039}")] {
            let url = |len: usize| {
                let (first, last) = (first.repeat(len / 2), last.repeat(len / 6));
                format!("http://h/?{first}{}{last}", field.repeat(len / 2 / field.len())).into_bytes()
            };
            failures.extend(check(&format!("{name}, {field}{last}"), 32 << 10, url, |url| {
                key.clear();
                let _ = recipe.write_key(url, &mut draft, &mut key);
            }));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// URLs with parts that rules of recipes remove one by one. Moving the rest of the text for each part takes less time than
/// the other work up to about 100 KB, so these URLs are longer.
const REMOVED_PARTS: &[Shape<'_>] = &[
    (b"http://h/", b"(4hqa0555fwsecu455xqckv45)/", b"a.aspx"),
    (b"http://h/", b"(a(4hqa0555fwsecu455xqckv45))/", b"a.aspx"),
    (b"http://h/", b";jsessionid=0123456789abcdefghijklemopqrstuv", b""),
    (b"http://h/?", b"sid=0123456789abcdefghijklemopqrstuv&", b""),
    (b"http://h/?", b"cfid=1&cftoken=1&", b""),
    (b"http://h/", b"a/../", b""),
    (b"http://", b"www.", b"example.org/a"),
];

#[test]
fn rules_that_remove_parts_are_linear() {
    check_recipes(REMOVED_PARTS, 512 << 10);
}

/// Short lines that lack what the format requires. A search that goes on in the lines that follow is much faster per byte
/// than decoding, so the text is long; the rows of the shorter text do not fit into the second cache either.
const SHORT_LINES: &[Shape<'_>] = &[
    (b"", b"a\n", b""),
    (b"", b"a b c\n", b""),
    (b"", b"{}\n", b""),
    (b"", b"a\0\n", b""),
    (b"", b"org,a)/ 20140127171200\n", b""),
    (b"", b"\"a\n", b""),
    (b"", b"a,\"\n", b""),
    (b"", b"a,\"\"\"\n", b""),
    (b"", b"{\"\n", b""),
    (b"", b"{\"a\":\n", b""),
];

/// Lines of text formats whose parts repeat.
const LINES: &[Shape<'_>] = &[
    (b"{", b"\"a\":1,", b"\"url\":\"http://a/\"}"),
    (b"{", b"\"a\":\"b\",", b"\"url\":\"http://a/\"}"),
    (b"{", b"\"a\":{},", b"\"url\":\"http://a/\"}"),
    (b"{\"url\":\"http://a/", b"\\u00fc", b"\"}"),
    (b"{\"url\":\"http://a/", b"\\", b"\"}"),
    (b"{\"url\":\"http://a/", b"\0", b"\"}"),
    (b"{\"url\":", b"[", b""),
    (b"{\"url\":", b"{\"url\":", b""),
    (b"{\"url\":", b"1", b"}"),
    (b"{\"url\"", b" ", b""),
    (b"{\"", b"\\\"", b""),
    (b"", b"{", b""),
    (b"", b"\"", b""),
    (b"", b" {", b""),
    (b"a 20140127171200 ", b" {", b""),
    (b"", b"20140127171200 {", b""),
    (b"", b"org,a)/ 20140127171200\n", b""),
    (b"", b"org,a)/\n", b""),
    (b"", b"{\"a\":1,\"a\":2\n", b""),
    (b"", b"\n", b""),
    (b"", b"\r", b""),
    (b"", b" ", b""),
    (b"", b"a ", b""),
    (b"", b"\"a ", b""),
    (b"", b"a\t", b""),
    (b"", b",", b""),
    (b"", b"\"\"", b""),
    (b"", b"\",", b""),
    (b"a,\"", b"\"\"", b"\""),
    (b"", b"\\x", b""),
    (b"", b"[", b""),
    (b"", b"2014-01-03T03:03:21.000Z ", b""),
    (b"1.2.3.4 - - [01/Jan/2014:00:00:00 +0000] \"GET /", b" ", b" HTTP/1.1\" 200 1"),
    (b"1.2.3.4 - - [01/Jan/2014:00:00:00 +0000] \"GET /", b"\\\"", b" HTTP/1.1\" 200 1"),
    (b"1.2.3.4 - - [01/Jan/2014:00:00:00 +0000] \"GET /", b"\"", b" HTTP/1.1\" 200 1"),
    (b"F+ http://a/", b"F+ ", b""),
];

fn check_lines<D: TextDecoder + Default>(name: &str) {
    let (mut decoder, mut bitmaps) = (D::default(), Bitmaps::default());
    let mut work = |text: &[u8]| {
        decoder.decode(text, 0, &mut bitmaps);
    };
    let mut failures = check_shapes(name, LINES, 32 << 10, &mut work);
    failures.extend(check_shapes(&format!("{name} of many"), SHORT_LINES, 256 << 10, &mut work));
    let members = |len: usize| {
        let members: String = (0..len / 9).map(|i| format!("\"{i:04x}\":1,")).collect();
        format!("{{{members}").into_bytes()
    };
    failures.extend(check(&format!("{name} of different members"), 32 << 10, members, &mut work));
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

macro_rules! decoders {
    ($($test:ident $decoder:ty;)*) => {$(
        #[test]
        fn $test() {
            check_lines::<$decoder>(stringify!($test));
        }
    )*};
}

decoders! {
    lines_are_linear lines::Lines;
    csv_is_linear csv::Csv;
    json_lines_are_linear json_lines::JsonLines;
    cdxj_is_linear cdxj::Cdxj;
    cdx_is_linear cdx::Cdx;
    crawl_logs_are_linear crawl_log::CrawlLog;
    access_logs_are_linear access_log::AccessLog;
    journals_are_linear journal::Journal;
}

/// Documents whose parts repeat.
#[cfg(feature = "extract")]
const DOCUMENTS: &[Shape<'_>] = &[
    (b"<base href='http://h/'>", b"<a href=y>", b""),
    (b"<meta charset=windows-1252><base href='http://h/\xE4'>", b"<a href='\xE4'>", b""),
    (b"<a ", b"href=y ", b">"),
    (b"<a ", b"a=b ", b"href=y>"),
    (b"<a ", b"a=\"b\" ", b"href=y>"),
    (b"<", b"a", b" href=y>"),
    (b"<", b"a", b""),
    (b"", b"<", b""),
    (b"", b"<!--", b""),
    (b"<img srcset='", b"a 1x, ", b"'>"),
    (b"<img srcset='", b",", b"'>"),
    (b"<img srcset='", b"a,", b"'>"),
    (b"<img srcset='", b"a (", b"'>"),
    (b"<a ping='", b"a ", b"'>"),
    (b"<a href='", b"&amp", b"'>"),
    (b"<a href='", b"&#0;", b"'>"),
    (b"<meta http-equiv=refresh content='0;url=", b"' ", b"'>"),
    (b"<?xml version='1.0'?>", b"<a xml:base='x/'>", b""),
    (b"<?xml version='1.0'?><r xml:base='http://h/'>", b"<a xml:base='x/' href='y'/>", b"</r>"),
    (b"<?xml version='1.0'?><r>", b"<a xmlns:x='y' x:href='y'>", b""),
    (b"<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'><meta ", b"href='y' ", b"/></html>"),
    (b"<?xml version='1.0'?><a ", b"href='y' ", b"/>"),
    (b"<?xml version='1.0'?><a href='", b"&amp;", b"'/>"),
    (b"<?xml version='1.0'?><a href='", b"&x;", b"'/>"),
    (b"<?xml version='1.0'?>", b"<", b""),
    (b"<p>", b"<p charset=x>", b""),
    (b"<base href=x><base ", b"href=x ", b">"),
    (b"<meta charset=shift_jis>", b"<a href='\x82'>", b""),
    (b"<meta charset=shift_jis><a href='", b"\x82", b"'>"),
    (b"<urlset><url>", b"<loc>http://a/</loc>", b""),
    (b"<rss><link>", b"&amp;", b"</link></rss>"),
    (b"<rss><link>", b"&x;", b"</link></rss>"),
    (b"<rss><link>", b"& ", b"</link></rss>"),
    (b"<rss>", b"<link>", b""),
    (b"User-agent: *\n", b"Sitemap: http://a/\n", b""),
    (b"User-agent: *\n", b"Sitemap ", b""),
    (b"<?xml version='1.0'?><!DOCTYPE a [", b"<!ENTITY a '&a;'>", b"]><a/>"),
];

#[cfg(feature = "extract")]
#[test]
fn documents_are_linear() {
    use irikey::extract::{DocumentContext, extract};
    let context = DocumentContext { base: Some(b"http://example.org/".to_vec()), ..DocumentContext::default() };
    let with_text = DocumentContext { text: true, ..context.clone() };
    let mut work = |text: &[u8]| {
        extract(text, &context);
        extract(text, &with_text);
    };
    let mut failures = check_shapes("documents", DOCUMENTS, 64 << 10, &mut work);
    let names = |len: usize| {
        let name = "e".repeat(len / 2);
        let space = "http://www.w3.org/2001/XMLSchema-instance";
        let pairs = "u a ".repeat(len / 8);
        format!("<?xml version='1.0'?><{name} xmlns:x='{space}' x:schemaLocation='{pairs}'/>").into_bytes()
    };
    failures.extend(check("a long name times references", 16 << 10, names, &mut work));
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Records whose lengths are those of all records that follow. The headers of records and of HTTP messages end with different
/// blank lines: that of a record may contain a space.
const RECORDS: &[Shape<'_>] = &[
    (
        b"",
        b"WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: http://h/\r\nContent-Length: 30000000\r\n\r\nx\r\n\r\n",
        b"",
    ),
    (
        b"",
        b"WARC/1.0\r\nContent-Length: 30000000\r\nWARC-Type: response\r\nWARC-Target-URI: http://h/\r\n \r\nHTTP/1.1 200 OK\r\n",
        b"",
    ),
    (
        b"",
        b"WARC/1.0\r\nContent-Length: 30000000\r\nWARC-Type: metadata\r\nWARC-Target-URI: http://h/\r\n \r\na: b\r\n",
        b"",
    ),
    (b"", b"http://h/ 192.0.2.1 20140216050221 a/b 30000000\nHTTP/1.1 200 OK\n", b""),
];

#[test]
fn records_of_archives_are_linear() {
    let work = |text: &[u8]| {
        let limits = BatchLimits { target_len: usize::MAX, max_record_len: usize::MAX };
        let mut batch = CaptureBatch::new(FieldSet::default(), limits);
        let window = ArchiveWindow { at: 0, bytes: text };
        let mut parser = ArchiveParser::default();
        parser.push(window, &mut batch);
        while parser.finish(window, &mut batch) == ArchiveEnd::NotYet {
            parser.push(window, &mut batch);
        }
        assert!(batch.into_rows().len() > text.len() / 200);
    };
    let failures = check_shapes("records", RECORDS, 64 << 10, work);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn links_of_archives_are_linear() {
    let record = |len: usize| {
        let (base, links) = ("b".repeat(len / 2), "{\"url\":\"x\"},".repeat(len / 26));
        let json = format!(
            "{{\"Envelope\":{{\"Payload-Metadata\":{{\"HTTP-Response-Metadata\":{{\"HTML-Metadata\":\
             {{\"Head\":{{\"Base\":\"http://{base}/\"}},\"Links\":[{links}{{}}]}}}}}}}}}}"
        );
        let head = "WARC/1.0\r\nWARC-Type: metadata\r\nWARC-Target-URI: http://h/";
        format!("{head}\r\nContent-Length: {}\r\n\r\n{json}\r\n\r\n", json.len()).into_bytes()
    };
    let work = |text: &[u8]| {
        let limits = BatchLimits { target_len: usize::MAX, max_record_len: usize::MAX };
        let mut batch = CaptureBatch::new(FieldSet::default(), limits);
        let window = ArchiveWindow { at: 0, bytes: text };
        let mut parser = ArchiveParser::of_links();
        parser.push(window, &mut batch);
        parser.finish(window, &mut batch);
        parser.push(window, &mut batch);
        let (rows, mut bitmaps) = (batch.into_rows(), Bitmaps::default());
        let records = rows.classified_records(&mut bitmaps);
        Canonicalizer::new(&Policy::default()).append(&records, &bitmaps, &mut Rows::default());
        assert!(!rows.is_empty());
    };
    assert_eq!(check("links of a page with a long base", 64 << 10, record, work), None);
}
