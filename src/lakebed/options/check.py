"""Whether options may be set, changed or, in a table of another engine, ignored.

Options that a lakebed user sets are checked strictly: what is mistyped, ill-formed or not honoured is refused before
anything is written, but for what tunes other engines and can change no result: that is kept, with a warning. A key that
resembles no option is a property of the user's own, kept and without effect. Options
found in a stored table are judged by one question: would ignoring this value make a read or a write wrong? Which
options go together is no matter of this file; the parts they configure know that.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping

from lakebed.calls import warn_caller
from lakebed.errors import InvalidOption, did_you_mean
from lakebed.options.option import ON_CREATE, FieldOption, Option
from lakebed.options.table import OPTIONS, find_option, known_keys
from lakebed.options.view import Options

__all__ = ["check_options", "check_unchanged", "is_custom", "unhonoured_for_read", "unhonoured_for_write"]


def check_options(
    raw: Mapping[str, object], *, for_create: bool, columns: Collection[str] | None = None
) -> dict[str, str]:
    """The options as they are to be stored: proper keys, texts for values. Raises InvalidOption for the first that
    is unknown, ill-formed, not honoured or names a column that is not among `columns` (None: not checked).
    Properties of the user's own are stored as they are.

    `for_create` allows the options that only the creation of a table knows, such as its keys.
    """
    checked: dict[str, str] = {}
    given_as: dict[str, str] = {}
    for key, value in raw.items():
        if is_custom(key):
            checked[key] = str(value)
            continue
        option = _known(key)
        if option.scope == ON_CREATE and not for_create:
            raise InvalidOption(
                f"option `{key}` can be given only when a table is created", hint="leave it out, or create a new table"
            )
        if isinstance(option, FieldOption):
            proper, option = key, _of_columns(option, key, columns)
        else:
            proper = option.key
        text = option.text(value)
        if not option.honours(option.parse(text)):
            if not option.tuning:
                raise option.refusal(option.parse(text))
            warn_caller(f"option `{proper}` has no effect here: {option.instead}")
        if text in option.ignored_choices:
            warn_caller(f"option `{proper}` = `{text}` has no meaning any more and was left out")
            continue
        if checked.get(proper, text) != text:
            raise InvalidOption(
                f"options `{given_as[proper]}` and `{key}` are the same option with two values",
                hint=f"keep `{proper}` only",
            )
        checked[proper], given_as[proper] = text, key
    return checked


def is_custom(key: str) -> bool:
    """Whether it is a property of the user's own: no option, and nothing like one that is mistyped."""
    if find_option(key) is not None:
        return False
    if key.startswith(("avro.", "orc.", "parquet.")):
        return True  # settings of the libraries that other engines write files with
    if key.startswith("log."):
        return True  # settings of the log system beside a table that Paimon once had
    return not difflib.get_close_matches(key, known_keys(key), n=1, cutoff=0.6)


def check_unchanged(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Raise InvalidOption if an option differs that can not change once a table has snapshots."""
    old, new = Options(before), Options(after)
    for option in OPTIONS:
        if option.immutable and not isinstance(option, FieldOption) and old[option] != new[option]:
            raise InvalidOption(
                f"option `{option.key}` can not change from `{old[option]}` to `{new[option]}`: the table has data",
                hint="create a new table with the option and copy the rows",
            )


def unhonoured_for_read(raw: Mapping[str, str]) -> list[Option[object]]:
    """Options of a stored table that change what a read returns and that lakebed does not honour: refuse to read."""
    return _unhonoured(raw, "read")


def unhonoured_for_write(raw: Mapping[str, str]) -> list[Option[object]]:
    """Options of a stored table that change what a write must do and that lakebed does not honour: refuse to write."""
    return _unhonoured(raw, "write")


def _unhonoured(raw: Mapping[str, str], doing: str) -> list[Option[object]]:
    found = []
    for key, text in raw.items():
        option = find_option(key)
        if option is None or doing not in option.affects:
            continue  # custom properties and matters of taste
        if isinstance(option, FieldOption):
            option = option.named(key)
        try:
            value = option.parse(text)
        except InvalidOption:
            found.append(option)  # a value nobody here understands is not safe to ignore
            continue
        if value != option.default and not option.honours(value):
            found.append(option)
    return found


def _known(key: str) -> Option[object]:
    option = find_option(key)
    if option is None:
        raise InvalidOption(f"there is no option `{key}`", hint=did_you_mean(key, known_keys(key)))
    return option


def _of_columns(option: FieldOption[object], key: str, columns: Collection[str] | None) -> Option[object]:
    for name in option.names_in(key) or ():
        if columns is not None and option.names_columns and name not in columns:
            raise InvalidOption(
                f"option `{key}` names column `{name}`, which the table does not have",
                hint=did_you_mean(name, columns),
            )
    return option.named(key)
