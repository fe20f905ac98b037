"""Rows and writer calls that a table must refuse, each with an error that names the matter and changes nothing."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.unit.warehouse_under_test import Warehouse, ints

from lakebed import SetOption, Table
from lakebed.errors import CommitConflict, InvalidArgument, InvalidData, InvalidOption

ROWS = pa.table({"id": ints(1, 2), "v": ["a", "b"]})


@pytest.fixture(scope="module")
def keyed(lasting: Warehouse) -> Table:
    return lasting.table("keyed", {"id": "INT", "v": "STRING"}, ROWS, primary_key=["id"], options={"bucket": "1"})


@pytest.fixture(scope="module")
def plain(lasting: Warehouse) -> Table:
    return lasting.table("plain", {"id": "INT", "v": "STRING"}, ROWS)


@pytest.fixture(scope="module")
def parted(lasting: Warehouse) -> Table:
    rows = pa.table({"id": ints(1), "day": pa.array([dt.date(2024, 5, 1)]), "p": ["a"]})
    return lasting.table("parted", {"id": "INT", "day": "DATE", "p": "STRING"}, rows, partition_by=["day", "p"])


@pytest.mark.parametrize(
    ("rows", "texts"),
    [
        (
            pa.table({"id": ints(1, None), "v": ["a", "b"]}),
            ["default.keyed", "`id`", "NOT NULL", "(1 of them)", "drop"],
        ),
        (pa.table({"id": pa.nulls(1), "v": ["a"]}), ["`id`", "NOT NULL"]),
        (pa.table({"id": ints(1)}), ["default.keyed", "lacks column `v`", "id, v"]),
        (pa.table({"id": ints(1), "v": ["a"], "vv": [1]}), ["default.keyed", "`vv`", "did you mean `v`?"]),
        (pa.table({"id": ints(1), "V": ["a"]}), ["`V`", "drop the column, or add it"]),
        (pa.table([ints(1), ["a"], ["b"]], names=["id", "v", "v"]), ["default.keyed", "`v` twice"]),
        (pa.table({"other": pa.array([], pa.int32())}), ["`other`"]),
        (pa.table({"id": [1.5], "v": ["a"]}), ["`id`", "INT NOT NULL", "double", "1.5"]),
        (pa.table({"id": [2**40], "v": ["a"]}), ["`id`", "1099511627776"]),
        (pa.table({"id": ["1"], "v": ["a"]}), ["`id`", "texts are not turned into numbers"]),
    ],
)
def test_rows_that_do_not_fit(lasting: Warehouse, keyed: Table, rows: pa.Table, texts: list[str]) -> None:
    """A null key, a missing, extra, misspelled or doubled column, a value that does not fit: all are refused."""
    with lasting.refuses(InvalidData, *texts):
        keyed.write(rows)


@pytest.mark.parametrize(
    "data",
    [
        None,
        [1, 2],
        [{"id": 1, "v": "a"}, 2],
        {},
        {"id": 1, "v": "a"},
        "rows",
        7,
        object(),
        pa.array([1]),
        pa.chunked_array([[1]]),
        ROWS.schema,
        pd.Series([1]),
        pd.DataFrame({"id": [1, "x"], "v": ["a", "b"]}),
        pd.DataFrame([[1, 2]], columns=["id", "id"]),
        pl.LazyFrame({"id": [1], "v": ["a"]}),
    ],
    ids=lambda data: type(data).__module__ + "." + type(data).__qualname__,
)
def test_data_of_unsupported_types(lasting: Warehouse, keyed: Table, data: Any) -> None:
    """What is no table of rows is refused by the name of its type."""
    with lasting.refuses(InvalidData, f"data of type {type(data).__module__}.".replace("builtins.", "")):
        keyed.write(data)


def test_the_index_of_a_data_frame(lasting: Warehouse, keyed: Table) -> None:
    """A pandas index that would come along as a column is refused with the way to drop it."""
    with lasting.refuses(InvalidData, "__index_level_0__", "reset_index"):
        keyed.write(pd.DataFrame({"id": [1], "v": ["a"]}, index=["x"]))


def test_text_that_is_no_utf8(lasting: Warehouse, keyed: Table, plain: Table) -> None:
    """Bytes that are no UTF-8 do not get into a text column, even where Arrow believes that they are text."""
    forged = pa.array([b"\xff\xfe"]).view(pa.string())
    for column in (forged, forged.cast(pa.large_string()), forged.dictionary_encode()):
        with lasting.refuses(InvalidData, "`v`", "UTF-8", "BYTES"):
            plain.write(pa.table({"id": ints(1), "v": column}))


@pytest.mark.parametrize(
    ("kinds", "texts"),
    [
        (pa.array(["+I", "I"]), ["`kind`", "'I'", "+I, -U, +U"]),
        (pa.array(["+I", None]), ["`kind`", "None"]),
        (pa.array([0, 1]), ["`kind`", "'0'"]),
        (pa.array([["+I"], ["-D"]]), ["`kind`", "list"]),
    ],
)
def test_row_kinds_that_are_none(lasting: Warehouse, keyed: Table, kinds: pa.Array, texts: list[str]) -> None:
    """A row kind other than the four spellings is refused, and the column is named."""
    with lasting.refuses(InvalidData, *texts):
        keyed.write(ROWS.append_column("kind", kinds), row_kind="kind")


def test_row_kind_misused(lasting: Warehouse, keyed: Table, plain: Table) -> None:
    """row_kind needs a primary key, a column that is in the data, and one that is not the table's own."""
    with lasting.refuses(InvalidArgument, "default.plain", "no primary key"):
        plain.write(ROWS.append_column("kind", pa.array(["+I", "-D"])), row_kind="kind")
    with lasting.refuses(InvalidArgument, "default.keyed", "`v`"):
        keyed.write(ROWS, row_kind="v")
    with lasting.refuses(InvalidData, "default.keyed", "`kind`", "row_kind names"):
        keyed.write(ROWS, row_kind="kind")


