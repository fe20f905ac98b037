"""From descriptions of a source to schema changes: additions, renames, drops, types, by policy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lakebed.cdc.envelope import COPY, STREAM, Description, NameChanges, SourceColumn, SourceName
from lakebed.cdc.schema.links import ColumnLink, TableLinks
from lakebed.cdc.schema.sync import Naming, Policies, SchemaStep, plan_step
from lakebed.errors import InvalidArgument, InvalidSchema
from lakebed.schema.changes import AddColumn, DropColumn, RenameColumn, UpdateColumnType
from lakebed.schema.table_schema import TableSchema
from lakebed.types.logical import DataField, parse_type


def schema_of(**columns: str) -> TableSchema:
    fields = tuple(DataField(number, name, parse_type(text)) for number, (name, text) in enumerate(columns.items()))
    return TableSchema(0, fields, len(fields) - 1, (), ("id",), {}, None, 0)


def told(*columns: tuple[Any, ...]) -> Description:
    """Columns by name, type, id and default."""
    padded = [(*column, None, None)[:4] for column in columns]
    found = [SourceColumn(name, text, None, default, number) for name, text, number, default in padded]
    return Description(tuple(found), ("id",))


BASE = schema_of(id="INT NOT NULL", v="INT")
LINKS = {"1": ColumnLink(0, streamed_in=1), "2": ColumnLink(1, streamed_in=1)}
ID = ("id", "INT NOT NULL", 1)


def step(description: Description, policies: Policies | None = None, **more: Any) -> SchemaStep:
    arguments: dict[str, Any] = {"phase": STREAM, "identifier": 5, **more}
    phase, identifier = arguments.pop("phase"), arguments.pop("identifier")
    links = arguments.pop("links", LINKS)
    schema = arguments.pop("schema", BASE)
    return plan_step(schema, links, description, phase, policies or Policies(), identifier, **arguments)


def columns_of(found: SchemaStep) -> dict[str, str]:
    return {field.name: str(field.type) for field in found.schema.fields}


def test_nothing_changes_where_nothing_changed() -> None:
    """A description that the table fits already makes no change."""
    assert step(told(ID, ("v", "INT", 2))).changes == ()


def test_i_04_a_new_column_is_added_at_the_end_and_may_be_null() -> None:
    """I-04: a column that the target lacks is added, NULL allowed whatever the source says."""
    found = step(told(ID, ("w", "STRING NOT NULL", 3), ("v", "INT", 2)))
    assert columns_of(found) == {"id": "INT NOT NULL", "v": "INT", "w": "STRING"}
    assert [type(change) for change in found.changes] == [AddColumn]
    assert found.fields == {"id": 0, "w": 2, "v": 1}


def test_a_new_column_remembers_the_value_of_old_rows() -> None:
    """The value that the source gives to rows it had is asked for, and stays with the link."""
    found = step(told(ID, ("v", "INT", 2), ("w", "INT", 3, "7")))
    assert found.added == {2: "7"}
    assert found.links["3"] == ColumnLink(2, "7", 5)


def test_wider_types_are_followed_and_narrower_ones_ignored() -> None:
    """The table's type grows, and never shrinks."""
    wider = step(told(ID, ("v", "BIGINT", 2)))
    assert columns_of(wider)["v"] == "BIGINT"
    assert step(told(ID, ("v", "INT", 2)), schema=wider.schema).changes == ()


def test_null_is_allowed_when_the_source_allows_it() -> None:
    """NOT NULL is taken back; it is never put on a column that may hold NULL."""
    strict = schema_of(id="INT NOT NULL", v="INT NOT NULL")
    assert columns_of(step(told(ID, ("v", "INT", 2)), schema=strict))["v"] == "INT"
    assert step(told(ID, ("v", "INT NOT NULL", 2))).changes == ()


def test_comments_follow() -> None:
    """Comments of columns and of the table are taken over."""
    described = Description(
        (SourceColumn("id", "INT NOT NULL", id=1), SourceColumn("v", "INT", "the value", id=2)),  # type: ignore[arg-type]
        ("id",),
        "orders",
    )
    found = step(described)
    assert found.schema.field("v").description == "the value"
    assert found.schema.comment == "orders"


def test_a_renamed_column_is_a_new_one_by_default() -> None:
    """`keep`: the old column stays with its data, the new one is added; its default fills no old row."""
    found = step(told(ID, ("x", "INT", 2, "7")))
    assert columns_of(found) == {"id": "INT NOT NULL", "v": "INT", "x": "INT"}
    assert found.fields["x"] == 2
    assert not found.added


def test_a_renamed_column_keeps_its_data_if_it_is_followed() -> None:
    """`follow`: the column is renamed, its id stays."""
    found = step(told(ID, ("x", "INT", 2)), Policies(rename="follow"))
    assert found.changes == (RenameColumn(("v",), "x"),)
    assert found.fields["x"] == 1


