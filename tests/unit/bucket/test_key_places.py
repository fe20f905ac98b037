"""The map from keys to places: beside a dictionary, with colliding hashes, and with keys on local disk."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.bucket import key_places
from lakebed.bucket.key_places import UNKNOWN, KeyPlaces


def hashed(keys: list[bytes]) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """Hashes that often collide: the length of the key."""
    return np.array([len(key) for key in keys], np.int32)


@settings(max_examples=100, deadline=None)
@given(batches=st.lists(st.lists(st.binary(max_size=4), unique=True, max_size=20), max_size=8), limit=st.integers(1, 9))
def test_the_same_as_a_dictionary(batches: list[list[bytes]], limit: int) -> None:
    """Every key is found where it was put, also among others of the same hash, and no other key is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_places, "_LEAST_RECENT", limit)
        patch.setattr(key_places, "_BLOCK_BYTES", 40)
        patch.setattr(key_places, "_MOST_SMALL_BLOCKS", 3)
        places, known = KeyPlaces(), dict[bytes, int]()
        for number, batch in enumerate(batches):
            new = [key for key in batch if key not in known]
            column, values = pa.array(new, pa.binary()), np.full(len(new), number, np.int64)
            places.add(hashed(new), column, values, values + 1)
            known |= {key: len(known) + at for at, key in enumerate(new)}
            asked = [*known, b"other", b"ab", b""]
            found = places.find(hashed(asked), pa.array(asked, pa.binary())).tolist()
            assert found == [known.get(key, UNKNOWN) for key in asked]
        assert len(places) == len(known)
        assert places.buckets.tolist() == [part + 1 for part in places.partitions.tolist()]


def test_places_change() -> None:
    """An entry's partition and bucket can be set."""
    places = KeyPlaces()
    keys = pa.array([b"a", b"b"])
    places.add(np.array([1, 2], np.int32), keys, np.array([5, 5]), np.array([0, 1]))
    places.partitions[1] = 7
    places.add(np.array([3], np.int32), pa.array([b"c"]), np.array([9]), np.array([4]))
    assert places.partitions.tolist() == [5, 7, 9]
    assert places.buckets.tolist() == [0, 1, 4]


def test_keys_on_disk_go_with_the_map(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Many keys lie in a directory of their own, which is removed with the map."""
    monkeypatch.setattr(key_places, "_BLOCK_BYTES", 1000)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    places = KeyPlaces()
    for start in range(0, 1000, 100):
        keys = pa.array([b"%d" % key for key in range(start, start + 100)])
        hashes = np.arange(start, start + 100, dtype=np.int32)
        places.add(hashes, keys, np.zeros(100, np.int64), np.zeros(100, np.int64))
    assert len(list(tmp_path.glob("lakebed-keys-*/*"))) > 2
    assert places.find(np.array([5, 995], np.int32), pa.array([b"5", b"995"])).tolist() == [5, 995]
    del places
    gc.collect()
    assert list(tmp_path.iterdir()) == []
