"""DuckDB, Polars, DataFusion, Dask, Ray and Spark Connect: the same values as the functions for arrays."""

import os
import pickle
import subprocess
import sys
import timeit

import pyarrow as pa
import pytest

import irikey

URLS = ["HTTP://h:80", "../x", None, "http://h:x/", "http://www.h/%7e"]
PAGES = ["http://a/", "http://b/c/d", "http://a/", None, None]
EXPECTED = {
    "uri": irikey.uris(URLS),
    "key": irikey.keys(URLS),
    "surt": irikey.uris(URLS, recipe="surt-wayback"),
    "uri_from": irikey.uris(URLS, base=PAGES),
    "key_from": irikey.keys(URLS, base=PAGES),
    "strict_uri": irikey.uris(["http://h/a b", None], strict=True),
}


def test_sql_functions_of_duckdb():
    duckdb = pytest.importorskip("duckdb")
    import irikey.duckdb

    con = duckdb.connect()
    irikey.duckdb.register(con)
    irikey.duckdb.register(con, "strict_", strict=True)
    captures = pa.table({"i": range(len(URLS)), "url": URLS, "page": PAGES})  # noqa: F841
    found = con.sql(
        "SELECT irikey_uri(url), irikey_key(url), irikey_surt(url), irikey_uri_from(url, page), irikey_key_from(url, page)"
        " FROM captures ORDER BY i"
    ).fetchall()
    for place, name in enumerate(("uri", "key", "surt", "uri_from", "key_from")):
        assert [row[place] for row in found] == EXPECTED[name], name
    assert con.sql("SELECT strict_uri(u) FROM (VALUES ('http://h/a b'), (NULL)) t(u)").fetchall() == [(None,), (None,)]
    irikey.duckdb.register(con, "html_", character_references="html")
    assert con.sql("SELECT html_uri(u), html_surt(u) FROM (VALUES ('http://h/?a&amp;b')) t(u)").fetchall() == [
        ("http://h/?a&b", "h)/?a&b")
    ]
    many = con.sql("SELECT count(*), count(DISTINCT irikey_key('HTTP://h/' || (i % 100))) FROM range(100_000) t(i)").fetchall()
    assert many == [(100_000, 100)]


def test_sql_functions_of_duckdb_can_be_registered_again():
    duckdb = pytest.importorskip("duckdb")
    import irikey.duckdb

    con, select = duckdb.connect(), "SELECT irikey_uri('http://h/a b'), irikey_uri_from('x', 'http://b/')"
    for options, expected in (({}, "http://h/a%20b"), ({}, "http://h/a%20b"), ({"strict": True}, None)):
        irikey.duckdb.register(con, **options)
        assert con.sql(select).fetchall() == [(expected, "http://b/x")]
    # A wrong call changes nothing.
    with pytest.raises(ValueError, match="max_url is from 1"):
        irikey.duckdb.register(con, max_url=0)
    assert con.sql(select).fetchall() == [(None, "http://b/x")]


def test_options_of_sql_functions_of_duckdb():
    duckdb = pytest.importorskip("duckdb")
    import irikey.duckdb

    def found(functions, **options):
        con = duckdb.connect()
        irikey.duckdb.register(con, **options)
        return con.sql(f"SELECT {functions}").fetchall()[0]

    based = "irikey_uri('x'), irikey_uri_from('x', NULL), irikey_uri_from('x', 'http://b/'), irikey_key_from('x', NULL)"
    for base in ("http://l/", irikey.lit("http://l/")):
        assert found(based, base=base) == ("http://l/x", "http://l/x", "http://b/x", irikey.key("http://l/x"))
    assert found(based) == (None, None, "http://b/x", irikey.keys(["x"])[0])
    literal = "irikey_uri_from('?x', 'http://h/a/../b'), irikey_uri('http://h/a/../b')"
    assert found(literal, literal_base=True) == ("http://h/b?x", "http://h/b")
    assert found("irikey_uri('?x')", literal_base=True, base="http://h/a/../b") == tuple(
        irikey.uris(["?x"], literal_base=True, base="http://h/a/../b")
    )
    assert found("irikey_surt('http://www.h/A')", recipe="plain", charset="utf-8") == ("h)/a",)
    for wrong in ({"base": ("page", irikey.lit("http://l/"))}, {"charset": 3}):
        with pytest.raises(TypeError, match=f"^{next(iter(wrong))}: .* is not supported; expected a text or lit"):
            found("1", **wrong)


