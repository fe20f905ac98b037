"""File systems to run the same tests against.

Set LAKEBED_TEST_S3_ENDPOINT (and give it a bucket named `lakebed-test`) to run the suite against another server too.
"""

from __future__ import annotations

import os
import uuid

import pytest
from obstore.store import MemoryStore

from lakebed.fileio import FileIO, open_fileio
from lakebed.fileio.object_store import ObjectStoreFileIO
from lakebed.testing.s3_server import S3State

PLACES = ["local", "memory", "object-store", "s3"]
if os.environ.get("LAKEBED_TEST_S3_ENDPOINT"):
    PLACES.append("s3-elsewhere")


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: object) -> tuple[FileIO, str]:
    """Each kind of file system in turn, with a root path that is free."""
    match request.param:
        case "local":
            return open_fileio(str(tmp_path))
        case "memory":
            return open_fileio(f"memory://{uuid.uuid4()}/root")
        case "object-store":
            return ObjectStoreFileIO(MemoryStore()), "root"
        case "s3":
            return request.getfixturevalue("s3").open("root")
    return S3State(url=os.environ["LAKEBED_TEST_S3_ENDPOINT"]).open(f"root-{uuid.uuid4()}")
