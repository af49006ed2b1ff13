//! Records whose lengths are wrong, and records in members of gzip.

use super::*;

/// A parser of a file whose gzip members end after these bytes of the archive. In the file, they have ten times their length.
fn of_members(ends: &[u64]) -> ArchiveParser {
    let mut parser = ArchiveParser::default();
    parser.set_file("a.warc.gz", true);
    ends.iter().for_each(|end| parser.push_member_end(*end, 10 * end));
    parser
}

/// A record without the line ends after its content, which seems to be longer by `excess`.
fn bare_record(name: &str, content: &str, excess: usize) -> String {
    let len = content.len() + excess;
    format!(
        "WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: http://{name}/\r\nContent-Length: {len}\r\n\r\n{content}"
    )
}

/// URL, fault and flags of a record.
type FlaggedUrl = (String, Option<FaultKind>, u32);

/// The records of [`of_members`], the end, and the damage.
fn parse_members(text: &str, ends: &[u64], step: usize) -> (Vec<FlaggedUrl>, ArchiveEnd, ArchiveDamage) {
    let (rows, end, damage) = parse(of_members(ends), text.as_bytes(), (step, usize::MAX));
    (rows.concat().into_iter().map(|row| (row.0, row.1, row.2)).collect(), end, damage)
}

/// Rows of [`parse_members`] without faults.
fn sound<const N: usize>(rows: [(&str, Flags); N]) -> Vec<FlaggedUrl> {
    rows.map(|(name, flags)| (format!("http://{name}/"), None, flags.0)).to_vec()
}

#[test]
fn a_wrong_length_costs_no_record() {
    for excess in [1, 4, 5, 8, 9, 12, 110, 300, 10_000, usize::MAX / 3] {
        let text = with_wrong_length(excess).concat();
        for step in [0, 1, 3, 64, 1000, 1 << 20] {
            let (rows, ended, damage) = parse(ArchiveParser::default(), text.as_bytes(), (step, 200));
            let rows = rows.concat();
            assert_eq!((rows.len(), ended), (10, ArchiveEnd::Whole), "{excess} {step}");
            for (i, row) in rows.iter().enumerate() {
                // An excess of up to the line ends is the same as fewer line ends.
                let is_cut = i == 3 && excess > 4;
                let want = (format!("http://a.org/{i}"), if is_cut { Flags::CUT.0 } else { 0 });
                assert_eq!((row.0.clone(), row.2), want, "{excess} {step}");
            }
            assert_eq!((damage.stray_len, damage.short_count), (0, u64::from(excess > 8)), "{excess}");
        }
    }
}

#[test]
fn a_record_ends_with_its_gzip_member() {
    for (excess, ends_of) in [(0, 1), (1000, 1), (usize::MAX / 3, 1), (1000, 2), (5, 1), (8, 1)] {
        let records = with_wrong_length(excess);
        let text = records.concat();
        for step in [1, 3, 64, 1000, 1 << 20] {
            let mut parser = ArchiveParser::default();
            let mut at = 0;
            for (i, record) in records.iter().enumerate() {
                at += record.len() as u64;
                if i % ends_of == 0 {
                    parser.push_member_end(at, at / 2);
                }
            }
            let (rows, ended, damage) = parse(parser, text.as_bytes(), (step, 200));
            assert_eq!((rows.concat().len(), ended), (10, ArchiveEnd::Whole), "{excess} {step}");
            assert_eq!(damage.short_count, u64::from(excess > 8), "{excess} {step}");
        }
    }
}

#[test]
fn members_that_are_blocks_end_no_record() {
    let text = with_wrong_length(0).concat();
    let whole = read(text.as_bytes(), 0);
    for block_len in [7, 100, 333] {
        for step in [1, 1000] {
            let mut parser = ArchiveParser::default();
            (1..)
                .map(|i| i * block_len)
                .take_while(|at| *at < text.len() as u64)
                .for_each(|at| parser.push_member_end(at, at));
            let (rows, ended, damage) = parse(parser, text.as_bytes(), (step, usize::MAX));
            assert_eq!((rows.concat(), ended), whole.clone(), "{block_len}");
            assert_eq!(damage, ArchiveDamage::default());
        }
    }
}

