//! irikey: bytes to canonical URIs (`scheme` rung) and their 128-bit keys, as a worker of the pipeline does it.
//!
//! Cutting lines, checking UTF-8 and making keys is part of the measured time; the peers do none of these.

use crate::engine::Engine;
use crate::input::Input;
use crate::sink::Sink;
use ::irikey::canon::{Canonicalizer, Policy, Rows};
use ::irikey::kernel::Bitmaps;
use ::irikey::record::{TextDecoder, lines::Lines};
use std::hint::black_box;

/// A chunk ends at the last line end within this many bytes.
const CHUNK_LEN: usize = 256 << 10;

/// This library.
pub struct Irikey {
    bitmaps: Bitmaps,
    lines: Lines,
    canonicalizer: Canonicalizer,
    rows: Rows,
}

impl Default for Irikey {
    fn default() -> Irikey {
        Irikey {
            bitmaps: Bitmaps::default(),
            lines: Lines::default(),
            canonicalizer: Canonicalizer::new(&Policy { keep_input: false, ..Policy::default() }),
            rows: Rows::default(),
        }
    }
}

impl Engine for Irikey {
    const NAME: &'static str = "irikey";
    const PACKAGE: &'static str = "irikey";
    const JOB: &'static str = "cut, RFC 3987 parse + normalize (scheme rung), URI + key out";

    fn run<S: Sink>(&mut self, input: &Input<'_>, sink: &mut S) {
        let Irikey { bitmaps, lines, canonicalizer, rows } = self;
        let mut at = 0;
        while at < input.bytes.len() {
            let chunk = chunk_at(input.bytes, at);
            let records = lines.decode(chunk, at as u64, bitmaps);
            canonicalizer.append(&records, bitmaps, rows);
            at += chunk.len();
            if rows.uri.values.len() >= input.batch_len {
                emit(rows, sink);
            }
        }
        emit(rows, sink);
    }
}

/// Returns whole lines from byte `at` on: at most `CHUNK_LEN` bytes, or one longer line.
fn chunk_at(bytes: &[u8], at: usize) -> &[u8] {
    let rest = &bytes[at..];
    if rest.len() <= CHUNK_LEN {
        return rest;
    }
    let is_end = |&b: &u8| b == b'\n';
    let end = rest[..CHUNK_LEN].iter().rposition(is_end);
    let end = end.or_else(|| rest[CHUNK_LEN..].iter().position(is_end).map(|end| CHUNK_LEN + end));
    end.map_or(rest, |end| &rest[..=end])
}

fn emit<S: Sink>(rows: &mut Rows, sink: &mut S) {
    let mut faults = rows.faults.iter().map(|(row, _)| *row as usize).peekable();
    let texts = (0..rows.len()).map(|row| faults.next_if_eq(&row).is_none().then(|| rows.uri.get(row)));
    sink.answer(&rows.uri.values, texts);
    black_box((&rows.uri.offsets, &rows.faults));
    black_box(&rows.key);
    rows.clear();
}
