"""Statements that people bring along from Delta, Flink and databases.

Where one means something that exists here, it is read as that. Where it does not, the error says what to type instead;
Spark, which knows most of them no better, is not started to say so.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from itertools import accumulate
from typing import Any

from sqlglot.tokens import Token

from lakebed.errors import InvalidArgument, Unsupported
from lakebed.sql.parse.alter import read_literal
from lakebed.sql.statements import Call, DescribeHistory, Restore, Vacuum
from lakebed.sql.words.cursor import Cursor
from lakebed.sql.words.names import read_table

Habit = Call | DescribeHistory | Restore | Vacuum


def read_habit(cursor: Cursor) -> Habit | None:
    """The statement, if it is one of these; None if it is read elsewhere."""
    word = cursor.current.text.upper()
    if word in _READERS and not cursor.sees(word, "."):
        return _READERS[word](cursor)
    if cursor.sees_any("DESCRIBE", "DESC") and len(cursor.tokens) > 2:
        probe = Cursor(cursor.text, cursor.tokens)
        probe.take()
        if probe.accept("HISTORY"):
            return _read_history(probe)
        if probe.accept("DETAIL"):
            raise Unsupported("DESCRIBE DETAIL is of Delta", hint=f"type DESCRIBE EXTENDED {probe.rest()}")
    _refuse_beginning(cursor)
    _refuse_pattern(cursor.source())
    _refuse_inside(cursor)
    return None


# --- Delta's upkeep --------------------------------------------------------------------------------------------------


def _read_optimize(cursor: Cursor) -> Call:
    """OPTIMIZE t [FULL] [WHERE partitions] [ZORDER BY (a, b)]."""
    cursor.expect("OPTIMIZE")
    name = read_table(cursor)
    arguments: list[tuple[str | None, Any]] = [("table", name)]
    cursor.accept("FULL")
    if cursor.accept("WHERE"):
        start, end = cursor.text_until("ZORDER")
        arguments.append(("where", cursor.text[start:end]))
    if cursor.accept("ZORDER", "BY"):
        if cursor.sees("("):
            columns = cursor.listed(lambda: cursor.name("a column's name"))
        else:
            columns = [cursor.name("a column's name")]
            while cursor.accept(","):
                columns.append(cursor.name("a column's name"))
        arguments += [("order_strategy", "zorder"), ("order_by", ",".join(columns))]
    cursor.end()
    return Call("compact", tuple(arguments))


def _read_vacuum(cursor: Cursor) -> Vacuum:
    """VACUUM t [RETAIN n HOURS]."""
    _refuse_pattern(cursor.source())
    cursor.expect("VACUUM")
    cursor.accept("TABLE")
    name = read_table(cursor)
    cursor.accept("FULL")
    hours = None
    if cursor.accept("RETAIN"):
        hours = _hours(cursor)
    if cursor.accept("DRY", "RUN"):
        raise Unsupported(
            "VACUUM can not tell beforehand which snapshots will be due",
            hint=f"CALL sys.remove_orphan_files(table => '{name}', dry_run => true) counts files that nothing needs; "
            f"SELECT * FROM {name}$snapshots lists the snapshots",
        )
    cursor.end()
    return Vacuum(name, hours)


def _hours(cursor: Cursor) -> float:
    value = read_literal(cursor)
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        cursor.index -= 1
        cursor.fail("expected a number of hours")
    if not cursor.accept("HOURS"):
        cursor.expect("HOUR")
    return float(value)


def _read_restore(cursor: Cursor) -> Restore:
    """RESTORE [TABLE] t TO VERSION AS OF 3 | 'tag', or TO TIMESTAMP AS OF '...'."""
    cursor.expect("RESTORE")
    if cursor.sees("TABLE") and not cursor.sees("TABLE", "TO"):
        cursor.take()
    name = read_table(cursor)
    cursor.expect("TO")
    if cursor.accept("VERSION", "AS", "OF"):
        value = read_literal(cursor)
        cursor.end()
        return Restore(name, snapshot=value) if isinstance(value, int) else Restore(name, tag=str(value))
    if cursor.accept("TIMESTAMP", "AS", "OF"):
        value = read_literal(cursor)
        cursor.end()
        return Restore(name, timestamp=value if isinstance(value, int | str) else str(value))
    return cursor.fail("expected VERSION or TIMESTAMP AS OF")


def _read_history(cursor: Cursor) -> DescribeHistory:
    name = read_table(cursor)
    limit = cursor.integer("how many") if cursor.accept("LIMIT") else None
    cursor.end()
    return DescribeHistory(name, limit)


_READERS: dict[str, Callable[[Cursor], Habit]] = {
    "OPTIMIZE": _read_optimize,
    "VACUUM": _read_vacuum,
    "RESTORE": _read_restore,
}

# --- Flink's statement sets ------------------------------------------------------------------------------------------

_SETS = (("BEGIN", "STATEMENT", "SET"), ("EXECUTE", "STATEMENT", "SET", "BEGIN"), ("STATEMENT", "SET", "BEGIN"))


def without_statement_sets(text: str, statements: list[list[Token]]) -> list[tuple[list[Token], int | None]]:
    """The statements without the words around a set, each with the number of the set that it is of, None if of none.

    In batch mode the INSERTs of a set run in order, each with its own commit. In streaming mode they are one job, as in
    Flink, which saves reading a source twice and promises nothing else.
    """
    found: list[tuple[list[Token], int | None]] = []
    is_open = False
    number = 0
    for tokens in statements:
        rest = tokens
        begins = next((words for words in _SETS if Cursor(text, tokens).sees(*words)), None)
        if begins is not None:
            if is_open:
                raise _set_error("a STATEMENT SET begins inside another")
            is_open = True
            number += 1
            rest = tokens[len(begins) :]
        elif len(tokens) == 1 and Cursor(text, tokens).sees("END"):
            if not is_open:
                raise _set_error("END stands behind no BEGIN STATEMENT SET")
            is_open = False
            rest = []
        if is_open and rest and not Cursor(text, rest).sees_any("INSERT", "WITH"):
            raise _set_error(f"a STATEMENT SET holds `{rest[0].text}`, not an INSERT")
        if rest:
            found.append((rest, number if is_open else None))
    if is_open:
        raise _set_error("the STATEMENT SET does not end")
    return found


def _set_error(message: str) -> InvalidArgument:
    return InvalidArgument(
        message, hint="give the whole set as one text: BEGIN STATEMENT SET; INSERT ...; INSERT ...; END;"
    )


def without_plan_for(cursor: Cursor) -> Cursor:
    """Flink's EXPLAIN PLAN FOR is EXPLAIN."""
    if not cursor.sees("EXPLAIN", "PLAN", "FOR"):
        return cursor
    if len(cursor.tokens) == 3:
        cursor.index = 3
        cursor.fail("something is missing here")
    return Cursor(f"EXPLAIN {cursor.text[cursor.tokens[3].start : cursor.tokens[-1].end + 1]}")


