"""Ray Data: a function for map_batches."""

import ray

import irikey

ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
captures = ray.data.from_items([{"url": "HTTP://Example.org:80/a"}, {"url": "http://example.org/a"}, {"url": "http://h:x/"}])
found = captures.map_batches(irikey.batch_function(columns=["uri", "fault"]), batch_format="pyarrow").take_all()
assert sorted(row["uri"] or "" for row in found) == ["", "http://example.org/a", "http://example.org/a"], found
