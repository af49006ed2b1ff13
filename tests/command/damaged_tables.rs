//! Thousands of damaged Parquet and Arrow files in jobs with limited memory: no panic is printed, no process is aborted, no
//! partial file remains, and the other inputs of the job are read.

#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use arrow::ipc::CompressionType;
use arrow::ipc::writer::{FileWriter, IpcWriteOptions};
use parquet::arrow::ArrowWriter;
use parquet::basic::{BrotliLevel, Compression, Encoding, GzipLevel, ZstdLevel};
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, ParquetMetaDataWriter, RowGroupMetaData};
use parquet::file::properties::{WriterProperties, WriterVersion};

use super::random_numbers;

/// Address space of a job, in KiB.
const MEMORY_KIB: u32 = 2 << 20;

/// Files per original file that are damaged at random.
const FILES: usize = 140;

/// Bytes at the start of a file of which each is replaced by large numbers. The header of the first page is there.
const HEAD_LEN: usize = 90;

/// The largest number of Thrift's compact protocol for 32 bits, a page length that a codec might reach, and -1.
const NUMBERS: [&[u8]; 3] = [b"\xFE\xFF\xFF\xFF\x0F", b"\x80\x80\x80\x70", b"\x01"];

fn batch() -> RecordBatch {
    let urls = (0..60).map(|i| (i % 7 != 3).then(|| format!("http://example.org/{}/{i}", i / 10)));
    let columns: [(&str, ArrayRef); 3] = [
        ("url", Arc::new(urls.collect::<StringArray>())),
        ("fetch_status", Arc::new(Int32Array::from_iter_values(200..260))),
        ("content_digest", Arc::new(StringArray::from_iter_values((0..60).map(|i| format!("DIGEST{}", i % 9))))),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn parquet(codec: Compression, version: WriterVersion, encoding: Option<Encoding>) -> Vec<u8> {
    let mut properties = WriterProperties::builder().set_compression(codec).set_writer_version(version);
    properties = properties.set_data_page_row_count_limit(25).set_write_batch_size(5);
    if let Some(encoding) = encoding {
        properties = properties.set_dictionary_enabled(false);
        properties = properties.set_column_encoding("url".into(), encoding);
        properties = properties.set_column_encoding("content_digest".into(), encoding);
    }
    let mut writer = ArrowWriter::try_new(Vec::new(), batch().schema(), Some(properties.build())).unwrap();
    writer.write(&batch()).unwrap();
    writer.into_inner().unwrap()
}

fn arrow(compression: Option<CompressionType>) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
    let mut writer = FileWriter::try_new_with_options(Vec::new(), &batch().schema(), options).unwrap();
    writer.write(&batch()).unwrap();
    writer.into_inner().unwrap()
}

fn originals() -> Vec<Vec<u8>> {
    let (v1, v2) = (WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0);
    vec![
        parquet(Compression::UNCOMPRESSED, v1, None),
        parquet(Compression::UNCOMPRESSED, v1, Some(Encoding::DELTA_BYTE_ARRAY)),
        parquet(Compression::UNCOMPRESSED, v2, Some(Encoding::DELTA_LENGTH_BYTE_ARRAY)),
        parquet(Compression::UNCOMPRESSED, v2, Some(Encoding::PLAIN)),
        parquet(Compression::SNAPPY, v1, None),
        parquet(Compression::GZIP(GzipLevel::default()), v1, None),
        parquet(Compression::BROTLI(BrotliLevel::default()), v2, None),
        parquet(Compression::LZ4_RAW, v1, Some(Encoding::PLAIN)),
        parquet(Compression::ZSTD(ZstdLevel::default()), v2, Some(Encoding::DELTA_BYTE_ARRAY)),
        arrow(None),
        arrow(Some(CompressionType::ZSTD)),
        arrow(Some(CompressionType::LZ4_FRAME)),
    ]
}

/// Damages a copy of a file: flips bits, cuts its end, or writes an extreme number. The first bytes stay, because they
/// identify the format; half of the changes are in the last 600 bytes, where footers are.
fn damaged(original: &[u8], random: &mut impl FnMut() -> usize) -> Vec<u8> {
    let mut bytes = original.to_vec();
    let range = if random().is_multiple_of(2) { bytes.len().saturating_sub(600).max(8) } else { 8 };
    let at = range + random() % (bytes.len() - range);
    match random() % 5 {
        0 => bytes[at] ^= 1 << (random() % 8),
        1 => bytes.truncate(at),
        2 => {
            // The largest numbers of Thrift's compact protocol, positive and negative.
            let number: &[u8] =
                [&b"\xFE\xFF\xFF\xFF\x0F"[..], b"\xFF\xFF\xFF\xFF\x0F", b"\x80\x80\x80\x80\x80\x80\x40"][random() % 3];
            let end = bytes.len().min(at + number.len());
            bytes[at..end].copy_from_slice(&number[..end - at]);
        }
        3 => {
            let number = [i64::MAX, -1, 1 << 40, i64::from(i32::MAX), 1 << 60][random() % 5].to_le_bytes();
            let end = bytes.len().min(at + [4, 8][random() % 2]);
            bytes[at..end].copy_from_slice(&number[..end - at]);
        }
        _ => {
            let end = bytes.len().min(at + 1 + random() % 20);
            bytes[at..end].iter_mut().for_each(|byte| *byte = random() as u8);
        }
    }
    bytes
}

/// Runs a job on a directory and returns its standard error. Panics if the job aborts, prints a panic, leaves a partial
/// file, or does not read the sound input after the others.
fn check(directory: &Path, input: &Path, threads: &str) -> Result<String, String> {
    let (out, good) = (directory.join("out"), directory.join("good.txt"));
    fs::create_dir_all(&out).unwrap();
    fs::write(&good, "http://last.example/\n").unwrap();
    let script = format!("ulimit -v {MEMORY_KIB} -c 0; exec \"$@\"");
    let ran = Command::new("bash")
        .args(["-c", &script, "bash", env!("CARGO_BIN_EXE_irikey"), "canon", "--threads", threads, "--columns"])
        .args(["uri,fetch_status,content_digest", "-o"])
        .args([&out.join("rows.csv"), input, &good])
        .env("RUST_BACKTRACE", "1")
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&ran.stderr).into_owned();
    let files: Vec<_> = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    let rows = fs::read_to_string(out.join("rows.csv")).unwrap_or_default();
    let is_clean = !message.contains("panicked at") && !message.contains("stack backtrace");
    let is_right = matches!(ran.status.code(), Some(0 | 4)) && files == ["rows.csv"];
    match is_clean && is_right && rows.ends_with("http://last.example/,,\n") {
        true => Ok(message),
        false => Err(format!("{:?} {files:?} {}", ran.status, message.chars().take(3000).collect::<String>())),
    }
}

