//! Many faults over whole jobs: the output is that of the local files, or the exit code is 4 and the source is named.
//!
//! `IRIKEY_FAULTS` sets how many requests fail; `scripts/faults` runs ten thousand.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;
use std::{env, fs};

use super::faults::{random, transient};
use super::server::{Fault, Request, Server};
use super::{command_at, irikey_at, sample, stderr};

/// Requests that fail, unless the environment says otherwise.
const FAULTS: usize = 400;

/// Sources of different formats.
const NAMES: [&str; 6] = ["crawl.warc.gz", "crawl.cdxj", "urls.txt.gz", "crawl.parquet", "crawl.arrow", "crawl.jsonl"];

const CANON: [&str; 6] = ["canon", "-q", "--output-format", "jsonl", "--columns", "source,record,uri,key,fault"];

/// The rows of each sample.
type Rows = BTreeMap<&'static str, Vec<u8>>;

/// What was injected so far, by kind, and how the jobs ended.
#[derive(Default)]
struct Tally {
    faults: AtomicUsize,
    by_kind: Mutex<BTreeMap<String, usize>>,
}

impl Tally {
    fn count(&self, fault: &Fault) {
        if !matches!(fault, Fault::None | Fault::Delay(_)) {
            self.faults.fetch_add(1, Ordering::Relaxed);
            let kind = format!("{fault:?}").split(['(', ' ']).next().unwrap_or_default().to_string();
            *self.by_kind.lock().unwrap().entry(kind).or_default() += 1;
        }
    }
}

/// Every third request fails and may be repeated. One of `final_every` fails for good: access is denied, or the object
/// changes or is sent without ranges, but only after its first version was sent.
fn faults(
    tally: &Arc<Tally>,
    seed: u64,
    final_every: u64,
    may_change: bool,
) -> impl Fn(usize, &Request) -> Fault + Send + Sync + 'static {
    let (tally, transient) = (Arc::clone(tally), transient(seed));
    let sent = Mutex::new(BTreeSet::new());
    move |number, request| {
        let mut sent = sent.lock().unwrap();
        let is_object = request.method == "GET" && !request.target.contains("list-type");
        let choice = random(seed + 1, number) % final_every;
        let fault = match choice {
            0 if is_object && may_change && sent.contains(request.path()) => Fault::Change,
            1 if is_object && may_change && sent.contains(request.path()) => Fault::IgnoreRange,
            2 if is_object => Fault::Status(403, "<Error><Code>AccessDenied</Code></Error>"),
            _ => transient(number, request),
        };
        if matches!(fault, Fault::None | Fault::Delay(_)) {
            sent.insert(request.path().to_string());
        }
        tally.count(&fault);
        fault
    }
}

/// Three of the samples, in an order that depends on `seed`.
fn chosen(seed: u64) -> Vec<&'static str> {
    let mut names = NAMES.to_vec();
    (0..3).map(|number| names.remove(random(seed, number) as usize % names.len())).collect()
}

fn remote(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| format!("s3://b/{name}")).collect()
}

fn local(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| format!("{}/data/samples/{name}", env!("CARGO_MANIFEST_DIR"))).collect()
}

fn run(server: &Server, flags: &[&str], names: &[String]) -> Output {
    irikey_at(server, &[flags, &names.iter().map(String::as_str).collect::<Vec<_>>()].concat(), &[])
}

/// The rows of a run with local files, which are named as objects.
fn expected(flags: &[&str], names: &[&str]) -> Vec<u8> {
    static QUIET: LazyLock<Server> = LazyLock::new(|| Server::start([], |_, _| Fault::None));
    let ran = run(&QUIET, flags, &local(names));
    assert_eq!(ran.status.code(), Some(0), "{names:?}: {}", stderr(&ran));
    let directory = local(&[""]).concat();
    String::from_utf8(ran.stdout).unwrap().replace(&directory, "s3://b/").into_bytes()
}

/// Checks that a source without all rows is named. Rows before the defect are those of the first version.
fn check_canon(rows_of: &Rows, names: &[&str], ran: &Output) -> bool {
    let message = stderr(ran);
    if ran.stdout.is_empty() {
        // A source that cannot be read prevents the job, because the command line names it.
        assert!(ran.status.code() == Some(4) && message.contains("s3://b/"), "{message}");
        return false;
    }
    let mut rest = &ran.stdout[..];
    let mut is_whole = true;
    for name in names {
        let rows = &rows_of[name];
        let same = rows.iter().zip(rest).take_while(|(a, b)| a == b).count();
        // Whole lines.
        let same = rows[..same].iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        assert!(same == rows.len() || message.contains(&format!("s3://b/{name}: ")), "{name}: {message}");
        is_whole &= same == rows.len();
        rest = &rest[same..];
    }
    assert!(rest.is_empty(), "{names:?}: {} bytes are left: {message}", rest.len());
    assert_eq!(ran.status.code(), Some(if is_whole && !message.contains("s3://b/") { 0 } else { 4 }), "{message}");
    ran.status.code() == Some(0)
}

