"""Spark's workers connect before they import: played with a PySpark that takes its time, and with the installed one."""

from __future__ import annotations

import os
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.patience import PATIENCE_S

from lakebed.spark import worker_python as worker_python_module
from lakebed.spark.worker_python import early_workers, named_in_environment, worker_python
from lakebed.spark.workers import early_connect

SECRET = "a secret"
SLOW_IMPORT_S = 1.5
UTIL = """
import time
time.sleep({slow})

def local_connect_and_auth(place, secret):
    raise AssertionError("connected a second time")
"""
WORKER = """
import os, struct, sys
from pyspark.util import local_connect_and_auth
port = os.environ.get("PYTHON_WORKER_FACTORY_SOCK_PATH") or int(os.environ["PYTHON_WORKER_FACTORY_PORT"])
file, _ = local_connect_and_auth(port, os.environ.get("PYTHON_WORKER_FACTORY_SECRET"))
said = "|".join([__name__, os.path.basename(sys.argv[0]), str(len(sys.argv)), sys.path[0]]).encode()
file.write(struct.pack("!i", len(said)) + said)
file.flush()
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of our own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def slow_pyspark(tmp_path: Path) -> Path:
    """A directory with a PySpark whose import takes long."""
    package = tmp_path / "path" / "pyspark"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "util.py").write_text(UTIL.format(slow=SLOW_IMPORT_S))
    (package / "a_worker.py").write_text(WORKER)
    return package.parent


def _read(connection: socket.socket) -> str:
    size = struct.unpack("!i", connection.recv(4, socket.MSG_WAITALL))[0]
    return connection.recv(size, socket.MSG_WAITALL).decode()


def _start(module: str, path: Path, **environment: str) -> subprocess.Popen[bytes]:
    env = {**os.environ, "PYTHONPATH": str(path), **environment}
    return subprocess.Popen([worker_python(), "-m", module], env=env, cwd=path)


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("is_unix", [False, True], ids=["port", "unix socket"])
def test_a_worker_connects_before_it_imports(slow_pyspark: Path, tmp_path: Path, is_unix: bool) -> None:
    """Spark has the connection, authenticated, long before PySpark is imported; then the worker uses that one."""
    with socket.socket(socket.AF_UNIX if is_unix else socket.AF_INET) as server:
        place: Any = str(tmp_path / "s") if is_unix else ("127.0.0.1", 0)
        server.bind(place)
        server.listen(1)
        server.settimeout(PATIENCE_S)
        environment = (
            {"PYTHON_WORKER_FACTORY_SOCK_PATH": place}
            if is_unix
            else {"PYTHON_WORKER_FACTORY_PORT": str(server.getsockname()[1]), "PYTHON_WORKER_FACTORY_SECRET": SECRET}
        )
        process = _start("pyspark.a_worker", slow_pyspark, **environment)
        connection, _ = server.accept()
        with connection:
            if not is_unix:
                assert _read(connection) == SECRET
                connection.sendall(struct.pack("!i", 2) + b"ok")
            connected = time.monotonic()
            said = _read(connection)
            waited_s = time.monotonic() - connected
        assert process.wait(PATIENCE_S) == 0
    assert said == f"__main__|a_worker.py|1|{slow_pyspark}"
    assert waited_s > SLOW_IMPORT_S * 0.9


@pytest.mark.usefixtures("cache")
def test_a_worker_that_spark_gave_up_says_so_in_a_line(slow_pyspark: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Nobody listens any more: it ends at once, without a stack."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = str(unused.getsockname()[1])
    secret = {"PYTHON_WORKER_FACTORY_PORT": port, "PYTHON_WORKER_FACTORY_SECRET": SECRET}
    assert _start("pyspark.a_worker", slow_pyspark, **secret).wait(PATIENCE_S) == 1
    assert capfd.readouterr().err.splitlines() == [
        "pyspark.a_worker could not connect to Spark: [Errno 111] Connection refused"
    ]


@pytest.mark.usefixtures("cache")
def test_pyspark_in_an_archive_is_known_and_left_aside(slow_pyspark: Path, tmp_path: Path) -> None:
    """Spark puts an archive of PySpark in front. It is read to see how PySpark connects; then the package is imported,
    which is compiled, if it is the one that the archive belongs to."""
    site, archive = tmp_path / "site", tmp_path / "site" / "pyspark" / "python" / "lib" / "pyspark.zip"
    archive.parent.mkdir(parents=True)
    shutil.make_archive(str(archive.with_suffix("")), "zip", slow_pyspark, "pyspark")
    for name in ("__init__", "util", "a_worker"):
        text = (
            (slow_pyspark / "pyspark" / f"{name}.py")
            .read_text()
            .replace("import time", "import time; time.sleep = print")
        )
        (site / "pyspark" / f"{name}.py").write_text(text)
    for path, prints in ((f"{archive}:{site}", f"{SLOW_IMPORT_S}"), (str(archive), "")):
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            server.listen(1)
            server.settimeout(PATIENCE_S)
            environment = {
                **os.environ,
                "PYTHONPATH": path,
                "PYTHON_WORKER_FACTORY_PORT": str(server.getsockname()[1]),
                "PYTHON_WORKER_FACTORY_SECRET": SECRET,
            }
            command = [worker_python(), "-m", "pyspark.a_worker"]
            process = subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
            connection, _ = server.accept()
            with connection:
                assert _read(connection) == SECRET
                connection.sendall(struct.pack("!i", 2) + b"ok")
                assert _read(connection).startswith("__main__|a_worker.py")
            assert process.communicate()[0].strip() == prints


def test_the_installed_pyspark_can_be_handed_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """It connects by the function that we know; who asks a second time gets a connection of its own."""
    from pyspark import util, worker_util

    assert early_connect._can_hand_over()
    for module in (util, worker_util):
        monkeypatch.setattr(module, early_connect._CONNECT, lambda *_: ("another", None))
    shared = util.local_connect_and_auth
    monkeypatch.setattr(worker_util, early_connect._CONNECT, shared)
    mine, theirs = socket.socketpair()
    with mine, theirs:
        early_connect.hand_over(mine)
        file, given = worker_util.local_connect_and_auth(1, "secret")
        assert given is mine
        file.write(b"told")
        file.flush()
        assert theirs.recv(4) == b"told"
        assert util.local_connect_and_auth(1, "secret") == ("another", None)
        file.close()


@pytest.mark.usefixtures("cache")
def test_the_program_is_a_python(tmp_path: Path) -> None:
    """Scripts, code and modules run as if it were not there; Spark's daemon too, which Spark connects to."""
    program = worker_python(sys.executable)
    script = tmp_path / "a script.py"
    script.write_text("import sys; print(sys.argv[1:], sys.executable)")
    for arguments in ([str(script), "-m", "x"], ["-c", script.read_text(), "-m", "x"]):
        said = subprocess.run([program, *arguments], capture_output=True, text=True, check=True).stdout
        assert said.strip() == f"['-m', 'x'] {sys.executable}"
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / "__init__.py").write_text("")
    for module in ("plain", "pyspark.daemon"):
        tmp_path.joinpath(f"{module.replace('.', '/')}.py").write_text("import sys; print(sys.argv[1:], __name__)")
        command = [program, "-m", module, "pyspark.worker"]
        environment = {**os.environ, "PYTHON_WORKER_FACTORY_PORT": "1"}  # of whoever started whoever started this
        said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path, env=environment).stdout
        assert said.strip() == "['pyspark.worker'] __main__"


