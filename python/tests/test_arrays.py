"""Arrays: the same values as single references, in the kind of the argument; bad input."""

import concurrent.futures
import errno
import gc
import os
import pickle
import signal
import subprocess
import sys
import time
import timeit
import weakref

import pyarrow as pa
import pytest

import irikey
from irikey import _irikey

URLS = ["HTTP://Example.org:80/%7Euser/", None, "http://h:x/", b"http://h/\xff", "http://example.org/~user/"]
URIS = ["http://example.org/~user/", None, None, "http://h/%FF", "http://example.org/~user/"]
TEXTS = [url for url in URLS if not isinstance(url, bytes)]


def with_none(values):
    """Returns values as a list, in which missing ones are None: in the text of pandas 3, they are NaN."""
    return [None if isinstance(value, float) else value for value in values]


def test_arrays_of_every_kind_give_the_same_values_in_the_same_kind():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    assert irikey.uris(URLS) == URIS
    keys = irikey.keys(URLS)
    assert keys[1] is None and keys[0] == keys[4] == irikey.key(URIS[0]) and len(keys[2]) == 16
    expected = [uri for url, uri in zip(URLS, URIS) if url in TEXTS]
    binary = pa.array([url and (url if isinstance(url, bytes) else url.encode()) for url in URLS])
    for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.binary()):
        array = pa.array(TEXTS).cast(kind)
        assert type(irikey.uris(array)) is pa.StringArray and irikey.uris(array).to_pylist() == expected
        assert irikey.uris(array[1:3]).to_pylist() == expected[1:3]
    assert irikey.uris(binary).to_pylist() == URIS and irikey.keys(binary).to_pylist() == keys
    chunked = pa.chunked_array([TEXTS[:2], [], TEXTS[2:]], pa.string())
    assert isinstance(irikey.uris(chunked), pa.ChunkedArray) and irikey.uris(chunked).to_pylist() == expected
    assert irikey.uris(pa.chunked_array([], pa.string())).to_pylist() == []
    series = polars.Series("page", TEXTS)
    assert irikey.uris(series).to_list() == expected and irikey.uris(series).name == "page"
    series = pandas.Series(TEXTS, index=[3, 1, 4, 5], name="page")
    assert with_none(irikey.uris(series)) == expected and list(irikey.keys(series).index) == [3, 1, 4, 5]
    only_capsules = type("A", (), {"__arrow_c_array__": lambda self, schema=None: pa.array(TEXTS).__arrow_c_array__(schema)})()
    found = irikey.uris(only_capsules)
    assert type(found) is irikey.Array and found.to_pylist() == pa.array(found).to_pylist() == expected
    assert irikey.uris([]) == [] and irikey.uris([None, None]) == [None, None]
    for empty in (pa.array([], pa.string()), pa.array([None, None], pa.null())):
        assert irikey.uris(empty).to_pylist() == [None] * len(empty)


def test_no_values_are_no_error_with_any_option():
    polars, none = pytest.importorskip("polars"), pa.array([], pa.string())
    import irikey.polars  # noqa: F401, registers the namespace

    for options in ({"recipe": "surt-ia"}, {"recipe": "w3lib"}, {"rung": "syntax"}, {"strict": True}, {"profile": "whatwg"}):
        for make in (irikey.uris, irikey.keys):
            assert make([], **options) == [] and len(make(none, **options)) == 0
            assert make(pa.chunked_array([none, ["http://h/"]]), **options).to_pylist() == make(["http://h/"], **options)
            assert make(polars.Series([], dtype=polars.String), **options).to_list() == []
        table = pa.table({"url": pa.chunked_array([none, ["http://h/"], none])})
        assert pa.table(irikey.canonicalize(table, **options)).num_rows == 1
    assert polars.DataFrame({"u": ["a:b"]}).clear().select(polars.col("u").irikey.surt()).height == 0
    assert pa.record_batch(irikey.canonicalize([], columns=["uri", "key_surt_ia"])).num_rows == 0


@pytest.mark.parametrize("dtype", ["str", "string", "string[python]", "string[pyarrow]", pa.string(), pa.large_string()], ids=str)
def test_text_of_pandas_keeps_its_dtype(dtype):
    pandas = pytest.importorskip("pandas")
    if isinstance(dtype, pa.DataType):
        dtype = pandas.ArrowDtype(dtype)
    series = pandas.Series(["HTTP://h", None, "http://h:x/"], dtype=dtype, index=[3, 1, 2], name="page")
    expected = pandas.Series(["http://h/", None, None], dtype=dtype, index=[3, 1, 2], name="page")
    pandas.testing.assert_series_equal(irikey.uris(series), expected)
    pandas.testing.assert_index_equal(irikey.uris(pandas.Index(series)), pandas.Index(expected))
    pandas.testing.assert_series_equal(irikey.uris(series, recipe="surt-wayback").isna(), expected.isna())
    # Keys are bytes.
    assert irikey.keys(series).dtype == object and irikey.keys(series)[3] == irikey.key("http://h/")


def test_views_of_pandas_keep_their_dtype():
    pandas = pytest.importorskip("pandas")
    series = pandas.Series(["HTTP://h", None], dtype=pandas.ArrowDtype(pa.string_view()), index=[3, 1], name="page")
    found = irikey.uris(series)
    assert (found.dtype, found.name, list(found.index)) == (series.dtype, "page", [3, 1])
    assert pa.array(found).to_pylist() == ["http://h/", None]


def test_series_of_pandas_with_another_index_are_refused():
    pandas = pytest.importorskip("pandas")
    urls, bases = pandas.Series(["x", "y"]), pandas.Series(["http://a/", "http://b/"], index=[1, 0])
    for name in ("base", "charset"):
        with pytest.raises(ValueError, match=f"^{name} has another index than values; reindex it"):
            irikey.uris(urls, **{name: bases})
    assert irikey.uris(urls, base=bases.reindex(urls.index)).tolist() == ["http://b/x", "http://a/y"]
    assert irikey.uris(urls, base=bases.to_numpy()).tolist() == ["http://a/x", "http://b/y"]


def test_missing_values_are_null_in_every_container():
    numpy, pandas = pytest.importorskip("numpy"), pytest.importorskip("pandas")
    missing = [None, float("nan"), numpy.float64("nan"), pandas.NA]
    expected = ["http://h/", *[None] * len(missing)]
    series = pandas.Series(["HTTP://h", *missing], dtype=object)
    for values in (series, series.tolist(), series.to_numpy(), tuple(series), pandas.Index(series)):
        assert list(irikey.uris(values)) == expected, type(values)
        assert pa.table(irikey.canonicalize(values))["uri"].to_pylist() == expected, type(values)
    assert irikey.uris(["x"] * 5, base=series).count(None) == len(missing)
    # A column without any value has the dtype float64.
    empty = pandas.DataFrame({"url": [numpy.nan, numpy.nan]})
    assert irikey.uris(empty["url"]).tolist() == [None, None] and len(irikey.keys(empty["url"])) == 2
    assert pa.table(irikey.canonicalize(empty))["uri"].to_pylist() == [None, None]
    assert with_none(irikey.batch_function(columns=["uri"])(empty)["uri"]) == [None, None]
    for values, found in (([1.5], "float"), ([float("inf")], "float"), ([pandas.NaT], "NaTType")):
        with pytest.raises(TypeError, match=f"^row 0: expected a reference as str or bytes, found {found}$"):
            irikey.uris(values)
    with pytest.raises(TypeError, match="^values has the type Float64"):
        irikey.uris(pandas.Series([1.0, numpy.nan]))
    with pytest.raises(TypeError, match="found float"):
        irikey.uri(float("nan"))


