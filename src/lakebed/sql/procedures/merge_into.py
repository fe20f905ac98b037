"""Flink's `merge_into`, for those who have no MERGE statement: written as one, and carried out as one."""

from __future__ import annotations

from lakebed.errors import InvalidArgument
from lakebed.sql.procedures.registry import DONE, Parameter, Procedure, Rows, SqlLake

_NAMES = (
    "target_alias",
    "source_sqls",
    "source_table",
    "merge_condition",
    "matched_upsert_condition",
    "matched_upsert_setting",
    "not_matched_insert_condition",
    "not_matched_insert_values",
    "matched_delete_condition",
    "not_matched_by_source_upsert_condition",
    "not_matched_by_source_upsert_setting",
    "not_matched_by_source_delete_condition",
)
_REQUIRED = ("source_table", "merge_condition")


def _merge_into(lake: SqlLake, target_table: str, **given: str) -> Rows:
    if "source_sqls" in given:
        lake.sql(given["source_sqls"])
    lake.sql(merge_text(target_table, given))
    return DONE


def merge_text(target: str, given: dict[str, str]) -> str:
    """The MERGE statement that says the same."""
    alias = f" AS {given['target_alias']}" if "target_alias" in given else ""
    clauses = [
        *_updated("MATCHED", given.get("matched_upsert_condition"), given.get("matched_upsert_setting")),
        *_deleted("MATCHED", given.get("matched_delete_condition")),
        *_inserted(given.get("not_matched_insert_condition"), given.get("not_matched_insert_values")),
        *_updated(
            "NOT MATCHED BY SOURCE",
            given.get("not_matched_by_source_upsert_condition"),
            given.get("not_matched_by_source_upsert_setting"),
        ),
        *_deleted("NOT MATCHED BY SOURCE", given.get("not_matched_by_source_delete_condition")),
    ]
    if not clauses:
        raise InvalidArgument("merge_into is told nothing to do", hint="pass matched_upsert_setting, or another action")
    head = f"MERGE INTO {target}{alias} USING {given['source_table']} ON {given['merge_condition']}"
    return " ".join([head, *clauses])


def _condition(text: str | None) -> str:
    return "" if text is None or text.strip().upper() == "TRUE" else f" AND ({text})"


def _updated(when: str, condition: str | None, setting: str | None) -> list[str]:
    return [] if setting is None else [f"WHEN {when}{_condition(condition)} THEN UPDATE SET {setting}"]


def _deleted(when: str, condition: str | None) -> list[str]:
    return [] if condition is None else [f"WHEN {when}{_condition(condition)} THEN DELETE"]


def _inserted(condition: str | None, values: str | None) -> list[str]:
    if values is None:
        return []
    rows = "*" if values.strip() == "*" else f"VALUES ({values})"
    return [f"WHEN NOT MATCHED{_condition(condition)} THEN INSERT {rows}"]


PROCEDURES = (
    Procedure(
        "merge_into",
        (
            Parameter("target_table", required=True),
            *(Parameter(name, required=name in _REQUIRED) for name in _NAMES),
        ),
        _merge_into,
    ),
)
