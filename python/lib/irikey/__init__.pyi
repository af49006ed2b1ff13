from typing import Any, Literal, Optional, Sequence, TypedDict, Union

Reference = Union[str, bytes]
Rung = Literal["simple", "syntax", "scheme"]
KeyRung = Literal["simple", "syntax", "scheme", "protocol"]

__version__: str

class Fault(ValueError):
    kind: str
    component: str
    at: int

class Schema:
    def __arrow_c_schema__(self) -> object: ...
    @property
    def names(self) -> list[str]: ...
    def spark_ddl(self) -> str: ...
    def spark_json(self) -> str: ...

class Batch:
    def __arrow_c_array__(self, requested_schema: Optional[object] = None) -> tuple[object, object]: ...
    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    def __len__(self) -> int: ...
    @property
    def num_rows(self) -> int: ...
    @property
    def schema(self) -> Schema: ...

class Table:
    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    def __len__(self) -> int: ...
    @property
    def num_rows(self) -> int: ...
    @property
    def schema(self) -> Schema: ...

class Counters(TypedDict):
    rows: int
    unchanged: int
    changed: int
    faulty: int
    nulls: int
    faults: dict[str, int]
    flags: dict[str, int]
    changes: dict[str, int]

class Canonicalizer:
    """A canonicalizer with fixed options.

    It can be pickled (its configuration, not its counters) and shared between threads, and it counts what it processes.

    url, base, charset, query_charset: names of columns. query_charset is the charset of the document that contains the URL,
    for its query. base_uri: base of references whose row has none. profile: "rfc3987", "duerst-00", "duerst-01",
    "masinter-07", "weber-00" or "whatwg". strict: refuse what the grammar refuses instead of repairing and flagging it.
    key_hash: "xxh3" or "blake3". types: "arrow", or "spark" for types that Spark reads. equivalences: see
    :func:`equivalences`.
    """

    def __init__(
        self,
        *,
        url: str = "url",
        base: Optional[str] = None,
        charset: Optional[str] = None,
        query_charset: Optional[str] = None,
        key: KeyRung = "scheme",
        columns: Optional[Sequence[str]] = None,
        base_uri: Optional[str] = None,
        strict: bool = False,
        drop_fragment: bool = False,
        literal_base: bool = False,
        assume_scheme: Optional[str] = None,
        profile: str = "rfc3987",
        key_hash: Literal["xxh3", "blake3"] = "xxh3",
        types: Literal["arrow", "spark"] = "arrow",
        equivalences: Optional[bytes] = None,
    ) -> None: ...
    def canonicalize(self, data: Any) -> Union[Batch, Table]: ...
    def __call__(self, data: Any) -> Union[Batch, Table]: ...
    @property
    def counters(self) -> Counters: ...
    @property
    def schema(self) -> Schema: ...
    @property
    def configuration(self) -> dict[str, Any]: ...

def canonicalize(
    data: Any,
    url: str = "url",
    base: Optional[str] = None,
    charset: Optional[str] = None,
    key: KeyRung = "scheme",
    columns: Optional[Sequence[str]] = None,
    **options: Any,
) -> Union[Batch, Table]: ...
def equivalences(source: Any) -> bytes: ...
def schema(columns: Optional[Sequence[str]] = None, types: Literal["arrow", "spark"] = "arrow") -> Schema: ...
def uri(reference: Reference, base: Optional[Reference] = None, *, rung: Rung = "scheme", strict: bool = False) -> str: ...
def iri(reference: Reference, base: Optional[Reference] = None, *, strict: bool = False) -> str: ...
def key(
    reference: Reference,
    base: Optional[Reference] = None,
    *,
    rung: Rung = "scheme",
    strict: bool = False,
    key_hash: Literal["xxh3", "blake3"] = "xxh3",
) -> bytes: ...
def surt(reference: Reference, dialect: Literal["wayback", "ia"] = "wayback") -> str: ...
def resolve(base: Reference, reference: Reference) -> str: ...
def compare(a: Reference, b: Reference, base: Optional[Reference] = None, *, strict: bool = False) -> Optional[Rung]: ...
def explain(reference: Reference, base: Optional[Reference] = None, *, strict: bool = False) -> dict[str, Any]: ...
