"""Writes CSV, JSON and text data files as Paimon reads them: lines of texts, whole batches at a time.

Paimon's own writer lets values through that its reader takes for something else: line ends inside CSV values, empty
texts where nothing stands for null, backslashes, texts of blanks alone. Here they are quoted or escaped so that its
reader gives them back, and where it can not, they are refused before anything is visible.
"""

from __future__ import annotations

import bz2
import sys
import zlib
from collections.abc import Callable, Sequence
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.errors import InvalidData, InvalidOption
from lakebed.formats.base import ColumnStats, FileStats, WriteSettings
from lakebed.formats.conform import to_write
from lakebed.formats.statistics import StatsCollector
from lakebed.formats.text.settings import TextSettings, text_settings
from lakebed.formats.text.spelling import joined, spelled, spelled_as_json
from lakebed.types.key_value import SEQUENCE_NUMBER
from lakebed.types.logical import STRINGS, AtomicType, DataField, RowType, is_root

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_ENCODE_ROWS = 16384
_BLOCK_BYTES = 1 << 20
_BOM = "\ufeff"
_UNTOLD = ColumnStats(None, None, None)
_PLAIN = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+-/=.: ")
"""Characters in texts of numbers, times and bytes."""
_BLANK = r"^[\s\x0b\x1c-\x1f\x{85}\p{Z}]*$"
"""Texts that a line of nothing else must not consist of: Paimon takes it for a row of nulls."""

Lines = Callable[[pa.Table, Sequence[DataField], TextSettings], pa.Array]
"""The line of each row, without its end."""


class _Packer(Protocol):
    """What Python's compressors have in common."""

    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self) -> bytes: ...


class _NoPacker:
    def compress(self, data: bytes, /) -> bytes:
        return data

    def flush(self) -> bytes:
        return b""


def _zstd_packer(level: int) -> _Packer:
    names = zstd.CompressionParameter
    packer: _Packer = zstd.ZstdCompressor(options={names.compression_level: level, names.checksum_flag: 1})
    return packer


_PACKERS: dict[str, Callable[[int], _Packer]] = {
    "none": lambda level: _NoPacker(),
    "gzip": lambda level: zlib.compressobj(wbits=16 + zlib.MAX_WBITS),
    "deflate": lambda level: zlib.compressobj(),
    "bzip2": lambda level: bz2.BZ2Compressor(),
    "zstd": _zstd_packer,
}
"""How compressions begin. All but none carry a checksum of what they hold."""


def check_compression(kind: str, compression: str) -> None:
    """Raises InvalidOption for a compression that files of this format can not have."""
    known = ("none",) if kind == "text" else tuple(_PACKERS)
    if compression not in known:
        reason = "their names would not tell it" if kind == "text" else "no file of text has it here"
        raise InvalidOption(
            f"{kind} files can not have the compression `{compression}`: {reason}",
            hint=f"set `file.compression` to one of {', '.join(known)}",
        )


