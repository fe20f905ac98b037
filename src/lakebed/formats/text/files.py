"""CSV, JSON and text data files, as Paimon reads and writes them (writing: `writer`).

None of them holds statistics, and CSV does not even name its columns. All values are texts (`columns`); a file whose
texts make no sense is refused, with the text in the message. JSON is taken apart by Python's own parser, a block of
lines at a time; its values arrive as dictionaries of texts, which Arrow takes whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from operator import methodcaller
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from lakebed.errors import InvalidData, InvalidSchema, Unsupported
from lakebed.formats.base import WriteSettings
from lakebed.formats.conform import as_corrupt, corrupt, to_read
from lakebed.formats.text.columns import check_spelled, parsed, texts_of, unspelled
from lakebed.formats.text.settings import TextSettings, Written, text_settings
from lakebed.formats.text.stream import LONGEST_ROW_BYTES, content_stream, whole_lines
from lakebed.formats.text.writer import Lines, TextWriter, check_compression, csv_lines, json_lines, plain_lines
from lakebed.records import dataclass
from lakebed.types.logical import STRINGS, ArrayType, AtomicType, DataField, DataType, MapType, RowType, is_root

_CsvOptions = tuple[csv.ReadOptions, csv.ParseOptions, csv.ConvertOptions]
_Texts = Callable[[pa.NativeFile, str, Sequence[DataField], Written, TextSettings], Iterator[list[pa.Array]]]
"""Columns of texts, block by block, of the wanted fields of a file."""


@dataclass(frozen=True, slots=True)
class TextFormat:
    """One of the formats `csv`, `json` and `text`."""

    name: str
    texts: _Texts
    lines: Lines
    holds_nested: bool
    default_compression = "none"

    @property
    def tells_compression_by_name(self) -> bool:
        """Paimon does not do so for plain text, which therefore has none."""
        return self.name != "text"

    def check(self, fields: Sequence[DataField]) -> None:
        """Refuses types without texts; plain text holds one column of them."""
        if self.name == "text" and (len(fields) != 1 or not is_root(fields[0].type, STRINGS)):
            raise InvalidSchema(
                f"text files hold one column of type STRING, not {', '.join(f'`{field.name}`' for field in fields)}",
                hint="set `file.format` to another format",
            )
        for field in fields:
            if reason := unspelled(field.type, nested=self.holds_nested):
                raise InvalidSchema(
                    f"column `{field.name}` {reason}, so {self.name} files can not hold it",
                    hint="declare another type, or set `file.format` to parquet, orc or avro",
                )

    def check_compression(self, compression: str) -> None:
        """Refuses what readers would not know by a file's name."""
        check_compression(self.name, compression)

    def guards(self, compression: str) -> bool:
        """Checksums belong to compressions."""
        return compression not in ("none", "uncompressed")

    def open_writer(self, stream: pa.NativeFile, fields: Sequence[DataField], settings: WriteSettings) -> TextWriter:
        """Starts a file."""
        self.check(fields)
        return TextWriter(self.name, self.lines, stream, fields, settings)

    def open_reader(self, source: pa.NativeFile, path: str, written: Written | None = None) -> TextReader:
        """Opens a file, of which `written` tells the columns."""
        if written is None:
            raise Unsupported(f"data file `{path}` does not say which columns it has", hint="read it through its table")
        return TextReader(self, source, path, written)


class TextReader:
    """Reads a file from beginning to end."""

    can_skip = False

    def __init__(self, text_format: TextFormat, source: pa.NativeFile, path: str, written: Written) -> None:
        self._format, self._source, self._path, self._written = text_format, source, path, written
        self._settings = text_settings(text_format.name, written.options, f"data file `{path}`")

    @property
    def column_names(self) -> list[str]:
        """Those that it was written with."""
        return [field.name for field in self._written.fields]

    @property
    def row_count(self) -> int:
        """Found by reading all of it."""
        first = self._written.fields[:1]
        return sum(batch.num_rows for _, batch in self.read(first))

    def read(
        self,
        fields: Sequence[DataField],
        *,
        filter: pc.Expression | None = None,  # noqa: A002
        batch_rows: int = 65536,
        use_threads: bool = True,
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """See `FormatReader.read`. `filter` leaves nothing out and `use_threads` changes nothing here."""
        known = set(self.column_names)
        found = [field for field in fields if field.name in known]
        check_spelled(found, self._path, nested=self._format.holds_nested, zoned=self._written.zoned)
        position = 0
        for columns in self._blocks(found or self._written.fields[:1]):
            with _damage_named(self._path):
                values = [parsed(texts, field.type) for texts, field in zip(columns, found, strict=False)]
            rows = len(columns[0])
            names = [field.name for field in found]
            block = pa.table(values, names) if values else pa.table({"": columns[0]})
            for begin in range(0, rows, batch_rows):
                part = block.slice(begin, batch_rows).combine_chunks()
                yield position, to_read(part, fields, self._path)
                position += part.num_rows

    def _blocks(self, fields: Sequence[DataField]) -> Iterator[list[pa.Array]]:
        blocks: Iterator[list[pa.Array]] | None = None
        while True:
            with _damage_named(self._path):
                if blocks is None:
                    self._source.seek(0)
                    stream = content_stream(self._source, self._path)
                    blocks = self._format.texts(stream, self._path, fields, self._written, self._settings)
                columns = next(blocks, None)
            if columns is None:
                return
            yield columns

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """The stream belongs to the caller; there is nothing else to let go of."""


@contextmanager
def _damage_named(path: str) -> Iterator[None]:
    """As `as_corrupt`, for texts that spell nothing as well."""
    try:
        with as_corrupt(path):
            yield
    except (InvalidData, ValueError, TypeError, RecursionError) as error:
        raise corrupt(path, str(error).partition("\n")[0]) from error  # without the hint of whoever writes such a text


def _csv_texts(
    stream: pa.NativeFile, path: str, fields: Sequence[DataField], written: Written, settings: TextSettings
) -> Iterator[list[pa.Array]]:
    names = [field.name for field in written.fields]
    wanted = [field.name for field in fields]
    skipped = int(settings.has_header and settings.has_usual_lines)
    options = (
        csv.ReadOptions(use_threads=False, block_size=LONGEST_ROW_BYTES, column_names=names, skip_rows=skipped),
        csv.ParseOptions(
            delimiter=settings.delimiter,
            quote_char=settings.quote,
            escape_char=settings.escape,
            newlines_in_values=True,
            ignore_empty_lines=False,
        ),
        csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()), include_columns=wanted, strings_can_be_null=False
        ),
    )
    usual = settings.has_usual_lines
    batches = csv.open_csv(stream, *options) if usual else _csv_blocks(stream, path, settings, options)
    null = pa.scalar(None, pa.string())
    for batch in batches:
        yield [pc.if_else(pc.equal(column, settings.null_text), null, column) for column in batch.columns]