def test_expressions_of_polars():
    polars = pytest.importorskip("polars")
    import irikey.polars  # noqa: F401

    frame = polars.LazyFrame({"url": URLS, "page": PAGES}, schema={"url": polars.String, "page": polars.String})
    url = polars.col("url").irikey
    lazy = frame.select(
        uri=url.uri(), key=url.key(), surt=url.surt(), uri_from=url.uri(polars.col("page")), key_from=url.key(polars.col("page"))
    )
    for engine in ("in-memory", "streaming"):
        found = lazy.collect(engine=engine)
        for name in found.columns:
            assert found[name].to_list() == EXPECTED[name], (name, engine)
    assert frame.collect()["url"].irikey.uri("http://l/").to_list() == irikey.uris(URLS, base="http://l/")
    assert polars.Series(["http://h/a b", None]).irikey.uri(strict=True).to_list() == EXPECTED["strict_uri"]
    for kind in (polars.Categorical, polars.Enum(["HTTP://h:80", "../x", "http://h:x/", "http://www.h/%7e"])):
        found = frame.select(polars.col("url").cast(kind)).select(uri=url.uri(), key=url.key()).collect()
        assert found["uri"].to_list() == EXPECTED["uri"] and found["key"].to_list() == EXPECTED["key"], kind
    nulls = polars.DataFrame({"url": [None, None]}).select(url.uri())
    assert nulls.schema == {"url": polars.String} and nulls["url"].to_list() == [None, None]
    with pytest.raises(Exception, match="Int64; expected text or bytes"):
        polars.DataFrame({"url": [1]}).select(url.uri())
    binary = frame.select(polars.col("url").cast(polars.Binary).irikey.key()).collect().to_series()
    assert binary.name == "url" and binary.to_list() == EXPECTED["key"]
    with pytest.raises(Exception, match="Int64; expected text or bytes"):
        polars.LazyFrame({"url": [1]}).select(url.uri()).collect_schema()
    wide = (
        polars.LazyFrame({"url": URLS * 20_000})
        .with_columns(polars.col("url").irikey.uri().alias("uri"))
        .filter(polars.col("uri") == "http://h/")
    )
    assert len(wide.collect(engine="streaming")) == 20_000


def test_expressions_of_polars_broadcast_literals_and_keep_chunks():
    polars = pytest.importorskip("polars")
    import irikey.polars  # noqa: F401

    frame = polars.DataFrame({"url": URLS, "page": PAGES})
    url, page = polars.col("url").irikey, polars.col("page")
    assert frame.select(url.uri(polars.lit("http://l/"))).to_series().to_list() == irikey.uris(URLS, base="http://l/")
    assert frame.select(polars.lit("y").irikey.uri(page)).to_series().to_list() == irikey.uris(["y"] * len(URLS), base=PAGES)
    assert frame.select(url.uri(polars.lit(None))).to_series().to_list() == irikey.uris(URLS, base=[None] * len(URLS))
    assert frame.clear().select(url.uri(page), key=url.key()).schema == {"url": polars.String, "key": polars.Binary}
    chunked = polars.concat([frame, frame.clear(), frame[1:3]], rechunk=False)
    found = chunked.select(both=url.uri(page), url=url.uri())
    assert found["both"].to_list() == EXPECTED["uri_from"] + EXPECTED["uri_from"][1:3]
    assert found["url"].to_list() == EXPECTED["uri"] + EXPECTED["uri"][1:3]
    unlike = chunked.with_columns(page=polars.Series(PAGES + PAGES[1:3]))
    assert unlike.select(url.uri(page)).to_series().to_list() == found["both"].to_list()
    assert polars.Series("u", [b"http://h/\xff", None]).irikey.uri().to_list() == ["http://h/%FF", None]
    grouped = frame.group_by(polars.lit(1).alias("one")).agg(url.key(page))
    assert grouped["url"].to_list() == [EXPECTED["key_from"]]
    with pytest.raises(ValueError, match='dialect is "wayback" or "ia"'):
        url.surt("nope")
    for wrong in (3, b"http://l/", ("page", irikey.lit("http://l/"))):
        with pytest.raises(
            TypeError, match=f"^base: {type(wrong).__name__} is not supported; expected an expression, a text or lit"
        ):
            url.uri(wrong)
    # A text is a base, and not the name of a column.
    with pytest.raises(ValueError, match="^base: .*an absolute IRI; for a column, pass pl.col.'page'.$"):
        url.uri("page")
    with pytest.raises(ValueError, match="^base: [^;]*$"):
        url.uri("http://h:x/")


