"""Functions for single references."""

import array
import subprocess
import sys

import pyarrow as pa
import pytest

import irikey


def test_texts_and_keys():
    assert irikey.uri("HTTP://B\u00fccher.Example:80/a/../%7Eb") == "http://xn--bcher-kva.example/~b"
    assert irikey.uri(b"http://h/\xff") == "http://h/%FF"
    assert irikey.uri("../x", "http://h/a/b/c") == "http://h/a/x"
    assert irikey.uri("HTTP://h:80", rung="syntax") == "http://h:80"
    assert irikey.iri("http://xn--bcher-kva.example/%C3%BC") == "http://b\u00fccher.example/\u00fc"
    assert irikey.key("http://h") == irikey.key("HTTP://H:80/") and len(irikey.key("http://h")) == 16
    assert irikey.key("http://h/", key_hash="blake3") != irikey.key("http://h/")
    assert irikey.surt("http://www.Example.org/A?b") == "org,example)/a?b"
    assert irikey.resolve("http://a/b/c/d;p?q", "../g") == "http://a/b/g"
    # RFC 3986 section 5.2.2 takes the path of the base as it is.
    assert irikey.resolve("x:/a/b/../c", "?q") == "x:/a/b/../c?q" and irikey.resolve("x://h/a/..", "g") == "x://h/a/g"


def test_recipes_have_the_limit_of_urls():
    url = "http://h/" + "a" * (1 << 20)
    for call in (irikey.key, irikey.uri):
        with pytest.raises(irikey.Fault) as error:
            call(url, recipe="w3lib")
        assert error.value.kind == "too-long"
        call(url[:-9], recipe="w3lib")
    assert irikey.keys([url], recipe="w3lib") == [None]


def test_a_canonicalizer_has_the_keys_of_its_recipe():
    urls = [
        "http://www.h/A?b&a", "HTTP://h:80", "http://h/a b", "http://h:99999999/", "http://[x/", "a", "//h/", "", "mailto:x",
        b"http://h/\xff",
    ]
    refused = 0
    for recipe in ("surt-ia", "surt-wayback", "crawler-commons", "w3lib", "+www"):
        for columns in (None, ["uri"], ["key"], ["url_rules"]):
            canonicalizer = irikey.Canonicalizer(recipe=recipe, columns=columns)
            for url in urls:
                expected = irikey.keys([url], recipe=recipe)[0]
                if expected is not None:
                    assert canonicalizer.key(url) == expected, (recipe, columns, url)
                    continue
                refused += 1
                with pytest.raises(irikey.Fault):
                    canonicalizer.key(url)
            assert canonicalizer.uri(urls[0]) == irikey.uri(urls[0]) and canonicalizer.counters["rows"] == 0
    assert refused > 20
    url, options = "http://www.h/A", {"recipe": "surt-ia", "key_hash": "blake3"}
    assert (
        irikey.Canonicalizer(columns=["uri"], **options).key(url)
        == irikey.key(url, **options)
        != irikey.key(url, key_hash="blake3")
    )
    based = irikey.Canonicalizer(recipe="surt-ia", base="page")
    assert based.key("x", "http://www.h/a") == irikey.key("http://h/x", recipe="surt-ia")
    with pytest.raises(irikey.Fault) as caught:
        irikey.Canonicalizer(recipe="w3lib").key("http://[x/")
    with pytest.raises(irikey.Fault) as expected:
        irikey.key("http://[x/", recipe="w3lib")
    assert caught.value.kind == expected.value.kind


def test_the_text_of_a_key_is_that_of_the_function():
    for recipe in (None, "surt-ia", "w3lib"):
        for columns in (None, ["uri"], ["key"]):
            canonicalizer = irikey.Canonicalizer(recipe=recipe, columns=columns)
            for reference, base in (("HTTP://www.h/A?b&a", None), ("x", "http://www.h/a"), (b"http://h/\xff", None)):
                assert canonicalizer.key_text(reference, base) == irikey.uri(reference, base, recipe=recipe), (recipe, reference)
            with pytest.raises(irikey.Fault):
                canonicalizer.key_text("http://h:x/")
    # The URI is a column of its own.
    assert irikey.Canonicalizer(recipe="surt-ia").uri("http://www.h/A") == "http://www.h/A"


