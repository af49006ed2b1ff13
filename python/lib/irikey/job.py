"""A Spark job that writes one row per canonical URI.

usage: spark-submit --py-files ... job.py INPUT... --output FOLDER [--format text|parquet|cdxj|warc] [--keep first] ...
       (where the package is installed: spark-submit "$(python -m irikey.job --path)" INPUT... --output FOLDER)

Reads lines, Parquet with a column of URLs, CDXJ indexes or WARC files, adds canonical URIs and keys, keeps one row per key,
and writes Parquet in --files files. Every record is accounted for, or the job fails: read = kept + duplicate + faulty +
null.
"""

import argparse
import json
import sys


def read(spark, paths, kind, url):
    """Returns the captures of ``paths`` (url as bytes, and what the format carries) and the columns of their position."""
    from pyspark.sql import functions as F

    if kind == "parquet":
        place = [F.col("_metadata.file_path").alias("source"), F.col("_metadata.row_index").alias("record")]
        return spark.read.parquet(*paths).select("*", *place), ["source", "record"]
    if kind == "warc":
        return read_warc(spark, paths), ["source", "record"]
    # Lines are ordered within their split, and splits within their file.
    place = [
        F.col("_metadata.file_path").alias("source"),
        F.col("_metadata.file_block_start").alias("block"),
        F.monotonically_increasing_id().alias("record"),
    ]
    lines = spark.read.text(list(paths)).select(F.col("value"), *place)
    if kind == "text":
        # As bytes, because Spark does not check that its strings are UTF-8.
        found = lines.select(F.col("value").cast("binary").alias(url), "source", "block", "record")
    else:
        # `SURT timestamp {"url": ..., "status": ...}`
        fields = F.regexp_extract("value", r"^\S+ (\d{14}) (\{.*)$", 2)
        found = lines.select(
            F.get_json_object(fields, "$.url").cast("binary").alias(url),
            F.regexp_extract("value", r"^\S+ (\d{14}) ", 1).cast("long").alias("fetch_time"),
            F.get_json_object(fields, "$.status").cast("int").alias("fetch_status"),
            "source",
            "block",
            "record",
        )
    return found, ["source", "block", "record"]


def read_warc(spark, paths):
    """Returns the responses, revisits and resources of WARC files, one task per file. Requires warcio."""
    from pyspark.sql.types import LongType, StringType, StructField, StructType, BinaryType, IntegerType

    schema = StructType([
        StructField("url", BinaryType()), StructField("fetch_time", LongType()), StructField("fetch_status", IntegerType()),
        StructField("source", StringType()), StructField("record", LongType()),
    ])

    def captures(path):
        from warcio.archiveiterator import ArchiveIterator

        with open(path, "rb") as file:
            for number, record in enumerate(ArchiveIterator(file)):
                if record.rec_type not in ("response", "revisit", "resource"):
                    continue
                headers = record.rec_headers
                target = (headers.get_header("WARC-Target-URI") or "").strip("<>")
                digits = "".join(filter(str.isdigit, headers.get_header("WARC-Date") or ""))[:14]
                code = record.http_headers.get_statuscode() if record.http_headers else ""
                yield (target.encode(), int(digits) if digits else None, int(code) if code.isdigit() else None, path, number)

    return spark.createDataFrame(spark.sparkContext.parallelize(paths, len(paths)).flatMap(captures), schema)


def run(spark, arguments):
    """Runs the job and returns its report."""
    from pyspark.sql import functions as F

    from irikey.spark import Counters, canonicalize, dedup

    captures, order = read(spark, arguments.inputs, arguments.format, arguments.url)
    counters = Counters(spark)
    rows = canonicalize(
        captures,
        arguments.url,
        base=arguments.base,
        key=arguments.key,
        counters=counters,
        strict=arguments.strict,
        equivalences=arguments.equivalences,
    )
    kept = dedup(rows, key="key", keep=arguments.keep, order=order, copies="copies")
    kept.repartition(arguments.files).write.mode("errorifexists").parquet(arguments.output)
    written = spark.read.parquet(arguments.output)
    sums = written.agg(F.count(F.lit(1)).alias("kept"), F.coalesce(F.sum("copies"), F.lit(0)).alias("copies")).first()
    read_rows = captures.count()
    counts = counters.check(read_rows)
    report = {
        "read": read_rows,
        "kept": sums["kept"],
        "duplicate": sums["copies"] - sums["kept"],
        "faulty": counts["faulty"],
        "null": counts["nulls"],
        "faults": counts["faults"],
        "flags": counts["flags"],
        "keep": arguments.keep,
        "key": arguments.key,
    }
    if report["kept"] + report["duplicate"] + report["faulty"] + report["null"] != read_rows:
        raise RuntimeError(f"read is not kept + duplicate + faulty + null: {report}")
    return report


def parse(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inputs", nargs="+", help="files or folders, as Spark names them; for warc, files that every worker can read")
    parser.add_argument("--output", required=True, help="folder, which must not exist")
    parser.add_argument("--format", choices=["text", "parquet", "cdxj", "warc"], default="text")
    parser.add_argument("--url", default="url", help="column of the URL, with --format parquet")
    parser.add_argument("--base", help="column of the base, with --format parquet")
    parser.add_argument("--key", choices=["simple", "syntax", "scheme", "protocol"], default="scheme")
    parser.add_argument("--equivalences", help="file that irikey learn wrote, on the driver; for --key protocol")
    parser.add_argument("--keep", choices=["first", "last", "newest", "oldest", "best"], default="first")
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--files", type=int, default=200, help="Parquet files to write")
    parser.add_argument("--report", help="JSON file on the driver for the report")
    return parser.parse_args(words)


def main(words=None):
    words = sys.argv[1:] if words is None else words
    if words == ["--path"]:
        print(__file__)
        return
    arguments = parse(words)
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.appName("irikey").getOrCreate()
    report = run(spark, arguments)
    text = json.dumps(report, indent=2)
    print(text)
    if arguments.report:
        with open(arguments.report, "w", encoding="utf-8") as file:
            file.write(text + "\n")


if __name__ == "__main__":
    main()
