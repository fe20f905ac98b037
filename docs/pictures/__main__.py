"""Draws all pictures of the documents: `python -m docs.pictures`, or `make docs`."""

from __future__ import annotations

from pathlib import Path

from docs.pictures import changelog_producers, main_job, merge_engines


def pictures() -> dict[str, str]:
    """Names of files in this folder, and what they hold."""
    return main_job.pictures() | merge_engines.pictures() | changelog_producers.pictures()


if __name__ == "__main__":
    for name, svg in pictures().items():
        (Path(__file__).parent / name).write_text(svg, encoding="utf-8")