def test_single_references_take_the_options_of_a_policy():
    for function in (irikey.uri, irikey.key, irikey.iri):
        assert function("h.example/a", assume_scheme="https") == function("https://h.example/a")
        assert function("http://h/a#b", drop_fragment=True) == function("http://h/a")
        assert function("x", "http://h/", trim=True) == function("http://h/x")
        assert function("http://h/?\u044f", query_charset="windows-1251") == function(b"http://h/?%FF")
        with pytest.raises(irikey.Fault, match="max_url="):
            function("http://h/", max_url=3)
        for key_hash in ("xxh3", "blake3"):
            assert (function("http://h/a", key_hash=key_hash) == function("http://h/a")) == (
                key_hash == "xxh3" or function is not irikey.key
            )
        with pytest.raises(ValueError, match='key_hash is "xxh3" or "blake3"'):
            function("http://h/", key_hash="md5")
        for option in ("nope", "columns", "charset", "types", *(["equivalences"] if function is irikey.iri else [])):
            with pytest.raises(TypeError, match=f"unexpected keyword argument '{option}'"):
                function("http://h/", **{option: "x"})
    options = {"assume_scheme": "https", "recipe": "surt-ia", "drop_fragment": True}
    assert [irikey.uri("h.example/a#b", **options)] == irikey.uris(["h.example/a#b"], **options)
    for more in ({}, {"key_hash": "blake3"}, {"strict": True}, {"rung": "syntax"}):
        assert [irikey.key("h.example/a#b", **options, **more)] == irikey.keys(["h.example/a#b"], **options, **more), more
    # The options that a message advises exist.
    for function in (irikey.uri, irikey.key, irikey.iri):
        with pytest.raises(irikey.Fault, match="needs a base .base=.; a host without a scheme needs assume_scheme=$"):
            function("h.example/a")
    for function in (irikey.explain, lambda text: irikey.compare(text, "http://h")):
        with pytest.raises(irikey.Fault, match="needs a base .base=.; a host without a scheme needs one, such as https:$"):
            function("h.example/a")


def test_recipes_of_single_references_and_of_arrays_agree():
    def found(function, *arguments, **options):
        try:
            return function(*arguments, **options)
        except irikey.Fault:
            return None

    compared = 0
    for reference in ("a b", "//h:80/x", "1:2", "x", "", "?q", "http://h:x/", "HTTP://www.h:80/A?b", "mailto:x"):
        for base in (None, "http://www.h/a/../b", "mailto:x"):
            for recipe in ("plain", "surt-ia", "w3lib", "crawler-commons"):
                for rung in ("scheme", "syntax", "simple"):
                    for strict in (False, True):
                        options = {"recipe": recipe, "rung": rung, "strict": strict}
                        for one, several in ((irikey.uri, irikey.uris), (irikey.key, irikey.keys)):
                            call = (one.__name__, reference, base, options)
                            assert [found(one, reference, base, **options)] == several([reference], base, **options), call
                            compared += 1
    assert compared == 1296
    # A base that is none raises an exception, as in arrays.
    for base in ("", "x"):
        with pytest.raises(irikey.Fault):
            irikey.uri("x", base, recipe="plain")
    with pytest.raises(ValueError, match="unknown rung"):
        irikey.uri("http://h", recipe="plain", rung="nonsense")


