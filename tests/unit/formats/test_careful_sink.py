"""Streams that break while pyarrow writes to them."""

from __future__ import annotations

import gc
import io
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.formats.format_samples import field, table

from lakebed.formats import FORMATS, WriteSettings
from lakebed.types import logical as lt


class Disk(io.RawIOBase):
    """Takes a few bytes, then it is full."""

    def __init__(self) -> None:
        self.taken = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if self.taken > 0:
            raise OSError(28, "no space left")
        self.taken = len(data)
        return len(data)

    def tell(self) -> int:
        return self.taken


@pytest.mark.parametrize("format_name", ["parquet", "orc"])
def test_failed_write_is_reported_and_nothing_follows(format_name: str) -> None:
    """The first failure of the stream reaches the caller, and the library's clean-up causes neither noise nor death."""
    fields = [field(lt.INT)]
    writer = FORMATS[format_name].open_writer(pa.PythonFile(Disk(), mode="w"), fields, WriteSettings())
    writer.write(table(fields, [1, 2]))
    with pytest.raises(OSError, match="no space left"):
        writer.close()
    del writer
    gc.collect()


@pytest.mark.parametrize("format_name", ["parquet", "orc"])
def test_writer_may_be_dropped_half_way(format_name: str) -> None:
    """A file that is given up needs no closing, even when its stream is closed already."""
    fields = [field(lt.INT)]
    stream = pa.BufferOutputStream()
    writer = FORMATS[format_name].open_writer(stream, fields, WriteSettings(row_group_rows=1))
    writer.write(table(fields, [1, 2]))
    stream.close()
    del writer
    gc.collect()
