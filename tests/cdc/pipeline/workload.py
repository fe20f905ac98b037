"""Random changes of a PostgreSQL database: all kinds of columns, rows, transactions and schema changes."""

from __future__ import annotations

import random
import uuid
from dataclasses import dataclass, field
from typing import Any

_TYPES = {
    "smallint": "(random() * 1000)::smallint",
    "int": "(random() * 1000000)::int",
    "bigint": "(random() * 1e15)::bigint",
    "real": "(random() * 100)::real",
    "double precision": "random()",
    "numeric(12,3)": "(random() * 1000)::numeric(12,3)",
    "text": "'t' || (random() * 100000)::int",
    "varchar(20)": "substr(md5(random()::text), 1, 12)",
    "char(6)": "substr(md5(random()::text), 1, 6)",
    "boolean": "random() < 0.5",
    "date": "date '2020-01-01' + (random() * 3000)::int",
    "time(3)": "time '00:00' + (random() * 80000000)::int * interval '1 ms'",
    "timestamp(6)": "timestamp '2020-01-01' + random() * interval '1000 days'",
    "timestamptz(3)": "timestamptz '2020-01-01 00:00Z' + (random() * 1e10)::bigint * interval '1 ms'",
    "bytea": "decode(md5(random()::text), 'hex')",
    "uuid": "gen_random_uuid()",
    "jsonb": "jsonb_build_object('a', (random() * 100)::int)",
    "int[]": "array[1, (random() * 100)::int]",
    "text[]": "array['x', NULL, 'y' || (random() * 9)::int]",
}
_SHOWN_AS = {"uuid": "::text", "jsonb": "::text", "real": "::float8"}
_WIDER = {
    "smallint": "int",
    "int": "bigint",
    "varchar(20)": "text",
    "numeric(12,3)": "numeric(16,4)",
    "real": "double precision",
}
_DEFAULTS = {"int": "7", "text": "'dd'", "boolean": "true", "numeric(12,3)": "1.5", "date": "date '2024-02-29'"}


@dataclass
class Table:
    """A table: its key and its other columns with their types."""

    name: str
    columns: dict[str, str] = field(default_factory=dict)
    next_key: int = 0