def test_text_is_not_decoded_again():
    """RFC 3987 section 3.1, step 1: a charset applies to bytes, and not to text that was decoded before."""
    numpy, pandas, polars = pytest.importorskip("numpy"), pytest.importorskip("pandas"), pytest.importorskip("polars")
    import irikey.polars  # noqa: F401

    text, encoded, expected = "http://h/\u00e9", b"http://h/\xe9", "http://h/%C3%A9"
    mixed = [text, encoded, None]
    kinds = [lambda values: values, tuple, lambda values: numpy.array(values, dtype=object)]
    kinds += [lambda values: pandas.Series(values, dtype=object), lambda values: pandas.Index(values, dtype=object)]
    for kind in kinds:
        for charset in ("latin1", ["latin1"] * 3, irikey.lit("latin1")):
            assert list(irikey.uris(kind(mixed), charset=charset)) == [expected, expected, None], kind(mixed)
    arrays = [pa.array([text]).cast(kind) for kind in (pa.string(), pa.large_string(), pa.string_view())]
    arrays += [pa.array([encoded]).cast(kind) for kind in (pa.binary(), pa.large_binary(), pa.binary_view())]
    arrays += [pa.array([text]).dictionary_encode(), pa.array([encoded]).dictionary_encode()]
    for array in arrays:
        charset = irikey.lit("latin1")
        assert irikey.uris(array, charset="latin1").to_pylist() == [expected], array.type
        assert irikey.uris(array, charset=["latin1"]).to_pylist() == [expected], array.type
        batch = pa.record_batch([array, pa.array(["latin1"])], names=["url", "label"])
        table = pa.Table.from_batches([batch])
        for data in (batch, table, pa.RecordBatchReader.from_batches(batch.schema, [batch])):
            assert pa.table(irikey.canonicalize(data, charset=charset))["uri"].to_pylist() == [expected], array.type
        assert pa.table(irikey.canonicalize(batch, charset="label"))["uri"].to_pylist() == [expected], array.type
        assert pa.table(irikey.canonicalize(table, charset=("label", charset)))["uri"].to_pylist() == [expected], array.type
    for value in (text, encoded):
        series = polars.Series([value])
        assert irikey.uris(series, charset="latin1").to_list() == series.irikey.uri(charset="latin1").to_list() == [expected]
        frame = pandas.DataFrame({"url": [value]})
        assert pa.table(irikey.canonicalize(frame, charset=irikey.lit("latin1")))["uri"].to_pylist() == [expected]
        assert irikey.Canonicalizer(charset=irikey.lit("latin1")).uri(value) == expected
    surrogates = pandas.DataFrame({"url": [text + "\ud800"]}, dtype=object)
    assert pa.table(irikey.canonicalize(surrogates, charset=irikey.lit("latin1")))["uri"].to_pylist() == [expected + "%ED%A0%80"]
    # Labels of text have no effect, and those of bytes must be known.
    assert irikey.uris(mixed, charset=["nope", "nope", None]) == [expected, None, None]


def test_columns_of_text_and_bytes_have_no_charset():
    """A column of a table has one type, so that its text would be decoded like its bytes."""
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    mixed = ["http://h/\u00e9", b"http://h/\xe9"]
    frame, latin1 = pandas.DataFrame({"url": mixed}), irikey.lit("latin1")
    with pytest.raises(TypeError, match="url has str and bytes"):
        irikey.canonicalize(frame, charset=latin1)
    with pytest.raises(TypeError, match="base has str and bytes"):
        irikey.uris(polars.Series(["a", "b"]), base=mixed, charset=["latin1"] * 2)
    utf8 = pandas.DataFrame({"url": [mixed[0], mixed[0].encode()]})
    expected = ["http://h/%C3%A9"] * 2
    assert pa.table(irikey.canonicalize(utf8))["uri"].to_pylist() == expected
    # A series is a list of values, each of its type.
    for series in (frame["url"], frame["url"].astype("category")):
        assert irikey.uris(series, charset="latin1").tolist() == expected


@pytest.mark.parametrize("label", ["utf-16le", "UTF-16BE", "utf-16"])
def test_utf_16_may_be_the_charset_of_one_row(label):
    """A row has the same URI whether its label is that of all rows or its own, and whatever the other rows are."""
    codec = "utf-16be" if label == "UTF-16BE" else "utf-16le"
    url, relative, base = (text.encode(codec) for text in ("HTTP://h/\u00e9\u010a", "x\u00e9", "http://b/\u00fc/"))
    expected = ["http://h/%C3%A9%C4%8A", "http://b/%C3%BC/x%C3%A9", None]
    for values in ([url, relative, b"x"], ["HTTP://h/\u00e9\u010a", relative, b"x"]):
        for bases in ([base] * 3, ["http://b/\u00fc/"] * 3, [None, "http://b/%C3%BC/", None]):
            for charset in (label, [label] * 3):
                assert irikey.uris(values, base=bases, charset=charset) == expected, (values, bases, charset)
    urls = [url, b"http://h/\xe9\xe4", b"HTTP://h", url]
    table = pa.table({"url": urls, "label": [label, "latin1", None, label]})
    assert irikey.uris(urls, charset=table["label"]) == [expected[0], "http://h/%C3%A9%C3%A4", "http://h/", expected[0]]
    found = [pa.table(irikey.canonicalize(table, charset=charset)) for charset in ("label", ("label", irikey.lit("ascii")))]
    assert found[0]["uri"].to_pylist() == found[1]["uri"].to_pylist() == irikey.uris(urls, charset=table["label"])


def test_unknown_charsets_are_errors_of_calls_and_faults_of_rows():
    for use in (
        lambda charset: irikey.uris([b"http://h/"], charset=charset.value),
        lambda charset: irikey.Canonicalizer(charset=charset),
        lambda charset: irikey.canonicalize([b"x"], charset=("label", charset)),
        lambda charset: irikey.read(b"http://h/\n", charset=charset),
    ):
        for label in ("klingon", "utf-7", ""):
            with pytest.raises(ValueError, match=f'^charset: unknown charset "{label}"; expected a label'):
                use(irikey.lit(label))
    urls = pa.array([b"http://h/\xe9"] * 3)
    table = pa.table({"url": urls, "label": ["klingon", " ISO-8859-1\n", ""]})
    for charset, last in (("label", "http://h/%E9"), (("label", irikey.lit("latin1")), "http://h/%C3%A9")):
        rows = pa.table(irikey.canonicalize(table, charset=charset))
        assert rows["uri"].to_pylist() == [None, "http://h/%C3%A9", last]
        assert rows["fault"].to_pylist() == ["unknown-charset", None, None]
    assert irikey.uris(urls, charset=table["label"]).to_pylist() == [None, "http://h/%C3%A9", "http://h/%E9"]
    # The charset of a document applies to text as well.
    table = table.set_column(0, "url", pa.array(["http://h/?\u00e9"] * 3))
    rows = pa.table(irikey.canonicalize(table, query_charset="label"))
    assert rows["uri"].to_pylist() == [None, "http://h/?%E9", "http://h/?%C3%A9"]
    assert rows["fault"].to_pylist() == ["unknown-charset", None, None]


def test_the_charset_decodes_a_base_whatever_its_bytes_are():
    base = "http://h/\u00e9/".encode()
    for bases in (base, [base]):
        assert irikey.uris(["a"], base=bases, charset="latin1") == ["http://h/%C3%83%C2%A9/a"]
    assert irikey.uris(["a"], base=base) == ["http://h/%C3%A9/a"]


def test_bases_of_the_other_kind_are_decoded_like_bytes():
    urls = [b"?\xe9", "?\u00e9", b"?\xe9", "?\u00e9"]
    bases = ["http://\u00e9/\u00e9", b"http://\xe9/\xe9", b"http://\xe9/\xe9", "http://\u00e9/\u00e9"]
    expected = "http://xn--9ca/%C3%A9?%C3%A9"
    assert irikey.uris(urls, base=bases, charset="latin1") == [expected] * 4
    assert irikey.uris(urls, base=bases, charset=["latin1"] * 4) == [expected] * 4
    canonicalizer = irikey.Canonicalizer(base="base", charset=irikey.lit("latin1"))
    assert [canonicalizer.uri(url, base) for url, base in zip(urls, bases)] == [expected] * 4
    polars = pytest.importorskip("polars")
    assert irikey.uris(polars.Series(urls[:1]), base=bases[:1], charset="latin1").to_list() == [expected]


