"""Every policy of the command is a parameter; the command inside the package; types and help."""

import importlib
import inspect
import io
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import tracemalloc
import typing

import pyarrow as pa
import pyarrow.parquet
import pytest

import irikey
from irikey import _irikey

#: Flags of the command whose parameter has another name.
RENAMED = {"base": "base", "rules": "recipe", "key": "columns", "skeleton": "columns", "iri": "columns"}
#: An example of each policy: the options, a URL that they change, and the result.
EXAMPLES = {
    "base": ({"base": irikey.lit("http://b/")}, "x", "http://b/x"),
    "profile": ({"profile": "whatwg"}, "http://h/\\", "http://h//"),
    "charset": ({"charset": irikey.lit("windows-1251")}, b"http://h/\xff", "http://h/%D1%8F"),
    "query_charset": ({"query_charset": irikey.lit("windows-1251")}, "http://h/?\u044f", "http://h/?%FF"),
    "literal_base": ({"base": irikey.lit("http://h/a/../b/c"), "literal_base": True}, "?x", "http://h/b/c?x"),
    "strict": ({"strict": True}, "http://h/a b", None),
    "rung": ({"rung": "syntax"}, "HTTP://h:80", "http://h:80"),
    "drop_fragment": ({"drop_fragment": True}, "http://h/#a", "http://h/"),
    "assume_scheme": ({"assume_scheme": "https"}, "h.example/a", "https://h.example/a"),
    "max_url": ({"max_url": 10}, "http://h/12", None),
    "trim": ({"trim": True}, " http://h/ ", "http://h/"),
    "inner_spaces": ({"inner_spaces": "remove"}, "http://h/a b", "http://h/ab"),
    "character_references": ({"character_references": "html"}, "http://h/?a&amp;b", "http://h/?a&b"),
    "backslashes": ({"backslashes": "slash"}, "http://h\\a", "http://h/a"),
}


def flags():
    """The flags of `irikey canon --help` under the headings of policies."""
    text = subprocess.run([sys.executable, "-m", "irikey", "canon", "--help"], check=True, capture_output=True, text=True).stdout
    sections = re.split(r"^([A-Z][A-Za-z ]+):$", text, flags=re.MULTILINE)
    chosen = {sections[i]: sections[i + 1] for i in range(1, len(sections), 2)}
    return {
        flag.replace("-", "_")
        for name in ("Canonical form", "Repairs")
        for flag in re.findall(r"^ +(?:-\w, )?--([a-z-]+)", chosen[name], re.MULTILINE)
    }


OPTIONS = {"Unpack[Policy]": irikey.Policy, "Unpack[Options]": irikey.Options}


def parameters(function):
    found = set()
    for name, parameter in inspect.signature(function).parameters.items():
        found |= set(typing.get_type_hints(OPTIONS[parameter.annotation])) if parameter.kind is parameter.VAR_KEYWORD else {name}
    return found


def test_every_policy_of_the_command_is_a_parameter():
    expected = {RENAMED.get(flag, flag) for flag in flags()}
    assert expected == set(irikey.Canonicalizer().configuration) - {"url", "types"}
    for function in (irikey.uris, irikey.keys, irikey.canonicalize, irikey.read, irikey.batch_function):
        assert expected - {"columns"} <= parameters(function), function
    assert set(EXAMPLES) | {"columns", "recipe", "psl", "equivalences", "key_hash"} == expected
    policy, options = set(irikey.Policy.__annotations__), set(typing.get_type_hints(irikey.Options))
    for function, own in ((irikey.uri, options), (irikey.key, options), (irikey.iri, policy)):
        assert parameters(function) == own | {"reference", "base"}, function


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_policy_has_an_effect(name):
    options, url, expected = EXAMPLES[name]
    assert irikey.uris([url], **options) == [expected]
    assert pa.table(irikey.canonicalize([url], **options))["uri"].to_pylist() == [expected]
    others = {key: value for key, value in options.items() if key != name}
    if name != "literal_base":
        assert irikey.uris([url], **others) != [expected]


def test_a_label_for_an_array_needs_no_lit():
    url, expected = "http://h/?\u044f", "http://h/?%FF"
    assert irikey.uris([url], query_charset="windows-1251") == [expected]
    polars = pytest.importorskip("polars")
    importlib.import_module("irikey.polars")
    assert polars.Series([url]).irikey.uri(query_charset="windows-1251").to_list() == [expected]
    assert polars.Series([b"http://h/\xff"]).irikey.uri(charset="windows-1251").to_list() == ["http://h/%D1%8F"]
    con = pytest.importorskip("duckdb").connect()
    importlib.import_module("irikey.duckdb").register(con, query_charset="windows-1251")
    assert con.execute("SELECT irikey_uri(?)", [url]).fetchall() == [(expected,)]


