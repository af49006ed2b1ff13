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
    """What ``irikey learn`` wrote, for ``equivalences=`` of :class:`Canonicalizer`: ``source`` is the path of the file, or a
    pyarrow table of it. Needs pyarrow. The bytes are pickled with the canonicalizer."""
    import pyarrow as pa

    columns = ["kind", "uri", "key", "representative_key", "host", "pattern"]
    if not isinstance(source, pa.Table):
        import pyarrow.parquet as pq

        if not set(columns) <= set(pq.read_schema(source).names):
            raise ValueError(f"{source}: this is no table of equivalences; make one with irikey learn")
        source = pq.read_table(source, columns=columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, source.schema) as writer:
        writer.write_table(source.select(columns))
    return sink.getvalue().to_pybytes()


def canonicalize(data, url="url", base=None, charset=None, key="scheme", columns=None, **choices):
    """Canonical URIs, keys, faults and flags of a batch or table: as many rows, null where the URL is null.

    ``data`` is any object with ``__arrow_c_array__`` (a record batch; a :class:`Batch` comes back) or
    ``__arrow_c_stream__`` (a table, data frame, relation or reader; a :class:`Table` comes back). ``url``, ``base`` and
    ``charset`` name its columns of text or bytes: the reference, the absolute IRI that it is relative to, the charset
    that its bytes are in. ``key`` is the rung of ``uri`` and ``key``: "scheme", "syntax" or "simple"; with "protocol",
    ``uri`` is that of "scheme" and ``key`` that of its representative by ``equivalences=equivalences(path)``. ``columns`` are
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
