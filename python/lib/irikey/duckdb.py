"""irikey in DuckDB: functions for SQL that process vectors of rows as Arrow arrays.

    import duckdb, irikey.duckdb
    con = duckdb.connect()
    irikey.duckdb.register(con)
    con.sql("SELECT irikey_uri(url) AS uri, count(*) FROM captures GROUP BY uri")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ._irikey import Canonicalizer
from ._policy import Options, loaded, one_value, output

if TYPE_CHECKING:
    import duckdb
    from typing_extensions import Unpack


def _function(name: str, arity: int, policy: dict[str, Any]) -> Any:
    column = output(name, policy.get("recipe"))
    base = {"base": "base"} if arity == 2 else {}
    options = {**one_value(policy, "base", "charset", "query_charset"), **base}
    canonicalizer = Canonicalizer(columns=[column], types="spark", **loaded(options, stacklevel=4))

    def of_url(url: pa.ChunkedArray) -> pa.Array:
        return pa.array(canonicalizer.array(url.combine_chunks(), column))

    def of_url_and_base(url: pa.ChunkedArray, base: pa.ChunkedArray) -> pa.Array:
        return pa.array(canonicalizer.array(url.combine_chunks(), column, base.combine_chunks()))

    return of_url if arity == 1 else of_url_and_base


def register(con: duckdb.DuckDBPyConnection, prefix: str = "irikey_", **options: Unpack[Options]) -> None:
    """Registers functions for SQL: ``irikey_uri(url)``, ``irikey_key(url)``, ``irikey_surt(url)``, and ``irikey_uri_from(url,
    base)`` and ``irikey_key_from(url, base)`` for relative references; the same names as :func:`irikey.spark.register`.

    Texts are VARCHAR, keys BLOB. The options are those of :func:`irikey.uris`. To also register functions with other options, use
    another ``prefix``.
    """
    functions: dict[str, tuple[str, int, str, dict[str, Any]]] = {
        "uri": ("uri", 1, "VARCHAR", {**options}),
        "key": ("key", 1, "BLOB", {**options}),
        "uri_from": ("uri", 2, "VARCHAR", {**options}),
        "key_from": ("key", 2, "BLOB", {**options}),
        "surt": ("uri", 1, "VARCHAR", {**options, "recipe": "surt-wayback"}),
    }
    for function, (name, arity, kind, chosen) in functions.items():
        made = _function(name, arity, chosen)
        create: Any = con.create_function
        create(prefix + function, made, ["VARCHAR"] * arity, kind, type="arrow", null_handling="special")