class TextWriter:
    """Writes one file."""

    def __init__(
        self, kind: str, lines: Lines, stream: pa.NativeFile, fields: Sequence[DataField], settings: WriteSettings
    ) -> None:
        check_compression(kind, settings.compression)
        self._lines, self._stream, self._fields = lines, stream, tuple(fields)
        self._settings = text_settings(kind, settings.table_options, f"{kind} files")
        self._packer = _PACKERS[settings.compression](settings.zstd_level)
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        # Nothing but the order of rows is known of such files.
        self._stats = StatsCollector(fields, frozenset({SEQUENCE_NUMBER}))
        self._is_empty = True
        self._may_begin_with_bom = kind == "text" and self._settings.has_usual_lines
        if self._settings.has_header:
            names = pa.array([field.name for field in fields], pa.large_string())
            header = self._settings.delimiter.join(csv_values(names, self._settings, "header").to_pylist())
            self._add((header + self._settings.line_end).encode())

    def write(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Appends rows."""
        rows = to_write(batch, self._fields)
        self._stats.add(rows)
        for start in range(0, rows.num_rows, _ENCODE_ROWS):
            part = rows.slice(start, _ENCODE_ROWS).combine_chunks()
            lines = self._lines(part, self._fields, self._settings)
            if not self._settings.has_usual_lines:
                _refuse_line_ends(lines, self._settings)
            if self._may_begin_with_bom and self._is_empty and lines[0].as_py().startswith(_BOM):
                self._add(_BOM.encode())  # readers leave the first one out
            self._is_empty = False
            self._add(_content(joined(lines, self._settings.line_end)))

    def _add(self, content: bytes) -> None:
        self._pending.append(content)
        self._pending_bytes += len(content)
        if self._pending_bytes >= _BLOCK_BYTES:
            self._flush()

    def _flush(self) -> None:
        self._stream.write(self._packer.compress(b"".join(self._pending)))
        self._pending, self._pending_bytes = [], 0

    def bytes_written(self) -> int:
        """Bytes in the file, and those not yet compressed."""
        return int(self._stream.tell()) + self._pending_bytes

    def close(self) -> FileStats:
        """Writes what is left."""
        self._flush()
        self._stream.write(self._packer.flush())
        known = self._stats.result()
        return FileStats(known.row_count, {field.name: _UNTOLD for field in self._fields} | known.columns)


def _content(lines: pa.Array) -> bytes:
    """The bytes of all texts, one after the other, as they lie in memory."""
    _, offsets, content = lines.buffers()
    ends = memoryview(offsets).cast("q")
    return bytes(memoryview(content)[ends[lines.offset] : ends[lines.offset + len(lines)]]) if content else b""


def _refuse_line_ends(lines: pa.Array, settings: TextSettings) -> None:
    wrong = pc.match_substring(lines, settings.line_end)
    if pc.any(wrong).as_py():
        row = lines.filter(wrong)[0].as_py()
        raise InvalidData(
            f"a row has {settings.line_end!r} in it, which ends a line: {row[:80]!r}",
            hint="correct the rows, or use a table whose lines end otherwise, or of another `file.format`",
        )


def _refuse_usual_line_ends(texts: pa.Array, kind: str, column: str) -> None:
    if pc.any(pc.match_substring_regex(texts, "[\r\n]")).as_py():
        raise InvalidData(
            f"column `{column}`: a value has a line end in it, and Paimon reads {kind} files line by line",
            hint=f"set `{kind}.line-delimiter` to something that no value has when the table is created, or "
            "`file.format` to json, parquet, orc or avro",
        )


def csv_lines(rows: pa.Table, fields: Sequence[DataField], settings: TextSettings) -> pa.Array:
    """Values in quotes where they need them, delimiters between."""
    columns = []
    is_plain = _PLAIN.isdisjoint({settings.delimiter, settings.quote, settings.escape, *settings.line_end})
    for column, field in zip(rows.columns, fields, strict=True):
        assert isinstance(field.type, AtomicType)
        texts = spelled(_one_array(column), field.type, field.name)
        if pc.any(pc.equal(texts, settings.null_text)).as_py():
            raise InvalidData(
                f"column `{field.name}`: a value is spelled {settings.null_text!r}, which stands for null in CSV files",
                hint="set `csv.null-literal` to a text that no value has when the table is created, or `file.format` "
                "to json, parquet, orc or avro",
            )
        is_text = is_root(field.type, STRINGS)
        if is_text and settings.has_usual_lines:
            _refuse_usual_line_ends(texts, "csv", field.name)
        if is_text or not is_plain:
            texts = csv_values(texts, settings, field.name)
        columns.append(texts.fill_null(settings.null_text))
    return joined(*columns, between=settings.delimiter)


def csv_values(texts: pa.Array, settings: TextSettings, column: str) -> pa.Array:
    """Texts in quotes if they hold something that means something, and escapes in front of that."""
    special = "".join(
        f"\\x{{{ord(char):x}}}"
        for char in (settings.delimiter, settings.quote, settings.escape, settings.line_end[0], "\r", "\n")
    )
    needs_quotes = pc.match_substring_regex(texts, f"[{special}]|^\\x{{FEFF}}|{_BLANK}")
    if not pc.any(needs_quotes).as_py():
        return texts
    escaped = pc.replace_substring(texts, settings.escape, settings.escape * 2)
    escaped = pc.replace_substring(escaped, settings.quote, settings.escape + settings.quote)
    return pc.if_else(needs_quotes, joined(settings.quote, escaped, settings.quote), texts)


def json_lines(rows: pa.Table, fields: Sequence[DataField], settings: TextSettings) -> pa.Array:
    """One object for each row."""
    columns = [_one_array(column) for column in rows.columns]
    structs = pa.StructArray.from_arrays(columns, [field.name for field in fields])
    return spelled_as_json(structs, RowType(tuple(fields)), "")


def plain_lines(rows: pa.Table, fields: Sequence[DataField], settings: TextSettings) -> pa.Array:
    """The texts themselves."""
    texts = _one_array(rows.column(0)).cast(pa.large_string())
    if texts.null_count:
        raise InvalidData(
            f"column `{fields[0].name}`: a value is null, which text files have no line for",
            hint="leave such rows out, or set `file.format` to another format",
        )
    if settings.has_usual_lines:
        _refuse_usual_line_ends(texts, "text", fields[0].name)
    return texts


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
