"""The last words of the demo: a command that shows its lake in a browser, when it is typed as printed."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import signal
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import lakebed

ROOT = Path(__file__).parents[2]


def demo() -> Any:
    """The example as a module."""
    spec = importlib.util.spec_from_file_location("shop", ROOT / "examples" / "shop.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_command_that_is_printed_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a directory kept, its last lines name a command; typed there, it serves the lake of that directory."""
    pytest.importorskip("uvicorn", reason="the extra `ui` is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    shop = demo()
    monkeypatch.setattr(
        shop, "day", lambda folder, _: lakebed.connect(f"{folder}/lake").create_table("t", {"k": "INT"})
    )
    monkeypatch.setattr("sys.argv", ["shop.py", "my lake"])
    shop.main()
    command = re.search(r"in a browser: (.* ui)$", capsys.readouterr().out, re.MULTILINE)
    assert command is not None
    words = [*shlex.split(command[1]), "--no-browser"]
    paths = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": paths}) as server:
        try:
            assert server.stdout is not None
            lines = (re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", line) for line in server.stdout)
            address = next(found for found in lines if found)
            opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
            assert opener.open(address[0], timeout=30).status == 200
            told = opener.open(f"{address[0].partition('?')[0]}api/lake", timeout=30).read().decode()
            assert '"default.t"' in told
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(30)
