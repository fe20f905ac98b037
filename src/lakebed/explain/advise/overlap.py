"""How many keys are left when commits are merged: learnt from what merges of the history have left.

A table's keys are taken to be of a few classes, each of so many keys that are hit at some rate: hot ones at nearly
every commit, cold ones hardly ever, and new ones that come once. Of `E` rows drawn at random so many keys differ:

    D(E) = sum over classes of  keys * (1 - exp(-rate * E))   +   share of new keys * E

Every commit counts as the draw that gives it the rows it has, a merge as the draws of all its commits together. The
number of keys of each class is fitted to the rows that went into merges and came out of them. So nothing is assumed of
how keys are distributed, and a load of everything followed by updates is understood as well as a stream of new keys.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from lakebed.records import dataclass

Numbers = npt.NDArray[np.float64]
Draw = frozenset[Hashable]
"""The commits whose rows are in a file."""

_CLASSES = 36
_GRID = 512
_ROUNDS = 40
_MOST_MERGES = 120
_NO_RATE = 1e-300


@dataclass(frozen=True, slots=True)
class Merge:
    """A merge of the history: of each run its commits and its rows, and the rows that came out."""

    runs: tuple[tuple[Draw, int], ...]
    rows_out: int

    @property
    def rows_in(self) -> int:
        """Rows of all runs."""
        return sum(rows for _, rows in self.runs)


@dataclass(frozen=True, slots=True)
class Overlap:
    """How many different keys so many drawn rows have."""

    draws: Numbers
    keys: Numbers
    scale: float = 1.0

    def distinct(self, draws: float) -> float:
        """Different keys of so many draws."""
        found = np.interp(draws / self.scale, self.draws, self.keys)
        beyond = draws / self.scale - self.draws[-1]
        if beyond > 0:  # as it went on at the end
            found += beyond * (self.keys[-1] - self.keys[-2]) / (self.draws[-1] - self.draws[-2])
        return float(found) * self.scale

    def draws_of(self, rows: float) -> float:
        """How many draws give so many different keys; all there are, if there are not so many keys."""
        return float(np.interp(rows / self.scale, self.keys, self.draws)) * self.scale

    def scaled(self, factor: float) -> Overlap:
        """The same for a partition that is so much larger."""
        return Overlap(self.draws, self.keys, self.scale * factor)


ALL_NEW = Overlap(np.array([0.0, 1e15]), np.array([0.0, 1e15]))
"""Where every row has a key of its own."""


def fit(commits: Mapping[Hashable, int], merges: Sequence[Merge]) -> Overlap:
    """What fits the merges best, given the rows of each commit."""
    merges = _spread([merge for merge in merges if len(merge.runs) > 1 and merge.rows_out > 0], _MOST_MERGES)
    if not merges:
        return ALL_NEW
    names = {name: place for place, name in enumerate(commits)}
    rows = np.array(list(commits.values()), np.float64)
    draws = rows.copy()
    places = [[np.array([names[name] for name in draw], np.intp) for draw, _ in merge.runs] for merge in merges]
    left = np.array([merge.rows_out / merge.rows_in for merge in merges])
    # A row of few keys says little: one key more or less is chance.
    weights = np.sqrt(np.minimum(1.0, np.array([merge.rows_out for merge in merges]) / 200))
    singles = np.unique(np.quantile(rows, np.linspace(0, 1, 9)))
    most = 20 * rows.sum()
    rates = np.concatenate([[_NO_RATE], np.geomspace(0.1 / most, 2.0 / max(1.0, rows.min()), _CLASSES - 1)])
    grid = np.concatenate([[0.0], np.geomspace(min(1.0, rows.min() / 2), most, _GRID)])
    overlap = ALL_NEW
    for _ in range(_ROUNDS):
        inputs = [np.array([draws[place].sum() for place in runs]) for runs in places]
        together = np.array([runs.sum() for runs in inputs])
        wanted = left * np.array([sum(overlap.distinct(each) for each in runs) for runs in inputs])
        single = np.array([overlap.draws_of(each) for each in singles])
        # A class counts by its share of one draw: numbers of about one size, which sum up to one.
        matrix = np.concatenate(
            [
                _different(rates, together) * (weights / wanted)[:, None],
                _different(rates, single) * (0.3 / singles)[:, None],
                np.ones((1, _CLASSES)),
            ]
        )
        target = np.concatenate([weights, np.full(len(singles), 0.3), [1.0]])
        shares = _not_negative(matrix, target)
        keys = np.maximum.accumulate(_different(rates, grid) @ shares)
        keys += np.arange(len(keys)) * 1e-9 * max(1.0, keys[-1])  # so that it can be turned round
        overlap = Overlap(grid, keys)
        before, draws = draws, np.array([overlap.draws_of(each) for each in rows])
        if np.abs(draws - before).sum() < 1e-3 * before.sum():
            break
    return overlap


def error(overlap: Overlap, commits: Mapping[Hashable, int], merges: Sequence[Merge]) -> float | None:
    """By how much it misses the rows that merges have left, weighed by rows; None without any merge."""
    missed = total = 0.0
    draws = {name: overlap.draws_of(rows) for name, rows in commits.items()}
    for merge in _spread(merges, _MOST_MERGES):
        inputs = [sum(draws[name] for name in draw) for draw, _ in merge.runs]
        told = merge.rows_in * overlap.distinct(sum(inputs)) / max(1.0, sum(map(overlap.distinct, inputs)))
        missed += abs(told - merge.rows_out)
        total += merge.rows_out
    return missed / total if total else None


def _different(rates: Numbers, draws: Numbers) -> Numbers:
    """For each number of draws the keys that each class gives, if it alone were drawn from."""
    found: Numbers = -np.expm1(-draws[:, None] * rates[None, :]) / rates[None, :]
    found[:, 0] = draws
    return found


def _not_negative(matrix: Numbers, target: Numbers) -> Numbers:
    """Least squares with factors that are not negative (Lawson and Hanson's active set)."""
    found: Numbers = np.zeros(matrix.shape[1])
    free = np.zeros(len(found), np.bool_)
    for _ in range(3 * len(found)):
        gain = np.where(free, -np.inf, matrix.T @ (target - matrix @ found))
        if gain.max() <= 1e-9:
            break
        free[gain.argmax()] = True
        while True:
            wanted = np.zeros(len(found))
            wanted[free] = np.linalg.lstsq(matrix[:, free], target, rcond=None)[0]
            if wanted[free].min() > 0:
                break
            # As far towards it as nothing gets negative; what got to nothing is fixed there.
            stuck = free & (wanted <= 0)
            step = (found[stuck] / np.maximum(found[stuck] - wanted[stuck], 1e-300)).min()
            found += step * (wanted - found)
            free &= found > 1e-12
            found[~free] = 0.0
            if not free.any():
                return found
        found = wanted
    return found


def _spread(merges: Sequence[Merge], most: int) -> list[Merge]:
    """So many of them, from all of the time."""
    if len(merges) <= most:
        return list(merges)
    return [merges[place] for place in np.linspace(0, len(merges) - 1, most).astype(int)]


__all__ = ["ALL_NEW", "Draw", "Merge", "Overlap", "error", "fit"]
