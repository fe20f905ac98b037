"""What a run of the machine can come to: nothing, or a difference between the table and its meaning."""

from __future__ import annotations


class Finding(AssertionError):
    """A difference. `oracle` says which question was answered wrongly, and is what shrinking keeps."""

    def __init__(self, oracle: str, detail: str) -> None:
        super().__init__(f"{oracle}: {detail}")
        self.oracle = oracle
        self.detail = detail

    def __reduce__(self) -> tuple[type[Finding], tuple[str, str]]:
        """From one process to another."""
        return Finding, (self.oracle, self.detail)


__all__ = ["Finding"]