def test_the_contents_of_options_are_not_copied_by_each_call():
    polars = pytest.importorskip("polars")
    psl = b"// ===BEGIN ICANN DOMAINS===\nexample\n" + b"// a comment\n" * 100_000
    frame, add = polars.DataFrame({"url": ["HTTP://h"]}), irikey.batch_function(columns=["uri"], psl=psl)
    for call in (lambda: add(frame), lambda: irikey.uris(frame["url"], psl=psl)):
        call()
        tracemalloc.start()
        try:
            call()
            assert tracemalloc.get_traced_memory()[1] < len(psl) / 2
        finally:
            tracemalloc.stop()


def test_suffix_lists_and_hashes(tmp_path):
    (tmp_path / "psl").write_text("// ===BEGIN ICANN DOMAINS===\nexample\nb.example\n")
    column = "url_host_registered_domain"
    for psl in (tmp_path / "psl", str(tmp_path / "psl"), (tmp_path / "psl").read_bytes()):
        canonicalizer = irikey.Canonicalizer(columns=[column], psl=psl)
        assert pa.table(canonicalizer(["http://x.a.b.example/"]))[column].to_pylist() == ["a.b.example"]
        assert canonicalizer.configuration["psl"] == (tmp_path / "psl").read_bytes()
        assert pa.table(irikey.canonicalize(["http://x.a.b.example/"], columns=[column], psl=psl))[column].to_pylist() == [
            "a.b.example"
        ]
        assert pa.table(irikey.read(b"http://x.a.b.example/\n", [column], psl=psl).table)[column].to_pylist() == ["a.b.example"]
    assert irikey.keys(["http://h/"], key_hash="blake3") == [irikey.key("http://h/", key_hash="blake3")]


def test_files_of_options_are_read_again_only_if_they_change(tmp_path, monkeypatch):
    opened, path, column = [], tmp_path / "psl", "url_host_registered_domain"

    def counting(file, *arguments, **options):
        opened.append(file)
        return io.open(file, *arguments, **options)

    def domain():
        return pa.table(irikey.canonicalize(["http://x.a.b.example/"], columns=[column], psl=path))[column][0].as_py()

    monkeypatch.setattr("builtins.open", counting)
    for suffixes, expected in (("example\n", "b.example"), ("example\nb.example\n", "a.b.example")):
        path.write_text("// ===BEGIN ICANN DOMAINS===\n" + suffixes)
        opened.clear()
        assert [domain() for _ in range(3)] == [expected] * 3
        assert irikey.uri("HTTP://h", psl=path) == irikey.uri("HTTP://h", psl=str(path)) == "http://h/"
        assert len(opened) == 1, opened
    # What can be read once only is not cached.
    os.mkfifo(tmp_path / "pipe")
    for suffixes, expected in (("example", "b.example"), ("b.example", "a.b.example")):
        writer = threading.Thread(target=path.with_name("pipe").write_text, args=["// ===BEGIN ICANN DOMAINS===\n" + suffixes])
        writer.start()
        found = pa.table(irikey.canonicalize(["http://x.a.b.example/"], columns=[column], psl=path.with_name("pipe")))
        writer.join()
        assert found[column].to_pylist() == [expected]


def test_contradictions_are_refused_with_the_names_of_parameters():
    for options, message in [
        ({"literal_base": True}, "literal_base needs base="),
        ({"profile": "whatwg", "strict": True}, "omit strict"),
        ({"assume_scheme": "1"}, "assume_scheme is the name of a scheme"),
        ({"inner_spaces": "split"}, "makes several rows of one"),
        ({"inner_spaces": "x"}, 'inner_spaces is "remove" or "encode"'),
        ({"base": irikey.lit("x")}, "^base: "),
        ({"charset": irikey.lit("klingon")}, "^charset: unknown charset"),
        ({"recipe": "x"}, "^recipe: unknown recipe"),
        ({"profile": "x"}, "expected one of rfc3987"),
        ({"psl": b"\xff"}, "^psl: "),
        ({"rung": "protocol"}, "needs? equivalences="),
        ({"equivalences": b""}, "equivalences= needs rung"),
    ]:
        with pytest.raises(ValueError, match=message):
            irikey.canonicalize(["http://h"], **options)
    with pytest.raises(irikey.Fault) as caught:
        irikey.uri("x")
    assert "base=" in str(caught.value) and "--" not in str(caught.value)


