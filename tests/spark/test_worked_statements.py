"""Worked examples of statements on rows with ids, word by word."""

from __future__ import annotations

import pytest

import lakebed


@pytest.mark.parametrize("condition", ["id = 11", "_ROW_ID = 0"])
@pytest.mark.parametrize("marks", ["false", "true"], ids=["rewriting", "marking"])
def test_t_10_t_11_t_12_t_13_ids_stay_with_rows(lake: lakebed.Lake, marks: str, condition: str) -> None:
    """T-10 to T-13: after insert, update, merge and delete rows have the ids and sequence numbers they should."""
    lake.sql(
        "CREATE TABLE t (id INT, data STRING) "
        f"WITH ('row-tracking.enabled' = 'true', 'deletion-vectors.enabled' = '{marks}')"
    )

    def shown() -> list[tuple[object, ...]]:
        return sorted(map(tuple, lake.sql("SELECT id, data, _ROW_ID, _SEQUENCE_NUMBER FROM t").collect()))

    lake.sql("INSERT INTO t VALUES (11, 'a'), (22, 'b')")
    assert shown() == [(11, "a", 0, 1), (22, "b", 1, 1)]
    lake.sql(f"UPDATE t SET data = 'x' WHERE {condition}")
    assert shown() == [(11, "x", 0, 2), (22, "b", 1, 1)]
    lake.sql(
        "MERGE INTO t USING (SELECT * FROM VALUES (22, 'm'), (33, 'c') AS v(id, data)) AS s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET data = s.data WHEN NOT MATCHED THEN INSERT *"
    )
    assert shown() == [(11, "x", 0, 2), (22, "m", 1, 3), (33, "c", 2, 3)]
    lake.sql("DELETE FROM t WHERE id = 11")
    assert shown() == [(22, "m", 1, 3), (33, "c", 2, 3)]
