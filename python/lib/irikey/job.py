"""A Spark job that writes one row per canonical URI.

usage: spark-submit --py-files ... job.py INPUT... --output FOLDER [--format text|parquet|cdxj|warc] [--keep first] ...
       (where the package is installed: spark-submit "$(python -m irikey.job --path)" INPUT... --output FOLDER)

Reads lines, Parquet with a column of URLs, CDXJ indexes, or whole files such as WARC with the readers of the command; adds
canonical URIs and keys, keeps one row per key, and writes Parquet in --files files. Every record is accounted for, or the job
fails: read = kept + duplicate + faulty + null. The report is printed as JSON.

Exit codes: 0; 2 if the flags are wrong; 4 if an input is damaged: the rows before the damage were read, and the report has the
messages in "damaged".
"""

from __future__ import annotations

import argparse
import json
import sys
import typing
from typing import TYPE_CHECKING, Any, Optional

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from irikey import Canonicalizer
    from irikey.spark import Counters

#: Formats whose files Spark splits at line ends, with the name of the format for the command.
LINES = {"text": "lines", "cdxj": "cdxj", "jsonl": "jsonl", "crawl-log": "crawl-log"}
#: Formats of which a task reads whole files, compressed or not.
WHOLE = ("auto", "warc", "wat", "cdx", "access-log")

#: What the readers of the command add to each row.
_MADE = ["uri", "key", "fault", "fault_at", "flags", "fetch_time", "fetch_status"]
_STATUS_DAMAGED = 4

#: Byte order mark of UTF-8. Bytes after it are read as text, whatever they are.
_MARK = b"\xef\xbb\xbf"

#: Flags that name columns of Parquet files, and their defaults.
_COLUMNS = {"url": "url", "base": None, "time": "fetch_time", "status": "fetch_status"}
#: Values of --keep that read a column.
_KEEPS = {"time": ("newest", "oldest", "best"), "status": ("best",)}


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Returns the options of the policy."""
    return {"rung": arguments.rung, "strict": arguments.strict, "equivalences": arguments.equivalences}


def _canonicalizer(arguments: argparse.Namespace) -> Canonicalizer:
    from irikey import Canonicalizer
    from irikey._policy import loaded

    return Canonicalizer(types="spark", **loaded(_options(arguments)))


def _read(canonicalizer: Canonicalizer, source: Any, format: str, name: Optional[str] = None) -> tuple[Any, dict[str, Any]]:
    """Returns the rows of a source with the column url, the record's bytes, and their positions; and its counts."""
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = ["source", "record", "record_offset", "input", *_MADE]
    table, counts = canonicalizer.read(source, columns=columns, format=format, name=name, threads=1)
    rows = pa.table(table)
    url = pc.coalesce(rows["input"].cast(pa.binary()), rows["uri"].cast(pa.binary()))
    return rows.drop_columns(["input"]).add_column(0, "url", url), counts


def _schema(canonicalizer: Canonicalizer, *positions: str) -> Any:
    from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

    made = json.loads(_made_schema(canonicalizer))
    fields = [StructField("url", BinaryType()), *StructType.fromJson(made).fields]
    kinds = {"source": StringType(), "block": LongType(), "record": LongType()}
    return StructType([*fields, *[StructField(name, kinds[name]) for name in positions]])


def _made_schema(canonicalizer: Canonicalizer) -> str:
    table, _ = canonicalizer.read(b"", columns=_MADE, format="lines", threads=1)
    return table.schema.spark_json()


def read_lines(spark: SparkSession, paths: list[str], arguments: argparse.Namespace, counters: Counters) -> DataFrame:
    """Returns the rows of text files. Lines are ordered within their split, and splits within their file."""
    import numpy as np
    import pyarrow as pa
    from pyspark.sql import functions as F

    # Lines end with LF only, as for the command. Bytes, because Spark does not check that its strings are UTF-8.
    lines = spark.read.option("lineSep", "\n").text(paths).select(
        F.col("value").cast("binary").alias("value"),
        F.col("_metadata.file_path").alias("source"),
        F.col("_metadata.file_block_start").alias("block"),
        F.monotonically_increasing_id().alias("record"),
    )
    canonicalizer, format = _canonicalizer(arguments), LINES[arguments.format]

    def rows(batches: typing.Iterator[pa.RecordBatch]) -> typing.Iterator[pa.RecordBatch]:
        streams = []
        for batch in batches:
            values = batch.column(0).to_pylist()
            # Without a mark, a batch whose first line begins as a compressed or binary file does would be read as such a file.
            # Spark has removed the mark of the file itself, and one in another line belongs to its URL.
            found, counts = _read(canonicalizer, b"".join([_MARK, *(value + b"\n" for value in values)]), format)
            streams.append(counts)
            ends = len(_MARK) + np.cumsum([len(value) + 1 for value in values])
            line = np.searchsorted(ends, found["record_offset"].to_numpy(), side="right")
            places = [pa.array(batch.column(name)).take(pa.array(line)) for name in ("source", "block", "record")]
            found = found.drop_columns(["source", "record", "record_offset"])
            columns = [column.combine_chunks() for column in found.columns]
            yield pa.RecordBatch.from_arrays([*columns, *places], names=[*found.column_names, "source", "block", "record"])
        counters.add(_sum(streams))

    return lines.mapInArrow(rows, _schema(canonicalizer, "source", "block", "record"))


