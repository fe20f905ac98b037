"""Random histories: the next operation, chosen so that most of them apply."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.properties.combinations.machine import Machine, Operation

from lakebed.testing.model import Row, Value

WEIGHTS = {
    "write": 30,
    "overwrite": 5,
    "truncate": 1,
    "drop_partition": 2,
    "compact": 12,
    "compact_manifest": 1,
    "rescale": 3,
    "rollback_to": 3,
    "rollback_to_as_latest": 4,
    "tag": 2,
    "delete_tag": 1,
    "branch_off": 2,
    "branch_write": 2,
    "fast_forward": 1,
    "expire": 2,
    "orphans": 1,
    "analyze": 1,
    "reopen": 2,
    "add_column": 2,
    "drop_column": 2,
    "rename_column": 1,
    "change_type": 2,
    "set_option": 5,
    "write_with_options": 3,
    "open_writer": 3,
    "commit_writer": 4,
    "stream_write": 6,
    "bad_write": 3,
    "delete_where": 5,
    "update_where": 5,
    "crash": 4,
    "read": 4,
    "elsewhere": 1,
}
STATEMENTS = {"sql_update": 12, "sql_delete": 12, "sql_merge": 10, "sql_overwrite": 2}
"""Statements of SQL where there is a Spark session; without one they are as likely as other ways to change rows."""
FEW_STATEMENTS = {"sql_update": 4, "sql_delete": 4, "sql_merge": 4, "sql_overwrite": 1}

MEANINGS: list[tuple[str, list[str | None]]] = [
    ("changelog-producer", ["none", "input", "lookup", "full-compaction"]),
    ("changelog-producer", ["none", "lookup"]),
    ("ignore-delete", ["true", None]),
    ("ignore-update-before", ["true", None]),
    ("sequence.field", ["v0", "s", None]),
    ("sequence.field.sort-order", ["descending", "ascending"]),
    ("fields.v0.aggregate-function", ["sum", "max", "last_value", "min"]),
    ("fields.v0.list-agg-delimiter", [";", "|"]),
    ("fields.v0.ignore-retract", ["true", None]),
    ("fields.default-aggregate-function", ["last_value", "max", None]),
    ("aggregation.remove-record-on-delete", ["true", None]),
    ("partial-update.remove-record-on-delete", ["true", None]),
    ("deletion-vectors.enabled", ["true", "false"]),
    ("deletion-vectors.merge-on-read", ["true", "false"]),
    ("merge-engine", ["deduplicate", "first-row", "aggregation"]),
    ("partition.legacy-name", ["true", "false"]),
    ("partition.default-name", ["nobody"]),
    ("write-only", ["true", "false"]),
    ("changelog-producer.row-deduplicate", ["true", "false"]),
    ("file.format", ["parquet", "orc", "avro"]),
    ("num-levels", ["3", "6"]),
    ("num-sorted-run.compaction-trigger", ["2", "5"]),
    ("target-file-size", ["1 b", "1 mb"]),
    ("bucket", ["2", "1"]),
    ("dynamic-bucket.target-row-num", ["1", "3"]),
    ("deletion-vectors.bitmap64", ["true", "false"]),
]
HANDLES: list[dict[str, str]] = [
    {"changelog-producer": "lookup"},
    {"changelog-producer": "none"},
    {"changelog-producer": "input"},
    {"ignore-delete": "true"},
    {"write-only": "true"},
    {"write-only": "false"},
    {"sequence.field": "v0"},
    {"fields.v0.aggregate-function": "max"},
    {"deletion-vectors.enabled": "true"},
    {"deletion-vectors.enabled": "false"},
    {"num-levels": "3"},
    {"file.format": "avro"},
    {"bucket": "3"},
    {"merge-engine": "first-row"},
    {"force-lookup": "true"},
]


def random_operation(random: Random, machine: Machine) -> Operation:
    """The next step."""
    weights = WEIGHTS | (STATEMENTS if machine.spark is not None else FEW_STATEMENTS)
    name = random.choices(list(weights), list(weights.values()))[0]
    if name == "elsewhere":
        return Operation("write", {**_arguments("write", random, machine), "process": True})
    if name == "crash":
        inner = random.choice(
            ["write", "write", "overwrite", "compact", "stream_write", "drop_partition", "delete_where"]
        )
        inner = random.choice([inner, inner, "rollback_to_as_latest", "update_where"])
        arguments = _arguments(inner, random, machine)
        return Operation("crash", {"operation": [inner, arguments], "at": random.randint(1, 14)})
    return Operation(name, _arguments(name, random, machine))


def _rows(random: Random, machine: Machine, most: int = 5) -> list[Row]:
    return [_row(random, machine) for _ in range(random.randint(1, most))]


def _row(random: Random, machine: Machine) -> Row:
    config, schema = machine.configuration, machine.meaning.model.schema
    row: Row = {}
    for column in schema.columns:
        kind = str(column.type)
        if column.name in config.columns and config.columns[column.name] == kind:
            row[column.name] = random.choice(config.pool(column.name))
        elif "STRING" in kind:
            row[column.name] = random.choice(["a", "b", "1", None])
        else:
            row[column.name] = random.choice([1, 2, 3, None])
    name = machine.meaning.options.get("rowkind.field")
    if name:
        row[name] = random.choice(["+I", "+I", "+U", "-D", "-U"])
    return row


def _kinds(random: Random, machine: Machine, count: int) -> list[str] | None:
    if not machine.meaning.has_key or random.random() < 0.4 or "rowkind.field" in machine.meaning.options:
        return None
    return [random.choice(["+I", "+I", "+U", "-U", "-D", "-D"]) for _ in range(count)]


def _value(random: Random, machine: Machine, name: str) -> Value:
    config = machine.configuration
    kind = str(machine.meaning.model.schema.column(name).type)
    if name in config.columns and config.columns[name] == kind:
        return random.choice(config.pool(name))
    return random.choice(["a", "b", "1"]) if "STRING" in kind else random.choice([True, False]) if "BOOL" in kind else 1


def _where(random: Random, machine: Machine) -> dict[str, Any]:
    names = machine.meaning.model.schema.names
    column = random.choice([*names, "k", "k"])
    column = column if column in names else names[0]
    return {"column": column, "sign": random.choice(["==", "<=", "!=", ">"]), "value": _value(random, machine, column)}


def _arguments(name: str, random: Random, machine: Machine) -> dict[str, Any]:
    config, schema = machine.configuration, machine.meaning.model.schema
    partitions: tuple[Value, ...] = config.pool(config.partition_by[0]) if config.partition_by else ()
    handle = random.randint(0, 1)
    match name:
        case "write" | "stream_write" | "open_writer" | "branch_write":
            rows = _rows(random, machine)
            arguments: dict[str, Any] = {"rows": rows, "kinds": _kinds(random, machine, len(rows))}
            if name == "stream_write":
                return {**arguments, "user": random.choice(["job", "other"]), "replay": random.random() < 0.2}
            if name == "branch_write":
                return {**arguments, "compact": random.random() < 0.5}
            return {**arguments, "handle": handle}
        case "bad_write":
            return {"row": _row(random, machine), "kind": random.choice(["-D", "-U"])}
        case "overwrite":
            spec: dict[str, Value] | None = random.choice([None, {}])
            if partitions and random.random() < 0.5:
                spec = {config.partition_by[0]: random.choice(partitions)}
            rows = _rows(random, machine, 3) if random.random() < 0.9 or spec is None else []
            return {"rows": rows, "spec": spec, "handle": handle}
        case "drop_partition":
            return {"value": random.choice(partitions or (1,))}
        case "compact":
            where = random.choice(partitions) if partitions and random.random() < 0.3 else None
            return {"full": random.random() < 0.5, "where": where, "handle": handle}
        case "rescale":
            return {"count": random.randint(1, 4)}
        case "rollback_to" | "rollback_to_as_latest":
            return {"back": random.choice([1, 1, 2, 3, 5, 9])}
        case "tag":
            return {"back": random.choice([0, 0, 1, 3])}
        case "expire":
            return {"keep": random.choice([1, 2, 4])}
        case "add_column":
            # Also under a name that another column had before it was dropped.
            return {"name": random.choice(["n0", "n1", "n2", "v0", "v1"]), "kind": random.choice(["INT", "STRING"])}
        case "drop_column":
            return {"name": random.choice(schema.names)}
        case "rename_column":
            return {"name": random.choice(schema.names), "new_name": f"r{random.randint(0, 2)}"}
        case "change_type":
            return {"name": random.choice(schema.names), "kind": random.choice(["BIGINT", "BIGINT", "STRING", "INT"])}
        case "set_option":
            key, values = random.choice(MEANINGS)
            return {"key": key, "value": random.choice(values)}
        case "write_with_options":
            rows = _rows(random, machine)
            kinds = _kinds(random, machine, len(rows))
            return {"rows": rows, "kinds": kinds, "options": random.choice(HANDLES)}
        case "delete_where" | "sql_delete" | "read":
            return _where(random, machine)
        case "update_where" | "sql_update":
            target = random.choice(schema.names)
            return {**_where(random, machine), "name": target, "new": _value(random, machine, target)}
        case "sql_merge":
            return {
                "rows": _rows(random, machine),
                "name": random.choice(schema.names),
                "delete": random.random() < 0.3,
            }
        case "sql_overwrite":
            return {"rows": _rows(random, machine)}
        case _:
            return {}


__all__ = ["random_operation"]
