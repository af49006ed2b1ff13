"""Arrow data: column types, nulls, empty batches, invalid calls; the same rows as single references."""

import concurrent.futures
import json
import pickle
import random
import subprocess
import sys

import pyarrow as pa
import pytest

import irikey

URLS = ["HTTP://Example.org:80/%7Euser/", "http://example.org/~user/", None, "http://h:x/", "", "/relative", "http://é/ü"]


def canonicalized(data, **options):
    return pa.table(irikey.canonicalize(data, **options))


def test_rows_equal_the_scalar_functions():
    rows = canonicalized(pa.table({"url": URLS}), columns=["uri", "key", "fault", "fault_at", "flags", "iri"]).to_pylist()
    assert len(rows) == len(URLS)
    for url, row in zip(URLS, rows):
        if url is None:
            assert set(row.values()) == {None}
            continue
        try:
            expected = irikey.uri(url)
        except irikey.Fault as fault:
            assert (row["uri"], row["fault"], row["fault_at"]) == (None, fault.kind, fault.at)
            assert row["key"] is not None
        else:
            assert (row["uri"], row["key"], row["fault"], row["iri"]) == (expected, irikey.key(url), None, irikey.iri(url))


TYPES = [pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.string_view(), pa.binary_view(),
         pa.dictionary(pa.int32(), pa.string())]


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_every_text_type_gives_the_same_rows(kind):
    table = pa.table(
        {"url": pa.array(URLS).cast(kind) if not pa.types.is_dictionary(kind) else pa.array(URLS).dictionary_encode()}
    )
    assert canonicalized(table).equals(canonicalized(pa.table({"url": URLS})))
    for start, length in [(1, 3), (2, 1), (3, 0), (4, 3)]:
        part = table.slice(start, length).combine_chunks()
        assert canonicalized(part).to_pylist() == canonicalized(table).slice(start, length).to_pylist()


