"""The options of one table, or of one read or write, as typed values.

The texts are parsed when they are asked for: a table of another engine may hold options and values that nobody here
needs, and they must not keep it from being opened. What was parsed once is kept: a write looks at some eighty options.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from lakebed.options.option import FieldOption, Names, Option
from lakebed.options.table import find_option

__all__ = ["Options"]

T = TypeVar("T")


class Options(dict[Option[Any], Any]):
    """`options[BUCKET]` is the value that was set, or the default. `raw` holds the texts as they are stored.

    As a dictionary it holds what was parsed so far, so that a value is found without a call from the second time on.
    """

    __slots__ = ("raw",)

    def __init__(self, raw: Mapping[str, str]) -> None:
        super().__init__()
        self.raw = dict(raw)  # so that nobody's later change is seen here

    if TYPE_CHECKING:

        def __getitem__(self, option: Option[T]) -> T: ...

    def __missing__(self, option: Option[T]) -> T:
        text = self._text(option)
        found = self[option] = option.default if text is None else option.parse(text)
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Options) and self.raw == other.raw

    __hash__ = None

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"Options({self.raw!r})"

    def __reduce__(self) -> tuple[type[Options], tuple[dict[str, str]]]:
        return Options, (self.raw,)

    def get(self, option: Option[T]) -> T | None:  # type: ignore[override]
        """The value that was set, or None when nothing was, whatever the default."""
        text = self._text(option)
        return None if text is None else option.parse(text)

    def has(self, option: Option[object]) -> bool:
        """Whether the option was set, under any of its names."""
        return self._text(option) is not None

    def field(self, option: FieldOption[T], column: str) -> T:
        """The value set for one column, or the default."""
        for names, value in self.fields_with(option).items():
            if column in names:
                return value
        return option.default

    def fields_with(self, option: FieldOption[T]) -> dict[Names, T]:
        """Every value of the option, by the names in its key: one column, or several for a sequence group."""
        found: dict[Names, T] = {}
        for key, text in self.raw.items():
            names = option.names_in(key)
            if names is not None:
                found[names] = option.named(key).parse(text)
        return found

    def with_overrides(self, overrides: Mapping[str, str]) -> Options:
        """These options with others on top; an override under any name replaces a value under any name."""
        return Options(_canonical(self.raw) | _canonical(overrides))

    def _text(self, option: Option[object]) -> str | None:
        for key in (option.key, *option.aliases):
            if key in self.raw:
                return self.raw[key]
        return None


def _canonical(raw: Mapping[str, str]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for key, text in raw.items():
        option = find_option(key)
        if option is None or key not in option.aliases:
            texts[key] = text  # the proper name wins over an older one
        else:
            texts.setdefault(option.key, text)
    return texts