def test_objects_of_derived_classes_are_those_of_their_library():
    numpy, pandas, polars = pytest.importorskip("numpy"), pytest.importorskip("pandas"), pytest.importorskip("polars")

    class OwnSeries(pandas.Series):
        @property
        def _constructor(self):
            return OwnSeries

    class OwnFrame(pandas.DataFrame):
        @property
        def _constructor(self):
            return OwnFrame

    class OwnArray(numpy.ndarray):
        pass

    of_polars = (type("OwnSeries", (polars.Series,), {}), type("OwnFrame", (polars.DataFrame,), {}))
    urls = ["HTTP://h", "x"]
    series, array = OwnSeries(urls, index=[2, 1], name="page"), numpy.array(urls, dtype=object).view(OwnArray)
    assert list(irikey.uris(series, base=series.map(lambda url: "http://b/")).index) == [2, 1]
    for values in (series, array, of_polars[0]("page", urls)):
        assert irikey.uris(values)[2 if values is series else 0] == "http://h/"
    for frame in (OwnFrame({"url": urls}), of_polars[1]({"url": urls})):
        assert pa.table(irikey.canonicalize(frame))["uri"].to_pylist() == ["http://h/", None]
        assert irikey.batch_function(columns=["uri"])(frame)["uri"][0] == "http://h/"
        with pytest.raises(TypeError, match="^values: OwnFrame is not supported; .*; canonicalize takes tables$"):
            irikey.uris(frame)


def test_objects_of_pandas_and_numpy_that_are_not_plain_series():
    numpy, pandas = pytest.importorskip("numpy"), pytest.importorskip("pandas")
    found = irikey.uris(numpy.array(URLS, dtype=object))
    assert found.dtype == object and found.tolist() == URIS
    assert irikey.uris(numpy.array(["HTTP://h"])).tolist() == ["http://h/"]
    index = irikey.uris(pandas.Index(["HTTP://h", None], name="page"))
    assert isinstance(index, pandas.Index) and with_none(index) == ["http://h/", None] and index.name == "page"
    # Different categories may have one canonical URI.
    categories = pandas.Series(["HTTP://h", "http://h/", None, "http://g/"], dtype="category")
    assert [uri if isinstance(uri, str) else None for uri in irikey.uris(categories)] == [
        "http://h/", "http://h/", None, "http://g/",
    ]
    assert irikey.keys(categories)[0] == irikey.key("http://h")
    mixed = pandas.Series(["HTTP://h", b"http://h/\xff", None, float("nan")], dtype=object)
    assert irikey.uris(mixed).tolist() == ["http://h/", "http://h/%FF", None, None]


def test_columns_of_polars_without_a_value():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"url": [None, None], "other": [None, None]})
    assert irikey.uris(frame["url"]).to_list() == [None, None]
    assert pa.table(irikey.canonicalize(frame))["uri"].to_pylist() == [None, None]
    assert irikey.batch_function(columns=["uri"])(frame)["uri"].to_list() == [None, None]
    urls = frame.with_columns(url=polars.lit("HTTP://h"))
    assert polars.DataFrame(irikey.canonicalize(urls))["uri"].to_list() == ["http://h/"] * 2
    assert irikey.uris(urls["url"], base=frame["other"]).to_list() == ["http://h/"] * 2


def test_each_value_of_a_dictionary_is_normalized_once():
    urls = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0, 2], pa.int8()), ["HTTP://h", "x", None])
    found = irikey.uris(urls)
    assert found.type == pa.string() and found.to_pylist() == ["http://h/", None, None, "http://h/", None]
    assert irikey.keys(urls).type == pa.binary(16) and irikey.keys(urls).to_pylist()[0] == irikey.key("http://h")
    canonicalizer = irikey.Canonicalizer()
    canonicalizer.array(urls)
    assert (canonicalizer.counters["rows"], canonicalizer.counters["nulls"], canonicalizer.counters["faulty"]) == (3, 1, 1)
    # A short piece of a long dictionary does not normalize all of it.
    assert irikey.uris(urls[:1]).to_pylist() == ["http://h/"]
    assert irikey.uris(pa.chunked_array([urls, urls[:1]])).to_pylist() == found.to_pylist() + ["http://h/"]


def test_results_of_dictionaries_are_plain_arrays(tmp_path):
    """Different values may become equal or null, which readers of dictionaries do not expect."""
    import pyarrow.parquet

    urls = pa.array(["HTTP://h", "http://h/", "http://h:x/", "http://h:80"]).dictionary_encode()
    for values in (urls, urls[:2], pa.chunked_array([urls, urls[1:]])):
        found = irikey.uris(values)
        assert found.type == pa.string() and irikey.keys(values).type == pa.binary(16)
        assert set(found.unique().to_pylist()) == set(found.to_pylist())
        pa.parquet.write_table(pa.table({"uri": found}), tmp_path / "uris.parquet")
        assert pa.parquet.read_table(tmp_path / "uris.parquet")["uri"].to_pylist() == found.to_pylist()
    groups = pa.table({"uri": irikey.uris(urls)}).group_by("uri").aggregate([([], "count_all")]).to_pylist()
    assert sorted((row["uri"] or "", row["count_all"]) for row in groups) == [("", 1), ("http://h/", 3)]


def test_runs_are_read_as_their_values():
    for texts in (["HTTP://h", None, "http://\u00e9"], [b"HTTP://h", None, b"http://\xc3\xa9"]):
        urls = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3, 5], pa.int32()), pa.array(texts))
        expected = ["http://h/", "http://h/", None, "http://xn--9ca/", "http://xn--9ca/"]
        for begin, end in ((0, 5), (1, 4), (2, 3), (4, 5), (3, 3)):
            array, rows = urls.slice(begin, end - begin), expected[begin:end]
            batch = pa.record_batch([array], names=["url"])
            assert irikey.uris(array).to_pylist() == pa.record_batch(irikey.canonicalize(array))["uri"].to_pylist() == rows
            for data in (batch, pa.Table.from_batches([batch])):
                assert pa.table(irikey.canonicalize(data))["uri"].to_pylist() == rows
        assert irikey.uris(["x"] * 5, base=urls)[3:] == ["http://xn--9ca/x"] * 2
        assert pa.table(irikey.canonicalize(pa.record_batch([urls], names=["url"]).slice(2)))["uri"].to_pylist() == expected[2:]


def test_a_canonicalizer_takes_the_arrays_that_functions_take():
    numpy, pandas, polars = pytest.importorskip("numpy"), pytest.importorskip("pandas"), pytest.importorskip("polars")
    canonicalizer = irikey.Canonicalizer(url="link", base="page", columns=["uri", "fault"])
    texts, bases, uris = ["x", None, "HTTP://h", "http://h:x/"], ["http://a/"] * 4, ["http://a/x", None, "http://h/", None]
    kinds = [
        pa.array, lambda values: pa.chunked_array([values[:1], values[1:]]), pandas.Series, pandas.Index, numpy.array,
        polars.Series, list,
    ]
    for kind in kinds:
        for other in kinds:
            found = canonicalizer.array(kind(texts), base=other(bases))
            assert type(found) is (irikey.Array if kind is pa.array else type(irikey.uris(kind(texts))))
            assert with_none(found.to_pylist() if hasattr(found, "to_pylist") else found) == uris, (kind, other)
        faults = canonicalizer.array(kind(texts), "fault", bases)
        faults = with_none(faults.to_pylist() if hasattr(faults, "to_pylist") else faults)
        assert faults == [None, None, None, "port"], kind
        with pytest.raises(KeyError, match="unknown column .nope"):
            canonicalizer.array(kind(texts), "nope", bases)
        with pytest.raises(ValueError, match="^charset: the canonicalizer was made without charset="):
            canonicalizer.array(kind(texts), "uri", bases, charset=kind(bases))
        plain = irikey.Canonicalizer(url="link", columns=["uri"])
        assert pa.table(plain.canonicalize(kind(texts)))["uri"].to_pylist() == [None, None, "http://h/", None], kind
        assert pa.table(plain(kind(texts))).num_rows == 4
    with pytest.raises(TypeError, match="^values: int is not supported"):
        canonicalizer.array(7)
    with pytest.raises(TypeError, match="^base: int is not supported"):
        canonicalizer.array(["x"], base=7)


def test_dictionaries_of_any_column_are_read_as_their_values():
    polars = pytest.importorskip("polars")
    urls = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0], pa.int8()), ["HTTP://h", "x"])
    canonicalizer = irikey.Canonicalizer(columns=["uri", "key", "fault", "fault_at", "flags"])
    for column in canonicalizer.schema.names:
        found, expected = canonicalizer.array(urls, column), canonicalizer.array(urls.to_pylist(), column)
        assert found.to_pylist() == expected and pa.array(found).to_pylist() == expected, column
        assert pa.array(found).type == pa.schema(canonicalizer.schema).field(column).type, column
        assert column not in ("uri", "fault") or polars.Series(found).to_list() == expected


