"""A real MariaDB for tests: what Debian's packages install, started without a service and without root's rights.

The one place that says what a machine needs for it: `mariadb_missing` names programs and the packages that bring them.
As root it runs the server as another user (`unprivileged`).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from typing import Final

from lakebed.testing.sql_server import PASSWORD, USER, SqlServer
from lakebed.testing.unprivileged import account, give

_PACKAGES: Final = {
    "mariadbd": "mariadb-server-core",
    "mariadb-install-db": "mariadb-server-core",
    "my_print_defaults": "mariadb-client-core",  # mariadb-install-db calls it and its package does not depend on it
}
_PLACES = (os.environ.get("PATH", ""), "/usr/sbin")


def mariadb_missing() -> str | None:
    """Why no server can be started here, or None: programs that lack, and how to install their packages."""
    missing = [name for name in _PACKAGES if _program(name) is None]
    if not missing:
        return None
    packages = dict.fromkeys(_PACKAGES[name] for name in missing)
    return (
        f"MariaDB can not be started: {' and '.join(missing)} not found: "
        f"apt-get install -y --no-install-recommends {' '.join(packages)}"
    )


def _program(name: str) -> str | None:
    return shutil.which(name, path=os.pathsep.join(_PLACES))


class MariaDbServer(SqlServer):
    """MariaDB. `with MariaDbServer() as server:` starts it and takes everything away after."""

    title = "MariaDB"
    mariadb = True

    def __init__(self, settings: Sequence[str] = (), *, durable: bool = False) -> None:
        super().__init__(settings, durable=durable)
        self._account = account()
        give(self.home)

    @classmethod
    def missing(cls) -> str | None:
        """Why no server can be started here, or None."""
        return mariadb_missing()

    def _make_data_command(self) -> list[str]:
        return [
            _program("mariadb-install-db") or "",
            "--no-defaults",
            f"--datadir={self.data}",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            "--skip-name-resolve",
            "--innodb-use-native-aio=OFF",
        ]

    def _command(self) -> list[str]:
        return [
            _program("mariadbd") or "",
            "--no-defaults",
            "--binlog-format=ROW",
            "--gtid-strict-mode=ON",
            "--innodb-log-file-size=32M",
        ]


__all__ = ["PASSWORD", "USER", "MariaDbServer", "mariadb_missing"]