/// The position of a record is that of its gzip member. Once a member begins within a record, members are not records.
#[test]
fn positions_are_those_of_members_that_are_records() {
    let url = |i: u32| format!("WARC-Type: resource\r\nWARC-Target-URI: http://{i}/");
    let text: String = (0..5).map(|i| record(&url(i), "content")).collect();
    let len = text.len() as u64 / 5;
    let positions = |ends: &[u64], step: usize| {
        positions(&parse_batches(&mut of_members(ends), text.as_bytes(), (step, usize::MAX)).0)
    };
    let position = |i: u64| (Some((10 * i * len) as i64), Some(10 * len as i64));
    for step in [1, 64, 10_000] {
        let ends: Vec<u64> = (1..=5).map(|i| i * len).collect();
        assert_eq!(positions(&ends, step), (0..5).map(position).collect::<Vec<_>>(), "{step}");
        // The third record has two members.
        let ends = [len, 2 * len, 2 * len + 50, 3 * len, 4 * len, 5 * len];
        let none = (None, None);
        assert_eq!(positions(&ends, step), [position(0), position(1), none, none, none], "{step}");
        // The second and the third record have one member.
        let ends = [len, 3 * len, 4 * len, 5 * len];
        assert_eq!(positions(&ends, step), [position(0), none, none, position(3), position(4)], "{step}");
    }
}

/// Members within a record are not passed one by one for each record whose length is that of all that follow.
#[test]
fn records_with_wrong_lengths_in_blocks_are_those_without_blocks() {
    let header = "WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: http://h/\r\nContent-Length: 30000000\r\n\r\n";
    let wrong = format!("{header}x\nWARC/1.0\n\n\r\n\r\n").repeat(200);
    for text in [wrong, with_wrong_length(0).concat(), with_wrong_length(1000).concat(), sample()] {
        let whole = parse(ArchiveParser::default(), text.as_bytes(), (64, usize::MAX));
        for block_len in [7, 13, 53, 333] {
            let ends = || (1..).map(|i| i * block_len).take_while(|at| *at <= text.len() as u64);
            let parser = || {
                let mut parser = ArchiveParser::default();
                ends().for_each(|at| parser.push_member_end(at, at / 2));
                parser
            };
            for step in [1, 64, 1000] {
                assert_eq!(parse(parser(), text.as_bytes(), (step, usize::MAX)), whole, "{block_len} {step}");
            }
            let mut parser = parser();
            parse_whole(&mut parser, &text, &mut unlimited());
            let (count, pass_count) = (ends().count() as u64, parser.members.pass_count);
            assert!(pass_count <= 2 * count, "{pass_count} of {count}");
        }
    }
}

/// The content of a record is searched for headers of the usual form; a gzip member may begin with any header.
#[test]
fn a_record_ends_with_its_member_before_any_header() {
    let arc = "http://a/ 192.0.2.1 20140216050221 a/b 900\nbody";
    let dns = "dns:b 192.0.2.1 20140216050221 text/dns 5\n12345\n";
    let warc = bare_record("a", "body", 900);
    let lower = record("WARC-Type: resource\r\nWARC-Target-URI: dns:b", "1").replace("WARC/1.0", "warc/1.0");
    for (first, next) in [(arc, dns), (&warc, &lower)] {
        let (text, end) = ([first, next].concat(), first.len() as u64);
        let ends = [end, text.len() as u64];
        for step in [1, 64, 1000] {
            let mut parser = of_members(&ends);
            let (batches, ended) = parse_batches(&mut parser, text.as_bytes(), (step, usize::MAX));
            let found: Vec<_> = rows(&batches[0]).into_iter().map(|row| (row.0, row.2)).collect();
            assert_eq!(found, [("http://a/".to_string(), Flags::CUT.0), ("dns:b".to_string(), 0)], "{step}");
            assert_eq!((ended, parser.damage().short_count), (ArchiveEnd::Whole, 1), "{step}");
            let [first, next] = [(0, ends[0]), (ends[0], ends[1])]
                .map(|(from, to)| (Some(10 * from as i64), Some(10 * (to - from) as i64)));
            assert_eq!(positions(&batches), [first, next], "{step}");
        }
    }
}