def test_a_query_of_polars_runs_in_another_process():
    polars = pytest.importorskip("polars")
    import irikey.polars  # noqa: F401

    query = polars.LazyFrame({"url": ["http://h/a b", "HTTP://h"]}).select(polars.col("url").irikey.uri(strict=True))
    code = (
        "import io, sys, polars;"
        " print(polars.LazyFrame.deserialize(io.BytesIO(sys.stdin.buffer.read())).collect().to_series().to_list())"
    )
    done = subprocess.run([sys.executable, "-c", code], input=query.serialize(), capture_output=True)
    assert done.stdout.decode().strip() == "[None, 'http://h/']", done.stderr.decode()


def counted_loads(monkeypatch):
    """The lengths of the canonicalizers that expressions of Polars unpickle."""
    lens, loads = [], pickle.loads

    def counting(pickled):
        lens.append(len(pickled))
        return loads(pickled)

    monkeypatch.setattr(pickle, "loads", counting)
    return lens


def test_expressions_of_polars_keep_the_canonicalizers_that_were_used_last(monkeypatch):
    polars = pytest.importorskip("polars")
    import irikey.polars  # noqa: F401

    frame, lens, url = polars.DataFrame({"url": ["HTTP://h/12"]}), counted_loads(monkeypatch), polars.col("url").irikey
    used = url.uri(max_url=1_000)
    for length in range(2_000, 2_100):
        assert frame.select(used)["url"][0] == "http://h/12"
        frame.select(url.uri(max_url=length))
    assert len(lens) == 101
    # Equal options are one canonicalizer, other options are not.
    assert frame.select(url.uri(max_url=1_000))["url"][0] == "http://h/12" and len(lens) == 101
    assert frame.select(url.uri(max_url=10))["url"][0] is None and len(lens) == 102


def long_list(number):
    """A Public Suffix List of 30 MB, most of which is a comment."""
    return b"// ===BEGIN ICANN DOMAINS===\nexample\n// %d" % number + b" " * 30_000_000


def test_expressions_of_polars_keep_a_limited_amount_of_options(monkeypatch):
    polars = pytest.importorskip("polars")
    import irikey.polars  # noqa: F401

    frame, lens = polars.DataFrame({"url": ["HTTP://h"]}), counted_loads(monkeypatch)
    expressions = [polars.col("url").irikey.uri(psl=long_list(number)) for number in range(10)]
    for expression in expressions:
        frame.select(expression)
    assert len(lens) == 10 and sum(lens) > 256 << 20
    frame.select(expressions[-1])
    assert len(lens) == 10
    frame.select(expressions[0])
    assert len(lens) == 11


def test_a_call_of_an_expression_of_polars_does_not_read_its_options():
    polars = pytest.importorskip("polars")
    import irikey.polars  # noqa: F401

    frame, url = polars.DataFrame({"url": ["HTTP://h"]}), polars.col("url").irikey
    plain, long = url.uri(), url.uri(psl=long_list(0))
    of_plain, of_long = (min(timeit.repeat(lambda: frame.select(call), number=3, repeat=7)) for call in (plain, long))
    assert of_long < 10 * of_plain


