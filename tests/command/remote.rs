//! Tests of the command with sources in stores and on HTTP servers: a server on loopback that fails on demand.
//!
//! What is read from a store gives the same output as the same file on disk, whatever fails on the way; or exit code 4,
//! with the source named.

#[path = "remote/archives.rs"]
mod archives;
#[path = "remote/faults.rs"]
mod faults;
#[path = "remote/many_faults.rs"]
mod many_faults;
#[path = "remote/messages.rs"]
mod messages;
#[path = "remote/outputs.rs"]
mod outputs;
#[path = "remote/requests.rs"]
mod requests;
#[path = "remote/resume.rs"]
mod resume;
#[path = "remote/server.rs"]
mod server;
#[path = "remote/stores.rs"]
mod stores;
#[path = "remote/timeouts.rs"]
mod timeouts;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use faults::random;
use server::{Fault, Server};

/// Variables that would change the requests.
const VARIABLES: [&str; 7] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_PROFILE",
    "AWS_ENDPOINT_URL",
    "http_proxy",
    "HTTP_PROXY",
];

/// Runs the command with stores at `server`, without credentials.
fn irikey_at(server: &Server, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    command_at(server, arguments, variables).output().unwrap()
}

/// Runs dedup on a list (`@list`) of one object.
fn dedup_listed(server: &Server, object: &str, flags: &[&str]) -> Output {
    let directory = tempfile::tempdir().unwrap();
    let list = directory.path().join("list");
    fs::write(&list, object).unwrap();
    irikey_at(server, &[&["dedup", "-q"], flags, &[&format!("@{}", list.display())]].concat(), &[])
}

fn command_at(server: &Server, arguments: &[&str], variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_irikey"));
    VARIABLES.iter().for_each(|name| _ = command.env_remove(name));
    command.env("HOME", "/nonexistent").envs(variables.iter().copied());
    let endpoint = format!("endpoint=http://{}", server.address);
    let options = [&endpoint, "retry_pause=1ms", "retry_timeout=20s", "block_size=4096"];
    let flags = options.iter().flat_map(|option| ["--store-option", option]);
    // The flags of the test come later and count.
    command.arg(arguments[0]).args(flags).args(&arguments[1..]).stdin(Stdio::null());
    command
}

fn sample(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("data/samples").join(name)).unwrap()
}

/// URLs of 4 KB that have nothing in common, as lines and as a table that is written with these flags.
fn long_urls(count: u64, flags: &[&str]) -> (Vec<u8>, Vec<u8>) {
    let line = |number: u64| {
        format!("http://h/{}\n", (0..500).map(|at| format!("{:08x}", random(number * 1000, at))).collect::<String>())
    };
    let directory = tempfile::tempdir().unwrap();
    let [text, table] = ["x.txt", "x.parquet"].map(|name| directory.path().join(name));
    fs::write(&text, (0..count).map(line).collect::<String>()).unwrap();
    let quiet = Server::start([], |_, _| Fault::None);
    let paths = [text.to_str().unwrap(), "-o", table.to_str().unwrap()];
    assert_eq!(irikey_at(&quiet, &[&["canon", "-q"], &paths[..], flags].concat(), &[]).status.code(), Some(0));
    (fs::read(text).unwrap(), fs::read(table).unwrap())
}

/// Samples of all formats.
fn samples() -> Vec<String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/samples");
    let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| name.starts_with("crawl.") || name.starts_with("urls.")).collect();
    names.sort();
    names
}

/// What the command prints for a local file, and its exit code.
fn local(flags: &[&str], name: &str) -> (Vec<u8>, Option<i32>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/samples").join(name);
    let ran = Command::new(env!("CARGO_BIN_EXE_irikey")).args(flags).arg(path).output().unwrap();
    (ran.stdout, ran.status.code())
}

fn stderr(ran: &Output) -> String {
    String::from_utf8(ran.stderr.clone()).unwrap()
}

