"""`lakebed.records` gives what `dataclasses` gives, only later."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import itertools
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import field
from typing import Any, ClassVar, Generic, TypeVar

import pytest

from lakebed import records
from lakebed.records import dataclass

T = TypeVar("T")
Decorator = Callable[..., Any]
BOTH = (dataclasses.dataclass, records.dataclass)
PARAMETERS = [
    dict(zip(("frozen", "slots", "kw_only", "eq", "repr"), chosen, strict=True))
    for chosen in itertools.product((False, True), repeat=5)
]


@dataclass(frozen=True, slots=True)
class Point:
    """At module level, as pickle wants it."""

    x: int
    y: list[int] = field(default_factory=list, hash=False)
    z: int = field(default=7, init=False)


def family(decorator: Decorator, parameters: dict[str, Any]) -> tuple[type[Any], type[Any], type[Any]]:
    """A class with every kind of field, one derived from it, and one derived from that without a decorator."""

    @decorator(**parameters)
    class Base(Generic[T]):
        """Documented."""

        kind: ClassVar[str] = "a kind"
        first: int
        second: str = "two"
        third: tuple[int, ...] = field(default=(), compare=False)
        fourth: list[int] = field(default_factory=list, hash=False, repr=False)
        fifth: int = field(default=5, init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "fifth", self.first + 5)

    @decorator(**parameters)
    class Derived(Base[int]):
        """Documented too."""

        sixth: int = 6
        second: str = "zwei"

    class Plain(Derived):
        """Has attributes of its own."""

    return Base, Derived, Plain


def outcome(deed: Callable[[], Any]) -> Any:
    """What a deed gives, or how it fails."""
    try:
        return deed()
    except Exception as failure:  # noqa: BLE001
        return type(failure), str(failure)


def shown(value: Any) -> str:
    """A value without the address where it happens to lie."""
    return re.sub(r"0x[0-9a-f]+", "0x", repr(value))


def behaviour(cls: type[Any], other: type[Any], parameters: dict[str, Any]) -> list[Any]:
    """What can be seen of a class and of what is made of it."""

    def assigned(name: str) -> Any:
        one = cls(first=1)
        setattr(one, name, 9)
        return getattr(one, name)

    def deleted(name: str) -> Any:
        one = cls(first=1)
        delattr(one, name)
        return "deleted"

    one = cls(first=1, third=(3,), fourth=[4])
    # Of an unknown name frozen slots of Python 3.11 say that `super` was called wrongly: not worth to be alike.
    named = ("first",) if parameters["frozen"] and parameters["slots"] else ("first", "sixth", "unknown")
    return [
        repr(one),
        [outcome(lambda name=name: getattr(one, name)) for name in ("first", "second", "third", "fourth", "fifth")],
        one == cls(first=1, fourth=[4]),
        one == cls(first=2, fourth=[4]),
        one == other(first=1),
        one != 1,
        outcome(lambda: hash(one) == hash(cls(first=1))),
        [outcome(lambda name=name: assigned(name)) for name in named],
        [outcome(lambda name=name: deleted(name)) for name in named],
        outcome(lambda: cls(1)),
        outcome(cls),
        outcome(lambda: cls(1, "b", (), [], 5, 6, 7)),
        outcome(lambda: cls(first=1, unknown=2)),
        dataclasses.asdict(one),
        [(each.name, each.type, each.kw_only) for each in dataclasses.fields(cls)],
        dataclasses.asdict(dataclasses.replace(one, first=3)),
        dataclasses.asdict(copy.copy(one)),
        dataclasses.asdict(copy.deepcopy(one)),
        str(inspect.signature(cls)),
        cls.__match_args__,  # type: ignore[attr-defined]
        cls.__doc__,
        getattr(cls, "__slots__", None),
        cls.__init__.__qualname__,
        cls.__init__.__annotations__,
        cls.kind,
    ]


@pytest.mark.parametrize("parameters", PARAMETERS, ids=lambda given: "-".join(name for name in given if given[name]))
def test_as_dataclasses_for_every_parameter_and_kind_of_field(parameters: dict[str, Any]) -> None:
    """Classes, derived ones and their instances behave as those of the standard library, word by word."""
    seen = []
    for decorator in BOTH:
        base, derived, plain = family(decorator, parameters)
        pairs = itertools.permutations((base, derived, plain), 2)
        seen.append([shown(each) for cls, other in pairs for each in behaviour(cls, other, parameters)])
    theirs, ours = seen
    assert ours == theirs


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("written", ["__init__", "__repr__", "__eq__", "__hash__"])
def test_what_a_class_writes_itself_stays(written: str, frozen: bool) -> None:
    """A method of the class's own is kept, and __hash__ is what the standard library makes of it."""

    def answers(decorator: Decorator) -> list[Any]:
        def own(self: Any, *args: Any) -> Any:
            return {"__init__": None, "__repr__": "mine", "__eq__": True, "__hash__": 42}[written]

        cls = decorator(frozen=frozen)(type("Own", (), {"__annotations__": {"a": int}, written: own, "__doc__": "x"}))
        one, two = (cls(number) for number in (1, 2))
        equal = outcome(lambda: one == two)
        hashed = outcome(lambda: hash(one))
        return [outcome(lambda: repr(one)), equal, hashed if written != "__init__" or frozen else type(hashed)]

    theirs, ours = (shown(answers(decorator)) for decorator in BOTH)
    assert ours == theirs


def test_ordered_as_dataclasses() -> None:
    """`order=True` compares the fields in turn, and refuses other classes."""

    @dataclass(order=True)
    class Pair:
        left: int
        right: int

    assert sorted([Pair(2, 1), Pair(1, 2), Pair(1, 1)]) == [Pair(1, 1), Pair(1, 2), Pair(2, 1)]
    assert Pair(1, 1) <= Pair(1, 1) < Pair(1, 2) > Pair(1, 1) >= Pair(1, 1)
    with pytest.raises(TypeError):
        assert Pair(1, 1) < 3


def test_pickled_and_back() -> None:
    """Frozen slots pass through pickle with every field, those too that the constructor does not take."""
    there_and_back = pickle.loads(pickle.dumps(Point(1, [2])))
    assert (there_and_back, there_and_back.z) == (Point(1, [2]), 7)


def test_a_method_is_made_once() -> None:
    """After its first use a class holds the very function that `dataclasses` wrote: nothing stands between any more."""

    @dataclass(frozen=True, slots=True)
    class Used:
        a: int

    assert not inspect.isfunction(vars(Used)["__init__"])
    Used(1)
    assert inspect.isfunction(vars(Used)["__init__"])
    assert not inspect.isfunction(vars(Used)["__eq__"])
    assert Used(1) == Used(1)
    assert inspect.isfunction(vars(Used)["__eq__"])


def test_loading_the_statements_writes_no_method() -> None:
    """Hundreds of classes are loaded without a method being compiled, but for the few that modules make use of."""
    program = (
        "import builtins, dataclasses; made = []; true = dataclasses.make_dataclass\n"
        "dataclasses.make_dataclass = lambda *a, **k: (made.append(a[0]), true(*a, **k))[1]\n"
        "import lakebed.sql.statements, lakebed.algebra.relations; print(len(made))"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(told.stdout) < 30
