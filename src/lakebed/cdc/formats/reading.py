"""What is said of messages beside the name of their format: what their keys are, and where their schemas stand."""

from __future__ import annotations

from typing import Final

from lakebed.cdc.formats.registry import Registry
from lakebed.errors import InvalidArgument, did_you_mean
from lakebed.records import dataclass

JSON_KEY: Final = "json"
TEXT_KEY: Final = "text"
AVRO_KEY: Final = "avro"
KEY_FORMATS: Final = (JSON_KEY, TEXT_KEY, AVRO_KEY)


@dataclass(frozen=True, slots=True)
class KeyForm:
    """What keys of messages are: a format, and the columns that are taken of them (all, if none is named).

    A key that is one value, a text or a bare value of JSON, is that of the one column that is named.
    """

    format: str
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.format not in KEY_FORMATS:
            raise InvalidArgument(
                f"there is no format `{self.format}` of keys", hint=did_you_mean(self.format, KEY_FORMATS)
            )
        if self.format == TEXT_KEY and len(self.columns) != 1:
            raise InvalidArgument(
                "a key that is a text is the value of one column", hint="name the column with `key_columns`"
            )


@dataclass(frozen=True, slots=True)
class Reading:
    """Both, as far as they are given."""

    key: KeyForm | None = None
    registry: Registry | None = None


__all__ = ["AVRO_KEY", "JSON_KEY", "KEY_FORMATS", "TEXT_KEY", "KeyForm", "Reading"]