def test_a_null_structure_may_have_a_column_without_a_type():
    rows = pa.StructArray.from_arrays(
        [pa.nulls(2), pa.array(["http://h/"] * 2)], names=["url", "base"], mask=pa.array([True, False])
    )
    for options in ({}, {"base": "base"}, {"url": "base", "base": "url"}):
        found = pa.record_batch(irikey.canonicalize(rows, **options))["uri"].to_pylist()
        assert found == [None, "http://h/" if "url" in options else None], options


def test_texts_of_any_length_are_processed_or_refused():
    numpy = pytest.importorskip("numpy")
    # The bases have more than 4 GiB together. Memory of zeros that is only read takes no space.
    lengths = numpy.full(150_000, 30_000, numpy.int64)
    lengths[1::2] += 1
    offsets = numpy.concatenate([[0], numpy.cumsum(lengths)])
    zeros = numpy.zeros(int(offsets[-1]), numpy.uint8)
    bases = pa.Array.from_buffers(pa.large_binary(), len(lengths), [None, pa.py_buffer(offsets), pa.py_buffer(zeros)])
    batch = pa.record_batch({"url": pa.nulls(len(lengths), pa.string()), "base": bases})
    assert pa.record_batch(irikey.canonicalize(batch, base="base"))["uri"].null_count == len(lengths)
    one = pa.Array.from_buffers(pa.large_binary(), 1, [None, pa.py_buffer(offsets[[0, -1]]), pa.py_buffer(zeros)])
    for columns in ({"url": one, "base": ["http://h/"]}, {"url": ["x"], "base": one}):
        with pytest.raises(
            ValueError,
            match=(
                "^row 0: the URL, its base and its charsets have"
                f" {len(zeros) + len('http://h/' if columns['url'] is one else 'x')} bytes"
            ),
        ):
            irikey.canonicalize(pa.record_batch(columns), base="base")
    long = bytes(1 << 32)
    calls = [
        irikey.uri, irikey.key, irikey.iri, irikey.surt, irikey.explain, lambda text: irikey.compare(text, "x"),
        lambda text: irikey.resolve("http://h/", text), lambda text: irikey.uri("x", text), lambda text: irikey.uris(["x", text]),
    ]
    for call in calls:
        row = "row 1: " if call is calls[-1] else ""
        with pytest.raises(ValueError, match=f"^{row}the reference has 4294967296 bytes; at most"):
            call(long)


