import os
from typing import Any, Literal, Optional, Sequence, TypedDict, Union, final, overload

from typing_extensions import disjoint_base

_Reference = Union[str, bytes, bytearray, memoryview]
_Rung = Literal["simple", "syntax", "scheme", "protocol"]
_Operand = Union[str, lit, tuple[str, lit], None]
_Profile = Literal["rfc3987", "duerst-00", "duerst-01", "masinter-07", "weber-00", "whatwg"]
_Contents = Union[str, os.PathLike[str], bytes, None]
_List = Union[list[Any], tuple[Any, ...]]

__all__ = [
    "_Rows",
    "Batch",
    "Table",
    "Array",
    "Canonicalizer",
    "lit",
    "Reader",
    "Fault",
    "compare",
    "explain",
    "iri",
    "key",
    "resolve",
    "surt",
    "uri",
    "Schema",
    "_binary",
    "_schema",
    "_set_text_limit",
    "_main",
    "__version__",
    "_FAULTS",
    "_FLAGS",
    "_SPOOFING_FLAGS",
]

__version__: str
_FAULTS: list[str]
_FLAGS: list[tuple[str, int]]
_SPOOFING_FLAGS: list[tuple[str, int]]

class Fault(ValueError):
    kind: str
    component: str
    #: In bytes; for a str, in those of its UTF-8.
    at: int

@final
class lit:
    def __new__(cls, value: str) -> lit: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __getnewargs__(self, /) -> tuple[str]: ...
    @property
    def value(self, /) -> str: ...

@final
class Schema:
    def __arrow_c_schema__(self, /) -> object: ...
    @property
    def names(self, /) -> list[str]: ...
    def spark_ddl(self, /) -> str: ...
    def spark_json(self, /) -> str: ...

@disjoint_base
class _Rows:
    def __arrow_c_schema__(self, /) -> object: ...
    @property
    def schema(self, /) -> Schema: ...

@final
class Batch(_Rows):
    def __arrow_c_array__(self, /, requested_schema: Optional[object] = None) -> tuple[object, object]: ...
    def __arrow_c_stream__(self, /, requested_schema: Optional[object] = None) -> object: ...
    def __len__(self, /) -> int: ...
    @property
    def num_rows(self, /) -> int: ...

@final
class Table(_Rows):
    def __arrow_c_stream__(self, /, requested_schema: Optional[object] = None) -> object: ...
    def __len__(self, /) -> int: ...
    @property
    def num_rows(self, /) -> int: ...

@final
class Reader(_Rows):
    def __arrow_c_stream__(self, /, requested_schema: Optional[object] = None) -> object: ...
    def __iter__(self, /) -> Reader: ...
    def __next__(self, /) -> Batch: ...

@final
class Array:
    def __arrow_c_array__(self, /, requested_schema: Optional[object] = None) -> tuple[object, object]: ...
    def __len__(self, /) -> int: ...
    def to_pylist(self, /) -> list[Any]: ...

class _Counters(TypedDict):
    rows: int
    unchanged: int
    changed: int
    faulty: int
    nulls: int
    faults: dict[str, int]
    flags: dict[str, int]
    changes: dict[str, int]

