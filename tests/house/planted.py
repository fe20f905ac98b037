"""Small source trees with a breach in them, for rules to find."""

from pathlib import Path


def planted(root: Path, place: str, text: str) -> Path:
    """The tree with one module more."""
    path = root / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return root
