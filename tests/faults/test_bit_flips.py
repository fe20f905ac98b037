"""One flipped bit in any file of any table: reads are right or refused, and writes and compactions launder nothing.

The machine is `flipped_bits`; flips are dealt out evenly to the kinds of files of a table, so that small files get as
many as large ones. The default run takes a few tables that have all kinds of files among them; the nightly one takes
every kind of table in every format.
"""

from __future__ import annotations

import random
import warnings
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.faults.flip_workers import Flip, run
from tests.faults.flipped_bits import (
    FORMATS,
    KINDS,
    NOT_GUARDED,
    build,
    combinations,
    files_of,
    kind_of_file,
)

FEW = [
    ("append-indexed", "orc"),
    ("append-deleted", "avro"),
    ("keyed-dynamic", "parquet"),
    ("keyed-lookup", "orc"),
    ("keyed-plain-manifests", "avro"),
    ("keyed-deleted", "parquet"),
    ("keyed-streamed", "avro"),
]
KINDS_OF_FILES = {
    *(f"data.{name}" for name in (*FORMATS, "index")),
    *(f"{folder} file" for folder in ("index", "statistics", "consumer")),
    *("snapshot hint", "changelog hint", "snapshot", "changelog", "schema", "tag"),
    *("manifest-list", "manifest", "index-manifest", "changelog.orc", "changelog.avro"),
}
"""What is hit at least."""


def _flips(warehouse: Path, count: int, chance: random.Random) -> list[Flip]:
    files: dict[str, list[Path]] = defaultdict(list)
    for path in files_of(warehouse):
        if path.stat().st_size:
            files[kind_of_file(path)].append(path)
    flips = []
    for number in range(count):
        path = chance.choice(files[sorted(files)[number % len(files)]])
        bit = chance.randrange(path.stat().st_size * 8)
        # Every third flip is written upon; as kinds of files take turns, each kind is, in time.
        flips.append(Flip(warehouse, str(path.relative_to(warehouse)), bit, deeds=chance.random() < 1 / 3))
    return flips


def _run(tmp_path: Path, tables: Sequence[tuple[str, str]], per_table: int, workers: int, seed: int) -> set[str]:
    """Flips bits of these tables; the kinds of files that were hit."""
    chance = random.Random(seed)
    flips = []
    for kind, file_format in tables:
        warehouse = tmp_path / f"{kind}-{file_format}"
        build(warehouse, kind, file_format)
        flips += _flips(warehouse, per_table, chance)
    results = run(flips, tmp_path / "scratch", workers)
    bad = [(str(result.flip.sound.name), result.flip.file, result.flip.bit, result.bad()) for result in results]
    assert [entry for entry in bad if entry[-1]] == []
    outcomes = [outcome for result in results for _, outcome in result.outcomes]
    assert outcomes.count("refused") > len(flips) / 2
    return {kind_of_file(Path(flip.file)) for flip in flips}


def test_flips_in_few_tables(tmp_path: Path) -> None:
    """Every kind of file is hit; no flip gives other rows, another error, or a write that hides the damage."""
    assert _run(tmp_path, FEW, per_table=24, workers=1, seed=1) >= KINDS_OF_FILES


@pytest.mark.nightly
@pytest.mark.timeout(4 * 3600)
def test_flips_in_all_tables(tmp_path: Path) -> None:
    """5,000 flips and more over every kind of table in every format."""
    tables = combinations()
    assert len(tables) * 90 >= 5000
    _run(tmp_path, tables, per_table=90, workers=2, seed=random.SystemRandom().randrange(1 << 32))


@pytest.mark.parametrize(("kind", "file_format"), sorted(NOT_GUARDED))
def test_what_is_not_guarded_is_said_by_name(tmp_path: Path, kind: str, file_format: str) -> None:
    """A table whose data files have no place for checksums is made with a warning that names both options."""
    with pytest.warns(UserWarning, match=r"`file\.format` = `avro` with `file\.compression` = `none`"):
        build(tmp_path, kind, file_format)


def test_what_is_guarded_needs_no_warning(tmp_path: Path) -> None:
    """The same table with any other compression is made in silence."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for number, kind in enumerate(("keyed", "keyed-snappy", "keyed-deflated")):
            assert kind in KINDS
            build(tmp_path / str(number), kind, "avro")
