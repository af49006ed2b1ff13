//! What is reported of objects that cannot be read, and that no credential is.

use std::fs;

use super::server::{Fault, Request, Server};
use super::{VARIABLES, irikey_at, sample, stderr};

#[test]
fn objects_that_cannot_be_read_prevent_the_job() {
    let objects = || [("/b/x".to_string(), b"http://a/\n".to_vec()), ("/b/e".to_string(), Vec::new())];
    let server = Server::start(objects(), |_, _| Fault::None);
    let message = |server: &Server, name: &str| {
        let ran = irikey_at(server, &["canon", "-q", name], &[]);
        (ran.status.code(), stderr(&ran))
    };
    let expect = |server: &Server, name: &str, parts: &[&str]| {
        let (code, text) = message(server, name);
        assert!(code == Some(4) && parts.iter().all(|part| text.contains(part)), "{name}: {code:?} {text}");
        assert!(!text.contains("secret"), "{text}");
    };
    expect(&server, "s3://b/y", &["s3://b/y: ", "no such object (404 NoSuchKey); check the name"]);
    let file = format!("http://{}/b/y", server.address);
    expect(&server, &file, &["no such file on the server (404 NoSuchKey); check the URL"]);
    expect(&server, "s3://c/y", &["no such bucket"]);
    expect(&server, "s3:///y", &["no bucket is named"]);
    expect(&server, "s3://b/a//y", &["this is a key with an empty part"]);
    expect(&server, "s3://b/a\ty", &["or a control character"]);
    expect(&server, "s3://KEY:secret@b/y", &["s3://b/y: ", "contains credentials"]);
    expect(&server, "http://127.0.0.1:1/y", &["cannot connect"]);
    expect(&server, "https://\"a.invalid/y", &["'\"' is not allowed in a host"]);
    expect(&server, "http://127.0.0.1:9:80/y", &["the address is not valid: "]);
    assert_eq!(message(&server, "s3://b/e").0, Some(0));
    let responding = |fault: Fault| Server::start(objects(), move |_, _: &Request| fault.clone());
    let denied = "<Error><Code>AccessDenied</Code><Message>secret</Message></Error>";
    expect(
        &responding(Fault::Status(403, denied)),
        "s3://b/x",
        &["403 AccessDenied", "no credentials were found", "AWS_ACCESS_KEY_ID"],
    );
    let region = "<Error><Code>PermanentRedirect</Code></Error>";
    expect(&responding(Fault::Status(301, region)), "s3://b/x", &["in another region", "--store-option region="]);
    let server = responding(Fault::Redirect("/b/x?again".to_string()));
    expect(&server, &format!("http://{}/b/x", server.address), &["redirects again and again"]);
    assert!(server.requests().len() < 20);
    // A response of another service, and an endpoint that is no URL, at which the crate panics.
    let other = Fault::Status(200, "{\"kind\": \"secret\"}");
    expect(&responding(other), "s3://b/", &["does not respond as a store does"]);
    let ran = irikey_at(&server, &["canon", "-q", "s3://b/x", "--store-option", "endpoint=ftp://secret"], &[]);
    let message = stderr(&ran);
    assert!(ran.status.code() == Some(2) && message.contains("endpoint") && !message.contains("secret"), "{message}");
    for key in ["skip_signature", "checksum_algorithm", "server_side_encryption", "pool_max_idle_per_host"] {
        let ran = irikey_at(&server, &["canon", "-q", "s3://b/x", "--store-option", &format!("{key}=secret")], &[]);
        let message = stderr(&ran);
        assert!(message.contains(&format!(": {key}: ")) && !message.contains("secret"), "{message}");
    }
    let server = responding(Fault::Status(418, "<html>secret"));
    expect(&server, &format!("http://{}/b/x", server.address), &["the server responds with 418"]);
}

/// References of a document are relative to the address that it was read from.
#[test]
fn documents_on_servers_have_their_address_as_base() {
    let page = |base: &str| format!("<!DOCTYPE html>{base}<a href=x>").into_bytes();
    let pages = [("/b/d/p.html", page("")), ("/b/d/q.html", page("<base href=/e/>"))];
    let server = Server::start(pages.map(|(name, page)| (name.to_string(), page)), |_, _| Fault::None);
    let place = format!("http://{}/b/d", server.address);
    let uri = |name: &str, flags: &[&str]| {
        let ran = irikey_at(&server, &[&["extract", "-q", name, "--columns", "element,uri"], flags].concat(), &[]);
        let rows = String::from_utf8(ran.stdout.clone()).unwrap();
        rows.lines()
            .find_map(|row| row.strip_prefix("a,"))
            .unwrap_or_else(|| panic!("{rows}{}", stderr(&ran)))
            .to_string()
    };
    assert_eq!(uri(&format!("{place}/p.html"), &[]), format!("{place}/x"));
    assert_eq!(uri(&format!("{place}/q.html"), &[]), format!("http://{}/e/x", server.address));
    assert_eq!(uri(&format!("{place}/p.html"), &["--base", "http://h/"]), "http://h/x");
    // The name of an object in a store is no address of the page.
    assert_eq!(uri("s3://b/d/p.html", &[]), "");
}

