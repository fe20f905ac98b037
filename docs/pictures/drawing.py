"""A few shapes as SVG: cards, rows of a table, arrows, words.

Every picture has a ground of its own and both sets of colours, so it can be read on a light and on a dark page, also
where the page and the system do not agree. Colours are classes: a viewer that knows no media queries shows the light
ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

ROW = 26
"""Height of a row of a table."""

_LIGHT = {
    "ground": "#ffffff",
    "card": "#f4f6f8",
    "line": "#c5ced6",
    "ink": "#1f2933",
    "soft": "#5a6672",
    "one": "#d9e8fb",
    "two": "#fde9c4",
    "three": "#d6f0dd",
    "merged": "#e8dcfa",
    "gone": "#fadadd",
}
_DARK = {
    "ground": "#10171f",
    "card": "#1a242e",
    "line": "#3a4856",
    "ink": "#e8eef3",
    "soft": "#a3b0bc",
    "one": "#1b3f6b",
    "two": "#5a410c",
    "three": "#17492f",
    "merged": "#452f70",
    "gone": "#6b2530",
}
TINTS = ("one", "two", "three")
"""Colours of the first, the second and the third commit."""

_FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
_FIXED = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


def _style() -> str:
    def of(colours: dict[str, str]) -> str:
        words = {"ink", "soft", "line"}
        fills = "".join(f".{name}{{fill:{colour}}}" for name, colour in colours.items() if name not in words)
        return (
            f"{fills}text{{fill:{colours['ink']}}}text.soft{{fill:{colours['soft']}}}"
            f".edge{{stroke:{colours['line']}}}.way{{stroke:{colours['soft']}}}.tip{{fill:{colours['soft']}}}"
        )

    return (
        f"text{{font:14px {_FONTS}}}text.fixed{{font:13px {_FIXED}}}text.small{{font-size:12.5px}}"
        "text.head{font-size:15px;font-weight:600}text.title{font-size:19px;font-weight:700}"
        ".edge{fill:none;stroke-width:1}.way{fill:none;stroke-width:1.6}"
        f"{of(_LIGHT)}@media(prefers-color-scheme:dark){{{of(_DARK)}}}"
    )


class Drawing:
    """One picture in the making. `title` and `meaning` are for those who hear it instead of seeing it."""

    def __init__(self, width: int, height: int, title: str, meaning: str) -> None:
        self._parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            f'role="img" aria-labelledby="title meaning">',
            f'<title id="title">{escape(title)}</title>',
            f'<desc id="meaning">{escape(meaning)}</desc>',
            f"<style>{_style()}</style>",
        ]
        self.card(0.5, 0.5, width - 1, height - 1, "ground", round_by=12)

    def card(self, x: float, y: float, width: float, height: float, colour: str = "card", round_by: float = 8) -> None:
        """A filled rectangle with a thin edge."""
        place = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{round_by:g}"'
        self._parts.append(f'<rect class="{colour}" {place}/><rect class="edge" {place}/>')

    def fill(self, x: float, y: float, width: float, height: float, colour: str) -> None:
        """A coloured ground for words, without an edge."""
        self._parts.append(f'<rect class="{colour}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="4"/>')

    def text(self, x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> None:
        """One line; `y` is its base line. Kinds: title, head, soft, small, fixed, or several of them."""
        named = f' class="{kind}"' if kind else ""
        placed = "" if anchor == "start" else f' text-anchor="{anchor}"'
        self._parts.append(f'<text x="{x:g}" y="{y:g}"{named}{placed}>{escape(words, quote=False)}</text>')

    def lines(self, x: float, y: float, words: Sequence[str], kind: str = "", anchor: str = "start") -> None:
        """Several lines, the first one at `y`."""
        for number, line in enumerate(words):
            self.text(x, y + 19 * number, line, kind, anchor)

    def arrow(self, x: float, y: float, to_x: float, to_y: float) -> None:
        """From a point to another one, bent if they are not on one level."""
        half = (x + to_x) / 2
        path = f"M{x:g} {y:g}H{to_x - 7:g}" if y == to_y else f"M{x:g} {y:g}H{half:g}V{to_y:g}H{to_x - 7:g}"
        self._parts.append(f'<path class="way" d="{path}"/>')
        self._parts.append(f'<path class="tip" d="M{to_x:g} {to_y:g}l-9 -5v10z"/>')

    def row(self, x: float, y: float, cells: Sequence[str], widths: Sequence[float], colours: Sequence[str]) -> None:
        """A row of a table: each cell on its colour (none if that is empty)."""
        for cell, width, colour in zip(cells, widths, colours, strict=True):
            if colour:
                self.fill(x + 2, y + 2, width - 4, ROW - 4, colour)
            self.text(x + 10, y + 18, cell, "fixed")
            x += width

    def svg(self) -> str:
        """The picture."""
        return "\n".join([*self._parts, "</svg>"]) + "\n"