const FLAGS: [&str; 6] = ["canon", "-q", "--output-format", "jsonl", "--columns", "uri,key,record_offset,fault,flags"];

#[test]
fn objects_of_every_format_give_the_rows_of_the_same_files() {
    let names = samples();
    assert!(names.len() >= 14, "{names:?}");
    let server = Server::start(names.iter().map(|name| (format!("/b/{name}"), sample(name))), |_, _| Fault::None);
    for name in names {
        let expected = local(&FLAGS, &name);
        for place in ["s3://b".to_string(), format!("http://{}/b", server.address)] {
            let ran = irikey_at(&server, &[&FLAGS[..], &[&format!("{place}/{name}")]].concat(), &[]);
            assert!((&ran.stdout, ran.status.code()) == (&expected.0, expected.1), "{place} {name}: {}", stderr(&ran));
        }
    }
    // Nothing is signed without credentials, and ranges are requested.
    let requests = server.requests();
    assert!(requests.iter().all(|request| request.header("authorization").is_none()));
    assert!(requests.iter().filter(|request| request.header("range").is_some()).count() > 100);
}

#[test]
fn lists_name_objects() {
    let server = Server::start([("/b/x y.txt".to_string(), b"http://a/\n".to_vec())], |_, _| Fault::None);
    let directory = tempfile::tempdir().unwrap();
    let list = directory.path().join("list");
    fs::write(&list, "s3://b/x y.txt\n# comment\ns3://b/x y.txt\n").unwrap();
    let ran = irikey_at(&server, &["canon", "-q", &format!("@{}", list.display())], &[]);
    assert_eq!((ran.stdout, ran.status.code()), (b"http://a/\nhttp://a/\n".to_vec(), Some(0)));
    fs::write(&list, "s3://b/x y.txt\ns3://b/missing\n").unwrap();
    let ran = irikey_at(&server, &["canon", "-q", &format!("@{}", list.display())], &[]);
    let message = stderr(&ran);
    assert_eq!((ran.stdout, ran.status.code()), (b"http://a/\n".to_vec(), Some(4)));
    assert!(message.contains("s3://b/missing") && message.contains("no such object"), "{message}");
}

#[test]
fn lists_and_suffixes_may_be_objects() {
    let objects = [
        ("list", "x.txt\nx.txt\n"),
        ("psl", "// ===BEGIN ICANN DOMAINS===\ncom\na.com\n// ===END ICANN DOMAINS===\n"),
        ("x.txt", "http://x.y.a.com/\n"),
    ];
    let objects = objects.map(|(name, text)| (format!("/b/{name}"), text.as_bytes().to_vec()));
    let server = Server::start(objects, |_, _| Fault::None);
    let flags = ["canon", "-q", "@s3://b/list", "--prefix", "s3://b/", "--psl", "s3://b/psl", "--columns"];
    let ran = irikey_at(&server, &[&flags[..], &["url_host_registered_domain"]].concat(), &[]);
    let expected = "url_host_registered_domain\ny.a.com\ny.a.com\n";
    assert_eq!(
        (String::from_utf8_lossy(&ran.stdout).as_ref(), ran.status.code()),
        (expected, Some(0)),
        "{}",
        stderr(&ran)
    );
    for (words, status, expected) in [
        ("canon @s3://b/y", 4, "s3://b/y: cannot read the list"),
        ("canon --psl s3://b/y", 2, "--psl s3://b/y: cannot open: "),
        ("dedup --update-seen --seen s3://b/seen", 2, "a seen store on the local disk"),
    ] {
        let words: Vec<&str> =
            words.split(' ').chain(["s3://b/x.txt", "--columns", "url_host_registered_domain"]).collect();
        let ran = irikey_at(&server, &words, &[]);
        let message = stderr(&ran);
        assert!(ran.status.code() == Some(status) && message.contains(expected), "{words:?}: {message}");
    }
    assert!(!Path::new("s3:").exists());
}

