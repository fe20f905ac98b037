"""What is left to the night exists: a test that got another name would come back to the day unseen."""

from pathlib import Path

import pytest
from tests.shares import BY_NIGHT, ONE_IN, by_night

TESTS = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("test", sorted({*BY_NIGHT, *ONE_IN}))
def test_what_is_left_to_the_night_exists(test: str) -> None:
    """Every name is that of a test."""
    file, _, name = test.partition("::")
    assert f"def {name}(" in (TESTS / file).read_text(encoding="utf-8")


def test_some_cases_stay_by_day() -> None:
    """Of every test of which the day has a share, some case is left; one that is asked for alone runs."""
    test, share = max(ONE_IN.items(), key=lambda entry: entry[1])
    cases = [f"tests/{test}[{number}]" for number in range(10 * share)]
    assert len(by_night(cases)) == len(cases) - 10
    assert not by_night(cases[:1])
    assert by_night(sorted(f"tests/{name}" for name in BY_NIGHT)) == {f"tests/{name}" for name in BY_NIGHT}