def test_comparisons_read_well():
    same, other = irikey.compare("http://h", "HTTP://h:80/"), irikey.compare("http://h/a", "http://h/b")
    assert same and same.rung == "scheme" and str(same) == "equivalent on the rung scheme: http://h/"
    assert not other and other == None and str(other) == "different: http://h/a is not http://h/b"  # noqa: E711
    assert {same, same} == {same} and same != other


def test_flags_are_those_of_the_core():
    for enum, declared in ((irikey.Flags, _irikey._FLAGS), (irikey.SpoofingFlags, _irikey._SPOOFING_FLAGS)):
        assert [(flag.name.lower().replace("_", "-"), flag.value) for flag in enum] == declared
    row = pa.table(irikey.canonicalize(["http://h/a b%"])).to_pylist()[0]
    assert irikey.Flags(row["flags"]) == irikey.Flags.EXCLUDED | irikey.Flags.STRAY_PERCENT


def test_nothing_is_replaced_in_single_references():
    assert irikey.resolve("http://h/", b"\xff").encode("utf-8", "surrogateescape") == b"http://h/\xff"
    assert irikey.explain(b"http://h/\xff")["rungs"]["simple"]["text"] == "http://h/\udcff"
    assert irikey.uri("http://h/\udcff") == irikey.uri(b"http://h/\xff") == "http://h/%FF"
    assert "\ufffd" not in irikey.surt(b"http://h/\xff")


