#!/usr/bin/env python3
"""Compares mapInArrow with pandas UDFs of w3lib and surt in one Spark session, interleaved; prints a table.

usage: benches/spark_udf.py FILE [--rows N] [--rounds N]

Each contestant reads the same cached column and aggregates its result to one number, so that everything is computed. The Python
tools process a tenth of the rows; times are per row.
"""

import argparse
import os
import statistics
import sys
import time

os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from irikey.spark import canonicalize


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    lines = spark.read.text(arguments.file).select(F.col("value").alias("url")).limit(arguments.rows)
    many = lines.repartition(4).cache()
    few = many.sample(0.1, seed=1).cache()
    counts = {"many": many.count(), "few": few.count()}

    @F.pandas_udf("string")
    def with_w3lib(urls: pd.Series) -> pd.Series:
        from w3lib.url import canonicalize_url

        def one(url):
            try:
                return canonicalize_url(url)
            except ValueError:
                return None

        return urls.map(one)

    @F.pandas_udf("string")
    def with_surt(urls: pd.Series) -> pd.Series:
        import surt

        def one(url):
            try:
                return surt.surt(url)
            except Exception:
                return None

        return urls.map(one)

    length = lambda column: F.sum(F.length(column))
    contestants = {
        "the column only": (lambda: many.agg(length("url")), "many"),
        "irikey, mapInArrow: uri and key": (lambda: canonicalize(many, columns=["uri", "key"]).agg(length("uri"), length("key")), "many"),
        "w3lib.canonicalize_url, pandas UDF": (lambda: few.agg(length(with_w3lib("url"))), "few"),
        "surt.surt, pandas UDF": (lambda: few.agg(length(with_surt("url"))), "few"),
    }
    found = {name: [] for name in contestants}
    for _ in range(arguments.rounds + 1):
        for name, (frame, size) in contestants.items():
            begun = time.monotonic()
            frame().collect()
            found[name].append((time.monotonic() - begun) / counts[size] * 1e6)
    own = statistics.median(found["irikey, mapInArrow: uri and key"][1:])
    print("| contestant | microseconds per row, end to end | times irikey |\n|---|---:|---:|")
    for name, times in found.items():
        time_of = statistics.median(times[1:])
        print(f"| {name} | {time_of:.2f} [{min(times[1:]):.2f}-{max(times[1:]):.2f}] | {time_of / own:.1f} |")
    spark.stop()


if __name__ == "__main__":
    main()
