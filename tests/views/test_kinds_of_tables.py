"""Materialized tables over tables of every kind: merge engines, buckets, deletion vectors, partitions."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.thinning import thinned
from tests.views.histories import PRODUCERS, History
from tests.views.judging import difference, folded
from tests.views.queries import FOLLOWED

_KINDS: dict[str, dict[str, str]] = {
    "dynamic buckets": {"bucket": "-1"},
    "several buckets": {"bucket": "3"},
    "deletion vectors": {"deletion-vectors.enabled": "true"},
    "partial update": {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
    "aggregation": {
        "merge-engine": "aggregation",
        "fields.default-aggregate-function": "last_value",
        "aggregation.remove-record-on-delete": "true",
    },
    "first row": {"merge-engine": "first-row", "ignore-delete": "true"},
    "waiting rows": {"bucket": "-2"},
    "full compaction later": {"full-compaction.delta-commits": "3"},
    "left to others": {"write-only": "true"},
}
_CHOSEN = ("all rows", "full join", "not exists", "group by", "nested groups", "top rows", "without the key")


def _is_possible(kind: str, producer: str) -> bool:
    options = _KINDS[kind]
    engine = options.get("merge-engine", "deduplicate")
    if producer == "normalised" and (engine != "deduplicate" or kind == "waiting rows"):
        return False
    if engine == "first-row" and producer not in ("none", "lookup"):
        return False
    if kind == "full compaction later":
        return producer in ("none", "full-compaction")
    return not (kind == "deletion vectors" and producer in ("input", "normalised", "full-compaction"))


_CASES = [(kind, producer) for kind in _KINDS for producer in PRODUCERS if _is_possible(kind, producer)]


@pytest.mark.parametrize(("kind", "producer"), thinned(_CASES, lambda kind, producer: [kind]))
def test_every_kind_of_table(tmp_path: Path, kind: str, producer: str) -> None:
    """Whatever a table is, its views are what their queries give of the state that they have seen."""
    history = History(str(tmp_path), producer, 3, **_KINDS[kind])
    lake = history.lake
    history.fill()
    names = {name: f"v{number}" for number, name in enumerate(_CHOSEN)}
    for name, view in names.items():
        lake.materialize(view, FOLLOWED[name], policy="incremental")
    for turn in range(2):
        history.happen()
        if turn == 1:
            for table in ("orders", "customers", "stock"):
                lake.table(table).compact(full=True)
        for name, view in names.items():
            done = lake.refresh(view)
            assert "failed" not in done.reason, f"{name}: {done}"
            is_behind = kind in ("left to others", "full compaction later") and producer in (
                "lookup",
                "full-compaction",
            )
            if turn < 1 and is_behind:
                continue  # what no compaction has told of yet is not seen
            wrong = difference(lake, view, FOLLOWED[name])
            assert wrong is None, f"{name}, round {turn}, {done}: {wrong}"
    for name, view in names.items():
        wrong = folded(lake, view)
        assert wrong is None, f"{name}: {wrong}"
