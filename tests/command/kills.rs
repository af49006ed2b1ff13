//! Jobs with state are killed at any moment: what they leave is the old state or the new one, and the same command then gives
//! the files of a job that was not killed. `IRIKEY_KILLS` sets the number of kills over all jobs; the default is 3 per job.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::power_loss::{Tree, tree, write_tree};

/// A job with state. Words that begin with `:` are paths in its directory, `@` is the input.
struct StatefulJob {
    name: &'static str,
    /// A job before it, which makes the old state.
    before: &'static str,
    words: &'static str,
    /// Files that have no state in between: those of the old state, or those of the new one.
    outputs: &'static [&'static str],
}

const JOBS: [StatefulJob; 9] = [
    StatefulJob {
        name: "store",
        before: "dedup -q @old -o :old.csv --seen :seen --update-seen",
        words: "dedup -q @ -o :new.csv --duplicates :twice.parquet --seen :seen --update-seen --tmp :",
        outputs: &["new.csv", "twice.parquet"],
    },
    StatefulJob { name: "resume", before: "", words: "canon -q @ @old @more -o :out --resume", outputs: &[] },
    StatefulJob {
        name: "resumed sort",
        before: "",
        words: "canon -q @ @old @more -o :out --resume --sort -uri --part-rows 4000 --tmp :",
        outputs: &[],
    },
    StatefulJob {
        name: "parts",
        before: "",
        words: "canon -q @ -o :out --part-rows 2000 --row-group-size 100K",
        outputs: &[],
    },
    StatefulJob {
        name: "parts of kept rows",
        before: "",
        words: "dedup -q @ -o :out --part-rows 2000 --row-group-size 100K --keep last",
        outputs: &[],
    },
    StatefulJob {
        name: "sorted parts",
        before: "",
        words: "canon -q @ -o :out --sort uri --part-rows 2000",
        outputs: &[],
    },
    StatefulJob { name: "partitions", before: "", words: "canon -q @ -o :out --partition surt:5", outputs: &[] },
    StatefulJob {
        name: "zipnum",
        before: "canon -q @old -o :x.cdx.gz",
        words: "canon -q @ -o :x.cdx.gz",
        outputs: &["x.cdx.gz"],
    },
    StatefulJob {
        name: "learn",
        before: "learn -q @redirects -o :x.parquet",
        words: "learn -q @redirects -o :x.parquet --weak",
        outputs: &["x.parquet"],
    },
];

fn write_inputs(directory: &Path) {
    let lines = |from: u64, count: u64| {
        (from..from + count).map(|i| format!("HTTP://Example{}.org/{}\n", i % 7, i / 2)).collect::<String>()
    };
    fs::write(directory.join("new.txt"), lines(5_000, 20_000)).unwrap();
    fs::write(directory.join("old.txt"), lines(0, 9_000)).unwrap();
    fs::write(directory.join("more.txt"), lines(20_000, 3_000)).unwrap();
    let redirect = |i: u64| {
        let status = if i.is_multiple_of(3) { 302 } else { 301 };
        format!(
            "k)/ 20260101000000 {{\"url\": \"http://a.org/{i}\", \"status\": \"{status}\", \"redirect\": \"https://b.org/{i}\"}}\n"
        )
    };
    fs::write(directory.join("redirects.txt"), (0..5_000).map(redirect).collect::<String>()).unwrap();
}