#[test]
fn damaged_tables_end_alone_and_without_a_panic() {
    let directory = tempfile::tempdir().unwrap();
    let mut random = random_numbers(42);
    let mut error_count = 0;
    for (number, original) in originals().iter().enumerate() {
        let input = directory.path().join(format!("input{number}"));
        fs::create_dir_all(&input).unwrap();
        for i in 0..FILES {
            fs::write(input.join(format!("{i:04}")), damaged(original, &mut random)).unwrap();
        }
        for (i, at) in (5..HEAD_LEN.min(original.len())).enumerate() {
            let mut bytes = original.clone();
            bytes.splice(at..at + 1, NUMBERS[i % 2 + usize::from(i % 7 == 6)].iter().copied());
            fs::write(input.join(format!("head{i:04}")), bytes).unwrap();
        }
        let message = check(directory.path(), &input, ["1", "2"][number % 2]).unwrap_or_else(|message| {
            let one_by_one = fs::read_dir(&input).unwrap().map(|entry| entry.unwrap().path());
            let cause =
                one_by_one.filter_map(|file| Some((file.clone(), check(directory.path(), &file, "1").err()?))).next();
            panic!("original {number}: {message}\nthe first file that fails alone: {cause:?}");
        });
        error_count += message.lines().filter(|line| line.starts_with("irikey: ")).count();
        fs::remove_dir_all(&input).unwrap();
    }
    assert!(error_count > FILES * 4, "{error_count} damaged files were reported");
}