# --- what is refused -------------------------------------------------------------------------------------------------

_ONE_BY_ONE = "leave it out: each statement is committed by itself, so put what belongs together into one statement"
_MODULES = "leave it out: Spark's functions are all there"
_ONE_CATALOG = "type SHOW DATABASES, or DESCRIBE DATABASE default; lakebed.connect(path) opens another lake"
_TAKE_OUT = "take the rows out: lake.query('SELECT ...').pl().write_parquet(path), or df().to_csv(path)"
_RIGHTS = "give people rights to the directory or the bucket of the lake"
_UPSERT = "INSERT INTO a table with a primary key replaces the rows of the same keys; MERGE INTO takes conditions"
_REGISTER = "register it in Python: lake.spark.udf.register('f', function), or define it in SQL: CREATE TEMPORARY " + (
    "FUNCTION f(x INT) RETURNS INT RETURN x + 1"
)

_BEGINNINGS: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (("SHOW", "MODULES"), "there are no modules as in Flink", _MODULES),
    (("SHOW", "FULL", "MODULES"), "there are no modules as in Flink", _MODULES),
    (("LOAD", "MODULE"), "there are no modules as in Flink", _MODULES),
    (("UNLOAD", "MODULE"), "there are no modules as in Flink", _MODULES),
    (("USE", "MODULES"), "there are no modules as in Flink", _MODULES),
    (("SHOW", "JARS"), "jars are listed in Spark's words", "type LIST JARS"),
    (("REMOVE", "JAR"), "Spark keeps a jar once it has it", "start again without it"),
    (("DESCRIBE", "CATALOG"), "the lake is the only catalog", _ONE_CATALOG),
    (("DESC", "CATALOG"), "the lake is the only catalog", _ONE_CATALOG),
    (("SHOW", "CREATE", "CATALOG"), "the lake is the only catalog", _ONE_CATALOG),
    (("ALTER", "CATALOG"), "the lake is the only catalog", _ONE_CATALOG),
    (("COMPILE", "PLAN"), "plans are not kept", "type EXPLAIN and the query to see one"),
    (("EXECUTE", "PLAN"), "plans are not kept", "type the statement itself"),
    (("CREATE", "TEMPORARY", "SYSTEM", "FUNCTION"), "functions of classes are Flink's", _REGISTER),
    (("PRAGMA",), "PRAGMA is of DuckDB", "type SHOW TABLES, DESCRIBE t, or SET 'key' = 'value'"),
    (("ATTACH",), "the lake is the only catalog", _ONE_CATALOG),
    (("INSTALL",), "there are no extensions to install", "leave it out"),
    (("UPSERT", "INTO"), "there is no UPSERT", _UPSERT),
    (("REPLACE", "INTO"), "there is no REPLACE INTO", _UPSERT),
    (("GRANT",), "the lake keeps no rights", _RIGHTS),
    (("REVOKE",), "the lake keeps no rights", _RIGHTS),
    (("CREATE", "USER"), "the lake keeps no users", _RIGHTS),
    (("CREATE", "ROLE"), "the lake keeps no users", _RIGHTS),
    (("LOCK", "TABLE"), "tables are not locked", _ONE_BY_ONE),
    (("CREATE", "SEQUENCE"), "there are no sequences", "take uuid() for a key, or keys of the source"),
    (("SHOW", "ALL"), "SHOW ALL is of PostgreSQL", "type SET to see settings"),
    (("SHOW", "SEARCH_PATH"), "there is one current database", "type SHOW CURRENT DATABASE, or USE and its name"),
    (("\\",), "commands with a backslash are for the prompt", "type SHOW TABLES, or DESCRIBE t"),
    (("BEGIN", "TRANSACTION"), "there are no transactions over several statements", _ONE_BY_ONE),
    (("BEGIN", "WORK"), "there are no transactions over several statements", _ONE_BY_ONE),
    (("START", "TRANSACTION"), "there are no transactions over several statements", _ONE_BY_ONE),
    (("COMMIT",), "what was done is committed already", _ONE_BY_ONE),
    (
        ("ROLLBACK",),
        "what was done is committed already",
        "RESTORE TABLE t TO VERSION AS OF 3 brings an earlier snapshot back; DESCRIBE HISTORY t lists them",
    ),
)
"""How statements begin that nobody here carries out, what to say of each, and what to do instead."""


