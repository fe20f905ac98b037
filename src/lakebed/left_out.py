"""A fifth of a second less for short commands: pandas is not loaded.

pyarrow loads it for its first array, if it is installed. No command needs it; Spark does, so whoever starts that takes
it back before.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec


class _Absent:
    """Says that pandas is not installed."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name == "pandas":
            raise ModuleNotFoundError("pandas is left out here", name=name)
        return None


def leave_pandas_out() -> None:
    """From now on pandas can not be loaded, if it is not yet."""
    if _Absent not in sys.meta_path:
        sys.meta_path.insert(0, _Absent)


def take_pandas_back() -> None:
    """Pandas can be loaded again."""
    if _Absent in sys.meta_path:
        sys.meta_path.remove(_Absent)
