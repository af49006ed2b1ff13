#!/usr/bin/env python3
"""Compares the wheel with the Rust core over the same lines, in one interleaved run on one core; prints a table.

usage: benches/throughput.py FILE PEERS [--rounds N]

FILE holds one URL per line; PEERS is the binary of benches/peers, whose engine irikey is the core. Both are measured by the CPU
time of their process. The core also cuts lines; the wheel takes them from an Arrow batch. Both are warm: the core processes
the lines once before its clock starts, and the first round of the wheel does not count. The core returns 1 MiB at a time,
which stays in the cache, and in a second contestant as much as the wheel, which may not. One batch of all rows is also passed as
views, the type of Polars and DuckDB, and to an expression of Polars.
"""

import argparse
import functools
import re
import statistics
import subprocess
import time

import polars as pl
import pyarrow as pa

import irikey
import irikey.polars  # registers the expressions


def wheel(canonicalizer, batches):
    begun = time.process_time_ns()
    for batch in batches:
        canonicalizer.canonicalize(batch)
    return (time.process_time_ns() - begun) / sum(len(batch) for batch in batches)


def expression(frame):
    begun = time.process_time_ns()
    frame.select(pl.col("url").irikey.key())
    return (time.process_time_ns() - begun) / len(frame)


def scalars(function, texts):
    begun = time.process_time_ns()
    for text in texts:
        try:
            function(text)
        except irikey.Fault:
            pass
    return (time.process_time_ns() - begun) / len(texts)


def core(peers, path, *more):
    command = [peers, path, "--engines", "irikey", "--rounds", "1", "--clock", "cpu", *more]
    table = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    row = next(line for line in table.splitlines() if line.startswith("| irikey"))
    header = next(line for line in table.splitlines() if "ns/line" in line)
    place = [cell.strip().startswith("ns/line") for cell in header.split("|")].index(True)
    return float(re.match(r"\s*([\d.]+)", row.split("|")[place])[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("peers")
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    with open(arguments.file, "rb") as file:
        lines = file.read().removesuffix(b"\n").split(b"\n")
    urls = pa.array(lines, pa.binary())
    contestants = {"core": functools.partial(core, arguments.peers, arguments.file)}
    for size in (100_000, 10_000, 1_000, 100):
        batch_len = str(sum(map(len, lines)) * size // len(lines))
        alike = functools.partial(core, arguments.peers, arguments.file, "--batch", batch_len)
        contestants[f"core, batches of the bytes of {size:,} rows"] = alike
        batches = [pa.record_batch({"url": urls.slice(at, size)}) for at in range(0, len(urls), size)]
        canonicalizer = irikey.Canonicalizer(columns=["uri", "key", "fault"])
        contestants[f"wheel, {size:,} rows per batch"] = functools.partial(wheel, canonicalizer, batches)
    canonicalizer = irikey.Canonicalizer(columns=["uri", "key", "fault"])
    for kind in (pa.binary(), pa.binary_view()):
        batches = [pa.record_batch({"url": urls.cast(kind)})]
        contestants[f"wheel, all rows in one batch, {kind}"] = functools.partial(wheel, canonicalizer, batches)
    frame = pl.DataFrame({"url": [line.decode("utf-8", "replace") for line in lines]})
    contestants["Polars, all rows, the expression irikey.key"] = functools.partial(expression, frame)
    texts = [line.decode("utf-8", "surrogateescape") for line in lines[:100_000]]
    contestants["wheel, irikey.uri, one reference per call"] = functools.partial(scalars, irikey.uri, texts)
    contestants["wheel, irikey.key, one reference per call"] = functools.partial(scalars, irikey.key, texts)
    found = {name: [] for name in contestants}
    for _ in range(arguments.rounds + 1):
        for name, measure in contestants.items():
            found[name].append(measure())
    print("| engine | ns per line | throughput relative to the core |\n|---|---:|---:|")
    for name, times in found.items():
        # The first round warms up.
        share = statistics.median(base / own for base, own in zip(found["core"][1:], times[1:]))
        print(f"| {name} | {statistics.median(times[1:]):.1f} [{min(times[1:]):.1f}-{max(times[1:]):.1f}] | {share:.0%} |")


if __name__ == "__main__":
    main()
