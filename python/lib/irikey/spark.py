"""irikey on Spark: columns of canonical URIs and keys, and deduplication by a shuffle on 16-byte keys.

    from irikey.spark import canonicalize, dedup, key, uri
    captures = spark.read.parquet("captures")            # columns url and record, the position in the input
    captures.select(uri("url"), key("url"))              # functions for columns
    rows = canonicalize(captures, url="url")             # + uri, key, fault, fault_at, flags
    kept = dedup(rows, order=["record"])                 # one row per key
    register(spark)                                      # SELECT irikey_key(url) FROM captures
    learn(captures, "equivalences.parquet")              # rules about content, for equivalences=

Requires pyspark 4.1 or later, pandas 2.2 and pyarrow in every Python that Spark starts. All functions also work on Spark Connect.
"""

from ._spark_columns import key as key
from ._spark_columns import register as register
from ._spark_columns import surt as surt
from ._spark_columns import uri as uri
from ._spark_dedup import KEEP as KEEP
from ._spark_dedup import anti_join_seen as anti_join_seen
from ._spark_dedup import dedup as dedup
from ._spark_learn import learn as learn
from ._spark_rows import Counters as Counters
from ._spark_rows import canonicalize as canonicalize