def _refuse_beginning(cursor: Cursor) -> None:
    for words, message, instead in _BEGINNINGS:
        if cursor.sees(*words):
            raise Unsupported(message, hint=instead)
    if cursor.sees("BEGIN") and len(cursor.tokens) == 1:
        raise Unsupported("there are no transactions over several statements", hint=_ONE_BY_ONE)


_NAME = r"((?:`[^`]+`|[\w$]+)(?:\s*\.\s*(?:`[^`]+`|[\w$]+))*)"
_PATTERNS: tuple[tuple[str, str, str], ...] = (
    (
        rf"CONVERT TO DELTA {_NAME}",
        "tables of the lake are Paimon tables; files are not converted where they lie",
        "copy the rows: CREATE TABLE t AS SELECT * FROM {0}",
    ),
    (
        rf"COPY INTO {_NAME} FROM '([^']*)'(?:.*FILEFORMAT\s*=\s*(\w+))?",
        "COPY INTO is not a statement here",
        "type INSERT INTO {0} SELECT * FROM {2}.`{1}`",
    ),
    (rf"COPY (?:{_NAME}|\(.*\)) TO\b", "COPY is not a statement here", _TAKE_OUT),
    (rf"SUMMARIZE {_NAME}", "SUMMARIZE is of DuckDB", "type SELECT count(*), min(a), max(a), avg(a) FROM {0}"),
    (
        rf"PIVOT {_NAME}",
        "PIVOT follows a table",
        "type SELECT * FROM {0} PIVOT (sum(a) FOR b IN ('x', 'y'))",
    ),
    (
        rf"VACUUM (?:FULL |VERBOSE |FREEZE |ANALYZE |\([^)]*\) ?)+(?!RETAIN\b|DRY\b|FULL\b){_NAME}",
        "VACUUM takes no words of PostgreSQL",
        "type VACUUM {0}, and OPTIMIZE {0} to merge its files",
    ),
    (rf"REORG TABLE {_NAME}", "REORG is of Delta", "type OPTIMIZE {0}"),
    (
        rf"FSCK REPAIR TABLE {_NAME}",
        "FSCK is of Delta",
        "CALL sys.remove_unexisting_files(table => '{0}') takes files out of the table that are gone",
    ),
    (
        rf"CREATE (?:OR REPLACE )?TABLE (?:IF NOT EXISTS )?{_NAME} (?:SHALLOW |DEEP )?CLONE {_NAME}",
        "tables are not cloned",
        "copy the rows: CREATE TABLE {0} AS SELECT * FROM {1}; or keep a state of the table: "
        "CALL sys.create_branch('{1}', 'b')",
    ),
    (
        rf"CREATE (?:TEMPORARY |TEMP )?FUNCTION (?:IF NOT EXISTS )?{_NAME} AS .* LANGUAGE \w+",
        "functions in other languages are Flink's",
        _REGISTER,
    ),
    (
        r"EXPLAIN (?:CHANGELOG_MODE|ESTIMATED_COST|JSON_EXECUTION_PLAN|PLAN_ADVICE)\b.*?\b(SELECT|INSERT|WITH)\b",
        "details of Flink's plans do not exist here",
        "type EXPLAIN {0} ..., or EXPLAIN EXTENDED {0} ...",
    ),
    (
        rf"ALTER TABLE {_NAME}(?: PARTITION \(.*\))? COMPACT\b",
        "compaction is no change of the table",
        "type OPTIMIZE {0}",
    ),
    (rf"ALTER TABLE {_NAME} EXECUTE OPTIMIZE\b", "EXECUTE is of Trino", "type OPTIMIZE {0}"),
    (
        rf"CREATE (?:UNIQUE )?INDEX .* ON (?:TABLE )?{_NAME} \( ?(`[^`]+`|\w+)",
        "indexes are options of a table",
        "type ALTER TABLE {0} SET ('file-index.bloom-filter.columns' = '{1}'): see option "
        "`file-index.bloom-filter.columns`",
    ),
    (r"SHOW FULL TABLES\b", "there is one kind of tables", "type SHOW TABLES, or SHOW VIEWS"),
    (rf"SHOW SNAPSHOTS (?:FROM |IN )?{_NAME}", "snapshots are rows of a table", "type SELECT * FROM {0}$snapshots"),
    (rf"SHOW BRANCHES (?:FROM |IN )?{_NAME}", "branches are rows of a table", "type SELECT * FROM {0}$branches"),
    (r"CALL (?:\w+\.)?system\.rewrite_data_files\b", "this procedure is of Iceberg", "CALL sys.compact(table => 't')"),
    (
        r"CALL (?:\w+\.)?system\.(?:rollback_to_snapshot|set_current_snapshot)\b",
        "this procedure is of Iceberg",
        "CALL sys.rollback_to(table => 't', snapshot => 3)",
    ),
    (
        r"CALL (?:\w+\.)?system\.rewrite_manifests\b",
        "this procedure is of Iceberg",
        "CALL sys.compact_manifest(table => 't')",
    ),
)
"""Other statements, with one blank between words; the parts found are named by number in what to do instead."""
_FIRST_WORD = re.compile(r"([A-Z]+)(?: |\\b|$)")
"""The word that a pattern begins with, if it is one."""


