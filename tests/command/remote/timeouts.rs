//! Servers that do not respond, or hardly: every job ends, and names what it could not read or write.

use std::io::Read;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use super::server::{Fault, Request, Server};
use super::{FLAGS, command_at, irikey_at, local, sample, stderr};

const NAME: &str = "crawl.cdxj";

/// Much longer than the jobs take with the options below, and much shorter than with the defaults.
const LIMIT: Duration = Duration::from_secs(60);

const OPTIONS: [&str; 6] =
    ["--store-option", "read_timeout=200ms", "--store-option", "timeout=1s", "--store-option", "retry_timeout=1s"];

/// One byte per second, or more often so that the test is short: not within the time-out of a read.
const TRICKLE: Fault = Fault::Trickle(Duration::from_millis(50));

fn server(faults: impl Fn(usize, &Request) -> Fault + Send + Sync + 'static) -> Server {
    Server::start([(format!("/b/{NAME}"), sample(NAME))], faults)
}

/// Fails from a request on: the object that the command line names is missing, or its source ends with a defect.
#[test]
fn sources_end_with_a_defect() {
    for fault in [Fault::Stall, TRICKLE] {
        for first in [0, 4] {
            let fault_of_requests = fault.clone();
            let faults =
                move |number, _: &Request| if number >= first { fault_of_requests.clone() } else { Fault::None };
            for place in ["s3://b", "http"] {
                let server = server(faults.clone());
                let place = if place == "http" { format!("http://{}/b", server.address) } else { place.to_string() };
                let started = Instant::now();
                let ran = irikey_at(&server, &[&FLAGS[..], &OPTIONS, &[&format!("{place}/{NAME}")]].concat(), &[]);
                let message = stderr(&ran);
                assert!(started.elapsed() < LIMIT, "{fault:?} {first}: {:?}", started.elapsed());
                assert!(ran.status.code() == Some(4), "{fault:?} {first}: {message}");
                assert!(message.contains(&format!("{place}/{NAME}: ")), "{message}");
                assert!(message.contains("no response in time"), "{fault:?} {first}: {message}");
                assert!(local(&FLAGS, NAME).0.starts_with(&ran.stdout), "{fault:?} {first}");
                assert_eq!(first > 0, !ran.stdout.is_empty(), "{fault:?} {first}: {message}");
            }
        }
    }
}

/// A response without a range, of which only the header arrives in time: the pauses are short and many, or one is long.
#[test]
fn a_server_without_ranges_ends_its_source() {
    for pause in [Duration::from_millis(50), Duration::from_secs(1)] {
        let faults = move |number, _: &Request| if number < 2 { Fault::IgnoreRange } else { Fault::Trickle(pause) };
        let server = server(faults);
        let name = format!("http://{}/b/{NAME}", server.address);
        let started = Instant::now();
        let ran = irikey_at(&server, &[&FLAGS[..], &OPTIONS, &[&name]].concat(), &[]);
        assert!(started.elapsed() < LIMIT);
        assert!(ran.status.code() == Some(4) && stderr(&ran).contains("no response in time"), "{}", stderr(&ran));
    }
}

/// The time in which the output is not read counts neither as time without a byte nor as time of the request.
#[test]
fn slow_readers_of_the_output_do_not_end_a_request() {
    let pause = Duration::from_secs(2);
    let text = "http://example.org/0123456789/0123456789/0123456789\n".repeat(800_000);
    let server = Server::start([("/b/x".to_string(), text.clone().into_bytes())], |_, _| Fault::IgnoreRange);
    let name = format!("http://{}/b/x", server.address);
    for option in ["read_timeout=500ms", "timeout=1500ms"] {
        let mut command = command_at(&server, &["canon", "-q", "--store-option", option, &name], &[]);
        let mut running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdout = running.stdout.take().unwrap();
        let mut read = vec![0];
        stdout.read_exact(&mut read).unwrap();
        thread::sleep(pause);
        stdout.read_to_end(&mut read).unwrap();
        let ran = running.wait_with_output().unwrap();
        assert_eq!(ran.status.code(), Some(0), "{option}: {}", stderr(&ran));
        assert!(read == text.as_bytes(), "{option}");
    }
}

#[test]
fn listings_and_outputs_end() {
    for fault in [Fault::Stall, TRICKLE] {
        let fault_of_requests = fault.clone();
        let server = server(move |_, _| fault_of_requests.clone());
        let input = concat!(env!("CARGO_MANIFEST_DIR"), "/data/samples/crawl.cdxj");
        let parts = ["--store-option", "part_size=5000"];
        let jobs = [
            (vec!["canon", "-q", "s3://b/"], 4, "s3://b/: "),
            (vec!["canon", "-q", input, "-o", "s3://b/x.csv"], 5, "s3://b/x.csv: "),
            ([&["canon", "-q", input, "-o", "s3://b/x.csv"], &parts[..]].concat(), 5, "s3://b/x.csv: "),
        ];
        for (number, (job, status, name)) in jobs.into_iter().enumerate() {
            if fault == TRICKLE && number == 1 {
                // The response has no body.
                continue;
            }
            let started = Instant::now();
            let ran = irikey_at(&server, &[&job[..], &OPTIONS].concat(), &[]);
            assert!(started.elapsed() < LIMIT, "{fault:?} {job:?}: {:?}", started.elapsed());
            assert!(ran.status.code() == Some(status) && stderr(&ran).contains(name), "{fault:?}: {}", stderr(&ran));
        }
    }
}