/// The distinct keys, or, if a source is named, no others.
fn check_dedup(names: &[&str], flags: &[&str], ran: &Output) -> bool {
    let rows = expected(flags, names);
    if ran.status.code() == Some(0) {
        assert!(ran.stdout == rows, "{names:?}");
        return true;
    }
    let message = stderr(ran);
    assert!(ran.status.code() == Some(4), "{names:?}: {message}");
    assert!(names.iter().any(|name| message.contains(&format!("s3://b/{name}: "))), "{message}");
    let lines = |bytes: &[u8]| bytes.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect::<BTreeSet<_>>();
    assert!(lines(&ran.stdout).is_subset(&lines(&rows)), "{names:?}: {message}");
    false
}

/// Runs a job with `--resume`, which is killed at times, until it ends well.
fn check_resume(rows_of: &Rows, names: &[&str], server: &Server, seed: u64) {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    let flags = [&CANON[..], &["--resume", "-o", out.to_str().unwrap()]].concat();
    let names_in_store = remote(names);
    let arguments: Vec<&str> = flags.iter().copied().chain(names_in_store.iter().map(String::as_str)).collect();
    for attempt in 0.. {
        assert!(attempt < 50, "{names:?}");
        if random(seed, attempt).is_multiple_of(3) {
            let mut job = command_at(server, &arguments, &[]).stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(random(seed + 1, attempt) % 400));
            job.kill().unwrap();
            job.wait().unwrap();
        }
        let ran = irikey_at(server, &arguments, &[]);
        let message = stderr(&ran);
        match ran.status.code() {
            Some(0) => break,
            status => assert!(status == Some(4) && message.contains("s3://b/"), "{status:?} {message}"),
        }
    }
    let mut parts: Vec<_> = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path()).collect();
    parts.retain(|path| path.extension().is_some_and(|suffix| suffix == "jsonl"));
    parts.sort();
    let rows: Vec<u8> = parts.iter().flat_map(|part| fs::read(part).unwrap()).collect();
    let expected: Vec<&[u8]> = names.iter().map(|name| &rows_of[name][..]).collect();
    assert!(rows == expected.concat(), "{names:?}");
}

#[test]
fn jobs_give_the_local_output_or_name_the_source() {
    let count = env::var("IRIKEY_FAULTS").ok().map_or(FAULTS, |count| count.parse().expect("a number of faults"));
    let rows_of: Rows = NAMES.iter().map(|name| (*name, expected(&CANON, &[name]))).collect();
    let tally = Arc::<Tally>::default();
    let mut ended = BTreeMap::<(&str, bool), usize>::new();
    let dedup = ["dedup", "-q", "--output-format", "csv", "--columns", "key"];
    for seed in 0.. {
        if tally.faults.load(Ordering::Relaxed) >= count {
            break;
        }
        let names = chosen(seed);
        let objects = names.iter().map(|name| (format!("/b/{name}"), sample(name)));
        let (job, final_every) =
            (["canon", "dedup", "--resume", "canon to a store"][seed as usize % 4], 1 << (seed % 5 + 5));
        let server = Server::start(objects, faults(&tally, seed, final_every, job != "--resume"));
        let is_whole = match job {
            "canon" => check_canon(&rows_of, &names, &run(&server, &CANON, &remote(&names))),
            "dedup" => check_dedup(&names, &dedup, &run(&server, &dedup, &remote(&names))),
            "--resume" => {
                check_resume(&rows_of, &names, &server, seed);
                true
            }
            _ => {
                let output = ["-o", "s3://b/out.jsonl", "--store-option", "part_size=3000"];
                let mut ran = run(&server, &[&CANON[..], &output].concat(), &remote(&names));
                ran.stdout = server.object("/b/out.jsonl").unwrap_or_default();
                assert_eq!(server.upload_count(), 0);
                check_canon(&rows_of, &names, &ran)
            }
        };
        *ended.entry((job, is_whole)).or_default() += 1;
    }
    println!("{} faults: {:?}", tally.faults.load(Ordering::Relaxed), tally.by_kind.lock().unwrap());
    // Every kind of job gave its output, and those without `--resume` also named a source.
    assert!(count < FAULTS || ended.len() == 7, "{ended:?}");
    for ((job, is_whole), jobs) in ended {
        let end = if is_whole { "the local output" } else { "status 4, source named" };
        println!("{jobs} jobs {job}: {end}");
    }
}
