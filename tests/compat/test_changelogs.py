"""Changelogs across implementations: all judges read ours as we do, we read Java's as it does, and both tell alike."""

import json
from pathlib import Path

import pytest
from tests.thinning import thinned

import lakebed
from lakebed.testing.replay import replayed

from . import ours
from .engine_histories import TABLES, EngineTable
from .judges import JavaJudge, PypaimonJudge, Row, RustJudge, assert_same_rows, canonical_rows
from .test_engines import PYPAIMON_REFUSES as PYPAIMON_READS_NOT

FIXTURES = Path(__file__).parents[1] / "fixtures"
PRODUCERS = ("input", "lookup", "full-compaction")
OPTIONS = {"bucket": "2", "num-sorted-run.compaction-trigger": "3", "num-levels": "4"}
COMMITS = 4
KINDS = ("+I", "-U", "+U", "-D")
ChangeReader = JavaJudge | PypaimonJudge | RustJudge
# Descending sequences it reads: only the merge, which a changelog does without, refuses retracts.
PYPAIMON_REFUSES = PYPAIMON_READS_NOT.keys() - {"aggregation-descending"}
TOLD_OTHERWISE = {
    ("lookup", "sequence-descending"): "test_java_orders_a_buffer_upwards",
    ("full-compaction", "sequence-descending"): "test_java_orders_a_buffer_upwards",
    ("lookup", "aggregation-descending"): "test_java_orders_a_buffer_upwards",
    ("full-compaction", "aggregation-descending"): "test_java_orders_a_buffer_upwards",
    ("lookup", "sequence-groups-aggregate"): "test_java_tells_a_lone_row_other_than_it_is",
}
"""Tables of which Java tells something else, and the test that shows why."""

CASES = [
    (producer, name)
    for name, engine in TABLES.items()
    for producer in PRODUCERS
    if producer == "lookup" or engine.options.get("merge-engine") != "first-row"
]


def shown_by(producer: str, name: str) -> list[object]:
    """What the default run must not leave out: every table, and every producer with every merge engine."""
    return [name, (producer, TABLES[name].options.get("merge-engine", "deduplicate"))]


def options_of(engine: EngineTable, producer: str) -> dict[str, str]:
    return OPTIONS | engine.options | {"changelog-producer": producer}


def create(warehouse: Path, engine: EngineTable, producer: str) -> lakebed.Table:
    return ours.create(
        warehouse,
        "t",
        engine.schema,
        primary_key=list(engine.key),
        partition_by=engine.partition_by,
        options=options_of(engine, producer),
    )


def filled(warehouse: Path, name: str, producer: str) -> lakebed.Table:
    """A table of ours after some commits, each with its compaction."""
    table = create(warehouse, TABLES[name], producer)
    for rows, kinds in TABLES[name].history(name, COMMITS):
        ours.write(table, rows, kinds)
    return table


def changes(table: lakebed.Table, engine: EngineTable, after: int, until: int) -> list[Row]:
    return engine.settled(canonical_rows(table.changes(after, until)))


def latest(table: lakebed.Table) -> int:
    return table.snapshots()[-1].id


def check_judge(judge: ChangeReader, warehouse: Path, table: lakebed.Table, engine: EngineTable) -> None:
    """All changes, and those of the last two snapshots alone, are the same events at the judge and here."""
    last = latest(table)
    for after in (0, last - 2):
        told = engine.settled(judge.read_changes(warehouse, "db", "t", after=after, until=last))
        assert_same_rows(told, changes(table, engine, after, last))


@pytest.mark.parametrize(("producer", "name"), thinned(CASES, shown_by))
def test_judges_read_what_lakebed_tells(
    producer: str,
    name: str,
    java_judge: JavaJudge,
    rust_judge: RustJudge,
    pypaimon_judge: PypaimonJudge,
    tmp_path: Path,
) -> None:
    """Java and Rust see the events that are seen here; so does pypaimon, of the tables that it reads at all."""
    table = filled(tmp_path, name, producer)
    assert table.changes().num_rows
    check_judge(java_judge, tmp_path, table, TABLES[name])
    check_judge(rust_judge, tmp_path, table, TABLES[name])
    if name not in PYPAIMON_REFUSES:
        check_judge(pypaimon_judge, tmp_path, table, TABLES[name])


def java_writes(judge: JavaJudge, warehouse: Path, name: str, producer: str) -> list[list[Row]]:
    """A table of Java's with the same history; what Java says of each commit's changes."""
    engine = TABLES[name]
    judge.create(
        warehouse,
        "db",
        "t",
        [(column, kind.removesuffix(" NOT NULL"), "NOT NULL" not in kind) for column, kind in engine.schema.items()],
        primary_keys=list(engine.key),
        partition_keys=list(engine.partition_by),
        options=options_of(engine, producer),
    )
    told, after = [], 0
    for rows, kinds in engine.history(name, COMMITS):
        judge.append(warehouse, "db", "t", rows, kinds=kinds)
        if producer == "full-compaction":
            judge.compact(warehouse, "db", "t")
        until = latest(ours.open_table(warehouse, "t"))
        told.append(engine.settled(judge.read_changes(warehouse, "db", "t", after=after, until=until)))
        after = until
    return told


def told_alike_by(producer: str, name: str) -> list[object]:
    return [] if (producer, name) in TOLD_OTHERWISE else shown_by(producer, name)


