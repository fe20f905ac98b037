"""Spark's errors in the user's own words."""

from __future__ import annotations

from lakebed.errors import InvalidArgument
from lakebed.spark.errors import translated_error


def test_view_names_and_plans_do_not_leak() -> None:
    """Names of views become those of tables; class, place and plan are taken off the message."""
    raw = (
        "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `x` cannot be resolved. Did you mean one of the "
        "following? [`lakebed_view_7`.`k`, `lakebed_view_71`.`v`]. SQLSTATE: 42703; "
        "line 1 pos 7;\n'Project ['x]\n+- Relation"
    )
    error = translated_error(Exception(raw), {"lakebed_view_7": "db.t", "lakebed_view_71": "u"})
    assert isinstance(error, InvalidArgument)
    assert error.message == (
        "A column with name `x` cannot be resolved. Did you mean one of the following? [`db.t`.`k`, `u`.`v`]."
    )
    assert "UNRESOLVED_COLUMN" in error.hint


def test_functions_of_flink() -> None:
    """A function of Flink that Spark lacks is answered with Spark's word, a mistyped one with the nearest."""
    raw = "[UNRESOLVED_ROUTINE] Cannot resolve routine `{}` on search path [`system`.`builtin`]. SQLSTATE: 42883"
    assert "get_json_object(" in translated_error(Exception(raw.format("Json_Value")), {}).hint
    assert "split_part(" in translated_error(Exception(raw.format("SPLIT_INDEX")), {}).hint
    mistyped = translated_error(Exception(raw.format("lenght")), {})
    assert (mistyped.message, mistyped.hint) == ("there is no function `lenght`", "did you mean `length`?")


def test_places_leave_no_bracket() -> None:
    """The place that Spark names in brackets goes with its brackets."""
    raw = "[PARSE_SYNTAX_ERROR] Syntax error at or near '4'. SQLSTATE: 42601 (line 1, pos 12)\n\n== SQL ==\nselect"
    assert translated_error(Exception(raw), {}).message == "Syntax error at or near '4'."
