"""The one wording for a metadata file whose bytes can not be right, so that every such error names the same next steps.

It only builds errors; finding the damage is the business of whoever parses the file.
"""

from __future__ import annotations

from lakebed.errors import CorruptFile, Unsupported


def corrupt(path: str, what: str) -> CorruptFile:
    """The error for a damaged file."""
    return CorruptFile(
        f"{path} is damaged: {what}",
        hint="restore this file from a backup, or roll the table back to a snapshot or tag that does not need it",
    )


def too_new(path: str, what: str) -> Unsupported:
    """The error for a file that follows a later version of the format."""
    return Unsupported(
        f"{path} was written by a newer format: {what}",
        hint="read the table with the software that wrote it, or upgrade lakebed",
    )


def checked_size(data: bytes, size_bytes: int | None, path: str) -> bytes:
    """The same bytes, if there are as many as were recorded when the file was written (`None`: nothing recorded)."""
    if size_bytes is not None and len(data) != size_bytes:
        raise corrupt(path, f"it has {len(data)} bytes, {size_bytes} were recorded when it was written")
    return data
