"""The command ``irikey``: ``python -m irikey canon urls.txt``."""

from __future__ import annotations

import signal
import sys

from ._irikey import _main


def main() -> int:
    """Runs the command with the arguments of this process and returns its exit code."""
    # The command handles signals itself; with Python's handler, Ctrl-C would wait until it ends.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Without standard output there is none to flush.
    if sys.stdout is not None:
        sys.stdout.flush()
    return _main(["irikey", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