def test_functions_of_datafusion():
    datafusion = pytest.importorskip("datafusion")
    context = datafusion.SessionContext()
    context.register_udf(datafusion.udf(irikey.uris, [pa.string()], pa.string(), "immutable", "irikey_uri"))
    batch = pa.record_batch({"i": range(len(URLS)), "url": pa.array(URLS, pa.string())})
    context.register_record_batches("captures", [[batch]])
    found = context.sql("SELECT irikey_uri(url) AS uri FROM captures ORDER BY i").to_arrow_table()
    assert found["uri"].to_pylist() == EXPECTED["uri"]


def test_batch_functions_keep_the_kind_of_the_data():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    function = irikey.batch_function(columns=["uri", "key"], base=irikey.lit("http://l/"))
    expected = irikey.uris(URLS, base="http://l/")
    table = pa.table({"url": URLS})
    batch = table.to_batches()[0]
    for data in (table, batch, table.slice(0, 0), batch.slice(0, 0)):
        found = function(data)
        assert type(found) is type(data)
        assert found.column("uri").to_pylist() == expected[: len(data)] and found.schema.names == ["url", "uri", "key"]
    frame = pandas.DataFrame({"url": URLS}, index=range(5, 10))
    found = function(frame)
    assert list(found["uri"].replace({float("nan"): None})) == expected and list(found.index) == list(frame.index)
    assert function(polars.DataFrame({"url": URLS}))["uri"].to_list() == expected
    assert function({"url": URLS})["uri"].to_pylist() == expected
    for data in (URLS, None, frame["url"], pa.RecordBatchReader.from_batches(table.schema, [])):
        with pytest.raises(TypeError, match=f"^data: {type(data).__name__} is not supported; expected a Table"):
            function(data)
    # Other columns may have values that Arrow has no type for.
    frame["mixed"] = [object(), 1, "a", *[None] * (len(URLS) - 3)]
    assert list(function(frame)["uri"].replace({float("nan"): None})) == expected and list(function(frame).columns) == [
        "url", "mixed", "uri", "key",
    ]
    # No column is replaced.
    clashing = pa.table({"url": ["http://h"], "uri": ["mine"]})
    for data in (clashing, clashing.to_batches()[0], clashing.to_pandas(), polars.DataFrame(clashing)):
        with pytest.raises(ValueError, match="already has columns uri; rename"):
            function(data)


def test_partitions_of_dask():
    dask = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    frame = dask.from_pandas(pandas.DataFrame({"url": [url for url in URLS if url] * 5}), npartitions=3)
    function = irikey.batch_function(columns=["uri"])
    found = frame.map_partitions(function, meta=function(frame._meta)).compute(scheduler="threads")
    assert [value if isinstance(value, str) else None for value in found["uri"]] == irikey.uris([url for url in URLS if url] * 5)


CONNECT = """
from pyspark.sql import SparkSession
import irikey, irikey.spark as functions
spark = SparkSession.builder.remote("local[1]").config("spark.sql.shuffle.partitions", "1").getOrCreate()
urls = ["HTTP://h", "http://h/", "x", None, "http://h/a b"]
rows = spark.createDataFrame([(url, i + 1) for i, url in enumerate(urls)], "url string, i int").coalesce(1)
assert [row.u for row in rows.select(functions.uri("url").alias("u")).collect()] == irikey.uris(urls)
counters = functions.Counters(spark)
made = functions.canonicalize(rows, counters=counters)
kept = functions.dedup(made, order=["i"], copies="n").collect()
assert sorted((row.uri, row.n) for row in kept) == [("http://h/", 2), ("http://h/a%20b", 1)]
counts = counters.check(5)
assert (counts["unchanged"], counts["changed"], counts["nulls"]) == (1, 2, 1), counts
assert (counts["faults"], counts["flags"]) == ({"relative": 1}, {"excluded": 1}), counts
print("done")
"""


