"""irikey on Spark: canonicalization in ``mapInArrow``, and deduplication by a shuffle on 16-byte keys.

    from irikey.spark import canonicalize, dedup
    captures = spark.read.parquet("captures")            # columns url and record, the position in the input
    rows = canonicalize(captures, url="url")             # + uri, key, fault, fault_at, flags
    kept = dedup(rows, order=["record"])                 # one row per key

Requires pyspark 4, pandas 2.2 or later and pyarrow in every Python that Spark starts.
"""

import json
import os
import typing

import pyarrow as pa
from pyspark import AccumulatorParam, TaskContext
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from . import Canonicalizer
from . import equivalences as read_equivalences

KEEP = ("first", "last", "newest", "oldest", "best")

_LAST = (1 << 63) - 1


class _ByTask(AccumulatorParam):
    """Counters by partition, so that a task that ran twice counts once."""

    def zero(self, value):
        return {}

    def addInPlace(self, value, other):
        value.update(other)
        return value


class Counters:
    """The counters of canonicalizers on all executors, for tasks that are done.

    Counters are kept by partition. A task that Spark runs again replaces its counters, so that retries do not count twice.
    Use one object per data frame.
    """

    def __init__(self, spark):
        self._accumulator = spark.sparkContext.accumulator({}, _ByTask())

    def add(self, partition: int, counters: dict) -> None:
        """Sets the counters of a partition; called on executors."""
        self._accumulator.add({partition: counters})

    @property
    def value(self) -> dict:
        """The sums, with the fields of ``Canonicalizer.counters``."""
        sums: dict = {name: 0 for name in ("rows", "unchanged", "changed", "faulty", "nulls")}
        sums.update({"faults": {}, "flags": {}, "changes": {}})
        for counters in self._accumulator.value.values():
            for name, count in counters.items():
                if isinstance(count, dict):
                    for kind, n in count.items():
                        sums[name][kind] = sums[name].get(kind, 0) + n
                else:
                    sums[name] += count
        return sums

    def check(self, rows: int) -> dict:
        """Returns the sums if ``rows`` rows were read and each is accounted for; otherwise raises ``RuntimeError``."""
        sums = self.value
        accounted = sums["unchanged"] + sums["changed"] + sums["faulty"] + sums["nulls"]
        if not rows == sums["rows"] == accounted:
            raise RuntimeError(f"{rows} rows were read, {sums['rows']} canonicalized and {accounted} accounted for: {sums}")
        return sums


def canonicalize(df, url="url", base=None, charset=None, key="scheme", columns=None, counters=None, **options):
    """Returns ``df`` with the columns of :func:`irikey.canonicalize`; rows and their order within partitions do not change.

    ``equivalences`` may be the path, on the driver, of the file that ``irikey learn`` wrote; it is needed for
    key="protocol" and for the column key_protocol. ``counters`` is a :class:`Counters`, which is filled as tasks end. If
    ``df`` already has one of the columns, the function raises ``ValueError``.
    """
    if isinstance(options.get("equivalences"), (str, os.PathLike)):
        options["equivalences"] = read_equivalences(options["equivalences"])
    canonicalizer = Canonicalizer(url=url, base=base, charset=charset, key=key, columns=columns, types="spark", **options)
    for name in filter(None, (url, base, charset)):
        if name not in df.columns:
            raise ValueError(f"unknown column {name!r}; expected one of {', '.join(df.columns)}")
    added = StructType.fromJson(json.loads(canonicalizer.schema.spark_json()))
    clashing = [field.name for field in added if field.name in df.columns]
    if clashing:
        raise ValueError(f"the data frame already has columns {', '.join(clashing)}; rename them, or choose others with columns=")

    def answer(batches: typing.Iterator[pa.RecordBatch]) -> typing.Iterator[pa.RecordBatch]:
        for batch in batches:
            start = 0
            for found in pa.table(canonicalizer.canonicalize(batch)).to_batches():
                part = batch.slice(start, found.num_rows)
                start += found.num_rows
                yield pa.RecordBatch.from_arrays(part.columns + found.columns, names=part.schema.names + found.schema.names)
        if counters is not None:
            context = TaskContext.get()
            counters.add(context.partitionId() if context else -1, canonicalizer.counters)

    return df.mapInArrow(answer, StructType(df.schema.fields + added.fields))


