"""The faces of the judges: what tests call. Each method is one command to the judge's process.

Rows pass through files in a scratch directory, Arrow IPC for the Python judges and JSON lines for Java, and come out
canonical on this side. A table is named by warehouse directory, database and table; `name$branch_b` names a branch.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa

from .canonical import Row, Rows, arrow_table, canonical_rows, rows_in_order, sorted_entries
from .environments import Environment
from .paimon_types import arrow_schema, json_fields, latest_fields
from .process import JudgeProcess

KIND_CODES = {"+I": 0, "-U": 1, "+U": 2, "-D": 3}


class Judge:
    """What every judge can do. Failures inside the judge are raised as JudgeError with its own words."""

    def __init__(self, environment: Environment) -> None:
        self.name = environment.name
        self._process = JudgeProcess(environment.name, environment.command)
        self._scratch = tempfile.TemporaryDirectory(prefix=f"judge-{environment.name}-")

    def close(self) -> None:
        """End the judge's process and remove its scratch files."""
        self._process.close()
        self._scratch.cleanup()

    def version(self) -> dict[str, str]:
        """Say who judges: the implementation and its version."""
        answer: dict[str, str] = self._process.ask("version")
        return answer

    def create(
        self,
        warehouse: Path,
        database: str,
        table: str,
        fields: list[tuple[str, str, bool]],
        *,
        primary_keys: list[str] | None = None,
        partition_keys: list[str] | None = None,
        options: dict[str, str] | None = None,
    ) -> None:
        """Create a table, and its database if needed, from columns given as (name, Paimon type text, nullable)."""
        self._process.ask(
            "create",
            **_named(warehouse, database, table),
            fields=json_fields(fields),
            primary_keys=primary_keys or [],
            partition_keys=partition_keys or [],
            options=options or {},
        )

    def read(
        self,
        warehouse: Path,
        database: str,
        table: str,
        *,
        snapshot: int | None = None,
        tag: str | None = None,
        columns: list[str] | None = None,
        equal: Row | None = None,
        options: dict[str, str] | None = None,
    ) -> list[Row]:
        """Read the latest state, or a snapshot or tag; `equal` keeps the rows with these values in these columns."""
        travel = dict(options or {})
        if snapshot is not None:
            travel["scan.snapshot-id"] = str(snapshot)
        if tag is not None:
            travel["scan.tag-name"] = tag
        command = {**_named(warehouse, database, table), "columns": columns, "options": travel}
        return self._read(command, equal)

    def append(
        self,
        warehouse: Path,
        database: str,
        table: str,
        rows: Rows,
        *,
        kinds: list[str] | None = None,
        options: dict[str, str] | None = None,
    ) -> None:
        """Commit rows on top of an existing table in one commit; `kinds` gives the row kind of each, else all +I."""
        plain = rows_in_order(rows)
        if kinds is not None and len(kinds) != len(plain):
            raise ValueError(f"{len(kinds)} kinds for {len(plain)} rows")
        self._append({**_named(warehouse, database, table), "options": options or {}}, plain, kinds)

    def delete(self, warehouse: Path, database: str, table: str, rows: Rows) -> None:
        """Commit the deletion of these whole rows from a primary-key table."""
        plain = rows_in_order(rows)
        self.append(warehouse, database, table, plain, kinds=["-D"] * len(plain))

    def _read(self, command: dict[str, Any], equal: Row | None) -> list[Row]:
        raise NotImplementedError

    def _append(self, command: dict[str, Any], rows: list[Row], kinds: list[str] | None) -> None:
        raise NotImplementedError

    def _file(self, name: str) -> Path:
        return Path(self._scratch.name) / name


class _ArrowJudge(Judge):
    """A judge that runs in Python and exchanges Arrow files."""

    def _read(self, command: dict[str, Any], equal: Row | None) -> list[Row]:
        if equal is not None:
            fields = _fields_of(command)
            chosen = arrow_schema([field for field in fields if field["name"] in equal])
            command["equal"] = self._write("equal.arrow", arrow_table([equal], chosen))
        return self._ask_for_rows("read", command)

    def _append(self, command: dict[str, Any], rows: list[Row], kinds: list[str] | None) -> None:
        table = arrow_table(rows, arrow_schema(_fields_of(command)))
        codes = None if kinds is None else [KIND_CODES[kind] for kind in kinds]
        self._process.ask("append", **command, **{"in": self._write("in.arrow", table)}, kinds=codes)

    def _ask_for_rows(self, do: str, command: dict[str, Any]) -> list[Row]:
        out = self._file("out.arrow")
        self._process.ask(do, **command, out=str(out))
        with pa.OSFile(str(out)) as source:
            return canonical_rows(pa.ipc.open_file(source).read_all())

    def _write(self, name: str, table: pa.Table) -> str:
        path = str(self._file(name))
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        return path


