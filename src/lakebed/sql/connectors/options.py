"""What the options of a connector are, and the checks that all connectors share: names, what is required, kinds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from lakebed.errors import InvalidOption, LakebedError, Unsupported, did_you_mean
from lakebed.records import dataclass
from lakebed.sql.words.secrets import is_secret, names_environment
from lakebed.units import parse_duration

CONNECTOR: Final = "connector"
"""The option that says which connector it is."""
TEXT, WHOLE, NUMBER, TRUTH, DURATION = "text", "whole number", "number", "true or false", "duration"
ANY_COLUMN, ANYTHING = "#", "*"
"""Parts of the name of an option that stand for a column, and for any text behind a prefix."""


@dataclass(frozen=True, slots=True)
class ConnectorOption:
    """One option: its name as Flink spells it, what it takes, and what it is for. `fields.#.min` is one for each
    column, `properties.*` one for each name.
    """

    name: str
    says: str
    kind: str = TEXT
    default: str | None = None
    is_required: bool = False
    choices: tuple[str, ...] = ()
    refused: str | None = None
    """Why a connector of Flink has it, and this one does not."""

    @property
    def is_secret(self) -> bool:
        """Whether its values must not be shown."""
        return is_secret(self.name)

    def fits(self, key: str, columns: Iterable[str]) -> bool:
        """Whether a key is this option, or one of it."""
        if self.name.endswith(ANYTHING):
            return key.startswith(self.name[:-1]) and len(key) >= len(self.name)
        if ANY_COLUMN not in self.name:
            return key == self.name
        return any(key == self.name.replace(ANY_COLUMN, column) for column in columns)


def refused(name: str, why: str) -> ConnectorOption:
    """An option of Flink's connector that means nothing here."""
    return ConnectorOption(name, "not honoured", refused=why)


def check_options(
    table: str, connector: str, declared: Iterable[ConnectorOption], given: Mapping[str, str], columns: Iterable[str]
) -> None:
    """Raises for options that are unknown, missing, not honoured or of the wrong kind. No value of a secret is told."""
    known, names = tuple(declared), tuple(columns)
    for key, value in given.items():
        if key == CONNECTOR:
            continue
        option = next((each for each in known if each.fits(key, names)), None)
        if option is None:
            raise _unknown(table, connector, key, known)
        if option.refused is not None:
            raise Unsupported(
                f"table `{table}`: option `{key}` of connector `{connector}` is not honoured here", hint=option.refused
            )
        _check_value(table, key, option, value)
    missing = [option.name for option in known if option.is_required and not given.get(option.name, "").strip()]
    if missing:
        listed = ", ".join(f"`{name}`" for name in missing)
        lacking = " = '...', ".join(f"'{name}'" for name in missing)
        raise InvalidOption(
            f"table `{table}`: connector `{connector}` needs {listed}", hint=f"add {lacking} = '...' to WITH (...)"
        )


def _unknown(table: str, connector: str, key: str, known: Iterable[ConnectorOption]) -> InvalidOption:
    names = [option.name for option in known if option.refused is None]
    guess = did_you_mean(key, names)
    listed = ", ".join(names)
    hint = f"{guess} It takes {listed}" if guess.startswith("did you mean") else f"it takes {listed}"
    return InvalidOption(f"table `{table}`: connector `{connector}` has no option `{key}`", hint=hint)


def _check_value(table: str, key: str, option: ConnectorOption, value: str) -> None:
    """What comes from the environment is not looked at before it is needed."""
    if names_environment(value):
        return
    if option.choices and value not in option.choices:
        shown = "something else" if option.is_secret else f"`{value}`"
        listed = ", ".join(f"`{choice}`" for choice in option.choices)
        raise InvalidOption(f"table `{table}`: option `{key}` is {shown}", hint=f"it takes {listed}")
    if not is_of_kind(option.kind, value):
        shown = "not one" if option.is_secret else f"`{value}`"
        raise InvalidOption(f"table `{table}`: option `{key}` is {shown}", hint=f"give a {option.kind}")


def is_of_kind(kind: str, value: str) -> bool:
    """Whether a text spells a value of a kind."""
    text = value.strip()
    if kind == WHOLE:
        return re.fullmatch(r"[+-]?\d+", text) is not None
    if kind == NUMBER:
        return re.fullmatch(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", text) is not None
    if kind == TRUTH:
        return text.lower() in ("true", "false")
    if kind == DURATION:
        try:
            parse_duration(text)
        except LakebedError:
            return False
    return True
