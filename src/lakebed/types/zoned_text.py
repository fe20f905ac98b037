"""Texts of moments that say their zone: `2024-01-02 03:04:05.6Z`, `2024-01-02T03:04:05+01:00`."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

ZONED = r"(Z|[+-]\d{2}:\d{2})$"
"""How such a text ends."""


def in_utc(texts: pa.Array) -> pa.Array:
    """Times with an offset, without it: the same moment in UTC."""
    texts = pc.replace_substring_regex(texts, r"^(\d+-\d+-\d+)T", r"\1 ")
    if pc.all(pc.fill_null(pc.ends_with(texts, "Z"), True)).as_py():
        return pc.utf8_rtrim(texts, "Z")
    moments = pc.strptime(
        pc.replace_substring_regex(texts, r"\.\d+", ""), format="%Y-%m-%d %H:%M:%S%z", unit="us", error_is_null=True
    )
    fraction = pc.replace_substring_regex(texts, r"^[^.]*$", "")
    fraction = pc.replace_substring_regex(fraction, r"^.*(\.\d+).*$", r"\1")
    return pc.binary_join_element_wise(pc.strftime(moments.cast(pa.timestamp("s")), "%Y-%m-%d %H:%M:%S"), fraction, "")
