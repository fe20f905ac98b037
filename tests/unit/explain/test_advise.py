"""`t.advise()`: what other settings would have cost, against runs that really had them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lakebed
from lakebed.cli.main import main
from lakebed.definition.context import TableContext
from lakebed.errors import InvalidArgument, InvalidOption
from lakebed.explain.advise.advice import advise
from lakebed.explain.advise.overlap import ALL_NEW, Merge, error, fit
from lakebed.explain.advise.workload import Figures, read_workload

Rows = Iterator[pa.Table]


def rows(keys: Any, rng: np.random.Generator) -> pa.Table:
    """Rows of some keys, with a partition that follows from the key and values that are worth compressing."""
    keys = np.asarray(keys)
    texts = pa.array([f"{each:x} of {each % 100}" for each in rng.integers(0, 2**40, len(keys))])
    return pa.table({"p": keys % 3, "k": keys, "a": rng.integers(0, 10**6, len(keys)), "s": texts})


def upserts(commits: int, size: int) -> Rows:
    """Many small upserts over all keys."""
    rng = np.random.default_rng(1)
    for _ in range(commits):
        yield rows(rng.choice(size * 12, size, replace=False), rng)


def appends(commits: int, size: int) -> Rows:
    """New keys in the order of time, more at one time than at another."""
    rng, at = np.random.default_rng(2), 0
    for _ in range(commits):
        count = int(rng.integers(size // 2, size * 2))
        yield rows(np.arange(at, at + count), rng)
        at += count


def hot_keys(commits: int, size: int) -> Rows:
    """A load of everything, then updates of which most hit a few keys."""
    rng, count = np.random.default_rng(3), size * 20
    yield rows(np.arange(count), rng)
    for _ in range(commits):
        yield rows(np.unique((count * rng.random(size) ** 6).astype(int)), rng)


def made(
    lake: lakebed.Lake, name: str, batches: Rows, options: dict[str, str], *, parts: bool = False
) -> lakebed.Table:
    """A table with a history."""
    key = ["p", "k"] if parts else ["k"]
    columns = {"p": "BIGINT", "k": "BIGINT", "a": "BIGINT", "s": "STRING"}
    table = lake.create_table(name, columns, primary_key=key, partition_by=["p"] if parts else None, options=options)
    for batch in batches:
        table.write(batch)
    return table


def context_of(table: lakebed.Table) -> TableContext:
    """What the table is made of."""
    return table._opened.current()


def really(table: lakebed.Table) -> Figures:
    """What the history of a table has cost."""
    context = context_of(table)
    return read_workload(context, context.stores.snapshots.latest(), 0).real


def apart(told: Figures, real: Figures) -> dict[str, float]:
    """How far a forecast is off."""
    return {
        name: abs(getattr(told, name) / getattr(real, name) - 1)
        for name in ("write_amplification", "mean_files", "mean_bytes", "runs")
    }


def check_forecast(
    lake: lakebed.Lake, batches: Callable[[], Rows], options: dict[str, str], *, parts: bool = False, reads: float = 24
) -> None:
    """What is advised costs what was forecast, once a table really is set so."""
    table = made(lake, "t", batches(), options, parts=parts)
    advice = table.advise(reads=reads)
    assert advice.advised is not None, advice
    assert max(apart(advice.today.figures, really(table)).values()) < 0.15, advice
    other = made(lake, "other", batches(), {**options, **advice.advised.setting}, parts=parts)
    told, real = advice.advised.figures, really(other)
    assert max(apart(told, real).values()) < 0.25, (advice.advised.setting, told, real)


def test_a_forecast(lake: lakebed.Lake) -> None:
    """Upserts over all keys: the advised settings, really tried, cost what was forecast."""
    check_forecast(lake, lambda: upserts(22, 150), {"bucket": "1", "num-sorted-run.compaction-trigger": "8"})


@pytest.mark.nightly
@pytest.mark.parametrize("reads", [0.0, 240.0], ids=["for writers", "for readers"])
@pytest.mark.parametrize(
    ("batches", "parts"), [(upserts, False), (appends, False), (hot_keys, True)], ids=["upserts", "appends", "hot keys"]
)
def test_forecasts(lake: lakebed.Lake, batches: Callable[[int, int], Rows], parts: bool, reads: float) -> None:
    """Three histories of 60 commits, advised for those who write and for those who read."""
    check_forecast(lake, lambda: batches(60, 800), {"bucket": "2"}, parts=parts, reads=reads)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "setting",
    [
        {"bucket": "1"},
        {"bucket": "4"},
        {"num-sorted-run.compaction-trigger": "3"},
        {"num-sorted-run.compaction-trigger": "10"},
        {"compaction.max-size-amplification-percent": "50"},
        {"changelog-producer": "lookup"},
        {"changelog-producer": "full-compaction"},
        {"deletion-vectors.enabled": "true"},
        {"write-only": "true"},
    ],
    ids=lambda setting: " ".join(setting.values()),
)
@pytest.mark.parametrize(
    ("batches", "parts"), [(upserts, False), (appends, False), (hot_keys, True)], ids=["upserts", "appends", "hot keys"]
)
def test_every_setting(
    lake: lakebed.Lake, batches: Callable[[int, int], Rows], parts: bool, setting: dict[str, str]
) -> None:
    """Whatever is tried costs what was forecast."""
    table = made(lake, "t", batches(40, 600), {"bucket": "2"}, parts=parts)
    told = next(each for each in table.advise(settings=[setting]).trials if each.setting == setting).figures
    real = really(made(lake, "other", batches(40, 600), {"bucket": "2", **setting}, parts=parts))
    assert max(apart(told, real).values()) < 0.25, (told, real)


def test_keys_that_come_again() -> None:
    """What merges have left tells how many rows others will leave: hot keys, cold ones and new ones."""
    rng = np.random.default_rng(0)
    hot = [np.unique((20_000 * rng.random(900) ** 5).astype(int)) for _ in range(39)]
    commits = [np.arange(20_000), *(np.append(each, 20_000 + 50 * n + np.arange(50)) for n, each in enumerate(hot))]
    counts = {n: len(each) for n, each in enumerate(commits)}
    merges = [
        Merge(
            tuple((frozenset([n]), counts[n]) for n in range(at, at + 5)),
            len(set(np.concatenate(commits[at : at + 5]))),
        )
        for at in range(0, 40, 5)
    ]
    before = len(set(np.concatenate(commits[:20])))
    runs = ((frozenset(range(20)), before), *((frozenset([n]), counts[n]) for n in range(20, 25)))
    merges.append(Merge(runs, len(set(np.concatenate(commits[:25])))))
    found = fit(counts, merges)
    missed = error(found, counts, merges)
    assert missed is not None
    assert missed < 0.02
    draws = {n: found.draws_of(count) for n, count in counts.items()}
    for begin, end in ((0, 40), (10, 40), (1, 15), (30, 33)):
        left = len(set(np.concatenate(commits[begin:end])))
        assert found.distinct(sum(draws[n] for n in range(begin, end))) == pytest.approx(left, rel=0.1), (begin, end)
    assert fit(counts, []) is ALL_NEW


def test_what_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The commands set what is advised; what a change needs stands beside it; JSON has all of it."""
    lake_at = str(tmp_path / "lake")
    lake = lakebed.connect(lake_at)
    table = made(lake, "t", upserts(22, 40), {"bucket": "2"})
    settings = [{"bucket": "1"}, {"num-sorted-run.compaction-trigger": "3"}, {"changelog-producer": "full-compaction"}]
    advice = table.advise(settings=settings, reads=500)
    assert [dict(each.setting) for each in advice.trials[:1]] == [{}]
    assert advice.advised is not None
    assert dict(advice.advised.setting) == {"bucket": "1"}
    assert advice.commands == (
        "ALTER TABLE default.t SET ('bucket' = '1')",
        "CALL sys.rescale(`table` => 'default.t', bucket_num => 1)",
    )
    assert "until it is rescaled" in advice.regards[0]
    producer = next(each for each in advice.trials if "changelog-producer" in each.setting)
    assert producer.needs == "compaction first"
    assert advice.sureness == "good"
    shown = repr(advice)
    for said in ("as it was", "as today, replayed", "  *  bucket = 1", "how sure: good; ", *advice.commands):
        assert said in shown
    assert "<code>ALTER TABLE" in advice._repr_html_()
    assert main(["--warehouse", lake_at, "advise", "t", "--set", "bucket=1", "--reads", "500", "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["advised"] == {"bucket": "1"}
    assert told["trials"][1]["needs"] == "rescale"
    assert main(["--warehouse", lake_at, "advise", "t", "--set", "bucket=1"]) == 0
    assert "how sure: good" in capsys.readouterr().out
    called = lake.sql("CALL sys.advise(`table` => 't', reads => 500)").collect()
    assert [each["settings"] for each in called if each["advised"]]
    assert all(each["commands"].startswith("ALTER TABLE") for each in called if each["advised"])
    for each in ({"bucket": "many"}, {"compaction.size-ratoi": "1"}):
        with pytest.raises(InvalidOption):
            table.advise(settings=[each])
    with pytest.raises(InvalidArgument, match="days"):
        table.advise(days=0)


def test_too_little_to_say(lake: lakebed.Lake) -> None:
    """Nothing written, little written, nothing merged: it is said."""
    table = lake.create_table("t", {"k": "BIGINT", "a": "BIGINT"}, primary_key=["k"], options={"bucket": "1"})
    assert table.advise().sureness == "none"
    assert "nothing was written" in repr(table.advise())
    assert "nothing was written" in table.advise()._repr_html_()
    table.write(pa.table({"k": [1], "a": [1]}))
    advice = table.advise()
    assert advice.sureness == "poor"
    assert any("nothing was merged yet" in each for each in advice.reasons)
    assert any("1 commit" in each for each in advice.reasons)


def test_without_a_key(lake: lakebed.Lake) -> None:
    """Files of a table without a key are joined as its buckets join them."""
    batch = pa.table({"a": list(range(500))})
    for name, enough in (("t", "5"), ("other", "10")):
        options = {"bucket": "1", "bucket-key": "a", "compaction.min.file-num": enough}
        table = lake.create_table(name, {"a": "BIGINT"}, options=options)
        for _ in range(24):
            table.write(batch)
    table = lake.table("t")
    advice = table.advise(settings=[{"compaction.min.file-num": "10"}])
    assert max(apart(advice.today.figures, really(table)).values()) < 0.1
    assert max(apart(advice.trials[1].figures, really(lake.table("other"))).values()) < 0.2


def test_the_middle_of_a_history(lake: lakebed.Lake) -> None:
    """What was there before the days that are asked for is where the replay starts."""
    table = made(lake, "t", upserts(24, 60), {"bucket": "1"})
    context = context_of(table)
    snapshots = list(context.stores.snapshots.newest_first())
    since_ms = snapshots[len(snapshots) // 2].time_millis
    workload = read_workload(context, snapshots[0], since_ms)
    assert workload.base
    assert 8 <= len(workload.writes) <= 15
    assert workload.real.mean_bytes == pytest.approx(workload.real.size_bytes, rel=0.7)
    whole = read_workload(context, snapshots[0], 0)
    assert len(whole.writes) == 24
    assert whole.real.files == workload.real.files == len(table.scan().files)
    table.expire_snapshots(retain_max=8, retain_min=8, older_than="2100-01-01 00:00:00")
    cut = read_workload(context_of(table), table.latest_snapshot(), 0)
    assert cut.is_cut
    assert advise(context_of(table), table.latest_snapshot()).today.figures.files == pytest.approx(
        whole.real.files, abs=2
    )
