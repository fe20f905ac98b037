"""After every kind of commit that Lakebed makes, both releases of Paimon Java see the rows that are seen here.

Which kinds there are is asked of the source: a new place that commits, or that writes a snapshot, a tag or a changelog
file, fails the first tests here until a history in `commit_histories` gets there.
"""

from __future__ import annotations

import ast
import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import lakebed
from lakebed.checksums import unsealed
from lakebed.commit.committer import Committer
from lakebed.fileio.local import LocalFileIO
from lakebed.metadata import operation
from lakebed.metadata.operation import OWN_OPERATION, SHARED_OPERATIONS

from . import ours
from .commit_histories import HISTORIES, Step
from .judges import JavaJudge, JudgeError, Row, assert_same_rows

SOURCE = Path(lakebed.__file__).parent
SNAPSHOT_WRITERS = ("snapshots.publish", "changelogs.put", "tags.create", "tags.replace", "tags.rename")
_WRITING = ("publish(", "put(", "create(", "replace(", "rename(", "overwrite(", "write_bytes(")
"""Ends of the calls that write such files."""

# Where a judge can not go on with a table after us, and why.
NOT_FOR_OTHER_WRITERS = {
    "cross partition": "its writers need an index of all keys, which the engine keeps for jobs of Flink only",
    "postponed buckets": "rows of others wait in buckets of their own, unseen until a compaction",
}
# What the older release refuses to open, and why.
FOR_THE_NEWER_RELEASE = {"column files with vectors": "1.4 knows no marks where columns have files of their own"}


@cache
def _calls() -> list[tuple[str, ast.Call]]:
    """All calls in modules that say a word of commits; other modules are not parsed."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text()
        if not any(word in text for word in ("commit(", "operation=", *_WRITING)):
            continue
        module = ".".join(["lakebed", *path.relative_to(SOURCE).with_suffix("").parts])
        found += [(module, node) for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    return found


def _committing_modules() -> set[str]:
    return {
        module
        for module, call in _calls()
        if isinstance(call.func, ast.Attribute) and call.func.attr == "commit" and "committer" in ast.unparse(call.func)
    }


def _writing_modules() -> set[str]:
    """Modules that write files which are snapshots, or copies of one: callers of the stores, or by themselves."""
    found = set()
    for module, call in _calls():
        if module.startswith("lakebed.metadata."):
            continue
        if not isinstance(call.func, ast.Attribute) or f"{call.func.attr}(" not in _WRITING:
            continue
        name = ast.unparse(call.func)
        path = ast.unparse(call.args[0]) if call.args else ""
        is_file = name.endswith(("fileio.overwrite", "fileio.write_bytes")) and "snapshot" in path
        if name.endswith(SNAPSHOT_WRITERS) or is_file:
            found.add(module)
    return found


def _words() -> set[str]:
    """All words for what a commit was that the source hands to one."""
    found = set()
    for _, call in _calls():
        for keyword in call.keywords:
            if keyword.arg == "operation":
                found |= {node.value for node in ast.walk(keyword.value) if isinstance(node, ast.Constant)}
                names = {node.id for node in ast.walk(keyword.value) if isinstance(node, ast.Name)}
                found |= {getattr(operation, name) for name in names if name.isupper()}
    return found


def _caller(*skipped: str) -> str:
    """The module of ours that called, not counting the named ones."""
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name.startswith("lakebed.") and not name.startswith(skipped):
            return str(name)
        frame = frame.f_back  # type: ignore[assignment]
    return "?"


def test_the_histories_contain_every_kind_of_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every place of the source that commits or writes a snapshot is reached, and every word for a commit is said."""
    committing, writing, words = set(), set(), set()
    commit, create, overwrite, write = (
        Committer.commit,
        LocalFileIO.create_exclusive,
        LocalFileIO.overwrite,
        LocalFileIO.write_bytes,
    )

    def note(path: str) -> None:
        kind, _, name = Path(path).name.partition("-")
        if name and kind == Path(path).parent.name and kind in ("snapshot", "tag", "changelog"):
            writing.add(_caller("lakebed.fileio", "lakebed.metadata"))

    def committed(self: Committer, *arguments: Any, **named: Any) -> Any:
        committing.add(_caller())
        snapshot = commit(self, *arguments, **named)
        words.add(snapshot.operation if snapshot is not None else None)
        return snapshot

    def noting(method: Any) -> Any:
        def written(self: LocalFileIO, path: str, data: bytes) -> Any:
            note(path)
            return method(self, path, data)

        return written

    monkeypatch.setattr(Committer, "commit", committed)
    monkeypatch.setattr(LocalFileIO, "create_exclusive", noting(create))
    monkeypatch.setattr(LocalFileIO, "overwrite", noting(overwrite))
    monkeypatch.setattr(LocalFileIO, "write_bytes", noting(write))
    for number, (name, history) in enumerate(HISTORIES.items()):
        for step in history(tmp_path / str(number)):
            assert step.did, name
    assert committing == _committing_modules()
    assert writing == _writing_modules()
    assert words >= _words() >= {"COMPACT", "ANALYZE", "REPAIR", "ROLLBACK"}
    said = {json.loads(path.read_text()).get("operation") for path in tmp_path.rglob("snapshot-*")}
    assert said <= {None, *SHARED_OPERATIONS}


