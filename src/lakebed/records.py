"""Dataclasses whose methods are made at first use: a quarter of a short command's time was making them at import.

`dataclasses` writes and compiles each method of each class when its module is loaded: half a millisecond for a class,
of which a command loads hundreds and uses few. Here a class gets its fields, its slots and placeholders; a placeholder
asks `dataclasses` for the method when it is first looked up, and gives it its place. From then on nothing differs.
The two kinds do not mix: Python takes a frozen class of ours for one that is not, and derives no frozen one from it.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, slots=False, kw_only=False, repr=True, eq=True, order=False):  # noqa: A002
        """As `dataclasses.dataclass`, of whose parameters it takes those that are in use here."""

        def decorated(cls):
            given = set(vars(cls))
            if eq and "__eq__" in given and cls.__hash__ is None:
                given.discard("__hash__")  # Python's own word where there is an __eq__, not the author's
            made = dataclasses.dataclass(slots=slots, kw_only=kw_only, init=False, repr=False, eq=False)(cls)
            wanted = {"__init__": True, "__repr__": repr, "__eq__": eq, "__hash__": eq and frozen}
            wanted |= dict.fromkeys(_ORDER, order)
            for name in wanted.keys() - given:
                if wanted[name]:
                    setattr(made, name, _AtFirstUse(made, name, frozen, slots))
            if eq and not frozen and "__hash__" not in given:
                made.__hash__ = None
            if frozen:
                _freeze(made, slots)
            return made

        return decorated if cls is None else decorated(cls)


_ORDER = ("__lt__", "__le__", "__gt__", "__ge__")


class _AtFirstUse:
    """Stands for a method until somebody looks it up."""

    __slots__ = ("_cls", "_frozen", "_name", "_slots")

    def __init__(self, cls: type[Any], name: str, frozen: bool, slots: bool) -> None:
        self._cls = cls
        self._name = name
        self._frozen = frozen
        self._slots = slots

    def __get__(self, instance: object, owner: type[Any]) -> Any:
        method = self._made()
        setattr(self._cls, self._name, method)
        return method if instance is None else method.__get__(instance, owner)

    def _made(self) -> Any:
        """The method: the first that most classes need is made here, others are taken from a dataclass of the same
        fields that has this one only."""
        cls, name = self._cls, self._name
        if name == "__init__":
            return _initialiser(cls, self._frozen, self._slots)
        body = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
        if hasattr(cls, "__post_init__"):
            body["__post_init__"] = cls.__post_init__
        twin = dataclasses.make_dataclass(
            cls.__name__,
            [(field.name, field.type, field) for field in dataclasses.fields(cls)],
            namespace=body,
            init=False,
            repr=name == "__repr__",
            eq=name == "__eq__" or name in _ORDER,
            order=name in _ORDER,
            unsafe_hash=name == "__hash__",
        )
        return vars(twin)[name]


class _Factory:
    """Stands in a signature for a value that is made for each object."""

    def __repr__(self) -> str:
        return "<factory>"


_MADE = _Factory()


def _initialiser(cls: Any, frozen: bool, slots: bool) -> Any:
    """The `__init__` that `dataclasses` would make, which compiles three functions and a class on the way."""
    missing = dataclasses.MISSING
    me = "self" if all(each.name != "self" for each in dataclasses.fields(cls)) else "__self__"
    known: dict[str, Any] = {"__made__": _MADE, "__set__": object.__setattr__}
    given: tuple[list[str], list[str]] = ([me], [])
    types: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    body: list[str] = []
    for number, each in enumerate(dataclasses.fields(cls)):
        known[f"__d{number}__"] = each.default
        known[f"__f{number}__"] = each.default_factory
        has_factory, by_name = each.default_factory is not missing, each.kw_only is True
        if each.init:
            default = "=__made__" if has_factory else "" if each.default is missing else f"=__d{number}__"
            given[by_name].append(f"{each.name}{default}")
            types[by_name][each.name] = each.type
        value = each.name if each.init else f"__d{number}__"
        if has_factory:
            made = f"__f{number}__()"
            value = f"{made} if {each.name} is __made__ else {each.name}" if each.init else made
        elif not each.init and (each.default is missing or not slots):
            continue  # somebody else gives it a value, or the class has it
        body.append(f"__set__({me}, {each.name!r}, {value})" if frozen else f"{me}.{each.name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append(f"{me}.__post_init__()")
    listed = ", ".join([*given[0], *(["*", *given[1]] if given[1] else [])])
    lines = "".join(f"\n  {line}" for line in body or ["pass"])
    scope: dict[str, Any] = {}
    exec(
        f"def make({', '.join(known)}):\n def __init__({listed}):{lines}\n return __init__",
        {"__name__": cls.__module__},
        scope,
    )
    function = scope["make"](**known)
    function.__qualname__ = f"{cls.__qualname__}.__init__"
    function.__annotations__ = {**types[0], **types[1], "return": None}
    return function


def _freeze(cls: Any, slots: bool) -> None:
    """Makes its fields final, and lets frozen slots be copied and pickled, as `dataclasses` does."""
    names = {field.name for field in dataclasses.fields(cls)}

    def set_attribute(self: object, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def delete_attribute(self: object, name: str) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    cls.__setattr__, cls.__delattr__ = set_attribute, delete_attribute
    if slots:
        cls.__getstate__, cls.__setstate__ = _state, _set_state


def _state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


__all__ = ["dataclass"]
