"""A registry whose entries are loaded when somebody asks for them: short commands know many names and use few."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import TypeVar, cast

Entry = TypeVar("Entry")


class Registry(MutableMapping[str, Entry]):
    """What goes by a name: `places` says for each the module of `package`, and what to take from it, if not all of it.

    `Registry("lakebed.merge.aggregates", {"sum": "sum.Sum"})` takes `Sum` from `lakebed.merge.aggregates.sum`.
    """

    def __init__(self, package: str, places: Mapping[str, str]) -> None:
        self._package = package
        self._places = dict(places)
        self._loaded: dict[str, Entry] = {}

    def __getitem__(self, name: str) -> Entry:
        if name not in self._loaded:
            module, _, attribute = self._places[name].rpartition(".")
            found = import_module(f"{self._package}.{module or attribute}")
            self._loaded[name] = cast(Entry, getattr(found, attribute) if module else found)
        return self._loaded[name]

    def __setitem__(self, name: str, entry: Entry) -> None:
        self._loaded[name] = entry

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        yield from dict.fromkeys([*self._places, *self._loaded])

    def __len__(self) -> int:
        return len(self._places.keys() | self._loaded.keys())

    def __contains__(self, name: object) -> bool:
        return name in self._places or name in self._loaded

    def __repr__(self) -> str:
        return f"<registry of {', '.join(self)}>"
