//! Records whose lengths are wrong, and records in members of gzip.

use super::*;

#[test]
fn a_wrong_length_costs_no_record() {
    for excess in [1, 4, 5, 9, 12, 110, 300, 10_000, usize::MAX / 3] {
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
    for (excess, ends_of) in [(0, 1), (1000, 1), (usize::MAX / 3, 1), (1000, 2), (5, 1)] {
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
        let mut parser = ArchiveParser::default();
        parser.set_file("a.warc.gz", true);
        ends.iter().for_each(|end| parser.push_member_end(*end, 10 * end));
        let (batches, _) = parse_batches(&mut parser, text.as_bytes(), (step, usize::MAX));
        let fields = batches[0].records().fields;
        fields.capture_offsets.iter().copied().zip(fields.capture_lengths.iter().copied()).collect::<Vec<_>>()
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
    let head = "WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: http://h/\r\nContent-Length: 30000000\r\n\r\n";
    let wrong = format!("{head}x\nWARC/1.0\n\n\r\n\r\n").repeat(200);
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