def test_the_command_is_in_the_package(tmp_path):
    (tmp_path / "urls").write_text("HTTP://h\n")
    done = subprocess.run([sys.executable, "-m", "irikey", "canon", tmp_path / "urls"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "http://h/\n")
    done = subprocess.run([sys.executable, "-m", "irikey", "canon", "--nope"], capture_output=True, text=True)
    assert done.returncode == 2 and "--nope" in done.stderr
    for closed, status in [("canon urls >&-", 5), ("canon <&-", 4), ("canon urls -o out.txt <&- >&- 2>&-", 0)]:
        done = subprocess.run(
            ["sh", "-c", f"'{sys.executable}' -m irikey {closed}"], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == status, (closed, done.stderr)
    assert (tmp_path / "out.txt").read_text() == "http://h/\n"


WARC = b"".join(
    b"WARC/1.0\r\nWARC-Type: %s\r\n%sWARC-Date: 2020-01-02T03:04:05Z\r\nContent-Length: %d\r\n\r\n%s\r\n\r\n"
    % (kind, target, len(body), body)
    for kind, target, body in [
        (b"warcinfo", b"", b""),
        (b"response", b"WARC-Target-URI: <http://h/\xff>\r\n", b"HTTP/1.1 301 x\r\nLocation: /\r\n\r\n"),
        (b"revisit", b"WARC-Target-URI: HTTP://H\r\n", b"HTTP/1.1 200 OK\r\n\r\n"),
    ]
)


def test_files_are_read_by_the_readers_of_the_command(tmp_path):
    import gzip

    (tmp_path / "x.warc.gz").write_bytes(gzip.compress(WARC))
    columns = ["source", "record", "input", "uri", "fault", "fetch_status"]
    for source, name in ((WARC, "bytes"), (tmp_path / "x.warc.gz", str(tmp_path / "x.warc.gz")), (gzip.compress(WARC), "bytes")):
        table, counts = irikey.read(source, columns)
        rows = pa.table(table).to_pylist()
        assert [row["uri"] for row in rows] == ["http://h/%FF", "http://h/"] and counts["skipped"] == 1
        assert [row["fetch_status"] for row in rows] == [301, 200] and rows[0]["input"] == b"http://h/\xff"
        assert rows[0]["source"] == name and counts["records"] == 2 and counts["errors"] == []
    table, counts = irikey.read(gzip.compress(WARC)[:-20], columns)
    assert len(counts["errors"]) == 1 and "gzip" in counts["errors"][0] and counts["records"] == len(table)
    table, counts = irikey.read(WARC, columns, record_types=["revisit"])
    assert (len(table), counts["skipped"]) == (1, 2)
    table, counts = irikey.read(WARC, columns, record_types=["all"])
    assert pa.table(table)["fault"].to_pylist() == ["no-url", None, None] and counts["skipped"] == 0
    with pytest.raises(ValueError, match="unknown format"):
        irikey.read(b"", format="docx")


def test_columns_of_tables_are_chosen_by_name_or_number(tmp_path):
    def uris(source, **options):
        table, counts = irikey.read(source, ["uri"], **options)
        assert counts["errors"] == []
        return pa.table(table)["uri"].to_pylist()

    rows = b"when,seen,from,cs,url\n1,a?\xe9,http://p/,latin1,http://x/\n2,b,,,http://y/\n"
    assert uris(rows, format="csv") == ["http://x/", "http://y/"]
    assert uris(rows, url="url") == ["http://x/", "http://y/"]
    library = irikey.lit("http://l/")
    for url in ("seen", "2"):
        # The first record is then a header by its names alone.
        for options in ({}, {"format": "csv"}):
            found = uris(rows, url=url, base=("from", library), charset=("cs", irikey.lit("utf-8")), **options)
            assert found == ["http://p/a?%C3%A9", "http://l/b"]
    assert uris(b"page,link\nhttp://p/,a\n", url="link", base="page") == ["http://p/a"]
    assert uris(b"url,doc\nhttp://h/?\xc3\xa9,latin1\n", query_charset="doc") == ["http://h/?%E9"]
    assert uris(b'{"page": {"link": "http://a/"}}\n', url="/page/link") == ["http://a/"]
    pa.parquet.write_table(pa.table({"link": ["http://a/"], "url": ["http://b/"]}), tmp_path / "x.parquet")
    assert uris(tmp_path / "x.parquet", url="link") == ["http://a/"]
    # The canonicalizer's own column is that of batches and of files.
    canonical = pickle.loads(pickle.dumps(irikey.Canonicalizer(url="seen", base="from", columns=["uri"])))
    assert pa.table(canonical.read(b"seen,from\nx,http://p/\n")[0])["uri"].to_pylist() == ["http://p/x"]
    assert pa.table(irikey.Canonicalizer().canonicalize(pa.table({"url": ["HTTP://h"]})))["uri"].to_pylist() == ["http://h/"]


def test_columns_that_files_do_not_have_are_refused():
    for parameter in ("url", "base", "charset", "query_charset"):
        with pytest.raises(KeyError, match="there is no column .+nope.+; the columns are 1 .+when.+, 2 .+url"):
            irikey.read(b"when,url\n1,http://h/\n", format="csv", **{parameter: "nope"})
        with pytest.raises(KeyError, match="there is no column .+nope"):
            irikey.read(b"http://h/\n", **{parameter: "nope"})
        with pytest.raises(ValueError, match=f"^{parameter}: column \"nope\" is for tables, and the format is \"cdxj\""):
            irikey.read(b"", format="cdxj", **{parameter: "nope"})
    with pytest.raises(ValueError, match="cannot tell which column holds the URL; choose one with url= NAME"):
        irikey.read(b"a,b\nx,y\n", format="csv")


def test_messages_have_names_of_files_as_they_are(tmp_path):
    for name in ("my--column.csv", "--base.csv", "a --column b.csv"):
        (tmp_path / name).write_text("a,b\nx,y\n")
        with pytest.raises(ValueError, match="choose one with url= NAME") as caught:
            irikey.read(tmp_path / name, format="csv")
        assert str(caught.value).startswith(f"{tmp_path / name}: ")
    with pytest.raises(irikey.Fault) as caught:
        irikey.Canonicalizer(max_url=9).uri("http://h/1")
    assert str(caught.value).endswith("longer than the maximum length (max_url=)")


def test_values_in_paths_are_columns(tmp_path):
    for crawl in ("a", "b%20c"):
        (tmp_path / f"crawl={crawl}" / "n=1").mkdir(parents=True)
        (tmp_path / f"crawl={crawl}" / "n=1" / "x").write_text("HTTP://h\n")
    for types in ("arrow", "spark"):
        canonicalizer = irikey.Canonicalizer(types=types, recipe="surt-ia")
        table = pa.table(canonicalizer.read(tmp_path, columns=["n=", "uri", "crawl=", "key", "crawl="])[0])
        assert table.column_names == ["n", "uri", "crawl", "key"]
        rows = sorted(table.to_pylist(), key=lambda row: row["crawl"])
        assert [(row["crawl"], row["n"], row["uri"]) for row in rows] == [("a", "1", "http://h/"), ("b c", "1", "http://h/")]
        assert rows[0]["key"] == irikey.key("http://h/", recipe="surt-ia")
    assert pa.table(irikey.read(tmp_path, ["uri", "crawl="]).table).column_names == ["uri", "crawl"]
    for wrong in ("crawl", "uri=", "="):
        with pytest.raises(ValueError, match="^columns: "):
            irikey.read(tmp_path, [wrong])
    with pytest.raises(ValueError, match='"crawl" describes records of files'):
        irikey.canonicalize(["x"], columns=["crawl="])


def test_arguments_without_an_effect_on_files_are_refused(tmp_path):
    assert pa.table(irikey.read(b"x\n", base=irikey.lit("http://b/")).table)["uri"].to_pylist() == ["http://b/x"]
    for threads in (-1, 513, 2**70, -(2**70)):
        with pytest.raises(ValueError, match="threads is from 1 to 512, or 0 for one per core"):
            irikey.read(b"http://a/\n", threads=threads)
    with pytest.raises(ValueError, match="record_types: unknown type \"responses\"; expected one of all, warcinfo, response"):
        irikey.read(b"x\n", record_types=["responses"])
    assert irikey.read(b"x\n", record_types=["Response", "all"], columns=[]).table.num_rows == 1


def test_a_path_names_what_it_names_for_the_command(tmp_path, monkeypatch):
    import zipfile

    with zipfile.ZipFile(tmp_path / "x.wacz", "w") as archive:
        archive.writestr("archive/a.warc", WARC)
        archive.writestr("archive/b.warc", WARC)
        archive.writestr("datapackage.json", "{}")
    (tmp_path / "folder").mkdir()
    for name, line in (("1", "http://a/"), ("2", "http://b/"), ("_3", "http://c/")):
        (tmp_path / "folder" / name).write_text(line)
    (tmp_path / "@x").write_text("http://d/")
    (tmp_path / "-").write_text("http://e/")
    monkeypatch.chdir(tmp_path)
    archive, member = tmp_path / "x.wacz", "archive/b.warc"
    for source, options, expected in [
        (archive, {}, [(f"{archive}!archive/{name}.warc", i) for name in "ab" for i in (1, 2)]),
        (f"{archive}!{member}", {}, [(f"{archive}!{member}", 1), (f"{archive}!{member}", 2)]),
        (archive, {"name": "n"}, [(f"n!archive/{name}.warc", i) for name in "ab" for i in (1, 2)]),
        (archive.read_bytes(), {"name": "n"}, [(f"n!archive/{name}.warc", i) for name in "ab" for i in (1, 2)]),
        (archive.read_bytes(), {}, [(f"bytes!archive/{name}.warc", i) for name in "ab" for i in (1, 2)]),
        ("folder", {}, [("folder/1", 1), ("folder/2", 1)]),
        ("folder/", {}, [("folder/1", 1), ("folder/2", 1)]),
        ("folder", {"name": "n"}, [("n/1", 1), ("n/2", 1)]),
        ("folder/", {"name": "n"}, [("n/1", 1), ("n/2", 1)]),
        ("@x", {}, [("@x", 1)]),
        ("-", {"name": "n"}, [("n", 1)]),
    ]:
        table, counts = irikey.read(source, ["source", "record", "uri"], **options)
        rows = pa.table(table).to_pylist()
        assert sorted((row["source"], row["record"]) for row in rows) == expected and counts["errors"] == [], source
        assert None not in [row["uri"] for row in rows]


@pytest.mark.parametrize("has_writer", [False, True])
def test_a_pipe_that_nothing_is_written_to_can_be_interrupted(tmp_path, has_writer):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    # Without a writer, opening the pipe waits; with one that writes nothing, reading it does.
    writer = os.open(pipe, os.O_RDWR) if has_writer else None
    code = f"import irikey; print('begin', flush=True); irikey.read({str(pipe)!r})"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "begin\n"
        try:
            # The first signal may come before the call.
            for _ in range(200):
                try:
                    process.wait(timeout=0.3)
                    break
                except subprocess.TimeoutExpired:
                    process.send_signal(signal.SIGINT)
            assert process.poll() is not None, "the call was not interrupted"
        finally:
            process.kill()
        assert "KeyboardInterrupt" in process.stderr.read()
    if writer is not None:
        os.close(writer)


def test_an_object_of_a_server_is_read_by_its_url():
    import functools
    import http.server
    import pathlib
    import threading

    samples = pathlib.Path(__file__).parents[2] / "data" / "samples"
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=samples)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/crawl.warc.gz"
        # The server needs the interpreter while it answers.
        table, counts = irikey.read(url, ["source", "uri"])
        with pytest.raises(OSError, match="no such file on the server .404."):
            irikey.read(f"{url}.nope")
        if hasattr(os, "fork"):
            # The child does not have the threads that read from the network.
            code = (
                "import os, sys, irikey; irikey.read(sys.argv[1]); child = os.fork(); "
                "irikey.read(sys.argv[1]) if child == 0 else sys.exit(os.waitpid(child, 0)[1])"
            )
            subprocess.run([sys.executable, "-c", code, url], check=True, timeout=300)
        server.shutdown()
    found, expected = pa.table(table), pa.table(irikey.read(samples / "crawl.warc.gz", ["uri"]).table)
    assert found["uri"] == expected["uri"] and set(found["source"].to_pylist()) == {url} and counts["errors"] == []


def test_a_path_that_cannot_be_opened_raises_what_open_raises(tmp_path):
    for name in ("file", "secret"):
        (tmp_path / name).write_text("http://h")
    (tmp_path / "secret").chmod(0)
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "nope", tmp_path / "file" / "x", tmp_path / ("x" * 300), "", "a\0b"):
        with pytest.raises((OSError, ValueError)) as expected:
            open(path)
        for read in (irikey.read, irikey.equivalences):
            with pytest.raises(type(expected.value)) as found:
                read(path)
            assert type(found.value) is type(expected.value), path
        if isinstance(expected.value, OSError):
            with pytest.raises(OSError) as found:
                irikey.read(path)
            assert (found.value.errno, found.value.filename) == (expected.value.errno, str(path))
    with pytest.raises(FileNotFoundError, match="no files in this directory"):
        irikey.read(tmp_path / "empty")
    with pytest.raises(IsADirectoryError):
        irikey.equivalences(tmp_path)
    with pytest.raises(ValueError, match="file is not a table of equivalences"):
        irikey.equivalences(tmp_path / "file")
    with pytest.raises(TypeError, match="expected str, bytes or os.PathLike object, not int"):
        irikey.equivalences(0)
    with pytest.raises(ValueError, match="^the table is not a table of equivalences; create one with irikey learn$"):
        irikey.equivalences(pa.table({"kind": ["x"]}))
    for use in (irikey.Canonicalizer, lambda **options: irikey.canonicalize(["x"], **options)):
        for option in ("psl", "equivalences"):
            with pytest.raises(FileNotFoundError):
                use(**{option: tmp_path / "nope"})
    if os.geteuid() != 0:
        with pytest.raises(PermissionError):
            irikey.read(tmp_path / "secret")
        return
    # The rights of root do not end at those of a file.
    os.seteuid(65534)
    try:
        with pytest.raises(PermissionError):
            irikey.read(tmp_path / "secret")
    finally:
        os.seteuid(0)