/// The base of a page is the address after redirects, in which a secret is hidden as in others.
#[test]
fn redirected_documents_have_the_final_address_as_base() {
    for has_ranges in [true, false] {
        let page = b"<!DOCTYPE html><a href=x><a href='?y'><a href=''>".to_vec();
        let server = Server::start([("/b/new/p.html".to_string(), page)], move |_, request| match request.path() {
            "/b/old/p.html" => {
                Fault::Redirect(format!("/b/moved/p.html?{}", request.target.split('?').nth(1).unwrap()))
            }
            "/b/moved/p.html" => {
                Fault::Redirect(format!("../new/p.html?{}", request.target.split('?').nth(1).unwrap()))
            }
            _ => Fault::Typed { media_type: "text/html", has_ranges },
        });
        let place = format!("http://{}/b", server.address);
        let uris = |query: &str, flags: &[&str]| {
            let name = format!("{place}/old/p.html?{query}");
            let names = ["extract", "-q", &name, "--columns", "uri,page,source"];
            let ran = irikey_at(&server, &[&names[..], flags].concat(), &[]);
            let rows = String::from_utf8(ran.stdout.clone()).unwrap().replace(&place, "");
            assert_eq!(rows.lines().count(), 4, "{rows}{}", stderr(&ran));
            rows.lines().skip(1).fold(String::new(), |rows, row| rows + row + "|")
        };
        let page = "/new/p.html?id=1,/old/p.html?id=1|";
        let rows = format!("/new/x,{page}/new/p.html?y,{page}/new/p.html?id=1,{page}");
        for flags in [&[][..], &["--charset", "utf-8"]] {
            assert_eq!(uris("id=1", flags), rows, "{has_ranges}");
        }
        let source = "/old/p.html?sig=REDACTED|";
        assert_eq!(uris("sig=1", &[]), format!("/new/x,,{source}/new/p.html?y,,{source},,{source}"));
        let rows = uris("id=1", &["--base", "http://h/"]);
        assert!(rows.starts_with("http://h/x,http://h/,/old/p.html?id=1|"), "{rows}");
    }
}

/// The name of a file is that in its address after redirects, without the query; if that says nothing of the format, it is the
/// one that was requested.
#[test]
fn formats_are_recognized_by_the_names_of_files() {
    let page = b"<a href='x'/>".to_vec();
    let objects = [("/b/t.csv", b"n,url\n1,http://a/\n".to_vec()), ("/b/blob", b"n,url\n1,http://a/\n".to_vec())];
    let objects =
        objects.into_iter().chain([("/b/p.html", page.clone()), ("/b/p.xml", page.clone()), ("/b/page", page)]);
    let server = Server::start(objects.map(|(name, bytes)| (name.to_string(), bytes)), |_, request| {
        match request.target.split_once("?to=") {
            Some((_, place)) => Fault::Redirect(format!("/b/{place}")),
            None => Fault::None,
        }
    });
    let directory = tempfile::tempdir().unwrap();
    let list = directory.path().join("list");
    let read = |flags: &[&str], name: &str| {
        fs::write(&list, format!("http://{}/b/{name}\n", server.address)).unwrap();
        let listed = format!("@{}", list.display());
        let ran = [&listed[1..], &listed].map(|input| {
            let name = fs::read_to_string(&list).unwrap();
            let input = if input.starts_with('@') { input } else { name.trim() };
            let ran = irikey_at(&server, &[flags, &[input]].concat(), &[]);
            (String::from_utf8(ran.stdout.clone()).unwrap(), stderr(&ran))
        });
        assert_eq!(ran[0].0, ran[1].0, "{name}: {ran:?}");
        ran[0].clone()
    };
    for name in ["t.csv", "t.csv?sig=1", "x?to=t.csv", "x.tsv?to=t.csv?a=b.txt", "x.csv?to=blob?a=b.tsv", "blob?x.csv"]
    {
        assert_eq!(read(&["canon", "-q", "--output-format", "text"], name).0, "http://a/\n", "{name}");
    }
    for (name, markup) in [
        ("p.html", "html"),
        ("p.xml?page=1", "xml"),
        ("p.html?to=p.xml", "xml"),
        ("p.xml?to=p.html?q=.xml", "html"),
        ("x.xml?to=page?a=b.html", "xml"),
        ("page?a=b.xml", "xml"),
        ("x?to=page", "html"),
    ] {
        let (_, message) = read(&["extract"], name);
        assert!(message.contains(&format!("1 document ({markup})")), "{name}: {message}");
    }
}

