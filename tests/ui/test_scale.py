"""Large lakes: pages come at once, however many tables there are and however many files one has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from benchmarks.ui_scale import BUCKETS, looked_at, made

import lakebed


def test_a_picture_of_very_many_files(tmp_path: Path) -> None:
    """All files are told: single ones as bars, the others of a level together; buckets behind come with the next."""
    lake = lakebed.connect(tmp_path / "lake")
    made(lake, 2, 24_000)
    table = lake.table("large")
    first = table.lsm()
    assert (first.file_count, first.bucket_count, len(first.buckets)) == (24_001, BUCKETS, 6)
    assert sum(len(bucket.files) for bucket in first.buckets) <= 1200
    for bucket in first.buckets:
        assert len(bucket.files) + sum(rest.file_count for rest in bucket.rest) == bucket.file_count
    assert sum(rest.size_bytes for rest in first.buckets[0].rest) + sum(
        file.size_bytes for file in first.buckets[0].files
    ) == (first.buckets[0].size_bytes)
    assert first.to_svg().count('class="rest"') == sum(len(bucket.rest) for bucket in first.buckets)
    seen = [bucket.bucket for bucket in first.buckets]
    while len(seen) < BUCKETS:
        seen += [bucket.bucket for bucket in table.lsm(offset=len(seen)).buckets]
    assert sorted(seen) == list(range(BUCKETS))


@pytest.mark.nightly
def test_a_thousand_tables_and_fifty_thousand_files(browser: Any, tmp_path: Path) -> None:
    """In the browser's own timing: painted in a second, files that were read before in two; in 300 MiB of memory."""
    made(lakebed.connect(tmp_path / "lake"), 1000, 50_000)
    runs = [looked_at(str(tmp_path / "lake"), browser) for _ in range(3)]
    best = {name: min(run[name] for run in runs) for name in runs[0]}
    assert best["tables_first_paint_s"] < 1
    assert best["files_again_shown_s"] < 2
    assert best["files_shown_s"] < 6
    assert best["server_mib"] < 300
