"""`rbm32` and `rbm64`: columns of serialised roaring bitmaps, sets of 32-bit or 64-bit integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lakebed.errors import MissingDependency
from lakebed.merge.aggregates import roaring64
from lakebed.merge.aggregates.blob_union import BlobUnion


def _pyroaring() -> Any:
    try:
        import pyroaring
    except ImportError as missing:
        raise MissingDependency(
            "roaring bitmaps need the package `pyroaring`, which is not installed",
            hint='install it with: pip install "lakebed[sketches]"',
        ) from missing
    return pyroaring


class RoaringBitmap32(BlobUnion):
    """Bitmaps of 32-bit integers in the portable roaring format."""

    name = "rbm32"
    takes = "VARBINARY that holds roaring bitmaps of 32-bit integers"
    content = "roaring bitmap of 32-bit integers in the portable format"

    def union(self, blobs: Sequence[bytes]) -> bytes:
        bitmap = _pyroaring().BitMap
        result = bitmap.union(*map(bitmap.deserialize, blobs))
        result.run_optimize()
        return bytes(result.serialize())


class RoaringBitmap64(BlobUnion):
    """Bitmaps of 64-bit integers in the form of Java's `Roaring64Bitmap`, which is not the portable 64-bit format.

    A bitmap there is a tree from the upper 48 bits of its values to a container of their lower 16 bits; a container
    is joined as a small 32-bit bitmap.
    """

    name = "rbm64"
    takes = "VARBINARY that holds roaring bitmaps of 64-bit integers"
    content = "roaring bitmap of 64-bit integers in the form of Java's Roaring64Bitmap"

    def union(self, blobs: Sequence[bytes]) -> bytes:
        bitmap = _pyroaring().BitMap
        result: dict[bytes, Any] = {}
        for blob in blobs:
            for upper, container in roaring64.read(blob):
                values = bitmap.deserialize(roaring64.as_bitmap32(container))
                if upper in result:
                    result[upper] |= values
                else:
                    result[upper] = values
        containers = []
        for upper in sorted(result):
            result[upper].run_optimize()
            containers.append((upper, roaring64.from_bitmap32(result[upper].serialize())))
        return roaring64.write(containers)
