"""Which column of the catalogue each column of the stream is, whatever it was called then.

A Relation message names columns without their numbers (`attnum`), and the catalogue tells only what they are now. But
numbers are given once and in order, and a message lists its columns in that order: so every column that is there today
and is not younger than the message's last is among its columns. If nothing was ever dropped, that alone says which is
which, however often columns were renamed. Otherwise the assignment is taken that explains names and types best.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from typing import Any, Final

from lakebed.cdc.envelope import Description
from lakebed.cdc.sources.postgres.state import SourceState
from lakebed.records import dataclass
from lakebed.types.logical import with_nullable

Form = tuple[str, str]
"""Name and type of a column at some time."""

_SAME, _RENAMED, _UNKNOWN, _RETYPED, _OTHER = 0, 1, 1, 2, 4
_NEVER = 1 << 30


def column_numbers(
    columns: Sequence[Form], today: Mapping[int, Form], gone: Collection[int], former: Mapping[int, Collection[Form]]
) -> list[int] | None:
    """The number of each column; None if no assignment is possible.

    `today` and `gone` are the numbers of columns that are there and that were dropped; `former` is what is known of
    names and types that columns had before.
    """
    numbers = sorted({*today, *gone})
    # best[j]: what it costs to have the first j columns among the numbers so far, and which those are.
    best: list[tuple[int, list[int]]] = [(0, []), *((_NEVER, []) for _ in columns)]
    for number in numbers:
        forms = [*([today[number]] if number in today else []), *former.get(number, ())]
        for place in range(len(columns), 0, -1):
            cost, chosen = best[place - 1]
            taken = min(cost + _cost(columns[place - 1], forms), _NEVER)
            is_over = place == len(columns)
            # A column that is there today can not be passed over, except by a message that is older than all of it.
            if (number in today and not is_over) or (taken <= best[place][0] and taken < _NEVER):
                best[place] = (taken, [*chosen, number])
        if number in today:
            best[0] = (_NEVER, [])
    cost, chosen = best[len(columns)]
    return chosen if cost < _NEVER else None


def _cost(column: Form, forms: Collection[Form]) -> int:
    if not forms:
        return _UNKNOWN  # dropped before anybody looked: it may have been anything
    costs = {(True, True): _SAME, (False, True): _RENAMED, (True, False): _RETYPED, (False, False): _OTHER}
    return min(costs[column[0] == name, column[1] == kind] for name, kind in forms)


# --- What tables looked like whenever somebody looked, kept beside the checkpoint: also columns that are gone since


SEEN: Final = "tables"
"""The state's file: an entry for each table, by its id."""
_MOST_FORMS: Final = 8


@dataclass(frozen=True, slots=True)
class SeenColumns:
    """What is known of a table's columns: names and types that they had, and which were gone from the beginning."""

    forms: Mapping[int, Sequence[Form]] = field(default_factory=dict)
    dead: frozenset[int] = frozenset()


def seen_columns(state: SourceState, oid: int) -> SeenColumns:
    """What was seen of a table."""
    entry = (state.read(SEEN) or {}).get(str(oid))
    if entry is None:
        return SeenColumns()
    found = {int(number): [(name, kind) for name, kind in forms] for number, forms in entry.get("former", {}).items()}
    for number, form in _column_forms(entry["columns"]).items():
        found.setdefault(number, []).append(form)
    return SeenColumns(found, frozenset(entry.get("dead", ())))


def remembered(before: Mapping[str, Any] | None, text: str, storage: str, dropped: Sequence[int]) -> dict[str, Any]:
    """What is remembered of a table: its description and where its rows are stored, and what columns were before."""
    former: dict[str, list[list[str]]] = dict(before.get("former", {})) if before is not None else {}
    if before is not None:
        now = _column_forms(text)
        for number, form in _column_forms(before["columns"]).items():
            known = former.get(str(number), [])
            if now.get(number) != form and list(form) not in known:
                former[str(number)] = [*known, list(form)][-_MOST_FORMS:]
    dead = list(dropped) if before is None else before.get("dead", [])
    return {"columns": text, "storage": storage, "former": former, "dead": dead}


def _column_forms(text: str) -> dict[int, Form]:
    columns = Description.from_text(text).columns
    return {
        column.id & 0xFFFF: (column.name, str(with_nullable(column.type, True)))
        for column in columns
        if column.id is not None
    }


__all__ = ["SEEN", "Form", "SeenColumns", "column_numbers", "remembered", "seen_columns"]
