"""Shared by the scripts in Python: the target folder, the command that is measured, the header and the path of a results file."""

import collections
import datetime
import functools
import importlib.machinery
import importlib.util
import mmap
import os
import pathlib
import platform
import re
import shlex
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def target_folder():
    """Returns the folder of what Cargo builds."""
    command = [os.path.join(ROOT, "scripts/target-folder")]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


@functools.cache
def irikey():
    """Returns the path of the measured command: IRIKEY, or the release build. Warns if its commit is not known."""
    path = os.path.abspath(os.environ.get("IRIKEY") or os.path.join(target_folder(), "release/irikey"))
    if not os.access(path, os.X_OK):
        sys.exit(f"{script()}: found no irikey at {path}; run `cargo build --release`, or set IRIKEY to the path of a build")
    if commit_of(path).startswith("unknown"):
        print(f"{script()}: the commit of {path} is {commit_of(path)}", file=sys.stderr)
    return path


@functools.cache
def commit_of(binary):
    """Returns the commit that a binary was built from, or "unknown" with the reason.

    A binary does not state its commit. It is the commit of this checkout if Cargo built the binary from the sources here, which
    it lists in a file next to the binary, and if none of them is newer than the binary.
    """
    listing = pathlib.Path(f"{binary}.d")
    if not listing.exists():
        return "unknown: Cargo's list of sources is not next to the binary"
    names = re.split(r"(?<!\\) ", listing.read_text().split(": ", 1)[1].strip())
    sources = [name.replace("\\ ", " ") for name in names] + [os.path.join(ROOT, name) for name in ("Cargo.toml", "Cargo.lock")]
    if os.path.join(ROOT, "src/main.rs") not in sources:
        return "unknown: the binary was built from another checkout"
    built = os.path.getmtime(binary)
    for source in sources:
        if not os.path.exists(source) or os.path.getmtime(source) > built:
            return f"unknown: {os.path.relpath(source, ROOT)} was changed after the build"
    git = lambda *words: subprocess.run(["git", "-C", ROOT, *words], stdout=subprocess.PIPE, text=True).stdout.strip()
    is_changed = git("status", "--porcelain", "--untracked-files=no", "--", "src", "Cargo.toml", "Cargo.lock") != ""
    return git("rev-parse", "--short=12", "HEAD") + ", with uncommitted changes" * is_changed


Usage = collections.namedtuple("Usage", "seconds cpu_seconds resident_bytes")

# The peak of a process includes the pages of the process that started it, because it is counted from before the new program
# is loaded. This small program starts the measured one, so that these are 9 MB and not those of a benchmark with its packages.
LAUNCHER = """
import os, sys, time
began = time.perf_counter()
_, status, usage = os.wait4(os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ), 0)
seconds = time.perf_counter() - began
line = f"{os.waitstatus_to_exitcode(status)} {seconds} {usage.ru_utime + usage.ru_stime} {usage.ru_maxrss}"
os.write(int(sys.argv[1]), line.encode())
"""


def run(words, **options):
    """Runs a command, with options of `subprocess.Popen`. Returns its seconds, CPU seconds and peak of resident memory."""
    reader, writer = os.pipe()
    with os.fdopen(reader) as answer:
        command = [sys.executable, "-I", "-S", "-c", LAUNCHER, str(writer), *map(str, words)]
        process = subprocess.Popen(command, pass_fds=[writer], **options)
        os.close(writer)
        fields = answer.read().split()
    if process.wait() or not fields or fields[0] != "0":
        sys.exit(f"{script()}: {shlex.join(map(str, words[:4]))}... failed with status {fields[0] if fields else 'unknown'}")
    return Usage(float(fields[1]), float(fields[2]), int(fields[3]) * 1024)


def load(name):
    """Returns the script `scripts/NAME` as a module."""
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"), os.path.join(ROOT, "scripts", name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def count_rows(path):
    """Counts the rows of a Parquet file."""
    if not os.path.exists(path):
        sys.exit(f"{script()}: found no output")
    return load("parquet-rows").num_rows(path)


def count_lines(path):
    """Counts the lines of a file, and thereby reads it into the page cache. The last one may lack its line end."""
    count, last = 0, b"\n"
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            count, last = count + block.count(b"\n"), block[-1:]
    return count + (last != b"\n")


def ratio(figures, base):
    """Returns the median of the ratios within each round. A disturbance affects all contestants of its round."""
    return statistics.median(one / other for one, other in zip(figures, base))


def duckdb_lines(path):
    """Returns the table function by which DuckDB reads the lines of a file. An empty line is an empty text, and not null."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        is_crlf = content.find(b"\r\n") >= 0
    # By default, DuckDB reads an empty line between CR and LF. With this setting, it refuses files without CR.
    new_line = r", new_line='\r\n'" if is_crlf else ""
    name = path.replace("'", "''")
    return (f"read_csv('{name}', header=false, columns={{'line': 'VARCHAR'}}, delim='\x01', quote='', escape='', "
            f"auto_detect=false, strict_mode=false, force_not_null=['line']{new_line})")


def describe_files(paths, lines):
    """Describes inputs for the header of a results file."""
    more = f" and {len(paths) - 1} more files" if len(paths) > 1 else ""
    size = sum(map(os.path.getsize, paths))
    return f"`{os.path.basename(paths[0])}`{more}, {lines} lines, {size} bytes, in the page cache"


def script():
    return f"scripts/{os.path.basename(sys.argv[0])}"


def head(name, inputs, how="", of=""):
    """Returns the header of a results file: inputs, machine and `how` it was used, commit and what was made `of` it."""
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "")
    words = [os.path.basename(word) if os.path.isabs(word) else word for word in sys.argv[1:]]
    return [
        f"# {name}, {today()}",
        "",
        f"- command: `{shlex.join([script(), *words])}`",
        f"- input: {inputs}",
        f"- CPU: {cpu or platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.2f} at the end{how}",
        f"- commit: {commit_of(irikey())}{of}",
    ]


def today():
    return datetime.datetime.now(datetime.timezone.utc).date()


def keep(name, report):
    """Writes a result to benches/results and to standard output, and returns the path of the file."""
    text = "\n".join(report) + "\n"
    path = os.path.join(ROOT, "benches/results", f"{today()}-{name}.md")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    print(text)
    return path
