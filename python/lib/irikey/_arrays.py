"""Functions for arrays and tables of any library that implements the Arrow PyCapsule interface."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Optional, Sequence, TypeVar, Union, overload

from ._irikey import Batch, Canonicalizer, Reader, Schema, Table, _binary, _schema, lit
from ._policy import (
    Contents,
    Operand,
    Options,
    Policy,
    Reference,
    Rung,
    Types,
    canonicalizer,
    column_names,
    loaded,
    one_value,
    output,
)

if TYPE_CHECKING:
    import os

    from typing_extensions import Unpack

    class _WithoutRecipe(Policy, total=False):
        rung: Rung
        equivalences: Optional[Contents]


Data = TypeVar("Data")

#: The classes of references that are bytes.
_BYTES = (bytes, bytearray, memoryview)


def _operand(name: str, value: Any, values: Any, is_decoded: bool) -> tuple[Optional[Any], Any]:
    """Returns the option of a canonicalizer for an argument of a function of ``values``, and the array if it is one. If
    ``is_decoded``, bytes are text in a charset."""
    if value is None or isinstance(value, lit):
        return value, None
    if isinstance(value, _BYTES):
        value = bytes(value)
    if not isinstance(value, (str, bytes)):
        return name, value
    if is_decoded and isinstance(value, bytes) and not value.isascii():
        return name, [value] * len(values)
    try:
        return lit(value.decode() if isinstance(value, bytes) else value), None
    except UnicodeError:
        if name != "base":
            raise
        # A literal is text without surrogates.
        return name, [value] * len(values)


#: The classes that functions take and return, by library.
_CLASSES = {
    "numpy": ("ndarray",),
    "pandas": ("Series", "Index", "DataFrame"),
    "polars": ("Series", "DataFrame", "LazyFrame"),
    "pyarrow": ("Array", "ChunkedArray", "RecordBatch", "Table", "RecordBatchReader"),
}


@functools.lru_cache(maxsize=256)
def _base_class(kind: type) -> tuple[str, str]:
    """Returns the library and the name of the class in ``_CLASSES`` that ``kind`` is or inherits from, or two empty texts."""
    for base in kind.__mro__:
        library = base.__module__.partition(".")[0]
        if base.__name__ in _CLASSES.get(library, ()):
            return library, base.__name__
    return "", ""


def _class(value: Any) -> tuple[str, str]:
    """Returns the library and the name of the class of an array or a table, or two empty texts."""
    kind: Any = type(value)
    return _base_class(kind)


def _library(value: Any) -> str:
    """Returns the library of an array or a table, or an empty text."""
    return _class(value)[0]


#: Most bytes of an array of pyarrow whose offsets have 32 bits.
_MOST_BYTES = (1 << 31) - 1


def _combined(values: Any) -> Any:
    """Returns a chunked array as an array."""
    if not hasattr(values, "iterchunks"):
        return values
    if values.nbytes > _MOST_BYTES:
        import pyarrow as pa

        long = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}
        values = values.cast(long.get(values.type, values.type))
    return values.combine_chunks()


def _slice(values: Any, begin: int, end: int) -> Any:
    """Returns some rows of a list or an array."""
    if isinstance(values, (list, tuple)):
        return values[begin:end]
    if not hasattr(values, "slice"):
        import pyarrow as pa

        values = pa.array(values)
    return _combined(values.slice(begin, end - begin))


def _is_array(values: Any) -> bool:
    """Returns whether this is an array with one dimension, and not a table."""
    if isinstance(values, (list, tuple)):
        return True
    if hasattr(type(values), "columns"):
        return False
    kind = _library(values)
    if kind == "numpy":
        return bool(values.ndim == 1)
    if kind == "pandas":
        import pandas as pd

        return isinstance(values, (pd.Series, pd.Index)) and not isinstance(values, pd.MultiIndex)
    if kind == "polars":
        return _class(values)[1] == "Series"
    return hasattr(values, "__arrow_c_array__") or hasattr(values, "iterchunks")


def _check_array(name: str, values: Any) -> None:
    """Raises ``TypeError`` if the argument ``name`` is not an array."""
    if _is_array(values):
        return
    _check_not_lazy(name, values)
    hint = "; canonicalize takes tables" if hasattr(type(values), "columns") else ""
    raise TypeError(
        f"{name}: {type(values).__name__} is not supported; expected a list of str or bytes, an array of numpy with one"
        f" dimension, a Series, or an array with the Arrow PyCapsule interface{hint}"
    )


def _check_not_lazy(name: str, values: Any) -> None:
    """Raises ``TypeError`` if the argument ``name`` is a query of polars."""
    if _class(values) == ("polars", "LazyFrame"):
        raise TypeError(
            f"{name}: LazyFrame is not supported, because it has no rows yet; call .collect(), or use the expressions of"
            ' irikey.polars, such as pl.col("url").irikey.uri()'
        )


def _pieces(values: Any) -> Any:
    """Returns an array as a list, a chunked array, or an object with ``__arrow_c_array__``."""
    kind = _library(values)
    if kind == "polars":
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            return values.to_list()
        return values.to_arrow()
    if kind == "pandas":
        return _of_pandas(values)
    return values.tolist() if kind == "numpy" else values


def _of_pandas(values: Any) -> Any:
    """Returns a series or an index as an array of pyarrow, a chunked one, or a list."""
    import pandas as pd
    import pyarrow as pa

    objects = values.dtype.categories if isinstance(values.dtype, pd.CategoricalDtype) else values
    is_mixed = objects.dtype == object and pd.api.types.infer_dtype(objects, skipna=True) not in ("string", "bytes", "empty")
    try:
        # pyarrow makes bytes of text beside bytes.
        if not is_mixed:
            return _text_of_missing(pa.Array.from_pandas(values))
    except UnicodeEncodeError:
        # A text has surrogates.
        pass
    return values.tolist()


def _text_of_missing(array: Any) -> Any:
    """Returns an array of numbers without any value as an array of text: pandas makes numbers of missing values."""
    import pyarrow as pa

    return pa.nulls(len(array), pa.string()) if pa.types.is_floating(array.type) and array.null_count == len(array) else array


def _check_mixed(name: str, values: Any, canonical: Canonicalizer) -> None:
    """Raises ``TypeError`` if a list has text and bytes, and a charset applies to the bytes alone: a column has one type."""
    has_charset = canonical.configuration["charset"] is not None
    if has_charset and all(any(isinstance(value, kind) for value in values) for kind in (str, _BYTES)):
        raise TypeError(f"{name} has str and bytes, and charset= applies to bytes alone; decode the bytes, or encode the str")


def _of_list(name: str, values: Any, canonical: Canonicalizer) -> Any:
    """Returns a list of references as an array of pyarrow. Text with surrogates has the type of text, though it is not UTF-8."""
    import pyarrow as pa

    _check_mixed(name, values, canonical)
    array = pa.array(_binary(values))
    if any(isinstance(value, _BYTES) for value in values):
        return array
    return pa.Array.from_buffers(pa.large_string(), len(array), array.buffers())


def _table(values: Any, canonical: Canonicalizer) -> Any:
    """Returns an array as the core takes it: a list, an object with ``__arrow_c_array__``, or a table if it is too long."""
    if not hasattr(values, "iterchunks") or values.nbytes <= _MOST_BYTES:
        return _combined(values)
    import pyarrow as pa

    return pa.table({canonical._input_columns[0]: values})


def importable(data: Any, canonical: Canonicalizer) -> Any:
    """Returns data as the core takes it: arrays of libraries that do not export them are converted."""
    if hasattr(data, "iterchunks") or (_library(data) in ("numpy", "pandas", "polars") and _is_array(data)):
        return _table(_pieces(data), canonical)
    _check_not_lazy("data", data)
    if _library(data) == "pyarrow" and hasattr(data, "read_next_batch"):
        return _checked_reader(data)
    return _importable(data, canonical)


def _checked_reader(reader: Any) -> Any:
    """Returns a reader whose batches have the types of its schema.

    A stream of C states its types once, and pyarrow does not compare the batches that ``RecordBatchReader.from_batches`` gets.
    """
    import pyarrow as pa

    types = reader.schema.types

    def batches() -> Any:
        for batch in reader:
            if batch.schema.types != types:
                raise ValueError(
                    "a batch of the reader does not have the columns and types of the reader's schema; "
                    "give every batch this schema"
                )
            yield batch

    return pa.RecordBatchReader.from_batches(reader.schema, batches())


def _importable(data: Any, canonical: Canonicalizer) -> Any:
    """Returns a data frame without the columns that are not read: their library may not be able to export them, or exports them
    in a way that the core refuses."""
    kind, name = _class(data)
    if name != "DataFrame":
        return data
    present, names = [str(name) for name in data.columns], set(canonical._input_columns)
    for name in sorted(names):
        if name not in present:
            hint = "" if name == canonical._input_columns[0] else ", or irikey.lit(value) for all rows"
            raise KeyError(f'unknown column "{name}"; expected one of {", ".join(present)}{hint}')
        if present.count(name) > 1:
            raise ValueError(
                f'data: {present.count(name)} columns have the name "{name}"; expected one: rename or drop the others'
            )
    if kind == "polars":
        import polars as pl

        data = data.select(sorted(names))
        return data.cast({name: pl.String for name, kind in data.schema.items() if kind == pl.Null})
    import pyarrow as pa

    data = data.loc[:, [name in names for name in present]]
    columns = {str(name): _of_pandas(values) for name, values in data.items()}
    lists = {name: _of_list(name, values, canonical) for name, values in columns.items() if isinstance(values, list)}
    return pa.table({**columns, **lists})


def _holds_text(dtype: Any) -> bool:
    """Returns whether this is a dtype of pandas for text alone, unlike ``object``."""
    import pandas as pd
    import pyarrow as pa

    if isinstance(dtype, pd.ArrowDtype):
        kind = dtype.pyarrow_dtype
        return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
    return isinstance(dtype, pd.StringDtype)


def _check_index(name: str, array: Any, values: Any) -> None:
    """Raises ``ValueError`` if a series has another index than that of the URLs: their rows would not belong together."""
    import pandas as pd

    if isinstance(array, pd.Series) and isinstance(values, pd.Series) and not array.index.equals(values.index):
        raise ValueError(
            f"{name} has another index than values; reindex it ({name}.reindex(values.index)), or pass {name}.to_numpy()"
            " to combine rows by position"
        )


def _of_polars(canonical: Canonicalizer, column: str, values: Any, others: dict[str, Any]) -> Any:
    """Returns a column of the results for a series of polars, as such a series."""
    import polars as pl

    columns = {canonical._input_columns[0]: values}
    for name, array in others.items():
        series = _series(name, array, canonical)
        if len(series) != len(values):
            raise ValueError(f"{name} has {len(series)} values; expected {len(values)}, one per URL")
        columns[_column_name(canonical, name)] = series
    if column not in canonical.schema.names:
        raise KeyError(f'unknown column "{column}" of the canonicalizer')
    frame = _importable(pl.DataFrame(columns), canonical)
    return pl.Series(values.name, pl.DataFrame(canonical.canonicalize(frame))[column])


def _column_name(canonical: Canonicalizer, name: str) -> str:
    """Returns the column of batches that holds the bases or the charsets of a canonicalizer."""
    operand = canonical.configuration[name]
    column = operand[0] if isinstance(operand, tuple) else operand
    if not isinstance(column, str):
        raise ValueError(f"{name}: the canonicalizer was made without {name}=")
    return column


def array_of(name: str, values: Any) -> Any:
    """Returns the argument ``name`` as the core takes it: a list, or an object with ``__arrow_c_array__``."""
    _check_array(name, values)
    return _combined(_pieces(values))


def column_of(canonical: Canonicalizer, column: str, values: Any, others: dict[str, Any]) -> Any:
    """Returns a column of the results, of the kind of ``values``."""
    for name, array in {"values": values, **others}.items():
        _check_array(name, array)
    kind = _library(values)
    if kind == "polars":
        return _of_polars(canonical, column, values, others)
    if kind == "pandas":
        for name, array in others.items():
            _check_index(name, array, values)
    pieces, others = _pieces(values), {name: _pieces(array) for name, array in others.items()}
    if hasattr(pieces, "iterchunks"):
        result = _chunked(canonical, column, pieces, others)
    else:
        result = canonical.array(pieces, column, **{name: _combined(array) for name, array in others.items()})
    if kind == "pandas":
        import pandas as pd
        import pyarrow as pa

        found = result if isinstance(result, pa.ChunkedArray) else pa.array(result)
        # The column fault has a dictionary, which pandas would read as a categorical.
        found = found.dictionary_decode() if pa.types.is_dictionary(found.type) else found
        dtype = values.dtype if pa.types.is_string(found.type) and _holds_text(values.dtype) else object
        # Unlike to_pandas of pandas 3, this keeps None in arrays of objects.
        found = found.to_numpy(**({} if isinstance(found, pa.ChunkedArray) else {"zero_copy_only": False}))
        if isinstance(values, pd.Index):
            return pd.Index(found, name=values.name, dtype=dtype)
        return pd.Series(found, index=values.index, name=values.name, dtype=dtype, copy=False)
    if kind == "numpy":
        import numpy as np

        return np.array(result, dtype=object)
    if kind == "pyarrow":
        import pyarrow as pa

        return result if isinstance(result, pa.ChunkedArray) else pa.array(result)
    return result


def _series(name: str, values: Any, canonical: Canonicalizer) -> Any:
    """Returns an array as a series of polars."""
    import polars as pl

    pieces = values if _library(values) == "polars" else _pieces(values)
    if not isinstance(pieces, (list, tuple)):
        return pl.Series(name, pieces)
    try:
        if all(isinstance(value, (str, type(None))) for value in pieces):
            return pl.Series(name, pieces, dtype=pl.String)
    except UnicodeError:
        pass
    # A list may hold bytes beside text, and surrogates.
    _check_mixed(name, pieces, canonical)
    return pl.Series(name, _binary(pieces))


def _chunked(canonical: Canonicalizer, column: str, values: Any, others: dict[str, Any]) -> Any:
    """Returns a column of the results for a chunked array, with one chunk for each of its chunks."""
    import pyarrow as pa

    for name, array in others.items():
        if len(array) != len(values):
            raise ValueError(f"{name} has {len(array)} values; expected {len(values)}, one per URL")
    parts, begin = [], 0
    # The types of an array without chunks are checked with a chunk that has no rows.
    for chunk in values.chunks or [pa.array([], values.type)]:
        end = begin + len(chunk)
        named = {name: _slice(array, begin, end) for name, array in others.items()}
        parts.append(pa.array(canonical.array(chunk, column, **named)))
        begin = end
    return pa.chunked_array(parts[: values.num_chunks], parts[0].type)


def _map(name: str, values: Any, base: Any, charset: Any, options: dict[str, Any]) -> Any:
    column = output(name, options.get("recipe"))
    options, arrays = one_value(options, "query_charset"), {}
    for operand, value in (("base", base), ("charset", charset)):
        is_decoded = operand == "base" and charset is not None
        options[operand], array = _operand(operand, value, values, is_decoded)
        if array is not None:
            arrays[operand] = array
    canonical = canonicalizer({**loaded(options), "columns": (column,)})
    return column_of(canonical, column, values, arrays)


@overload
def uris(
    values: Union[list[Any], tuple[Any, ...]], base: Any = None, charset: Any = None, **options: Unpack[Options]
) -> list[Optional[str]]: ...
@overload
def uris(values: Data, base: Any = None, charset: Any = None, **options: Unpack[Options]) -> Data: ...
def uris(values: Any, base: Any = None, charset: Any = None, **options: Unpack[Options]) -> Any:
    """Returns the canonical URIs of an array, as an array of the same kind.

    ``values`` is a list of str, bytes and None, a pyarrow Array or ChunkedArray, a polars or pandas Series, a numpy array of
    these objects, or any array with the Arrow PyCapsule interface, which gives an :class:`irikey.Array`. A pandas Series of a
    string dtype gives one of the same dtype, with the missing value of the dtype: NaN in ``str``, the default of pandas 3,
    ``pandas.NA`` in ``string``. The result is null if the URL is null or cannot be parsed. In lists and arrays of
    objects, the float NaN and ``pandas.NA`` are null as well, and a bytearray or a memoryview is read as bytes. Each value of a
    dictionary is normalized once; the result is a plain array, because different values may become equal. In a str, the
    surrogates U+DC80 to U+DCFF stand for the bytes that ``surrogateescape`` could not decode; other lone surrogates are read as
    three bytes each.

    ``base`` and ``charset`` are one value, or arrays of the same length; a pandas Series must have the index of ``values``. The
    charset is that of URLs and bases that are bytes: text is not decoded again (RFC 3987 section 3.1, step 1). An unknown
    charset raises ``ValueError``; in an array of charsets, it gives null. With ``recipe=``, the result is the texts of the
    recipe's keys. Options: :class:`irikey.Options`.
    """
    return _map("uri", values, base, charset, {**options})


@overload
def keys(
    values: Union[list[str], list[bytes], list[Reference]],
    base: Any = None,
    charset: Any = None,
    **options: Unpack[_WithoutRecipe],
) -> list[bytes]: ...
@overload
def keys(
    values: Union[list[Any], tuple[Any, ...]], base: Any = None, charset: Any = None, **options: Unpack[Options]
) -> list[Optional[bytes]]: ...
@overload
def keys(values: Data, base: Any = None, charset: Any = None, **options: Unpack[Options]) -> Data: ...
def keys(values: Any, base: Any = None, charset: Any = None, **options: Unpack[Options]) -> Any:
    """Returns the 16-byte keys of an array, as an array of the same kind; arguments as in :func:`uris`.

    The key of a URL that cannot be parsed is that of its bytes, with every bit inverted. It is null if the URL is null, or
    if a recipe gives no key.
    """
    return _map("key", values, base, charset, {**options})


@overload
def canonicalize(
    data: Union[list[Any], tuple[Any, ...]],
    url: str = "url",
    base: Optional[Operand] = None,
    charset: Optional[Operand] = None,
    rung: Rung = "scheme",
    columns: Optional[Sequence[str]] = None,
    *,
    recipe: Optional[str] = None,
    types: Types = "arrow",
    equivalences: Optional[Contents] = None,
    **policy: Unpack[Policy],
) -> Union[Batch, Table]: ...
@overload
def canonicalize(
    data: Any,
    url: str = "url",
    base: Optional[Operand] = None,
    charset: Optional[Operand] = None,
    rung: Rung = "scheme",
    columns: Optional[Sequence[str]] = None,
    *,
    recipe: Optional[str] = None,
    types: Types = "arrow",
    equivalences: Optional[Contents] = None,
    **policy: Unpack[Policy],
) -> Union[Batch, Table, Reader]: ...
def canonicalize(
    data: Any,
    url: str = "url",
    base: Optional[Operand] = None,
    charset: Optional[Operand] = None,
    rung: Rung = "scheme",
    columns: Optional[Sequence[str]] = None,
    *,
    recipe: Optional[str] = None,
    types: Types = "arrow",
    equivalences: Optional[Contents] = None,
    **policy: Unpack[Policy],
) -> Union[Batch, Table, Reader]:
    """Returns canonical URIs, keys, faults and flags, one row per row of ``data``.

    ``data`` is a record batch, an array or a list of URLs (returns a :class:`Batch`, or a :class:`Table` if the texts are too
    long for one), a table or data frame (a :class:`Table`), or a reader of batches (a :class:`Reader`, which computes as it is
    read). ``url`` names the column of URLs, text or bytes. ``base`` and ``charset`` name the columns with the base of each URL,
    an absolute IRI, and with the charset of its bytes; text is not decoded again. Instead, each may be ``lit(value)``, or
    ``(column, lit(value))`` with a value for rows in which the column is null. Several columns with one of these names raise
    ``ValueError``. If a URL is null, its row is null.

    ``rung`` is that of ``uri`` and ``key``: "scheme", "syntax" or "simple". With "protocol", ``uri`` is that of "scheme", and
    ``key`` is that of its representative by ``equivalences``, what ``irikey learn`` wrote (path, or contents by
    :func:`irikey.equivalences`), which the column ``key_protocol`` needs as well. With ``recipe``, ``key`` is that of the
    recipe. ``columns`` are names of ``irikey schema``; the default is uri, key, fault, fault_at and flags. ``types`` is "arrow",
    or "spark" for types that Spark reads. Other options: :class:`irikey.Policy`.

    A reference that cannot be parsed gives a row with a fault, not an exception, and so does an unknown charset in a column
    (``unknown-charset``). A missing column raises ``KeyError``, a column of another type ``TypeError``, and an invalid option
    ``ValueError``. If the source of a reader fails, its message is raised, as ``ValueError``, ``OSError``, ``MemoryError`` or
    ``NotImplementedError``: the C interface of Arrow passes a number and a text, but no exception of Python, such as
    ``KeyboardInterrupt``.
    """
    options = {**policy, "rung": rung, "base": base, "charset": charset, "equivalences": equivalences, "types": types}
    names = column_names(columns)
    canonical = Canonicalizer(url=url, recipe=recipe, columns=names, **loaded(options))
    result: Union[Batch, Table, Reader] = canonical.canonicalize(data)
    return result


class Read(NamedTuple):
    """What :func:`read` returns."""

    table: Table
    #: ``records``, ``headers`` (lines that are not records), ``skipped`` (records of other types), ``errors`` (messages of
    #: damage), and the counters of a canonicalizer.
    counts: dict[str, Any]


def read(
    source: Union[str, os.PathLike[str], bytes, bytearray, memoryview],
    columns: Optional[Sequence[str]] = None,
    *,
    url: Optional[str] = None,
    format: str = "auto",
    name: Optional[str] = None,
    record_types: Optional[Sequence[str]] = None,
    threads: int = 0,
    rung: Rung = "scheme",
    recipe: Optional[str] = None,
    base: Optional[Operand] = None,
    charset: Optional[Operand] = None,
    types: Types = "arrow",
    equivalences: Optional[Contents] = None,
    **policy: Unpack[Policy],
) -> Read:
    """Reads crawl data with the readers of the command: WARC, WACZ, CDXJ, Parquet, lines and so on, compressed or not. Every
    record is a row; in archives, every capture, unless ``record_types`` chooses other records (such as "all").

    ``source`` is the path of a file or directory, the URL of an object, or the bytes of a file. Bytes of Parquet, Arrow and ZIP
    files are written to a temporary file, because they are read from the end. ``columns`` are names of
    ``irikey schema``; the default is uri, key, fault, fault_at and flags. ``format`` is one of ``irikey canon --format``,
    ``name`` replaces the path in the column ``source``.

    ``url`` is the column of a table, or the member of JSON lines, that holds the URL: its name, or its number from "1", as for
    ``irikey canon --column``. Without it, the column is found by its usual names. ``base``, ``charset`` and ``query_charset``
    are columns of the table, or values, and ``equivalences`` is a file, as in :func:`canonicalize`. A table that lacks one of
    the columns raises ``KeyError``, and a ``format`` without columns ``ValueError``. ``types`` is "arrow", or "spark" for types
    that Spark reads.

    The rows are returned together, in memory. For a larger input, run ``irikey canon INPUT -o rows.parquet`` (or ``python -m
    irikey canon``), which needs little memory, and read its output with any reader of Parquet.

    A damaged file is no exception: the rows before the damage are returned, and ``counts["errors"]`` describes it. A path that
    cannot be opened raises what ``open`` raises, such as ``FileNotFoundError`` or ``PermissionError``.
    """
    options = {**policy, "rung": rung, "base": base, "charset": charset, "equivalences": equivalences, "types": types}
    names = column_names(columns)
    # A canonicalizer takes equivalences only if a column needs them. It has no columns of files.
    needed = [name for name in names or () if name == "key_protocol"] or None
    canonical = Canonicalizer(url=url, recipe=recipe, columns=needed, **loaded(options))
    return Read(*canonical.read(source, columns=names, format=format, name=name,
                                record_types=column_names(record_types, "record_types"), threads=threads))


def schema(columns: Optional[Sequence[str]] = None, types: Types = "arrow") -> Schema:
    """Returns the schema of a result of :func:`canonicalize` or :func:`read` with the default options: for Arrow
    ``__arrow_c_schema__``, for Spark ``spark_ddl()`` and ``spark_json()``. ``types`` is "arrow", or "spark" for types that Spark
    reads."""
    return _schema(column_names(columns), types)


def batch_function(
    url: str = "url",
    base: Optional[Operand] = None,
    charset: Optional[Operand] = None,
    rung: Rung = "scheme",
    columns: Optional[Sequence[str]] = None,
    *,
    recipe: Optional[str] = None,
    equivalences: Optional[Contents] = None,
    **policy: Unpack[Policy],
) -> Callable[[Data], Data]:
    """Returns a function that adds the columns of :func:`canonicalize` to a pyarrow Table or RecordBatch, or to a pandas or
    polars data frame. It can be pickled: for ``map_batches`` of Ray, ``map_partitions`` of Dask and the like. Numbers in a data
    frame of pandas have the dtype ``Int64``, with ``pandas.NA`` in rows that are null. The function raises ``ValueError`` if the
    data already has one of the columns."""
    options = {**policy, "rung": rung, "base": base, "charset": charset, "equivalences": equivalences}
    names = column_names(columns)
    made = Canonicalizer(url=url, recipe=recipe, columns=names, types="spark", **loaded(options, has_types=False))
    return functools.partial(_with_columns, made)


def _with_columns(canonical: Canonicalizer, data: Any) -> Any:
    if isinstance(data, dict):
        import pyarrow as pa

        # A batch of Ray, if no format is named.
        data = pa.table(data)
    kind, name = _class(data)
    _check_not_lazy("data", data)
    if name not in ("Table", "RecordBatch", "DataFrame"):
        raise TypeError(
            f"data: {type(data).__name__} is not supported; expected a Table or RecordBatch of pyarrow, or a DataFrame of pandas"
            " or polars"
        )
    present = set(data.schema.names if kind == "pyarrow" else data.columns)
    clashing = [name for name in canonical.schema.names if name in present]
    if clashing:
        raise ValueError(f"the data already has columns {', '.join(clashing)}; rename them, or choose others with columns=")
    answer = canonical.canonicalize(data)
    if kind == "polars":
        import polars as pl

        return data.with_columns(pl.DataFrame(answer))
    import pyarrow as pa

    found = pa.table(answer)
    if kind == "pandas":
        import pandas as pd

        # Numbers of numpy would be floats in a batch with a row that is null.
        made = found.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)
        return data.assign(**{name: made[name].array for name in made.columns})
    table = pa.table(data)
    for field in found.schema:
        table = table.append_column(field, found[field.name])
    if isinstance(data, pa.RecordBatch):
        return pa.RecordBatch.from_arrays([column.combine_chunks() for column in table.columns], schema=table.schema)
    return table
