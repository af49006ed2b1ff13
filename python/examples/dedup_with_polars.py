"""Polars: expressions, also in lazy and streaming queries."""

import polars as pl

import irikey
import irikey.polars

captures = pl.LazyFrame({"url": ["HTTP://Example.org:80/a", "http://example.org/a", "http://h:x/", None]})
url = pl.col("url").irikey
kept = (
    captures.with_columns(url.uri().alias("uri"), url.key().alias("key"))
    .filter(pl.col("uri").is_not_null())
    .unique("key", keep="first")
)
assert kept.collect(engine="streaming")["uri"].to_list() == ["http://example.org/a"]

# Faults and flags are columns of the function for tables.
rows = pl.DataFrame(irikey.canonicalize(captures.collect(), columns=["fault", "flags"]))
assert rows["fault"].to_list() == [None, None, "port", None]
