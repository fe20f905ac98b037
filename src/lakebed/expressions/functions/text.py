"""Functions of STRING, and of BINARY where Spark has them. Positions and lengths count code points, from 1."""

from __future__ import annotations

import re

import pyarrow as pa

from lakebed.expressions import kinds
from lakebed.expressions.casts import coerced, null_of
from lakebed.expressions.functions import arrow_text, conditions
from lakebed.expressions.functions.function import MANY, Function
from lakebed.expressions.functions.patterns import Pattern, constant_text, like_pattern, pattern_of
from lakebed.expressions.nodes import ArrowFunction, Constant, Expression, NotProven, call

_IS_ASCII = "length({0}) = strlen({0})"


def _text(value: Expression) -> Expression:
    if value.type == kinds.BINARY:
        raise NotProven("a function of text with BINARY")
    return coerced(value, kinds.STRING)


def _number(value: Expression, what: str) -> Expression:
    """An INT, as counts and positions are: Spark takes no BIGINT for it."""
    if value.type in (kinds.TINYINT, kinds.SMALLINT, kinds.INT):
        return coerced(value, kinds.INT)
    if value.type == kinds.NULL:
        return null_of(kinds.INT)
    raise NotProven(f"{what} of {kinds.spark_name(value.type)}")


def _quoted(text: str) -> str:
    """A text inside of a template: brackets of the template's own are doubled."""
    if "\0" in text:
        raise NotProven("a text with a zero byte")
    return "'" + text.replace("'", "''").replace("{", "{{").replace("}", "}}") + "'"


def _places(count: int, start: int = 0) -> str:
    return ", ".join(f"{{{n}}}" for n in range(start, start + count))


# --- joined together -------------------------------------------------------------------------------------------------


def concat(*values: Expression) -> Expression:
    """All values in a row, null if one is: texts, binaries or arrays."""
    if any(pa.types.is_list(value.type) for value in values):
        return _concat_arrays(*values)
    if values and all(value.type == kinds.BINARY for value in values):
        kind = kinds.BINARY
        given = list(values)
    else:
        kind = kinds.STRING
        given = [_text(value) for value in values]
    return call("(" + " || ".join(f"{{{n}}}" for n in range(len(given))) + ")", *given, type=kind)


def _concat_arrays(*values: Expression) -> Expression:
    kind = kinds.common_type_of([value.type for value in values], "concat")
    given = [coerced(value, kind) for value in values]
    some_null = " OR ".join(f"{{{n}}} IS NULL" for n in range(len(given)))
    return call(f"(CASE WHEN {some_null} THEN NULL ELSE list_concat({_places(len(given))}) END)", *given, type=kind)


def concat_ws(separator: Expression, *values: Expression) -> Expression:
    """Values that are not null, and elements of arrays, with a separator between them."""
    separator = _text(separator)
    if not values:
        return call("({0} || '')", separator, type=kinds.STRING)
    if not any(pa.types.is_list(value.type) for value in values):
        given = [_text(value) for value in values]
        return call(
            f"concat_ws({{0}}, {_places(len(given), 1)})",
            separator,
            *given,
            type=kinds.STRING,
            nullable=separator.nullable,
        )
    parts = []
    given = []
    for n, value in enumerate(values, 1):
        if not pa.types.is_list(value.type):
            given.append(_text(value))
            parts.append(f"[{{{n}}}]")
        elif value.type.value_type == kinds.STRING:
            given.append(value)
            parts.append(f"coalesce({{{n}}}, [])")
        else:
            raise NotProven(f"`concat_ws` of {kinds.spark_name(value.type)}")
    whole = f"list_filter(list_concat({', '.join(parts)}, []::VARCHAR[]), lambda l_e : l_e IS NOT NULL)"
    return call(
        f"(CASE WHEN {{0}} IS NOT NULL THEN coalesce(array_to_string({whole}, {{0}}), '') END)",
        separator,
        *given,
        type=kinds.STRING,
        nullable=separator.nullable,
    )


# --- letters ---------------------------------------------------------------------------------------------------------