/// The header of a record, or a line that is none, ends with its member too.
#[test]
fn a_header_ends_with_its_member() {
    let first = bare_record("a", "body\r\n\r\n", 0);
    let next = bare_record("b", "1", 0).replace("WARC/1.0", "warc/1.0");
    let header = "WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: http://x/\r\n";
    let [a, b] = [0, 1].map(|i| sound([("a", Flags::NONE), ("b", Flags::NONE)])[i].clone());
    let x = |fault, flags: Flags| ("http://x/".to_string(), fault, flags.0);
    let flagged = (b.0.clone(), None, Flags::STRAY_BYTES.0);
    for (between, rows, stray_len, short_count) in [
        ("garbage".to_string(), vec![a.clone(), flagged], 7, 0),
        (format!("{header}Content-Le"), vec![a.clone(), x(Some(FaultKind::NotOfFormat), Flags::NONE), b.clone()], 0, 0),
        (format!("{header}Content-Length: 9"), vec![a.clone(), x(None, Flags::CUT), b.clone()], 0, 1),
    ] {
        let text = [&first[..], &between, &next].concat();
        let ends = [(text.len() - next.len()) as u64, text.len() as u64];
        for step in [1, 64, 1000] {
            let (found, end, damage) = parse_members(&text, &ends, step);
            assert_eq!((found, end), (rows.clone(), ArchiveEnd::Whole), "{step} {between}");
            assert_eq!((damage.stray_len, damage.short_count), (stray_len, short_count), "{step} {between}");
        }
    }
}

/// A header within a record moves the parser back, and the end of a member is passed again.
#[test]
fn members_end_the_records_after_a_header_within_a_record() {
    let (a, b) = (bare_record("a", "1\n", 900), bare_record("b", "2\n", 900));
    let next = bare_record("c", "3", 0).replace("WARC/1.0", "warc/1.0");
    let text = [&a[..], &b, &next].concat();
    let ends = [(a.len() + b.len()) as u64, text.len() as u64];
    for step in [1, 64, 1000] {
        let (rows, end, damage) = parse_members(&text, &ends, step);
        assert_eq!(rows, sound([("a", Flags::CUT), ("b", Flags::CUT), ("c", Flags::NONE)]), "{step}");
        assert_eq!((end, damage.short_count), (ArchiveEnd::Whole, 2), "{step}");
    }
}

/// The last member has no whole line, so that it does not end the record before it.
#[test]
fn an_archive_that_ends_within_the_first_line_of_a_member() {
    let (a, b) = (bare_record("a", "1\n", 900), bare_record("b", "2\r\n\r\n", 0));
    let text = [&a[..], &b, "WARC"].concat();
    for step in [1, 64, 1000] {
        let (rows, end, damage) = parse_members(&text, &[(a.len() + b.len()) as u64], step);
        assert_eq!(rows, sound([("a", Flags::CUT), ("b", Flags::NONE)]), "{step}");
        assert_eq!((end, damage.short_count), (ArchiveEnd::Truncated(4), 1), "{step}");
    }
    // The end of a member is that of a line.
    let arc = "http://a/ 192.0.2.1 20140216050221 a/b 5\n12345";
    for step in [1, 64, 1000] {
        let found = parse_members(&format!("{arc}http"), &[arc.len() as u64], step);
        assert_eq!(found, (sound([("a", Flags::NONE)]), ArchiveEnd::Truncated(4), ArchiveDamage::default()), "{step}");
    }
}

/// In a file of blocks, a record with a member of its own ends with it again, if each record before it since then has one.
#[test]
fn records_have_members_of_their_own_after_blocks() {
    let inner = "y\nWARC/1.0\r\nA: b\r\n\r\nz\n";
    let records = [
        bare_record("q", &format!("{}\n", "q".repeat(50)), 0),
        bare_record("p", "p\n", 0),
        bare_record("y", inner, 900),
        bare_record("z", "z", 0),
    ];
    let text = records.concat();
    // A block ends within the first record.
    let mut ends = vec![records[0].len() as u64 - 20];
    let mut at = 0;
    for record in &records {
        at += record.len() as u64;
        ends.push(at);
    }
    let flags = [("q", Flags::NONE), ("p", Flags::NONE), ("y", Flags::CUT), ("z", Flags::NONE)];
    for step in [1, 64, 1000] {
        let (rows, end, damage) = parse_members(&text, &ends, step);
        assert_eq!((rows, end, damage.short_count), (sound(flags), ArchiveEnd::Whole, 1), "{step}");
    }
}

