"""Canonical URIs and keys as columns of a data frame of Spark, and the counters of its tasks."""

from __future__ import annotations

import json
import typing
import uuid
from typing import Any, Mapping, Optional, Sequence

import pyarrow as pa
from pyspark import AccumulatorParam, TaskContext
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from . import Canonicalizer, Flags
from ._irikey import _FAULTS
from ._policy import Contents, Operand, Policy, Rung, column_names, loaded
from ._spark_columns import _arrow_udf, _found, _quoted

if typing.TYPE_CHECKING:
    from typing_extensions import Unpack

_SUMS = ("rows", "unchanged", "changed", "faulty", "nulls")
_NAMED = ("faults", "flags", "changes")


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
        sums.update(
            {
                f"flags.{name.lower().replace('_', '-')}": F.count_if(F.col("flags").bitwiseAND(F.lit(bit)) != 0)
                for name, bit in named
            }
        )
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
    equivalences: Optional[Contents] = None,
    **policy: Unpack[Policy],
) -> DataFrame:
    """Returns ``df`` with the columns of :func:`irikey.canonicalize`; rows and their order within partitions do not change.

    Only the columns of URLs, bases and charsets are sent to Python. ``equivalences`` may be the path, on the driver, of the
    file that ``irikey learn`` wrote; it is needed for rung="protocol" and for the column key_protocol. ``counters`` is a
    :class:`Counters`, which is filled as tasks end. If ``df`` already has one of the columns, in upper or lower case, the
    function raises ``ValueError``.
    """
    given = {**policy, "rung": rung, "base": base, "charset": charset, "equivalences": equivalences}
    options = loaded(given, has_types=False)
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
        *[F.col(_quoted(name)) for name in df.columns],
        *[F.col("_irikey").getField(field.name).alias(field.name) for field in added],
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