/// The names that the command reads from `name`, in order.
fn sources_of(server: &Server, name: &str) -> Vec<String> {
    let flags = ["canon", "-q", "--output-format", "csv", "--columns", "source", name];
    let ran = irikey_at(server, &flags, &[]);
    assert_eq!(ran.status.code(), Some(0), "{name}: {}", stderr(&ran));
    String::from_utf8(ran.stdout).unwrap().lines().skip(1).map(str::to_string).collect()
}

#[test]
fn prefixes_and_patterns_stand_for_objects_in_order() {
    let keys =
        ["p/b.txt", "p/a.txt", "p/_log/x", "p/.h", "p/s/c.txt", "p/s-1/d.txt", "p/a.csv", "q/a.txt", "r/s 1/x+y"];
    let objects = keys.iter().map(|key| (format!("/b/{key}"), b"http://a/\n".to_vec()));
    // An empty object marks a directory.
    let server = Server::start(objects.chain([("/b/p/s".to_string(), Vec::new())]), |_, _| Fault::None);
    let names =
        |name: &str| sources_of(&server, name).into_iter().map(|name| name.replace("s3://b/", "")).collect::<Vec<_>>();
    assert_eq!(names("s3://b/p/"), ["p/a.csv", "p/a.txt", "p/b.txt", "p/s-1/d.txt", "p/s/c.txt"]);
    assert_eq!(names("s3://b").len(), 7);
    assert_eq!(names("s3://b/p/*.txt"), ["p/a.txt", "p/b.txt"]);
    assert_eq!(names("s3://b/?/a.txt"), ["p/a.txt", "q/a.txt"]);
    assert_eq!(names("s3://b/p/s*/[cd].txt"), ["p/s-1/d.txt", "p/s/c.txt"]);
    assert_eq!((names("s3://b/p/_*/x"), names("s3://b/r/s 1/*")), (vec!["p/_log/x".into()], vec!["r/s 1/x+y".into()]));
    for nothing in ["s3://b/p/*.gz", "s3://b/z/", "s3://b/p/**", "s3://b/p/[x"] {
        let ran = irikey_at(&server, &["canon", "-q", nothing], &[]);
        assert!(ran.status.code() == Some(4) && stderr(&ran).contains(nothing), "{}", stderr(&ran));
    }
}

/// As in directories.
#[test]
fn objects_about_parts_and_zipnum_data_are_skipped() {
    let skipped =
        "o/_manifest.json o/splits.txt o/p/cluster.idx o/p/cluster.loc z/x.idx z/x.loc z/w.idx z/v.idx z/v.loc";
    let read = ["o/p/part-0.txt", "splits.txt", "z/cluster.loc", "z/v.gz", "z/w.cdxj.gz", "z/x.cdx.gz", "z/y.loc"];
    let objects = skipped.split(' ').chain(read).map(|key| (format!("/b/{key}"), b"http://a/\n".to_vec()));
    let server = Server::start(objects, |_, _| Fault::None);
    let flags = ["canon", "-q", "--format", "lines", "--output-format", "csv", "--columns", "source", "s3://b/"];
    let ran = irikey_at(&server, &flags, &[]);
    let expected = read.map(|key| format!("s3://b/{key}\n")).concat();
    assert_eq!(String::from_utf8(ran.stdout).unwrap(), format!("source\n{expected}"));
    // A pattern chooses them.
    assert_eq!(sources_of(&server, "s3://b/z/[xy].loc"), ["s3://b/z/x.loc", "s3://b/z/y.loc"]);
}

#[test]
fn listings_have_many_pages() {
    let keys = (0..20_000).map(|number| (format!("/b/p/{number:05}"), Vec::new()));
    let server = Server::start(keys.chain([("/b/p/x".to_string(), b"http://a/\n".to_vec())]), |_, _| Fault::None);
    let ran = irikey_at(&server, &["canon", "-q", "s3://b/p/0000*", "s3://b/p/"], &[]);
    assert_eq!((&ran.stdout[..], ran.status.code()), (&b"http://a/\n"[..], Some(0)), "{}", stderr(&ran));
    // Empty objects of a listing are not requested.
    assert!(server.requests().len() < 50, "{}", server.requests().len());
}

