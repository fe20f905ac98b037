"""The pages as a person uses them: clicked through in a real browser, and looked at."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import lakebed

from .conftest import HOSTILE, served

PAGES = (
    "",
    "flows",
    "query",
    *(f"table/default.{name}" for name in ("deduplicate", "marked", "events")),
    *(f"table/default.marked/{tab}" for tab in ("snapshots", "files", "rows", "changes", "why", "health")),
    "table/default.partial_update/why?k=7",
    "health",
)


class Page:
    """A page, and all that its browser complained of."""

    def __init__(self, page: Any, base: str) -> None:
        self.page = page
        self.base = base
        self.complaints: list[str] = []
        page.on("console", lambda said: said.type in ("error", "warning") and self.complaints.append(said.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.set_default_timeout(60_000)

    def until(self, condition: str) -> None:
        """Waits until an expression of the page is true; asked from outside, since the page's policy runs no texts."""
        end = time.monotonic() + 60
        while not self.page.evaluate(condition):
            assert time.monotonic() < end, f"never so: {condition}"
            self.page.wait_for_timeout(50)

    def show(self, path: str) -> Any:
        """Goes to a page of the program, and waits until it is there."""
        self.page.goto(f"{self.base}/#/{path}")
        self.page.wait_for_selector("main h1")
        return self.page


@pytest.fixture(scope="module")
def signed_in(browser: Any, lake: lakebed.Lake) -> Any:
    """A browser that has opened the address with the token, and where it is."""
    server = served(lake)
    context = browser.new_context(viewport={"width": 1200, "height": 800})
    page = context.new_page()
    page.goto(server.address)
    page.wait_for_selector("main h1")
    assert "token" not in page.url
    page.close()
    return context, f"http://{server.host}"


@pytest.fixture
def page(signed_in: Any) -> Iterator[Page]:
    """A page that must have nothing to complain of."""
    context, base = signed_in
    found = Page(context.new_page(), base)
    yield found
    found.page.close()
    assert found.complaints == []


def test_from_the_tables_to_the_files(page: Page, lake: lakebed.Lake) -> None:
    """By clicks alone; the bars are the table's files, and pointing at one tells of it."""
    shown = page.show("")
    page.until("document.querySelector('[data-table=\"default.first_row\"]').innerText.includes('first-row')")
    shown.click("text=default.deduplicate")
    shown.click("nav.tabs >> text=Files")
    shown.wait_for_selector("rect[data-file]")
    files = lake["deduplicate$files"].to_arrow()
    names = shown.eval_on_selector_all("rect[data-file]", "bars => bars.map(bar => bar.dataset.file)")
    assert sorted(names) == sorted(path.rpartition("/")[2] for path in files["file_path"].to_pylist())
    shown.hover("rect[data-file]")
    assert "sequence numbers" in shown.inner_text(".detail")


def test_drawn_bars_overlap_as_keys_do(page: Page, lake: lakebed.Lake) -> None:
    """What is on the screen: boxes cover the same places if and only if the key ranges of their files meet."""
    shown = page.show("table/default.deduplicate/files")
    shown.wait_for_selector("rect[data-file]")
    boxes = shown.eval_on_selector_all(
        "rect[data-file]",
        "bars => bars.map(bar => [bar.dataset.file, bar.closest('g').dataset.bucket, "
        "bar.getBoundingClientRect().left, bar.getBoundingClientRect().right])",
    )
    keys = {
        row["file_path"].rpartition("/")[2]: (int(row["min_key"][1:-1]), int(row["max_key"][1:-1]))
        for row in lake["deduplicate$files"].to_arrow().to_pylist()
    }
    for name, bucket, left, right in boxes:
        for other, other_bucket, other_left, other_right in boxes:
            if bucket == other_bucket:
                meet = keys[name][0] <= keys[other][1] and keys[other][0] <= keys[name][1]
                assert meet == (left < other_right and other_left < right)


def test_the_slider_goes_through_snapshots(page: Page, lake: lakebed.Lake) -> None:
    """The first snapshot has the files of the first write."""
    shown = page.show("table/default.deduplicate/files")
    shown.wait_for_selector("rect[data-file]")
    shown.focus("#at")
    shown.keyboard.press("Home")
    page.until("document.body.innerText.includes('snapshot 1 ')")
    first = lake["deduplicate$files"].at(snapshot=1).to_arrow()
    page.until(f"document.querySelectorAll('rect[data-file]').length === {len(first)}")


def test_two_snapshots_compared(page: Page, lake: lakebed.Lake) -> None:
    """Two clicks on the timeline show what `diff` gives."""
    shown = page.show("table/default.deduplicate/snapshots")
    shown.wait_for_selector("rect[data-snapshot]")
    shown.click("rect[data-snapshot='1']")
    shown.click("rect[data-snapshot='2']")
    shown.wait_for_selector("td.kind")
    assert f"{lake['deduplicate'].diff(1, 2).num_rows} changes" in shown.inner_text("main")


def test_what_feeds_what(page: Page) -> None:
    """The graph has every node and edge; all that feeds a thing stands to the left of it; what is behind is said."""
    shown = page.show("flows")
    shown.wait_for_selector("svg .node")
    assert shown.locator("svg .node").count() == 7
    assert shown.locator("svg .edge").count() == 5

    def left(name: str) -> float:
        return float(shown.locator(f"svg [data-node='{name}']").bounding_box()["x"])

    assert left("stream clicks") < left("default.deduplicate") < left("default.sums")
    assert left("postgres → default") < left("default.partial_update")
    said = shown.locator("main").inner_text()
    for words in ("running · 1.5 s behind · 2.0 kB · 13 rows/s · 1 parked", "parked: default.events", "2 snapshots"):
        assert words in said
    assert shown.locator("svg .node.bad").count() == 1
    assert shown.locator("section h3 a").all_inner_texts().count("default.deduplicate") == 3
    assert "http:" not in said


