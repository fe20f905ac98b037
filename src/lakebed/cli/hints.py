"""Hints in the words of the command line: the same error tells a program in Python to pass an argument.

Errors are raised far below, where nobody knows which door the call came through. Whoever prints them here turns calls
and arguments of Python into options and statements. `tests/house` looks that nothing of Python is left.
"""

from __future__ import annotations

import re

_SOURCE_SETTINGS = "tables_without_key|cascades|dropped_partitions|unsupported_types|values_that_do_not_fit"
_SYNC_OPTIONS = "including|excluding|prefix|suffix|table_conf|computed|metadata|deletes|audit|history"

_WORDS: tuple[tuple[str, str], ...] = (
    (r"pass if_not_exists=True", "write IF NOT EXISTS"),
    (r"pass cascade=True; in SQL write CASCADE", "write CASCADE"),
    (r", or take its rows in: lake\.create_table\(.*", ""),
    (r"`?\bcreate_table\b`?", "CREATE TABLE"),
    (r", t\.sample\(n\) for a sample", ""),
    (r"lake\.query\('SELECT \* FROM t WHERE \.\.\.'\) says anything", "a SELECT says anything"),
    (rf"\b({_SOURCE_SETTINGS})=(['\"])(\w+)\2", r"--option \1=\3"),
    (r"\badopt_slot=True\b", "--option adopt_slot=true"),
    (r"`slot`", "--option slot=NAME"),
    (rf"`({_SYNC_OPTIONS})`", r"--\1"),
    (r"\bdeletes set to mark and deleted_column to ", "--deletes mark and --deleted-column "),
    (r"\bon_error='stop'", "--on-error stop"),
    (r"\bin table_conf\b", "with --table-conf TABLE:KEY=VALUE"),
    (r"; `t\.with_options\(\{'[a-z.-]+': ''\}\)` leaves them out", ""),
    (r"(?:give the option for one read or write: )?`?t\.with_options\([^)]*\)`?", "write OPTIONS(...) in a hint"),
    (r"`?t\.compact\(order_by=\.\.\.\)`?", "CALL sys.compact with order_strategy and order_by"),
    (r"`?t\.compact\(\)`?(?: or CALL sys\.compact)?", "OPTIMIZE t"),
    (r"`?t\.at\([^)]*\)`?", "VERSION AS OF"),
    (r"`?\b(?:t\.)?changes\([^)]*\)`?", "paimon_incremental_query('t', a, b)"),
    (r"`?t\.partitions\(\)`?", "SHOW PARTITIONS t"),
    (r"`?t\.mark_partition_done\([^)]*\)`?", "CALL sys.mark_partition_done"),
    (r"`?t\.to_arrow\(filter=\.\.\.\)`?", "SELECT ... WHERE ..."),
    (r"pass overwrite=True", "use INSERT OVERWRITE"),
    (r"with overwrite=(?:True|\{\})", "with INSERT OVERWRITE"),
    (
        r"\(passfile, or the environment variable that `password_env` names\)",
        "(--option passfile=FILE, or the environment variable that --password-env names)",
    ),
    (r"give `topics` or `topic_pattern`", "write --option topics=a,b or --option topic_pattern=PATTERN"),
    (r"; lake\.sql\(\.\.\.\) takes all other statements", ""),
    (r"lakebed\.connect\(path\)", "--warehouse PATH"),
    (r"lake\.query\('SELECT \.\.\.'\)\.pl\(\).*", "`lakebed sql 'SELECT ...' --format csv > FILE`"),
    (r", or in Python: lakebed\.cdc\.sync\(.*?\.\.\.\)", ""),
    (r", or in Python: lake\.refresh_all\(\.\.\.\)", ""),
    (r"; a stream of Python keeps a table up to date: .*", ""),
    (r"register it in Python: lake\.spark\.udf\.register\(.*?\), or define it", "define it"),
)
_COMPILED = [(re.compile(pattern), words) for pattern, words in _WORDS]


def for_command_line(hint: str) -> str:
    """The hint as somebody at a terminal can follow it."""
    for pattern, words in _COMPILED:
        hint = pattern.sub(words, hint)
    return hint


__all__ = ["for_command_line"]