def upper(value: Expression) -> Expression:
    """Upper case as Unicode has it in full: 'ß' gives 'SS'."""
    return _beyond_ascii("upper({0})", arrow_text.UPPER, value)


def lower(value: Expression) -> Expression:
    """Lower case as Unicode has it in full."""
    return _beyond_ascii("lower({0})", arrow_text.LOWER, value)


def initcap(value: Expression) -> Expression:
    """Every word, between blanks, with its first letter in title case and the others in lower case."""
    words = "list_transform(string_split(lower({0}), ' '), lambda l_w : upper(l_w[1]) || l_w[2:])"
    return _beyond_ascii(f"array_to_string({words}, ' ')", arrow_text.INITCAP, value)


def reverse(value: Expression) -> Expression:
    """From the last to the first: letters of a text, elements of an array."""
    if pa.types.is_list(value.type):
        return call("list_reverse({0})", value, type=value.type)
    return _beyond_ascii("reverse({0})", arrow_text.REVERSE, value)


def _beyond_ascii(native: str, otherwise: ArrowFunction, value: Expression) -> Expression:
    template = f"(CASE WHEN {_IS_ASCII} THEN {native} ELSE {otherwise.name}({{0}}) END)"
    return call(template, _text(value), type=kinds.STRING, uses=(otherwise,))


def translate(value: Expression, signs: Expression, others: Expression) -> Expression:
    """Each sign replaced by the other in its place, or left out if there is none."""
    before, after = constant_text(signs, "`translate`"), constant_text(others, "`translate`")
    return call(f"translate({{0}}, {_quoted(before)}, {_quoted(after)})", _text(value), type=kinds.STRING)


# --- lengths and parts -----------------------------------------------------------------------------------------------


def length(value: Expression) -> Expression:
    """Code points of a text, bytes of a binary."""
    if value.type == kinds.BINARY:
        return octet_length(value)
    return call("CAST(length({0}) AS INTEGER)", _text(value), type=kinds.INT)


def octet_length(value: Expression) -> Expression:
    """Bytes, as UTF-8."""
    if value.type == kinds.BINARY:
        return call("CAST(octet_length({0}) AS INTEGER)", value, type=kinds.INT)
    return call("CAST(strlen({0}) AS INTEGER)", _text(value), type=kinds.INT)


def bit_length(value: Expression) -> Expression:
    """Bits, as UTF-8."""
    return call("(CAST(8 AS INTEGER) * {0})", octet_length(value), type=kinds.INT)


def substring(value: Expression, position: Expression, count: Expression | None = None) -> Expression:
    """A part: position 0 means 1, one below 0 counts from the end, and what lies before the start is counted, too."""
    given = [_text(value), _number(position, "a position")]
    if count is not None:
        given.append(_number(count, "a length"))
    known = position.value if isinstance(position, Constant) else None
    if known is not None and known >= 0:
        start = max(known, 1)
        if count is None:
            return call(f"substring({{0}}, {start})", given[0], type=kinds.STRING)
        return call(f"substring({{0}}, {start}, greatest({{1}}, 0))", given[0], given[2], type=kinds.STRING)
    first = "(CASE WHEN {1} > 0 THEN {1} - 1 WHEN {1} < 0 THEN length({0}) + {1} ELSE 0 END)"
    # greatest() leaves nulls out
    if count is None:
        template = f"(CASE WHEN {{1}} IS NOT NULL THEN substring({{0}}, greatest({first}, 0) + 1) END)"
    else:
        rest = f"greatest({first} + {{2}} - greatest({first}, 0), 0)"
        template = (
            f"(CASE WHEN {{1}} + {{2}}::BIGINT IS NOT NULL THEN substring({{0}}, greatest({first}, 0) + 1, {rest}) END)"
        )
    return call(template, *given, type=kinds.STRING)


def left(value: Expression, count: Expression) -> Expression:
    """The first letters."""
    return call(
        "left({0}, CASE WHEN {1} < 0 THEN 0 ELSE {1} END)", _text(value), _number(count, "a length"), type=kinds.STRING
    )


