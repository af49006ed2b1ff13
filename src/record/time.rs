//! Parses the timestamps of crawl formats into milliseconds since 1970-01-01T00:00:00Z, in the Gregorian calendar and
//! without leap seconds.

/// Parses `yyyyMMddHHmmss`, optionally followed by three digits of milliseconds.
pub(crate) fn from_digits(text: &[u8]) -> Option<i64> {
    let ms = match text.len() {
        14 => 0,
        17 => number(&text[14..])?,
        _ => return None,
    };
    let [century, year, month, day] = pairs(text.first_chunk()?)?;
    // The day is read again, so that both parts have eight digits.
    let [_, hour, minute, second] = pairs(text[6..].first_chunk()?)?;
    from_civil([century * 100 + year, month, day, hour, minute, second], ms)
}

/// Parses the first digits of `yyyyMMddHHmmss`, at least those of the day; what is missing is 0.
pub(super) fn from_first_digits(text: &[u8]) -> Option<i64> {
    let mut digits = *b"00000000000000";
    digits.get_mut(..text.len()).filter(|_| text.len() >= 8)?.copy_from_slice(text);
    from_digits(&digits)
}

/// Parses a time of WARC 1.1 (section 5.4): [`from_iso`], or its first parts down to the year, the last with `Z` if it
/// is a time of day. What is missing is the earliest value.
pub(super) fn from_w3c(text: &[u8]) -> Option<i64> {
    const EARLIEST: &[u8; 20] = b"0000-01-01T00:00:00Z";
    let known = text.strip_suffix(b"Z").unwrap_or(text);
    let has_zone = known.len() < text.len();
    match (known.len(), has_zone) {
        (4 | 7 | 10, false) | (13 | 16, true) => {
            let mut whole = *EARLIEST;
            whole[..known.len()].copy_from_slice(known);
            from_iso(&whole)
        }
        _ => from_iso(text),
    }
}

/// Parses eight digits as four numbers of two digits.
fn pairs(digits: &[u8; 8]) -> Option<[i32; 4]> {
    const EACH: u64 = u64::MAX / 255;
    let word = u64::from_le_bytes(*digits);
    let upper = |word: u64| word & (EACH * 0xF0);
    // The upper half of a digit is 3, also after 6 is added.
    let is_digits = upper(word) == EACH * 0x30 && upper(word + EACH * 6) == EACH * 0x30;
    let numbers = word & (EACH * 15);
    let pairs = (numbers * 10 + (numbers >> 8)).to_le_bytes();
    is_digits.then(|| [0, 2, 4, 6].map(|at| i32::from(pairs[at])))
}

/// Parses `yyyy-MM-ddTHH:mm:ssZ`, with an optional fraction of a second.
pub(super) fn from_iso(text: &[u8]) -> Option<i64> {
    from_local(text.strip_suffix(b"Z")?)
}

/// Parses [`from_iso`], or with `+hh:mm` or `-hh:mm` instead of `Z`.
pub(crate) fn from_iso_with_zone(text: &[u8]) -> Option<i64> {
    let Some((local, [sign @ (b'+' | b'-'), h, hh, b':', m, mm])) = text.split_last_chunk::<6>() else {
        return from_iso(text);
    };
    Some(from_local(local)? - zone_ms(*sign, &[*h, *hh], &[*m, *mm])?)
}

/// Returns by how many milliseconds a zone is ahead of UTC (RFC 3339 section 5.6).
fn zone_ms(sign: u8, hours: &[u8], minutes: &[u8]) -> Option<i64> {
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    let ms = (hours < 24 && minutes < 60).then_some(i64::from(hours * 60 + minutes) * 60_000)?;
    match sign {
        b'+' => Some(ms),
        b'-' => Some(-ms),
        _ => None,
    }
}

/// Parses `yyyy-MM-ddTHH:mm:ss`, with an optional fraction of a second.
fn from_local(text: &[u8]) -> Option<i64> {
    let (head, fraction) = text.split_at_checked(19)?;
    if [head[4], head[7], head[10], head[13], head[16]] != *b"--T::" {
        return None;
    }
    let ms = match fraction.strip_prefix(b".") {
        Some(digits) if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) => {
            (0..3).fold(0, |ms, i| ms * 10 + digits.get(i).map_or(0, |digit| i32::from(digit - b'0')))
        }
        None if fraction.is_empty() => 0,
        _ => return None,
    };
    let two = |at: usize| number(&head[at..at + 2]);
    from_civil([number(&head[..4])?, two(5)?, two(8)?, two(11)?, two(14)?, two(17)?], ms)
}

/// Length of a time of [`from_log`] in bytes.
pub(super) const LOG_TIME_LEN: usize = 28;

/// Parses `[dd/MMM/yyyy:HH:mm:ss +hhmm]`, the format of access logs.
pub(super) fn from_log(text: &[u8]) -> Option<i64> {
    const MONTHS: &[u8; 36] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
    let text: &[u8; LOG_TIME_LEN - 2] = text.strip_prefix(b"[")?.strip_suffix(b"]")?.try_into().ok()?;
    if [text[2], text[6], text[11], text[14], text[17], text[20]] != *b"//::: " {
        return None;
    }
    let month = MONTHS.chunks(3).position(|name| *name == text[3..6])? as i32 + 1;
    let two = |at: usize| number(&text[at..at + 2]);
    let local = from_civil([number(&text[7..11])?, month, two(0)?, two(12)?, two(15)?, two(18)?], 0)?;
    Some(local - zone_ms(text[21], &text[22..24], &text[24..26])?)
}

