"""The serialised form of Java's `Roaring64Bitmap`: what `rbm64` columns hold.

    0 for the empty bitmap, else 1
    int64: number of containers
    a radix tree over the upper 6 bytes of the values, nodes before their children
        node: type, int16 number of children, length of the common prefix, the prefix, then by type
            0 (up to 4 children), 1 (up to 16): the children's bytes, each group of 4 or 8 back to front
            2 (up to 48): for each of 256 bytes the index of its child, or 255, each group of 8 back to front
            3 (up to 256): a bit for each byte that has a child
            4 (leaf): 6 bytes of key, most significant first; int64 index of its container
    int32: number of container lists, upper 32 bits of a container's index; for each 0xFE, int32 its length, and
        for each container 0 (none), or 1, type (0 runs, 1 bits, 2 array), int32 cardinality and the content
    int64: number of containers; int32, int32: list and place of the last container

Integers are little endian where nothing else is said. The content of containers is that of the portable 32-bit format,
so a container alone can be dressed as such a bitmap. This file knows bytes only; it joins nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from lakebed.records import dataclass

_NODE4, _NODE16, _NODE48, _NODE256, _LEAF = range(5)
_BODY_BYTES = {_NODE4: 4, _NODE16: 16, _NODE48: 256, _NODE256: 32, _LEAF: 14}
_RUNS, _BITS, _ARRAY = range(3)
_KEY_BYTES = 6
_BITS_BYTES = 8192
_MAX_ARRAY_CARDINALITY = 4096
_LIST_MARK = 0xFE

# A 32-bit bitmap with the single container 0: without runs cookie, size, key, cardinality - 1, offset; with runs
# cookie, flags, key, cardinality - 1.
_PLAIN_HEADER, _RUN_HEADER = struct.Struct("<IIHHI"), struct.Struct("<IBHH")
_PLAIN_COOKIE, _RUN_COOKIE = 12346, 12347


@dataclass(frozen=True, slots=True)
class Container:
    """Up to 65536 numbers of 16 bits."""

    kind: int
    cardinality: int
    content: bytes


class _Reader:
    """Reads numbers and bytes one after the other; ValueError at the end of the data."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        end = self._at + size
        if size < 0 or end > len(self._data):
            raise ValueError(f"it ends after {len(self._data)} bytes, {end} are needed")
        part = self._data[self._at : end]
        self._at = end
        return part

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little", signed=size > 1)


def read(data: bytes) -> list[tuple[bytes, Container]]:
    """Keys (the upper 6 bytes) and their containers, by ascending key. ValueError for what can not be right."""
    reader = _Reader(data)
    tag = reader.number(1)
    if tag == 0:
        return []
    if tag != 1:
        raise ValueError(f"it begins with {tag} instead of 0 or 1")
    leaves = _read_leaves(reader)
    lists = [_read_list(reader) for _ in range(reader.number(4))]
    result = []
    for key, place in leaves:
        major, minor = place >> 32, place & 0xFFFFFFFF
        container = lists[major][minor] if 0 <= major < len(lists) and minor < len(lists[major]) else None
        if container is None:
            raise ValueError(f"container {place} is missing")
        result.append((key, container))
    return result


def _read_leaves(reader: _Reader) -> list[tuple[bytes, int]]:
    """The leaves of the tree in order. Nodes come before their children, so the tree itself can be passed over."""
    leaves: list[tuple[bytes, int]] = []
    remaining = reader.number(8)
    while remaining > 0:
        kind = reader.number(1)
        reader.take(2)
        reader.take(reader.number(1))
        if kind not in _BODY_BYTES:
            raise ValueError(f"a node has type {kind}")
        body = reader.take(_BODY_BYTES[kind])
        if kind == _LEAF:
            leaves.append((body[:_KEY_BYTES], int.from_bytes(body[_KEY_BYTES:], "little")))
            remaining -= 1
    return leaves


def _read_list(reader: _Reader) -> list[Container | None]:
    reader.take(1)
    return [_read_container(reader) if reader.number(1) else None for _ in range(reader.number(4))]


