"""irikey in DuckDB: functions for SQL that process vectors of rows as Arrow arrays.

    import duckdb, irikey.duckdb
    con = duckdb.connect()
    irikey.duckdb.register(con)
    con.sql("SELECT irikey_uri(url) AS uri, count(*) FROM captures GROUP BY uri")
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from ._policy import SqlFunction, SqlOptions, sql_functions

if TYPE_CHECKING:
    from typing_extensions import Unpack


def _function(function: SqlFunction) -> Any:
    canonicalizer, column = function.canonicalizer(), function.column

    def of_url(url: pa.ChunkedArray) -> pa.Array:
        return pa.array(canonicalizer.array(url.combine_chunks(), column))

    def of_url_and_base(url: pa.ChunkedArray, base: pa.ChunkedArray) -> pa.Array:
        return pa.array(canonicalizer.array(url.combine_chunks(), column, base.combine_chunks()))

    return of_url_and_base if function.has_base else of_url


def register(con: duckdb.DuckDBPyConnection, prefix: str = "irikey_", **options: Unpack[SqlOptions]) -> None:
    """Registers functions for SQL: ``irikey_uri(url)``, ``irikey_key(url)``, ``irikey_surt(url)``, and ``irikey_uri_from(url,
    base)`` and ``irikey_key_from(url, base)`` for relative references; the same names as :func:`irikey.spark.register`.

    Texts are VARCHAR, keys BLOB. Options: :class:`irikey.SqlOptions`. ``base=`` is also for rows of the functions with a base
    in which the base is null; ``literal_base=`` without ``base=`` applies to these functions alone. Functions that ``con`` has
    registered with this prefix are replaced. To also register functions with other options, use another ``prefix``.
    """
    # An invalid option raises an exception before a function is replaced.
    made = [(function, _function(function)) for function in sql_functions({**options})]
    for function, call in made:
        name, kinds = prefix + function.name, ["VARCHAR"] * (2 if function.has_base else 1)
        with contextlib.suppress(duckdb.InvalidInputException):
            # DuckDB raises this exception if the function is not registered.
            con.remove_function(name)
        create: Any = con.create_function
        kind = "BLOB" if function.column == "key" else "VARCHAR"
        create(name, call, kinds, kind, type="arrow", null_handling="special")
