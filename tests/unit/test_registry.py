"""Registries know their names at once, and load an entry when it is asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

from lakebed.datafiles.index.build import KINDS
from lakebed.formats import FORMATS
from lakebed.merge import MERGE_ENGINES
from lakebed.merge.aggregates import AGGREGATES
from lakebed.registry import Registry
from lakebed.table.system import SYSTEM_TABLES


@pytest.mark.parametrize("registry", [FORMATS, MERGE_ENGINES, AGGREGATES, SYSTEM_TABLES], ids=repr)
def test_entries_go_by_their_own_names(registry: Registry[type]) -> None:
    """What an entry calls itself is what the registry calls it."""
    assert {name: entry.name for name, entry in registry.items()} == {name: name for name in registry}  # type: ignore[attr-defined]


def test_an_entry_can_be_a_module() -> None:
    """Without a name behind the module, the module itself is the entry."""
    assert {name: entry.__name__.rpartition(".")[2] for name, entry in KINDS.items()} == {
        "bloom-filter": "bloom",
        "bitmap": "bitmap",
        "range-bitmap": "range_bitmap",
        "bsi": "bsi",
    }


def test_entries_come_and_go() -> None:
    """One can be added, replaced and taken away again, as in any dictionary."""
    made: Registry[object] = Registry("lakebed", {"units": "units"})
    made["mine"] = 1
    assert (list(made), len(made), "mine" in made, made.get("other")) == (["units", "mine"], 2, True, None)
    del made["mine"]
    assert list(made) == ["units"]
    with pytest.raises(KeyError):
        made["mine"]


def test_nothing_is_loaded_before_it_is_asked_for() -> None:
    """Asking for names loads no entry."""
    text = (
        "import sys; from lakebed.formats import FORMATS; assert 'orc' in FORMATS and len(list(FORMATS)) == 6; "
        "assert 'lakebed.formats.orc' not in sys.modules; FORMATS['orc']; assert 'lakebed.formats.orc' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", text], check=True)
