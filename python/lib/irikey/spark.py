"""irikey on Spark: the kernel in ``mapInArrow``, duplicates by a shuffle on 16 bytes.

    from irikey.spark import canonicalize, dedup
    captures = spark.read.parquet("captures")            # a column url, and record: the place in the input
    rows = canonicalize(captures, url="url")             # + uri, key, fault, fault_at, flags
    kept = dedup(rows, order=["record"])                 # one row for each key

Needs pyspark 4, pandas 2.2 or later and pyarrow beside every Python that Spark starts.
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
    """Counts by the task that made them: one that ran twice, for a lost executor or a slow one, counts once."""

    def zero(self, value):
        return {}

    def addInPlace(self, value, other):
        value.update(other)
        return value


class Counters:
    """What canonicalizers counted on all executors, so far as their tasks are done.

    Counts are kept by partition and a task that Spark runs again replaces what it said before, so that retries do not
    count twice. Use one for each data frame.
    """

    def __init__(self, spark):
        self._accumulator = spark.sparkContext.accumulator({}, _ByTask())

    def add(self, partition: int, counters: dict) -> None:
        """On an executor: what partition ``partition`` came to."""
        self._accumulator.add({partition: counters})

    @property
    def value(self) -> dict:
        """The sums, as ``Canonicalizer.counters`` has them."""
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
        """The sums, if ``rows`` rows were read and each is accounted for; else an error that says what is missing."""
        sums = self.value
        accounted = sums["unchanged"] + sums["changed"] + sums["faulty"] + sums["nulls"]
        if not rows == sums["rows"] == accounted:
            raise RuntimeError(f"{rows} rows were read, {sums['rows']} canonicalised and {accounted} accounted for: {sums}")
        return sums


def canonicalize(df, url="url", base=None, charset=None, key="scheme", columns=None, counters=None, **choices):
    """``df`` with the columns of :func:`irikey.canonicalize` added; rows and their order within partitions stay.

    ``equivalences`` among the choices may be the path, on the driver, of what ``irikey learn`` wrote: for key="protocol", or
    the column key_protocol. ``counters``: a :class:`Counters`, filled as tasks end. A column that ``df`` has already is a ``ValueError``: rename it.
    """
    if isinstance(choices.get("equivalences"), (str, os.PathLike)):
        choices["equivalences"] = read_equivalences(choices["equivalences"])
    canonicalizer = Canonicalizer(url=url, base=base, charset=charset, key=key, columns=columns, types="spark", **choices)
    for name in filter(None, (url, base, charset)):
        if name not in df.columns:
            raise ValueError(f"no column is called {name!r}; there are {', '.join(df.columns)}")
    added = StructType.fromJson(json.loads(canonicalizer.schema.spark_json()))
    clashing = [field.name for field in added if field.name in df.columns]
    if clashing:
        raise ValueError(f"the data frame has columns {', '.join(clashing)} already; rename them, or choose other columns")

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
    """A time as microseconds, or as the number that 14 digits are."""
    kind = dict(df.dtypes)[name]
    return F.unix_micros(name) if kind == "timestamp" else F.col(name).cast("long")


def _rank(df, keep, order, time, status, uri):
    """Columns whose least value, compared one after the other, is the representative's; none has to be unique but all
    together."""
    places = [F.col(name) for name in order]
    if keep in ("first", "last"):
        return places
    if time not in df.columns:
        raise ValueError(f"keep={keep!r} needs a time, and no column is called {time!r}; name it with time=")
    newest = F.coalesce(-_time(df, time), F.lit(_LAST))
    if keep == "newest":
        return [newest, *places]
    if keep == "oldest":
        return [F.coalesce(_time(df, time), F.lit(_LAST)), *places]
    if status not in df.columns:
        raise ValueError(f"keep='best' needs a status, and no column is called {status!r}; name it with status=")
    # 2xx, then 3xx, 4xx, 5xx, what is none of them, what has none.
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
    **choices,
):
    """One row for each key: the one that ``keep`` says, by a total order that no partitioning changes.

    ``order``: columns that together say where a row stood in the input, unique. ``keep``: "first" or "last" of it;
    "newest" or "oldest" by ``time``; "best": status 2xx, 3xx, 4xx, 5xx, others, none, then newest, https before others,
    shortest, least bytes. Ties go to the first in ``order``. Rows with a fault, and null keys, are no URIs: they are left
    out (``kept + duplicate + faulty = read``). ``equivalences``: the path, on the driver, of what ``irikey learn`` wrote: its
    classes and patterns are applied to ``uri``, whose keys must be those of "scheme"; or a data frame of ``key`` and
    ``representative``, keys that stand for others. ``copies``: name of a column that counts the rows of each key.

    Further choices are those that the keys were made with (``key_hash``, ``drop_fragment``, ``profile``), for equivalences.

    Partitions reduce their own rows first (``min_by`` is a partial aggregate), so that a key with a million members
    is one row for each partition in the shuffle, and no task gets them all.
    """
    if keep not in KEEP:
        raise ValueError(f"keep is one of {', '.join(KEEP)}, not {keep!r}")
    missing = [name for name in (key, *order) if name not in df.columns]
    if missing:
        raise ValueError(f"no column is called {missing[0]!r}; there are {', '.join(df.columns)}")
    if not order:
        raise ValueError("order names no column; without one the representative would be an accident")
    rows = df.where(F.col(key).isNotNull())
    if fault in df.columns:
        rows = rows.where(F.col(fault).isNull())
    group = F.col(key)
    if isinstance(equivalences, (str, os.PathLike)):
        if uri not in df.columns:
            raise ValueError(f"equivalences are of URIs, and no column is called {uri!r}; name it with uri=")
        rows = canonicalize(rows, url=uri, columns=["key_protocol"], equivalences=equivalences, **choices)
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
