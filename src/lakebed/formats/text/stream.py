"""The content of a CSV, JSON or text file as a stream of bytes: compression goes by the extension of its name."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from lakebed.errors import Unsupported
from lakebed.formats.conform import corrupt
from lakebed.formats.text.settings import TextSettings

_CODECS = {"gz": "gzip", "gzip": "gzip", "deflate": "gzip", "bz2": "bz2", "zst": "zstd", "zstd": "zstd"}
"""Extensions and Arrow's codecs. That for gzip sees by itself whether gzip or zlib has written a stream."""
HADOOP_ONLY = frozenset({"snappy", "lz4"})
"""Extensions of files that Hadoop cuts into blocks of its own."""
EXTENSIONS = frozenset({*_CODECS, *HADOOP_ONLY})
LONGEST_ROW_BYTES = 64 << 20
_BLOCK_BYTES = 4 << 20
_BOM = b"\xef\xbb\xbf"


def content_stream(source: pa.NativeFile, path: str) -> pa.NativeFile:
    """The file, unpacked while it is read."""
    extension = path.lower().rpartition(".")[2]
    if extension in HADOOP_ONLY:
        raise Unsupported(
            f"data file `{path}` is compressed with `{extension}` in Hadoop's blocks",
            hint="have the engine that wrote it rewrite it with gzip, zstd or no compression",
        )
    codec = _CODECS.get(extension)
    return source if codec is None else pa.CompressedInputStream(source, codec)


def whole_lines(stream: pa.NativeFile, path: str, settings: TextSettings) -> Iterator[bytes]:
    """Blocks of whole lines, each without the end of its last line; the last line of a file may lack its end.

    Lines with one of the usual ends have `\n` between them, others what ends them.
    """
    line_end = settings.line_end.encode()
    rest: list[bytes] = []
    begins = True
    while block := stream.read(_BLOCK_BYTES):
        if begins and settings.has_usual_lines:
            block = block.removeprefix(_BOM)
        begins = False
        # An end may be cut in two by the blocks.
        tail = rest.pop() + block if rest else block
        last = _last_end(tail, line_end, settings)
        if last is None:
            rest.append(tail)
            if len(tail) > LONGEST_ROW_BYTES:
                raise corrupt(path, f"a line is longer than {LONGEST_ROW_BYTES} bytes")
            continue
        end, after = last
        yield _with_usual_ends(tail[:end]) if settings.has_usual_lines else tail[:end]
        rest = [tail[after:]] if after < len(tail) else []
    if rest:
        yield _with_usual_ends(rest[0].removesuffix(b"\r")) if settings.has_usual_lines else rest[0]


def _last_end(block: bytes, line_end: bytes, settings: TextSettings) -> tuple[int, int] | None:
    """Where the last line end begins and ends, if there is one for sure."""
    if not settings.has_usual_lines:
        at = block.rfind(line_end)
        return None if at < 0 else (at, at + len(line_end))
    # The last byte may be the first half of an end.
    at = max(block.rfind(b"\n"), block.rfind(b"\r", 0, len(block) - 1))
    if at < 0:
        return None
    begin = at - 1 if block[at : at + 1] == b"\n" and block[at - 1 : at] == b"\r" and at else at
    return begin, at + 1


def _with_usual_ends(lines: bytes) -> bytes:
    return lines.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
