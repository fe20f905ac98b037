"""A random life of a PostgreSQL database: tables of all types and shapes, and transactions that change them.

Everything comes from a seed. Values include the ones that trip readers up: empty against null, quotes, infinities,
years before Christ, texts long enough to be stored apart and left out of later updates. What a step did is not told:
the database itself says what the rows are now.
"""

from __future__ import annotations

import random
from typing import Any

from lakebed.records import dataclass

TABLES = ("all_types", "by_uuid", "by_pair", "whole_rows", "parted", "Odd \"Näme'")
"""Every table that `create_tables` makes."""

_CREATE = """
CREATE TYPE mood AS ENUM ('sad', 'ok', 'very "happy"');
CREATE DOMAIN price AS numeric(12, 2) CHECK (VALUE > -1e9);
CREATE DOMAIN tags AS text[];
CREATE TABLE all_types (
  id bigint PRIMARY KEY, a bool, b smallint, c int, d bigint, e real, f double precision, g numeric(20, 4), h numeric,
  i char(7), j varchar(30), k text, l json, m jsonb, n mood, o uuid, p timestamp, q timestamp(3), r timestamptz,
  s timestamptz(0), t date, u time, v time(0), w bytea, x int[], y text[], z numeric(9, 3)[], aa timestamp[], ab price,
  ac tags, ad bit(1), ae bit(11), af varbit(20), ag bytea[], ah bool[], ai numeric(45, 3), aj mood[], big text);
CREATE TABLE by_uuid (id uuid PRIMARY KEY, n int NOT NULL, big text, note varchar(50) DEFAULT 'new');
CREATE TABLE by_pair (a int, b text, n int, big text, PRIMARY KEY (a, b));
CREATE TABLE whole_rows (id int PRIMARY KEY, n int, big text, t text);
ALTER TABLE whole_rows REPLICA IDENTITY FULL;
CREATE TABLE parted (id int, region text, n int, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
CREATE TABLE parted_eu PARTITION OF parted FOR VALUES IN ('eu');
CREATE TABLE parted_us PARTITION OF parted FOR VALUES IN ('us');
CREATE TABLE "Odd ""Näme'" ("select" int PRIMARY KEY, "a ""b"" c" text, "ключ" int);
ALTER TABLE by_uuid ALTER COLUMN big SET STORAGE EXTERNAL;
ALTER TABLE by_pair ALTER COLUMN big SET STORAGE EXTERNAL;
ALTER TABLE whole_rows ALTER COLUMN big SET STORAGE EXTERNAL;
ALTER TABLE all_types ALTER COLUMN big SET STORAGE EXTERNAL;
"""

_TEXTS = [
    "",
    "plain",
    "a,b",
    'q"uote',
    "back\\slash",
    "new\nline",
    "NULL",
    "{}",
    "ünïcödé ☃",
    "'; DROP TABLE x; --",
    "\\N",
    " ",
]
_FINITE = ["2024-02-29 12:34:56.789012", "0044-03-15 10:00:00 BC", "12024-01-01 00:00:00", "1970-01-01 00:00:00"]
_NUMBERS = ["0", "-1", "123456.7891", "0.0001", "-99999999999.9999"]


