"""Polars: data frames, and an expression with map_batches."""

import polars as pl

import irikey

captures = pl.DataFrame({"url": ["HTTP://Example.org:80/a", "http://example.org/a", "http://h:x/", None]})
answer = pl.DataFrame(irikey.canonicalize(captures))
kept = captures.hstack(answer).filter(pl.col("fault").is_null() & pl.col("key").is_not_null()).unique("key", keep="first")
assert kept["uri"].to_list() == ["http://example.org/a"], kept

canonicalizer = irikey.Canonicalizer(columns=["uri"])


def uri(urls: pl.Series) -> pl.Series:
    return pl.DataFrame(canonicalizer.canonicalize(urls.rename("url").to_frame()))["uri"]


found = captures.lazy().with_columns(pl.col("url").map_batches(uri, return_dtype=pl.String).alias("uri")).collect()
assert found["uri"].to_list() == ["http://example.org/a", "http://example.org/a", None, None], found
