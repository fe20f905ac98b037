// Pages of the whole lake: its tables, what feeds what, and a place to ask.

import { ask, send } from "./ask.js";
import { element, grid, moment, numbers, problem } from "./dom.js";
import { flowGraph } from "./flow.js";

const PAGE = 100;

export async function lakePage(given, page) {
  const search = given.search || "";
  const offset = Number(given.offset || 0);
  const lake = await ask("lake", { search, offset, limit: PAGE });
  const field = element("input", { class: "wide", type: "search", id: "search", value: search, placeholder: "part of a name" });
  const rows = new Map(lake.tables.map((name) => [name, line(name)]));
  fill(lake.tables, rows, page);
  const to = (start) => `#/?${new URLSearchParams({ search, offset: start })}`;
  return [
    element("h1", {}, "Tables"),
    element("form", { class: "line", role: "search", onsubmit: (event) => {
      event.preventDefault();
      location.hash = `#/?${new URLSearchParams({ search: field.value })}`;
    } }, element("div", {}, element("label", { for: "search" }, "Search"), field), element("button", {}, "Search")),
    element("p", { class: "faint" }, `${numbers(lake.count)} tables in ${lake.databases.length} databases`),
    element("div", { class: "scroll" }, element("table", {},
      element("thead", {}, element("tr", {}, ["table", "kind", "key", "rows stored", "latest snapshot", "what"].map(
        (name) => element("th", { scope: "col" }, name)))),
      element("tbody", {}, [...rows.values()]))),
    element("p", {},
      offset > 0 ? element("a", { href: to(Math.max(0, offset - PAGE)) }, "← before") : null, " ",
      offset + PAGE < lake.count ? element("a", { href: to(offset + PAGE) }, "after →") : null),
  ];
}

function line(name) {
  return element("tr", { "data-table": name },
    element("td", {}, element("a", { href: `#/table/${encodeURIComponent(name)}` }, name)),
    ...Array.from({ length: 5 }, () => element("td", { class: "faint" }, "…")));
}

// Names are there at once; what has to be read comes a few tables at a time.
async function fill(names, rows, page) {
  for (let start = 0; start < names.length && !page.isLeft(); start += 20) {
    const found = await ask("summaries", { names: names.slice(start, start + 20).join(",") }).catch(() => []);
    for (const each of found) {
      const cells = [...rows.get(each.name).children].slice(1);
      const told = each.error ? ["", "", "", "", each.error] : [
        each.kind, each.key.join(", ") || "–", numbers(each.snapshot?.total_rows), moment(each.snapshot?.time_ms),
        each.snapshot ? each.snapshot.operation || each.snapshot.kind : "empty"];
      told.forEach((text, n) => {
        cells[n].textContent = text;
        cells[n].className = n === 2 ? "number" : "";
      });
    }
  }
}

function seconds(value) {
  if (value === null || value === undefined) return null;
  return value < 120 ? `${value.toFixed(value < 10 ? 1 : 0)} s` : value < 7200 ? `${Math.round(value / 60)} min` : `${Math.round(value / 3600)} h`;
}

function bytes(value) {
  if (value === null || value === undefined) return null;
  const unit = Math.min(4, Math.max(0, Math.floor(Math.log10(Math.max(1, value)) / 3)));
  return `${unit ? (value / 1000 ** unit).toFixed(1) : value} ${["B", "kB", "MB", "GB", "TB"][unit]}`;
}

const words = (...parts) => parts.filter(Boolean).join(" · ");

// What is said of each kind of node, in a line.
const LINES = {
  table: () => ({ text: "table" }),
  sync: (node) => ({
    bad: node.state !== "running" || Object.keys(node.parked).length > 0,
    text: words(node.state, node.lag_seconds === null ? null : `${seconds(node.lag_seconds)} behind`, bytes(node.lag_bytes),
      node.rate ? `${numbers(Math.round(node.rate))} rows/s` : null, Object.keys(node.parked).length ? `${Object.keys(node.parked).length} parked` : null),
  }),
  stream: (node) => {
    const writers = Object.values(node.tables);
    const last = Math.max(...writers.map((each) => each.last_ms));
    const rate = writers.reduce((sum, each) => sum + (each.rate || 0), 0);
    return { text: words(`last ${seconds((Date.now() - last) / 1000)} ago`, rate ? `${numbers(Math.round(rate))} rows/s` : null) };
  },
  consumer: (node) => ({
    bad: node.behind_ms > 3600000,
    text: node.snapshots_behind ? words(`${numbers(node.snapshots_behind)} snapshots`, seconds(node.behind_ms / 1000), `${bytes(node.bytes_behind)} behind`) : "has read all",
  }),
  materialized: (node) => ({
    bad: node.suspended,
    text: node.suspended ? "suspended" : node.behind.snapshots ? `${numbers(node.behind.snapshots)} snapshots behind` : "up to date",
  }),
};