def test_wrong_arguments_raise_the_class_of_the_mistake():
    for error, call in [
        (KeyError, lambda: irikey.canonicalize(pa.table({"link": ["x"]}))),
        (KeyError, lambda: irikey.canonicalize(["x"], base="page")),
        (KeyError, lambda: irikey.Canonicalizer().array(["x"], "nope")),
        (KeyError, lambda: irikey.batch_function()(pa.table({"link": ["x"]}))),
        (ValueError, lambda: irikey.canonicalize(["x"], columns=["nope"])),
        (ValueError, lambda: irikey.uris(["x"], max_url=-1)),
        (ValueError, lambda: irikey.uris(["x"], max_url=0)),
        (ValueError, lambda: irikey.uris(["x"], max_url=2**70)),
        (ValueError, lambda: irikey.uris(["x"], max_url=-(2**70))),
        (TypeError, lambda: irikey.uris(["x"], max_url="1")),
        (TypeError, lambda: irikey.uris(["x"], nope=1)),
        (TypeError, lambda: irikey.uris(["x"], strict="yes")),
    ]:
        with pytest.raises(error) as found:
            call()
        assert type(found.value) is error
    with pytest.raises(TypeError, match="record_types is a list"):
        irikey.read(b"", record_types="all")
    for call in (
        lambda: irikey.read(b"", urls="link"),
        lambda: irikey.uris(["x"], columns=["uri"]),
        lambda: irikey.uris(["x"], nope=1),
    ):
        with pytest.raises(TypeError, match="unexpected keyword argument '(urls|columns|nope)'"):
            call()
    with pytest.raises(TypeError, match="unexpected keyword argument 'types'; expected one of ") as found:
        irikey.batch_function(types="spark")
    assert "types" not in str(found.value).partition("; ")[2]
    with pytest.raises(ValueError, match="expected one of simple, syntax, scheme$"):
        irikey.uri("http://h", rung="protocol")
    with pytest.raises(ValueError, match="expected one of simple, syntax, scheme, protocol$"):
        irikey.uris(["http://h"], rung="nope")


