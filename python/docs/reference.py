#!/usr/bin/env python3
"""Writes reference.md from the docstrings of the package.

usage: docs/reference.py [--check]

With --check, nothing is written, and the exit code is 1 if the file is not current. Run it with the Python that has the package,
pyspark, duckdb and polars.
"""

import enum
import importlib
import inspect
import pathlib
import re
import sys
import typing

import irikey

PAGE = pathlib.Path(__file__).parent / "reference.md"
HEAD = """# Reference

Generated from the docstrings by `docs/reference.py`; `help(irikey.uris)` shows the same. Names of columns are those of
`irikey schema` ([columns](../../docs/reference/columns.md)), names of faults and flags those of
[flags and faults](../../docs/reference/flags.md). Options have the names and meanings of the flags that `irikey help canon`
describes.
"""
#: The public names of each module, in the order of the page.
MODULES = {
    "irikey": irikey.__all__,
    "irikey.spark": ["uri", "key", "surt", "register", "canonicalize", "dedup", "anti_join_seen", "learn", "Counters"],
    "irikey.duckdb": ["register"],
    "irikey.polars": ["IrikeyExpr", "IrikeySeries"],
}


def annotation(value):
    return value if isinstance(value, str) else getattr(value, "__name__", str(value))


def signature(value, name):
    """Returns the call of a function as Python writes it, without self."""
    parameters = []
    found = inspect.signature(value).parameters.values()
    for parameter in found:
        if parameter.name in ("self", "cls"):
            continue
        text = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "") + parameter.name
        has_type = parameter.annotation is not parameter.empty
        text += f": {annotation(parameter.annotation)}" if has_type else ""
        if parameter.default is not parameter.empty:
            text += f" = {parameter.default!r}" if has_type else f"={parameter.default!r}"
        if (
            parameter.kind is parameter.KEYWORD_ONLY
            and "*" not in parameters
            and not any(word.startswith("*") for word in parameters)
        ):
            parameters.append("*")
        parameters.append(text)
    returns = inspect.signature(value).return_annotation
    result = "" if returns is inspect.Signature.empty or inspect.isclass(value) else f" -> {annotation(returns)}"
    return f"{name}({', '.join(parameters)}){result}"


def markdown(text):
    """Returns a docstring without its indentation as Markdown."""
    text = re.sub(r":\w+:`(?:~)?([\w.]+)`", r"`\1`", text)
    text = re.sub(r"``(.+?)``", lambda found: f"`{' '.join(found[1].split())}`", text, flags=re.DOTALL)
    # Indented lines after a paragraph are an example.
    return re.sub(
        r"(?:^    .*\n?)+", lambda found: "```python\n" + inspect.cleandoc(found[0]).rstrip() + "\n```\n", text,
        flags=re.MULTILINE,
    )


def members(kind):
    """Returns the public methods and properties that a class itself has, with those of its base classes in the package."""
    names = {}
    for base in reversed([base for base in kind.__mro__ if base.__module__.startswith("irikey")]):
        names.update(vars(base))
    return {name: value for name, value in sorted(names.items()) if not name.startswith("_")}


def class_entry(kind, name):
    if typing.is_typeddict(kind):
        inherited = {
            name for base in getattr(kind, "__orig_bases__", ()) if typing.is_typeddict(base) for name in base.__annotations__
        }
        own = [(name, value) for name, value in kind.__annotations__.items() if name not in inherited]
        # Python 3.14 gives references that know their text.
        types = {option: getattr(value, "__forward_arg__", annotation(value)) for option, value in own}
        return [
            "| option | type |\n|---|---|\n"
            + "\n".join(f"| `{option}` | `{value}` |".replace(" | None", " or None") for option, value in types.items())
        ]
    if issubclass(kind, tuple):
        return [f"Fields: {', '.join(f'`{field}`' for field in kind._fields)}."]
    if issubclass(kind, enum.Flag):
        return ["| bit | name |\n|---:|---|\n" + "\n".join(f"| {flag.value.bit_length() - 1} | `{flag.name}` |" for flag in kind)]
    lines = []
    for member, value in members(kind).items():
        text = inspect.cleandoc(getattr(value, "__doc__", None) or "")
        if isinstance(value, property) or inspect.isgetsetdescriptor(value):
            lines.append(f"- `{member}`: {' '.join(markdown(text).split())}")
        elif callable(value) and text:
            lines.append(f"- `{signature(value, member)}`: {' '.join(markdown(text).split())}")
    return ["\n".join(lines)] if lines else []


def entry(module, name):
    value = getattr(module, name)
    full = f"{module.__name__}.{name}"
    if isinstance(value, str):
        return [f"### {full}", "The version of the package."]
    parts = [f"### {full}"]
    # Objects of some classes are results only.
    is_result = module is irikey and name in ("Array", "Batch", "Reader", "Schema", "Table")
    is_plain = inspect.isclass(value) and (
        is_result or typing.is_typeddict(value) or issubclass(value, (enum.Enum, tuple, Exception))
    )
    if not is_plain:
        try:
            parts.append(f"```python\n{signature(value, full)}\n```")
        except ValueError:
            pass
    parts.append(markdown(inspect.cleandoc(value.__doc__ or "")))
    return parts + (class_entry(value, name) if inspect.isclass(value) else [])


def page():
    parts = [HEAD.rstrip()]
    for name, names in MODULES.items():
        module = importlib.import_module(name)
        parts += [f"## {name}", markdown(module.__doc__)]
        for public in sorted(names, key=str.lower):
            parts += entry(module, public)
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def main():
    text = page()
    if sys.argv[1:] == ["--check"]:
        if text != PAGE.read_text(encoding="utf-8"):
            print(f"{PAGE} is not current; run docs/reference.py", file=sys.stderr)
            return 1
        return 0
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
