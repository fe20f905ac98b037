import json
import threading

import pytest

from lakebed.errors import AlreadyExists, CommitConflict, CorruptFile, NotFound, OutcomeUnknown
from lakebed.fileio import LocalFileIO, MemoryFileIO
from lakebed.schema.changes import AddColumn, DropColumn, SetOption
from lakebed.schema.store import SchemaStore
from lakebed.schema.table_schema import TableSchema
from lakebed.types.logical import INT, STRING, DataField


@pytest.fixture
def files(tmp_path):
    return LocalFileIO(), str(tmp_path / "t" / "schema")


@pytest.fixture
def store(files):
    return SchemaStore(*files)


def first() -> TableSchema:
    return TableSchema.create([DataField(0, "a", INT), DataField(1, "b", STRING)], (), (), {}, None, 5)


class _Forwarding:
    """A file system that passes everything on; tests override one call."""

    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        return getattr(self.inner, name)


def test_empty_directory_is_no_table(store):
    """Where nothing was created there is no schema, and altering says so."""
    assert store.latest() is None
    assert store.ids() == []
    with pytest.raises(NotFound, match="no table"):
        store.commit_changes([AddColumn("c", INT)], False, 1)
    with pytest.raises(NotFound, match="schema 0"):
        store.get(0)


def test_versions_are_created_altered_and_found(store, files):
    """Each change is a new file; all versions stay readable, also for another process."""
    store.create(first())
    second = store.commit_changes([AddColumn("c", INT)], True, 6)
    assert (second.id, second.time_millis) == (1, 6)
    other = SchemaStore(*files)
    assert other.ids() == [0, 1]
    assert other.latest() == second
    assert other.get(0) == first()
    assert json.loads(files[0].read_bytes(other.path_of(1)))["highestFieldId"] == 2


def test_table_is_created_once(store):
    """A second creation is refused and leaves the first alone."""
    store.create(first())
    with pytest.raises(AlreadyExists, match="already"):
        store.create(first())
    assert store.publish(first()) is False
    assert store.latest() == first()


def test_other_files_in_the_directory_are_ignored(store, files):
    """Temporary and foreign files are no versions, and numbers sort as numbers."""
    store.create(first())
    for _ in range(10):
        store.commit_changes([SetOption("write-only", "true")], False, 1)
    for name in (".schema-99.tmp", "schema-x", "README", "schema-12.bak"):
        files[0].write_bytes(f"{files[1]}/{name}", b"x")
    assert SchemaStore(*files).ids() == list(range(11))
    assert SchemaStore(*files).latest().id == 10


def test_schema_is_read_once(files):
    """Schema files never change, so a version is read from disk once."""
    SchemaStore(*files).create(first())
    reads = []

    class Counting(_Forwarding):
        def read_bytes(self, path):
            reads.append(path)
            return self.inner.read_bytes(path)

    store = SchemaStore(Counting(files[0]), files[1])
    assert store.latest() is store.latest() is store.get(0)
    assert len(reads) == 1


def test_file_number_counts_when_the_content_disagrees(store, files):
    """The number in the name is what snapshots refer to, whatever id the file claims."""
    files[0].write_bytes(f"{files[1]}/schema-3", first().to_json().encode())
    assert store.latest().id == 3
    assert store.commit_changes([AddColumn("c", INT)], False, 1).id == 4


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe"])
def test_broken_file_is_named(store, files, content):
    """A schema file that can not be read is corrupt, and the error names it."""
    files[0].write_bytes(f"{files[1]}/schema-0", content)
    with pytest.raises(CorruptFile, match="schema-0"):
        store.latest()


def test_loser_of_a_race_applies_its_changes_on_top(files):
    """When another process publishes first, the changes apply again to its schema."""
    SchemaStore(*files).create(first())
    rival = SchemaStore(*files)

    class Racing(_Forwarding):
        calls = 0

        def create_exclusive(self, path, data):
            if Racing.calls == 0:
                Racing.calls = 1
                rival.commit_changes([AddColumn("rival", INT)], False, 1)
            return self.inner.create_exclusive(path, data)

    schema = SchemaStore(Racing(files[0]), files[1]).commit_changes([AddColumn("mine", INT)], False, 2)
    assert schema.id == 2
    assert schema.field_names == ("a", "b", "rival", "mine")
    assert [schema.field(name).id for name in ("rival", "mine")] == [2, 3]


def test_loser_of_a_race_for_the_same_column_is_told(files):
    """When the faster process added the same column, the slower one gets the error it deserves."""
    SchemaStore(*files).create(first())
    rival = SchemaStore(*files)

    class Racing(_Forwarding):
        def create_exclusive(self, path, data):
            rival.commit_changes([AddColumn("c", INT)], False, 1)
            return self.inner.create_exclusive(path, data)

    with pytest.raises(AlreadyExists, match="`c`"):
        SchemaStore(Racing(files[0]), files[1]).commit_changes([AddColumn("c", INT)], False, 2)


def test_endless_losing_ends(files):
    """A store that never wins gives up with a conflict."""
    SchemaStore(*files).create(first())

    class Losing(_Forwarding):
        def create_exclusive(self, path, data):
            return False

    with pytest.raises(CommitConflict, match="other schema changes"):
        SchemaStore(Losing(files[0]), files[1]).commit_changes([AddColumn("c", INT)], False, 2)


@pytest.mark.parametrize("written", ["ours", "theirs", "nothing"])
def test_unknown_outcome_is_folded_by_reading_back(files, written):
    """After an unclear write the file's content tells whose it is; without a file the doubt is passed on."""
    SchemaStore(*files).create(first())

    class Unclear(_Forwarding):
        def create_exclusive(self, path, data):
            if written == "ours":
                self.inner.create_exclusive(path, data)
            elif written == "theirs" and path.endswith("schema-1"):
                SchemaStore(*files).commit_changes([AddColumn("rival", INT)], False, 1)
            elif path.endswith("schema-2"):
                return self.inner.create_exclusive(path, data)
            raise OutcomeUnknown(path, hint="read back")

    store = SchemaStore(Unclear(files[0]), files[1])
    if written == "nothing":
        with pytest.raises(OutcomeUnknown):
            store.commit_changes([AddColumn("c", INT)], False, 2)
    else:
        schema = store.commit_changes([AddColumn("c", INT)], False, 2)
        assert schema.id == (1 if written == "ours" else 2)
        assert SchemaStore(*files).latest() == schema


def test_refused_change_writes_nothing(store):
    """A change that is not allowed leaves no file behind, and no change at all returns the current schema."""
    store.create(first())
    with pytest.raises(NotFound, match="`zz`"):
        store.commit_changes([AddColumn("c", INT), DropColumn("zz")], False, 1)
    assert store.ids() == [0]
    assert store.commit_changes([], False, 1) == first()
    assert store.ids() == [0]


def test_many_threads_alter_one_table():
    """Concurrent additions all arrive, each with an id of its own."""
    files = (MemoryFileIO("schema-threads"), "schema-threads/t/schema")
    SchemaStore(*files).create(first())

    def alter(number: int) -> None:
        store = SchemaStore(*files)
        for step in range(5):
            store.commit_changes([AddColumn(f"c{number}_{step}", INT)], True, number)

    threads = [threading.Thread(target=alter, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    schema = SchemaStore(*files).latest()
    assert schema.id == 20
    assert sorted(column.id for column in schema.fields) == list(range(22))
