"""What tables looked like whenever somebody looked, kept beside the checkpoint: also columns that are gone since."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from lakebed.cdc.envelope import Description
from lakebed.cdc.sources.postgres.column_numbers import Form
from lakebed.cdc.sources.postgres.state import SourceState
from lakebed.types.logical import with_nullable

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


__all__ = ["SEEN", "SeenColumns", "remembered", "seen_columns"]
