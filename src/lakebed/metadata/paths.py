"""Where every file of a table lies. All other parts ask here; none of them joins a path of its own.

A branch keeps its schemas, snapshots, tags, changelogs and consumers in a directory of its own; manifests, indexes,
statistics and data files of all branches share the directories of the main table. Nothing here touches a file system.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

import pyarrow as pa

from lakebed.errors import InvalidArgument
from lakebed.metadata.partition_text import partition_text
from lakebed.records import dataclass
from lakebed.types.logical import DataType

__all__ = [
    "DEFAULT_PARTITION_NAME",
    "MAIN_BRANCH",
    "POSTPONE_BUCKET",
    "TablePaths",
    "escape",
    "parse_partition_path",
    "partition_path",
    "partition_text",
    "unescape",
]

MAIN_BRANCH = "main"
DEFAULT_PARTITION_NAME = "__DEFAULT_PARTITION__"
POSTPONE_BUCKET = -2
"""Bucket of files that wait to be given their real bucket."""


@dataclass(frozen=True, slots=True)
class TablePaths:
    """Paths of one branch of one table. `data_directory` comes between the root and the partitions, if set."""

    METADATA_NAMES: ClassVar = (
        "branch",
        "changelog",
        "consumer",
        "index",
        "manifest",
        "schema",
        "snapshot",
        "statistics",
        "tag",
    )
    """Names of directories in a table that hold no rows."""

    root: str
    branch: str = MAIN_BRANCH
    data_directory: str | None = None

    def __post_init__(self) -> None:
        # "/" alone keeps its slash, or it would turn into a relative path.
        object.__setattr__(self, "root", self.root.rstrip("/") or self.root[:1])
        if self.data_directory is not None:
            object.__setattr__(self, "data_directory", self.data_directory.strip("/") or None)
        if self.branch != MAIN_BRANCH:
            _check_branch(self.branch)

    def on_branch(self, branch: str) -> TablePaths:
        """The same table, seen from another branch."""
        return TablePaths(self.root, branch, self.data_directory)

    # Of the branch

    @property
    def branch_root(self) -> str:
        """Directory of the branch's own metadata; the table's root for the main branch."""
        return self.root if self.branch == MAIN_BRANCH else self.branch_directory(self.branch)

    @property
    def schema_directory(self) -> str:
        """Directory of schema files."""
        return f"{self.branch_root}/schema"

    def schema_file(self, schema_id: int) -> str:
        """A schema file."""
        return f"{self.schema_directory}/schema-{schema_id}"

    @property
    def snapshot_directory(self) -> str:
        """Directory of snapshots and their two hints."""
        return f"{self.branch_root}/snapshot"

    def snapshot_file(self, snapshot_id: int) -> str:
        """A snapshot file."""
        return f"{self.snapshot_directory}/snapshot-{snapshot_id}"

    @property
    def latest_hint(self) -> str:
        """The file that names the newest snapshot, if all went well."""
        return f"{self.snapshot_directory}/LATEST"

    @property
    def earliest_hint(self) -> str:
        """The file that names the oldest snapshot, if expiration wrote it."""
        return f"{self.snapshot_directory}/EARLIEST"

    @property
    def expiring_hint(self) -> str:
        """The file in which an expiry announces the first snapshot that it keeps. Other engines pass it over."""
        return f"{self.snapshot_directory}/EXPIRING"

    @property
    def changelog_directory(self) -> str:
        """Directory of changelogs that outlive their snapshots."""
        return f"{self.branch_root}/changelog"

    def changelog_file(self, snapshot_id: int) -> str:
        """A changelog that outlives its snapshot."""
        return f"{self.changelog_directory}/changelog-{snapshot_id}"

    @property
    def changelog_latest_hint(self) -> str:
        """The file that names the newest changelog that outlives its snapshot."""
        return f"{self.changelog_directory}/LATEST"

    @property
    def changelog_earliest_hint(self) -> str:
        """The file that names the oldest changelog that outlives its snapshot."""
        return f"{self.changelog_directory}/EARLIEST"

    @property
    def tag_directory(self) -> str:
        """Directory of tags."""
        return f"{self.branch_root}/tag"

    def tag_file(self, name: str) -> str:
        """A tag file."""
        return f"{self.tag_directory}/tag-{_checked('tag', name)}"

    def tag_marker_file(self, name: str) -> str:
        """A file that tells others that a tag was made."""
        return f"{self.tag_directory}/tag-success-file/{_checked('tag', name)}_SUCCESS"

    @property
    def consumer_directory(self) -> str:
        """Directory of consumers."""
        return f"{self.branch_root}/consumer"

    def consumer_file(self, consumer_id: str) -> str:
        """A consumer file."""
        return f"{self.consumer_directory}/consumer-{_checked('consumer', consumer_id)}"

    # Of the table, for all branches

    @property
    def branches_directory(self) -> str:
        """Directory of all branches but the main one."""
        return f"{self.root}/branch"

    def branch_directory(self, name: str) -> str:
        """Directory of a branch other than the main one."""
        return f"{self.branches_directory}/branch-{_check_branch(name)}"

    @property
    def manifest_directory(self) -> str:
        """Directory of manifests, manifest lists and index manifests."""
        return f"{self.root}/manifest"

    def manifest_file(self, name: str) -> str:
        """A manifest, manifest list or index manifest."""
        return f"{self.manifest_directory}/{name}"

    @property
    def index_directory(self) -> str:
        """Directory of hash indexes and deletion vectors."""
        return f"{self.root}/index"

    def index_file(self, name: str) -> str:
        """A file of hash indexes or deletion vectors."""
        return f"{self.index_directory}/{name}"

    @property
    def statistics_directory(self) -> str:
        """Directory of table statistics."""
        return f"{self.root}/statistics"

    def statistics_file(self, name: str) -> str:
        """A file of table statistics."""
        return f"{self.statistics_directory}/{name}"

    @property
    def data_root(self) -> str:
        """Directory that holds the partitions, or the buckets of a table without."""
        return self.root if self.data_directory is None else f"{self.root}/{self.data_directory}"

    def bucket_directory(self, partition: str, bucket: int) -> str:
        """Directory of one bucket; `partition` is what `partition_path` returned."""
        bucket_name = "bucket-postpone" if bucket == POSTPONE_BUCKET else f"bucket-{bucket}"
        return "/".join(filter(None, (self.data_root, partition, bucket_name)))

    def data_file(self, partition: str, bucket: int, file_name: str) -> str:
        """A data or changelog file, unless its metadata says that it lies elsewhere."""
        return f"{self.bucket_directory(partition, bucket)}/{file_name}"


def _checked(kind: str, name: str) -> str:
    if not name.strip() or any(char in "/\\" or ord(char) < 0x20 for char in name):
        raise InvalidArgument(
            f"{name!r} can not name a {kind}", hint="use a name without slashes or control characters, not blank"
        )
    return name


def _check_branch(name: str) -> str:
    if name == MAIN_BRANCH or name.isdigit():
        raise InvalidArgument(
            f"{name!r} can not name a branch", hint="choose a name other than `main` that is not only digits"
        )
    return _checked("branch", name)


# Partition directories -----------------------------------------------------------------------------------------------

_SPECIAL = re.compile(r"[\x00-\x1f\x7f\"#%'*/:=?\\{}\[\]^]")
_ESCAPED = re.compile(r"%([0-9A-Fa-f]{2})")
_BLANK = re.compile("[\t-\r\x1c- \u1680\u2000-\u2006\u2008-\u200a\u2028\u2029\u205f\u3000]*")
"""What Java takes for white space: not the same characters as Python's `isspace`."""