def _csv_blocks(
    stream: pa.NativeFile, path: str, settings: TextSettings, options: _CsvOptions
) -> Iterator[pa.RecordBatch]:
    """Rows of lines that end with something else than usual, in which line feeds are nothing special.

    pyarrow knows the usual ends only: while it reads a block, its line feeds go by characters that the block has not.
    """
    begins = settings.has_header
    for lines in whole_lines(stream, path, settings):
        text = lines.decode()
        if begins:
            _, _, text = text.partition(settings.line_end)
            begins = False
            if not text:
                continue
        feed, back, end = islice((char for char in map(chr, range(0xE000, 0xF900)) if char not in text), 3)
        text = text.replace(settings.line_end, end).replace("\n", feed).replace("\r", back).replace(end, "\n")
        block = csv.read_csv(pa.BufferReader(text.encode()), *options)
        for batch in block.to_batches():
            columns = [pc.replace_substring(column, feed, "\n") for column in batch.columns]
            columns = [pc.replace_substring(column, back, "\r") for column in columns]
            yield pa.RecordBatch.from_arrays(columns, batch.schema.names)


def _json_texts(
    stream: pa.NativeFile, path: str, fields: Sequence[DataField], written: Written, settings: TextSettings
) -> Iterator[list[pa.Array]]:
    types = pa.struct([(field.name, texts_of(field.type)) for field in fields])
    line_end = b"\n" if settings.has_usual_lines else settings.line_end.encode()
    for lines in whole_lines(stream, path, settings):
        # A line end inside a value is spelled \n: what is left are the ends of rows.
        content = b"[" + lines.rstrip(b"\n").replace(line_end, b",") + b"]"
        rows = json.loads(content, parse_int=str, parse_float=str, parse_constant=_no_constant)
        _check_shape(rows, RowType(tuple(fields)))
        try:
            block = pa.array(rows, types)
        except pa.ArrowTypeError:  # `true` and `false` without quotes
            block = pa.array(_spelled_truth(rows), types)
        if block.null_count:
            raise InvalidData("a row is null", hint="restore the file")
        yield [block.field(at) for at in range(len(fields))]


def _spelled_truth(value: Any) -> Any:
    """The same with texts in the place of true and false."""
    match value:
        case bool():
            return "true" if value else "false"
        case list():
            return [_spelled_truth(each) for each in value]
        case dict():
            return {name: _spelled_truth(each) for name, each in value.items()}
    return value


def _check_shape(values: Iterable[Any], data_type: DataType) -> None:
    """Refuses texts where arrays are to be, and the like, which Arrow would take apart into something plausible."""
    if isinstance(data_type, AtomicType):
        return
    present = [value for value in values if value is not None]
    wanted = list if isinstance(data_type, ArrayType) else dict
    if set(map(type, present)) - {wanted}:
        raise InvalidData(f"a value is no {data_type}", hint="restore the file")
    match data_type:
        case ArrayType(element):
            _check_shape(chain.from_iterable(present), element)
        case MapType(_, value):
            _check_shape(chain.from_iterable(map(dict.values, present)), value)
        case RowType(members):
            for member in members:
                _check_shape(map(methodcaller("get", member.name), present), member.type)


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


def _plain_texts(
    stream: pa.NativeFile, path: str, fields: Sequence[DataField], written: Written, settings: TextSettings
) -> Iterator[list[pa.Array]]:
    if len(written.fields) != 1 or not is_root(written.fields[0].type, STRINGS):
        raise Unsupported(
            f"data file `{path}` has {len(written.fields)} columns, and text files have one of text",
            hint="read the table with the engine that wrote it",
        )
    line_end = "\n" if settings.has_usual_lines else settings.line_end
    for lines in whole_lines(stream, path, settings):
        yield [pc.split_pattern(pa.array([lines.decode()], pa.large_string()), line_end).values.cast(pa.string())]


CSV = TextFormat("csv", _csv_texts, csv_lines, holds_nested=False)
JSON = TextFormat("json", _json_texts, json_lines, holds_nested=True)
TEXT = TextFormat("text", _plain_texts, plain_lines, holds_nested=False)