def right(value: Expression, count: Expression) -> Expression:
    """The last letters."""
    return call(
        "right({0}, CASE WHEN {1} < 0 THEN 0 ELSE {1} END)", _text(value), _number(count, "a length"), type=kinds.STRING
    )


def split(value: Expression, pattern: Expression, limit: Expression | None = None) -> Expression:
    """The parts between matches of a regular expression; with a limit the last part is all that remains."""
    found = pattern_of(pattern, "split")
    _must_match_something(found, "split")
    most = -1
    if limit is not None:
        if not isinstance(limit, Constant) or limit.type != kinds.INT:
            raise NotProven("`split` with a limit that is no constant")
        most = limit.value
    kind = kinds.array_of(kinds.STRING, nullable=False)
    if found.literal is None:
        if most > 0:
            raise NotProven("`split` by a regular expression with a limit")
        return call(f"string_split_regex({{0}}, {_quoted(found.text)})", _text(value), type=kind)
    sign = _quoted(found.literal)
    parts = f"string_split({{0}}, {sign})"
    if most <= 0:
        return call(parts, _text(value), type=kind)
    rest = f"list_append({parts}[1:{most - 1}], array_to_string({parts}[{most}:], {sign}))"
    return call(f"(CASE WHEN len({parts}) > {most} THEN {rest} ELSE {parts} END)", _text(value), type=kind)


def split_part(value: Expression, separator: Expression, place: Expression) -> Expression:
    """One of the parts between separators, from the end if below 0; empty if there is none."""
    template = (
        "(CASE WHEN {0} IS NULL OR {1} IS NULL OR {2} IS NULL THEN NULL "
        "WHEN {2} = 0 THEN error('split_part: parts count from 1') "
        "WHEN {1} <> '' THEN split_part({0}, {1}, {2}) WHEN {2} IN (1, -1) THEN {0} ELSE '' END)"
    )
    given = _text(value), _text(separator), _number(place, "a place")
    return call(template, *given, type=kinds.STRING, can_fail=True)


def substring_index(value: Expression, separator: Expression, count: Expression) -> Expression:
    """What stands before the separator that is met the n-th time; after it, from the end, if below 0."""
    text = constant_text(separator, "the separator of `substring_index`")
    if not text or any(text.startswith(text[n:]) for n in range(1, len(text))):
        raise NotProven(f"`substring_index` by '{text}'", "matches of it may overlap")
    quoted = _quoted(text)
    template = (
        f"(CASE WHEN {{1}} > 0 THEN coalesce(array_to_string(string_split({{0}}, {quoted})[1:{{1}}], {quoted}), '') "
        f"WHEN {{1}} < 0 THEN coalesce(array_to_string(string_split({{0}}, {quoted})[{{1}}:], {quoted}), '') "
        "WHEN {1} = 0 THEN '' END)"
    )
    template = f"(CASE WHEN {{0}} IS NOT NULL THEN {template} END)"
    return call(template, _text(value), _number(count, "a count"), type=kinds.STRING)


# --- at the ends -----------------------------------------------------------------------------------------------------


def _trimmed(function: str, *, signs_first: bool = False) -> Function:
    """`signs_first`: `ltrim` and `rtrim` take the signs before the text."""

    def build(*given: Expression) -> Expression:
        if len(given) == 1:
            return call(f"{function}({{0}}, ' ')", _text(given[0]), type=kinds.STRING)
        value, signs = reversed(given) if signs_first else given
        return call(f"{function}({{0}}, {{1}})", _text(value), _text(signs), type=kinds.STRING)

    return Function(build, 1, 2)


def _padded(function: str) -> Function:
    def build(value: Expression, count: Expression, signs: Expression | None = None) -> Expression:
        given = [_text(value), _number(count, "a length")]
        if signs is None:
            return call(f"{function}({{0}}, CASE WHEN {{1}} < 0 THEN 0 ELSE {{1}} END, ' ')", *given, type=kinds.STRING)
        template = (
            "(CASE WHEN {2} = '' THEN left({0}, CASE WHEN {1} < 0 THEN 0 ELSE {1} END) "
            f"ELSE {function}({{0}}, CASE WHEN {{1}} < 0 THEN 0 ELSE {{1}} END, {{2}}) END)"
        )
        return call(template, *given, _text(signs), type=kinds.STRING)

    return Function(build, 2, 3)