@final
class Canonicalizer:
    def __new__(
        cls,
        *,
        url: Optional[str] = None,
        base: _Operand = None,
        charset: _Operand = None,
        query_charset: _Operand = None,
        rung: Optional[_Rung] = None,
        recipe: Optional[str] = None,
        columns: Optional[Sequence[str]] = None,
        strict: bool = False,
        drop_fragment: bool = False,
        literal_base: bool = False,
        assume_scheme: Optional[str] = None,
        max_url: int = 1048576,
        profile: _Profile = "rfc3987",
        key_hash: Literal["xxh3", "blake3"] = "xxh3",
        trim: bool = False,
        inner_spaces: Optional[Literal["remove", "encode"]] = None,
        character_references: Optional[Literal["xml", "html"]] = None,
        backslashes: Optional[Literal["slash", "encode"]] = None,
        psl: _Contents = None,
        equivalences: _Contents = None,
        types: Literal["arrow", "spark"] = "arrow",
    ) -> Canonicalizer: ...
    @overload
    def canonicalize(self, /, data: _List) -> Union[Batch, Table]: ...
    @overload
    def canonicalize(self, /, data: Any) -> Union[Batch, Table, Reader]: ...
    @overload
    def __call__(self, /, data: _List) -> Union[Batch, Table]: ...
    @overload
    def __call__(self, /, data: Any) -> Union[Batch, Table, Reader]: ...
    def array(self, /, values: Any, column: str = "uri", base: Any = None, charset: Any = None) -> Any: ...
    def uri(self, /, reference: _Reference, base: Optional[_Reference] = None) -> str: ...
    def key(self, /, reference: _Reference, base: Optional[_Reference] = None) -> bytes: ...
    def key_text(self, /, reference: _Reference, base: Optional[_Reference] = None) -> str: ...
    def read(
        self,
        /,
        source: Union[str, os.PathLike[str], bytes, bytearray, memoryview],
        *,
        columns: Optional[Sequence[str]] = None,
        format: str = "auto",
        name: Optional[str] = None,
        record_types: Optional[Sequence[str]] = None,
        threads: int = 0,
    ) -> tuple[Table, dict[str, Any]]: ...
    def __getnewargs_ex__(self, /) -> tuple[tuple[()], dict[str, Any]]: ...
    @property
    def counters(self, /) -> _Counters: ...
    @property
    def schema(self, /) -> Schema: ...
    @property
    def _input_columns(self, /) -> list[str]: ...
    @property
    def configuration(self, /) -> dict[str, Any]: ...

def uri(
    reference: _Reference,
    base: Optional[_Reference] = None,
    *,
    rung: _Rung = "scheme",
    recipe: Optional[str] = None,
    strict: bool = False,
    key_hash: Literal["xxh3", "blake3"] = "xxh3",
    equivalences: _Contents = None,
    query_charset: _Operand = None,
    drop_fragment: bool = False,
    literal_base: bool = False,
    assume_scheme: Optional[str] = None,
    max_url: int = 1048576,
    profile: _Profile = "rfc3987",
    trim: bool = False,
    inner_spaces: Optional[Literal["remove", "encode"]] = None,
    character_references: Optional[Literal["xml", "html"]] = None,
    backslashes: Optional[Literal["slash", "encode"]] = None,
    psl: _Contents = None,
) -> str: ...
def iri(
    reference: _Reference,
    base: Optional[_Reference] = None,
    *,
    strict: bool = False,
    key_hash: Literal["xxh3", "blake3"] = "xxh3",
    query_charset: _Operand = None,
    drop_fragment: bool = False,
    literal_base: bool = False,
    assume_scheme: Optional[str] = None,
    max_url: int = 1048576,
    profile: _Profile = "rfc3987",
    trim: bool = False,
    inner_spaces: Optional[Literal["remove", "encode"]] = None,
    character_references: Optional[Literal["xml", "html"]] = None,
    backslashes: Optional[Literal["slash", "encode"]] = None,
    psl: _Contents = None,
) -> str: ...
def key(
    reference: _Reference,
    base: Optional[_Reference] = None,
    *,
    rung: _Rung = "scheme",
    recipe: Optional[str] = None,
    strict: bool = False,
    key_hash: Literal["xxh3", "blake3"] = "xxh3",
    equivalences: _Contents = None,
    query_charset: _Operand = None,
    drop_fragment: bool = False,
    literal_base: bool = False,
    assume_scheme: Optional[str] = None,
    max_url: int = 1048576,
    profile: _Profile = "rfc3987",
    trim: bool = False,
    inner_spaces: Optional[Literal["remove", "encode"]] = None,
    character_references: Optional[Literal["xml", "html"]] = None,
    backslashes: Optional[Literal["slash", "encode"]] = None,
    psl: _Contents = None,
) -> bytes: ...
def surt(reference: _Reference, dialect: Literal["wayback", "ia"] = "wayback") -> str: ...
def resolve(base: _Reference, reference: _Reference) -> str: ...
def compare(
    a: _Reference, b: _Reference, base: Optional[_Reference] = None, *, strict: bool = False
) -> tuple[Optional[str], str, str]: ...
def explain(reference: _Reference, base: Optional[_Reference] = None, *, strict: bool = False) -> dict[str, Any]: ...
def _binary(values: Sequence[Optional[_Reference]]) -> Array: ...
def _schema(columns: Optional[Sequence[str]], types: str) -> Schema: ...
def _set_text_limit(bytes: int) -> int: ...
def _main(arguments: Sequence[str]) -> int: ...
