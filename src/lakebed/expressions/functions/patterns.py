"""LIKE and regular expressions: those patterns that Java and RE2, DuckDB's engine, read alike.

A pattern is read sign by sign and written again for RE2. Where the two differ in what a sign means (`.`, `\\s`, `$`),
the sign is spelled out; what only one of them has, and what they match differently, is not proven.
"""

from __future__ import annotations

import re

from lakebed.expressions.nodes import Constant, Expression, NotProven
from lakebed.records import dataclass

_LINE_ENDS = r"\n\r\x{85}\x{2028}\x{2029}"
_CLASSES = {"d": "0-9", "w": "a-zA-Z0-9_", "s": r" \t\n\x0B\f\r"}
_CONTROLS = {"t": r"\t", "n": r"\n", "r": r"\r", "f": r"\f"}
_SPECIAL = set("\\.[]{}()*+?^$|")


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern for RE2. `literal`: the text that it stands for, if it is nothing but that."""

    text: str
    groups: int
    matches_empty: bool
    has_start: bool
    has_end: bool
    literal: str | None


def constant_text(value: Expression, what: str) -> str:
    """The text of a constant, which is needed to know what a function means."""
    if not isinstance(value, Constant) or not isinstance(value.value, str):
        raise NotProven(what, "it must be a constant")
    return value.value


def pattern_of(value: Expression, what: str) -> Pattern:
    """The regular expression of a constant."""
    return _Reader(constant_text(value, f"the pattern of `{what}`"), what).read()


class _Reader:
    def __init__(self, text: str, what: str) -> None:
        self._text = text
        self._what = what
        self._at = 0
        self._groups = 0
        self._is_literal = True
        self._has_start = False
        self._has_end = False
        self._takes_returns = False
        self._plain: list[str] = []

    def read(self) -> Pattern:
        text, is_empty = self._choice()
        if self._at < len(self._text):
            raise self._refused()
        if self._has_end and self._takes_returns:  # between \r and \n there is no end for Java
            raise self._refused()
        literal = "".join(self._plain) if self._is_literal and text else None
        return Pattern(text, self._groups, is_empty, self._has_start, self._has_end, literal)

    def _refused(self) -> NotProven:
        return NotProven(f"the pattern '{self._text}' of `{self._what}`", "Java and RE2 may read it differently")

    def _peek(self) -> str:
        return self._text[self._at] if self._at < len(self._text) else ""

    def _choice(self) -> tuple[str, bool]:
        """Sequences with `|` between them, and whether they may match nothing."""
        parts, is_empty = [], False
        while True:
            part, part_empty = self._sequence()
            parts.append(part)
            is_empty = is_empty or part_empty
            if self._peek() != "|":
                return "|".join(parts), is_empty
            self._is_literal = False
            self._at += 1

    def _sequence(self) -> tuple[str, bool]:
        parts, is_empty = [], True
        while self._peek() and self._peek() not in "|)":
            part, part_empty = self._piece()
            parts.append(part)
            is_empty = is_empty and part_empty
        return "".join(parts), is_empty

    def _piece(self) -> tuple[str, bool]:
        groups = self._groups
        sign = self._peek()
        self._at += 1
        is_empty = False
        if sign == "^":
            if self._at != 1:
                raise self._refused()
            self._is_literal = False
            self._has_start = True
            return "^", True
        if sign == "$" and self._at == len(self._text):
            self._is_literal = False
            self._has_end = True
            return rf"(?:\r\n|[{_LINE_ENDS}])?\z", True
        if sign == "\\":
            text = self._escaped()
        elif sign == ".":
            self._is_literal = False
            text = f"[^{_LINE_ENDS}]"
        elif sign == "[":
            self._is_literal = False
            text = self._class()
        elif sign == "(":
            self._is_literal = False
            text, is_empty = self._group()
        elif sign in _SPECIAL:
            raise self._refused()
        else:
            self._plain.append(sign)
            text = sign
        return self._quantified(text, is_empty, holds_groups=self._groups > groups)

    def _escaped(self) -> str:
        sign = self._peek()
        self._at += 1
        if sign in _CLASSES:
            self._is_literal = False
            self._takes_returns = self._takes_returns or sign == "s"
            return f"[{_CLASSES[sign]}]"
        if sign.lower() in _CLASSES:
            self._is_literal = False
            self._takes_returns = True
            return f"[^{_CLASSES[sign.lower()]}]"
        if sign in _CONTROLS:
            self._is_literal = False
            self._takes_returns = self._takes_returns or sign == "r"
            return _CONTROLS[sign]
        if not sign or sign.isalnum() or ord(sign) > 127:
            raise self._refused()
        self._plain.append(sign)
        return f"\\{sign}"

    def _class(self) -> str:
        """[...]: single signs and ranges; what is nested, or cut with another, only Java knows."""
        found = re.compile(
            r"(\^?)(-?(?:[^\\\[\]&^-]|\\[^a-zA-Z0-9]|\\[dwstnrf]|(?<=[a-zA-Z0-9])-(?=[a-zA-Z0-9]))+-?)\]"
        )
        match = found.match(self._text, self._at)
        if match is None:
            raise self._refused()
        self._at = match.end()
        self._takes_returns = self._takes_returns or bool(match.group(1)) or bool(re.search(r"\\[sr]", match.group(2)))
        inner = re.sub(r"\\([dws])", lambda each: _CLASSES[each.group(1)], match.group(2))
        if re.search(r"[^\x00-\x7f]-|-[^\x00-\x7f]", inner):
            raise self._refused()
        return f"[{match.group(1)}{inner}]"

    def _group(self) -> tuple[str, bool]:
        opening = "("
        if self._text.startswith("?:", self._at):
            opening = "(?:"
            self._at += 2
        elif self._peek() == "?":
            raise self._refused()
        else:
            self._groups += 1
        text, is_empty = self._choice()
        if self._peek() != ")":
            raise self._refused()
        self._at += 1
        return f"{opening}{text})", is_empty

    def _quantified(self, text: str, is_empty: bool, *, holds_groups: bool) -> tuple[str, bool]:
        match = re.compile(r"(?:[*+?]|\{\d{1,2}(?:,\d{0,2})?\})\??").match(self._text, self._at)
        if match is None:
            if self._peek() == "{":
                raise self._refused()
            return text, is_empty
        # What a group holds after it matched several times, or nothing, is told differently.
        if is_empty or holds_groups:
            raise self._refused()
        self._is_literal = False
        self._at = match.end()
        if self._peek() and self._peek() in "*+?{":
            raise self._refused()
        quantity = match.group()
        least = 0 if quantity[0] in "*?" else 1 if quantity[0] == "+" else int(re.findall(r"\d+", quantity)[0])
        return f"{text}{quantity}", least == 0


def like_pattern(value: Expression, escape: str) -> str:
    """A pattern of LIKE in which the escape stands only where it may: before `%`, `_` and itself."""
    text = constant_text(value, "the pattern of LIKE")
    marked = re.escape(escape)
    if not re.fullmatch(f"(?:[^{marked}]|{marked}[%_{marked}])*", text, re.DOTALL):
        raise NotProven(f"the pattern '{text}' of LIKE", f"the escape '{escape}' stands before neither % nor _")
    return text
