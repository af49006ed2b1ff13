"""Canonical URIs and 128-bit equivalence keys for crawl data, by RFC 3987; Arrow in, Arrow out.

    >>> import irikey
    >>> irikey.uri("HTTP://Example.org:80/%7Euser/")
    'http://example.org/~user/'
    >>> irikey.compare("http://example.org", "HTTP://EXAMPLE.org:80/")
    'scheme'

Tables and batches of any library that speaks the Arrow PyCapsule interface (pyarrow, polars, duckdb, pandas, nanoarrow)
go in; what comes out goes into any of them. pyarrow itself is not needed.
"""

from ._irikey import (
    Batch,
    Canonicalizer,
    Fault,
    Schema,
    Table,
    __version__,
    compare,
    explain,
    iri,
    key,
    resolve,
    surt,
    uri,
)

__all__ = [
    "Batch",
    "Canonicalizer",
    "Fault",
    "Schema",
    "Table",
    "__version__",
    "canonicalize",
    "compare",
    "explain",
    "iri",
    "key",
    "resolve",
    "schema",
    "surt",
    "uri",
]


def canonicalize(data, url="url", base=None, charset=None, key="scheme", columns=None, **choices):
    """Canonical URIs, keys, faults and flags of a batch or table: as many rows, null where the URL is null.

    ``data`` is any object with ``__arrow_c_array__`` (a record batch; a :class:`Batch` comes back) or
    ``__arrow_c_stream__`` (a table, data frame, relation or reader; a :class:`Table` comes back). ``url``, ``base`` and
    ``charset`` name its columns of text or bytes: the reference, the absolute IRI that it is relative to, the charset
    that its bytes are in. ``key`` is the rung of ``uri`` and ``key``: "scheme", "syntax" or "simple". ``columns`` are
    those of ``irikey schema``, by default uri, key, fault, fault_at and flags. Further choices: see
    :class:`Canonicalizer`.

    A reference that is refused is a row with a fault, not an exception. A missing column is a ``KeyError``, one of
    another type a ``TypeError``, a choice that there is not a ``ValueError``.
    """
    made = Canonicalizer(url=url, base=base, charset=charset, key=key, columns=columns, **choices)
    return made.canonicalize(data)


def schema(columns=None, types="arrow"):
    """The columns of an answer: Arrow by ``__arrow_c_schema__``, Spark by ``spark_ddl()`` and ``spark_json()``."""
    return Canonicalizer(columns=columns, types=types).schema
