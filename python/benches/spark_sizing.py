#!/usr/bin/env python3
"""Measures the cost per row of canonicalize and dedup: time of tasks, bytes of shuffle, bytes of Parquet.

usage: benches/spark_sizing.py FILE [--rows N]

The figures are Spark's own, read from the REST interface of the driver on the loopback address.
"""

import argparse
import json
import os
import pathlib
import sys
import tempfile
import urllib.request

os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from irikey.spark import canonicalize, dedup


def stages(spark):
    context = spark.sparkContext
    with urllib.request.urlopen(f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/stages") as answer:
        return json.load(answer)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--rows", type=int, default=1_000_000)
    arguments = parser.parse_args()
    spark = SparkSession.builder.master("local[2]").config("spark.driver.host", "127.0.0.1").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as folder:
        lines = spark.read.text(arguments.file).select(F.col("value").cast("binary").alias("url")).limit(arguments.rows)
        lines.withColumn("record", F.monotonically_increasing_id()).repartition(8).write.parquet(f"{folder}/in")
        seen = {stage["stageId"] for stage in stages(spark)}
        rows = canonicalize(spark.read.parquet(f"{folder}/in"), columns=["uri", "key", "fault"])
        kept = dedup(rows.drop("url"), order=["record"])
        kept.write.parquet(f"{folder}/out")
        size = sum(path.stat().st_size for path in pathlib.Path(folder, "out").glob("*.parquet"))
        ours = [stage for stage in stages(spark) if stage["stageId"] not in seen and stage["status"] == "COMPLETE"]
        count, out = spark.read.parquet(f"{folder}/in").count(), spark.read.parquet(f"{folder}/out").count()
        total = lambda name: sum(stage[name] for stage in ours)
        print("| figure | per row read |\n|---|---:|")
        print(f"| rows kept | {out / count:.2f} |")
        print(f"| time of tasks, JVM and Python | {total('executorRunTime') / count * 1e3:.1f} us |")
        print(f"| of this, CPU time of the JVM | {total('executorCpuTime') / count / 1e3:.1f} us |")
        print(f"| shuffle written, compressed | {total('shuffleWriteBytes') / count:.0f} bytes |")
        print(f"| Parquet written | {size / count:.0f} bytes |")
    spark.stop()


if __name__ == "__main__":
    main()