def test_there_is_one_program_for_each_python(cache: Path) -> None:
    """It is found again, is never put before itself, and stands for the Python that the environment names."""
    program = worker_python("/opt/other python")
    assert worker_python("/opt/other python") == program
    assert worker_python(program) == program
    assert worker_python() != program
    assert len(list((cache / "lakebed").iterdir())) == 2
    assert "'/opt/other python'" in Path(program).read_text()


@pytest.mark.usefixtures("cache")
def test_the_environment_is_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a JVM that starts in between sees the program; other programs of the user do not."""
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/theirs")
    monkeypatch.delenv("PYSPARK_DRIVER_PYTHON", raising=False)
    with named_in_environment():
        inside = os.environ["PYSPARK_PYTHON"], os.environ["PYSPARK_DRIVER_PYTHON"]
    assert inside == (worker_python("/opt/theirs"),) * 2
    assert os.environ["PYSPARK_PYTHON"] == "/opt/theirs"
    assert "PYSPARK_DRIVER_PYTHON" not in os.environ


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize(
    ("master", "expected"),
    [("local[2]", worker_python), ("spark://elsewhere:7077", str)],
    ids=["workers here", "workers elsewhere"],
)
def test_a_session_of_the_user_is_left_as_it_was(master: str, expected: Callable[[str], str]) -> None:
    """What is registered gets workers that connect early, if they run here; all else of the session stays."""
    session = SimpleNamespace(sparkContext=SimpleNamespace(master=master, pythonExec="/opt/theirs"))
    with early_workers(session):
        assert session.sparkContext.pythonExec == expected("/opt/theirs")
    assert session.sparkContext.pythonExec == "/opt/theirs"


@pytest.mark.usefixtures("cache")
def test_threads_do_not_meet_in_a_session_of_the_user() -> None:
    """Whoever registers at the same time waits: the session ends up with the user's Python, not with ours."""
    session = SimpleNamespace(sparkContext=SimpleNamespace(master="local", pythonExec="/opt/theirs"))
    began, begun_too = threading.Event(), threading.Event()

    def second() -> None:
        began.wait(PATIENCE_S)
        with early_workers(session):
            begun_too.set()

    thread = threading.Thread(target=second)
    thread.start()
    with early_workers(session):
        began.set()
        assert not begun_too.wait(0.2)
    thread.join(PATIENCE_S)
    assert begun_too.is_set()
    assert session.sparkContext.pythonExec == "/opt/theirs"


def test_a_server_can_be_told(cache: Path) -> None:
    """`python -m lakebed.spark.worker_python` prints the program."""
    command = [sys.executable, "-m", worker_python_module.__name__]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said == worker_python(sys.executable) + "\n"
    assert said.startswith(str(cache))
