"""Functions of text that DuckDB has not, or has differently beyond ASCII, as Arrow computes them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.expressions.nodes import ArrowFunction

_SEPARATORS = "\0\1\2\3\4\5\6\7"


def _at_once(change: Callable[[str], str], values: Any) -> Any:
    """A change of letters, for all values in one text: none of the separators has an upper or lower case."""
    given = values.to_pylist()
    whole = [value for value in given if value is not None]
    separator = next((each for each in _SEPARATORS if not any(each in value for value in whole)), None)
    if separator is None:
        changed = iter([change(value) for value in whole])
    else:
        changed = iter(change(separator.join(whole)).split(separator)) if whole else iter(())
    return pa.array([None if value is None else next(changed) for value in given], pa.string())


def _titled(text: str) -> str:
    """Every word, between blanks, with its first letter in title case."""
    return re.sub(r"[^ \0-\7]+", _titled_word, text)


def _titled_word(found: re.Match[str]) -> str:
    word = found.group()
    return word[0].title() + word.lower()[len(word[0].lower()) :]


def _reversed(values: Any) -> Any:
    return pc.utf8_reverse(values)


def _distance(left: str, right: str) -> int:
    row = list(range(len(right) + 1))
    for n, letter in enumerate(left, 1):
        before, row[0] = row[0], n
        for m, other in enumerate(right, 1):
            before, row[m] = row[m], min(row[m] + 1, row[m - 1] + 1, before + (letter != other))
    return row[-1]


def _distances(left: Any, right: Any) -> Any:
    pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
    return pa.array([None if a is None or b is None else _distance(a, b) for a, b in pairs], pa.int64())


UPPER = ArrowFunction(
    name="lakebed_upper", compute=lambda values: _at_once(str.upper, values), types=("VARCHAR", "VARCHAR")
)
LOWER = ArrowFunction(
    name="lakebed_lower", compute=lambda values: _at_once(str.lower, values), types=("VARCHAR", "VARCHAR")
)
INITCAP = ArrowFunction(
    name="lakebed_initcap", compute=lambda values: _at_once(_titled, values), types=("VARCHAR", "VARCHAR")
)
REVERSE = ArrowFunction(name="lakebed_reverse", compute=_reversed, types=("VARCHAR", "VARCHAR"))
LEVENSHTEIN = ArrowFunction(name="lakebed_levenshtein", compute=_distances, types=("VARCHAR", "VARCHAR", "BIGINT"))
