"""DuckDB: canonical URIs of the result of a query, joined back; and a vectorized SQL function."""

import duckdb
import pyarrow as pa

import irikey

database = duckdb.connect()
database.execute("CREATE TABLE captures AS SELECT * FROM (VALUES (1, 'HTTP://Example.org:80/a'), (2, 'http://example.org/a'), (3, 'http://h:x/')) t(id, url)")

# SQL reads the table `rows` by the name of the variable.
captures = database.sql("SELECT * FROM captures ORDER BY id").to_arrow_table()
answer = pa.table(irikey.canonicalize(captures))
rows = captures
for name in ("uri", "key", "fault"):
    rows = rows.append_column(name, answer[name])
kept = database.sql("SELECT min_by(url, id) AS first, count(*) AS copies FROM rows WHERE fault IS NULL GROUP BY key").fetchall()
assert kept == [("HTTP://Example.org:80/a", 2)], kept

# A vectorized function is called with thousands of values at a time.
keys = irikey.Canonicalizer(columns=["uri"])


def uri(urls: pa.lib.ChunkedArray) -> pa.lib.Array:
    return pa.table(keys.canonicalize(pa.table({"url": urls})))["uri"].combine_chunks()


database.create_function("uri", uri, ["VARCHAR"], "VARCHAR", type="arrow", null_handling="special")
found = database.sql("SELECT uri(url) FROM captures ORDER BY id").fetchall()
assert found == [("http://example.org/a",), ("http://example.org/a",), (None,)], found
