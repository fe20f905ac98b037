"""What can be said about views without asking Spark, and without names that only we know.

A view of a lake's table is temporary: it lasts as long as the lake that defined it, or the Spark session. One that is
to stay is refused before a session is started for it.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import Any

import pyarrow as pa

from lakebed.errors import InvalidArgument, Unsupported, did_you_mean
from lakebed.expressions import kinds
from lakebed.spark.errors import spark_errors
from lakebed.sql.query.choose import choose
from lakebed.sql.query.references import references
from lakebed.sql.query.views import forget, view_names, view_text
from lakebed.sql.session import SqlLake, nothing, result
from lakebed.sql.statements import SparkStatement

_INNER = "lakebed_view_"
"""How views begin that stand for a table in one statement."""
_SHOWN = {"namespace": pa.string(), "viewName": pa.string(), "isTemporary": pa.bool_()}
_SHOW_VIEWS = re.compile(
    r"SHOW\s+VIEWS(?:\s+(?:FROM|IN)\s+[\w.`]+)?(?:\s+(?:LIKE\s+)?'(?P<pattern>[^']*)')?\s*;?\s*", re.IGNORECASE
)
_DROP_VIEW = re.compile(r"DROP\s+VIEW\s+(?P<lenient>IF\s+EXISTS\s+)?(?P<name>`[^`]+`|\w+)\s*;?\s*", re.IGNORECASE)
_KEPT_VIEW = re.compile(
    r"CREATE\s+(?P<replace>OR\s+REPLACE\s+)?VIEW\s+(?:IF\s+NOT\s+EXISTS\s+)?(?P<name>(?:`[^`]+`|[\w.])+)", re.IGNORECASE
)


def answer_about_views(lake: SqlLake, statement: SparkStatement) -> Any:
    """The result of SHOW VIEWS and DROP VIEW; None for any other statement. A view that can not be kept is refused."""
    shown = _SHOW_VIEWS.match(statement.text)
    if shown is not None:
        if not lake.is_spark_started and shown.end() == len(statement.text):
            return result(lake, _SHOWN, [("", name, True) for name in _like(view_names(lake), shown["pattern"])])
        with spark_errors():
            return lake.spark.sql(statement.text).where(f"viewName NOT LIKE '{_INNER.replace('_', '@_')}%' ESCAPE '@'")
    dropped = _DROP_VIEW.fullmatch(statement.text)
    if dropped is not None and not lake.is_spark_started:
        return _drop(lake, dropped["name"].strip("`"), must_exist=dropped["lenient"] is None)
    kept = _KEPT_VIEW.match(statement.text)
    if kept is not None and statement.query is not None and references(lake, statement.query):
        words = "CREATE OR REPLACE" if kept["replace"] else "CREATE"
        name = kept["name"].rpartition(".")[2]
        raise Unsupported(
            "views are not kept with the lake: they last as long as the Spark session",
            hint=f"type {words} TEMPORARY VIEW {name} AS {statement.query.text.strip()[:200]}",
        )
    return None


def _like(names: list[str], pattern: str | None) -> list[str]:
    """Names that match: `*` stands for any text, `|` for or."""
    wanted = [part.strip().lower() for part in (pattern or "*").split("|")]
    return sorted(name for name in names if any(fnmatchcase(name, each) for each in wanted))


def _drop(lake: SqlLake, name: str, *, must_exist: bool) -> Any:
    if must_exist and view_text(lake, name) is None:
        raise InvalidArgument(f"there is no view `{name}`", hint=did_you_mean(name, view_names(lake)))
    forget(lake, name)
    return nothing(lake)


def describe_view(lake: SqlLake, name: str) -> Any:
    """The columns of a view that no session has; None if there is none of that name."""
    text = None if lake.is_spark_started or "." in name else view_text(lake, name)
    if text is None:
        return None
    choice = choose(lake, text)
    if choice.embedded is None:
        return None
    rows = [(each.name, kinds.plain_name(each.type), None) for each in choice.embedded.schema]
    return result(lake, {"col_name": pa.string(), "data_type": pa.string(), "comment": pa.string()}, rows)