@pytest.mark.parametrize(("producer", "name"), thinned(reversed(CASES), told_alike_by))
def test_java_and_lakebed_tell_alike(producer: str, name: str, java_judge: JavaJudge, tmp_path: Path) -> None:
    """Java's changelog reads here as it does there, and the same commits to a table of ours tell the same events."""
    engine = TABLES[name]
    told = java_writes(java_judge, tmp_path / "java", name, producer)
    javas = ours.open_table(tmp_path / "java", "t")
    assert_same_rows(changes(javas, engine, 0, latest(javas)), [row for commit in told for row in commit])
    if (producer, name) in TOLD_OTHERWISE:
        return
    table, after = create(tmp_path / "ours", engine, producer), 0
    for (rows, kinds), wanted in zip(engine.history(name, COMMITS), told, strict=True):
        ours.write(table, rows, kinds)
        if engine.options.get("merge-engine") == "first-row":  # Java shows the kind that the first row came with
            wanted = [row | {"rowkind": "+I"} for row in wanted]
        assert_same_rows(changes(table, engine, after, latest(table)), wanted)
        after = latest(table)


def test_java_orders_a_buffer_upwards(java_judge: JavaJudge, tmp_path: Path) -> None:
    """Of two rows in one commit Java 1 keeps the larger sequence, where the smallest should win; Java 2 does not."""
    options = {"bucket": "1", "sequence.field": "s", "sequence.field.sort-order": "descending"}
    rows = [{"k": 1, "s": 1, "v": "small"}, {"k": 1, "s": 2, "v": "large"}]
    table = ours.create(
        tmp_path, "t", {"k": "INT NOT NULL", "s": "INT", "v": "STRING"}, primary_key=["k"], options=options
    )
    ours.write(table, rows)
    assert_same_rows(java_judge.read(tmp_path, "db", "t"), rows[:1])
    assert_same_rows(ours.read(table), rows[:1])
    ours.write(table, [], overwrite=True)
    java_judge.append(tmp_path, "db", "t", rows)
    assert_same_rows(java_judge.read(tmp_path, "db", "t"), rows[1:] if java_judge.release == 1 else rows[:1])


def test_java_tells_a_lone_row_other_than_it_is(java_judge: JavaJudge, tmp_path: Path) -> None:
    """Values whose sequence group has no order stay in the table; Java's changelog lacks them, ours does not."""
    options = {"merge-engine": "partial-update", "fields.g.sequence-group": "v", "changelog-producer": "lookup"}
    schema, row = {"k": "INT NOT NULL", "g": "INT", "v": "INT"}, {"k": 1, "g": None, "v": 5}
    for name in ("ours", "java"):
        ours.create(tmp_path, name, schema, primary_key=["k"], options={"bucket": "1", **options})
    table = ours.open_table(tmp_path, "ours")
    ours.write(table, [row])
    java_judge.append(tmp_path, "db", "java", [row])
    for name, value in (("ours", 5), ("java", None)):
        assert_same_rows(java_judge.read(tmp_path, "db", name), [row])
        told = java_judge.read_changes(tmp_path, "db", name, after=0, until=2)
        assert_same_rows(told, [{"rowkind": "+I", **row, "v": value}])


def fixture(family: str, name: str) -> lakebed.Table:
    return lakebed.connect(str(FIXTURES / family / "warehouse")).table(name)


def test_changelog_of_java_0_9() -> None:
    """The input changelog that Java 0.9.0 wrote: an insert, then an update of it."""
    told = fixture("java-0.9.0", "j_cl").changes().to_pylist()
    rows = [("+I", 1, "a"), ("-U", 1, "a"), ("+U", 1, "a2")]
    assert told == [{"rowkind": kind, "id": id_, "v": value} for kind, id_, value in rows]


def test_changelog_of_pypaimon() -> None:
    """The input changelog that pypaimon wrote, snapshot by snapshot, as it lists its files."""
    family, name = "pypaimon-2.1.0", "changelog_input"
    expected = json.loads((FIXTURES / family / "warehouse" / "default.db" / f"{name}.expected.json").read_text())
    table = fixture(family, name)
    for snapshot, rows in expected["changelog_files_at_snapshot"].items():
        told = table.changes(int(snapshot) - 1, int(snapshot)).to_pylist()
        assert told == [
            {"rowkind": KINDS[row["_VALUE_KIND"]], **{column: row[column] for column in ("id", "v", "rk")}}
            for row in rows
        ]


def test_lookup_changelog_of_java() -> None:
    """The lookup table of Java 0.9.0, with deletion vectors: its compactions tell every change, with the old row."""
    table = fixture("java-0.9.0", "j_dv")
    told = {
        snapshot.id: [tuple(row.values()) for row in table.changes(snapshot.id - 1, snapshot.id).to_pylist()]
        for snapshot in table.snapshots()
    }
    assert told == {
        1: [],
        2: [("+I", 1, "a"), ("+I", 2, "b"), ("+I", 3, "c")],
        3: [],
        4: [("-U", 2, "b"), ("+U", 2, "b2"), ("-D", 3, "c")],
    }
    events = [event for each in told.values() for event in each]
    state = replayed([(kind, {"id": number, "v": text}) for kind, number, text in events], ("id",))
    assert list(state.values()) == table.to_arrow().to_pylist()
