"""Functions for columns of Spark, and how columns of a data frame are named."""

from __future__ import annotations

import typing
from typing import Any, Literal, Optional, Union

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from . import Canonicalizer, lit
from ._policy import Options, loaded, one_value, output, surt_recipe

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


def _arrow_column(name: str, kind: str, policy: dict[str, Any]) -> Any:
    """Returns a function of arrays of URLs, and of bases if the policy has a column for them, that Spark calls by batch."""
    recipe = policy.get("recipe")
    column = output(name, recipe)
    canonicalizer = Canonicalizer(columns=[column], types="spark", **loaded(one_value(policy, "query_charset"), stacklevel=5))
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
    return _column("uri", "string", url, None, None, {"recipe": surt_recipe(dialect)})


def register(spark: SparkSession, prefix: str = "irikey_", **options: Unpack[Options]) -> None:
    """Registers functions for SQL: ``irikey_uri(url)``, ``irikey_key(url)``, ``irikey_surt(url)``, and ``irikey_uri_from(url,
    base)`` and ``irikey_key_from(url, base)`` for relative references. The options are those of :func:`uri`. To also register
    functions with other options, use another ``prefix``."""
    functions: dict[str, tuple[str, str, dict[str, Any]]] = {
        "uri": ("uri", "string", {**options}),
        "key": ("key", "binary", {**options}),
        "uri_from": ("uri", "string", {**options, "base": "base"}),
        "key_from": ("key", "binary", {**options, "base": "base"}),
        "surt": ("uri", "string", {**options, "recipe": "surt-wayback"}),
    }
    for function, (name, kind, chosen) in functions.items():
        spark.udf.register(prefix + function, _arrow_column(name, kind, chosen))