def repeat(value: Expression, count: Expression) -> Expression:
    """The text many times."""
    return call(
        "repeat({0}, CASE WHEN {1} < 0 THEN 0 ELSE {1} END)", _text(value), _number(count, "a count"), type=kinds.STRING
    )


def space(count: Expression) -> Expression:
    """Many blanks."""
    return call("repeat(' ', CASE WHEN {0} < 0 THEN 0 ELSE {0} END)", _number(count, "a count"), type=kinds.STRING)


def replace(value: Expression, old: Expression, new: Expression | None = None) -> Expression:
    """Every occurrence of a text by another."""
    if new is None:
        return call("replace({0}, {1}, '')", _text(value), _text(old), type=kinds.STRING)
    return call("replace({0}, {1}, {2})", _text(value), _text(old), _text(new), type=kinds.STRING)


# --- found in text ---------------------------------------------------------------------------------------------------


def instr(value: Expression, part: Expression) -> Expression:
    """Where a text begins in another; 0 if it is not in it."""
    return call("CAST(instr({0}, {1}) AS INTEGER)", _text(value), _text(part), type=kinds.INT)


def locate(part: Expression, value: Expression, start: Expression | None = None) -> Expression:
    """Where a text begins in another, from a position on; 0 if nowhere, and for a position below 1 or null."""
    if start is None:
        return instr(value, part)
    template = (
        "(CASE WHEN {2} IS NULL THEN 0 WHEN {0} IS NULL OR {1} IS NULL THEN NULL "
        "WHEN {2} < 1 THEN 0 WHEN {0} = '' THEN 1 "
        "ELSE CAST(CASE instr(substring({1}, {2}), {0}) WHEN 0 THEN 0 "
        "ELSE instr(substring({1}, {2}), {0}) + {2} - 1 END AS INTEGER) END)"
    )
    given = _text(part), _text(value), _number(start, "a position")
    return call(template, *given, type=kinds.INT, nullable=part.nullable or value.nullable)


def _test(function: str) -> Function:
    def build(value: Expression, part: Expression) -> Expression:
        return call(f"{function}({{0}}, {{1}})", _text(value), _text(part), type=kinds.BOOLEAN)

    return Function(build, 2, 2)


def find_in_set(value: Expression, texts: Expression) -> Expression:
    """The place of a text in a list with commas; 0 if it is not in it."""
    template = (
        "(CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL WHEN contains({0}, ',') THEN 0 "
        "ELSE CAST(coalesce(list_position(string_split({1}, ','), {0}), 0) AS INTEGER) END)"
    )
    return call(template, _text(value), _text(texts), type=kinds.INT)


def like(value: Expression, pattern: Expression, escape: Expression | None = None) -> Expression:
    """LIKE; the escape is a backslash if nothing is said."""
    sign = "\\" if escape is None else constant_text(escape, "the escape of LIKE")
    if len(sign) != 1 or sign in "%_":
        raise NotProven(f"LIKE with the escape '{sign}'")
    text = like_pattern(pattern, sign)
    # DuckDB searches for parts of a pattern much faster where nothing is said of an escape.
    escaped = f" ESCAPE {_quoted(sign)}" if sign in text else ""
    return call(f"({{0}} LIKE {_quoted(text)}{escaped})", _text(value), type=kinds.BOOLEAN)


def ilike(value: Expression, pattern: Expression, escape: Expression | None = None) -> Expression:
    """LIKE of both sides in lower case."""
    text = constant_text(pattern, "the pattern of LIKE")
    if not text.isascii():
        raise NotProven("ILIKE with letters beyond ASCII")
    small = Constant(type=kinds.STRING, nullable=False, value=text.lower(), text="")
    return like(lower(value), small, escape)


def rlike(value: Expression, pattern: Expression) -> Expression:
    """Whether a regular expression matches anywhere."""
    found = pattern_of(pattern, "rlike")
    return call(f"regexp_matches({{0}}, {_quoted(found.text)})", _text(value), type=kinds.BOOLEAN)