def test_an_option_of_a_wrong_type_is_refused_after_an_equal_one():
    for function in (lambda **options: irikey.uris(["http://h"], **options), lambda **options: irikey.uri("http://h", **options)):
        for name, value, wrong in (("strict", True, 1), ("trim", False, 0), ("max_url", 2_000, 2_000.0)):
            function(**{name: value}, drop_fragment=True)
            with pytest.raises(TypeError, match=f"^{name}: expected "):
                function(**{name: wrong}, drop_fragment=True)


def test_messages_about_a_column_that_is_missing_name_values_for_all_rows():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"url": ["x"]})
    for data in (frame, pa.table(frame), pa.record_batch(frame), ["x"], pa.array(["x"])):
        for option, value in (("base", "http://b/"), ("charset", "latin1"), ("query_charset", "latin1")):
            with pytest.raises(KeyError) as found:
                irikey.canonicalize(data, **{option: value})
            assert found.value.args == (f'unknown column "{value}"; expected one of url, or irikey.lit(value) for all rows',)


def test_a_type_with_the_name_of_another_is_named_with_its_module():
    numpy = pytest.importorskip("numpy")
    with pytest.raises(TypeError, match="^strict: expected bool, found numpy.bool_?$"):
        irikey.uris(["x"], strict=numpy.True_)