/// Of several pages, only the names that begin like the pattern are listed, and the object that marks an incomplete output.
#[test]
fn long_listings_of_patterns_begin_with_their_first_characters() {
    let keys = || (0..5_000).map(|number| (format!("/b/p/s{number:04}/x"), b"http://a/\n".to_vec()));
    let server = Server::start(keys(), |_, _| Fault::None);
    assert_eq!(sources_of(&server, "s3://b/p/s499[89]/x*"), ["s3://b/p/s4998/x", "s3://b/p/s4999/x"]);
    let listings = server.requests().iter().filter(|request| request.target.contains("list-type=2")).count();
    assert_eq!(listings, 3 + 2, "a page, the mark, and the names that begin with s499; then two of one page");

    let objects = keys().chain([("/b/p/_incomplete".to_string(), b"x".to_vec())]);
    let server = Server::start(objects, |_, _| Fault::None);
    let ran = irikey_at(&server, &["canon", "-q", "s3://b/p/s499?/x"], &[]);
    assert!(ran.status.code() == Some(4) && stderr(&ran).contains("is not complete"), "{}", stderr(&ran));
    let ran = irikey_at(&server, &["canon", "-q", "s3://b/p/s5*/x"], &[]);
    assert!(ran.status.code() == Some(4) && stderr(&ran).contains("no objects"), "{}", stderr(&ran));
}

/// `object_store` removes the slash at the beginning of a key, which gives the key of another object.
#[test]
fn listings_with_a_slash_before_a_key_fail() {
    let keys = ["/a.txt", "a.txt", "p/b.txt"];
    let server = Server::start(keys.map(|key| (format!("/b/{key}"), b"http://a/\n".to_vec())), |_, _| Fault::None);
    for name in ["s3://b/", "gs://b/", "az://b/", "s3://b/*/*"] {
        let ran = irikey_at(&server, &["canon", "-q", name, "--store-option", "account_name=a"], &[]);
        let message = stderr(&ran);
        let expected = format!("{name}: cannot open: the listing has a key with an empty part");
        assert!(ran.status.code() == Some(4) && message.contains(&expected), "{name}: {message}");
    }
    // Here, no such key is read.
    assert_eq!(sources_of(&server, "s3://b/*.txt"), ["s3://b/a.txt"]);
    assert_eq!(sources_of(&server, "s3://b/p*/*"), ["s3://b/p/b.txt"]);
}

/// Pages are read into memory.
#[test]
fn long_pages_of_listings_are_refused() {
    const LEN: usize = (64 << 20) + 1;
    let page: &str = " ".repeat(LEN).leak();
    let server = Server::start([], move |_, _| Fault::Status(200, page));
    for name in ["s3://b/", "s3://b/*.gz", "gs://b/", "az://b/"] {
        let ran = irikey_at(&server, &["canon", "-q", name, "--store-option", "account_name=a"], &[]);
        assert!(ran.status.code() == Some(4) && stderr(&ran).contains("more than 64 MiB"), "{name}: {}", stderr(&ran));
    }
}

