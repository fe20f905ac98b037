"""Files in S3, Google Cloud Storage, Azure Blob Storage, and what speaks the protocol of one of them.

What differs from a disk, and what is made of it:

* A put shows an object whole and durable, or not at all: no temporary files are needed.
* `create_exclusive` is a conditional put ("only if there is no such object"). The client repeats a request whose answer
  got lost, so finding the name taken may mean finding our own object: the content decides. A store that ignores the
  condition would lose commits silently, so stores behind an endpoint of the user's choice have to prove once per
  connection that they honour it.
* There are no directories: they are prefixes, and an empty one does not exist. Objects of zero bytes that other tools
  leave as directory markers (`a/b/`) are not reported as files; the client can not address them, hence not delete them.
* `rename_directory` copies every object, then deletes the sources: it is not atomic. It fails before any deletion.
* An aborted upload of a large file stays in the bucket as invisible parts: give the bucket a life-cycle rule that drops
  incomplete multipart uploads.

This is the only module that knows the client library. Credentials stay inside the client and appear in no message.
"""

from __future__ import annotations

import contextlib
import io
import os
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from lakebed.errors import (
    AlreadyExists,
    FileMissing,
    InvalidArgument,
    InvalidOption,
    LakebedError,
    MissingDependency,
    OutcomeUnknown,
    StorageError,
    Unsupported,
)
from lakebed.fileio.base import FileStatus, OutputFile
from lakebed.fileio.object_store_options import AZURE, GCS, S3, StoreKind, read_connection

try:
    import obstore
    from obstore import exceptions as client_errors
    from obstore.store import AzureStore, GCSStore, S3Store
except ImportError as missing:
    raise MissingDependency(
        "object stores need the package `obstore`, which is not installed",
        hint='install it with: pip install "lakebed[object-store]"',
    ) from missing

__all__ = ["ObjectStoreFileIO", "open_object_store"]

_READ_AHEAD_BYTES = 256 << 10
_UPLOAD_PART_BYTES = 8 << 20
_UPLOAD_CONCURRENCY = 4
_LIST_CHUNK = 1000

_KINDS: dict[str, tuple[StoreKind, Any]] = {
    "s3": (S3, S3Store),
    "s3a": (S3, S3Store),
    "gs": (GCS, GCSStore),
    "az": (AZURE, AzureStore),
    "abfs": (AZURE, AzureStore),
    "abfss": (AZURE, AzureStore),
}
# Where the client looks for an endpoint that no option names.
_ENDPOINT_VARIABLES = ("AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3")
_REFUSED = (client_errors.PermissionDeniedError, client_errors.UnauthenticatedError)


def open_object_store(url: str, options: Mapping[str, str]) -> tuple[ObjectStoreFileIO, str]:
    """Connect to the bucket of `scheme://bucket/key`; also the key."""
    scheme, _, rest = url.partition("://")
    kind, store_type = _KINDS[scheme]
    bucket, _, key = rest.partition("/")
    container, _, account_host = bucket.partition("@")  # abfs://container@account.dfs.core.windows.net/...
    if not container:
        raise InvalidArgument(f"{url} names no bucket", hint=f"write it as {scheme}://bucket/path")
    connection = read_connection(kind, container, options)
    if account_host:
        connection.config.setdefault("account_name", account_host.partition(".")[0])
    try:
        store = store_type(
            container,
            config=connection.config,
            client_options=connection.http or None,
            retry_config=connection.retry or None,
        )
    except client_errors.BaseError as error:
        raise InvalidOption(
            f"can not connect to {scheme}://{bucket}: {_reason(error)}",
            hint=f"check the options that begin with `{kind.prefix}`, and the environment's credentials",
        ) from error
    must_prove = kind is S3 and (
        "endpoint" in connection.config or any(name in os.environ for name in _ENDPOINT_VARIABLES)
    )
    return ObjectStoreFileIO(store, must_prove_exclusive_create=must_prove), key.strip("/")


