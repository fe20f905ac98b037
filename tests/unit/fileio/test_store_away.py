"""A store that is away for a while, asks to slow down, or loses its answers: asked again, until a deadline."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import pytest

from lakebed.errors import OutcomeUnknown, StorageError
from lakebed.fileio.base import FileIO
from lakebed.testing.s3_server import S3State

SOON = {"s3.retry-interval": "20 ms", "s3.retry-max-interval": "50 ms"}
AWAY_SECONDS = 0.15

ACTS: dict[str, Callable[[FileIO, str], object]] = {
    "read": lambda io, root: io.read_bytes(f"{root}/f"),
    "range": lambda io, root: io.open_input(f"{root}/f").read(),
    "size": lambda io, root: io.size(f"{root}/f"),
    "exists": lambda io, root: io.exists(f"{root}/none"),
    "list": lambda io, root: [status.name for status in io.list_directory(root)],
    "walk": lambda io, root: [status.name for status in io.list_recursive(root)],
    "write": lambda io, root: io.write_bytes(f"{root}/new", b"x"),
    "overwrite": lambda io, root: io.overwrite(f"{root}/f", b"y"),
    "create": lambda io, root: io.create_exclusive(f"{root}/new", b"x"),
    "output": lambda io, root: _written(io, f"{root}/new", b"z" * 1000),
    "upload": lambda io, root: _written(io, f"{root}/new", b"z" * (9 << 20)),
    "delete": lambda io, root: io.delete(f"{root}/f"),
    "delete many": lambda io, root: io.delete_directory(root),
    "rename": lambda io, root: io.rename_directory(root, "elsewhere"),
}


def _written(io: FileIO, path: str, data: bytes) -> int:
    with io.open_output(path) as output:
        output.write(data)
    return output.size_bytes


@pytest.mark.parametrize(
    ("act", "how"),
    [*((act, "cut") for act in ACTS), *((act, "slow down") for act in ("read", "list", "create", "upload"))],
)
def test_store_comes_back(s3: S3State, act: str, how: str) -> None:
    """Whatever is asked gets the answer that it would have got without the outage."""
    outcomes = []
    for is_away in (False, True):
        io, root = s3.open("t", **SOON)
        s3.objects.clear()
        s3.objects["t/f"] = b"content"
        io.create_exclusive(f"{root}/proven", b"x")
        if is_away and how == "cut":
            s3.go_away(AWAY_SECONDS)
        elif is_away:
            s3.slow_down_until = time.monotonic() + AWAY_SECONDS
        started = time.monotonic()
        outcomes.append((ACTS[act](io, root), dict(s3.objects)))
        assert not is_away or time.monotonic() - started >= AWAY_SECONDS * 0.9
    assert outcomes[0] == outcomes[1]


def test_outage_in_the_middle_of_a_listing(s3: S3State) -> None:
    """Pages that were read are not read again, and none is left out or told twice."""
    s3.page_size = 250
    s3.objects |= {f"t/f{number:03}": b"x" for number in range(2500)}
    io, root = s3.open("t", **SOON)
    found = []
    for status in io.list_recursive(root):
        found.append(status.path)
        if len(found) % 1000 == 0:
            s3.go_away(0.05)
    assert found == sorted(s3.objects)


@pytest.mark.parametrize("outage_seconds", [0.0, 0.3])
def test_answers_that_are_cut_off_after_the_put(s3: S3State, outage_seconds: float) -> None:
    """INVARIANT: what was carried out although its answer got lost is our success, never somebody else's."""
    io, root = s3.open("t", **SOON)
    io.create_exclusive(f"{root}/proven", b"x")
    for number in range(5):
        s3.answers_cut = number
        assert io.create_exclusive(f"{root}/snapshot-{number}", b"ours %d" % number) is True
        s3.answers_cut = number
        io.write_bytes(f"{root}/manifest-{number}", b"m")
        if outage_seconds and number == 2:
            s3.go_away(outage_seconds)
        assert io.create_exclusive(f"{root}/snapshot-{number}", b"theirs") is False
    s3.objects["t/snapshot-9"] = b"theirs"
    s3.go_away(0.2)
    assert io.create_exclusive(f"{root}/snapshot-9", b"ours") is False


def test_deadline(s3: S3State) -> None:
    """After the deadline the error names the store, the deadline, and the option that sets it."""
    io, root = s3.open("t", **SOON, **{"s3.retry-timeout": "200 ms"})
    io.create_exclusive(f"{root}/proven", b"x")
    s3.go_away(60)
    started = time.monotonic()
    with pytest.raises(
        StorageError, match=r"(?s)s3://lakebed-test gave no answer for 200 ms.*`s3.retry-timeout`"
    ) as raised:
        io.read_bytes(f"{root}/f")
    assert time.monotonic() - started < 5
    assert "very-secret" not in str(raised.value)
    with pytest.raises(OutcomeUnknown, match="snapshot-1"):
        io.create_exclusive(f"{root}/snapshot-1", b"ours")


def test_refusals_are_not_repeated(s3: S3State) -> None:
    """Keys that are wrong today are wrong in five minutes: the error comes at once."""
    io, root = s3.open("t")
    s3.denies_everything = True
    for act in ("read", "list", "walk", "write", "delete", "output"):
        with pytest.raises(StorageError, match="credentials"):
            ACTS[act](io, root)
    assert len(s3.log) == 6


def test_waits_grow_to_the_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each wait is up to twice the one before, and the last turn is at the deadline."""
    from lakebed.fileio.patience import Patience

    now, waits = [0.0], []
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(random, "uniform", lambda low, high: high)

    def sleep(seconds: float) -> None:
        waits.append(round(seconds, 3))
        now[0] += seconds

    monkeypatch.setattr(time, "sleep", sleep)
    assert len(list(Patience(timeout_ms=5000, longest_wait_ms=1000).turns())) == len(waits) + 1
    assert waits == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0, 0.5]
    assert len(list(Patience(most_repeats=2).turns())) == 3
