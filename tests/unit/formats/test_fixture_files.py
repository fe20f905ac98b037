"""Data files that other implementations wrote, found through their tables' schema files."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pyarrow as pa
import pytest

from lakebed.errors import CorruptFile
from lakebed.formats import format_of_file
from lakebed.types import logical as lt
from lakebed.types.arrow import to_arrow_schema
from lakebed.types.logical import DataField

FIXTURES = Path(__file__).parents[2] / "fixtures"
FILES = sorted(
    path
    for path in FIXTURES.glob("*/warehouse/default.db/*/**/*.*")
    if path.suffix in (".parquet", ".orc", ".avro") and path.name.startswith(("data-", "changelog-"))
)
SYSTEM = [DataField(2147483646, "_SEQUENCE_NUMBER", lt.BIGINT), DataField(2147483645, "_VALUE_KIND", lt.TINYINT)]


def schemas_of(path: Path) -> list[list[DataField]]:
    root = next(parent for parent in path.parents if (parent / "schema").is_dir())
    bodies = [json.loads(file.read_text()) for file in sorted((root / "schema").iterdir())]
    return [[DataField.from_json(body) for body in each["fields"]] for each in bodies]


def rows_of(path: Path, fields: list[DataField]) -> pa.Table:
    with pa.OSFile(str(path)) as source, format_of_file(path.name).open_reader(source, str(path)) as reader:
        batches = [batch for _, batch in reader.read(fields)]
        assert sum(batch.num_rows for batch in batches) == reader.row_count > 0
        return pa.Table.from_batches(batches)


def fitting_schema(path: Path) -> list[DataField]:
    """Manifests, which say a file's schema, are out of scope here: the first one that fits is good enough."""
    with pa.OSFile(str(path)) as source:
        names = set(format_of_file(path.name).open_reader(source, str(path)).column_names)
    for fields in schemas_of(path):
        if {f.name for f in fields} <= names or names < {f.name for f in fields}:
            with contextlib.suppress(CorruptFile):
                rows_of(path, fields)
                return fields
    pytest.fail("no schema fits")


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.relative_to(FIXTURES).parts[3]}-{p.name[:13]}{p.suffix}")
def test_files_of_other_writers_can_be_read(path: Path) -> None:
    """Every fixture file yields all of its rows in the Arrow types of a schema of its table."""
    fields = [*SYSTEM, *fitting_schema(path)]
    rows = rows_of(path, fields)
    rows.validate(full=True)
    assert rows.schema.types == to_arrow_schema(fields).types


def test_all_kinds_of_fixture_are_there() -> None:
    """The fixtures cover the three formats, so the test above proves something."""
    assert {path.suffix for path in FILES} == {".parquet", ".orc", ".avro"}


def test_java_timestamps_are_right() -> None:
    """All timestamps of a compacted Java file, INT96 included, equal what another reader sees."""
    table = FIXTURES / "java-0.9.0/warehouse/default.db/j_all"
    rows = json.loads((table.parent / "j_all.expected.json").read_text())["rows"]
    fields = schemas_of(table / "bucket-0")[0]
    stamps = [f.name for f in fields if lt.is_root(f.type, lt.TIMESTAMPS)]
    expected = {row["id"]: [row[name] for name in stamps] for row in rows}
    seen = []
    for path in table.glob("bucket-0/*.parquet"):
        found = rows_of(path, fields).to_pylist()
        seen.append({row["id"]: [row[name] and row[name].isoformat() for name in stamps] for row in found})
    assert any(name.endswith("9") for name in stamps)
    assert expected in seen
