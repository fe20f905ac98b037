"""Makes a materialized table: looks at the query, chooses the columns and the key to store, and fills it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from lakebed.algebra.relations import Group
from lakebed.cleanup import on_failure
from lakebed.clock import RandomIds
from lakebed.definition.views import ViewOptions
from lakebed.errors import AlreadyExists, InvalidArgument, InvalidSchema, Unsupported, did_you_mean
from lakebed.expressions import kinds
from lakebed.expressions.functions.clocks import proven_zone
from lakebed.expressions.nodes import NotProven
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import (
    BUCKET,
    CHANGELOG_PRODUCER,
    LAKEBED_VIEW_DEFINITION,
    LAKEBED_VIEW_HIDDEN_COLUMNS,
    VIEW_OPTIONS,
)
from lakebed.records import dataclass
from lakebed.schema.changes import SetOption
from lakebed.sql.query.embedded import has_moments
from lakebed.sql.query.run import schema_of
from lakebed.sql.session import SqlLake
from lakebed.sql.settings import session_zone
from lakebed.table.alter import alter_table
from lakebed.table.table import Table
from lakebed.types.arrow import from_arrow_schema
from lakebed.types.logical import DataField, with_nullable
from lakebed.units import parse_duration
from lakebed.views.apply import HASH, NUMBER
from lakebed.views.batches import NothingYet
from lakebed.views.cut import chosen_cut
from lakebed.views.lake_in import LakeIn, read_sql
from lakebed.views.plan.build import HIDDEN_PREFIX, ViewPlan, planned
from lakebed.views.refresh import refresh_view
from lakebed.views.result import Refreshed
from lakebed.views.rules.compile import top_of
from lakebed.views.sources import bound_query, columns_of, refuse_other_meaning, tables_of, used_columns
from lakebed.views.store import POLICIES, Definition, SourceColumns, definition_of
from lakebed.views.swap import finish_swap, swapped_in
from lakebed.write.make_room import relaxed

_ROWS_OF_A_BUCKET, _MOST_BUCKETS = 2_000_000, 64
"""Rows of the largest table for which another bucket is made, and how many at most."""


@dataclass(frozen=True, slots=True)
class ViewRequest:
    """What somebody asks for."""

    name: str
    query: str
    freshness: str | None = None
    policy: str = "auto"
    primary_key: Sequence[str] = ()
    partition_by: Sequence[str] = ()
    options: Mapping[str, object] | None = None
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class Looked:
    """A query that was looked at: its plan, or why only Spark answers it; its columns; the tables it reads."""

    plan: ViewPlan | None
    needs_spark: str | None
    columns: pa.Schema
    sources: Mapping[str, SourceColumns]
    zone: str | None
    rows: int
    """Of the largest table."""


def create_view(lake: SqlLake, request: ViewRequest) -> Refreshed:
    """Makes the table and fills it; if that fails, there is none."""
    if lake.has_table(request.name) or finish_swap(lake, request.name):
        raise AlreadyExists(f"table `{request.name}` exists already", hint="choose another name, or drop it first")
    lake.create_table(request.name, **_defined(lake, request, lake.current_database))
    with on_failure(lambda: lake.drop_table(request.name, if_exists=True)):
        return refresh_view(lake, request.name)


def _replaced_view(lake: SqlLake, request: ViewRequest, database: str) -> Refreshed:
    """Gives a materialized table another definition. What is wrong with that is said before anything is changed."""
    table = lake.table(request.name)
    arguments = _defined(lake, request, database, definition_of(table).id)
    done: list[Refreshed] = []

    def make(name: str) -> None:
        lake.create_table(name, **arguments)
        done.append(refresh_view(lake, name))

    swapped_in(lake, request.name, make)
    return replace(done[0], table=table.name)


def alter_view(
    lake: SqlLake, name: str, query: str | None, policy: str | None, freshness: str | None, suspended: bool | None
) -> Refreshed | None:
    """Gives a materialized table another query, and computes it; or another policy, freshness, or whether it rests."""
    finish_swap(lake, name)
    table = lake.table(name)
    definition = definition_of(table)
    given = {"policy": policy and _policy(policy), "freshness": freshness, "is_suspended": suspended}
    changes = {key: value for key, value in given.items() if value is not None}
    if freshness is not None:
        parse_duration(freshness)
    if changes:
        definition = definition.changed(**changes)
    if query is None:
        option = SetOption(LAKEBED_VIEW_DEFINITION.key, definition.to_options()[LAKEBED_VIEW_DEFINITION.key])
        alter_table(table, [option], of_view=True)
        return None
    own = {*VIEW_OPTIONS, CHANGELOG_PRODUCER.key}
    request = ViewRequest(
        name,
        query,
        definition.freshness,
        definition.policy,
        partition_by=table.partition_by,
        options={key: value for key, value in table.schema.options.items() if key not in own},
        comment=table.comment,
    )
    return _replaced_view(lake, _with_key(lake, request, definition.named_key), lake.current_database)


def _with_key(lake: SqlLake, request: ViewRequest, key: tuple[str, ...]) -> ViewRequest:
    """The request with the key that the table had, if it is one of the new query, too."""
    asked = replace(request, primary_key=key)
    try:
        _keys(looked_at(lake, request.query, lake.current_database), asked)
    except InvalidArgument:
        return request
    return asked


def looked_at(lake: SqlLake, query: str, database: str) -> Looked:
    """The query as it can be kept up to date."""
    inside = LakeIn(lake, database)
    sql = read_sql(query)
    tables = tables_of(inside, sql)
    zone = session_zone(lake)
    refuse_other_meaning(lake, "the query of a materialized table")
    snapshots = _snapshots_now(lake, tables)
    rows = max((each.total_record_count for each in snapshots.values() if each is not None), default=0)
    try:
        bound = bound_query(inside, sql, snapshots)
        plan = planned(bound)
        if any(each.type == kinds.YEAR_MONTH for each in plan.root.columns):
            raise NotProven("a result of months", "Arrow has no type for it that Spark hands out")
        is_zoned = has_moments(bound.relation)
        if is_zoned and zone is not None:
            proven_zone(zone)
    except NotProven as unproven:
        columns = schema_of(inside, sql)
        used = {name: columns_of(table) for name, table in tables.items()}
        return Looked(None, f"{unproven.what}: {unproven.why}", columns, used, zone, rows)
    fields = [pa.field(n, e.type, e.nullable) for n, e in zip(plan.names, plan.root.columns, strict=True)]
    used = used_columns(bound.relation, tables)
    return Looked(plan, None, pa.schema(fields), used, zone if is_zoned else None, rows)


def _snapshots_now(lake: SqlLake, tables: Mapping[str, Table]) -> Mapping[str, Snapshot | None]:
    """Snapshots of tables that fit together; none if that has to wait, which only refreshes do."""
    try:
        return chosen_cut(lake, "the query", tables, None).snapshots
    except NothingYet:
        return {}


def _defined(lake: SqlLake, request: ViewRequest, database: str, replaces: str | None = None) -> dict[str, Any]:
    """The table that a request takes, with its definition; plain names belong to a database."""
    policy = _policy(request.policy)
    if request.freshness is not None:
        parse_duration(request.freshness)
    looked = looked_at(lake, request.query, database)
    shown = looked.columns.names if looked.plan is None else looked.columns.names[: looked.plan.shown]
    _check_names(shown, request.name)
    if policy == "incremental strict":
        _refuse_full(request.name, looked)
    key, primary_key, has_hash = _keys(looked, request)
    fields = [_field(number, each, each.name in primary_key) for number, each in enumerate(looked.columns)]
    more = [pa.field(HASH, pa.string(), False)] if has_hash else []
    more += [pa.field(NUMBER, pa.int64(), False)] if key is None else []
    fields += [_field(len(fields) + number, each, True) for number, each in enumerate(more)]
    definition = Definition(
        id=f"view-{RandomIds().new_id()}",
        query=request.query,
        database=database,
        sources=looked.sources,
        shown=tuple(shown),
        key=key,
        has_hash=has_hash,
        policy=policy,
        freshness=request.freshness,
        zone=looked.zone,
        needs_spark=looked.needs_spark,
        named_key=tuple(request.primary_key),
        replaces=replaces,
    )
    hidden = [each.name for each in fields if each.name not in shown]
    options = ViewOptions({BUCKET.key: _buckets(request, looked), **_options(request, definition, hidden)})
    return {
        "schema": fields,
        "primary_key": primary_key,
        "partition_by": tuple(request.partition_by),
        "options": options,
        "comment": request.comment,
    }


def _buckets(request: ViewRequest, looked: Looked) -> str:
    """How many buckets a table gets whose user names none: they follow from the key, so that a refresh finds the stored
    rows of a few keys without a look at an index of all of them."""
    has_groups = looked.plan is not None and isinstance(top_of(looked.plan.root)[0], Group)
    if request.partition_by or has_groups or (looked.plan is not None and looked.plan.linear is not None):
        return "1"
    return str(min(_MOST_BUCKETS, max(1, -(-looked.rows // _ROWS_OF_A_BUCKET))))


def _refuse_full(name: str, looked: Looked) -> None:
    """Raises if a query can only be computed anew."""
    if looked.plan is None:
        why, remedy = f"only Spark answers the query; {looked.needs_spark}", "write that part otherwise"
    else:
        judged = looked.plan.judged.full
        if judged is None:
            return
        why, remedy = f"{judged.what}: {judged.reason}", judged.remedy
    raise Unsupported(
        f"materialized table `{name}` can not follow changes, as INCREMENTAL STRICT asks: {why}",
        hint=f"{remedy}; or choose policy incremental, which computes it anew where it must",
    )


def _policy(given: str) -> str:
    policy = " ".join(str(given).lower().split())
    if policy not in POLICIES:
        raise InvalidArgument(f"there is no refresh policy {given!r}", hint=did_you_mean(policy, POLICIES))
    return policy


def _check_names(names: Sequence[str], view: str) -> None:
    lowered = [name.lower() for name in names]
    twice = next((name for name in lowered if lowered.count(name) > 1), None)
    if twice is not None:
        raise InvalidSchema(f"materialized table `{view}` would have two columns `{twice}`", hint="name one with AS")
    own = next((name for name in names if name.startswith(HIDDEN_PREFIX)), None)
    if own is not None:
        raise InvalidSchema(
            f"materialized table `{view}`: column `{own}` begins like those that it keeps for itself",
            hint="give the column another name with AS",
        )


def _keys(looked: Looked, request: ViewRequest) -> tuple[tuple[str, ...] | None, tuple[str, ...], bool]:
    """What tells rows apart, the primary key of the table, and whether that is a hash."""
    partition = tuple(request.partition_by)
    shown = looked.columns.names if looked.plan is None else looked.columns.names[: looked.plan.shown]
    for name in (*request.primary_key, *partition):
        if name not in shown:
            raise InvalidArgument(f"the query has no column `{name}`", hint=did_you_mean(name, shown))
    key = None if looked.plan is None else looked.plan.key
    if request.primary_key:
        given = tuple(request.primary_key)
        is_checked = looked.plan is None or looked.plan.is_full
        if not is_checked and (key is None or not set(key) <= set(given)):
            known = "rows of the query may be equal" if key is None else f"its rows are told apart by {', '.join(key)}"
            raise InvalidArgument(
                f"({', '.join(given)}) is not known to be a key of the query: {known}",
                hint="leave the primary key out, or group by these columns",
            )
        return given, tuple(dict.fromkeys((*partition, *given))), False
    is_plain = key and looked.plan is not None and not looked.plan.is_nullable and _can_be_key(key, looked.columns)
    if key is not None and is_plain:
        return key, tuple(dict.fromkeys((*partition, *key))), False
    own = (HASH,) if key is not None else (HASH, NUMBER)
    return key, (*partition, *own), True


def _can_be_key(key: Sequence[str], columns: pa.Schema) -> bool:
    """Whether a primary key may have columns of these types."""
    types = [columns.field(name).type for name in key]
    return not any(kinds.is_nested(each) or kinds.is_fraction(each) or each == kinds.BINARY for each in types)


def _field(number: int, column: pa.Field, is_key: bool) -> DataField:
    if column.type == kinds.NULL:
        raise InvalidSchema(f"column `{column.name}` of the query has no type", hint="write CAST(NULL AS type)")
    (field,) = from_arrow_schema(pa.schema([column.with_nullable(True)]))
    return DataField(number, field.name, with_nullable(relaxed(field.type), not is_key))


def _options(request: ViewRequest, definition: Definition, hidden: Sequence[str]) -> dict[str, object]:
    given = dict(request.options or {})
    for key in (*VIEW_OPTIONS, CHANGELOG_PRODUCER.key):
        if key in given:
            raise InvalidArgument(
                f"materialized table `{request.name}`: option `{key}` is not set by hand", hint="leave it out"
            )
    made: dict[str, object] = {CHANGELOG_PRODUCER.key: "input", **definition.to_options()}
    if hidden:
        made[LAKEBED_VIEW_HIDDEN_COLUMNS.key] = ",".join(hidden)
    return {**given, **made}