class Workload:
    """Makes changes on a connection that commits every statement outside of transactions."""

    def __init__(self, connection: Any, seed: int) -> None:
        self._connection = connection
        self._random = random.Random(seed)
        self._counter = 0
        self.tables: list[Table] = []
        with_all = Table("everything", {f"c{i}": kind for i, kind in enumerate(_TYPES)})
        self._create(with_all)
        self._create(Table('Odd "name" ü', {"select": "text", 'Ünï"côde': "int"}))
        self._create(Table("large", {"note": "text", "n": "int"}))
        for table in self.tables:
            self._insert(table, 20)

    def round(self, count: int, *, with_ddl: bool = True) -> None:
        """Some random steps."""
        for _ in range(count):
            self._step(with_ddl)

    def expected(self, table: Table) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Columns and rows as they are in the database."""
        names = ["id", *table.columns]
        shown = [_quoted(name) + _SHOWN_AS.get(table.columns.get(name, ""), "") for name in names]
        rows = self._connection.execute(f"SELECT {', '.join(shown)} FROM {_quoted(table.name)} ORDER BY id").fetchall()
        return names, [tuple(_plain(value) for value in row) for row in rows]

    # --- steps ---------------------------------------------------------------------------------------------------

    def _step(self, with_ddl: bool) -> None:
        rng = self._random
        table = rng.choice(self.tables)
        kinds = ["insert", "update", "delete", "key", "transaction", "rolled back", "truncate", "large", "big"]
        weights = [20.0, 30, 10, 6, 10, 3, 1, 8, 1]
        if with_ddl:
            kinds += ["add", "drop", "rename", "widen", "null", "create"]
            weights += [4, 3, 3, 3, 2, 1]
        self._one(table, rng.choices(kinds, weights)[0])

    def _one(self, table: Table, kind: str) -> None:
        rng = self._random
        match kind:
            case "insert":
                self._insert(table, rng.randrange(1, 10))
            case "update":
                self._update(table)
            case "delete":
                self._run(f"DELETE FROM {_quoted(table.name)} WHERE id % 7 = {rng.randrange(7)}")
            case "key":
                table.next_key += 1
                self._run(
                    f"UPDATE {_quoted(table.name)} SET id = {table.next_key} WHERE id = "
                    f"(SELECT id FROM {_quoted(table.name)} ORDER BY random() LIMIT 1)"
                )
            case "transaction":
                with self._connection.transaction():
                    for _ in range(rng.randrange(2, 6)):
                        self._one(rng.choice(self.tables), rng.choice(["insert", "update", "delete", "key", "large"]))
            case "rolled back":
                with self._connection.transaction(force_rollback=True):
                    self._insert(table, 3)
                    self._update(table)
            case "truncate":
                self._run(f"TRUNCATE {_quoted(table.name)}")
            case "large":
                text = f"repeat(md5(id::text || '{rng.randrange(100)}'), 400)"
                name = next((name for name, kind in table.columns.items() if kind == "text"), None)
                if name is not None:
                    self._run(f"UPDATE {_quoted(table.name)} SET {_quoted(name)} = {text} WHERE id % 3 = 0")
            case "big":
                self._insert(table, 2000)
            case _:
                self._change(table, kind)

    def _change(self, table: Table, kind: str) -> None:
        rng = self._random
        name = _quoted(table.name)
        own = list(table.columns)
        match kind:
            case "add":
                self._counter += 1
                column, data_type = f"n{self._counter}", rng.choice(list(_TYPES))
                default = f" DEFAULT {_DEFAULTS[data_type]}" if data_type in _DEFAULTS else ""
                required = " NOT NULL" if default and rng.random() < 0.3 else ""
                self._run(f"ALTER TABLE {name} ADD COLUMN {column} {data_type}{required}{default}")
                table.columns[column] = data_type
            case "drop" if len(own) > 2:
                column = rng.choice(own)
                self._run(f"ALTER TABLE {name} DROP COLUMN {_quoted(column)}")
                del table.columns[column]
            case "rename" if own:
                self._counter += 1
                old, new = rng.choice(own), f"r{self._counter}"
                self._run(f"ALTER TABLE {name} RENAME COLUMN {_quoted(old)} TO {new}")
                table.columns = {new if key == old else key: value for key, value in table.columns.items()}
            case "widen":
                column = next((key for key, value in table.columns.items() if value in _WIDER), None)
                if column is not None:
                    wider = _WIDER[table.columns[column]]
                    self._run(f"ALTER TABLE {name} ALTER COLUMN {_quoted(column)} TYPE {wider}")
                    table.columns[column] = wider
            case "null" if own:
                self._run(f"ALTER TABLE {name} ALTER COLUMN {_quoted(rng.choice(own))} DROP NOT NULL")
            case "create" if len(self.tables) < 6:
                self._counter += 1
                self._create(Table(f"new{self._counter}", {"a": "int", "b": "text"}))
                self._insert(self.tables[-1], 5)

    # --- statements ----------------------------------------------------------------------------------------------

    def _create(self, table: Table) -> None:
        columns = ", ".join(f"{_quoted(name)} {kind}" for name, kind in table.columns.items())
        self._run(f"CREATE TABLE {_quoted(table.name)} (id bigint PRIMARY KEY, {columns})")
        self.tables.append(table)

    def _insert(self, table: Table, count: int) -> None:
        first = table.next_key + 1
        table.next_key += count
        names = ", ".join(["id", *map(_quoted, table.columns)])
        values = ", ".join(["i", *(self._value(kind) for kind in table.columns.values())])
        self._run(
            f"INSERT INTO {_quoted(table.name)} ({names}) "
            f"SELECT {values} FROM generate_series({first}, {table.next_key}) i"
        )

    def _update(self, table: Table) -> None:
        if not table.columns:
            return
        chosen = self._random.sample(list(table.columns), k=min(len(table.columns), self._random.randrange(1, 4)))
        sets = ", ".join(f"{_quoted(name)} = {self._value(table.columns[name])}" for name in chosen)
        self._run(f"UPDATE {_quoted(table.name)} SET {sets} WHERE id % 5 = {self._random.randrange(5)}")

    def _value(self, kind: str) -> str:
        made = _TYPES.get(kind) or _TYPES[{"numeric(16,4)": "numeric(12,3)"}.get(kind, kind)]
        return f"COALESCE({made})" if self._random.random() < 0.9 else made

    def _run(self, statement: str) -> None:
        self._connection.execute(statement)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _plain(value: Any) -> Any:
    if isinstance(value, memoryview):
        return bytes(value)
    return str(value) if isinstance(value, uuid.UUID) else value


__all__ = ["Table", "Workload"]
