"""The page that Prometheus scrapes: its form, and the server that gives it."""

import http.client
import re
import socket
import urllib.error
import urllib.request

import pytest

import lakebed
from lakebed.errors import InvalidArgument
from lakebed.metrics.board import Board
from lakebed.metrics.endpoint import address_argument
from lakebed.metrics.families import CDC_LAG, COMMIT_DURATION, FAMILIES, SCAN_FILES, SCAN_READ_TIME
from lakebed.metrics.instruments import SECONDS
from lakebed.metrics.prometheus import exposition

_SAMPLE = re.compile(r'([a-z_]+)((?:\{(?:[a-z]+="(?:[^"\\]|\\["\\n])*",?)*\})?) (\+Inf|-?[0-9.e+-]+)')


def _samples(text: str) -> dict[str, str]:
    """Every line that is no comment, by its name and labels. Raises if one is not of the format."""
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            match = _SAMPLE.fullmatch(line)
            assert match is not None, line
            found[match[1] + match[2]] = match[3]
    return found


def _get(url: str, **headers: str) -> tuple[int, str, str]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.headers["Content-Type"], refused.read().decode()


def test_every_family_is_there_from_the_beginning() -> None:
    """With its kind and its meaning, so that a dashboard can be made before the first number."""
    lines = exposition(Board()).splitlines()
    assert [line.split(" ")[2:] for line in lines if line.startswith("# TYPE")] == [
        [each.name, each.kind] for each in FAMILIES
    ]
    assert len([line for line in lines if line.startswith("# HELP")]) == len(FAMILIES)


def test_numbers_are_written_as_the_format_has_it() -> None:
    """Buckets add up to the count, names may hold anything, whole numbers stay whole."""
    board = Board()
    for seconds in (0.0005, 0.001, 0.003, 400.0):
        board(COMMIT_DURATION, seconds, ("s.t", "append", "done"))
    board(SCAN_FILES, 10**15, ('a"b\\c\nd',))
    board(SCAN_READ_TIME, 1e-7, ("t",))
    board(CDC_LAG, 0.25, ("t",))
    found = _samples(exposition(board))
    labels = 'table="s.t",kind="append",outcome="done"'
    name = "lakebed_commit_duration_seconds"
    buckets = [int(found[f'{name}_bucket{{{labels},le="{bound:g}"}}']) for bound in SECONDS]
    assert buckets == [2, 2, *[3] * (len(SECONDS) - 2)]
    assert found[f'{name}_bucket{{{labels},le="+Inf"}}'] == found[f"{name}_count{{{labels}}}"] == "4"
    assert float(found[f"{name}_sum{{{labels}}}"]) == pytest.approx(400.0045)
    assert found[r'lakebed_scan_files_total{table="a\"b\\c\nd"}'] == "1000000000000000"
    assert found['lakebed_scan_read_time_seconds_total{table="t"}'] == "1e-07"
    assert found['lakebed_cdc_lag_seconds{table="t"}'] == "0.25"


def test_a_scrape_shows_what_happened() -> None:
    """From two lakes of one process, whose tables of one name are counted together."""
    with lakebed.metrics.serve("127.0.0.1:0") as endpoint:
        for place in ("memory://scraped-a", "memory://scraped-b"):
            lakebed.connect(place).create_table("t", {"id": [1, 2]})
        status, kind, text = _get(endpoint.url)
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert _samples(text)['lakebed_write_rows_total{table="default.t",kind="data"}'] == "4"


def test_only_the_page_is_served_and_only_to_this_machine() -> None:
    """Another path is not there; a name that leads here from a page elsewhere is refused; nothing can be changed."""
    with lakebed.metrics.serve("127.0.0.1:0") as endpoint:
        base = f"http://{endpoint.address}"
        assert _get(f"{base}/")[0] == 404
        assert _get(f"{base}/metrics?x=1")[0] == 200
        assert _get(endpoint.url, Host="evil.example")[0] == 403
        assert _get(endpoint.url, Host="evil.example:9464")[0] == 403
        assert _get(endpoint.url, Host="localhost:1")[0] == 200
        post = urllib.request.Request(endpoint.url, data=b"x")
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(post, timeout=10)
        assert refused.value.code == 501
        refused.value.close()


def test_a_stopped_endpoint_is_gone() -> None:
    """Its port is free for the next one, and stopping twice does no harm."""
    endpoint = lakebed.metrics.serve("127.0.0.1:0")
    endpoint.stop()
    endpoint.stop()
    with pytest.raises(ConnectionRefusedError):
        http.client.HTTPConnection(endpoint.address, timeout=5).connect()
    lakebed.metrics.serve(endpoint.address).stop()


def test_a_port_in_use_is_told_with_what_to_do() -> None:
    """By whoever else."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(InvalidArgument, match=f"127.0.0.1:{port}") as refused:
            lakebed.metrics.serve(f"127.0.0.1:{port}")
    assert "127.0.0.1:0" in refused.value.hint
    with pytest.raises(InvalidArgument, match="start"):
        lakebed.metrics.snapshot()  # nothing is counted for nobody


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("127.0.0.1:9464", ("127.0.0.1", 9464)),
        ("9464", ("127.0.0.1", 9464)),
        (":0", ("127.0.0.1", 0)),
        ("0.0.0.0:1", ("0.0.0.0", 1)),
        ("[::1]:9464", ("::1", 9464)),
        ("metrics.local:80", ("metrics.local", 80)),
    ],
)
def test_addresses(text: str, meant: tuple[str, int]) -> None:
    """This machine's own unless another one is named."""
    assert address_argument(text) == meant


@pytest.mark.parametrize("text", ["", "here", "127.0.0.1", "127.0.0.1:", "127.0.0.1:70000", "::1:80", "http://h:1"])
def test_what_is_no_address(text: str) -> None:
    """Refused before anything is begun."""
    with pytest.raises(InvalidArgument, match="address"):
        lakebed.metrics.serve(text)
