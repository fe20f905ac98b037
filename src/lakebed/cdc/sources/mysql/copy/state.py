"""How far the copy of tables is: part of an offset, so that it lives and dies with it.

Tables are copied one after another, in order of their keys, and every step copies rows as of the stream's position at
that moment. So one key per table says everything: rows up to it are in the lake and follow the stream, the others are
not there yet and changes of them are passed over.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from lakebed.cdc.sources.mysql.columns import TableColumns
from lakebed.cdc.sources.mysql.copy.keys import Cut, KeyRange, can_be_cut, cut_expression, key_columns, range_condition
from lakebed.cdc.sources.mysql.copy.text_rows import quoted
from lakebed.cdc.sources.mysql.server.catalog import Name, read_tables
from lakebed.cdc.sources.mysql.server.follow import Follow
from lakebed.cdc.sources.mysql.server.server import Server, rows
from lakebed.records import dataclass

_PART_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class CopyState:
    """Tables that wait, the one that is under way with the last copied key, and what the last step copied."""

    pending: tuple[Name, ...] = ()
    current: Name | None = None
    after: Cut | None = None
    step: tuple[KeyRange, ...] = ()
    anew: tuple[Name, ...] = ()
    """Those of the tables that wait, or are under way, whose copy takes the place of an older one."""
    requests: tuple[str, ...] = ()
    """Who asked for them, until that is in an offset."""

    @property
    def is_done(self) -> bool:
        """Whether all tables are copied."""
        return not self.pending and self.current is None

    def waits(self, database: str, table: str) -> bool:
        """Whether nothing of a table is in the lake yet."""
        name = (database, table)
        return name in self.pending or (name == self.current and self.after is None)

    def without_step(self) -> CopyState:
        """After the step."""
        return replace(self, step=(), requests=())

    def with_anew(self, request: str, names: Sequence[Name]) -> CopyState:
        """With tables that are to be copied anew."""
        waiting = {*self.pending, self.current}
        more = tuple(name for name in names if name not in waiting)
        return replace(self, pending=self.pending + more, anew=self.anew + more, requests=(*self.requests, request))

    def to_text(self) -> str:
        """JSON; empty when all is done and nothing was copied last."""
        if self.is_done and not self.step:
            return ""
        body = {
            "pending": [list(name) for name in self.pending],
            "current": self.current and list(self.current),
            "after": self.after and list(self.after),
            "step": [part.to_json() for part in self.step],
        }
        body |= {"anew": [list(name) for name in self.anew]} if self.anew else {}
        body |= {"requests": list(self.requests)} if self.requests else {}
        return json.dumps(body, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> CopyState:
        """Inverse of `to_text`."""
        if not text:
            return cls()
        body: dict[str, Any] = json.loads(text)
        return cls(
            tuple((name[0], name[1]) for name in body["pending"]),
            (body["current"][0], body["current"][1]) if body["current"] else None,
            tuple(body["after"]) if body["after"] is not None else None,
            tuple(KeyRange.from_json(part) for part in body["step"]),
            tuple((name[0], name[1]) for name in body.get("anew", ())),
            tuple(body.get("requests", ())),
        )


def next_step(state: CopyState, server: Server, follow: Follow) -> CopyState:
    """The state after the next step, which holds the ranges that the step copies."""
    pending = list(state.pending)
    current, after = state.current, state.after
    step: list[KeyRange] = []
    while len(step) < follow.copy_chunks_per_batch and (current is not None or pending):
        if current is None:
            current, after = pending.pop(0), None
        tables = read_tables(server.connection, [current], mariadb=server.mariadb)
        if not tables:  # dropped meanwhile
            current, after = None, None
            continue
        cut = None
        if can_be_cut(tables[0], orders_keys=server.orders_keys):
            cut = _next_cut(server, tables[0], after, rows_at_once(tables[0], follow.copy_chunk_rows))
        step.append(KeyRange(*current, after, cut, is_anew=after is None and current in state.anew))
        current, after = (None, None) if cut is None else (current, cut)
    anew = tuple(name for name in state.anew if name in pending or name == current)
    return CopyState(tuple(pending), current, after, tuple(step), anew, state.requests)


def parts_of(server: Server, table: TableColumns, until: Cut | None, most: int) -> Iterator[KeyRange]:
    """All parts of a table up to a key, one after another."""
    after: Cut | None = None
    while True:
        cut = None
        if can_be_cut(table, orders_keys=server.orders_keys):
            cut = _next_cut(server, table, after, rows_at_once(table, most), until)
        yield KeyRange(table.database, table.table, after, until if cut is None else cut)
        if cut is None:
            return
        after = cut


def rows_at_once(table: TableColumns, most: int) -> int:
    """So many rows make a part: fewer than asked for if they are long, since a part is held in memory."""
    return max(1, min(most, _PART_BYTES // max(table.row_bytes, 1)))


def _next_cut(
    server: Server, table: TableColumns, after: Cut | None, count: int, until: Cut | None = None
) -> Cut | None:
    """The key of the row so many rows further on; None if the table, or what is asked for of it, ends before."""
    keys = key_columns(table)
    found = rows(
        server.connection,
        f"SELECT {', '.join(cut_expression(column) for column in keys)} "
        f"FROM {quoted(table.database)}.{quoted(table.table)} "
        f"WHERE {range_condition(server.connection, table, after, until)} "
        f"ORDER BY {', '.join(quoted(column.name) for column in keys)} LIMIT 1 OFFSET {count - 1}",
    )
    return tuple(str(part) for part in found[0]) if found else None


__all__ = ["CopyState", "next_step", "parts_of", "rows_at_once"]
