//! A memory of the forms of hosts: crawl data repeats hosts, and the form of an internationalised one is dear.

use xxhash_rust::xxh3::xxh3_64;

use super::HostForm;
use crate::iri::{Changes, Flags};

/// [`HostForm::new`] with a memory. One a worker; what it answers depends on the host alone.
#[derive(Debug, Default)]
pub struct HostCache {
    /// By a host's hash, the last host seen with it; none before the first.
    slots: Vec<Slot>,
    /// The hosts and forms that slots speak of, end to end.
    texts: Vec<u8>,
}

/// A host of a scheme whose hosts are DNS names, and its form, which follows it in `texts`. A slot without a host has
/// an empty one.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    at: u32,
    host_len: u16,
    form_len: u16,
    flags: Flags,
    changes: Changes,
}

impl HostCache {
    /// How many hosts are remembered at most. A power of two.
    const SLOTS: usize = 8192;
    /// Bytes of all of them; when there are more, all are forgotten.
    const TEXTS_LEN: usize = 1 << 20;
    /// Longer hosts are no DNS names, and not remembered.
    const LONGEST: usize = 255;

    /// As [`HostForm::new`].
    pub fn form(&mut self, host: &[u8], is_network: bool) -> HostForm<'_> {
        if !is_network || host.is_empty() || host.len() > Self::LONGEST {
            return HostForm::new(host, is_network);
        }
        if self.slots.is_empty() {
            self.slots.resize(Self::SLOTS, Slot::default());
        }
        let number = xxh3_64(host) as usize % Self::SLOTS;
        let slot = self.slots[number];
        let form_at = slot.at as usize + slot.host_len as usize;
        if self.texts[slot.at as usize..form_at] == *host {
            let text = &self.texts[form_at..form_at + slot.form_len as usize];
            return HostForm { text: text.into(), flags: slot.flags, changes: slot.changes };
        }
        let form = HostForm::new(host, true);
        let Ok(form_len) = u16::try_from(form.text.len()) else { return form };
        if self.texts.len() + host.len() + form.text.len() > Self::TEXTS_LEN {
            self.texts.clear();
            self.slots.fill(Slot::default());
        }
        let at = self.texts.len();
        self.texts.extend_from_slice(host);
        self.texts.extend_from_slice(&form.text);
        let HostForm { flags, changes, .. } = form;
        self.slots[number] = Slot { at: at as u32, host_len: host.len() as u16, form_len, flags, changes };
        form
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More hosts than there are slots, and more text than is remembered, each host again sooner or later.
    #[test]
    fn what_is_remembered_is_what_would_be_made() {
        let mut cache = HostCache::default();
        let mut forgotten = 0;
        for i in 0..60_000u32 {
            let number = i * 7919 % 21_001;
            let host = match number % 5 {
                0 => format!("пример-{number}.example"),
                1 => format!("B\u{FC}cher{number}.XN--P1AI"),
                2 => format!("xn--a{number}.example"),
                3 => format!("a--{number}.{}.example", "x".repeat(number as usize % 300)),
                _ => format!("%C3%BC|{number}.\u{5D0}"),
            };
            let before = cache.texts.len();
            for is_network in [true, false] {
                let want = HostForm::new(host.as_bytes(), is_network);
                assert_eq!(cache.form(host.as_bytes(), is_network), want, "{host}");
            }
            forgotten += u32::from(cache.texts.len() < before);
        }
        assert!(forgotten > 0 && cache.texts.capacity() <= 2 * HostCache::TEXTS_LEN);
    }
}
