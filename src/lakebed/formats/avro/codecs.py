"""Block compression of Avro files.

Bytes in, bytes out; damaged input raises whatever the codec raises, and the reader says which file it was. What is
written here carries a checksum: zstandard frames and snappy blocks have room for one, and behind the end of a deflated
stream nobody else looks. Blocks that are not compressed have no such place.
"""

from __future__ import annotations

import bz2
import lzma
import struct
import sys
import zlib
from collections.abc import Callable

import pyarrow as pa

from lakebed.errors import InvalidOption, Unsupported, did_you_mean

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

UNDECODABLE = (zstd.ZstdError, zlib.error, lzma.LZMAError)
"""What codecs raise on damaged blocks, besides errors of Python's own and of pyarrow."""

_CRC = struct.Struct(">I")
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
            f"avro files can not have the compression `{compression}`", hint=did_you_mean(compression, _CODECS)
        )
    return codec


def has_checksum(compression: str) -> bool:
    """Whether blocks with a compression of the table options carry a checksum."""
    return _CODECS.get(compression.lower()) != "null"


def compressor(codec: str, zstd_level: int) -> Callable[[bytes], bytes]:
    """The function that applies a codec to a block."""
    if codec == "zstandard":
        names = zstd.CompressionParameter
        options: dict[int, int] = {names.compression_level: zstd_level, names.checksum_flag: 1}
        return lambda block: bytes(zstd.compress(block, options=options))
    if codec == "deflate":
        # Avro's deflate has neither header nor checksum, and ends where it says.
        return lambda block: zlib.compress(block, wbits=-zlib.MAX_WBITS) + _CRC.pack(zlib.crc32(block))
    if codec == "snappy":
        return lambda block: pa.compress(block, "snappy", asbytes=True) + _CRC.pack(zlib.crc32(block))
    return lambda block: block


def _unsnap(block: bytes) -> bytes:
    size, shift = 0, 0
    for byte in block[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if size > 64 * len(block):
        raise ValueError("a block claims an impossible size")
    content: bytes = pa.decompress(block[: -_CRC.size], decompressed_size=size, codec="snappy", asbytes=True)
    return _checked(content, block[-_CRC.size :])


def _inflated(block: bytes) -> bytes:
    return zlib.decompress(block, wbits=-zlib.MAX_WBITS)


def _inflated_and_checked(block: bytes) -> bytes:
    return _checked(_inflated(block), block[-_CRC.size :])


def _checked(content: bytes, checksum: bytes) -> bytes:
    if _CRC.pack(zlib.crc32(content)) != checksum:
        raise ValueError("a block does not match its checksum")
    return content


_DECOMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "null": lambda block: block,
    "zstandard": zstd.decompress,
    "deflate": _inflated,
    "bzip2": bz2.decompress,
    "xz": lzma.decompress,
    "snappy": _unsnap,
}


def decompressor(codec: str, path: str, *, is_ours: bool) -> Callable[[bytes], bytes]:
    """The function that undoes a block's codec, and finds damage in blocks of our own; raises Unsupported for an
    unknown one."""
    if codec not in _DECOMPRESSORS:
        raise Unsupported(
            f"data file `{path}` is compressed with `{codec}`",
            hint=f"rewrite it with one of {', '.join(_DECOMPRESSORS)}",
        )
    return _inflated_and_checked if is_ours and codec == "deflate" else _DECOMPRESSORS[codec]
