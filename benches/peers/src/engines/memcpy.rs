//! A lower bound: copies each line to an output buffer.

use crate::engine::Engine;
use crate::input::Input;
use crate::sink::Sink;

/// Capacity of the output buffer, which is cleared when it is full.
pub const BUFFER_LEN: usize = 8 << 20;

/// Copies lines.
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
        buffer.reserve(BUFFER_LEN);
        for line in &input.lines {
            if buffer.len() + line.bytes.len() > BUFFER_LEN {
                buffer.clear();
            }
            let at = buffer.len();
            buffer.extend_from_slice(line.bytes);
            sink.accept(&buffer[at..]);
        }
    }
}