def _read_container(reader: _Reader) -> Container:
    kind, cardinality = reader.number(1), reader.number(4)
    if kind == _RUNS:
        head = reader.take(2)
        return Container(kind, cardinality, head + reader.take(4 * int.from_bytes(head, "little")))
    if kind == _BITS:
        return Container(kind, cardinality, reader.take(_BITS_BYTES))
    if kind == _ARRAY:
        return Container(kind, cardinality, reader.take(2 * cardinality))
    raise ValueError(f"a container has type {kind}")


def write(containers: Sequence[tuple[bytes, Container]]) -> bytes:
    """The serialised bitmap. REQUIRES: keys ascend."""
    if not containers:
        return b"\0"
    out = bytearray(b"\1")
    out += struct.pack("<q", len(containers))
    _write_tree(out, [key for key, _ in containers], 0, 0)
    out += struct.pack("<iBi", 1, _LIST_MARK, len(containers))
    for _, container in containers:
        out += struct.pack("<BBi", 1, container.kind, container.cardinality)
        out += container.content
    out += struct.pack("<qii", len(containers), 0, len(containers) - 1)
    return bytes(out)


def _write_tree(out: bytearray, keys: Sequence[bytes], depth: int, index: int) -> None:
    """The subtree of these keys, which agree before `depth`; `index` is that of the first one's container."""
    if len(keys) == 1:
        out += struct.pack("<BhB", _LEAF, 0, 0) + keys[0] + struct.pack("<q", index)
        return
    shared = next(place for place in range(depth, _KEY_BYTES) if keys[0][place] != keys[-1][place])
    starts = [place for place, key in enumerate(keys) if not place or key[shared] != keys[place - 1][shared]]
    branches = bytes(keys[place][shared] for place in starts)
    kind, body = _branch_body(branches)
    out += struct.pack("<BhB", kind, len(branches), shared - depth) + keys[0][depth:shared] + body
    for start, end in zip(starts, [*starts[1:], len(keys)], strict=True):
        _write_tree(out, keys[start:end], shared + 1, index + start)


def _branch_body(branches: bytes) -> tuple[int, bytes]:
    if len(branches) <= 4:
        return _NODE4, branches.ljust(4, b"\0")[::-1]
    if len(branches) <= 16:
        return _NODE16, _eights_reversed(branches.ljust(16, b"\0"))
    if len(branches) <= 48:
        table = bytearray(b"\xff" * 256)
        for index, branch in enumerate(branches):
            table[branch] = index
        return _NODE48, _eights_reversed(bytes(table))
    bits = 0
    for branch in branches:
        bits |= 1 << branch
    return _NODE256, bits.to_bytes(32, "little")


def _eights_reversed(data: bytes) -> bytes:
    return b"".join(data[at : at + 8][::-1] for at in range(0, len(data), 8))


# --- one container as a 32-bit bitmap --------------------------------------------------------------------------------


def as_bitmap32(container: Container) -> bytes:
    """The container as a bitmap in the portable 32-bit format, with its numbers as they are."""
    if container.kind == _RUNS:
        lengths = struct.unpack(f"<{len(container.content) // 2}H", container.content)[2::2]
        return _RUN_HEADER.pack(_RUN_COOKIE, 1, 0, (sum(lengths) + len(lengths) - 1) & 0xFFFF) + container.content
    if (container.kind == _BITS) != (container.cardinality > _MAX_ARRAY_CARDINALITY):
        raise ValueError(f"a container of type {container.kind} has {container.cardinality} numbers")
    header = _PLAIN_HEADER.pack(_PLAIN_COOKIE, 1, 0, (container.cardinality - 1) & 0xFFFF, _PLAIN_HEADER.size)
    return header + container.content


def from_bitmap32(data: bytes) -> Container:
    """The only container of such a bitmap."""
    if int.from_bytes(data[:2], "little") == _RUN_COOKIE:
        *_, largest = _RUN_HEADER.unpack_from(data)
        return Container(_RUNS, largest + 1, data[_RUN_HEADER.size :])
    *_, largest, _ = _PLAIN_HEADER.unpack_from(data)
    kind = _BITS if largest + 1 > _MAX_ARRAY_CARDINALITY else _ARRAY
    return Container(kind, largest + 1, data[_PLAIN_HEADER.size :])