/// `check-sorted` reads tables by other code than jobs do.
#[test]
fn check_sorted_does_not_panic_on_damaged_tables() {
    let directory = tempfile::tempdir().unwrap();
    let input = directory.path().join("input");
    let script = format!("ulimit -v {MEMORY_KIB} -c 0; exec \"$@\"");
    let mut random = random_numbers(7);
    for (number, original) in originals().iter().enumerate() {
        // A length in the last bytes is one of a block of an Arrow file.
        let lengths = (original.len() - 200..original.len() - 10).filter(|at| at.is_multiple_of(8)).map(|at| {
            let mut bytes = original.clone();
            bytes[at..at + 8].copy_from_slice(&(1u64 << 40).to_le_bytes());
            bytes
        });
        let mut files: Vec<_> = lengths.collect();
        files.extend((0..20).map(|_| damaged(original, &mut random)));
        for (i, bytes) in files.into_iter().enumerate() {
            fs::write(&input, bytes).unwrap();
            let mut command = Command::new("bash");
            command.args(["-c", &script, "bash", env!("CARGO_BIN_EXE_irikey"), "check-sorted", "--by", "fetch_status"]);
            let ran = command.arg(&input).output().unwrap();
            let message = String::from_utf8_lossy(&ran.stderr);
            let is_clean = matches!(ran.status.code(), Some(0 | 1 | 2 | 4)) && !message.contains("panicked at");
            assert!(is_clean, "original {number}, file {i}: {:?} {message}", ran.status);
        }
    }
}

/// A page of 3 MB whose gzip members decompress to 3 GB, more than its header states and than the job may have.
#[test]
fn pages_that_unpack_to_more_than_they_state_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let input = directory.path().join("input.parquet");
    let mut random = random_numbers(1);
    let url: String = (0..4 << 20).map(|_| char::from(b'0' + (random() % 64) as u8)).collect();
    let batch = RecordBatch::try_from_iter([("url", Arc::new(StringArray::from(vec![url])) as ArrayRef)]).unwrap();
    let properties = WriterProperties::builder().set_compression(Compression::GZIP(GzipLevel::default()));
    let properties = properties.set_dictionary_enabled(false).build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    let group = writer.flush().map(|()| writer.flushed_row_groups()[0].clone()).unwrap();
    let mut bytes = writer.into_inner().unwrap();

    let chunk = group.column(0).data_page_offset() as usize;
    let page = chunk + memchr::memmem::find(&bytes[chunk..], b"\x1f\x8b\x08").unwrap();
    let end = chunk + group.column(0).compressed_size() as usize;
    let members = super::gzip(&vec![b'a'; 8 << 20]).repeat(400);
    assert!(end - page > 3_000_000 && members.len() > end - page);
    bytes[page..end].copy_from_slice(&members[..end - page]);
    fs::write(&input, bytes).unwrap();
    let message = check(directory.path(), &input, "1").unwrap();
    assert!(message.contains("its content has not the 4194308 bytes that it states"), "{message}");
}

/// A footer of 80 kB, from which the crate parquet alone would make a schema by 10,000 calls within each other.
#[test]
fn schemas_that_are_nested_deeply_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let input = directory.path().join("input.parquet");
    let group: &[u8] = &[0x35, 2, 0x18, 1, b'x', 0x15, 2, 0];
    let column: &[u8] = &[0x15, 12, 0x25, 0, 0x18, 1, b'x', 0];
    // The length of the list is 10,001.
    let schema = [&[0x19, 0xFC, 0x91, 0x4E][..], &group.repeat(10_000), column].concat();
    let footer = [&[0x15, 2][..], &schema, &[0x16, 0, 0x19, 0x0C, 0]].concat();
    fs::write(&input, [b"PAR1", &*footer, &(footer.len() as u32).to_le_bytes(), b"PAR1"].concat()).unwrap();
    let message = check(directory.path(), &input, "1").unwrap();
    assert!(message.contains("the schema has more than 128 groups within each other"), "{message}");
    let sorted =
        super::irikey(&["check-sorted", "--by", "url", input.to_str().unwrap()], b"", std::process::Stdio::null());
    assert_eq!(sorted.status.code(), Some(4), "{sorted:?}");
}

