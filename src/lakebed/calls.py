"""What callers are told: arguments that a method does not take, and warnings that point at their own line.

Python's own TypeError names the argument and no more. People bring arguments along from other libraries (`mode`,
`limit`, `where`), so a class says what to write in place of each, and a mistyped one is told the nearest.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, Signature, isfunction, signature
from typing import Any, TypeVar

from lakebed.errors import InvalidArgument, did_you_mean

_Class = TypeVar("_Class", bound=type[Any])
_Function = TypeVar("_Function", bound=Callable[..., Any])

Habits = Mapping[str, Mapping[str, str]]
"""By the names of methods (`*`: any), arguments that people try (`*`: any other), and what to write instead."""


def explains_calls(habits: Habits) -> Callable[[_Class], _Class]:
    """A decorator of a class: its public methods tell how they are called."""

    def explained(cls: _Class) -> _Class:
        for name, method in list(vars(cls).items()):
            if isfunction(method) and not name.startswith("_"):
                setattr(cls, name, explains_call({**habits.get("*", {}), **habits.get(name, {})})(method))
        return cls

    return explained


def explains_call(habits: Mapping[str, str]) -> Callable[[_Function], _Function]:
    """A decorator of a function: what does not fit its parameters is an error of ours, before anything is done."""

    def explained(function: _Function) -> _Function:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except TypeError:
                known = signature(function)
                try:
                    known.bind(*args, **kwargs)
                except TypeError:
                    raise _wrong_call(function.__name__, known, len(args), list(kwargs), habits) from None
                raise

        return call  # type: ignore[return-value]

    return explained


def _wrong_call(name: str, known: Signature, given: int, named: list[str], habits: Mapping[str, str]) -> Exception:
    parameters = {each.name: each for each in known.parameters.values() if each.name != "self"}
    is_method = "self" in known.parameters
    unknown = next((each for each in named if each not in parameters), None)
    shown = f"{name}({', '.join(map(_written, parameters.values()))})"
    if unknown is not None:
        instead = habits.get(unknown, habits.get("*"))
        hint = f"write {instead}" if instead is not None else f"{_near(unknown, parameters)}{shown}"
        return InvalidArgument(f"{name}() takes no argument `{unknown}`", hint=hint)
    positional = [each.name for each in parameters.values() if each.kind != Parameter.KEYWORD_ONLY]
    given -= is_method
    missing = [
        each.name
        for place, each in enumerate(parameters.values())
        if each.default is Parameter.empty
        and each.kind not in (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)
        and each.name not in named
        and not (each.name in positional and place < given)
    ]
    if missing:
        words = ", ".join(f"`{each}`" for each in missing)
        return InvalidArgument(f"{name}() lacks the argument {words}", hint=f"write {shown}")
    if given > len(positional):
        return InvalidArgument(
            f"{name}() takes {len(positional) or 'no'} arguments without a name, not {given}", hint=f"write {shown}"
        )
    twice = next((each for each in positional[:given] if each in named), "")
    return InvalidArgument(f"{name}() is given `{twice}` twice", hint=f"write {shown}")


def _near(word: str, parameters: Mapping[str, Parameter]) -> str:
    near = did_you_mean(word, parameters) if parameters else ""
    return f"{near} " if near.startswith("did you mean") else "write "


def _written(parameter: Parameter) -> str:
    if parameter.kind == Parameter.VAR_KEYWORD:
        return f"**{parameter.name}"
    needs_name = parameter.kind == Parameter.KEYWORD_ONLY or parameter.default is not Parameter.empty
    return f"{parameter.name}=..." if needs_name else parameter.name


def warn_caller(message: str) -> None:
    """A warning that points at the line outside of this package that led to it."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and f"{frame.f_globals.get('__name__', '')}.".startswith("lakebed."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)


__all__ = ["explains_call", "explains_calls", "warn_caller"]