def test_views_of_several_buffers_give_the_rows_of_plain_columns():
    # Views hold texts of up to 12 bytes themselves. The texts are longer than what is processed at a time, one even alone.
    texts = ["http://h/"[:length] + "%7e" * (length // 3) for length in range(300)] * 30 + ["http://h/" + "%7e" * 100_000]
    for nulls in (False, True):
        texts = [None if nulls and place % 1000 == 7 else text for place, text in enumerate(texts)]
        expected = canonicalized(pa.table({"url": pa.array(texts, pa.large_string())})).to_pylist()
        for kind in (pa.string_view(), pa.binary_view()):
            views = pa.concat_arrays([pa.array(texts[from_:from_ + 2500]).cast(kind) for from_ in range(0, len(texts), 2500)])
            assert len(views.buffers()) > 3
            for start, length in [(0, len(texts)), (1, 12), (299, 5000), (len(texts) - 1, 1)]:
                rows = canonicalized(pa.record_batch({"url": views.slice(start, length)})).to_pylist()
                assert rows == expected[start:start + length]


def test_results_have_the_type_and_length_of_the_input():
    batch = pa.record_batch({"url": pa.array(URLS)})
    result = irikey.canonicalize(batch)
    assert isinstance(result, irikey.Batch) and len(result) == result.num_rows == len(URLS)
    assert pa.record_batch(result).num_rows == len(URLS)
    assert len(irikey.canonicalize(batch.slice(0, 0))) == 0
    empty = irikey.canonicalize(pa.table({"url": pa.array([], pa.string())}))
    assert len(empty) == 0 and pa.table(empty).schema.names == ["uri", "key", "fault", "fault_at", "flags"]
    chunks = pa.chunked_array([URLS[:3], [], URLS[3:]], pa.string())
    assert (
        canonicalized(pa.table({"url": chunks})).combine_chunks().equals(canonicalized(pa.table({"url": URLS})).combine_chunks())
    )


def test_results_are_not_copied():
    batch = pa.record_batch({"url": pa.array(["http://a/"] * 1000)})
    result = irikey.canonicalize(batch)
    # Two imports of one result share their memory.
    addresses = {pa.record_batch(result)["uri"].buffers()[2].address for _ in range(2)}
    assert len(addresses) == 1


def test_malformed_utf8_is_not_joined_across_rows():
    # Two halves of é in adjacent rows are not é.
    urls = pa.array([b"http://h/\xc3", b"\xa9", b"http://h/\xc3\xa9"], pa.binary())
    rows = canonicalized(pa.table({"url": urls})).to_pylist()
    assert rows[0]["uri"] == "http://h/%C3" and rows[2]["uri"] == "http://h/%C3%A9"
    assert rows[0]["flags"] != 0 and rows[2]["flags"] == 0


def test_bases_and_charsets_are_columns():
    table = pa.table({
        "link": pa.array([b"x", b"../\xff", b"http://h/\xc6", b"z", b"w"], pa.binary()),
        "page": ["http://a/b/c", "http://a/b/c", None, None, "no base"],
        "enc": ["utf-8", "windows-1251", "koi8-r", None, "klingon"],
    })
    rows = canonicalized(table, url="link", base="page", charset="enc").to_pylist()
    assert [row["uri"] for row in rows] == ["http://a/b/x", "http://a/%D1%8F", "http://h/%D1%84", None, None]
    assert [row["fault"] for row in rows] == [None, None, None, "relative", "unknown-charset"]
    rows = canonicalized(table, url="link", charset="enc", **{"base": ("page", irikey.lit("http://d/"))}).to_pylist()
    assert rows[3]["uri"] == "http://d/z"


def test_invalid_arguments_raise_exceptions():
    table = pa.table({"url": URLS, "n": [1] * len(URLS)})
    with pytest.raises(KeyError, match="unknown column"):
        irikey.canonicalize(table, url="uri")
    with pytest.raises(TypeError, match="has the type Int64"):
        irikey.canonicalize(table, url="n")
    with pytest.raises(TypeError, match="is not Arrow data"):
        irikey.canonicalize(7)
    for invalid in [
        {"rung": "nonsense"}, {"columns": ["kye"]}, {"columns": ["source"]}, {"key_hash": "md5"}, {"base": irikey.lit("x")},
        {"types": "x"},
    ]:
        with pytest.raises(ValueError):
            irikey.canonicalize(table, **invalid)
    with pytest.raises(TypeError):
        irikey.canonicalize(table, no_such_option=1)


def test_canonicalizers_count_pickle_and_work_in_threads():
    canonicalizer = irikey.Canonicalizer(rung="syntax", columns=["key", "uri"])
    canonicalizer.canonicalize(pa.table({"url": URLS}))
    counters = canonicalizer.counters
    assert counters["rows"] == len(URLS) == sum(counters[name] for name in ("unchanged", "changed", "faulty", "nulls"))
    assert counters["nulls"] == 1 and counters["faulty"] == sum(counters["faults"].values()) == 3
    again = pickle.loads(pickle.dumps(canonicalizer))
    assert again.configuration == canonicalizer.configuration and again.counters["rows"] == 0
    assert again.schema.names == ["key", "uri"]
    batch = pa.record_batch({"url": pa.array(URLS * 1000)})
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: pa.record_batch(again(batch)), range(32)))
    assert all(other.equals(results[0]) for other in results)
    assert again.counters["rows"] == 32 * len(batch)


def test_schema_as_arrow_ddl_and_json():
    schema = pa.schema(irikey.schema())
    assert schema.field("key").type == pa.binary(16) and schema.names == irikey.schema().names
    spark = irikey.schema(["uri", "key", "flags"])
    assert spark.spark_ddl() == "`uri` STRING, `key` BINARY, `flags` BIGINT"
    assert '"name":"flags","type":"long"' in spark.spark_json()
    result = pa.table(irikey.canonicalize(pa.table({"url": URLS}), types="spark"))
    assert result.schema.field("key").type == pa.binary() and result.schema.field("fault").type == pa.string()


