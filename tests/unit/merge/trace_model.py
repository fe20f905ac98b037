"""Row by row: which part each version of a key plays in each column. No Arrow, no numpy: to be checked by reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lakebed.merge.trace import Role

Record = Mapping[str, Any]
"""The values of a version, and its `kind`."""
Roles = dict[str, list[Role]]


def _is_retract(record: Record) -> bool:
    return record["kind"] in ("-U", "-D")


def roles_of(records: Sequence[Record], columns: Sequence[str], options: Mapping[str, str]) -> Roles:
    """The roles of the versions of one key, oldest first, in each column."""
    if len(records) == 1:
        role = Role.REMOVES if _is_retract(records[0]) else Role.VALUE
        return {name: [role] for name in columns}
    engine = options.get("merge-engine", "deduplicate")
    make = {
        "deduplicate": _deduplicated,
        "first-row": _first_row,
        "partial-update": _PartialUpdate,
        "aggregation": _aggregated,
    }[engine]
    if make is _PartialUpdate:
        return _PartialUpdate(records, columns, options).roles
    return {name: make(records, name, options) for name in columns}  # type: ignore[operator]


def _deduplicated(records: Sequence[Record], column: str, options: Mapping[str, str]) -> list[Role]:
    ignores = options.get("ignore-delete") == "true"
    roles = [Role.IGNORED if ignores and _is_retract(record) else Role.OLDER for record in records]
    counted = [number for number, role in enumerate(roles) if role is Role.OLDER]
    last = counted[-1] if counted else len(records) - 1
    roles[last] = Role.REMOVES if _is_retract(records[last]) else Role.VALUE
    return roles


def _first_row(records: Sequence[Record], column: str, options: Mapping[str, str]) -> list[Role]:
    roles = []
    for record in records:
        if _is_retract(record):
            roles.append(Role.IGNORED)
        else:
            roles.append(Role.LATER if Role.VALUE in roles else Role.VALUE)
    return roles


def _aggregated(records: Sequence[Record], column: str, options: Mapping[str, str]) -> list[Role]:
    function = options[f"fields.{column}.aggregate-function"]
    ignores = options.get("ignore-delete") == "true"
    removes = options.get("aggregation.remove-record-on-delete") == "true"
    keeps = options.get(f"fields.{column}.ignore-retract") == "true"
    roles: list[Role] = []
    source: int | None = None
    for number, record in enumerate(records):
        value = record[column]
        if _is_retract(record):
            if ignores:
                roles.append(Role.IGNORED)
            elif removes and record["kind"] == "-D":
                roles = [*[Role.FORGOTTEN] * number, Role.REMOVES]
                source = None
            elif value is None and function != "last_value":
                roles.append(Role.NO_VALUE)
            elif keeps:
                roles.append(Role.IGNORED)
            else:
                roles.append(Role.TAKES_BACK)
                source = None
                if function in ("last_value", "last_non_null_value"):
                    roles = [Role.OLDER if role is Role.VALUE else role for role in roles]
            continue
        if value is None and function not in ("last_value", "first_value"):
            roles.append(Role.NO_VALUE)
            continue
        old = None if source is None else records[source][column]
        if function in ("last_value", "last_non_null_value"):
            roles = [Role.OLDER if role is Role.VALUE else role for role in roles] + [Role.VALUE]
            source = number
        elif function in ("first_value", "first_non_null_value"):
            roles.append(Role.VALUE if source is None else Role.LATER)
            source = number if source is None else source
        elif function == "max" and (source is None or value > old):
            roles = [Role.COUNTED if role is Role.VALUE else role for role in roles] + [Role.VALUE]
            source = number
        else:
            roles.append(Role.COUNTED)
    return roles


class _PartialUpdate:
    """Columns one by one; or `g` orders a sequence group of `a`, which is overwritten, and `s`, which is summed."""

    def __init__(self, records: Sequence[Record], columns: Sequence[str], options: Mapping[str, str]) -> None:
        self.has_group = "fields.g.sequence-group" in options
        self.removes = options.get("partial-update.remove-record-on-delete") == "true"
        self.group_removes = options.get("partial-update.remove-record-on-sequence-group") == "g"
        self.ignores = options.get("ignore-delete") == "true"
        self.roles: Roles = {name: [] for name in columns}
        self.stored: int | None = None
        self.has_begun = False
        self.is_there = False
        for record in records:
            self.take(record)
        if self.has_group and not self.is_there and not self.ignores:
            for name, roles in self.roles.items():
                kept = roles.index(Role.REMOVES) + 1 if Role.REMOVES in roles else 0
                self.roles[name] = [*roles[:kept], *[Role.TAKES_BACK] * (len(roles) - kept)]

    def take(self, record: Record) -> None:
        if not _is_retract(record):
            self.is_there = True
            for name in self.roles:
                self.add(name, record)
        elif self.ignores:
            self.all(Role.IGNORED)
            return
        elif self.is_removal(record):
            for roles in self.roles.values():
                roles[:] = [Role.FORGOTTEN] * len(roles)
            self.all(Role.REMOVES)
            self.stored, self.has_begun, self.is_there = None, False, False
            return
        elif not self.has_group:
            self.all(Role.IGNORED)
            return
        else:
            for name in self.roles:
                self.take_back(name, record, is_first=not self.has_begun)
        self.has_begun = True
        if self.has_group and record["g"] is not None and not self.is_late(record):
            self.stored = record["g"]

    def is_removal(self, record: Record) -> bool:
        if record["kind"] != "-D":
            return False
        return self.removes or (self.group_removes and record["g"] is not None and not self.is_late(record))

    def is_late(self, record: Record) -> bool:
        return self.stored is not None and record["g"] < self.stored

    def all(self, role: Role) -> None:
        for roles in self.roles.values():
            roles.append(role)

    def wins(self, name: str, role: Role = Role.VALUE) -> None:
        """The newest version of a column; whichever was it before is older now."""
        before = (Role.VALUE, Role.TAKES_BACK)
        self.roles[name] = [Role.OLDER if each in before else each for each in self.roles[name]] + [role]

    def add(self, name: str, record: Record) -> None:
        roles, value = self.roles[name], record[name]
        if not self.has_group or name not in ("g", "a", "s"):
            roles.append(Role.NO_VALUE) if value is None else self.wins(name)
        elif record["g"] is None:
            roles.append(Role.NO_SEQUENCE)
        elif name == "s":
            roles.append(Role.NO_VALUE if value is None else Role.COUNTED)
        elif self.is_late(record):
            roles.append(Role.LATE)
        else:
            if Role.VALUE in roles and self.is_primed_silently(name):
                roles[roles.index(Role.VALUE)] = Role.NO_SEQUENCE
            self.wins(name)

    def is_primed_silently(self, name: str) -> bool:
        """Whether the value is that of a first retract that says nothing of the group."""
        return self.stored is None

    def take_back(self, name: str, record: Record, *, is_first: bool) -> None:
        """A first version that takes away gives the row its values, and then takes back what it speaks of."""
        roles, value = self.roles[name], record[name]
        if name not in ("g", "a", "s"):
            if is_first:
                roles.append(Role.NO_VALUE) if value is None else self.wins(name)
            else:
                roles.append(Role.IGNORED)
        elif name == "s":
            if record["g"] is None and not is_first:
                roles.append(Role.NO_SEQUENCE)
            elif value is None:
                roles.append(Role.NO_VALUE)
            else:
                roles.append(Role.COUNTED if record["g"] is None else Role.TAKES_BACK)
        elif record["g"] is None:
            roles.append(Role.VALUE if is_first else Role.NO_SEQUENCE)
        elif self.is_late(record):
            roles.append(Role.LATE)
        else:
            if Role.VALUE in roles and self.is_primed_silently(name):
                roles[roles.index(Role.VALUE)] = Role.NO_SEQUENCE
            self.wins(name, Role.VALUE if name == "g" else Role.TAKES_BACK)
