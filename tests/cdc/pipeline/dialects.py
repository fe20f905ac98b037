"""How PostgreSQL and MariaDB spell a workload, and how they show their values."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any, ClassVar

from tests.cdc.pipeline.workload import Dialect, Table


class Postgres(Dialect):
    """On a psycopg connection with autocommit."""

    types: ClassVar = {
        "text": "'t' || (random() * 100000)::int",
        "smallint": "(random() * 1000)::smallint",
        "int": "(random() * 1000000)::int",
        "bigint": "(random() * 1e15)::bigint",
        "real": "(random() * 100)::real",
        "double precision": "random()",
        "numeric(12,3)": "(random() * 1000)::numeric(12,3)",
        "numeric": "(random() * 1000)::numeric(12,3)",
        "varchar(20)": "substr(md5(random()::text), 1, 12)",
        "char(6)": "substr(md5(random()::text), 1, 6)",
        "boolean": "random() < 0.5",
        "bit(1)": "(random() * 1)::int::bit(1)",
        "date": "date '2020-01-01' + (random() * 3000)::int",
        "time(3)": "time '00:00' + (random() * 80000000)::int * interval '1 ms'",
        "timestamp(6)": "timestamp '2020-01-01' + random() * interval '1000 days'",
        "timestamptz(3)": "timestamptz '2020-01-01 00:00Z' + (random() * 1e10)::bigint * interval '1 ms'",
        "bytea": "decode(md5(random()::text), 'hex')",
        "uuid": "gen_random_uuid()",
        "jsonb": "jsonb_build_object('a', (random() * 100)::int)",
        "mood": "(array['sad', 'very \"happy\"'])[1 + (random() * 1)::int]::mood",
        "price": "(random() * 100)::numeric(12,2)",
        "int[]": "array[1, (random() * 100)::int]",
        "text[]": "array['x', NULL, 'y' || (random() * 9)::int]",
        "timestamp[]": "array[timestamp '2020-01-01' + random() * interval '1000 days', NULL]",
    }
    wider: ClassVar = {
        "smallint": "int",
        "int": "bigint",
        "varchar(20)": "text",
        "numeric(12,3)": "numeric(16,4)",
        "real": "double precision",
    }
    defaults: ClassVar = {
        "int": "7",
        "text": "'d''d'",
        "boolean": "true",
        "numeric(12,3)": "1.5",
        "date": "date '2024-02-29'",
        "bigint": "(random() * 1e6)::bigint",
        "uuid": "gen_random_uuid()",
        "mood": "'sad'",
        "timestamp(6)": "now()",
    }
    key_types: ClassVar = {
        "uuid": "md5({}::text)::uuid",
        "text": "'k''\"\\ ' || {}",
        "timestamp": "timestamp '2020-01-01' + {} * interval '1 ms'",
    }
    statements: ClassVar = {
        "type": "ALTER TABLE {table} ALTER COLUMN {column} TYPE {type}",
        "null": "ALTER TABLE {table} ALTER COLUMN {column} DROP NOT NULL",
        "comment": "COMMENT ON COLUMN {table}.{column} IS {comment}",
        "table comment": "COMMENT ON TABLE {table} IS 'of {type}'",
        "whole rows": "ALTER TABLE {table} REPLICA IDENTITY FULL",
        "keys only": "ALTER TABLE {table} REPLICA IDENTITY DEFAULT",
        "default": "ALTER TABLE {table} ALTER COLUMN {column} SET DEFAULT NULL",
    }
    frees: ClassVar = ("null",)
    has_transactional_ddl = True
    _shown: ClassVar = {"jsonb": "::text", "real": "::float8", "bit(1)": "::int::bool", "mood": "::text"}

    def __init__(self, connection: Any) -> None:
        super().__init__(connection)
        connection.execute("CREATE TYPE mood AS ENUM ('sad', 'very \"happy\"')")
        connection.execute("CREATE DOMAIN price AS numeric(12, 2)")
        self.types = {**Postgres.types, "numeric(16,4)": Postgres.types["numeric(12,3)"]}

    def quoted(self, name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    def run(self, statement: str) -> None:
        self.connection.execute(statement)

    def rows(self, table: Table) -> list[tuple[Any, ...]]:
        columns = {**dict.fromkeys(table.key, ""), **table.columns}
        shown = ", ".join(self.quoted(name) + self._shown.get(kind, "") for name, kind in columns.items())
        found = self.connection.execute(f"SELECT {shown} FROM {self.quoted(table.name)}").fetchall()
        return [tuple(str(value) if isinstance(value, uuid.UUID) else value for value in row) for row in found]

    def numbers(self, first: int, last: int) -> str:
        return f"generate_series({first}, {last}) i"

    def move_key(self, table: Table, key: str) -> str:
        name = self.quoted(table.name)
        return f"UPDATE {name} SET id = {key} WHERE id = (SELECT id FROM {name} ORDER BY random() LIMIT 1)"

    def renamed(self, *names: tuple[str, str]) -> list[str]:
        """Statements that give other names to tables, all at once."""
        changes = [f"ALTER TABLE {self.quoted(old)} RENAME TO {self.quoted(new)}" for old, new in names]
        return ["BEGIN", *changes, "COMMIT"]

    def special_tables(self) -> list[Table]:
        full = ("ALTER TABLE whole REPLICA IDENTITY FULL", "ALTER TABLE whole ALTER COLUMN note SET STORAGE EXTERNAL")
        parts = tuple(f"CREATE TABLE parted{i} PARTITION OF parted FOR VALUES IN ({i})" for i in range(3))
        columns = {"v": "int", "note": "text"}
        return [
            Table("whole", dict(columns), also=full),
            Table("parted", dict(columns), ("id", "part"), extra=" PARTITION BY LIST (part)", also=parts),
        ]


class MariaDb(Dialect):
    """On a pymysql connection with autocommit and the time zone UTC."""

    types: ClassVar = {
        "text": "concat('t', floor(rand() * 100000))",
        "tinyint(1)": "floor(rand() * 2)",
        "tinyint": "floor(rand() * 100)",
        "smallint unsigned": "floor(rand() * 60000)",
        "mediumint": "floor(rand() * 8000000)",
        "int": "floor(rand() * 1000000)",
        "int unsigned": "floor(rand() * 4000000000)",
        "bigint": "floor(rand() * 1e15)",
        "bigint unsigned": "18446744073709551615 - cast(rand() * 1000 AS unsigned)",
        "float": "rand() * 100",
        "double": "rand()",
        "decimal(12,3)": "rand() * 1000",
        "varchar(20)": "substr(sha2(rand(), 256), 1, 12)",
        "char(6)": "substr(sha2(rand(), 256), 1, 6)",
        "mediumtext": "concat('m', floor(rand() * 100000))",
        "enum('x','y''z')": "elt(1 + floor(rand() * 2), 'x', 'y''z')",
        "set('a','b')": "elt(1 + floor(rand() * 3), 'a', 'a,b', '')",
        "json": "json_object('a', floor(rand() * 100))",
        "date": "date '2020-01-01' + interval floor(rand() * 3000) day",
        "time(3)": "sec_to_time(floor(rand() * 80000))",
        "datetime(6)": "timestamp '2020-01-01 00:00:00' + interval floor(rand() * 8e13) microsecond",
        "timestamp(3) NULL": "timestamp '2020-01-01 00:00:00' + interval floor(rand() * 80000000) second",
        "year": "2000 + floor(rand() * 100)",
        "varbinary(20)": "unhex(left(sha2(rand(), 256), 32))",
        "blob": "unhex(left(sha2(rand(), 256), 32))",
        "bit(1)": "floor(rand() * 2)",
        "bit(11)": "floor(rand() * 2000)",
    }
    wider: ClassVar = {
        "tinyint": "smallint",
        "smallint": "int",
        "int": "bigint",
        "float": "double",
        "decimal(12,3)": "decimal(16,4)",
        "varchar(20)": "varchar(40)",
        "varchar(40)": "text",
    }
    defaults: ClassVar = {
        "int": "7",
        "text": "'d''d'",
        "decimal(12,3)": "1.5",
        "date": "'2024-02-29'",
        "varchar(20)": "'\"d'",
        "tinyint(1)": "1",
        "enum('x','y''z')": "'y''z'",
        "datetime(6)": "current_timestamp(6)",
    }
    key_types: ClassVar = {
        "varchar(40)": "concat('k''\"\\\\ ', {})",
        "datetime(6)": "timestamp '2020-01-01 00:00:00' + interval {} microsecond",
        "decimal(20,2)": "{} / 4",
    }
    statements: ClassVar = {
        "type": "ALTER TABLE {table} MODIFY COLUMN {column} {type} COMMENT {comment}",
        "null": "ALTER TABLE {table} MODIFY {column} {type} NULL COMMENT {comment}",
        "comment": "ALTER TABLE {table} MODIFY COLUMN {column} {type} COMMENT {comment}",
        "table comment": "ALTER TABLE {table} COMMENT = 'of a table'",
        "first": "ALTER TABLE {table} MODIFY {column} {type} COMMENT {comment} FIRST",
        "same name": "ALTER TABLE {table} CHANGE COLUMN {column} {column} {type} COMMENT {comment} AFTER id",
        "index": "CREATE OR REPLACE INDEX by_number ON {table} (id DESC)",
    }
    frees: ClassVar = ("type", "null", "comment", "first", "same name")
    places: ClassVar = ("", "", " FIRST", " AFTER id")
    has_transactional_ddl = False
    _shown: ClassVar = {"float": "CAST({} AS DOUBLE)", "bit(1)": "{} + 0"}

    def __init__(self, connection: Any) -> None:
        super().__init__(connection)
        more = {"smallint": "tinyint", "decimal(16,4)": "decimal(12,3)", "varchar(40)": "varchar(20)"}
        self.types = {**MariaDb.types, **{kind: MariaDb.types[as_kind] for kind, as_kind in more.items()}}

    def quoted(self, name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    def run(self, statement: str) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(statement)

    def rows(self, table: Table) -> list[tuple[Any, ...]]:
        kinds = [*([""] * len(table.key)), *table.columns.values()]
        names = [self.quoted(name) for name in (*table.key, *table.columns)]
        shown = [self._shown.get(kind, "{}").format(name) for kind, name in zip(kinds, names, strict=True)]
        with self.connection.cursor() as cursor:
            cursor.execute(f"SELECT {', '.join(shown)} FROM {self.quoted(table.name)}")
            found = cursor.fetchall()
        return [tuple(_plain(value, kind) for value, kind in zip(row, kinds, strict=True)) for row in found]

    def numbers(self, first: int, last: int) -> str:
        return f"(SELECT seq AS i FROM seq_{first}_to_{last}) AS numbers"

    def move_key(self, table: Table, key: str) -> str:
        return f"UPDATE {self.quoted(table.name)} SET id = {key} ORDER BY rand() LIMIT 1"

    def renamed(self, *names: tuple[str, str]) -> list[str]:
        """Statements that give other names to tables, all at once."""
        return [f"RENAME TABLE {', '.join(f'{self.quoted(old)} TO {self.quoted(new)}' for old, new in names)}"]

    def special_tables(self) -> list[Table]:
        return [Table("parted", {"v": "int", "note": "text"}, extra=" PARTITION BY HASH (id) PARTITIONS 3")]


class MySql(MariaDb):
    """What MySQL spells in another way than MariaDB."""

    defaults: ClassVar = {**MariaDb.defaults, "text": "('d''d')"}
    statements: ClassVar = {**MariaDb.statements, "index": "ALTER TABLE {table} ADD INDEX (id DESC)"}

    def numbers(self, first: int, last: int) -> str:
        rows = f"SELECT {first} AS i UNION ALL SELECT i + 1 FROM counted WHERE i < {last}"
        return f"(WITH RECURSIVE counted AS ({rows}) SELECT i FROM counted) AS numbers"


def _plain(value: Any, kind: str) -> Any:
    if isinstance(value, dt.timedelta):
        return (dt.datetime(2000, 1, 1) + value).time()
    if kind.startswith("set") and value is not None:
        return [member for member in value.split(",") if member]
    return value


__all__ = ["MariaDb", "MySql", "Postgres"]
