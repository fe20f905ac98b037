"""MySQL's binary JSON, from documents put together by hand after its description."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebed.cdc.sources.mysql.log.binary_json import json_text
from lakebed.errors import CorruptFile


def _encode(value: Any, large: bool) -> tuple[int, bytes]:
    """Kind and bytes of a value."""
    match value:
        case None | True | False:
            return 4, bytes([{None: 0, True: 1, False: 2}[value]])
        case int():
            return (9, struct.pack("<q", value)) if value < 2**63 else (10, struct.pack("<Q", value))
        case float():
            return 11, struct.pack("<d", value)
        case str():
            data = value.encode()
            return 12, _length(len(data)) + data
        case list():
            return (3 if large else 2), _container(value, [], large)
        case dict():
            names = sorted(value, key=lambda name: (len(name.encode()), name.encode()))
            return (1 if large else 0), _container([value[name] for name in names], names, large)
    raise TypeError(value)


def _length(size: int) -> bytes:
    out = bytearray()
    while True:
        size, low = size >> 7, size & 0x7F
        out.append(low | (0x80 if size else 0))
        if not size:
            return bytes(out)


def _container(values: list[Any], names: list[str], large: bool) -> bytes:
    number = "<I" if large else "<H"
    width = 4 if large else 2
    head = 2 * width + len(names) * (width + 2) + len(values) * (width + 1)
    keys, entries, tail = b"", b"", b""
    for name in names:
        keys += struct.pack(number, head + len(tail)) + struct.pack("<H", len(name.encode()))
        tail += name.encode()
    for value in values:
        kind, data = _encode(value, large)
        if kind == 4:
            entries += bytes([kind]) + data.ljust(width, b"\0")
        else:
            entries += bytes([kind]) + struct.pack(number, head + len(tail))
            tail += data
    body = keys + entries + tail
    return struct.pack(number, len(values)) + struct.pack(number, 2 * width + len(body)) + body


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=200),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES, st.booleans())
def test_documents_read_as_they_were_written(value: Any, large: bool) -> None:
    """Objects, arrays, numbers, texts and literals, in the small and the large form."""
    kind, data = _encode(value, large)
    assert json.loads(json_text(bytes([kind]) + data)) == value


def test_small_numbers_stand_in_their_entries() -> None:
    """Numbers of two bytes are not pointed at, in large documents neither are those of four."""
    small = (
        bytes([2]) + struct.pack("<HH", 2, 10) + b"\x05" + struct.pack("<h", -7) + b"\x06" + struct.pack("<H", 65535)
    )
    assert json_text(small) == "[-7, 65535]"
    large = bytes([3]) + struct.pack("<II", 1, 13) + b"\x07" + struct.pack("<i", -70000)
    assert json_text(large) == "[-70000]"


@pytest.mark.parametrize(
    ("code", "data", "expected"),
    [
        (246, bytes([5, 2]) + b"\x80\x01\x17", "1.23"),
        (12, struct.pack("<q", ((2024 * 13 + 2) << 22 | 29 << 17 | 23 << 12 | 59 << 6 | 58) << 24 | 5),
         '"2024-02-29 23:59:58.000005"'),
        (10, struct.pack("<q", ((2024 * 13 + 2) << 22 | 29 << 17) << 24), '"2024-02-29"'),
        (11, struct.pack("<q", -((100 << 12 | 1 << 6 | 2) << 24)), '"-100:01:02.000000"'),
        (252, b"\x00\xff", '"base64:type252:AP8="'),
    ],
)  # fmt: skip
def test_values_of_other_types(code: int, data: bytes, expected: str) -> None:
    """Decimals keep their digits, times are spelled as the server spells them, the rest is base64."""
    assert json_text(bytes([15, code]) + _length(len(data)) + data) == expected


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"), (-0.0, "-0.0"), (1.0, "1.0"), (0.1, "0.1"), (-2.5, "-2.5"), (3e10, "30000000000.0"),
        (1e14, "100000000000000.0"), (1e15, "1e15"), (1e20, "1e20"), (1.5e300, "1.5e300"), (1e-5, "0.00001"),
        (1.25e-15, "0.00000000000000125"), (1e-16, "1e-16"), (-5e-324, "-5e-324"),
        (1234567890123456.5, "1234567890123456.5"),
    ],
)  # fmt: skip
def test_numbers_are_spelled_as_the_server_spells_them(number: float, text: str) -> None:
    """A document that comes by the log has the text that a query gives."""
    assert json_text(b"\x0b" + struct.pack("<d", number)) == text


def test_broken_documents_are_refused() -> None:
    """A document that ends too early is an error of ours, not an IndexError."""
    with pytest.raises(CorruptFile):
        json_text(b"\x00\x05\x00")
