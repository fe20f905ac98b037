"""One version of a table's schema: columns with their ids, keys, options, and the JSON form of schema files.

A schema is immutable; `changes` makes the next version. It carries options as text only: what they mean is the business
of the parts that use them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from itertools import count
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from lakebed.checksums import BROKEN_SEAL, is_seal_broken, sealed_json
from lakebed.errors import CorruptFile, InvalidSchema, NotFound, Unsupported, did_you_mean
from lakebed.notebook import short_list
from lakebed.records import dataclass
from lakebed.schema import column_options as co
from lakebed.schema.validation import check_default, check_structure, keys_from_options, with_key_nullability
from lakebed.types.arrow import to_arrow_schema
from lakebed.types.logical import DataField, renumbered

CURRENT_VERSION = 3
"""Version written to schema files."""

_TYPES_NOT_HONOURED = re.compile(r'"(VECTOR|GEOMETRY|GEOGRAPHY)\b')


@dataclass(frozen=True, repr=False)
class TableSchema:
    """Columns, keys and options of a table at one point in its life. `highest_field_id` counts dropped columns too."""

    id: int
    fields: tuple[DataField, ...]
    highest_field_id: int
    partition_keys: tuple[str, ...]
    primary_keys: tuple[str, ...]
    options: Mapping[str, str] = field(hash=False)
    comment: str | None
    time_millis: int
    version: int = CURRENT_VERSION

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", MappingProxyType(dict(self.options)))

    def __repr__(self) -> str:
        parts = [short_list([f"{column.name} {column.type}" for column in self.fields])]
        parts += [f"primary key {', '.join(self.primary_keys)}"] if self.primary_keys else []
        parts += [f"partitioned by {', '.join(self.partition_keys)}"] if self.partition_keys else []
        parts += [f"options {dict(self.options)}"] if self.options else []
        return f"<schema {self.id}: {'; '.join(parts)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        # A read-only mapping can not be pickled, and schemas travel to worker processes.
        parts = (self.id, self.fields, self.highest_field_id, self.partition_keys, self.primary_keys)
        return (TableSchema, (*parts, dict(self.options), self.comment, self.time_millis, self.version))

    @cached_property
    def field_names(self) -> tuple[str, ...]:
        """Column names in order."""
        return tuple(column.name for column in self.fields)

    @cached_property
    def trimmed_primary_key(self) -> tuple[str, ...]:
        """The primary key without partition columns, in the order of the primary key: what rows of a bucket sort by."""
        return tuple(name for name in self.primary_keys if name not in self.partition_keys)

    @cached_property
    def bucket_keys(self) -> tuple[str, ...]:
        """The columns whose hash chooses a bucket; empty when rows go to any bucket."""
        return co.split_names(self.options.get(co.BUCKET_KEY, "")) or self.trimmed_primary_key

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """The columns as Arrow fields."""
        return to_arrow_schema(self.fields)

    def field(self, name: str) -> DataField:
        """The column of that name."""
        return self.fields_of([name])[0]

    def fields_of(self, names: Iterable[str]) -> tuple[DataField, ...]:
        """The columns of those names, in that order."""
        by_name = {column.name: column for column in self.fields}
        found = []
        for name in names:
            if name not in by_name:
                raise NotFound(f"there is no column `{name}`", hint=did_you_mean(name, by_name))
            found.append(by_name[name])
        return tuple(found)

    @staticmethod
    def create(
        fields: Sequence[DataField],
        partition_keys: Iterable[str],
        primary_keys: Iterable[str],
        options: Mapping[str, str],
        comment: str | None,
        time_millis: int,
    ) -> TableSchema:
        """The first schema of a new table, its fields freshly numbered; raises for whatever a table must not have."""
        partition, primary, remaining = keys_from_options(partition_keys, primary_keys, options)
        numbers = count()
        numbered = []
        for column in fields:
            column_id = next(numbers)
            data_type = renumbered(column.type, lambda: next(numbers))
            numbered.append(replace(column, id=column_id, type=data_type))
        columns = with_key_nullability(numbered, primary, remaining)
        check_structure(columns, partition, primary, remaining)
        for column in columns:
            check_default(column)
        return TableSchema(0, columns, next(numbers) - 1, partition, primary, remaining, comment, time_millis)

    def to_json(self) -> str:
        """The text of this version's schema file."""
        body: dict[str, Any] = {
            "version": self.version,
            "id": self.id,
            "fields": [column.to_json() for column in self.fields],
            "highestFieldId": self.highest_field_id,
            "partitionKeys": list(self.partition_keys),
            "primaryKeys": list(self.primary_keys),
            "options": dict(self.options),
        }
        if self.comment is not None:  # other readers take a JSON null for the text "null"
            body["comment"] = self.comment
        body["timeMillis"] = self.time_millis
        return json.dumps(body, indent=2, ensure_ascii=False)

    def to_file(self) -> bytes:
        """This version's schema file: the text and its checksum."""
        return sealed_json(self.to_json()).encode()

    @staticmethod
    def from_json(text: str, path: str) -> TableSchema:
        """The schema that a schema file's content stands for; `path` is named when it can not be one."""
        if is_seal_broken(text.encode()):
            raise CorruptFile(f"schema file {path} is damaged: {BROKEN_SEAL}", hint="restore the file from a backup")
        try:
            return _from_body(json.loads(text))
        except InvalidSchema as error:
            name = _TYPES_NOT_HONOURED.search(text)
            if name:
                raise Unsupported(
                    f"schema file {path} has a column of type {name[1]}",
                    hint="tables with such columns can not be opened; drop the column with the engine that added it",
                ) from error
            raise CorruptFile(f"schema file {path}: {error.message}", hint=error.hint) from error
        except KeyError as error:
            raise CorruptFile(f"schema file {path} has no {error}", hint="restore the file from a backup") from error
        except (ValueError, TypeError, AttributeError) as error:
            raise CorruptFile(
                f"schema file {path} is not a schema: {error}", hint="restore the file from a backup"
            ) from error


def _from_body(body: dict[str, Any]) -> TableSchema:
    version = int(body.get("version", 1))
    options = {str(key): _option_text(value) for key, value in body["options"].items()}
    if version <= 1:
        options.setdefault(co.BUCKET, "1")  # the default of that time; it is -1 now
    if version <= 2:
        options.setdefault(co.FILE_FORMAT, "orc")  # likewise, now parquet
    comment = body.get("comment")
    return TableSchema(
        int(body["id"]),
        tuple(DataField.from_json(column) for column in body["fields"]),
        int(body["highestFieldId"]),
        tuple(str(name) for name in body["partitionKeys"]),
        tuple(str(name) for name in body["primaryKeys"]),
        options,
        None if comment is None else str(comment),
        int(body.get("timeMillis", 0)),
        version,
    )


def _option_text(value: Any) -> str:
    """Options are texts; writers that put numbers or booleans meant their JSON spelling."""
    return value if isinstance(value, str) else json.dumps(value)
