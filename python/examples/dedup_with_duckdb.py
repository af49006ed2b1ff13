"""DuckDB: functions for SQL."""

import duckdb

import irikey
import irikey.duckdb

con = duckdb.connect()
irikey.duckdb.register(con)
con.execute("""
    CREATE TABLE captures AS SELECT * FROM (
        VALUES (1, 'HTTP://Example.org:80/a'), (2, 'http://example.org/a'), (3, 'http://h:x/')
    ) t(id, url)
""")
kept = con.sql("""
    SELECT irikey_uri(min_by(url, id)) AS uri, count(*) AS copies FROM captures
    WHERE irikey_uri(url) IS NOT NULL GROUP BY irikey_key(url)
""").fetchall()
assert kept == [("http://example.org/a", 2)], kept

# Faults and flags are columns of the function for tables.
faults = con.sql("SELECT * FROM captures ORDER BY id").to_arrow_table()
rows = irikey.canonicalize(faults, columns=["fault"])
assert con.sql("SELECT fault FROM rows WHERE fault IS NOT NULL").fetchall() == [("port",)]
