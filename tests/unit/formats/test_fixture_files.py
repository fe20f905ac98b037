"""Data files that other implementations wrote, found through their tables' schema files."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from lakebed.formats import FORMATS, format_of_file
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


@pytest.mark.skipif(not FILES, reason="fixtures are not there")
@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.relative_to(FIXTURES).parts[3]}-{p.name[:13]}{p.suffix}")
def test_files_of_other_writers_can_be_read(path: Path) -> None:
    """Every fixture file yields all of its rows in the Arrow types of a schema of its table."""
    with pa.OSFile(str(path)) as source, format_of_file(path.name).open_reader(source, str(path)) as reader:
        matching = [s for s in schemas_of(path) if {f.name for f in s} & set(reader.column_names)]
        fields = [*SYSTEM, *(matching[0])]
        batches = [batch for _, batch in reader.read(fields)]
        assert sum(batch.num_rows for batch in batches) == reader.row_count > 0
        for batch in batches:
            batch.validate(full=True)
            assert batch.schema.types == to_arrow_schema(fields).types


def test_java_rows_are_right() -> None:
    """Values of a Java file with all types, INT96 timestamps included, equal what its own readers see."""
    table = FIXTURES / "java-0.9.0/warehouse/default.db/j_all"
    if not table.is_dir():
        pytest.skip("fixtures are not there")
    expected = json.loads((table.parent / "j_all.expected.json").read_text())
    path = max(table.glob("bucket-0/*.parquet"), key=lambda p: p.stat().st_mtime)
    ids = {row["id"] for row in expected["rows"]}
    for path in table.glob("bucket-0/*.parquet"):
        with pa.OSFile(str(path)) as source:
            rows = pa.Table.from_batches(
                [b for _, b in FORMATS["parquet"].open_reader(source, "x").read(schemas_of(path)[0])]
            )
        if set(rows["id"].to_pylist()) == ids:
            break
    else:
        pytest.fail("no file holds the final rows")
    by_id = {row["id"]: row for row in expected["rows"]}
    stamps = [f.name for f in schemas_of(path)[0] if lt.is_root(f.type, lt.TIMESTAMPS)]
    assert stamps
    for row in rows.to_pylist():
        for name in stamps:
            stored = row[name]
            text = None if stored is None else stored.isoformat()
            assert text == by_id[row["id"]][name], name
