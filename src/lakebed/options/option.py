"""What one option is: its key, its type, its default and how far lakebed honours it.

An entry of the table is itself the typed handle: `options[BUCKET]` is an `int` to the type checker. An option
without a default says so in its type (`Option[int | None]`). Texts are parsed the way Paimon parses them, since the
same texts are stored in the table for other engines. Nothing here knows which options exist; the tables do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from enum import Enum
from functools import cached_property
from typing import Final, Generic, TypeVar, cast

from lakebed.errors import InvalidOption, did_you_mean
from lakebed.records import dataclass
from lakebed.units import format_duration, format_size, parse_duration, parse_size

__all__ = [
    "INT_MAX",
    "ON_CREATE",
    "ON_READ",
    "ON_TABLE",
    "ON_WRITE",
    "READS",
    "READS_AND_WRITES",
    "WRITES",
    "FieldOption",
    "Kind",
    "Names",
    "Option",
]

T_co = TypeVar("T_co", covariant=True)

Names = tuple[str, ...]
"""The value of a comma-separated list."""

INT_MAX: Final = 2**31 - 1

ON_CREATE: Final = frozenset({"create"})
ON_TABLE: Final = frozenset({"table"})
ON_READ: Final = frozenset({"table", "read"})
ON_WRITE: Final = frozenset({"table", "write"})

READS: Final = frozenset({"read"})
WRITES: Final = frozenset({"write"})
READS_AND_WRITES: Final = READS | WRITES


class Kind(Enum):
    """What the text of an option stands for; the value is the word the reference page uses."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    DECIMAL = "decimal"
    SIZE = "size"
    DURATION = "duration"
    TEXT = "text"
    LIST = "list"
    CHOICE = "choice"