export async function flowsPage() {
  const { nodes, edges } = await ask("flows");
  const into = (name) => edges.filter((edge) => edge.to === name).map((edge) => edge.from);
  const out = (name) => edges.filter((edge) => edge.from === name).map((edge) => edge.to);
  const link = (name) => element("a", { href: `#/table/${encodeURIComponent(name)}` }, name);
  const list = (names) => names.flatMap((name, n) => [n ? ", " : "", link(name)]);
  const lineOf = (node) => LINES[node.kind](node);
  const of = (kind) => nodes.filter((node) => node.kind === kind);
  const part = (title, found, show) => (found.length ? [element("h2", {}, title), element("div", { class: "flow" }, found.map(show))] : []);
  const section = (node, head, ...more) => element("section", { "data-view": node.name, "data-kind": node.kind },
    element("h3", {}, head.flat()), element("div", { class: lineOf(node).bad ? "severity warning" : null }, lineOf(node).text), more.flat());
  return [
    element("h1", {}, "Flows"),
    element("p", { class: "faint" }, "What feeds what: syncs and streams, tables, materialized tables, readers; and how far each is behind."),
    edges.length ? element("div", { class: "picture", tabindex: "0" }, flowGraph(nodes, edges, lineOf))
      : element("p", {}, "Nothing flows here yet: `lakebed cdc`, streams, and CREATE MATERIALIZED TABLE … AS SELECT … make something flow."),
    ...part("Syncs", of("sync"), (node) => section(node, [node.name, ": ", list(out(node.name))],
      element("div", { class: "faint" }, words(node.phase, `${numbers(node.rows)} changes since the start`)),
      node.trouble ? element("div", { class: "severity warning" }, node.trouble) : null,
      Object.entries(node.parked).map(([name, why]) => element("div", { class: "severity critical" }, `parked: ${name}: ${why}`)),
      Object.entries(node.not_followed).map(([name, why]) => element("div", { class: "faint" }, `not followed: ${name}: ${why}`)),
      node.dead_letters ? element("div", {}, `${numbers(node.dead_letters)} dead letters`) : null)),
    ...part("Streams that write", of("stream"), (node) => section(node, [node.name, " → ", list(out(node.name))],
      Object.entries(node.tables).map(([name, each]) => element("div", { class: "faint" },
        `${name}: commit ${numbers(each.last_identifier)} at ${moment(each.last_ms)}, ${numbers(each.rows)} rows in the last ${numbers(each.commits)} commits`)))),
    ...part("Materialized tables", of("materialized"), (view) => section(view, [list(into(view.name)), " → ", link(view.name)],
      element("div", { class: "faint" }, words(view.behind.snapshots ? `the newest of ${moment(view.behind.since_ms)}` : null,
        `last refresh ${view.way || "none"}${view.reason ? ` (${view.reason})` : ""}`, view.freshness ? `freshness ${view.freshness}` : null)),
      element("pre", {}, view.query))),
    ...part("Readers", of("consumer"), (node) => section(node, [list(into(node.name)), " → ", node.consumer],
      element("div", { class: "faint" }, `reads snapshot ${numbers(node.next_snapshot)} next; noted at ${moment(node.noted_ms)}`))),
  ];
}

export async function healthPage() {
  const found = await ask("health");
  return [
    element("h1", {}, "Health"),
    element("p", { class: "faint" }, "What will cost readers or writers, and the command that mends it. From metadata alone."),
    findings(found, true),
  ];
}

export function findings(found, withTable) {
  if (!found.length) return element("p", {}, "All is well.");
  const header = [...(withTable ? ["table"] : []), "how bad", "what", "what mends it"];
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "findings" }, element("table", {},
    element("thead", {}, element("tr", {}, header.map((name) => element("th", { scope: "col" }, name)))),
    element("tbody", {}, found.map((each) => element("tr", { "data-check": each.check },
      withTable ? element("td", {}, element("a", { href: `#/table/${encodeURIComponent(each.table)}` }, each.table)) : null,
      element("td", { class: `severity ${each.severity}` }, each.severity),
      element("td", {}, each.message), element("td", {}, element("code", {}, each.cure)))))));
}

export function queryPage(given) {
  const field = element("textarea", { id: "sql", spellcheck: "false" }, given.sql || "");
  const result = element("div", { "aria-live": "polite" });
  const run = async () => {
    result.replaceChildren(element("p", { class: "faint" }, "…"));
    try {
      const answer = await send("query", { sql: field.value });
      result.replaceChildren(
        element("p", { class: "faint" }, `${numbers(answer.rows.length)} rows${answer.more ? ", and more" : ""}`),
        grid(answer, "result"));
    } catch (error) {
      result.replaceChildren(problem(error));
    }
  };
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run();
  });
  return [
    element("h1", {}, "Query"),
    element("form", { onsubmit: (event) => { event.preventDefault(); run(); } },
      element("label", { for: "sql" }, "A SELECT; Ctrl-Enter runs it"), field, element("button", {}, "Run")),
    result,
  ];
}
