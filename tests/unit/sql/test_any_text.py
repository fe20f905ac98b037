"""Whatever the text, the parser answers with statements or with an error of its own."""

from __future__ import annotations

import re
from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.errors import LakebedError
from lakebed.sql.parse import parse
from lakebed.sql.words.spelling import to_spark

WORDS = re.findall(
    r"\w+",
    """
    SELECT FROM WHERE INSERT INTO OVERWRITE VALUES TABLE CREATE REPLACE OR IF NOT EXISTS PRIMARY KEY ENFORCED DROP ALTER
    ADD COLUMN COLUMNS RENAME TO MODIFY SET RESET UNSET TBLPROPERTIES WITH PARTITION PARTITIONED BY TAG OF VERSION AS
    RETAIN DAYS CALL SHOW TABLES DESCRIBE MERGE USING ON WHEN MATCHED THEN UPDATE DELETE SOURCE AND CASE END NULL CAST
    ARRAY MAP ROW STRUCT UNNEST TIMESTAMP INT STRING DEFAULT COMMENT FIRST AFTER TRUNCATE ANALYZE EXPLAIN VIEW USE LIKE
    """,
)
SIGNS = [*"()[]<>,.;=*+-`'\"$\n", "=>", "/*+", "*/", "--"]
PIECES = [
    "t",
    "db.t",
    "`a b`",
    "'x'",
    "'it''s'",
    "1",
    "2.5",
    "10L",
    "t$files",
    "/*+ OPTIONS('a'='b') */",
    "\\",
    "é",
    "\0",
]
HEADS = ["", "CREATE TABLE t (", "ALTER TABLE t ", "CALL sys.x(", "MERGE INTO t USING s ON a ", "SHOW "]

TEXTS = st.one_of(
    st.text(max_size=60),
    st.builds(
        lambda head, pieces: head + " ".join(pieces),
        st.sampled_from(HEADS),
        st.lists(st.sampled_from([*WORDS, *SIGNS, *PIECES]), max_size=14),
    ),
)


@settings(max_examples=400, deadline=None)
@given(TEXTS)
def test_errors_are_our_own(text: str) -> None:
    """No text makes the parser fail in any other way than by saying what is wrong."""
    with suppress(LakebedError):
        assert isinstance(parse(text), list)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([*WORDS, "t", "'ARRAY[1]'", "1", ",", "(", ")", "="]), max_size=12).map(" ".join))
def test_spelling_is_turned_once(text: str) -> None:
    """Text in Spark's spelling stays as it is when it is turned again."""
    try:
        turned = to_spark(text)
    except LakebedError:
        return
    assert to_spark(turned) == turned