@pytest.mark.parametrize(
    ("overwrite", "texts"),
    [
        ("all", ["overwrite='all'", "True, or a dict"]),
        (1, ["overwrite=1"]),
        ([], ["overwrite=[]"]),
        ({"pp": "a"}, ["`pp`", "default.parted", "did you mean `p`?"]),
        ({"id": 1}, ["`id` is not a partition column"]),
        ({1: 1}, ["`1` is not a partition column"]),
        ({"day": "soon"}, ["'soon'", "`day`", "DATE"]),
        ({"day": 1.5}, ["1.5", "`day`"]),
        ({"p": b"\xff"}, ["`p`", "STRING"]),
    ],
)
def test_overwrites_that_make_no_sense(lasting: Warehouse, parted: Table, overwrite: Any, texts: list[str]) -> None:
    """A partition to overwrite is named by partition columns and values of their types."""
    with lasting.refuses(InvalidArgument, *texts):
        parted.write(parted.to_arrow(), overwrite=overwrite)


def test_overwrite_with_rows_outside(lasting: Warehouse, parted: Table) -> None:
    """A static overwrite refuses rows of other partitions, rather than add them or lose them."""
    with lasting.refuses(InvalidData, "default.parted", "p=b", "p=a", "overwrite=True"):
        parted.write(parted.to_arrow(), overwrite={"p": "b"})


def test_partition_overwrite_without_partitions(lasting: Warehouse, plain: Table) -> None:
    """A table without partitions says so when one is to be overwritten."""
    with lasting.refuses(InvalidArgument, "default.plain", "has none", "overwrite=True"):
        plain.write(ROWS, overwrite={"p": 1})