def regexp_extract(value: Expression, pattern: Expression, group: Expression | None = None) -> Expression:
    """A group of the first match; empty if there is none."""
    found = pattern_of(pattern, "regexp_extract")
    number = _group(group, found.groups)
    if number == 0 and found.has_end:
        raise NotProven("`regexp_extract` of a whole match up to `$`")
    return call(f"regexp_extract({{0}}, {_quoted(found.text)}, {number})", _text(value), type=kinds.STRING)


def regexp_extract_all(value: Expression, pattern: Expression, group: Expression | None = None) -> Expression:
    """A group of every match."""
    found = pattern_of(pattern, "regexp_extract_all")
    number = _group(group, found.groups)
    _must_match_something(found, "regexp_extract_all")
    template = f"regexp_extract_all({{0}}, {_quoted(found.text)}, {number})"
    return call(template, _text(value), type=kinds.array_of(kinds.STRING))


def _group(group: Expression | None, groups: int) -> int:
    if group is None:
        number = 1
    elif isinstance(group, Constant) and isinstance(group.value, int):
        number = group.value
    else:
        raise NotProven("a group of a regular expression that is no constant")
    if not 0 <= number <= groups:
        raise NotProven(f"group {number} of a regular expression", f"it has {groups}")
    return number


def _must_match_something(found: Pattern, what: str) -> None:
    """Matches that follow one another are found alike only where each has a length, and no end to look for."""
    if found.matches_empty or found.has_end or found.has_start:
        raise NotProven(f"`{what}` of a pattern that has `^` or `$`, or matches nothing at all")


def regexp_replace(value: Expression, pattern: Expression, new: Expression) -> Expression:
    """Every match replaced; `$1` in the new text is the first group."""
    found = pattern_of(pattern, "regexp_replace")
    text = constant_text(new, "the new text of `regexp_replace`")
    _must_match_something(found, "regexp_replace")
    groups = [int(number) for number in re.findall(r"\$(\d)", text)]
    if "\\" in text or re.search(r"\$(?!\d)|\$\d\d", text) or any(number > found.groups for number in groups):
        raise NotProven(f"`regexp_replace` by '{text}'")
    new_text = re.sub(r"\$(\d)", r"\\\1", text)
    template = f"regexp_replace({{0}}, {_quoted(found.text)}, {_quoted(new_text)}, 'g')"
    return call(template, _text(value), type=kinds.STRING)


def regexp_count(value: Expression, pattern: Expression) -> Expression:
    """How often a regular expression matches."""
    found = pattern_of(pattern, "regexp_count")
    _must_match_something(found, "regexp_count")
    template = f"CAST(len(regexp_extract_all({{0}}, {_quoted(found.text)}, 0)) AS INTEGER)"
    return call(template, _text(value), type=kinds.INT)


def regexp_substr(value: Expression, pattern: Expression) -> Expression:
    """The first match; null if there is none."""
    found = pattern_of(pattern, "regexp_substr")
    if found.matches_empty or found.has_end:
        raise NotProven("`regexp_substr` of a pattern that has `$`, or matches nothing at all")
    template = f"nullif(regexp_extract({{0}}, {_quoted(found.text)}, 0), '')"
    return call(template, _text(value), type=kinds.STRING, nullable=True)


# --- single signs, bytes ---------------------------------------------------------------------------------------------


def ascii_code(value: Expression) -> Expression:
    """The number of the first letter; 0 of nothing."""
    return call("(CASE {0} WHEN '' THEN 0 ELSE CAST(unicode({0}) AS INTEGER) END)", _text(value), type=kinds.INT)


def character(code: Expression) -> Expression:
    """The letter of a number, of whose bits the lowest eight count; none below 0."""
    if not kinds.is_integral(code.type):
        raise NotProven(f"`chr` of {kinds.spark_name(code.type)}")
    template = "(CASE WHEN {0} < 0 THEN '' ELSE chr(CAST({0} & 255 AS INTEGER)) END)"
    return call(template, coerced(code, kinds.BIGINT), type=kinds.STRING)


