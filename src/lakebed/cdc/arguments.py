"""What `lakebed.cdc.sync` takes by name, and the rules that this makes: one list of names, checked in one place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict

from lakebed.cdc.routing import KEEP_CASE, PatternValue, Routing
from lakebed.cdc.rows.computed import ComputedColumn
from lakebed.cdc.rows.keeping import APPLY, Keeping
from lakebed.cdc.rows.metadata import metadata_columns
from lakebed.cdc.rows.past_columns import DELETED_AT
from lakebed.cdc.rules import DELETE_ROWS, STOP, SyncRules, type_modes, type_rules
from lakebed.cdc.schema.sync import FAIL, KEEP, Policies
from lakebed.cdc.sources import ChangeSource
from lakebed.errors import InvalidArgument
from lakebed.options import check_options


class PastArguments(TypedDict, total=False):
    """What may be said of what is kept of the past: see `lakebed.cdc.rows.keeping.Keeping`."""

    deletes: str
    deleted_column: str
    audit: bool | str | None
    audit_by_day: bool
    history: bool | str | None
    history_column_prefix: str


class SyncArguments(PastArguments, total=False):
    """Everything that may be said about a sync beyond its source, its target and its checkpoint."""

    # Which tables are followed, and what they are called in the lake: see `lakebed.cdc.routing.Routing`.
    including: str
    excluding: str | None
    including_databases: str
    excluding_databases: str | None
    prefix: str
    suffix: str
    prefixes_db: Mapping[str, str] | None
    suffixes_db: Mapping[str, str] | None
    mapping: Mapping[str, str] | None
    merge_shards: bool | None
    case: str
    # What the tables are made of.
    primary_keys: Sequence[str]
    sync_primary_keys_from_source_schema: bool
    partition_keys: Sequence[str]
    computed_columns: Sequence[str]
    metadata_columns: Sequence[str]
    metadata_column_prefix: str
    type_mapping: Sequence[str]
    table_conf: Mapping[str, Any] | None
    # What happens when the source changes: see `lakebed.cdc.schema.sync.Policies`.
    rename: str
    drop: str
    incompatible: str
    ignore_incompatible: bool
    truncate: str
    on_error: str
    # How it runs.
    give_up_after: str | None
    on_step: Callable[[str], None] | None
    here_bytes: int | None


def check_names(given: SyncArguments) -> None:
    """Refuses a name that nothing takes, in the words of Python for a function that spells its arguments out."""
    for name in given:
        if name not in SyncArguments.__annotations__:
            raise TypeError(f"sync() got an unexpected keyword argument '{name}'")


def sync_rules(database: str, table: str | None, source: ChangeSource, given: SyncArguments) -> SyncRules:
    """The rules of a sync from a source into a database of the lake, or into one table of it."""
    modes = type_modes(given.get("type_mapping", ()))
    merge_shards = given.get("merge_shards")
    routing = Routing(
        database,
        table,
        including=given.get("including", ".*"),
        excluding=given.get("excluding"),
        including_databases=given.get("including_databases", ".*"),
        excluding_databases=given.get("excluding_databases"),
        prefix=given.get("prefix", ""),
        suffix=given.get("suffix", ""),
        prefixes_db=dict(given.get("prefixes_db") or {}),
        suffixes_db=dict(given.get("suffixes_db") or {}),
        mapping=dict(given.get("mapping") or {}),
        merge_shards=merge_shards is not False,
        case=given.get("case", KEEP_CASE),
    )
    policies = Policies(
        given.get("rename", KEEP), given.get("drop", KEEP), given.get("incompatible", FAIL), type_rules(modes)
    )
    computed = _names(given, "computed_columns")
    added = _names(given, "metadata_columns")
    return SyncRules(
        routing,
        policies,
        primary_keys=_names(given, "primary_keys"),
        takes_source_keys=given.get("sync_primary_keys_from_source_schema", True),
        partition_keys=_names(given, "partition_keys"),
        computed=tuple(ComputedColumn.parse(text) for text in computed),
        metadata=metadata_columns(added, given.get("metadata_column_prefix", ""), source.metadata_columns),
        table_conf=_table_conf(given.get("table_conf")),
        modes=modes,
        truncate=given.get("truncate", DELETE_ROWS),
        skips_incompatible=given.get("ignore_incompatible", False),
        is_for_one_table=table is not None,
        merge_shards=merge_shards,
        on_error=given.get("on_error", STOP),
        keeping=keeping_of(given),
    )


def keeping_of(given: PastArguments) -> Keeping:
    """What is kept of the past."""
    return Keeping(
        given.get("deletes", APPLY),
        given.get("deleted_column", DELETED_AT),
        _pattern(given, "audit"),
        given.get("audit_by_day", False),
        _pattern(given, "history"),
        given.get("history_column_prefix", ""),
    )


def _pattern(given: PastArguments, what: str) -> str | None:
    """A pattern of tables; True stands for all of them."""
    found: Any = given.get(what)
    return ".*" if found is True else found or None


def _names(given: SyncArguments, what: str) -> tuple[str, ...]:
    found: Any = given.get(what, ())
    if isinstance(found, str) or not all(isinstance(name, str) and name for name in found):
        raise InvalidArgument(f"{what} is {found!r}", hint=f'pass a list of texts: {what}=["id"]')
    return tuple(found)


def _table_conf(given: Mapping[str, Any] | None) -> tuple[PatternValue, ...]:
    """Options for all tables, or for those that a pattern matches; checked now, not in the first batch."""
    general: dict[str, str] = {}
    patterns: list[PatternValue] = []
    for key, value in (given or {}).items():
        if isinstance(value, Mapping):
            checked = check_options(dict(value), for_create=True, columns=None)
            patterns.append(PatternValue(key, checked))
        else:
            general |= check_options({key: value}, for_create=True, columns=None)
    return (PatternValue(".*", general), *patterns) if general else tuple(patterns)


__all__ = ["PastArguments", "SyncArguments", "check_names", "keeping_of", "sync_rules"]
