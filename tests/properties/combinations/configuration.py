"""Random table configurations: one of each choice that a user has, as long as the table can be created.

Columns and values are few on purpose. A combination of features matters here, not the types, which other properties go
through: keys meet again all the time, values compare equal and come out of order.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, cast

from lakebed.testing.model import Value
from lakebed.testing.strategies import TableDefinition
from lakebed.types.logical import AtomicType, parse_type

INTS: tuple[Value, ...] = (None, 0, 1, 2, 3, 9)
TEXTS: tuple[Value, ...] = (None, "", "a", "b", "c;d")
TRUTHS: tuple[Value, ...] = (None, True, False)
KEYS: tuple[Value, ...] = (1, 2, 3, 4, 5, 6)
POOLS = {"INT": INTS, "BIGINT": INTS, "STRING": TEXTS, "BOOLEAN": TRUTHS}

_FUNCTIONS = {
    "sum": ("INT", "BIGINT"),
    "count": ("BIGINT",),
    "max": ("INT",),
    "min": ("INT",),
    "bool_or": ("BOOLEAN",),
    "bool_and": ("BOOLEAN",),
    "last_value": ("INT", "STRING"),
    "last_non_null_value": ("INT", "STRING"),
    "first_value": ("INT",),
    "first_non_null_value": ("INT", "STRING"),
    "listagg": ("STRING",),
}


@dataclass(frozen=True)
class Configuration:
    """A table to be created. Types are texts, so that it can be printed and read again."""

    columns: Mapping[str, str]
    primary_key: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def crosses_partitions(self) -> bool:
        """Whether keys may move between partitions."""
        return bool(self.primary_key) and not set(self.partition_by) <= set(self.primary_key)

    def definition(self) -> TableDefinition:
        """What the model and the judgement of rows are made of."""
        types = {name: cast(AtomicType, parse_type(text)) for name, text in self.columns.items()}
        layout = {"write-buffer-size": "x"} if "write-buffer-size" in self.options else {}
        return TableDefinition(types, self.primary_key, self.partition_by, dict(self.options), layout)

    def pool(self, name: str) -> tuple[Value, ...]:
        """The values of a column."""
        kind = self.columns[name].removesuffix(" NOT NULL")
        if name in self.primary_key and name not in self.partition_by:
            return (None, *KEYS[:3]) if self.options.get("primary-key.nullable") == "true" else KEYS
        if name in self.partition_by:
            return ("x", "y", "z") if kind == "STRING" else (1, 2, 3)
        return POOLS[kind]

    def to_members(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "columns": dict(self.columns),
            "primary_key": list(self.primary_key),
            "partition_by": list(self.partition_by),
            "options": dict(self.options),
        }

    @staticmethod
    def from_members(members: Mapping[str, Any]) -> Configuration:
        """Inverse of `to_members`."""
        return Configuration(
            dict(members["columns"]),
            tuple(members["primary_key"]),
            tuple(members["partition_by"]),
            dict(members["options"]),
        )

    def __str__(self) -> str:
        return json.dumps(self.to_members())

    def without_option(self, key: str) -> Configuration:
        """The table, said shorter."""
        return replace(self, options={name: text for name, text in self.options.items() if name != key})


class _Draft:
    """A table in the making."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.columns: dict[str, str] = {}
        self.options: dict[str, str] = {}

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def maybe(self, share: float, key: str, *values: str) -> None:
        """Sets an option, now and then."""
        if self.chance(share):
            self.options[key] = self.random.choice(values or ("true",))

    def value(self, name: str, *kinds: str) -> str:
        """A column of values."""
        self.columns[name] = self.random.choice(kinds or ("INT", "STRING", "BIGINT"))
        return name


def random_configuration(random: Random, *, keyed: bool | None = None) -> Configuration:
    """Any table: three of four have a primary key."""
    draft = _Draft(random)
    if draft.chance(0.78) if keyed is None else keyed:
        return _keyed(draft)
    return _append(draft)


# --- tables without a key ---------------------------------------------------------------------------------------------