def test_names_may_be_exchanged() -> None:
    """Two columns that swap their names are both renamed."""
    schema = schema_of(id="INT NOT NULL", a="INT", b="INT")
    links = {**LINKS, "3": ColumnLink(2, streamed_in=1)}
    found = step(told(ID, ("b", "INT", 2), ("a", "INT", 3)), Policies(rename="follow"), schema=schema, links=links)
    assert {field.id: field.name for field in found.schema.fields} == {0: "id", 1: "b", 2: "a"}


def test_a_column_whose_id_is_forgotten_is_known_by_its_name() -> None:
    """A source that has lost a column's id does not lose the column; old names count too."""
    policies = Policies("follow", "follow")
    assert step(told(ID, ("v", "INT")), policies).changes == ()
    renamed = step(told(ID, ("x", "INT", 2)), policies)
    again = step(told(ID, ("v", "INT")), policies, schema=renamed.schema, links=renamed.links)
    assert again.fields["v"] == 1


def test_a_dropped_column_stays_by_default_and_goes_if_followed() -> None:
    """`keep` leaves the column, `follow` drops it."""
    assert step(told(ID)).changes == ()
    assert step(told(ID), Policies(drop="follow")).changes == (DropColumn(("v",)),)


def test_a_dropped_and_added_column_of_one_name_is_a_new_one() -> None:
    """With another id the column of that name has none of the old values."""
    found = step(told(ID, ("v", "STRING", 9)), Policies(drop="follow"))
    assert [type(change) for change in found.changes] == [DropColumn, AddColumn]
    assert found.fields["v"] == 2


def test_what_only_the_copy_knows_is_not_dropped() -> None:
    """A description from the log that is older than the copy takes nothing away, and neither does the copy."""
    links = {"1": ColumnLink(0), "2": ColumnLink(1)}
    policies = Policies("follow", "follow")
    assert step(told(ID), policies, links=links).changes == ()
    assert step(told(ID), policies, phase=COPY).changes == ()
    assert step(told(ID, ("x", "INT", 2)), policies, phase=COPY).fields["x"] == 1


def test_a_column_that_only_the_copy_knew_goes_when_later_ones_are_known() -> None:
    """The log knows a column that came after it, so it can not be too old to know this one."""
    links = {"1": ColumnLink(0), "2": ColumnLink(1)}
    found = step(told(ID, ("w", "INT", 3)), Policies(drop="follow"), links=links)
    assert [type(change) for change in found.changes] == [DropColumn, AddColumn]


def test_a_repeated_commit_sees_what_it_saw_first() -> None:
    """A column that this very commit has added is not taken for one that an older description has dropped."""
    links = {**LINKS, "3": ColumnLink(2, "7", 5)}
    schema = schema_of(id="INT NOT NULL", v="INT", w="INT")
    policies = Policies(drop="follow")
    assert step(told(ID, ("v", "INT", 2)), policies, schema=schema, links=links).changes == ()
    dropped = step(told(ID, ("v", "INT", 2)), policies, schema=schema, links=links, seen={"3"})
    assert dropped.changes == (DropColumn(("w",)),)


@pytest.mark.parametrize(
    ("policies", "description", "part"),
    [
        (Policies(rename="fail"), told(ID, ("x", "INT", 2)), "`v` is called `x`"),
        (Policies(drop="fail"), told(ID), "`v` is gone"),
        (Policies(), told(ID, ("v", "STRING", 2)), "`v` is INT and becomes STRING"),
        (Policies(drop="follow"), told(("v", "INT", 2)), "key column `id` is gone"),
        (Policies(), told(("id", "BIGINT NOT NULL", 1), ("v", "INT", 2)), "key column `id` is INT"),
    ],
)
def test_what_a_policy_forbids_stops_the_sync(policies: Policies, description: Description, part: str) -> None:
    """The error names the table, the column and the way on."""
    with pytest.raises(InvalidSchema) as caught:
        step(description, policies, naming=Naming("lk.t"))
    assert part in caught.value.message
    assert "lk.t" in caught.value.message


def test_incompatible_types_become_text_or_are_ignored() -> None:
    """`string` keeps both as text, `ignore` leaves the column as it is."""
    text = step(told(ID, ("v", "DATE", 2)), Policies(incompatible="string"))
    assert [type(change) for change in text.changes] == [UpdateColumnType]
    assert columns_of(text)["v"] == "STRING"
    assert step(told(ID, ("v", "DATE", 2)), Policies(incompatible="string"), schema=text.schema).changes == ()
    assert step(told(ID, ("v", "DATE", 2)), Policies(incompatible="ignore")).changes == ()


