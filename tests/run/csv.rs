//! CSV sources: the records equal those of the csv crate, which reads the whole source at once, wherever row groups and
//! chunks end.

use crate::collect::{Out, Random, Row, auto, file, gzip, options, path, pipe, policy, run, try_run};
use irikey::canon::Canonicalizer;
use irikey::input::{Source, Sources};
use irikey::kernel::Bitmaps;
use irikey::record::csv::{ColumnChoice, Csv, CsvHeader, CsvLayout, CsvOptions, CsvQuote};
use irikey::record::{InputFormat, TextDecoder};
use irikey::run::{ReadError, RunError, RunOptions};
use std::path::Path;

/// Most lines of a record.
const MAX_LINES: usize = 500;

fn csv(options: RunOptions, csv: &CsvOptions) -> RunOptions {
    RunOptions { format: InputFormat::Csv(csv.clone()), ..options }
}

fn column(text: &str) -> Option<ColumnChoice> {
    Some(ColumnChoice::parse(text))
}

/// CSV text with fields that are hard to parse: quotes at the beginning and inside, delimiters, line ends, byte-order
/// marks.
fn hard_text(len: usize, delimiter: char) -> String {
    let fields = [
        "\"a\nb\"",
        "x",
        "\"\"",
        "",
        "\"q\"\"uote\n\"",
        "mid\"dle",
        "\"closed\"after",
        "\u{feff}mark",
        " \"sp\"",
        "\"\r\n\"",
    ];
    let ends = ["\n", "\r\n", "\n\n", "\r", "\r\n\r\n"];
    let mut text = String::from("http://first/\n");
    let mut random = Random(7);
    let mut next = |count: usize| (random.next() >> 33) as usize % count;
    while text.len() < len {
        let width = 1 + next(4);
        for i in 0..width {
            text.push_str(if i > 0 {
                fields[next(fields.len())]
            } else {
                ["http://a/", "\"http://b/,\n\"\"\"", "\u{feff}"][next(3)]
            });
            if i + 1 < width {
                text.push(delimiter);
            }
        }
        text.push_str(ends[next(ends.len())]);
    }
    text
}

/// Returns the first field and the offset of every record, as the csv crate reads them.
fn read_with_csv_crate(text: &str, delimiter: u8) -> Vec<(Vec<u8>, u64)> {
    let mut reader = csv_reader(delimiter).from_reader(text.as_bytes());
    let mut record = ::csv::ByteRecord::new();
    let mut all = Vec::new();
    while reader.read_byte_record(&mut record).unwrap() {
        let at = record.position().unwrap().byte() as usize;
        let at = at + text.as_bytes()[at..].iter().take_while(|byte| b"\r\n".contains(byte)).count();
        all.push((record[0].to_vec(), at as u64));
    }
    all
}

fn csv_reader(delimiter: u8) -> ::csv::ReaderBuilder {
    let mut builder = ::csv::ReaderBuilder::new();
    builder.has_headers(false).flexible(true).delimiter(delimiter).quoting(delimiter != b'\t');
    builder
}

/// Runs the job with the file that contains `text`, mapped and read, and with `text` from a pipe, plain and compressed.
fn run_each_way(file: &Path, text: &str, step: usize, options: &RunOptions) -> [Out; 4] {
    let no_mmap = RunOptions { mmap: false, ..options.clone() };
    [
        run(path(file), options),
        run(path(file), &no_mmap),
        run(pipe(text.as_bytes(), step), options),
        run(pipe(&gzip(text.as_bytes()), step), options),
    ]
}

