"""What can be said about views without asking Spark, and without names that only we know.

A view of a lake's table is temporary: it lives in the Spark session. So where no session is, there are none, and one
that is to stay is refused before a session is started for it.
"""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

from lakebed.errors import Unsupported
from lakebed.spark.errors import spark_errors
from lakebed.sql.query.references import references
from lakebed.sql.session import SqlLake, result
from lakebed.sql.statements import SparkStatement

_INNER = "lakebed_view_"
"""How views begin that stand for a table in one statement."""
_SHOWN = {"namespace": pa.string(), "viewName": pa.string(), "isTemporary": pa.bool_()}
_SHOW_VIEWS = re.compile(r"SHOW\s+VIEWS\b", re.IGNORECASE)
_KEPT_VIEW = re.compile(
    r"CREATE\s+(?P<replace>OR\s+REPLACE\s+)?VIEW\s+(?:IF\s+NOT\s+EXISTS\s+)?(?P<name>(?:`[^`]+`|[\w.])+)", re.IGNORECASE
)


def answer_about_views(lake: SqlLake, statement: SparkStatement) -> Any:
    """The result of SHOW VIEWS; None for any other statement. A view that can not be kept is refused."""
    if _SHOW_VIEWS.match(statement.text):
        if not lake.is_spark_started:
            return result(lake, _SHOWN, [])
        with spark_errors():
            return lake.spark.sql(statement.text).where(f"viewName NOT LIKE '{_INNER.replace('_', '@_')}%' ESCAPE '@'")
    kept = _KEPT_VIEW.match(statement.text)
    if kept is not None and statement.query is not None and references(lake, statement.query):
        words = "CREATE OR REPLACE" if kept["replace"] else "CREATE"
        name = kept["name"].rpartition(".")[2]
        raise Unsupported(
            "views are not kept with the lake: they last as long as the Spark session",
            hint=f"type {words} TEMPORARY VIEW {name} AS {statement.query.text.strip()[:200]}",
        )
    return None
