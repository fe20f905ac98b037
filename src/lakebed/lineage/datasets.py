"""What is read and written, by the names that OpenLineage has for it: where the files lie, and the table's own name."""

from __future__ import annotations

from typing import Any

from lakebed.fileio.local import LocalFileIO
from lakebed.lineage.facets import facet
from lakebed.records import dataclass
from lakebed.schema.table_schema import TableSchema
from lakebed.table.opened import opened_of
from lakebed.table.table import Table

_BRANCH = "branch_"


@dataclass(frozen=True, slots=True)
class Dataset:
    """Its namespace says where it is, `root` which it is there; `table` is the name in a lake, if it is a table."""

    namespace: str
    root: str
    table: str = ""
    branch: str = ""
    schema: TableSchema | None = None

    @property
    def name(self) -> str:
        """Where its own metadata lies."""
        return f"{self.root}/branch/branch-{self.branch}" if self.branch else self.root

    def to_json(self) -> dict[str, Any]:
        """As it stands in an event."""
        facets: dict[str, Any] = {}
        if self.schema is not None:
            fields = [
                {"name": each.name, "type": str(each.type)}
                | ({"description": each.description} if each.description else {})
                for each in self.schema.fields
            ]
            facets["schema"] = facet("SchemaDatasetFacet", "1-1-1", fields=fields)
        if self.table:
            warehouse = self.root.removesuffix("/" + self.table.replace(".", ".db/", 1))
            place = warehouse if self.namespace == "file" else f"{self.namespace}/{warehouse}"
            table = f"{self.table}${_BRANCH}{self.branch}" if self.branch else self.table
            names = [{"namespace": place, "name": table, "type": "TABLE"}]
            facets["symlinks"] = facet("SymlinksDatasetFacet", "1-0-1", identifiers=names)
        return {"namespace": self.namespace, "name": self.name, "facets": facets}


def table_dataset(table: Table) -> Dataset:
    """A table of a lake, with its columns. A branch is one of its own; a view of a table is the table."""
    context = opened_of(table).context
    name, _, view = table.name.partition("$")
    branch = view.partition("$")[0].removeprefix(_BRANCH) if view.startswith(_BRANCH) else ""
    fileio, root = context.fileio, context.paths.root
    namespace = "file" if isinstance(fileio, LocalFileIO) else str(getattr(fileio, "place", "memory://"))
    return Dataset(namespace, root, name, branch, table.schema)


__all__ = ["Dataset", "table_dataset"]
