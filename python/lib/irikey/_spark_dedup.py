"""Deduplication on Spark, by a shuffle on keys."""

from __future__ import annotations

import os
from typing import Any, Literal, Optional, Sequence, Union

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ._policy import loaded
from ._spark_columns import _col, _found, _quoted
from ._spark_rows import canonicalize

KEEP = ("first", "last", "newest", "oldest", "best")

_LAST = (1 << 63) - 1


def anti_join_seen(rows: DataFrame, seen: DataFrame, key: str = "key") -> DataFrame:
    """Returns the rows whose key is not in ``seen``, the output of earlier jobs; only its keys are shuffled. Rows without a key
    remain."""
    keys = seen.select(_col(seen, key).alias("_irikey_seen")).distinct()
    return rows.join(keys, _col(rows, key) == F.col("_irikey_seen"), "left_anti")


def _time(df: DataFrame, name: str) -> Column:
    """Returns a time in microseconds, or 14 digits as a number; null if it is neither."""
    kind = df.schema[_found(df, name)].dataType.typeName()
    column = _col(df, name)
    if kind == "timestamp":
        return F.unix_micros(column)
    if kind in ("timestamp_ntz", "date"):
        # A time without a zone is taken as UTC. As text, because functions of times read it in the zone of the session, where
        # daylight saving time skips hours.
        return F.unix_micros(F.concat(column.cast("timestamp_ntz").cast("string"), F.lit("Z")).try_cast("timestamp"))
    return column.try_cast("long")


def _rank(df: DataFrame, keep: str, order: Sequence[str], time: str, status: str, uri: str) -> list[Column]:
    """Returns the columns by which the representative is the minimum; together, they are unique."""
    places = [_col(df, name) for name in order]
    if keep in ("first", "last"):
        return places
    present = {name.lower() for name in df.columns}
    if time.lower() not in present:
        raise KeyError(f"keep={keep!r} needs a time, and there is no column {time!r}; name the column with time=")
    newest = F.coalesce(-_time(df, time), F.lit(_LAST))
    if keep == "newest":
        return [newest, *places]
    if keep == "oldest":
        return [F.coalesce(_time(df, time), F.lit(_LAST)), *places]
    if status.lower() not in present:
        raise KeyError(f"keep='best' needs a status, and there is no column {status!r}; name the column with status=")
    # 2xx, then 3xx, 4xx, 5xx, any other status, no status.
    group = F.floor(_col(df, status).try_cast("int") / 100)
    rank = F.when(group.isNull(), 5).when(group.between(2, 5), group - 2).otherwise(4)
    text = _col(df, uri)
    is_http = F.when(text.startswith("https:"), 0).otherwise(1)
    return [rank, newest, is_http, F.length(text), text.cast("binary"), *places]


def dedup(
    df: DataFrame,
    key: str = "key",
    keep: Literal["first", "last", "newest", "oldest", "best"] = "first",
    order: Sequence[str] = ("source", "record"),
    equivalences: Union[str, os.PathLike[str], DataFrame, None] = None,
    time: str = "fetch_time",
    status: str = "fetch_status",
    uri: str = "uri",
    fault: str = "fault",
    copies: Optional[str] = None,
    **options: Any,
) -> DataFrame:
    """Keeps one row per key, chosen by a total order that does not depend on partitions.

    - ``order``: columns that state the position of a row in the input; together they are unique.
    - ``keep``: "first" or "last" in that order; "newest" or "oldest" by ``time``; "best": status 2xx, 3xx, 4xx, 5xx, others,
      none, then newest, https before others, shortest, smallest bytes. Ties go to the first in ``order``.
    - ``equivalences``: the path, on the driver, of the file that ``irikey learn`` wrote: its classes and patterns are applied
      to ``uri``, whose keys must be those of "scheme". Or a data frame with the columns ``key`` and ``representative``; of
      several representatives of a key, the smallest is used.
    - ``copies``: name of a column for the number of rows of each key.
    - Other options are those that the keys were made with (``key_hash``, ``drop_fragment``, ``profile``), for equivalences.

    Rows with a fault or a null key are left out: kept + duplicate + faulty + null = read.

    Each partition first reduces its own rows (``min_by`` is a partial aggregate), so a key with a million rows is one row
    per partition in the shuffle.
    """
    if keep not in KEEP:
        raise ValueError(f"unknown keep={keep!r}; expected one of {', '.join(KEEP)}")
    if isinstance(order, str):
        raise ValueError(f"order is a list of names such as [{order!r}], not a str")
    if not isinstance(equivalences, (str, os.PathLike)):
        # The options have no effect without a file of equivalences, but a wrong name is an error.
        loaded(dict.fromkeys(options), has_types=False)
    for name in (key, *order):
        _found(df, name)
    if not order:
        raise ValueError("order is empty; name the columns that state the position of a row in the input")
    if copies is not None and copies.lower() in {name.lower() for name in df.columns}:
        raise ValueError(f"the data frame already has a column {copies!r}; choose another name with copies=")
    rows = df.where(_col(df, key).isNotNull())
    if fault.lower() in {name.lower() for name in df.columns}:
        rows = rows.where(_col(df, fault).isNull())
    group = _col(df, key)
    if isinstance(equivalences, (str, os.PathLike)):
        if uri.lower() not in {name.lower() for name in df.columns}:
            raise KeyError(f"equivalences need URIs, and there is no column {uri!r}; name the column with uri=")
        rows = canonicalize(rows, url=uri, columns=["key_protocol"], equivalences=equivalences, **options)
        group = F.coalesce(F.col("key_protocol"), group)
    elif equivalences is not None:
        # A key with several representatives would multiply its rows.
        known = equivalences.groupBy(F.col("key").alias("_irikey_from")).agg(F.min("representative").alias("_irikey_to"))
        rows = rows.join(known, group == F.col("_irikey_from"), "left").drop("_irikey_from")
        group = F.coalesce(F.col("_irikey_to"), group)
    rank = F.struct(*[column.alias(f"_{i}") for i, column in enumerate(_rank(df, keep, order, time, status, uri))])
    choose = F.max_by if keep == "last" else F.min_by
    found = [choose(F.struct(*[F.col(_quoted(name)) for name in df.columns]), rank).alias("_irikey_row")]
    if copies is not None:
        found.append(F.count(F.lit(1)).alias(copies))
    kept = rows.groupBy(group.alias("_irikey_key")).agg(*found)
    fields = [F.col("_irikey_row").getField(name).alias(name) for name in df.columns]
    return kept.select(*fields, *([F.col(_quoted(copies))] if copies is not None else []))
