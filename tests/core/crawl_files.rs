//! Decodes CDX, CDXJ and crawl-log files that other programs created: no line is lost or rejected.
//!
//! The files are the samples of the repository and, if `IRIKEY_CRAWL_FILES` names a folder, the files of that folder.

use std::path::{Path, PathBuf};

use irikey::kernel::Bitmaps;
use irikey::record::{Records, TextDecoder, cdx, cdxj, crawl_log};

fn add_files(folder: &Path, files: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries.flatten() {
        if entry.path().is_dir() { add_files(&entry.path(), files) } else { files.push(entry.path()) }
    }
}

/// The number of records, faults, statuses, times and digests.
fn count(records: Records) -> [usize; 5] {
    let fields = records.fields;
    let digests = fields.digests.iter().flatten().count();
    let (statuses, times) = (fields.statuses.iter().flatten().count(), fields.times.iter().flatten().count());
    [records.urls.len(), records.faults.len(), statuses, times, digests]
}

#[test]
fn every_line_is_a_record_with_a_time() {
    let mut files = ["crawl.cdx", "crawl.cdxj", "crawl.log", "redirects.log"]
        .map(|name| Path::new(env!("CARGO_MANIFEST_DIR")).join("data/samples").join(name))
        .to_vec();
    if let Some(folder) = std::env::var_os("IRIKEY_CRAWL_FILES") {
        add_files(Path::new(&folder), &mut files);
    }
    for path in files {
        let mut bitmaps = Bitmaps::default();
        let text = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let first = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let header = cdx::CdxColumns::from_header(first);
        let lines = text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).count();
        let counts = match path.extension().and_then(|extension| extension.to_str()) {
            Some("cdx") => {
                let mut decoder = cdx::Cdx::default();
                decoder.set_settings(&header.clone().unwrap_or_default());
                count(decoder.decode(&text, 0, &mut bitmaps))
            }
            Some("cdxj") => count(cdxj::Cdxj::default().decode(&text, 0, &mut bitmaps)),
            Some("log") => count(crawl_log::CrawlLog::default().decode(&text, 0, &mut bitmaps)),
            _ => continue,
        };
        println!("{}: records, faults, statuses, times, digests: {counts:?}", path.display());
        assert_eq!(counts[0], lines - usize::from(header.is_some()), "{}", path.display());
        assert_eq!((counts[1], counts[3]), (0, counts[0]), "{}", path.display());
    }
}
