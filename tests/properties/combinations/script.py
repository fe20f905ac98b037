"""A history as a short program: calls that anybody can run, without the machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.properties.combinations.configuration import Configuration
    from tests.properties.combinations.machine import Operation


def code_of(configuration: Configuration, operations: Sequence[Operation]) -> str:
    """The program. Snapshots are counted back from the newest one, as the machine does."""
    lines = [
        "import lakebed, pyarrow as pa, tempfile, time",
        "lake = lakebed.connect(tempfile.mkdtemp())",
        f"t = lake.create_table('t', {dict(configuration.columns)},",
        f"    primary_key={list(configuration.primary_key)}, partition_by={list(configuration.partition_by)},",
        f"    options={dict(configuration.options)})",
        "def rows(*given, op=None):",
        "    names = [n for n in t.arrow_schema.names]",
        "    data = pa.Table.from_pylist([{n: r.get(n) for n in names} for r in given], schema=t.arrow_schema)",
        "    return data if op is None else data.append_column('op', pa.array(op))",
    ]
    lines += [_line(operation.name, operation.arguments) for operation in operations]
    lines.append("print(t.to_arrow().to_pylist())")
    return "\n".join(lines)


def _rows(given: Mapping[str, Any]) -> str:
    rows = ", ".join(str({k: v for k, v in row.items() if v is not None}) for row in given["rows"])
    return f"rows({rows}, op={given['kinds']}), row_kind='op'" if given.get("kinds") else f"rows({rows})"


def _line(name: str, given: Mapping[str, Any]) -> str:
    match name:
        case "write":
            return f"t.write({_rows(given)})" + ("  # by another process" if given.get("process") else "")
        case "bad_write":
            return f"t.write(rows({given['row']}, op=['{given['kind']}']), row_kind='op')  # to be refused"
        case "overwrite":
            return f"t.write({_rows(given)}, overwrite={True if given.get('spec') is None else given['spec']})"
        case "compact":
            where = f", where=[('p', '==', {given['where']!r})]" if given.get("where") is not None else ""
            return f"t.compact(full={given.get('full', False)}{where})"
        case "rescale":
            return f"t.alter(lakebed.SetOption('bucket', '{given['count']}')); t.rescale()"
        case "rollback_to" | "rollback_to_as_latest":
            return f"t.{name}([s.id for s in t.snapshots()][max(0, len(t.snapshots()) - 1 - {given['back']})])"
        case "set_option" if given["value"] is None:
            return f"t.alter(lakebed.RemoveOption({given['key']!r}))"
        case "set_option":
            return f"t.alter(lakebed.SetOption({given['key']!r}, {given['value']!r}))"
        case "write_with_options":
            return f"t.with_options({given['options']}).write({_rows(given)})"
        case "drop_partition":
            return f"t.drop_partitions([{{'p': {given['value']!r}}}])"
        case "expire":
            return f"t.expire_snapshots(retain_max={given['keep']}, retain_min=1)"
        case "orphans":
            return "t.remove_orphan_files(older_than=int(time.time() * 1000) - 1)"
        case "add_column":
            return f"t.alter(lakebed.AddColumn({given['name']!r}, lakebed.types.logical.parse_type({given['kind']!r})))"
        case "drop_column":
            return f"t.alter(lakebed.DropColumn({given['name']!r}))"
        case "rename_column":
            return f"t.alter(lakebed.RenameColumn({given['name']!r}, {given['new_name']!r}))"
        case "change_type":
            kind = f"lakebed.types.logical.parse_type({given['kind']!r})"
            return f"t.alter(lakebed.UpdateColumnType({given['name']!r}, {kind}))"
        case "sql_update":
            return (
                f'lake.sql("UPDATE t SET {given["name"]} = {given["new"]!r} '
                f'WHERE {given["column"]} {given["sign"]} {given["value"]!r}")'
            )
        case "sql_delete":
            return f'lake.sql("DELETE FROM t WHERE {given["column"]} {given["sign"]} {given["value"]!r}")'
        case "truncate" | "analyze" | "compact_manifest":
            return f"t.{name}()"
        case _:
            return f"# {name} {dict(given)}"


__all__ = ["code_of"]
