"""Which column of the lake a column of a source is kept in: what lets a renamed or dropped column be recognised.

The links stand in an option of the table, so that they change together with the columns. A link remembers the value
that rows from before the column's addition have, and the commit with which the column first came through the log.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any, Self

from lakebed.cdc.envelope import Description, SourceColumn, SourceName
from lakebed.records import dataclass


@dataclass(frozen=True, slots=True)
class ColumnLink:
    """The column of the lake behind a source's column, by field id."""

    field_id: int
    default: str | None = None
    """The value of rows that were written before the column was there."""
    streamed_in: int | None = None
    """Identifier of the commit in which the log first knew the column; None as long as only the copy did."""
    former_names: tuple[str, ...] = ()
    """What the column was called before, last name first."""

    def is_streamed_before(self, identifier: int) -> bool:
        """Whether the log knew the column before this commit. A commit that is repeated answers as the first time."""
        return self.streamed_in is not None and self.streamed_in < identifier


Links = Mapping[str, ColumnLink]
"""Links of one source table, by `link_key`."""


@dataclass(frozen=True, slots=True)
class LastShape:
    """The columns that a source table was last known to have, as a short text, and those that it had before.

    `identifier` is that of the commit that brought them: one that is repeated asks for what was before it.
    """

    identifier: int
    now: str
    before: str = ""

    def before_commit(self, identifier: int) -> str:
        """The columns before a commit."""
        return self.now if self.identifier < identifier else self.before

    def after_commit(self, identifier: int, shape: str) -> LastShape:
        """With the columns after a commit."""
        before = self.before_commit(identifier)
        return self if shape == before else LastShape(identifier, shape, before)


def shape_text(description: Description) -> str:
    """Equal for descriptions with the same names and types."""
    columns = [(column.name, str(column.type)) for column in description.columns]
    return hashlib.sha1(json.dumps(columns).encode(), usedforsecurity=False).hexdigest()[:16]


def link_key(column: SourceColumn) -> str:
    """What stays the same when the column is renamed, if the source has such a thing; else its name."""
    return f"={column.name}" if column.id is None else str(column.id)


@dataclass(frozen=True, slots=True)
class TableLinks:
    """Links of all sources of one table of the lake, as `user` has left them."""

    user: str = ""
    sources: Mapping[str, Links] = field(default_factory=dict)
    shapes: Mapping[str, LastShape] = field(default_factory=dict)
    altered: tuple[int, int] | None = None
    """The last commit that changed the table's columns, and the schema that they had before it."""
    former_user: str = field(default="", compare=False)
    """Who has written the text that these were read from."""

    @classmethod
    def from_text(cls, text: str | None, user: str) -> Self:
        """The links that an option's text holds. Those of another sync tell nothing of this one's log."""
        if not text:
            return cls(user)
        body: dict[str, Any] = json.loads(text)
        is_ours = body.get("user") in ("", user)
        sources = {
            name: {
                key: ColumnLink(int(link[0]), link[1], link[2] if is_ours else None, tuple(link[3:]))
                for key, link in columns.items()
            }
            for name, columns in body.get("sources", {}).items()
        }
        shapes = {name: LastShape(*shape) for name, shape in body.get("shapes", {}).items()} if is_ours else {}
        altered = body.get("altered") if is_ours else None
        return cls(user, sources, shapes, (altered[0], altered[1]) if altered else None, str(body.get("user", "")))

    def to_text(self) -> str:
        """The text of the option."""
        sources = {
            name: {
                key: [link.field_id, link.default, link.streamed_in, *link.former_names] for key, link in links.items()
            }
            for name, links in self.sources.items()
        }
        shapes = {name: [shape.identifier, shape.now, shape.before] for name, shape in self.shapes.items()}
        body = {"user": self.user, "sources": sources, "shapes": shapes, "altered": self.altered}
        return json.dumps(body, ensure_ascii=False, separators=(",", ":"))

    def of(self, source: SourceName) -> Links:
        """Links of one source table."""
        return self.sources.get(str(source), {})

    def with_links(self, source: SourceName, links: Links) -> Self:
        """The same with other links for one source table."""
        return replace(self, sources={**self.sources, str(source): dict(links)})

    def schema_before(self, identifier: int) -> int | None:
        """The schema that the table had before a commit changed its columns, if the last change was that one's."""
        return self.altered[1] if self.altered is not None and self.altered[0] == identifier else None

    def shape(self, source: SourceName) -> LastShape:
        """The columns that a source table was last known to have."""
        return self.shapes.get(str(source), LastShape(-1, ""))

    def with_shape(self, source: SourceName, shape: LastShape) -> Self:
        """The same with other columns for one source table."""
        return replace(self, shapes={**self.shapes, str(source): shape})


__all__ = ["ColumnLink", "LastShape", "Links", "TableLinks", "link_key", "shape_text"]
