#!/usr/bin/env python3
"""Compares single references and arrays of irikey with other Python packages over the same lines, interleaved; prints a table.

usage: benches/peers.py FILE [--lines N] [--slow-lines N] [--rounds N]

Every contestant gets the same texts, the lines of FILE that are UTF-8. Before the clock starts it reports how many it accepts and
a digest of its results; a line that it refuses counts in its time. Contestants that take more than 5 us per line, which is found
out then, process the first --slow-lines only. Packages that are not installed are left out. Times are CPU times of one process.
"""

import argparse
import hashlib
import importlib
import importlib.metadata
import statistics
import time

import pyarrow as pa

import irikey

SLOW_NS = 5_000


def ada_url():
    return importlib.import_module("ada_url").normalize_url


def can_ada():
    parse = importlib.import_module("can_ada").parse
    return lambda text: parse(text).href


def courlan():
    return importlib.import_module("courlan").normalize_url


def hyperlink():
    parse = importlib.import_module("hyperlink").URL.from_text
    return lambda text: parse(text).normalize().to_text()


def rfc3986():
    parse = importlib.import_module("rfc3986").uri_reference
    return lambda text: parse(text).normalize().unsplit()


def surt():
    return importlib.import_module("surt").surt


def url_normalize():
    return importlib.import_module("url_normalize").url_normalize


def urlcanon():
    module = importlib.import_module("urlcanon")
    return lambda text: str(module.whatwg(module.parse_url(text)))


def w3lib():
    return importlib.import_module("w3lib.url").canonicalize_url


def yarl():
    parse = importlib.import_module("yarl").URL
    return lambda text: str(parse(text))


#: The package, what is measured, and the function that returns it.
PEERS = [
    ("can-ada", "WHATWG parse and href", can_ada),
    ("ada-url", "WHATWG normalize_url", ada_url),
    ("yarl", "URL and str", yarl),
    ("rfc3986", "RFC 3986 normalize", rfc3986),
    ("hyperlink", "URL.normalize", hyperlink),
    ("w3lib", "canonicalize_url", w3lib),
    ("courlan", "normalize_url", courlan),
    ("url-normalize", "url_normalize", url_normalize),
    ("surt", "SURT key", surt),
    ("urlcanon", "WHATWG form", urlcanon),
]


def each(function, texts):
    """Returns the results for single references; None if one is refused."""
    found = []
    for text in texts:
        try:
            found.append(function(text))
        except Exception:
            found.append(None)
    return found


def contestants():
    """Returns the contestants by name: what they do, and a function from an array or a list of texts to results."""
    found = {
        "irikey.uris": ("canonical URIs of an array", irikey.uris),
        "irikey.keys": ("128-bit keys of an array", irikey.keys),
        "irikey.uri": ("RFC 3987 canonical URI", lambda texts: each(irikey.uri, texts)),
        "irikey.key": ("128-bit key of it", lambda texts: each(irikey.key, texts)),
        "irikey.surt": ("SURT key as that of surt", lambda texts: each(lambda text: irikey.surt(text, "ia"), texts)),
    }
    for package, job, make in PEERS:
        try:
            found[f"{package} {importlib.metadata.version(package)}"] = (
                job,
                lambda texts, function=make(): each(function, texts),
            )
        except ImportError:
            print(f"{package} is not installed\n")
    return found


def digest(results):
    values = results.to_pylist() if isinstance(results, pa.Array) else results
    text = "\n".join("" if value is None else value.hex() if isinstance(value, bytes) else str(value) for value in values)
    return len(values) - values.count(None), hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def measure(function, texts):
    begun = time.process_time_ns()
    function(texts)
    return (time.process_time_ns() - begun) / len(texts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--slow-lines", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    texts = []
    with open(arguments.file, "rb") as file:
        for line in file:
            try:
                texts.append(line.rstrip(b"\n").decode())
            except UnicodeDecodeError:
                continue
            if len(texts) == arguments.lines:
                break
    slow = texts[: arguments.slow_lines]
    chosen, rows = {}, {}
    for name, (job, function) in contestants().items():
        # The first call warms up.
        function(slow[:1000])
        lines = slow if measure(function, slow) > SLOW_NS else texts
        if function in (irikey.uris, irikey.keys):
            lines = pa.array(lines)
        chosen[name] = (function, lines)
        rows[name] = (job, len(lines), *digest(function(lines)))
    times = {name: [] for name in chosen}
    for _ in range(arguments.rounds):
        for name, (function, lines) in chosen.items():
            times[name].append(measure(function, lines))
    print("| function | result | lines | accepted | digest | ns per line | times irikey.uri |\n|---|---|---:|---:|---|---:|---:|")
    for name, found in times.items():
        job, count, accepted, sum_ = rows[name]
        ratio = statistics.median(time / own for time, own in zip(found, times["irikey.uri"]))
        spread = f"{statistics.median(found):,.0f} [{min(found):,.0f}-{max(found):,.0f}]"
        print(f"| {name} | {job} | {count:,} | {accepted:,} | {sum_} | {spread} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
