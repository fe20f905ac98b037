"""The engine that aggregates: every column has a function that folds the values of a key."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.errors import InvalidOption
from lakebed.merge.aggregates import Aggregate
from lakebed.merge.aggregates.configured import DEFAULT_FUNCTION, aggregate_for, function_of, settings_of
from lakebed.merge.aggregates.traced import trace_parts
from lakebed.merge.base import MergeSetup, value_columns
from lakebed.merge.folding import Folded, FoldingEngine
from lakebed.merge.segments import NO_ROW, Segments
from lakebed.merge.trace import Role, Trace
from lakebed.options import AGGREGATION_REMOVE_RECORD_ON_DELETE, IGNORE_DELETE, SEQUENCE_FIELD
from lakebed.types.key_value import VALUE_KIND
from lakebed.types.row_kind import RowKind, is_retract


class Aggregation(FoldingEngine):
    """One function per column; a row stays even when all was taken back, unless -D is set to remove it."""

    name = "aggregation"

    @cached_property
    def aggregates(self) -> Mapping[str, Aggregate]:
        """The function of every column outside the key."""
        ordering = set(self.setup.options[SEQUENCE_FIELD] or ())
        functions = {}
        for field in self.setup.fields:
            if field.name in self.setup.key:
                continue
            name = function_of(field.name, self.setup.options, default=DEFAULT_FUNCTION)
            # A column that orders rows holds the newest row's value.
            functions[field.name] = aggregate_for(
                field, "last_value" if field.name in ordering else str(name), self.setup.options
            )
        return functions

    @cached_property
    def newest_columns(self) -> frozenset[str]:
        """Those whose function says so."""
        return frozenset(name for name, aggregate in self.aggregates.items() if aggregate.takes_newest)

    def check_written(self, rows: pa.RecordBatch, kinds: npt.NDArray[np.int8]) -> None:
        """See `MergeEngine.check_written`: every function must be able to take its value back."""
        retracts = is_retract(kinds)
        if self.setup.options[AGGREGATION_REMOVE_RECORD_ON_DELETE]:
            retracts &= kinds != RowKind.DELETE
        if np.any(retracts):
            for name in value_columns(rows, self.setup.key):
                self.aggregates[name].check_retracted(rows.column(name).filter(pa.array(retracts)))

    def rule(self, column: str) -> str:
        """See `MergeEngine.rule`."""
        return self.aggregates[column].name

    def fold(self, rows: pa.RecordBatch, segments: Segments, trace: Trace | None = None) -> Folded:
        """See `FoldingEngine.fold`."""
        is_removed = np.zeros(len(segments), dtype=np.bool_)
        if not segments.has_retracts:
            names = value_columns(rows, self.setup.key)
            if trace is not None:
                self._trace_parts(trace, rows, segments)
            return Folded(
                {name: self.aggregates[name].reduce(rows.column(name), segments) for name in names}, is_removed
            )
        counts = np.ones(len(segments.order), dtype=np.bool_)
        if self.setup.options[IGNORE_DELETE]:
            counts = ~segments.retracts
            is_removed = ~segments.any(counts)
            if trace is not None:
                trace.note(segments.order[segments.retracts], Role.IGNORED)
        elif self.setup.options[AGGREGATION_REMOVE_RECORD_ON_DELETE]:
            is_delete = np.asarray(rows.column(VALUE_KIND))[segments.order] == RowKind.DELETE
            # What came before a -D is forgotten; a -D that nothing follows is the key's row.
            last_delete = segments.last(is_delete)
            counts = np.arange(len(is_delete)) > last_delete[segments.segment_of]
            is_removed = ~segments.any(counts)
            if trace is not None:
                trace.note(segments.order[~counts], Role.FORGOTTEN)
                trace.note(segments.order[last_delete[last_delete != NO_ROW]], Role.REMOVES)
        kept, remaining = segments.only(counts)
        if trace is not None and len(kept):
            self._trace_parts(trace, rows, kept)
        columns = {}
        for name in value_columns(rows, self.setup.key):
            column = rows.column(name)
            if len(remaining) == len(segments):
                columns[name] = self.aggregates[name].reduce(column, kept)
                continue
            # Removed keys show what their last record carried.
            last = segments.pick(column, segments.ends - 1)
            if not len(kept):
                columns[name] = last
                continue
            sources = np.arange(len(segments), dtype=np.int64)
            sources[remaining] = len(segments) + np.arange(len(remaining))
            columns[name] = pa.concat_arrays([last, self.aggregates[name].reduce(column, kept)]).take(pa.array(sources))
        return Folded(columns, is_removed)

    def _trace_parts(self, trace: Trace, rows: pa.RecordBatch, kept: Segments) -> None:
        for name in value_columns(rows, self.setup.key):
            aggregate = self.aggregates[name]
            reduced = partial(aggregate.reduce, segments=kept)
            trace_parts(trace, aggregate, rows.column(name), kept, reduced)

    @classmethod
    def check(cls, setup: MergeSetup, table: str) -> None:
        """Every function must exist and fit its column."""
        engine = cls(setup)
        functions = engine.aggregates
        if setup.options[AGGREGATION_REMOVE_RECORD_ON_DELETE]:
            for name in functions:
                if settings_of(name, setup.options).ignore_retract:
                    raise InvalidOption(
                        f"table `{table}`: `aggregation.remove-record-on-delete` does not go with "
                        f"`fields.{name}.ignore-retract`",
                        hint="set one of the two",
                    )
