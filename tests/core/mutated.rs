//! The fast rows against the ladder, line by line, on whole chunks of samples and of what becomes of them when bytes and
//! pieces are put in, left out and exchanged. In: samples, a seed. Out: the first line whose row is another.
//!
//! `IRIKEY_MUTATED_LINES` says how many lines, 30,000 if it does not; a run of 50 million takes a release build:
//! `IRIKEY_MUTATED_LINES=50000000 cargo test --release --no-default-features --test core mutated`.

use irikey::canon::{Canonicalizer, Policy, Rows};
use irikey::iri::{Flags, ParseMode, Rung, normalize_to_rung};
use irikey::kernel::Bitmaps;
use irikey::key::KeyAlgorithm;
use irikey::record::{TextDecoder, lines::Lines};

const SAMPLES: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/data/samples/urls.txt"));

/// What a mutation puts in.
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

/// xorshift64*.
struct Dice(u64);

impl Dice {
    fn below(&mut self, count: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % count
    }
}

fn mutate(line: &mut Vec<u8>, other: &[u8], dice: &mut Dice) {
    let at = dice.below(line.len() + 1);
    match dice.below(6) {
        0 | 1 => drop(line.splice(at..at, PIECES[dice.below(PIECES.len())].iter().copied())),
        2 => line.truncate(at),
        3 if at < line.len() => drop(line.drain(at..(at + 1 + dice.below(4)).min(line.len()))),
        4 if at < line.len() => line[at] = dice.below(256) as u8,
        5 => {
            line.truncate(at);
            line.extend_from_slice(&other[dice.below(other.len() + 1)..]);
        }
        _ => line.make_ascii_uppercase(),
    }
    line.retain(|&byte| byte != b'\n');
}

/// A chunk of samples: some as they are, some mutated once, some more often.
fn chunk(samples: &[&[u8]], lines: usize, dice: &mut Dice) -> Vec<u8> {
    let mut chunk = Vec::new();
    for _ in 0..lines {
        let mut line = samples[dice.below(samples.len())].to_vec();
        for _ in 0..[0, 0, 1, 1, 2, 4][dice.below(6)] {
            mutate(&mut line, samples[dice.below(samples.len())], dice);
        }
        chunk.extend_from_slice(&line);
        chunk.push(b'\n');
    }
    chunk
}

fn assert_rows_are_the_ladders(text: &[u8], lines: &[&[u8]], rows: &Rows) {
    assert!(rows.tally.is_balanced() && rows.len() == lines.len() && rows.tally.rows == lines.len() as u64);
    let mut faults = rows.faults.iter().peekable();
    for (row, line) in lines.iter().enumerate() {
        let shown = || format!("row {row}: {:?} of {} bytes", String::from_utf8_lossy(line), text.len());
        let fault = faults.next_if(|(at, _)| *at as usize == row).map(|(_, fault)| *fault);
        let differs = match normalize_to_rung(line, Rung::Scheme, ParseMode::Lenient) {
            Ok((uri, flags)) => {
                assert_eq!(fault, None, "{}", shown());
                assert_eq!(rows.uri.get(row), uri, "{}", shown());
                assert_eq!(Flags(rows.flags[row]), flags, "{}", shown());
                assert_eq!(rows.key[row], KeyAlgorithm::Xxh3.key(&uri), "{}", shown());
                uri != *line
            }
            Err(expected) => {
                assert_eq!(fault, Some(expected), "{}", shown());
                assert!(rows.uri.get(row).is_empty() && rows.flags[row] == 0, "{}", shown());
                assert_eq!(rows.key[row], KeyAlgorithm::Xxh3.key(line), "{}", shown());
                true
            }
        };
        assert_eq!(rows.differs(row), differs, "{}", shown());
        assert_eq!(rows.input.get(row), if differs { line } else { &b""[..] }, "{}", shown());
    }
}

#[test]
fn rows_of_mutated_lines_are_the_ladders() {
    const CHUNK_LINES: usize = 1000;
    let lines = std::env::var("IRIKEY_MUTATED_LINES").map_or(30_000, |lines| lines.parse().expect("a number of lines"));
    let samples: Vec<&[u8]> = SAMPLES.split(|&byte| byte == b'\n').collect();
    let policy = Policy { keep_input: true, ..Policy::default() };
    let mut canonicalizer = Canonicalizer::new(&policy);
    let (mut decoder, mut bitmaps, mut rows) = (Lines::default(), Bitmaps::default(), Rows::new(0));
    let mut dice = Dice(0x1D1F_2026);
    for _ in 0..lines / CHUNK_LINES {
        let text = chunk(&samples, CHUNK_LINES, &mut dice);
        let records = decoder.decode(&text, 0, &mut bitmaps);
        let lines: Vec<&[u8]> = records.urls.iter().map(|url| url.of(&text)).collect();
        rows.clear();
        canonicalizer.append(&records, &bitmaps, &mut rows);
        assert_rows_are_the_ladders(&text, &lines, &rows);
    }
}
