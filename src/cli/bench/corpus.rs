//! Generates lines like those of a crawl, the same on every machine. Mean length, repetitions and the shares of deviations
//! are those of `scripts/corpus --mix crawl`, which generates the corpora of benches/results; the word lists are smaller.

use std::ops::Range;

/// How many of 1000 lines deviate in each of these ways. The ways are chosen independently.
const UPPER: u64 = 20;
const PORT: u64 = 10;
const DOTS: u64 = 10;
const HEX: u64 = 30;
const NEEDLESS: u64 = 20;
const UTF8: u64 = 60;
const IDN: u64 = 10;
const STRAY: u64 = 2;
const EXCLUDED: u64 = 5;
/// How many of 1000 lines have these components, or repeat an earlier line.
const QUERY: u64 = 300;
const FRAGMENT: u64 = 30;
const REPEATED: u64 = 400;

const HOSTS: u64 = 50_000;

const WORDS: &str = "\
    about account action album android archive article author \
    beauty bridge business camera category city collection comment \
    contact culture design download education event family festival \
    film forum gallery garden guide health history holiday \
    house image index journal kitchen library magazine market \
    music nature network news office online park people \
    photo product project recipe report review school science \
    search service story travel video weather winter world";
const SUFFIXES: [&str; 12] = ["com", "com", "com", "com", "org", "net", "de", "ru", "co.uk", "fr", "jp", "com.br"];
const EXTENSIONS: [&str; 10] = ["", "", "", "/", "/", ".html", ".html", ".htm", ".php", ".jpg"];
const NAMES: [&str; 8] = ["id", "page", "p", "q", "cat", "sort", "lang", "ref"];
const RAW: [&str; 8] = ["новости", "погода", "музыка", "新闻", "日本語", "أخبار", "größe", "café"];
const LABELS: [&str; 6] =
    ["bücher", "новости", "日本語", "xn--bcher-kva", "xn--80adbkckdfac8cd1ahpld0f", "xn--wgv71a119e"];

/// Generates `count` lines with their line ends.
pub(super) fn lines(count: u32) -> Vec<u8> {
    let mut random = RandomSequence(0x9E37_79B9_7F4A_7C15);
    let mut text = String::with_capacity(count as usize * 80);
    let mut starts: Vec<Range<usize>> = Vec::with_capacity(count as usize);
    for _ in 0..count {
        if !starts.is_empty() && random.is_chosen(REPEATED) {
            let line = starts[random.below(starts.len() as u64) as usize].clone();
            text.extend_from_within(line);
        } else {
            let start = text.len();
            push_line(&mut text, &mut random);
            starts.push(start..text.len());
        }
    }
    text.into_bytes()
}

fn push_line(text: &mut String, random: &mut RandomSequence) {
    let is_https = random.is_chosen(720);
    let scheme = match (is_https, random.is_chosen(UPPER / 5)) {
        (true, false) => "https",
        (false, false) => "http",
        (true, true) => "HTTPS",
        (false, true) => "Http",
    };
    text.push_str(scheme);
    text.push_str("://");
    push_host(text, random);
    if random.is_chosen(PORT) {
        text.push_str(if is_https { ":443" } else { ":80" });
    }
    push_path(text, random);
    if random.is_chosen(QUERY) {
        push_query(text, random);
    }
    if random.is_chosen(FRAGMENT) {
        text.push('#');
        text.push_str(random.word());
    }
    text.push('\n');
}

/// Few hosts have many lines, as in a crawl.
fn push_host(text: &mut String, random: &mut RandomSequence) {
    let start = text.len();
    let rank = random.below(HOSTS) * random.below(HOSTS) / HOSTS;
    let mut of_host = RandomSequence(rank.wrapping_mul(0xD6E8_FEB8_6659_FD93) | 1);
    if of_host.is_chosen(550) {
        text.push_str("www.");
    }
    if random.is_chosen(IDN) {
        text.push_str(random.one(&LABELS));
    } else {
        text.push_str(of_host.word());
        text.push_str(of_host.word());
        text.push_str(&rank.to_string());
    }
    text.push('.');
    text.push_str(of_host.one(&SUFFIXES));
    if random.is_chosen(UPPER * 4 / 5) {
        text[start..].to_owned().char_indices().step_by(3).for_each(|(at, c)| {
            let (at, upper) = (start + at, c.to_ascii_uppercase());
            text.replace_range(at..at + c.len_utf8(), upper.encode_utf8(&mut [0; 4]));
        });
    }
}

fn push_path(text: &mut String, random: &mut RandomSequence) {
    for _ in 0..random.below(4) {
        text.push('/');
        text.push_str(random.word());
    }
    let deviations =
        [(DOTS, "/./x/.."), (HEX, "/%c3%a9-"), (NEEDLESS, "/%7E%61"), (STRAY, "/100%-"), (EXCLUDED, "/a b|c")];
    for (share, segment) in deviations {
        if random.is_chosen(share) {
            text.push_str(segment);
        }
    }
    if random.is_chosen(UTF8) {
        text.push('/');
        text.push_str(random.one(&RAW));
    }
    text.push('/');
    for i in 0..random.below(5) {
        text.push_str(if i > 0 { "-" } else { "" });
        text.push_str(random.word());
    }
    text.push_str(random.one(&EXTENSIONS));
}

fn push_query(text: &mut String, random: &mut RandomSequence) {
    for i in 0..1 + random.below(3) {
        text.push(if i == 0 { '?' } else { '&' });
        text.push_str(random.one(&NAMES));
        text.push('=');
        text.push_str(&random.below(1 << 20).to_string());
    }
}

/// SplitMix64, a pseudo-random sequence.
struct RandomSequence(u64);

impl RandomSequence {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }

    /// True in `share` of 1000 cases.
    fn is_chosen(&mut self, share: u64) -> bool {
        self.below(1000) < share
    }

    fn word(&mut self) -> &'static str {
        let index = self.below(64) as usize;
        WORDS.split(' ').nth(index).unwrap_or_default()
    }

    fn one(&mut self, of: &[&'static str]) -> &'static str {
        of[self.below(of.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::lines;
    use crate::canon::{Canonicalizer, Policy, Rows};
    use crate::kernel::Bitmaps;
    use crate::record::{TextDecoder, lines::Lines};

    #[test]
    fn lines_are_like_those_of_a_crawl() {
        let text = lines(20_000);
        assert_eq!(text, lines(20_000));
        let (mut decoder, mut bitmaps, mut rows) = (Lines::default(), Bitmaps::default(), Rows::new(0));
        let records = decoder.decode(&text, 0, &mut bitmaps);
        Canonicalizer::new(&Policy::default()).append(&records, &bitmaps, &mut rows);
        assert_eq!((rows.len(), rows.tally.faulty), (20_000, 0));
        let mean = text.len() / rows.len();
        assert!((65..=80).contains(&mean), "{mean} bytes");
        let changed = rows.tally.changed * 100 / rows.tally.rows;
        assert!((12..=25).contains(&changed), "{changed} % deviate");
    }
}
