//! Compares the rows of the single pass with the steps of the ladder, line by line, on chunks of sample lines. Most lines
//! are mutated: bytes and pieces are inserted, removed and replaced. The seed is fixed.
//!
//! `IRIKEY_MUTATED_LINES` sets the number of lines; the default is 30,000. To check 50 million lines, use a release build:
//! `IRIKEY_MUTATED_LINES=50000000 cargo test --release --no-default-features --test core mutated`.

use irikey::canon::{Canonicalizer, Policy, Rows};
use irikey::iri::{Flags, ParseMode, Rung, normalize_to_rung};
use irikey::kernel::Bitmaps;
use irikey::key::KeyAlgorithm;
use irikey::record::{TextDecoder, lines::Lines};

const SAMPLES: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/data/samples/urls.txt"));

/// The pieces that a mutation inserts.
const PIECES: &[&[u8]] = &[
    b"%7e",
    b"%2f",
    b"%2E",
    b"%c3%a9",
    b"%C3%A9",
    b"%",
    b"%%34",
    b"1",
    b"%4",
    b"/../",
    b"/./",
    b"/.",
    b"..",
    b"//",
    b"/",
    b"?",
    b"#",
    b"#a#",
    b":80",
    b":443",
    b":",
    b":080",
    b":65536",
    b"@",
    b"[",
    b"]",
    b"//[2001:db8::1]:80",
    b"//[1:0:3:0:5:6:7:8]",
    b"A",
    b"Z",
    b"ABC",
    b"xn--",
    b"--",
    b"xn--bcher-kva",
    b" ",
    b"\\",
    b"|",
    b"\t",
    b"\0",
    b"\r",
    "é".as_bytes(),
    "日本語".as_bytes(),
    "новости".as_bytes(),
    "\u{A0}".as_bytes(),
    "\u{202E}".as_bytes(),
    "\u{FFFD}".as_bytes(),
    "\u{E000}".as_bytes(),
    "\u{10300}".as_bytes(),
    b"\xff",
    b"\xc3",
    b"\xe6\x97",
    b"HTTP://",
    b"https://",
    b"http:/",
    b"a",
    b"-",
    b".",
    b";=&",
    b"aaaaaaaaaaaaaaaaaaaaaaaa",
    b"%E6%97%A5%e6%9c%ac%E8%AA%9E",
    b"abcdefghijklmnopqrstuvwxyz/0123456789/abcdefghijklmnopqrstuvwxyz/0123456789",
];

/// The pseudo-random number generator xorshift64*.
struct Random(u64);

impl Random {
    fn below(&mut self, count: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % count
    }
}

fn mutate(line: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let at = random.below(line.len() + 1);
    match random.below(6) {
        0 | 1 => drop(line.splice(at..at, PIECES[random.below(PIECES.len())].iter().copied())),
        2 => line.truncate(at),
        3 if at < line.len() => drop(line.drain(at..(at + 1 + random.below(4)).min(line.len()))),
        4 if at < line.len() => line[at] = random.below(256) as u8,
        5 => {
            line.truncate(at);
            line.extend_from_slice(&other[random.below(other.len() + 1)..]);
        }
        _ => line.make_ascii_uppercase(),
    }
    line.retain(|&byte| byte != b'\n');
}

/// Returns a chunk of sample lines: a third of them unchanged, the others mutated one to four times.
fn chunk(samples: &[&[u8]], lines: usize, random: &mut Random) -> Vec<u8> {
    let mut chunk = Vec::new();
    for _ in 0..lines {
        let mut line = samples[random.below(samples.len())].to_vec();
        for _ in 0..[0, 0, 1, 1, 2, 4][random.below(6)] {
            mutate(&mut line, samples[random.below(samples.len())], random);
        }
        chunk.extend_from_slice(&line);
        chunk.push(b'\n');
    }
    chunk
}

