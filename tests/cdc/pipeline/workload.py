"""Random changes of a real database: all kinds of columns, keys, transactions and schema changes, from a seed.

What servers spell differently is a `Dialect`; what happens is the same for all of them. The database itself says what
its rows are: a workload only remembers which tables and columns there are.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

ODD_TABLE = 'Odd "name" ü'
ODD_COLUMNS = ("select", "Ünï\"côde`'", "x" * 60)
_FIRST_ROWS = 20
_BIG_ROWS = 2000
_MOST_TABLES = 8


@dataclass
class Table:
    """A table: the columns of its key, its other columns with their types, and how it was made."""

    name: str
    columns: dict[str, str] = field(default_factory=dict)
    key: tuple[str, ...] = ("id",)
    key_type: str = "bigint"
    extra: str = ""
    """The end of the statement that makes it."""
    next_key: int = 0
    is_fixed: bool = False
    """Its columns do not change."""
    required: set[str] = field(default_factory=set)
    """Columns that must have a value."""
    comments: dict[str, str] = field(default_factory=dict)
    also: tuple[str, ...] = ()
    """Statements that make the rest of it."""


class Dialect(ABC):
    """How a server spells what a workload does."""

    types: ClassVar[Mapping[str, str]]
    """A random value for each type."""
    wider: ClassVar[Mapping[str, str]]
    defaults: ClassVar[Mapping[str, str]]
    key_types: ClassVar[Mapping[str, str]]
    """Types of keys, each with a value made of the number `{}`."""
    statements: ClassVar[Mapping[str, str]]
    """Changes of columns that are one statement."""
    frees: ClassVar[tuple[str, ...]]
    """Those after which the column may be NULL."""
    places: ClassVar[tuple[str, ...]] = ("",)
    """Where a new column may stand."""
    has_transactional_ddl: ClassVar[bool]

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    @abstractmethod
    def quoted(self, name: str) -> str:
        """A name as statements have it."""

    @abstractmethod
    def run(self, statement: str) -> None:
        """Runs a statement, which is committed outside of transactions."""

    @abstractmethod
    def rows(self, table: Table) -> list[tuple[Any, ...]]:
        """All rows of a table, key first, as the lake has their values."""

    @abstractmethod
    def numbers(self, first: int, last: int) -> str:
        """What stands behind FROM to have a row `i` for each number."""

    @abstractmethod
    def move_key(self, table: Table, key: str) -> str:
        """Gives a key to any row."""

    @abstractmethod
    def special_tables(self) -> list[Table]:
        """Tables that only this server has."""

    @abstractmethod
    def renamed(self, *names: tuple[str, str]) -> list[str]:
        """Statements that give other names to tables, all at once."""

    @property
    def texts(self) -> str:
        """The type of long texts."""
        return next(kind for kind in self.types if kind.endswith("text"))


class Workload:
    """Makes changes on a connection that commits every statement outside of transactions."""

    def __init__(self, dialect: Dialect, seed: int) -> None:
        self.dialect = dialect
        self._random = random.Random(seed)
        self._counter = 0
        self.tables: list[Table] = []
        self.done: list[str] = []
        """Every statement, for whoever looks for the reason of a difference."""
        self._create(Table("everything", {f"c{i}": kind for i, kind in enumerate(dialect.types)}))
        self._create(Table(ODD_TABLE, dict(zip(ODD_COLUMNS, (dialect.texts, "int", "int"), strict=True))))
        self._create(Table("large", {"note": dialect.texts, "n": "int", "other": "int"}))
        for number, kind in enumerate(dialect.key_types):
            self._create(Table(f"keyed{number}", {"v": "int", "note": dialect.texts}, ("id", "part"), kind))
        for table in dialect.special_tables():
            self._create(table)
        for table in self.tables:
            self._insert(table, _FIRST_ROWS)

    def round(self, count: int, *, with_ddl: bool = True) -> None:
        """Some random steps."""
        for _ in range(count):
            self._step(with_ddl)

    def each_change(self) -> None:
        """Every kind of schema change once, with rows of the old and of the new form around it."""
        for kind in [*_CHANGES, *self.dialect.statements]:
            table = self._random.choice([table for table in self.tables if not table.is_fixed])
            self._one(table, "insert")
            self._change(table, kind)
            self._one(table, self._random.choice(["insert", "update", "delete"]))

    def expected(self, table: Table) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Columns and rows as they are in the database."""
        return [*table.key, *table.columns], self.dialect.rows(table)

    # --- steps ---------------------------------------------------------------------------------------------------

    def _step(self, with_ddl: bool) -> None:
        rng = self._random
        kinds = ["insert", "update", "delete", "key", "transaction", "rolled back", "truncate", "large", "big"]
        weights = [20.0, 30, 10, 6, 10, 3, 1, 8, 1]
        if with_ddl:
            kinds += [*_CHANGES, *self.dialect.statements]
            weights += [2.0] * (len(kinds) - len(weights))
        self._one(rng.choice(self.tables), rng.choices(kinds, weights)[0])

    def _one(self, table: Table, kind: str) -> None:
        rng, name = self._random, self._name(table)
        match kind:
            case "insert":
                self._insert(table, rng.randrange(1, 10))
            case "update":
                self._update(table)
            case "delete":
                self._run(f"DELETE FROM {name} WHERE {self._some(table, 7)}")
            case "key" if "part" in table.key and rng.random() < 0.5:
                self._run(f"UPDATE {name} SET part = (part + 1) % 3 WHERE {self._some(table, 3)}")
            case "key":
                self._run(self.dialect.move_key(table, self._next_key(table)))
            case "transaction" | "rolled back":
                self._run("BEGIN")
                for _ in range(rng.randrange(2, 6)):
                    self._one(rng.choice(self.tables), rng.choice(["insert", "update", "delete", "key", "large"]))
                    if rng.random() < 0.3:
                        self._undone(table)
                self._run("COMMIT" if kind == "transaction" else "ROLLBACK")
            case "truncate":
                self._run(f"TRUNCATE TABLE {name}")
            case "large":
                long = next((column for column, kind in table.columns.items() if kind.endswith("text")), None)
                if long is not None:
                    text = f"repeat('{rng.random():.30f}', 400)"
                    self._run(f"UPDATE {name} SET {self._quoted(long)} = {text} WHERE {self._some(table, 3)}")
            case "big":
                self._insert(table, _BIG_ROWS)
            case _:
                self._change(table, kind)

    def _undone(self, table: Table) -> None:
        """Changes that are taken back while their transaction goes on."""
        self._run("SAVEPOINT s")
        self._update(table)
        self._insert(table, 2)
        self._run("ROLLBACK TO SAVEPOINT s")

    # --- schema changes ------------------------------------------------------------------------------------------

    def _change(self, table: Table, kind: str) -> None:
        rng, name, own = self._random, self._name(table), list(table.columns)
        if kind == "create":
            self._create_another()
            return
        if table.is_fixed or len(own) < 2:
            return
        column = rng.choice(own)
        match kind:
            case "add":
                self._add(table)
            case "drop":
                self._drop(table, column)
            case "rename":
                self._rename(table, column, self._new_name("r"))
            case "exchange":
                first, second = rng.sample(own, 2)
                between = self._new_name("x")
                self._rename(table, first, between)
                self._rename(table, second, first)
                self._rename(table, between, second)
            case "drop and add":
                self._drop(table, column)
                self._add(table, column)
            case "widen":
                narrow = next((key for key, value in table.columns.items() if value in self.dialect.wider), None)
                if narrow is not None:
                    table.columns[narrow] = self.dialect.wider[table.columns[narrow]]
                    self._alter(table, "type", narrow)
            case "rename table" if not table.also:
                new = self._new_name("moved")
                self._run(f"ALTER TABLE {name} RENAME TO {self._quoted(new)}")
                table.name = new
            case "exchange tables" if not table.also:
                self._exchange(table)
            case "rename table" | "exchange tables":
                pass
            case "in a transaction" if self.dialect.has_transactional_ddl:
                self._run("BEGIN")
                self._insert(table, 3)
                self._change(table, rng.choice(["add", "drop", "rename", "widen", "drop and add"]))
                self._update(table)
                self._insert(table, 3)
                self._run("COMMIT")
            case "in a transaction":
                pass
            case "recreate":
                self._run(f"DROP TABLE {name}")
                table.columns = {"v": "int", "note": self.dialect.texts, self._new_name("d"): "bigint"}
                table.comments, table.required = {}, set()
                self._make(table)
                self._insert(table, 5)
            case _:
                if kind == "comment":
                    table.comments[column] = f"it's {rng.randrange(100)}"
                self._alter(table, kind, column)

    def _exchange(self, table: Table) -> None:
        """Gives a table the name of another with the same key, and the other way round."""
        others = [
            other
            for other in self.tables
            if (other.key, other.key_type) == (table.key, table.key_type)
            and not (other is table or other.is_fixed or other.also)
        ]
        if not others:
            return
        other = self._random.choice(others)
        between, names = self._new_name("between"), (table.name, other.name)
        self._insert(table, 2)
        for statement in self.dialect.renamed((table.name, between), (other.name, table.name), (between, other.name)):
            self._run(statement)
        other.name, table.name = names
        self._update(table)

    def _alter(self, table: Table, kind: str, column: str) -> None:
        """A change that is one statement of the dialect."""
        if kind in self.dialect.frees:
            table.required.discard(column)
        comment = table.comments.get(column, "").replace("'", "''")
        words = {"column": self._quoted(column), "type": table.columns[column], "comment": f"'{comment}'"}
        self._run(self.dialect.statements[kind].format(table=self._name(table), **words))

    def _add(self, table: Table, column: str | None = None) -> None:
        column, kind = column or self._new_name("n"), self._random.choice(list(self.dialect.types))
        default = f" DEFAULT {self.dialect.defaults[kind]}" if kind in self.dialect.defaults else ""
        required = " NOT NULL" if default and self._random.random() < 0.3 else ""
        place = self._random.choice(self.dialect.places)
        definition = f"{self._quoted(column)} {kind}{required}{default}{place}"
        self._run(f"ALTER TABLE {self._name(table)} ADD COLUMN {definition}")
        table.columns[column] = kind
        if required:
            table.required.add(column)

    def _drop(self, table: Table, column: str) -> None:
        self._run(f"ALTER TABLE {self._name(table)} DROP COLUMN {self._quoted(column)}")
        del table.columns[column]
        table.required.discard(column)
        table.comments.pop(column, None)

    def _rename(self, table: Table, old: str, new: str) -> None:
        self._run(f"ALTER TABLE {self._name(table)} RENAME COLUMN {self._quoted(old)} TO {self._quoted(new)}")
        table.columns = {new if name == old else name: kind for name, kind in table.columns.items()}
        table.comments = {new if name == old else name: text for name, text in table.comments.items()}
        table.required = {new if name == old else name for name in table.required}

    def _create_another(self) -> None:
        if len(self.tables) < _MOST_TABLES + len(self.dialect.key_types):
            self._create(Table(self._new_name("new"), {"a": "int", "b": self.dialect.texts, "c": "bigint"}))
            self._insert(self.tables[-1], 5)

    # --- statements ----------------------------------------------------------------------------------------------

    def _create(self, table: Table) -> None:
        self._make(table)
        self.tables.append(table)

    def _make(self, table: Table) -> None:
        columns = "".join(f", {self._quoted(name)} {kind}" for name, kind in table.columns.items())
        keys = f"id {table.key_type}" + ", part int" * (len(table.key) - 1)
        primary = f"PRIMARY KEY ({', '.join(table.key)})"
        self._run(f"CREATE TABLE {self._name(table)} ({keys}{columns}, {primary}){table.extra}")
        for statement in table.also:
            self._run(statement)

    def _insert(self, table: Table, count: int) -> None:
        first = table.next_key + 1
        table.next_key += count
        names = ", ".join([*table.key, *map(self._quoted, table.columns)])
        part = ["i % 3"] * (len(table.key) - 1)
        own = [self._value(table, name) for name in table.columns]
        values = ", ".join([self._key_value(table, "i"), *part, *own])
        source = self.dialect.numbers(first, table.next_key)
        self._run(f"INSERT INTO {self._name(table)} ({names}) SELECT {values} FROM {source}")

    def _update(self, table: Table) -> None:
        chosen = self._random.sample(list(table.columns), k=min(len(table.columns), self._random.randrange(1, 4)))
        sets = ", ".join(f"{self._quoted(name)} = {self._value(table, name)}" for name in chosen)
        self._run(f"UPDATE {self._name(table)} SET {sets} WHERE {self._some(table, 5)}")

    def _some(self, table: Table, one_in: int) -> str:
        """A condition for some of the rows."""
        key = "part" if "part" in table.key else "id"
        return f"{key} % {one_in} = {self._random.randrange(one_in)}"

    def _next_key(self, table: Table) -> str:
        table.next_key += 1
        return self._key_value(table, str(table.next_key))

    def _key_value(self, table: Table, number: str) -> str:
        return self.dialect.key_types.get(table.key_type, "{}").format(number)

    def _value(self, table: Table, column: str) -> str:
        made = self.dialect.types[table.columns[column]]
        may_be_null = column not in table.required and self._random.random() < 0.2
        return "NULL" if may_be_null else made

    def _new_name(self, prefix: str) -> str:
        self._counter += 1
        return f"{prefix}{self._counter}"

    def _name(self, table: Table) -> str:
        return self._quoted(table.name)

    def _quoted(self, name: str) -> str:
        return self.dialect.quoted(name)

    def _run(self, statement: str) -> None:
        self.done.append(statement)
        self.dialect.run(statement)


_CHANGES = ("add", "drop", "rename", "exchange", "drop and add", "widen", "create", "recreate", "in a transaction",
            "rename table", "exchange tables")  # fmt: skip

__all__ = ["ODD_COLUMNS", "ODD_TABLE", "Dialect", "Table", "Workload"]
