"""Branches as a table sees them: which there are, and the same table on another one."""

from __future__ import annotations

from dataclasses import replace

from lakebed.definition.context import TableContext
from lakebed.definition.memory import TableMemory
from lakebed.errors import InvalidArgument, InvalidOption, NotFound, did_you_mean
from lakebed.metadata.branches import branch_names
from lakebed.metadata.paths import MAIN_BRANCH
from lakebed.options import SCAN_FALLBACK_BRANCH, SCAN_PRIMARY_BRANCH, Options
from lakebed.schema.store import SchemaStore


def branch_argument(name: object) -> str:
    """The name of a branch."""
    if not isinstance(name, str) or not name.strip():
        raise InvalidArgument(f"branch name {name!r} is no text", hint="pass the branch's name as a string")
    return name


def list_branches(context: TableContext) -> list[str]:
    """Names of all branches but the main one. What has no schema is the rest of one that was deleted."""
    names = sorted(branch_names(context.fileio, context.paths))
    places = ((name, context.paths.on_branch(name).schema_directory) for name in names)
    return [name for name, directory in places if SchemaStore(context.fileio, directory).ids()]


def context_on_branch(context: TableContext, name: str) -> TableContext:
    """The same table on another branch, under that branch's own schema and options."""
    if name == context.paths.branch:
        return context
    paths = context.paths.on_branch(name)
    schemas = SchemaStore(context.fileio, paths.schema_directory)
    schema = schemas.latest()
    table = context.name.partition("$")[0]
    if schema is None:
        known = [MAIN_BRANCH, *list_branches(context)]
        raise NotFound(f"table `{table}` has no branch `{name}`", hint=did_you_mean(name, known))
    own_name = table if name == MAIN_BRANCH else f"{table}$branch_{name}"
    view = f"${context.view}" if context.view else ""
    return replace(
        context,
        name=own_name + view,
        paths=paths,
        schema=schema,
        schemas=schemas,
        options=Options(schema.options),
        memory=TableMemory(),
    )


def branch_read_besides(context: TableContext) -> str | None:
    """The other branch that reads of the table show partitions of; None if its options name none, or this one."""
    fallback, primary = context.options[SCAN_FALLBACK_BRANCH], context.options[SCAN_PRIMARY_BRANCH]
    if fallback and primary:
        raise InvalidOption(
            f"table `{context.name}` has `{SCAN_FALLBACK_BRANCH.key}` and `{SCAN_PRIMARY_BRANCH.key}`",
            hint="set only one of them",
        )
    name = fallback or primary
    return name if name != context.paths.branch else None


def forget_writes(context: TableContext) -> None:
    """What this handle knew of its last write is no longer the table's state."""
    context.memory.forget_history()