def read_files(spark: SparkSession, paths: list[str], arguments: argparse.Namespace, counters: Counters) -> DataFrame:
    """Returns the rows of whole files, such as WARC: one task reads a file from beginning to end.

    Files of the local file system are opened by the tasks, with little memory; files of any other file system come as bytes
    through Hadoop.
    """
    import pyarrow as pa
    from pyspark.sql import functions as F

    files = spark.read.format("binaryFile").load(paths)
    first = files.select("path").first()
    if first is None:
        raise ValueError(f"no files in {', '.join(paths)}")
    is_local = first["path"].startswith("file:")
    if not is_local:
        # A batch must not hold many files.
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "1")
    files = files.select("path", (F.lit(None).cast("binary") if is_local else F.col("content")).alias("content"))
    canonicalizer, format = _canonicalizer(arguments), arguments.format

    def rows(batches: typing.Iterator[pa.RecordBatch]) -> typing.Iterator[pa.RecordBatch]:
        streams = []
        for batch in batches:
            for path, content in zip(batch.column(0).to_pylist(), batch.column(1)):
                # Spark does not encode this path, which may contain "%", "#" and "?".
                source = path.removeprefix("file:") if is_local else content.as_py()
                found, counts = _read(canonicalizer, source, format, name=path)
                streams.append(counts)
                # An archive with several members has a source for each.
                places = [found["source"], found["record"].cast(pa.int64())]
                found = found.drop_columns(["source", "record", "record_offset"])
                for name, place in zip(("source", "record"), places):
                    found = found.append_column(name, place)
                yield from found.combine_chunks().to_batches()
        counters.add(_sum(streams))

    return files.mapInArrow(rows, _schema(canonicalizer, "source", "record"))


def _sum(streams: list[dict[str, Any]]) -> dict[str, Any]:
    from irikey._spark_rows import _add

    sums: dict[str, Any] = {}
    for counts in streams:
        _add(sums, counts)
    return sums


def read_parquet(
    spark: SparkSession, paths: list[str], arguments: argparse.Namespace, counters: Counters
) -> tuple[DataFrame, list[str]]:
    """Returns the rows of Parquet files, and the columns of their position."""
    from pyspark.sql import functions as F

    from irikey.spark import canonicalize

    table = spark.read.parquet(*paths)
    present = {name.lower() for name in table.columns}
    # The files may have columns of these names.
    order = [name if name not in present else f"irikey_{name}" for name in ("source", "record")]
    place = [F.col("_metadata.file_path").alias(order[0]), F.col("_metadata.row_index").alias(order[1])]
    captures = table.select("*", *place)
    return canonicalize(captures, arguments.url, base=arguments.base, counters=counters, **_options(arguments)), order


def expand(spark: SparkSession, inputs: list[str], prefix: str = "") -> list[str]:
    """Returns paths for inputs: ``@LIST`` names a file with one path per line, compressed or not, such as ``warc.paths.gz``;
    ``prefix`` comes before its relative paths."""
    paths = []
    for name in inputs:
        if not name.startswith("@"):
            paths.append(name)
            continue
        lines = [row[0].strip() for row in spark.read.option("lineSep", "\n").text(name[1:]).collect()]
        paths.extend(line if ":" in line.partition("/")[0] or line.startswith("/") else prefix + line for line in lines if line)
    if not paths:
        raise ValueError(f"no paths in {', '.join(inputs)}; write one path per line")
    return paths