@dataclass
class RandomWorkload:
    """Changes a database at random. `hostile` adds values that types of the lake do not have (`infinity`, `NaN`)."""

    connection: Any
    seed: int
    hostile: bool = False
    with_truncate: bool = True

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def create_tables(self) -> None:
        """Makes the tables, empty."""
        self.connection.execute(_CREATE)

    def step(self) -> None:
        """One transaction with up to a dozen changes; some roll back in part."""
        with self.connection.transaction():
            for _ in range(self.random.randint(1, 12)):
                if self.random.random() < 0.1:
                    self._in_savepoint()
                else:
                    self._change()

    def run(self, steps: int) -> None:
        """Some transactions."""
        for _ in range(steps):
            self.step()

    def _in_savepoint(self) -> None:
        class _Undone(Exception):
            pass

        try:
            with self.connection.transaction():
                self._change()
                if self.random.random() < 0.5:
                    raise _Undone
        except _Undone:
            pass

    def _change(self) -> None:
        pick = self.random
        table = pick.choice(["all_types"] * 4 + ["by_uuid", "by_pair", "whole_rows", "parted", "odd"] * 2)
        if self.with_truncate and pick.random() < 0.004:
            self._run(f"TRUNCATE {pick.choice(['by_uuid', 'by_pair, whole_rows', 'parted'])}")
            return
        getattr(self, f"_{table}")(pick.random())

    def _run(self, statement: str, *values: Any) -> None:
        self.connection.execute(statement, values)

    def _text(self) -> str | None:
        return self.random.choice([*_TEXTS, None])

    def _big(self) -> str | None:
        return self.random.choice([None, "small", "".join(self.random.choices("abcdefgh", k=5)) * 1200])

    def _moment(self) -> str | None:
        return self.random.choice([*_FINITE, None, *(["infinity", "-infinity"] if self.hostile else [])])

    def _number(self) -> str | None:
        return self.random.choice([*_NUMBERS, None, *(["NaN"] if self.hostile else [])])

    def _all_types(self, choice: float) -> None:
        pick, key = self.random, self.random.randint(1, 60)
        if choice < 0.2:
            self._run("DELETE FROM all_types WHERE id = %s", key)
        elif choice < 0.3:
            self._run(
                "UPDATE all_types SET id = %s WHERE id = %s AND NOT EXISTS (SELECT FROM all_types WHERE id = %s)",
                *(key, pick.randint(1, 60), key),
            )
        elif choice < 0.5:
            self._run("UPDATE all_types SET c = %s, k = %s WHERE id = %s", pick.randint(-9, 9), self._text(), key)
        else:
            values = self._row()
            names = ", ".join(values)
            marks = ", ".join(f"%s::{_TYPES[name]}" for name in values)
            sets = ", ".join(f"{name} = EXCLUDED.{name}" for name in values)
            self._run(
                f"INSERT INTO all_types (id, {names}) VALUES (%s, {marks}) ON CONFLICT (id) DO UPDATE SET {sets}",
                *(key, *values.values()),
            )

    def _row(self) -> dict[str, Any]:
        pick = self.random
        text, moment, number = self._text, self._moment, self._number
        elements = [text() for _ in range(pick.randint(0, 4))]
        day = pick.choice(["2024-02-29", "0044-03-15 BC", "12024-01-01", None, *(["infinity"] if self.hostile else [])])
        time = pick.choice(["00:00:00", "23:59:59.999999", None, *(["24:00:00"] if self.hostile else [])])
        return {
            "a": pick.choice([True, False, None]),
            "b": pick.randint(-32768, 32767),
            "c": pick.choice([None, 2**31 - 1, -(2**31), 0]),
            "d": pick.choice([2**63 - 1, -(2**63), 5]),
            "e": pick.choice(["1.5", "NaN", "-Infinity", "3.4e38", None]),
            "f": pick.choice([pick.random() * 10 ** pick.randint(-200, 200), "Infinity", "-0"]),
            "g": number(),
            "h": number(),
            "i": pick.choice(["abc", "", None, "1234567"]),
            "j": text(),
            "k": text(),
            "l": pick.choice(['{"a": [1, null]}', "null", None, '"x"']),
            "m": pick.choice(['{"b": {"c": "d\\"e"}}', "[]", None]),
            "n": pick.choice(["sad", 'very "happy"', None]),
            "o": pick.choice([f"{pick.getrandbits(128):032x}", None]),
            "p": moment(),
            "q": moment(),
            "r": moment(),
            "s": moment(),
            "t": day,
            "u": time,
            "v": pick.choice(["12:00:01", None]),
            "w": pick.choice([b"", b"\x00\xff\\", None, pick.randbytes(20)]),
            "x": pick.choice([None, [], [1, None, -3], [7]]),
            "y": pick.choice([None, [], elements]),
            "z": pick.choice([None, ["1.5", None, "-0.125"]]),
            "aa": pick.choice([None, ["2024-01-01 00:00:00.5", None]]),
            "ab": pick.choice(["5.25", None]),
            "ac": pick.choice([None, ["x y", "z"]]),
            "ad": pick.choice(["0", "1", None]),
            "ae": pick.choice(["10101010101", None]),
            "af": pick.choice(["", "1", "10000000000000000001", None]),
            "ag": pick.choice([None, [b"\\x", None, b"\x01"]]),
            "ah": pick.choice([None, [True, None, False]]),
            "ai": pick.choice([None, "123456789012345678901234567890123456789012.125"]),
            "aj": pick.choice([None, ["ok", 'very "happy"']]),
            "big": self._big(),
        }

    def _by_uuid(self, choice: float) -> None:
        pick = self.random
        key = f"{pick.randint(1, 40) * 0x123456789ABCDEF123456789ABCDEF % 2**128:032x}"
        if choice < 0.2:
            self._run("DELETE FROM by_uuid WHERE id = %s", key)
        elif choice < 0.6:
            self._run("UPDATE by_uuid SET n = n + 1 WHERE id = %s", key)
        else:
            self._run(
                "INSERT INTO by_uuid VALUES (%s, %s, %s) ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n",
                *(key, pick.randint(0, 99), self._big()),
            )

    def _by_pair(self, choice: float) -> None:
        pick, a, b = self.random, self.random.randint(1, 8), self.random.choice(_TEXTS)
        if choice < 0.2:
            self._run("DELETE FROM by_pair WHERE a = %s AND b = %s", a, b)
        elif choice < 0.4:
            self._run(
                "UPDATE by_pair SET a = %s WHERE a = %s AND b = %s AND NOT EXISTS "
                "(SELECT FROM by_pair WHERE a = %s AND b = %s)",
                *(a, pick.randint(1, 8), b, a, b),
            )
        elif choice < 0.6:
            self._run("UPDATE by_pair SET n = coalesce(n, 0) + 1 WHERE a = %s", a)
        else:
            self._run(
                "INSERT INTO by_pair VALUES (%s, %s, %s, %s) ON CONFLICT (a, b) DO UPDATE SET n = EXCLUDED.n",
                *(a, b, pick.randint(0, 99), self._big()),
            )

    def _whole_rows(self, choice: float) -> None:
        pick, key = self.random, self.random.randint(1, 30)
        if choice < 0.2:
            self._run("DELETE FROM whole_rows WHERE id = %s", key)
        elif choice < 0.3:
            self._run(
                "UPDATE whole_rows SET id = %s WHERE id = %s AND NOT EXISTS (SELECT FROM whole_rows WHERE id = %s)",
                *(key, pick.randint(1, 30), key),
            )
        elif choice < 0.6:
            self._run("UPDATE whole_rows SET n = coalesce(n, 0) + 1, t = %s WHERE id = %s", self._text(), key)
        else:
            self._run(
                "INSERT INTO whole_rows VALUES (%s, %s, %s, %s) ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n",
                *(key, pick.randint(0, 99), self._big(), self._text()),
            )

    def _parted(self, choice: float) -> None:
        pick, key, region = self.random, self.random.randint(1, 20), self.random.choice(["eu", "us"])
        if choice < 0.2:
            self._run("DELETE FROM parted WHERE id = %s AND region = %s", key, region)
        elif choice < 0.5:
            self._run(
                "UPDATE parted SET region = %s WHERE id = %s AND NOT EXISTS "
                "(SELECT FROM parted WHERE id = %s AND region = %s)",
                *(region, key, key, region),
            )
        else:
            self._run(
                "INSERT INTO parted VALUES (%s, %s, %s) ON CONFLICT (id, region) DO UPDATE SET n = EXCLUDED.n",
                *(key, region, pick.randint(0, 99)),
            )

    def _odd(self, choice: float) -> None:
        key = self.random.randint(1, 20)
        if choice < 0.3:
            self._run('DELETE FROM "Odd ""Näme\'" WHERE "select" = %s', key)
        else:
            self._run(
                'INSERT INTO "Odd ""Näme\'" VALUES (%s, %s, %s) ON CONFLICT ("select") '
                'DO UPDATE SET "a ""b"" c" = EXCLUDED."a ""b"" c", "ключ" = 1',
                *(key, self._text(), 1 if choice > 0.6 else None),
            )


_TYPES = {
    name: kind.strip()
    for name, _, kind in (
        definition.strip().partition(" ")
        for definition in _CREATE.partition("id bigint PRIMARY KEY, ")[2]
        .partition(");\nCREATE")[0]
        .replace("(20, 4)", "")
        .replace("(9, 3)", "")
        .replace("(45, 3)", "")
        .split(",")
    )
}
"""Types of the columns of `all_types`, as its definition has them."""

__all__ = ["TABLES", "RandomWorkload"]