@pytest.fixture(scope="module")
def judges(java_judge: JavaJudge, java2_judge: JavaJudge) -> list[JavaJudge]:
    """Both releases, so that each history is made once."""
    return [java_judge, java2_judge]


def _here(warehouse: Path, step: Step) -> list[Row]:
    table = ours.open_table(warehouse, step.name)
    return ours.read(table.at(**step.point) if step.point else table)


@pytest.mark.parametrize("takes_turns", [True, pytest.param(False, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", HISTORIES)
def test_judges_read_after_every_commit(name: str, takes_turns: bool, judges: list[JavaJudge], tmp_path: Path) -> None:
    """Both releases read what is seen here after each step, in the end every snapshot and tag, and then go on.

    By day they take turns; in the end each has read the table and written to it.
    """
    if name in FOR_THE_NEWER_RELEASE:
        judges = judges[1:]

    def asked(number: int) -> list[JavaJudge]:
        return [judges[number % len(judges)]] if takes_turns else judges

    for number, step in enumerate(HISTORIES[name](tmp_path)):
        here = _here(tmp_path, step)
        for judge in asked(number):
            try:
                assert_same_rows(judge.read(tmp_path, "db", step.name, **step.point), here)
            except Exception as error:
                error.add_note(f"{judge.version()} after {step}")
                raise
    table = ours.open_table(tmp_path, "t")
    for number, snapshot in enumerate(table.snapshots()):
        here = ours.read(table.at(snapshot=snapshot.id))
        for judge in asked(number):
            assert_same_rows(judge.read(tmp_path, "db", "t", snapshot=snapshot.id), here)
    for judge in judges:
        assert len(judge.read(tmp_path, "db", "t$snapshots")) == len(table.snapshots())
        if name in NOT_FOR_OTHER_WRITERS:
            continue
        rows = ours.read(table)[:3]
        if rows:
            judge.append(tmp_path, "db", "t", rows)
            assert_same_rows(judge.read(tmp_path, "db", "t"), ours.read(table))
            judge.compact(tmp_path, "db", "t")
            assert_same_rows(judge.read(tmp_path, "db", "t"), ours.read(table))


def test_a_table_of_an_older_version_is_opened_after_a_repair(java2_judge: JavaJudge, tmp_path: Path) -> None:
    """Where snapshots and tags say a word of ours, the newest release can not open the table; repaired, it can."""
    for step in HISTORIES["branches"](tmp_path):
        assert step.did
    table = ours.open_table(tmp_path, "t")
    table.compact(full=True)
    table.create_tag("compacted")
    changed = 0
    for path in [*tmp_path.rglob("snapshot-*"), *tmp_path.rglob("tag-*")]:
        members = json.loads(path.read_text())
        word = (members.get("properties") or {}).pop(OWN_OPERATION, None)
        if word is not None:
            path.write_text(json.dumps({**unsealed(members), "operation": word}))
            changed += 1
    assert changed
    looks: list[dict[str, Any]] = [{}, {"tag": "compacted"}]
    for point in looks:
        with pytest.raises(JudgeError) as refusal:
            java2_judge.read(tmp_path, "db", "t", **point)
        assert "not one of the values accepted" in refusal.value.trace
    assert len(table.repair_metadata()) == changed
    for point in looks:
        here = ours.read(table.at(**point) if point else table)
        assert_same_rows(java2_judge.read(tmp_path, "db", "t", **point), here)
    assert_same_rows(java2_judge.read(tmp_path, "db", "t$branch_b"), ours.read(table.on_branch("b")))


# ---------------------------------------------------------------- the other way round

FIELDS = [("part", "INT", False), ("id", "INT", False), ("v", "STRING", True), ("n", "INT", True)]
BUCKETS = {"bucket": "2"}
VECTORS = {"deletion-vectors.enabled": "true"}
THEIR_TABLES: dict[str, tuple[list[str], dict[str, str]]] = {
    "deduplicate": (["part", "id"], BUCKETS),
    "input": (["part", "id"], BUCKETS | {"changelog-producer": "input"}),
    "lookup": (["part", "id"], BUCKETS | {"changelog-producer": "lookup"}),
    "full-compaction": (["part", "id"], BUCKETS | {"changelog-producer": "full-compaction"}),
    "vectors": (["part", "id"], BUCKETS | VECTORS),
    "wide vectors": (["part", "id"], BUCKETS | VECTORS | {"deletion-vectors.bitmap64": "true"}),
    "first-row": (["part", "id"], BUCKETS | {"merge-engine": "first-row", "ignore-delete": "true"}),
    "partial-update": (["part", "id"], BUCKETS | {"merge-engine": "partial-update", "ignore-delete": "true"}),
    "aggregation": (
        ["part", "id"],
        BUCKETS | {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "ignore-delete": "true"},
    ),
    "dynamic": (["part", "id"], {"bucket": "-1", "dynamic-bucket.target-row-num": "4"}),
    "plain": ([], {"compaction.min.file-num": "2", "file-index.bloom-filter.columns": "id"}),
    "plain vectors": ([], {"compaction.min.file-num": "2"} | VECTORS),
    "tracked": ([], {"row-tracking.enabled": "true", "compaction.min.file-num": "2"}),
}


@pytest.mark.parametrize("name", THEIR_TABLES)
@pytest.mark.parametrize("judge_name", [pytest.param("java", marks=pytest.mark.nightly), "java2"])
def test_we_read_after_every_commit_of_theirs(
    judge_name: str, name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Written, compacted, overwritten, tagged, branched and rolled back by Java, a table reads the same here."""
    judge: JavaJudge = request.getfixturevalue(f"{judge_name}_judge")
    key, options = THEIR_TABLES[name]
    judge.create(tmp_path, "db", "t", FIELDS, primary_keys=key, partition_keys=["part"], options=options)

    def rows(ids: range, word: str) -> list[Row]:
        return [{"part": number % 2, "id": number, "v": f"{word} {number}", "n": number} for number in ids]

    def check(view: str = "t", **point: Any) -> None:
        table = ours.open_table(tmp_path, view)
        assert_same_rows(ours.read(table.at(**point) if point else table), judge.read(tmp_path, "db", view, **point))
        assert table.check() == []

    judge.append(tmp_path, "db", "t", rows(range(20), "first"))
    check()
    judge.append(tmp_path, "db", "t", rows(range(10, 25), "second"))
    check()
    if key:
        judge.delete(tmp_path, "db", "t", rows(range(3), "first"))
        check()
    judge.create_tag(tmp_path, "db", "t", "kept")
    check(tag="kept")
    judge.compact(tmp_path, "db", "t")
    check()
    judge.look_after(tmp_path, "db", "t", "create_branch", name="b", tag="kept")
    judge.append(tmp_path, "db", "t$branch_b", rows(range(30, 33), "branch"))
    check("t$branch_b")
    judge.overwrite(tmp_path, "db", "t", rows(range(0, 8, 2), "over"))
    check()
    judge.look_after(tmp_path, "db", "t", "fast_forward", name="b")
    check()
    judge.look_after(tmp_path, "db", "t", "rollback_to_tag", name="kept")
    check()
    ours.write(ours.open_table(tmp_path, "t"), rows(range(5, 8), "ours"))
    ours.open_table(tmp_path, "t").compact(full=True)
    check()
