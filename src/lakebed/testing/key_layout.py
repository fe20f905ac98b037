"""Where the keys of a table lie: bucket by bucket from the data files, and as the HASH index files have it.

For tests of dynamic buckets: no key may be in two buckets, and the index must know every key of its bucket.
"""

from __future__ import annotations

from collections import defaultdict

import pyarrow as pa

from lakebed.definition.context import TableContext
from lakebed.definition.partition_spec import key_hashes
from lakebed.metadata.hash_index import HashIndexStore, hash_entries
from lakebed.read.plan import plan_scan
from lakebed.read.reader import SplitReader
from lakebed.records import dataclass
from lakebed.table.table import Table

Bucket = tuple[bytes, int]


@dataclass(frozen=True, slots=True)
class KeyLayout:
    """Hashes of keys by bucket: of the rows that a read shows, and of the index."""

    rows: dict[Bucket, set[int]]
    index: dict[Bucket, set[int]]

    @staticmethod
    def of(table: Table) -> KeyLayout:
        """The layout at the latest snapshot."""
        context = table._opened.current()
        return KeyLayout(_from_rows(context), _from_index(context))

    def check(self) -> None:
        """Fails if a key is in two buckets of a partition, or in a bucket whose index does not know it."""
        for layout in (self.rows, self.index):
            bucket_of: dict[tuple[bytes, int], int] = {}
            for (partition, bucket), hashes in layout.items():
                for key in hashes:
                    other = bucket_of.setdefault((partition, key), bucket)
                    assert other == bucket, f"key hash {key} is in buckets {other} and {bucket}"
        for place, hashes in self.rows.items():
            missing = hashes - self.index.get(place, set())
            assert not missing, f"bucket {place[1]}: the index lacks {sorted(missing)[:5]}"


def _from_rows(context: TableContext) -> dict[Bucket, set[int]]:
    found: dict[Bucket, set[int]] = defaultdict(set)
    snapshot = context.stores.snapshots.latest()
    if snapshot is not None:
        reader = SplitReader(context, context.schema.fields, None)
        for split in plan_scan(context, snapshot, None).splits:
            for batch in reader.read(split):
                rows = pa.RecordBatch.from_arrays(batch.columns, schema=batch.schema)
                found[split.partition, split.bucket].update(key_hashes(context, rows).tolist())
    return dict(found)


def _from_index(context: TableContext) -> dict[Bucket, set[int]]:
    store = HashIndexStore(context.fileio, context.paths)
    found: dict[Bucket, set[int]] = {}
    for partition, entries in hash_entries(context.stores, context.stores.snapshots.latest()).items():
        for bucket, entry in entries.items():
            hashes = store.read(entry).tolist()
            assert len(set(hashes)) == len(hashes), f"bucket {bucket}: the index holds a hash twice"
            found[partition, bucket] = set(hashes)
    return found
