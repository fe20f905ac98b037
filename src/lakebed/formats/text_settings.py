"""How CSV, JSON and text files of a table are spelled: the settings that stand among its options.

Such files do not describe themselves, so readers need what the writer was told. The options are those of the schema
version that the file was written under. What Paimon's own reader could not read back is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakebed.errors import Unsupported
from lakebed.types.logical import DataField

_LINE_ENDS = frozenset({"\n", "\r\n", "\r"})
"""Lines that end with one of these may end with any of them."""
_CSV_MODES = frozenset({"permissive", "failfast"})
_OTHER_ENGINE = "read the table with the engine that wrote it"


@dataclass(frozen=True, slots=True)
class TextSettings:
    """Spelling of CSV files; JSON and text files have nothing but the end of lines, which is the usual one."""

    delimiter: str = ","
    quote: str = '"'
    escape: str = "\\"
    null_text: str = ""
    has_header: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """What a file does not say of itself: the columns that it was written with, in their order, and the options of its
    table."""

    fields: tuple[DataField, ...]
    options: Mapping[str, str]


def text_settings(kind: str, options: Mapping[str, str], path: str) -> TextSettings:
    """The settings of a format among the options of a table, or Unsupported, which names the option."""
    line_end = _chosen(options, (f"{kind}.line-delimiter", *(("lineSep",) if kind != "json" else ())), "\n")
    if line_end not in _LINE_ENDS:
        raise Unsupported(
            f"data file `{path}`: lines end with {line_end!r} (`{kind}.line-delimiter`)", hint=_OTHER_ENGINE
        )
    if kind != "csv":
        return TextSettings()
    mode = _chosen(options, ("csv.mode", "mode"), "permissive")
    if mode.lower() not in _CSV_MODES:
        raise Unsupported(
            f"data file `{path}`: `csv.mode` is `{mode}`, by which rows that can not be read are left out",
            hint=_OTHER_ENGINE,
        )
    return TextSettings(
        delimiter=_character(options, ("csv.field-delimiter", "field-delimiter", "seq", "delimiter"), ",", path),
        quote=_character(options, ("csv.quote-character", "quote"), '"', path),
        escape=_character(options, ("csv.escape-character", "escape"), "\\", path),
        null_text=_chosen(options, ("csv.null-literal", "nullvalue"), ""),
        has_header=_chosen(options, ("csv.include-header", "header"), "false").strip().lower() == "true",
    )


def _chosen(options: Mapping[str, str], keys: Sequence[str], default: str) -> str:
    return next((options[key] for key in keys if key in options), default)


def _character(options: Mapping[str, str], keys: Sequence[str], default: str, path: str) -> str:
    text = _chosen(options, keys, default)
    if len(text) != 1 or not text.isascii() or text in "\0\r\n":
        raise Unsupported(f"data file `{path}`: `{keys[0]}` is {text!r}, not one ASCII character", hint=_OTHER_ENGINE)
    return text
