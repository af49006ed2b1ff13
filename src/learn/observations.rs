//! What records state about redirects and responses, in memory: [`Observations`].

use super::learned::Learned;
use super::observer::RedirectObserver;
use super::redirect::{LearnLimits, RecordPlace, RedirectCode, TargetSource};
use super::sorter::MemorySorters;
use super::spelling::Spelling;
use crate::key::KeyAlgorithm;

/// Redirects and responses of URLs. All URIs are canonical.
///
/// ```
/// use irikey::key::KeyAlgorithm;
/// use irikey::learn::{LearnLimits, Observations, RecordPlace};
/// let mut observations = Observations::default();
/// let place = RecordPlace { source: 0, record: 1 };
/// observations.add_redirect(b"http://a.example/", b"https://a.example/", Some(301), place);
/// let learned = observations.learn(&LearnLimits::default(), KeyAlgorithm::Xxh3);
/// assert_eq!(learned.members[0].representative, b"https://a.example/");
/// ```
#[derive(Debug, Default)]
pub struct Observations {
    events: Vec<UrlEvent>,
    /// URLs that rules about content make, and contents.
    forms: Vec<(Vec<u8>, u64)>,
    other_status: u64,
}

/// What one record states about a URL. Events compare by host first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct UrlEvent {
    authority: Vec<u8>,
    uri: Vec<u8>,
    kind: EventKind,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum EventKind {
    Served,
    Content(u64),
    Status(RedirectCode),
    Redirect { to: Vec<u8>, code: RedirectCode, place: RecordPlace },
    Target(TargetSource),
}

impl Observations {
    /// Adds a record that states that `from` redirected to `to`.
    pub fn add_redirect(&mut self, from: &[u8], to: &[u8], status: Option<i32>, place: RecordPlace) {
        let Some(code) = RedirectCode::of_record(status) else { return self.other_status += 1 };
        self.add(from, EventKind::Redirect { to: to.to_vec(), code, place });
        self.add(to, EventKind::Target(TargetSource::new(from, to)));
    }

    /// Adds a URL that responded with a success status.
    pub fn add_served(&mut self, uri: &[u8]) {
        self.add(uri, EventKind::Served);
    }

    /// Adds a content of a URL: a hash of its digest.
    pub fn add_content(&mut self, uri: &[u8], content: u64) {
        self.add(uri, EventKind::Content(content));
    }

    /// Adds a content of another URL, of which a rule about content makes `form`. If `form` redirects, and none of these contents
    /// is one of the URL where the redirects end, its redirect is refused: the other URLs do not lead there.
    pub fn add_form(&mut self, form: &[u8], content: u64) {
        self.forms.push((form.to_vec(), content));
    }

    /// Adds the status of a redirect of a URL whose record states no target.
    pub fn add_status(&mut self, uri: &[u8], code: RedirectCode) {
        self.add(uri, EventKind::Status(code));
    }

    fn add(&mut self, uri: &[u8], kind: EventKind) {
        let authority = Spelling::of(uri).map_or(Vec::new(), |spelling| spelling.authority.to_vec());
        self.events.push(UrlEvent { authority, uri: uri.to_vec(), kind });
    }

    /// Learns equivalences from all observations, with keys of `algorithm`.
    pub fn learn(mut self, limits: &LearnLimits, algorithm: KeyAlgorithm) -> Learned {
        self.events.sort_unstable();
        let mut observer = RedirectObserver::new(&MemorySorters, limits, algorithm);
        observer.add_unused(self.other_status, 0);
        let learned = (|| {
            for UrlEvent { uri, kind, .. } in &self.events {
                match kind {
                    EventKind::Served => observer.served(uri),
                    EventKind::Content(content) => observer.content(uri, *content),
                    EventKind::Status(code) => observer.status(uri, *code),
                    EventKind::Redirect { to, code, place } => observer.redirect(uri, to, *code, *place),
                    EventKind::Target(source) => observer.target(uri, *source),
                }?;
            }
            self.forms.iter().try_for_each(|(form, content)| observer.form(algorithm.key(form), *content))?;
            Learned::read(observer.finish(&MemorySorters)?)
        })();
        match learned {
            Ok(learned) => learned,
            Err(never) => match never {},
        }
    }
}
