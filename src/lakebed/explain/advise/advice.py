"""`t.advise()`: the table's own history under other settings, what they would have cost, and how to set the best.

Each setting is tried alone, then what helped most together. What a change needs is asked where ALTER asks it. How sure
all of it is shows in the settings of today: their replay is put beside what really was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lakebed.definition.context import TableContext
from lakebed.definition.file_rules import write_rules
from lakebed.definition.validate import validate_table
from lakebed.errors import InvalidArgument, LakebedError
from lakebed.explain.advise.overlap import error
from lakebed.explain.advise.replay import Knowledge, Replay
from lakebed.explain.advise.workload import Figures, Workload, read_workload
from lakebed.explain.texts import aligned, html_of, number_of
from lakebed.metadata.snapshot import Snapshot
from lakebed.options import (
    BUCKET,
    CHANGELOG_PRODUCER,
    COMPACTION_MAX_SIZE_AMPLIFICATION_PERCENT,
    COMPACTION_MIN_FILE_NUM,
    COMPACTION_SIZE_RATIO,
    DATA_EVOLUTION_ENABLED,
    DELETION_VECTORS_ENABLED,
    NUM_SORTED_RUN_COMPACTION_TRIGGER,
    SOURCE_SPLIT_OPEN_FILE_COST,
    TARGET_FILE_SIZE,
    Option,
    Options,
    check_options,
)
from lakebed.options.later import Later, changed_options
from lakebed.records import dataclass
from lakebed.units import DAY_MS, HOUR_MS, MIB, format_size, size_text

_MERGE_PENALTY = 2
"""Bytes that a read has to merge cost so much more than others: three times as much in all."""
_WORTH_IT = 0.95
"""Of the cost of today's settings: what is not cheaper than this is not advised."""
_ENOUGH_COMMITS = 20
_ENOUGH_MERGES = 3
_SHOWN_DEVIATION = {"good": 0.15, "fair": 0.35}

Setting = Mapping[str, str]


@dataclass(frozen=True)
class Trial:
    """One way to set the table, and what its history would have cost."""

    setting: Setting
    """Options that differ from today's."""
    figures: Figures
    moved_bytes_a_day: float
    """The cost: what commits, compactions and reads move in a day."""
    needs: str = ""
    """What the change asks for, if anything."""
    can_be_set: bool = True
    """Whether the table can be changed so, now that it has rows."""
    is_choice: bool = False
    """Whether it changes what the table does for others, so that cost alone does not decide."""

    @property
    def text(self) -> str:
        """The options as people write them."""
        return ", ".join(f"{key} = {value}" for key, value in self.setting.items()) or "as today, replayed"

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "settings": dict(self.setting),
            **_figures(self.figures),
            "moved_bytes_a_day": round(self.moved_bytes_a_day),
            "needs": self.needs,
            "can_be_set": self.can_be_set,
            "is_choice": self.is_choice,
        }


@dataclass(frozen=True)
class Advice:
    """What was tried, the best of it, and how sure that is."""

    table: str
    commits: int
    compactions: int
    since_ms: int
    until_ms: int
    real: Figures
    trials: tuple[Trial, ...]
    """Today's settings first, then others, the cheapest first."""
    advised: Trial | None
    """None if nothing is clearly cheaper than today's settings."""
    commands: tuple[str, ...]
    """What sets it."""
    regards: tuple[str, ...]
    """What is to be regarded before."""
    sureness: str
    """`good`, `fair`, `poor`, or `none` where there is nothing to learn from."""
    reasons: tuple[str, ...]
    """Why it is so."""
    reads: float
    """Reads of the whole table a day that the cost counts with."""

    @property
    def today(self) -> Trial:
        """The settings of today, replayed."""
        return self.trials[0]

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "table": self.table,
            "commits": self.commits,
            "compactions": self.compactions,
            "since_ms": self.since_ms,
            "until_ms": self.until_ms,
            "reads_a_day": self.reads,
            "real": _figures(self.real),
            "trials": [each.to_dict() for each in self.trials],
            "advised": None if self.advised is None else dict(self.advised.setting),
            "commands": list(self.commands),
            "regards": list(self.regards),
            "sureness": self.sureness,
            "reasons": list(self.reasons),
        }

    def __repr__(self) -> str:
        if not self.trials:
            return f"{self.table}: {self.reasons[0]}"
        return "\n".join([self._title, aligned(_HEADER, self._cells()), *self._conclusions()])

    def _repr_html_(self) -> str:
        from html import escape

        if not self.trials:
            return html_of(repr(self), (), ())
        said = "".join(f"<p><code>{escape(line)}</code></p>" for line in self.commands)
        words = "".join(f"<p>{escape(line.strip())}</p>" for line in self._conclusions() if line not in self._typed)
        return html_of(self._title, _HEADER, self._cells()) + said + words

    @property
    def _title(self) -> str:
        time = _days_text(self.until_ms - self.since_ms)
        written = size_text(self.real.written_bytes)
        return (
            f"{self.table}: {number_of(self.commits, 'commit')} of rows in {time}, {written} written, "
            f"{number_of(self.compactions, 'bucket')} compacted"
        )

    @property
    def _typed(self) -> list[str]:
        return [f"  {each}" for each in self.commands]

    def _cells(self) -> list[tuple[str, ...]]:
        lines = [("", "as it was", *_shown(self.real), "", "")]
        for trial in self.trials:
            mark = "*" if trial is self.advised else ""
            lines.append((mark, trial.text, *_shown(trial.figures), size_text(trial.moved_bytes_a_day), trial.needs))
        return lines

    def _conclusions(self) -> Iterator[str]:
        if self.advised is None:
            yield "nothing that was tried is clearly cheaper than the settings of today"
        else:
            saved = 1 - self.advised.moved_bytes_a_day / max(1.0, self.today.moved_bytes_a_day)
            yield f"* moves {saved:.0%} less than today's settings. To set it:"
            yield from self._typed
        yield from self.regards
        yield f"how sure: {self.sureness}; " + "; ".join(self.reasons)
        yield "files and size: in the mean of all snapshots; runs: of a bucket, which a read merges"
        yield f"moved a day: by commits, compactions and {self.reads:g} reads of the whole table"


