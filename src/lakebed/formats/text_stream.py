"""The content of a CSV, JSON or text file as a stream of bytes: compression goes by the extension of its name."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from lakebed.errors import Unsupported
from lakebed.formats.conform import corrupt

_CODECS = {"gz": "gzip", "gzip": "gzip", "deflate": "gzip", "bz2": "bz2", "zst": "zstd", "zstd": "zstd"}
"""Extensions and Arrow's codecs. That for gzip sees by itself whether gzip or zlib has written a stream."""
HADOOP_ONLY = frozenset({"snappy", "lz4"})
"""Extensions of files that Hadoop cuts into blocks of its own."""
EXTENSIONS = frozenset({*_CODECS, *HADOOP_ONLY})
LONGEST_ROW_BYTES = 64 << 20
_BLOCK_BYTES = 4 << 20


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


def whole_lines(stream: pa.NativeFile, path: str) -> Iterator[bytes]:
    """Blocks of whole lines, each without the end of its last line; the last line of a file may lack its end."""
    rest: list[bytes] = []
    begins = True
    while block := stream.read(_BLOCK_BYTES):
        if begins:
            block, begins = block.removeprefix(b"\xef\xbb\xbf"), False
        end = block.rfind(b"\n")
        if end < 0:
            rest.append(block)
            if sum(map(len, rest)) > LONGEST_ROW_BYTES:
                raise corrupt(path, f"a line is longer than {LONGEST_ROW_BYTES} bytes")
            continue
        yield b"".join((*rest, block[:end])).removesuffix(b"\r")
        rest = [block[end + 1 :]] if end + 1 < len(block) else []
    if any(rest):
        yield b"".join(rest).removesuffix(b"\r")