#[test]
fn records_equal_those_of_the_csv_crate() {
    let directory = tempfile::tempdir().unwrap();
    for delimiter in [',', '\t'] {
        let text = hard_text(60_000, delimiter);
        let expected = read_with_csv_crate(&text, delimiter as u8);
        let csv_options = CsvOptions {
            delimiter: Some(delimiter as u8),
            url: column("1"),
            header: CsvHeader::Absent,
            ..CsvOptions::default()
        };
        let plain = file(&directory, "plain", text.as_bytes());
        let first = run(path(&plain), &csv(options(1, 8 << 20, 256 << 10), &csv_options));
        for (threads, row_group_len, chunk_len, step) in [(1, 1, 1, 1000), (3, 5_000, 50, 7), (2, 64, 1 << 20, 1 << 20)]
        {
            let options = csv(options(threads, row_group_len, chunk_len), &csv_options);
            for out in run_each_way(&plain, &text, step, &options) {
                assert_eq!(out.rows.len(), expected.len());
                for (i, (row, (url, at))) in out.rows.iter().zip(&expected).enumerate() {
                    assert_eq!((row.record, row.offset), (i as u64 + 1, *at));
                    let got = if row.differs { &row.input } else { &row.uri };
                    assert_eq!(got, url, "record {}", i + 1);
                }
                assert!(out.rows == first.rows);
            }
        }
    }
}

#[test]
fn each_source_has_its_own_header() {
    let csv_options = CsvOptions::default();
    let texts = ["id,url\n1,http://a/\n", "\u{feff}URL,id\r\nhttp://b/,2\r\nhttp://c/,3", "", "\n\nhttp://d/\n"];
    let sources = texts.map(|text| Source::reader("s", text.as_bytes()));
    let out = run(Sources(sources.into_iter().collect()), &csv(options(2, 1 << 20, 1000), &csv_options));
    let rows: Vec<_> = out.rows.iter().map(|row| (row.source, row.record, row.offset, &row.uri[..])).collect();
    let expected: [(u32, u64, u64, &[u8]); 4] =
        [(0, 1, 7, b"http://a/"), (1, 1, 11, b"http://b/"), (1, 2, 24, b"http://c/"), (3, 1, 2, b"http://d/")];
    assert_eq!(rows, expected);
}

#[test]
fn a_header_without_records_gives_no_rows() {
    for text in ["url", "url\n", "\"url\"\r\n", "url,\"a\nb\"\n"] {
        for step in [1, 3, 100] {
            let out = run(pipe(text.as_bytes(), step), &csv(options(1, 4, 10), &CsvOptions::default()));
            assert!(out.rows.is_empty() && out.summary.input_errors.is_empty(), "{text:?}");
        }
    }
}

#[test]
fn bases_reach_the_canonicalizer() {
    let csv_options = CsvOptions { url: column("ref"), base: column("page"), ..CsvOptions::default() };
    let mut decoder = Csv::default();
    let columns = csv_options.read_first(b"page,ref\n").unwrap().unwrap().columns;
    decoder.set_settings(&CsvLayout { columns, ..CsvLayout::default() });
    let mut bitmaps = Bitmaps::default();
    let records = decoder.decode(b"http://a/,../b\nhttp://a/,c\n", 0, &mut bitmaps);
    let bases: Vec<_> = records.bases.iter().map(|base| base.of(records.text)).collect();
    assert_eq!(bases, [b"http://a/", b"http://a/"]);
    let mut rows = irikey::canon::Rows::default();
    Canonicalizer::new(&policy()).append(&records, &bitmaps, &mut rows);
    let out = run(pipe(b"page,ref\nhttp://a/,../b\nhttp://a/,c\n", 9), &csv(options(1, 100, 1), &csv_options));
    assert_eq!(out.rows.iter().map(|row| row.key).collect::<Vec<_>>(), rows.key);
}

#[test]
fn an_unknown_column_stops_the_run() {
    let csv_options = CsvOptions { url: column("adress"), ..CsvOptions::default() };
    let error = try_run(pipe(b"id,url\n1,http://a/\n", 100), &csv(options(2, 100, 100), &csv_options)).unwrap_err();
    assert!(matches!(error, RunError::Read(ReadError::Columns { .. })));
    assert_eq!(error.to_string(), "pipe: there is no column \"adress\"; the columns are 1 \"id\", 2 \"url\"");
}

