"""Credentials from AWS's own files, read again while a job runs."""

from __future__ import annotations

import datetime as dt
import json
import pickle
import time
from pathlib import Path

import pytest

from lakebed.errors import InvalidOption, LakebedError
from lakebed.fileio import open_fileio
from lakebed.fileio.aws_profile import AwsProfile, has_profile
from lakebed.testing.s3_server import BUCKET, S3State


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's files, and nothing else that would give keys."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    return tmp_path


def environment(home: Path) -> dict[str, str]:
    return {"AWS_SHARED_CREDENTIALS_FILE": str(home / "credentials"), "AWS_CONFIG_FILE": str(home / "config")}


def keys(name: str, section: str = "default") -> str:
    return f"[{section}]\naws_access_key_id = {name}\naws_secret_access_key = hush-{name}\n"


def opened(s3: S3State, **more: str) -> tuple[object, str]:
    options = {"s3.endpoint": s3.url, "s3.path-style-access": "true", "s3.region": "us-east-1"}
    return open_fileio(f"s3://{BUCKET}/t", options | more)


def test_profiles_are_used(home: Path, s3: S3State, monkeypatch: pytest.MonkeyPatch) -> None:
    """By option, by the environment's name, and the default one where nothing else is said."""
    (home / "credentials").write_text(keys("first") + keys("second", "work"))
    s3.accepted_keys = frozenset({"second"})
    io, root = opened(s3, **{"s3.profile": "work"})
    io.write_bytes(f"{root}/f", b"x")
    again = pickle.loads(pickle.dumps(io))
    assert again.read_bytes(f"{root}/f") == b"x"
    with pytest.raises(LakebedError, match="credentials"):
        opened(s3)[0].read_bytes(f"{root}/f")
    monkeypatch.setenv("AWS_PROFILE", "work")
    assert opened(s3)[0].read_bytes(f"{root}/f") == b"x"
    s3.accepted_keys = frozenset({"first"})
    monkeypatch.delenv("AWS_PROFILE")
    assert opened(s3)[0].read_bytes(f"{root}/f") == b"x"


def test_keys_are_asked_for_again(home: Path, s3: S3State) -> None:
    """Keys that have ended are replaced while the connection is open."""
    answers = home / "answers.json"
    soon = (dt.datetime.now(dt.UTC) + dt.timedelta(seconds=1)).isoformat()
    answers.write_text(json.dumps({"AccessKeyId": "one", "SecretAccessKey": "s", "Expiration": soon}))
    (home / "config").write_text(f"[profile work]\nregion = eu-west-1\ncredential_process = cat {answers}\n")
    s3.accepted_keys = frozenset({"one"})
    io, root = opened(s3, **{"s3.profile": "work"})
    io.write_bytes(f"{root}/f", b"x")
    s3.accepted_keys = frozenset({"two"})
    answers.write_text(json.dumps({"AccessKeyId": "two", "SecretAccessKey": "s", "SessionToken": "t"}))
    time.sleep(0.15)  # the client asks at most ten times a second
    assert io.read_bytes(f"{root}/f") == b"x"


def test_profiles_that_have_no_keys(home: Path, s3: S3State) -> None:
    """The message names the profile and the file, and shows nothing of what a program printed."""
    with pytest.raises(InvalidOption, match="no AWS profile `none`"):
        opened(s3, **{"s3.profile": "none"})
    (home / "credentials").write_text("[half]\naws_access_key_id = a\n")
    (home / "config").write_text(
        "[profile noisy]\ncredential_process = echo very-secret\n"
        "[profile broken]\ncredential_process = false\n[profile lost]\ncredential_process = /none/such\n"
    )
    for name, problem in {
        "half": "aws_secret_access_key",
        "noisy": "something else than keys",
        "broken": "ended with 1",
        "lost": "FileNotFoundError",
    }.items():
        with pytest.raises(InvalidOption, match=problem) as raised:
            AwsProfile.of(name, environment(home))()
        assert "very-secret" not in str(raised.value)
        assert f"`{name}`" in str(raised.value)
    with pytest.raises(LakebedError, match="broken"):
        opened(s3, **{"s3.profile": "broken"})[0].read_bytes("f")
    assert not has_profile("default", environment(home))
