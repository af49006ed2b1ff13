#!/usr/bin/env python3
"""Measures the cost per row of canonicalize and dedup: time of tasks, bytes of shuffle, bytes of Parquet; and what skew costs.

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

from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F

from irikey.spark import canonicalize, dedup


def answer(spark, path):
    context = spark.sparkContext
    with urllib.request.urlopen(f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/{path}") as found:
        return json.load(found)


def stages_of(spark, action):
    """Runs the action and returns its stages."""
    seen = {stage["stageId"] for stage in answer(spark, "stages")}
    action()
    return [stage for stage in answer(spark, "stages") if stage["stageId"] not in seen and stage["status"] == "COMPLETE"]


def total(stages, name):
    return sum(stage[name] for stage in stages)


def cost(spark, urls, folder):
    """Prints what canonicalize and dedup cost per row read."""
    rows = canonicalize(urls, columns=["uri", "key", "fault"])
    kept = dedup(rows.drop("url"), order=["record"])
    ours = stages_of(spark, lambda: kept.write.parquet(f"{folder}/out"))
    size = sum(path.stat().st_size for path in pathlib.Path(folder, "out").glob("*.parquet"))
    count, out = urls.count(), spark.read.parquet(f"{folder}/out").count()
    print("| figure | per row read |\n|---|---:|")
    print(f"| rows kept | {out / count:.2f} |")
    print(f"| time of tasks, JVM and Python | {total(ours, 'executorRunTime') / count * 1e3:.1f} us |")
    print(f"| of this, CPU time of the JVM | {total(ours, 'executorCpuTime') / count / 1e3:.1f} us |")
    print(f"| shuffle written, compressed | {total(ours, 'shuffleWriteBytes') / count:.0f} bytes |")
    print(f"| Parquet written | {size / count:.0f} bytes |\n")


def skew(spark, urls):
    """Prints what the shuffle costs if most rows have one key: of dedup, and of a window, which has no partial aggregate."""
    count = urls.count()
    rows = canonicalize(urls, columns=["uri", "key", "fault"]).drop("url").cache()
    one = rows.first()
    print(
        "| share of the most frequent key | way | shuffle written per row | rows of the largest task after the shuffle |\n"
        "|---:|---|---:|---:|"
    )
    for share in (0, 50, 90):
        is_one = F.col("record") % 100 < share
        skewed = rows.withColumn("key", F.when(is_one, F.lit(bytes(one["key"]))).otherwise(F.col("key")))
        place = F.row_number().over(Window.partitionBy("key").orderBy("record"))
        ways = {
            "`dedup`": dedup(skewed, order=["record"]),
            "`row_number` over a window": skewed.where("fault is null").withColumn("n", place).where("n = 1"),
        }
        for name, frame in ways.items():
            ours = stages_of(spark, lambda frame=frame: frame.write.format("noop").mode("overwrite").save())
            last = max(ours, key=lambda stage: stage["stageId"])
            tasks = answer(spark, f"stages/{last['stageId']}/{last['attemptId']}/taskSummary?quantiles=1.0")
            largest = tasks["shuffleReadMetrics"]["readRecords"][0]
            print(
                f"| {share} % | {name} | {total(ours, 'shuffleWriteBytes') / count:.0f} bytes | {largest / count:.1%} |",
                flush=True,
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--rows", type=int, default=1_000_000)
    arguments = parser.parse_args()
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.shuffle.partitions", "16")
        .config("spark.sql.adaptive.coalescePartitions.enabled", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as folder:
        lines = spark.read.text(arguments.file).select(F.col("value").cast("binary").alias("url")).limit(arguments.rows)
        lines.withColumn("record", F.monotonically_increasing_id()).repartition(8).write.parquet(f"{folder}/in")
        urls = spark.read.parquet(f"{folder}/in")
        cost(spark, urls, folder)
        skew(spark, urls)
    spark.stop()


if __name__ == "__main__":
    main()