def test_rows_and_queries(page: Page) -> None:
    """A condition, a SELECT, and errors in the words of the server."""
    shown = page.show("table/default.deduplicate/rows")
    shown.fill("#where", "k = 3")
    shown.click("button:has-text('Show')")
    page.until("document.querySelectorAll('tbody tr').length === 1")
    page.show("query")
    shown.fill("#sql", "SELECT sum(v) AS s FROM aggregation")
    shown.keyboard.press("Control+Enter")
    shown.wait_for_selector("td.cell")


def test_a_key_is_typed(page: Page, lake: lakebed.Lake) -> None:
    """Which versions of the row there are, and by which rule each column has its value."""
    shown = page.show("table/default.aggregation")
    shown.click("nav.tabs >> text=Why")
    shown.fill("#key-k", "7")
    shown.keyboard.press("Enter")
    shown.wait_for_selector(".outcome")
    said = shown.inner_text("main")
    why = lake["aggregation"].why(7)[0]
    assert why.outcome in said
    assert all(version.file in said for version in why.versions)
    assert next(each.rule for each in why.columns if each.column == "v") in said


def test_what_is_wrong_is_told(signed_in: Any) -> None:
    """An error has its words and what to do; the browser itself notes the refused request."""
    context, base = signed_in
    page = Page(context.new_page(), base)
    shown = page.show("query")
    shown.fill("#sql", "SELECT nothing FROM deduplicate")
    shown.click("button:has-text('Run')")
    assert "nothing" in shown.inner_text(".error")
    assert "→" in shown.inner_text(".error")
    shown.close()


def test_changes_come_as_they_happen(browser: Any, tmp_path: Any) -> None:
    """A row that is written while one looks is there without a click."""
    lake = lakebed.connect(tmp_path / "lake")
    options = {"changelog-producer": "input"}
    table = lake.create_table("t", {"k": "INT", "v": "STRING"}, primary_key=["k"], options=options)
    table.write(pa.table({"k": [1], "v": ["first"]}, schema=table.arrow_schema))
    server = served(lake)
    context = browser.new_context()
    page = Page(context.new_page(), f"http://{server.host}")
    page.page.goto(server.address)
    shown = page.show("table/default.t/changes")
    shown.wait_for_selector("text=first")
    table.write(pa.table({"k": [2], "v": [HOSTILE]}, schema=table.arrow_schema))
    page.until("document.querySelectorAll('td.kind').length === 2")
    assert HOSTILE in shown.inner_text("tbody")
    assert page.complaints == []
    context.close()


def test_markup_in_tables_is_text(page: Page) -> None:
    """Values, comments and names that look like markup are shown, not run."""
    shown = page.show("table/default.marked/rows")
    shown.wait_for_selector("td.cell")
    assert HOSTILE in shown.inner_text("tbody")
    page.show("table/default.events")
    shown.wait_for_selector("dl.facts")
    assert HOSTILE in shown.inner_text("main")
    assert "broken" not in shown.title()
    assert shown.query_selector("main img") is None


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everyone_can_read_and_reach_it(signed_in: Any, scheme: str) -> None:
    """On every page: names for all fields, buttons and pictures, headings in order, contrast, keyboard."""
    context, base = signed_in
    page = Page(context.new_page(), base)
    page.page.emulate_media(color_scheme=scheme)
    for path in PAGES:
        shown = page.show(path)
        shown.wait_for_load_state("networkidle")
        assert shown.evaluate(_FINDINGS) == [], path
    page.page.close()
    assert page.complaints == []


_FINDINGS = """() => {
  const found = [];
  const named = (e) => e.getAttribute('aria-label') || e.labels?.length || e.title || e.textContent.trim();
  for (const e of document.querySelectorAll('input, textarea, select, button, a[href]')) {
    if (!named(e)) found.push(`no name: ${e.outerHTML.slice(0, 80)}`);
    if (e.tabIndex < 0) found.push(`not by keyboard: ${e.outerHTML.slice(0, 80)}`);
  }
  for (const e of document.querySelectorAll('svg:not([aria-label])')) found.push('a picture without a name');
  for (const e of document.querySelectorAll('img')) if (!e.hasAttribute('alt')) found.push('an image without alt');
  if (document.querySelectorAll('h1').length !== 1) found.push('not one h1');
  if (!document.documentElement.lang) found.push('no language');
  const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);
  if (new Set(ids).size !== ids.length) found.push('an id twice');
  const light = (c) => { const v = c / 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
  const channels = (text) => text.match(/[\\d.]+/g).map(Number);
  const luminance = ([r, g, b]) => 0.2126 * light(r) + 0.7152 * light(g) + 0.0722 * light(b);
  const ground = (e) => {
    for (let at = e; at; at = at.parentElement) {
      const colour = channels(getComputedStyle(at).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  for (const e of document.querySelectorAll('main *, header *')) {
    if (e.tagName === 'title' || ![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) continue;
    const style = getComputedStyle(e);
    const ink = luminance(channels(e.closest('svg') ? style.fill : style.color));
    const paper = luminance(ground(e));
    const contrast = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    if (contrast < 4.5) found.push(`contrast ${contrast.toFixed(1)}: ${e.textContent.slice(0, 40)}`);
  }
  return found;
}"""
