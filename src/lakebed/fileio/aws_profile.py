"""Credentials from AWS's own files: `~/.aws/credentials` and `~/.aws/config`, by the name of a profile.

Whoever hands out keys that end (a single sign-on, a vault, a daemon beside the job) writes them there, or has a program
that prints them (`credential_process`). So they are asked for again before they end, and at least every few minutes: a
job of days outlives many of them. Only what was read is held, nothing is written, and no message says more than names.
"""

from __future__ import annotations

import configparser
import datetime as dt
import json
import os
import shlex
import subprocess
from collections.abc import Mapping

from lakebed.errors import InvalidOption
from lakebed.records import dataclass

__all__ = ["AwsProfile", "has_profile"]

_READ_AGAIN = dt.timedelta(minutes=10)
"""The client asks for new keys five minutes before the end of those that it has."""
_PROGRAM_SECONDS = 60


@dataclass(frozen=True, slots=True)
class AwsProfile:
    """Gives the keys of one profile, as the client asks for them. Travels to tasks, which read their own files."""

    name: str
    credentials_file: str
    config_file: str

    @staticmethod
    def of(name: str, environment: Mapping[str, str]) -> AwsProfile:
        """The profile in the files that the environment names, or in those of this user."""
        return AwsProfile(name, *_files(environment))

    def __call__(self) -> dict[str, str | dt.datetime | None]:
        """The keys, and until when they may be used without asking again."""
        settings = self.settings()
        now = dt.datetime.now(dt.UTC)
        if "aws_access_key_id" not in settings and "credential_process" in settings:
            return self._printed(settings["credential_process"], now)
        try:
            return {
                "access_key_id": settings["aws_access_key_id"],
                "secret_access_key": settings["aws_secret_access_key"],
                "token": settings.get("aws_session_token"),
                "expires_at": now + _READ_AGAIN,
            }
        except KeyError as missing:
            raise InvalidOption(
                f"the AWS profile `{self.name}` has no {missing}",
                hint=f"add the keys, or a `credential_process`, to the profile in {self.credentials_file}",
            ) from None

    def settings(self) -> dict[str, str]:
        """What the files say of the profile; keys come from the first, what both say too."""
        found: dict[str, str] = {}
        for path, section in ((self.config_file, _config_section(self.name)), (self.credentials_file, self.name)):
            parser = configparser.RawConfigParser()
            try:
                parser.read(path, encoding="utf-8")
            except (configparser.Error, OSError, UnicodeDecodeError) as error:
                raise InvalidOption(f"can not read {path}: {type(error).__name__}", hint="mend the file") from None
            if parser.has_section(section):
                found |= dict(parser.items(section))
        if not found:
            raise InvalidOption(
                f"there is no AWS profile `{self.name}`",
                hint=f"add it to {self.credentials_file}, or name another with the option s3.profile, or AWS_PROFILE",
            )
        return found

    def _printed(self, command: str, now: dt.datetime) -> dict[str, str | dt.datetime | None]:
        problem = "answered something else than keys"
        try:
            answer = subprocess.run(shlex.split(command), capture_output=True, timeout=_PROGRAM_SECONDS, check=False)
            if answer.returncode == 0:
                printed = json.loads(answer.stdout)
                until = printed.get("Expiration")
                return {
                    "access_key_id": printed["AccessKeyId"],
                    "secret_access_key": printed["SecretAccessKey"],
                    "token": printed.get("SessionToken"),
                    "expires_at": dt.datetime.fromisoformat(until) if until else now + _READ_AGAIN,
                }
            problem = f"ended with {answer.returncode}"
        except (OSError, subprocess.TimeoutExpired) as error:
            problem = type(error).__name__
        except (ValueError, KeyError, AttributeError, TypeError):
            pass  # what it printed may hold keys: none of it is shown
        raise InvalidOption(
            f"the `credential_process` of the AWS profile `{self.name}` {problem}",
            hint="run the command of the profile by hand, and see what it says",
        )


def has_profile(name: str, environment: Mapping[str, str]) -> bool:
    """Whether the files have such a profile with keys in it."""
    try:
        settings = AwsProfile.of(name, environment).settings()
    except InvalidOption:
        return False
    return "aws_access_key_id" in settings or "credential_process" in settings


def _files(environment: Mapping[str, str]) -> tuple[str, str]:
    home = os.path.join(environment.get("HOME") or os.path.expanduser("~"), ".aws")
    return (
        environment.get("AWS_SHARED_CREDENTIALS_FILE") or os.path.join(home, "credentials"),
        environment.get("AWS_CONFIG_FILE") or os.path.join(home, "config"),
    )


def _config_section(name: str) -> str:
    return name if name == "default" else f"profile {name}"