fn assert_rows_equal_the_ladder(text: &[u8], lines: &[&[u8]], rows: &Rows) {
    assert!(rows.tally.is_balanced() && rows.len() == lines.len() && rows.tally.rows == lines.len() as u64);
    let mut faults = rows.faults.iter().peekable();
    for (row, line) in lines.iter().enumerate() {
        let context = || format!("row {row}: {:?} of {} bytes", String::from_utf8_lossy(line), text.len());
        let fault = faults.next_if(|(at, _)| *at as usize == row).map(|(_, fault)| *fault);
        let differs = match normalize_to_rung(line, Rung::Scheme, ParseMode::Lenient) {
            Ok((uri, flags)) => {
                assert_eq!(fault, None, "{}", context());
                assert_eq!(rows.uri.get(row), uri, "{}", context());
                assert_eq!(Flags(rows.flags[row]), flags, "{}", context());
                assert_eq!(rows.key[row], KeyAlgorithm::Xxh3.key(&uri), "{}", context());
                uri != *line
            }
            Err(expected) => {
                assert_eq!(fault, Some(expected), "{}", context());
                assert!(rows.uri.get(row).is_empty() && rows.flags[row] == 0, "{}", context());
                assert_eq!(rows.key[row], KeyAlgorithm::Xxh3.fault_key(line), "{}", context());
                true
            }
        };
        assert_eq!(rows.differs(row), differs, "{}", context());
        assert_eq!(rows.input.get(row), if differs { line } else { &b""[..] }, "{}", context());
    }
}

/// Without their fragments, the rows are those of the texts before the `#`.
fn assert_fragments_are_dropped(lines: &[&[u8]], rows: &Rows, dropped: &Rows) {
    assert_eq!(dropped.len(), lines.len());
    let faulty: Vec<u32> = dropped.faults.iter().map(|(row, _)| *row).collect();
    for (row, line) in lines.iter().enumerate().filter(|(row, _)| faulty.binary_search(&(*row as u32)).is_err()) {
        let uri = rows.uri.get(row).split(|byte| *byte == b'#').next().expect("a part");
        assert_eq!(dropped.uri.get(row), uri, "{:?}", String::from_utf8_lossy(line));
        assert_eq!(dropped.key[row], KeyAlgorithm::Xxh3.key(uri), "{:?}", String::from_utf8_lossy(line));
    }
    let faults = rows.faults.iter().map(|(row, _)| *row);
    assert!(faults.eq(faulty), "faults differ without fragments");
}

#[test]
fn rows_of_mutated_lines_equal_the_ladder() {
    const CHUNK_LINES: usize = 1000;
    let lines = std::env::var("IRIKEY_MUTATED_LINES").map_or(30_000, |lines| lines.parse().expect("a number of lines"));
    let samples: Vec<&[u8]> = SAMPLES.split(|&byte| byte == b'\n').collect();
    let policy = Policy { keep_input: true, ..Policy::default() };
    let without_fragments = Policy { drop_fragment: true, ..policy.clone() };
    let mut canonicalizers = [&policy, &without_fragments].map(Canonicalizer::new);
    let (mut decoder, mut bitmaps, mut rows) =
        (Lines::default(), Bitmaps::default(), [(); 2].map(|()| Rows::default()));
    let mut random = Random(0x1D1F_2026);
    for _ in 0..lines / CHUNK_LINES {
        let text = chunk(&samples, CHUNK_LINES, &mut random);
        let records = decoder.decode(&text, 0, &mut bitmaps);
        let lines: Vec<&[u8]> = records.urls.iter().map(|url| url.of(&text)).collect();
        for (canonicalizer, rows) in canonicalizers.iter_mut().zip(&mut rows) {
            rows.clear();
            canonicalizer.append(&records, &bitmaps, rows);
        }
        assert_rows_equal_the_ladder(&text, &lines, &rows[0]);
        assert_fragments_are_dropped(&lines, &rows[0], &rows[1]);
    }
}
