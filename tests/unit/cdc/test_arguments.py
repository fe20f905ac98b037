"""What a sync is told by name: the names, their defaults, and what is said of a name that nothing takes."""

import inspect
from pathlib import Path

import pytest
from tests.house.trial_source import TAPES, TapeSource

import lakebed
import lakebed.cdc
from lakebed.cdc.arguments import SyncArguments, sync_rules
from lakebed.cdc.routing import Routing
from lakebed.cdc.rules import SyncRules
from lakebed.errors import InvalidArgument

NAMES = {
    *("lake", "source", "database", "table", "checkpoint", "trigger", "source_options", "query_name"),
    *("including", "excluding", "including_databases", "excluding_databases", "prefix", "suffix"),
    *("prefixes_db", "suffixes_db", "mapping", "merge_shards", "case"),
    *("primary_keys", "sync_primary_keys_from_source_schema", "partition_keys", "computed_columns"),
    *("metadata_columns", "metadata_column_prefix", "type_mapping", "table_conf"),
    *("rename", "drop", "incompatible", "ignore_incompatible", "truncate", "on_step", "here_bytes"),
    *("on_error", "give_up_after"),
    *("deletes", "deleted_column", "audit", "audit_by_day", "history", "history_column_prefix"),
}


def test_names_are_pinned() -> None:
    """What a sync takes by name comes or goes on purpose only."""
    named = set(inspect.signature(lakebed.cdc.sync).parameters) - {"rules"}
    assert named | set(SyncArguments.__annotations__) == NAMES
    assert not named & set(SyncArguments.__annotations__)


def test_defaults_are_those_of_the_rules() -> None:
    """A sync that is told nothing follows the rules as they are made without arguments."""
    assert sync_rules("lk", None, TapeSource(""), {}) == SyncRules(Routing("lk"))


def test_an_unknown_name_is_refused(tmp_path: Path) -> None:
    """As Python refuses it, and before anything is looked at or made."""
    lake = lakebed.connect(tmp_path / "lake")
    with pytest.raises(TypeError, match=r"^sync\(\) got an unexpected keyword argument 'includes'$"):
        lakebed.cdc.sync(lake, "tape", checkpoint=tmp_path / "checkpoint", includes="x")  # type: ignore[call-arg]
    assert list(tmp_path.iterdir()) == []


def test_a_text_is_no_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Letters of a name would be taken for columns."""
    monkeypatch.setitem(TAPES, "empty", [])
    lake = lakebed.connect(tmp_path / "lake")
    with pytest.raises(InvalidArgument, match="primary_keys is 'id'"):
        lakebed.cdc.sync(lake, TapeSource("empty"), checkpoint=tmp_path / "checkpoint", primary_keys="id")
