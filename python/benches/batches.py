#!/usr/bin/env python3
"""Measures calls of the wheel with few rows and with single references; prints a table.

usage: benches/batches.py FILE [--rounds N] [--packages FOLDER]...

FILE holds one URL per line; the first 100,000 are used. Each FOLDER holds a package irikey, such as the one that
`pip install --target FOLDER` made of a wheel; without one, the installed package is measured. The packages take turns, each
round in a process of its own. Times are CPU times: the median of the rounds' medians, their range, and the least of all.
can_ada, if it is installed, parses and writes the same references.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

PASSES = 7


def measure(path):
    """Returns the median and the least time of each contestant, in ns per row or call."""
    import pyarrow as pa

    import irikey

    with open(path, "rb") as file:
        texts = [line.decode("utf-8", "replace") for _, line in zip(range(100_000), file.read().split(b"\n"))]
    contestants = {}
    for size in (100, 1_000, 10_000, 100_000):
        batches = [pa.record_batch({"url": texts[at : at + size]}) for at in range(0, len(texts), size)]
        canonicalizer = irikey.Canonicalizer(columns=["uri", "key", "fault"])
        contestants[f"{size:,} rows per batch"] = (canonicalizer.canonicalize, batches, len(texts))
        if size == 100:
            contestants["of this, the export of pyarrow"] = (pa.RecordBatch.__arrow_c_array__, batches, len(texts))
    fine = [
        text for text, fault in zip(texts, pa.record_batch(irikey.canonicalize(texts))["fault"].is_null().to_pylist()) if fault
    ]
    functions = [("irikey.uri(text)", irikey.uri), ("irikey.key(text)", irikey.key), ("irikey.surt(text)", irikey.surt)]
    try:
        import can_ada

        parsed = can_ada.parse
        functions.append(("can_ada.parse(text).href", lambda text: parsed(text).href))
    except ImportError:
        pass
    contestants.update({name: (function, fine[:20_000], len(fine[:20_000])) for name, function in functions})
    return {name: timed(*contestant) for name, contestant in contestants.items()}


def timed(function, arguments, count):
    times = []
    for _ in range(PASSES + 1):
        begun = time.process_time_ns()
        for argument in arguments:
            function(argument)
        times.append((time.process_time_ns() - begun) / count)
    # The first pass warms up.
    return statistics.median(times[1:]), min(times[1:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--packages", action="append", default=[])
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.once:
        print(json.dumps(measure(arguments.file)))
        return
    packages, found = arguments.packages or [None], {}
    for _ in range(arguments.rounds):
        for folder in packages:
            path = {} if folder is None else {"PYTHONPATH": folder}
            command = [sys.executable, __file__, arguments.file, "--once"]
            done = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, **path})
            for name, times in json.loads(done.stdout).items():
                found.setdefault(name, {}).setdefault(folder, []).append(times)
    print("|", " | ".join(["ns per row or call", *(folder or "installed" for folder in packages)]), "|")
    print("|---|" + "---:|" * len(packages))
    for name, by_folder in found.items():
        cells = []
        for rounds in by_folder.values():
            medians = [median for median, _ in rounds]
            least = min(least for _, least in rounds)
            cells.append(f"{statistics.median(medians):.1f} [{min(medians):.1f}-{max(medians):.1f}], least {least:.1f}")
        print("|", " | ".join([name, *cells]), "|")


if __name__ == "__main__":
    main()
