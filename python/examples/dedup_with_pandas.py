"""pandas: the data frame is passed as Arrow data, and the result converted by pyarrow."""

import pandas as pd
import pyarrow as pa

import irikey

captures = pd.DataFrame({"url": ["HTTP://Example.org:80/a", "http://example.org/a", "http://h:x/", None]})
answer = pa.table(irikey.canonicalize(captures)).to_pandas()
rows = captures.join(answer)
kept = rows[rows["fault"].isna() & rows["key"].notna()].drop_duplicates("key")
assert kept["uri"].tolist() == ["http://example.org/a"], kept
