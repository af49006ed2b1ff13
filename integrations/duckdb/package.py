#!/usr/bin/env python3
"""Makes an extension that DuckDB loads from the library that Cargo built: appends the footer that states what it was built for.

usage: integrations/duckdb/package.py FOLDER-OF-THE-LIBRARY FOLDER-OF-THE-EXTENSION
"""

import pathlib
import platform
import sys

#: The version of the C extension API that the library needs: that of DuckDB 1.2, which later versions of DuckDB keep.
API = "v1.2.0"
#: Bytes of a field, and of the signature, which is empty.
FIELD, SIGNATURE = 32, 256


def version() -> str:
    lines = (pathlib.Path(__file__).parent / "Cargo.toml").read_text().splitlines()
    return next(line.split('"')[1] for line in lines if line.startswith("version"))


def main(source: str, target: str) -> None:
    system = {"Linux": "linux", "Darwin": "osx", "Windows": "windows"}[platform.system()]
    machine = {"x86_64": "amd64", "AMD64": "amd64", "aarch64": "arm64", "arm64": "arm64"}[platform.machine()]
    library = {"linux": "libirikey_duckdb.so", "osx": "libirikey_duckdb.dylib", "windows": "irikey_duckdb.dll"}[system]
    # DuckDB reads the fields from the end: the version of the footer is the last one.
    fields = ["", "", "", "C_STRUCT", f"v{version()}", API, f"{system}_{machine}", "4"]
    footer = b"".join(field.encode().ljust(FIELD, b"\0") for field in fields) + bytes(SIGNATURE)
    extension = pathlib.Path(target) / "irikey.duckdb_extension"
    extension.write_bytes((pathlib.Path(source) / library).read_bytes() + footer)
    print(extension)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
