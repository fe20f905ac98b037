"""The README as a package registry shows it: links to files of the repository become addresses."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:)([^)]+)\)")


class ReadmeHook(MetadataHookInterface):
    """Asked for the readme at every build."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Adds the readme to what the project says of itself."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        home = str(metadata["urls"]["Homepage"])
        metadata["readme"] = {"content-type": "text/markdown", "text": with_addresses(text, home)}


def with_addresses(text: str, home: str) -> str:
    """The same text, with pictures and documents of the repository named by their addresses."""
    return _LINK.sub(lambda link: f"{link[1]}[{link[2]}]({home}/{'raw' if link[1] else 'blob'}/main/{link[3]})", text)
