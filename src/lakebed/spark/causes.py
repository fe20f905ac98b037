"""What made a job or a query fail, in our own words: errors of ours that Spark has wrapped, also those of its workers.

A worker's error comes back as text, stack and all. Ours end with what to do next; that is found and taken out.
"""

from __future__ import annotations

import re
from typing import Final

from lakebed import errors
from lakebed.errors import LakebedError

_TOLD: Final = re.compile(r"lakebed\.errors\.(\w+): (.*?)\n  -> ([^\n]*)", re.DOTALL)


def cause_of(error: BaseException) -> BaseException:
    """The error of ours behind one of Spark's, if there is one; else the error itself."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, LakebedError):
            return seen
        seen = seen.__cause__ or seen.__context__
    told = _TOLD.findall(str(error))
    if not told:
        return error
    name, message, hint = told[-1]
    kind = getattr(errors, name, None)
    if not isinstance(kind, type) or not issubclass(kind, LakebedError):
        return error
    return kind(message.strip(), hint=hint.strip())


__all__ = ["cause_of"]