/// Bytes and name of the fault of each record.
fn texts(out: &Out) -> Vec<(String, Option<String>)> {
    let text = |row: &Row| String::from_utf8(if row.differs { &row.input } else { &row.uri }.clone()).unwrap();
    out.rows
        .iter()
        .map(|row| (text(row), row.fault.as_ref().and_then(|fault| fault.split(' ').next().map(String::from))))
        .collect()
}

#[test]
fn a_line_with_an_unclosed_quote_is_a_fault_and_the_next_line_a_record() {
    let csv_options = CsvOptions { url: column("1"), header: CsvHeader::Absent, ..CsvOptions::default() };
    let directory = tempfile::tempdir().unwrap();
    let rows = "http://a/,\"x\"\n".repeat(MAX_LINES + 10);
    // A text, and the number of the line of its fault.
    for (text, faulty_line) in [
        (format!("http://a/,\"5 inch\n{rows}"), 0),
        (format!("{rows}http://a/,\"5\"\",x\r\n{rows}"), MAX_LINES + 10),
        (format!("{rows}http://a/,\"5"), MAX_LINES + 10),
        (format!("http://a/,\"x\nhttp://a/,x\n{rows}"), 0),
        (format!("http://a/,\"\n{}http://a/,x\",\n", "http://a/,x\n".repeat(MAX_LINES)), 0),
    ] {
        let lines: Vec<&str> = text.lines().collect();
        let plain = file(&directory, "plain", text.as_bytes());
        for (threads, row_group_len, chunk_len, step) in
            [(1, 8 << 20, 1 << 20, 1 << 20), (3, 300, 50, 7), (2, 1, 1, 999)]
        {
            let options = csv(options(threads, row_group_len, chunk_len), &csv_options);
            for out in run_each_way(&plain, &text, step, &options) {
                let found = texts(&out);
                assert_eq!(found.len(), lines.len());
                for (i, (line, found)) in lines.iter().zip(found).enumerate() {
                    let url = line.split(',').next().unwrap();
                    let want = if i == faulty_line { (*line, Some("not-of-format")) } else { (url, None) };
                    assert_eq!((found.0.as_str(), found.1.as_deref()), want, "line {i}");
                }
            }
        }
    }
}

/// The first line is the header, however many rows follow it.
#[test]
fn a_header_with_an_unclosed_quote_is_one_line() {
    let directory = tempfile::tempdir().unwrap();
    for header in ["url,\"note\n", "\"url\n", "# a comment, longer than some rows\n\nurl,\"note\r\n"] {
        for count in [0, 1, 2, MAX_LINES - 2, MAX_LINES - 1, MAX_LINES + 1] {
            let text = format!("{header}{}", "http://a/,1\n".repeat(count));
            let plain = file(&directory, "plain.csv", text.as_bytes());
            for (row_group_len, chunk_len, step) in [(8 << 20, 1 << 20, 1 << 20), (1, 1, 7), (100, 50, 1)] {
                let options = csv(options(2, row_group_len, chunk_len), &CsvOptions::default());
                for out in run_each_way(&plain, &text, step, &options) {
                    assert_eq!(texts(&out), vec![("http://a/".to_string(), None); count], "{header:?} {count}");
                    assert!(out.rows.iter().enumerate().all(|(i, row)| row.offset as usize == header.len() + 12 * i));
                    assert_eq!(out.summary.headers, 1 + u64::from(header.starts_with('#')), "{header:?} {count}");
                    assert!(out.summary.input_errors.is_empty());
                }
            }
        }
    }
}

#[test]
fn tables_with_tabs_have_no_quotes_unless_asked() {
    let text = "http://a/\t\"5\nhttp://b/\t\"\n";
    let options_of = |quote| {
        let csv_options = CsvOptions { delimiter: Some(b'\t'), url: column("1"), quote, ..CsvOptions::default() };
        csv(options(2, 10, 10), &csv_options)
    };
    let out = run(pipe(text.as_bytes(), 5), &options_of(CsvQuote::ByDelimiter));
    assert_eq!(texts(&out), [("http://a/".into(), None), ("http://b/".into(), None)]);
    let out = run(pipe(text.as_bytes(), 5), &options_of(CsvQuote::Byte(b'"')));
    assert_eq!(texts(&out), [("http://a/".into(), None)]);
}

