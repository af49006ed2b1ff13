"""The options that all functions share, and the canonicalizers that are made of them."""

from __future__ import annotations

import functools
import os
import stat
from typing import TYPE_CHECKING, Any, Iterable, Literal, NamedTuple, Optional, Sequence, TypedDict, Union

from ._irikey import Canonicalizer, lit

if TYPE_CHECKING:
    from typing_extensions import TypeAlias

Reference: TypeAlias = "Union[str, bytes, bytearray, memoryview]"
Rung: TypeAlias = 'Literal["simple", "syntax", "scheme", "protocol"]'
Operand: TypeAlias = "Union[str, lit, tuple[str, lit]]"
Types: TypeAlias = 'Literal["arrow", "spark"]'
Contents: TypeAlias = "Union[str, os.PathLike[str], bytes]"


class Policy(TypedDict, total=False):
    """Options of every function for columns, and of :func:`irikey.uri`, :func:`irikey.key` and :func:`irikey.iri`: the flags of
    the command with the same names.

    ``query_charset`` is a column, ``lit(label)`` or ``(column, lit(label))``; in functions of arrays, expressions and single
    references, which have no columns, a label. ``psl`` is a Public Suffix List (path or contents). Files are read again only if
    they change. Many calls for single references with the same options take less time as methods of one
    :class:`irikey.Canonicalizer`.
    """

    query_charset: Optional[Operand]
    strict: bool
    drop_fragment: bool
    literal_base: bool
    assume_scheme: Optional[str]
    max_url: int
    profile: Literal["rfc3987", "duerst-00", "duerst-01", "masinter-07", "weber-00", "whatwg"]
    key_hash: Literal["xxh3", "blake3"]
    trim: bool
    inner_spaces: Optional[Literal["remove", "encode"]]
    character_references: Optional[Literal["xml", "html"]]
    backslashes: Optional[Literal["slash", "encode"]]
    psl: Union[str, os.PathLike[str], bytes, None]


class Options(Policy, total=False):
    """Options of functions that return one text or key per URL: those of :class:`Policy`, and which text and key are computed.

    ``rung`` is "scheme" by default, "syntax" or "simple"; "protocol" needs ``equivalences``, what ``irikey learn`` wrote (path,
    or contents by :func:`irikey.equivalences`). With ``recipe``, the text and the key are those of the recipe.
    """

    rung: Rung
    recipe: Optional[str]
    equivalences: Union[str, os.PathLike[str], bytes, None]


class SqlOptions(Options, total=False):
    """Options of functions for SQL: those of :class:`Options`, and values for all rows, each a text or ``lit(value)``.

    ``base`` is the base of references. In functions with an argument for the base, it is for rows in which that is null.
    ``charset`` is the charset of URLs that are bytes; text is not decoded again.
    """

    base: Union[str, lit, None]
    charset: Union[str, lit, None]


def equivalences(source: Any) -> bytes:
    """Reads the equivalences that ``irikey learn`` wrote, for ``equivalences=`` of :class:`Canonicalizer`.

    ``source`` is the path of the file, or a pyarrow table with its contents. Requires pyarrow. The returned bytes are pickled
    with the canonicalizer.
    """
    import pyarrow as pa

    table = source if isinstance(source, pa.Table) else _equivalences_table(source)
    table = table.select(_equivalence_columns(table.schema.names, "the table"))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    contents: bytes = sink.getvalue().to_pybytes()
    return contents


def _equivalence_columns(names: Sequence[str], source: Any) -> list[str]:
    """Returns the columns that keys depend on. Tables of the first version have no contexts.

    Raises ``ValueError`` if ``names``, the columns of ``source``, lack one of them.
    """
    columns = ["kind", "uri", "key", "representative_key", "host", "pattern", *(["context"] if "context" in names else [])]
    if not set(columns) <= set(names):
        raise ValueError(f"{source} is not a table of equivalences; create one with irikey learn")
    return columns


def _equivalences_table(path: Any) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    # Unlike pyarrow, open() raises the exception that tells why, such as IsADirectoryError.
    with open(os.fspath(path), "rb") as file:
        try:
            parquet = pq.ParquetFile(file)
        except pa.ArrowInvalid as error:
            raise ValueError(f"{path} is not a table of equivalences: {error} Create one with irikey learn") from None
        return parquet.read(columns=_equivalence_columns(parquet.schema_arrow.names, path))


#: Options that functions of the package take.
_KNOWN = {*Options.__annotations__, *Policy.__annotations__, *SqlOptions.__annotations__}
#: Options that are one value for all rows in functions for SQL.
_VALUES = ("base", "charset", "query_charset")


def one_value(options: dict[str, Any], *names: str) -> dict[str, Any]:
    """Returns the options of a function without columns: a text is one value for all rows there, not the name of a column."""
    return {**options, **{name: lit(options[name]) for name in names if isinstance(options.get(name), str)}}