@pytest.mark.parametrize(
    ("arguments", "texts"),
    [
        ({"commit_identifier": 5}, ["commit_identifier without commit_user"]),
        ({"commit_user": "", "commit_identifier": 5}, ["commit_user is ''"]),
        ({"commit_user": 5, "commit_identifier": 5}, ["commit_user is 5"]),
        ({"commit_user": "u", "commit_identifier": "5"}, ["commit_identifier is '5'"]),
        ({"commit_user": "u", "commit_identifier": -1}, ["commit_identifier is -1"]),
        ({"commit_user": "u", "commit_identifier": True}, ["commit_identifier is True"]),
        ({"commit_user": "u", "commit_identifier": 1 << 63}, ["commit_identifier is 9223372036854775808"]),
    ],
)
def test_commit_identities_that_are_none(
    lasting: Warehouse, keyed: Table, arguments: dict[str, Any], texts: list[str]
) -> None:
    """A replayable commit needs both a user and a number that grows."""
    with lasting.refuses(InvalidArgument, *texts):
        keyed.writer(**arguments)


@pytest.mark.parametrize("use", [lambda w: w.write(ROWS), lambda w: w.commit()], ids=["write", "commit"])
@pytest.mark.parametrize("end", ["commit", "abort"])
def test_writer_used_after_its_end(warehouse: Warehouse, use: Callable[[Any], object], end: str) -> None:
    """A writer that has committed or given up takes no more rows and commits no more."""
    table = warehouse.table("t", {"id": "INT", "v": "STRING"})
    writer = table.writer()
    writer.write(ROWS)
    getattr(writer, end)()
    with warehouse.refuses(InvalidArgument, "default.t", "writer"):
        use(writer)
    writer.abort()
    assert table.to_arrow().num_rows == (2 if end == "commit" else 0)


@pytest.mark.parametrize("key", [["id"], []], ids=["keyed", "append"])
@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_an_error_half_way_leaves_nothing(warehouse: Warehouse, key: list[str], file_format: str) -> None:
    """When the third batch does not fit, the first two leave no file behind."""
    options = {"bucket": "2", "bucket-key": "id", "file.format": file_format}
    table = warehouse.table("t", {"id": "INT NOT NULL", "v": "STRING"}, primary_key=key, options=options)
    good = ROWS.to_batches()[0]
    with warehouse.refuses(InvalidData, "`id`"):
        table.write([good, good, pa.record_batch({"id": ints(None), "v": ["x"]})])
    with warehouse.refuses(InvalidData, "`id`"), table.writer() as writer:
        writer.write(good)
        writer.write(pa.table({"id": ["x"], "v": ["x"]}))


def test_writing_with_another_number_of_buckets(lasting: Warehouse, keyed: Table) -> None:
    """Rows hashed into another number of buckets than the files there are refused: they would not be found again."""
    keyed.alter(SetOption("bucket", "7"))
    with lasting.refuses(CommitConflict, "default.keyed", "7 buckets", "overwrite"):
        keyed.write(ROWS)


def test_a_number_of_buckets_for_one_handle(lasting: Warehouse) -> None:
    """A handle has no number of buckets of its own, also while nothing is stored: others would look elsewhere."""
    table = lasting.table("counted", {"id": "INT NOT NULL"}, primary_key=["id"], options={"bucket": "1"})
    for given in ("3", "-1", "-2"):
        with lasting.refuses(InvalidOption, "default.counted", "`bucket`", f"`{given}`", "rescale"):
            table.with_options({"bucket": given})
    table.with_options({"bucket": "1"}).write(pa.table({"id": ints(1)}))


def test_writing_to_the_past(lasting: Warehouse, keyed: Table) -> None:
    """A view of an earlier state refuses every way to write and says how to get the table itself."""
    past = keyed.at(snapshot=1)
    uses: list[Callable[[], object]] = [
        lambda: past.write(ROWS),
        past.writer,
        past.truncate,
        past.alter,
        lambda: past.create_tag("x"),
        lambda: past.delete_tag("x"),
    ]
    for use in uses:
        with lasting.refuses(InvalidArgument, "default.keyed", "snapshot 1", "without at(...)"):
            use()
