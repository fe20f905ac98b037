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
* A store that is away, or asks to slow down, is asked again until a deadline (`patience`), whatever was asked: all
  requests may be repeated. A conditional put that got no answer is repeated as well; the content decides, as above.
* An aborted upload of a large file stays in the bucket as invisible parts: give the bucket a life-cycle rule that drops
  incomplete multipart uploads.

This is the only module that knows the client library. Credentials stay inside the client and appear in no message.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar

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
from lakebed.fileio.aws_profile import AwsProfile, has_profile
from lakebed.fileio.base import FileStatus, OutputFile
from lakebed.fileio.glance import forget_glances, listed, version_of
from lakebed.fileio.object_store_options import AZURE, GCS, S3, Connection, StoreKind, read_connection
from lakebed.fileio.patience import Patience
from lakebed.metrics.families import OBJECT_STORE_REQUEST_DURATION, OBJECT_STORE_RETRIES
from lakebed.units import format_duration

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
_QUICK_RETRIES = 2
"""What the client itself repeats at once. The rest is up to us: while it waits nobody can interrupt it."""
_DELETED_AT_ONCE = 1000
_LARGEST_RECENT_BYTES = 64 << 10
_MOST_RECENT_BYTES = 2 << 20

_KINDS: dict[str, tuple[StoreKind, Any]] = {
    "s3": (S3, S3Store),
    "s3a": (S3, S3Store),
    "gs": (GCS, GCSStore),
    "az": (AZURE, AzureStore),
    "abfs": (AZURE, AzureStore),
    "abfss": (AZURE, AzureStore),
}
_REFUSED = (client_errors.PermissionDeniedError, client_errors.UnauthenticatedError)
_ANSWERS = (
    *_REFUSED,
    client_errors.AlreadyExistsError,
    client_errors.PreconditionError,
    client_errors.NotModifiedError,
    client_errors.NotSupportedError,
    client_errors.InvalidPathError,
    FileNotFoundError,
)
"""What a store has answered for good, and would again."""
_REFUSAL = re.compile(r"status code: 4(?!08|29)\d\d")
"""How the client words such an answer to a listing: all but "request timeout" and "too many requests"."""

_Answer = TypeVar("_Answer")


def open_object_store(url: str, options: Mapping[str, str]) -> tuple[ObjectStoreFileIO, str]:
    """Connect to the bucket of `scheme://bucket/key`; also the key."""
    scheme, _, rest = url.partition("://")
    kind, store_type = _KINDS[scheme]
    bucket, _, key = rest.partition("/")
    container, _, account_host = bucket.partition("@")  # abfs://container@account.dfs.core.windows.net/...
    if not container:
        raise InvalidArgument(f"{url} names no bucket", hint=f"write it as {scheme}://bucket/path")
    connection = read_connection(kind, container, options, os.environ)
    if account_host:
        connection.config.setdefault("account_name", account_host.partition(".")[0])
    try:
        store = store_type(
            container,
            config=connection.config,
            client_options=connection.http or None,
            retry_config=_quick_retries(connection.patience),
            **_provider(kind, connection),
        )
    except client_errors.BaseError as error:
        raise InvalidOption(
            f"can not connect to {scheme}://{bucket}: {_reason(error)}",
            hint=f"check the options that begin with `{kind.prefix}`, and the environment's credentials",
        ) from error
    fileio = ObjectStoreFileIO(
        store,
        must_prove_exclusive_create=kind is S3 and "endpoint" in connection.config,
        patience=connection.patience,
        place=f"{scheme}://{bucket}",
    )
    return fileio, key.strip("/")


def _quick_retries(patience: Patience) -> dict[str, Any]:
    most = _QUICK_RETRIES if patience.most_repeats is None else min(_QUICK_RETRIES, patience.most_repeats)
    return {
        "max_retries": most,
        "retry_timeout": timedelta(milliseconds=patience.timeout_ms),
        "backoff": {"init_backoff": timedelta(milliseconds=min(100, patience.first_wait_ms))},
    }


