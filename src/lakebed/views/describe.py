"""What is known of a materialized table: for lists, and as the statement that makes it."""

from __future__ import annotations

from lakebed.options import CHANGELOG_PRODUCER, VIEW_OPTIONS
from lakebed.records import dataclass
from lakebed.table.table import Table
from lakebed.views.store import REASON, WAY, Cut, Definition, cut_of, definition_of


@dataclass(frozen=True, slots=True)
class MaterializedTable:
    """A materialized table: its query, how it is refreshed, and how it was last."""

    name: str
    query: str
    policy: str
    freshness: str | None
    is_suspended: bool
    way: str | None
    """How the last refresh went: `incremental`, `full` or `none`."""
    reason: str | None
    reads: tuple[str, ...]
    """The tables of its query, by their full names."""
    cut: Cut | None
    """Which snapshots of its tables the rows belong to."""
    statement: str
    """That makes such a table."""

    def __repr__(self) -> str:
        state = "suspended" if self.is_suspended else f"last refresh {self.way}"
        return f"<materialized table {self.name}: {self.policy}, {state}>"


def described(table: Table) -> MaterializedTable:
    """What is known of a materialized table; an error for any other."""
    definition = definition_of(table)
    latest = table.latest_snapshot()
    said = (latest.properties or {}) if latest is not None else {}
    return MaterializedTable(
        table.name,
        definition.query,
        definition.policy,
        definition.freshness,
        definition.is_suspended,
        said.get(WAY),
        said.get(REASON),
        tuple(definition.sources),
        cut_of(latest),
        _statement_of(table, definition),
    )


def _statement_of(table: Table, definition: Definition) -> str:
    """The statement that makes the table."""
    lines = [f"CREATE MATERIALIZED TABLE {'.'.join(map(_quoted, table.name.split('.')))}"]
    if definition.key is not None and not definition.has_hash and set(table.primary_key) <= set(definition.shown):
        lines.append(f"  (PRIMARY KEY ({', '.join(map(_quoted, table.primary_key))}) NOT ENFORCED)")
    if table.comment:
        lines.append(f"  COMMENT {_literal(table.comment)}")
    if table.partition_by:
        lines.append(f"  PARTITIONED BY ({', '.join(map(_quoted, table.partition_by))})")
    own = {*VIEW_OPTIONS, CHANGELOG_PRODUCER.key}
    options = {key: value for key, value in sorted(table.schema.options.items()) if key not in own}
    if options:
        listed = ", ".join(f"{_literal(key)} = {_literal(value)}" for key, value in options.items())
        lines.append(f"  WITH ({listed})")
    if definition.freshness is not None:
        amount, _, unit = definition.freshness.partition(" ")
        lines.append(f"  FRESHNESS = INTERVAL '{amount}' {unit.upper() or 'SECOND'}")
    if definition.policy != "auto":
        lines.append(f"  REFRESH POLICY {definition.policy.upper()}")
    return "\n".join([*lines, f"AS {definition.query}"])


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