_ENOUGH = 2000
"""Characters that tell what a statement is: the rest may be rows, and many."""


@cache
def _patterns_after(word: str) -> list[tuple[re.Pattern[str], str, str]]:
    """Those of statements that begin with a word: all of them together take longer to compile than a query takes."""
    found = []
    for pattern, says, instead in _PATTERNS:
        first = _FIRST_WORD.match(pattern)
        if first is None or first[1] == word:
            found.append((re.compile(pattern, re.IGNORECASE | re.DOTALL), says, instead))
    return found


def _refuse_pattern(text: str) -> None:
    plain = " ".join(text[:_ENOUGH].split())
    for pattern, message, instead in _patterns_after(re.split(r"\W", plain, maxsplit=1)[0].upper()):
        found = pattern.match(plain)
        if found is not None:
            parts = [part or "parquet" for part in found.groups()]
            raise Unsupported(message, hint=instead.format(*parts) if parts else instead)


# --- inside queries --------------------------------------------------------------------------------------------------

_GROUP_WINDOW = re.compile(r"(TUMBLE|HOP|SESSION)(?:_\w+)? ?\( ?([\w.`]+) ?,( ?INTERVAL .*)", re.IGNORECASE)
_INTERVAL = re.compile(r"INTERVAL ?'([^']*)' ?(\w+)", re.IGNORECASE)
_CHANGES = re.compile(r"table_changes ?\( ?'([^']*)' ?, ?(\d+) ?(?:, ?(\d+))?", re.IGNORECASE)
_ROUNDED = re.compile(r"(FLOOR|CEIL|CEILING) ?\( ?(.+?) TO (\w+) ?\)", re.IGNORECASE)
_FILE = re.compile(r"\b(?:FROM|JOIN)\s+'([^']*\.(parquet|csv|json|orc|avro))'", re.IGNORECASE)
_VERSION = re.compile(r"@v\d", re.IGNORECASE)
_WINDOWS = ("TUMBLE", "HOP", "CUMULATE", "SESSION")
_SUSPECTS = re.compile(
    rf"\b(?:{'|'.join(_WINDOWS)}|CONFLICT|DUPLICATE|TABLE_CHANGES|DELTA|AT\s+TIME|DISTINCT\s+ON|RETURNING|INFORMATION_SCHEMA|PG_CATALOG|ANY\s*\(\s*ARRAY)|->>|@v\d|\b(?:FLOOR|CEIL)",
    re.IGNORECASE,
)


