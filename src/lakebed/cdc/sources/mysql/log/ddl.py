"""Statements of the binary log that change tables: which tables, and whether their rows are gone.

Only so much of the text is understood as that takes; what a table looks like afterwards is read from the catalog.
"""

from __future__ import annotations

import itertools
import re
from typing import Final

from lakebed.cdc.sources.mysql.log.events import Statement
from lakebed.records import dataclass

_TOKEN: Final = re.compile(
    r"""\s+ | --[ \t\n].*?(?:\n|$) | \#.*?(?:\n|$) | /\*M?!\d* | /\*.*?\*/ | \*/
      | (?P<quoted>`(?:[^`]|``)*`) | (?P<text>'(?:[^'\\]|''|\\.)*') | (?P<double>"(?:[^"\\]|""|\\.)*")
      | (?P<word>[\w$]+) | (?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)
_NUMBER: Final = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)(e[-+]?\d+)?", re.IGNORECASE)
_INTRODUCER: Final = re.compile(r"_[a-z0-9]+", re.IGNORECASE)  # of a text's character set
_NUMBER_PART: Final = re.compile(r"\d+(e\d*)?|[-+.]", re.IGNORECASE)
_ESCAPED: Final = re.compile(r"\\(.)|''", re.DOTALL)
_ESCAPES: Final = {"0": "\0", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}


@dataclass(frozen=True, slots=True)
class ColumnChanges:
    """Columns that an ALTER names: renamed, dropped, and those that are new or other than before, with their types."""

    renamed: tuple[tuple[str, str], ...] = ()
    dropped: tuple[str, ...] = ()
    defined: tuple[tuple[str, str], ...] = ()
    filled: tuple[FilledColumn, ...] = ()


@dataclass(frozen=True, slots=True)
class FilledColumn:
    """A column that is added with a plain value for the rows that are there: its type as the statement spells it."""

    name: str
    type: str
    value: str


@dataclass(frozen=True, slots=True)
class TableChange:
    """What a statement did to a table: its columns may be others now, all its rows or some may be gone."""

    database: str
    table: str
    emptied: bool = False
    partly_emptied: bool = False
    dropped: bool = False
    is_untold: bool = False
    """Rows may have changed, and the log holds the statement instead of the rows."""
    created: bool = False
    """Another table has the name now."""
    perhaps_created: bool = False
    """CREATE TABLE IF NOT EXISTS: servers log it for tables that were there as well."""
    arrived: bool = False
    """Another table has the name now, and it brings rows along that the log has under another name or not at all."""
    columns: ColumnChanges | None = None
    """What an ALTER did to columns; None if the statement says what the whole table is."""

    @property
    def is_another(self) -> bool:
        """Whether the name is not that of the table before."""
        return self.dropped or self.created or self.arrived


def table_changes(said: Statement) -> list[TableChange]:
    """The tables that a statement changes; none for statements about anything else."""
    words = _Words(said)
    first = words.next_word()
    match first:
        case "TRUNCATE":
            words.skip("TABLE")
            return [TableChange(*words.name(), emptied=True)]
        case "ALTER":
            return _alter(words)
        case "CREATE":
            return _create(words)
        case "RENAME":
            return _rename(words)
        case "DROP":
            return _drop(words)
        case "INSERT" | "REPLACE" | "UPDATE" | "DELETE" | "LOAD":
            return _changed_by_text(words)
    return []


class _Words:
    """The tokens of a statement: comments gone, names without their quotes."""

    def __init__(self, said: Statement) -> None:
        self.database = said.database
        self.tokens: list[tuple[str, str]] = []
        for found in _TOKEN.finditer(said.text):
            if found.lastgroup == "quoted":
                self.tokens.append(("name", found[0][1:-1].replace("``", "`")))
            elif found.lastgroup == "double":
                self.tokens.append(("name", found[0][1:-1].replace('""', '"')))  # a name under ANSI_QUOTES
            elif found.lastgroup is not None:
                self.tokens.append((found.lastgroup, found[0]))
        self.at = 0

    def next_word(self) -> str:
        """The next token as a keyword; moves on."""
        word = self.peek()
        self.at += 1
        return word

    def peek(self, ahead: int = 0) -> str:
        """A token as a keyword; empty for what is none."""
        if self.at + ahead >= len(self.tokens):
            return ""
        kind, text = self.tokens[self.at + ahead]
        return text.upper() if kind in ("word", "sign") else ""

    def skip(self, *words: str) -> bool:
        """Moves past these words, if they come next."""
        if all(self.peek(i) == word for i, word in enumerate(words)):
            self.at += len(words)
            return True
        return False

    def name(self) -> tuple[str, str]:
        """The name of a table, with the database that is current if it has none; moves on."""
        first = self._part()
        if self.peek() == ".":
            self.at += 1
            return first, self._part()
        return self.database, first

    def _part(self) -> str:
        text = self.tokens[self.at][1] if self.at < len(self.tokens) else ""
        self.at += 1
        return text

    @property
    def is_over(self) -> bool:
        """Whether nothing is left."""
        return self.at >= len(self.tokens)


def _alter(words: _Words) -> list[TableChange]:
    while words.peek() in ("ONLINE", "IGNORE"):
        words.next_word()
    if not words.skip("TABLE"):
        return []
    words.skip("IF", "EXISTS")
    name = words.name()
    renamed = name
    partly = False
    columns = _column_changes(words)
    while not words.is_over:
        word = words.next_word()
        if (word in ("TRUNCATE", "DROP", "EXCHANGE", "CONVERT") and words.peek() == "PARTITION") or (
            word in ("DISCARD", "IMPORT") and "TABLESPACE" in (words.peek(), words.peek(1), words.peek(2))
        ):
            partly = True
        elif word == "RENAME" and words.peek() not in ("COLUMN", "INDEX", "KEY", "CONSTRAINT"):
            if words.peek() in ("TO", "AS", "="):
                words.next_word()
            renamed = words.name()
    if renamed != name:
        return _moved(name, renamed)
    return [TableChange(*name, partly_emptied=partly, columns=columns)]


def _moved(old: tuple[str, str], new: tuple[str, str]) -> list[TableChange]:
    """A table that has another name now, whatever else was done to it."""
    return [TableChange(*old, dropped=True), TableChange(*new, arrived=True)]


_NO_COLUMN: Final = (
    "INDEX", "KEY", "PRIMARY", "UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR", "CONSTRAINT", "FOREIGN", "CHECK",
    "PARTITION", "PERIOD", "SYSTEM",
)  # fmt: skip
"""What may be added or dropped besides columns."""


def _column_changes(words: _Words) -> ColumnChanges:
    """What the parts of an ALTER, between its commas, do to columns. Leaves the words where they are."""
    renamed: list[tuple[str, str]] = []
    dropped: list[str] = []
    defined: list[tuple[str, str]] = []
    filled: list[FilledColumn] = []
    for part in _parts(words.tokens[words.at :]):
        clause = _Clause(part)
        action = clause.word()
        if action == "RENAME" and clause.skip("COLUMN"):
            old = clause.name()
            clause.skip("TO")
            renamed.append((old, clause.name()))
            continue
        is_column = clause.skip("COLUMN")
        if action not in ("ADD", "DROP", "CHANGE", "MODIFY", "ALTER") or (
            not is_column and clause.peek() in _NO_COLUMN
        ):
            continue
        if action == "ADD":
            inner = _parts(clause.rest()[:-1]) if clause.skip("(") else [clause.rest()]
            defined += [_Clause(each).definition() for each in inner]
            filled += [found for each in inner if (found := _Clause(each).filled()) is not None]
        elif action == "DROP":
            dropped.append(clause.name())
        elif action == "CHANGE":
            old = clause.name()
            defined.append(clause.definition())
            renamed.append((old, defined[-1][0]))
        elif action != "ALTER":
            defined.append(clause.definition())
    return ColumnChanges(tuple(renamed), tuple(dropped), tuple(defined), tuple(filled))


def _parts(tokens: list[tuple[str, str]]) -> list[list[tuple[str, str]]]:
    """Tokens between the commas that are in no parentheses."""
    parts: list[list[tuple[str, str]]] = [[]]
    depth = 0
    for token in tokens:
        depth += {("sign", "("): 1, ("sign", ")"): -1}.get(token, 0)
        if token == ("sign", ",") and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


class _Clause:
    """One part of a statement, read from its beginning."""

    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self._tokens = tokens
        self._at = 0

    def peek(self) -> str:
        """The next token as a keyword; empty for what is none."""
        kind, text = self._tokens[self._at] if self._at < len(self._tokens) else ("", "")
        return text.upper() if kind in ("word", "sign") else ""

    def word(self) -> str:
        """The next token as a keyword; moves on."""
        word = self.peek()
        self._at += 1
        return word

    def skip(self, word: str) -> bool:
        """Moves past a word, if it comes next."""
        found = self.peek() == word
        self._at += found
        return found

    def name(self) -> str:
        """The name of a column; moves on."""
        while self.peek() in ("IF", "NOT", "EXISTS"):
            self._at += 1
        text = self._tokens[self._at][1] if self._at < len(self._tokens) else ""
        self._at += 1
        return text

    def definition(self) -> tuple[str, str]:
        """The name of a column and the first word of its type; moves on."""
        return self.name(), self.word().lower()

    def filled(self) -> FilledColumn | None:
        """A column that is defined with a plain value as default; moves on."""
        name = self.name()
        words = [text.upper() if kind == "word" else "" for kind, text in self.rest()]
        if "DEFAULT" not in words:
            return None
        behind = words.index("DEFAULT")
        value = _plain_value(self.rest()[behind + 1 :])
        kind = " ".join(text for kind, text in self.rest()[:behind] if kind in ("word", "sign"))
        return None if value is None else FilledColumn(name, kind.lower(), value)

    def rest(self) -> list[tuple[str, str]]:
        """What is left."""
        return self._tokens[self._at :]


def _plain_value(tokens: list[tuple[str, str]]) -> str | None:
    """The text or number that tokens begin with, bare or in parentheses; None for anything else."""
    if tokens and tokens[0] == ("sign", "("):
        # MySQL's TEXT, JSON and BLOB columns have their defaults so; an expression is another matter.
        inner = _inside(tokens)
        rest = inner[1:] if inner and _INTRODUCER.fullmatch(inner[0][1]) else inner
        is_one = len(rest) == 1 or (bool(rest) and all(_NUMBER_PART.fullmatch(text) for _, text in rest))
        return _plain_value(rest) if is_one else None
    if tokens and tokens[0][0] == "text":
        return _ESCAPED.sub(lambda found: _ESCAPES.get(found[1], found[1] or "'"), tokens[0][1][1:-1])
    parts = itertools.takewhile(_NUMBER_PART.fullmatch, (text for _, text in tokens))
    number = "".join(parts)
    return number if _NUMBER.fullmatch(number) else None


def _create(words: _Words) -> list[TableChange]:
    words.skip("OR", "REPLACE")
    if not words.skip("TABLE"):
        return []
    # Without these words the table was not there, or is replaced: whatever had its name is gone.
    emptied = not words.skip("IF", "NOT", "EXISTS")
    name = words.name()
    columns = None
    if words.peek() == "(":
        inner = [_Clause(part) for part in _parts(_inside(words.tokens[words.at :]))]
        columns = ColumnChanges(defined=tuple(part.definition() for part in inner if part.peek() not in _NO_COLUMN))
    return [TableChange(*name, emptied=emptied, created=emptied, perhaps_created=not emptied, columns=columns)]


def _inside(tokens: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """What stands between the first parenthesis and the one that closes it."""
    depth = 0
    for place, token in enumerate(tokens):
        depth += {("sign", "("): 1, ("sign", ")"): -1}.get(token, 0)
        if depth == 0:
            return tokens[1:place]
    return tokens[1:]


def _rename(words: _Words) -> list[TableChange]:
    if not (words.skip("TABLE") or words.skip("TABLES")):
        return []
    words.skip("IF", "EXISTS")
    changes: list[TableChange] = []
    while not words.is_over:
        old = words.name()
        while not words.is_over and words.next_word() != "TO":
            pass
        if not words.is_over:
            changes += _moved(old, words.name())
        words.skip(",")
    return changes


def _changed_by_text(words: _Words) -> list[TableChange]:
    """Every name that may be a table's: what a statement changes is not always what it names first."""
    found: dict[tuple[str, str], None] = {}
    while not words.is_over:
        kind = words.tokens[words.at][0]
        if kind in ("word", "name"):
            found[words.name()] = None
        else:
            words.at += 1
    return [TableChange(*name, is_untold=True) for name in found]


def _drop(words: _Words) -> list[TableChange]:
    if not words.skip("TABLE"):
        return []
    words.skip("IF", "EXISTS")
    changes: list[TableChange] = []
    while not words.is_over:
        changes.append(TableChange(*words.name(), dropped=True))
        if not words.skip(","):
            break
    return changes


__all__ = ["ColumnChanges", "FilledColumn", "TableChange", "table_changes"]
