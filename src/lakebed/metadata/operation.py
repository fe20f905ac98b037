"""The word for what a commit was, and where it stands in the file of a snapshot.

Other implementations know a fixed set of words there and cannot open a table whose snapshots say another one. Words of
ours alone, such as COMPACT, therefore stand among the properties, where everybody lets them be. Other writers may carry
properties on to commits of their own, so a word is believed only of snapshots that we wrote.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SHARED_OPERATIONS = frozenset(
    {
        *("WRITE", "OVERWRITE", "TRUNCATE", "MERGE", "UPDATE", "DELETE"),
        *("CREATE_TABLE_AS_SELECT", "REPLACE_TABLE_AS_SELECT", "CREATE_OR_REPLACE_TABLE_AS_SELECT"),
    }
)
"""What may stand in the member `operation`."""
ROLLBACK = "ROLLBACK"
"""The word of a commit that brings an old state back."""
OWN_OPERATION = "lakebed.operation"
"""The property with a word that may not."""
WRITER_NAME = "lakebed"
"""Start of the writer version in our own snapshots."""
_OPERATION, _PROPERTIES, _WRITER = "operation", "properties", "writerVersion"


def is_ours(writer_version: object) -> bool:
    """Whether a snapshot that names this writer is of ours."""
    return isinstance(writer_version, str) and writer_version.startswith(WRITER_NAME)


def foreign_operation(members: Mapping[str, Any]) -> str | None:
    """The word of ours that keeps others from reading a file with these members; `None` if they can read it."""
    operation = members.get(_OPERATION)
    if operation is None or operation in SHARED_OPERATIONS or not is_ours(members.get(_WRITER)):
        return None  # what a newer release of theirs says is not ours to judge
    return str(operation)


def readable_members(members: Mapping[str, Any]) -> dict[str, Any]:
    """The members of a file as all implementations can read them: a word of ours moved to the properties."""
    operation = foreign_operation(members)
    if operation is None:
        return dict(members)
    # In the place of the old ones: the order of members stays as it is for whoever looks at the file.
    properties = {**(members.get(_PROPERTIES) or {}), OWN_OPERATION: operation}
    moved = {_PROPERTIES: properties} if _PROPERTIES not in members else {}
    kept = {key: properties if key == _PROPERTIES else value for key, value in members.items() if key != _OPERATION}
    return kept | moved


def split_operation(
    operation: str | None, properties: Mapping[str, str] | None, writer_version: str | None
) -> tuple[str | None, dict[str, str] | None]:
    """The word and the other properties, from what stands in a file: the way back from `readable_members`."""
    if properties is None:
        return operation, None
    others = dict(properties)
    if operation is not None or OWN_OPERATION not in others or not is_ours(writer_version):
        return operation, others
    return others.pop(OWN_OPERATION), others or None


__all__ = [
    "OWN_OPERATION",
    "ROLLBACK",
    "SHARED_OPERATIONS",
    "WRITER_NAME",
    "foreign_operation",
    "is_ours",
    "readable_members",
    "split_operation",
]