def levenshtein(left: Expression, right: Expression) -> Expression:
    """How many letters must be changed to make one text of the other."""
    function = arrow_text.LEVENSHTEIN
    template = (
        "CAST(CASE WHEN length({0}) = strlen({0}) AND length({1}) = strlen({1}) THEN levenshtein({0}, {1}) "
        f"ELSE {function.name}({{0}}, {{1}}) END AS INTEGER)"
    )
    return call(template, _text(left), _text(right), type=kinds.INT, uses=(function,))


def format_string(pattern: Expression, *values: Expression) -> Expression:
    """A text with values in the places of %s and %d; a null is the word."""
    text = constant_text(pattern, "the pattern of `format_string`")
    pieces = re.split(r"(%[sd%])", text)
    parts, given = [], list(values)
    taken: list[Expression] = []
    for piece in pieces:
        if piece in ("%s", "%d") and given:
            value = given.pop(0)
            if not (kinds.is_integral(value.type) or (piece == "%s" and value.type == kinds.STRING)):
                raise NotProven(f"'{piece}' of {kinds.spark_name(value.type)}")
            parts.append(f"coalesce(CAST({{{len(taken)}}} AS VARCHAR), 'null')")
            taken.append(value)
        elif piece == "%%":
            parts.append("'%'")
        elif "%" in piece:
            raise NotProven(f"the pattern '{text}' of `format_string`")
        elif piece:
            parts.append(_quoted(piece))
    if given:
        raise NotProven("`format_string` with values that have no place")
    return call("(" + " || ".join(parts or ["''"]) + ")", *taken, type=kinds.STRING, nullable=False)


def elt(place: Expression, *values: Expression) -> Expression:
    """One of the values, by its place."""
    given = [_text(value) for value in values]
    branches = " ".join(f"WHEN {n} THEN {{{n}}}" for n in range(1, len(given) + 1))
    template = f"(CASE WHEN {{0}} IS NOT NULL THEN CASE {{0}} {branches} ELSE error('elt: no such place') END END)"
    return call(template, _number(place, "a place"), *given, type=kinds.STRING, nullable=True, can_fail=True)


def _bytes(value: Expression) -> Expression:
    """A binary; a text is its bytes."""
    if value.type == kinds.BINARY:
        return value
    if value.type == kinds.NULL:
        return null_of(kinds.BINARY)
    if value.type == kinds.STRING:
        return call("encode({0})", value, type=kinds.BINARY)
    raise NotProven(f"bytes of {kinds.spark_name(value.type)}")


def _digest(function: str) -> Function:
    def build(value: Expression) -> Expression:
        return call(f"{function}({{0}})", _bytes(value), type=kinds.STRING)

    return Function(build, 1, 1)


def sha2(value: Expression, bits: Expression) -> Expression:
    """SHA-2 of 256 bits, which 0 means as well."""
    if not isinstance(bits, Constant) or bits.value not in (0, 256):
        raise NotProven("`sha2` of other than 256 bits")
    return call("sha256({0})", _bytes(value), type=kinds.STRING)


def base64(value: Expression) -> Expression:
    """Base64, without breaks."""
    return call("to_base64({0})", _bytes(value), type=kinds.STRING)


def unbase64(value: Expression) -> Expression:
    """Bytes of Base64, if it is complete: what else Spark reads is not known."""
    whole = "(?:[A-Za-z0-9+/]{{4}})*(?:[A-Za-z0-9+/]{{2}}==|[A-Za-z0-9+/]{{3}}=)?"
    template = (
        f"(CASE WHEN regexp_full_match({{0}}, '{whole}') THEN from_base64({{0}}) "
        "WHEN {0} IS NOT NULL THEN error('unbase64: no complete Base64') END)"
    )
    return call(template, _text(value), type=kinds.BINARY, can_fail=True)


def unhex(value: Expression) -> Expression:
    """Bytes of hexadecimal digits; null of anything else."""
    template = (
        "(CASE WHEN regexp_full_match({0}, '[0-9A-Fa-f]*') "
        "THEN unhex(CASE WHEN strlen({0}) % 2 = 1 THEN '0' || {0} ELSE {0} END) END)"
    )
    return call(template, _text(value), type=kinds.BINARY, nullable=True)


