"""Builds the indexes of a data file while its rows are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from types import ModuleType
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.datafiles.index.container import pack
from lakebed.errors import InvalidOption, did_you_mean
from lakebed.records import dataclass
from lakebed.registry import Registry
from lakebed.types.logical import STRINGS, DataField, DataType, MapType, is_root

BLOOM, BITMAP, RANGE_BITMAP, BSI = "bloom-filter", "bitmap", "range-bitmap", "bsi"

KINDS: Registry[ModuleType] = Registry(
    "lakebed.datafiles.index", {BLOOM: "bloom", BITMAP: "bitmap", RANGE_BITMAP: "range_bitmap", BSI: "bsi"}
)
"""Indexes that are written and read; each is a module with the same names in it."""


@dataclass(frozen=True, slots=True)
class IndexSpec:
    """One index of one column, or of the values that one key of a MAP column has."""

    column: DataField
    kind: str
    settings: Mapping[str, str] = field(default_factory=dict)
    key: str | None = None

    @property
    def name(self) -> str:
        """What the index is of, as other engines spell it."""
        return self.column.name if self.key is None else f"{self.column.name}[{self.key}]"

    @property
    def type(self) -> DataType:
        """The type of its values."""
        return self.column.type.value if isinstance(self.column.type, MapType) else self.column.type

    def check(self) -> None:
        """Raises if there is no such index, naming what is wrong with it."""
        module = KINDS[self.kind]
        is_map = isinstance(self.column.type, MapType) and is_root(self.column.type.key, STRINGS)
        if is_map != (self.key is not None) or not module.supports(self.type):
            raise InvalidOption(
                f"column `{self.name}` ({self.column.type}) can not have a {self.kind} index",
                hint="of a MAP with texts as keys name single keys, as in `m[key]`"
                if is_map
                else f"leave it out of `file-index.{self.kind}.columns`",
            )
        for name in self.settings:
            if name not in module.SETTINGS:
                raise InvalidOption(
                    f"a {self.kind} index has no setting `{name}`", hint=did_you_mean(name, module.SETTINGS)
                )
        module.check_settings(self.settings)

    def builder(self) -> Builder:
        """A builder for one file."""
        return _BUILDERS[self.kind](self.type, self.settings)

    def values(self, rows: pa.RecordBatch) -> pa.Array:
        """The values of rows."""
        column = rows.column(self.column.name)
        if self.key is None:
            return column
        return pc.map_lookup(column, pa.scalar(self.key, column.type.key_type), "first")


class Builder(Protocol):
    """Takes a column batch by batch and gives its index."""

    def __init__(self, data_type: DataType, settings: Mapping[str, str]) -> None: ...

    def add(self, column: pa.Array) -> None: ...

    def finish(self) -> bytes: ...


_BUILDERS: Registry[type[Builder]] = Registry(
    "lakebed.datafiles.index",
    {
        BLOOM: "bloom.BloomBuilder",
        BITMAP: "bitmap.BitmapBuilder",
        RANGE_BITMAP: "range_bitmap.RangeBitmapBuilder",
        BSI: "bsi.BsiBuilder",
    },
)


class FileIndexBuilder:
    """All indexes of one file."""

    def __init__(self, specs: Sequence[IndexSpec]) -> None:
        self._builders = [(spec, spec.builder()) for spec in specs]

    def add(self, rows: pa.RecordBatch) -> None:
        """The next rows of the file."""
        for spec, builder in self._builders:
            builder.add(spec.values(rows))

    def finish(self) -> bytes | None:
        """The container; None where nothing is indexed."""
        indexes: dict[str, dict[str, bytes | None]] = {}
        for spec, builder in self._builders:
            indexes.setdefault(spec.name, {})[spec.kind] = builder.finish()
        return pack(indexes) if indexes else None