def test_surrogates_of_a_text_are_bytes():
    numpy, pandas = pytest.importorskip("numpy"), pytest.importorskip("pandas")
    # As the command reads JSON: the three bytes of a lone surrogate. Those of surrogateescape are one byte each.
    texts = ["http://h/\ud800", "http://h/\udc7f\ud7ff\udfff", "http://h/\udc80\udcbf\udcc0\udcff", "http://\u00e9/\u00ed\udcff"]
    uris = ["http://h/%ED%A0%80", "http://h/%ED%B1%BF%ED%9F%BF%ED%BF%BF", "http://h/%80%BF%C0%FF", "http://xn--9ca/%C3%AD%FF"]
    assert (
        [irikey.uri(text) for text in texts]
        == uris
        == irikey.uris(texts)
        == irikey.uris(numpy.array(texts, dtype=object)).tolist()
    )
    assert irikey.keys(texts) == irikey.keys(uris)
    assert irikey.Flags(pa.table(irikey.canonicalize(texts))["flags"][0].as_py()) == irikey.Flags.NOT_UTF8
    series = pandas.Series([*texts, None, b"http://h/\xff", float("nan")], dtype=object, name="url")
    assert (
        irikey.uris(series).tolist() == [*uris, None, "http://h/%FF", None]
        and irikey.uris(pandas.Index(series)).tolist()[:4] == uris
    )
    frame = series.to_frame().assign(page="http://b/")
    for options in ({}, {"base": "page"}):
        assert pa.table(irikey.canonicalize(frame, **options))["uri"].to_pylist() == [*uris, None, "http://h/%FF", None]
    assert irikey.uris(["x"], base=texts[0] + "/") == [irikey.uri("x", texts[0] + "/")] == [uris[0] + "/x"]


def test_comparisons_are_those_of_the_command():
    pairs = [("x", "x"), ("x", "y"), ("", ""), ("a b", "a b"), ("http://h:x", "http://h:x"), ("http://h", "HTTP://h:80/")]
    for a, b in pairs:
        for options, flags in (({}, []), ({"strict": True}, ["--strict"]), ({"base": "http://b/"}, ["--base", "http://b/"])):
            command = [sys.executable, "-m", "irikey", "compare", *flags, "--", a, b]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode == 2:
                with pytest.raises(irikey.Fault):
                    irikey.compare(a, b, **options)
                continue
            found = irikey.compare(a, b, **options)
            assert done.stdout.split()[-1] == found.rung if found else done.returncode == 1, (a, b, options)
    # Without a base, these have no URIs.
    same = irikey.compare("a b", b"a b")
    assert (same.rung, same.a, same.b) == ("simple", "a b", "a b")


def test_rungs():
    assert irikey.compare("http://h/", "http://h/") == "simple"
    assert irikey.compare("http://h/%7e", "http://h/~") == "syntax"
    assert irikey.compare("http://h", "http://h/") == "scheme"
    assert not irikey.compare("http://h/a", "http://h/b")


def test_explain():
    explained = irikey.explain("HTTP://h:80/a b")
    assert explained["uri"] == "http://h/a%20b" and explained["flags"] == ["excluded"]
    assert explained["rungs"]["scheme"]["key"] == irikey.key("HTTP://h:80/a b")
    assert explained["components"]["host"] == "h" and explained["browser"] == "http://h/a%20b"
    assert irikey.explain("http:x", "http://h/a/")["browser"] == "http://h/a/x"
    assert irikey.explain("\\\\g", "http://h/a/")["browser"] == "http://g/"
    # The IRI of a URI may mislead although the URI does not.
    table = pa.table(irikey.canonicalize(["http://h/%D7%90b"], columns=["spoofing_flags"]))
    assert irikey.explain("http://h/%D7%90b")["spoofing_flags"] == ["bidi-structure"]
    assert table["spoofing_flags"].to_pylist() == [irikey.SpoofingFlags.BIDI_STRUCTURE]


