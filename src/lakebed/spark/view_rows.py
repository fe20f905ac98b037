"""The difference between the new rows of a materialized table and those that are stored, as a job: no row of either
comes to the driver. What it means is the same as in `views/apply`, where rows are in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import Window
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from lakebed.commit.replay import CommitIdentity
from lakebed.definition.context import TableContext
from lakebed.metadata.snapshot import Snapshot
from lakebed.spark.late_workers import until_workers_come
from lakebed.spark.types import spark_schema
from lakebed.spark.write import WriteJob
from lakebed.types.arrow import from_arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_NEW, _OLD, _EVENTS = "__is_new", "__is_old", "__events"


def _text(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def typed_like(frame: DataFrame, names: Sequence[str], stored: DataFrame) -> DataFrame:
    """The columns of a query under the names and types of stored ones, place by place."""
    renamed = frame.toDF(*names)
    types = {field.name: field.dataType for field in stored.schema.fields}
    return renamed.select(*(sf.col(_text(name)).cast(types[name]).alias(name) for name in names))


def numbered(frame: DataFrame, by: str, number: str) -> DataFrame:
    """Rows that are equal in a column, counted from one."""
    rows = Window.partitionBy(_text(by)).orderBy(_text(by))
    return frame.withColumn(number, sf.row_number().over(rows).cast("long"))


def row_twice(frame: DataFrame, key: Sequence[str]) -> dict[str, Any] | None:
    """A key that two rows share; None if none do."""
    found = frame.groupBy(*map(_text, key)).count().where("`count` > 1").drop("count").head(1)
    return found[0].asDict() if found else None


def difference(new: DataFrame, stored: DataFrame, names: Sequence[str], key: Sequence[str], kind: str) -> DataFrame:
    """Rows that are new, other or gone, with their kinds in front; old rows before those in their place.

    REQUIRES: in both frames no two rows share a key, and none of it is null.
    """
    left, right = (
        frame.select(*map(_text, names)).withColumn(mark, sf.lit(True)).alias(side)
        for frame, mark, side in ((new, _NEW, "n"), (stored, _OLD, "s"))
    )
    same = [sf.col(f"n.{_text(name)}") == sf.col(f"s.{_text(name)}") for name in key]
    together = left.join(right, same, "full_outer")
    types = {field.name: field.dataType for field in stored.schema.fields}
    others = [_differs(name, types[name]) for name in names if name not in key]
    is_other = sf.lit(False)
    for each in others:
        is_other = is_other | each

    def event(word: str, side: str) -> Column:
        columns = (sf.col(f"{side}.{_text(name)}").alias(name) for name in names)
        return sf.struct(sf.lit(word).alias(kind), *columns)

    events = (
        sf.when(sf.col(_OLD).isNull(), sf.array(event("+I", "n")))
        .when(sf.col(_NEW).isNull(), sf.array(event("-D", "s")))
        .when(is_other, sf.array(event("-U", "s"), event("+U", "n")))
    )
    told = together.select(events.alias(_EVENTS)).where(sf.col(_EVENTS).isNotNull())
    return told.select(sf.inline(_EVENTS))


def _differs(name: str, kind: st.DataType) -> Column:
    """Whether two values are not the same, down to the sign of zero; nulls are."""
    one, other = (sf.col(f"{side}.{_text(name)}") for side in ("n", "s"))
    if _holds(kind, st.MapType):  # Spark does not compare maps: their text does, and what only looks the same stays
        one, other = (sf.to_json(sf.struct(each.alias("v"))) for each in (one, other))
        return ~one.eqNullSafe(other)
    found = ~one.eqNullSafe(other)
    if _holds(kind, st.FractionalType) and not isinstance(kind, st.DecimalType):
        found = found | (one.cast("string") != other.cast("string"))
    return sf.coalesce(found, sf.lit(False))


def _holds(kind: st.DataType, wanted: type[st.DataType]) -> bool:
    if isinstance(kind, wanted):
        return True
    if isinstance(kind, st.StructType):
        return any(_holds(field.dataType, wanted) for field in kind.fields)
    if isinstance(kind, st.ArrayType):
        return _holds(kind.elementType, wanted)
    return isinstance(kind, st.MapType) and (_holds(kind.keyType, wanted) or _holds(kind.valueType, wanted))


def kept(frame: DataFrame) -> DataFrame:
    """The frame, computed once and kept on the disks of workers."""
    return frame.persist(StorageLevel.DISK_ONLY)


def kinds_of(events: DataFrame, kind: str) -> dict[str, int]:
    """How many rows there are of each kind."""
    rows = until_workers_come(events.groupBy(kind).count().collect)
    return {row[0]: row[1] for row in rows}


def texts_in(frame: DataFrame, column: str) -> list[str]:
    """The values of a column of a few rows."""
    rows = until_workers_come(frame.select(_text(column)).collect)
    return [row[0] for row in rows]


def shared_schema(rows: st.StructType, names: tuple[str, str, str, str, tuple[str, ...]]) -> st.StructType:
    """The columns of rows that are shared among tasks: the part, the table, the weight, and the row itself."""
    part, source, weight, row, given = names
    types = {field.name: field.dataType for field in rows.fields}
    members = [st.StructField(f"f{place}", types[name]) for place, name in enumerate(given)]
    numbers = [st.StructField(part, st.IntegerType()), st.StructField(source, st.IntegerType())]
    return st.StructType([*numbers, st.StructField(weight, st.LongType()), st.StructField(row, st.StructType(members))])


def in_tasks(
    frame: DataFrame,
    parts: int,
    number: str,
    work: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    schema: pa.Schema,
) -> DataFrame:
    """What work makes of the rows of each part, which a column numbers; one task for each."""
    made = spark_schema(from_arrow_schema(schema))
    return frame.repartitionById(parts, sf.col(_text(number))).mapInArrow(work, made)


def write_events(
    spark: SparkSession,
    context: TableContext,
    events: DataFrame,
    kind: str,
    identity: CommitIdentity,
    properties: Mapping[str, str],
) -> Snapshot | None:
    """Commits the events once; None if a commit of that identity was first."""
    job = WriteJob(context, kind, None, identity, properties=properties, tells_pairs=True)
    return job.run(spark, events)


__all__ = [
    "difference",
    "in_tasks",
    "kept",
    "kinds_of",
    "numbered",
    "row_twice",
    "shared_schema",
    "texts_in",
    "typed_like",
    "write_events",
]