def test_a_source_without_types_leaves_types_alone() -> None:
    """Texts go into columns of any type that are there; new columns are text."""
    described = Description(
        tuple(SourceColumn(name, "STRING") for name in ("id", "v", "w")),  # type: ignore[arg-type]
        ("id",),
        typed=False,
    )
    found = step(described, links={})
    assert columns_of(found) == {"id": "INT NOT NULL", "v": "INT", "w": "STRING"}


def test_names_are_lowered_if_asked_for() -> None:
    """Columns follow the case of tables."""
    found = step(told(ID, ("V", "BIGINT"), ("New", "INT", 3)), naming=Naming(lower_case=True), links={})
    assert columns_of(found) == {"id": "INT NOT NULL", "v": "BIGINT", "new": "INT"}


def test_columns_of_the_sync_itself_are_not_the_sources() -> None:
    """A source column that is called like a computed one stops the sync."""
    with pytest.raises(InvalidSchema, match="`dt`"):
        step(told(ID, ("dt", "INT", 3)), naming=Naming(reserved=frozenset({"dt"})))


def test_unknown_policies_are_refused() -> None:
    """The right word is offered."""
    with pytest.raises(InvalidArgument) as caught:
        Policies(rename="folow")
    assert "follow" in caught.value.hint


def test_links_survive_as_text_and_forget_the_log_of_another_sync() -> None:
    """The option's text gives the same links back; those of another user do not count as streamed."""
    name = SourceName("d", "s", "t")
    links = TableLinks("me").with_links(name, {"3": ColumnLink(2, "7", 5, ("old",)), "=x": ColumnLink(1)})
    assert TableLinks.from_text(links.to_text(), "me") == links
    other = TableLinks.from_text(links.to_text(), "you").of(name)
    assert other["3"] == ColumnLink(2, "7", None, ("old",))


FOLLOWS = Policies(rename="follow", drop="follow")
BY_NAME = {"=id": ColumnLink(0, streamed_in=1), "=v": ColumnLink(1, streamed_in=1), "=w": ColumnLink(2, streamed_in=1)}
NAMED = schema_of(id="INT NOT NULL", v="INT", w="STRING")


def statement(*columns: tuple[Any, ...], **changes: Any) -> Description:
    return replace(told(*columns), changes=NameChanges(**changes))


def test_a_statement_exchanges_names() -> None:
    """Columns that have only names keep their values when a statement says what was renamed."""
    found = step(statement(renamed=(("v", "w"), ("w", "v"))), FOLLOWS, schema=NAMED, links=BY_NAME)
    assert columns_of(found) == {"id": "INT NOT NULL", "w": "INT", "v": "STRING"}
    assert {key: link.field_id for key, link in found.links.items()} == {"=id": 0, "=w": 1, "=v": 2}


def test_a_statement_speaks_only_of_what_it_names() -> None:
    """Columns that a statement does not name are not gone; one that is dropped and added again is another one."""
    found = step(statement(("v", "STRING"), dropped=("V",)), FOLLOWS, schema=NAMED, links=BY_NAME)
    assert columns_of(found) == {"id": "INT NOT NULL", "w": "STRING", "v": "STRING"}
    assert found.fields == {"v": 3}


@pytest.mark.parametrize("policy", ["keep", "fail"])
def test_names_go_by_policy(policy: str) -> None:
    """`keep` makes a new column beside the old one, `fail` stops."""
    description = statement(("x", "INT"), renamed=(("v", "x"),))
    if policy == "fail":
        with pytest.raises(InvalidSchema, match="is called `x`"):
            step(description, Policies(rename=policy), schema=NAMED, links=BY_NAME)
    else:
        found = step(description, Policies(rename=policy), schema=NAMED, links=BY_NAME)
        assert columns_of(found) == {"id": "INT NOT NULL", "v": "INT", "w": "STRING", "x": "INT"}


@pytest.mark.parametrize("by_id", [True, False])
def test_another_table_of_the_same_name(by_id: bool) -> None:
    """Its columns take the places of their namesakes if types allow; the others go, and nothing is mixed up."""
    columns = [("id", "INT NOT NULL", 101), ("v", "BIGINT", 102), ("w", "INT", 103)]
    if by_id:
        links = {str(number): link for number, link in enumerate(BY_NAME.values(), 1)}
        found = step(told(*columns), FOLLOWS, schema=NAMED, links=links, phase=COPY)
    else:
        description = statement(*(column[:2] for column in columns), is_new_table=True)
        found = step(description, FOLLOWS, schema=NAMED, links=BY_NAME)
    assert columns_of(found) == {"id": "INT NOT NULL", "v": "BIGINT", "w": "INT"}
    assert found.fields == {"id": 0, "v": 1, "w": 3}
