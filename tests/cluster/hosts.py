"""Hosts of a test cluster: each has a network address, a directory, a temporary directory and a Python of its own.

Where the machine lets us, a host is a network namespace on a bridge that belongs to the bed alone, in which the source
tree can not be seen. Elsewhere it is a name for processes of this machine that keep apart by their directories.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_STOP_S = 20
_SUBNET = "198.18"
"""Addresses that no network uses: they are kept for tests of network devices."""


class Network:
    """The network of one bed: a bridge with an address of the driver and one for each host, or the loopback."""

    def __init__(self) -> None:
        self._name = f"lb{os.getpid() % 100_000:05d}"
        self._third = os.getpid() % 250 + 1
        self._hosts: list[str] = []
        self.is_real = self._made()

    def _made(self) -> bool:
        if shutil.which("ip") is None or os.geteuid() != 0:
            return False
        try:
            _ip("link", "add", self._name, "type", "bridge")
        except subprocess.CalledProcessError:
            return False
        try:
            _ip("addr", "add", f"{self.driver}/24", "dev", self._name)
            _ip("link", "set", self._name, "up")
            self.add(250)
            self._take_down(self._hosts.pop())
        except subprocess.CalledProcessError:
            self.remove()
            return False
        return True

    @property
    def driver(self) -> str:
        """Where hosts find what runs outside of them."""
        return f"{_SUBNET}.{self._third}.1" if getattr(self, "is_real", True) else "127.0.0.1"

    def add(self, number: int) -> tuple[str, list[str]]:
        """A host's address, and what to put before a command so that it runs there."""
        if not getattr(self, "is_real", True):
            return "127.0.0.1", []
        name, address = f"{self._name}h{number}", f"{_SUBNET}.{self._third}.{number + 1}"
        _ip("netns", "add", name)
        self._hosts.append(name)
        inner, outer = f"e{self._name[2:]}{number}", f"v{self._name[2:]}{number}"
        _ip("link", "add", outer, "type", "veth", "peer", "name", inner, "netns", name)
        _ip("link", "set", outer, "master", self._name, "up")
        _ip("-n", name, "addr", "add", f"{address}/24", "dev", inner)
        _ip("-n", name, "link", "set", inner, "up")
        _ip("-n", name, "link", "set", "lo", "up")
        return address, ["ip", "netns", "exec", name]

    def cut(self, number: int, *, is_cut: bool) -> None:
        """Takes a host off the network, or puts it back."""
        if self.is_real:
            _ip("link", "set", f"v{self._name[2:]}{number}", "down" if is_cut else "up")

    def bytes_of(self, number: int) -> int:
        """How many bytes a host has sent and received."""
        return _bytes_of(f"v{self._name[2:]}{number}") if self.is_real else 0

    def bytes_of_driver(self) -> int:
        """The same of what runs outside of all hosts."""
        return _bytes_of(self._name) if self.is_real else 0

    def remove(self) -> None:
        """Takes all of it down."""
        for name in self._hosts:
            self._take_down(name)
        self._hosts.clear()
        with contextlib.suppress(subprocess.CalledProcessError):
            _ip("link", "del", self._name)

    def _take_down(self, name: str) -> None:
        with contextlib.suppress(subprocess.CalledProcessError):  # at once: a namespace lives on with its processes
            _ip("link", "del", f"v{self._name[2:]}{name.rpartition('h')[2]}")
        with contextlib.suppress(subprocess.CalledProcessError):
            _ip("netns", "del", name)


class Host:
    """A place for processes: those of one host have its directory, its address and its Python."""

    def __init__(self, network: Network, number: int, home: Path, hidden: Sequence[Path] = ()) -> None:
        self._not_there = [ROOT / "src", ROOT / "tests", *hidden]
        self.number = number
        self.network = network
        self.home = home / f"host-{number}"
        self.address, self._prefix = network.add(number)
        self.temporary = self.home / "tmp"
        self.temporary.mkdir(parents=True)
        self.python = self.home / "env" / "bin" / "python3"

    def install(self, wheel: Path) -> None:
        """Gives it a Python environment with the wheel. What that needs comes from ours, which has Lakebed as source.

        Only the directory is named: what is told in there of source trees is not read.
        """
        if not self.python.exists():
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(self.home / "env")], check=True)
        below = Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
        (self.home / "env" / below / "needed.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
        pip = [sys.executable, "-m", "pip", "--python", str(self.python), "--disable-pip-version-check"]
        alone = ["--quiet", "--no-deps", "--no-index", "--force-reinstall"]
        subprocess.run([*pip, "install", *alone, str(wheel)], check=True)

    def start(self, command: Sequence[str], log: str, **environment: str) -> subprocess.Popen[bytes]:
        """Starts a process there, in a group of its own, and returns it."""
        full = [*self._prefix, *self._hidden(command)]
        with (self.home / log).open("ab") as told:
            return subprocess.Popen(
                full,
                stdout=told,
                stderr=told,
                cwd=self.home,
                env=self.environment(**environment),
                start_new_session=True,
            )

    def _hidden(self, command: Sequence[str]) -> list[str]:
        if not self._prefix:
            return list(command)
        # `ip netns exec` has given it mounts of its own.
        hide = " && ".join(f"mount -t tmpfs none {shlex.quote(str(place))}" for place in self._not_there)
        return ["sh", "-c", f'{hide} && exec "$@"', "sh", *command]

    def environment(self, **more: str) -> dict[str, str]:
        """What its processes have: nothing of ours but where programs are."""
        path = os.pathsep.join([str(self.python.parent), os.environ.get("PATH", os.defpath)])
        kept = {name: os.environ[name] for name in ("LANG", "LC_ALL", "USER") if name in os.environ}
        return {**kept, "PATH": path, "TMPDIR": str(self.temporary), "HOME": str(self.home), **more}


def end(process: subprocess.Popen[bytes] | None, sign: signal.Signals = signal.SIGTERM) -> None:
    """Ends a process that `Host.start` gave, with all that it has started."""
    if process is None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, sign)
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def build_wheel(target: Path) -> Path:
    """The wheel of this source tree."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(target)]
    subprocess.run(command, check=True, cwd=ROOT, capture_output=True, env=without_paths(os.environ))
    return next(target.glob("*.whl"))


def without_paths(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment that does not say where source trees are."""
    return {name: value for name, value in environment.items() if name != "PYTHONPATH"}


def _bytes_of(device: str) -> int:
    place = Path(f"/sys/class/net/{device}/statistics")
    return sum(int((place / name).read_text()) for name in ("rx_bytes", "tx_bytes"))


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


__all__ = ["ROOT", "Host", "Network", "build_wheel", "end", "without_paths"]