#[test]
fn a_long_record_of_several_lines_is_a_fault_of_its_first_line() {
    let csv_options = CsvOptions { url: column("1"), header: CsvHeader::Absent, ..CsvOptions::default() };
    let text = format!("http://a/\nhttp://b/,\"y\n{}\",z\nhttp://c/\n", "http://d/\n".repeat(100));
    let mut expected =
        vec![("http://a/".to_string(), None), ("http://b/,\"y".to_string(), Some("too-long".to_string()))];
    expected.extend(vec![("http://d/".to_string(), None); 100]);
    // The quote of the last line opens a field that is not closed.
    expected.push(("\",z".to_string(), Some("not-of-format".to_string())));
    expected.push(("http://c/".to_string(), None));
    for (row_group_len, chunk_len, step) in [(10, 10, 3), (100, 1, 1000), (1 << 20, 1 << 20, 77)] {
        let limited = RunOptions { max_record_len: 500, ..csv(options(2, row_group_len, chunk_len), &csv_options) };
        assert_eq!(texts(&run(pipe(text.as_bytes(), step), &limited)), expected);
    }
}

/// Comments before a header are counted with it, and the header decides what separates fields.
#[test]
fn comments_before_a_header_are_no_records() {
    let read = |text: &str, chunk_len: usize| {
        let source = Source::reader("x.csv", std::io::Cursor::new(text.as_bytes().to_vec()));
        let out = run(Sources(vec![source]), &auto(2, 1 << 20, chunk_len));
        let rows: Vec<_> =
            out.rows.iter().map(|row| (row.offset, String::from_utf8_lossy(&row.uri).into_owned())).collect();
        (rows, out.summary.headers)
    };
    for chunk_len in [1, 1 << 20] {
        let sound = read("# made by x, 2024; y\n#\n\nid;url\n1;http://a/\n# 2;http://b/\n", chunk_len);
        assert_eq!(sound, (vec![(31, "http://a/".to_string()), (43, "http://b/".to_string())], 3));
        // Without a header after it, such a line is a record, or the header.
        assert_eq!(read("#a\n#b\nhttp://a/\n", chunk_len).0.len(), 2);
        assert_eq!(read("#a\n#b\n", chunk_len).0.len(), 1);
        // The first line states the delimiter.
        let stated = read("sep=;\r\nid;adr;link\r\n1;x;http://a/,b\r\n", chunk_len);
        assert_eq!(stated, (vec![(20, "http://a/,b".to_string())], 2));
    }
}

/// Many blank lines are skipped before they are read as a whole, and others with the first records.
#[test]
fn blank_lines_before_a_header_are_no_records() {
    let directory = tempfile::tempdir().unwrap();
    let lens = [0, 1, 65_535, 65_536, 65_537, 200_000];
    for (blank, count) in lens.iter().flat_map(|len| [("\n", *len), ("\r\n", len / 2)]) {
        for (before, header) in
            [("", "url\n"), ("", ""), ("", "url,\"x\n"), ("sep=,\n", "url\n"), ("#c\n", "url,\"a\nb\"\n")]
        {
            let text = [before, &blank.repeat(count), header, "http://a/\nhttp://b/\n"].concat();
            let plain = file(&directory, "plain.csv", text.as_bytes());
            let at = text.len() - 20;
            for (chunk_len, step) in [(100, 1000), (1 << 20, 1 << 20)] {
                let options = csv(options(2, 1 << 20, chunk_len), &CsvOptions::default());
                for out in run_each_way(&plain, &text, step, &options) {
                    let rows: Vec<_> = out.rows.iter().map(|row| (row.offset as usize, &row.uri[..])).collect();
                    assert_eq!(rows, [(at, &b"http://a/"[..]), (at + 10, b"http://b/")], "{before}{header} {count}");
                    let header_count = usize::from(!before.is_empty()) + usize::from(!header.is_empty());
                    assert_eq!(out.summary.headers as usize, header_count, "{before}{header} {count}");
                }
            }
        }
    }
}