_PATTERNS: Final = {
    Kind.INTEGER: (re.compile(r"[+-]?[0-9]{1,19}"), "a whole number, such as `4`"),
    Kind.DECIMAL: (re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"), "a number, such as `0.7`"),
}


@dataclass(frozen=True, eq=False)
class Option(Generic[T_co]):
    """One entry of the option table, itself and no other: it is looked up by identity.

    `choices` are the texts a CHOICE may have, of which only `honoured_choices` work here (empty: all of them);
    `ignored_choices` are taken with a warning, and forgotten.
    `pattern` is a regular expression for texts with a form, which `form` describes. `minimum` and `maximum` bound
    INTEGER values; the defaults are what a Java int holds. `scope` says where the option may be given. `affects`
    says what would go wrong, reads or writes, if a value of another engine's table were ignored. `instead` tells the
    user of an option (or choice) that is not honoured what to do. `tuning`: an option that is not honoured, but
    whose value can change nothing but the time and space that work takes; it is kept for other engines, with a warning
    that it has no effect here. `paimon` is `same`, `ours` or `differs: how`.
    """

    key: str
    kind: Kind
    default: T_co
    help: str
    choices: Names = ()
    honoured_choices: Names = ()
    ignored_choices: Names = ()
    pattern: str = ""
    form: str = ""
    minimum: int = -INT_MAX - 1
    maximum: int = INT_MAX
    aliases: Names = ()
    immutable: bool = False
    honoured: bool = False
    instead: str = ""
    scope: frozenset[str] = ON_TABLE
    affects: frozenset[str] = frozenset()
    tuning: bool = False
    paimon: str = "same"

    def parse(self, text: str) -> T_co:
        """The value of a text, or an InvalidOption that names the option."""
        value = self._value(text)
        return cast(T_co, value)

    def text(self, value: object) -> str:
        """A text that parses to the value; a text given by the user is kept as it is where other engines read it."""
        given = self._spell(value)
        parsed = self._value(given)
        if self.kind in (Kind.BOOLEAN, Kind.CHOICE):
            return parsed if isinstance(parsed, str) else str(parsed).lower()
        if self.kind is Kind.DURATION and given.endswith("us"):
            return given.removesuffix("us") + "µs"  # the one unit that only we accept in ASCII
        return given

    def honours(self, value: object) -> bool:
        """Whether lakebed does what this parsed value asks for. Switching off what does not exist is honoured."""
        if not self.honoured:
            return value == self.default and self._is_off
        return not self.honoured_choices or value in self.honoured_choices

    def refusal(self, value: object) -> InvalidOption:
        """The error for a value that is valid in Paimon but not honoured here."""
        if self.honoured_choices:
            works = ", ".join(f"`{choice}`" for choice in self.honoured_choices)
            hint = f"{self.instead}; what works: {works}" if self.instead else f"what works: {works}"
            return InvalidOption(f"option `{self.key}`: lakebed does not honour `{value}`", hint=hint)
        return InvalidOption(f"lakebed does not honour option `{self.key}`", hint=self.instead)

    @property
    def _is_off(self) -> bool:
        return not self.default or str(self.default).lower() in ("none", "false", "disabled")

    def _spell(self, value: object) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, timedelta) and self.kind is Kind.DURATION:
            return format_duration(value // timedelta(milliseconds=1))
        if isinstance(value, int | float):
            if self.kind is Kind.SIZE and isinstance(value, int):
                return format_size(value)
            if self.kind is Kind.DURATION and isinstance(value, int):
                return format_duration(value)
            return str(value)
        if isinstance(value, str):
            return value if self.kind is Kind.TEXT else value.strip()
        if isinstance(value, Sequence) and self.kind is Kind.LIST and all(isinstance(name, str) for name in value):
            return ",".join(value)
        raise InvalidOption(
            f"option `{self.key}` has a value of type {type(value).__name__}",
            hint=f"give {self._expected}, or leave the option out",
        )

    def _value(self, text: str) -> object:
        try:
            match self.kind:
                case Kind.SIZE:
                    return parse_size(text)
                case Kind.DURATION:
                    return parse_duration(text)
                case Kind.INTEGER | Kind.DECIMAL:
                    return self._number(text)
                case Kind.BOOLEAN | Kind.CHOICE:
                    return self._choice(text)
                case Kind.LIST:
                    names = tuple(name.strip() for name in text.split(",") if name.strip())
                    for name in names:
                        self._check_form(name)
                    return names
                case Kind.TEXT:
                    self._check_form(text)
                    return text
        except InvalidOption as error:
            if self.key in error.message:
                raise
            raise InvalidOption(f"option `{self.key}`: {error.message}", hint=error.hint) from None

    def _number(self, text: str) -> int | float:
        pattern, _ = _PATTERNS[self.kind]
        if pattern.fullmatch(text) is None:
            raise self._bad(text)
        if self.kind is Kind.DECIMAL:
            return float(text)
        number = int(text)
        if not self.minimum <= number <= self.maximum:
            raise InvalidOption(
                f"option `{self.key}` can not be {text}",
                hint=f"it goes from {self.minimum} to {self.maximum}",
            )
        return number

    def _choice(self, text: str) -> bool | str:
        words = ("true", "false") if self.kind is Kind.BOOLEAN else self.choices
        # Like in Paimon, case does not matter.
        for word in words:
            if word.lower() == text.strip().lower():
                return word == "true" if self.kind is Kind.BOOLEAN else word
        raise InvalidOption(
            f"option `{self.key}` can not be `{text}`; it is {self._expected}", hint=did_you_mean(text, words)
        )

    def _check_form(self, text: str) -> None:
        if self.pattern and re.fullmatch(self.pattern, text) is None:
            raise self._bad(text)

    def _bad(self, text: str) -> InvalidOption:
        return InvalidOption(f"option `{self.key}` can not be `{text}`", hint=f"give {self._expected}")

    @property
    def _expected(self) -> str:
        match self.kind:
            case Kind.BOOLEAN:
                return "`true` or `false`"
            case Kind.CHOICE:
                return "one of " + ", ".join(f"`{choice}`" for choice in self.choices)
            case Kind.INTEGER | Kind.DECIMAL:
                return _PATTERNS[self.kind][1]
            case Kind.SIZE:
                return "a size, such as `128 mb`"
            case Kind.DURATION:
                return "a duration, such as `10 min`"
            case Kind.LIST:
                return self.form or "names with commas between them"
            case Kind.TEXT:
                return self.form or "a text"


@dataclass(frozen=True, eq=False)
class FieldOption(Option[T_co]):
    """An option that exists once per name: its key has placeholders, as in `fields.<field>.stats-mode`.

    `<field>` stands for a column, `<fields>` for columns with commas between them; any other placeholder stands for
    a word of the option's own (such as an index type).
    """

    @cached_property
    def _regex(self) -> re.Pattern[str]:
        parts = re.split(r"<\w+>", self.key)
        return re.compile("(.+)".join(re.escape(part) for part in parts))

    @property
    def names_columns(self) -> bool:
        """Whether the placeholder stands for columns of the table."""
        return "<field>" in self.key or "<fields>" in self.key

    def names_in(self, key: str) -> Names | None:
        """The names a concrete key gives for the placeholders, or None when it is not a key of this option."""
        match = self._regex.fullmatch(key)
        if match is None:
            return None
        if "<fields>" in self.key:
            return tuple(name.strip() for name in match[1].split(","))
        return match.groups()

    def key_for(self, *names: str) -> str:
        """The concrete key for these names."""
        first, *others = re.split(r"<\w+>", self.key)
        filled = (",".join(names),) if "<fields>" in self.key else names
        return first + "".join(name + part for name, part in zip(filled, others, strict=True))

    def named(self, key: str) -> Option[T_co]:
        """The plain option behind one concrete key, so that errors name what the user wrote."""
        shared = {name: getattr(self, name) for name in Option.__dataclass_fields__ if name != "key"}
        return Option(key, **shared)