def escape(text: str) -> str:
    """Text with every character that would upset a path written as `%XX`."""
    return _SPECIAL.sub(lambda found: f"%{ord(found.group()):02X}", text)


def unescape(text: str) -> str:
    """Inverse of `escape`."""
    return _ESCAPED.sub(lambda found: chr(int(found.group(1), 16)), text)


def partition_path(
    names: Sequence[str],
    types: Sequence[DataType],
    values: Sequence[pa.Scalar],
    *,
    default_name: str = DEFAULT_PARTITION_NAME,
    legacy: bool = True,
) -> str:
    """Directory of a partition below the table, such as `dt=2024-01-01/hr=5`; empty for a table without partitions.

    Null, empty and blank values all share the directory of `default_name`; manifests tell them apart.
    """
    segments = []
    for name, data_type, value in zip(names, types, values, strict=True):
        text = partition_text(data_type, value, legacy=legacy) if value.is_valid else ""
        segments.append(f"{escape(name)}={escape(default_name if _BLANK.fullmatch(text) else text)}")
    return "/".join(segments)


def parse_partition_path(text: str) -> list[tuple[str, str]]:
    """Names and value texts of a partition directory."""
    pairs = []
    for segment in filter(None, text.split("/")):
        name, equals, value = segment.partition("=")
        if not equals or not name:
            raise InvalidArgument(
                f"`{segment}` in partition `{text}` is not a column and a value",
                hint="write partitions as in `dt=2024-01-01/hr=5`",
            )
        pairs.append((unescape(name), unescape(value)))
    return pairs
