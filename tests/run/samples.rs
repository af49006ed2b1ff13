//! The samples `data/samples/crawl.*` have the same captures in every format: they give the same rows, also compressed.

use irikey::batch::SourceRun;
use irikey::canon::{Policy, Rows, TextColumn};
use irikey::input::Sources;
use irikey::record::fields::FieldSet;
use irikey::run::Summary;

use crate::collect::{auto, gzip, path, pipe, policy, run_groups, sample, sample_path, zstd};

/// A row without its position: the URI, the record if it differs, the fault, the key, and the carried fields.
type Row = (String, Option<String>, Option<String>, [u8; 16], [String; 5]);

fn rows_of(bytes: &[u8]) -> (Vec<Row>, Summary) {
    rows_of_sources(pipe(bytes, 5_000))
}

/// The rows of a sample whose format is detected from its name or needs a file.
fn rows_of_file(name: &str) -> (Vec<Row>, Summary) {
    rows_of_sources(path(&sample_path(name)))
}

fn rows_of_sources(sources: Sources) -> (Vec<Row>, Summary) {
    let carry =
        FieldSet { time: true, status: true, redirect: true, digest: true, charset: true, ..FieldSet::default() };
    let policy = Policy { carry, ..policy() };
    let encode = |rows: &mut Rows, _: &[SourceRun]| (0..rows.len()).map(|i| row(rows, i)).collect::<Vec<_>>();
    let (rows, summary) = run_groups(sources, &auto(2, 20_000, 3_000), &policy, encode);
    (rows.concat(), summary)
}

fn row(rows: &Rows, i: usize) -> Row {
    let text = |texts: &TextColumn| String::from_utf8_lossy(texts.get(i)).into_owned();
    let fault = rows.faults.iter().find(|(row, _)| *row as usize == i).map(|(_, fault)| fault.to_string());
    let carried = &rows.carried;
    let number = |value: Option<i64>| value.map_or(String::new(), |value| value.to_string());
    let carried_texts = [
        number(carried.times[i]),
        number(carried.statuses[i].map(i64::from)),
        text(&carried.redirects),
        text(&carried.digests),
        text(&carried.charsets),
    ];
    (text(&rows.uri), rows.differs(i).then(|| text(&rows.input)), fault, rows.key[i], carried_texts)
}

/// The rows without the carried columns at these positions.
fn without(rows: &[Row], columns: &[usize]) -> Vec<Row> {
    let mut rows = rows.to_vec();
    rows.iter_mut().for_each(|row| columns.iter().for_each(|&column| row.4[column].clear()));
    rows
}

#[test]
fn every_format_gives_the_same_rows() {
    let (expected, summary) = rows_of(&sample("crawl.cdxj"));
    assert_eq!((expected.len(), summary.input_errors.len()), (335, 0));
    assert!(expected.iter().all(|row| !row.4[0].is_empty() && !row.4[3].is_empty()));
    assert!(expected.iter().any(|row| row.4[2].contains("/moved/1?from=here")) && expected[0].4[4] == "UTF-8");
    // The columns that each format does not have.
    let cases: [(&str, &[usize]); 9] = [
        ("crawl.jsonl", &[]),
        ("crawl.cdx", &[4]),
        ("crawl.warc.gz", &[]),
        ("crawl.warc.zst", &[]),
        ("crawl.har", &[3]),
        ("crawl.cdx.json", &[4]),
        ("crawl.arc", &[3]),
        ("crawl.log", &[2, 4]),
        ("crawl.access.log", &[2, 3, 4]),
    ];
    for (name, missing) in cases {
        let (rows, summary) = rows_of(&sample(name));
        assert_eq!((rows.len(), summary.input_errors.len()), (335, 0), "{name}");
        assert_eq!(summary.headers, u64::from(name.starts_with("crawl.cdx")), "{name}");
        for (row, expected) in rows.iter().zip(without(&expected, missing)) {
            assert_eq!(*row, expected, "{name}");
        }
    }
    let bare = without(&expected, &[0, 1, 2, 3, 4]);
    for name in ["crawl.txt", "crawl.recover"] {
        assert_eq!(rows_of(&sample(name)).0, bare, "{name}");
    }
    for name in ["crawl.csv", "crawl.wat.gz"] {
        assert_eq!(without(&rows_of_file(name).0, &[0]), bare, "{name}");
    }
    for name in ["crawl.parquet", "crawl.arrow"] {
        assert_eq!(rows_of_file(name).0, expected, "{name}");
    }
}

#[test]
fn every_compression_gives_the_same_rows() {
    let plain = sample("crawl.cdx");
    let (expected, _) = rows_of(&plain);
    let half = plain.len() / 2;
    let two = |compress: fn(&[u8]) -> Vec<u8>| [compress(&plain[..half]), compress(&plain[half..])].concat();
    for packed in [two(gzip), two(zstd), two(lz4), two(bzip2)] {
        assert_eq!(rows_of(&packed).0, expected);
    }
    let (rows, summary) = rows_of(&sample("forty.xz"));
    assert_eq!((rows.len(), rows[39].0.as_str(), summary.input_errors.len()), (40, "http://example.org/", 0));
}

fn lz4(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
    std::io::Write::write_all(&mut encoder, bytes).unwrap();
    encoder.finish().unwrap()
}

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    std::io::Write::write_all(&mut encoder, bytes).unwrap();
    encoder.finish().unwrap()
}
