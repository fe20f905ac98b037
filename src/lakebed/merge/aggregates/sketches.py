"""`hll_sketch` and `theta_sketch`: columns of Apache DataSketches, for approximate counts of distinct things."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lakebed.errors import MissingDependency
from lakebed.merge.aggregates.blob_union import BlobUnion

_THETA_LG_ENTRIES = 12
"""Log2 of the entries a union of theta sketches keeps: the library's default, which Java uses."""


def _datasketches() -> Any:
    try:
        import datasketches
    except ImportError as missing:
        raise MissingDependency(
            "sketches need the package `datasketches`, which is not installed",
            hint='install it with: pip install "lakebed[sketches]"',
        ) from missing
    return datasketches


class HllSketch(BlobUnion):
    """HyperLogLog sketches; the union is in the compact form with four bits per register, as Java writes it."""

    name = "hll_sketch"
    takes = "VARBINARY that holds HyperLogLog sketches of Apache DataSketches"
    content = "HyperLogLog sketch of Apache DataSketches"

    def union(self, blobs: Sequence[bytes]) -> bytes:
        library = _datasketches()
        first, *others = map(library.hll_sketch.deserialize, blobs)
        # Two at a time, for the precision of a union is that of the sketch it begins with: here the newer one.
        for sketch in others:
            union = library.hll_union(sketch.lg_config_k)
            union.update(sketch)
            union.update(first)
            first = union.get_result(library.tgt_hll_type.HLL_4)
        return bytes(first.serialize_compact())


class ThetaSketch(BlobUnion):
    """Theta sketches; the union is compact and ordered."""

    name = "theta_sketch"
    takes = "VARBINARY that holds theta sketches of Apache DataSketches"
    content = "theta sketch of Apache DataSketches"

    def union(self, blobs: Sequence[bytes]) -> bytes:
        library = _datasketches()
        union = library.theta_union(_THETA_LG_ENTRIES)
        for blob in blobs:
            union.update(library.compact_theta_sketch.deserialize(blob))
        return bytes(union.get_result().serialize())