def _refuse_inside(cursor: Cursor) -> None:
    """Windows and the like, wherever a query stands."""
    file = _FILE.search(cursor.source()[:_ENOUGH])
    if file is not None and not cursor.sees("COPY"):
        raise Unsupported("files are not named in quotes", hint=f"type {file[2].lower()}.`{file[1]}`")
    if _SUSPECTS.search(cursor.source()) is None:
        return
    is_insert = cursor.sees("INSERT")
    probe = Cursor(cursor.text, cursor.tokens)
    while not probe.is_done:
        word = probe.current.text.upper()
        if word.startswith(_WINDOWS) and probe.sees(word, "("):
            _refuse_window(_rest(probe))
        elif probe.sees("DELTA", ".") and probe.tokens[probe.index + 2 :][:1]:
            path = probe.tokens[probe.index + 2].text
            if "/" in path:
                raise Unsupported("tables of Delta are not read here", hint=f"read its files: parquet.`{path}`")
        elif word == "@" and _VERSION.match(_rest(probe)):
            number = _rest(probe)[2:].split()[0].rstrip(";,)")
            raise Unsupported("a version is not written with @", hint=f"type VERSION AS OF {number} behind the table")
        elif word in ("FLOOR", "CEIL", "CEILING"):
            _refuse_rounded_time(_rest(probe))
        elif probe.index and probe.sees("AT", "TIME", "ZONE"):
            _refuse_zone(probe)
        elif probe.sees("DISTINCT", "ON", "("):
            raise Unsupported("DISTINCT ON is of PostgreSQL", hint=_FIRST_OF_EACH)
        elif word == "->>":
            raise Unsupported("->> is of PostgreSQL", hint="type get_json_object(text, '$.a')")
        elif probe.sees("=", "ANY", "(", "ARRAY"):
            raise Unsupported("= ANY of an array is of PostgreSQL", hint="type a IN (1, 2), or array_contains(list, a)")
        elif probe.sees("INFORMATION_SCHEMA", ".") or probe.sees("PG_CATALOG", "."):
            raise Unsupported(f"there is no `{word.lower()}`", hint=_CATALOG_TABLES)
        elif is_insert and probe.sees(")", "RETURNING"):
            raise Unsupported("INSERT has no RETURNING", hint="type a SELECT behind it")
        elif probe.sees("TABLE_CHANGES", "("):
            _refuse_table_changes(_rest(probe))
        elif is_insert and (probe.sees("ON", "CONFLICT") or probe.sees("ON", "DUPLICATE", "KEY")):
            raise Unsupported("INSERT has no ON CONFLICT and no ON DUPLICATE KEY", hint=_UPSERT)
        probe.take()