fn command(words: &str, directory: &Path) -> Command {
    let path = |name: &str| directory.join(name).display().to_string();
    let word = |word: &str| match word.split_at_checked(1) {
        Some(("@", "")) => path("new.txt"),
        Some(("@", name)) => path(&format!("{name}.txt")),
        Some((":", name)) => path(&format!("work/{name}")),
        _ => word.to_string(),
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_irikey"));
    command.args(words.split(' ').map(word)).args(["-j", "2"]).stdin(Stdio::null());
    command
}

fn run(words: &str, directory: &Path, context: &str) {
    let ran = command(words, directory).output().unwrap();
    assert!(ran.status.success(), "{context}: {}", String::from_utf8_lossy(&ran.stderr));
}

/// The outputs that may not be in between are those of the old state or of the new one.
fn check_outputs(job: &StatefulJob, root: &Path, [before, after]: [&Tree; 2], context: &str) {
    for name in job.outputs {
        let (path, found) = (root.join(name), Some(fs::read(root.join(name)).ok()));
        let is_state = |state: &Tree| state.get(&path).cloned().or(Some(None)) == found;
        assert!(is_state(before) || is_state(after), "{context}: {name} is neither old nor new");
    }
    if job.name == "zipnum" {
        let read = |name: &str| fs::read(root.join(name)).ok();
        let is_of = |state: &Tree| {
            let is_same = |name: &str| state.get(&root.join(name)).is_some_and(|bytes| *bytes == read(name));
            is_same("x.cdx.gz") && (is_same("x.idx") || read("x.idx").is_none())
        };
        assert!(is_of(before) || is_of(after), "{context}: the index is beside other data");
    }
    if job.name == "store" {
        let ran = Command::new(env!("CARGO_BIN_EXE_irikey")).args(["seen", "verify"]).arg(root.join("seen")).output();
        let ran = ran.unwrap();
        assert!(ran.status.success(), "{context}: {}", String::from_utf8_lossy(&ran.stderr));
        let manifest = root.join("seen/manifest.json");
        let is_new = after[&manifest] == fs::read(&manifest).ok();
        assert!(
            !is_new || fs::read(root.join("new.csv")).ok() == after[&root.join("new.csv")],
            "{context}: keys without rows"
        );
    }
}

#[test]
fn killed_jobs_are_done_by_the_next() {
    let kills: usize = std::env::var("IRIKEY_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(3 * JOBS.len());
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().canonicalize().unwrap();
    let root = base.join("work");
    write_inputs(&base);
    let mut killed_count = 0;
    for job in &JOBS {
        write_tree(&root, &Tree::new());
        if !job.before.is_empty() {
            run(job.before, &base, job.name);
        }
        let before = tree(&root);
        let started = Instant::now();
        run(job.words, &base, job.name);
        let (after, mut duration) = (tree(&root), started.elapsed());
        for kill in 0..kills.div_ceil(JOBS.len()) {
            let context = format!("{}: kill {kill}", job.name);
            write_tree(&root, &before);
            let mut child = command(job.words, &base).stderr(Stdio::null()).spawn().unwrap();
            // From the start to a little after the end of the job, at irregular times.
            let moment =
                duration.mul_f64((kill * 7_919 % 1_000) as f64 / 950.0) + Duration::from_micros(kill as u64 * 37);
            std::thread::sleep(moment);
            child.kill().unwrap();
            match child.wait().unwrap().code() {
                None => killed_count += 1,
                Some(_) => duration = duration.min(moment),
            }
            check_outputs(job, &root, [&before, &after], &context);
            if !is_complete(job, &root, &after) {
                run(job.words, &base, &context);
            }
            let found = tree(&root);
            assert!(found.keys().eq(after.keys()), "{context}: {:?}", found.keys().collect::<Vec<_>>());
            assert!(found == after, "{context}: the files differ");
        }
    }
    println!("{killed_count} jobs were killed while they ran");
    assert!(killed_count * 4 > kills, "only {killed_count} of {kills} jobs were killed before their end");
}

/// The directory of a complete job, which another job must not write.
fn is_complete(job: &StatefulJob, root: &Path, after: &Tree) -> bool {
    let is_directory = job.words.contains("--part") && !job.words.contains("--resume");
    is_directory && tree(root) == *after
}

/// `nohup` and shells start jobs that ignore signals.
#[test]
fn an_ignored_signal_stays_ignored() {
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("x.txt");
    let script = "trap '' HUP; exec \"$0\" canon -q - -o \"$1\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_irikey")]).arg(&output);
    let mut job = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut input = job.stdin.take().unwrap();
    // Signals are handled before the output is created.
    while fs::read_dir(directory.path()).unwrap().count() == 0 && job.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    // SAFETY: kill only sends a signal, to a child that is not reaped yet.
    unsafe { libc::kill(job.id() as i32, libc::SIGHUP) };
    input.write_all(b"http://a/\n").unwrap();
    drop(input);
    assert!(job.wait().unwrap().success());
    assert_eq!(fs::read(output).unwrap(), b"http://a/\n");
}
