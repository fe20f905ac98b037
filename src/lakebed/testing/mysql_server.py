"""A real MySQL for tests, where one is at hand: unpacked into `.oracles/mysql`, or the system's.

`.ci/fetch-mysql` unpacks Debian's packages with all the libraries they need, newer than those of the machine, so the
server is started with the loader that came along. `mysql_missing` is the one place that says what a machine needs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from lakebed.testing.sql_server import PASSWORD, USER, SqlServer

_UNPACKED: Final = Path(__file__).resolve().parents[3] / ".oracles" / "mysql"
_PLACES = (os.environ.get("PATH", ""), "/usr/sbin")


def mysql_missing() -> str | None:
    """Why no server can be started here, or None."""
    if _launcher() is not None:
        return None
    return "MySQL can not be started: no mysqld found, neither the system's nor one in .oracles/mysql: .ci/fetch-mysql"


def _launcher() -> tuple[str, ...] | None:
    """The command that starts a MySQL here, if there is one."""
    if (_UNPACKED / "READY").exists():
        loader = next((_UNPACKED / "usr").glob("lib*/ld-linux*.so.*"), None)
        folders = [str(folder) for folder in (_UNPACKED / "usr" / "lib").glob("*-linux-gnu")]
        if loader is not None:
            places = [
                f"--basedir={_UNPACKED}/usr",
                f"--lc-messages-dir={_UNPACKED}/usr/share/mysql",
                f"--character-sets-dir={_UNPACKED}/usr/share/mysql/charsets",
                f"--plugin-dir={_UNPACKED}/usr/lib/mysql/plugin",
            ]
            program = str(_UNPACKED / "usr" / "sbin" / "mysqld")
            return (str(loader), "--library-path", ":".join(folders), program, "--no-defaults", *places)
    system = shutil.which("mysqld", path=os.pathsep.join(_PLACES))
    if system is None or "MariaDB" in _version(system):  # Debian's MariaDB answers to both names
        return None
    return (system, "--no-defaults")


def _version(program: str) -> str:
    return subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout


class MySqlServer(SqlServer):
    """MySQL. `with MySqlServer() as server:` starts it and takes everything away after."""

    title = "MySQL"
    mariadb = False

    @classmethod
    def missing(cls) -> str | None:
        """Why no server can be started here, or None."""
        return mysql_missing()

    def _make_data_command(self) -> list[str]:
        return [
            *self._launch(),
            "--initialize-insecure",
            f"--datadir={self.data}",
            "--innodb-use-native-aio=OFF",
            "--innodb-redo-log-capacity=32M",
            "--innodb-flush-method=nosync",
            "--innodb-doublewrite=OFF",
            "--skip-log-bin",
        ]

    def _command(self) -> list[str]:
        return [
            *self._launch(),
            "--gtid-mode=ON",
            "--enforce-gtid-consistency=ON",
            "--innodb-redo-log-capacity=32M",
            "--mysqlx=OFF",
            f"--secure-file-priv={self.home}",
            "--log-error-verbosity=2",
            "--information-schema-stats-expiry=0",  # as MariaDB has it: figures of now, not of yesterday
        ]

    def _launch(self) -> tuple[str, ...]:
        launcher = _launcher() or ()
        # The unpacked files may lie where no other user can read them; everything it does happens in its home.
        return (*launcher, "--user=root") if os.geteuid() == 0 else launcher


__all__ = ["PASSWORD", "USER", "MySqlServer", "mysql_missing"]
