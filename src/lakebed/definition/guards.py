"""Says which files of a table nothing guards, when somebody chooses so.

Every file that we write carries a checksum, or lies where one is kept for it, but for data files of a format and a
compression that leave no place for one. A damaged bit there can be a row that nobody wrote. Such a table is made as it
was asked for, with a warning that names the options.
"""

from __future__ import annotations

from lakebed.calls import warn_caller
from lakebed.definition.file_rules import FileChoice, LevelRules, changelog_choice, data_choice
from lakebed.formats import FORMATS
from lakebed.options import (
    CHANGELOG_FILE_COMPRESSION,
    CHANGELOG_FILE_FORMAT,
    FILE_COMPRESSION,
    FILE_FORMAT,
    Option,
    Options,
)


def _unguarded(options: Options) -> list[str]:
    """The choices of a table that leave files without checksums, in words."""
    if not {options[FILE_FORMAT], options[CHANGELOG_FILE_FORMAT] or options[FILE_FORMAT]} <= FORMATS.keys():
        return []
    data, changelog = data_choice(options, LevelRules()), changelog_choice(options, LevelRules())
    chosen: list[tuple[Option[object], Option[object], FileChoice]] = [(FILE_FORMAT, FILE_COMPRESSION, data)]
    if changelog != data:
        chosen.append((CHANGELOG_FILE_FORMAT, CHANGELOG_FILE_COMPRESSION, changelog))
    return [
        f"`{format_option.key}` = `{choice.format.name}` with `{compression_option.key}` = `{choice.compression}`"
        for format_option, compression_option, choice in chosen
        if not choice.format.guards(choice.compression)
    ]


def warn_of_unguarded(table: str, options: Options, before: Options | None = None) -> None:
    """Names what will have no checksums from now on; `before` is what the table had, if it was there."""
    known = [] if before is None else _unguarded(before)
    for choice in _unguarded(options):
        if choice not in known:
            warn_caller(
                f"table `{table}`: {choice} leaves no place for checksums, so damage of such files can give wrong rows;"
                " use a compression that has them, such as zstd or deflate, or another format"
            )


__all__ = ["warn_of_unguarded"]