/// An index names an archive on a server by the last part of its path; the query may be a secret. A `?` in a key is no query.
#[test]
fn indexes_name_archives_without_the_query_of_their_address() {
    let names = ["/b/x.warc.gz", "/b/get", "/b/y?z.warc.gz", "/"];
    let server = Server::start(names.map(|name| (name.to_string(), sample("crawl.warc.gz"))), |_, _| Fault::None);
    let address = server.address.to_string();
    let file = |name: &str| {
        let flags = ["canon", "-q", "--output-format", "cdxj", "--limit", "1"];
        let ran = irikey_at(&server, &[&flags[..], &[name]].concat(), &[]);
        let row = String::from_utf8(ran.stdout.clone()).unwrap();
        assert!(ran.status.success(), "{name}: {}", stderr(&ran));
        let fields: serde_json::Value = serde_json::from_str(row.splitn(3, ' ').last().unwrap()).unwrap();
        (fields["filename"].as_str().unwrap().to_string(), fields["offset"].clone())
    };
    for (name, expected) in [
        ("/b/x.warc.gz", "x.warc.gz"),
        ("/b/x.warc.gz?sig=1", "x.warc.gz"),
        ("/b/x.warc.gz?path=a/b&c=!d#e/f", "x.warc.gz"),
        ("/b/get?file=a/x.warc.gz", "get"),
        ("/?file=x.warc.gz", &address),
    ] {
        assert_eq!(file(&format!("http://{address}{name}")), (expected.to_string(), "0".into()), "{name}");
    }
    assert_eq!(file("s3://b/y?z.warc.gz").0, "y?z.warc.gz");
}

/// A reference with the query of the address has no base if that contains a secret: with another query, it would be another URI.
#[test]
fn secrets_of_addresses_are_in_no_base() {
    let page = b"<!DOCTYPE html><a href=x><a href='?y'><a href=''><a href='#f'>".to_vec();
    let server = Server::start([("/b/p.html".to_string(), page)], |_, _| Fault::None);
    let place = format!("http://{}/b", server.address);
    let uris = |query: &str| {
        let name = format!("{place}/p.html?{query}");
        let ran = irikey_at(&server, &["extract", "-q", &name, "--columns", "uri,fault,page"], &[]);
        String::from_utf8(ran.stdout).unwrap().replace(&place, "")
    };
    let pages = |rows: String| rows.replace("\n", "|");
    assert_eq!(pages(uris("token=secret")), "uri,fault,page|/x,,|/p.html?y,,|,empty,|,relative,|");
    let rows = "uri,fault,page|/x,,/p.html?id=1|/p.html?y,,/p.html?id=1|/p.html?id=1,,/p.html?id=1|\
                /p.html?id=1#f,,/p.html?id=1|";
    assert_eq!(pages(uris("id=1")), rows);
}

