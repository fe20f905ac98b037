"""Bugs to be planted: a piece of source, what it becomes, and the history that must find it.

First the mends of faults that were found in combinations, each taken out again; then the classics of lakehouses. A
mutant whose text is no longer in the source fails the default run: it has to follow the code.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """Text `old` of a file of `src/lakebed` becomes `new`. `caught_by` is the name of a history."""

    name: str
    path: str
    old: str
    new: str
    caught_by: str
    also: tuple[tuple[str, str, str], ...] = ()
    """More of the same: path, old and new text."""

    @property
    def edits(self) -> list[tuple[str, str, str]]:
        """All that is changed."""
        return [(self.path, self.old, self.new), *self.also]


MENDS = [
    Mutant(
        "manifests know no order",
        "metadata/manifest.py",
        "    return list(live.values())",
        "    gone = {entry.identity for entry in entries if entry.kind == EntryKind.DELETE}\n"
        "    return [entry for identity, entry in live.items() if identity not in gone]",
        "an old state comes back and is compacted",
        (("commit/committer.py", "changes.rewrites_manifests or adds_again(stores, metas, changes.entries)", "False"),),
    ),
    Mutant(
        "a file that comes back leaves its old DELETE among the manifests",
        "commit/committer.py",
        "if changes.rewrites_manifests or adds_again(stores, metas, changes.entries):",
        "if False:",
        "an old state comes back and is compacted",
    ),
    Mutant(
        "a manifest that is merged gets behind one that was later",
        "commit/manifest_merge.py",
        " and not overtakes:",
        ":",
        "manifests are merged while rows wait",
    ),
    Mutant(
        "rescale reads what is shown",
        "rewrite/rescale.py",
        "snapshot = settled(context, keep=keep, run_pieces=run_pieces)",
        "snapshot = context.stores.snapshots.latest()",
        "rescale of rows that are not shown",
    ),
    Mutant(
        "all runs beyond the highest level are taken for one",
        "lsm/levels.py",
        "return len(found) <= 1 and all(",
        "return all(",
        "rows are replaced after the number of levels went down",
    ),
    Mutant(
        "rows that wait are numbered after later ones",
        "write/commit.py",
        "if self._goes_past_waiting(messages, latest):",
        "if False:",
        "waiting rows and later ones",
    ),
    Mutant(
        "commits that replace files tell nothing",
        "write/told_replacements.py",
        "if not partitions:",
        "if True:",
        "an overwrite is told",
    ),
    Mutant(
        "dropped partitions tell nothing",
        "write/told_replacements.py",
        "told = telling.entries(latest, changes.entries, changes.index_entries, meant)",
        "told = []",
        "rows of a partition go",
    ),
    Mutant(
        "retracts are taken that no read can fold",
        "write/files.py",
        "        self._context.merge_engine.check_written(rows, np.asarray(kinds))\n",
        "",
        "a retract that nothing can take",
    ),
    Mutant(
        "rows are not folded before their meaning changes",
        "rewrite/fold_first.py",
        "folding = [verdict for verdict in verdicts if verdict.later is Later.COMPACTION]",
        "folding: list[Verdict] = []",
        "an option changes what order rows have",
    ),
    Mutant(
        "local copies leave out what has expired when they are made",
        "rewrite/bucket_files.py",
        "            return reader.read_stored(Split(partition, bucket, (Section((SortedRun((file,)),)),)))\n",
        "            rows = reader.read_stored(Split(partition, bucket, (Section((SortedRun((file,)),)),)))\n"
        "            return rows if expiry is None else map(expiry.without_expired, rows)\n",
        "rows expire after they were looked up",
        (
            (
                "rewrite/bucket_files.py",
                "return alive if expiry is None else alive & expiry.is_young(rows)",
                "return alive",
            ),
        ),
    ),
]

STATEMENT_MENDS = [
    Mutant(
        "UPDATE and MERGE append whole rows to sums and groups",
        "definition/statement_rules.py",
        "if options.fields_with(FIELD_SEQUENCE_GROUP):",
        "if False:",
        "an update beside sums",
    ),
    Mutant(
        "MERGE appends whole rows to sums and groups",
        "sql/change/merge.py",
        "target.change(Statement.MERGE, find, is_unique=is_unique, rewrites=way is Way.REWRITE)",
        "target.change(Statement.MERGE, find, is_unique=is_unique, rewrites=False)",
        "a merge beside sums",
    ),
    Mutant(
        "UPDATE appends to a group without an order",
        "sql/change/update.py",
        "target.change(Statement.UPDATE, partial(_new_rows, statement), is_unique=True, rewrites=rewrites)",
        "target.change(Statement.UPDATE, partial(_new_rows, statement), is_unique=True, rewrites=False)",
        "an update of a group without an order",
    ),
    Mutant(
        "MERGE deletes without asking what DELETE asks",
        "definition/statement_rules.py",
        "        rules.append(_delete(options))\n",
        "        pass\n",
        "a merge deletes",
        (("write/files.py", "        self._context.merge_engine.check_written(rows, np.asarray(kinds))\n", ""),),
    ),
    Mutant(
        "DELETE rewrites without merging first",
        "rewrite/rows_by_key.py",
        "        return settled(context, one_row_per_key=True)\n",
        "        return context.stores.snapshots.latest()\n",
        "a delete beside rows that add up",
        (
            (
                "rewrite/rows_by_key.py",
                "            if not is_one_run(",
                "            if False and is_one_run(",
            ),
        ),
    ),
    Mutant(
        "DELETE writes -D rows whatever the engine",
        "definition/statement_rules.py",
        'return Rule(Way.REWRITE, f"merge engine `{engine}` does not take -D rows as the end of a row")',
        "return Rule(Way.RETRACT)",
        "a delete beside rows that add up",
    ),
    Mutant(
        "UPDATE reads what is shown",
        "sql/change/target_rows.py",
        "return self.finder.pin_anew(_showing_all_stored(self.table, waiting=waiting))",
        "return self.finder.pin_anew(self.table)",
        "an update of a row with a newer one that is not shown",
    ),
    Mutant(
        "DELETE does not see rows that wait",
        "write/waiting_rows.py",
        "    if context.has_key:\n        WaitingRows(context).place(",
        "    if False:\n        WaitingRows(context).place(",
        "a delete of rows that wait",
    ),
    Mutant(
        "UPDATE to null is appended",
        "definition/statement_rules.py",
        "    if nullable:\n",
        "    if False:\n",
        "an update to nothing",
    ),
    Mutant(
        "UPDATE of a sequence field is appended",
        "definition/statement_rules.py",
        "if ordering and not is_merge:",
        "if False:",
        "an update to a smaller sequence",
    ),
    Mutant(
        "UPDATE to another partition is appended",
        "definition/statement_rules.py",
        "if sets.moves and not is_merge:",
        "if False:",
        "an update to another partition",
    ),
    Mutant(
        "a statement that is refused has placed rows",
        "sql/change/target_rows.py",
        '        return TargetRows(finder, table, alias or target.name.rpartition(".")[2])\n',
        "        place_waiting_rows(opened_of(table).folded())\n"
        '        return TargetRows(finder, table, alias or target.name.rpartition(".")[2])\n',
        "an update that is refused beside rows that wait",
    ),
]
"""The same of statements of SQL."""

CLASSICS = [
    Mutant(
        "lost update: the later commit keeps its old sequence numbers",
        "write/commit.py",
        "return restamp(self._attempt.fileio, old, new, file, layout, rules, shift)",
        "return restamp(self._attempt.fileio, old, new, file, layout, rules, -1)",
        "a writer commits after another one",
    ),
    Mutant(
        "a partial compaction drops deletes",
        "lsm/compaction/plan.py",
        "is_oldest or deletion_vectors, reason",
        "True, reason",
        "a delete meets older rows late",
    ),
    Mutant(
        "sequence numbers begin anew after a restart",
        "write/sequence.py",
        "return self._max_sequence.get((partition, bucket), highest) + 1 + self._numbers_left_out",
        "return 0",
        "a job begins again",
    ),
    Mutant(
        "the index of deleted rows is not rolled back",
        "maintenance/rollback.py",
        "index_entries=index, rewrites_manifests=True, restated=restated, rows_of=target",
        "rewrites_manifests=True, restated=restated, rows_of=target",
        "marks after an old state",
    ),
    Mutant(
        "the index of keys is lost when an old state comes back",
        "maintenance/rollback.py",
        "if target.index_manifest else ()",
        "if False else ()",
        "dynamic buckets after an old state",
    ),
    Mutant(
        "expiry forgets tags",
        "maintenance/references.py",
        "for tag in files.stores.tags.list() if tag.snapshot.id not in kept]",
        "for tag in [] if tag.snapshot.id not in kept]",
        "a tag outlives its snapshot",
    ),
    Mutant(
        "expiry forgets that old files came back",
        "maintenance/references.py",
        "if snapshot.commit_kind == CommitKind.OVERWRITE",
        "if False",
        "an old state outlives its snapshot",
    ),
    Mutant(
        "a replayed commit counts again",
        "commit/replay.py",
        "return last is not None and last >= identity.identifier",
        "return False",
        "a stream repeats its commit",
    ),
    Mutant(
        "identifiers of streams are forgotten with their snapshots",
        "commit/replay.py",
        "        here = dict(_remembered(snapshot))\n",
        "        here: dict[str, int] = {}\n",
        "a stream repeats its commit after its snapshots have expired",
    ),
    Mutant(
        "rows of another number of buckets are appended",
        "write/sequence.py",
        "if current > 0 and total_buckets > 0 and current != total_buckets:",
        "if False:",
        "another number of buckets",
    ),
    Mutant(
        "marks of compacted files stay",
        "rewrite/bucket.py",
        "entries = without_vectors(replace_entries(current, removed, added, table=self.context.name), gone)",
        "entries = replace_entries(current, removed, added, table=self.context.name)",
        "marks of files that are gone",
    ),
    Mutant(
        "columns of old files are found by name",
        "schema/evolution.py",
        "    return by_id.get(column.id)\n",
        "    return next((each for each in by_id.values() if each.name == column.name), None)\n",
        "a column goes and comes back",
    ),
    Mutant(
        "orphans: what only a tag needs is one",
        "maintenance/references.py",
        "if tag.name not in left_out:",
        "if False:",
        "orphans go while a tag needs files",
    ),
    Mutant(
        "changelogs tell no deletes",
        "merge/events.py",
        "deleted = np.zeros_like(had) if rules.skips_deletes else had & ~has",
        "deleted = np.zeros_like(had)",
        "changes are told",
    ),
    Mutant(
        "changelogs tell updates as inserts",
        "merge/events.py",
        "inserted = has & ~had",
        "inserted = has",
        "changes are told",
    ),
    Mutant(
        "column filters prune files that hide newer rows",
        "read/plan.py",
        "if self._predicate is not None and not self._context.has_key and not is_spread:",
        "if self._predicate is not None and not is_spread:",
        "filters and newer rows",
    ),
    Mutant(
        "a key that moves stays where it was too",
        "write/placement/crossing.py",
        "np.where(is_delete, np.int8(RowKind.DELETE), np.asarray(kinds)[taken])",
        "np.where(is_delete, np.int8(RowKind.INSERT), np.asarray(kinds)[taken])",
        "a key moves",
    ),
    Mutant(
        "first-row keeps the last one",
        "merge/first_row.py",
        "first = segments.first(~segments.retracts)",
        "first = segments.last(~segments.retracts)",
        "the first row stays",
    ),
    Mutant(
        "the order of sequence fields is turned round",
        "merge/base.py",
        "descending=self.descending) for name in self.sequence_fields]",
        "descending=not self.descending) for name in self.sequence_fields]",
        "later values of a sequence come first",
    ),
    Mutant(
        "rows that are marked are shown",
        "datafiles/read_file.py",
        "    if not len(deleted):\n        return batch, places\n",
        "    return batch, places\n",
        "marks of files that are gone",
    ),
    Mutant(
        "marks are lost when files with columns are joined",
        "rewrite/small_files.py",
        "        for file in message.compact_after if vectors else ():\n",
        "        for file in ():\n",
        "marks in files with columns",
    ),
    Mutant(
        "marks are joined without their places",
        "rewrite/columns.py",
        " + (first_row_id(anchor) - first))",
        ")",
        "marks in files with columns",
    ),
    Mutant(
        "a row that is deleted stays in its newer columns",
        "rewrite/rows_by_place.py",
        "emptied += self._same_rows(entry, live)",
        "emptied.append(entry)",
        "the last row of files with columns",
    ),
    Mutant(
        "record counts leave deletes out",
        "commit/committer.py",
        "return entry.file.row_count if entry.kind == EntryKind.ADD else -entry.file.row_count",
        "return entry.file.row_count if entry.kind == EntryKind.ADD else 0",
        "changes are told",
    ),
    Mutant(
        "numbers of rows that are not compacted yet are given again",
        "write/sequence.py",
        "            if entry.kind == EntryKind.DELETE:\n                continue\n"
        "            self._max_sequence[bucket] =",
        "            if entry.kind == EntryKind.DELETE or entry.file.level == 0:\n                continue\n"
        "            self._max_sequence[bucket] =",
        "rows of several commits",
    ),
]

MUTANTS = [*MENDS, *STATEMENT_MENDS, *CLASSICS]

__all__ = ["CLASSICS", "MENDS", "MUTANTS", "STATEMENT_MENDS", "Mutant"]