class PypaimonJudge(_ArrowJudge):
    """pypaimon. Row kinds other than +I reach it only through a `rowkind.field` column of the table."""

    def read_changes(self, warehouse: Path, database: str, table: str, *, after: int, until: int) -> list[Row]:
        """What the table's producer told of snapshots (after, until], with the kind in column `rowkind`."""
        command = {**_named(warehouse, database, table), "after": after, "until": until}
        return self._ask_for_rows("read_changes", command)


class RustJudge(_ArrowJudge):
    """The Rust implementation through its Python binding."""

    def read_changes(
        self, warehouse: Path, database: str, table: str, *, after: int, until: int, mode: str = "auto"
    ) -> list[Row]:
        """Rows changed in snapshots (after, until], with their kind in column `rowkind`.

        `mode` is `delta` (appended files), `changelog` (changelog files) or `auto` (as the table's producer says).
        """
        command = {**_named(warehouse, database, table), "after": after, "until": until, "mode": mode}
        return self._ask_for_rows("read_changes", command)


class JavaJudge(Judge):
    """Paimon Java, the implementation the others follow, in one of its releases."""

    @property
    def release(self) -> int:
        """The first number of the release: some faults of the first are mended in the second."""
        return int(self.version()["version"].split(".")[0])

    def read_changes(
        self, warehouse: Path, database: str, table: str, *, after: int, until: int, mode: str = "auto"
    ) -> list[Row]:
        """Rows changed in snapshots (after, until], with their kind in column `rowkind`.

        `mode` is `delta` (appended files), `changelog` (changelog files), `diff` (compare the two states) or `auto`.
        """
        options = {"incremental-between": f"{after},{until}", "incremental-between-scan-mode": mode}
        return self.read(warehouse, database, f"{table}$audit_log", options=options)

    def overwrite(self, warehouse: Path, database: str, table: str, rows: Rows) -> None:
        """Replace the table, or the partitions that occur in the rows, in one commit."""
        self._append({**_named(warehouse, database, table), "overwrite": True}, rows_in_order(rows), None)

    def compact(self, warehouse: Path, database: str, table: str, *, full: bool = True) -> None:
        """Compact every bucket that holds files; a table without buckets has its small files rewritten."""
        self._process.ask("compact", **_named(warehouse, database, table), full=full)

    def create_tag(self, warehouse: Path, database: str, table: str, name: str, snapshot: int | None = None) -> None:
        """Tag a snapshot, the latest one by default."""
        self._process.ask("create_tag", **_named(warehouse, database, table), name=name, snapshot=snapshot)

    def look_after(self, warehouse: Path, database: str, table: str, how: str, **arguments: Any) -> Any:
        """Tags, branches, rollback, orphans or statistics, by one method of the engine."""
        return self._process.ask("look_after", **_named(warehouse, database, table), how=how, **arguments)

    def buckets(self, warehouse: Path, database: str, table: str, rows: Rows) -> list[int]:
        """The bucket into which the engine would write each of these whole rows of a fixed-bucket table."""
        answer: list[int] = self._process.ask("buckets", **_named(warehouse, database, table), rows=rows_in_order(rows))
        return answer

    def binary_rows(
        self,
        fields: list[tuple[str, str, bool]],
        rows: Rows,
        *,
        num_buckets: int = 1,
        bucket_function: str = "default",
    ) -> list[dict[str, Any]]:
        """Encode rows as the engine does for metadata.

        Each answer has `hex` (as in keys and partitions, with the arity in front), `stats_hex` (the second encoder,
        used for column statistics), `hash` of the row and its `bucket` out of `num_buckets`.
        """
        answer: list[dict[str, Any]] = self._process.ask(
            "binary_rows",
            fields=json_fields(fields),
            rows=rows_in_order(rows),
            num_buckets=num_buckets,
            bucket_function=bucket_function,
        )
        return answer

    def _read(self, command: dict[str, Any], equal: Row | None) -> list[Row]:
        out = self._file("out.jsonl")
        self._process.ask("read", **command, filter=equal, out=str(out))
        with out.open(encoding="utf-8") as lines:
            return canonical_rows([json.loads(line, object_hook=_with_map) for line in lines])

    def _append(self, command: dict[str, Any], rows: list[Row], kinds: list[str] | None) -> None:
        lines = zip(kinds or ["+I"] * len(rows), rows, strict=True)
        source = self._file("in.jsonl")
        source.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        self._process.ask("append", **command, **{"in": str(source)})


def _named(warehouse: Path, database: str, table: str) -> dict[str, Any]:
    return {"warehouse": str(warehouse), "database": database, "table": table}


def _fields_of(command: dict[str, Any]) -> list[dict[str, Any]]:
    return latest_fields(Path(command["warehouse"]), command["database"], command["table"])


def _with_map(node: dict[str, Any]) -> Any:
    """JSON cannot tell a map from an array of arrays, so the Java process marks its maps."""
    return sorted_entries(node["$map"]) if node.keys() == {"$map"} else node


JUDGES: dict[str, type[Judge]] = {"pypaimon": PypaimonJudge, "rust": RustJudge, "java": JavaJudge, "java2": JavaJudge}
