"""Geometries as GeoJSON with the number of their reference system: `{"coordinates":[1,2],"type":"Point","srid":0}`.

A value is four bytes of that number and well-known binary. They are converted one by one, once for each distinct
value.
"""

from __future__ import annotations

import json
import struct
from typing import Any, Final

from lakebed.errors import CorruptFile

_NAMES: Final = (
    "",
    "Point",
    "LineString",
    "Polygon",
    "MultiPoint",
    "MultiLineString",
    "MultiPolygon",
    "GeometryCollection",
)


def geo_json(value: bytes) -> str:
    """The text of a geometry as the server stores it."""
    try:
        shape, _ = _shape(value, 4)
        return json.dumps({**shape, "srid": int.from_bytes(value[:4], "little")}, separators=(",", ":"))
    except (struct.error, IndexError) as error:
        raise CorruptFile("a geometry is not understood", hint="this is a fault of the reader; report it") from error


def _shape(data: bytes, at: int) -> tuple[dict[str, Any], int]:
    order = "<" if data[at] == 1 else ">"
    kind = struct.unpack_from(order + "I", data, at + 1)[0]
    at += 5
    match kind:
        case 1:
            coordinates, at = _point(data, at, order)
        case 2:
            coordinates, at = _line(data, at, order)
        case 3:
            coordinates, at = _polygon(data, at, order)
        case 4 | 5 | 6 | 7:
            count = struct.unpack_from(order + "I", data, at)[0]
            at += 4
            members: list[dict[str, Any]] = []
            for _ in range(count):
                member, at = _shape(data, at)
                members.append(member)
            if kind == 7:
                return {"geometries": members, "type": _NAMES[kind]}, at
            coordinates = [member["coordinates"] for member in members]
        case _:
            raise IndexError(kind)
    return {"coordinates": coordinates, "type": _NAMES[kind]}, at


def _point(data: bytes, at: int, order: str) -> tuple[list[Any], int]:
    pair = struct.unpack_from(order + "2d", data, at)
    return [int(part) if part == int(part) else part for part in pair], at + 16


def _line(data: bytes, at: int, order: str) -> tuple[list[Any], int]:
    count = struct.unpack_from(order + "I", data, at)[0]
    at += 4
    points: list[Any] = []
    for _ in range(count):
        point, at = _point(data, at, order)
        points.append(point)
    return points, at


def _polygon(data: bytes, at: int, order: str) -> tuple[list[Any], int]:
    count = struct.unpack_from(order + "I", data, at)[0]
    at += 4
    rings: list[Any] = []
    for _ in range(count):
        ring, at = _line(data, at, order)
        rings.append(ring)
    return rings, at


__all__ = ["geo_json"]