def test_chunks_may_be_long_together():
    numpy, pandas = pytest.importorskip("numpy"), pytest.importorskip("pandas")
    # Memory of zeros takes no space. Nulls are not read.
    length, rows = 1 << 20, 1000
    offsets, zeros = numpy.arange(rows + 1, dtype=numpy.int32) * length, numpy.zeros(rows * length, numpy.uint8)
    buffers = [pa.py_buffer(bytes(rows // 8)), pa.py_buffer(offsets), pa.py_buffer(zeros)]
    chunked = pa.chunked_array([pa.Array.from_buffers(pa.binary(), rows, buffers)] * 3)
    assert chunked.nbytes > 1 << 31
    bases = pa.chunked_array([pa.nulls(rows, pa.string())] * 3)
    series = pandas.Series(chunked, dtype=pandas.ArrowDtype(pa.binary()))
    assert irikey.uris(chunked, base=bases).null_count == irikey.keys(chunked).null_count == 3 * rows
    assert irikey.uris(series).isna().all() and len(irikey.keys(series, base=bases.to_pylist())) == 3 * rows
    for data in (chunked, series):
        assert pa.table(irikey.canonicalize(data, url="link", columns=["uri"]))["uri"].null_count == 3 * rows


def test_long_chunks_are_combined_with_long_offsets(monkeypatch):
    from irikey import _arrays

    texts, bases = pa.chunked_array([["x", "HTTP://h"], [], ["y"]]), pa.chunked_array([["http://a/"], ["http://b/", "http://c/"]])
    expected = irikey.uris(texts, base=bases).to_pylist()
    monkeypatch.setattr(_arrays, "_MOST_BYTES", 0)
    assert _arrays._combined(texts).type == pa.large_string()
    assert irikey.uris(texts, base=bases).to_pylist() == irikey.uris(texts.combine_chunks(), base=bases).to_pylist() == expected
    assert pa.table(irikey.canonicalize(texts, base=irikey.lit("http://a/")))["uri"].to_pylist() == [
        "http://a/x",
        "http://h/",
        "http://a/y",
    ]


def test_values_of_a_dictionary_may_be_long_together():
    numpy = pytest.importorskip("numpy")
    values = pa.array(["http://h/" + "x" * (1 << 20)])
    urls = pa.DictionaryArray.from_arrays(pa.array(numpy.zeros(2100, numpy.int16)), values)
    counts = irikey.Canonicalizer(columns=["fault"])
    assert len(counts.canonicalize(pa.record_batch({"url": urls}))) == 2100 and counts.counters["faults"] == {"too-long": 2100}


def test_bases_and_charsets_are_values_or_arrays():
    assert irikey.uris(["x", "y", None], base="http://a/") == ["http://a/x", "http://a/y", None]
    assert (
        irikey.uris(["x"], base=b"http://h/\xff\xc3\xa9\xc3/")
        == [irikey.uri("x", b"http://h/\xff\xc3\xa9\xc3/")]
        == ["http://h/%FF%C3%A9%C3/x"]
    )
    assert irikey.uris(["x", "y", None], base=b"http://a/") == irikey.uris(["x", "y", None], base=irikey.lit("http://a/"))
    assert irikey.uris(["x", "y", "z"], base=["http://a/", "http://b/", None]) == ["http://a/x", "http://b/y", None]
    assert irikey.uris([b"http://h/\xff"] * 2, charset=["windows-1251", "koi8-r"]) == ["http://h/%D1%8F", "http://h/%D0%AA"]
    assert irikey.uris([b"http://h/\xff"], charset="windows-1251") == ["http://h/%D1%8F"]
    chunked = pa.chunked_array([["x"], ["y"]])
    capsules = type(
        "A",
        (),
        {
            "__arrow_c_array__": lambda self, schema=None: pa.array(["http://a/", "http://b/"]).__arrow_c_array__(schema),
            "__len__": lambda self: 2,
        },
    )()
    for bases in (pa.chunked_array([["http://a/", "http://b/"]]), ["http://a/", b"http://b/"], capsules):
        assert irikey.uris(chunked, base=bases).to_pylist() == ["http://a/x", "http://b/y"]
    polars = pytest.importorskip("polars")
    mixed = ["http://a/", b"http://h/\xff/", None, "http://h/\udcff/"]
    for bases in (
        mixed, tuple(mixed), pytest.importorskip("numpy").array(mixed, dtype=object), pytest.importorskip("pandas").Series(mixed),
    ):
        assert irikey.uris(polars.Series(["x"] * 4), base=bases).to_list() == irikey.uris(["x"] * 4, base=mixed)
    assert irikey.uris(polars.Series(["x"]), base="http://h/\udcff/").to_list() == ["http://h/%FF/x"]
    with pytest.raises(ValueError, match="base has 3 values; expected 2"):
        irikey.uris(chunked, base=["http://a/"] * 3)
    with pytest.raises(ValueError, match="base has 1 values; expected 2"):
        irikey.uris(["x", "y"], base=["http://a/"])


def test_rungs_and_recipes():
    url = "http://www.h:80/%7e?b&a"
    assert irikey.uris([url], rung="syntax") == [irikey.uri(url, rung="syntax")] == ["http://www.h:80/~?b&a"]
    assert irikey.uris([url], recipe="surt-ia") == [irikey.surt(url, "ia")] == [irikey.uri(url, recipe="surt-ia")]
    assert irikey.keys([url], recipe="surt-ia") == [irikey.key(url, recipe="surt-ia")] != irikey.keys([url])
    table = pa.table(irikey.canonicalize(["HTTP://www.h"], columns=["key", "uri", "key_rules"], recipe="+www"))
    assert table.column_names == ["key", "uri", "key_rules"] and table["uri"].to_pylist() == ["http://www.h/"]
    assert table["key"] == table["key_rules"] and table["key"].to_pylist() == irikey.keys(["HTTP://www.h"], recipe="+www")


def test_wrong_values_name_parameter_row_and_type():
    for values, message in [
        ([1], "row 0: expected a reference as str or bytes, found int"), ("http://h", "values: str is not supported"),
        ({"a": 1}, "values: dict is not supported"), (pa.array([[1]]), "expected text or bytes"),
    ]:
        with pytest.raises(TypeError, match=message):
            irikey.uris(values)
    with pytest.raises(TypeError, match="columns is a list"):
        irikey.canonicalize(["x"], columns="uri")
    with pytest.raises(TypeError, match="name of a column, lit"):
        irikey.canonicalize(["x"], base=7)
    nested = pa.table({"url": [{"a": "x"}]})
    with pytest.raises(TypeError, match="column 'url'|column \"url\" has the type Struct"):
        irikey.canonicalize(nested)


def test_what_is_no_array_is_refused_by_the_name_of_its_parameter():
    numpy, pandas, polars = pytest.importorskip("numpy"), pytest.importorskip("pandas"), pytest.importorskip("polars")
    frame = pandas.DataFrame({"url": ["HTTP://h"]})
    tables = [frame, polars.DataFrame(frame), pa.table({"url": ["x"]}), pa.record_batch({"url": ["x"]})]
    for values in tables:
        with pytest.raises(TypeError, match=f"^values: {type(values).__name__} is not supported; .*; canonicalize takes tables$"):
            irikey.uris(values)
    lazy, functions = polars.LazyFrame(frame), (irikey.uris, irikey.canonicalize, irikey.batch_function())
    for function, name in zip(functions, ("values", "data", "data")):
        with pytest.raises(TypeError, match=f"^{name}: LazyFrame is not supported, .*; call .collect.., or .* irikey.polars"):
            function(lazy)
    others = [
        numpy.array("x"), numpy.array([["x"]]), pandas.MultiIndex.from_tuples([("a", "b")]), frame["url"].array,
        polars.col("url"),
    ]
    for values in [*others, iter(["x"]), None]:
        with pytest.raises(TypeError, match=f"^values: {type(values).__name__} is not supported"):
            irikey.uris(values)
    for name in ("base", "charset"):
        with pytest.raises(TypeError, match=f"^{name}: int is not supported"):
            irikey.uris(["x"], **{name: 5})
    with pytest.raises(TypeError, match="^values has the type Int64; expected text or bytes"):
        irikey.uris(pa.array([1]))
    with pytest.raises(TypeError, match="^base has the type Int64; expected text or bytes"):
        irikey.uris(["x"], base=pa.array([1]))
    with pytest.raises(ValueError, match="^base has 1 values; expected 2, one per URL"):
        irikey.uris(polars.Series(["x", "y"]), base=["http://h/"])


def test_an_array_without_chunks_has_the_type_of_the_results():
    for kind in (pa.string(), pa.dictionary(pa.int8(), pa.string()), pa.string_view(), pa.null()):
        none = pa.chunked_array([], kind)
        assert (irikey.uris(none).type, irikey.keys(none).type) == (pa.string(), pa.binary(16))
        for base in ("http://b/", [], none, pa.array([], kind)):
            assert irikey.uris(none, base=base).num_chunks == 0


def test_the_type_of_an_array_without_chunks_is_checked():
    numbers, texts = pa.chunked_array([], pa.int64()), pa.chunked_array([], pa.string())
    for values in (numbers, pa.chunked_array([[]], pa.int64())):
        with pytest.raises(TypeError, match="^values has the type Int64; expected text or bytes"):
            irikey.uris(values)
    for name in ("base", "charset"):
        with pytest.raises(TypeError, match=f"^{name} has the type Int64; expected text or bytes"):
            irikey.uris(texts, **{name: numbers})


def test_tables_may_have_columns_that_arrow_has_no_type_for():
    numpy, pandas = pytest.importorskip("numpy"), pytest.importorskip("pandas")
    frame = pandas.DataFrame({"url": ["HTTP://h", "x"], "other": [object(), 1]})
    assert pa.table(irikey.canonicalize(frame))["uri"].to_pylist() == ["http://h/", None]
    assert pa.table(irikey.canonicalize(frame, base=irikey.lit("http://b/")))["uri"].to_pylist() == ["http://h/", "http://b/x"]
    for use in (irikey.canonicalize, irikey.batch_function()):
        with pytest.raises(KeyError, match='unknown column "url"; expected one of link, other'):
            use(frame.rename(columns={"url": "link"}))
        with pytest.raises(ValueError, match='2 columns have the name "url"; expected one'):
            use(frame.rename(columns={"other": "url"}))
    with pytest.raises(KeyError, match='unknown column "url"; the data has no columns'):
        irikey.canonicalize(pa.table({}))
    polars = pytest.importorskip("polars")
    for kind in (polars.Int128, polars.UInt128, polars.Object):
        frame = polars.DataFrame(
            {
                "n": polars.Series([1, 2]).cast(kind) if kind != polars.Object else polars.Series([set(), 1], dtype=kind),
                "page": ["http://b/"] * 2,
                "url": ["HTTP://h", "x"],
            }
        )
        assert pa.table(irikey.canonicalize(frame))["uri"].to_pylist() == ["http://h/", None], kind
        assert irikey.batch_function(columns=["uri"], base="page")(frame)["uri"].to_list() == ["http://h/", "http://b/x"]
        with pytest.raises(KeyError, match='unknown column "link"; expected one of n, page, url'):
            irikey.canonicalize(frame, url="link")
    assert pa.record_batch(irikey.canonicalize(numpy.array(["HTTP://h"])))["uri"].to_pylist() == ["http://h/"]


def test_arrays_that_contradict_themselves_are_refused():
    outside = pa.DictionaryArray.from_arrays(pa.array([0, 9]), ["HTTP://h", "x"], safe=False)
    offsets = b"".join(end.to_bytes(8, "little") for end in (0, 2, 1))
    descending = pa.Array.from_buffers(pa.large_string(), 2, [None, pa.py_buffer(offsets), pa.py_buffer(b"ab")])
    for array in (outside, descending):
        for use in (lambda: irikey.uris(array), lambda: irikey.canonicalize(pa.record_batch({"url": array}))):
            with pytest.raises(ValueError, match="out of bounds|[Oo]ffset"):
                use()


def test_columns_with_one_name_are_refused():
    batch = pa.record_batch([pa.array(["http://a/"]), pa.array(["http://b/"]), pa.array([1])], names=["url", "url", "x"])
    for data in (batch, batch.to_struct_array(), pa.Table.from_batches([batch])):
        with pytest.raises(ValueError, match='2 columns have the name "url"; expected one'):
            irikey.canonicalize(data)
    assert pa.record_batch(irikey.canonicalize(batch.rename_columns(["x", "url", "x"])))["uri"].to_pylist() == ["http://b/"]


def test_columns_taken_from_a_batch_equal_those_of_an_imported_stream():
    """Plain columns of a batch are read without an import of the batch; batches of a stream are imported as a whole."""
    texts = ["HTTP://a/", "", None, "http://\u00fc/", "x", "http://b/%7e"] * 30
    others = {"x": pa.array(range(180)), "base": pa.array(["http://base/", None] * 90), "y": pa.array([[1]] * 180)}
    kinds = [
        pa.string(), pa.binary(), pa.large_string(), pa.large_binary(), pa.string_view(), pa.dictionary(pa.int32(), pa.string()),
    ]
    columns = ["uri", "key", "fault", "fault_at", "flags"]
    for kind in kinds:
        batch = pa.record_batch({**others, "url": pa.array(texts, pa.string()).cast(kind)})
        empty = pa.record_batch({**others, "url": pa.array([""] * 180, kind if kind != kinds[-1] else pa.string())})
        for rows in (
            batch, batch.slice(7), batch.slice(3, 20), batch.slice(2, 1), batch.slice(9, 0), empty,
            batch.slice(1).to_struct_array().slice(2),
        ):
            whole = pa.Table.from_batches([pa.RecordBatch.from_struct_array(rows) if isinstance(rows, pa.StructArray) else rows])
            for options in ({}, {"base": "base"}):
                one, other = (irikey.Canonicalizer(columns=columns, **options) for _ in range(2))
                found, expected = pa.table(one.canonicalize(rows)), pa.table(other.canonicalize(whole))
                assert found.equals(expected) and len(found) == len(rows), (kind, len(rows), options)
                assert one.counters == other.counters and one.counters["nulls"] == whole["url"].null_count


def test_a_wrong_number_of_nulls_does_not_change_the_counters():
    offsets, text = (pa.py_buffer(b"".join(end.to_bytes(4, "little") for end in (0, 9, 18)))), pa.py_buffer(b"http://h/http://g/")
    for bits, stated, nulls in [(b"\x03", 2, 0), (b"\x01", -1, 1), (b"\x02", 2, 1)]:
        array = pa.Array.from_buffers(pa.string(), 2, [pa.py_buffer(bits), offsets, text], null_count=stated)
        canonicalizer = irikey.Canonicalizer()
        found = pa.record_batch(canonicalizer.canonicalize(pa.record_batch([array], names=["url"])))["uri"]
        assert found.null_count == nulls == canonicalizer.counters["nulls"] and canonicalizer.counters["rows"] == 2


def shifted(numbers, width, before):
    """Numbers of width bytes in a buffer that begins before bytes after an aligned place."""
    data = b"".join(number.to_bytes(width, "little", signed=True) for number in numbers)
    return pa.py_buffer(b"?" * before + data).slice(before)


def found_in_every_form(array):
    """Canonicalizes an array alone, in batches, and in streams."""
    batch = pa.record_batch([array], names=["url"])
    table = pa.Table.from_batches([batch, batch])
    yield pa.record_batch(irikey.canonicalize(array))["uri"].to_pylist()
    yield irikey.Canonicalizer().array(array).to_pylist()
    yield pa.record_batch(irikey.canonicalize(batch))["uri"].to_pylist()
    # A column that is not looked at, beside one that needs a complete import.
    beside = pa.record_batch([array, array.cast(pa.large_string()).dictionary_encode()], names=["other", "url"])
    yield pa.record_batch(irikey.canonicalize(beside))["uri"].to_pylist()
    yield pa.table(irikey.canonicalize(table))["uri"].to_pylist()[2:]
    reader = irikey.canonicalize(pa.RecordBatchReader.from_batches(table.schema, table.to_batches()))
    yield pa.RecordBatchReader.from_stream(reader).read_all()["uri"].to_pylist()[2:]


def test_buffers_that_are_not_aligned_are_read():
    text = pa.py_buffer(b"http://h/http://g/")
    for before in range(8):
        arrays = [
            pa.Array.from_buffers(kind, 2, [None, shifted((0, 9, 18), width, before), text])
            for kind, width in [(pa.string(), 4), (pa.binary(), 4), (pa.large_string(), 8), (pa.large_binary(), 8)]
        ]
        keys = pa.Array.from_buffers(pa.int32(), 2, [None, shifted((0, 1), 4, before)])
        arrays.append(pa.DictionaryArray.from_arrays(keys, arrays[0]))
        long = "http://h/" + "x" * 20
        view = len(long).to_bytes(4, "little") + long[:4].encode() + bytes(8)
        views = pa.py_buffer(b"?" * before + view + view).slice(before)
        arrays.append(pa.Array.from_buffers(pa.string_view(), 2, [None, views, pa.py_buffer(long.encode())]))
        for array in arrays:
            expected = [long] * 2 if array.type == pa.string_view() else ["http://h/", "http://g/"]
            for place, found in enumerate(found_in_every_form(array)):
                assert found == expected, (before, array.type, place)
    # Other columns of a batch are imported as well, whatever their type.
    words = pa.Array.from_buffers(pa.string(), 2, [None, shifted((0, 9, 18), 4, 1), text])
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), words)
    structs = pa.StructArray.from_arrays([lists], ["inner"])
    batch = pa.record_batch([structs, words.dictionary_encode()], names=["nested", "url"])
    assert pa.table(irikey.canonicalize(pa.Table.from_batches([batch])))["uri"].to_pylist() == ["http://h/", "http://g/"]


def test_parts_of_arrays_that_are_not_aligned_are_read():
    words = ["HTTP://a", "x", None, "http://b/%7e", ""] * 3
    for kind, width in [(pa.string(), 4), (pa.large_binary(), 8)]:
        validity, offsets, text = pa.array(words, pa.string()).cast(kind).buffers()
        numbers = [int.from_bytes(offsets[at : at + width].to_pybytes(), "little") for at in range(0, 16 * width, width)]
        array = pa.Array.from_buffers(kind, 15, [validity, shifted(numbers, width, 1), text])
        runs = pa.RunEndEncodedArray.from_arrays(pa.array([3 * row + 3 for row in range(15)], pa.int32()), array)
        # Arrays without rows may have an offset, and a producer exports those of its slices.
        for rows in (array, array.slice(2), array.slice(4, 3), array.slice(15), array.slice(0, 0), runs, runs.slice(5, 20)):
            expected = irikey.uris([value.as_py() for value in rows])
            batch = pa.record_batch([rows], names=["url"])
            for data in (rows, batch, pa.Table.from_batches([batch]), pa.Table.from_batches([batch.slice(1)])):
                found = pa.table(irikey.canonicalize(data))["uri"].to_pylist()
                assert found == expected[len(expected) - len(data) :], (kind, len(rows), type(data))


def test_arrays_that_are_not_aligned_are_released_after_the_call():
    class Memory(bytearray):
        """Memory that a weak reference can refer to."""

    memory = Memory(b"?" + b"".join(end.to_bytes(4, "little") for end in (0, 9, 18)))
    is_freed = weakref.ref(memory)
    offsets = pa.py_buffer(memory).slice(1)
    array = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"http://h/http://g/")])
    assert all(found == ["http://h/", "http://g/"] for found in found_in_every_form(array))
    unread = pa.record_batch([array, array], names=["url", "other"])
    with pytest.raises(KeyError):
        irikey.canonicalize(unread.to_struct_array(), url="link")
    del memory, offsets, array, unread
    gc.collect()
    assert is_freed() is None


