"""Learning on Spark: each partition holds whole registered domains and is a part; the driver merges the parts."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
import typing
from typing import Optional, Sequence, Union

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ._spark_columns import _found, _quoted
from ._spark_rows import canonicalize

# What `irikey learn` reads of a capture besides its URL, by the names of Common Crawl's index.
_FIELDS = (
    "fetch_time", "fetch_status", "content_digest", "payload_digest", "content_mime_type", "content_truncated",
    "warc_record_length",
)


def learn(
    df: DataFrame,
    output: Union[str, os.PathLike[str]],
    url: str = "url",
    partitions: Optional[int] = None,
    flags: Sequence[str] = (),
    merge: Sequence[str] = (),
) -> None:
    """Learns rules about content from captures, and writes the file of equivalences ``output`` on the driver: the same rules as
    ``irikey learn`` finds in all captures at once.

    The captures have the columns ``url``, ``content_digest`` and, if known, ``fetch_status``, ``fetch_time``,
    ``content_mime_type``, ``content_truncated``, ``payload_digest`` and ``warc_record_length``, as in Common Crawl's index. They
    are partitioned by registered domain, into ``partitions`` partitions (default: as Spark shuffles). Each task runs ``irikey
    learn --part`` on its partition; the driver collects the parts, which contain only rules, and runs ``irikey learn --merge``.

    - ``flags``: flags of the parts, such as ``["--min-contents", "8"]``.
    - ``merge``: flags and inputs of the merge, such as ``["--rules", "rules.csv"]``, or a file of captures to learn redirects
      from. Redirects are learned in one place, because they may lead to another domain.

    Raises ``RuntimeError`` with the message of the command if it fails.
    """
    present = {name.lower() for name in df.columns}
    if not {"content_digest", "payload_digest"} & present:
        raise ValueError("there is no column content_digest or payload_digest to learn from; rename the column of digests")
    names = {"url": _found(df, url), **{name: _found(df, name) for name in _FIELDS if name in present}}
    captures = df.select(*[F.col(_quoted(column)).alias(name) for name, column in names.items()])
    rows = canonicalize(captures, columns=["url_host_name", "url_host_private_domain"])
    # Without a registered domain, the last two labels: all hosts of a domain are in one partition.
    last_labels = F.regexp_extract("url_host_name", r"([^.]*\.)?[^.]*$", 0)
    site = F.coalesce("url_host_private_domain", last_labels, F.lit(""))
    parted = rows.repartition(site) if partitions is None else rows.repartition(partitions, site)
    parts = parted.select(*names).mapInArrow(_part_function(tuple(flags)), "part binary").collect()
    if not parts:
        raise ValueError("there are no captures to learn from")
    with tempfile.TemporaryDirectory(prefix="irikey-") as folder:
        for i, row in enumerate(parts):
            pathlib.Path(folder, f"{i:06}.parquet").write_bytes(row.part)
        _run(["--merge", folder, "-o", os.fspath(output), *merge])


def _part_function(flags: tuple[str, ...]) -> typing.Any:
    """Returns a function from the batches of a partition to its part, the bytes of a Parquet file."""

    def part(batches: typing.Iterator[pa.RecordBatch]) -> typing.Iterator[pa.RecordBatch]:
        with tempfile.TemporaryDirectory(prefix="irikey-") as folder:
            captures, learned = pathlib.Path(folder, "captures.parquet"), pathlib.Path(folder, "part.parquet")
            writer = None
            for batch in batches:
                if writer is None:
                    writer = pq.ParquetWriter(captures, batch.schema)
                writer.write_batch(batch)
            if writer is None:
                return
            writer.close()
            _run([str(captures), "--part", "-o", str(learned), "--threads", "1", "--tmp", folder, *flags])
            yield pa.record_batch([pa.array([learned.read_bytes()], pa.binary())], names=["part"])

    return part


def _run(arguments: Sequence[str]) -> None:
    """Runs ``irikey learn`` of this package in a process of its own."""
    command = [sys.executable, "-m", "irikey", "learn", "--quiet", *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise RuntimeError(f"irikey learn failed with exit code {done.returncode}: {done.stderr.strip()}")
