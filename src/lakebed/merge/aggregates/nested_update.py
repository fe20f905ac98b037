"""`nested_update`: a table inside a row, kept up to date by records that carry some of its rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lakebed.errors import InvalidOption
from lakebed.merge.aggregates.base import AggregateSettings
from lakebed.merge.aggregates.elements import Elements, gathered, since_cleared
from lakebed.merge.aggregates.nested_rows import NestedRows, check_members, row_of
from lakebed.merge.segments import NO_ROW, Indices, Mask, Segments
from lakebed.types import ordering
from lakebed.types.logical import DataField, is_nested


class NestedUpdate(NestedRows):
    """Without nested key rows are appended, and a retract removes all rows equal to its own.

    With nested key the newest row of each key is kept, or the one with the greatest `nested-sequence-field` (the newer
    of equal ones), and a retract removes by key. Rows stay where their key was first seen; null rows are left out.
    Once there are `count-limit` rows no others are taken, but known keys are still updated.
    """

    name = "nested_update"
    can_retract = True
    forgets_early_retracts = True

    @classmethod
    def check(cls, field: DataField, settings: AggregateSettings) -> None:
        super().check(field, settings)
        check_members(field, "nested-sequence-field", settings.nested_sequence_field)
        if settings.nested_sequence_field and not settings.nested_key:
            raise InvalidOption(
                f"`fields.{field.name}.nested-sequence-field` is set, but `fields.{field.name}.nested-key` is not",
                hint="name the nested key, or leave the sequence field out",
            )
        for member in row_of(field).fields:
            if member.name in settings.nested_sequence_field and is_nested(member.type):
                raise InvalidOption(
                    f"`fields.{field.name}.nested-sequence-field` names `{member.name}`, whose type {member.type} has "
                    "no order",
                    hint="name members of a type that can be compared, such as BIGINT or TIMESTAMP",
                )

    def fold(self, column: pa.Array, segments: Segments) -> pa.Array:
        elements = Elements.of(column, segments)
        adds = segments.valid(column) & ~segments.retracts
        first_add = segments.first(adds)
        # Before anything was added there is nothing to retract from, and such rows are not even looked at.
        begun = np.where(first_add == NO_ROW, len(adds), first_add)[elements.segment]
        counts = self.rows_that_count(elements, elements.position >= begun)
        keys, sequence = self.key_codes(elements.values), self._sequence(elements.values)

        chosen, places = self._choose(elements.grouped(keys, counts), sequence)
        crowded = self._crowded(elements, keys, counts, len(segments))
        if np.any(crowded):
            apart = ~crowded[elements.segment[chosen]]
            chosen_one_by_one, places_one_by_one = self._choose_one_by_one(
                elements, keys, sequence, np.flatnonzero(counts & crowded[elements.segment])
            )
            chosen = np.concatenate([chosen[apart], chosen_one_by_one])
            places = np.concatenate([places[apart], places_one_by_one])
        return gathered(
            column.type,
            elements.values,
            chosen,
            segment=elements.segment[chosen],
            places=places,
            is_null=first_add == NO_ROW,
            limit=self.settings.count_limit,
        )

    def _sequence(self, rows: pa.Array) -> Indices:
        """Ranks of the rows by their sequence members; all the same without such members."""
        names = self.settings.nested_sequence_field
        ranks = np.zeros(len(rows), dtype=np.int64)
        if names:
            codes = [ordering.sort_codes(self.member(rows, name)) for name in names]
            order = ordering.argsort(codes)
            ranks[order] = np.cumsum(ordering.changes([code[order] for code in codes]))
        return ranks

    def _choose(self, same: Segments, sequence: Indices) -> tuple[Indices, Indices]:
        """The rows that remain when there is no limit, and the rows in whose place they stand."""
        alive = since_cleared(same, same.retracts)
        if not self.settings.nested_key:
            return same.order[alive], same.order[alive]
        first, best = same.first(alive), same.greatest(sequence[same.order], alive)
        kept = best != NO_ROW
        return same.order[best[kept]], same.order[first[kept]]

    def _crowded(self, elements: Elements, keys: Indices, counts: Mask, num_segments: int) -> Mask:
        """Segments in which rows go and others come while the limit may be reached.

        Everywhere else the limit cuts off what came last.
        """
        limit = self.settings.count_limit
        if limit is None or limit >= len(elements) or not np.any(elements.retracts & counts):
            return np.zeros(num_segments, dtype=np.bool_)
        added = np.flatnonzero(counts & ~elements.retracts)
        if self.settings.nested_key:
            same = elements.grouped(keys, counts & ~elements.retracts)
            added = same.order[same.starts]
        is_full = np.bincount(elements.segment[added], minlength=num_segments) > limit
        has_retracts = np.zeros(num_segments, dtype=np.bool_)
        has_retracts[elements.segment[elements.retracts & counts]] = True
        return is_full & has_retracts

    def _choose_one_by_one(
        self, elements: Elements, keys: Indices, sequence: Indices, rows: Indices
    ) -> tuple[Indices, Indices]:
        """As `_choose`, with the limit.

        Whether a row is taken depends on how many are there at that moment, and so on every row before it: this is
        the one place where rows are visited one at a time.
        """
        limit, has_keys = self.settings.count_limit, bool(self.settings.nested_key)
        assert limit is not None
        kept: dict[tuple[int, int], dict[int, int]] = {}  # (segment, key) -> place -> row
        sizes: dict[int, int] = {}
        segment_list, key_list = elements.segment[rows].tolist(), keys[rows].tolist()
        for row, segment, key in zip(rows.tolist(), segment_list, key_list, strict=True):
            mine = kept.setdefault((segment, key), {})
            size = sizes.get(segment, 0)
            if elements.retracts[row]:
                sizes[segment] = size - len(mine)
                mine.clear()
            elif has_keys and mine:
                ((place, old),) = mine.items()
                mine[place] = row if sequence[row] >= sequence[old] else old
            elif size < limit:
                mine[row] = row
                sizes[segment] = size + 1
        pairs = np.array([pair for mine in kept.values() for pair in mine.items()], dtype=np.int64).reshape(-1, 2)
        return pairs[:, 1], pairs[:, 0]