def _provider(kind: StoreKind, connection: Connection) -> dict[str, AwsProfile]:
    """Who gives the client its keys, if neither options nor the environment do, nor the machine it runs on."""
    if kind is not S3:
        return {}
    name = connection.profile
    if name is None:
        others = ("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI")
        is_given = connection.config.keys() & {"access_key_id", "skip_signature", "role_arn", "web_identity_token_file"}
        if is_given or any(os.environ.get(variable) for variable in others) or not has_profile("default", os.environ):
            return {}
        name = "default"
    profile = AwsProfile.of(name, os.environ)
    region = profile.settings().get("region")
    if region:
        connection.config.setdefault("region", region)
    return {"credential_provider": profile}


class ObjectStoreFileIO:
    """The objects of one bucket; paths are full keys. Pickles with its connection settings, and connects anew."""

    def __init__(
        self,
        store: Any,
        *,
        must_prove_exclusive_create: bool = False,
        patience: Patience | None = None,
        place: str = "the object store",
    ) -> None:
        self._store = store
        self._must_prove_exclusive_create = must_prove_exclusive_create
        self._patience = patience or Patience()
        self._place = place
        self.newest_known: dict[str, int] = {}
        """Numbers of the newest snapshots, by directory, as they were found last: where a glance begins to list."""
        self._recent = _RecentContents()

    answers_late = True
    """Each answer takes a while, whatever is asked: see `together`."""

    @property
    def itself(self) -> ObjectStoreFileIO:
        """This store, when asked through what stands in for it."""
        return self

    @property
    def place(self) -> str:
        """The bucket, as it is written in front of a path: `s3://bucket`."""
        return self._place

    @property
    def endpoint(self) -> str | None:
        """The server, where it is not that of the provider."""
        found = self._store.config.get("endpoint")
        return None if found is None else str(found)

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopened, (self._store, self._must_prove_exclusive_create, self._patience, self._place)

    def __repr__(self) -> str:
        return f"ObjectStoreFileIO({self._store!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectStoreFileIO) and bool(other._store == self._store)

    def __hash__(self) -> int:
        return hash((ObjectStoreFileIO, repr(self._store)))

    def read_bytes(self, path: str) -> bytes:
        version = version_of(self, path)
        known = self._recent.get(path, version) if version else None
        if known is not None:
            return known

        try:
            content, found = self.read_now(path)
        except FileMissing:
            forget_glances(self, path)
            raise
        if version:
            self._recent.put(path, found, content)
        return content

    def read_now(self, path: str) -> tuple[bytes, str]:
        """The content of an object and its version, past all that is remembered."""

        def get() -> tuple[bytes, str]:
            answer = self._store.get(path)
            return bytes(answer.bytes()), str(answer.meta["e_tag"] or "")

        return self._ask("read", path, get)

    def open_input(self, path: str) -> pa.NativeFile:
        reader = _RangeReader(self, path, self.size(path))
        return pa.PythonFile(io.BufferedReader(reader, _READ_AHEAD_BYTES), mode="r")

    def read_range(self, path: str, start: int, length: int) -> memoryview:
        """A part of an object."""
        data = self._ask("read", path, lambda: self._store.get_range(path, start=start, length=length))
        return memoryview(data)

    def open_output(self, path: str) -> OutputFile:
        """Begin a new object. Unlike on a disk, a taken name is not noticed: large uploads have no condition."""
        return _ObjectOutputFile(self, path)

    def write_bytes(self, path: str, data: bytes) -> None:
        if not self._put_if_absent(path, data):
            raise AlreadyExists(
                f"can not write {path}: the object is there already",
                hint="new files need names of their own; it was left as it is",
            )

    def overwrite(self, path: str, data: bytes) -> None:
        forget_glances(self, path)
        self._ask("overwrite", path, lambda: self._store.put(path, data, use_multipart=False))

    def create_exclusive(self, path: str, data: bytes) -> bool:
        if self._must_prove_exclusive_create:
            self._prove_exclusive_create(path)
        return self._put_if_absent(path, data, is_read_again=True)

    def exists(self, path: str) -> bool:
        def look() -> bool:
            try:
                self._store.head(path)
                return True
            except FileNotFoundError:
                return any(self._store.list(path, chunk_size=1))

        return self._ask("look up", path, look)

    def size(self, path: str) -> int:
        return self._ask("read", path, lambda: int(self._store.head(path)["size"]))

    def list_directory(self, path: str) -> list[FileStatus]:
        seen = listed(self, path)
        return self.list_now(path) if seen is None else seen

    def list_now(self, path: str, after: str | None = None) -> list[FileStatus]:
        """As `list_directory`, but never from a glance; only names after a given one, if any."""
        if after is not None:
            return [_status(meta) for chunk in self._chunks(path, f"{path}/{after}") for meta in chunk]
        found = self._ask("list", path, lambda: self._store.list_with_delimiter(path or None))
        files = [_status(meta) for meta in found["objects"] if meta["path"] != path]
        directories = [FileStatus(prefix, 0, 0, is_directory=True) for prefix in found["common_prefixes"]]
        return sorted(files + directories, key=lambda status: status.path)

    def list_recursive(self, path: str) -> Iterator[FileStatus]:
        held: FileStatus | None = None  # an empty object: a directory marker if the next one lies below it
        for chunk in self._chunks(path):
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
        def delete() -> bool:
            try:
                self._store.head(path)  # stores do not agree on whether deleting nothing is an error
                self._store.delete(path)
            except FileNotFoundError:
                return False
            return True

        forget_glances(self, path)
        return self._ask("delete", path, delete)

    def delete_many(self, paths: Sequence[str]) -> None:
        """Delete objects, a thousand with each request where the store can. Those that are gone already do not count.

        An error may come when some are deleted and some are not.
        """
        for start in range(0, len(paths), _DELETED_AT_ONCE):
            part = list(paths[start : start + _DELETED_AT_ONCE])
            forget_glances(self, part[0])
            self._ask("delete", part[0], lambda: self._delete_part(part))  # noqa: B023 - called at once

    def _delete_part(self, paths: list[str]) -> None:
        try:
            self._store.delete(paths)
        except FileNotFoundError:
            for path in paths:  # some stores stop at what is not there
                with contextlib.suppress(FileNotFoundError):
                    self._store.delete(path)

    def delete_directory(self, path: str) -> None:
        while paths := self._paths_below(path):
            self.delete_many(paths)  # until all is gone: somebody else may write or delete here as well

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
                self._ask("copy", path, lambda: self._store.copy(path, target + path[len(source) :]))  # noqa: B023
        except StorageError as error:
            raise StorageError(
                f"can not copy {source} to {target}: {error.message}",
                hint=f"{source} is still complete; delete {target}, which is not, and retry",
            ) from error
        self.delete_many(paths)

    def advisory_lock(self, directory: str) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def _ask(self, action: str, path: str, ask: Callable[[], _Answer]) -> _Answer:
        """What the store answers: it is asked again while it is away, until patience ends."""
        failure: Exception | None = None
        with OBJECT_STORE_REQUEST_DURATION.timed(action):
            for turn in self._patience.turns():
                if turn:
                    OBJECT_STORE_RETRIES.tell(1, action)
                try:
                    return ask()
                except (client_errors.BaseError, OSError, ValueError) as error:
                    failure = error
                    if _is_answer(error):
                        break
            assert failure is not None
            raise self._translated(action, path, failure) from failure

    def _translated(self, action: str, path: str, error: Exception) -> LakebedError:
        """What the client raises as an error of ours that names the path."""
        reason = _reason(error)
        if isinstance(error, ValueError):
            return InvalidArgument(f"can not {action} {path}: {reason}", hint="leave out empty segments, `.` and `..`")
        if isinstance(error, FileNotFoundError):
            return FileMissing(f"can not {action} {path}: {reason}", hint=_hint(error))
        if _is_answer(error):
            return StorageError(f"can not {action} {path}: {reason}", hint=_hint(error))
        waited = format_duration(self._patience.timeout_ms)
        if self._patience.most_repeats is not None:
            waited = f"{waited}, or {self._patience.most_repeats} repeats"
        option = f"{_option_prefix(self._place)}retry-timeout"
        return StorageError(
            f"can not {action} {path}: {self._place} gave no answer for {waited}: {reason}",
            hint=f"check that the store can be reached, then retry; what was committed before is still there. "
            f"`{option}` says how long to ask",
        )

    def _chunks(self, path: str, after: str | None = None) -> Iterator[Sequence[Any]]:
        """What lies below a path, in order, a page at a time; a page that got lost is asked for again."""
        pages: Iterator[Sequence[Any]] | None = None

        def next_page() -> Sequence[Any] | None:
            nonlocal pages
            try:
                if pages is None:
                    pages = iter(self._store.list(path or None, offset=after, chunk_size=_LIST_CHUNK))
                return next(pages, None)
            except client_errors.BaseError:
                pages = None  # begun anew behind what is known
                raise

        while (page := self._ask("list", path, next_page)) is not None:
            if page:
                after = str(page[-1]["path"])
            yield page

    def _paths_below(self, path: str) -> list[str]:
        return [meta["path"] for chunk in self._chunks(path) for meta in chunk]

    def _put_if_absent(self, path: str, data: bytes, *, is_read_again: bool = False) -> bool:
        forget_glances(self, path)
        try:
            answer = self._ask("create", path, lambda: self._store.put(path, data, mode="create"))
            if is_read_again:
                self._recent.put(path, str(answer["e_tag"] or ""), data)
            return True
        except StorageError as error:
            if isinstance(error, FileMissing) or isinstance(error.__cause__, _REFUSED):
                raise  # no such bucket, or not allowed: certainly not done
            # INVARIANT: a name that is taken may be taken by ourselves. Any of the requests before may have been
            # carried out while its answer got lost; counted as somebody else's, the same rows would be committed twice.
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

        def is_refused(content: bytes) -> bool:
            try:
                self._store.put(probe, content, mode="create")
                return False
            except client_errors.AlreadyExistsError:
                return True

        self._ask("create", probe, lambda: is_refused(b"first"))  # refused if it is repeated: it is there then, too
        self._must_prove_exclusive_create = not self._ask("create", probe, lambda: is_refused(b"second"))
        with contextlib.suppress(client_errors.BaseError, OSError):  # who may create need not be allowed to delete
            self._store.delete(probe)
        if self._must_prove_exclusive_create:
            raise Unsupported(
                "this object store ignores conditional puts (`If-None-Match`): concurrent commits would be lost",
                hint="use a store or a newer server version that honours them; nothing was committed",
            )

    def put_new(self, path: str, data: bytes | bytearray) -> None:
        """Put an object whose name nobody else has. It may be put again: the content is the same."""
        self._ask("write", path, lambda: self._store.put(path, bytes(data), use_multipart=False))

    def begin_upload(self, path: str) -> Any:
        """A writer of a large object. What it is given goes up in parts, so it has to be patient by itself."""
        patient = self._patience
        store = _with_retries(
            self._store,
            {
                "max_retries": 1000 if patient.most_repeats is None else patient.most_repeats,
                "retry_timeout": timedelta(milliseconds=patient.timeout_ms),
                "backoff": {
                    "init_backoff": timedelta(milliseconds=patient.first_wait_ms),
                    "max_backoff": timedelta(milliseconds=patient.longest_wait_ms),
                },
            },
        )
        return obstore.open_writer(store, path, buffer_size=_UPLOAD_PART_BYTES, max_concurrency=_UPLOAD_CONCURRENCY)

    @contextlib.contextmanager
    def uploading(self, path: str) -> Iterator[None]:
        """Says what became of an upload in words of ours."""
        try:
            yield
        except (client_errors.BaseError, OSError, ValueError) as error:
            raise self._translated("write", path, error) from error