/// Parses at most nine digits.
fn number(digits: &[u8]) -> Option<i32> {
    let all = digits.iter().all(u8::is_ascii_digit);
    all.then(|| digits.iter().fold(0, |sum, digit| sum * 10 + i32::from(digit - b'0')))
}

/// Converts year, month, day, hour, minute and second. A second of 60 is the first second of the next minute.
fn from_civil([year, month, day, hour, minute, second]: [i32; 6], ms: i32) -> Option<i64> {
    let fits = (1..=12).contains(&month)
        && (1..=days_in(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    let days = || i64::from(days_before(year, month) + day - 1);
    let seconds = (hour * 60 + minute) * 60 + second;
    fits.then(|| days() * 86_400_000 + i64::from(seconds * 1000 + ms))
}

const fn is_leap(year: i32) -> bool {
    // Of the years that 4 divides, 25 divides the centuries, and 16 those that are leap years.
    year % 4 == 0 && (year % 25 != 0 || year % 16 == 0)
}

fn days_in(year: i32, month: i32) -> i32 {
    match month {
        2 => 28 + i32::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days of a common year before each month; January has index 1.
const DAYS_BEFORE: [i32; 13] = [0, 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];

/// Days from 1970-01-01 to the first day of a valid month.
fn days_before(year: i32, month: i32) -> i32 {
    // Counted from the year -399, so that there are no negative numbers, which divisions round up.
    let years = year + 399;
    let leap_days = years / 4 - years / 100 + years / 400;
    // There are 865259 days between -0399-01-01 and 1970-01-01.
    let new_year = years * 365 + leap_days - 865_259;
    new_year + DAYS_BEFORE[month as usize] + i32::from(month > 2 && is_leap(year))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_are_contiguous() {
        let mut want = days_before(0, 1);
        assert_eq!(want, -719_528);
        for year in 0..=9999 {
            for month in 1..=12 {
                assert_eq!(days_before(year, month), want, "{year}-{month}");
                want += days_in(year, month);
            }
        }
        assert_eq!(days_before(1970, 1), 0);
        assert_eq!(days_before(2000, 3), 11_017);
    }

    #[test]
    fn times_of_every_format() {
        assert_eq!(from_digits(b"19700102000001"), Some(86_401_000));
        assert_eq!(from_digits(b"20110623171208574"), Some(1_308_849_128_574));
        assert_eq!(from_digits(b"20110231000000"), None);
        assert_eq!(from_iso(b"2011-06-23T17:12:08.802Z"), Some(1_308_849_128_802));
        assert_eq!(from_iso(b"2011-06-23T17:12:08Z"), Some(1_308_849_128_000));
        for (text, whole) in [
            ("2011", "2011-01-01T00:00:00Z"),
            ("2011-06", "2011-06-01T00:00:00Z"),
            ("2011-06-23", "2011-06-23T00:00:00Z"),
            ("2011-06-23T17Z", "2011-06-23T17:00:00Z"),
            ("2011-06-23T17:12Z", "2011-06-23T17:12:00Z"),
            ("2011-06-23T17:12:08.802Z", "2011-06-23T17:12:08.802Z"),
        ] {
            assert_eq!(
                (from_w3c(text.as_bytes()), from_iso(whole.as_bytes()).is_some()),
                (from_iso(whole.as_bytes()), true)
            );
        }
        assert_eq!([from_w3c(b"2011Z"), from_w3c(b"2011-06-23T17:12"), from_w3c(b"20-1"), from_w3c(b"")], [None; 4]);
        assert_eq!(from_first_digits(b"201106231712"), from_iso(b"2011-06-23T17:12:00Z"));
        assert_eq!(from_first_digits(b"20110623"), from_iso(b"2011-06-23T00:00:00Z"));
        assert_eq!([from_first_digits(b"2011062"), from_first_digits(b"201106231712000")], [None; 2]);
        assert_eq!(from_log(b"[02/Jan/1970:01:00:01 +0100]"), Some(86_401_000));
    }

    #[test]
    fn malformed_times_are_refused() {
        for text in ["", "2011", "20110623171x08", "20111323000000", "20110623240000", "2011062317120857"] {
            assert_eq!(from_digits(text.as_bytes()), None, "{text}");
        }
        for text in ["2011-06-23 17:12:08Z", "2011-06-23T17:12:08", "2011-06-23T17:12:08.Z", "2011-06-23T17:12:08+00Z"]
        {
            assert_eq!(from_iso(text.as_bytes()), None, "{text}");
        }
        assert_eq!(from_iso(b"2011-06-23T17:12:08.8Z"), Some(1_308_849_128_800));
        for zone in ["+2400", "-0060", "+9999", "*0000"] {
            assert_eq!(from_log(format!("[02/Jan/1970:01:00:01 {zone}]").as_bytes()), None, "{zone}");
        }
        assert_eq!(from_log(b"[02/Jan/1970:00:00:00 +2359]"), Some(60_000));
        for zone in ["+24:00", "-00:60"] {
            assert_eq!(from_iso_with_zone(format!("2011-06-23T17:12:08{zone}").as_bytes()), None, "{zone}");
        }
    }
}