def _append(draft: _Draft) -> Configuration:
    draft.columns["k"] = "INT"
    partition = _partition(draft, 0.4)
    for i in range(draft.random.randint(1, 3)):
        draft.value(f"v{i}")
    if draft.chance(0.25):
        draft.options |= {"bucket": draft.random.choice(["1", "2"]), "bucket-key": "k"}
    else:
        draft.maybe(0.4, "row-tracking.enabled")
        if "row-tracking.enabled" in draft.options:
            draft.maybe(0.5, "data-evolution.enabled")
    draft.maybe(0.5, "deletion-vectors.enabled")
    if "deletion-vectors.enabled" in draft.options:
        draft.maybe(0.3, "deletion-vectors.bitmap64")
    draft.maybe(0.2, "write-only")
    draft.maybe(0.3, "compaction.min.file-num", "2", "3")
    if "data-evolution.enabled" not in draft.options:
        _clustering(draft)
    _layout(draft)
    return Configuration(draft.columns, (), partition, draft.options)


def _clustering(draft: _Draft) -> None:
    """Rows sorted while they are written, or by compactions, step by step."""
    if "bucket" not in draft.options:
        draft.maybe(0.3, "clustering.columns", "k", "v0,k")
        if "clustering.columns" in draft.options:
            draft.maybe(0.7, "clustering.incremental")
            draft.maybe(0.6, "num-sorted-run.compaction-trigger", "2", "3")


# --- tables with a key ------------------------------------------------------------------------------------------------


def _keyed(draft: _Draft) -> Configuration:
    random = draft.random
    engine = random.choice(["deduplicate", "deduplicate", "first-row", "aggregation", "partial-update", "groups"])
    draft.columns["k"] = "INT NOT NULL"
    partition = _partition(draft, 0.45, required=True)
    draft.options["merge-engine"] = "partial-update" if engine == "groups" else engine
    _ENGINES[engine](draft)
    primary_key = ("k", *partition)
    bucket = random.choice(["1", "1", "2", "3", "-1", "-1", "-2"])
    if bucket == "-1" and partition and draft.chance(0.6) and _may_cross(draft):
        primary_key = ("k",)
    draft.options["bucket"] = bucket
    if bucket == "-1":
        draft.maybe(0.7, "dynamic-bucket.target-row-num", "2")
        draft.maybe(0.2, "dynamic-bucket.max-buckets", "2")
    if bucket == "-2":
        draft.maybe(0.5, "postpone.target-row-num-per-bucket", "2")
        draft.maybe(0.4, "postpone.batch-write-fixed-bucket", "false")
    _changelog(draft, engine)
    if engine != "first-row" and "full-compaction" not in draft.options.get("changelog-producer", ""):
        draft.maybe(0.35, "deletion-vectors.enabled")
        if "deletion-vectors.enabled" in draft.options:
            draft.maybe(0.2, "deletion-vectors.merge-on-read")
            draft.maybe(0.2, "deletion-vectors.bitmap64")
    draft.maybe(0.4, "write-only")
    if not partition and draft.chance(0.1):
        draft.options["primary-key.nullable"] = "true"
        draft.columns["k"] = "INT"
    _tree(draft)
    _layout(draft)
    return Configuration(draft.columns, primary_key, partition, draft.options)


def _may_cross(draft: _Draft) -> bool:
    return not any(
        key.startswith("sequence") or "remove-record" in key or key in ("ignore-delete", "rowkind.field")
        for key in draft.options
    )


def _partition(draft: _Draft, share: float, *, required: bool = False) -> tuple[str, ...]:
    if not draft.chance(share):
        return ()
    draft.columns["p"] = draft.random.choice(["INT", "STRING"]) + (" NOT NULL" if required else "")
    return ("p",)


def _sequence(draft: _Draft, share: float) -> None:
    if draft.chance(share):
        names = ["s"] if draft.chance(0.8) else ["s", "t"]
        for name in names:
            draft.columns[name] = "INT"
        draft.options["sequence.field"] = ",".join(names)
        draft.maybe(0.3, "sequence.field.sort-order", "descending")


def _deduplicate(draft: _Draft) -> None:
    for i in range(draft.random.randint(1, 2)):
        draft.value(f"v{i}")
    _sequence(draft, 0.35)
    draft.maybe(0.12, "ignore-delete")
    draft.maybe(0.12, "ignore-update-before")
    if draft.chance(0.1):
        draft.columns["kind"] = "STRING"
        draft.options["rowkind.field"] = "kind"


