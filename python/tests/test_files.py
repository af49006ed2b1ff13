"""Every file that the command writes, read by pyarrow, DuckDB and Polars and compared value by value with the JSON lines of the
same job, which Python's own reader reads.

IRIKEY names the command; without it, the one on the path.
"""

import csv
import datetime
import json
import os
import pathlib
import shutil
import subprocess

import duckdb
import polars
import pyarrow
import pyarrow.csv
import pyarrow.dataset
import pyarrow.ipc
import pyarrow.parquet
import pytest

IRIKEY = os.environ.get("IRIKEY") or shutil.which("irikey")
SAMPLES = pathlib.Path(__file__).parent.parent.parent / "data" / "samples"
INPUTS = [SAMPLES / "urls.txt", SAMPLES / "crawl.cdxj", SAMPLES / "redirects.cdxj"]
COLUMNS = (
    "+input,+fault_component,+spoofing_flags,+iri,+key_syntax,+key_simple,+url_host_name,+url_port,+url_surtkey,+url_path,"
    "+fetch_time,+fetch_status,+fetch_redirect,+content_digest,+content_charset"
)
BITS = {"flags", "spoofing_flags"}

pytestmark = pytest.mark.skipif(IRIKEY is None, reason="IRIKEY does not name the command")


@pytest.fixture(scope="module")
def names():
    """The names of the bits of the columns that are sets."""
    schema = json.loads(subprocess.run([IRIKEY, "schema", "--json"], capture_output=True, check=True).stdout)
    return {column: {entry["bit"]: entry["name"] for entry in schema[column]} for column in BITS}


def run(target, *flags, inputs=None):
    columns = [] if target.suffix == ".txt" else ["--columns", COLUMNS]
    command = [IRIKEY, "canon", "-q", *(inputs or INPUTS), "-o", target, *columns, *flags]
    subprocess.run(command, check=True, cwd=target.parent)
    return target


