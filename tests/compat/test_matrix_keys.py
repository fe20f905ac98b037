"""Keys, buckets and partitions of every type: Java finds what Lakebed wrote where it looks for it, and the reverse."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakebed.bucket.fixed import assign_buckets
from lakebed.errors import InvalidSchema
from lakebed.types.arrow import as_data_type, to_arrow_type

from . import ours
from .judges import JavaJudge, Row, assert_same_rows
from .judges.canonical import arrow_table
from .matrix_data import COLUMNS, FINE_COLUMNS, Column

ALL = {column.name: column for column in [*COLUMNS, *FINE_COLUMNS[:2]]}
ATOMIC = {name: column for name, column in ALL.items() if "<" not in column.type and column.type != "VARIANT"}
BUCKETS = 4
NAN = "NaN"
"""No key for Java: see the test of exactly that."""


def keys(*names: str) -> list[Row]:
    """One row for each value of the first column, with values of the others beside it."""
    columns = [(name, [value for value in ATOMIC[name].values if value != NAN]) for name in names]
    return [
        {name: values[(n + at) % len(values)] for at, (name, values) in enumerate(columns)}
        for n in range(max(len(values) for _, values in columns))
    ]


KEYS = {name: (name,) for name in ATOMIC} | {
    "c_string+c_int": ("c_string", "c_int"),
    "c_decimal_38+c_ts_6": ("c_decimal_38", "c_ts_6"),
    "c_bytes+c_date+c_boolean": ("c_bytes", "c_date", "c_boolean"),
}


@pytest.mark.parametrize("name", KEYS)
def test_java_and_lakebed_update_each_others_keys(name: str, java_judge: JavaJudge, tmp_path: Path) -> None:
    """Java updates every key Lakebed wrote, and Lakebed those: there is one row per key, in the bucket of both."""
    names = KEYS[name]
    schema = {key: f"{ATOMIC[key].type} NOT NULL" for key in names} | {"v": "INT"}
    table = ours.create(tmp_path, "t", schema, primary_key=names, options={"bucket": str(BUCKETS)})
    rows = [key | {"v": n} for n, key in enumerate(keys(*names))]
    ours.write(table, rows)
    assert_same_rows(table.to_arrow(), rows)

    fields = [(key, ATOMIC[key].type, False) for key in names]
    assert buckets_of(rows, fields) == java_judge.buckets(tmp_path, "db", "t", rows)
    updated = [row | {"v": row["v"] + 100} for row in rows]
    java_judge.append(tmp_path, "db", "t", updated)
    assert_same_rows(table.to_arrow(), updated)
    assert_same_rows(java_judge.read(tmp_path, "db", "t"), updated)

    again = [row | {"v": row["v"] + 200} for row in rows]
    ours.write(table, again, ["-D", *["+U"] * (len(again) - 1)])
    assert_same_rows(java_judge.read(tmp_path, "db", "t"), again[1:])
    for row in rows:
        found = java_judge.read(tmp_path, "db", "t", equal={key: row[key] for key in names})
        assert_same_rows(found, [other for other in again[1:] if all(other[key] == row[key] for key in names)])


def test_java_loses_rows_whose_key_is_nan(java_judge: JavaJudge, tmp_path: Path) -> None:
    """To Java 1 a NaN equals every key, so that another row disappears; Java 2 orders it after all others, as we do."""
    rows = [{"k": key, "v": n} for n, key in enumerate(ATOMIC["c_float"].values)]
    java_judge.create(
        tmp_path, "db", "t", [("k", "FLOAT", False), ("v", "INT", True)], primary_keys=["k"], options={"bucket": "1"}
    )
    java_judge.append(tmp_path, "db", "t", rows)
    found = java_judge.read(tmp_path, "db", "t")
    assert len(found) < len(rows) if java_judge.release == 1 else len(found) == len(rows)
    assert_same_rows(ours.open_table(tmp_path, "t").to_arrow(), found)


def buckets_of(rows: list[Row], fields: list[tuple[str, str, bool]], function: str = "default") -> list[int]:
    """Lakebed's own choice of buckets."""
    types = [as_data_type(text, name) for name, text, _ in fields]
    schema = pa.schema([(name, to_arrow_type(kind)) for (name, _, _), kind in zip(fields, types, strict=True)])
    data = arrow_table([{name: row[name] for name in schema.names} for row in rows], schema)
    columns = [column.combine_chunks() for column in data.columns]
    return [int(bucket) for bucket in assign_buckets(columns, types, BUCKETS, function)]


