"""Ray Data: canonical URIs with map_batches."""

import pyarrow as pa
import ray

import irikey

ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
canonicalizer = irikey.Canonicalizer(columns=["uri", "fault"], types="spark")


def rows(batch: pa.Table) -> pa.Table:
    answer = pa.table(canonicalizer.canonicalize(batch))
    return batch.append_column("uri", answer["uri"]).append_column("fault", answer["fault"])


captures = ray.data.from_items([{"url": "HTTP://Example.org:80/a"}, {"url": "http://example.org/a"}, {"url": "http://h:x/"}])
found = captures.map_batches(rows, batch_format="pyarrow").take_all()
assert sorted(row["uri"] or "" for row in found) == ["", "http://example.org/a", "http://example.org/a"], found
