"""Which tables are followed, and what they are called in the lake."""

from __future__ import annotations

import pytest

from lakebed.cdc.envelope import SourceName
from lakebed.cdc.routing import PatternValue, Routing, Target, values_for
from lakebed.errors import InvalidArgument

ORDERS = SourceName("shop", "public", "orders")


def test_patterns_match_whole_names() -> None:
    """A pattern for a part of a name does not match; alternatives do."""
    assert Routing("lk", including="orders|lines").follows(ORDERS)
    assert not Routing("lk", including="order").follows(ORDERS)


@pytest.mark.parametrize("pattern", ["orders", r"public\.orders", r"shop\.public\.orders", r"shop\.orders"])
def test_tables_are_matched_by_any_of_their_names(pattern: str) -> None:
    """Alone, with the schema, with the database, or with both."""
    assert Routing("lk", including=pattern).follows(ORDERS)


def test_excluding_wins() -> None:
    """A table that both patterns match is left out."""
    assert not Routing("lk", including=".*", excluding="orders").follows(ORDERS)
    assert Routing("lk", including=".*", excluding="order").follows(ORDERS)


def test_databases_have_patterns_of_their_own() -> None:
    """Databases can be included and excluded, alone or with a schema."""
    assert not Routing("lk", including_databases="other").follows(ORDERS)
    assert not Routing("lk", excluding_databases="shop").follows(ORDERS)
    assert Routing("lk", including_databases=r"shop\.public").follows(ORDERS)


def test_names_get_prefix_and_suffix_in_the_case_asked_for() -> None:
    """Affixes stay as they are, the name is lowered if asked for."""
    table = SourceName("shop", "", "Orders")
    assert Routing("lk", prefix="P_", suffix="_S").target(table) == Target("lk", "P_Orders_S")
    assert Routing("lk", prefix="P_", case="lower").target(table) == Target("lk", "P_orders")


def test_a_mapping_beats_affixes_of_the_database_which_beat_general_ones() -> None:
    """The name that is given is taken as it is."""
    routing = Routing("lk", prefix="g_", prefixes_db={"shop": "d_"}, mapping={"lines": "items"})
    assert routing.target(SourceName("shop", "", "lines")) == Target("lk", "items")
    assert routing.target(SourceName("shop", "", "orders")) == Target("lk", "d_orders")
    assert routing.target(SourceName("other", "", "orders")) == Target("lk", "g_orders")


def test_shards_share_a_table_or_have_one_each() -> None:
    """Without merging, names begin with the schema or the database."""
    assert Routing("lk").target(ORDERS) == Routing("lk").target(SourceName("shop2", "", "orders"))
    assert Routing("lk", merge_shards=False).target(ORDERS) == Target("lk", "public_orders")
    assert Routing("lk", merge_shards=False).target(SourceName("s2", "", "orders")) == Target("lk", "s2_orders")


def test_everything_can_go_into_one_table() -> None:
    """Whatever the patterns let through has the same target."""
    routing = Routing("lk", "all", including="orders|lines")
    assert routing.target(ORDERS) == routing.target(SourceName("x", "", "lines")) == Target("lk", "all")
    assert routing.target(SourceName("x", "", "others")) is None


def test_options_come_from_all_patterns_that_match() -> None:
    """Later patterns win over earlier ones."""
    patterns = [
        PatternValue(".*", {"a": "1", "b": "1"}),
        PatternValue("orders", {"b": "2"}),
        PatternValue("x", {"c": "3"}),
    ]
    assert values_for(ORDERS, patterns) == {"a": "1", "b": "2"}


def test_wrong_patterns_and_cases_are_refused() -> None:
    """What is no regular expression is named together with what is wrong with it."""
    with pytest.raises(InvalidArgument, match="including"):
        Routing("lk", including="(")
    with pytest.raises(InvalidArgument, match="case"):
        Routing("lk", case="upper")
