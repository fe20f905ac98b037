"""Which column of the catalogue each column of the stream is, whatever it was called then.

A Relation message names columns without their numbers (`attnum`), and the catalogue tells only what they are now. But
numbers are given once and in order, and a message lists its columns in that order: so every column that is there today
and is not younger than the message's last is among its columns. If nothing was ever dropped, that alone says which is
which, however often columns were renamed. Otherwise the assignment is taken that explains names and types best.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

Form = tuple[str, str]
"""Name and type of a column at some time."""

_SAME, _RENAMED, _UNKNOWN, _RETYPED, _OTHER = 0, 1, 1, 2, 4
_NEVER = 1 << 30


def column_numbers(
    columns: Sequence[Form], today: Mapping[int, Form], gone: Collection[int], former: Mapping[int, Collection[Form]]
) -> list[int] | None:
    """The number of each column; None if no assignment is possible.

    `today` and `gone` are the numbers of columns that are there and that were dropped; `former` is what is known of
    names and types that columns had before.
    """
    numbers = sorted({*today, *gone})
    # best[j]: what it costs to have the first j columns among the numbers so far, and which those are.
    best: list[tuple[int, list[int]]] = [(0, []), *((_NEVER, []) for _ in columns)]
    for number in numbers:
        forms = [*([today[number]] if number in today else []), *former.get(number, ())]
        for place in range(len(columns), 0, -1):
            cost, chosen = best[place - 1]
            taken = min(cost + _cost(columns[place - 1], forms), _NEVER)
            is_over = place == len(columns)
            # A column that is there today can not be passed over, except by a message that is older than all of it.
            if (number in today and not is_over) or (taken <= best[place][0] and taken < _NEVER):
                best[place] = (taken, [*chosen, number])
        if number in today:
            best[0] = (_NEVER, [])
    cost, chosen = best[len(columns)]
    return chosen if cost < _NEVER else None


def _cost(column: Form, forms: Collection[Form]) -> int:
    if not forms:
        return _UNKNOWN  # dropped before anybody looked: it may have been anything
    costs = {(True, True): _SAME, (False, True): _RENAMED, (True, False): _RETYPED, (False, False): _OTHER}
    return min(costs[column[0] == name, column[1] == kind] for name, kind in forms)


__all__ = ["Form", "column_numbers"]
