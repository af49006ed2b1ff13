"""Canonical URIs and 128-bit equivalence keys for crawl data, by RFC 3987; Arrow in, Arrow out.

    >>> import irikey
    >>> irikey.uri("HTTP://Example.org:80/%7Euser/")
    'http://example.org/~user/'
    >>> print(irikey.compare("http://example.org", "HTTP://EXAMPLE.org:80/"))
    equivalent on the rung scheme: http://example.org/

``uri`` and ``key`` are for one reference, ``uris`` and ``keys`` for an array, ``canonicalize`` for a table, ``read`` for a
file. Engines: ``irikey.spark``, ``irikey.duckdb``, ``irikey.polars``. Arguments and results are objects of any library that
implements the Arrow PyCapsule interface (pyarrow, polars, duckdb, pandas, nanoarrow); pyarrow is not required.
"""

from ._arrays import Read, batch_function, canonicalize, keys, read, schema, uris
from ._compare import Comparison, compare
from ._flags import Flags, SpoofingFlags
from ._irikey import (
    Array,
    Batch,
    Canonicalizer,
    Fault,
    Reader,
    Schema,
    Table,
    __version__,
    explain,
    iri,
    key,
    lit,
    resolve,
    surt,
    uri,
)
from ._policy import Options, Policy, SqlOptions, equivalences

__all__ = [
    "Array",
    "Batch",
    "Canonicalizer",
    "Comparison",
    "Fault",
    "Flags",
    "Options",
    "Policy",
    "Read",
    "Reader",
    "Schema",
    "SpoofingFlags",
    "SqlOptions",
    "Table",
    "__version__",
    "batch_function",
    "canonicalize",
    "compare",
    "equivalences",
    "explain",
    "iri",
    "key",
    "keys",
    "lit",
    "read",
    "resolve",
    "schema",
    "surt",
    "uri",
    "uris",
]
