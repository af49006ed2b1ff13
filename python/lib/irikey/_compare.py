"""The result of :func:`irikey.compare`."""

from __future__ import annotations

import dataclasses
from typing import Optional

from . import _irikey
from ._policy import Reference


@dataclasses.dataclass(frozen=True, eq=False)
class Comparison:
    """The result of comparing two references: true if they are equivalent. It is equal to the name of its rung.

    ``rung`` is the lowest rung on which they are equivalent: "simple", "syntax", "scheme", or None. ``a`` and ``b`` are the
    texts on that rung, or their URIs if they are not equivalent.
    """

    rung: Optional[str]
    a: str
    b: str

    def __bool__(self) -> bool:
        return self.rung is not None

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Comparison):
            return (self.rung, self.a, self.b) == (other.rung, other.a, other.b)
        if other is None or isinstance(other, str):
            return self.rung == other
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.rung)

    def __str__(self) -> str:
        if self.rung is None:
            return f"different: {self.a} is not {self.b}"
        return f"equivalent on the rung {self.rung}: {self.a}"


def compare(a: Reference, b: Reference, base: Optional[Reference] = None, *, strict: bool = False) -> Comparison:
    """Compares two references by RFC 3987 section 5.3; relative ones are resolved against ``base``.

    Without a base, equal relative references are equivalent on the rung "simple", as for the command; any other comparison with
    a relative reference raises :class:`irikey.Fault`.
    """
    return Comparison(*_irikey.compare(a, b, base, strict=strict))