/// A block that ends within a record, or after it, does not make the next record one with a member of its own.
#[test]
fn a_wrong_length_within_a_block_costs_no_record() {
    let records = [
        bare_record("q", &"q".repeat(50), 0),
        bare_record("a", "a\r\n\r\n", 0),
        bare_record("b", "b\r\n\r\n", 900),
        bare_record("c", "c\r\n\r\n", 0),
    ];
    let text = records.concat();
    let [first, a_end] = [records[0].len() as u64, (records[0].len() + records[1].len()) as u64];
    let flags = [("q", Flags::NONE), ("a", Flags::NONE), ("b", Flags::CUT), ("c", Flags::NONE)];
    // The second record ends with two line ends, which are a part of its content.
    for within in [vec![a_end - 3], vec![a_end - 3, a_end], vec![a_end - 1], vec![a_end - 1, a_end]] {
        let ends = [&[first - 20][..], &within, &[text.len() as u64]].concat();
        for step in [1, 64, 1000] {
            let (rows, end, damage) = parse_members(&text, &ends, step);
            assert_eq!((rows, end, damage.short_count), (sound(flags), ArchiveEnd::Whole, 1), "{step} {within:?}");
        }
    }
}

/// A block that begins with more bytes without a line end than a header may have is a part of the record.
#[test]
fn a_block_without_lines_ends_no_record() {
    let content = "x".repeat(50 + MAX_HEADER_LEN as usize);
    let first = bare_record("a", &content, 0);
    let block = (first.len() - MAX_HEADER_LEN as usize) as u64;
    let text = first + "\r\n\r\n" + &bare_record("b", "1", 0);
    for step in [1 << 18, 1 << 20, 4 << 20] {
        let found = parse_members(&text, &[block, text.len() as u64], step);
        let rows = sound([("a", Flags::NONE), ("b", Flags::NONE)]);
        assert_eq!(found, (rows, ArchiveEnd::Whole, ArchiveDamage::default()), "{step}");
    }
}

/// Stray bytes in a member neither move its records nor hide those of the next member.
#[test]
fn stray_bytes_between_members() {
    let first = bare_record("a", "y\nWARC/1.0\r\nA: b\r\n\r\nz\n", 0);
    let next = bare_record("b", "1", 0);
    let long = "x".repeat(MAX_HEADER_LEN as usize + 5);
    // After the end of a member, and a line that is too long and has no end.
    for (stray, has_member) in [("garbage\r\n", false), (&long[..], true)] {
        let text = [&first[..], stray, &next].concat();
        let stray_end = first.len() + if has_member { stray.len() } else { 0 };
        let ends = [first.len(), stray_end, text.len()].map(|end| end as u64);
        for step in [1 << 20, 4 << 20] {
            let (rows, end, damage) = parse_members(&text, &ends, step);
            assert_eq!(
                (rows, end),
                (sound([("a", Flags::NONE), ("b", Flags::STRAY_BYTES)]), ArchiveEnd::Whole),
                "{step}"
            );
            assert_eq!((damage.stray_len, damage.short_count), (stray.len() as u64, 0), "{step}");
        }
    }
}

/// Only a version of two numbers before a field is a header within a record.
#[test]
fn lines_within_a_record_that_are_no_headers() {
    let lines = "x\nWARC/1.\r\nA: b\nWARC/1.x\r\nA: b\nWARC/1.0\r\nno field\nWARC/1.0\r\n1: b\n";
    let (a, b) = (bare_record("a", lines, 900), bare_record("b", "1", 0));
    let whole = bare_record("a", &format!("{lines}WARC/1.0\r\nA: b\r\n\r\n"), 0);
    for step in [0, 1, 64, 1000] {
        let (rows, end, damage) = parse_members(&[&a[..], &b].concat(), &[], step);
        assert_eq!(rows, sound([("a", Flags::CUT), ("b", Flags::NONE)]), "{step}");
        assert_eq!((end, damage.short_count), (ArchiveEnd::Whole, 1), "{step}");
        // A header right after the content shows that the length is right, whatever the content has.
        let found = parse_members(&[&whole[..], &b].concat(), &[], step);
        let rows = sound([("a", Flags::NONE), ("b", Flags::NONE)]);
        assert_eq!(found, (rows, ArchiveEnd::Whole, ArchiveDamage::default()), "{step}");
    }
}

/// The last record has no line end, and the one before it seems to end within it.
#[test]
fn a_length_that_ends_in_the_last_line() {
    let b = bare_record("b", "0123456789", 0);
    let a = bare_record("a", "1\n", b.len() - 5);
    for step in [0, 1, 64, 1000] {
        let (rows, end, damage) = parse_members(&[&a[..], &b].concat(), &[], step);
        assert_eq!(rows, sound([("a", Flags::CUT), ("b", Flags::NONE)]), "{step}");
        assert_eq!((end, damage.short_count), (ArchiveEnd::Whole, 1), "{step}");
    }
}