_HEADER = ("", "settings", "written x", "runs", "files", "size", "moved a day", "")


def _shown(figures: Figures) -> tuple[str, ...]:
    return (
        f"{figures.write_amplification:.2f}",
        f"{figures.runs:.1f}",
        f"{figures.mean_files:.0f}",
        size_text(figures.mean_bytes),
    )


def _figures(figures: Figures) -> dict[str, float]:
    return {
        "write_amplification": round(figures.write_amplification, 3),
        "runs_per_bucket": round(figures.runs, 2),
        "files": round(figures.mean_files, 1),
        "size_bytes": round(figures.mean_bytes),
        "written_bytes": round(figures.written_bytes),
        "compacted_bytes": round(figures.compacted_bytes),
        "changelog_bytes": round(figures.changelog_bytes),
        "compactions": round(figures.compactions),
    }


def advise(
    context: TableContext,
    snapshot: Snapshot | None,
    *,
    days: float = 7,
    reads: float = 24,
    settings: Sequence[Setting] | None = None,
) -> Advice:
    """Replays the history of the last days under other settings: those given, or all that may help."""
    if days <= 0:
        raise InvalidArgument(f"days is {days!r}", hint="give a number of days, such as days=7")
    if reads < 0:
        raise InvalidArgument(f"reads is {reads!r}", hint="say how often a day the table is read as a whole")
    if context.options[DATA_EVOLUTION_ENABLED]:
        raise InvalidArgument(
            f"table `{context.name}` keeps columns in files of their own, whose compactions are not replayed",
            hint="ask about its health instead",
        )
    since_ms = context.clock.now_ms() - int(days * DAY_MS)
    workload = read_workload(context, snapshot, since_ms)
    if not workload.writes:
        said = f"nothing was written in the last {_days_text(int(days * DAY_MS))}, as far as snapshots are kept"
        return _empty(context, workload, said, reads)
    return _Trials(context, workload, reads).advice(days, settings)


def _empty(context: TableContext, workload: Workload, said: str, reads: float) -> Advice:
    span = workload.since_ms, workload.until_ms
    return Advice(context.name, 0, 0, *span, workload.real, (), None, (), (), "none", (said,), reads)


