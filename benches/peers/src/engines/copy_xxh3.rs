//! A lower bound: copies each line to an output buffer and hashes it to a 128-bit key.

use crate::engine::Engine;
use crate::input::Input;
use crate::sink::Sink;
use std::hint::black_box;
use xxhash_rust::xxh3::xxh3_128;

/// Copies and hashes lines, with a buffer like that of `Memcpy`.
#[derive(Default)]
pub struct CopyXxh3 {
    buffer: Vec<u8>,
}

impl Engine for CopyXxh3 {
    const NAME: &'static str = "copy_xxh3";
    const PACKAGE: &'static str = "";
    const JOB: &'static str = "floor: copy the line + XXH3-128";

    fn run<S: Sink>(&mut self, input: &Input<'_>, sink: &mut S) {
        let buffer = &mut self.buffer;
        buffer.clear();
        buffer.reserve(input.batch_len);
        for line in &input.lines {
            if buffer.len() + line.bytes.len() > input.batch_len {
                buffer.clear();
            }
            let at = buffer.len();
            buffer.extend_from_slice(line.bytes);
            black_box(xxh3_128(line.bytes));
            sink.accept(&buffer[at..]);
        }
    }
}