/// The links of a page are read, however the end of its record is found.
#[test]
fn links_of_pages_whose_lengths_are_wrong() {
    let page = |i: u32| wat_record(&format!(r#"{{"url":"/{i}"}}"#));
    let wrong = page(1).replacen("Content-Length: ", "Content-Length: 9", 1);
    let lower = page(2).replace("WARC/1.0", "warc/1.0");
    let end = wrong.len() as u64;
    for (text, ends, step) in [
        ([&wrong[..], &page(2)].concat(), vec![], 0),
        ([&wrong[..], &page(2)].concat(), vec![], 1),
        ([&wrong[..], &page(2)].concat(), vec![], 1000),
        ([&wrong[..], &lower].concat(), vec![end], 1),
        ([&wrong[..], &lower].concat(), vec![end], 1000),
        // The last line is a part of the header of another record.
        ([&page(1)[..], &page(2), "WARC"].concat(), vec![], 0),
        ([&page(1)[..], &page(2), "WARC"].concat(), vec![], 1),
    ] {
        for target_len in [1, usize::MAX] {
            let mut parser = ArchiveParser::of_links();
            ends.iter().for_each(|end| parser.push_member_end(*end, *end));
            let (rows, ended, _) = parse(parser, text.as_bytes(), (step, target_len));
            let urls: Vec<_> = rows.concat().into_iter().map(|row| row.0).collect();
            let is_truncated = text.ends_with("WARC");
            let end = if is_truncated { ArchiveEnd::Truncated(4) } else { ArchiveEnd::Whole };
            assert_eq!((urls, ended), (vec!["/1".to_string(), "/2".to_string()], end), "{step} {ends:?}");
        }
    }
}

/// In an uncompressed file, a record reaches to the end of its content; without a length, to the next header.
#[test]
fn positions_in_an_uncompressed_file() {
    let a = record("WARC-Type: resource\r\nWARC-Target-URI: http://a/", "content");
    let no_length = "WARC/1.0\r\nWARC-Target-URI: http://b/\r\n\r\nline\nline\n";
    let long_header = format!("WARC/1.0\r\nX: {}\r\n\r\nline\r\n\r\n", "x".repeat(MAX_HEADER_LEN as usize));
    let arc = [
        "http://c/ 192.0.2.1 20140216050221 a/b -1\nHTTP/1.1 200 OK\n\nbody\n",
        "http://d/ 192.0.2.1 20140216050221 a/b 3\n123\n",
    ];
    let cases = [
        // The parts of the text, and how many of their last bytes are not a part of the record.
        vec![(&a[..], 4), (no_length, 0), (&long_header, 0), (&a, 4), (no_length, 0)],
        vec![(no_length, 0), (&a, 4)],
        // The last line has no end, and is a part of the record or of another header.
        vec![(&a, 4), ("WARC/1.0\r\n\r\nline\nli", 0)],
        vec![(&a, 4), ("WARC/1.0\r\n\r\nline\nWARC", 4)],
        vec![(arc[0], 0), (arc[1], 1), (arc[0], 0)],
    ];
    for parts in cases {
        let text: String = parts.iter().map(|(part, _)| *part).collect();
        let mut at = 0;
        let want = parts.iter().map(|(part, rest)| {
            at += part.len() as i64;
            (Some(at - part.len() as i64), Some((part.len() - rest) as i64))
        });
        let want: Vec<_> = want.collect();
        for (step, target_len) in [(0, usize::MAX), (100_000, usize::MAX), (4 << 20, 1)] {
            let mut parser = ArchiveParser::default();
            parser.set_file("x\ny", false);
            let (batches, _) = parse_batches(&mut parser, text.as_bytes(), (step, target_len));
            assert_eq!(positions(&batches), want, "{step} {target_len}");
            let records = batches[0].records();
            assert_eq!(shown(&records, records.fields.filenames[0]), "x y");
        }
    }
    // A record that is not whole has no position.
    let text = &[&a[..], &a].concat()[..2 * a.len() - 6];
    for (step, target_len) in [(0, 1), (0, usize::MAX), (1, 1), (64, usize::MAX)] {
        let mut parser = ArchiveParser::default();
        parser.set_file("x", false);
        let (batches, end) = parse_batches(&mut parser, text.as_bytes(), (step, target_len));
        assert_eq!(positions(&batches), [(Some(0), Some(a.len() as i64 - 4)), (None, None)], "{step} {target_len}");
        assert_eq!(end, ArchiveEnd::Truncated(0));
    }
}