@pytest.mark.parametrize("types", ["arrow", "spark"])
def test_schema_is_that_of_files_as_well(tmp_path, types):
    (tmp_path / "lines").write_text("HTTP://h\n")
    columns = ["source", "record", "n=", "key", "key_rules", "key_protocol", "fetch_time", "flags"]
    schema = pa.schema(irikey.schema(columns, types))
    assert schema.names == ["source", "record", "n", *columns[3:]]
    canonicalizer = irikey.Canonicalizer(types=types, recipe="surt-ia")
    of_files = [name for name in columns if name != "key_protocol"]
    read = pa.table(canonicalizer.read(tmp_path / "lines", columns=of_files)[0]).schema
    assert pa.schema(field for field in schema if field.name != "key_protocol") == read
    # The metadata are those of the default options.
    default = pa.schema(irikey.Canonicalizer(types=types).schema)
    assert pa.schema(irikey.schema(types=types)).equals(default, check_metadata=True)


def test_names_of_columns_are_escaped(tmp_path):
    names = ['a"b', "a\\b", "a`b", "a\tb", "\u00e9"]
    (tmp_path / "lines").write_text("http://h/\n")
    schema = irikey.read(tmp_path / "lines", [f"{name}=" for name in names]).table.schema
    assert schema.names == names
    assert [field["name"] for field in json.loads(schema.spark_json())["fields"]] == names
    assert schema.spark_ddl() == ", ".join(f"`{name}` STRING".replace("a`b", "a``b") for name in names)


def test_pyarrow_is_not_imported():
    code = "import irikey, sys; irikey.uri('http://a'); assert 'pyarrow' not in sys.modules and 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


WITHOUT_PYARROW = """
import sys
sys.modules["pyarrow"] = None
import irikey, polars
urls, bases = polars.Series(["x", None]), polars.Series(["http://a/", "http://b/"])
assert polars.DataFrame(irikey.canonicalize(urls, base=irikey.lit("http://a/")))["uri"].to_list() == ["http://a/x", None]
assert irikey.uris(urls, base=bases).to_list() == irikey.uris(["x", None], base=bases) == ["http://a/x", None]
"""


def test_series_of_polars_need_no_pyarrow():
    pytest.importorskip("polars")
    subprocess.run([sys.executable, "-c", WITHOUT_PYARROW], check=True)


def test_any_bytes_become_rows():
    rng = random.Random(7)
    pool = [
        b"http://",
        b"//",
        b"%",
        b"\xc3",
        b"\xa9",
        b"\x00",
        b"[",
        b"]",
        b":",
        b"@",
        b"..",
        b"/",
        b"#",
        b"?",
        b"xn--",
        b"\n",
        b"a",
    ]
    urls = [b"".join(rng.choices(pool, k=rng.randrange(12))) for _ in range(20_000)]
    table = pa.table({"url": pa.array(urls, pa.binary())})
    whole = canonicalized(table)
    assert whole.num_rows == len(urls)
    single_rows = pa.concat_tables([canonicalized(table.slice(i, 1)) for i in range(300)])
    assert whole.slice(0, 300).to_pylist() == single_rows.to_pylist()


def test_ten_million_rows():
    # The dictionary has three URLs, so that the input is small; the result is long.
    urls = pa.DictionaryArray.from_arrays(pa.array([i % 3 for i in range(10_000)], pa.int8()), ["http://a/", "HTTP://A", "x"])
    batch = pa.record_batch({"url": pa.concat_arrays([urls] * 1000)})
    canonicalizer = irikey.Canonicalizer(columns=["key"])
    assert len(canonicalizer.canonicalize(batch)) == 10_000_000
    assert canonicalizer.counters["faulty"] == 3_333_000
