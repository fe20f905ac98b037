"""Clocks and id sources: the real ones are real, the fixed ones repeat."""

import time
import uuid

from lakebed.clock import Clock, CountingIds, FixedClock, IdSource, RandomIds, SystemClock


def test_system_clock_tells_the_time_of_the_machine() -> None:
    """The system clock agrees with the operating system, in milliseconds."""
    clock: Clock = SystemClock()
    before = time.time_ns() // 1_000_000
    assert before <= clock.now_ms() <= time.time_ns() // 1_000_000


def test_system_clock_sleeps() -> None:
    """Sleeping takes at least the time asked for."""
    start = time.monotonic_ns()
    SystemClock().sleep_ms(5)
    assert time.monotonic_ns() - start >= 5_000_000


def test_fixed_clock_stands_still_without_a_step() -> None:
    """A fixed clock without a step always gives its start."""
    clock = FixedClock(1_000)
    assert [clock.now_ms() for _ in range(3)] == [1_000] * 3


def test_fixed_clock_steps_each_time() -> None:
    """A fixed clock with a step gives the start first and moves with every question."""
    clock = FixedClock(1_000, 10)
    assert [clock.now_ms() for _ in range(3)] == [1_000, 1_010, 1_020]


def test_sleeping_moves_a_fixed_clock_at_once() -> None:
    """An hour of sleep on a fixed clock moves its time and takes none."""
    clock: Clock = FixedClock(0)
    start = time.monotonic()
    clock.sleep_ms(3_600_000)
    assert clock.now_ms() == 3_600_000
    assert time.monotonic() - start < 60


def test_random_ids_are_different_uuids() -> None:
    """Random ids are UUIDs in the usual spelling and do not repeat."""
    ids: IdSource = RandomIds()
    made = {ids.new_id() for _ in range(100)}
    assert len(made) == 100
    assert all(str(uuid.UUID(text)) == text for text in made)


def test_counting_ids_repeat_from_run_to_run() -> None:
    """Two counting sources with one start give the same UUIDs in the same order."""
    first, second = CountingIds(7), CountingIds(7)
    made = [first.new_id() for _ in range(3)]
    assert made == [second.new_id() for _ in range(3)]
    assert made[0] == "00000000-0000-0000-0000-000000000007"
    assert len(set(made)) == 3