/// A listing that ends early is no short listing. Failures are repeated as long as the listing comes farther.
#[test]
fn listings_are_complete_or_fail() {
    let keys = || (0..5_000).map(|number| (format!("/b/p/{number:05}"), Vec::new()));
    let objects = || keys().chain([("/b/p/x".to_string(), b"http://a/\n".to_vec())]);
    let server = Server::start(objects(), |_, _| Fault::CutListing);
    for name in ["s3://b/p/", "s3://b/p/0*"] {
        let ran = irikey_at(&server, &["canon", "-q", name], &[]);
        assert!(ran.status.code() == Some(4) && stderr(&ran).contains("has more pages"), "{}", stderr(&ran));
    }
    // Every attempt comes one page farther, and fails for longer than the time for repetitions.
    let attempt = std::sync::atomic::AtomicUsize::new(0);
    let server = Server::start(objects(), move |_, request| {
        let Some(after) = request.parameter("continuation-token") else { return Fault::None };
        let pages = attempt.load(std::sync::atomic::Ordering::Relaxed);
        if !request.target.contains("list-type") || !after.ends_with(&format!("/{:05}", (pages + 1) * 1000 - 1)) {
            return Fault::None;
        }
        std::thread::sleep(std::time::Duration::from_millis(400));
        attempt.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Fault::Truncate(10)
    });
    let ran = irikey_at(&server, &["canon", "-q", "s3://b/p/", "--store-option", "retry_timeout=1s"], &[]);
    assert_eq!((&ran.stdout[..], ran.status.code()), (&b"http://a/\n"[..], Some(0)), "{}", stderr(&ran));
}

#[test]
fn keys_of_remote_tables_are_used() {
    let directory = tempfile::tempdir().unwrap();
    let table = directory.path().join("keys.parquet");
    let table = table.to_str().unwrap();
    let quiet = Server::start([], |_, _| Fault::None);
    let text = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/samples/urls.txt");
    assert_eq!(irikey_at(&quiet, &["canon", "-q", text.to_str().unwrap(), "-o", table], &[]).status.code(), Some(0));
    let server = Server::start([("/b/keys.parquet".to_string(), fs::read(table).unwrap())], faults::transient(5));
    let flags = ["dedup", "-q", "--output-format", "csv", "--columns", "uri,record"];
    let local = irikey_at(&quiet, &[&flags[..], &[table, table]].concat(), &[]);
    let remote = irikey_at(&server, &[&flags[..], &["s3://b/keys.parquet", "s3://b/keys.parquet"]].concat(), &[]);
    assert_eq!((local.status.code(), remote.status.code()), (Some(0), Some(0)), "{}", stderr(&remote));
    assert!(local.stdout == remote.stdout && local.stdout.len() > 100);
}

#[test]
fn requests_are_signed_with_credentials() {
    let server = Server::start([("/b/x".to_string(), b"http://a/\n".to_vec())], |_, _| Fault::None);
    let keys = [("AWS_ACCESS_KEY_ID", "KEY"), ("AWS_SECRET_ACCESS_KEY", "SECRET"), ("AWS_REGION", "eu-west-9")];
    let ran = irikey_at(&server, &["canon", "-q", "s3://b/x"], &keys);
    assert_eq!((&ran.stdout[..], ran.status.code()), (&b"http://a/\n"[..], Some(0)), "{}", stderr(&ran));
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join(".aws")).unwrap();
    let file = "[default]\naws_access_key_id = NO\n[crawl]\naws_access_key_id = PROFILE\naws_secret_access_key=x=y\n";
    fs::write(home.path().join(".aws/credentials"), file).unwrap();
    fs::write(home.path().join(".aws/config"), "[profile crawl]\nregion = eu-west-9\n").unwrap();
    let profile = [("HOME", home.path().to_str().unwrap()), ("AWS_PROFILE", "crawl")];
    assert_eq!(irikey_at(&server, &["canon", "-q", "s3://b/x"], &profile).status.code(), Some(0));
    let url = format!("http://us%20er:pass@{}/b/x", server.address);
    assert_eq!(irikey_at(&server, &["canon", "-q", &url], &[]).status.code(), Some(0));
    let signatures: Vec<_> =
        server.requests().iter().map(|request| request.header("authorization").unwrap().to_string()).collect();
    for (at, prefix) in [(0, "AWS4-HMAC-SHA256 Credential=KEY/"), (2, "AWS4-HMAC-SHA256 Credential=PROFILE/")] {
        assert!(signatures[at].starts_with(prefix) && signatures[at].contains("/eu-west-9/s3/"), "{}", signatures[at]);
    }
    assert_eq!(signatures.last().map(String::as_str), Some("Basic dXMgZXI6cGFzcw=="));
}

