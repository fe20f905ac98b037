"""Options of object stores: Paimon's names, the client's own, and refusals."""

from __future__ import annotations

import pytest

from lakebed.errors import InvalidOption
from lakebed.fileio.object_store_options import AZURE, GCS, S3, read_connection
from lakebed.fileio.patience import Patience


def test_paimon_names() -> None:
    """Paimon's option names become the client's settings; a plain-HTTP endpoint is allowed to be one."""
    connection = read_connection(
        S3,
        "bucket",
        {
            "s3.endpoint": "http://127.0.0.1:9000",
            "s3.access-key": "me",
            "s3.secret-key": "hush",
            "s3.path.style.access": "true",
            "s3.region": "eu-west-1",
            "warehouse": "s3://bucket/x",
        },
    )
    assert connection.config == {
        "endpoint": "http://127.0.0.1:9000",
        "access_key_id": "me",
        "secret_access_key": "hush",
        "virtual_hosted_style_request": "false",
        "region": "eu-west-1",
    }
    assert connection.http == {"allow_http": "true"}


def test_secrets_are_not_shown() -> None:
    """A connection that gets logged shows no secret."""
    assert "hush" not in repr(read_connection(S3, "b", {"s3.secret-key": "hush"}))


def test_virtual_hosted_style() -> None:
    """Without path style the bucket goes into the endpoint's host name, once."""
    for endpoint in ("https://store.example", "https://bucket.store.example"):
        connection = read_connection(S3, "bucket", {"s3.path-style-access": "false", "s3.endpoint": endpoint})
        assert connection.config == {
            "virtual_hosted_style_request": "true",
            "endpoint": "https://bucket.store.example",
        }


def test_client_settings_pass_through() -> None:
    """The client's own settings, its HTTP settings and retries are reachable, in any of the three spellings."""
    connection = read_connection(S3, "b", {"s3.session_token": "t", "s3.connect-timeout": "5s", "s3.max.retries": "2"})
    assert (connection.config, connection.http, connection.patience) == (
        {"session_token": "t"},
        {"connect_timeout": "5s"},
        Patience(most_repeats=2),
    )
    assert read_connection(AZURE, "b", {"az.account-name": "a"}).config == {"account_name": "a"}
    assert read_connection(GCS, "b", {"gs.service-account": "f", "s3.nonsense": "1"}).config == {"service_account": "f"}


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("s3.acess-key", "x", "did you mean `s3.access-key`"),
        ("s3.path-style-access", "maybe", "`true` or `false`"),
        ("s3.max-retries", "many", "whole number"),
        ("s3.retry-timeout", "soon", "10 min"),
    ],
)
def test_refused_options(option: str, value: str, words: str) -> None:
    """Unknown names and ill-typed values are refused, naming the option and the remedy."""
    with pytest.raises(InvalidOption) as raised:
        read_connection(S3, "b", {option: value})
    assert words in str(raised.value)
    assert option in str(raised.value)


def test_retries_under_the_names_that_hadoop_has() -> None:
    """How long to ask, how often and how patiently; Paimon hands the dotted names on to Hadoop."""
    connection = read_connection(
        S3,
        "b",
        {
            "s3.retry-timeout": "2 min",
            "s3.retry.limit": "7",
            "s3.retry.interval": "500ms",
            "s3.retry-max-interval": "3 s",
            "s3.connection.establish.timeout": "5000",
            "s3.connection.timeout": "200 s",
        },
    )
    assert connection.patience == Patience(120_000, 500, 3_000, 7)
    assert connection.http == {"connect_timeout": "5000ms", "read_timeout": "200000ms"}


KEYS = {"AWS_ACCESS_KEY_ID": "env", "AWS_SECRET_ACCESS_KEY": "hush", "AWS_SESSION_TOKEN": "t"}


def test_environment() -> None:
    """Keys of the environment are part of the connection, which travels to tasks; those of options come first."""
    found = read_connection(S3, "b", {}, {**KEYS, "AWS_REGION": "eu", "AWS_PROFILE": "work"})
    assert found.config == {
        "access_key_id": "env",
        "secret_access_key": "hush",
        "session_token": "t",
        "region": "eu",
    }
    assert found.profile is None
    own = read_connection(S3, "b", {"s3.access-key": "mine", "s3.secret-key": "own"}, {**KEYS, "AWS_REGION": "eu"})
    assert own.config == {"access_key_id": "mine", "secret_access_key": "own", "region": "eu"}
    named = read_connection(S3, "b", {"s3.profile": "work"}, KEYS)
    assert (named.config, named.profile) == ({}, "work")
    assert read_connection(S3, "b", {}, {"AWS_PROFILE": "work"}).profile == "work"
    assert read_connection(GCS, "b", {}, KEYS).config == {}