def of_json(row):
    row = dict(row)
    if isinstance(row["input"], dict):
        row["input"] = bytes.fromhex(row["input"]["hex"])
    elif row["input"] is not None:
        row["input"] = row["input"].encode()
    return row


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The rows of the job, in the order of the input."""
    target = run(tmp_path_factory.mktemp("json") / "rows.jsonl")
    rows = [of_json(json.loads(line)) for line in target.read_text(encoding="utf-8").splitlines()]
    # What the comparison would not notice must occur.
    assert (
        any(row["fault"] for row in rows) and any(row["fetch_redirect"] for row in rows) and any(row["url_port"] for row in rows)
    )
    assert any(row["flags"] for row in rows) and len({row["source"] for row in rows}) == len(INPUTS)
    return rows


def of_table(row, names):
    """A row of a table in the types of the JSON lines."""
    row = dict(row)
    for name, value in row.items():
        if name in BITS:
            row[name] = [word for bit, word in sorted(names[name].items()) if value & bit]
        elif name.startswith("key") and value is not None:
            row[name] = bytes(value).hex()
        elif isinstance(value, datetime.datetime):
            value = value if value.tzinfo is None else value.astimezone(datetime.timezone.utc)
            text = value.strftime("%Y-%m-%dT%H:%M:%S.%f")
            row[name] = text.removesuffix("000").removesuffix(".000") + "Z"
    return row


def differences(found, expected):
    if len(found) != len(expected):
        return f"{len(found)} rows, expected {len(expected)}"
    wrong = [
        (name, left.get(name), right[name])
        for left, right in zip(found, expected)
        for name in right
        if left.get(name) != right[name]
    ]
    return wrong[:5]


def with_duckdb(query):
    with duckdb.connect() as connection:
        connection.sql("SET TimeZone='UTC'")
        return connection.sql(query).to_arrow_table().to_pylist()


PARQUET_READERS = {
    "pyarrow": lambda path: pyarrow.parquet.ParquetFile(path).read().to_pylist(),
    "pyarrow dataset": lambda path: pyarrow.dataset.dataset(path).to_table().to_pylist(),
    "duckdb": lambda path: with_duckdb(f"FROM read_parquet('{path}')"),
    "polars": lambda path: polars.read_parquet(path).to_dicts(),
}


@pytest.mark.parametrize("reader", PARQUET_READERS)
@pytest.mark.parametrize("codec", ["none", "lz4", "snappy", "zstd:1", "zstd:19"])
@pytest.mark.parametrize("size", ["4K", "8M"])
def test_parquet(tmp_path, names, expected, codec, size, reader):
    target = run(tmp_path / "rows.parquet", "--compression", codec, "--row-group-size", size)
    groups = pyarrow.parquet.ParquetFile(target).num_row_groups
    assert (groups > 5) == (size == "4K")
    found = [of_table(row, names) for row in PARQUET_READERS[reader](target)]
    assert not differences(found, expected)


def in_order(rows, by, descending=False):
    """A stable sort with nulls last."""
    some = [row for row in rows if row[by] is not None]
    return sorted(some, key=lambda row: row[by].encode(), reverse=descending) + [row for row in rows if row[by] is None]


@pytest.mark.parametrize("reader", PARQUET_READERS)
@pytest.mark.parametrize("by", ["url_surtkey", "-uri"])
def test_sorted_parquet(tmp_path, names, expected, by, reader):
    target = run(tmp_path / "rows.parquet", "--sort", by, "--bloom-filter", "--row-group-size", "8K")
    found = [of_table(row, names) for row in PARQUET_READERS[reader](target)]
    if by == "-uri":
        # A descending stable sort keeps the order of equal rows, which `reverse` does as well.
        assert not differences(found, in_order(expected, "uri", descending=True))
    else:
        assert not differences(found, in_order(expected, by))


@pytest.mark.parametrize("column", ["key", "url_surtkey"])
def test_pruning_loses_no_row(tmp_path, expected, column):
    """Readers that skip row groups and pages by statistics and bloom filters find every row."""
    target = run(tmp_path / "rows.parquet", "--sort", "url_surtkey", "--bloom-filter", "--row-group-size", "4K")
    values = {row[column] for row in expected if row[column] is not None}
    counts = {value: sum(row[column] == value for row in expected) for value in values}
    with duckdb.connect() as connection:
        place = f"read_parquet('{target}')"
        for value, count in sorted(counts.items())[::3]:
            literal = bytes.fromhex(value) if column == "key" else value
            assert connection.execute(f"SELECT count(*) FROM {place} WHERE {column} = ?", [literal]).fetchone() == (count,)
    scan = polars.scan_parquet(target)
    for value, count in sorted(counts.items())[::20]:
        literal = bytes.fromhex(value) if column == "key" else value
        assert scan.filter(polars.col(column) == literal).collect().height == count


@pytest.mark.parametrize(
    "flags", [("--part-rows", "100"), ("--partition", "host:4"), ("--partition", "surt:3"), ("--hive", "a=b,c=d")]
)
def test_parts(tmp_path, names, expected, flags):
    target = tmp_path / "parts"
    run(target, *flags)
    files = sorted(target.rglob("*.parquet"))
    assert files
    place = lambda row: (row["source"], row["record"])
    for reader in ("pyarrow", "duckdb", "polars"):
        found = [of_table(row, names) for path in files for row in PARQUET_READERS[reader](path)]
        assert not differences(sorted(found, key=place), sorted(expected, key=place))
    whole = with_duckdb(f"FROM read_parquet('{target}/**/*.parquet', hive_partitioning=false)")
    assert not differences(sorted((of_table(row, names) for row in whole), key=place), sorted(expected, key=place))


def test_arrow_file(tmp_path, names, expected):
    target = run(tmp_path / "rows.arrow", "--row-group-size", "8K")
    table = pyarrow.ipc.open_file(target).read_all()
    for rows in (table.to_pylist(), with_table(table), polars.read_ipc(target).to_dicts()):
        assert not differences([of_table(row, names) for row in rows], expected)


def test_arrow_stream(tmp_path, names, expected):
    target = run(tmp_path / "rows.arrows", "--row-group-size", "8K")
    table = pyarrow.ipc.open_stream(target).read_all()
    for rows in (table.to_pylist(), with_table(table), polars.read_ipc_stream(target).to_dicts()):
        assert not differences([of_table(row, names) for row in rows], expected)


def with_table(table):
    with duckdb.connect() as connection:
        connection.sql("SET TimeZone='UTC'")
        connection.register("found", table)
        return connection.sql("FROM found").to_arrow_table().to_pylist()


def of_texts(row, names):
    """A row of JSON lines in the texts of CSV."""
    bits = {column: {word: bit for bit, word in words.items()} for column, words in names.items()}

    def text(name, value):
        if name in BITS:
            return str(sum(bits[name][word] for word in value))
        return "" if value is None else value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)

    return {name: text(name, value) for name, value in row.items()}


@pytest.fixture(scope="module")
def utf8_inputs(tmp_path_factory):
    """The inputs without the lines that are not UTF-8, which the readers of text refuse."""
    path = tmp_path_factory.mktemp("inputs") / "urls.txt"
    lines = (SAMPLES / "urls.txt").read_bytes().split(b"\n")
    path.write_bytes(b"\n".join(line for line in lines if line.decode("utf-8", "ignore").encode() == line))
    return [path, *INPUTS[1:]]


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_delimited(tmp_path, names, utf8_inputs, suffix):
    lines = run(tmp_path / "rows.jsonl", inputs=utf8_inputs).read_text(encoding="utf-8").splitlines()
    expected = [of_texts(of_json(json.loads(line)), names) for line in lines]
    target = run(tmp_path / f"rows.{suffix}", inputs=utf8_inputs)
    delimiter = "," if suffix == "csv" else "\t"
    columns = dict.fromkeys(expected[0], pyarrow.string())
    quoted = pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    convert = pyarrow.csv.ConvertOptions(column_types=columns, strings_can_be_null=False)
    found = {
        "csv": list(csv.DictReader(target.open(encoding="utf-8", newline=""), delimiter=delimiter)),
        "pyarrow": pyarrow.csv.read_csv(target, parse_options=quoted, convert_options=convert).to_pylist(),
        "duckdb": with_duckdb(
            f"""FROM read_csv('{target}', delim='{delimiter}', header=true, all_varchar=true, quote='"', escape='"',
                              auto_detect=false, nullstr='\\0', columns={ {name: "VARCHAR" for name in columns} })"""
        ),
        "polars": polars.read_csv(target, separator=delimiter, infer_schema=False).to_dicts(),
    }
    # Polars reads an empty field as null.
    found["polars"] = [{name: value or "" for name, value in row.items()} for row in found["polars"]]
    for reader, rows in found.items():
        assert not differences(rows, expected), reader


def test_json_lines(tmp_path, names, utf8_inputs):
    target = run(tmp_path / "rows.jsonl", inputs=utf8_inputs)
    expected = [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()]
    found = {
        "duckdb": with_duckdb(
            f"FROM read_json('{target}', format='newline_delimited', auto_detect=true, sample_size=-1, timestampformat='%c',"
            " dateformat='%c')"
        ),
        "polars": polars.read_ndjson(target, infer_schema_length=None).to_dicts(),
    }
    for reader, rows in found.items():
        rows = [
            {name: value.isoformat() + "Z" if isinstance(value, datetime.datetime) else value for name, value in row.items()}
            for row in rows
        ]
        assert not differences(rows, expected), reader


def test_text(tmp_path, expected):
    target = run(tmp_path / "rows.txt")
    assert target.read_text(encoding="utf-8").splitlines() == [row["uri"] or "" for row in expected]
