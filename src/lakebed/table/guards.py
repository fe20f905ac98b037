"""Says which files of a table nothing guards, when somebody chooses so.

Every file that we write carries a checksum, or lies where one is kept for it, but for data files of a format and a
compression that leave no place for one. A damaged bit there can be a row that nobody wrote. Such a table is made as it
was asked for, with a warning that names the options.
"""

from __future__ import annotations

import warnings

from lakebed.formats import FORMATS
from lakebed.options import (
    CHANGELOG_FILE_COMPRESSION,
    CHANGELOG_FILE_FORMAT,
    FILE_COMPRESSION,
    FILE_FORMAT,
    Options,
)

_USER_FRAME = 4
"""Warnings point at whoever created the table, through the lake and its catalog."""


def unguarded(options: Options) -> list[str]:
    """The choices of a table that leave files without checksums, in words."""
    data = (FILE_FORMAT.key, options[FILE_FORMAT], FILE_COMPRESSION.key, options[FILE_COMPRESSION])
    changelog = (
        CHANGELOG_FILE_FORMAT.key,
        options[CHANGELOG_FILE_FORMAT] or options[FILE_FORMAT],
        CHANGELOG_FILE_COMPRESSION.key,
        options[CHANGELOG_FILE_COMPRESSION] or options[FILE_COMPRESSION],
    )
    chosen = [data] if changelog[1::2] == data[1::2] else [data, changelog]
    return [
        f"`{format_key}` = `{name}` with `{compression_key}` = `{compression}`"
        for format_key, name, compression_key, compression in chosen
        if name in FORMATS and not FORMATS[name].guards(str(compression))
    ]


def warn_of_unguarded(table: str, options: Options, before: Options | None = None) -> None:
    """Names what will have no checksums from now on; `before` is what the table had, if it was there."""
    known = [] if before is None else unguarded(before)
    for choice in unguarded(options):
        if choice not in known:
            warnings.warn(
                f"table `{table}`: {choice} leaves no place for checksums, so damage of such files can give wrong rows;"
                " use zstd, snappy or deflate",
                stacklevel=_USER_FRAME if before is None else _USER_FRAME - 1,
            )


__all__ = ["unguarded", "warn_of_unguarded"]
