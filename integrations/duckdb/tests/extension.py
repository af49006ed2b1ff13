#!/usr/bin/env python3
"""Loads the extension into the duckdb of this Python and checks the values of its functions.

usage: integrations/duckdb/tests/extension.py irikey.duckdb_extension
"""

import ctypes
import re
import sys
import threading

import duckdb

H = bytes.fromhex("e2f2da591a4c78599d88b070e519744e")  # the key of http://h/


def check(con, query, expected):
    found = con.sql(query).fetchall()
    assert found == expected, f"{query}\n  found    {found}\n  expected {expected}"


def refuse(con, query, message):
    try:
        con.sql(query).fetchall()
    except duckdb.Error as error:
        assert re.search(message, str(error)), f"{query}\n  {error}"
        return
    raise AssertionError(f"{query}: no error")


def values(con):
    check(con, "SELECT irikey_uri('HTTP://h:80'), irikey_key('HTTP://h'), irikey_surt('http://www.h/a')", [("http://h/", H, "h)/a")])
    check(con, "SELECT irikey_uri_from('x', 'http://a/b/c'), irikey_key_from('HTTP://h', NULL)", [("http://a/b/x", H)])
    # A URL that cannot be parsed has the key of its bytes, and no URI.
    check(con, "SELECT irikey_uri('http://h:x/'), irikey_surt('http://h:x/'), octet_length(irikey_key('http://h:x/'))", [(None, None, 16)])
    check(con, "SELECT irikey_uri('a'), irikey_uri(''), irikey_uri('http://h/' || chr(0))", [(None, None, "http://h/%00")])


def nulls(con):
    check(con, "SELECT irikey_uri(NULL), irikey_key(NULL), irikey_surt(NULL), irikey_uri_from(NULL, 'http://h/')", [(None,) * 4])
    table = "(VALUES ('HTTP://h', NULL), (NULL, 'http://a/'), ('x', 'http://a/'), ('x', NULL)) AS t(url, page)"
    check(con, f"SELECT irikey_uri(url), irikey_key(url) = irikey_key('http://h/') FROM {table}",
          [("http://h/", True), (None, None), (None, False), (None, False)])
    check(con, f"SELECT irikey_uri_from(url, page) FROM {table}", [("http://h/",), (None,), ("http://a/x",), (None,)])


def bytes_that_are_not_utf8(con):
    check(con, r"SELECT irikey_uri('http://h/\xFF'::BLOB), irikey_uri_from('\xFF'::BLOB, 'http://h/')", [("http://h/%FF",) * 2])
    check(con, r"SELECT irikey_uri_from('x', 'http://h/\xFF/'::BLOB), irikey_key('HTTP://h'::BLOB)", [("http://h/%FF/x", H)])
    refuse(con, "SELECT irikey_uri(3)", "No function matches")
    refuse(con, "SELECT irikey_uri(['http://h'])", "No function matches")


def many_rows(con):
    """Values that depend on the row show a row that gets the value of another one; inlined and long texts, with nulls."""
    url = "CASE WHEN i % 7 = 3 THEN NULL ELSE 'HTTP://h/' || repeat('x', i % 40) || i END"
    con.sql(f"CREATE OR REPLACE TABLE many AS SELECT i, {url} AS url FROM range(300_000) t(i)")
    check(con, "SELECT count(*), count(url) FROM many WHERE irikey_uri(url) IS DISTINCT FROM lower(url)", [(0, 0)])
    check(con, "SELECT count(DISTINCT irikey_key(url)) = count(url) FROM many", [(True,)])
    check(con, "SELECT length(irikey_uri('http://h/' || repeat('é', 300_000)))", [(9 + 6 * 300_000,)])


def long_values(con):
    """The buffers of a vector with 100 MB of text do not remain."""
    con.sql("CREATE OR REPLACE TABLE long AS SELECT repeat('http://h/a', 100_000) || i AS url FROM range(100) t(i)")
    before = allocated()
    check(con, "SELECT count(irikey_uri(url)) FROM long", [(100,)])
    con.sql("DROP TABLE long")
    assert allocated() - before < 50 << 20, (before, allocated())


def allocated():
    """Bytes that the allocator of the C library, which the extension uses and DuckDB's columns do not, has given out; 0 where
    it has no such figure. Resident memory would include freed memory."""
    mallinfo = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if mallinfo is None:
        return 0
    mallinfo.restype = MallocInfo
    info = mallinfo()
    return info.uordblks + info.hblkhd


class MallocInfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in
                "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]


def threads(con):
    def run():
        values(con.cursor())
        check(con.cursor(), "SELECT count(DISTINCT irikey_key('HTTP://h/' || (i % 100))) FROM range(100_000) t(i)", [(100,)])

    failed = []
    workers = [threading.Thread(target=lambda: _collect(run, failed)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failed, failed


def _collect(run, failed):
    try:
        run()
    except Exception as error:
        failed.append(error)


def main(extension):
    con = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    con.load_extension(extension)
    tests = [values, nulls, bytes_that_are_not_utf8, many_rows, long_values, threads]
    for test in tests:
        test(con)
    print(f"duckdb {duckdb.__version__}: {len(tests)} passed, 0 failed")


if __name__ == "__main__":
    main(*sys.argv[1:])