def test_offsets_outside_the_text_are_refused():
    for offsets in [(0, -9, 9), (0, 2_000_000_000, 9)]:
        # pyarrow itself looks at the first offset and the last one.
        for before in (0, 1):
            text = pa.py_buffer(b"http://h/")
            array = pa.Array.from_buffers(pa.string(), 2, [None, shifted(offsets, 4, before), text])
            batch = pa.record_batch([array], names=["url"])
            reader = irikey.canonicalize(pa.RecordBatchReader.from_batches(batch.schema, [batch]))
            calls = [
                lambda: irikey.canonicalize(array),
                lambda: irikey.canonicalize(batch),
                lambda: irikey.canonicalize(batch.slice(1)),
                lambda: irikey.canonicalize(pa.Table.from_batches([batch])),
                lambda: next(iter(irikey.canonicalize(pa.RecordBatchReader.from_batches(batch.schema, [batch])))),
                lambda: pa.RecordBatchReader.from_stream(reader).read_all(),
            ]
            for place, call in enumerate(calls):
                with pytest.raises(ValueError, match="[Oo]ffset"):
                    call()
                    raise AssertionError(f"{offsets} {place}")


def test_a_null_structure_is_a_null_row():
    rows = pa.StructArray.from_arrays([pa.array(["http://h/", "http://g/"])], ["url"], mask=pa.array([False, True]))
    assert pa.record_batch(irikey.canonicalize(rows))["uri"].to_pylist() == ["http://h/", None]


def test_long_text_becomes_several_batches():
    urls = [None if i % 7 == 3 else f"HTTP://h/{i}" for i in range(1000)]
    limit = _irikey._set_text_limit(100)
    try:
        table = pa.table(irikey.canonicalize(pa.record_batch({"url": urls})))
        found = irikey.uris(urls)
    finally:
        _irikey._set_text_limit(limit)
    assert len(table["uri"].chunks) > 50
    assert found == table["uri"].to_pylist() == [url and url.lower() for url in urls]