def test_messages_name_the_argument_and_both_types():
    reference, canonicalizer = "http://h", irikey.Canonicalizer()
    for expected, call in [
        ("columns is a list of names such as ['uri'], not a str", lambda: irikey.Canonicalizer(columns="uri")),
        ("columns is a list of names such as ['uri'], not a str", lambda: canonicalizer.read(b"x", columns="uri")),
        ("columns: expected str, found int", lambda: irikey.Canonicalizer(columns=[3])),
        ("columns: expected a list of names, found int", lambda: irikey.Canonicalizer(columns=3)),
        ("columns: expected a list of names, found int", lambda: irikey.read(b"x", 3)),
        ("psl: expected bytes or a path, found int", lambda: irikey.Canonicalizer(psl=3)),
        ("rung: expected str, found int", lambda: irikey.uri(reference, rung=3)),
        ("rung: expected str, found list", lambda: irikey.keys([reference], rung=["scheme"])),
        ("strict: expected bool, found str", lambda: irikey.uris([reference], strict="no")),
        ("strict: expected bool, found int", lambda: irikey.explain(reference, strict=1)),
        ("recipe: expected str, found list", lambda: irikey.uris([reference], recipe=["surt-ia"])),
        ("recipe: expected str, found list", lambda: irikey.key(reference, recipe=["surt-ia"])),
        ("key_hash: expected str, found int", lambda: irikey.key(reference, key_hash=3)),
        ("max_url: expected int, found str", lambda: irikey.uris([reference], max_url="3")),
        ("dialect: expected str, found int", lambda: irikey.surt(reference, 3)),
        ("threads: expected int, found str", lambda: irikey.read(b"x", threads="3")),
        ("format: expected str, found int", lambda: canonicalizer.read(b"x", format=3)),
        ("column: expected str, found int", lambda: canonicalizer.array([reference], 3)),
        ("value: expected str, found bytes", lambda: irikey.lit(b"x")),
        ("types: expected str, found int", lambda: irikey.schema(types=3)),
        ("base: expected a reference as str or bytes, found int", lambda: irikey.uri("x", 3)),
        ("base: expected the name of a column, lit(value), or (column, lit(value)), found int",
         lambda: irikey.canonicalize(["x"], base=3)),
        ("Canonicalizer() got an unexpected keyword argument 'nope'", lambda: irikey.Canonicalizer(nope=3)),
    ]:
        with pytest.raises(TypeError) as found:
            call()
        assert str(found.value) == expected
    # None is the default.
    assert irikey.uri(reference, rung=None, strict=None) == irikey.uris([reference], rung=None)[0] == "http://h/"