/// The server declares the charset of a page, with ranges and without.
#[test]
fn documents_on_servers_have_the_charset_of_their_header() {
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let pages = [
        ("/b/p.html", b"<meta charset=koi8-r><a href=\xE9>".to_vec()),
        ("/b/utf16.html", utf16("<!DOCTYPE html><a href=\u{e9}>")),
        ("/b/mark.html", b"\xEF\xBB\xBF<a href=\xC3\xA9>".to_vec()),
    ];
    let media_type = |path: &str| match path {
        "/b/utf16.html" => "text/html;charset=\"UTF-16LE\"",
        "/b/unknown.html" => "text/html; charset=klingon",
        _ => "Text/HTML; Charset=Windows-1252",
    };
    let unknown = ("/b/unknown.html", b"<a href=\xC3\xA9>".to_vec());
    for has_ranges in [true, false] {
        let objects = pages.iter().chain([&unknown]).map(|(name, page)| (name.to_string(), page.clone()));
        let server = Server::start(objects, move |_, request| Fault::Typed {
            media_type: media_type(request.path()),
            has_ranges,
        });
        let row = |name: &str, flags: &[&str]| {
            let columns = ["extract", "-q", name, "--columns", "charset,url"];
            let ran = irikey_at(&server, &[&columns[..], flags].concat(), &[]);
            let rows = String::from_utf8(ran.stdout.clone()).unwrap();
            rows.lines().nth(1).unwrap_or_else(|| panic!("{rows}{}", stderr(&ran))).to_string()
        };
        let at = |name: &str, flags: &[&str]| row(&format!("http://{}/b/{name}", server.address), flags);
        assert_eq!(at("p.html", &[]), "windows-1252,\u{e9}");
        assert_eq!(at("p.html", &["--charset", "windows-1251"]), "windows-1251,\u{439}");
        assert_eq!(at("utf16.html", &[]), "UTF-16LE,\u{e9}");
        assert_eq!(at("mark.html", &[]), "UTF-8,\u{e9}");
        assert_eq!(at("unknown.html", &[]), "UTF-8,\u{e9}");
        if has_ranges {
            // A store has media types of its own.
            assert_eq!(row("s3://b/p.html", &[]), "KOI8-R,\u{418}");
            // One to find the page and one to read it, as without a charset.
            let requests = server.requests();
            assert_eq!(requests.iter().filter(|request| request.path() == "/b/utf16.html").count(), 2);
        }
    }
}

#[test]
fn a_page_of_html_is_not_taken_for_a_packed_file() {
    let page = b"<!DOCTYPE html>\n<html><body>Please log in</body></html>\n".to_vec();
    let server = Server::start([("/b/x.warc.gz".to_string(), page)], |_, _| Fault::None);
    for name in [format!("http://{}/b/x.warc.gz?id=1", server.address), "s3://b/x.warc.gz".to_string()] {
        let ran = irikey_at(&server, &["canon", "-q", &name], &[]);
        let message = stderr(&ran);
        assert!(ran.status.code() == Some(4) && ran.stdout.is_empty(), "{message}");
        assert!(message.contains("a page of HTML or XML instead of compressed data"), "{message}");
    }
}

/// Some values are only checked when a store is opened.
#[test]
fn wrong_and_useless_options_are_reported() {
    let server = Server::start([("/b/x".to_string(), b"http://a/\n".to_vec())], |_, _| Fault::None);
    let directory = tempfile::tempdir().unwrap();
    let local = directory.path().join("x");
    fs::write(&local, "http://a/\n").unwrap();
    let local = local.to_str().unwrap();
    let http = format!("http://{}/b/x", server.address);
    let jobs = [vec!["s3://b/x"], vec![&http], vec![local, "-o", "s3://b/y.csv"]];
    for (job, option) in
        jobs.iter().zip(["skip_signature=pass", "pool_max_idle_per_host=pass", "pool_max_idle_per_host=pass"])
    {
        let ran = irikey_at(&server, &[&["canon", "-q", "--store-option", option], &job[..]].concat(), &[]);
        let message = stderr(&ran);
        assert!(ran.status.code() == Some(2) && message.contains("options of the store"), "{option}: {message}");
    }
    for job in [vec!["s3://b/x"], vec!["gs://b/x"], vec!["az://b/x", "--store-option", "account_name=a"], vec![&http]] {
        let flags = ["canon", "-q", "--store-option", "allow_http=False"];
        let ran = irikey_at(&server, &[&flags[..], &job].concat(), &[]);
        let message = stderr(&ran);
        assert!(ran.status.code() == Some(2) && message.contains("allow_http forbids"), "{job:?}: {message}");
    }
    let forbidden = irikey_at(&server, &["canon", "-q", "s3://b/x"], &[("AWS_ALLOW_HTTP", "false")]);
    assert!(forbidden.status.code() == Some(2) && stderr(&forbidden).contains("allow_http forbids"));
    let flags = ["--store-option", "allow_http=false", "--store-option", "allow_http=true"];
    let allowed = irikey_at(&server, &[&["canon", "-q", "s3://b/x"], &flags[..]].concat(), &[]);
    assert_eq!(allowed.status.code(), Some(0), "{}", stderr(&allowed));
    let is_useless = |job: &[&str]| {
        let ran = irikey_at(&server, &[&["canon", "-q"], job].concat(), &[]);
        assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
        stderr(&ran).contains("--store-option has no effect")
    };
    assert!(is_useless(&[local]));
    assert!(!is_useless(&["s3://b/x"]) && !is_useless(&[local, "-o", "s3://b/y.csv"]));
}

