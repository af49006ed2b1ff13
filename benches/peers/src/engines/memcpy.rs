//! A lower bound: copies each line to an output buffer.

use crate::engine::Engine;
use crate::input::Input;
use crate::sink::Sink;

/// Copies lines to a buffer of the size of a batch, which is cleared when it is full.
#[derive(Default)]
pub struct Memcpy {
    buffer: Vec<u8>,
}

impl Engine for Memcpy {
    const NAME: &'static str = "memcpy";
    const PACKAGE: &'static str = "";
    const JOB: &'static str = "floor: copy the line";

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
            sink.accept(&buffer[at..]);
        }
    }
}