class _Trials:
    """Settings of one table, each tried once."""

    def __init__(self, context: TableContext, workload: Workload, reads: float) -> None:
        self._context = context
        self._workload = workload
        self._reads = reads
        self._knowledge = Knowledge.of(workload)
        self._days = max(HOUR_MS, workload.until_ms - workload.since_ms) / DAY_MS
        self._done: dict[tuple[tuple[str, str], ...], Trial] = {}

    def advice(self, days: float, settings: Sequence[Setting] | None) -> Advice:
        """All of it."""
        today = self._tried({})
        assert today is not None
        if settings is None:
            advised = self._best(today)
        else:
            for each in settings:
                checked = check_options(each, for_create=False, columns=self._context.schema.field_names)
                self._tried(checked, explains=True)
            advised = self._cheapest(today)
        others = sorted(
            (each for each in self._done.values() if each is not today),
            key=lambda each: (each.is_choice, not each.can_be_set, each.moved_bytes_a_day),
        )
        commands, regards = self._ways(advised) if advised is not None else ((), ())
        sureness, reasons = self._sureness(today.figures, days)
        if sureness == "poor" and advised is not None:
            regards = (*regards, "this history tells too little to change a table for: take it as a hint")
        return Advice(
            self._context.name,
            len(self._workload.writes),
            round(self._workload.real.compactions),
            self._workload.since_ms,
            self._workload.until_ms,
            self._workload.real,
            (today, *others),
            advised,
            commands,
            regards,
            sureness,
            reasons,
            self._reads,
        )

    # --- trying --------------------------------------------------------------------------------------------------

    def _best(self, today: Trial) -> Trial | None:
        """Each setting alone, then those together that help."""
        chosen: dict[str, str] = {}
        best = today
        for option, values in self._candidates():
            tried = [self._tried({option.key: value}) for value in values]
            found = min((each for each in tried if each and _is_free(each)), key=_cost, default=today)
            if found.moved_bytes_a_day >= _WORTH_IT * today.moved_bytes_a_day:
                continue
            together = self._tried({**chosen, **found.setting})
            for each in (found, together):
                if each is not None and each.moved_bytes_a_day < best.moved_bytes_a_day:
                    best, chosen = each, dict(each.setting)
        for setting in self._choices():
            self._tried(setting, is_choice=True)
        return self._cheapest(today)

    def _cheapest(self, today: Trial) -> Trial | None:
        best = min((each for each in self._done.values() if _is_free(each)), key=_cost)
        return best if best.moved_bytes_a_day < _WORTH_IT * today.moved_bytes_a_day else None

    def _candidates(self) -> Iterator[tuple[Option[Any], list[str]]]:
        """Options whose value is a matter of cost alone, with values to try."""
        options, context = self._context.options, self._context
        if context.has_key:
            trigger, amplification = NUM_SORTED_RUN_COMPACTION_TRIGGER, COMPACTION_MAX_SIZE_AMPLIFICATION_PERCENT
            yield trigger, _others(options, trigger, 3, 5, 8, 12, 20)
            yield amplification, _others(options, amplification, 100, 200, 400)
            yield COMPACTION_SIZE_RATIO, _others(options, COMPACTION_SIZE_RATIO, 1, 10)
        else:
            yield COMPACTION_MIN_FILE_NUM, _others(options, COMPACTION_MIN_FILE_NUM, 3, 5, 10)
        if options[BUCKET] > 0:
            count = options[BUCKET]
            yield BUCKET, _others(options, BUCKET, *sorted({max(1, count // 4), max(1, count // 2), 2 * count}))
        target = write_rules(context).target_size_bytes
        largest = max(self._workload.real.size_bytes, 1.0)
        sizes = [size for size in (32 * MIB, 64 * MIB, 128 * MIB, 256 * MIB, 512 * MIB) if size != target]
        # A size that no bucket reaches changes nothing.
        yield TARGET_FILE_SIZE, [format_size(size) for size in sizes if min(size, target) < largest]

    def _choices(self) -> Iterator[Setting]:
        """Settings that change what others get from the table: shown, never advised."""
        if not self._context.has_key:
            return
        options = self._context.options
        yield from ({CHANGELOG_PRODUCER.key: each} for each in _others(options, CHANGELOG_PRODUCER, *_PRODUCERS))
        yield {DELETION_VECTORS_ENABLED.key: str(not options[DELETION_VECTORS_ENABLED]).lower()}

    def _tried(self, setting: Setting, *, explains: bool = False, is_choice: bool = False) -> Trial | None:
        """What a setting would have cost; None if the table can not have it."""
        key = tuple(sorted(setting.items()))
        if key in self._done:
            return self._done[key]
        schema = replace(self._context.schema, options={**self._context.schema.options, **setting})
        options = Options({**self._context.options.raw, **setting})
        try:
            validate_table(schema, options, self._context.name)
        except LakebedError:
            if explains:
                raise
            return None
        figures = Replay(self._context.with_schema(schema, options), self._knowledge).run()
        asked = [case.later for _, case in self._changes(setting) if case.later is not Later.FREE]
        can_be_set = not any(later in (Later.EMPTY, Later.NEVER) for later in asked)
        needs = "" if not asked else asked[0].value if can_be_set else "only in a new table"
        if BUCKET.key in setting:
            needs = needs or "rescale"
        trial = Trial(dict(setting), figures, self._cost(figures), needs, can_be_set, is_choice)
        self._done[key] = trial
        return trial

    def _changes(self, setting: Setting) -> list[Any]:
        schema = self._context.schema
        after = {**schema.options, **setting}
        has_key, is_partitioned = bool(schema.primary_keys), bool(schema.partition_keys)
        return list(changed_options(schema.options, after, has_key=has_key, is_partitioned=is_partitioned))

    def _cost(self, figures: Figures) -> float:
        moved = figures.written_bytes + figures.compacted_bytes + figures.changelog_bytes + figures.read_bytes
        opened = figures.mean_files * self._context.options[SOURCE_SPLIT_OPEN_FILE_COST]
        read = figures.mean_bytes + _MERGE_PENALTY * figures.mean_merged_bytes + opened
        return moved / self._days + self._reads * read

    # --- telling -------------------------------------------------------------------------------------------------

    def _ways(self, trial: Trial) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The commands that set it, and what is to be regarded before."""
        name = self._context.name
        given = ", ".join(f"'{key}' = '{value}'" for key, value in trial.setting.items())
        commands = [f"ALTER TABLE {name} SET ({given})"]
        regards = [
            f"{change.key}: " + (f"{case.later.value}: " if case.later is not Later.FREE else "") + case.reason
            for change, case in self._changes(trial.setting)
            if case.later is not Later.FREE or change.key == BUCKET.key
        ]
        if BUCKET.key in trial.setting:
            commands.append(f"CALL sys.rescale(`table` => '{name}', bucket_num => {trial.setting[BUCKET.key]})")
            size = size_text(self._workload.real.size_bytes)
            regards.append(f"the rescale rewrites all rows ({size}), and gives way to whoever writes meanwhile")
        return tuple(commands), tuple(regards)

    def _sureness(self, today: Figures, days: float) -> tuple[str, tuple[str, ...]]:
        """How far the forecasts can be believed, and why."""
        workload, real = self._workload, self._workload.real
        apart = {
            name: abs(told - was) / max(was, 1e-9)
            for name, told, was in (
                ("bytes written", today.write_amplification, real.write_amplification),
                ("files", today.mean_files, real.mean_files),
                ("bytes stored", today.mean_bytes, real.mean_bytes),
            )
        }
        worst = max(apart, key=lambda name: apart[name])
        found = next((word for word, most in _SHOWN_DEVIATION.items() if apart[worst] <= most), "poor")
        reasons = [f"the replay of today's settings is {apart[worst]:.0%} off what was in its {worst}"]
        merges = [merge for each in workload.merges.values() for merge in each if len(merge.runs) > 1]
        if self._context.has_key:
            missed = self._missed()
            if missed is not None:
                reasons.append(f"rows left by {number_of(len(merges), 'merge')} are met within {missed:.1%}")
            if len(merges) < _ENOUGH_MERGES:
                found = "poor"
                said = "nothing was merged yet" if not merges else f"only {number_of(len(merges), 'merge')}"
                reasons.append(f"{said}, so that how many keys come again is not known")
        if len(workload.writes) < _ENOUGH_COMMITS:
            found = "poor"
            reasons.append(f"the history is short: {number_of(len(workload.writes), 'commit')}")
        if workload.is_cut:
            kept = _days_text(workload.until_ms - workload.since_ms)
            reasons.append(f"snapshots are kept for {kept} of the {days:g} days")
        if workload.odd_commits:
            reasons.append(f"{number_of(workload.odd_commits, 'commit')} replaced single rows, which is not replayed")
            found = "fair" if found == "good" else found
        return found, tuple(reasons)

    def _missed(self) -> float | None:
        """By how much the rows that merges have left are missed."""
        found = [
            error(self._knowledge.overlaps[partition], self._workload.draws(partition), merges)
            for partition, merges in self._workload.merges.items()
            if partition in self._knowledge.overlaps
        ]
        known = [each for each in found if each is not None]
        return sum(known) / len(known) if known else None


_PRODUCERS = ("none", "input", "lookup", "full-compaction")


def _others(options: Options, option: Option[Any], *values: Any) -> list[str]:
    """Values other than today's, as texts."""
    return [str(value) for value in dict.fromkeys(values) if value != options[option]]


def _is_free(trial: Trial) -> bool:
    return trial.can_be_set and not trial.is_choice


def _cost(trial: Trial) -> float:
    return trial.moved_bytes_a_day


def _days_text(millis: int) -> str:
    if millis >= 2 * DAY_MS:
        return f"{millis / DAY_MS:.1f} days"
    if millis >= 2 * HOUR_MS:
        return f"{millis / HOUR_MS:.1f} hours"
    return f"{millis / 60_000:.1f} minutes"


__all__ = ["Advice", "Trial", "advise"]
