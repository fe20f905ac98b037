"""Where a command does its work: `--master`, `--remote` and `--conf`, and what Spark needs to know of the lake."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from lakebed.cli.command import Parser
from lakebed.errors import InvalidArgument

if TYPE_CHECKING:
    from lakebed.spark.session import Session

_SECRETS = ("secret", "token", "password", "account-key", "account_key", "sas")
"""Words in the names of settings that must not be typed: whoever lists the processes of the machine would see them."""
_HADOOP = {
    "endpoint": "endpoint",
    "access_key": "access.key",
    "access_key_id": "access.key",
    "secret_key": "secret.key",
    "secret_access_key": "secret.key",
    "session_token": "session.token",
    "region": "endpoint.region",
    "path_style_access": "path.style.access",
}
"""Settings of S3 by our names and by Hadoop's, which writes checkpoints."""


def add_session(parser: Parser) -> None:
    """Adds the arguments that say where Spark runs."""
    group = parser.add_argument_group("Spark")
    place = group.add_mutually_exclusive_group()
    place.add_argument("--master", metavar="URL", help="a cluster, such as spark://host:7077 or yarn; default: here")
    place.add_argument("--remote", metavar="URL", help="a server of Spark Connect, such as sc://host:15002")
    conf = "a setting of Spark, such as spark.executor.memory=4g; may be repeated"
    group.add_argument("--conf", action="append", default=[], metavar="KEY=VALUE", help=conf)


def add_storage(group: argparse._ArgumentGroup, given: list[str]) -> None:
    """Adds the argument that says how the lake's store is reached."""
    text = "a setting of the lake's store, such as s3.endpoint=URL; keys come from the environment; may be repeated"
    group.add_argument("--storage", action="append", default=list(given), metavar="KEY=VALUE", help=text)


def storage_of(given: argparse.Namespace) -> dict[str, str]:
    """Options of the lake."""
    options = pairs(given.storage, "--storage")
    for key in options:
        if any(word in key.lower() for word in _SECRETS):
            raise InvalidArgument(
                f"`{key}` is not taken from the command line, where others can see it",
                hint="set the environment variable of the store instead, such as AWS_SECRET_ACCESS_KEY",
            )
    return options


def session_of(given: argparse.Namespace, *, plans_only: bool = False) -> Session:
    """The session that a command works with; it is not started yet."""
    from lakebed.spark.session import Session, Where

    settings = pairs(given.conf, "--conf")
    if given.remote is None and given.warehouse.startswith(("s3://", "s3a://")):
        settings = {**_hadoop_settings(storage_of(given)), **settings}
    return Session(plans_only=plans_only, where=Where(given.master, given.remote, settings))


def _hadoop_settings(storage: dict[str, str]) -> dict[str, str]:
    """How Spark's own reads and writes reach the same store; they need hadoop-aws, and do no harm without."""
    found = {"spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem"}
    for key, value in storage.items():
        name = _HADOOP.get(key.removeprefix("s3.").replace("-", "_").replace(".", "_"))
        if key.startswith("s3.") and name is not None:
            found[f"spark.hadoop.fs.s3a.{name}"] = value
    return found


def pairs(given: list[str], what: str) -> dict[str, str]:
    """Arguments of the form `key=value`."""
    found = {}
    for text in given:
        key, sign, value = text.partition("=")
        if not sign or not key.strip():
            # Not repeated: it may be a secret that was typed in the wrong place.
            raise InvalidArgument(f"{what} is not understood", hint=f"write it as {what} key=value")
        found[key.strip()] = value
    return found


__all__ = ["add_session", "add_storage", "pairs", "session_of", "storage_of"]
