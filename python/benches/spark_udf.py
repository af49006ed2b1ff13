#!/usr/bin/env python3
"""Compares columns of irikey in Spark with the earlier ways and with pandas UDFs of w3lib and surt, interleaved; prints tables.

usage: benches/spark_udf.py FILE [--rows N] [--rounds N] [--table url|wide]

Each contestant reads the same cached rows and writes its columns to Spark's sink "noop", so that everything is computed. The
Python tools process a tenth of the rows; times are per row, and wall times of two cores. The first rounds warm up: the JVM
compiles its code, and Spark starts the workers of Python.
"""

import argparse
import os
import statistics
import sys
import time

os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

import pandas as pd
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import irikey
from irikey.spark import canonicalize, key, uri


def others():
    """Columns that captures have besides the URL, as in the index of Common Crawl: texts, numbers and a digest."""
    numbers = [F.hash("url", F.lit(i)).alias(f"number_{i}") for i in range(9)]
    texts = [F.concat_ws("/", F.lit(f"text-{i}"), F.substring("url", i, 12)).alias(f"text_{i}") for i in range(9)]
    return [F.md5("url").alias("digest"), F.substring("url", 1, 20).alias("host"), *numbers, *texts]


def with_all_columns(frame):
    """The way of the first version of canonicalize: all columns go through Python."""
    made = irikey.Canonicalizer(columns=["uri", "key"], types="spark")

    def rows(batches):
        for batch in batches:
            found = pa.record_batch(made.canonicalize(batch))
            yield pa.RecordBatch.from_arrays([*batch.columns, *found.columns], names=[*batch.schema.names, *found.schema.names])

    return frame.mapInArrow(rows, f"{frame._jdf.schema().toDDL()}, uri STRING, key BINARY")


def with_w3lib(urls: pd.Series) -> pd.Series:
    from w3lib.url import canonicalize_url

    def one(url):
        try:
            return canonicalize_url(url)
        except ValueError:
            return None

    return urls.map(one)


def with_surt(urls: pd.Series) -> pd.Series:
    import surt

    def one(url):
        try:
            return surt.surt(url)
        except Exception:
            return None

    return urls.map(one)


WARM_UPS = 3


def compare(title, own, contestants, rounds):
    """Measures the contestants, pairs of a data frame and its number of rows, and prints a table relative to ``own``."""
    found = {name: [] for name in contestants}
    for _ in range(rounds + WARM_UPS):
        for name, (frame, count) in contestants.items():
            begun = time.monotonic()
            frame.write.format("noop").mode("overwrite").save()
            found[name].append((time.monotonic() - begun) / count * 1e6)
    print(f"| {title} | microseconds per row, end to end | times the first irikey |\n|---|---:|---:|")
    for name, times in found.items():
        # Ratios are of one round.
        times, base = times[WARM_UPS:], found[own][WARM_UPS:]
        ratio = statistics.median(time / own_time for time, own_time in zip(times, base))
        print(f"| {name} | {statistics.median(times):.2f} [{min(times):.2f}-{max(times):.2f}] | {ratio:.2f} |")
    print(flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--table", choices=["url", "wide"], help="measure one table only")
    arguments = parser.parse_args()
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.driver.memory", "4g")
    spark = spark.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    lines = spark.read.text(arguments.file).select(F.col("value").alias("url")).limit(arguments.rows)
    many = lines.repartition(4).cache()
    count, columns = many.count(), [uri("url").alias("uri"), key("url").alias("key")]
    if arguments.table != "wide":
        few = many.sample(0.1, seed=1).cache()
        few_count = few.count()
        compare("the column url", "irikey: uri(url)", {
            "the column only": (many, count),
            "irikey: uri(url)": (many.select(uri("url")), count),
            "irikey: uri(url), key(url)": (many.select(*columns), count),
            "irikey: canonicalize, uri and key": (canonicalize(many, columns=["uri", "key"]), count),
            "w3lib.canonicalize_url, pandas UDF": (few.select(F.pandas_udf(with_w3lib, "string")("url")), few_count),
            "surt.surt, pandas UDF": (few.select(F.pandas_udf(with_surt, "string")("url")), few_count),
        }, arguments.rounds)
    if arguments.table != "url":
        wide = many.select("url", *others()).cache()
        wide.count()
        same = getattr(F, "arrow_udf")(lambda url: url, "string")
        compare(f"url and {len(wide.columns) - 1} other columns", "irikey: uri(url), key(url)", {
            "the columns only": (wide, count),
            "a function that returns url": (wide.select("*", same("url")), count),
            "irikey: uri(url), key(url)": (wide.select("*", *columns), count),
            "irikey: canonicalize, uri and key": (canonicalize(wide, columns=["uri", "key"]), count),
            "irikey: mapInArrow with all columns, the first version of canonicalize": (with_all_columns(wide), count),
        }, arguments.rounds)
    spark.stop()


if __name__ == "__main__":
    main()
