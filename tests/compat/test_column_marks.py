"""Deleted rows of tables whose columns have files of their own, across implementations.

Paimon marks rows in the oldest file of a range since 2.0; older releases know no marks in such tables.
"""

from pathlib import Path

import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.properties.column_histories import STEPS, History

from .judges import JavaJudge, Judge, Row, assert_same_rows


def _judged(history: History, judge: Judge, warehouse: Path) -> None:
    wanted: list[Row] = [dict(row) for row in history.rows.values()]
    assert_same_rows(judge.read(warehouse, "db", "t"), wanted)
    if wanted:
        columns = ["c", "k"]
        assert_same_rows(
            judge.read(warehouse, "db", "t", columns=columns), [{name: row[name] for name in columns} for row in wanted]
        )


@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize("judge_name", ["java2", "pypaimon"])
def test_marked_rows_are_hidden_in_all_columns(
    judge_name: str, partitioned: bool, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Judges see no deleted row, whether its columns were changed before or after, and compacted or not."""
    judge: Judge = request.getfixturevalue(f"{judge_name}_judge")
    history = History(str(tmp_path), partitioned=partitioned)
    for step, argument in [
        ("append", 11),
        ("update", {1, 2}),
        ("delete", {2, 3}),
        ("update", {1, 4}),
        ("merge", ({4}, {5}, 2)),
        ("compact", True),
        ("delete", {1}),
        ("add_column", None),
        ("update", {0, 6}),
        ("update", {0, 6}),
        ("delete", {0}),
        ("compact", True),
    ]:
        history.run([(step, argument)])
        _judged(history, judge, tmp_path)
    history.check_all()


@pytest.mark.parametrize("judge_name", ["java2", "pypaimon"])
@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, partitioned=st.booleans())
def test_random_histories(
    judge_name: str,
    steps: list,
    partitioned: bool,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> None:
    """Judges see the rows of the model at the end of random histories."""
    judge: Judge = request.getfixturevalue(f"{judge_name}_judge")
    if judge_name == "pypaimon":  # which looks for the columns of such files by the names of today
        steps = [step for step in steps if step[0] != "rename_column"]
    warehouse = tmp_path_factory.mktemp("warehouse")
    history = History(str(warehouse), partitioned=partitioned)
    history.run(steps)
    _judged(history, judge, warehouse)


def test_their_rows_go_on(java2_judge: JavaJudge, tmp_path: Path) -> None:
    """Rows that a judge appends between deletes get ids of their own, and are deleted like ours."""
    history = History(str(tmp_path))
    history.run([("append", 5), ("delete", {1})])
    java2_judge.append(
        tmp_path, "db", "t", [{"k": 100, "p": 1, "b": 2, "c": "theirs"}, {"k": 101, "p": 1, "b": 2, "c": "x"}]
    )
    history.table.delete_where(pc.field("k") == 101)
    assert history.table.compact(full=True) is not None
    assert sorted(row["k"] for row in java2_judge.read(tmp_path, "db", "t")) == [0, 2, 3, 4, 100]
    shown = history.table.to_arrow(columns=["k", "_ROW_ID"]).sort_by("k")
    assert shown["_ROW_ID"].to_pylist() == [0, 2, 3, 4, 5]


def test_their_compaction_keeps_our_marks(java2_judge: JavaJudge, tmp_path: Path) -> None:
    """A judge joins our files and moves our marks; rows and ids stay, and can be changed and deleted here again."""
    history = History(str(tmp_path), partitioned=True)
    history.run(
        [("append", 12), ("update", {1, 5}), ("delete", {2, 6}), ("append", 12), ("update", {3}), ("delete", {0})]
    )
    files = len(history.table.scan().files)
    java2_judge.compact(tmp_path, "db", "t")
    assert len(history.table.scan().files) < files
    history.run([("reopen", None), ("update", {1, 3}), ("delete", {1}), ("compact", True)])
    _judged(history, java2_judge, tmp_path)
    history.check_all()
