"""Options that another engine stored in a table, which a write, a read or a new tag would have to act upon."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import lakebed
from lakebed.checksums import unsealed
from lakebed.errors import InvalidSchema, Unsupported
from lakebed.schema.changes import SetOption

ROWS = pa.table({"a": pa.array([1], pa.int32())})


def foreign(tmp_path: Path, **options: str) -> lakebed.Table:
    """A table with a row, in whose schema file another engine put options."""
    table = lakebed.connect(tmp_path).create_table("t", ROWS.schema)
    table.write(ROWS)
    (file,) = tmp_path.glob("**/t/schema/schema-0")
    schema = json.loads(file.read_text())
    schema["options"] |= {key.replace("_", "."): value for key, value in options.items()}
    file.write_text(json.dumps(unsealed(schema)))
    return lakebed.connect(tmp_path).table("t")


def test_callbacks_of_commits_keep_us_from_writing(tmp_path: Path) -> None:
    """A write would have to call Java classes: it is refused by name, unless it is told to leave them out."""
    table = foreign(tmp_path, commit_callbacks="com.example.Notify")
    assert table.to_arrow().num_rows == 1
    with pytest.raises(Unsupported, match=r"`commit\.callbacks` = `com\.example\.Notify`") as caught:
        table.write(ROWS)
    assert "with_options" in caught.value.hint
    assert table.latest_snapshot().id == 1
    table.with_options({"commit.callbacks": ""}).write(ROWS)
    assert table.to_arrow().num_rows == 2


def test_callbacks_of_tags_keep_us_from_tagging(tmp_path: Path) -> None:
    """A new tag would have to call them; a write does not, unless it makes tags by itself."""
    table = foreign(tmp_path, tag_callbacks="com.example.Notify")
    table.write(ROWS)
    with pytest.raises(Unsupported, match=r"`tag\.callbacks`"):
        table.create_tag("x")
    assert table.tags() == {} or not table.tags()
    tagging = table.with_options({"tag.automatic-creation": "process-time", "tag.creation-period": "daily"})
    with pytest.raises(Unsupported, match=r"`tag\.callbacks`"):
        tagging.write(ROWS)
    table.with_options({"tag.callbacks": ""}).create_tag("x")


def test_what_only_tunes_is_no_matter(tmp_path: Path) -> None:
    """Options that tune other engines, or that nobody knows, keep nobody from reading and writing."""
    table = foreign(tmp_path, sink_parallelism="4", read_native_enabled="true", owner_team="x")
    table.write(ROWS)
    assert table.to_arrow().num_rows == 2


def test_video_columns_are_not_read_as_something_else(tmp_path: Path) -> None:
    """Values of such columns lie in files that we do not know: neither read nor written."""
    table = foreign(tmp_path, **{"video-frame-field": "a"})
    with pytest.raises(Unsupported, match="`video-frame-field`"):
        table.to_arrow()
    with pytest.raises(Unsupported, match="`video-frame-field`"):
        table.write(ROWS)


@pytest.mark.parametrize("name", ["csv", "json"])
def test_formats_of_text_can_be_left(name: str, tmp_path: Path) -> None:
    """Files of all formats lie side by side in a table that another engine made."""
    table = foreign(tmp_path, file_format=name)
    table.write(ROWS)
    table.with_options({"file.format": "avro"}).write(ROWS)
    table.alter(SetOption("file.format", "orc"))
    table.write(ROWS)
    assert table.to_arrow().num_rows == 4
    assert {file.suffix for file in tmp_path.glob("**/bucket-0/*")} == {".parquet", f".{name}", ".avro", ".orc"}


def test_text_that_can_not_hold_the_columns(tmp_path: Path) -> None:
    """Another engine may have said so: nothing is written until the format is another."""
    table = foreign(tmp_path, file_format="text")
    with pytest.raises(InvalidSchema, match="text files"):
        table.write(ROWS)
    assert table.latest_snapshot().id == 1
    table.alter(SetOption("file.format", "orc"))
    table.write(ROWS)
    assert table.to_arrow().num_rows == 2


def test_an_unknown_format_changes_nothing(tmp_path: Path) -> None:
    """A table of files that nobody here knows is refused before its schema is replaced, not after."""
    table = foreign(tmp_path, file_format="lance")
    with pytest.raises(Unsupported, match=r"`file\.format` = `lance`"):
        table.alter(SetOption("file.format", "orc"))
    assert [file.name for file in tmp_path.glob("**/t/schema/schema-*")] == ["schema-0"]
