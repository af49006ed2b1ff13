//! Writes URLs to standard output, fast enough for measurements with a billion lines.
//!
//! `rustc -O benches/generator/urls.rs -o /tmp/urls`, then `/tmp/urls LINES DISTINCT | irikey count --format lines -`. The
//! lines have 54 bytes on average; DISTINCT of them differ, in an order that looks random.

use std::io::Write;

/// Bytes that are written at a time.
const BUFFER_LEN: usize = 1 << 18;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>().expect("usage: urls LINES DISTINCT"));
    let (Some(lines), Some(distinct)) = (arguments.next(), arguments.next()) else {
        panic!("usage: urls LINES DISTINCT")
    };
    let (mut buffer, mut out) = (Vec::with_capacity(BUFFER_LEN + 256), std::io::stdout().lock());
    for line in 0..lines {
        // The order of the lines is a random one, and different in each round of distinct lines.
        write_url(mixed(line) % distinct, &mut buffer);
        if buffer.len() >= BUFFER_LEN {
            out.write_all(&buffer).expect("standard output takes the lines");
            buffer.clear();
        }
    }
    out.write_all(&buffer).expect("standard output takes the lines");
}

/// The 64 bits of splitmix64, a bijection.
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

/// Appends the URL with this number.
fn write_url(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(if number % 8 == 0 { b"http://www." } else { b"https://" });
    write_letters(mixed(number >> 6), 9, out);
    out.extend_from_slice(b".example.org/archive/");
    write_letters(number, 7, out);
    out.extend_from_slice(if number % 3 == 0 { b"/index.html\n" } else { b"?page=1\n" });
}

/// Appends the lowest digits of a number to the base 32, as letters and digits.
fn write_letters(mut number: u64, count: usize, out: &mut Vec<u8>) {
    for _ in 0..count {
        out.push(b"abcdefghijklmnopqrstuvwxyz234567"[number as usize % 32]);
        number /= 32;
    }
}