def surt_recipe(dialect: str) -> str:
    """Returns the recipe of SURT keys in a dialect.

    Raises ``ValueError`` if the dialect does not exist.
    """
    if dialect not in ("wayback", "ia"):
        raise ValueError(f'dialect is "wayback" or "ia", not {dialect!r}')
    return f"surt-{dialect}"


class SqlFunction(NamedTuple):
    """A function for SQL: its name without a prefix, the column of its result, and the options of its canonicalizer."""

    name: str
    column: str
    has_base: bool
    options: dict[str, Any]

    def canonicalizer(self) -> Canonicalizer:
        return Canonicalizer(columns=[self.column], types="spark", **loaded(self.options, has_types=False))


def sql_functions(options: dict[str, Any]) -> list[SqlFunction]:
    """Returns the functions for SQL, ``uri``, ``key`` and ``surt`` of a URL, and ``uri_from`` and ``key_from`` of a URL and its
    base.

    Raises ``TypeError`` if the base or a charset is not one value for all rows.
    """
    for name in _VALUES:
        if not isinstance(options.get(name), (str, lit, type(None))):
            raise TypeError(
                f"{name}: {type(options[name]).__name__} is not supported; expected a text or lit(value), for all rows"
            )
    options = one_value(options, *_VALUES)
    base, recipe = options.get("base"), options.get("recipe")
    from_base = {**options, "base": "base" if base is None else ("base", base)}
    if base is None:
        # Only references that are resolved have a literal base.
        options.pop("literal_base", None)
    uri = output("uri", recipe)
    return [
        SqlFunction("uri", uri, False, options),
        SqlFunction("key", "key", False, options),
        SqlFunction("uri_from", uri, True, from_base),
        SqlFunction("key_from", "key", True, from_base),
        SqlFunction("surt", "url_rules", False, {**options, "recipe": surt_recipe("wayback")}),
    ]


def contents(name: str, source: Any) -> bytes:
    """Returns the contents of the file with the option ``name``, "psl" or "equivalences".

    The last files are cached, and are read again if they change. The same object is returned for an unchanged file, so that the
    cache of canonicalizers compares identities instead of megabytes.
    """
    path, status = os.fspath(source), os.stat(source)
    if not stat.S_ISREG(status.st_mode):
        return _read(name, path)
    return _read_once(name, path, (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size))


@functools.lru_cache(maxsize=8)
def _read_once(name: str, path: Any, stamp: tuple[int, ...]) -> bytes:
    """Returns the contents of a file as :func:`_read`. ``stamp`` is another one if the file has changed."""
    return _read(name, path)


def _read(name: str, path: Any) -> bytes:
    if name == "equivalences":
        return equivalences(path)
    with open(path, "rb") as file:
        return file.read()


def loaded(options: dict[str, Any], has_types: bool = True) -> dict[str, Any]:
    """Returns options with the contents of the files that they name. Without ``has_types``, the function chooses the types.

    Raises ``TypeError`` for an option that does not exist, as Python does for a parameter.
    """
    options, known = dict(options), _KNOWN | {"types"} if has_types else _KNOWN
    for name in options:
        if name not in known:
            raise TypeError(f"unexpected keyword argument {name!r}; expected one of {', '.join(sorted(known))}")
    for name in ("equivalences", "psl"):
        if isinstance(options.get(name), (str, os.PathLike)):
            options[name] = contents(name, options[name])
    return options


# True equals 1, but only True is a valid flag: arguments of other types are other arguments.
@functools.lru_cache(maxsize=64, typed=True)
def _kept(**options: Any) -> Canonicalizer:
    return Canonicalizer(**options)


def canonicalizer(options: dict[str, Any]) -> Canonicalizer:
    """Returns a canonicalizer with these options; the last ones are kept. Counters of kept ones are of all their calls."""
    try:
        hash(tuple(options.values()))
    except TypeError:
        # An option has a wrong type.
        return Canonicalizer(**options)
    return _kept(**dict(sorted(options.items())))


def of_single(name: str, options: dict[str, Any]) -> Canonicalizer:
    """Returns the canonicalizer of a function for one reference, which returns ``name``, "uri" or "key"."""
    columns = (output(name, options.get("recipe")),)
    return canonicalizer({**loaded(one_value(options, "query_charset")), "base": "base", "columns": columns})


def output(name: str, recipe: Optional[str]) -> str:
    """Returns the column that holds ``name``, "uri" or "key"."""
    return "url_rules" if name == "uri" and recipe is not None else name


def column_names(columns: Optional[Sequence[str]], parameter: str = "columns") -> Optional[list[str]]:
    """Returns the names as a list; a single text is a mistake."""
    if isinstance(columns, str):
        raise TypeError(f"{parameter} is a list of names such as [{columns!r}], not a str")
    if not isinstance(columns, (Iterable, type(None))):
        raise TypeError(f"{parameter}: expected a list of names, found {type(columns).__name__}")
    return None if columns is None else list(columns)
