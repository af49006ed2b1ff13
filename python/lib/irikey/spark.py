"""irikey on Spark: columns of canonical URIs and keys, and deduplication by a shuffle on 16-byte keys.

    from irikey.spark import canonicalize, dedup, key, uri
    captures = spark.read.parquet("captures")            # columns url and record, the position in the input
    captures.select(uri("url"), key("url"))              # functions for columns
    rows = canonicalize(captures, url="url")             # + uri, key, fault, fault_at, flags
    kept = dedup(rows, order=["record"])                 # one row per key
    register(spark)                                      # SELECT irikey_key(url) FROM captures
    learn(captures, "equivalences.parquet")              # rules about content, for equivalences=

Requires pyspark 4.1, pandas 2.2 and pyarrow in every Python that Spark starts. All functions also work on Spark Connect.
"""

from __future__ import annotations

import json
import os
import typing
import uuid
from typing import Any, Literal, Mapping, Optional, Sequence, Union

import pyarrow as pa
from pyspark import AccumulatorParam, TaskContext
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from . import Canonicalizer, Flags, lit
from ._irikey import _FAULTS
from ._policy import Operand, Options, Policy, Rung, column_names, loaded, output
from ._spark_learn import learn as learn

if typing.TYPE_CHECKING:
    from typing_extensions import TypeAlias, Unpack

ColumnOrName: TypeAlias = "Union[Column, str]"
Operands: TypeAlias = "Union[Column, str, lit, None]"

KEEP = ("first", "last", "newest", "oldest", "best")

_LAST = (1 << 63) - 1
_SUMS = ("rows", "unchanged", "changed", "faulty", "nulls")
_NAMED = ("faults", "flags", "changes")


def _quoted(name: str) -> str:
    """Returns the name for Spark, which reads dots in unquoted names as fields."""
    return "`" + name.replace("`", "``") + "`"


def _found(df: DataFrame, name: str) -> str:
    """Returns the name of a column as the data frame writes it: Spark ignores case by default.

    Raises ``KeyError`` if there is no such column, ``ValueError`` if there are several.
    """
    if name in df.columns and df.columns.count(name) == 1:
        return name
    alike = [column for column in df.columns if column.lower() == name.lower()]
    if not alike:
        raise KeyError(f"unknown column {name!r}; expected one of {', '.join(df.columns)}")
    if len(alike) > 1:
        raise ValueError(f"column {name!r} is ambiguous: the data frame has {', '.join(alike)}; rename all but one")
    return alike[0]


def _col(df: DataFrame, name: str) -> Column:
    return F.col(_quoted(_found(df, name)))


# Functions for columns


def _operand(name: str, value: Any) -> tuple[Any, Optional[Column]]:
    """Returns the option of a canonicalizer for an argument, and the column if it is one."""
    if value is None or isinstance(value, lit):
        return value, None
    return name, F.col(value) if isinstance(value, str) else value


def _arrow_udf(function: Any, kind: Any) -> Any:
    # The declarations of pyspark lack this function.
    made: Any = getattr(F, "arrow_udf")
    return made(function, kind)


def _arrow_column(name: str, kind: str, policy: dict[str, Any]) -> Any:
    """Returns a function of arrays of URLs, and of bases if the policy has a column for them, that Spark calls by batch."""
    recipe = policy.get("recipe")
    column = output(name, recipe)
    canonicalizer = Canonicalizer(columns=[column], types="spark", **loaded(policy, stacklevel=5))
    other = "base" if policy.get("base") == "base" else "charset"

    def answer(url: pa.Array, *others: pa.Array) -> pa.Array:
        named = dict(zip((other,) if len(others) == 1 else ("base", "charset"), others))
        return pa.array(canonicalizer.array(url, column, **named))

    answer.__name__ = f"irikey_{name}"
    return _arrow_udf(answer, kind)


