//! A reader of text that makes the tokenizer of HTML return to its caller now and then: [`PausedReader`].
//!
//! The tokenizer (html5gum 0.9) reads a tag of double-quoted attributes by functions that call each other in a cycle, one round
//! for each attribute: `BeforeAttributeName`, `AttributeName`, `BeforeAttributeValue`, `AttributeValueDoubleQuoted`,
//! `AfterAttributeValueQuoted`. The compiler does not make tail calls of them, so a tag of some thousand attributes would
//! overflow the stack. No other states call each other in a cycle. An error of the reader ends the cycle: after the quote that
//! ends a value, the tokenizer has stored its state, and a call of [`Reader::read_byte`] that fails does not change the tokenizer.
//! The caller continues with the next token.

use std::convert::Infallible;
use std::fmt;

use html5gum::{Readable, Reader, StringReader};

/// The tokenizer returns after this number of quotes that end a value. More of them do not make it faster.
const QUOTES_PER_PAUSE: u8 = 4;

/// The tokenizer has returned without a token; it can continue.
#[derive(Debug)]
pub(super) struct Pause;

impl fmt::Display for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the tokenizer has not reached the next token")
    }
}

impl std::error::Error for Pause {}

/// Reads a text, and fails with [`Pause`] instead of reading the byte after every fourth quote.
pub(super) struct PausedReader<'a> {
    text: StringReader<'a>,
    /// The last call returned a quote that it was to find.
    is_after_quote: bool,
    /// The number of quotes since the last pause.
    quotes: u8,
}

impl<'a> PausedReader<'a> {
    pub(super) fn new(text: &'a [u8]) -> PausedReader<'a> {
        PausedReader { text: text.to_reader(), is_after_quote: false, quotes: 0 }
    }
}

/// Reading memory does not fail.
#[inline(always)]
fn sound<T>(result: Result<T, Infallible>) -> T {
    let Ok(value) = result;
    value
}

impl Reader for PausedReader<'_> {
    type Error = Pause;

    /// Only states that are stored read a single byte after a quote that they were to find.
    #[inline(always)]
    fn read_byte(&mut self) -> Result<Option<u8>, Pause> {
        if std::mem::take(&mut self.is_after_quote) {
            self.quotes += 1;
            if self.quotes == QUOTES_PER_PAUSE {
                self.quotes = 0;
                return Err(Pause);
            }
        }
        Ok(sound(self.text.read_byte()))
    }

    #[inline(always)]
    fn read_until<'b>(&'b mut self, needle: &[u8], buffer: &'b mut [u8; 4]) -> Result<Option<&'b [u8]>, Pause> {
        let found = sound(self.text.read_until(needle, buffer));
        self.is_after_quote = found == Some(b"\"");
        Ok(found)
    }

    #[inline(always)]
    fn try_read_string(&mut self, string: &[u8], is_case_sensitive: bool) -> Result<bool, Pause> {
        self.is_after_quote = false;
        Ok(sound(self.text.try_read_string(string, is_case_sensitive)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
    use html5gum::{Error, Span, State, Tokenizer};

    /// Returns the events of the tokenizer with their places, and the number of pauses.
    fn events<R: Reader>(reader: R) -> (Vec<String>, usize) {
        let (mut events, mut is_script, mut pauses) = (Vec::new(), false, 0);
        let emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, span: Span<usize>| {
            events.push(format!("{event:?} {} {}", span.start, span.end));
            match event {
                CallbackEvent::OpenStartTag { name } => is_script = name == b"script",
                CallbackEvent::CloseStartTag { .. } if is_script => return Some(State::ScriptData),
                CallbackEvent::Error(Error::CdataInHtmlContent) => return Some(State::CdataSection),
                _ => {}
            }
            None
        });
        let mut tokenizer = Tokenizer::new_with_emitter(reader, emitter);
        while let Some(step) = tokenizer.next() {
            match step {
                Ok(state) => tokenizer.set_state(state),
                Err(_) => pauses += 1,
            }
        }
        drop(tokenizer);
        (events, pauses)
    }

    /// All texts of four parts after each of the starts. The reader pauses at the first quote that it can; a third of the texts
    /// has such a quote.
    #[test]
    fn pauses_change_no_event() {
        let parts: [&[u8]; 20] = [
            b"\"",
            b"\"",
            b"a",
            b" ",
            b"=",
            b"=\"",
            b"'",
            b">",
            b"/",
            b"&",
            b"&#1",
            b"&amp",
            b"\r",
            b"\n",
            b"\0",
            b"\xC3\xA9",
            b"<",
            b"<!doctype a \"",
            b"<script>",
            b"\"b=\"c\"",
        ];
        let (mut paused_count, mut count) = (0, 0);
        for start in [&b"<a "[..], b"<a b=\"", b"</a b=\"", b"<!doctype a public \"", b"<![CDATA[", b""] {
            for i in 0..parts.len().pow(4) {
                let digits = (0..4).map(|digit| i / parts.len().pow(digit) % parts.len());
                let text: Vec<u8> = start.iter().chain(digits.flat_map(|part| parts[part])).copied().collect();
                let reader = PausedReader { quotes: QUOTES_PER_PAUSE - 1, ..PausedReader::new(&text) };
                let (paused, pauses) = events(reader);
                assert_eq!(paused, events((&text[..]).to_reader()).0, "{}", text.escape_ascii());
                (paused_count, count) = (paused_count + usize::from(pauses > 0), count + 1);
            }
        }
        assert!(paused_count > count / 3, "{paused_count} of {count}");
    }
}