def _reopened(store: Any, must_prove: bool, patience: Patience, place: str) -> ObjectStoreFileIO:
    return ObjectStoreFileIO(store, must_prove_exclusive_create=must_prove, patience=patience, place=place)


class _RecentContents:
    """Small objects that were read or written lately, by their versions: a glance says whether they are still there."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, tuple[str, bytes]] = OrderedDict()
        self._size_bytes = 0

    def get(self, path: str, version: str) -> bytes | None:
        with self._lock:
            found = self._kept.get(path)
            if found is None or found[0] != version:
                return None
            self._kept.move_to_end(path)
            return found[1]

    def put(self, path: str, version: str, content: bytes) -> None:
        if not version or len(content) > _LARGEST_RECENT_BYTES:
            return
        with self._lock:
            before = self._kept.pop(path, None)
            self._size_bytes += len(content) - (len(before[1]) if before else 0)
            self._kept[path] = (version, content)
            while self._size_bytes > _MOST_RECENT_BYTES:
                self._size_bytes -= len(self._kept.popitem(last=False)[1][1])


class _ObjectOutputFile(OutputFile):
    """A buffered upload: one put for a small file, a multipart upload for a large one. Visible when complete."""

    def __init__(self, store: ObjectStoreFileIO, path: str) -> None:
        super().__init__(path)
        self._store = store
        self._small = bytearray()
        self._writer: Any = None

    def _append(self, data: memoryview) -> None:
        if self._writer is None and len(self._small) + data.nbytes <= _UPLOAD_PART_BYTES:
            self._small += data
            return
        with self._store.uploading(self.path):
            if self._writer is None:
                self._writer = self._store.begin_upload(self.path)
                self._writer.write(bytes(self._small))
                self._small = bytearray()
            self._writer.write(data)

    def _complete(self) -> None:
        if self._writer is None:
            self._store.put_new(self.path, self._small)
            return
        with OBJECT_STORE_REQUEST_DURATION.timed("upload"), self._store.uploading(self.path):
            self._writer.close()

    def _discard(self) -> None:
        self._writer = None  # dropping the writer without closing it never completes the upload
        self._small = bytearray()


def _with_retries(store: Any, retries: dict[str, Any]) -> Any:
    """A copy of a store that repeats requests otherwise; stores in memory repeat none."""
    if not isinstance(store, S3Store | GCSStore | AzureStore):
        return store
    arguments, settings = store.__getnewargs_ex__()
    return type(store)(*arguments, **{**settings, "retry_config": retries})


class _RangeReader(io.RawIOBase):
    """One object as a seekable raw file: every read is one range request."""

    def __init__(self, store: ObjectStoreFileIO, path: str, size_bytes: int) -> None:
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
        data = self._store.read_range(self._path, self._position, wanted)
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)


def _is_answer(error: Exception) -> bool:
    """Whether the store, or the client itself, has said its last word; otherwise it may answer when asked again."""
    if isinstance(error, (*_ANSWERS, ValueError)):
        return True
    reason = _reason(error)
    return bool(_REFUSAL.search(reason)) or "InvalidOption" in reason  # credentials that are not to be had


def _option_prefix(place: str) -> str:
    kind, _ = _KINDS.get(place.partition("://")[0], (S3, None))
    return kind.prefix


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
        meta["path"],
        int(meta["size"]),
        int(meta["last_modified"].timestamp() * 1000),
        is_directory=False,
        version=str(meta["e_tag"] or ""),
    )
