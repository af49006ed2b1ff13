//! Finds redirects that the contents of captures contradict: [`Resolution::mark_contradicted`].
//!
//! Rules about content make one URL of several captured ones, their *form*: `/page` of `/page?sid=1` and `/page?sid=2`. The form
//! itself may redirect, for example to a start page, although the captured URLs have contents of their own. With this redirect,
//! all of them would get the key of the start page. It is refused if none of their contents is one of the URL where the redirects
//! end. Redirects to another spelling of a URL are not refused, but followed.
//!
//! ```text
//! contents of forms --way_from--> the same contents, sought where the redirects end --+
//! contents of URLs -------------------------------------------------------------------+--by URL and content--> forms that agree
//! ```

use super::graph::NOWHERE;
use super::observer::flag;
use super::redirect_rows::ContentRow;
use super::resolution::Resolution;
use super::sorter::{ReadRecords, ReaderOf, SortRecords, SorterFactory};

/// Maximum number of redirects that are followed. Longer ways are not compared, so that the time is limited.
const MAX_REDIRECTS: usize = 64;

impl<S: SorterFactory> Resolution<'_, S> {
    /// Marks redirects that contradict the contents of captures. `forms` are the contents of captured URLs, by the URL that rules
    /// make of them; `contents` are those of URLs that redirect, or to which others redirect.
    pub(super) fn mark_contradicted(
        &mut self,
        mut forms: ReaderOf<S>,
        mut contents: S::Sorter,
    ) -> Result<(), S::Error> {
        while let Some(record) = forms.next_record()? {
            let form = ContentRow::read(record);
            contents.push(record)?;
            self.set_flag(form.number, flag::FORM);
            if let Some((_, end)) = self.way_from(form.number) {
                self.record.clear();
                ContentRow { number: end, sought_for: Some(form.number), ..form }.write(&mut self.record);
                contents.push(&self.record)?;
            }
        }
        self.mark_agreeing(contents.sorted()?)?;
        for number in 0..self.flags.len() as u32 {
            let is_contradicted = self.flag(number, flag::FORM) && !self.flag(number, flag::AGREES);
            if let Some((redirect, _)) = self.way_from(number).filter(|_| is_contradicted) {
                self.set_flag(redirect, flag::CONTRADICTED);
            }
        }
        Ok(())
    }

    /// Marks the forms one of whose contents is found where it is sought.
    fn mark_agreeing(&mut self, mut contents: ReaderOf<S>) -> Result<(), S::Error> {
        let mut known = None;
        while let Some(record) = contents.next_record()? {
            let ContentRow { number, content, sought_for } = ContentRow::read(record);
            match sought_for {
                None => known = Some((number, content)),
                Some(form) if known == Some((number, content)) => self.set_flag(form, flag::AGREES),
                Some(_) => (),
            }
        }
        Ok(())
    }

    /// Follows the redirects of a URL, except for those to sinks, which are refused. Returns the URL whose redirect is the first
    /// that does not lead to another spelling, and the URL where the redirects end. Returns `None` if they all lead to other
    /// spellings, form a loop, or are more than [`MAX_REDIRECTS`].
    fn way_from(&self, number: u32) -> Option<(u32, u32)> {
        let (mut first, mut at) = (None, number);
        for _ in 0..=MAX_REDIRECTS {
            let (next, is_spelling) = (self.next_of(at), self.flag(at, flag::SPELLING));
            if next == NOWHERE || !is_spelling && self.flag(next, flag::SINK) {
                return Some((first?, at));
            }
            first = first.or((!is_spelling).then_some(at));
            at = next;
        }
        None
    }
}
