"""Another query for a materialized table: who dies on the way loses nothing, and what the user named stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.views.judging import difference, folded

import lakebed
from lakebed.errors import InvalidArgument, InvalidData
from lakebed.lake import Lake

_OTHER = "SELECT g, count(*) AS n, max(id) AS last FROM t GROUP BY g"


class _DiedError(BaseException):
    """The end of a process."""


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A table, and a materialized one of it."""
    found = lakebed.connect(str(tmp_path))
    found.create_table("t", {"id": "INT NOT NULL", "g": "INT"}, primary_key=["id"], options={"bucket": "1"})
    found["t"].write([{"id": 1, "g": 1}, {"id": 2, "g": 1}, {"id": 3, "g": 2}])
    found.materialize("v", "SELECT id, g FROM t WHERE g = 1")
    return found


def _dies(lake: Lake, monkeypatch: pytest.MonkeyPatch, deed: str, at: int) -> None:
    """Gives `v` another query, and dies when something is done for the n-th time."""
    count, real = [0], getattr(Lake, deed)

    def do(self: Lake, *given: Any, **named: Any) -> Any:
        count[0] += 1
        if count[0] >= at:
            raise _DiedError
        return real(self, *given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(Lake, deed, do)
        with pytest.raises(_DiedError):
            lake.alter_materialized("v", query=_OTHER)


@pytest.mark.parametrize("looks", ["refresh", "list", "alter", "create"])
def test_a_death_between_the_renames_is_mended_by_the_next(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looks: str
) -> None:
    """The table has its new query and its rows, whoever looks for it first, and nothing is left beside it."""
    _dies(lake, monkeypatch, "rename_table", 2)
    other = lakebed.connect(str(tmp_path))
    assert sorted(other.tables()) == ["t", "v__new", "v__old"]
    if looks == "refresh":
        assert other.refresh("v").way == "none"
    elif looks == "list":
        assert [each.query for each in other.materialized_tables()] == [_OTHER]
    elif looks == "alter":
        other.alter_materialized("v", policy="incremental")
    else:
        assert other.materialize("v", "SELECT id FROM t", if_not_exists=True) is None
    assert sorted(other.tables()) == ["t", "v"]
    assert difference(other, "v", _OTHER) is None
    assert folded(other, "v") is None


def test_what_a_death_leaves_goes_with_the_next_query(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table that was not put in the place of the old one, and an old one that was not dropped, are not in the way."""
    _dies(lake, monkeypatch, "drop_table", 1)
    other = lakebed.connect(str(tmp_path))
    assert sorted(other.tables()) == ["t", "v", "v__old"]
    other.alter_materialized("v", query="SELECT id, g FROM t WHERE g = 2")
    assert sorted(other.tables()) == ["t", "v"]
    assert difference(other, "v", "SELECT id, g FROM t WHERE g = 2") is None


def test_tables_of_users_with_such_names_stay(lake: Lake) -> None:
    """A table is only taken for the rest of a swap if it says so itself."""
    lake.materialize("v__old", "SELECT id FROM t")
    lake.create_table("w__new", {"a": "INT"})
    lake.create_table("w__old", {"a": "INT"})
    assert len(lake.materialized_tables()) == 2
    with pytest.raises(lakebed.errors.AlreadyExists):
        lake.alter_materialized("v", query=_OTHER)
    assert sorted(lake.tables()) == ["t", "v", "v__old", "w__new", "w__old"]
    assert difference(lake, "v", "SELECT id, g FROM t WHERE g = 1") is None


def test_a_query_that_fails_changes_nothing(lake: Lake) -> None:
    """The old rows are there, under the old query."""
    lake["t"].write([{"id": 4, "g": 0}])
    with pytest.raises(InvalidData):
        lake.alter_materialized("v", query="SELECT id, 1 / g AS r FROM t")
    assert sorted(lake.tables()) == ["t", "v"]
    lake.refresh("v")
    assert difference(lake, "v", "SELECT id, g FROM t WHERE g = 1") is None


def test_the_key_of_the_user_stays_where_it_is_one(lake: Lake) -> None:
    """A primary key that was named is that of the new query, too, unless that has no such key."""
    lake.materialize("k", "SELECT id, g FROM t", primary_key=["g", "id"])
    lake.alter_materialized("k", query="SELECT g, id, id + 1 AS next FROM t")
    assert lake["k"].primary_key == ("g", "id")
    lake.alter_materialized("k", query="SELECT id AS number FROM t")
    assert lake["k"].primary_key == ("number",)


def test_no_ordinary_table_is_given_a_query(lake: Lake) -> None:
    """Options that make a table a materialized one are refused, however it is made."""
    options = {"lakebed.view.query": "SELECT 1"}
    with pytest.raises(InvalidArgument, match="not set by hand"):
        lake.create_table("x", {"a": "INT"}, options=options)
    with pytest.raises(InvalidArgument, match="not set by hand"):
        lake.replace_table("t", {"a": "INT"}, options=options)
    with pytest.raises(InvalidArgument, match="not set by hand"):
        lake.sql("CREATE TABLE x (a INT) TBLPROPERTIES ('lakebed.view.query' = 'SELECT 1')")
    assert not lake.has_table("x")


def test_columns_that_are_kept_beside_are_told_by_name_only(lake: Lake) -> None:
    """Changes and differences show the columns of the query, and those beside them if they are named."""
    lake.materialize("s", "SELECT g, sum(id) AS total FROM t GROUP BY g", policy="incremental")
    lake["t"].write([{"id": 9, "g": 2}])
    lake.refresh("s")
    table = lake["s"]
    assert any(name.startswith("__") for name in table.schema.field_names)
    assert table.changes().column_names == ["rowkind", "g", "total"]
    assert table.diff(1, 2).column_names == ["rowkind", "g", "total"]
    hidden = table.schema.field_names[-1]
    assert table.changes(1, columns=["g", hidden]).column_names == ["rowkind", "g", hidden]
    assert table.diff(1, 2, [hidden]).column_names == ["rowkind", hidden]
