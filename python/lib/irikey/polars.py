"""irikey in Polars: the namespace ``irikey`` of expressions and series. Importing this module registers it.

    import polars as pl, irikey.polars
    frame.with_columns(pl.col("url").irikey.uri(), pl.col("url").irikey.key().alias("key"))

The functions are a native plug-in: Polars calls the compiled library on its own threads, without the interpreter. They are
elementwise, so lazy frames stay lazy and the streaming engine calls them morsel by morsel.
"""

from __future__ import annotations

import hashlib
import pathlib
import pickle
from typing import TYPE_CHECKING, Any, Literal, Optional

import polars as pl
from polars.plugins import register_plugin_function

from . import _irikey
from ._irikey import Canonicalizer, lit
from ._policy import Options, loaded, one_value, output, surt_recipe

if TYPE_CHECKING:
    from typing_extensions import Unpack


def _expression(expression: pl.Expr, name: str, base: Any, policy: dict[str, Any]) -> pl.Expr:
    """Returns the expression of a result. The policy contains the charset."""
    column = output(name, policy.get("recipe"))
    arguments = [expression]
    if isinstance(base, pl.Expr):
        policy["base"] = "base"
        arguments.append(base)
    elif base is None or isinstance(base, (str, lit)):
        policy["base"] = lit(base) if isinstance(base, str) else base
    else:
        raise TypeError(f"base: {type(base).__name__} is not supported; expected an expression, a text or lit(value)")
    options = loaded(one_value(policy, "charset", "query_charset"), has_types=False)
    try:
        canonicalizer = Canonicalizer(columns=[column], types="spark", **options)
    except ValueError as error:
        if isinstance(base, str) and ":" not in base and str(error).startswith("base: "):
            raise ValueError(f"{error}; for a column, pass pl.col({base!r})") from None
        raise
    # The plug-in expects the digest first: it finds the canonicalizer by it, without reading equivalences of many megabytes.
    digest = hashlib.blake2b(pickle.dumps(canonicalizer), digest_size=16).digest()
    return register_plugin_function(
        plugin_path=pathlib.Path(_irikey.__file__),
        function_name="irikey",
        args=arguments,
        kwargs={"digest": digest, "canonicalizer": canonicalizer},
        is_elementwise=True,
    )


@pl.api.register_expr_namespace("irikey")
class IrikeyExpr:
    """Functions of expressions of text or bytes: ``pl.col("url").irikey``."""

    def __init__(self, expression: pl.Expr) -> None:
        self._expression = expression

    def uri(
        self, base: Optional[pl.Expr | str | lit] = None, charset: Optional[str | lit] = None, **options: Unpack[Options]
    ) -> pl.Expr:
        """Returns the canonical URIs; ``base`` is an expression, or one absolute IRI for all rows, ``charset`` the charset of all
        URLs. Other options as in :func:`irikey.uris`."""
        return _expression(self._expression, "uri", base, {**options, "charset": charset})

    def key(
        self, base: Optional[pl.Expr | str | lit] = None, charset: Optional[str | lit] = None, **options: Unpack[Options]
    ) -> pl.Expr:
        """Returns the 16-byte keys; arguments as in :meth:`uri`."""
        return _expression(self._expression, "key", base, {**options, "charset": charset})

    def surt(self, dialect: Literal["wayback", "ia"] = "wayback") -> pl.Expr:
        """Returns the SURT keys: dialect "wayback" is that of webarchive-commons, "ia" that of Python's surt."""
        return _expression(self._expression, "uri", None, {"recipe": surt_recipe(dialect)})


@pl.api.register_series_namespace("irikey")
class IrikeySeries:
    """Functions of series of text or bytes: ``series.irikey``."""

    def __init__(self, series: pl.Series) -> None:
        self._series = series

    def _apply(self, expression: pl.Expr) -> pl.Series:
        return self._series.to_frame().select(expression).to_series()

    def uri(self, base: Optional[str | lit] = None, charset: Optional[str | lit] = None, **options: Unpack[Options]) -> pl.Series:
        """Returns the canonical URIs; arguments as for expressions."""
        return self._apply(IrikeyExpr(pl.all()).uri(base, charset, **options))

    def key(self, base: Optional[str | lit] = None, charset: Optional[str | lit] = None, **options: Unpack[Options]) -> pl.Series:
        """Returns the 16-byte keys; arguments as for expressions."""
        return self._apply(IrikeyExpr(pl.all()).key(base, charset, **options))

    def surt(self, dialect: Literal["wayback", "ia"] = "wayback") -> pl.Series:
        """Returns the SURT keys; arguments as for expressions."""
        return self._apply(IrikeyExpr(pl.all()).surt(dialect))
