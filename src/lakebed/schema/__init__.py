"""What a table looks like over time: its columns, how they may change, and how old files are read with new columns.

`table_schema` is one version, `store` the versions on disk, `changes` the way from one to the next, `evolution` the way
from a file's version to the wanted one, `casts` the conversions in between. Nothing here opens data files or knows
snapshots.
"""
