"""`CALL sys.*`: the procedures of Paimon, with the names of their arguments in Flink and in Spark."""

from __future__ import annotations

import pyarrow as pa

from lakebed.errors import Unsupported
from lakebed.sql.define.show import like
from lakebed.sql.procedures import (
    advice,
    branches,
    columns,
    compaction,
    consumers,
    expiry,
    merge_into,
    partitions,
    rollback,
    tags,
)
from lakebed.sql.procedures.registry import Procedure, missing_procedure
from lakebed.sql.result import SmallResult
from lakebed.sql.session import SqlLake, result
from lakebed.sql.statements import Call, ShowProcedures
from lakebed.sql.words.names import CATALOGS

_MODULES = (advice, branches, columns, compaction, consumers, expiry, merge_into, partitions, rollback, tags)

_NOT_HERE = {
    **dict.fromkeys(
        ("migrate_database", "migrate_table", "migrate_file", "migrate_iceberg_table", "clone", "copy_files"),
        "read the source with Spark and write it: CREATE TABLE t AS SELECT ...",
    ),
    **dict.fromkeys(
        ("create_function", "alter_function", "drop_function", "alter_view_dialect"),
        "functions and views are Spark's: CREATE TEMPORARY FUNCTION, CREATE TEMPORARY VIEW",
    ),
    **dict.fromkeys(
        ("create_global_index", "drop_global_index", "vector_search", "full_text_search"),
        "such indexes are not written in this version; statistics already skip files",
    ),
    "repair": "there is no metastore to repair: the directories are the catalog",
    "query_service": "read rows with t.to_arrow(filter=...)",
    "refresh_object_table": "only file-store tables are kept here",
}
"""Procedures of Paimon that do not exist here, and what to do instead."""

PROCEDURES: dict[str, Procedure] = {procedure.name: procedure for module in _MODULES for procedure in module.PROCEDURES}
"""All procedures by name."""


def call(lake: SqlLake, statement: Call) -> SmallResult:
    """CALL."""
    procedure = PROCEDURES.get(statement.procedure)
    if statement.procedure in _NOT_HERE:
        raise Unsupported(
            f"procedure `sys.{statement.procedure}` is not available", hint=_NOT_HERE[statement.procedure]
        )
    if procedure is None:
        raise missing_procedure(statement.procedure, sorted(PROCEDURES))
    arguments = procedure.arguments(statement.arguments)
    return result(lake, procedure.columns, procedure.run(lake, **arguments))


def show_procedures(lake: SqlLake, statement: ShowProcedures) -> SmallResult:
    """SHOW PROCEDURES."""
    names = like(sorted(PROCEDURES), statement.like)
    columns = dict.fromkeys(("catalog", "namespace", "name"), pa.string())
    return result(lake, columns, [(CATALOGS[0], "sys", name) for name in names])