class ObjectStoreFileIO:
    """The objects of one bucket; paths are full keys. Pickles with its connection settings, and connects anew."""

    def __init__(self, store: Any, *, must_prove_exclusive_create: bool = False) -> None:
        self._store = store
        self._must_prove_exclusive_create = must_prove_exclusive_create

    def __repr__(self) -> str:
        return f"ObjectStoreFileIO({self._store!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectStoreFileIO) and bool(other._store == self._store)

    def __hash__(self) -> int:
        return hash((ObjectStoreFileIO, repr(self._store)))

    def read_bytes(self, path: str) -> bytes:
        with _translated("read", path):
            return bytes(self._store.get(path).bytes())

    def open_input(self, path: str) -> pa.NativeFile:
        reader = _RangeReader(self._store, path, self.size(path))
        return pa.PythonFile(io.BufferedReader(reader, _READ_AHEAD_BYTES), mode="r")

    def open_output(self, path: str) -> OutputFile:
        """Begin a new object. Unlike on a disk, a taken name is not noticed: large uploads have no condition."""
        return _ObjectOutputFile(self._store, path)

    def write_bytes(self, path: str, data: bytes) -> None:
        if not self._put_if_absent(path, data):
            raise AlreadyExists(
                f"can not write {path}: the object is there already",
                hint="new files need names of their own; it was left as it is",
            )

    def overwrite(self, path: str, data: bytes) -> None:
        with _translated("overwrite", path):
            self._store.put(path, data, use_multipart=False)

    def create_exclusive(self, path: str, data: bytes) -> bool:
        if self._must_prove_exclusive_create:
            self._prove_exclusive_create(path)
        return self._put_if_absent(path, data)

    def exists(self, path: str) -> bool:
        with _translated("look up", path):
            try:
                self._store.head(path)
                return True
            except FileNotFoundError:
                return any(self._store.list(path, chunk_size=1))

    def size(self, path: str) -> int:
        with _translated("read", path):
            return int(self._store.head(path)["size"])

    def list_directory(self, path: str) -> list[FileStatus]:
        with _translated("list", path):
            found = self._store.list_with_delimiter(path or None)
        files = [_status(meta) for meta in found["objects"] if meta["path"] != path]
        directories = [FileStatus(prefix, 0, 0, is_directory=True) for prefix in found["common_prefixes"]]
        return sorted(files + directories, key=lambda status: status.path)

    def list_recursive(self, path: str) -> Iterator[FileStatus]:
        held: FileStatus | None = None  # an empty object: a directory marker if the next one lies below it
        with _translated("list", path):
            for chunk in self._store.list(path or None, chunk_size=_LIST_CHUNK):
                for meta in chunk:
                    if held is not None and not meta["path"].startswith(f"{held.path}/"):
                        yield held
                    status = _status(meta)
                    held = status if status.size_bytes == 0 else None
                    if held is None:
                        yield status
        if held is not None and held.path != path:
            yield held

    def make_directory(self, path: str) -> None:
        """Do nothing: a prefix exists as soon as an object has it."""

    def delete(self, path: str) -> bool:
        with _translated("delete", path):
            try:
                self._store.head(path)  # stores do not agree on whether deleting nothing is an error
                self._store.delete(path)
            except FileNotFoundError:
                return False
            return True

    def delete_directory(self, path: str) -> None:
        while paths := self._paths_below(path):
            with _translated("delete", path):
                try:
                    self._store.delete(paths)
                    return
                except FileNotFoundError:
                    continue  # somebody else deletes here as well: look what is left

    def delete_empty_directory(self, path: str) -> bool:
        return False  # a directory is there as long as something is in it

    def rename_directory(self, source: str, target: str) -> None:
        paths = self._paths_below(source)
        if not paths:
            raise FileMissing(f"can not rename {source}: there is nothing below it", hint="check the name")
        if self.exists(target):
            raise AlreadyExists(f"can not rename {source}: {target} is there already", hint="choose another name")
        try:
            for path in paths:
                self._store.copy(path, target + path[len(source) :])
        except (client_errors.BaseError, OSError) as error:
            raise StorageError(
                f"can not copy {source} to {target}: {_reason(error)}",
                hint=f"{source} is still complete; delete {target}, which is not, and retry",
            ) from error
        with _translated("delete", source):
            self._store.delete(paths)

    def advisory_lock(self, directory: str) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def _paths_below(self, path: str) -> list[str]:
        with _translated("list", path):
            return [meta["path"] for chunk in self._store.list(path, chunk_size=_LIST_CHUNK) for meta in chunk]

    def _put_if_absent(self, path: str, data: bytes) -> bool:
        try:
            with _translated("create", path):
                self._store.put(path, data, mode="create")
            return True
        except StorageError as error:
            if isinstance(error, FileMissing) or isinstance(error.__cause__, _REFUSED):
                raise  # no such bucket, or not allowed: certainly not done
            return self._holds(path, data, error)

    def _holds(self, path: str, data: bytes, failure: StorageError) -> bool:
        """Whether the object there has our content. Not being able to see one leaves the outcome unknown."""
        try:
            return self.read_bytes(path) == data
        except LakebedError:
            raise OutcomeUnknown(
                f"it can not be told whether {path} was created: {failure.message}",
                hint="read the object back before trying again, and delete nothing",
            ) from failure

    def _prove_exclusive_create(self, path: str) -> None:
        """Create an object twice; the second time must be refused."""
        probe = f"{path.rpartition('/')[0]}/.lakebed-probe-{uuid.uuid4()}".lstrip("/")
        with _translated("create", probe):
            self._store.put(probe, b"first", mode="create")
            try:
                self._store.put(probe, b"second", mode="create")
            except client_errors.AlreadyExistsError:
                self._must_prove_exclusive_create = False
        with contextlib.suppress(client_errors.BaseError, OSError):  # who may create need not be allowed to delete
            self._store.delete(probe)
        if self._must_prove_exclusive_create:
            raise Unsupported(
                "this object store ignores conditional puts (`If-None-Match`): concurrent commits would be lost",
                hint="use a store or a newer server version that honours them; nothing was committed",
            )


