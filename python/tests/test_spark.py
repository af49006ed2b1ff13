"""Spark with executors in processes of their own: the same rows and representatives as on one machine, also when an executor
is killed during the job.

IRIKEY names the command to compare with, IRIKEY_SPARK_LINES the number of lines (default: 2,000,000).
"""

import json
import os
import pathlib
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

from irikey.spark import Counters, canonicalize, dedup  # noqa: E402

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
        canonicalize(text, url="uri", key="protocol")
    with pytest.raises(ValueError, match="learned with key "):
        canonicalize(text, url="uri", key="protocol", key_hash="blake3", equivalences=str(learned))
    with pytest.raises(ValueError, match="not a table of equivalences"):
        canonicalize(text, url="uri", key="protocol", equivalences=str(rows))
    subprocess.run([command, "canon", "-q", captures, "-o", out, "--columns", "record", "--key", "protocol",
                    "--equivalences", learned], check=True)
    found = pq.read_table(out, columns=["record", "key_protocol"])
    expected = dict(zip(found["record"].to_pylist(), found["key_protocol"].to_pylist()))
    made = canonicalize(frame.select("record", "uri"), url="uri", key="protocol", columns=["key", "key_scheme"],
                        equivalences=str(learned)).collect()
    assert {row.record: bytes(row.key) for row in made} == expected
    assert sum(row.key != row.key_scheme for row in made) > CAPTURES // 10


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
    rows = spark.range(400_000).selectExpr("id", "cast(if(id % 10 = 0, concat('k', id), 'one') as binary) key", "cast(null as string) fault")
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
    known = spark.createDataFrame([(b"k", b"r")], "key binary, representative binary")
    other = spark.createDataFrame([(6, b"r", "http://r/", 0, 200)], rows.schema)
    assert [row.record for row in dedup(rows.union(other), order=["record"], equivalences=known).collect()] == [1]


def test_invalid_arguments_are_reported_before_the_job(spark):
    rows = spark.createDataFrame([("http://h", 1)], "url string, n int")
    for invalid in [{"url": "x"}, {"base": "x"}, {"key": "x"}, {"columns": ["x"]}]:
        with pytest.raises(ValueError):
            canonicalize(rows, **invalid)
    with pytest.raises(ValueError, match="already"):
        canonicalize(rows.withColumnRenamed("n", "key"))
    for invalid in [{"order": []}, {"order": ["x"]}, {"keep": "x"}, {"keep": "newest"}, {"key": "x"}]:
        with pytest.raises(ValueError):
            dedup(canonicalize(rows), **{"order": ["n"], **invalid})
    with pytest.raises(Exception, match="expected text or bytes"):
        canonicalize(rows, url="n").collect()


CDXJ = """org,example)/ 20200101000000 {"url": "http://example.org/", "status": "200"}
org,example)/ 20210101000000 {"url": "HTTP://Example.org:80/", "status": "301"}
org,example)/x 20210101000000 {"url": "http://example.org:x/", "status": "200"}
"""


def test_the_job_accounts_for_every_record(spark, tmp_path):
    import argparse

    from irikey import job

    def run(text, kind, *flags):
        (tmp_path / kind).mkdir()
        (tmp_path / kind / "part").write_bytes(text)
        out = tmp_path / f"{kind}-out"
        arguments = job.parse([str(tmp_path / kind), "--output", str(out), "--format", kind, "--files", "2", *flags])
        assert isinstance(arguments, argparse.Namespace)
        return job.run(spark, arguments), pq.read_table(out).to_pylist()

    report, rows = run(CDXJ.encode(), "cdxj", "--keep", "newest")
    assert (report["read"], report["kept"], report["duplicate"], report["faulty"]) == (3, 1, 1, 1)
    assert rows[0]["fetch_status"] == 301 and rows[0]["copies"] == 2
    report, rows = run(b"http://h/\xff\nHTTP://h/%ff\nx\n", "text")
    assert (report["kept"], report["duplicate"], report["faults"]) == (1, 1, {"relative": 1})
    assert bytes(rows[0]["url"]) == b"http://h/\xff"
    warc = tmp_path / "x.warc"
    fields = ["WARC/1.0", "WARC-Type: resource", "WARC-Date: 2020-01-02T03:04:05Z", "Content-Length: 0"]
    records = ["\r\n".join([*fields, f"WARC-Target-URI: {url}", "", "", "", ""]) for url in ("<http://h/>", "HTTP://H", "x:y")]
    warc.write_bytes("".join(records).encode())
    arguments = job.parse([str(warc), "--output", str(tmp_path / "warc-out"), "--format", "warc", "--files", "1"])
    report = job.run(spark, arguments)
    assert (report["read"], report["kept"], report["duplicate"]) == (3, 2, 1)
    assert {row["fetch_time"] for row in pq.read_table(tmp_path / "warc-out").to_pylist()} == {20200102030405}
    with pytest.raises(Exception, match="exists|EXIST"):
        arguments = job.parse([str(tmp_path / "text"), "--output", str(tmp_path / "text-out")])
        job.run(spark, arguments)


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
