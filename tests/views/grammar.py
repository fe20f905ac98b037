"""Queries that nobody thought of, made by chance: relations within relations, of columns whose types are known."""

from __future__ import annotations

import random
from dataclasses import dataclass

NUMBER, TEXT = "number", "text"


@dataclass(frozen=True)
class Made:
    """A query and its columns, each a number or a text."""

    text: str
    columns: tuple[tuple[str, str], ...]

    def of(self, kind: str) -> list[str]:
        """Names of columns of a kind."""
        return [name for name, each in self.columns if each == kind]


_TABLES = {
    "orders": (("id", NUMBER), ("cust", NUMBER), ("amount", NUMBER), ("price", NUMBER), ("note", TEXT)),
    "customers": (("cid", NUMBER), ("name", TEXT), ("region", TEXT)),
    "stock": (("a", NUMBER), ("b", TEXT), ("v", NUMBER)),
    "events": (("oid", NUMBER), ("kind", TEXT), ("qty", NUMBER)),
}


class Grammar:
    """The same seed gives the same queries."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self._names = 0

    def query(self) -> str:
        """A query with at least one column."""
        return self._relation(self._draw.choice([1, 2, 2, 3])).text

    def _name(self) -> str:
        self._names += 1
        return f"n{self._names}"

    def _relation(self, depth: int) -> Made:
        if depth == 0:
            return self._table()
        makers = [
            *(self._filtered, self._projected, self._joined, self._joined, self._joined, self._united),
            *(self._grouped, self._grouped, self._windowed, self._halved, self._halved, self._once, self._valued),
        ]
        return self._draw.choice(makers)(depth - 1)

    def _table(self) -> Made:
        table = self._draw.choice(list(_TABLES))
        known = _TABLES[table]
        chosen = [known[0], *(each for each in known[1:] if self._draw.random() < 0.7)]
        if self._draw.random() < 0.3:
            chosen = chosen[1:] or chosen
        columns = tuple((self._name(), kind) for _, kind in chosen)
        listed = ", ".join(f"{old} AS {new}" for (old, _), (new, _) in zip(chosen, columns, strict=True))
        return Made(f"SELECT {listed} FROM {table}", columns)

    def _number(self, made: Made, alias: str = "") -> str:
        names = made.of(NUMBER)
        if not names:
            return str(self._draw.randrange(4))
        name = alias + self._draw.choice(names)
        return self._draw.choice(["{0}", "{0}", "{0} + 1", "coalesce({0}, 2)", "-{0}"]).format(name)

    def _condition(self, made: Made, alias: str = "") -> str:
        draw = self._draw
        forms = [f"{self._number(made, alias)} {draw.choice(['>', '<', '=', '<>'])} {draw.randrange(4)}"]
        if made.of(TEXT):
            name = alias + draw.choice(made.of(TEXT))
            forms += [f"{name} IS NULL", f"{name} IN ('red', 'ann', 'p', 'buy')", f"{name} > 'c'"]
        text = draw.choice(forms)
        return f"({text} OR {draw.choice(forms)})" if draw.random() < 0.2 else text

    def _filtered(self, depth: int) -> Made:
        made = self._relation(depth)
        return Made(f"SELECT * FROM ({made.text}) WHERE {self._condition(made)}", made.columns)

    def _projected(self, depth: int) -> Made:
        made = self._relation(depth)
        columns = [(name, kind) for name, kind in made.columns if self._draw.random() < 0.6]
        listed = [name for name, _ in columns]
        more = self._name()
        value = f"CASE WHEN {self._condition(made)} THEN {self._number(made)} END"
        return Made(
            f"SELECT {', '.join([*listed, f'{value} AS {more}'])} FROM ({made.text})", (*columns, (more, NUMBER))
        )

    def _on(self, left: Made, right: Made) -> str:
        draw = self._draw
        pairs = [(a, b) for kind in (NUMBER, TEXT) for a in left.of(kind) for b in right.of(kind)]
        if not pairs:
            return "1 = 1"
        a, b = draw.choice(pairs)
        text = f"l.{a} = r.{b}"
        if draw.random() < 0.15:
            a, b = draw.choice(pairs)
            text = f"l.{a} < r.{b}"
        if draw.random() < 0.3:
            a, b = draw.choice(pairs)
            text += f" AND l.{a} {draw.choice(['=', '<>', '>'])} r.{b}"
        if draw.random() < 0.2:
            text += f" AND {self._condition(right, 'r.')}"
        if draw.random() < 0.2:
            text += f" AND {self._condition(left, 'l.')}"
        return text

    def _joined(self, depth: int) -> Made:
        left, right = self._relation(depth), self._relation(self._draw.randrange(depth + 1))
        kind = self._draw.choice(["JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
        text = f"SELECT * FROM ({left.text}) l {kind} ({right.text}) r ON {self._on(left, right)}"
        if self._draw.random() < 0.3:
            both = Made("", (*left.columns, *right.columns))
            text += f" WHERE {self._condition(both)}"
        return Made(text, (*left.columns, *right.columns))

    def _halved(self, depth: int) -> Made:
        left, right = self._relation(depth), self._relation(self._draw.randrange(depth + 1))
        kind = self._draw.choice(["SEMI", "ANTI", "EXISTS", "NOT EXISTS", "IN"])
        if kind in ("SEMI", "ANTI"):
            text = f"SELECT * FROM ({left.text}) l LEFT {kind} JOIN ({right.text}) r ON {self._on(left, right)}"
        elif kind == "IN":
            numbers = right.of(NUMBER)
            asked = self._draw.choice(numbers) if numbers else "1"
            text = f"SELECT * FROM ({left.text}) l WHERE {self._number(left)} IN (SELECT {asked} FROM ({right.text}) r)"
        else:
            inner = f"SELECT 1 FROM ({right.text}) r WHERE {self._on(left, right)}"
            text = f"SELECT * FROM ({left.text}) l WHERE {kind} ({inner})"
            if self._draw.random() < 0.3:
                text += f" AND {self._condition(left)}"
        return Made(text, left.columns)

    def _united(self, depth: int) -> Made:
        left, right = self._relation(depth), self._relation(depth)
        kinds = [kind for kind in (NUMBER, TEXT) if left.of(kind) and right.of(kind)] or [NUMBER]
        sides = []
        for side in (left, right):
            listed = [self._draw.choice(side.of(kind)) if side.of(kind) else "1" for kind in kinds]
            sides.append(listed)
        names = [self._name() for _ in kinds]
        first = ", ".join(f"{value} AS {name}" for value, name in zip(sides[0], names, strict=True))
        word = self._draw.choice(["UNION ALL", "UNION ALL", "UNION"])
        text = f"SELECT {first} FROM ({left.text}) {word} SELECT {', '.join(sides[1])} FROM ({right.text})"
        return Made(text, tuple(zip(names, kinds, strict=True)))

    def _once(self, depth: int) -> Made:
        made = self._relation(depth)
        return Made(f"SELECT DISTINCT * FROM ({made.text})", made.columns)

    def _grouped(self, depth: int) -> Made:
        draw = self._draw
        made = self._relation(depth)
        keys = draw.sample(made.columns, min(len(made.columns), draw.choice([1, 1, 2])))
        columns, listed = list(keys), [name for name, _ in keys]
        forms = ["count(*)", "sum({0})", "min({0})", "max({0})", "count({0})", "count(DISTINCT {0})"]
        for _ in range(draw.choice([1, 2])):
            name = self._name()
            listed.append(f"{draw.choice(forms).format(self._number(made))} AS {name}")
            columns.append((name, NUMBER))
        shown = listed if draw.random() < 0.8 else listed[1:]
        text = f"SELECT {', '.join(shown)} FROM ({made.text}) GROUP BY {', '.join(name for name, _ in keys)}"
        if draw.random() < 0.25:
            text += f" HAVING count(*) {draw.choice(['>', '<', '='])} {draw.choice([1, 2])}"
        return Made(text, tuple(columns[len(listed) - len(shown) :]))

    def _windowed(self, depth: int) -> Made:
        draw = self._draw
        made = self._relation(depth)
        name = self._name()
        key = draw.choice(made.columns)[0]
        order = ", ".join(each for each, _ in draw.sample(made.columns, len(made.columns)))
        function = draw.choice(["row_number()", "rank()", f"sum({self._number(made)})", "count(*)"])
        value = f"{function} OVER (PARTITION BY {key} ORDER BY {order})"
        if draw.random() < 0.4:
            return Made(
                f"SELECT * FROM (SELECT *, {value} AS {name} FROM ({made.text})) WHERE {name} <= 2",
                (*made.columns, (name, NUMBER)),
            )
        return Made(f"SELECT *, {value} AS {name} FROM ({made.text})", (*made.columns, (name, NUMBER)))

    def _valued(self, depth: int) -> Made:
        left, right = self._relation(depth), self._table()
        numbers = [(a, b) for a in left.of(NUMBER) for b in right.of(NUMBER)]
        if not numbers:
            return left
        a, b = self._draw.choice(numbers)
        name = self._name()
        function = self._draw.choice(["max", "sum", "count", "min"])
        inner = f"SELECT {function}({self._number(right)}) FROM ({right.text}) r WHERE r.{b} = l.{a}"
        return Made(f"SELECT l.*, ({inner}) AS {name} FROM ({left.text}) l", (*left.columns, (name, NUMBER)))
