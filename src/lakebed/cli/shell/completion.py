"""What the Tab key offers at the prompt: keywords, databases, tables, and columns of the tables that are named.

Names come from the lake each time, schemas of tables but once for each statement. Whatever goes wrong on the way offers
nothing: a key pressed for help must not print an error into the line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from lakebed.errors import LakebedError

if TYPE_CHECKING:
    from lakebed.lake import Lake

DELIMITERS = " \t\n\"'`,;()=<>+-*/|[]"
"""What ends a word; dots and `$` are parts of names."""

_KEYWORDS = re.findall(
    r"\w+",
    """
    ADD ALTER ANALYZE AND ANTI ARRAY AS ASC BETWEEN BIGINT BOOLEAN BY BYTES CALL CASE CAST COLUMN COMMENT COMPUTE COUNT
    CREATE CROSS CURRENT DATABASE DATABASES DATE DECIMAL DEFAULT DELETE DESC DESCRIBE DISTINCT DOUBLE DROP ELSE END
    ENFORCED EXCEPT EXISTS EXPLAIN EXTENDED FALSE FLOAT FROM FULL GROUP HAVING HISTORY IF IN INNER INSERT INT INTERSECT
    INTERVAL INTO IS JOB JOBS JOIN KEY LEFT LIKE LIMIT MAP MATCHED MERGE NOT NULL OF ON OPTIMIZE OPTIONS OR ORDER OUTER
    OVER OVERWRITE PARTITION PARTITIONED PARTITIONS PRIMARY PROCEDURES RENAME REPLACE RESET RESTORE RIGHT ROW SELECT SET
    SHOW SMALLINT STATISTICS STOP STRING SUM TABLE TABLES TAG TAGS TBLPROPERTIES TEMPORARY THEN TIMESTAMP TINYINT TO
    TRUE TRUNCATE UNION UPDATE USE USING VACUUM VALUES VARCHAR VERSION VIEW VIEWS WHEN WHERE WINDOW WITH
    """,
)
_NAME = re.compile(r"[A-Za-z_][\w$.]*")
_PLAIN = re.compile(r"\w+")


class Completer:
    """Answers readline: the n-th word that what was typed may become."""

    def __init__(self, lake: Lake, begun: Callable[[], str]) -> None:
        """`begun` gives the earlier lines of the statement."""
        self._lake = lake
        self._begun = begun
        self._found: list[str] = []
        self._schemas: dict[str, list[str]] = {}

    def __call__(self, word: str, state: int) -> str | None:
        if state == 0:
            try:
                self._found = self.choices(word, f"{self._begun()} {_typed_line()}")
            except (LakebedError, OSError):
                self._found = []
        return self._found[state] if state < len(self._found) else None

    def choices(self, word: str, text: str) -> list[str]:
        """What the word may become, in the statement so far."""
        lowered = word.lower()
        keywords = [key.lower() if word.islower() else key for key in _KEYWORDS] if word else []
        names = [name for name in self._names(word, text) if _is_plain(name)]
        fits = [choice for choice in (*names, *keywords) if choice.lower().startswith(lowered)]
        return sorted(set(fits), key=lambda choice: (choice.isupper(), choice))

    def _names(self, word: str, text: str) -> Iterator[str]:
        lake = self._lake
        if "$" in word:
            from lakebed.table.system import SYSTEM_TABLES  # heavy: only for who wants one

            table = word.partition("$")[0]
            yield from (f"{table}${name}" for name in SYSTEM_TABLES)
            return
        database, dot, _ = word.rpartition(".")
        if dot:
            if database in lake.databases():
                yield from (f"{database}.{table}" for table in lake.tables(database))
            yield from (f"{database}.{column}" for column in self._columns(database, text))
            return
        yield from lake.tables()
        yield from (f"{name}." for name in lake.databases())
        for name in dict.fromkeys(_NAME.findall(text)):
            yield from self._schema(name)

    def _columns(self, alias: str, text: str) -> list[str]:
        """The columns of a table by its name, or by its alias in the text."""
        named = re.findall(rf"([\w.$]+)\s+(?:AS\s+)?{re.escape(alias)}\b", text, re.IGNORECASE)
        return next((columns for columns in map(self._schema, [alias, *named]) if columns), [])

    def _schema(self, name: str) -> list[str]:
        if name not in self._schemas:
            is_there = name.upper() not in _KEYWORDS and self._lake.has_table(name)
            self._schemas[name] = list(self._lake.table(name).arrow_schema.names) if is_there else []
        return self._schemas[name]


def _is_plain(name: str) -> bool:
    return all(_PLAIN.fullmatch(part) for part in re.split(r"[.$]", name) if part)


def _typed_line() -> str:
    import readline  # there, or nobody would ask

    return readline.get_line_buffer()


__all__ = ["DELIMITERS", "Completer"]
