"""From the delta of a query's result to the rows that are sent, with their kinds; what takes back comes first."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.embedded.program import Run
from lakebed.expressions import kinds
from lakebed.expressions.nodes import Column
from lakebed.sql.change.embedded_rows import filled
from lakebed.table.table import Table
from lakebed.types.logical import DataField
from lakebed.types.transfer import to_precision, to_transfer, transfer_schema
from lakebed.views.apply import KIND
from lakebed.views.inserts.flows import Flow
from lakebed.views.inserts.sink import Sink
from lakebed.views.rules.program import Statement
from lakebed.views.rules.weighted import WEIGHT, Consolidated, Keys, Stored

_ADDS = ("+I", "+U")


def new_rows(run: Run, flow: Flow, source: str) -> pa.Table:
    """All rows, as ones that nobody has seen."""
    chosen = ", ".join(f"{each.id} AS {kinds.quoted(name)}" for each, name in _shown(flow))
    return run.table(f"SELECT '+I' AS {KIND}, {chosen} FROM {source}", _schema(flow))


def changed_rows(run: Run, flow: Flow, sink: Sink, delta: Stored) -> pa.Table:
    """The rows of a delta. Rows of one key of the query, or of the table if that has none, are one that changes."""
    named = dict(zip(flow.plan.names, flow.root.columns, strict=True))
    shown = [each for each, _ in _shown(flow)]
    told = (*shown, *(each for each in _key(flow) if each not in shown))
    run.make(Statement("moved", Consolidated(columns=(*told, WEIGHT), input=delta)))
    same = [named[name].id for name in sink.key] + ([] if sink.keeps_one else [each.id for each in _key(flow)])
    apart = f"PARTITION BY {', '.join(same)}" if same else ""
    comes, goes = f"bool_or(w > 0) OVER ({apart})", f"bool_or(w < 0) OVER ({apart})"
    if not same and flow.plan.key is None:  # nothing tells which row another one was
        comes = goes = "false"
    run.execute(f"CREATE TEMP TABLE paired AS SELECT *, {comes} AS __comes, {goes} AS __goes FROM moved")
    kind = (
        "CASE WHEN w > 0 THEN CASE WHEN __goes THEN '+U' ELSE '+I' END "
        "ELSE CASE WHEN __comes THEN '-U' ELSE '-D' END END"
    )
    chosen = ", ".join(f"{each.id} AS {kinds.quoted(name)}" for each, name in _shown(flow))
    kept = "" if sink.takes_old else " WHERE w > 0 OR NOT __comes"
    # INVARIANT: the old row of a key stands right before the new one: targets that tell both at once rely on it.
    near = [named[name].id for name in sink.key] or [each.id for each in _key(flow)]
    beside = "".join(f"{each} AS __near{number}, " for number, each in enumerate(near))
    order = ", ".join([*(f"__near{number}" for number in range(len(near))), "__turn"])
    text = (
        f"SELECT {KIND}, {', '.join(kinds.quoted(name) for name in flow.names)} FROM (SELECT {kind} AS {KIND}, "
        f"w > 0 AS __turn, {chosen}, {beside}unnest(range(abs(w))) AS __again FROM paired{kept}) ORDER BY {order}"
    )
    return run.table(text, _schema(flow))


def replaced_rows(run: Run, flow: Flow, sink: Sink, now: str, keys: Keys, stored: Table | None) -> pa.Table:
    """Groups as they are now, and those that are stored and are no more."""
    rows = new_rows(run, flow, now)
    how = flow.replaced_by(sink.key)
    assert how is not None
    values = ", ".join(f"{value.spelled()} AS {kinds.quoted(name)}" for name, (_, value) in how.items())
    listed = ", ".join(each.id for each in keys.columns)
    given = f"SELECT DISTINCT {values} FROM (SELECT {listed} FROM {keys.name})"
    named = dict(zip(flow.plan.names, flow.root.columns, strict=True))
    same = " AND ".join(f"g.{kinds.quoted(name)} = n.{named[name].id}" for name in sink.key)
    known = " AND ".join(f"g.{kinds.quoted(name)} IS NOT NULL" for name in sink.key)
    gone = run.table(f"SELECT g.* FROM ({given}) AS g ANTI JOIN {now} AS n ON {same} WHERE {known}")
    if stored is None or not gone.num_rows:
        return rows
    schema = _schema(flow)
    found = stored.lookup(gone, list(flow.names)).combine_chunks()
    batches = [to_transfer(batch, pa.schema(list(schema)[1:])) for batch in found.to_batches()]
    lost = pa.Table.from_batches(batches, schema=pa.schema(list(schema)[1:]))
    lost = lost.add_column(0, schema.field(0), pa.repeat(pa.scalar("-D"), lost.num_rows))
    return pa.concat_tables([lost, rows])


def no_rows(flow: Flow) -> pa.Table:
    """Nothing to send."""
    return _schema(flow).empty_table()


def takes_back(rows: pa.Table) -> bool:
    """Whether some of the rows take something back."""
    return bool(pc.any(pc.starts_with(rows.column(KIND), "-")).as_py())


def in_order(parts: Sequence[pa.Table]) -> pa.Table:
    """The rows of all flows: what one takes back does not take what another adds."""
    if len(parts) == 1:
        return parts[0]
    together = pa.concat_tables(parts)
    adds = pc.is_in(together.column(KIND), pa.array(_ADDS))
    return pa.concat_tables([together.filter(pc.invert(adds)), together.filter(adds)])


def as_rows_of(rows: pa.Table, fields: Sequence[DataField], *, has_key: bool) -> pa.Table:
    """Rows with all columns of the table, as those hold them, and the kinds unless all rows are new."""
    whole = filled(to_precision(rows, fields), fields, {})
    return whole.append_column(KIND, rows.column(KIND)) if has_key else whole


def _shown(flow: Flow) -> list[tuple[Column, str]]:
    """The columns of the table."""
    return list(zip(flow.root.columns, flow.names, strict=False))


def _key(flow: Flow) -> list[Column]:
    """The columns that tell rows of the query apart."""
    named = dict(zip(flow.plan.names, flow.root.columns, strict=True))
    return [named[name] for name in flow.plan.key or ()]


def _schema(flow: Flow) -> pa.Schema:
    columns = transfer_schema([flow.fields[name] for name in flow.names])
    return pa.schema([pa.field(KIND, pa.string()), *(each.with_nullable(True) for each in columns)])
