"""The reference page of all options, made from the table so that it can not disagree with it."""

from __future__ import annotations

from lakebed.options.option import Kind, Option
from lakebed.options.table import GROUPS
from lakebed.units import LONG_MAX

__all__ = ["described", "options_page"]

_INTRO = """# Options

<!-- Made by `python -m lakebed.options`; change the option table, not this page. -->

Options are texts, set when a table is created, changed later, or given to a single read or write. lakebed knows the
options of Apache Paimon and a few of its own. The last column says whether it honours them. One that it does not
honour is refused when it is set, with the advice given there, and never ignored silently; only setting it to a default
that means "off" (`false`, `none`, 0) is allowed. "No effect" stands where an option of another engine can change no
result: it is kept in the table for that engine, and a warning says so.

Sizes are whole numbers with `b`, `kb`, `mb`, `gb` or `tb` (powers of 1024; bare numbers are bytes). Durations are whole
numbers with `ms`, `s`, `min`, `h` or `d` (bare numbers are milliseconds). Lists have commas between their items.
"""


def options_page() -> str:
    """The page as Markdown, one table per group."""
    parts = [_INTRO]
    for group, options in GROUPS.items():
        rows = [f"## {group}", "", "| Option | Type | Default | Meaning | In lakebed |", "|---|---|---|---|---|"]
        rows.extend(_row(option) for option in options)
        parts.append("\n".join(rows) + "\n")
    return "\n".join(parts)


def _row(option: Option[object]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in described(option)) + " |"


def described(option: Option[object]) -> tuple[str, str, str, str, str]:
    """Key, type, default, meaning and what lakebed makes of it, as the page's columns have them."""
    return f"`{option.key}`", option.kind.value, _default(option), _meaning(option), _standing(option)


def _default(option: Option[object]) -> str:
    if option.default is None or option.default == ():
        return "-"
    if option.default == LONG_MAX:
        return "unlimited"
    if option.default == "":
        return "empty"
    return f"`{option.text(option.default)}`".replace("\n", "\\n")


def _meaning(option: Option[object]) -> str:
    sentences = [option.help]
    if option.kind is Kind.CHOICE:
        sentences.append("One of " + ", ".join(f"`{choice}`" for choice in option.choices) + ".")
    if option.form:
        sentences.append(f"Form: {option.form}.")
    if option.immutable:
        sentences.append("Fixed once the table has data.")
    if option.aliases:
        sentences.append("Older names: " + ", ".join(f"`{alias}`" for alias in option.aliases) + ".")
    return " ".join(sentences)


def _standing(option: Option[object]) -> str:
    if not option.honoured:
        standing = f"no effect: {option.instead}" if option.tuning else f"no: {option.instead}"
    elif option.honoured_choices:
        standing = "only " + ", ".join(f"`{choice}`" for choice in option.honoured_choices)
    else:
        standing = "yes"
    if option.paimon == "ours":
        return f"{standing} (not a Paimon option)"
    if option.paimon != "same":
        return f"{standing} ({option.paimon})"
    return standing