def test_long_results_of_short_urls_become_several_batches():
    urls, base = [f"x{i}" for i in range(1000)], "http://h/" + "a" * 1000 + "/"
    limit = _irikey._set_text_limit(100_000)
    try:
        for bases in (irikey.lit(base), "base"):
            batch = pa.record_batch({"url": urls, "base": [base] * 1000})
            table = pa.table(irikey.canonicalize(batch, base=bases, recipe="plain", columns=["uri", "url_rules"]))
            assert [len(chunk) < 1000 for chunk in table["uri"].chunks] == [True] * table["uri"].num_chunks
            assert table["uri"].to_pylist() == table["url_rules"].to_pylist() == [base + url for url in urls]
    finally:
        _irikey._set_text_limit(limit)


@pytest.mark.parametrize("text_limit", [1 << 20, None])
def test_signals_are_handled_within_a_batch(text_limit):
    class Interrupted(Exception):
        pass

    def interrupt(*_):
        raise Interrupted

    batch = pa.record_batch({"url": ["HTTP://b\u00fccher.example/%7e\u00e9"] * 5_000_000})
    canonicalizer = irikey.Canonicalizer(columns=["key"])
    limit = _irikey._set_text_limit(text_limit) if text_limit else None
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(Interrupted):
            canonicalizer.canonicalize(batch)
    finally:
        signal.signal(signal.SIGALRM, before)
        if limit:
            _irikey._set_text_limit(limit)
    # The rows of a batch are counted at its end, also if its text makes several batches.
    assert canonicalizer.counters["rows"] == 0


def test_an_interrupted_reader_loses_no_batch():
    class Interrupted(Exception):
        pass

    def interrupt(*_):
        raise Interrupted

    batch, small = (pa.record_batch({"url": ["HTTP://b\u00fccher.example/%7e\u00e9"] * rows}) for rows in (3_000_000, 1))
    reader = irikey.Canonicalizer(columns=["key"]).canonicalize(pa.RecordBatchReader.from_batches(batch.schema, [batch, small]))
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(Interrupted):
            next(reader)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert [len(rows) for rows in reader] == [3_000_000, 1]


READERS = """
import pyarrow as pa, pyarrow.csv, irikey, time

class Slow:  # read by a thread of pyarrow, which needs the interpreter
    closed = False
    left = [b"url\\n"] + [b"HTTP://h/%d\\n" % i * 1000 for i in range(100)]
    def read(self, size=-1):
        time.sleep(0.001)
        return self.left.pop(0) if self.left else b""
    def readable(self): return True
    def close(self): pass

reader = pa.csv.open_csv(pa.PythonFile(Slow(), mode="r"), read_options=pa.csv.ReadOptions(block_size=2048))
"""


def run_and_exit(code):
    """Runs code in a process that ends with the status 7, at once: while an interpreter ends, a thread of pyarrow may abort the
    process, or wait forever for the interpreter."""
    code += "\nimport os; os._exit(7)"
    return subprocess.run([sys.executable, "-c", code], timeout=60, capture_output=True, text=True)


@pytest.mark.parametrize(
    "use",
    [
        "pa.table(irikey.canonicalize(reader))",
        "sum((pa.table(batch) for batch in irikey.canonicalize(reader)), start=[])",
        "irikey.canonicalize(type('T', (), {'__arrow_c_stream__': reader.__arrow_c_stream__, '__len__': lambda self: 1})())",
    ],
)
def test_a_reader_in_python_does_not_deadlock(use):
    use = f"len({use})" if "sum" not in use else "sum(len(batch) for batch in irikey.canonicalize(reader))"
    done = run_and_exit(READERS + f"assert ({use}) == 100_000")
    assert done.returncode == 7, done.stderr


@pytest.mark.parametrize("use", [
    "rows = irikey.canonicalize(reader); next(rows)",
    "rows = pa.RecordBatchReader.from_stream(irikey.canonicalize(reader)); rows.read_next_batch()",
    "rows = irikey.canonicalize(reader).__arrow_c_stream__()",
])
def test_a_reader_in_python_that_is_left_early_does_not_deadlock(use):
    done = run_and_exit(READERS + use + "; del reader, rows")
    assert done.returncode == 7, done.stderr


def test_a_reader_gives_a_reader_with_bounded_memory():
    made = []

    def batches():
        for i in range(50):
            made.append(i)
            yield pa.record_batch({"url": [f"HTTP://h/{i}"]})

    source = pa.RecordBatchReader.from_batches(pa.schema({"url": pa.string()}), batches())
    reader = irikey.canonicalize(source)
    assert isinstance(reader, irikey.Reader) and made == [] and reader.schema.names[0] == "uri"
    found = pa.RecordBatchReader.from_stream(reader)
    assert found.read_next_batch()["uri"].to_pylist() == ["http://h/0"] and len(made) <= 2
    assert found.read_all()["uri"].to_pylist() == [f"http://h/{i}" for i in range(1, 50)]
    with pytest.raises(ValueError, match="read already"):
        pa.table(reader)


@pytest.mark.parametrize("error", [OSError, MemoryError, NotImplementedError, ValueError])
def test_a_failing_reader_raises_its_message_and_class(error):
    def reader(length=None):
        source = pa.RecordBatchReader.from_batches(pa.schema({"url": pa.string()}), batches())
        return (
            type("T", (), {"__arrow_c_stream__": source.__arrow_c_stream__, "__len__": lambda self: length})()
            if length
            else source
        )

    def batches():
        yield pa.record_batch({"url": ["http://h"]})
        raise error("the disk is gone")

    message = "data: the stream cannot return the next batch: .*the disk is gone"
    for use in (
        lambda: list(irikey.canonicalize(reader())),
        lambda: irikey.canonicalize(reader(1)),
        lambda: pa.table(irikey.canonicalize(reader())),
    ):
        with pytest.raises(error, match=message) as caught:
            use()
        # pyarrow has subclasses of its own.
        assert isinstance(caught.value, OSError) == (error is OSError)
    if error is OSError:
        with pytest.raises(OSError) as caught:
            list(irikey.canonicalize(reader()))
        assert caught.value.errno == errno.EIO


def stream_of(data):
    """Returns an object whose only method exports the data as a stream."""
    return type("T", (), {"__arrow_c_stream__": lambda self, schema=None: data.__arrow_c_stream__(schema)})()


def test_streams_that_are_no_tables_tell_why():
    polars = pytest.importorskip("polars")
    with pytest.raises(
        TypeError, match="^data: the stream has no columns, but values of the type .*; pass a table, or an array or list of URLs$"
    ):
        irikey.Canonicalizer().canonicalize(stream_of(polars.Series(["http://h"])))
    wide = polars.DataFrame({"url": ["HTTP://h"], "n": [1]}, schema={"url": polars.String, "n": polars.Int128})
    with pytest.raises(ValueError, match='^data: the type of column "n" cannot be read; drop or cast it: .*_pli128'):
        irikey.Canonicalizer().canonicalize(stream_of(wide))
    # Of a data frame, only the columns that are read are exported.
    assert len(irikey.Canonicalizer().canonicalize(wide)) == 1
    capsule = pa.table({"url": ["http://h"]}).__arrow_c_stream__()
    again = type("T", (), {"__arrow_c_stream__": lambda self, schema=None: capsule, "__len__": lambda self: 1})()
    assert len(irikey.canonicalize(again)) == 1
    with pytest.raises(ValueError, match="^the stream was read already$"):
        irikey.canonicalize(again)


def test_arrow_data_that_was_read_already_is_refused():
    schema, array = pa.array(["http://h/"]).__arrow_c_array__()
    of_batch = pa.record_batch({"url": ["http://h/"]}).__arrow_c_array__()
    pa.DataType._import_from_c_capsule(schema)
    for capsules in ((schema, array), (pa.string().__arrow_c_schema__(), array), of_batch):
        once = type("A", (), {"__arrow_c_array__": lambda self, schema=None: capsules})()
        if capsules is of_batch:
            assert len(irikey.canonicalize(once)) == 1
        for use in (irikey.canonicalize, irikey.Canonicalizer().array):
            with pytest.raises(ValueError, match="^the Arrow data was read already; export it again$"):
                use(once)