class _ObjectOutputFile(OutputFile):
    """A buffered upload: one put for a small file, a multipart upload for a large one. Visible when complete."""

    def __init__(self, store: Any, path: str) -> None:
        super().__init__(path)
        self._writer: Any = obstore.open_writer(
            store, path, buffer_size=_UPLOAD_PART_BYTES, max_concurrency=_UPLOAD_CONCURRENCY
        )

    def _append(self, data: memoryview) -> None:
        with _translated("write", self.path):
            self._writer.write(data)

    def _complete(self) -> None:
        with _translated("write", self.path):
            self._writer.close()

    def _discard(self) -> None:
        self._writer = None  # dropping the writer without closing it never completes the upload


class _RangeReader(io.RawIOBase):
    """One object as a seekable raw file: every read is one range request."""

    def __init__(self, store: Any, path: str, size_bytes: int) -> None:
        self._store = store
        self._path = path
        self._size_bytes = size_bytes
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size_bytes}[whence]
        self._position = max(0, base + offset)
        return self._position

    def readinto(self, buffer: Any) -> int:
        wanted = min(len(buffer), self._size_bytes - self._position)
        if wanted <= 0:
            return 0
        with _translated("read", self._path):
            data = self._store.get_range(self._path, start=self._position, length=wanted)
        buffer[: len(data)] = memoryview(data)
        self._position += len(data)
        return len(data)


@contextlib.contextmanager
def _translated(action: str, path: str) -> Iterator[None]:
    """Turn what the client raises into errors of ours that name the path."""
    try:
        yield
    except ValueError as error:
        raise InvalidArgument(
            f"can not {action} {path}: {_reason(error)}", hint="leave out empty segments, `.` and `..`"
        ) from error
    except (client_errors.BaseError, OSError) as error:
        kind = FileMissing if isinstance(error, FileNotFoundError) else StorageError
        raise kind(f"can not {action} {path}: {_reason(error)}", hint=_hint(error)) from error


def _hint(error: Exception) -> str:
    reason = _reason(error)
    # Failing listings are generic errors to the client, whatever the server said: its own words have to do.
    if isinstance(error, _REFUSED) or "403 Forbidden" in reason:
        return "the store refused the credentials: check the key, and that it may read, write, list and delete here"
    if "NoSuchBucket" in reason:
        return "create the bucket, or check its name"
    if isinstance(error, FileNotFoundError):
        return "check the path; if the object was there before, read the table again: it may have expired"
    return "check that the store can be reached, then retry; what was committed before is still there"


def _reason(error: BaseException) -> str:
    """The client's message without its dump of internal state."""
    return str(error).partition("\n\nDebug source")[0].strip()


def _status(meta: Mapping[str, Any]) -> FileStatus:
    return FileStatus(
        meta["path"], int(meta["size"]), int(meta["last_modified"].timestamp() * 1000), is_directory=False
    )
