"""Tables of other systems in SQL: what `CREATE TABLE ... WITH ('connector' = '...')` may say, and what is kept of it.

A definition lives in memory, as long as the lake that it was given to: no file ever holds a password. What a source or
sink does when a pipeline runs is in `lakebed.connectors`; those whose rows a plain SELECT reads are read here.
"""
