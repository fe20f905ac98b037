"""The few shapes that the pictures are drawn with.

Colours are attributes, not styles: they hold in a notebook, and a page may replace them by the class of a shape under a
policy that forbids styles inside of a document.
"""

from __future__ import annotations

from html import escape

_FONT = 'font-family="ui-sans-serif, system-ui, sans-serif"'
_INK, FAINT = "#57606a", "#8b949e"


def _number(value: float) -> str:
    """A coordinate, short."""
    return f"{value:.1f}".removesuffix(".0")


def _attributes(**given: object) -> str:
    """` name="value"` of each; an underscore stands for a dash, one at the end for nothing."""
    return "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(str(value))}"' for name, value in given.items() if value != ""
    )


def text(x: float, y: float, words: str, *, size: int = 11, fill: str = _INK, anchor: str = "start") -> str:
    """Words at a place."""
    placed = _attributes(x=_number(x), y=_number(y), font_size=size, fill=fill, text_anchor=anchor, class_="words")
    return f"<text{placed}>{escape(words)}</text>"


def bar(x: float, y: float, width: float, height: float, *, fill: str, title: str, **more: object) -> str:
    """A box that tells what it is when it is pointed at, or read aloud."""
    placed = _attributes(
        x=_number(x), y=_number(y), width=_number(width), height=_number(height), rx=2, fill=fill, **more
    )
    return f"<rect{placed}><title>{escape(title)}</title></rect>"


def line(x1: float, y1: float, x2: float, y2: float, *, stroke: str = FAINT, dashes: str = "") -> str:
    """A thin line."""
    placed = _attributes(
        **dict(zip(("x1", "y1", "x2", "y2"), map(_number, (x1, y1, x2, y2)), strict=True)),
        stroke=stroke,
        stroke_width=0.6,
        stroke_dasharray=dashes,
    )
    return f"<line{placed}/>"


def picture(width: float, height: float, label: str, shapes: list[str]) -> str:
    """The whole, with a name for those who can not see it."""
    size = f'viewBox="0 0 {_number(width)} {_number(height)}" width="{_number(width)}" height="{_number(height)}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{escape(label)}" {_FONT}>'
    return "".join((head, *shapes, "</svg>"))


__all__ = ["FAINT", "bar", "line", "picture", "text"]
