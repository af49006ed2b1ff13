"""Equivalences: the keys of the command, and rules that are exported for other tools."""

import itertools
import subprocess
import sys

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import irikey

RULES = [
    ("a.example", "ignore-query", "/shop/"),
    ("a.example", "ignore-final-slash", ""),
    ("b.example", "ignore-parameter sid=<hex>", ""),
    ("b.example", "ignore-parameter n=<number>", ""),
    ("b.example", "ignore-parameter t=<token>", ""),
    ("b.example", "ignore-query", "*.css"),
    ("*.c.example", "ignore-parameter sid", ""),
    ("*.c.example", "ignore-scheme", ""),
    ("*", "ignore-parameter utm", ""),
    ("a.example", "keep-parameter utm", ""),
    ("c.example", "same-as https://www.c.example", ""),
]


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """The folder of the rules, as equivalences and as expressions."""
    folder = tmp_path_factory.mktemp("learned")
    rules = "".join(f"{host},{pattern},{context},hand\n" for host, pattern, context in RULES)
    (folder / "rules.csv").write_text("host,pattern,context,how\n" + rules, encoding="utf-8")
    (folder / "none.cdxj").write_bytes(b"")
    command = [
        sys.executable, "-m", "irikey", "learn", "-q", "none.cdxj", "--rules", "rules.csv", "-o", "rules.parquet", "--export",
        "sql=rules.sql",
    ]
    subprocess.run(command, check=True, cwd=folder)
    return folder


def urls():
    hosts = ["a.example", "b.example", "c.example", "x.c.example", "c.example:8080", "u@x.c.example", "d.example"]
    paths = ["/", "//", "/x", "/x/", "/x//", "/shop", "/shop/x", "/x.css", "/.css", "/x.css/"]
    values = [
        "0123456789abcdef", "1234567890123456", "1600000000", "42", "the-history-of-the-river", "a8f3kq02mzp19xw7", "1;id=2",
        "1;id=3",
    ]
    queries = [
        "",
        "?id=1",
        "?utm=1",
        *[f"?{name}={value}" for name in ("sid", "n", "t") for value in values],
        "?sid=1&id=2",
        "?id=2&sid=1;b#f",
    ]
    return [f"http://{host}{path}{query}" for host, path, query in itertools.product(hosts, paths, queries)]


def test_keys_are_those_of_the_command(learned):
    listed, out, known = learned / "urls.txt", learned / "urls.csv", learned / "rules.parquet"
    listed.write_text("\n".join(urls()) + "\n", encoding="utf-8")
    command = ["canon", "-q", listed, "-o", out, "--columns", "key_protocol", "--equivalences", known]
    subprocess.run([sys.executable, "-m", "irikey", *command], check=True)
    expected = pyarrow.csv.read_csv(out)["key_protocol"].to_pylist()
    options = {"rung": "protocol", "equivalences": known}
    read = pa.table(irikey.read(listed, ["key"], **options).table)["key"].to_pylist()
    for keys in (
        irikey.keys(urls(), **options),
        pa.table(irikey.canonicalize(pa.table({"url": urls()}), **options))["key"].to_pylist(),
        read,
    ):
        assert [key.hex() for key in keys] == expected
    both = pa.table(irikey.read(listed, ["source", "key", "key_protocol"], equivalences=known).table)
    assert [key.hex() for key in both["key_protocol"].to_pylist()] == expected and both["key"].to_pylist() == irikey.keys(urls())
    # The key of a canonicalizer is that of its recipe, if it has one.
    for columns, rung in ((["key_protocol"], "scheme"), (["uri"], "protocol")):
        options_of_both = {"recipe": "surt-ia", "equivalences": irikey.equivalences(known), "columns": columns, "rung": rung}
        assert irikey.Canonicalizer(**options_of_both).key(urls()[0]) == irikey.key(urls()[0], recipe="surt-ia")
    # A rule for some paths holds for these only.
    shop, other = (irikey.keys([f"http://a.example/{path}?id={i}" for i in range(2)], **options) for path in ("shop/x", "x"))
    assert shop[0] == shop[1] and other[0] != other[1]
    with_contexts = pyarrow.parquet.read_table(known)
    with pytest.raises(ValueError, match="column context is missing"):
        irikey.keys(["x:y"], rung="protocol", equivalences=irikey.equivalences(with_contexts.drop_columns(["context"])))


def test_exported_expressions_merge_only_what_the_rules_merge(learned):
    duckdb = pytest.importorskip("duckdb")
    con = duckdb.connect()
    con.execute((learned / "rules.sql").read_text(encoding="utf-8"))
    rules = con.sql("SELECT pattern, replacement FROM url_rules ORDER BY ordinal").fetchall()
    found = pa.table({"url": urls()})
    for pattern, replacement in rules * 3:
        found = con.sql("SELECT regexp_replace(url, $1, $2) AS url FROM found", params=[pattern, replacement]).to_arrow_table()
    rewritten = found["url"].to_pylist()
    keys = lambda urls: irikey.keys(urls, rung="protocol", equivalences=learned / "rules.parquet")
    wrong = [pair for *pair, before, after in zip(urls(), rewritten, keys(urls()), keys(rewritten)) if before != after]
    assert not wrong, wrong[:5]
    assert sum(url != other for url, other in zip(urls(), rewritten)) > 400