/// Runs the command on standard input. Returns its exit code and messages.
fn run(arguments: &[&str], input: &str) -> (Option<i32>, String) {
    let ran = super::irikey(arguments, input.as_bytes(), std::process::Stdio::null());
    (ran.status.code(), String::from_utf8_lossy(&ran.stderr).into_owned())
}

/// Writes a file of equivalences, and a part of one, with `learn`.
fn write_equivalences(learned: &str, part: &str) {
    let redirect = r#"org,e)/ 20200101000000 {"url": "http://e.org/", "status": "301", "redirect": "https://e.org/"}"#;
    assert_eq!(run(&["learn", "-q", "-", "-o", learned], redirect).0, Some(0));
    // Three captures of each page, whose sessions make no difference.
    let capture = |i: u32| {
        let (page, session) = (i / 3, i % 3);
        format!(
            "a {} {{\"url\": \"http://e.org/?id={page}&sid={session}\", \"status\": \"200\", \"digest\": \"DIGEST{page:02}\"}}\n",
            20_200_101_000_000u64 + u64::from(i)
        )
    };
    let captures: String = (0..30).map(capture).collect();
    assert_eq!(run(&["learn", "-q", "--part", "-", "-o", part], &captures).0, Some(0));
}

/// Files of keys, of equivalences and of parts are read by other code, which must not panic either.
#[test]
fn damaged_files_of_keys_and_equivalences_are_errors() {
    let directory = tempfile::tempdir().unwrap();
    let name = |name: &str| directory.path().join(name).display().to_string();
    let [keyed, learned, part, out] = ["keyed.parquet", "learned.parquet", "part.parquet", "out.parquet"].map(name);
    let lines: String = (0..50).map(|i| format!("http://example.org/{}\n", i / 2)).collect();
    assert_eq!(run(&["canon", "-q", "-o", &keyed], &lines).0, Some(0));
    write_equivalences(&learned, &part);
    let [keyed, learned, part] = [keyed, learned, part].map(|path| fs::read(path).unwrap());
    for file in [&keyed, &learned, &part] {
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&bytes::Bytes::copy_from_slice(file)).unwrap();
        assert_ne!(metadata.file_metadata().num_rows(), 0, "a damaged row is to be read");
    }
    let mut random = random_numbers(5);
    let file = name("damaged.parquet");
    let jobs: [(&[u8], &[&str]); 3] = [
        (&keyed, &["dedup", "-q", &file, "-o", &out]),
        (&learned, &["dedup", "-q", "-", "-o", &out, "--key", "protocol", "--equivalences", &file]),
        (&part, &["learn", "-q", "--merge", &file, "-o", &out]),
    ];
    let mut error_counts = [0; 3];
    for i in 0..240 {
        let (original, arguments) = jobs[i % 3];
        fs::write(&file, damaged(original, &mut random)).unwrap();
        let (status, message) = run(arguments, &lines);
        assert!(matches!(status, Some(0 | 2 | 4)) && !message.contains("panicked at"), "{i}: {status:?} {message}");
        error_counts[i % 3] += u32::from(status != Some(0));
    }
    assert!(error_counts.iter().all(|count| (10..80).contains(count)), "{error_counts:?}");
}

