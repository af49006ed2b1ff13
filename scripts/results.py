"""Shared by bench-pipeline, bench-dedup, bench-scaling and bench-cores: the command, the header of a results file, and where that
is."""

import datetime
import os
import platform
import shlex
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# The command that is measured.
IRIKEY = os.environ.get("IRIKEY", os.path.join(ROOT, "target/release/irikey"))


def count_lines(path):
    """Counts the line ends of a file, and thereby reads it into the page cache."""
    with open(path, "rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))


def head(name, paths, lines, how="", of=""):
    """Returns the header of a results file: input, machine and `how` it was used, commit and what was made `of` it."""
    more = f" and {len(paths) - 1} more files" if len(paths) > 1 else ""
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "")
    words = [os.path.basename(word) if os.path.isabs(word) else word for word in sys.argv[1:]]
    command = shlex.join([f"scripts/{os.path.basename(sys.argv[0])}", *words])
    return [
        f"# {name}, {today()}",
        "",
        f"- command: `{command}`",
        f"- input: `{os.path.basename(paths[0])}`{more}, {lines} lines, {sum(map(os.path.getsize, paths))} bytes, "
        "in the page cache",
        f"- CPU: {cpu or platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.2f} at the end{how}",
        f"- commit: {commit()}{of}",
    ]


def commit():
    """Returns the commit of the checkout, and whether its sources differ from it."""
    git = lambda *words: subprocess.run(["git", "-C", ROOT, *words], stdout=subprocess.PIPE, text=True).stdout.strip()
    is_changed = git("status", "--porcelain", "--untracked-files=no", "--", "src", "Cargo.toml", "Cargo.lock") != ""
    return git("rev-parse", "--short=12", "HEAD") + ", with uncommitted changes" * is_changed


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