_FIRST_OF_EACH = "type SELECT * FROM t QUALIFY row_number() OVER (PARTITION BY a ORDER BY b) = 1"
_CATALOG_TABLES = "type SHOW TABLES, DESCRIBE t, or SELECT * FROM sys.tables"


def _rest(cursor: Cursor) -> str:
    """What follows, with one blank between words."""
    start = cursor.current.start
    return " ".join(cursor.text[start : start + _ENOUGH].split())


def _refuse_table_changes(call: str) -> None:
    found = _CHANGES.match(call)
    table, after, until = (found[1], found[2], found[3] or "the latest") if found else ("t", "1", "3")
    raise Unsupported(
        "`table_changes` is of Delta",
        hint=f"type SELECT * FROM paimon_incremental_query('{table}', {after}, {until}): rows that came after snapshot "
        f"{after}; `{table}$audit_log` has all rows with their kinds",
    )


def _refuse_zone(cursor: Cursor) -> None:
    """`ts AT TIME ZONE 'Asia/Tokyo'`."""
    before, zone = cursor.tokens[cursor.index - 1], cursor.tokens[cursor.index + 3 :][:1]
    moment = before.text if before.text.isidentifier() else "ts"
    place = f"'{zone[0].text}'" if zone else "'Asia/Tokyo'"
    raise Unsupported("AT TIME ZONE is not Spark's", hint=f"type convert_timezone({place}, {moment}): the clock there")


def _refuse_rounded_time(call: str) -> None:
    """FLOOR(ts TO DAY): not FLOOR(x), whatever words stand behind it."""
    found = _ROUNDED.match(call)
    if found is None or not _is_whole(found[2]):
        return
    begin = f"date_trunc('{found[3].upper()}', {found[2]})"
    instead = begin
    if found[1].upper() != "FLOOR":
        instead = f"CASE WHEN {begin} < {found[2]} THEN {begin} + INTERVAL 1 {found[3].upper()} ELSE {found[2]} END"
    raise Unsupported(f"{found[1].upper()} of a time is Flink's", hint=f"type {instead}")


def _is_whole(text: str) -> bool:
    """Whether every bracket that is closed in the text is opened in it, and the other way round."""
    depths = list(accumulate((letter == "(") - (letter == ")") for letter in text))
    return min(depths, default=0) >= 0 and depths[-1] == 0


def _refuse_window(call: str) -> None:
    """Windows as functions of GROUP BY: Flink itself has them for the old way only."""
    found = _GROUP_WINDOW.match(call)
    if found is None:
        return  # a window over a table, or a table or function that somebody has called so
    kind, column, rest = found[1].upper(), found[2], found[3]
    sizes = [f"INTERVAL '{number}' {unit}" for number, unit in _INTERVAL.findall(rest)]
    lengths = ", ".join(sizes[: 2 if kind == "HOP" else 1])
    raise Unsupported(
        f"{kind} is a window over a table, not a function",
        hint=f"type SELECT window_start, window_end, ... FROM TABLE({kind}(TABLE t, DESCRIPTOR({column}), {lengths})) "
        "GROUP BY window_start, window_end",
    )