def test_tables_are_read_from_bytes():
    import io

    table = pa.table({"url": ["HTTP://h", "x"], "n": [1, 2]})
    buffer = io.BytesIO()
    pa.parquet.write_table(table, buffer)
    contents = [buffer.getvalue()]
    for make in (pa.ipc.new_file, pa.ipc.new_stream):
        buffer = io.BytesIO()
        with make(buffer, table.schema) as writer:
            writer.write_table(table)
        contents.append(buffer.getvalue())
    for data in contents:
        for name in (None, "n"):
            found, counts = irikey.read(data, ["source", "record", "uri"], name=name)
            assert counts["errors"] == [] and counts["records"] == 2
            rows = [(row["source"], row["record"], row["uri"]) for row in pa.table(found).to_pylist()]
            assert rows == [(name or "bytes", 1, "http://h/"), (name or "bytes", 2, None)]
        with pytest.raises(KeyError, match="^.bytes: .*there is no column .+nope"):
            irikey.read(data, url="nope")
    found, counts = irikey.read(contents[0][:-9], ["uri"])
    assert len(found) == 0 and len(counts["errors"]) == 1 and counts["errors"][0].startswith("bytes: ")


def test_times_for_spark_have_microseconds():
    import datetime

    line = b'org,example)/ 20210203040506 {"url": "http://example.org/"}\n'
    for types, unit in (("arrow", "ms"), ("spark", "us")):
        times = pa.table(irikey.Canonicalizer(types=types).read(line, columns=["fetch_time"], format="cdxj")[0])["fetch_time"]
        assert times.type == pa.timestamp(unit, "UTC"), types
        assert pa.table(irikey.read(line, ["fetch_time"], format="cdxj", types=types).table)["fetch_time"].equals(times)
        assert times.to_pylist() == [datetime.datetime(2021, 2, 3, 4, 5, 6, tzinfo=datetime.timezone.utc)]


def test_a_canonicalizer_is_shown_as_python_writes_it():
    value = irikey.lit("e\u0301\x7f\u200d\"'\\\n")
    assert eval(repr(value)) == value
    canonicalizer = irikey.Canonicalizer(base=irikey.lit("http://h/\u200d"), columns=["uri"])
    assert eval(repr(canonicalizer)).configuration == canonicalizer.configuration


def test_help_shows_parameters_and_defaults():
    shown = str(inspect.signature(irikey.Canonicalizer))
    assert "rung=None" in shown and "profile='rfc3987'" in shown and "trim=False" in shown
    for name in irikey.__all__:
        value = getattr(irikey, name)
        if callable(value):
            assert value.__doc__, name


def test_the_package_has_its_licenses_and_says_what_it_supports():
    import importlib.metadata

    try:
        package = importlib.metadata.distribution("irikey")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("irikey is not installed as a wheel")
    licenses = {str(file).rpartition("/")[2]: file.locate().read_text() for file in package.files or [] if "LICENSE" in str(file)}
    assert "Apache License" in licenses["LICENSE-APACHE"] and "Permission is hereby granted" in licenses["LICENSE-MIT"]
    metadata = package.metadata
    assert metadata["License-Expression"] == "MIT OR Apache-2.0" and sorted(metadata.get_all("License-File")) == sorted(licenses)
    assert metadata["Requires-Python"] == ">=3.10" and metadata["Description-Content-Type"].startswith("text/markdown")
    assert any(name.name == "py.typed" for name in package.files or [])


SUB_INTERPRETER = """
import irikey, {module} as interpreters
answer = None
try:
    code = "import irikey; assert irikey.uris(['HTTP://h', 'x']) == ['http://h/', None]"
    answer = interpreters.{run}(interpreters.create(), code)
except Exception as error:
    answer = error
assert {expected}, answer
assert irikey.uri("HTTP://h") == "http://h/"
"""


def test_an_interpreter_with_a_lock_of_its_own_is_refused():
    if sys.version_info < (3, 12):
        code = SUB_INTERPRETER.format(module="_xxsubinterpreters", run="run_string", expected="answer is None")
    else:
        module, run = ("_xxsubinterpreters", "run_string") if sys.version_info < (3, 13) else ("_interpreters", "exec")
        code = SUB_INTERPRETER.format(
            module=module, run=run, expected="'does not support loading in subinterpreters' in str(answer)"
        )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
