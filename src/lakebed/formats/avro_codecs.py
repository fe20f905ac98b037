"""Block compression of Avro files.

Bytes in, bytes out; damaged input raises whatever the codec raises, and the reader says which file it was.
"""

from __future__ import annotations

import bz2
import lzma
import struct
import zlib
from collections.abc import Callable

import pyarrow as pa

from lakebed.errors import InvalidOption, Unsupported, did_you_mean

_CODECS = {
    "zstd": "zstandard",
    "zstandard": "zstandard",
    "deflate": "deflate",
    "gzip": "deflate",
    "snappy": "snappy",
    "none": "null",
    "uncompressed": "null",
    "null": "null",
}


def codec_name(compression: str) -> str:
    """Avro's name for a compression of the table options."""
    codec = _CODECS.get(compression.lower())
    if codec is None:
        raise InvalidOption(
            f"compression `{compression}` does not exist for avro files", hint=did_you_mean(compression, _CODECS)
        )
    return codec


def compressor(codec: str, zstd_level: int) -> Callable[[bytes], bytes]:
    """The function that applies a codec to a block."""
    if codec == "zstandard":
        zstd = pa.Codec("zstd", compression_level=zstd_level)
        return lambda block: zstd.compress(block, asbytes=True)
    if codec == "deflate":
        # Avro's deflate has neither header nor checksum.
        return lambda block: zlib.compress(block, wbits=-zlib.MAX_WBITS)
    if codec == "snappy":
        return lambda block: pa.compress(block, "snappy", asbytes=True) + struct.pack(">I", zlib.crc32(block))
    return lambda block: block


def _unsnap(block: bytes) -> bytes:
    size, shift = 0, 0
    for byte in block[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    content: bytes = pa.decompress(block[:-4], decompressed_size=size, codec="snappy", asbytes=True)
    if struct.pack(">I", zlib.crc32(content)) != block[-4:]:
        raise ValueError("a block does not match its checksum")
    return content


_DECOMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "null": lambda block: block,
    "zstandard": lambda block: pa.CompressedInputStream(pa.BufferReader(block), "zstd").read(),
    "deflate": lambda block: zlib.decompress(block, wbits=-zlib.MAX_WBITS),
    "bzip2": bz2.decompress,
    "xz": lzma.decompress,
    "snappy": _unsnap,
}


def decompressor(codec: str, path: str) -> Callable[[bytes], bytes]:
    """The function that undoes a block's codec; raises Unsupported for an unknown one."""
    if codec not in _DECOMPRESSORS:
        raise Unsupported(
            f"data file `{path}` is compressed with `{codec}`",
            hint=f"rewrite it with one of {', '.join(_DECOMPRESSORS)}",
        )
    return _DECOMPRESSORS[codec]