def _first_row(draft: _Draft) -> None:
    for i in range(draft.random.randint(1, 2)):
        draft.value(f"v{i}")
    draft.maybe(0.4, "ignore-delete")


def _aggregation(draft: _Draft) -> None:
    for i in range(draft.random.randint(1, 3)):
        _function(draft, f"v{i}")
    if draft.chance(0.4):
        draft.value("w")
    _sequence(draft, 0.3)
    if draft.chance(0.3):
        draft.options["aggregation.remove-record-on-delete"] = "true"
    else:
        draft.maybe(0.25, "ignore-delete")
    draft.maybe(0.15, "fields.default-aggregate-function", "last_value", "last_non_null_value")


def _function(draft: _Draft, name: str) -> None:
    function = draft.random.choice(["sum", "sum", *_FUNCTIONS])
    draft.columns[name] = draft.random.choice(_FUNCTIONS[function])
    draft.options[f"fields.{name}.aggregate-function"] = function
    draft.maybe(0.2, f"fields.{name}.ignore-retract")
    if function == "listagg":
        draft.maybe(0.3, f"fields.{name}.list-agg-delimiter", ";")


def _partial_update(draft: _Draft) -> None:
    for i in range(draft.random.randint(2, 3)):
        draft.value(f"v{i}")
    _sequence(draft, 0.25)
    removal = draft.random.choice(["", "ignore-delete", "partial-update.remove-record-on-delete"])
    if removal:
        draft.options[removal] = "true"


def _groups(draft: _Draft) -> None:
    for i in range(draft.random.randint(1, 2)):
        draft.columns[f"g{i}"] = "INT"
        if draft.chance(0.5):
            _function(draft, f"a{i}")
        else:
            draft.value(f"a{i}")
        draft.options[f"fields.g{i}.sequence-group"] = f"a{i}"
    if draft.chance(0.5):
        draft.value("v0")
    choice = draft.random.choice(["retract", "ignore", "remove"])
    if choice == "ignore":
        draft.options["ignore-delete"] = "true"
    elif choice == "remove":
        draft.options["partial-update.remove-record-on-sequence-group"] = "g0"


_ENGINES = {
    "deduplicate": _deduplicate,
    "first-row": _first_row,
    "aggregation": _aggregation,
    "partial-update": _partial_update,
    "groups": _groups,
}


def _changelog(draft: _Draft, engine: str) -> None:
    producers = (
        ["none", "lookup"] if engine == "first-row" else ["none", "input", "lookup", "lookup", "full-compaction"]
    )
    producer = draft.random.choice(producers)
    if producer == "none":
        return
    draft.options["changelog-producer"] = producer
    if producer in ("lookup", "full-compaction"):
        draft.maybe(0.3, "changelog-producer.row-deduplicate")


def _tree(draft: _Draft) -> None:
    draft.maybe(0.5, "num-sorted-run.compaction-trigger", "2", "3")
    draft.maybe(0.2, "num-levels", "2", "3", "4")
    draft.maybe(0.15, "compaction.force-up-level-0")
    draft.maybe(0.1, "compaction.size-ratio", "0", "100")
    draft.maybe(0.1, "compaction.force-rewrite-all-files")
    draft.maybe(0.1, "write-buffer-size", "300 b")


def _layout(draft: _Draft) -> None:
    draft.options["file.format"] = draft.random.choice(["parquet", "parquet", "orc", "avro"])
    draft.maybe(0.2, "target-file-size", "1 b", "1 kb")
    draft.maybe(0.1, "target-file-row-num", "1", "2")
    draft.maybe(0.2, "manifest.merge-min-count", "1", "2")
    draft.maybe(0.1, "manifest.full-compaction-threshold-size", "1 b")
    draft.maybe(0.1, "manifest.target-file-size", "1 b", "2600 b")
    draft.maybe(0.1, "source.split.target-size", "1 b")
    draft.maybe(0.3, "read.batch-size", "1", "2")
    draft.maybe(0.1, "metadata.stats-mode", "none", "full", "truncate(1)")
    draft.maybe(0.1, "file-index.bloom-filter.columns", "k")


__all__ = ["Configuration", "random_configuration"]