def _column(name: str, kind: str, url: ColumnOrName, base: Any, charset: Any, policy: dict[str, Any]) -> Column:
    columns = [F.col(url) if isinstance(url, str) else url]
    for operand, value in (("base", base), ("charset", charset)):
        policy[operand], column = _operand(operand, value)
        if column is not None:
            columns.append(column)
    made: Column = _arrow_column(name, kind, policy)(*columns)
    return made


def uri(url: ColumnOrName, base: Operands = None, charset: Operands = None, **options: Unpack[Options]) -> Column:
    """Returns a column of canonical URIs, null where the URL is null or cannot be parsed.

    ``url`` is a column of text or bytes, ``base`` and ``charset`` are columns or ``irikey.lit(value)``; other options as in
    :func:`irikey.uris`.
    """
    return _column("uri", "string", url, base, charset, {**options})


def key(url: ColumnOrName, base: Operands = None, charset: Operands = None, **options: Unpack[Options]) -> Column:
    """Returns a column of 16-byte keys, null where the URL is null; arguments as in :func:`uri`."""
    return _column("key", "binary", url, base, charset, {**options})


def surt(url: ColumnOrName, dialect: Literal["wayback", "ia"] = "wayback") -> Column:
    """Returns a column of SURT keys: dialect "wayback" is that of webarchive-commons, "ia" that of Python's surt."""
    return _column("uri", "string", url, None, None, {"recipe": _surt_recipe(dialect)})


def _surt_recipe(dialect: str) -> str:
    if dialect not in ("wayback", "ia"):
        raise ValueError(f'dialect is "wayback" or "ia", not {dialect!r}')
    return f"surt-{dialect}"


def register(spark: SparkSession, prefix: str = "irikey_", **options: Unpack[Options]) -> None:
    """Registers functions for SQL: ``irikey_uri(url)``, ``irikey_key(url)``, ``irikey_surt(url)``, and ``irikey_uri_from(url,
    base)`` and ``irikey_key_from(url, base)`` for relative references. The options are those of :func:`uri`; other names of
    functions with other options need another ``prefix``."""
    functions: dict[str, tuple[str, str, dict[str, Any]]] = {
        "uri": ("uri", "string", {**options}),
        "key": ("key", "binary", {**options}),
        "uri_from": ("uri", "string", {**options, "base": "base"}),
        "key_from": ("key", "binary", {**options, "base": "base"}),
        "surt": ("uri", "string", {"recipe": "surt-wayback"}),
    }
    for function, (name, kind, chosen) in functions.items():
        spark.udf.register(prefix + function, _arrow_column(name, kind, chosen))


# Counters


class _Streams(AccumulatorParam[dict[Any, Any]]):
    """Counters by stage, partition, attempt and stream. A stream is one iterator of batches: after ``coalesce``, a task has
    several."""

    def zero(self, value: dict[Any, Any]) -> dict[Any, Any]:
        return {}

    def addInPlace(self, value: dict[Any, Any], other: dict[Any, Any]) -> dict[Any, Any]:
        value.update(other)
        return value


def _add(sums: dict[str, Any], counters: Mapping[str, Any]) -> None:
    for name, count in counters.items():
        if isinstance(count, dict):
            _add(sums.setdefault(name, {}), count)
        elif isinstance(count, list):
            sums.setdefault(name, []).extend(count)
        else:
            sums[name] = sums.get(name, 0) + count


