"""Compressions of manifests, and compressions in names of data files: every judge reads them."""

from pathlib import Path

import pytest

from . import ours
from .judges import Judge, assert_same_rows


@pytest.mark.parametrize("judge_name", ["java", "pypaimon", "rust"])
@pytest.mark.parametrize("codec", ["zstd", "deflate", "snappy", "null"])
def test_every_judge_reads_it(codec: str, judge_name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Rows behind manifests of each compression, in files that name theirs, are found by all."""
    judge: Judge = request.getfixturevalue(f"{judge_name}_judge")
    options = {"manifest.compression": codec, "file.suffix.include.compression": "true"}
    table = ours.create(tmp_path, "t", {"id": "INT"}, options=options)
    for number in range(3):
        ours.write(table, [{"id": number}])
    assert all(file.file_name.endswith(".zst.parquet") for file in table.scan().files)
    assert_same_rows(judge.read(tmp_path, "db", "t"), [{"id": 0}, {"id": 1}, {"id": 2}])