@pytest.mark.parametrize("wrong", [{"url": pa.array([3])}, {"page": pa.array(["x"])}, {}], ids=["type", "name", "nothing"])
def test_a_reader_that_breaks_its_schema_raises_an_exception(wrong):
    def batches():
        yield pa.record_batch({"url": ["HTTP://h"], "n": [1]})
        yield pa.record_batch(wrong) if wrong else pa.record_batch([], names=[])

    def reader():
        schema = pa.schema({"url": pa.string(), "n": pa.int64()})
        return irikey.canonicalize(pa.RecordBatchReader.from_batches(schema, batches()))

    results = reader()
    assert next(results).num_rows == 1
    with pytest.raises(ValueError, match="does not have the columns and types"):
        next(results)
    with pytest.raises(ValueError, match="does not have the columns and types"):
        pa.RecordBatchReader.from_stream(reader()).read_all()


@pytest.mark.parametrize("column", ["url", "other"])
def test_a_reader_whose_batches_have_shorter_offsets_raises_an_exception(column):
    # Offsets of 32 bits that are read as offsets of 64 bits reach past their buffer.
    n = 20_000_000
    empty = pa.StringArray.from_buffers(n, pa.py_buffer(bytes(4 * (n + 1))), pa.py_buffer(b""))
    stated = pa.schema([(name, pa.large_string() if name == column else pa.string()) for name in ("url", "other")])
    batch = pa.record_batch([empty, empty], names=["url", "other"])
    with pytest.raises(ValueError, match="does not have the columns and types"):
        list(irikey.canonicalize(pa.RecordBatchReader.from_batches(stated, [batch])))


def test_empty_streams_are_checked():
    schema = pa.schema({"url": pa.int64(), "text": pa.string()})
    for empty in (
        pa.table({"url": pa.array([], pa.int64()), "text": pa.array([], pa.string())}),
        pa.RecordBatchReader.from_batches(schema, []),
    ):
        with pytest.raises(TypeError, match="column \"url\" has the type Int64; expected text or bytes"):
            irikey.canonicalize(empty)
    with pytest.raises(KeyError, match="unknown column"):
        irikey.canonicalize(schema.empty_table(), url="text", base="page")


def test_nulls_are_counted_apart_also_with_a_base_or_a_charset():
    table = pa.table(
        {
            "url": pa.array([b"HTTP://h", None, None, b"x:y"], pa.binary()),
            "page": ["http://a/", "http://a/", None, None],
            "enc": ["utf-8", "klingon", None, "klingon"],
        }
    )
    for options in (
        {"base": "page"}, {"base": irikey.lit("http://b/")}, {"charset": "enc"}, {"base": "page", "charset": "enc"}, {},
    ):
        canonicalizer = irikey.Canonicalizer(**options)
        rows = pa.table(canonicalizer.canonicalize(table)).to_pylist()
        assert rows[1] == rows[2] == dict.fromkeys(rows[1])
        counters = canonicalizer.counters
        faulty = 1 if "charset" in options else 0
        assert (counters["rows"], counters["nulls"], counters["faulty"]) == (4, 2, faulty), options
        assert counters["unchanged"] + counters["changed"] == 2 - faulty and sum(counters["faults"].values()) == faulty


def resident_size():
    """Bytes of memory that the process uses."""
    if not sys.platform.startswith("linux"):
        pytest.skip("reads /proc")
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_buffers_of_long_calls_do_not_remain():
    canonicalizer, length = irikey.Canonicalizer(max_url=64 << 20), 60 << 20
    calls = [
        lambda: canonicalizer.uri("http://h/" + "x" * length),
        lambda: pytest.raises(irikey.Fault, irikey.key, "http://h/" + "x" * length),
        lambda: irikey.explain("x", "http://h/" + "x" * length),
        lambda: canonicalizer.array(["http://h/" + "x" * length]),
        lambda: canonicalizer.array(pa.nulls(10_000_000), "flags"),
    ]
    for place, call in enumerate(calls):
        before = resident_size()
        call()
        assert resident_size() - before < 48 << 20, place


def test_calls_do_not_leak():
    batch, canonicalizer = pa.record_batch({"url": ["HTTP://h/", None, "x"] * 10}), irikey.Canonicalizer()

    def calls(count):
        for _ in range(count):
            pa.record_batch(canonicalizer.canonicalize(batch))
            irikey.uri("HTTP://h")
            irikey.uris(["HTTP://h"])
            pytest.raises(irikey.Fault, irikey.uri, "x")

    calls(1000)
    before = resident_size()
    calls(10_000)
    assert resident_size() - before < 8 << 20


def test_literals_and_canonicalizers_can_be_pickled():
    for literal in (irikey.lit("http://h/"), ("page", irikey.lit("http://h/"))):
        canonicalizer = irikey.Canonicalizer(base=literal, recipe="surt-ia", trim=True)
        again = pickle.loads(pickle.dumps(canonicalizer))
        assert again.configuration == canonicalizer.configuration and again.configuration["base"] == literal


def test_functions_can_be_called_by_a_finalizer_in_the_middle_of_a_call():
    class Cycle:
        def __init__(self):
            self.me = self

        def __del__(self):
            called.append(irikey.surt("http://h/"))

    called, faults, threshold = [], 0, gc.get_threshold()
    gc.disable()
    try:
        for _ in range(20):
            Cycle()
            gc.set_threshold(1)
            gc.enable()
            # Making the exception collects garbage.
            try:
                irikey.key("http://h:99999999/", recipe="surt-ia")
            except irikey.Fault:
                faults += 1
            gc.disable()
    finally:
        gc.set_threshold(*threshold)
        gc.enable()
    gc.collect()
    assert faults == 20 and called == ["h)/"] * 20


def test_all_functions_work_in_many_threads_at_once():
    texts = ["HTTP://h/%7e", "http://b\u00fccher.example/a b", "x", "http://h:99999999/", None] * 20
    batch = pa.record_batch({"url": texts})
    shared = irikey.Canonicalizer(columns=["uri", "key", "fault"])
    lines = "".join(f"{text}\n" for text in texts).encode()

    def fault(function, *arguments, **options):
        try:
            return function(*arguments, **options)
        except irikey.Fault as error:
            return (error.kind, error.component, error.at)

    def work(_):
        found = [
            fault(function, text)
            for function in (irikey.uri, irikey.key, irikey.surt, irikey.iri, irikey.explain)
            for text in texts[:4]
        ]
        found += [fault(irikey.key, text, recipe=recipe) for recipe in ("surt-ia", "+www", "surt-wayback") for text in texts[:4]]
        found += [irikey.uris(texts), irikey.keys(texts, rung="syntax"), str(irikey.compare("HTTP://h", "http://h:80/"))]
        options = [{"rung": rung, "strict": strict} for rung in ("scheme", "syntax") for strict in (False, True)]
        found += [fault(irikey.uri, text, **chosen) for text in texts[:4] for chosen in options]
        found += [pa.table(shared.canonicalize(batch)), pa.table(pickle.loads(pickle.dumps(shared))(batch))]
        found += [pa.table(irikey.read(lines, threads=1).table), shared.counters["rows"] % len(texts)]
        return found

    def read(reader):
        return sum(len(batch) for batch in reader)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        expected = work(0)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for found in pool.map(work, range(24)):
                assert found == expected
            # Threads share one reader, and each batch goes to one of them.
            batches = pa.RecordBatchReader.from_batches(batch.schema, [batch] * 40)
            reader = shared.canonicalize(batches)
            assert sum(pool.map(read, [reader] * 8)) == 40 * len(batch)
    finally:
        sys.setswitchinterval(interval)
    assert shared.counters["rows"] == (25 + 40) * len(batch)


def test_a_row_of_a_long_batch_takes_no_more_time_than_one_of_a_short_batch():
    canonicalizer = irikey.Canonicalizer(columns=["uri"])
    for url in ("abc", "http://a.b", "http://www.example.org/a"):
        short, long = (pa.record_batch({"url": [url] * rows}) for rows in (100, 10_000))
        of_short = min(timeit.repeat(lambda: canonicalizer.canonicalize(short), number=100, repeat=7))
        of_long = min(timeit.repeat(lambda: canonicalizer.canonicalize(long), number=1, repeat=7))
        assert of_long < 4 * of_short, url


def test_a_slow_call_lets_other_threads_run():
    import threading

    batch, ticks = pa.record_batch({"url": ["HTTP://b\u00fccher.example/"] * 300_000}), []
    worker = threading.Thread(target=irikey.canonicalize, args=(batch,))
    worker.start()
    while worker.is_alive():
        ticks.append(time.monotonic())
        time.sleep(0.001)
    assert len(ticks) > 10