def _time(df, name):
    """Returns a time in microseconds, or 14 digits as a number."""
    kind = dict(df.dtypes)[name]
    return F.unix_micros(name) if kind == "timestamp" else F.col(name).cast("long")


def _rank(df, keep, order, time, status, uri):
    """Returns the columns by which the representative is the minimum; together, they are unique."""
    places = [F.col(name) for name in order]
    if keep in ("first", "last"):
        return places
    if time not in df.columns:
        raise ValueError(f"keep={keep!r} needs a time, and there is no column {time!r}; name the column with time=")
    newest = F.coalesce(-_time(df, time), F.lit(_LAST))
    if keep == "newest":
        return [newest, *places]
    if keep == "oldest":
        return [F.coalesce(_time(df, time), F.lit(_LAST)), *places]
    if status not in df.columns:
        raise ValueError(f"keep='best' needs a status, and there is no column {status!r}; name the column with status=")
    # 2xx, then 3xx, 4xx, 5xx, any other status, no status.
    group = F.floor(F.col(status).cast("int") / 100)
    rank = F.when(group.isNull(), 5).when(group.between(2, 5), group - 2).otherwise(4)
    is_http = F.when(F.col(uri).startswith("https:"), 0).otherwise(1)
    return [rank, newest, is_http, F.length(uri), F.col(uri).cast("binary"), *places]


def dedup(
    df,
    key="key",
    keep="first",
    order=("source", "record"),
    equivalences=None,
    time="fetch_time",
    status="fetch_status",
    uri="uri",
    fault="fault",
    copies=None,
    **options,
):
    """Keeps one row per key, chosen by a total order that does not depend on partitions.

    - ``order``: columns that state the position of a row in the input; together they are unique.
    - ``keep``: "first" or "last" in that order; "newest" or "oldest" by ``time``; "best": status 2xx, 3xx, 4xx, 5xx, others,
      none, then newest, https before others, shortest, smallest bytes. Ties go to the first in ``order``.
    - ``equivalences``: the path, on the driver, of the file that ``irikey learn`` wrote: its classes and patterns are applied
      to ``uri``, whose keys must be those of "scheme". Or a data frame with the columns ``key`` and ``representative``.
    - ``copies``: name of a column for the number of rows of each key.
    - Other options are those that the keys were made with (``key_hash``, ``drop_fragment``, ``profile``), for equivalences.

    Rows with a fault or a null key are left out: kept + duplicate + faulty + null = read.

    Each partition first reduces its own rows (``min_by`` is a partial aggregate), so that a key with a million rows is one row
    per partition in the shuffle.
    """
    if keep not in KEEP:
        raise ValueError(f"unknown keep={keep!r}; expected one of {', '.join(KEEP)}")
    missing = [name for name in (key, *order) if name not in df.columns]
    if missing:
        raise ValueError(f"unknown column {missing[0]!r}; expected one of {', '.join(df.columns)}")
    if not order:
        raise ValueError("order is empty; name the columns that state the position of a row in the input")
    rows = df.where(F.col(key).isNotNull())
    if fault in df.columns:
        rows = rows.where(F.col(fault).isNull())
    group = F.col(key)
    if isinstance(equivalences, (str, os.PathLike)):
        if uri not in df.columns:
            raise ValueError(f"equivalences need URIs, and there is no column {uri!r}; name the column with uri=")
        rows = canonicalize(rows, url=uri, columns=["key_protocol"], equivalences=equivalences, **options)
        group = F.coalesce(F.col("key_protocol"), F.col(key))
    elif equivalences is not None:
        known = equivalences.select(F.col("key").alias("_irikey_from"), F.col("representative").alias("_irikey_to"))
        rows = rows.join(known, F.col(key) == F.col("_irikey_from"), "left").drop("_irikey_from")
        group = F.coalesce(F.col("_irikey_to"), F.col(key))
    rank = F.struct(*[column.alias(f"_{i}") for i, column in enumerate(_rank(df, keep, order, time, status, uri))])
    choose = F.max_by if keep == "last" else F.min_by
    found = [choose(F.struct(*df.columns), rank).alias("_irikey_row")]
    if copies is not None:
        found.append(F.count(F.lit(1)).alias(copies))
    kept = rows.groupBy(group.alias("_irikey_key")).agg(*found)
    return kept.select("_irikey_row.*", *([copies] if copies is not None else []))