def run(spark: SparkSession, arguments: argparse.Namespace) -> dict[str, Any]:
    """Runs the job and returns its report."""
    from pyspark.sql import functions as F

    from irikey.spark import Counters, dedup

    counters = Counters(spark)
    paths = expand(spark, arguments.inputs, arguments.prefix)
    if arguments.format == "parquet":
        rows, order = read_parquet(spark, paths, arguments, counters)
    elif arguments.format in LINES:
        rows, order = read_lines(spark, paths, arguments, counters), ["source", "block", "record"]
    else:
        rows, order = read_files(spark, paths, arguments, counters), ["source", "record"]
    kept = dedup(rows, keep=arguments.keep, order=order, time=arguments.time, status=arguments.status, copies="copies")
    kept.repartition(arguments.files).write.mode("errorifexists").parquet(arguments.output)
    # The job reads its input once: what was read was counted on the way.
    written = spark.read.parquet(arguments.output)
    sums = written.agg(F.count(F.lit(1)).alias("kept"), F.coalesce(F.sum("copies"), F.lit(0)).alias("copies")).first()
    assert sums is not None
    counts = counters.value
    report = {
        "read": counts["rows"],
        "kept": sums["kept"],
        "duplicate": sums["copies"] - sums["kept"],
        "faulty": counts["faulty"],
        "null": counts["nulls"],
        "headers": counts.get("headers", 0),
        "skipped": counts.get("skipped", 0),
        "damaged": sorted(counts.get("errors", [])),
        "faults": counts["faults"],
        "flags": counts["flags"],
        "keep": arguments.keep,
        "rung": arguments.rung,
    }
    if report["kept"] + report["duplicate"] + report["faulty"] + report["null"] != report["read"]:
        raise RuntimeError(f"read is not kept + duplicate + faulty + null: {report}")
    return report


def _count(text: str) -> int:
    """Returns a number that is at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1, found {text}")
    return int(text)


def parse(words: list[str]) -> argparse.Namespace:
    """Returns the flags of the job."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "inputs", nargs="+", help="files, directories and globs, as Spark names them; @LIST is a file with one path per line"
    )
    parser.add_argument("--prefix", help="comes before relative paths of lists, such as s3a://commoncrawl/")
    parser.add_argument("--output", required=True, help="directory, which must not exist")
    parser.add_argument("--format", choices=[*LINES, "parquet", *WHOLE], default="text",
                        help="text, cdxj, jsonl, crawl-log and parquet are split; whole files are read otherwise")
    parser.add_argument("--url", help="column of the URL, with --format parquet (default: url)")
    parser.add_argument("--base", help="column of the base, with --format parquet")
    parser.add_argument(
        "--time", help="column of the time for --keep newest, oldest and best, with --format parquet (default: fetch_time)"
    )
    parser.add_argument("--status", help="column of the status for --keep best, with --format parquet (default: fetch_status)")
    parser.add_argument("--rung", "--key", choices=["simple", "syntax", "scheme", "protocol"], default="scheme")
    parser.add_argument("--equivalences", help="file that irikey learn wrote, on the driver; for --rung protocol")
    parser.add_argument("--keep", choices=["first", "last", "newest", "oldest", "best"], default="first")
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--files", type=_count, default=200, help="Parquet files to write")
    parser.add_argument("--report", help="JSON file on the driver for the report")
    arguments = parser.parse_args(words)
    useless = _useless(arguments)
    if useless is not None:
        parser.error(useless)
    for name, default in _COLUMNS.items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, default)
    arguments.prefix = arguments.prefix or ""
    return arguments


def _useless(arguments: argparse.Namespace) -> Optional[str]:
    """Returns a message about a flag that has no effect with the others."""
    given = [name for name in _COLUMNS if getattr(arguments, name) is not None]
    if given and arguments.format != "parquet":
        return f"--{given[0]} names a column of Parquet files, and has no effect with --format {arguments.format}; leave it out"
    unread = [name for name in given if arguments.keep not in _KEEPS.get(name, (arguments.keep,))]
    if unread:
        return (
            f"--{unread[0]} has no effect with --keep {arguments.keep}; leave it out, or use --keep"
            f" {' or '.join(_KEEPS[unread[0]])}"
        )
    if arguments.prefix is not None and not any(name.startswith("@") for name in arguments.inputs):
        return "--prefix has no effect without a list of paths; leave it out, or name a list with @LIST"
    if arguments.equivalences is not None and arguments.rung != "protocol":
        return f"--equivalences has no effect with --rung {arguments.rung}; leave it out, or use --rung protocol"
    return None


def main(words: Optional[list[str]] = None) -> int:
    """Runs the job with the arguments of this process and returns its exit code."""
    words = sys.argv[1:] if words is None else words
    if words == ["--path"]:
        print(__file__)
        return 0
    arguments = parse(words)
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.appName("irikey").getOrCreate()
    try:
        report = run(spark, arguments)
    finally:
        spark.stop()
    text = json.dumps(report, indent=2)
    print(text)
    if arguments.report:
        with open(arguments.report, "w", encoding="utf-8") as file:
            file.write(text + "\n")
    return _STATUS_DAMAGED if report["damaged"] else 0


if __name__ == "__main__":
    sys.exit(main())