def encode(value: Expression, charset: Expression) -> Expression:
    """Bytes of a text."""
    _only_utf8(charset)
    return call("encode({0})", _text(value), type=kinds.BINARY)


def decode(value: Expression, charset: Expression, *choices: Expression) -> Expression:
    """The text of bytes; with more arguments the choice among values that has the same name."""
    if choices:
        return conditions.decode(value, charset, *choices)
    _only_utf8(charset)
    return call("decode({0})", _bytes(value), type=kinds.STRING, can_fail=True)


def _only_utf8(charset: Expression) -> None:
    if constant_text(charset, "a character set").upper() not in ("UTF-8", "UTF8"):
        raise NotProven(f"the character set {charset.spelled()}")


FUNCTIONS = {
    "||": Function(concat, 2, 2),
    "concat": Function(concat, 1, MANY),
    "concat_ws": Function(concat_ws, 1, MANY),
    "upper": Function(upper, 1, 1),
    "ucase": Function(upper, 1, 1),
    "lower": Function(lower, 1, 1),
    "lcase": Function(lower, 1, 1),
    "initcap": Function(initcap, 1, 1),
    "reverse": Function(reverse, 1, 1),
    "translate": Function(translate, 3, 3),
    "length": Function(length, 1, 1),
    "len": Function(length, 1, 1),
    "char_length": Function(length, 1, 1),
    "character_length": Function(length, 1, 1),
    "octet_length": Function(octet_length, 1, 1),
    "bit_length": Function(bit_length, 1, 1),
    "substring": Function(substring, 2, 3),
    "substr": Function(substring, 2, 3),
    "left": Function(left, 2, 2),
    "right": Function(right, 2, 2),
    "split": Function(split, 2, 3),
    "split_part": Function(split_part, 3, 3),
    "substring_index": Function(substring_index, 3, 3),
    "trim": _trimmed("trim"),
    "btrim": _trimmed("trim"),
    "ltrim": _trimmed("ltrim", signs_first=True),
    "rtrim": _trimmed("rtrim", signs_first=True),
    "trim characters": _trimmed("trim"),
    "ltrim characters": _trimmed("ltrim"),
    "rtrim characters": _trimmed("rtrim"),
    "lpad": _padded("lpad"),
    "rpad": _padded("rpad"),
    "repeat": Function(repeat, 2, 2),
    "space": Function(space, 1, 1),
    "replace": Function(replace, 2, 3),
    "instr": Function(instr, 2, 2),
    "locate": Function(locate, 2, 3),
    "position": Function(locate, 2, 3),
    "startswith": _test("starts_with"),
    "endswith": _test("ends_with"),
    "contains": _test("contains"),
    "find_in_set": Function(find_in_set, 2, 2),
    "like": Function(like, 2, 3),
    "ilike": Function(ilike, 2, 3),
    "rlike": Function(rlike, 2, 2),
    "regexp": Function(rlike, 2, 2),
    "regexp_like": Function(rlike, 2, 2),
    "regexp_extract": Function(regexp_extract, 2, 3),
    "regexp_extract_all": Function(regexp_extract_all, 2, 3),
    "regexp_replace": Function(regexp_replace, 3, 3),
    "regexp_count": Function(regexp_count, 2, 2),
    "regexp_substr": Function(regexp_substr, 2, 2),
    "ascii": Function(ascii_code, 1, 1),
    "chr": Function(character, 1, 1),
    "char": Function(character, 1, 1),
    "levenshtein": Function(levenshtein, 2, 2),
    "format_string": Function(format_string, 1, MANY),
    "printf": Function(format_string, 1, MANY),
    "unbase64": Function(unbase64, 1, 1),
    "elt": Function(elt, 2, MANY),
    "md5": _digest("md5"),
    "sha": _digest("sha1"),
    "sha1": _digest("sha1"),
    "sha2": Function(sha2, 2, 2),
    "base64": Function(base64, 1, 1),
    "unhex": Function(unhex, 1, 1),
    "encode": Function(encode, 2, 2),
    "decode": Function(decode, 2, MANY),
}