@pytest.mark.parametrize(
    ("function", "names"),
    [
        ("default", list(ATOMIC)),
        ("mod", ["c_int", "c_bigint"]),
        ("hive", [name for name in ATOMIC if not name.startswith(("c_ts", "c_ltz"))]),
    ],
)
def test_bucket_functions_agree_with_java(function: str, names: list[str], java_judge: JavaJudge) -> None:
    """The bucket of every value of every type, null among them, alone and beside another column."""
    wrong: list[Any] = []
    for name in names:
        for chosen in [(name,)] if function == "mod" else [(name,), (name, "c_boolean")][: 1 + (name != "c_boolean")]:
            fields = [(key, ATOMIC[key].type, True) for key in chosen]
            rows = [*keys(*chosen), dict.fromkeys(chosen)] if function != "mod" else keys(*chosen)
            theirs = java_judge.binary_rows(fields, rows, num_buckets=BUCKETS, bucket_function=function)
            mine = buckets_of(rows, fields, function)
            wrong += [
                (row, our, their["bucket"])
                for row, our, their in zip(rows, mine, theirs, strict=True)
                if our != their["bucket"]
            ]
    assert not wrong


# ---------------------------------------------------------------- partitions

PARTITIONS = {name: column for name, column in ATOMIC.items() if name != "c_string"} | {
    "c_string": Column(
        "c_string", "STRING", ("plain", "ü 中", "\U0001f300", "a\"#%'*/:=?\\{}[]^b", "~!@$&()+,;<>|", " x ")
    ),
    "c_varchar": Column("c_varchar", "VARCHAR(20)", ("plain", "", "  ", "\t", "\x7f\x01", "%3A", ".")),
}
NO_LEGACY_NAME = ["c_binary", "c_varbinary", "c_bytes"]


def directories(table: Path) -> list[str]:
    return sorted(path.name for path in table.iterdir() if "=" in path.name)


@pytest.mark.parametrize("legacy", ["true", "false"])
@pytest.mark.parametrize("name", PARTITIONS)
def test_partition_directories_are_those_of_java(name: str, legacy: str, java_judge: JavaJudge, tmp_path: Path) -> None:
    """Lakebed and Java choose the same directory for every value, and add to each other's partitions."""
    column = PARTITIONS[name]
    rows = [{"p": value, "v": n} for n, value in enumerate([*column.values, None])]
    options = {} if legacy == "true" else {"partition.legacy-name": "false"}
    if legacy == "true" and name in NO_LEGACY_NAME:
        with pytest.raises(InvalidSchema, match="directory name"):
            ours.create(tmp_path, "ours", {"p": column.type, "v": "INT"}, partition_by=["p"])
        return
    table = ours.create(tmp_path, "ours", {"p": column.type, "v": "INT"}, partition_by=["p"], options=options)
    ours.write(table, rows)
    fields = [("p", column.type, True), ("v", "INT", True)]
    java_judge.create(tmp_path, "db", "theirs", fields, partition_keys=["p"], options=options)
    java_judge.append(tmp_path, "db", "theirs", rows)
    assert directories(tmp_path / "db.db" / "ours") == directories(tmp_path / "db.db" / "theirs")

    java_judge.append(tmp_path, "db", "ours", rows)
    ours.write(ours.open_table(tmp_path, "theirs"), rows)
    for found in (java_judge.read(tmp_path, "db", "ours"), java_judge.read(tmp_path, "db", "theirs")):
        assert_same_rows(found, rows + rows)
    assert_same_rows(table.to_arrow(), rows + rows)
    assert_same_rows(ours.open_table(tmp_path, "theirs").to_arrow(), rows + rows)
    for row in rows:
        found = java_judge.read(tmp_path, "db", "ours", equal={"p": row["p"]})
        assert_same_rows(found, [other for other in rows + rows if other["p"] == row["p"]])
