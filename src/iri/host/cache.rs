//! A cache of canonical hosts: crawl data repeats hosts, and IDNA processing is expensive.

use xxhash_rust::xxh3::xxh3_64;

use super::form::{HostForm, LabelBuffers, MAX_HOST_GROWTH, push_plain_form};
use crate::iri::flags::{Changes, Flags};

/// A direct-mapped cache of [`HostForm`]s. Each worker has its own; results depend on the host alone.
#[derive(Debug, Default)]
pub(crate) struct HostCache {
    /// The last host for each hash value; empty until the first host is stored.
    entries: Vec<CachedHost>,
    /// Texts of the entries' hosts and forms, without separators.
    texts: Vec<u8>,
    buffers: LabelBuffers,
}

/// A host of a scheme whose hosts are DNS names, with its form. The host's text starts at `at` in `texts`, and the
/// form's text follows it. An unused entry has an empty host.
#[derive(Clone, Copy, Debug, Default)]
struct CachedHost {
    at: u32,
    host_len: u16,
    form_len: u16,
    flags: Flags,
    changes: Changes,
}

impl HostCache {
    /// Number of entries, a power of two.
    const ENTRY_COUNT: usize = 8192;
    /// Maximum length of `texts`. The cache is cleared when another host might not fit.
    const TEXTS_LEN: usize = 1 << 20;
    /// Longer hosts are not valid DNS names and are not cached.
    const MAX_HOST_LEN: usize = 255;
    /// Maximum length of a host and its form in `texts`.
    const MAX_FORM_LEN: usize = (1 + MAX_HOST_GROWTH) * Self::MAX_HOST_LEN;

    /// Returns the form of `host` on the rung `scheme`, for a scheme whose hosts are DNS names, if `is_network`; otherwise its
    /// form on the rung `syntax`. It comes from the cache if possible.
    pub(crate) fn form(&mut self, host: &[u8], is_network: bool) -> HostForm<'_> {
        if !is_network || host.is_empty() || host.len() > Self::MAX_HOST_LEN {
            return HostForm::by_steps(host, is_network);
        }
        if self.entries.is_empty() {
            self.entries.resize(Self::ENTRY_COUNT, CachedHost::default());
        }
        let index = xxh3_64(host) as usize % Self::ENTRY_COUNT;
        let entry = self.entries[index];
        let form_at = entry.at as usize + entry.host_len as usize;
        if self.texts[entry.at as usize..form_at] == *host {
            let text = &self.texts[form_at..form_at + entry.form_len as usize];
            return HostForm { text: text.into(), flags: entry.flags, changes: entry.changes };
        }
        if self.texts.len() + Self::MAX_FORM_LEN > Self::TEXTS_LEN {
            self.texts.clear();
            self.entries.fill(CachedHost::default());
        }
        let at = self.texts.len();
        self.texts.extend_from_slice(host);
        let form_at = self.texts.len();
        let (flags, changes) = match push_plain_form(host, &mut self.buffers, &mut self.texts) {
            Some(changes) => (Flags::NONE, changes),
            None => {
                let form = HostForm::by_steps(host, true);
                self.texts.truncate(form_at);
                self.texts.extend_from_slice(&form.text);
                (form.flags, form.changes)
            }
        };
        let form_len = (self.texts.len() - form_at) as u16;
        self.entries[index] = CachedHost { at: at as u32, host_len: host.len() as u16, form_len, flags, changes };
        HostForm { text: self.texts[form_at..].into(), flags, changes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses more hosts than entries and more text than the limit, and repeats every host.
    #[test]
    fn cached_forms_equal_computed_forms() {
        let top_labels = ["example", "xn--p1ai", "xn--p1ai.", "XN--P1AI", "xn--p1a"];
        let mut cache = HostCache::default();
        let mut clear_count = 0;
        for i in 0..60_000u32 {
            let number = i * 7919 % 21_001;
            let host = match number % 5 {
                0 => format!("пример-{number}.example"),
                1 => format!("B\u{FC}cher{number}.XN--P1AI"),
                2 => format!("xn--a{number}.{}", top_labels[i as usize % 5]),
                3 => format!("a--{number}.{}.example", "x".repeat(number as usize % 300)),
                _ => format!("%C3%BC|{number}.\u{5D0}"),
            };
            let len_before = cache.texts.len();
            for is_network in [true, false] {
                let expected = HostForm::by_steps(host.as_bytes(), is_network);
                assert_eq!(cache.form(host.as_bytes(), is_network), expected, "{host}");
            }
            clear_count += u32::from(cache.texts.len() < len_before);
        }
        assert!(clear_count > 0 && cache.texts.capacity() <= 2 * HostCache::TEXTS_LEN);
    }
}
