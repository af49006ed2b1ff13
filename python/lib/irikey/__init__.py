"""Canonical URIs and 128-bit equivalence keys for crawl data, by RFC 3987; Arrow in, Arrow out.

    >>> import irikey
    >>> irikey.uri("HTTP://Example.org:80/%7Euser/")
    'http://example.org/~user/'
    >>> irikey.compare("http://example.org", "HTTP://EXAMPLE.org:80/")
    'scheme'

Functions take tables and batches of any library that implements the Arrow PyCapsule interface (pyarrow, polars, duckdb,
pandas, nanoarrow), and return objects that any of them accepts. pyarrow is not required.
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
    "equivalences",
    "explain",
    "iri",
    "key",
    "resolve",
    "schema",
    "surt",
    "uri",
]


def equivalences(source):
    """Reads the equivalences that ``irikey learn`` wrote, for ``equivalences=`` of :class:`Canonicalizer`.

    ``source`` is the path of the file, or a pyarrow table with its contents. Requires pyarrow. The returned bytes are pickled
    with the canonicalizer.
    """
    import pyarrow as pa

    columns = ["kind", "uri", "key", "representative_key", "host", "pattern"]
    if not isinstance(source, pa.Table):
        import pyarrow.parquet as pq

        if not set(columns) <= set(pq.read_schema(source).names):
            raise ValueError(f"{source} is not a table of equivalences; create one with irikey learn")
        source = pq.read_table(source, columns=columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, source.schema) as writer:
        writer.write_table(source.select(columns))
    return sink.getvalue().to_pybytes()


def canonicalize(data, url="url", base=None, charset=None, key="scheme", columns=None, **options):
    """Returns canonical URIs, keys, faults and flags of a batch or table, one row per row of ``data``.

    ``data`` is an object with ``__arrow_c_array__`` (a record batch; returns a :class:`Batch`) or ``__arrow_c_stream__`` (a
    table, data frame, relation or reader; returns a :class:`Table`). ``url``, ``base`` and ``charset`` name its columns of
    text or bytes: the reference, the absolute IRI that it is relative to, and the charset of its bytes. A row whose URL is
    null is null.

    ``key`` is the rung of ``uri`` and ``key``: "scheme", "syntax" or "simple". With "protocol", ``uri`` is that of "scheme",
    and ``key`` is that of its representative by ``equivalences=equivalences(path)``. ``columns`` are names of ``irikey
    schema``; the default is uri, key, fault, fault_at and flags. :class:`Canonicalizer` describes the other options.

    A reference that cannot be parsed gives a row with a fault, not an exception. A missing column raises ``KeyError``, a
    column of another type ``TypeError``, and an invalid option ``ValueError``.
    """
    canonicalizer = Canonicalizer(url=url, base=base, charset=charset, key=key, columns=columns, **options)
    return canonicalizer.canonicalize(data)


def schema(columns=None, types="arrow"):
    """Returns the schema of a result: for Arrow ``__arrow_c_schema__``, for Spark ``spark_ddl()`` and ``spark_json()``."""
    return Canonicalizer(columns=columns, types=types).schema