/// The last signed request, of a command without an endpoint in its flags: its signature and its session token.
fn signature(server: &Server, flags: &[&str], variables: Variables) -> (String, Option<String>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_irikey"));
    VARIABLES.iter().for_each(|name| _ = command.env_remove(name));
    let count = server.requests().len();
    let ran = command.args(["canon", "-q", "s3://b/x"]).args(flags).envs(variables.iter().copied()).output().unwrap();
    assert_eq!((&ran.stdout[..], ran.status.code()), (&b"http://a/\n"[..], Some(0)), "{}", stderr(&ran));
    let requests = server.requests();
    assert!(requests.len() > count);
    let field = |name: &str| requests.last().unwrap().header(name).map(str::to_string);
    (field("authorization").unwrap(), field("x-amz-security-token"))
}

type Variables<'a> = &'a [(&'a str, &'a str)];

/// A server that is asked, flags, variables; the key and the region of the signature, and the session token.
type Case<'a> = (&'a Server, &'a [&'a str], Variables<'a>, &'a str, Option<&'a str>);

/// The session token of a key pair is not sent with another one, and the server of the profile is not asked if another is named.
#[test]
fn options_and_variables_take_precedence_over_the_profile() {
    let server = || Server::start([("/b/x".to_string(), b"http://a/\n".to_vec())], |_, _| Fault::None);
    let (of_profile, other) = (server(), server());
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join(".aws")).unwrap();
    let keys = "[default]\naws_access_key_id = PROFILE\naws_secret_access_key = x\naws_session_token = PROFILE-TOKEN\n";
    fs::write(home.path().join(".aws/credentials"), keys).unwrap();
    let places = format!("[default]\nregion = eu-west-9\nendpoint_url = http://{}\n", of_profile.address);
    fs::write(home.path().join(".aws/config"), places).unwrap();
    let home = ("HOME", home.path().to_str().unwrap());
    let endpoint = format!("http://{}", other.address);
    let option = format!("endpoint={endpoint}");
    let keys = ["--store-option", "access_key_id=OPTION", "--store-option", "secret_access_key=y"];
    let keys_at = [&keys[..], &["--store-option", &option]].concat();
    let variables = [("AWS_ACCESS_KEY_ID", "VARIABLE"), ("AWS_SECRET_ACCESS_KEY", "z")];
    let session = [&variables[..], &[("AWS_SESSION_TOKEN", "TOKEN")]].concat();
    let at_other = [("AWS_ENDPOINT_URL", &*endpoint), ("AWS_REGION", "eu-west-8")];
    let at_other_s3 = [("AWS_ENDPOINT_URL_S3", &*endpoint), ("AWS_DEFAULT_REGION", "eu-west-8")];
    let elsewhere = [("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1")];
    let cases: [Case; 7] = [
        (&of_profile, &[], &[], "PROFILE eu-west-9", Some("PROFILE-TOKEN")),
        (&other, &[], &at_other, "PROFILE eu-west-8", Some("PROFILE-TOKEN")),
        (&other, &[], &at_other_s3, "PROFILE eu-west-8", Some("PROFILE-TOKEN")),
        (&other, &keys_at, &elsewhere, "OPTION eu-west-9", None),
        (&other, &keys_at, &session, "OPTION eu-west-9", None),
        (&of_profile, &[], &variables, "VARIABLE eu-west-9", None),
        (&of_profile, &[], &session, "VARIABLE eu-west-9", Some("TOKEN")),
    ];
    for (server, flags, variables, expected, expected_token) in cases {
        let (signature, token) = signature(server, flags, &[&[home][..], variables].concat());
        let (key, region) = expected.split_once(' ').unwrap();
        assert!(signature.contains(&format!("Credential={key}/")), "{expected}: {signature}");
        assert!(signature.contains(&format!("/{region}/s3/")), "{expected}: {signature}");
        assert_eq!(token.as_deref(), expected_token, "{expected}");
    }
}