/// A page header with an unknown list of 2^31 booleans, which the crate parquet alone would skip one by one.
#[test]
fn page_headers_that_take_time_are_refused_by_all_readers() {
    let directory = tempfile::tempdir().unwrap();
    let name = |name: &str| directory.path().join(name).display().to_string();
    let [sorted, learned, part, out] = ["sorted.parquet", "learned.parquet", "part.parquet", "out.parquet"].map(name);
    assert_eq!(run(&["canon", "-q", "--sort", "uri", "-o", &sorted], "http://e.org/").0, Some(0));
    write_equivalences(&learned, &part);
    let jobs: [(&str, &[&str]); 4] = [
        (&sorted, &["check-sorted", &sorted]),
        (&learned, &["dedup", "-q", "-", "-o", &out, "--key", "protocol", "--equivalences", &learned]),
        (&learned, &["explain", "http://e.org/", "--equivalences", &learned]),
        (&part, &["learn", "-q", "--merge", &part, "-o", &out]),
    ];
    for (file, _) in &jobs {
        let mut bytes = fs::read(file).unwrap();
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&bytes::Bytes::from(bytes.clone())).unwrap();
        for column in metadata.row_groups().iter().flat_map(|group| group.columns()) {
            let start = column.byte_range().0 as usize;
            bytes[start..start + 7].copy_from_slice(&[0xF9, 0xF1, 0xFF, 0xFF, 0xFF, 0xFF, 0x07]);
        }
        fs::write(file, bytes).unwrap();
    }
    for (file, arguments) in jobs {
        let (status, message) = run(arguments, "http://e.org/");
        let is_refused = message.contains(file) && message.contains("the header of a page is damaged");
        assert!(matches!(status, Some(2 | 4)) && is_refused, "{arguments:?}: {status:?} {message}");
    }
}

/// A file whose footer describes other row groups.
fn with_row_groups(file: &[u8], metadata: &ParquetMetaData, groups: Vec<RowGroupMetaData>) -> Vec<u8> {
    let footer_len = u32::from_le_bytes(file[file.len() - 8..][..4].try_into().unwrap()) as usize;
    let mut changed = file[..file.len() - 8 - footer_len].to_vec();
    let metadata = ParquetMetaData::new(metadata.file_metadata().clone(), groups);
    ParquetMetaDataWriter::new(&mut changed, &metadata).finish().unwrap();
    changed
}

/// As other inputs, a file with keys gives its rows up to the damage, and the other files are read.
#[test]
fn a_file_with_keys_ends_at_its_first_damaged_row_group() {
    let directory = tempfile::tempdir().unwrap();
    let name = |name: &str| directory.path().join(name).display().to_string();
    let [damaged, whole, out, report] = ["damaged.parquet", "whole.parquet", "out.csv", "report.json"].map(name);
    let line = |i: u32| format!("http://example.org/some/rather/long/path/{i}\n");
    let urls: String = (0..5000).map(line).collect();
    assert_eq!(run(&["canon", "-q", "--row-group-size", "64K", "-o", &damaged], &urls).0, Some(0));
    let more: String = (4990..5010).map(line).collect();
    assert_eq!(run(&["canon", "-q", "-o", &whole], &more).0, Some(0));
    let mut bytes = fs::read(&damaged).unwrap();
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&fs::File::open(&damaged).unwrap()).unwrap();
    assert!(metadata.num_row_groups() > 3);
    // Pages with fewer rows than the footer states.
    let mut groups = metadata.row_groups().to_vec();
    groups[1] = groups[1].clone().into_builder().set_num_rows(groups[1].num_rows() + 3).build().unwrap();
    let short = with_row_groups(&bytes, &metadata, groups);
    let column = metadata.row_group(1).columns().iter().find(|column| column.column_path().string() == "uri").unwrap();
    let (start, len) = column.byte_range();
    bytes[start as usize..(start + len) as usize].fill(0xFF);
    let rows = metadata.row_group(0).num_rows() as u32;
    let expected: String = ["uri\n".to_string()].into_iter().chain((0..rows).chain(4990..5010).map(line)).collect();
    for (threads, content) in [("1", &bytes), ("4", &bytes), ("1", &short), ("4", &short)] {
        fs::write(&damaged, content).unwrap();
        let dedup =
            ["dedup", "-q", "-j", threads, "--columns", "uri", "-o", &out, "--report", &report, &damaged, &whole];
        let (status, message) = run(&dedup, "");
        assert!(status == Some(4) && message.contains("damaged.parquet"), "{status:?} {message}");
        assert_eq!(fs::read_to_string(&out).unwrap(), expected, "{threads}");
        let report = super::read_json(&report);
        assert_eq!(report["records"], rows + 20, "{report:#}");
        fs::remove_file(&out).unwrap();
    }
}
