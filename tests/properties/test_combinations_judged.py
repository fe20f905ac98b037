"""Tables of the combination machine as other implementations see them: pypaimon and both releases of Paimon Java.

What the judges can not read is in `judged.LIMITS` with its reason. More of it, of other seeds:
`python -m tests.properties.combinations --seed 7 --judge pypaimon --judge java --judge java2`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.compat.judges.at_hand import prepared
from tests.properties.combinations import judged
from tests.properties.combinations.configuration import Configuration
from tests.properties.combinations.findings import Finding
from tests.properties.combinations.machine import Machine, Operation
from tests.properties.combinations.runs import run_history

pytestmark = pytest.mark.compat

HISTORIES, LENGTH = 8, 12
LONG_CHUNKS, LONG_HISTORIES, LONG_LENGTH = 8, 50, 40


def _run(names: Sequence[str], seeds: range, length: int) -> judged.Verdicts:
    for name in names:
        prepared(name)
    verdicts = judged.Verdicts()
    for seed in seeds:
        outcome = run_history(seed, length, judges=names)
        assert outcome.finding is None, outcome.text()
        verdicts.add(outcome.verdicts)
    return verdicts


@pytest.mark.parametrize(("name", "start"), [("pypaimon", 20_000), ("java2", 20_100)])
def test_judges_read_combinations(name: str, start: int) -> None:
    """Rows of now and then, and changes, of eight random tables are the same to a judge as they are here."""
    verdicts = _run([name], range(start, start + HISTORIES), LENGTH)
    assert verdicts.asked[name, "rows"] > HISTORIES
    assert verdicts.asked[name, "changes"]


@pytest.mark.nightly
@pytest.mark.timeout(7200)
def test_judges_read_combinations_for_a_night() -> None:
    """400 random tables before all judges; and every limit of theirs is met, so that none is there without need."""
    verdicts = judged.Verdicts()
    for chunk in range(LONG_CHUNKS):
        start = 30_000 + chunk * LONG_HISTORIES
        verdicts.add(_run(judged.NAMES, range(start, start + LONG_HISTORIES), LONG_LENGTH))
    met = {reason for _, reason in verdicts.left_out}
    assert met == {limit.reason for limit in judged.LIMITS}


@pytest.fixture
def small() -> Iterator[Machine]:
    """A table with two rows."""
    machine = Machine(Configuration({"k": "INT NOT NULL", "v": "INT"}, ("k",), (), {"bucket": "1"}))
    machine.run(Operation("write", {"rows": [{"k": 1, "v": 1}, {"k": 2, "v": 2}]}))
    yield machine
    machine.close()


def test_a_row_that_only_one_side_shows_is_found(small: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Judging can fail: a row less here than there is told."""
    prepared("pypaimon")
    ours = judged._ours
    judged.judge(small, ["pypaimon"], judged.Verdicts())
    monkeypatch.setattr(judged, "_ours", lambda exhibit: ours(exhibit)[1:])
    with pytest.raises(Finding, match="pypaimon reads other rows"):
        judged.judge(small, ["pypaimon"], judged.Verdicts())


def test_an_error_that_is_no_known_limit_is_found(small: Machine) -> None:
    """A table that a judge can not read for a reason that nobody wrote down is told, and not left out."""
    prepared("pypaimon")
    for file in small.open().scan().files:
        next(Path(small.url).rglob(file.file_name)).unlink()
    with pytest.raises(Finding, match="pypaimon can not read rows"):
        judged.judge(small, ["pypaimon"], judged.Verdicts())