/// An endpoint without TLS is one that the user chose, however it is named; letter case of schemes does not matter.
#[test]
fn endpoints_without_tls_are_allowed() {
    let server = Server::start([("/b/x".to_string(), b"http://a/\n".to_vec())], |_, _| Fault::None);
    let run = |arguments: &[&str], variable: (&str, &str)| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_irikey"));
        VARIABLES.iter().for_each(|name| _ = command.env_remove(name));
        command.env("HOME", "/nonexistent").envs([variable]).args(["canon", "-q"]).args(arguments).output().unwrap()
    };
    let account = ["--store-option", "account_name=a"];
    for address in ["http", "HTTP"].map(|scheme| format!("{scheme}://{}", server.address)) {
        let [any, azure] = ["endpoint", "azure_endpoint"].map(|key| format!("{key}={address}"));
        let jobs = [("s3", &any), ("gs", &any), ("az", &any), ("az", &azure)];
        for (scheme, option) in jobs {
            let ran = run(&[&[&format!("{scheme}://b/x"), "--store-option", option], &account[..]].concat(), ("X", ""));
            assert_eq!(ran.status.code(), Some(0), "{scheme} {option}: {}", stderr(&ran));
        }
        let ran = run(&["s3://b/x"], ("AWS_ENDPOINT_URL", &address));
        assert_eq!(ran.status.code(), Some(0), "{address}: {}", stderr(&ran));
        let base = format!("base_url={address}");
        let ran = run(&["gs://b/x", "--store-option", &base, "--store-option", "allow_http=false"], ("X", ""));
        assert!(ran.status.code() == Some(4) && stderr(&ran).contains("has no TLS; check"), "{}", stderr(&ran));
    }
}

/// Credentials are in no message, no report, no metadata and no column.
#[test]
fn credentials_are_shown_nowhere() {
    let text = b"http://a/\nx\n".to_vec();
    let server = Server::start([("/b/x".to_string(), text)], |_, request| match request.path() {
        "/b/x" => Fault::None,
        _ => Fault::Status(403, ""),
    });
    let directory = tempfile::tempdir().unwrap();
    let (out, report) = (directory.path().join("x.parquet"), directory.path().join("x.json"));
    let place = &server.address;
    let good = format!("http://user:secret1@{place}/b/x?X-Amz-Signature=secret2");
    let bad = format!("@{}", directory.path().join("list").display());
    fs::write(&bad[1..], format!("http://user:secret1@{place}/b/y?sig=secret2\n")).unwrap();
    let files = ["-o", out.to_str().unwrap(), "--report", report.to_str().unwrap()];
    let option = ["--store-option", "secret_access_key=secret3", "--store-option=access_key_id=secret4"];
    let ran = irikey_at(
        &server,
        &[&["canon", &good, &bad, "--columns", "+source", "--compression", "none"][..], &files, &option].concat(),
        &[],
    );
    assert_eq!(ran.status.code(), Some(4), "{}", stderr(&ran));
    let texts = [stderr(&ran).into_bytes(), ran.stdout, fs::read(&out).unwrap(), fs::read(&report).unwrap()];
    for text in &texts {
        let text = String::from_utf8_lossy(text);
        assert!(!text.contains("secret1") && !text.contains("secret2"), "{text}");
        assert!(!text.contains("secret3") && !text.contains("secret4"), "{text}");
    }
    assert!(String::from_utf8_lossy(&texts[3]).contains("X-Amz-Signature=REDACTED"));
    let denied = format!("http://user:secret1@{place}/b/none");
    let output = "s3://user:secret1@b/x.csv";
    for (flags, message) in [
        (["--output-format", "csv", "--key", "protocol", "--equivalences", &denied], "/b/none: cannot open: access"),
        (["--max-url", "1M", "-o", output, "--report", output], "s3://b/x.csv are the same file"),
    ] {
        let ran = irikey_at(&server, &[&["canon", "-q", "s3://b/x"][..], &flags].concat(), &[]);
        assert!(ran.status.code() == Some(2) && stderr(&ran).contains(message), "{}", stderr(&ran));
        assert!(!stderr(&ran).contains("secret1"), "{}", stderr(&ran));
    }
    let wrong = irikey_at(&server, &["canon", "-q", "s3://b/x", "--store-option", "klingon=secret5"], &[]);
    assert!(
        wrong.status.code() == Some(2) && stderr(&wrong).contains("klingon") && !stderr(&wrong).contains("secret5")
    );
}
