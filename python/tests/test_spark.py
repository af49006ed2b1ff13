"""Spark with executors in processes of their own: the same rows and representatives as on one machine, also when an executor
is killed during the job.

IRIKEY names the command to compare with, IRIKEY_SPARK_LINES the number of lines (default: 2,000,000).
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

pyspark = pytest.importorskip("pyspark")

os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"

import irikey  # noqa: E402
from pyspark.sql import functions as F  # noqa: E402

from irikey.spark import Counters, anti_join_seen, canonicalize, dedup, learn  # noqa: E402

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
LINES = int(os.environ.get("IRIKEY_SPARK_LINES", 2_000_000))


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    from pyspark.sql import SparkSession

    folder = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.local.dir", str(folder / "local"))
        .config("spark.sql.files.minPartitionNum", "16")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Generated lines, as a file and as Parquet in eight parts with the position of each line."""
    folder = tmp_path_factory.mktemp("corpus")
    lines = folder / "lines"
    subprocess.run([REPOSITORY / "scripts/corpus", "--lines", str(LINES), "--seed", "11", "--out", lines], check=True)
    urls = [line.removesuffix(b"\r") for line in lines.read_bytes().split(b"\n")[:LINES]]
    table = pa.table({"record": pa.array(range(1, LINES + 1), pa.int64()), "url": pa.array(urls, pa.binary())})
    (folder / "parquet").mkdir()
    for i in range(8):
        pq.write_table(table.slice(i * LINES // 8, (i + 1) * LINES // 8 - i * LINES // 8), folder / "parquet" / f"{i}.parquet")
    return folder


@pytest.fixture(scope="module")
def expected(corpus):
    """The output of the command for the lines: rows, and the first row of each key."""
    command = os.environ.get("IRIKEY")
    if command:
        out = corpus / "expected.parquet"
        subprocess.run([command, "canon", "--quiet", corpus / "lines", "-o", out], check=True)
        rows = pq.read_table(out, columns=["record", "uri", "key", "fault"])
        rows = rows.set_column(0, "record", rows["record"].cast(pa.int64()))
    else:
        parts = pq.read_table(corpus / "parquet")
        rows = pa.table(irikey.canonicalize(parts, columns=["uri", "key", "fault"])).add_column(0, "record", parts["record"])
    rows = rows.set_column(3, "fault", rows["fault"].cast(pa.string())).set_column(2, "key", rows["key"].cast(pa.binary()))
    rows = rows.sort_by("record")
    fine = rows.filter(pc.is_null(rows["fault"]))
    kept = fine.group_by("key").aggregate([("record", "min")]).rename_columns(["key", "record"]).sort_by("record")
    return rows, kept


def check(kept, folder, expected):
    """Asserts that the rows and representatives of Spark equal those of the command."""
    found = pq.read_table(folder / "rows").sort_by("record")
    for name in ("record", "uri", "key", "fault"):
        assert found[name].combine_chunks().equals(expected[0][name].combine_chunks()), name
    found = pq.read_table(folder / "kept", columns=["key", "record"]).sort_by("record")
    assert found["key"].combine_chunks().equals(expected[1]["key"].combine_chunks())
    assert found["record"].combine_chunks().equals(expected[1]["record"].combine_chunks())
    assert kept == expected[1].num_rows


def run_job(spark, corpus, folder):
    counters = Counters(spark)
    rows = canonicalize(spark.read.parquet(str(corpus / "parquet")), columns=["uri", "key", "fault"], counters=counters)
    rows.write.parquet(str(folder / "rows"))
    kept = dedup(spark.read.parquet(str(folder / "rows")), order=["record"], copies="copies")
    kept.write.parquet(str(folder / "kept"))
    return counters.check(LINES)


def test_the_same_keys_and_representatives_as_the_command(spark, corpus, expected, tmp_path):
    counts = run_job(spark, corpus, tmp_path)
    copies = pq.read_table(tmp_path / "kept", columns=["copies"])["copies"]
    assert pc.sum(copies).as_py() + counts["faulty"] + counts["nulls"] == LINES
    check(len(copies), tmp_path, expected)


CAPTURES = 30_000


@pytest.fixture(scope="module")
def captures(tmp_path_factory):
    """Captures with times, statuses and redirects; pages of a host occur under http and https."""
    path = tmp_path_factory.mktemp("captures") / "captures.cdxj"
    with open(path, "w", encoding="utf-8") as file:
        for i in range(CAPTURES):
            mixed = i * 2_654_435_761 % 1_000_003
            page, status = mixed % 4_999, [200, 301, 404, 204, 503, 200, 600][mixed % 7]
            scheme, host = ["http", "https", "HTTP"][mixed % 3], f"h{page % 50}.example.org"
            fields = {"url": f"{scheme}://{host}/{page}", "status": str(status)}
            if page % 50 < 25 and scheme != "https":
                fields |= {"status": "301", "redirect": f"https://{host}/{page}"}
            time = f"{20200101000000 + mixed % 13:014}" if mixed % 11 != 10 else "-"
            file.write(f"k)/ {time} {json.dumps(fields)}\n")
    return path


@pytest.mark.skipif("IRIKEY" not in os.environ, reason="IRIKEY names the command to compare with")
def test_representatives_equal_those_of_the_command(spark, captures, tmp_path):
    command = os.environ["IRIKEY"]
    learned, rows, out = (tmp_path / f"{name}.parquet" for name in ("equivalences", "rows", "out"))
    subprocess.run([command, "learn", "-q", captures, "-o", learned], check=True)
    columns = "record,uri,key,fault,fetch_time,fetch_status"
    subprocess.run([command, "canon", "-q", captures, "-o", rows, "--columns", columns], check=True)
    frame = spark.read.parquet(str(rows)).withColumn("record", F.col("record").cast("long"))
    for options in [["--keep", "first"], ["--keep", "last"], ["--keep", "newest"], ["--keep", "oldest"], ["--keep", "best"],
                    ["--keep", "best", "--key", "protocol", "--equivalences", str(learned)]]:
        subprocess.run([command, "dedup", "-q", captures, "-o", out, "--columns", "record", *options], check=True)
        expected = sorted(pq.read_table(out)["record"].to_pylist())
        known = str(learned) if "protocol" in options else None
        kept = dedup(frame.repartition(8), keep=options[1], order=["record"], equivalences=known)
        assert sorted(row.record for row in kept.select("record").collect()) == expected, options
        assert (7_000 if known else 9_000) < len(expected) < (8_000 if known else 10_001)
    text = frame.select("record", "uri").limit(100)
    with pytest.raises(ValueError, match="need equivalences="):
        canonicalize(text, url="uri", rung="protocol")
    with pytest.raises(ValueError, match="learned with key "):
        canonicalize(text, url="uri", rung="protocol", key_hash="blake3", equivalences=str(learned))
    with pytest.raises(ValueError, match="not a table of equivalences"):
        canonicalize(text, url="uri", rung="protocol", equivalences=str(rows))
    subprocess.run([command, "canon", "-q", captures, "-o", out, "--columns", "record", "--key", "protocol",
                    "--equivalences", learned], check=True)
    found = pq.read_table(out, columns=["record", "key_protocol"])
    expected = dict(zip(found["record"].to_pylist(), found["key_protocol"].to_pylist()))
    made = canonicalize(frame.select("record", "uri"), url="uri", rung="protocol", columns=["key", "key_scheme"],
                        equivalences=str(learned)).collect()
    assert {row.record: bytes(row.key) for row in made} == expected
    assert sum(row.key != row.key_scheme for row in made) > CAPTURES // 10


def test_rules_about_content_are_applied(spark, tmp_path):
    """What the command of the wheel learns from contents holds for arrays and data frames."""
    captures, learned = tmp_path / "captures.cdxj", tmp_path / "learned.parquet"
    with open(captures, "w", encoding="utf-8") as file:
        for page in range(8):
            for session in range(3):
                fields = {"url": f"http://a.example/v?id={page}&sid={session}", "status": "200", "digest": f"CONTENT-{page}"}
                file.write(f"k)/ 20260101000000 {json.dumps(fields)}\n")
    subprocess.run([sys.executable, "-m", "irikey", "learn", "-q", captures, "-o", learned], check=True)
    urls = [f"http://{host}/v?id={page}&sid={session}" for host in "ab" for page in (70, 71) for session in range(4)]
    urls = [url.replace("//a", "//a.example").replace("//b", "//b.example") for url in urls]
    keys = irikey.keys(urls, rung="protocol", equivalences=learned)
    assert [len(set(keys[:4])), len(set(keys[4:8])), len(set(keys[8:])), len(set(keys))] == [1, 1, 8, 10]
    frame = spark.createDataFrame([(url,) for url in urls], "url string").repartition(3)
    rows = canonicalize(frame, url="url", rung="protocol", equivalences=str(learned)).collect()
    assert {row.url: bytes(row.key) for row in rows} == dict(zip(urls, map(bytes, keys)))


def executors(spark):
    """Returns the process ids of the executors of this application."""
    application = spark.sparkContext.applicationId
    found = []
    for process in pathlib.Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                words = (process / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"--executor-id" in words and application.encode() in words and words[0].endswith(b"java"):
                found.append(int(process.name))
    return found


def test_a_killed_executor_changes_nothing(spark, corpus, expected, tmp_path):
    killed = []

    def kill():
        # Kills an executor when some tasks are done and some are running.
        tracker = spark.sparkContext.statusTracker()
        for _ in range(6000):
            for stage in tracker.getActiveStageIds():
                info = tracker.getStageInfo(stage)
                if info and info.numCompletedTasks >= 2 and info.numActiveTasks >= 1:
                    killed.append(executors(spark)[0])
                    os.kill(killed[0], signal.SIGKILL)
                    return
            time.sleep(0.02)

    killer = threading.Thread(target=kill)
    killer.start()
    run_job(spark, corpus, tmp_path)
    killer.join()
    assert killed, "no executor was killed during the job"
    check(pq.read_table(tmp_path / "kept").num_rows, tmp_path, expected)


def test_one_key_with_most_of_the_rows(spark):
    rows = spark.range(400_000).selectExpr(
        "id", "cast(if(id % 10 = 0, concat('k', id), 'one') as binary) key", "cast(null as string) fault"
    )
    kept = dedup(rows.repartition(8), order=["id"], copies="copies")
    assert kept.count() == 40_001
    assert [tuple(row) for row in kept.where("key = cast('one' as binary)").select("id", "copies").collect()] == [(1, 360_000)]


def test_every_keep_is_a_total_order(spark):
    rows = spark.createDataFrame(
        [
            (1, b"k", "http://h/", 20200101000000, 404),
            (2, b"k", "http://h/", 20210101000000, 200),
            (3, b"k", "https://h/", 20210101000000, 204),
            (4, b"k", "https://h/", 20220101000000, 301),
            (5, b"k", "https://h/", None, None),
        ],
        "record int, key binary, uri string, fetch_time long, fetch_status int",
    )
    found = {keep: [row.record for row in dedup(rows, keep=keep, order=["record"]).collect()]
             for keep in ("first", "last", "newest", "oldest", "best")}
    assert found == {"first": [1], "last": [5], "newest": [4], "oldest": [1], "best": [3]}
    # The smallest of several representatives is used, and no row is counted twice.
    known = spark.createDataFrame([(b"k", b"r"), (b"k", b"r"), (b"k", b"s"), (None, b"s")], "key binary, representative binary")
    other = spark.createDataFrame([(6, b"r", "http://r/", 0, 200)], rows.schema)
    kept = dedup(rows.union(other), order=["record"], equivalences=known, copies="copies")
    assert [(row.record, row.copies) for row in kept.collect()] == [(1, 6)]


def test_invalid_arguments_are_reported_before_the_job(spark):
    rows = spark.createDataFrame([("http://h", 1)], "url string, n int")
    for invalid in [{"rung": "x"}, {"columns": ["x"]}]:
        with pytest.raises(ValueError):
            canonicalize(rows, **invalid)
    for missing in [{"url": "x"}, {"base": "x"}]:
        with pytest.raises(KeyError, match="unknown column 'x'; expected one of url, n"):
            canonicalize(rows, **missing)
    with pytest.raises(ValueError, match="already"):
        canonicalize(rows.withColumnRenamed("n", "key"))
    for error, invalid in [(ValueError, {"order": []}), (KeyError, {"order": ["x"]}), (ValueError, {"keep": "x"}),
                           (KeyError, {"keep": "newest"}), (KeyError, {"key": "x"}), (TypeError, {"copy": "x"}),
                           (TypeError, {"copy": "x", "equivalences": rows})]:
        with pytest.raises(error):
            dedup(canonicalize(rows), **{"order": ["n"], **invalid})
    with pytest.raises(Exception, match="expected text or bytes"):
        canonicalize(rows, url="n").collect()


def test_columns_and_sql_functions(spark):
    import irikey.spark as functions

    rows = spark.createDataFrame(
        [("HTTP://h:80", "http://a/"), ("../x", "http://b/c/d"), (None, "http://a/"), ("http://h:x/", None)],
        "url string, page string",
    )
    urls, pages = (rows.toPandas()[name].tolist() for name in ("url", "page"))
    columns = {
        "uri": (functions.uri("url"), irikey.uris(urls)),
        "key": (functions.key(F.col("url").cast("binary")), irikey.keys(urls)),
        "surt": (functions.surt("url"), irikey.uris(urls, recipe="surt-wayback")),
        "ia": (functions.surt("url", "ia"), irikey.uris(urls, recipe="surt-ia")),
        "based": (functions.uri("url", "page"), irikey.uris(urls, base=pages)),
        "literal": (functions.uri("url", irikey.lit("http://l/")), irikey.uris(urls, base="http://l/")),
        "strict": (functions.uri(F.lit("http://h/a b"), strict=True), [None] * 4),
        "charset": (functions.uri(F.lit(b"http://h/\xff"), charset=irikey.lit("windows-1251")), ["http://h/%D1%8F"] * 4),
        "syntax": (functions.uri("url", rung="syntax"), irikey.uris(urls, rung="syntax")),
    }
    found = rows.coalesce(1).select(*[column.alias(name) for name, (column, _) in columns.items()]).collect()
    for name, (_, expected) in columns.items():
        assert [row[name] if not isinstance(row[name], bytearray) else bytes(row[name]) for row in found] == expected, name
    functions.register(spark)
    functions.register(spark, "strict_", strict=True)
    functions.register(spark, "html_", character_references="html")
    functions.register(spark, "options_", base="http://l/", charset="windows-1251", query_charset="koi8-r", literal_base=True)
    functions.register(spark, "literal_", literal_base=True)
    assert spark.sql("SELECT html_surt('http://h/?a&amp;b') surt").first().surt == "h)/?a&b"
    rows.createOrReplaceTempView("captures")
    row = spark.sql(
        "SELECT irikey_uri(url) uri, irikey_key(url) key, irikey_surt(url) surt, irikey_uri_from('x', page) uri_from,"
        " irikey_key_from('x', page) key_from, strict_uri('http://h/a b') strict FROM captures WHERE url = 'HTTP://h:80'"
    ).first()
    assert (row.uri, bytes(row.key), row.surt, row.strict) == ("http://h/", irikey.key("http://h"), "h)/", None)
    assert (row.uri_from, bytes(row.key_from)) == ("http://a/x", irikey.key("http://a/x"))
    # A text is one value for all rows, the base also for rows without one.
    row = spark.sql(
        "SELECT options_uri(X'687474703a2f2f682fff') charset, options_uri('x') base, options_uri_from('x', null) missing,"
        " options_key_from('x', 'http://b/') key, literal_uri_from('?x', 'http://h/a/../b') literal, literal_uri('?x') plain"
    ).first()
    assert (row.charset, row.base, row.missing) == ("http://h/%D1%8F", "http://l/x", "http://l/x")
    assert (bytes(row.key), row.literal, row.plain) == (irikey.key("http://b/x"), "http://h/b?x", None)
    with pytest.raises(ValueError, match="dialect"):
        functions.surt("url", "x")
    # Only the URL is sent to Python, and only once.
    plan = (
        canonicalize(rows.withColumn("wide", F.repeat(F.lit("x"), 100))).where("fault is null")._jdf.queryExecution().toString()
    )
    physical = plan[plan.index("== Physical Plan =="):]
    assert physical.count("ArrowEvalPython") == 1 and "MapInArrow" not in physical


def test_examples_of_the_documentation(spark, tmp_path):
    text = (REPOSITORY / "python" / "docs" / "spark.md").read_text()
    blocks = re.findall(r"^<!-- run spark -->\n```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert blocks
    exec("\n".join(blocks), {"spark": spark, "folder": str(tmp_path)})


def test_counters_of_coalesced_and_repeated_streams(spark):
    rows = spark.range(1000).selectExpr("if(id % 10 = 0, null, concat('HTTP://h/', id)) url", "'http://b/' page").repartition(8)
    for is_late in (False, True):
        counters = Counters(spark)
        made = canonicalize(rows if is_late else rows.coalesce(2), base="page", counters=counters)
        # A task that reads several partitions after the function has several streams, whose counters add up.
        made = made.coalesce(2) if is_late else made
        for _ in range(2):
            assert made.where("uri is not null").count() == 900
            counts = counters.check(1000)
            assert (counts["nulls"], counts["changed"], counts["changes"]["case"]) == (100, 900, 900)
    assert Counters(spark).check(0)["rows"] == 0
    with pytest.raises(RuntimeError, match="1000 canonicalized"):
        counters.check(999)


def test_counters_of_a_task_that_ran_again_replace_those_of_its_first_attempt(spark):
    counters = Counters(spark)
    for stage, partition, attempt, rows in ((1, 0, 1, 100), (2, 0, 2, 3), (2, 1, 3, 4), (2, 0, 4, 5), (2, 0, 4, 6)):
        counters._accumulator.add({(stage, partition, attempt, str(rows)): {"rows": rows, "faults": {"port": rows}}})
    assert (counters.value["rows"], counters.value["faults"]) == (4 + 5 + 6, {"port": 15})


def test_names_with_dots_or_in_another_case(spark):
    rows = spark.createDataFrame([("HTTP://h", 1, "x"), ("http://h/", 2, "y")], "`The.URL` string, `pos.i` int, `a``b` string")
    made = canonicalize(rows, url="the.url")
    assert made.columns[:3] == rows.columns
    kept = dedup(made, key="KEY", order=["POS.i"], copies="n").collect()
    assert [(row["The.URL"], row["pos.i"], row["a`b"], row["n"]) for row in kept] == [("HTTP://h", 1, "x", 2)]
    with pytest.raises(ValueError, match="already has columns uri"):
        canonicalize(rows.withColumnRenamed("pos.i", "URI"), url="The.URL")
    with pytest.raises(ValueError, match="already has a column"):
        dedup(made, order=["pos.i"], copies="KEY")
    with pytest.raises(ValueError, match="order is a list"):
        dedup(made, order="pos.i")
    with pytest.raises(ValueError, match="ambiguous"):
        canonicalize(rows.select("*", F.col("`The.URL`").alias("THE.url")), url="the.URL")


def test_parts_give_the_same_rules_as_one_machine(spark, tmp_path):
    """Generated sites of all kinds, and domains of several hosts."""
    import random

    sys.path.insert(0, str(REPOSITORY / "scripts"))
    import learn_sites

    dice = random.Random(5)
    sites = learn_sites.crawl(9000, 150, dice)
    hosts = [capture._replace(url=capture.url.replace(".site", f".h{i}.site")) for i in range(3) for capture in sites[:3000]]
    captures = pa.table({
        "URL": [capture.url for capture in sites + hosts],
        "fetch_status": pa.array([capture.status for capture in sites + hosts], pa.int16()),
        "content_digest": [capture.digest for capture in sites + hosts],
    })
    pq.write_table(captures.rename_columns(["url", *captures.column_names[1:]]), tmp_path / "captures.parquet")
    command = [sys.executable, "-m", "irikey", "learn", "-q", tmp_path / "captures.parquet", "-o", tmp_path / "one.parquet"]
    subprocess.run(command, check=True)
    learn(spark.createDataFrame(captures), tmp_path / "merged.parquet", url="url", partitions=4)
    one, merged = (pq.read_table(tmp_path / name) for name in ("one.parquet", "merged.parquet"))
    hosts = set(one["host"].to_pylist())
    assert any(host.startswith("*.") for host in hosts) and one.num_rows > 100
    assert merged.equals(one)
    rows = canonicalize(
        spark.createDataFrame(captures), url="url", columns=["key_protocol"], equivalences=tmp_path / "merged.parquet"
    )
    assert rows.select("key_protocol").distinct().count() < rows.select("URL").distinct().count()
    with pytest.raises(ValueError, match="content_digest"):
        learn(spark.createDataFrame(captures.select(["URL"])), tmp_path / "x.parquet")
    with pytest.raises(Exception, match="min-contents"):
        learn(spark.createDataFrame(captures), tmp_path / "x.parquet", flags=["--min-contents", "x"])


def test_every_type_of_time_gives_the_same_order(spark):
    times = ["2020-01-01 00:00:00", "2021-01-01 00:00:00", "2019-01-01 00:00:00"]
    rows = spark.createDataFrame(
        [(i, b"k", f"http://h/{i}", time) for i, time in enumerate(times)], "record int, key binary, uri string, text string"
    )
    for expression in (
        "cast(text as timestamp)", "cast(text as timestamp_ntz)", "cast(text as date)",
        "date_format(cast(text as timestamp), 'yyyyMMddHHmmss')",
    ):
        timed = rows.withColumn("fetch_time", F.expr(expression))
        found = [dedup(timed, keep=keep, order=["record"]).first().record for keep in ("newest", "oldest")]
        assert found == [1, 2], expression
    close = rows.selectExpr(
        "record", "key", "uri", "timestamp'2020-01-01 00:00:00' + make_interval(0, 0, 0, 0, 0, 0, record / 1000000) fetch_time"
    )
    assert dedup(close, keep="newest", order=["record"]).first().record == 2
    # Where daylight saving time skips an hour, a time without a zone is not one of the next hour.
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        times = F.expr("timestamp_ntz'2021-03-14 03:10:00' - make_interval(0, 0, 0, 0, 0, 40 * record)")
        skipped = rows.withColumn("fetch_time", times)
        assert [dedup(skipped, keep=keep, order=["record"]).first().record for keep in ("newest", "oldest")] == [0, 2]
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    # What is no time or status comes last, and does not stop the job.
    odd = rows.withColumn("fetch_time", F.lit("-")).withColumn("fetch_status", F.lit(""))
    assert dedup(odd, keep="best", order=["record"]).first().record == 0


def test_rows_that_were_seen_are_left_out(spark):
    rows = canonicalize(spark.createDataFrame([("http://h",), ("http://g",), ("http://h:x",), (None,)], "url string"))
    seen = canonicalize(spark.createDataFrame([("HTTP://H/",), ("HTTP://H:80/",)], "url string"))
    found = anti_join_seen(rows, seen).collect()
    assert {row.url for row in found} == {"http://g", "http://h:x", None} and len(found) == 3


def test_streams_append_columns_and_new_keys(spark, tmp_path):
    """Stateless columns in append mode, and a batch function that appends the keys that were not seen before."""
    import irikey.spark as functions

    landing, kept = tmp_path / "landing", str(tmp_path / "kept")
    for number, urls in enumerate([["HTTP://h", "http://h/", "x", None], ["http://h/#", "http://g/a b"]]):
        rows = [json.dumps({"url": url, "i": f"{number}-{i}"}).encode() + b"\n" for i, url in enumerate(urls)]
        # Spark reads files in the order of their times.
        os.utime(write(landing / f"{number}.json", b"".join(rows)), (1_700_000_000 + number,) * 2)

    def stream(files):
        return spark.readStream.schema("url string, i string").option("maxFilesPerTrigger", files).json(str(landing))

    def run(frame, name):
        done = frame.option("checkpointLocation", str(tmp_path / f"{name}-checkpoint")).trigger(availableNow=True).start()
        assert done.awaitTermination(120) and done.exception() is None

    columns = stream(2).select("i", functions.uri("url").alias("uri"), functions.key("url").alias("key"))
    run(columns.writeStream.format("parquet").option("path", str(tmp_path / "rows")).outputMode("append"), "rows")
    found = {row["i"]: (row["uri"], row["key"]) for row in pq.read_table(tmp_path / "rows").to_pylist()}
    urls = {row["i"]: row["url"] for file in sorted(landing.iterdir()) for row in map(json.loads, file.read_text().splitlines())}
    assert len(urls) == 6
    assert found == {i: (irikey.uris([url])[0], irikey.keys([url])[0]) for i, url in urls.items()}

    def append_new(batch, number):
        new = dedup(batch, order=["i"])
        if pathlib.Path(kept).exists():
            new = anti_join_seen(new, spark.read.parquet(kept))
        new.write.mode("append").parquet(kept)

    rows = canonicalize(stream(1), drop_fragment=True)
    run(rows.writeStream.foreachBatch(append_new), "kept")
    expected = {("0-0", "http://h/"), ("1-1", "http://g/a%20b")}
    assert {(row["i"], row["uri"]) for row in pq.read_table(kept).to_pylist()} == expected
    # A batch that runs again appends nothing.
    append_new(canonicalize(spark.read.json(str(landing)), drop_fragment=True), 0)
    assert {(row["i"], row["uri"]) for row in pq.read_table(kept).to_pylist()} == expected and pq.read_table(kept).num_rows == 2


def test_a_merge_into_a_table_of_delta_inserts_new_keys_only(spark, tmp_path):
    """Delta's jar for Spark is not in PyPI; the package deltalake reads and merges the same tables."""
    deltalake = pytest.importorskip("deltalake")
    first = canonicalize(spark.createDataFrame([("HTTP://h", 1), ("http://g", 2)], "url string, i int"), columns=["uri", "key"])
    second = canonicalize(
        spark.createDataFrame([("http://h:80/", 3), ("http://f", 4)], "url string, i int"), columns=["uri", "key"]
    )
    deltalake.write_deltalake(tmp_path / "kept", first.toArrow())
    table = deltalake.DeltaTable(tmp_path / "kept")
    for _ in range(2):
        table.merge(
            second.toArrow(), "kept.key = new.key", source_alias="new", target_alias="kept"
        ).when_not_matched_insert_all().execute()
    rows = pa.table(table.to_pyarrow_table() if hasattr(table, "to_pyarrow_table") else table)
    assert sorted(rows["i"].to_pylist()) == [1, 2, 4]


HEADER, DASH = b'!OpenWayback-CDXJ 1.0\n', b'org,example)/y - {"url": "http://example.org/y", "status": "-"}\n'
CDXJ = b"""org,example)/ 20200101000000 {"url": "http://example.org/", "status": "200"}
org,example)/ 20210101000000 {"url": "HTTP://Example.org:80/", "status": "301"}
org,example)/x 20210101000000 {"url": "http://example.org:x/", "status": "200"}
org,example)/y 20210101000000 {"url": "http://example.org/y", "status": ""}
"""


@pytest.fixture
def run(spark, tmp_path):
    from irikey import job

    def run(source, kind, *flags):
        out = tmp_path / f"{kind}-out-{len(list(tmp_path.iterdir()))}"
        arguments = job.parse([str(source), "--output", str(out), "--format", kind, "--files", "2", *flags])
        report = job.run(spark, arguments)
        assert report["read"] == report["kept"] + report["duplicate"] + report["faulty"] + report["null"]
        return report, pq.read_table(out).to_pylist()

    return run


def write(path, contents):
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(contents)
    return path


def test_the_job_reads_lines_as_the_command_does(run, tmp_path):
    report, rows = run(write(tmp_path / "cdxj/part", HEADER + CDXJ + DASH), "cdxj", "--keep", "newest")
    assert [report[name] for name in ("read", "kept", "duplicate", "faulty", "headers")] == [5, 2, 2, 1, 1]
    first = next(row for row in rows if row["uri"] == "http://example.org/")
    assert first["fetch_status"] == 301 and first["copies"] == 2 and first["fetch_time"].year == 2021
    assert bytes(first["url"]) == b"HTTP://Example.org:80/"
    # Only LF ends a line; a CR before it does not belong to the URL.
    report, rows = run(write(tmp_path / "text/part", b"http://h/\xff\nHTTP://h/%ff\r\nx\nhttp://h/a\rb\n"), "text")
    assert (report["read"], report["kept"], report["duplicate"], report["faults"]) == (4, 2, 1, {"relative": 1})
    assert report["flags"] == {"not-utf8": 1, "control": 1}
    assert {bytes(row["url"]) for row in rows} == {b"http://h/\xff", b"http://h/a\rb"}
    # The first line of a batch may begin as a compressed file, a table or UTF-16 does. Only the first byte order mark is one.
    mark = b"\xef\xbb\xbf"
    for number, head in enumerate([b"\x1f\x8b", b"PK\x03\x04", b"PAR1\x15", b"\xff\xfe", b"%PDF-", mark, mark + mark]):
        report, rows = run(write(tmp_path / f"head{number}/part", head + b"http://i/\nhttp://h/\n"), "text")
        has_mark = head == mark
        assert (report["read"], report["kept"], report["faulty"]) == ((2, 2, 0) if has_mark else (2, 1, 1)), head
        assert {bytes(row["url"]) for row in rows} == ({b"http://i/", b"http://h/"} if has_mark else {b"http://h/"})
    report, _ = run(write(tmp_path / "jsonl/part", b'{"url": "http://h"}\n{"url": null}\nnope\n'), "jsonl")
    assert (report["read"], report["kept"], report["faulty"]) == (3, 1, 2)
    with pytest.raises(Exception, match="exists|EXIST"):
        run(tmp_path / "text", "text", "--output", str(tmp_path / "text"))


def test_the_job_reads_parquet_with_columns_of_any_name(run, tmp_path):
    table = pa.table({"url": ["http://h", "HTTP://H:80", None], "source": ["a", "b", "c"], "Record": [1, 2, 3], "a.b": [1, 2, 3]})
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "part.parquet")
    report, rows = run(tmp_path / "in", "parquet")
    assert (report["read"], report["kept"], report["duplicate"], report["null"]) == (3, 1, 1, 1)
    assert (rows[0]["source"], rows[0]["a.b"], rows[0]["irikey_record"]) == ("a", 1, 0)


def test_the_job_applies_base_and_strict_and_checks_its_counts(run, tmp_path, monkeypatch):
    import irikey.spark
    from irikey import job

    assert job._canonicalizer(job.parse(["x", "--output", "y", "--strict"])).configuration["strict"]
    table = pa.table({"link": ["x", "http://h/a b", "http://h/x"], "page": ["http://h/", None, None]})
    pq.write_table(table, tmp_path / "links.parquet")
    flags = ("--url", "link", "--base", "page", "--strict")
    report, rows = run(tmp_path / "links.parquet", "parquet", *flags)
    assert (report["kept"], report["duplicate"], len(report["faults"]), rows[0]["uri"]) == (1, 1, 1, "http://h/x")
    # A job that loses rows fails.
    dedup = irikey.spark.dedup
    monkeypatch.setattr(irikey.spark, "dedup", lambda rows, **options: dedup(rows.where("link <> 'x'"), **options))
    with pytest.raises(RuntimeError, match="read is not kept"):
        run(tmp_path / "links.parquet", "parquet", *flags)


def test_the_job_reads_archives_in_folders_globs_and_lists(run, tmp_path):
    import gzip

    def record(kind, target, body=b"", date=b"2020-01-02T03:04:05Z"):
        head = b"WARC/1.0\r\nWARC-Type: %s\r\nWARC-Date: %s\r\nContent-Length: %d\r\n" % (kind, date, len(body))
        return head + (b"WARC-Target-URI: %s\r\n" % target if target else b"") + b"\r\n" + body + b"\r\n\r\n"

    records = [record(b"warcinfo", b""), record(b"response", b"<http://h/>", b"HTTP/1.1 200 OK\r\n\r\n"),
               record(b"revisit", b"HTTP://H", b"HTTP/1.1 304 x\r\n\r\n"), record(b"resource", b"http://h/\xff")]
    folder = tmp_path / "warc"
    write(folder / "a.warc.gz", b"".join(map(gzip.compress, records)))
    # A name that would be another one if Spark's path were decoded as a URL.
    write(folder / "b c%20d#e?.warc", records[1])
    lists = write(tmp_path / "warc.paths.gz", gzip.compress(b"a.warc.gz\nb c%20d#e?.warc\n"))
    for source, flags in (
        (folder, ()), (f"{folder}/*.warc*", ()), (folder.as_uri(), ()), (f"@{lists}", ("--prefix", f"{folder}/")),
    ):
        report, rows = run(source, "warc", *flags)
        assert [report[name] for name in ("read", "kept", "duplicate", "faulty", "skipped")] == [4, 2, 2, 0, 1], (source, report)
        assert report["damaged"] == []
        assert {(row["uri"], bytes(row["url"]), row["fetch_status"]) for row in rows} == {
            ("http://h/", b"http://h/", 200),
            ("http://h/%FF", b"http://h/\xff", None),
        }
        assert {row["fetch_time"].replace(tzinfo=None).isoformat() for row in rows} == {"2020-01-02T03:04:05"}
    # A damaged archive is reported, and the records before the damage are read.
    write(folder / "a.warc.gz", b"".join(map(gzip.compress, records))[:-20])
    report, _ = run(folder / "a.warc.gz", "auto")
    assert len(report["damaged"]) == 1 and "a.warc.gz" in report["damaged"][0] and report["read"] == 2


def test_the_job_reads_archives_of_other_file_systems(spark, run, tmp_path):
    """A file system of Hadoop that tasks cannot open themselves, as that of s3a://: its files come as bytes."""
    import gzip
    import zipfile

    sample = REPOSITORY / "data" / "samples" / "crawl.warc.gz"
    (tmp_path / "warc").mkdir()
    for name in ("a.warc.gz", "b.warc.gz"):
        write(tmp_path / "warc" / name, sample.read_bytes())
    with zipfile.ZipFile(tmp_path / "warc" / "d.wacz", "w") as package:
        package.write(sample, "archive/a.warc.gz")
    write(tmp_path / "warc" / "c.warc", gzip.decompress(sample.read_bytes())[:5000])
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    hadoop.set("fs.viewfs.mounttable.cluster.link./warc", f"file://{tmp_path}/warc")
    batch_len = spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch")
    try:
        report, rows = run("viewfs://cluster/warc", "warc")
    finally:
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", batch_len)
    expected, counts = irikey.read(sample, ["uri", "fault"])
    fine = [row["uri"] for row in pa.table(expected).to_pylist() if row["fault"] is None]
    assert {row["uri"] for row in rows} == set(fine) and report["kept"] == len(set(fine))
    assert report["read"] > 3 * counts["records"] and len(report["damaged"]) == 1
    assert report["damaged"][0].startswith("viewfs://cluster/warc/c.warc") and {row["source"] for row in rows} == {
        "viewfs://cluster/warc/a.warc.gz"
    }


def test_the_job_reads_the_members_of_packages(run, tmp_path):
    import zipfile

    sample = REPOSITORY / "data" / "samples" / "crawl.warc.gz"
    with zipfile.ZipFile(tmp_path / "x.wacz", "w") as package:
        for name in "ab":
            package.write(sample, f"archive/{name}.warc.gz")
    report, rows = run(tmp_path / "x.wacz", "auto")
    count = irikey.read(sample).counts["records"]
    assert report["read"] == 2 * count and report["damaged"] == []
    assert [source.endswith("/x.wacz!archive/a.warc.gz") for source in {row["source"] for row in rows}] == [True]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--url", "link"], "--url names a column of Parquet files, and has no effect with --format text"),
        (["--base", "page", "--format", "cdxj"], "--base names a column of Parquet files, and has no effect with --format cdxj"),
        (["--time", "t", "--format", "warc", "--keep", "newest"], "--time names a column of Parquet files"),
        (
            ["--time", "t", "--format", "parquet"],
            "--time has no effect with --keep first; leave it out, or use --keep newest or oldest or best",
        ),
        (
            ["--status", "s", "--format", "parquet", "--keep", "newest"],
            "--status has no effect with --keep newest; leave it out, or use --keep best",
        ),
        (["--prefix", "s3a://b/"], "--prefix has no effect without a list of paths"),
        (["--equivalences", "x"], "--equivalences has no effect with --rung scheme"),
        (["--files", "0"], "argument --files: expected a number from 1, found 0"),
        (["--files", "x"], "argument --files: expected a number from 1, found x"),
    ],
)
def test_flags_of_the_job_without_an_effect_are_refused(flags, message, capsys):
    from irikey import job

    with pytest.raises(SystemExit) as caught:
        job.parse(["x", "--output", "y", *flags])
    assert caught.value.code == 2 and message in capsys.readouterr().err
    chosen = job.parse(["@x", "--output", "y", "--format", "parquet", "--keep", "best", "--time", "t", "--prefix", "p"])
    assert (chosen.url, chosen.base, chosen.time, chosen.status, chosen.prefix) == ("url", None, "t", "fetch_status", "p")
    assert job.parse(["x", "--output", "y"]).prefix == ""


def test_the_job_starts_by_spark_submit(tmp_path):
    (tmp_path / "urls.txt").write_text("http://h\nHTTP://H:80/\n")
    submit = pathlib.Path(pyspark.__file__).parent / "bin" / "spark-submit"
    job = pathlib.Path(irikey.__file__).parent / "job.py"
    report = tmp_path / "report.json"
    command = [submit, "--master", "local[1]", "--conf", "spark.ui.enabled=false", job, tmp_path / "urls.txt",
               "--output", tmp_path / "out", "--files", "1", "--report", report]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=dict(os.environ))
    assert done.returncode == 0, done.stderr[-3000:]
    counts = json.loads(report.read_text())
    assert (counts["read"], counts["kept"], counts["duplicate"]) == (2, 1, 1)
