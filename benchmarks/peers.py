"""Interpreters of the peers that benchmarks measure against: those of the compatibility tests."""

from __future__ import annotations

from tests.compat.judges.environments import prepare


def peer_python(name: str) -> str:
    """Path of the Python interpreter that has the peer (`pypaimon` or `rust`) installed; built when missing."""
    return prepare(name).command[0]