class Counters:
    """The counters of canonicalizers on all executors, for the last action on a data frame.

    A task that Spark runs again replaces its counters, so that retries do not count twice. Use one object per data frame. On
    Spark Connect, the counters are observed metrics of the columns uri, fault and flags, which must be made; there a stage
    that runs again may count twice.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._accumulator: Any = None
        self._observation: Optional[Observation] = None
        # A session of Spark Connect has no context in this process.
        if type(spark).__module__.startswith("pyspark.sql.connect"):
            self._observation = Observation()
        else:
            self._accumulator = spark.sparkContext.accumulator({}, _Streams())

    def add(self, counters: Mapping[str, Any]) -> None:
        """Adds the counters of a stream of batches; called on executors."""
        context = TaskContext.get()
        task = (context.stageId(), context.partitionId(), context.taskAttemptId()) if context else (0, 0, 0)
        self._accumulator.add({(*task, uuid.uuid4().hex): counters})

    def _observe(self, rows: DataFrame, url: Column) -> DataFrame:
        assert self._observation is not None
        missing = [name for name in ("uri", "fault", "flags") if name not in rows.columns]
        if missing:
            raise ValueError(f"on Spark Connect, counters need the column {missing[0]!r}; add it to columns=")
        is_fine = F.col("uri").isNotNull()
        is_same = F.col("uri").cast("binary") == url.cast("binary")
        sums = {
            "rows": F.count(F.lit(1)),
            "unchanged": F.count_if(is_fine & is_same),
            "changed": F.count_if(is_fine & ~is_same),
            "faulty": F.count("fault"),
            "nulls": F.count_if(url.isNull()),
        }
        sums.update({f"faults.{kind}": F.count_if(F.col("fault") == kind) for kind in _FAULTS})
        named = [(flag.name or "", flag.value) for flag in Flags]
        sums.update({f"flags.{name.lower().replace('_', '-')}": F.count_if(F.col("flags").bitwiseAND(F.lit(bit)) != 0) for name, bit in named})
        return rows.observe(self._observation, *[total.alias(name) for name, total in sums.items()])

    @property
    def value(self) -> dict[str, Any]:
        """The sums, with the fields of ``Canonicalizer.counters``."""
        sums: dict[str, Any] = {**dict.fromkeys(_SUMS, 0), **{name: {} for name in _NAMED}}
        if self._observation is not None:
            for name, count in self._observation.get.items():
                group, _, kind = name.partition(".")
                if not kind:
                    sums[group] = count
                elif count:
                    sums[group][kind] = count
            return sums
        streams = self._accumulator.value
        last_stage = max((stage for stage, *_ in streams), default=0)
        last_attempts: dict[int, int] = {}
        for stage, partition, attempt, _ in streams:
            if stage == last_stage:
                last_attempts[partition] = max(attempt, last_attempts.get(partition, 0))
        for (stage, partition, attempt, _), counters in streams.items():
            if stage == last_stage and last_attempts[partition] == attempt:
                _add(sums, counters)
        return sums

    def check(self, rows: int) -> dict[str, Any]:
        """Returns the sums if ``rows`` rows were read and each is accounted for; otherwise raises ``RuntimeError``."""
        sums = self.value
        accounted = sums["unchanged"] + sums["changed"] + sums["faulty"] + sums["nulls"]
        if not rows == sums["rows"] == accounted:
            raise RuntimeError(f"{rows} rows were read, {sums['rows']} canonicalized and {accounted} accounted for: {sums}")
        return sums


# Data frames


def _added(canonicalizer: Canonicalizer) -> StructType:
    """Returns the columns that a canonicalizer makes."""
    return StructType.fromJson(json.loads(canonicalizer.schema.spark_json()))


def canonicalize(
    df: DataFrame,
    url: str = "url",
    base: Optional[Operand] = None,
    charset: Optional[Operand] = None,
    rung: Rung = "scheme",
    columns: Optional[Sequence[str]] = None,
    counters: Optional[Counters] = None,
    *,
    recipe: Optional[str] = None,
    **policy: Unpack[Policy],
) -> DataFrame:
    """Returns ``df`` with the columns of :func:`irikey.canonicalize`; rows and their order within partitions do not change.

    Only the columns of URLs, bases and charsets are sent to Python. ``equivalences`` may be the path, on the driver, of the
    file that ``irikey learn`` wrote; it is needed for rung="protocol" and for the column key_protocol. ``counters`` is a
    :class:`Counters`, which is filled as tasks end. If ``df`` already has one of the columns, in upper or lower case, the
    function raises ``ValueError``.
    """
    options = loaded({"rung": rung, **policy, "base": base, "charset": charset})
    names = column_names(columns)
    canonicalizer = Canonicalizer(url="url", recipe=recipe, columns=names, types="spark", **_renamed(options))
    added = _added(canonicalizer)
    present = {name.lower() for name in df.columns}
    clashing = [field.name for field in added if field.name.lower() in present]
    if clashing:
        raise ValueError(f"the data frame already has columns {', '.join(clashing)}; rename them, or choose others with columns=")
    named = {"url": url, **{name: _name_of(options.get(name)) for name in ("base", "charset", "query_charset")}}
    inputs = {name: _found(df, column) for name, column in named.items() if column is not None}
    observed = counters is not None and counters._observation is not None
    function = _rows_function(canonicalizer, tuple(inputs), None if observed else counters)
    # A function that is not deterministic is evaluated once, also if a filter on its result follows.
    made = _arrow_udf(function, StructType(added.fields)).asNondeterministic()
    sources = [F.col(_quoted(name)) for name in inputs.values()]
    rows = df.select("*", made(*sources).alias("_irikey")).select(
        *[F.col(_quoted(name)) for name in df.columns], *[F.col("_irikey").getField(field.name).alias(field.name) for field in added]
    )
    return counters._observe(rows, F.col(_quoted(inputs["url"]))) if counters is not None and observed else rows


def _name_of(operand: Optional[Operand]) -> Optional[str]:
    """Returns the column of an operand."""
    if isinstance(operand, tuple):
        return operand[0]
    return operand if isinstance(operand, str) else None


def _renamed(options: dict[str, Any]) -> dict[str, Any]:
    """Returns options whose columns have the names of their parameters."""
    renamed = dict(options)
    for name in ("base", "charset", "query_charset"):
        operand = options.get(name)
        if isinstance(operand, tuple):
            renamed[name] = (name, operand[1])
        elif isinstance(operand, str):
            renamed[name] = name
    return renamed


def _rows_function(canonicalizer: Canonicalizer, names: tuple[str, ...], counters: Optional[Counters]) -> Any:
    """Returns a function from batches of columns to batches of result rows, as structures."""

    def answers(batches: typing.Iterator[tuple[pa.Array, ...]]) -> typing.Iterator[pa.Array]:
        try:
            for arrays in batches:
                batch = pa.record_batch(list(arrays), names=list(names))
                found = pa.table(canonicalizer.canonicalize(batch)).to_batches()
                structures = [part.to_struct_array() for part in found]
                yield structures[0] if len(structures) == 1 else pa.concat_arrays(structures)
        finally:
            if counters is not None:
                counters.add(canonicalizer.counters)

    def answers_of_one(batches: typing.Iterator[pa.Array]) -> typing.Iterator[pa.Array]:
        return answers((array,) for array in batches)

    return answers_of_one if len(names) == 1 else answers


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
        # A time without a zone is taken as UTC, whatever the zone of the session is.
        return F.unix_micros(F.from_utc_timestamp(column.cast("timestamp"), F.current_timezone()))
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
      to ``uri``, whose keys must be those of "scheme". Or a data frame with the columns ``key`` and ``representative``.
    - ``copies``: name of a column for the number of rows of each key.
    - Other options are those that the keys were made with (``key_hash``, ``drop_fragment``, ``profile``), for equivalences.

    Rows with a fault or a null key are left out: kept + duplicate + faulty + null = read.

    Each partition first reduces its own rows (``min_by`` is a partial aggregate), so that a key with a million rows is one row
    per partition in the shuffle.
    """
    if keep not in KEEP:
        raise ValueError(f"unknown keep={keep!r}; expected one of {', '.join(KEEP)}")
    if isinstance(order, str):
        raise ValueError(f"order is a list of names such as [{order!r}], not a str")
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
        known = equivalences.select(F.col("key").alias("_irikey_from"), F.col("representative").alias("_irikey_to"))
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