def test_faults():
    with pytest.raises(irikey.Fault, match="port") as caught:
        irikey.uri("http://h:x/")
    assert (caught.value.kind, caught.value.component, caught.value.at) == ("port", "port", 9)
    # In bytes of UTF-8.
    for url in ("http://\u00fc:x/", "http://\u00fc:x/".encode()):
        with pytest.raises(irikey.Fault) as caught:
            irikey.uri(url)
        assert caught.value.at == 10
    assert issubclass(irikey.Fault, ValueError)
    for invalid in [lambda: irikey.uri("x"), lambda: irikey.uri("http://h/a b", strict=True), lambda: irikey.uri("x", "y")]:
        with pytest.raises(irikey.Fault):
            invalid()
    with pytest.raises(TypeError, match="str or bytes"):
        irikey.uri(7)
    for invalid in [lambda: irikey.uri("http://h", rung="x"), lambda: irikey.surt("http://h", "x")]:
        with pytest.raises(ValueError):
            invalid()


def test_references_in_other_objects_of_bytes_are_read_as_bytes():
    url, base = b"HTTP://h/\xff%7e", b"http://b/\xe9/"
    for kind in (bytearray, memoryview, lambda data: memoryview(bytearray(data[::-1]))[::-1]):
        for function in (irikey.uri, irikey.key, irikey.iri, irikey.explain, irikey.surt):
            assert function(kind(url)) == function(url)
        assert irikey.uri(kind(b"x"), kind(base)) == irikey.uri("x", base) == "http://b/%E9/x"
        assert irikey.resolve(kind(base), kind(b"x")) == irikey.resolve(base, "x")
        assert irikey.compare(kind(url), url) == "simple"
        expected = irikey.uris([url, "x"], base=base)
        assert irikey.uris([kind(url), "x"], base=kind(base)) == irikey.uris((kind(url), "x"), base=[kind(base)] * 2) == expected
        assert irikey.uris([kind(b"http://h/\xe9")], charset="latin1") == ["http://h/%C3%A9"]
        assert irikey.read(kind(b"HTTP://h\n")).counts["changed"] == 1
    view = memoryview(url)
    view.release()
    with pytest.raises(ValueError, match="released"):
        irikey.uri(view)
    # Other objects with buffers are no text.
    numpy = pytest.importorskip("numpy")
    for other in (array.array("b", url[:4]), numpy.float32("nan"), numpy.array([104], "u1")):
        with pytest.raises(TypeError, match=f"found {type(other).__name__}"):
            irikey.uri(other)


def test_strict_and_base_apply_to_every_function():
    for function in (
        irikey.uri, irikey.key, irikey.iri, irikey.explain, lambda *a, **o: irikey.compare(a[0], "http://h/a", *a[1:], **o),
    ):
        for found in (function("http://h/a b"), function("x", "http://h/"), function("x", b"http://h/")):
            assert found is not None
        for wrong in (lambda: function("http://h/a b", strict=True), lambda: function("x")):
            with pytest.raises(irikey.Fault):
                wrong()
    assert irikey.compare("../x", "http://h/x", "http://h/a/b") == "simple"
    assert irikey.explain("x", "http://h/a")["uri"] == irikey.uri("x", "http://h/a") == "http://h/x"
    # Escaped dots of a reference are dot segments.
    assert irikey.compare("%2e", ".", "http://H:80") == "simple"
    assert irikey.explain("%2e", "http://H:80")["rungs"]["simple"]["key"] == irikey.key("%2e", "http://H:80", rung="simple")
    assert irikey.uri("x", "http://www.h/a", recipe="surt-ia") == "h)/x"
    # A recipe reads the URI of a relative reference, as for rows.
    for reference in ("%7Ea", "//h:80/x", "./b c"):
        for recipe in ("plain", "surt-ia", "surt-wayback", "w3lib"):
            options = {"base": "http://www.h/a/", "recipe": recipe}
            assert [irikey.uri(reference, **options)] == irikey.uris([reference], **options), (reference, recipe)
            assert [irikey.key(reference, **options)] == irikey.keys([reference], **options), (reference, recipe)
    assert irikey.uri("%7Ea", "http://h/", recipe="plain") == "http://h/~a"
    assert (
        irikey.key("x", "http://www.h/a", recipe="surt-ia")
        == irikey.key("http://h/x", recipe="surt-ia")
        != irikey.key("x", "http://h/a")
    )
