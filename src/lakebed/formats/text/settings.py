"""How CSV, JSON and text files of a table are spelled: the settings that stand among its options.

Such files do not describe themselves, so readers need what the writer was told. The options are those of the schema
version that the file was written under. What Paimon's own reader could not read back is refused by name, and tables
that would write such files are not made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lakebed.errors import LakebedError, Unsupported
from lakebed.options import (
    CSV_ESCAPE_CHARACTER,
    CSV_FIELD_DELIMITER,
    CSV_INCLUDE_HEADER,
    CSV_LINE_DELIMITER,
    CSV_MODE,
    CSV_NULL_LITERAL,
    CSV_QUOTE_CHARACTER,
    JSON_LINE_DELIMITER,
    TEXT_LINE_DELIMITER,
    Option,
)
from lakebed.records import dataclass
from lakebed.types.logical import DataField

TEXT_FORMATS = ("csv", "json", "text")
_LINE_ENDS = frozenset({"\n", "\r\n", "\r"})
"""Lines that end with one of these may end with any of them."""
_LINE_OPTIONS: dict[str, Option[str]] = {
    "csv": CSV_LINE_DELIMITER,
    "json": JSON_LINE_DELIMITER,
    "text": TEXT_LINE_DELIMITER,
}
_OTHER_ENGINE = "read the table with the engine that wrote it"


@dataclass(frozen=True, slots=True)
class TextSettings:
    """Spelling of files; all but the end of lines is for CSV."""

    line_end: str = "\n"
    delimiter: str = ","
    quote: str = '"'
    escape: str = "\\"
    null_text: str = ""
    has_header: bool = False

    @property
    def has_usual_lines(self) -> bool:
        """Whether a line ends at each line feed and each carriage return."""
        return self.line_end in _LINE_ENDS


@dataclass(frozen=True, slots=True)
class Written:
    """What a file does not say of itself: the columns that it was written with, in their order, and the options of its
    table."""

    fields: tuple[DataField, ...]
    options: Mapping[str, str]
    zoned: bool = False
    """Whether texts of moments say their zone, as those of messages do."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """The options, and how to refuse one of them."""

    options: Mapping[str, str]
    where: str
    error: type[LakebedError]
    hint: str

    def chosen(self, keys: Sequence[str], default: str) -> str:
        return next((self.options[key] for key in keys if key in self.options), default)

    def character(self, keys: Sequence[str], default: str) -> str:
        text = self.chosen(keys, default)
        if len(text) != 1 or not text.isascii() or text in "\0\r\n":
            raise self.refused(f"`{keys[0]}` is {text!r}, not one ASCII character")
        return text

    def refused(self, reason: str) -> LakebedError:
        return self.error(f"{self.where}: {reason}", hint=self.hint)


def text_settings(
    kind: str,
    options: Mapping[str, str],
    where: str,
    error: type[LakebedError] = Unsupported,
    hint: str = _OTHER_ENGINE,
) -> TextSettings:
    """The settings of a format among the options of a table, or an error that names the option."""
    asked = _Asked(options, where, error, hint)
    line_option = _LINE_OPTIONS[kind]
    line_end = asked.chosen((line_option.key, *(("lineSep",) if kind != "json" else ())), line_option.default)
    if not line_end or (line_end not in _LINE_ENDS and line_end[0] in line_end[1:]):
        raise asked.refused(
            f"lines end with {line_end!r} (`{line_option.key}`), whose beginning can not be told from its middle"
        )
    if kind != "csv":
        return TextSettings(line_end)
    mode = asked.chosen((CSV_MODE.key, "mode"), CSV_MODE.default)
    if mode.lower() not in CSV_MODE.honoured_choices:
        raise asked.refused(f"`{CSV_MODE.key}` is `{mode}`, by which rows that can not be read are left out")
    settings = TextSettings(
        line_end=line_end,
        delimiter=asked.character(
            (CSV_FIELD_DELIMITER.key, "field-delimiter", "seq", "delimiter"), CSV_FIELD_DELIMITER.default
        ),
        quote=asked.character((CSV_QUOTE_CHARACTER.key, "quote"), CSV_QUOTE_CHARACTER.default),
        escape=asked.character((CSV_ESCAPE_CHARACTER.key, "escape"), CSV_ESCAPE_CHARACTER.default),
        null_text=asked.chosen((CSV_NULL_LITERAL.key, "nullvalue"), CSV_NULL_LITERAL.default),
        has_header=asked.chosen((CSV_INCLUDE_HEADER.key, "header"), "false").strip().lower() == "true",
    )
    special = (settings.delimiter, settings.quote, settings.escape)
    if len(set(special)) < len(special):
        raise asked.refused(
            f"`csv.field-delimiter`, `csv.quote-character` and `csv.escape-character` are {special}, of which two are "
            "the same"
        )
    if not settings.has_usual_lines and set(line_end) & set(special):
        raise asked.refused(f"lines end with {line_end!r} (`{line_option.key}`), which holds one of {special}")
    ends = "\r\n" if settings.has_usual_lines else line_end
    if set(settings.null_text) & {*special, *ends}:
        raise asked.refused(
            f"`csv.null-literal` is {settings.null_text!r}, which holds a delimiter, a quote, an escape or a line end"
        )
    return settings