def test_spark_connect():
    pytest.importorskip("pyspark")
    for module in ("grpc_status", "zstandard", "google.rpc"):
        pytest.importorskip(module)
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run([sys.executable, "-c", CONNECT], capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0 and "done" in done.stdout, done.stderr[-3000:]


def test_declared_types():
    # The package imports all of them.
    for module in ("mypy", "duckdb", "polars", "pyspark"):
        pytest.importorskip(module)
    configuration = os.path.join(os.path.dirname(__file__), "..", "pyproject.toml")
    for command in (["mypy", "--strict", "--config-file", configuration, "-p", "irikey"], ["mypy.stubtest", "irikey._irikey"]):
        done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, cwd="/")
        assert done.returncode == 0, done.stdout + done.stderr


TYPED = """
from typing import Optional, Union
import duckdb, polars, pyspark.sql
import irikey.duckdb, irikey.polars, irikey.spark

def register(con: duckdb.DuckDBPyConnection, spark: pyspark.sql.SparkSession) -> None:
    irikey.duckdb.register(con, base="http://b/", charset=irikey.lit("koi8-r"), strict=True)
    irikey.spark.register(spark, base=irikey.lit("http://b/"), charset="koi8-r", recipe="plain")
    irikey.polars.IrikeyExpr(polars.col("url")).uri("http://b/", charset="koi8-r")
    options: irikey.SqlOptions = {"base": "http://b/", "rung": "syntax"}
    irikey.duckdb.register(con, **options)

keys: list[bytes] = irikey.keys(["http://h"], rung="syntax")
some_keys: list[Optional[bytes]] = irikey.keys(["http://h", None])
recipe_keys: list[Optional[bytes]] = irikey.keys(["http://h"], recipe="surt-ia")
uris: list[Optional[str]] = irikey.uris(["http://h"])
rows: Union[irikey.Batch, irikey.Table] = irikey.canonicalize(["x"])
made: Union[irikey.Batch, irikey.Table] = irikey.Canonicalizer(profile="whatwg", psl="list.dat").canonicalize(["x"])
length = len(rows) + len(made)
uri: str = irikey.uri("h.example", assume_scheme="https", profile="whatwg")
policy: irikey.Policy = {"strict": True, "key_hash": "blake3", "query_charset": "koi8-r", "psl": "list.dat", "max_url": 9}
texts: list[str] = [irikey.uri("http://h", **policy), irikey.iri(b"http://h", "http://b/", **policy)]
key: bytes = irikey.key("http://h", rung="protocol", equivalences="eq.parquet", **policy)
one: irikey.Options = {"rung": "protocol", "recipe": "surt-ia", "equivalences": b"", "strict": True}
texts += [irikey.uri("http://h", **one), irikey.Canonicalizer(**one).uri("http://h")]
irikey.keys(["http://h"], rung="protocol", equivalences="eq.parquet", **policy)
irikey.canonicalize(["http://h"], rung="protocol", equivalences="eq.parquet", **policy)
irikey.read("urls.txt", rung="protocol", equivalences="eq.parquet", **policy)
irikey.batch_function(rung="protocol", equivalences="eq.parquet", **policy)
irikey.Canonicalizer(equivalences="eq.parquet", **policy)
"""
WRONG = """
import irikey
irikey.Canonicalizer(profile="whatwq")
irikey.Canonicalizer(key_hash="md5")
irikey.Canonicalizer(types="pandas")
irikey.uri("http://h", max_url="3")
irikey.iri("http://h", equivalences="eq.parquet")
irikey.uri("http://h", rung="nope")
"""


def test_types_of_calls(tmp_path):
    for module in ("mypy", "duckdb", "polars", "pyspark"):
        pytest.importorskip(module)
    (tmp_path / "typed.py").write_text(TYPED)
    (tmp_path / "wrong.py").write_text(WRONG)
    command = [sys.executable, "-m", "mypy", "--strict", "typed.py", "wrong.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    errors = [line.partition(" error: ")[0] for line in done.stdout.splitlines() if " error: " in line]
    assert errors == [f"wrong.py:{line}:" for line in range(3, 9)], done.stdout + done.stderr
