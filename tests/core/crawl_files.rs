//! Decodes indexes of other programs: the `.cdx`, `.cdxj` and `.log` files in the folder that `IRIKEY_CRAWL_FILES` names. Fails if
//! a line is lost or refused. Without the variable, the test does nothing.

use std::path::{Path, PathBuf};

use irikey::kernel::Bitmaps;
use irikey::record::{Records, TextDecoder, cdx, cdxj, crawl_log};

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        if entry.path().is_dir() { files(&entry.path(), found) } else { found.push(entry.path()) }
    }
}

/// Numbers of records, of faults, and of records with a status, a time, a digest.
fn count(records: Records) -> [usize; 5] {
    let fields = records.fields;
    let digests = fields.digests.iter().flatten().count();
    let (statuses, times) = (fields.statuses.iter().flatten().count(), fields.times.iter().flatten().count());
    [records.urls.len(), records.faults.len(), statuses, times, digests]
}

#[test]
fn no_line_is_lost() {
    let Some(folder) = std::env::var_os("IRIKEY_CRAWL_FILES") else { return };
    let mut found = Vec::new();
    files(Path::new(&folder), &mut found);
    for path in found {
        let mut bitmaps = Bitmaps::default();
        let text = std::fs::read(&path).expect("a file");
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
