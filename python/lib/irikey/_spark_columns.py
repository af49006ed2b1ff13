"""Functions for columns of Spark, and how columns of a data frame are named."""

from __future__ import annotations

import typing
from typing import Any, Literal, Optional, Sequence, Union

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from . import Canonicalizer, lit
from ._policy import Options, SqlOptions, loaded, one_value, output, sql_functions, surt_recipe

if typing.TYPE_CHECKING:
    from typing_extensions import TypeAlias, Unpack

ColumnOrName: TypeAlias = "Union[Column, str]"
Operands: TypeAlias = "Union[Column, str, lit, None]"


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


def _operand(name: str, value: Any) -> tuple[Any, Optional[Column]]:
    """Returns the option of a canonicalizer for an argument, and the column if it is one."""
    if value is None or isinstance(value, lit):
        return value, None
    return name, F.col(value) if isinstance(value, str) else value


def _arrow_udf(function: Any, kind: Any) -> Any:
    # The declarations of pyspark lack this function.
    made: Any = getattr(F, "arrow_udf")
    return made(function, kind)


def _arrow_column(canonicalizer: Canonicalizer, column: str, operands: Sequence[str] = ()) -> Any:
    """Returns a function of arrays of URLs, and of the ``operands``, base and charset, that Spark calls by batch."""

    def answer(url: pa.Array, *others: pa.Array) -> pa.Array:
        return pa.array(canonicalizer.array(url, column, **dict(zip(operands, others))))

    answer.__name__ = f"irikey_{'key' if column == 'key' else 'uri'}"
    return _arrow_udf(answer, "binary" if column == "key" else "string")


def _column(name: str, url: ColumnOrName, others: dict[str, Any], policy: dict[str, Any]) -> Column:
    """Returns a column of results for a column of URLs. ``others`` are the arguments base and charset."""
    columns, column = {"url": F.col(url) if isinstance(url, str) else url}, output(name, policy.get("recipe"))
    for operand, value in others.items():
        policy[operand], found = _operand(operand, value)
        if found is not None:
            columns[operand] = found
    options = loaded(one_value(policy, "query_charset"), has_types=False)
    canonicalizer = Canonicalizer(columns=[column], types="spark", **options)
    made: Column = _arrow_column(canonicalizer, column, [*columns][1:])(*columns.values())
    return made


def uri(url: ColumnOrName, base: Operands = None, charset: Operands = None, **options: Unpack[Options]) -> Column:
    """Returns a column of canonical URIs, null where the URL is null or cannot be parsed.

    ``url`` is a column of text or bytes, ``base`` and ``charset`` are columns or ``irikey.lit(value)``; other options as in
    :func:`irikey.uris`.
    """
    return _column("uri", url, {"base": base, "charset": charset}, {**options})


def key(url: ColumnOrName, base: Operands = None, charset: Operands = None, **options: Unpack[Options]) -> Column:
    """Returns a column of 16-byte keys, null where the URL is null; arguments as in :func:`uri`."""
    return _column("key", url, {"base": base, "charset": charset}, {**options})


def surt(url: ColumnOrName, dialect: Literal["wayback", "ia"] = "wayback") -> Column:
    """Returns a column of SURT keys: dialect "wayback" is that of webarchive-commons, "ia" that of Python's surt."""
    return _column("uri", url, {}, {"recipe": surt_recipe(dialect)})


def register(spark: SparkSession, prefix: str = "irikey_", **options: Unpack[SqlOptions]) -> None:
    """Registers functions for SQL: ``irikey_uri(url)``, ``irikey_key(url)``, ``irikey_surt(url)``, and ``irikey_uri_from(url,
    base)`` and ``irikey_key_from(url, base)`` for relative references.

    Options: :class:`irikey.SqlOptions`. ``base=`` is also for rows of the functions with a base in which the base is null;
    ``literal_base=`` without ``base=`` applies to these functions alone. To also register functions with other options, use
    another ``prefix``.
    """
    for function in sql_functions({**options}):
        operands = ["base"] if function.has_base else []
        spark.udf.register(prefix + function.name, _arrow_column(function.canonicalizer(), function.column, operands))
