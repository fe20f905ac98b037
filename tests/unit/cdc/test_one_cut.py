"""Tables of one sync are read at a batch that all of them have, whatever is committed, lost, expired or not told."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.thinning import by_day
from tests.unit.cdc.batches import ChunkMaker, LocalBatch, description

import lakebed
from lakebed.cdc.batch.notes import SyncNotes
from lakebed.cdc.envelope import Chunk, SourceName
from lakebed.cdc.pipeline import Pipeline
from lakebed.cdc.routing import PatternValue, Routing
from lakebed.cdc.rules import SyncRules
from lakebed.cdc.schema.sync import Policies
from lakebed.errors import CommitConflict, InvalidArgument, InvalidData, NotFound, Unsupported
from lakebed.metadata.sync_note import SyncedTable, SyncNote
from lakebed.options import LAKEBED_CDC_COLUMNS
from lakebed.schema.changes import RemoveOption

AMOUNTS = description({"id": "INT NOT NULL", "v": "BIGINT"})
SUM = "SELECT sum(v) AS total FROM (SELECT v FROM a UNION ALL SELECT v FROM b) AS both_of_them"
JOINED = "SELECT sum(a.v + b.v) AS total FROM a JOIN b ON a.id = b.id"


class Died(Exception):
    """What a test lets a batch die of."""


class Bank:
    """Accounts in tables that a sync fills: each batch moves amounts from one to another."""

    def __init__(self, place: str, seed: int = 0, user: str = "user", database: str = "bank") -> None:
        self.lake = lakebed.connect(place)
        self.database, self.user = database, user
        self.random = random.Random(seed)
        self.makes = ChunkMaker()
        self.batch = 0
        self.dies_at: tuple[str, int] | None = None
        self.between: Callable[[str], None] = lambda _: None
        self.is_settled = True
        self.amounts: dict[str, dict[int, int]] = {}

    def begin(self, tables: str = "ab", rows: int = 3, **conf: str) -> None:
        """The tables and their first rows, in the first batch."""
        self.conf = {"bucket": "1", "snapshot.num-retained.min": "1000", "snapshot.num-retained.max": "1000", **conf}
        self.restart()
        self.amounts = {name: dict.fromkeys(range(rows), 100) for name in tables}
        self.apply(*(self.rows(name, *(("+I", i, 100) for i in range(rows))) for name in tables))
        self.lake.use(self.database)

    @property
    def total(self) -> int:
        return sum(sum(rows.values()) for rows in self.amounts.values())

    def restart(self, **rules: Any) -> None:
        """A new process with the same checkpoint."""
        made = SyncRules(Routing(self.database), table_conf=(PatternValue(".*", self.conf),), **rules)
        notes = SyncNotes("postgres", lambda offset: offset if self.is_settled else None)
        self.pipeline = Pipeline(self.lake, made, "", source="postgres", on_step=self._step, notes=notes)

    def _step(self, name: str) -> None:
        self.between(name)
        if self.dies_at is not None and self.dies_at[0] == name:
            self.dies_at = (name, self.dies_at[1] - 1)
            if self.dies_at[1] < 0:
                self.dies_at = None
                raise Died(name)

    def rows(self, table: str, *rows: tuple[Any, ...]) -> Chunk:
        return self.makes.rows(AMOUNTS, *rows, source=SourceName(self.database, "", table))

    def apply(self, *chunks: Chunk) -> None:
        """The next batch; one that dies is made again."""
        self.batch += 1
        while True:
            try:
                self.pipeline.apply(LocalBatch(chunks), self.user, self.batch, f"0/{self.batch:X}0")
                break
            except Died:
                self.restart()
        self.pipeline.close()

    def transfer(self, source: str, target: str, amount: int = 7) -> None:
        """A batch with one transaction."""
        self.apply(*self.transaction(source, target, amount))

    def transaction(self, source: str, target: str, amount: int) -> list[Chunk]:
        chunks = []
        for name, change in ((source, -amount), (target, amount)):
            key = self.random.choice(list(self.amounts[name]))
            old, new = self.amounts[name][key], self.amounts[name][key] + change
            self.amounts[name][key] = new
            chunks.append(self.rows(name, ("-U", key, old), ("+U", key, new)))
        return chunks

    def newest(self) -> int:
        """The total of the newest snapshots."""
        return int(self.lake.query(SUM).fetchall()[0][0])

    def consistent(self, *names: str) -> int:
        """The total at one cut."""
        found = self.lake.consistent(*(names or ("a", "b")))
        first, second = (found.query(query).fetchall()[0][0] for query in (SUM, JOINED))
        assert first == second
        return int(first)


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return Bank(str(tmp_path))


KINDS: dict[str, dict[str, str]] = {
    "none": {},
    "input": {"changelog-producer": "input"},
    "lookup": {"changelog-producer": "lookup"},
    "full-compaction": {"changelog-producer": "full-compaction"},
    "deletion vectors": {"deletion-vectors.enabled": "true"},
    "dynamic buckets": {"bucket": "-1"},
    "write-only": {"changelog-producer": "lookup", "write-only": "true"},
    "vectors, compacted elsewhere": {"deletion-vectors.enabled": "true", "write-only": "true"},
    "postponed": {"bucket": "-2"},
}


# --- between the commits of a batch ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", by_day(["none", "input", "lookup", "full-compaction", "deletion vectors"], "lookup", "deletion vectors")
)
@pytest.mark.parametrize("step", ["committed", "note"])
def test_between_two_commits_the_last_batch_is_seen(bank: Bank, kind: str, step: str) -> None:
    """Where the newest snapshots show half of a transaction, a cut and a refresh show the state before it."""
    bank.begin(**KINDS[kind])
    bank.lake.materialize("total", SUM, policy="incremental")
    seen: list[tuple[int, int, Any]] = []

    def look(name: str) -> None:
        if name == step:
            done = bank.lake.refresh("total")
            seen.append((bank.newest(), bank.consistent(), done.way))

    bank.between = look
    bank.transfer("a", "b")
    bank.between = lambda _: None
    assert {total for _, total, _ in seen} == {bank.total}
    assert {way for *_, way in seen} == {"none"}
    if step == "committed" and kind in ("none", "input"):
        assert seen[0][0] == bank.total - 7
    assert bank.consistent() == bank.total
    assert bank.lake.consistent("a", "b").position == "0/20"
    assert bank.lake.refresh("total").snapshot == 2
    assert bank.lake["total"].to_arrow(["total"]).to_pylist() == [{"total": bank.total}]


def test_a_batch_without_rows_for_a_table(bank: Bank) -> None:
    """It is no commit there, and belongs to the cut all the same."""
    bank.begin()
    bank.apply(bank.rows("a", ("-U", 0, 100), ("+U", 0, 150)))
    found = bank.lake.consistent("a", "b")
    assert found.snapshots == {"bank.a": 2, "bank.b": 1}
    assert found.why["bank.b"] == "batch 2 of the sync from postgres"
    bank.apply()
    assert bank.lake.consistent("a", "b").position == "0/30"


def test_compactions_and_other_writers_in_between(bank: Bank) -> None:
    """What they commit is seen with the batch before it."""
    bank.begin()
    bank.lake["a"].compact(full=True)
    bank.lake["b"].write([{"id": 77, "v": 0}])
    found = bank.lake.consistent("a", "b")
    assert found.snapshots == {"bank.a": 2, "bank.b": 2}
    assert found.table("b").count() == 4


# --- what is not shown, or not told yet ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", by_day(sorted(KINDS), "lookup", "deletion vectors"))
def test_random_batches(tmp_path: Path, kind: str) -> None:
    """Transfers among three tables of all kinds, batches that die, compactions at any time: always the same total."""
    _random_batches(Bank(str(tmp_path), sorted(KINDS).index(kind)), KINDS[kind], 4)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("seed", range(100, 120))
def test_many_random_batches(tmp_path: Path, kind: str, seed: int) -> None:
    """The same for longer."""
    _random_batches(Bank(str(tmp_path), seed), KINDS[kind], 40)


def _random_batches(bank: Bank, conf: dict[str, str], batches: int) -> None:
    rng = bank.random
    steps = ["read", "check", "schema", "write", "commit", "committed", "note"]
    three = SUM.replace(") AS both", " UNION ALL SELECT v FROM c) AS both")
    views = {"total": three, "pairs": "SELECT a.id, a.v AS va, b.v AS vb FROM a JOIN b ON a.id = b.id"}
    totals: set[int] = set()

    def look(_: str) -> None:
        if rng.random() < 0.15:
            try:
                found = bank.lake.consistent("a", "b", "c")
            except NotFound:  # rows wait for a compaction
                return
            totals.add(found.query(three).fetchall()[0][0])
            if rng.random() < 0.3:
                bank.lake.refresh("total")

    bank.begin("abc", **conf)
    for name, query in views.items():
        bank.lake.materialize(name, query, policy=rng.choice(["auto", "incremental", "full"]))
    bank.between = look
    for _ in range(batches):
        if rng.random() < 0.4:
            bank.dies_at = (rng.choice(steps), rng.randrange(3))
        pairs = [rng.sample("abc", 2) for _ in range(rng.randint(0, 3))]
        bank.apply(*(chunk for pair in pairs for chunk in bank.transaction(pair[0], pair[1], rng.randint(1, 9))))
        bank.dies_at = None
        if rng.random() < 0.4:
            bank.lake[rng.choice("abc")].compact(full=rng.random() < 0.5)
        look("")
    bank.between = lambda _: None
    for name in "abc":
        bank.lake[name].compact(full=True)
    bank.lake.refresh_all()
    totals.add(bank.lake.consistent("a", "b", "c").query(three).fetchall()[0][0])
    view = bank.lake["total"]
    totals |= {view.at(each.id).to_arrow(["total"]).column(0)[0].as_py() for each in view.snapshots()}
    assert totals == {bank.total}
    expected = {(i, bank.amounts["a"][i], bank.amounts["b"][i]) for i in bank.amounts["a"]}
    assert set(bank.lake.query("SELECT id, va, vb FROM pairs").fetchall()) == expected


# --- before there is a cut -------------------------------------------------------------------------------------------


def test_while_tables_are_copied_there_is_none(bank: Bank) -> None:
    """A cut is refused and a refresh waits; the first batch after the copy is the first cut."""
    bank.is_settled = False
    bank.begin()
    with pytest.raises(NotFound, match="still copying"):
        bank.lake.consistent("a", "b")
    made = bank.lake.materialize("total", SUM)
    assert made is not None
    assert (made.way, made.snapshot) == ("none", None)
    assert "nothing yet" in made.reason
    bank.lake.materialize("on_top", "SELECT total + 1 AS more FROM total")
    assert bank.lake.refresh("on_top").reason == "nothing yet: `bank.total` has not been filled yet"
    bank.is_settled = True
    bank.transfer("a", "b")
    assert bank.consistent() == bank.total
    assert [done.way for done in bank.lake.refresh_all()] == ["full", "full"]


def test_a_table_that_is_copied_later(bank: Bank) -> None:
    """While a new table comes, the others stay at the last cut; it has no rows there."""
    bank.begin()
    bank.is_settled = False
    bank.apply(bank.rows("c", ("+I", 1, 5)), *bank.transaction("a", "b", 7))
    found = bank.lake.consistent()
    assert found.snapshots == {"bank.a": 1, "bank.b": 1, "bank.c": None}
    assert found.table("c").to_arrow().num_rows == 0
    assert found.query("SELECT count(*) FROM c").fetchall() == [(0,)]
    assert found.query(SUM).fetchall() == [(bank.total,)]
    bank.is_settled = True
    bank.apply()
    assert bank.lake.consistent().snapshots == {"bank.a": 2, "bank.b": 2, "bank.c": 1}


def test_a_table_whose_sync_has_not_begun(bank: Bank) -> None:
    """A table that is made for a sync is not taken for an empty one of no sync."""
    bank.begin()
    options = {LAKEBED_CDC_COLUMNS.key: bank.lake["a"].schema.options[LAKEBED_CDC_COLUMNS.key]}
    bank.lake.create_table("d", {"id": "INT NOT NULL"}, primary_key=["id"], options=options)
    with pytest.raises(NotFound, match="has not begun"):
        bank.lake.consistent("a", "d")


# --- what is lost ----------------------------------------------------------------------------------------------------


def test_a_table_that_was_rolled_back(bank: Bank) -> None:
    """Together with others it is refused by name, also when the sync has gone on; alone it is what it is."""
    bank.begin()
    bank.lake.materialize("total", SUM)
    bank.transfer("a", "b")
    bank.lake["a"].rollback_to(snapshot=1)
    for _ in range(2):
        with pytest.raises(InvalidData, match=r"`bank\.a` lacks changes"):
            bank.lake.consistent("a", "b")
        with pytest.raises(InvalidData, match=r"`bank\.a` lacks changes"):
            bank.lake.refresh("total")
        assert bank.lake.consistent("a").table("a").count() == 3
        bank.transfer("a", "b")
        bank.restart()


def test_a_table_that_was_made_anew(bank: Bank) -> None:
    """The sync fills it with what comes; what it had is gone, so it does not go with the others."""
    bank.begin()
    bank.transfer("a", "b")
    bank.lake.drop_table("a")
    bank.restart()
    bank.transfer("a", "b")
    with pytest.raises(InvalidData, match=r"`bank\.a` lacks changes"):
        bank.lake.consistent("a", "b")


def test_a_table_that_is_not_followed_any_more(bank: Bank) -> None:
    """With `ignore_incompatible` a table is left behind: it does not go with the others."""
    bank.begin()
    bank.restart(policies=Policies(), skips_incompatible=True)
    other = description({"id": "INT NOT NULL", "v": "BYTES"})
    bank.apply(
        bank.makes.rows(other, ("+I", 9, b"x"), source=SourceName("bank", "", "a")), bank.rows("b", ("+I", 9, 1))
    )
    with pytest.raises(InvalidData, match="not followed"):
        bank.lake.consistent("a", "b")


def test_a_snapshot_that_has_expired(bank: Bank) -> None:
    """The cut of a sync that has committed half of a batch is refused if its snapshot is gone, and not guessed."""
    bank.begin()
    expired: list[str] = []

    def expire(name: str) -> None:
        if name == "committed" and not expired:
            bank.lake["a"].expire_snapshots(retain_max=1, retain_min=1)
            with pytest.raises(NotFound, match="has expired"):
                bank.lake.consistent("a", "b")
            expired.append(name)

    bank.between = expire
    bank.transfer("a", "b")
    assert expired
    assert bank.consistent() == bank.total


def test_a_note_that_is_gone(bank: Bank, tmp_path: Path) -> None:
    """A refresh says so, and the next batch writes it again."""
    bank.begin()
    bank.lake.materialize("total", SUM)
    (note,) = (tmp_path / "bank.db" / ".syncs").iterdir()
    note.unlink()
    with pytest.raises(NotFound, match="note of the sync"):
        bank.lake.refresh("total")
    bank.restart()
    bank.transfer("a", "b")
    assert bank.lake.refresh("total").snapshot == 2


def test_another_sync_takes_over(bank: Bank) -> None:
    """With another checkpoint the later sync counts, from its first cut on."""
    bank.begin()
    for name in "ab":
        bank.lake[name].alter(RemoveOption(LAKEBED_CDC_COLUMNS.key))
    bank.user, bank.batch, bank.is_settled = "other", 0, False
    bank.restart()
    bank.transfer("a", "b")
    with pytest.raises(NotFound, match="still copying"):
        bank.lake.consistent("a", "b")
    bank.is_settled = True
    bank.transfer("a", "b")
    assert bank.consistent() == bank.total
    assert bank.lake.consistent("a", "b").why["bank.a"] == "batch 2 of the sync from postgres"


# --- several syncs, several views ------------------------------------------------------------------------------------


def test_tables_of_two_syncs(bank: Bank, tmp_path: Path) -> None:
    """Each sync has its own cut, in one query too; a position belongs to one of them."""
    bank.begin()
    shop = Bank(str(tmp_path), user="shop", database="shop")
    shop.begin()
    seen: list[int] = []
    query = "SELECT sum(v) AS v FROM (SELECT v FROM bank.a UNION ALL SELECT v FROM bank.b UNION ALL SELECT v FROM "
    query += "shop.a UNION ALL SELECT v FROM shop.b) AS all_of_them"
    names = ("bank.a", "bank.b", "shop.a", "shop.b")
    bank.lake.materialize("four", query)

    def look(name: str) -> None:
        if name == "committed":
            seen.append(bank.lake.consistent(*names).query(query).fetchall()[0][0])
            bank.lake.refresh("four")

    shop.between = bank.between = look
    bank.transfer("a", "b")
    shop.transfer("b", "a")
    shop.transfer("b", "a")
    assert set(seen) == {bank.total + shop.total}
    found = bank.lake.consistent(*names)
    assert (found.position, found.positions["bank.a"], found.positions["shop.a"]) == (None, "0/20", "0/30")
    with pytest.raises(InvalidArgument, match="2 syncs"):
        bank.lake.at(*names, position="0/10")
    view = bank.lake["four"]
    assert {view.at(each.id).to_arrow(["v"]).column(0)[0].as_py() for each in view.snapshots()} == {1200}


def test_views_of_one_sync_below_another(bank: Bank) -> None:
    """Views of different batches do not go together unless nothing of theirs changed; refreshed together they do."""
    bank.begin("abc")
    for name in "ab":
        bank.lake.materialize(f"of_{name}", f"SELECT sum(v) AS v FROM {name}")
    both = "SELECT of_a.v + of_b.v AS total FROM of_a CROSS JOIN of_b"
    bank.lake.materialize("both", both)
    bank.transfer("a", "b")
    bank.lake.refresh("of_a")
    assert bank.lake.refresh("both").way == "none"  # `of_a` of the first batch goes with `of_b`
    bank.transfer("a", "b")
    bank.lake.refresh("of_b")
    bank.lake["of_a"].expire_snapshots(retain_max=1, retain_min=1)
    with pytest.raises(CommitConflict, match="different batches"):
        bank.lake.refresh("both")
    seen: list[Any] = []

    def refresh(name: str) -> None:
        if name == "committed":
            seen.extend(bank.lake.refresh_all())

    bank.between = refresh
    bank.transfer("b", "a")
    bank.transfer("b", "c")
    bank.between = lambda _: None
    bank.lake.refresh_all()
    assert bank.lake.query("SELECT total FROM both").fetchall() == [(bank.total - 300 - 7,)]
    view = bank.lake["both"]
    totals = [view.at(each.id).to_arrow(["total"]).column(0)[0].as_py() for each in view.snapshots()]
    assert set(totals) == {600, 593}
    with_third = "SELECT total + s FROM both, (SELECT sum(v) AS s FROM c) AS third"
    assert bank.lake.consistent("both", "c").query(with_third).fetchall() == [(900,)]


# --- reading at a cut ------------------------------------------------------------------------------------------------


def test_at_a_position(bank: Bank) -> None:
    """The newest cut at or before it; what is not there is refused with the nearest that is."""
    bank.begin()
    totals = [bank.amounts["a"].copy()]
    for _ in range(4):
        bank.transfer("a", "b")
        totals.append(bank.amounts["a"].copy())
    for batch, amounts in enumerate(totals, 1):
        for position in (f"0/{batch:X}0", f"0/{batch:X}F" if batch < 5 else f"0/{batch:X}0"):
            found = bank.lake.at("a", "b", position=position)
            assert found.position == f"0/{batch:X}0"
            assert dict(found.query("SELECT id, v FROM a").fetchall()) == amounts
            assert found.query(SUM).fetchall() == [(bank.total,)]
    with pytest.raises(NotFound, match="not in the lake yet") as late:
        bank.lake.at("a", "b", position="0/51")
    assert "0/50" in str(late.value)
    with pytest.raises(NotFound, match="before the first") as early:
        bank.lake.at("a", "b", position="0/F")
    assert "0/10" in str(early.value)
    bank.lake["a"].expire_snapshots(retain_max=2, retain_min=1)
    with pytest.raises(NotFound, match="has expired") as gone:
        bank.lake.at("a", "b", position="0/20")
    assert "the oldest there is is `0/" in str(gone.value)
    for wrong in ("0-1-5", "nonsense"):
        with pytest.raises(InvalidArgument, match=wrong):
            bank.lake.at("a", "b", position=wrong)
    bank.lake.create_table("alone", {"id": "INT"})
    with pytest.raises(NotFound, match="no table is of a sync"):
        bank.lake.at("alone", position="0/20")


def test_tables_of_no_sync(bank: Bank) -> None:
    """They are at their newest snapshot, which is said; only what was chosen can be read, and only so."""
    bank.begin()
    bank.lake.create_table("plain", [{"id": 1}])
    found = bank.lake.consistent("plain", "a")
    assert found.why["bank.plain"].startswith("of no sync")
    assert found.positions == {"bank.plain": None, "bank.a": "0/10"}
    bank.lake["plain"].write([{"id": 2}])
    assert found.query("SELECT id FROM plain").fetchall() == [(1,)]
    assert found["plain"].count() == 1
    assert found.sql("SELECT id FROM plain").collect()[0][0] == 1
    with pytest.raises(NotFound, match="chosen together"):
        found.query("SELECT * FROM b")
    with pytest.raises(Unsupported, match="another state"):
        found.query("SELECT * FROM plain VERSION AS OF 1")
    with pytest.raises(InvalidArgument, match="one query"):
        found.query("DELETE FROM plain")
    with pytest.raises(InvalidArgument, match="read only"):
        found["plain"].write([{"id": 3}])


def test_a_view_with_what_it_reads(bank: Bank) -> None:
    """Tables are read as the view saw them, and others of the sync at the batch that this was."""
    bank.begin("abc")
    bank.lake.materialize("of_a", "SELECT sum(v) AS v FROM a")
    bank.transfer("a", "c")
    found = bank.lake.consistent("of_a", "b", "c")
    assert found.query("SELECT of_a.v + s.v FROM of_a, (SELECT sum(v) AS v FROM c) AS s").fetchall() == [(600,)]
    assert found.why["bank.of_a"] == "its own cut, batch 1 of the sync from postgres"


def test_in_memory(tmp_path: Path) -> None:
    """Where there are no directories the note is found as well."""
    bank = Bank("memory://one-cut")
    bank.begin()
    bank.transfer("a", "b")
    assert bank.consistent() == bank.total


# --- the note itself -------------------------------------------------------------------------------------------------


def test_the_note_as_a_file() -> None:
    """What is written is read again; a stretch ends where batches are none."""
    note = SyncNote("u", "mysql", 5, True)
    for batch, position in ((1, None), (2, "p2"), (3, "p3"), (4, None), (5, "p5")):
        note = note.after(batch, position)
    note = note.with_tables({"t": SyncedTable(3, ("a.b.t",), "why")})
    assert note.stretches == ((2, 3), (5, 5))
    assert [note.cut_at(most) for most in (1, 2, 3, 4, 5, 9, None)] == [None, 2, 3, 3, 5, 5, 5]
    assert SyncNote.from_file(note.to_file(), "x") == note
