"""Canal's messages: `data` and `old` are lists of rows whose values are texts, `mysqlType` has their types."""

from __future__ import annotations

import json
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.cdc.envelope import Chunk, Description, SourceColumn, SourceName
from lakebed.cdc.formats.base import (
    PLACE,
    Group,
    MessageFormat,
    column_texts,
    exact_numbers,
    groups_of,
    member_marks,
    member_names,
    placed,
    transformed,
)
from lakebed.cdc.formats.messages import (
    DELETE,
    INSERT,
    UPDATE,
    Actions,
    TableChanges,
    action_numbers,
    check_present,
    milliseconds,
    overlaid,
    whole_column,
)
from lakebed.cdc.formats.mysql_types import mysql_type
from lakebed.cdc.formats.texts import from_text
from lakebed.errors import InvalidData
from lakebed.types.logical import STRING, DataType, with_nullable

_SHAPE: Final = {
    "database": "VARCHAR",
    "table": "VARCHAR",
    "type": "VARCHAR",
    "isDdl": "BOOLEAN",
    "es": "BIGINT",
    "ts": "BIGINT",
    "data": ["JSON"],
    "old": ["JSON"],
    "mysqlType": "JSON",
    "pkNames": "JSON",
}
_ACTIONS: Final = {"INSERT": INSERT, "UPDATE": UPDATE, "DELETE": DELETE}


class CanalJson(MessageFormat):
    """`canal-json`."""

    name = "canal-json"

    def chunks(self, bodies: pa.Array, ordinal: int, about: pa.RecordBatch | None = None) -> list[Chunk]:
        """The changes; changes of tables (DDL) are left out: columns show with the next row."""
        members = placed(transformed(exact_numbers(pc.drop_null(bodies)), _SHAPE), bodies)
        members = members.filter(pc.invert(members.column("isDdl").fill_null(False))).combine_chunks()
        found: list[Chunk] = []
        for group in groups_of(members, ("database", "table"), ("pkNames", "mysqlType")):
            found += self._changes(members, group).chunks(ordinal + len(found), about)
        return found

    def _changes(self, members: pa.Table, group: Group) -> TableChanges:
        database, table, key, types = group.common
        messages = members.take(pa.array(group.rows))
        of_message = action_numbers(pc.utf8_upper(whole_column(messages, "type")), _ACTIONS, self.name)
        lists = whole_column(messages, "data")
        check_present(lists, np.ones(len(of_message), np.bool_), "data", self.name)
        check_present(whole_column(messages, "old"), of_message == UPDATE, "old", self.name)
        parents = pc.list_parent_indices(lists).to_numpy()
        actions = of_message[parents]
        data, old = lists.flatten(), self._old_rows(messages, of_message, parents)
        names = member_names([data])
        texts = column_texts(data, names)
        given, former = member_marks(old, names), column_texts(old, names)
        is_update = pa.array(actions == UPDATE)
        known = json.loads(types) if types else {}
        columns = tuple(SourceColumn(name, self._type(known.get(name))) for name in names)
        keys = tuple(json.loads(key) or ()) if key else ()
        columns = tuple(
            SourceColumn(each.name, with_nullable(each.type, each.name not in keys)) if known else each
            for each in columns
        )
        before = {
            each.name: from_text(
                overlaid(former[each.name], texts[each.name], pc.and_(given[each.name], is_update)), each, table
            )
            for each in columns
        }
        times = milliseconds(whole_column(messages, "es").fill_null(0))
        return TableChanges(
            SourceName(database or "", "", table or ""),
            Description(columns, keys, typed=bool(known)),
            actions,
            times[parents],
            before,
            {each.name: from_text(texts[each.name], each, table) for each in columns},
            {},
            np.zeros(len(actions), np.bool_),
            whole_column(messages, PLACE).take(pa.array(parents)),
        )

    def _old_rows(self, messages: pa.Table, of_message: Actions, parents: npt.NDArray[np.int64]) -> pa.Array:
        """The old row beside each row: NULL where the message is no update."""
        lists = whole_column(messages, "old")
        lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
        wanted = np.bincount(parents, minlength=len(of_message))
        is_update = of_message == UPDATE
        if np.any(lengths[is_update] != wanted[is_update]):
            raise InvalidData(
                f"a {self.name} message has another number of rows in `old` than in `data`",
                hint="this is no message of Canal's; is this the right format?",
            )
        rows = lists.flatten()
        starts = np.cumsum(lengths) - lengths
        within = np.arange(len(parents)) - (np.cumsum(wanted) - wanted)[parents]
        places = np.where(is_update[parents], starts[parents] + within, len(rows))
        return pa.concat_arrays([rows, pa.nulls(1, rows.type)]).take(pa.array(places))

    def _type(self, text: str | None) -> DataType:
        return STRING if text is None else mysql_type(text, self.modes)


__all__ = ["CanalJson"]
